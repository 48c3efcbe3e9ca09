"""What training scripts do beside the plain loop, against PyTorch."""

import numpy as np
import pytest
import torch

import monograph as mg
from monograph.recorder import current

from .training import monograph, pytorch


def tied(nn):
    """A model whose first and last layer share a weight."""

    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Embedding(5, 4)
            self.mix = nn.Linear(4, 4)
            self.head = nn.Linear(4, 5, bias=False)
            self.head.weight = self.table.weight

        def forward(self, x):
            return self.head(self.mix(self.table(x)))

    return Tied()


def train_tied(framework, no_grad):
    """Gradients accumulated over two passes, an average of the weights, weights written by hand."""
    rng = np.random.default_rng(0)
    model = tied(framework.nn)
    for p in model.parameters():
        p.data.copy_(framework.tensor(rng.normal(size=tuple(p.shape)).astype(np.float32)))
    optimizer = framework.optim.Adam(model.parameters(), lr=0.05)
    average = [p.detach().clone() for p in model.parameters()]
    x, y = framework.tensor(np.array([0, 1, 4, 2])), framework.tensor(np.array([1, 2, 3, 0]))
    losses = []
    for _ in range(5):
        for _ in range(2):
            loss = framework.F.cross_entropy(model(x), y) / 2
            loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        with no_grad():
            for held, p in zip(average, model.parameters(), strict=True):
                held.mul_(0.9).add_(p, alpha=0.1)
            for p in model.parameters():
                p.clamp_(-1.5, 1.5)
            model.mix.bias[1:3] = 0.25
        losses.append(loss.item())
    weights = [p.detach().numpy() for p in model.parameters()]
    return list(model.state_dict()), losses, weights, [held.detach().numpy() for held in average]


@pytest.mark.parametrize("backend", ["reference", "cpu"])
def test_shared_weights_accumulation_and_averages(backend):
    names, losses, weights, averages = train_tied(pytorch(), torch.no_grad)
    with mg.config.override(backend=backend):
        found = train_tied(monograph(), mg.no_grad)
    assert found[0] == names
    np.testing.assert_allclose(found[1], losses, rtol=1e-5)
    for a, b in zip(found[2] + found[3], weights + averages, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def test_reading_between_forward_and_backward():
    layer = mg.nn.Linear(3, 2)
    x = mg.tensor([[1.0, 2.0, 3.0]])
    hidden = layer(x).tanh()
    hidden.detach().numpy()  # computes it: what follows starts from data
    (hidden * hidden).sum().backward()
    read = layer.weight.grad.detach().numpy().copy()
    layer.zero_grad()
    hidden = layer(x).tanh()
    (hidden * hidden).sum().backward()
    np.testing.assert_allclose(read, layer.weight.grad.detach().numpy(), rtol=1e-6)
    assert np.abs(read).max() > 0


def test_losses_that_are_kept_hold_their_values():
    p = mg.nn.Parameter([1.0])
    optimizer = mg.optim.SGD([p], lr=0.25)
    losses = []
    for _ in range(3):
        loss = (p * p).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss)
    assert [loss.item() for loss in losses] == [1.0, 0.25, 0.0625]


def test_a_step_does_not_flush_while_held():
    p = mg.nn.Parameter([1.0])
    optimizer = mg.optim.SGD([p], lr=0.25)
    recorder = current.recorder
    recorder.hold += 1
    try:
        mg.stats.reset()
        (p * p).sum().backward()
        optimizer.step()
        assert mg.stats().flushes == 0
    finally:
        recorder.hold -= 1
    assert p.tolist() == [0.5]
