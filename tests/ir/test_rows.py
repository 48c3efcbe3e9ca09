"""Graphs as functions of many inputs at once compute, row by row, what the reference says."""

import numpy as np
import pytest

from monograph.ir import build, dtypes, index, reference
from monograph.ir.closure import NoClosure
from monograph.ir.node import axis, interning
from monograph.ir.rows import LARGEST, Rows

COUNT = 5
draws = np.random.default_rng(0)


def agree(outputs, shapes, slots=0, dtype=np.float32):
    """Every row is what the graph makes of that row's inputs."""
    made = Rows(outputs)
    arrays = [(3 * draws.standard_normal((COUNT, *shape))).astype(dtype) for shape in shapes]
    arrays[0].reshape(-1)[:2] = -0.0, np.nan
    numbers = draws.standard_normal((slots, COUNT)).round(2)
    stacks = [*[a.reshape(COUNT, -1) for a in arrays], *numbers]
    with np.errstate(all="ignore"):
        found = made.call(*[stacks[n] for n in made.inputs])
    for n in range(COUNT):
        buffers = [a[n] for a in arrays]
        wanted = reference.run(outputs, buffers, [*[0] * len(shapes), *numbers[:, n].tolist()])
        for rows, value, node in zip(found, wanted, outputs, strict=True):
            assert rows.dtype == value.dtype
            row = np.broadcast_to(rows, (COUNT, node.size))[n].reshape(node.shape)
            np.testing.assert_array_equal(row, value)
            assert (np.signbit(row) == np.signbit(value)).all()


def test_numbers():
    with interning():
        x, y = build.buffer(0, (), dtypes.float32), build.buffer(1, (1,), dtypes.float32)
        s = build.slot(2, float)
        one = build.reshape(x, (1,))
        total = build.reduce("add", one * y, (0,))
        agree([x * s - 0.5, build.select(one < y, one, 2.0), total, -total], [(), (1,)], 1)


def test_rows_columns_and_sums():
    with interning():
        x, y = build.buffer(0, (2, 3), dtypes.float32), build.buffer(1, (6,), dtypes.float32)
        c = build.buffer(2, (1,), dtypes.float32)
        wide = build.broadcast_to(c, (2, 3))
        whole = build.reduce("max", build.reduce("add", wide, (0, 1)) * 1.5, ())
        agree(
            [x * wide, build.reshape(x, (6,)) + y, wide, whole, build.reduce("add", x, (0, 1))],
            [(2, 3), (6,), (1,)],
        )
        agree([build.cast(x, dtypes.int32), x < 0.0, build.reduce("mul", y, (0,))], [(2, 3), (6,)])


def test_half_precision():
    with interning():
        x = build.buffer(0, (4,), dtypes.float16)
        agree([x * x, build.reduce("add", x, (0,))], [(4,)], dtype=np.float16)


@pytest.mark.parametrize(
    "what", ["turned", "cut", "spread", "some axes", "long", "empty", "placed"]
)
def test_what_does_not_fit_rows(what):
    with interning():
        x = build.buffer(0, (2, 3), dtypes.float32)
        made = {
            "turned": lambda: build.permute(x, (1, 0)),
            "cut": lambda: build.reindex(x, (2,), (axis(0, 2), index.num(1))),
            "spread": lambda: x + build.broadcast_to(build.buffer(1, (3,), x.dtype), (2, 3)),
            "some axes": lambda: build.reduce("add", x, (0,)),
            "long": lambda: -build.buffer(0, (LARGEST + 1,), x.dtype),
            "empty": lambda: -build.buffer(0, (0,), x.dtype),
            "placed": lambda: build.reduce("argmax", x, (0, 1)),
        }[what]()
        with pytest.raises(NoClosure):
            Rows([made])
