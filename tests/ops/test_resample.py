"""Resampling against PyTorch where its samples do not look: smoothing, large factors, graphs."""

import numpy as np
import pytest
import torch

import monograph as mg
import monograph.nn.functional as F
from monograph.compiler.recording import Expansion
from monograph.ir.node import Scatter, ancestors, interning
from monograph.tracing import kind, trace

RNG = np.random.default_rng(0)


def both(function, *arrays):
    """(result, gradients of the arrays) of PyTorch's function and of ours."""
    found = []
    for library in (torch, mg):
        if library is torch:
            tensors = [torch.tensor(a, requires_grad=True) for a in arrays]
        else:
            tensors = [mg.tensor(a, requires_grad=True) for a in arrays]
        result = function(library.nn.functional, *tensors)
        (result * result).sum().backward()
        found.append([t.detach().numpy() for t in (result, *[x.grad for x in tensors])])
    return found


def assert_same(function, *arrays, tolerance=1e-9):
    theirs, ours = both(function, *arrays)
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
@pytest.mark.parametrize("aligned", [False, True])
@pytest.mark.parametrize("size", [(3, 4), (9, 20), (17, 5), (1, 1)])
def test_antialias(mode, aligned, size):
    x = RNG.normal(size=(2, 3, 9, 13))
    assert_same(
        lambda f, x: f.interpolate(x, size, mode=mode, align_corners=aligned, antialias=True), x
    )


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
@pytest.mark.parametrize("smooth", [False, True])
@pytest.mark.parametrize("size", [(3, 4), (20, 30)])
def test_bytes(mode, smooth, size):
    x = RNG.integers(0, 256, (2, 3, 10, 14)).astype(np.uint8)
    arguments = {"size": size, "mode": mode, "antialias": smooth}
    theirs = torch.nn.functional.interpolate(torch.tensor(x), **arguments)
    ours = F.interpolate(mg.tensor(x), **arguments)
    assert ours.tolist() == theirs.tolist()


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "linear", "area"])
@pytest.mark.parametrize("n, o", [(1, 40), (40, 1), (37, 100), (100, 37), (7, 28), (28, 7)])
def test_far_sizes(mode, n, o):
    x = RNG.normal(size=(2, 1, n))
    assert_same(lambda f, x: f.interpolate(x, o, mode=mode), x)


@pytest.mark.parametrize("mode", ["nearest", "bilinear", "bicubic", "area"])
@pytest.mark.parametrize("size", [(8, 12), (5, 7)])
def test_derivatives_never_scatter(mode, size):
    def step(x):
        y = F.interpolate(x.requires_grad_(), size, mode=mode)
        return mg.autograd.grad((y * y).sum(), x)[0]

    recording, _ = trace(step, kind(2, 3, 4, 6))
    with interning():
        nodes = ancestors(Expansion(recording).run())
    assert not [node for node in nodes if isinstance(node, Scatter)]


def test_second_derivative():
    x = mg.tensor(RNG.normal(size=(1, 2, 4, 5)), requires_grad=True)
    assert mg.autograd.gradgradcheck(
        lambda x: F.interpolate(x, (6, 3), mode="bicubic"), (x,), raise_exception=False
    )


@pytest.mark.parametrize(
    "arguments, error",
    [
        ({}, ValueError),
        ({"size": 3, "scale_factor": 2.0}, ValueError),
        ({"size": (3, 3)}, ValueError),
        ({"size": 3, "mode": "bilinear"}, NotImplementedError),
        ({"size": 3, "align_corners": True}, ValueError),
        ({"size": 3, "recompute_scale_factor": True}, ValueError),
        ({"size": 0}, RuntimeError),
        ({"size": 3, "mode": "linear", "antialias": True}, ValueError),
    ],
)
def test_errors(arguments, error):
    with pytest.raises(error):
        torch.nn.functional.interpolate(torch.zeros(1, 1, 4), **arguments)
    with pytest.raises(error):
        F.interpolate(mg.zeros(1, 1, 4), **arguments)
