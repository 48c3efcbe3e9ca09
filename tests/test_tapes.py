"""Tapes across flushes: what derivatives need is spared, and what was freed is let go."""

import gc
import weakref

import numpy as np
import pytest
import torch

import monograph as mg
from monograph import launches
from monograph.config import config
from monograph.tapes import SPENT
from tests.autograd.both import agree, leaf

ROWS = [[1.0, 2.0], [3.0, 4.0]]


def plain(library, values):
    return leaf(library, values).detach()


def over_indices(m, w):
    where = m.tensor([0, 1])
    loss = (w * plain(m, ROWS)[where]).sum()
    loss.item()
    where.mul_(0)
    return loss, where


def over_a_factor(m, w):
    x = plain(m, [1.0, 2.0])
    loss = (w * (x * 2)).sum()
    loss.item()
    x.add_(1)
    return loss, x


def over_two(m, w):
    x = plain(m, [1.0, 2.0])
    y = x * 2
    loss = (w * y.exp()).sum()
    loss.item()
    x.mul_(0)
    x.tolist()
    y.mul_(0)
    return loss, y


def over_rows(m, w):
    rows, loss = plain(m, np.zeros((3, 2))), 0.0
    for t in range(3):
        rows[t] = plain(m, [1.0, t])
        loss = loss + (w * (rows * 2)).sum()
        loss.item()
    return loss, rows


def over_classes(m, w):
    classes = m.tensor([0, 1])
    loss = (w * m.nn.functional.one_hot(classes, 2)).sum()
    loss.item()
    classes.zero_()
    return loss, classes


def over_and_over(m, w):
    x = plain(m, [1.0, 2.0])
    loss = (w * (x * 2)).sum()
    loss.item()
    with m.no_grad():
        x.add_(1)
        x.mul_(2)
    x.tolist()
    x.zero_()
    return loss, x


def over_a_factor_at_once(m, w):
    x = plain(m, [1.0, 2.0])
    x.sum().item()
    loss = (w * (x * 2)).sum()
    x.add_(1)  # in the same flush as the loss
    return loss, x


def over_a_hidden_state(m, w):
    h, losses = plain(m, [0.5, 1.0]), []
    for _ in range(3):
        y = (h.sin() + 1) * w
        losses.append(y.sum())
        y.sum().item()
        h.copy_(y.detach())
        h.tolist()
    return sum(losses), h


@pytest.mark.parametrize("limit", [0, 1000])
@pytest.mark.parametrize(
    "write",
    [
        over_indices,
        over_a_factor,
        over_two,
        over_rows,
        over_classes,
        over_and_over,
        over_a_factor_at_once,
        over_a_hidden_state,
    ],
)
def test_writes_spare_what_derivatives_compute_again(write, limit, monkeypatch):
    """PyTorch has saved what lies between; here it is computed again, from contents of before."""
    monkeypatch.setattr(config, "tier0_limit", limit)

    def program(library):
        w = leaf(library, [2.0, 3.0])
        loss, written = write(library, w)
        written = written * 1
        written.tolist()  # computed, before the backward pass
        loss.backward()
        return w.grad, written

    agree(program)


def test_memory_is_written_over_once_the_tape_is_gone():
    w, x = mg.ones(20000, requires_grad=True), mg.ones(20000)  # small results would be kept
    mg.synchronize()
    loss = (w * (x * 2)).sum()
    loss.item()
    loss.backward()
    w.grad.sum().item()
    place = x.data_ptr()
    x.add_(1)
    assert x.data_ptr() == place
    other = (w * (x * 2)).sum()
    other.item()
    x.add_(1)
    assert x.data_ptr() != place  # a pass over `other` may follow
    place = x.data_ptr()
    del other
    x.add_(1)
    assert x.data_ptr() == place


def train(keep):
    """Steps whose losses are kept; weak references to the batches that they were computed from."""
    model = mg.nn.Sequential(mg.nn.Linear(4, 8), mg.nn.Tanh(), mg.nn.Linear(8, 1))
    optimizer = mg.optim.SGD(model.parameters(), lr=0.1)
    kept, batches = [], []
    for _ in range(5 + 2 * SPENT):
        x = mg.tensor(np.random.rand(16, 4).astype(np.float32))
        batches.append(weakref.ref(x._storage.value))
        keep(model, optimizer, x, kept)
        del x
    mg.synchronize()
    gc.collect()
    return kept, [batch() for batch in batches]


def step(model, optimizer, x, kept):
    out = model(x)
    loss = (out * out).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    kept.append((loss, out))


def step_and_read(model, optimizer, x, kept):
    out = model(x)
    loss = (out * out).mean()
    loss.item()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    kept.append((loss,))


def step_and_add(model, optimizer, x, kept):
    loss = (model(x) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    kept.append((loss if not kept else kept[-1][0] + loss,))


@pytest.mark.parametrize(
    "keep",
    [step, *[pytest.param(each, marks=pytest.mark.long) for each in (step_and_read, step_and_add)]],
)
def test_kept_losses_hold_no_tape(keep):
    kept, batches = train(keep)
    assert batches[: -1 - 2 * SPENT] == [None] * 4  # later ones wait to be let go
    values = [loss.item() for loss, *_ in kept]
    assert all(np.isfinite(values)) and len(set(values)) == len(values)
    assert all(loss.requires_grad and loss.grad_fn is not None for loss, *_ in kept)


@pytest.mark.parametrize("read", [True, False])
def test_a_freed_graph_says_so(read):
    def program(library):
        x = leaf(library, [1.0, 2.0])
        loss = (x * x).sum()
        loss.backward()
        if read:
            loss.item()
            x.grad.sum().item()
        loss.backward()

    agree(program, "Trying to backward through the graph a second time")


def test_steps_that_keep_nothing_are_gone_over_again():
    def program(library):
        x = leaf(library, [1.0, 2.0])
        loss = (x + 1).sum()
        for _ in range(3):
            loss.backward()
            loss.item()
            x.grad.sum().item()
        return x.grad

    agree(program)


def test_a_branch_beside_a_freed_one():
    def program(library):
        x, w = leaf(library, [1.0, 2.0]), leaf(library, [3.0, 4.0])
        y = x.exp()
        y.sum().backward()
        x.grad.sum().item()
        y.sum().item()
        total = (w * 2 + y).sum()
        (g,) = library.autograd.grad(total, w)
        return g

    agree(program)


def test_adding_up_gradients_one_by_one():
    """Within `eager` each sum is computed at once; the other gradients still need the tape."""
    v, w = (mg.tensor([n, 2.0], requires_grad=True) for n in (1.0, 3.0))
    with mg.eager():
        loss = (v * v * 0.5 + w * w).sum()
        loss.backward(retain_graph=True)
        (loss * 2).backward()
    assert (v.grad.tolist(), w.grad.tolist()) == ([3.0, 6.0], [18.0, 12.0])


def test_launches_in_flight_do_not_decide_what_is_written_over(monkeypatch):
    """They hold results until they are over, which may be soon or late; a program may not depend
    on it."""
    table, layer = mg.nn.Embedding(5, 4), mg.nn.Linear(4, 3)
    optimizer = mg.optim.SGD([*table.parameters(), *layer.parameters()], lr=0.1, momentum=0.5)
    places = mg.tensor([0, 3, 4])

    def step():
        layer(table(places)).sum().item()  # computed, and never differentiated
        optimizer.zero_grad()
        layer(table(places)).square().sum().backward()
        optimizer.step()

    with mg.config.override(backend="cpu", disk_cache=False, tier0_limit=0):
        for _ in range(4):
            step()
            mg.synchronize()
        made = mg.stats().compilations
        monkeypatch.setattr(launches, "_retire", lambda owner, done: None)
        for _ in range(4):
            step()
        monkeypatch.undo()
        mg.synchronize()
        assert mg.stats().compilations == made


@pytest.mark.parametrize("turns", [2, 6])  # one program, and one for each flush
@pytest.mark.parametrize("how", ["backward", "grad", "hook"])
def test_what_no_derivative_reads_may_be_computed_from_contents_that_are_gone(turns, how):
    found = []
    for m in (mg, torch):
        x = m.ones(3, requires_grad=True)
        state, total = m.tensor([1.0, 2.0, 3.0]), (x * x).sum()
        for _ in range(turns):
            total = total * 1.5 + state[state > 1].sum()
            state.mul_(1.25)
            total.item()
        if how == "hook":
            x.register_hook(lambda g: g * 2)
        found.append(m.autograd.grad(total, x)[0] if how == "grad" else total.backward() or x.grad)
    assert found[0].tolist() == found[1].tolist()


def test_what_a_derivative_reads_is_spared_beside_what_none_reads():
    x, state = mg.ones(3, requires_grad=True), mg.tensor([1.0, 2.0, 3.0])
    scale = state * 2
    total = (x * scale + scale).sum() + state.exp().sum()
    del scale
    with config.override(tier0_limit=0):
        state.mul_(0.5)
        total.item()
        total.backward()
    assert x.grad.tolist() == [2.0, 4.0, 6.0]
