"""The interpreter of kernels against NumPy written out, and what it refuses."""

import numpy as np
import pytest

from monograph.codegen import interpret
from monograph.codegen.kernel import Privatised, Reduction, Result, Stage, Store
from monograph.ir import dtypes
from monograph.ir.index import Read, Var, within

from .kernels import Kernel, apply, arguments, const, f32, load, use

r, c = Var("r", 6), Var("c", 9)
HERE = r * 9 + c


def run(kernel, seed=0):
    arrays = arguments(kernel, seed)
    interpret.run(kernel, arrays)
    return arrays


def test_softmax_with_scratch():
    e = apply("exp", apply("sub", load(0, HERE), Result(f32, 0)))
    stages = (
        Stage((c,), reductions=(Reduction(0, "max", load(0, HERE)),)),
        Stage((c,), reductions=(Reduction(1, "add", e),), stores=(Store(2, c, e),)),
        Stage((c,), stores=(Store(1, HERE, apply("div", load(2, c), Result(f32, 1))),)),
    )
    uses = (use(f32, 54), use(f32, 54, "out"), use(f32, 9, "row"))
    x, y = run(Kernel("softmax", (r,), stages, uses))
    e = np.exp(x.reshape(6, 9) - x.reshape(6, 9).max(1, keepdims=True))
    np.testing.assert_allclose(y.reshape(6, 9), e / e.sum(1, keepdims=True), rtol=1e-6)


def test_privatised_columns_and_positions():
    x = load(0, HERE)
    stages = (
        Stage(
            (c,), (Reduction(0, "argmin", x, c),), privatised=(Privatised(1, 2, 9, "add", c, x),)
        ),
        Stage((), stores=(Store(3, r, Result(dtypes.int64, 0)),)),
    )
    uses = (use(f32, 54), use(f32, 9, "out"), use(f32, 18, "partials"), use(dtypes.int64, 6, "out"))
    x, sums, _, places = run(Kernel("columns", (r,), stages, uses))
    np.testing.assert_array_equal(sums, x.reshape(6, 9).sum(0))
    np.testing.assert_array_equal(places, x.reshape(6, 9).argmin(1))


def test_guards_and_reads():
    shifted = load(0, c - 2, guard=within(c - 2, 5), fill=7)
    picked = load(0, Read(1, (r,), 5))
    stage = Stage((c,), stores=(Store(2, HERE, apply("add", shifted, picked)),))
    uses = (use(f32, 5), use(dtypes.int64, 6), use(f32, 54, "out"))
    kernel = Kernel("pick", (r,), (stage,), uses)
    arrays = arguments(kernel)
    arrays[1][:] = [0, 4, 2, 2, 1, 3]
    interpret.run(kernel, arrays)
    padded = np.concatenate([[7, 7], arrays[0], [7, 7]])
    np.testing.assert_array_equal(arrays[2].reshape(6, 9), padded + arrays[0][arrays[1]][:, None])


def test_many_points_are_taken_in_pieces(monkeypatch):
    monkeypatch.setattr(interpret, "POINTS", 10)
    stage = Stage((c,), stores=(Store(1, HERE, apply("mul", load(0, HERE), const(2.0))),))
    x, y = run(Kernel("double", (r,), (stage,), (use(f32, 54), use(f32, 54, "out"))))
    np.testing.assert_array_equal(y, 2 * x)


def test_access_outside_of_a_buffer_is_refused():
    copy = Stage((c,), stores=(Store(1, HERE, load(0, HERE)),))
    with pytest.raises(IndexError, match="reads outside of buffer 0"):
        run(Kernel("copy", (r,), (copy,), (use(f32, 53), use(f32, 54, "out"))))
    with pytest.raises(IndexError, match="writes outside of buffer 1"):
        run(Kernel("copy", (r,), (copy,), (use(f32, 54), use(f32, 53, "out"))))


def test_conversions_saturate():
    x = np.array([np.nan, np.inf, -np.inf, 300.0, -300.0, 1.9, -1.9])
    np.testing.assert_array_equal(
        interpret.convert(x, dtypes.int8), [0, 127, -128, 127, -128, 1, -1]
    )
    np.testing.assert_array_equal(interpret.convert(x, dtypes.uint8), [0, 255, 0, 255, 0, 1, 0])
