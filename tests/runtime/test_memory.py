"""The pool of aligned blocks."""

from __future__ import annotations

import gc

import numpy as np
import pytest

from monograph.runtime.memory import HUGE_PAGE, MAPPED_BYTES, PAGE, Pool, class_bytes


@pytest.mark.parametrize("nbytes", [0, 1, 64, 65, 513, 1025, 65536, 65537, 3 << 20, 10**9 + 7])
def test_classes_waste_little(nbytes: int) -> None:
    size = class_bytes(nbytes)
    assert size >= nbytes
    assert size % 64 == 0
    assert class_bytes(size) == size
    if nbytes > 512:
        assert size - nbytes <= nbytes / 8


@pytest.mark.parametrize(
    ("nbytes", "alignment"), [(1, 64), (5000, 64), (MAPPED_BYTES + 1, PAGE), (HUGE_PAGE, HUGE_PAGE)]
)
def test_alignment(nbytes: int, alignment: int) -> None:
    pool = Pool()
    blocks = [pool.allocate(nbytes) for _ in range(3)]
    assert all(block.address % alignment == 0 for block in blocks)
    assert len({block.address for block in blocks}) == 3


@pytest.mark.parametrize("nbytes", [1000, 1 << 20, 5 << 20])
def test_freed_memory_is_reused(nbytes: int) -> None:
    pool = Pool()
    block = pool.allocate(nbytes)
    address, held = block.address, pool.bytes_held
    assert pool.bytes_in_use == class_bytes(nbytes)
    del block
    assert pool.bytes_in_use == 0
    assert pool.allocate(nbytes).address == address
    assert pool.bytes_held == held


def test_trim_returns_what_is_idle() -> None:
    pool = Pool()
    kept = pool.allocate(3 << 20)
    pool.allocate(8 << 20)
    assert pool.trim() == 8 << 20
    assert pool.bytes_held == pool.bytes_in_use == class_bytes(kept.nbytes)
    assert pool.trim() == 0


def test_a_view_keeps_its_block() -> None:
    pool = Pool()
    view = pool.allocate(4 * 12).numpy("float32", (3, 4))
    view[...] = np.arange(12).reshape(3, 4)
    corner = view[1:, 1:]
    del view
    gc.collect()
    assert pool.bytes_in_use == 64
    assert corner.tolist() == [[5, 6, 7], [9, 10, 11]]
    del corner
    assert pool.bytes_in_use == 0


def test_views_with_strides_and_offset() -> None:
    block = Pool().allocate(64)
    block.numpy("int32", (16,))[...] = np.arange(16)
    assert block.numpy("int32", (2, 3), (-4, 16), offset=8).tolist() == [[2, 6, 10], [1, 5, 9]]
    assert block.numpy("int32", ()).shape == ()
    assert block.numpy("bool", (0, 3)).size == 0
    pair = np.dtype([("a", "i4"), ("b", "f4")])
    assert block.numpy(pair, (2,))["a"].tolist() == [0, 2]


def test_views_stay_inside() -> None:
    block = Pool().allocate(64)
    with pytest.raises(ValueError, match="does not fit"):
        block.numpy("float64", (9,))
    with pytest.raises(ValueError, match="does not fit"):
        block.numpy("float64", (2,), (-8,))
