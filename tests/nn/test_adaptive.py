"""The adaptive softmax against PyTorch's: outputs, losses, gradients, predictions, errors."""

import numpy as np
import pytest
import torch

import monograph as mg


def layers(**options):
    theirs = torch.nn.AdaptiveLogSoftmaxWithLoss(16, 30, [5, 12, 20], **options).double()
    ours = mg.nn.AdaptiveLogSoftmaxWithLoss(16, 30, [5, 12, 20], dtype=mg.float64, **options)
    state = {name: mg.tensor(x.numpy()) for name, x in theirs.state_dict().items()}
    ours.load_state_dict(state)
    return ours, theirs


@pytest.mark.parametrize("options", [{}, {"div_value": 2.0, "head_bias": True}])
@pytest.mark.parametrize("targets", [[0, 4, 5, 11, 12, 29, 20], [1, 2], [29, 28, 27]])
def test_against_pytorch(options, targets):
    ours, theirs = layers(**options)
    x = np.random.default_rng(0).normal(size=(len(targets), 16))
    results = []
    for m, layer in ((mg, ours), (torch, theirs)):
        given = m.tensor(x, requires_grad=True)
        output, loss = layer(given, m.tensor(targets))
        loss.backward()
        grads = [None if p.grad is None else p.grad.tolist() for p in layer.parameters()]
        results.append([output.tolist(), loss.item(), given.grad.tolist(), *grads])
        results[-1] += [layer.log_prob(given).tolist(), layer.predict(given).tolist()]
    for mine, other in zip(*results, strict=True):
        assert (mine is None) == (other is None)
        if mine is not None:
            assert np.allclose(mine, other, rtol=1e-9, atol=1e-12)


def test_one_sample():
    ours, theirs = layers()
    x = np.random.default_rng(0).normal(size=16)
    found, expected = ours(mg.tensor(x), mg.tensor(7)), theirs(torch.tensor(x), torch.tensor(7))
    assert np.isclose(found.output.item(), expected.output.item())
    assert tuple(found.output.shape) == ()


@pytest.mark.parametrize("cutoffs", [[], [5, 5], [6, 5], [0, 5], [30], [2.5]])
def test_wrong_cutoffs(cutoffs):
    for m in (mg, torch):
        with pytest.raises(ValueError):
            m.nn.AdaptiveLogSoftmaxWithLoss(16, 30, cutoffs)


def test_wrong_targets():
    for m, layer in zip((mg, torch), layers(), strict=True):
        x = m.zeros(2, 16, dtype=m.float64)
        for target in (m.tensor([0, 30]), m.tensor([-1, 0]), m.tensor([0]), m.tensor([[0], [1]])):
            with pytest.raises(RuntimeError):
                layer(x, target)
