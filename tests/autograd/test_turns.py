"""Loops that update by hand: each turn is a program of its own, and the same one."""

from __future__ import annotations

import math

import monograph as mg


def fit(turns, step):
    x = mg.linspace(-1, 1, 64)
    y = mg.sin(x)
    a = mg.full((), 0.3, requires_grad=True)
    b = mg.full((), -0.2, requires_grad=True)
    counts = []
    for turn in range(turns):
        loss = (a + b * x + (b * x) ** 3 - y).pow(2).sum()
        loss.backward()
        step(a, b)
        if turn % 10 == 9:
            loss.item()
        counts.append((mg.stats().compilations, mg.stats().pending))
    return a.item(), b.item(), counts


def without_grad(*parameters):
    with mg.no_grad():
        for p in parameters:
            p -= 0.01 * p.grad
            p.grad = None


def by_data(*parameters):
    for p in parameters:
        p.data -= 0.01 * p.grad.data
        p.grad.data.zero_()


def test_a_loop_without_an_optimizer_is_cut_each_turn():
    for step in (without_grad, by_data):
        *found, counts = fit(40, step)
        assert max(pending for _, pending in counts) < 40
        assert counts[25][0] == counts[-1][0]
        optimized = [0.3, -0.2]
        x = [-1 + 2 * n / 63 for n in range(64)]
        for _ in range(40):
            a, b = optimized
            grads = _gradients(a, b, x)
            optimized = [p - 0.01 * g for p, g in zip(optimized, grads, strict=True)]
        assert all(abs(f - o) < 1e-4 for f, o in zip(found, optimized, strict=True))


def _gradients(a, b, x):
    left = [a + b * v + (b * v) ** 3 - math.sin(v) for v in x]
    return (
        sum(2 * e for e in left),
        sum(2 * e * (v + 3 * b * b * v**3) for e, v in zip(left, x, strict=True)),
    )


def test_an_attack_by_many_gradients_is_cut_too():
    model = mg.nn.Linear(8, 3)
    images = mg.rand(4, 8)
    moved = images
    before = mg.stats().pending
    for _ in range(12):
        moved = moved.detach().requires_grad_()
        cost = mg.nn.functional.cross_entropy(model(moved), mg.tensor([0, 1, 2, 0]))
        moved = (moved + 0.01 * mg.autograd.grad(cost, moved)[0].sign()).clamp(0, 1)
        assert mg.stats().pending - before < 40
    assert (moved - images).abs().max().item() <= 0.12 + 1e-6


def test_rows_of_a_jacobian_stay_one_recording():
    x = mg.ones(3, requires_grad=True)
    y = x * mg.tensor([1.0, 2.0, 3.0])
    flushes = mg.stats().flushes
    rows = [mg.autograd.grad(y[n], x, retain_graph=True)[0] for n in range(3)]
    assert mg.stats().flushes == flushes
    assert [row.tolist() for row in rows] == [[1.0, 0.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 3.0]]


def test_a_step_of_an_optimizer_is_not_cut():
    layer = mg.nn.Linear(4, 2)
    step = mg.optim.SGD(layer.parameters(), 0.1)
    flushes = []
    for _ in range(5):
        step.zero_grad()
        layer(mg.ones(3, 4)).pow(2).sum().backward()
        step.step()
        flushes.append(mg.stats().flushes)
    assert flushes[-1] - flushes[0] == 4


def test_data_written_in_place_stays_where_it_is():
    x = mg.ones(3, requires_grad=True)
    other = mg.zeros(3, requires_grad=True)
    for _ in range(5):
        x.data -= 0.5
        x.data, other.data = other.data, x.data
    assert [len(t._view.chain()) if t._view is not None else 0 for t in (x, other)] <= [1, 1]
    assert x.tolist() == [-1.0] * 3 and other.tolist() == [-0.5] * 3
    assert x.requires_grad and x.is_leaf
