"""Clipping of gradients against PyTorch, and that nothing is read for it."""

import numpy as np
import pytest
import torch

import monograph as mg
from monograph import nn

SHAPES = [(3, 4), (5,), ()]


def with_gradients(scale=1.0, dtype=np.float64):
    rng = np.random.default_rng(0)
    ours, theirs = [], []
    for shape in SHAPES:
        g = np.array(rng.normal(size=shape) * scale, dtype)
        ours.append(nn.Parameter(np.zeros(shape, dtype)))
        theirs.append(torch.nn.Parameter(torch.from_numpy(np.zeros(shape, dtype))))
        ours[-1].grad = mg.tensor(g)
        theirs[-1].grad = torch.from_numpy(g.copy())
    ours.append(nn.Parameter([1.0]))  # one without a gradient
    return ours, theirs


@pytest.mark.parametrize("norm_type", [2.0, 1.0, 3.0, float("inf")])
@pytest.mark.parametrize("scale", [0.01, 10.0])
def test_norm(norm_type, scale):
    ours, theirs = with_gradients(scale)
    wanted = torch.nn.utils.clip_grad_norm_(theirs, 1.5, norm_type)
    found = nn.utils.clip_grad_norm_(ours, 1.5, norm_type)
    np.testing.assert_allclose(found.item(), wanted.item(), rtol=1e-6)
    for p, q in zip(ours, theirs, strict=False):
        np.testing.assert_allclose(p.grad.detach().numpy(), q.grad.detach().numpy(), rtol=1e-6)


def test_value():
    ours, theirs = with_gradients()
    torch.nn.utils.clip_grad_value_(theirs, 0.5)
    nn.utils.clip_grad_value_(ours, 0.5)
    for p, q in zip(ours, theirs, strict=False):
        np.testing.assert_allclose(p.grad.detach().numpy(), q.grad.detach().numpy())


def test_clipping_reads_nothing_and_records_two_operators():
    ours, _ = with_gradients()
    before = [p.grad for p in ours]
    mg.stats.reset()
    nn.utils.clip_grad_norm_(ours, 1.0)
    assert mg.stats().flushes == 0 and mg.stats().recorded == 2
    assert all(p.grad is g for p, g in zip(ours, before, strict=True))


def test_one_tensor_or_none():
    ours, _ = with_gradients(10.0)
    nn.utils.clip_grad_norm_(ours[0], 1.0)
    np.testing.assert_allclose(np.linalg.norm(ours[0].grad.detach().numpy()), 1.0, rtol=1e-5)
    assert nn.utils.clip_grad_norm_([nn.Parameter([1.0])], 1.0).item() == 0.0
    assert nn.utils.clip_grad_norm_(iter(ours), 1.0).item() > 1.0


def test_not_finite():
    p = nn.Parameter([1.0])
    p.grad = mg.tensor([float("inf")])
    with pytest.raises(RuntimeError, match="finite"):
        nn.utils.clip_grad_norm_(p, 1.0, error_if_nonfinite=True)
