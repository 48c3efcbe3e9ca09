"""Each kind of node against direct NumPy or plain loops."""

import itertools
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from monograph.ir import build, dtypes, index
from monograph.ir.dtypes import bool_, float16, float32, float64, int32, int64, uint8, uint32
from monograph.ir.index import Condition, Read
from monograph.ir.node import Reindex, axis, coordinates, make
from monograph.ir.reference import MEANING, run
from monograph.ir.verify import RULES, verify


def execute(node, *buffers, slots=()):
    verify([node])
    (result,) = run([node], [np.asarray(b) for b in buffers], slots)
    assert result.dtype == node.dtype.numpy
    assert result.shape == node.shape
    return result


def buffer_of(array, number=0):
    return build.buffer(number, array.shape, dtypes.from_numpy(array.dtype))


def normal(*shape, dtype=np.float32, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


# --- running ------------------------------------------------------------------------------------


def test_every_kind_but_the_arguments_has_a_meaning():
    arguments = {kind.__name__ for kind in set(RULES) - set(MEANING)}
    assert arguments == {"Buffer", "Slot", "Loop"}  # `run` knows them itself


def test_outputs_are_fresh_and_in_the_order_asked():
    array = normal(2, 3)
    x = buffer_of(array)
    first, second, same = run([x + 1.0, build.permute(x, (1, 0)), x], [array])
    np.testing.assert_array_equal(first, array + 1)
    np.testing.assert_array_equal(second, array.T)
    same[:] = 0
    assert array.any() and second.flags.c_contiguous and second.flags.writeable


def test_values_that_nobody_needs_any_more_are_let_go():
    array = normal(1 << 16)
    x = first = buffer_of(array) + 1.0
    for number in range(30):
        x = x * float(number + 2)
    tracemalloc.start()
    try:
        kept, last = run([first, x], [array])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    np.testing.assert_array_equal(kept, array + 1)
    assert last.shape == array.shape
    assert peak < 8 * array.nbytes


@pytest.mark.parametrize("given_array", [np.zeros((2, 3)), np.zeros((3, 2), np.float32)])
def test_buffers_must_fit(given_array):
    x = build.buffer(0, (2, 3), float32)
    with pytest.raises(ValueError, match="buffer 0 should be float32"):
        run([x], [given_array])


def test_slots_and_constants():
    assert execute(build.slot(1, float), slots=[1, 2.5]) == 2.5
    assert execute(build.slot(0, int), slots=[7]) == 7
    assert execute(build.slot(0, bool), slots=[True])
    assert execute(build.const(-0.5, float16)) == -0.5
    x = buffer_of(normal(3))
    assert execute(x * build.slot(0, float), normal(3), slots=[2.0]).dtype == np.float32


def test_coordinate():
    np.testing.assert_array_equal(execute(build.coordinate((2, 3), 1)), [[0, 1, 2], [0, 1, 2]])
    assert execute(build.coordinate((2, 0), 0)).shape == (2, 0)


def test_move_is_the_identity():
    array = normal(3)
    np.testing.assert_array_equal(execute(build.move(buffer_of(array), "cuda"), array), array)


# --- Map ----------------------------------------------------------------------------------------


def test_map_keeps_its_dtype():
    array = np.array([1, 4, 9], np.float16)
    for function in ("sqrt", "exp", "tanh", "erf", "floor"):
        execute(build.apply(function, buffer_of(array)), array)
    small = np.array([200, 100], np.uint8)
    got = execute(buffer_of(small) + buffer_of(small), small)
    np.testing.assert_array_equal(got, [144, 200])


def test_integer_division_rounds_to_zero_and_never_traps():
    pairs = np.array(list(itertools.product([-7, -1, 0, 5], [-2, 0, 3])), np.int32)
    a, b = np.ascontiguousarray(pairs[:, 0]), np.ascontiguousarray(pairs[:, 1])
    x, y = buffer_of(a), buffer_of(b, 1)
    expected = [0 if q == 0 else int(p / q) for p, q in pairs.tolist()]
    np.testing.assert_array_equal(execute(build.apply("div", x, y), a, b), expected)
    expected = [0 if q == 0 else p // q for p, q in pairs.tolist()]
    np.testing.assert_array_equal(execute(build.apply("floordiv", x, y), a, b), expected)
    expected = [0 if q == 0 else p % q for p, q in pairs.tolist()]
    np.testing.assert_array_equal(execute(build.apply("remainder", x, y), a, b), expected)


def test_select_compare_and_bits():
    a, b = normal(5), normal(5, seed=1)
    x, y = buffer_of(a), buffer_of(b, 1)
    np.testing.assert_array_equal(execute(build.select(x < y, x, y), a, b), np.minimum(a, b))
    n = np.arange(5, dtype=np.uint32)
    got = execute(build.apply("shl", buffer_of(n), build.full((5,), 3, uint32)), n)
    np.testing.assert_array_equal(got, n * 8)


@pytest.mark.filterwarnings("error")
def test_casts_truncate_and_do_not_warn():
    array = np.array([-1.9, 1.9, 0.0, 300.0], np.float32)
    x = buffer_of(array)
    np.testing.assert_array_equal(execute(build.cast(x, int32), array), [-1, 1, 0, 300])
    np.testing.assert_array_equal(execute(build.cast(x, bool_), array), [1, 1, 0, 1])
    wild = np.array([np.nan, np.inf, -np.inf, 1e30], np.float32)
    execute(build.cast(x, int32), wild)
    execute(build.cast(x, uint8), wild)
    execute(build.cast(build.buffer(0, (4,), float64), float16), wild.astype(np.float64))


def test_bitcast_views_the_bits():
    array = np.array([[1.0, -0.0], [2.0, 0.5]], np.float32)
    node = build.apply("bitcast", build.permute(buffer_of(array), (1, 0)), dtype=uint32)
    np.testing.assert_array_equal(execute(node, array), array.T.copy().view(np.uint32))
    zero_d = build.apply("bitcast", build.buffer(0, (), float32), dtype=int32)
    assert execute(zero_d, np.float32(1.0)) == 0x3F800000


@pytest.mark.filterwarnings("error")
def test_logarithms_of_powers_of_ten_are_whole():
    x = (10.0 ** np.arange(9)).astype(np.float32)
    np.testing.assert_array_equal(execute(build.apply("log10", buffer_of(x)), x), np.arange(9))


def test_specials_do_not_warn():
    zero, wild = np.zeros(3, np.float32), np.array([np.nan, np.inf, -1.0], np.float32)
    x, y = buffer_of(wild), buffer_of(zero, 1)
    for node in (x / y, y * x, build.functions.log(x), build.functions.sqrt(x), x - x):
        execute(node, wild, zero)


# --- Reindex ------------------------------------------------------------------------------------


def raw_reindex(a, shape, where, guard=(), fill=0, reads=()):
    """A Reindex as written, without the constructor's simplification."""
    exprs = tuple([index.wrap(e) for e in where])
    return make(Reindex, (a, *reads), shape, a.dtype, exprs, guard, fill)


def test_reindex_affine_and_not():
    array = normal(4, 6)
    x = buffer_of(array)
    i, j = coordinates((3, 2))
    np.testing.assert_array_equal(
        execute(raw_reindex(x, (3, 2), [i + 1, 5 - j * 2]), array), array[1:4, [5, 3]]
    )
    flat = axis(0, 24)
    np.testing.assert_array_equal(
        execute(raw_reindex(x, (24,), [flat // 6, flat % 6]), array), array.reshape(-1)
    )
    diagonal = axis(0, 4)
    np.testing.assert_array_equal(
        execute(raw_reindex(x, (4,), [diagonal, diagonal]), array), np.diagonal(array)
    )


def test_reindex_guard_and_fill():
    array = normal(3)
    i = axis(0, 7)
    guard = index.within(i - 2, 3)
    got = execute(raw_reindex(buffer_of(array), (7,), [i - 2], guard, -1.0), array)
    np.testing.assert_array_equal(got, np.pad(array, 2, constant_values=-1))
    equal = (Condition(i % 2, equal=True),)
    got = execute(raw_reindex(buffer_of(array), (7,), [i // 3], equal), array)
    expected = [array[k // 3] if k % 2 == 0 else 0 for k in range(7)]
    np.testing.assert_array_equal(got, np.array(expected, np.float32))


def test_reindex_reads_integers():
    array, rows = normal(5, 3), np.array([[4, 0], [2, 2]], np.int64)
    shape = (2, 2, 3)
    i, j, k = coordinates(shape)
    node = raw_reindex(buffer_of(array), shape, [Read(0, (i, j), 5), k], reads=[buffer_of(rows, 1)])
    np.testing.assert_array_equal(execute(node, array, rows), array[rows])


def test_reindex_reads_any_integer_dtype_and_guards_them():
    array, rows = normal(3), np.array([2, 9, 0], np.uint64)
    read = Read(0, (axis(0, 3),), 10)
    guard = (Condition(2 - read),)
    node = raw_reindex(buffer_of(array), (3,), [read], guard, 5.0, [buffer_of(rows, 1)])
    np.testing.assert_array_equal(execute(node, array, rows), [array[2], 5, array[0]])


def test_reindex_of_scalars_and_empty_arrays():
    scalar = build.buffer(0, (), float32)
    got = execute(raw_reindex(scalar, (2, 3), []), np.float32(4))
    np.testing.assert_array_equal(got, np.full((2, 3), 4))
    array = normal(3)
    assert execute(raw_reindex(buffer_of(array), (), [1]), array) == array[1]
    assert execute(raw_reindex(buffer_of(array), (0, 2), [0]), array).shape == (0, 2)
    empty = np.zeros((0,), np.float32)
    i = axis(0, 3)
    node = raw_reindex(buffer_of(empty), (3,), [i], (Condition(-i - 1),), 2.0)
    np.testing.assert_array_equal(execute(node, empty), [2, 2, 2])


# --- Reduce and Scatter -------------------------------------------------------------------------

ORACLE = {"add": np.sum, "mul": np.prod, "max": np.max, "min": np.min}


@pytest.mark.parametrize("axes", [(0,), (1,), (0, 2), (0, 1, 2)])
@pytest.mark.parametrize("combine", ORACLE)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.uint8])
def test_reduce(combine, axes, dtype):
    array = (normal(2, 3, 4) * 3).astype(np.int8).astype(dtype)
    got = execute(build.reduce(combine, buffer_of(array), axes), array)
    np.testing.assert_array_equal(got, ORACLE[combine](array, axis=axes).astype(dtype))


def test_reduce_of_bools():
    array = np.array([[True, False], [True, True]])
    x = buffer_of(array)
    np.testing.assert_array_equal(execute(build.reduce("and", x, [1]), array), array.all(1))
    np.testing.assert_array_equal(execute(build.reduce("or", x, [1]), array), array.any(1))


def test_reduce_of_nothing_gives_the_identity():
    empty = np.zeros((2, 0), np.float32)
    expected = {"add": 0, "mul": 1, "max": -np.inf, "min": np.inf}
    for combine, identity in expected.items():
        got = execute(build.reduce(combine, buffer_of(empty), [1]), empty)
        np.testing.assert_array_equal(got, [identity] * 2)


def test_reduce_half_accumulates_in_float32():
    array = np.ones(5000, np.float16)
    assert execute(build.reduce("add", buffer_of(array), [0]), array) == 5000


def test_reduce_propagates_nan():
    array = np.array([1.0, np.nan, 3.0], np.float32)
    for combine in ("max", "min", "add"):
        assert np.isnan(execute(build.reduce(combine, buffer_of(array), [0]), array))


@pytest.mark.parametrize("combine", ["argmax", "argmin"])
def test_positions_are_of_the_first_extreme_and_nan_wins(combine):
    array = np.array([[1.0, 3.0, 3.0, 1.0], [2.0, np.nan, 5.0, np.nan]], np.float32)
    got = execute(build.reduce(combine, buffer_of(array), [1]), array)
    np.testing.assert_array_equal(got, [1 if combine == "argmax" else 0, 1])


@pytest.mark.parametrize("axes", [(0,), (2,), (0, 2), (1, 2), (0, 1, 2)])
def test_positions_count_the_reduced_axes_row_major(axes):
    array = normal(2, 3, 4)
    kept = [k for k in range(3) if k not in axes]
    rows = array.transpose(*kept, *axes).reshape(*[array.shape[k] for k in kept], -1)
    got = execute(build.reduce("argmax", buffer_of(array), axes), array)
    np.testing.assert_array_equal(got, rows.argmax(-1))


def test_positions_in_no_rows():
    empty = np.zeros((0, 3), np.float32)
    assert execute(build.reduce("argmax", buffer_of(empty), [1]), empty).shape == (0,)


@pytest.mark.parametrize("combine", ["add", "max", "min", "mul"])
def test_scatter(combine):
    array, rows = normal(4, 3), np.array([1, 0, 1, 4])
    i, j = coordinates((4, 3))
    where = [Read(0, (i,), 5), j]
    node = build.scatter(combine, buffer_of(array), (5, 3), where, reads=[buffer_of(rows, 1)])
    expected = np.full((5, 3), build.IDENTITY[combine](float32), np.float32)
    ufunc = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}[combine]
    ufunc.at(expected, rows, array)
    np.testing.assert_array_equal(execute(node, array, rows), expected)


def test_scatter_leaves_out_guarded_points():
    array, rows = normal(4), np.array([0, 9, 1, 0])
    read = Read(0, (axis(0, 4),), 10)
    guard = (Condition(1 - read),)
    node = build.scatter("add", buffer_of(array), (2,), [read], guard, [buffer_of(rows, 1)])
    np.testing.assert_allclose(execute(node, array, rows), [array[0] + array[3], array[2]])


def test_scatter_into_a_scalar_and_from_nothing():
    array = normal(4)
    got = execute(build.scatter("add", buffer_of(array), (), []), array)
    np.testing.assert_allclose(got, array.sum(), rtol=1e-6)
    empty = np.zeros((0,), np.float32)
    node = build.scatter("add", buffer_of(empty), (2,), [axis(0, 0)])
    np.testing.assert_array_equal(execute(node, empty), [0, 0])


# --- Contract -----------------------------------------------------------------------------------


def loops(a, b, shape, domain, fo, fa, fb):
    """The definition of Contract, one point at a time."""
    out = np.zeros(shape, a.dtype)
    arrays = (out, a, b)
    for point in np.ndindex(*domain):
        values = dict(zip(coordinates(domain), map(int, point)))
        places = []
        for where in (fo, fa, fb):
            places.append(tuple([index.evaluate(index.wrap(e), values, None) for e in where]))
        inside = all(
            0 <= i < extent
            for place, array in zip(places, arrays)
            for i, extent in zip(place, array.shape)
        )
        if inside:
            out[places[0]] += a[places[1]] * b[places[2]]
    return out


def contract(a, b, shape, domain, fo, fa, fb):
    node = build.contract(buffer_of(a), buffer_of(b, 1), shape, domain, fo, fa, fb)
    return execute(node, a, b)


@st.composite
def affine(draw, space):
    """A constant plus small multiples of at most two coordinates."""
    e = index.num(draw(st.integers(-2, 2)))
    for v in draw(st.lists(st.sampled_from(space), max_size=2, unique=True)):
        e = e + v * draw(st.sampled_from([-2, -1, 1, 1, 1, 2, 3]))
    return e


@given(st.data())
def test_contract_is_its_definition(data):
    domain = tuple(data.draw(st.lists(st.integers(1, 3), min_size=1, max_size=4)))
    space = coordinates(domain)
    shapes = [tuple(data.draw(st.lists(st.integers(0, 4), max_size=3))) for _ in range(3)]
    maps = [[data.draw(affine(space)) for _ in shape] for shape in shapes]
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    a, b = [rng.integers(-4, 5, size=shape).astype(np.int64) for shape in shapes[1:]]
    expected = loops(a, b, shapes[0], domain, *maps)
    np.testing.assert_array_equal(contract(a, b, shapes[0], domain, *maps), expected)


@pytest.mark.parametrize("stride, padding, dilation", [(1, 0, 1), (2, 1, 1), (2, 2, 2), (3, 1, 2)])
def test_convolution_and_its_derivatives(stride, padding, dilation):
    batch, channels, outputs, size, kernel = 2, 3, 4, 9, 3
    out_size = (size + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1
    domain = (batch, outputs, out_size, out_size, channels, kernel, kernel)
    n, o, i, j, c, p, q = coordinates(domain)
    at_x = (n, c, *(x * stride + y * dilation - padding for x, y in ((i, p), (j, q))))
    at_w, at_y = (o, c, p, q), (n, o, i, j)
    x = normal(batch, channels, size, size, dtype=np.float64)
    w = normal(outputs, channels, kernel, kernel, dtype=np.float64, seed=1)
    y = normal(batch, outputs, out_size, out_size, dtype=np.float64, seed=2)
    cases = [(y, at_y, x, at_x, w, at_w), (x, at_x, y, at_y, w, at_w), (w, at_w, y, at_y, x, at_x)]
    for target, fo, a, fa, b, fb in cases:
        got = contract(a, b, target.shape, domain, fo, fa, fb)
        np.testing.assert_allclose(got, loops(a, b, target.shape, domain, fo, fa, fb), atol=1e-12)


def test_contract_counts_coordinates_that_no_operand_uses():
    a, b = normal(3), normal(3, seed=1)
    i, j, k = coordinates((3, 4, 5))
    got = contract(a, b, (3, 4), (3, 4, 5), (i, j), (i,), (i,))
    np.testing.assert_allclose(got, np.repeat((a * b * 5)[:, None], 4, 1), rtol=1e-6)


def test_contract_over_an_empty_domain_is_zero():
    a, b = np.zeros((2, 0), np.float32), np.zeros((0, 3), np.float32)
    node = build.einsum("mk", "kn", "mn", buffer_of(a), buffer_of(b, 1))
    np.testing.assert_array_equal(execute(node, a, b), np.zeros((2, 3)))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int32, np.int64])
def test_matmul_of_every_dtype(dtype):
    a, b = (normal(3, 4) * 4).astype(dtype), (normal(4, 5, seed=1) * 4).astype(dtype)
    node = build.einsum("mk", "kn", "mn", buffer_of(a), buffer_of(b, 1))
    expected = (a.astype(np.float64) @ b.astype(np.float64)).astype(dtype)
    np.testing.assert_allclose(execute(node, a, b), expected, rtol=2e-3)


def test_transposed_outputs():
    a, b = normal(3, 4, dtype=np.float64), normal(4, 5, dtype=np.float64)
    node = build.einsum("mk", "kn", "nm", buffer_of(a), buffer_of(b, 1))
    np.testing.assert_allclose(execute(node, a, b), (a @ b).T)


def test_dtypes_come_back_from_numpy():
    for dtype in (bool_, int64, float64):
        assert dtypes.from_numpy(dtype.numpy) is dtype
