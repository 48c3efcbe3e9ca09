"""Reductions and statistics: overloads, named results, errors, derivatives at special places."""

import numpy as np
import pytest
import torch

import monograph as mg

NAN, INF = float("nan"), float("inf")


def both(values, **options):
    x = mg.tensor(values, **options).requires_grad_()
    return x, torch.tensor(values, requires_grad=True)


def same(ours, theirs):
    np.testing.assert_allclose(
        ours.detach().numpy(), theirs.detach().numpy(), rtol=1e-6, equal_nan=True
    )


def test_max_has_three_meanings():
    x = mg.tensor([[1.0, 5.0], [7.0, 3.0]])
    assert mg.max(x).item() == 7.0
    found = x.max(dim=1)
    assert type(found).__name__ == "max" and found.values.tolist() == [5.0, 7.0]
    assert found.indices.tolist() == [1, 0]
    assert x.max(axis=0, keepdims=True).values.shape == (1, 2)
    assert mg.max(x, mg.full((2,), 4.0)).tolist() == [[4.0, 5.0], [7.0, 4.0]]
    assert mg.min(x, other=mg.zeros(2)).tolist() == [[0.0, 0.0], [0.0, 0.0]]
    values, indices = mg.zeros(2), mg.zeros(2, dtype=mg.int64)
    mg.max(x, 1, out=(values, indices))
    assert values.tolist() == [5.0, 7.0] and indices.tolist() == [1, 0]


@pytest.mark.parametrize("name", ["var", "std"])
@pytest.mark.parametrize(
    ("args", "options"),
    [
        ((), {}), ((False,), {}), ((1,), {}), ((1, False), {}), ((1, True, True), {}),
        (((0, 1),), {"correction": 0}), ((), {"dim": 0, "keepdim": True, "correction": 2}),
        ((), {"unbiased": False}), ((None,), {"correction": 0.5}),
    ],
)  # fmt: skip
def test_ways_to_ask_for_a_variance(name, args, options):
    values = np.random.default_rng(0).standard_normal((3, 4)).astype(np.float32).tolist()
    x, y = both(values)
    same(getattr(mg, name)(x, *args, **options), getattr(torch, name)(y, *args, **options))
    ours = getattr(mg, f"{name}_mean")(x, *args, **options)
    for a, b in zip(ours, getattr(torch, f"{name}_mean")(y, *args, **options), strict=True):
        same(a, b)


def test_a_variance_is_asked_for_in_one_way():
    with pytest.raises(TypeError):
        mg.var(mg.ones(3), 0, True, correction=1)
    with pytest.raises(RuntimeError, match="floating point"):
        mg.var(mg.tensor([1, 2]))


def test_a_variance_far_from_zero_keeps_its_digits():
    values = np.random.default_rng(0).random(100_000).astype(np.float32) + 1e4
    exact = values.astype(np.float64).var(ddof=1)
    assert abs(mg.var(mg.tensor(values)).item() / exact - 1) < 1e-5
    assert mg.std(mg.full((1000,), 0.1)).item() < 1e-8


def test_bytes_answer_in_bytes():
    x = mg.tensor([[0, 1], [2, 3]], dtype=mg.uint8)
    assert x.all(1).dtype is mg.uint8 and x.all(1).tolist() == [0, 1]
    assert x.any().dtype is mg.uint8
    assert mg.all(mg.tensor([1, 0]), dim=()).tolist() == [True, False]


@pytest.mark.parametrize("name", ["amax", "amin"])
def test_equal_extremes_share_the_derivative(name):
    x, y = both([[2.0, 2.0, 1.0], [1.0, 1.0, 1.0]])
    getattr(mg, name)(x, 1).sum().backward()
    getattr(torch, name)(y, 1).sum().backward()
    same(x.grad, y.grad)


def test_the_chosen_extreme_takes_the_derivative():
    x, y = both([[2.0, 2.0, 1.0], [0.0, 3.0, 3.0]])
    x.max(1).values.sum().backward()
    assert x.grad.tolist() == [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]


@pytest.mark.parametrize("values", [[2.0, 0.0, 3.0], [0.0, 0.0, 3.0], [2.0, 3.0, 4.0]])
def test_products_with_zeros_have_derivatives(values):
    x, y = both(values)
    mg.prod(x).backward()
    torch.prod(y).backward()
    same(x.grad, y.grad)


def test_logsumexp_of_infinities():
    x, y = both([[-INF, -INF], [-INF, 1.0], [1.0, INF], [1000.0, -1000.0]])
    same(mg.logsumexp(x, 1), torch.logsumexp(y, 1))
    rows = slice(1, 2)
    mg.logsumexp(x[rows], 1).sum().backward()
    torch.logsumexp(y[rows], 1).sum().backward()
    same(x.grad, y.grad)


@pytest.mark.parametrize("p", [2, 1, INF, -INF, 3, 1.5, 0.5])
def test_the_derivative_of_a_norm_at_zero(p):
    x, y = both([0.0, 0.0, 0.0])
    mg.norm(x, p).backward()
    torch.norm(y, p).backward()
    same(x.grad, y.grad)


def test_what_is_not_a_number_does_not_count():
    x = mg.tensor([[1.0, NAN], [NAN, NAN]])
    assert mg.nansum(x, 1).tolist() == [1.0, 0.0]
    assert mg.nanmean(x[0]).item() == 1.0 and mg.nanmean(x[1]).isnan().item()


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: mg.max(mg.zeros(0)), RuntimeError),
        (lambda: mg.amax(mg.zeros(2, 0), 1), IndexError),
        (lambda: mg.argmax(mg.zeros(2, 2), (0, 1)), TypeError),
        (lambda: mg.prod(mg.zeros(2, 2), (0, 1)), TypeError),
        (lambda: mg.mean(mg.tensor([1, 2])), RuntimeError),
        (lambda: mg.sum(mg.zeros(2), dim=(0, 0)), RuntimeError),
        (lambda: mg.sum(mg.zeros(2), dim=3), IndexError),
        (lambda: mg.trace(mg.zeros(2)), RuntimeError),
        (lambda: mg.zeros(2, 3).sum_to_size(2, 2), RuntimeError),
        (lambda: mg.renorm(mg.zeros(2, 2), -1, 0, 1.0), RuntimeError),
        (lambda: mg.cov(mg.zeros(2, 2), fweights=mg.tensor([-1, 1])), RuntimeError),
    ],
)
def test_errors_at_the_call(call, error):
    with pytest.raises(error):
        call()


@pytest.mark.parametrize("shape", [(2, 300_000, 3), (2, 262_147), (3, 512, 600)])
@pytest.mark.parametrize("backend", ["reference", "cpu"])
def test_long_sums_keep_their_digits(shape, backend):
    values = np.random.default_rng(0).random(shape).astype(np.float32)
    axes = (1,) if shape[1] > 1000 else (1, 2)
    x = mg.tensor(values).requires_grad_()
    with mg.config.override(backend=backend):
        y = mg.sum(x, axes, keepdim=True)
        exact = values.sum(axes, dtype=np.float64, keepdims=True)
        assert np.abs(y.detach().numpy() / exact - 1).max() < 4e-7
        assert (mg.autograd.grad(y.sum(), x)[0].numpy() == 1).all()


@pytest.mark.parametrize("name", ["amax", "amin", "max", "logsumexp", "prod", "var"])
def test_derivatives_over_an_axis_of_one(name):
    """What the reduction gives back may be what its operand is a view of."""
    found = []
    for library in (mg, torch):
        v = library.tensor([-0.94, -0.293, 1.359], requires_grad=True)
        one = v.sum().view(-1)
        made = getattr(one, name)(0, **({"correction": 0} if name == "var" else {}))
        made = made if isinstance(made, library.Tensor) else made.values
        (made * 2).backward()
        found.append(v.grad.tolist())
    np.testing.assert_allclose(found[0], found[1], rtol=1e-6)
