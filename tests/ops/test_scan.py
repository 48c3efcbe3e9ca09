"""Running totals, differences and integrals against PyTorch."""

import numpy as np
import pytest
import torch

import monograph as mg

from .compare import agree, numbers

NAN, INF = float("nan"), float("inf")


@pytest.fixture(params=("reference", "cpu"), autouse=True)
def backend(request):
    with mg.config.override(backend=request.param):
        yield request.param


def normal(*size, seed=0, dtype="float64"):
    return np.asarray(np.random.default_rng(seed).normal(size=size)).astype(dtype)


def whole(*size, seed=0, dtype="int64"):
    return np.random.default_rng(seed).integers(-4, 5, size=size).astype(dtype)


SHAPES = [((5,), 0), ((3, 4), 0), ((3, 4), -1), ((2, 3, 4), 1), ((), 0), ((0,), 0), ((2, 0), 1),
          ((2, 0), 0), ((1, 1), 1)]  # fmt: skip


@pytest.mark.parametrize("name", ["cumsum", "cumprod", "logcumsumexp", "cummax", "cummin"])
@pytest.mark.parametrize(("size", "dim"), SHAPES)
def test_scans(name, size, dim):
    order = 2 if 0 not in size else 0
    agree(getattr(mg, name), getattr(torch, name), normal(*size), dim, order=order)


@pytest.mark.parametrize("dtype", ["float32", "float16", "int64", "int32", "uint8", "bool"])
@pytest.mark.parametrize("name", ["cumsum", "cumprod", "cummax", "cummin"])
def test_dtypes(name, dtype):
    data = np.abs(whole(3, 6)).astype(dtype)
    agree(getattr(mg, name), getattr(torch, name), data, 1, order=0)


def test_sums_in_another_dtype():
    agree(mg.cumsum, torch.cumsum, whole(4), 0, order=0)
    made = mg.cumsum(mg.tensor([1, 2]), 0, dtype=mg.float64)
    assert made.dtype is mg.float64 and made.tolist() == [1.0, 3.0]


def test_products_with_zeros():
    for data in ([2.0, 0.0, 3.0, 4.0], [0.0, 1.0, 0.0, 2.0], [0.0, 0.0, 0.0]):
        agree(mg.cumprod, torch.cumprod, np.array(data), 0, order=2)


def test_a_running_product_of_many_and_of_each_example():
    x = normal(3, 40)
    slope = mg.grad(lambda row: mg.cumprod(row, 0).sum())
    found = mg.vmap(slope)(mg.tensor(x)).numpy()
    other = torch.tensor(x, requires_grad=True)
    torch.cumprod(other, 1).sum().backward()
    np.testing.assert_allclose(found, other.grad.numpy(), rtol=1e-9)


def test_nan_and_infinity():
    data = np.array([1.0, NAN, 2.0, NAN, 5.0, INF, -INF])
    for name in ("cumsum", "cumprod", "cummax", "cummin", "logcumsumexp"):
        agree(getattr(mg, name), getattr(torch, name), data, 0, order=0)
    ties = np.array([2.0, 1.0, 2.0, 2.0, 1.0, 1.0])
    agree(mg.cummax, torch.cummax, ties, 0)
    agree(mg.cummin, torch.cummin, ties, 0)


def test_logcumsumexp_does_not_overflow():
    agree(mg.logcumsumexp, torch.logcumsumexp, np.array([1000.0, 1000.0, -2000.0, 3.0]), 0, order=1)
    agree(mg.logcumsumexp, torch.logcumsumexp, np.array([-INF, -INF, 1.0, 2.0]), 0, order=0)
    agree(mg.logcumsumexp, torch.logcumsumexp, np.zeros(5), 0, order=2)


def test_gradients_of_logcumsumexp_at_infinity_are_numbers():
    x = mg.tensor([-INF, -INF, 1.0, 2.0], requires_grad=True)
    mg.logcumsumexp(x, 0)[2:].sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), [0, 0, 1.268941, 0.731059], rtol=1e-6)


def test_through_views():
    x = normal(4, 6)
    turned = mg.tensor(x).T[::2]
    agree(lambda a: mg.cumsum(a.T[::2], 0), lambda a: torch.cumsum(a.T[::2], 0), x)
    np.testing.assert_allclose(numbers(turned.cumsum(1)), np.cumsum(x.T[::2], 1))


def test_methods_in_place_and_out():
    x = mg.tensor([1.0, 2.0])
    assert x.cumsum(0).tolist() == [1.0, 3.0]
    x.cumsum_(0)
    assert x.tolist() == [1.0, 3.0]
    out = mg.zeros(2)
    mg.cumsum(x, 0, out=out)
    assert out.tolist() == [1.0, 4.0]
    values, places = mg.zeros(2), mg.zeros(2, dtype=mg.int64)
    mg.cummax(x, 0, out=(values, places))
    assert values.tolist() == [1.0, 3.0] and places.tolist() == [0, 1]


def test_a_dimension_that_is_not_there():
    with pytest.raises(IndexError, match="out of range"):
        mg.cumsum(mg.zeros(2), 1)


@pytest.mark.parametrize("n", [0, 1, 2, 5])
def test_diff(n):
    x = normal(3, 4)
    agree(mg.diff, torch.diff, x, n=n)
    agree(mg.diff, torch.diff, x, n=n, dim=0)


def test_diff_of_joined_and_of_other_dtypes():
    def padded(library):
        return lambda x, a, b: library.diff(x, prepend=a, append=b)

    agree(padded(mg), padded(torch), normal(3, 4), normal(3, 2), normal(3, 1))
    agree(mg.diff, torch.diff, whole(6), order=0)
    agree(mg.diff, torch.diff, np.array([True, False, False, True]), order=0)
    agree(mg.diff, torch.diff, normal(0), order=0)
    with pytest.raises(RuntimeError, match="one-dimensional"):
        mg.diff(mg.tensor(1.0))


@pytest.mark.parametrize("name", ["trapezoid", "cumulative_trapezoid"])
def test_trapezoids(name):
    ours, theirs = getattr(mg, name), getattr(torch, name)
    agree(ours, theirs, normal(5))
    agree(ours, theirs, normal(3, 5), dx=0.5)
    agree(ours, theirs, normal(3, 5), dim=0)
    agree(ours, theirs, normal(3, 5), normal(5, seed=1))
    agree(ours, theirs, normal(3, 5), normal(3, 5, seed=1))
    agree(ours, theirs, normal(3, 5), normal(3, seed=1), dim=0)
    agree(ours, theirs, normal(3, 1), order=0)
    with pytest.raises(RuntimeError, match="one x value"):
        ours(mg.zeros(4), mg.zeros(3))


def test_second_derivatives_of_running_logarithms_at_large_numbers():
    data = np.array([[1000.0, 0.0, -5.0, 999.5], [3.0, 2.0, 1.0, 0.5]])
    found = []
    for library in (mg, torch):
        x = library.tensor(data).requires_grad_()
        y = (x.logcumsumexp(1) * library.arange(1, 5)).sum()
        (first,) = library.autograd.grad(y, [x], create_graph=True)
        (second,) = library.autograd.grad((first * first).sum(), [x])
        found.append(second.numpy())
    np.testing.assert_allclose(*found, rtol=1e-9, atol=1e-12)
