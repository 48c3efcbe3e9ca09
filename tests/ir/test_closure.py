"""Graphs as Python functions compute what the reference says."""

import numpy as np
import pytest

from monograph.ir import build, by_numpy, dtypes, index, reference
from monograph.ir.closure import Closure
from monograph.ir.node import axis, interning

X = np.arange(12, dtype=np.float32).reshape(3, 4) - 5
Y = np.linspace(-2, 2, 4, dtype=np.float32)


def agree(outputs, buffers, slots=()):
    made = Closure(outputs)
    given = [(*buffers, *slots)[number] for number in made.inputs]
    with np.errstate(all="ignore"):
        found = made.call(*given)
    numbers = (*[0] * len(buffers), *slots)
    for a, b in zip(found, reference.run(outputs, buffers, numbers), strict=True):
        a = np.asarray(a)
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        np.testing.assert_array_equal(a, b)


def test_elementwise_reductions_and_views():
    with interning():
        x = build.buffer(0, (3, 4), dtypes.float32)
        y = build.buffer(1, (4,), dtypes.float32)
        wide = build.broadcast_to(y, (3, 4))
        turned = build.permute(x * wide, (1, 0))
        rows = build.reduce("add", turned, (0,))
        agree(
            [turned, rows, build.reduce("max", x, (0, 1)), build.reduce("argmax", x, (1,))], [X, Y]
        )
        agree([build.reshape(turned, (2, 6)), build.cast(x, dtypes.int8), x < wide], [X, Y])


def test_broadcast_operands_of_every_kind():
    row, column, deep = Y, X[:, :1].copy(), np.arange(6, dtype=np.float32).reshape(2, 1, 3)
    with interning():
        x, r, c = (build.buffer(n, a.shape, dtypes.float32) for n, a in enumerate((X, row, column)))
        d = build.buffer(3, deep.shape, dtypes.float32)
        number = build.slot(4, float)
        to = build.broadcast_to
        turned = build.reindex(r, (4, 3), (index.wrap(axis(0, 4)),))
        whole = [
            x - to(r, (3, 4)),
            to(c, (3, 4)) * to(r, (3, 4)),
            to(number, (3, 4)) + to(c, (3, 4)),
            to(d, (2, 5, 3)) / 2.0,
            turned * 3.0,
            to(r, (3, 4)),
            build.reduce("add", to(r, (3, 4)), (1,)),
            to(build.const(1.5, dtypes.float32), (2, 2)) < to(number, (2, 2)),
        ]
        agree(whole, [X, row, column, deep], [2.5])


def test_places_outside_are_filled():
    with interning():
        x = build.buffer(0, (4,), dtypes.float32)
        place = index.wrap(axis(0, 6)) - 1
        guard = index.within(place, 4)
        agree([build.reindex(x, (6,), (place,), guard, 7.0)], [Y])
        agree([build.reindex(x, (6,), (index.wrap(axis(0, 6)) // 2,))], [Y])


def test_indices_from_data_and_numbers():
    where = np.array([3, 0, 2])
    with interning():
        x = build.buffer(0, (4,), dtypes.float32)
        picked = build.reindex(
            x,
            (3,),
            (index.Read(0, (index.wrap(axis(0, 3)),), 4),),
            reads=[build.buffer(1, (3,), dtypes.int64)],
        )
        agree([picked * build.slot(2, float)], [Y, where], [2.5])


def test_rows_and_elements_that_indices_name():
    rows, columns = np.array([2, 0, 1, 2]), np.array([[3], [0]])
    with interning():
        x = build.buffer(0, (3, 4), dtypes.float32)
        r, c = (build.buffer(n, a.shape, dtypes.int64) for n, a in enumerate((rows, columns), 1))
        i, j = (index.wrap(axis(k, n)) for k, n in ((0, 4), (1, 4)))
        whole = build.reindex(x, (4, 4), (index.Read(0, (i,), 3), j), reads=[r])
        turned = build.reindex(x, (4, 4), (index.Read(0, (j,), 3), i), reads=[r])
        k = index.wrap(axis(0, 2))
        both = build.reindex(
            x, (2, 1), (index.Read(0, (k + 1,), 3), index.Read(1, (k, index.ZERO), 4)), reads=[r, c]
        )
        same = build.reindex(x, (2, 4), (index.Read(0, (index.ZERO,), 3), j), reads=[r])
        agree([whole, turned, both, same, build.coordinate((2, 3), 1)], [X, rows, columns])


def test_sixteen_bits_are_computed_in_thirty_two():
    halves = (np.arange(6) / 3).astype(np.float16)
    with interning():
        x = build.buffer(0, (6,), dtypes.float16)
        agree([x * x + x, build.reduce("add", x, (0,))], [halves])


def test_single_numbers_and_empty_arrays():
    with interning():
        x = build.buffer(0, (), dtypes.float32)
        empty = build.buffer(1, (0, 2), dtypes.float32)
        given = [np.asarray(3.0, np.float32), np.zeros((0, 2), np.float32)]
        agree([build.broadcast_to(x, (2, 2)), x * x, build.reduce("add", empty, (0,))], given)


def test_an_array_that_is_given_turned():
    with interning():
        x = build.buffer(0, (4, 3), dtypes.float32)
        agree([build.permute(x, (1, 0)), build.reshape(x, (12,))], [X.T])


@pytest.mark.parametrize(
    "letters, fits",
    [
        ("mk,kn,mn", True), ("mk,nk,mn", True), ("km,kn,nm", True), ("bmk,bnk,bmn", True),
        ("bhqd,bkhd,bhqk", True), ("abk,kcd,acbd", True), ("m,n,mn", True), ("k,k,", True),
        ("bm,bm,bm", True), ("mk,k,m", True), ("u,un,un", True), ("mk,un,mn", False),
    ],
)  # fmt: skip
def test_products_are_those_of_the_reference(letters, fits):
    first, second, out = letters.split(",")
    sizes = {letter: 2 + n for n, letter in enumerate("abdhkmnqc")} | {"u": 1}
    rng = np.random.default_rng(0)
    data = [
        rng.integers(-3, 4, [sizes[c] for c in part]).astype(np.float32) for part in (first, second)
    ]
    with interning():
        a, b = (build.buffer(n, x.shape, dtypes.float32) for n, x in enumerate(data))
        node = build.einsum(first, second, out, a, b)
        assert (by_numpy.product_of(node) is not None) is fits
        agree([node], data)


def test_windows_and_whole_numbers_are_left_to_the_reference():
    with interning():
        a = build.buffer(0, (6,), dtypes.float32)
        b = build.buffer(1, (3,), dtypes.float32)
        i, k = axis(0, 4), axis(1, 3)
        window = build.contract(a, b, (4,), (4, 3), [i], [i + k], [k])
        assert by_numpy.product_of(window) is None
        agree([window], [np.arange(6, dtype=np.float32), np.ones(3, np.float32)])
        x = build.buffer(0, (2, 2), dtypes.int64)
        assert by_numpy.product_of(build.einsum("mk", "kn", "mn", x, x)) is None


@pytest.mark.parametrize("shape", [(), (5,), (64,), (3, 50)])
@pytest.mark.parametrize("seed, offset", [(0, 0), (1 << 40, 7), (-3, 1 << 50)])
def test_random_bits_are_those_of_the_reference(shape, seed, offset):
    with interning():
        numbers = [build.buffer(n, (), dtypes.int64) for n in range(2)]
        agree([build.random_bits(shape, *numbers)], [np.array(seed), np.array(offset)])
