"""How the loops of a kernel run: axes that are split, rows that are summed side by side."""

import numpy as np
import pytest

import monograph as mg
from monograph.codegen import kernel as k
from monograph.compiler import schedule
from monograph.ir import dtypes
from monograph.ir.index import Var, atoms

f32 = dtypes.float32


def pointwise(axis, place):
    """out[axis] = x[place]."""
    uses = tuple(k.BufferUse(f32, axis.extent, role) for role in ("in", "out"))
    stage = k.Stage((), stores=(k.Store(1, axis, k.Load(f32, 0, place)),))
    return k.Kernel("", (axis,), (stage,), uses)


def test_an_axis_that_is_divided_by_one_number_is_split():
    v = Var("v", 20 * 33)
    made = schedule.finish(pointwise(v, (v % 33) * 20 + v // 33), "map")
    assert [axis.extent for axis in made.outer] == [20, 33]
    assert not any(atoms(e) - set(made.outer) for e in schedule.expressions(made))
    assert made.schedule.unroll == (made.outer[0], 16)  # read in squares


@pytest.mark.parametrize("radices", [(33, 20), (7, 7), (100, 100)])
def test_an_axis_stays_whole_where_a_split_does_not_fit(radices):
    a, b = radices
    v = Var("v", 20 * 33)
    made = schedule.finish(pointwise(v, (v % a) + v // b), "map")
    assert made.outer == (v,)


@pytest.mark.parametrize("shape", [(3, 49, 64), (2, 64, 49), (5, 17, 16)])
def test_reshaped_permutations(shape):
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    found = (mg.tensor(x).permute(0, 2, 1).reshape(shape[0], -1) * 2).numpy()
    np.testing.assert_array_equal(found, x.transpose(0, 2, 1).reshape(shape[0], -1) * 2)


@pytest.mark.parametrize("rows", [2, 3, 4, 9])
def test_a_few_rows_share_the_matrix_that_they_are_multiplied_by(rows):
    m, n, c = Var("m", rows), Var("n", 64), Var("c", 64)
    product = k.Apply(f32, "mul", (k.Load(f32, 0, m * 64 + c), k.Load(f32, 1, n * 64 + c)))
    stages = (
        k.Stage((c,), reductions=(k.Reduction(0, "add", product),)),
        k.Stage((), stores=(k.Store(2, m * 64 + n, k.Result(f32, 0)),)),
    )
    uses = (k.BufferUse(f32, rows * 64, "in"), k.BufferUse(f32, 4096, "in"))
    uses = (*uses, k.BufferUse(f32, rows * 64, "out"))
    made = schedule.finish(k.Kernel("", (m, n), stages, uses), "rows")
    assert made.schedule.unroll == (m, min(rows, 4))


@pytest.mark.parametrize("rows", [3, 64, 101, 1030])
@pytest.mark.parametrize("columns", [8, 32, 100])
def test_sums_side_by_side(rows, columns):
    x = np.random.default_rng(0).standard_normal((rows, columns)).astype(np.float32)
    report = mg.explain(lambda: mg.tensor(x).sum(0))
    assert len(report.kernels) == 1
    with mg.config.override(tier0_limit=0):
        found = mg.tensor(x).sum(0).numpy()
    np.testing.assert_allclose(found, x.sum(0), rtol=1e-4, atol=1e-4)
