"""What constructors promise: composition, constant folding, broadcasting and promotion."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from monograph.ir import build, dtypes, index
from monograph.ir.dtypes import float32, float64, int64
from monograph.ir.node import Buffer, Const, Map, Reindex, axis, coordinates, interning
from monograph.ir.reference import run
from monograph.ir.verify import verify

torch = pytest.importorskip("torch")


def evaluate(node, *buffers, slots=()):
    verify([node])
    return run([node], buffers, slots)[0]


# --- chains of Reindex --------------------------------------------------------------------------


def permute(draw, node, array):
    order = draw(st.permutations(range(array.ndim)))
    return build.permute(node, order), array.transpose(order)


def reshape(draw, node, array):
    sizes = []
    rest = array.size
    while rest > 1 and len(sizes) < 3:
        size = draw(st.sampled_from([d for d in range(1, rest + 1) if rest % d == 0]))
        sizes.append(size)
        rest //= size
    shape = (*sizes, rest)
    return build.reshape(node, shape), array.reshape(shape)


def narrow(draw, node, array):
    """A slice with a step, on one axis."""
    along = draw(st.integers(0, array.ndim - 1))
    extent = array.shape[along]
    start = draw(st.integers(0, extent - 1))
    step = draw(st.integers(1, 3))
    part = [slice(None)] * array.ndim
    part[along] = slice(start, None, step)
    expected = array[tuple(part)]
    where = list(coordinates(expected.shape))
    where[along] = where[along] * step + start
    return build.reindex(node, expected.shape, where), expected


def flip(draw, node, array):
    along = draw(st.integers(0, array.ndim - 1))
    where = list(coordinates(array.shape))
    where[along] = array.shape[along] - 1 - where[along]
    return build.reindex(node, array.shape, where), np.flip(array, along)


def pad(draw, node, array):
    along = draw(st.integers(0, array.ndim - 1))
    before, after = draw(st.integers(0, 2)), draw(st.integers(0, 2))
    fill = draw(st.sampled_from([0.0, -1.0]))
    widths = [(before, after) if k == along else (0, 0) for k in range(array.ndim)]
    expected = np.pad(array, widths, constant_values=fill)
    where = list(coordinates(expected.shape))
    where[along] = where[along] - before
    guard = index.within(where[along], array.shape[along])
    return build.reindex(node, expected.shape, where, guard, fill), expected


def repeat(draw, node, array):
    count = draw(st.integers(1, 3))
    shape = (count, *array.shape)
    return build.broadcast_to(node, shape), np.broadcast_to(array, shape)


def take(draw, node, array):
    """An indirect index: rows of the first axis, chosen by an integer array."""
    extent = array.shape[0]
    rows = draw(st.lists(st.integers(0, extent - 1), min_size=1, max_size=4))
    reads = [constant_array(rows)]
    shape = (len(rows), *array.shape[1:])
    where = [index.Read(0, (axis(0, len(rows)),), extent), *coordinates(shape)[1:]]
    return build.reindex(node, shape, where, reads=reads), array[np.array(rows)]


def constant_array(values):
    """A node that holds the integers, made of coordinates and selects."""
    place = build.coordinate((len(values),), 0)
    result = build.full((len(values),), values[0], int64)
    for k, value in enumerate(values):
        result = build.select(build.functions.eq(place, k), value, result)
    return result


@given(st.data())
def test_chains_of_reindex_equal_numpy(data):
    shape = tuple(data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=3)))
    array = np.arange(1, 1 + math.prod(shape), dtype=np.float32).reshape(shape)
    node = build.buffer(0, shape, float32)
    expected = array
    for _ in range(data.draw(st.integers(1, 5))):
        steps = [permute, reshape, narrow, flip, repeat, take, pad]
        step = data.draw(st.sampled_from(steps))
        if expected.size > 300:
            break
        node, expected = step(data.draw, node, expected)
    np.testing.assert_array_equal(evaluate(node, array), expected)


@given(st.data())
def test_views_compose_into_one_node(data):
    shape = tuple(data.draw(st.lists(st.integers(2, 4), min_size=1, max_size=3)))
    array = np.zeros(shape, np.float32)
    node = source = build.buffer(0, shape, float32)
    for _ in range(data.draw(st.integers(1, 5))):
        step = data.draw(st.sampled_from([permute, reshape, flip, narrow]))
        node, array = step(data.draw, node, array)
    assert node is source or node.inputs == (source,)


def test_views_that_cancel_leave_the_source():
    x = build.buffer(0, (2, 3, 4), float32)
    assert build.reshape(build.reshape(x, (6, 4)), (2, 3, 4)) is x
    assert build.permute(build.permute(x, (2, 0, 1)), (1, 2, 0)) is x
    assert build.broadcast_to(x, (2, 3, 4)) is x


def test_axes_of_extent_one_leave_no_trace():
    x = build.buffer(0, (2, 1, 3), float32)
    assert build.reshape(build.reshape(x, (2, 3)), (2, 1, 3)) is x
    row = build.buffer(1, (2, 3), float32)
    assert build.expand_dims(row, [1]).index == (axis(0, 2), axis(2, 3))


def test_two_fills_stay_two_nodes():
    x = build.buffer(0, (3,), float32)
    i5, i7 = axis(0, 5), axis(0, 7)
    once = build.reindex(x, (5,), [i5 - 1], index.within(i5 - 1, 3), 1.0)
    twice = build.reindex(once, (7,), [i7 - 1], index.within(i7 - 1, 5), 2.0)
    assert twice.inputs == (once,)
    got = evaluate(twice, np.zeros(3, np.float32))
    np.testing.assert_array_equal(got, [2, 1, 0, 0, 0, 1, 2])


def test_guard_that_never_holds_gives_the_fill():
    x = build.buffer(0, (3,), float32)
    i = axis(0, 4)
    node = build.reindex(x, (4,), [i], (index.Condition(-i - 1),), 7.0)
    assert build.constant_value(node) == 7.0


def test_empty_arrays():
    x = build.buffer(0, (0, 3), float32)
    empty = np.zeros((0, 3), np.float32)
    assert evaluate(build.reshape(x, (3, 0)), empty).shape == (3, 0)
    assert evaluate(build.permute(x, (1, 0)), empty).shape == (3, 0)
    assert evaluate(build.broadcast_to(x, (2, 0, 3)), empty).shape == (2, 0, 3)


# --- constant folding ---------------------------------------------------------------------------

SPECIAL = [0.0, -0.0, 1.0, -1.0, 2.5, math.inf, -math.inf, math.nan]
FOLDED = ["add", "sub", "mul", "div", "remainder", "maximum", "minimum", "pow", "lt", "eq", "ne"]


def same_bits(got, expected):
    """Equal numbers, signs of zero included; every NaN is one."""
    np.testing.assert_array_equal(got, expected)
    if np.asarray(got).dtype.kind == "f":
        zero = np.asarray(expected) == 0
        np.testing.assert_array_equal(np.signbit(got)[zero], np.signbit(expected)[zero])


@pytest.mark.parametrize("function", FOLDED)
def test_constants_fold_to_what_running_gives(function):
    for a, b in itertools.product(SPECIAL, SPECIAL):
        folded = build.apply(function, build.const(a, float32), build.const(b, float32))
        assert isinstance(folded, Const)
        operands = [build.buffer(k, (), float32) for k in range(2)]
        ran = build.apply(function, *operands)
        expected = evaluate(ran, np.float32(a).reshape(()), np.float32(b).reshape(()))
        same_bits(evaluate(folded), expected)


@pytest.mark.parametrize("function", ["add", "sub", "mul", "div"])
@pytest.mark.parametrize("known", SPECIAL)
@pytest.mark.parametrize("side", [0, 1])
def test_simplification_with_one_constant_changes_no_bit(function, known, side):
    x = build.buffer(0, (len(SPECIAL),), float32)
    array = np.array(SPECIAL, np.float32)
    constant = build.full(x.shape, known, float32)
    operands, arrays = [x, constant], [array, np.float32(known)]
    if side:
        operands, arrays = operands[::-1], arrays[::-1]
    node = build.apply(function, *operands)
    ufunc = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide}[function]
    with np.errstate(all="ignore"):
        same_bits(evaluate(node, array), ufunc(*arrays))


def test_folding_reaches_through_broadcasts():
    node = build.full((2, 3), 2.0, float32) * 3.0 + 1.0
    assert build.constant_value(node) == 7.0
    assert node.shape == (2, 3)


def test_constants_are_exact_in_their_dtype():
    assert build.const(0.1, float32).value == float(np.float32(0.1))
    assert build.const(3.0, int64).value == 3
    assert isinstance(build.const(1, float32).value, float)
    assert isinstance(build.const(1, dtypes.bool_).value, bool)


def test_padding_a_constant_keeps_the_sign_of_zero():
    x = build.full((2,), -0.0, float32)
    i = axis(0, 4)
    node = build.reindex(x, (4,), [i - 1], index.within(i - 1, 2), 0.0)
    same_bits(evaluate(node), np.array([0.0, -0.0, -0.0, 0.0], np.float32))


def test_identities_return_the_operand():
    x = build.buffer(0, (3,), float32)
    n = build.buffer(1, (3,), int64)
    for node in (
        x * 1.0,
        1.0 * x,
        x / 1.0,
        x - 0.0,
        build.functions.neg(-x),
        build.cast(x, float32),
    ):
        assert node is x
    assert n + 0 is n
    assert build.select(build.full((3,), True, dtypes.bool_), x, x * 2.0) is x
    assert isinstance(x + 0.0, Map)  # -0.0 + 0.0 is 0.0


# --- interning ----------------------------------------------------------------------------------


def test_equal_nodes_are_identical_inside_a_scope():
    with interning():
        x, y = build.buffer(0, (3,), float32), build.buffer(1, (3,), float32)
        assert x is build.buffer(0, (3,), float32)
        assert x + y is y + x
        assert build.permute(x, (0,)) is x
        assert build.const(0.0, float32) is not build.const(-0.0, float32)
        assert build.const(1, int64) is not build.const(True, dtypes.bool_)
        assert build.const(math.nan, float32) is build.const(math.nan, float32)


# --- broadcasting -------------------------------------------------------------------------------

dims = st.lists(st.integers(0, 3), max_size=4).map(tuple)


@given(dims, dims)
def test_broadcast_shapes_as_numpy(a, b):
    try:
        expected = np.broadcast_shapes(a, b)
    except ValueError:
        with pytest.raises(ValueError, match="do not broadcast"):
            build.broadcast_shapes(a, b)
    else:
        assert build.broadcast_shapes(a, b) == expected


def test_arithmetic_broadcasts():
    a = np.arange(6, dtype=np.float32).reshape(2, 1, 3)
    b = np.arange(4, dtype=np.float32).reshape(4, 1)
    x, y = build.buffer(0, a.shape, float32), build.buffer(1, b.shape, float32)
    np.testing.assert_array_equal(evaluate(x - y * 2.0, a, b), a - b * 2)


# --- promotion: see also test_dtypes.py -----------------------------------------------------------


def test_division_of_integers_is_true():
    x = build.buffer(0, (3,), int64)
    node = x / 2
    assert node.dtype is float32
    np.testing.assert_array_equal(evaluate(node, np.arange(3)), [0, 0.5, 1])
    assert (build.buffer(1, (3,), float64) / x).dtype is float64


def test_numbers_alone():
    assert build.common_dtype([True]).name == "bool"
    assert build.common_dtype([1, True]).name == "int64"
    assert build.common_dtype([1, 2.0]).name == "float32"


# --- Reduce, Contract ---------------------------------------------------------------------------


def test_reduce_keeps_axes_on_request():
    x = build.buffer(0, (2, 3, 4), float32)
    assert build.reduce("add", x, [-1]).shape == (2, 3)
    assert build.reduce("add", x, [0, -1], keepdim=True).shape == (1, 3, 1)
    assert build.reduce("add", x, []) is x


def test_einsum_names_axes_as_numpy():
    a = np.random.default_rng(0).normal(size=(2, 3, 4))
    b = np.random.default_rng(1).normal(size=(4, 2, 5))
    x, y = build.buffer(0, a.shape, float64), build.buffer(1, b.shape, float64)
    node = build.einsum("bmk", "kbn", "nbm", x, y)
    np.testing.assert_allclose(evaluate(node, a, b), np.einsum("bmk,kbn->nbm", a, b))
    with pytest.raises(ValueError, match="sizes of axis 'k' differ"):
        build.einsum("bmk", "cbk", "bmc", x, y)


def test_index_of_a_constant_needs_no_reads():
    ones = build.full((5,), 1.0, float32)
    rows = build.buffer(0, (2,), int64)
    node = build.reindex(ones, (2,), [index.Read(0, (axis(0, 2),), 5)], reads=[rows])
    assert build.constant_value(node) == 1.0
    assert not any(isinstance(n, Buffer) for n in node.inputs)
    assert isinstance(node, Reindex)
