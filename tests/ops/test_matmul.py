"""Products of matrices: what is refused at the call, and what reaches the library."""

import numpy as np
import pytest

import monograph as mg


def array(*shape):
    return mg.tensor(np.random.default_rng(0).standard_normal(shape).astype(np.float32))


@pytest.mark.parametrize(
    "call",
    [
        lambda: mg.mm(mg.ones(2), mg.ones(2, 2)),
        lambda: mg.mm(mg.ones(1, 2, 2), mg.ones(2, 2)),
        lambda: mg.bmm(mg.ones(2, 2), mg.ones(2, 2)),
        lambda: mg.bmm(mg.ones(2, 2, 2), mg.ones(3, 2, 2)),
        lambda: mg.mv(mg.ones(2, 2), mg.ones(2, 2)),
        lambda: mg.dot(mg.ones(2), mg.ones(3)),
        lambda: mg.matmul(mg.ones(()), mg.ones(2)),
        lambda: mg.matmul(mg.ones(2, 3), mg.ones(2, 3)),
        lambda: mg.matmul(mg.ones(2, 2, 2), mg.ones(3, 2, 2)),
        lambda: mg.matmul(mg.ones(2, 2), mg.ones(2, 2, dtype=mg.int64)),
        lambda: mg.matmul(mg.ones(2, 2, dtype=mg.bool), mg.ones(2, 2, dtype=mg.bool)),
        lambda: mg.outer(mg.ones(2, 2), mg.ones(2)),
        lambda: mg.addmm(mg.ones(3), mg.ones(2, 2), mg.ones(2, 2)),
        lambda: mg.addmm(mg.ones(2), mg.ones(2, 3), mg.ones(2, 2)),
        lambda: mg.addr(mg.ones(2, 2).int(), mg.ones(2).int(), mg.ones(2).int(), beta=0.5),
    ],
)
def test_what_does_not_fit_is_refused_at_the_call(call):
    with pytest.raises(RuntimeError):
        call()


def test_beta_0_leaves_out_the_input():
    x = mg.full((2,), float("nan")).requires_grad_()
    y = mg.addmm(x, mg.ones(2, 2), mg.ones(2, 2), beta=0)
    assert y.tolist() == [[2.0, 2.0], [2.0, 2.0]]
    assert mg.autograd.grad(y.sum(), x)[0].tolist() == [0.0, 0.0]


def test_factors_of_integers_are_cut():
    one = mg.ones(2, 2, dtype=mg.int64)
    assert mg.addmm(one, one, one, beta=0.5, alpha=2.9).tolist() == [[4, 4], [4, 4]]


def test_a_new_factor_compiles_nothing():
    x = array(8, 8)
    for beta in (0.5, 0.25, 0.75):
        mg.addmm(x, x, x, beta=beta).numpy()
    before = mg.stats().compilations
    mg.addmm(x, x, x, beta=3.5).numpy()
    assert mg.stats().compilations == before


def libraries(function):
    return [k.kind for k in mg.explain(function).kernels].count("library")


@pytest.mark.parametrize(
    "function",
    [
        lambda: array(32, 48) @ array(48, 40),
        lambda: mg.bmm(array(4, 32, 48), array(4, 48, 40)),
        lambda: mg.addmm(array(40), array(32, 48), array(48, 40), beta=2),
        lambda: mg.addbmm(array(32, 40), array(4, 32, 48), array(4, 48, 40)),
        lambda: mg.baddbmm(array(40), array(4, 32, 48), array(4, 48, 40)),
        lambda: mg.inner(array(32, 48), array(40, 48)),
        lambda: mg.einsum("bhqd,bhkd->bhqk", array(2, 3, 16, 24), array(2, 3, 20, 24)),
        lambda: mg.einsum("bqhd,bkhd->bhqk", array(2, 16, 3, 24), array(2, 20, 3, 24)),
        lambda: mg.tensordot(array(4, 32, 48), array(48, 40, 4), dims=([0, 2], [2, 0])),
    ],
    ids=["mm", "bmm", "addmm", "addbmm", "baddbmm", "inner", "heads", "heads2", "tensordot"],
)
@pytest.mark.compiled
def test_contractions_reach_the_library(function):
    assert libraries(function) == 1


def test_axes_that_are_no_matrix_are_copied_into_one():
    a, b = array(4, 32, 48), array(48, 40, 4)
    ours = mg.tensordot(a, b, dims=([0, 2], [2, 0])).numpy()
    np.testing.assert_allclose(ours, np.einsum("aij,jka->ik", a.numpy(), b.numpy()), rtol=2e-4,
                               atol=1e-4)  # fmt: skip


def test_linear_layers_take_one_dtype():
    layer = mg.nn.Linear(2, 2)
    for other in (mg.float64, mg.int64):  # integers would make integers of the weights
        with pytest.raises(RuntimeError, match="one dtype"):
            layer(mg.ones(1, 2, dtype=other))
    with pytest.raises(RuntimeError, match="one dtype"):
        mg.nn.functional.linear(mg.ones(1, 2), mg.ones(2, 2), mg.ones(2, dtype=mg.float64))
