"""A backend in one module: three functions and a line in the table."""

import numpy as np
import pytest

import monograph as mg
from monograph import nn
from monograph.config import BACKENDS

from .example import load

NAME = "monograph.backends.counting_example"


@pytest.fixture
def counting(tmp_path, monkeypatch):
    module = load(monkeypatch, tmp_path / "counting_example.py", "Add a backend", NAME)
    monkeypatch.setitem(BACKENDS, "counting", NAME)
    with mg.config.override(backend="counting"):
        yield module


def test_it_runs_what_is_recorded(counting):
    x = mg.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    (x @ x).relu().sum().backward()
    np.testing.assert_allclose(x.grad.detach().numpy(), [[7.0, 11.0], [9.0, 13.0]])
    assert counting.runs == [1]


def test_it_trains(counting):
    """Contractions become loops, parameters are written in place."""
    mg.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))
    optimizer = mg.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    x = mg.randn(16, 3)
    losses = []
    for _ in range(20):
        loss = (model(x) - x.sum(1, keepdim=True)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss)
    assert losses[-1].item() < 0.3 * losses[0].item()
    assert len(counting.runs) >= 20


def test_its_programs_are_explained(counting):
    report = mg.explain(lambda x: mg.softmax(x, 1), mg.ones(8, 8))
    assert len(report.kernels) == 1
    assert "emit" in report.pass_seconds
