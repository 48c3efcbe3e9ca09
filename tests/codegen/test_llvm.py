"""LLVM kernels against the interpreter: modes, combines, dtypes, tails, guards, addresses."""

import numpy as np
import pytest

from monograph.codegen.kernel import (
    Holds,
    IndexValue,
    Privatised,
    Reduction,
    Result,
    Stage,
    Store,
)
from monograph.codegen.llvm import Machine, emit
from monograph.ir import dtypes
from monograph.ir.index import Condition, Read, Var, maximum, minimum, within
from monograph.runtime import native

from .kernels import (
    Kernel,
    OutOfBounds,
    Schedule,
    apply,
    arguments,
    check,
    compiled,
    const,
    f32,
    load,
    use,
)

i, j = Var("i", 5), Var("j", 37)
ALL = [d for d in dtypes.ALL if not d.is_complex]  # kernels see the parts of those
NUMBERS = [d for d in ALL if d is not dtypes.bool_]
FLOATS = [d for d in ALL if d.is_floating_point]
TAILS = [*range(34), 63, 64, 65, 100, 127, 200]


def pointwise(value, outer, buffers, vector, index, dtype=f32, **schedule):
    """A kernel that stores one value into one more buffer."""
    size = index.hi + 1
    stage = Stage((), stores=(Store(len(buffers), index, value),))
    uses = (*buffers, use(dtype, size, "out"))
    return Kernel("pointwise", outer, (stage,), uses, Schedule(vector, **schedule))


def row_sum(combine, dtype, rows, columns, vector, unroll=None, position=None):
    """out[r] = combine over c of x[r, c]."""
    r, c = Var("r", rows), Var("c", columns)
    value = load(0, r * columns + c, dtype)
    result = dtypes.int64 if position else dtype
    stages = (
        Stage((c,), reductions=(Reduction(0, combine, value, c if position else None),)),
        Stage((), stores=(Store(1, r, Result(result, 0)),)),
    )
    uses = (use(dtype, rows * columns), use(result, rows, "out"))
    axis = {"inner": c, "outer": r, None: None}[vector]
    jam = (r, unroll) if unroll else None
    return Kernel("row_sum", (r,), stages, uses, Schedule(axis, jam))


@pytest.mark.parametrize("vector", ["outer", None])
@pytest.mark.parametrize("size", TAILS)
def test_pointwise_tails(size, vector):
    n = Var("n", size)
    value = apply("mul", load(0, n), load(0, n))
    stage = Stage((), stores=(Store(1, n, value),))
    uses = (use(f32, size), use(f32, size, "out"))
    check(Kernel("square", (n,), (stage,), uses, Schedule(n if vector else None)))


@pytest.mark.parametrize("vector", ["inner", "outer", None])
@pytest.mark.parametrize("size", TAILS)
def test_reduction_tails(size, vector):
    check(row_sum("add", f32, 3, size, vector))
    if size:
        check(row_sum("add", f32, size, 3, vector))


@pytest.mark.parametrize("bits", [128, 256, 512])
@pytest.mark.parametrize("dtype", ALL, ids=lambda d: d.name)
def test_vector_widths(dtype, bits):
    check(row_sum("max", dtype, 4, 75, "inner"), machine=Machine(bits))


@pytest.mark.parametrize("vector", ["inner", "outer", None])
@pytest.mark.parametrize("combine", ["add", "mul", "max", "min"])
@pytest.mark.parametrize("dtype", NUMBERS, ids=lambda d: d.name)
def test_combines(dtype, combine, vector):
    kernel = row_sum(combine, dtype, 21, 75, vector)
    arrays = arguments(kernel)
    if combine == "mul":
        arrays[0][:] = np.where(np.arange(len(arrays[0])) % 75 < 70, 1, arrays[0])
    check(kernel, arrays)


@pytest.mark.parametrize("vector", ["inner", "outer", None])
@pytest.mark.parametrize("combine", ["and", "or", "max", "min", "add", "mul"])
def test_bool_combines(combine, vector):
    kernel = row_sum(combine, dtypes.bool_, 21, 75, vector)
    arrays = arguments(kernel)
    arrays[0][: 75 * 9] = combine == "and"
    arrays[0][75 * 4 + 50] = combine != "and"
    check(kernel, arrays)


@pytest.mark.parametrize("combine", ["and", "or"])
def test_bitwise_combines_of_integers(combine):
    check(row_sum(combine, dtypes.int32, 21, 75, "inner"))


@pytest.mark.parametrize("vector", ["inner", "outer", None])
@pytest.mark.parametrize("combine", ["max", "min"])
@pytest.mark.parametrize("dtype", FLOATS, ids=lambda d: d.name)
def test_extremes_propagate_nan(dtype, combine, vector):
    kernel = row_sum(combine, dtype, 40, 150, vector)
    arrays = arguments(kernel)
    x = arrays[0].reshape(40, 150)
    for row in range(0, 40, 2):
        x[row, (row * 7) % 150] = np.nan
    x[5] = -np.inf
    x[7] = np.inf
    found = check(kernel, arrays)
    assert np.isnan(found[1][0:40:2]).all()


@pytest.mark.parametrize("columns", [1, 5, 16, 40, 150])
@pytest.mark.parametrize("vector", ["inner", "outer", None])
@pytest.mark.parametrize("combine", ["argmax", "argmin"])
@pytest.mark.parametrize("dtype", NUMBERS, ids=lambda d: d.name)
def test_positions_of_extremes(dtype, combine, vector, columns):
    kernel = row_sum(combine, dtype, 21, columns, vector, position=True)
    arrays = arguments(kernel)
    x = arrays[0].reshape(21, columns)
    x[3] = 2  # all equal: the first wins
    if dtype.is_floating_point:
        x[4, columns // 2 :] = np.nan
        x[5] = np.nan
        x[6] = -np.inf
        x[7] = np.inf
    found = check(kernel, arrays)
    pick = np.argmax if combine == "argmax" else np.argmin
    np.testing.assert_array_equal(found[1], pick(x, axis=1))


@pytest.mark.parametrize("columns", [3, 16, 70])
@pytest.mark.parametrize("vector", ["inner", "outer", None])
@pytest.mark.parametrize("rows", [1, 2, 3, 4, 5, 7, 8, 33])
@pytest.mark.parametrize("count", [2, 3, 4])
def test_jam_remainders(rows, count, vector, columns):
    r, c, k = Var("r", rows), Var("c", columns), Var("k", 6)
    product = apply("mul", load(0, r * 6 + k), load(1, k * columns + c))
    stages = (
        Stage((k,), reductions=(Reduction(0, "add", product),)),
        Stage((), stores=(Store(2, r * columns + c, Result(f32, 0)),)),
    )
    uses = (use(f32, rows * 6), use(f32, 6 * columns), use(f32, rows * columns, "out"))
    axis = {"inner": k, "outer": c, None: None}[vector]
    check(Kernel("gemm", (r, c), stages, uses, Schedule(axis, (r, count))))


def test_jam_along_the_vector_axis_means_more_vectors():
    n = Var("n", 1000)
    value = apply("add", load(0, n), const(1.0))
    check(pointwise(value, (n,), (use(f32, 1000),), n, n, unroll=(n, 4)))


@pytest.mark.parametrize("vector", [0, 1, 2, None])
def test_any_outer_axis_may_be_the_vector_axis(vector):
    axes = Var("a", 3), Var("b", 18), Var("c", 35)
    a, b, c = axes
    value = apply("sub", load(0, (a * 18 + b) * 35 + c), load(1, b))
    axis = None if vector is None else axes[vector]
    uses = (use(f32, 3 * 18 * 35), use(f32, 18))
    check(pointwise(value, axes, uses, axis, (c * 18 + b) * 3 + a))


def test_large_outer_domain_in_pieces():
    a, b = Var("a", 7), Var("b", 10007)
    value = apply("add", load(0, a * 10007 + b), load(1, b))
    check(pointwise(value, (a, b), (use(f32, 70049), use(f32, 10007)), b, a * 10007 + b))


@pytest.mark.parametrize("vector", [True, False])
@pytest.mark.parametrize(
    "index",
    [
        j * 2,
        j * -1 + 36,
        j // 3,
        j % 5,
        (j * 7 + i) % 37,
        (j - 20) // 6 + 4,
        (j - 20) % 6,
        minimum(j, 11),
        maximum(j - 9, i),
        (i * 37 + j) % 3 * 5 + (i * 37 + j) // 3,
        i * 2,
        i - i,
    ],
    ids=str,
)
def test_index_expressions(index, vector):
    value = load(0, index)
    check(pointwise(value, (i, j), (use(f32, 400),), j if vector else None, i * 37 + j))
    as_number = apply("cast", IndexValue(dtypes.int64, index), dtype=f32)
    check(pointwise(as_number, (i, j), (), j if vector else None, i * 37 + j))


@pytest.mark.parametrize("vector", [True, False])
def test_guards(vector):
    shifted = within(j - 3, 30)
    row = within(i - 1, 3)
    whole = within(i * 37 + j - 20, 100)
    cases = [
        (i * 30 + j - 3, shifted),
        (i * 37 - 37 + j, row),
        (i - 1, row),
        (i * 37 + j - 20, whole),
        (i * 2 - 2, (*row, *shifted)),
        (i, shifted),
        (j * 2 - 6, (*shifted, Condition((j - 3) % 2, equal=True))),
        ((j - 3) // 2, (*shifted, Condition((j - 3) % 2, equal=True))),
    ]
    axis = j if vector else None
    for index, guard in cases:
        value = load(0, index, guard=guard, fill=-7.5)
        check(pointwise(value, (i, j), (use(f32, 160),), axis, i * 37 + j))
        truth = apply("select", Holds(dtypes.bool_, guard), const(1.0), const(0.0))
        check(pointwise(truth, (i, j), (), axis, i * 37 + j))
        stage = Stage((), stores=(Store(1, i * 37 + j, load(0, i * 37 + j), guard),))
        uses = (use(f32, 185), use(f32, 185, "out"))
        check(Kernel("guarded", (i, j), (stage,), uses, Schedule(axis)))


def test_nothing_is_read_where_a_guard_fails():
    n = Var("n", 100)
    guard = within(n * 1_000_000_000_000 - 0, 1)
    value = load(0, n * 1_000_000_000_000, guard=guard, fill=3.0)
    kernel = pointwise(value, (n,), (use(f32, 1),), n, n)
    check(kernel)
    far = load(0, i * 1_000_000_000_000, guard=within(i, 1), fill=3.0)
    check(pointwise(far, (i, j), (use(f32, 1),), j, i * 37 + j))


@pytest.mark.parametrize("vector", [True, False])
@pytest.mark.parametrize("dtype", [dtypes.int32, dtypes.int64], ids=lambda d: d.name)
def test_indirect_reads(dtype, vector):
    by_lane, by_row = Read(1, (j,), 9), Read(1, (i,), 9)
    nested = Read(1, (Read(1, (j,), 9),), 9)
    for index in (by_lane * 4 + i, by_row * 37 + j, nested + j, by_row + by_lane):
        value = load(0, index)
        kernel = pointwise(
            value, (i, j), (use(f32, 400), use(dtype, 37)), j if vector else None, i * 37 + j
        )
        arrays = arguments(kernel)
        arrays[1][:] = np.random.default_rng(1).integers(0, 9, 37)
        check(kernel, arrays)


def test_indirect_reads_never_fault():
    value = load(0, Read(1, (j,), 9) * 4)
    kernel = pointwise(value, (i, j), (use(f32, 40), use(dtypes.int64, 37)), j, i * 37 + j)
    arrays = arguments(kernel)
    arrays[1][:] = np.random.default_rng(1).integers(-(2**60), 2**60, 37)

    compiled(kernel)(arrays)
    expected = arrays[0][np.clip(arrays[1], 0, 8) * 4]
    np.testing.assert_array_equal(arrays[2].reshape(5, 37), np.broadcast_to(expected, (5, 37)))


def test_scattered_store():
    a, b = Var("a", 20), Var("b", 33)
    stage = Stage((), stores=(Store(1, b * 20 + a, load(0, a * 33 + b)),))
    uses = (use(f32, 660), use(f32, 660, "out"))
    check(Kernel("transpose", (a, b), (stage,), uses, Schedule(b)))
    check(Kernel("transpose", (a, b), (stage,), uses, Schedule(a)))
    check(Kernel("transpose", (a, b), (stage,), uses, Schedule(b, (a, 16))))


@pytest.mark.parametrize("dtype", [f32, dtypes.float64, dtypes.bool_], ids=lambda d: d.name)
@pytest.mark.parametrize("bits", [128, 256, 512])
def test_transpose_by_squares(bits, dtype):
    """As many jammed copies as lanes: squares are loaded by rows and turned in registers."""
    a, b = Var("a", 37), Var("b", 50)
    stage = Stage((), stores=(Store(1, b * 37 + a, load(0, a * 50 + b, dtype)),))
    uses = (use(dtype, 1850), use(dtype, 1850, "out"))
    lanes = bits // (64 if dtype.itemsize == 8 else 32)
    kernel = Kernel("transpose", (b, a), (stage,), uses, Schedule(a, (b, lanes)))
    assert "shufflevector" in emit(kernel, Machine(bits))
    check(kernel, machine=Machine(bits))


@pytest.mark.parametrize("vector", ["inner", "outer", None])
@pytest.mark.parametrize("jam", [None, 3])
@pytest.mark.parametrize("columns", [5, 37, 1000, 40000])
def test_row_scratch(columns, jam, vector):
    """Softmax: the exponentials of a row wait in scratch for their sum."""
    rows = 19 if columns < 2000 else 4
    r, c = Var("r", rows), Var("c", columns)
    x = load(0, r * columns + c)
    e = apply("exp", apply("sub", x, Result(f32, 0)))
    stages = (
        Stage((c,), reductions=(Reduction(0, "max", x),)),
        Stage((c,), reductions=(Reduction(1, "add", e),), stores=(Store(2, c, e),)),
        Stage((c,), stores=(Store(1, r * columns + c, apply("div", load(2, c), Result(f32, 1))),)),
    )
    uses = (
        use(f32, rows * columns),
        use(f32, rows * columns, "out"),
        use(f32, columns, "row"),
    )
    axis = {"inner": c, "outer": r, None: None}[vector]
    unroll = (r, jam) if jam and vector != "outer" else None
    check(Kernel("softmax", (r,), stages, uses, Schedule(axis, unroll)), rtol=1e-4)


@pytest.mark.parametrize("vector", ["inner", "outer"])
def test_row_scratch_written_backwards(vector):
    r, c = Var("r", 19), Var("c", 37)
    stages = (
        Stage((c,), stores=(Store(2, c * -1 + 36, load(0, r * 37 + c)),)),
        Stage((), stores=(Store(2, c - c, const(5.0)),)),
        Stage((c,), stores=(Store(1, r * 37 + c, load(2, c)),)),
    )
    uses = (use(f32, 19 * 37), use(f32, 19 * 37, "out"), use(f32, 37, "row"))
    check(Kernel("flip", (r,), stages, uses, Schedule(c if vector == "inner" else r)))


@pytest.mark.parametrize("combine", ["add", "max", "min", "mul"])
@pytest.mark.parametrize("vector", ["inner", "outer", None])
@pytest.mark.parametrize("chunks", [1, 3, 40])
@pytest.mark.parametrize("jam", [None, 4])
def test_privatised_columns(vector, chunks, combine, jam):
    rows, columns = 23, 37
    r, c = Var("r", rows), Var("c", columns)
    x = load(0, r * columns + c)
    private = Privatised(1, 2, columns, combine, c, x)
    copy = Store(3, r * columns + c, apply("neg", x))
    stages = (Stage((c,), stores=(copy,), privatised=(private,)),)
    uses = (
        use(f32, rows * columns),
        use(f32, columns, "out"),
        use(f32, chunks * columns, "partials"),
        use(f32, rows * columns, "out"),
    )
    axis = {"inner": c, "outer": r, None: None}[vector]
    unroll = (r, jam) if jam and vector == "inner" else None
    kernel = Kernel("columns", (r,), stages, uses, Schedule(axis, unroll, chunks=chunks))
    arrays = arguments(kernel)
    arrays[0][:] = np.where(arrays[0] > 6, 2, 1) if combine == "mul" else arrays[0]
    check(kernel, arrays)


@pytest.mark.parametrize("vector", ["inner", "outer", None])
@pytest.mark.parametrize("size", [1, 3])
def test_privatised_total(vector, size):
    """A whole array reduced to one number stays in registers until a chunk ends."""
    r, c = Var("r", 23), Var("c", 150)
    x = load(0, r * 150 + c, dtypes.float64)
    axes, outer = ((c,), (r,)) if vector == "inner" else ((), (r, c))
    private = Privatised(1, 2, size, "add", i - i, x)
    stages = (Stage(axes, privatised=(private,)),)
    f64 = dtypes.float64
    uses = (use(f64, 23 * 150), use(f64, size, "out"), use(f64, 4 * size, "partials"))
    axis = c if vector else None
    check(Kernel("total", outer, stages, uses, Schedule(axis, chunks=4)))


@pytest.mark.parametrize("index", [j // 4, j % 6, j * 2 + 1, (j * 5) % 37], ids=str)
def test_privatised_lanes_that_meet(index):
    x = load(0, i * 37 + j)
    stages = (Stage((j,), privatised=(Privatised(1, 2, 80, "add", index, x),)),)
    uses = (use(f32, 185), use(f32, 80, "out"), use(f32, 160, "partials"))
    check(Kernel("meet", (i,), stages, uses, Schedule(j, chunks=2)))


def test_privatised_over_nothing_is_the_identity():
    r, c = Var("r", 0), Var("c", 5)
    private = Privatised(1, 2, 5, "max", c, load(0, r * 5 + c))
    uses = (use(f32, 0), use(f32, 5, "out"), use(f32, 10, "partials"))
    kernel = Kernel("empty", (r,), (Stage((c,), privatised=(private,)),), uses, Schedule(c))
    assert (check(kernel)[1] == -np.inf).all()


@pytest.mark.parametrize("vector", ["inner", "outer"])
def test_reduction_over_several_axes(vector):
    r, a, b = Var("r", 20), Var("a", 7), Var("b", 70)
    x = load(0, (a * 20 + r) * 70 + b)
    stages = (
        Stage((a, b), reductions=(Reduction(0, "add", x), Reduction(1, "argmax", x, a * 70 + b))),
        Stage((), stores=(Store(1, r, Result(f32, 0)), Store(2, r, Result(dtypes.int64, 1)))),
    )
    uses = (use(f32, 9800), use(f32, 20, "out"), use(dtypes.int64, 20, "out"))
    check(Kernel("channels", (r,), stages, uses, Schedule(b if vector == "inner" else r)))


def test_pooling_window():
    y, x, p, q = Var("y", 11), Var("x", 23), Var("p", 3), Var("q", 3)
    row, column = y * 2 + p - 1, x * 2 + q - 1
    guard = (*within(row, 21), *within(column, 45))
    value = load(0, row * 45 + column, guard=guard, fill=-np.inf)
    stages = (
        Stage((p, q), reductions=(Reduction(0, "max", value),)),
        Stage((), stores=(Store(1, y * 23 + x, Result(f32, 0)),)),
    )
    uses = (use(f32, 21 * 45), use(f32, 253, "out"))
    for vector, unroll in ((x, None), (x, (y, 2)), (None, None), (y, None)):
        check(Kernel("pool", (y, x), stages, uses, Schedule(vector, unroll)))


@pytest.mark.parametrize("vector", [True, False])
def test_segments(vector):
    sizes = (1, 0, 5000, 16, 4096, 8193)
    n = Var("n", max(sizes))
    rate = load(0, i - i)
    p, g = load(1, n), load(2, n)
    stage = Stage((), stores=(Store(1, n, apply("sub", p, apply("mul", rate, g))),))
    uses = (use(f32, 1, shared=True), use(f32, 8193, "inout"), use(f32, 8193))
    schedule = Schedule(n if vector else None)
    kernel = Kernel("update", (n,), (stage,), uses, schedule, segments=sizes)
    rng = np.random.default_rng(0)
    arrays = [np.full(1, 0.5, np.float32)]
    arrays += [rng.integers(-9, 9, size).astype(np.float32) for size in sizes * 2]
    check(kernel, arrays)


def test_update_in_place():
    n = Var("n", 1000)
    stage = Stage((), stores=(Store(0, n, apply("add", load(0, n), load(1, n))),))
    uses = (use(f32, 1000, "inout"), use(f32, 1000))
    check(Kernel("accumulate", (n,), (stage,), uses, Schedule(n)))


def test_a_later_stage_sees_what_an_earlier_one_stored():
    stages = (
        Stage((j,), stores=(Store(0, i * 37 + j, apply("add", load(0, i * 37 + j), const(1.0))),)),
        Stage((j,), stores=(Store(1, i * 37 + j, load(0, i * 37 + j)),)),
        Stage((j,), stores=(Store(2, i * 37 + j, load(0, i * 37)),)),
    )
    uses = (use(f32, 185, "inout"), use(f32, 185, "out"), use(f32, 185, "out"))
    for vector in (j, i, None):
        check(Kernel("stages", (i,), stages, uses, Schedule(vector)))


def test_no_outer_axes():
    stages = (
        Stage((j,), reductions=(Reduction(0, "add", load(0, j)),)),
        Stage((), stores=(Store(1, i - i, Result(f32, 0)),)),
    )
    uses = (use(f32, 37), use(f32, 1, "out"))
    for vector in (j, None):
        check(Kernel("total", (), stages, uses, Schedule(vector)))


def test_large_outputs_bypass_the_cache_when_aligned():
    rows, columns = 33, 1600
    r, c = Var("r", rows), Var("c", columns)
    x = load(0, r * columns + c)
    stages = (Stage((c,), stores=(Store(1, r * columns + c, apply("neg", x)),)),)
    uses = (use(f32, rows * columns), use(f32, rows * columns, "out"))
    kernel = Kernel("stream", (r,), stages, uses, Schedule(c))
    machine = Machine(512, cache_bytes=1000)
    assert "!nontemporal" in emit(kernel, machine)
    for shift in (0, 4, 64):
        room = np.zeros(rows * columns * 4 + 256, np.uint8)
        start = -room.ctypes.data % 64 + shift
        out = room[start : start + rows * columns * 4].view(np.float32)
        given = arguments(kernel)[0]

        compiled(kernel, machine)([given, out])
        np.testing.assert_array_equal(out, -given)


@pytest.mark.parametrize("columns", [300, 1600])
def test_rows_of_large_arrays_are_asked_for_ahead(columns):
    rows = 9
    r, c = Var("r", rows), Var("c", columns)
    x, w = load(0, r * columns + c), load(1, c)
    centred = apply("sub", x, apply("mul", Result(f32, 0), const(1 / columns)))
    stages = (
        Stage((c,), reductions=(Reduction(0, "add", x),)),
        Stage((c,), stores=(Store(2, r * columns + c, apply("mul", centred, w)),)),
    )
    uses = (use(f32, rows * columns), use(f32, columns), use(f32, rows * columns, "out"))
    kernel = Kernel("ahead", (r,), stages, uses, Schedule(c))
    near = Machine(512, near_bytes=rows * columns * 4)
    assert "prefetch" not in emit(kernel, near)
    machine = Machine(512, near_bytes=rows * columns * 4 - 1)
    asked = [line for line in emit(kernel, machine).splitlines() if "call void @llvm.pref" in line]
    assert asked
    check(kernel, machine=machine)


@pytest.mark.parametrize("inner", [True, False])
@pytest.mark.parametrize("channels", [5, 16, 37])
def test_what_all_rows_share_is_computed_once(inner, channels):
    r, c = Var("r", 50), Var("c", channels)
    scale = apply("div", load(1, c), apply("sqrt", apply("add", load(2, c), const(9.0))))
    value = apply("mul", apply("sub", load(0, r * channels + c), load(1, c)), scale)
    store = Store(3, r * channels + c, value)
    uses = (use(f32, 50 * channels), use(f32, channels), use(f32, channels))
    uses = (*uses, use(f32, 50 * channels, "out"))
    outer, stage = ((r,), Stage((c,), stores=(store,)))
    if not inner:
        outer, stage = ((r, c), Stage((), stores=(store,)))
    kernel = Kernel("shared", outer, (stage,), uses, Schedule(c))
    body = emit(kernel, Machine(native.vector_bits()))
    rows = body.index("loop", body.index("%begin, %end", body.index("alloca")))
    assert "sqrt" in body[:rows]
    assert "sqrt" not in body[rows : body.index("ret void")]
    check(kernel)


@pytest.mark.parametrize("dtype", [d for d in NUMBERS if d.itemsize < 8])
@pytest.mark.parametrize("bits", [128, 256, 512])
def test_a_single_lane_of_a_narrowed_vector_is_stored_alone(dtype, bits):
    v = Var("v", 3)
    wide = apply("cast", load(0, v, dtypes.int64), dtype=dtypes.int32)
    value = apply("cast", wide, dtype=dtype)
    stage = Stage((), stores=(Store(1, v, value, (Condition((v + 2) % 3, True),)),))
    uses = (use(dtypes.int64, 3), use(dtype, 3, "out"))
    check(Kernel("narrow", (v,), (stage,), uses, Schedule(v)), machine=Machine(bits))


def test_emission_is_deterministic():
    kernel = row_sum("argmax", f32, 21, 75, "inner", position=True)
    assert emit(kernel, Machine()) == emit(kernel, Machine())


# --- bounds -------------------------------------------------------------------------------------

n = Var("n", 40)
SHORT = 37  # three elements too few


def wrong(kind, vector):
    """Kernels over 40 points, one of whose buffers has fewer elements."""
    schedule = Schedule(n if vector else None)
    store = Store(1, n, load(0, n))
    uses = {"in": use(f32, 40), "out": use(f32, 40, "out")}
    if kind in uses:
        uses[kind] = use(f32, SHORT, kind)
        return Kernel("wrong", (n,), (Stage((), stores=(store,)),), tuple(uses.values()), schedule)
    if kind == "before":
        store = Store(1, n, load(0, n - 3))
    elif kind == "gather":
        store = Store(1, n, load(0, n * 7 % 40 + n // 39 * 8))
    elif kind == "scatter":
        store = Store(1, n * 7 % 40 + n // 39 * 8, load(0, n))
    elif kind == "guard":  # holds at the last elements, where it should not
        store = Store(1, n, load(0, n + 1, guard=(Condition(n - 30),)))
    return Kernel("wrong", (n,), (Stage((), stores=(store,)),), tuple(uses.values()), schedule)


@pytest.mark.parametrize("vector", [False, True])
@pytest.mark.parametrize(
    ("kind", "buffer"),
    [("in", 0), ("out", 1), ("before", 0), ("gather", 0), ("scatter", 1), ("guard", 0)],
)
def test_bounds_name_the_buffer_and_touch_nothing_else(kind, buffer, vector):
    kernel = wrong(kind, vector)
    machine = Machine(native.vector_bits(), bounds=True)
    around = [np.full(200, 7.0, np.float32) for _ in range(2)]
    given, found = (a[80 : 80 + u.elements] for a, u in zip(around, kernel.buffers))
    with pytest.raises(OutOfBounds) as caught:
        compiled(kernel, machine)([given, found])
    assert caught.value.args == (buffer,)
    for whole, one in zip(around, kernel.buffers):
        whole[80 : 80 + one.elements] = 7.0
        assert (whole == 7.0).all()


def test_bounds_of_a_row_of_partials():
    r, c = Var("r", 6), Var("c", 20)
    private = Privatised(1, 2, 19, "add", c, load(0, r * 20 + c))
    uses = (use(f32, 120), use(f32, 20, "out"), use(f32, 2 * 20, "partials"))
    kernel = Kernel("wrong", (r,), (Stage((c,), privatised=(private,)),), uses,
                    Schedule(c, chunks=2))  # fmt: skip
    with pytest.raises(OutOfBounds):
        compiled(kernel, Machine(native.vector_bits(), bounds=True))(arguments(kernel))


def test_bounds_of_segments():
    m = Var("m", 50)
    stage = Stage((), stores=(Store(1, m, load(0, m + 1)),))
    kernel = Kernel("wrong", (m,), (stage,), (use(f32, 50), use(f32, 50, "out")), Schedule(m),
                    segments=(50, 20))  # fmt: skip
    arrays = [np.ones(size, np.float32) for size in (50, 20, 50, 20)]
    with pytest.raises(OutOfBounds):
        compiled(kernel, Machine(native.vector_bits(), bounds=True))(arrays)
