"""Modules whose weights lie channels-last: strides as in PyTorch, and the same training."""

import numpy as np
import pytest
import torch

import monograph as mg


def build(m, seed=0):
    model = m.nn.Sequential(
        m.nn.Conv2d(2, 3, 3), m.nn.BatchNorm2d(3), m.nn.ReLU(), m.nn.Flatten(), m.nn.Linear(12, 2)
    )
    rng = np.random.default_rng(seed)
    with m.no_grad():
        for parameter in model.parameters():
            new = rng.normal(size=tuple(parameter.shape)).astype(np.float32)
            parameter.copy_(m.tensor(new))
    return model


def steps(m, optimizer):
    model = build(m).to(memory_format=m.channels_last)
    update = optimizer(m, model)
    x = m.tensor(np.random.default_rng(1).normal(size=(4, 2, 4, 4)).astype(np.float32))
    strides, losses = [], []
    for _ in range(3):
        update.zero_grad()
        loss = model(x.to(memory_format=m.channels_last)).square().mean()
        loss.backward()
        update.step()
        losses.append(loss.item())
        strides.append([tuple(p.stride()) for p in model.parameters()])
    return strides, losses


@pytest.mark.parametrize("name", ["SGD", "Adam"])
def test_training(name):
    made = lambda m, model: getattr(m.optim, name)(model.parameters(), lr=0.01)  # noqa: E731
    (ours, losses), (theirs, expected) = steps(mg, made), steps(torch, made)
    assert ours == theirs
    np.testing.assert_allclose(losses, expected, rtol=1e-4)


def test_conversion_there_and_back():
    for m in (mg, torch):
        model = build(m).to(memory_format=m.channels_last)
        weight = model[0].weight
        assert weight.is_contiguous(memory_format=m.channels_last)
        assert not weight.is_contiguous()
        assert weight.is_leaf and weight.requires_grad
        before = weight.tolist()
        model.to(memory_format=m.contiguous_format)
        assert weight.is_contiguous()
        assert weight.tolist() == before


def test_wrong_format():
    with pytest.raises(TypeError, match="memory_format"):
        build(mg).to(memory_format="channels_last")
