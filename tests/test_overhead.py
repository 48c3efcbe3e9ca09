"""What Python does in a step that is compiled already: calls are counted, never timed.

A call is one of a Python function or of a builtin, as the profiler counts them. The bounds leave a
tenth of room; who needs more should know that a call costs between 30 and 100 nanoseconds.
"""

import cProfile
import gc
import pstats

import numpy as np
import pytest

import monograph as mg
import monograph.nn.functional as F
from monograph import record
from monograph.autograd import hooks
from monograph.config import config
from monograph.usual import usual
from tests.models import networks

ROUNDS = 10


def calls(action):
    """The number of calls that the action makes each time, once all is compiled."""
    for _ in range(3):
        action()
    mg.synchronize()
    profile = cProfile.Profile()
    gc.disable()  # others, such as hypothesis, are called when it collects
    try:
        profile.enable()
        for _ in range(ROUNDS):
            action()
        profile.disable()
    finally:
        gc.enable()
    return pstats.Stats(profile).total_calls / ROUNDS


def training_step(layers=3):
    """A step whose kernels take almost no time."""
    sizes = (16,) * layers
    model = mg.nn.Sequential(*[mg.nn.Linear(n, n) for n in sizes])
    optimizer = mg.optim.AdamW(model.parameters(), lr=1e-3)
    x, y = mg.rand(8, 16), mg.tensor(np.arange(8) % 4)
    mg.synchronize()

    def step():
        loss = F.cross_entropy(model(x).tanh(), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    return step


@pytest.fixture(autouse=True)
def compiled(monkeypatch):
    monkeypatch.setattr(config, "tier0_limit", 0)
    monkeypatch.setattr(config, "bounds_checks", False)
    monkeypatch.setattr(hooks.in_use, "python", False)  # whatever tests before this one used
    monkeypatch.setattr(record, "_usual", usual)


@pytest.mark.compiled
def test_a_cached_step():
    step = training_step()
    found = calls(step)
    mg.stats.reset()
    step()
    assert (mg.stats().recorded, mg.stats().compilations) == (8, 0)
    assert found <= 700


@pytest.mark.compiled
def test_a_layer_more():
    assert calls(training_step(7)) - calls(training_step(3)) <= 4 * 140


@pytest.mark.compiled
def test_replay():
    assert calls(mg.jit(training_step())) <= 150


class Named(mg.Tensor):
    """That there is a class of the user's costs the calls of plain tensors nothing."""


@pytest.mark.parametrize(
    ("operator", "most"),
    [
        (lambda x: x * 1.01, 22),
        (lambda x: x + x, 21),
        (F.relu, 17),
        (lambda x: x.reshape(4, 4), 21),
        (lambda x: x[1:], 29),
    ],
    ids=["number", "tensors", "function", "view", "slice"],
)
def test_recording_an_operator(operator, most):
    x = mg.rand(4, 4)
    mg.synchronize()

    def chain():
        for _ in range(20):
            operator(x)

    found = calls(chain) / 20
    record.flush("nothing is alive")
    assert found <= most


@pytest.mark.parametrize("requires_grad", [False, True], ids=["data", "recorded"])
def test_views_of_views_cost_the_same_each(requires_grad):
    x = mg.rand(4, 4)
    mg.synchronize()
    x.requires_grad_(requires_grad)

    def chain(length):
        y = x
        for _ in range(length):
            y = y.reshape(4, 4)
        return y

    few, many = (calls(lambda n=n: chain(n)) / n for n in (50, 200))
    record.flush("nothing is alive")
    assert many <= few + 1
    assert len(chain(50)._view.chain()) == 50


def test_looking_up_a_member_calls_nothing():
    model = networks.mlp(mg.nn, F)
    assert calls(lambda: model.first.weight) <= 2  # the lambda, and the profiler's end
