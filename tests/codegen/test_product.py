"""The register-tiled product and the packing of its operand, against NumPy."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

from monograph.codegen.llvm.product import (
    Pack,
    Product,
    Tile,
    declarations,
    packed_elements,
    tile_for,
    write_pack,
    write_product,
)
from monograph.runtime import native

TILES = [tile_for(512), tile_for(256), tile_for(128), Tile(16, 6, 4), Tile(8, 4, 1)]
SIZES = [(1, 1, 1), (5, 77, 131), (13, 50, 300), (64, 64, 16), (24, 33, 7)]
ATTRIBUTES = 'attributes #0 = { nounwind "min-legal-vector-width"="512" }'


def compiled(tile: Tile, functions: list[str], *names: str) -> tuple[Any, list[Any]]:
    text = "\n".join([*sorted(declarations(tile)), *functions, ATTRIBUTES])
    for name in names:
        text = text.replace(f"define internal void @{name}(", f"define void @{name}(")
    module = native.compile_ir(text)
    return module, [module.address(name) for name in names]


def draw(*shape: int) -> Any:
    return np.random.default_rng(shape).standard_normal(shape).astype(np.float32)


def call(address: int, *arguments: Any) -> None:
    kinds = [ctypes.c_void_p if isinstance(a, np.ndarray) else ctypes.c_int64 for a in arguments]
    given = [a.ctypes.data if isinstance(a, np.ndarray) else a for a in arguments]
    ctypes.CFUNCTYPE(None, *kinds)(address)(*given)


@pytest.mark.parametrize("tile", TILES, ids=str)
@pytest.mark.parametrize("add", [False, True], ids=["set", "add"])
@pytest.mark.parametrize("turned", [False, True], ids=["rows", "columns"])
def test_products(tile, add, turned):
    """c (+)= a · b with a by rows or by columns; what lies beside c is left alone."""
    heights, widths = tuple(m for m, _, _ in SIZES), tuple(n for _, n, _ in SIZES)
    strides = (1, 70) if turned else (310, 1)
    product = Product(tile, *strides, 80, 90, None, add, heights, widths)
    keep, (address,) = compiled(tile, write_product("f", product), "f")
    for m, n, k in SIZES:
        a, b, c = draw(310, 70) if turned else draw(70, 310), draw(310, 80), draw(70, 90)
        wanted = c.copy()
        left = a[:k, :m].T if turned else a[:m, :k]
        wanted[:m, :n] = left @ b[:k, :n] + (wanted[:m, :n] if add else 0)
        call(address, a, b, c, m, n, k)
        np.testing.assert_allclose(c, wanted, rtol=1e-4, atol=1e-4)
    del keep


@pytest.mark.parametrize("tile", TILES, ids=str)
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_products_with_a_packed_operand(tile, size):
    m, n, k = size
    pack = Pack(tile, k + 3, n, k)
    product = Product(tile, k, 1, tile.width, n, k, False, (m,), (n,))
    text = [*write_product("f", product), write_pack("g", pack)]
    keep, (multiply, packing) = compiled(tile, text, "f", "g")
    a, b, c = draw(m, k), draw(n, k + 3), np.zeros((m, n), np.float32)
    panels = np.full(packed_elements(tile, n, k), np.nan, np.float32)
    call(packing, panels, b)
    call(multiply, a, panels, c, m, n, k)
    np.testing.assert_allclose(c, a @ b[:, :k].T, rtol=1e-4, atol=1e-4)
    del keep


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_strides_and_sizes_that_vary(size):
    """The same code for all: strides are arguments, and so are the sizes of what is packed."""
    tile = tile_for(512)
    pack = Pack(tile, "%step", "%columns_", "%depth")
    product = Product(
        tile, "%a_row", "%a_column", tile.width, "%c_row", "%packed", True, None, None
    )  # fmt: skip
    assert product.arguments == ["%a_row", "%a_column", "%c_row", "%packed"]
    text = [*write_product("f", product), write_pack("g", pack)]
    keep, (multiply, packing) = compiled(tile, text, "f", "g")
    m, n, k = size
    a, b, c = draw(k, m + 2), draw(n, k + 3), draw(m, n + 1)
    wanted = c.copy()
    wanted[:, :n] += a[:, :m].T @ b[:, :k].T
    panels = np.full(packed_elements(tile, n, k), np.nan, np.float32)
    call(packing, panels, b, k + 3, n, k)
    call(multiply, a, panels, c, m, n, k, 1, m + 2, n + 1, k)
    np.testing.assert_allclose(c, wanted, rtol=1e-4, atol=1e-4)
    del keep


@pytest.mark.parametrize("bits", [512, 256, 128])
def test_products_of_doubles(bits):
    tile = tile_for(bits, 8)
    for m, n, k in SIZES:
        pack = Pack(tile, k, n, k)
        product = Product(tile, k, 1, tile.width, n, k, False, (m,), (n,))
        text = [*write_product("f", product), write_pack("g", pack)]
        keep, (multiply, packing) = compiled(tile, text, "f", "g")
        a, b = draw(m, k).astype(np.float64), draw(n, k).astype(np.float64)
        c, panels = np.zeros((m, n)), np.full(packed_elements(tile, n, k), np.nan)
        call(packing, panels, b)
        call(multiply, a, panels, c, m, n, k)
        np.testing.assert_allclose(c, a @ b.T, rtol=1e-12, atol=1e-12)
        del keep
