"""Gradients come with a loss that is read before `backward()`, and are those of the pass itself."""

import numpy as np
import pytest

import monograph as mg
import monograph.nn.functional as F
from monograph import nn
from monograph.recorder import current

# What is small and new is interpreted: the tests take less time, and what is foreseen is the same.
CPU = {"backend": "cpu", "disk_cache": False, "tier0_limit": 1000}
TURNS = 4


class Model(nn.Module):
    def __init__(self, dropout=0.0):
        super().__init__()
        self.cell, self.out, self.dropout = nn.GRUCell(3, 5), nn.Linear(5, 2), dropout

    def forward(self, x, h):
        outs = []
        for n in range(TURNS):
            h = self.cell(x[:, n], F.dropout(h, self.dropout))
            outs.append(self.out(h))
        return mg.stack(outs, 1), h


def prepared(dropout=0.0):
    mg.manual_seed(0)
    model = Model(dropout)
    x = mg.tensor(np.random.default_rng(0).standard_normal((4, TURNS, 3)).astype(np.float32))
    h = mg.zeros(4, 5) + 0.5
    mg.synchronize()
    return model, x, h


def loss_of(model, x, h):
    return (model(x, h)[0] ** 2).mean()


def gradients(model):
    return [None if p.grad is None else p.grad.numpy().copy() for p in model.parameters()]


def expected(run):
    """What the reference backend computes."""
    with mg.config.override(backend="reference"):
        return run()


def assert_same(found, wanted):
    for one, other in zip(found, wanted, strict=True):
        assert (one is None) == (other is None)
        if one is not None:
            np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-6)


def assert_as_expected(*given, **options):
    """Take the steps; what was pending in each."""
    wanted, _ = expected(lambda: steps(*given, **options))
    with mg.config.override(**CPU):
        found, pending = steps(*given, **options)
    for one, other in zip(found, wanted, strict=True):
        assert_same(one, other)
    return pending


def steps(count, before_backward=lambda n, model, loss: loss.item(), dropout=0.0):
    """Gradients of each step, and how many calls the backward pass left pending."""
    model, x, h = prepared(dropout)
    found, pending = [], []
    for n in range(count):
        model.zero_grad()
        loss = loss_of(model, x * (n + 1.0), h)
        before_backward(n, model, loss)
        loss.backward()
        pending.append(mg.stats().pending)
        found.append(gradients(model))
    return found, pending


@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_gradients_come_with_a_loss_that_is_read(dropout):
    pending = assert_as_expected(3, dropout=dropout)
    assert pending[0] > 0
    assert pending[1:] == [0, 0]


def test_what_nobody_asks_for_is_not_computed_again():
    model, x, h = prepared()
    foreseen = []
    with mg.config.override(**CPU):
        for n in range(4):
            loss = loss_of(model, x, h)
            loss.item()
            foreseen.append(current.recorder.ahead is not None)
            if n == 0:
                loss.backward()
                mg.synchronize()
    assert foreseen == [False, True, False, False]


@pytest.mark.parametrize("recorded", [False, True])
def test_a_history_that_goes_beyond_the_flush(recorded):
    def run():
        model, x, h = prepared()
        found = []
        for _ in range(2):
            model.zero_grad()
            outs, state = model(x, h)
            loss = (outs**2).mean()
            loss.item()
            state.tolist()
            loss.backward(retain_graph=True)
            outs, _ = model(x, state)  # the same calls, on a state with a history
            loss = (outs**2).mean()
            loss.item()
            if recorded:  # the history before that flush is pending when the pass begins
                state.sum().backward(retain_graph=True)
            loss.backward()
            found += gradients(model)
        return found

    wanted = expected(run)
    with mg.config.override(**CPU):
        assert_same(run(), wanted)


def test_other_leaves_than_the_last_time():
    def freeze(n, model, loss):
        if n == 2:
            model.out.requires_grad_(False)  # loss has been recorded with it
        loss.item()
        if n == 3:
            model.out.requires_grad_(True)

    assert_as_expected(5, freeze)


def test_a_second_pass_over_the_same_graph():
    def twice(n, model, loss):
        loss.item()
        loss.backward(retain_graph=True)

    assert_as_expected(3, twice)


def test_a_weight_that_is_written_between_raises_all_the_same():
    def write(n, model, loss):
        loss.item()
        if n == 2:
            with mg.no_grad():
                model.cell.weight_hh.mul_(2.0)

    with mg.config.override(**CPU), pytest.raises(RuntimeError, match="inplace operation"):
        steps(3, write)


def test_a_hook_that_is_registered_in_between_runs():
    seen = []

    def hook(n, model, loss):
        loss.item()
        if n == 2:
            model.out.weight.register_hook(lambda g: seen.append(n) or g * 3)

    wanted, _ = expected(lambda: steps(3, hook))
    with mg.config.override(**CPU):
        found, _ = steps(3, hook)
    assert_same(found[2], wanted[2])
    assert seen == [2, 2]


def test_wrong_data_raises_and_leaves_no_gradients():
    mg.manual_seed(0)
    table, cell = nn.Embedding(5, 3), nn.GRUCell(3, 5)
    good = np.arange(TURNS * 2).reshape(2, TURNS) % 5
    bad = good.copy()
    bad[1, 2] = 7
    with mg.config.override(**CPU):
        for n, ids in enumerate((good, good, bad, good)):
            h = mg.zeros(2, 5)
            for k in range(TURNS):
                h = cell(table(mg.tensor(ids)[:, k]), h)
            loss = (h * h).sum()
            table.zero_grad()
            if n == 2:
                with pytest.raises(IndexError, match="index 7 is out of range"):
                    loss.item()
                assert table.weight.grad is None
                continue
            loss.item()
            loss.backward()
            assert np.isfinite(table.weight.grad.numpy()).all()
