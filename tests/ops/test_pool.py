"""Poolings against PyTorch where its samples do not look."""

import numpy as np
import pytest
import torch

import monograph as mg
import monograph.nn.functional as F
from monograph.compiler.recording import Expansion
from monograph.ir.node import Scatter, ancestors, interning
from monograph.tracing import kind, trace

RNG = np.random.default_rng(0)


def pair(array):
    return torch.tensor(array, requires_grad=True), mg.tensor(array, requires_grad=True)


def assert_same(ours, theirs):
    np.testing.assert_allclose(ours.detach().numpy(), theirs.detach().numpy(), rtol=1e-9)


@pytest.mark.parametrize("shape, kernel, size", [
    ((2, 3, 9, 11), (2, 3), (4, 5)), ((3, 9, 11), 2, 6), ((2, 3, 9, 11, 8), (2, 3, 2), (4, 5, 1)),
    ((1, 2, 5, 5), 5, 1), ((1, 2, 6, 6), 1, 6),
])  # fmt: skip
def test_fractional_max_pool(shape, kernel, size):
    rank = 3 if len(shape) == 5 else 2
    theirs, ours = pair(RNG.normal(size=shape))
    batch = shape[0] if len(shape) == rank + 2 else 1
    samples = RNG.random((batch, shape[-rank - 1], rank))
    name = f"fractional_max_pool{rank}d"
    a, i = getattr(torch.nn.functional, name)(
        theirs, kernel, size, return_indices=True, _random_samples=torch.tensor(samples)
    )
    b, j = getattr(F, name)(
        ours, kernel, size, return_indices=True, _random_samples=mg.tensor(samples)
    )
    (a * a).sum().backward()
    (b * b).sum().backward()
    assert_same(b, a)
    assert j.tolist() == i.tolist()
    assert_same(ours.grad, theirs.grad)


@pytest.mark.parametrize("n", [1, 2, 5, 6, 9])
@pytest.mark.parametrize("o", [1, 2, 4, 5, 7, 13])
@pytest.mark.parametrize("name", ["adaptive_avg_pool1d", "adaptive_max_pool1d"])
def test_adaptive_sizes(name, n, o):
    theirs, ours = pair(RNG.normal(size=(2, 3, n)))
    a, b = getattr(torch.nn.functional, name)(theirs, o), getattr(F, name)(ours, o)
    (a * a).sum().backward()
    (b * b).sum().backward()
    assert_same(b, a)
    assert_same(ours.grad, theirs.grad)


def test_max_pool_of_infinities_nan_and_ties():
    x = np.zeros((1, 1, 6, 6))
    x[..., :2, :2] = -np.inf
    x[..., 3, 3] = np.nan
    theirs, ours = pair(x)
    for dilation in (1, 2):
        a, i = torch.nn.functional.max_pool2d(theirs, 3, 1, 1, dilation, return_indices=True)
        b, j = F.max_pool2d(ours, 3, 1, 1, dilation, return_indices=True)
        assert_same(b, a)
        assert j.tolist() == i.tolist()
    a.sum().backward()
    b.sum().backward()
    assert_same(ours.grad, theirs.grad)


def test_windows_of_nothing_but_minus_infinity():
    theirs, ours = pair(np.full((1, 1, 5, 5), -np.inf))
    for dilation in (1, 2):
        _, i = torch.nn.functional.max_pool2d(theirs, 3, 2, 1, dilation, return_indices=True)
        _, j = F.max_pool2d(ours, 3, 2, 1, dilation, return_indices=True)
        assert j.tolist() == i.tolist()


@pytest.mark.parametrize("pool", [
    lambda x: F.max_pool2d(x, 3, 2, 1), lambda x: F.avg_pool2d(x, 3, 2, 1),
    lambda x: F.adaptive_avg_pool2d(x, (3, 5)), lambda x: F.adaptive_max_pool2d(x, (3, 5)),
    lambda x: F.adaptive_avg_pool2d(x, 4),
])  # fmt: skip
def test_derivatives_never_scatter(pool):
    def step(x):
        y = pool(x.requires_grad_())
        return mg.autograd.grad((y * y).sum(), x)[0]

    recording, _ = trace(step, kind(2, 3, 8, 12))
    with interning():
        nodes = ancestors(Expansion(recording).run())
    assert not [node for node in nodes if isinstance(node, Scatter)]


def test_unpooled_indices_are_checked():
    y = F.max_unpool1d(mg.ones(1, 1, 2), mg.tensor([[[0, 9]]]), 2)
    with pytest.raises(RuntimeError, match="9"):
        y.tolist()
    with pytest.raises(ValueError):
        F.max_unpool1d(mg.ones(1, 1, 2), mg.tensor([[[0, 1]]]), 2, output_size=(9,))
