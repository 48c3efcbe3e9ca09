"""Loops that Python ran become Loops of the graph, where that is what they are."""

import numpy as np
import pytest

import monograph as mg
import monograph.nn.functional as F
from monograph import nn, record
from monograph.compiler.periods import find_runs
from monograph.compiler.roll import RolledExpansion
from monograph.foresight import Foresight
from monograph.ir.node import Loop, ancestors, interning
from monograph.tracing import kind, trace

COMPILED = {"backend": "cpu", "disk_cache": False, "tier0_limit": 0}


def loops(function, *kinds):
    """The numbers of turns of the loops that a function becomes."""
    recording, _ = trace(function, *kinds)
    with interning():
        nodes = ancestors(RolledExpansion(recording).run())
    return sorted({node.trips for node in nodes if isinstance(node, Loop)})


def cell_step(turns, cell):
    xs = mg.tensor(np.random.default_rng(0).standard_normal((4, turns, 3)).astype(np.float32))

    def step():
        h = mg.zeros(4, 5)
        outs = []
        for n in range(turns):
            h = cell(xs[:, n], h)
            outs.append(h)
        loss = (mg.stack(outs, 1) ** 2).mean()
        loss.backward()
        return loss

    return step


def test_more_turns_are_no_more_kernels():
    with mg.config.override(**COMPILED):
        reports = [mg.explain(cell_step(turns, nn.GRUCell(3, 5))) for turns in (20, 40)]
    few, many = ([each.name for each in report.kernels] for report in reports)
    assert len(few) == len(many)
    assert len(set(few)) == len(set(many))


@pytest.mark.parametrize("held", [False, True])
def test_a_loss_that_is_read_before_backward(held, monkeypatch):
    """What is known of turns, and stands between them in the recording, does not hide the loop."""
    monkeypatch.setattr(record, "foresight", Foresight())
    cell, kept = nn.GRUCell(3, 5), []

    def loss_of(turns):
        outs, xs, h = [], mg.ones(4, turns, 3) * 0.5, mg.zeros(4, 5)
        for n in range(turns):
            h = cell(xs[:, n], h)
            outs.append(h)
        if held:
            kept.append(outs)
        return (mg.stack(outs, 1) ** 2).mean()

    def step(turns):
        cell.zero_grad()
        loss = loss_of(turns)
        loss.item()
        loss.backward()

    with mg.config.override(**COMPILED):
        few, many = (mg.explain(lambda n=n: step(n)) for n in (5, 10))
    assert few.flushes == ["read", "explain"]
    assert len(few.kernels) == len(many.kernels)


def test_a_recurrence_is_a_loop_and_what_it_lists_is_its_stack():
    def recurrence(x, w):
        h, outs = x[:, 0], []
        for n in range(1, 12):
            h = mg.tanh(h @ w + x[:, n] * 0.5)
            outs.append(h)
        return mg.cat(outs, 1)

    kinds = kind(2, 12, 4), kind(4, 4)
    assert loops(recurrence, *kinds) == [11]
    recording, _ = trace(recurrence, *kinds)
    (run,) = find_runs(recording).values()
    assert (run.turns, run.period) == (11, 5)
    with interning():
        assert len(ancestors(RolledExpansion(recording).run())) < 20


def test_a_first_turn_that_differs_stays_outside():
    def total(x, w):
        loss, h = 0, None
        for n in range(12):
            h = x[:, n] @ w if h is None else mg.tanh(h @ w + x[:, n])
            loss = loss + (h * h).sum()
        return loss

    assert loops(total, kind(2, 12, 4), kind(4, 4)) == [11]


def test_a_loop_over_data_that_goes_on_with_its_own_results():
    def predict(x, w):
        h, outs = x[:, 0], []
        for n in range(6):
            h = mg.tanh((h + x[:, n]) @ w)
            outs.append(h)
        for _ in range(5):
            h = mg.tanh((h + outs[-1]) @ w)
            outs.append(h)
        return mg.cat(outs, 1)

    assert loops(predict, kind(2, 6, 4), kind(4, 4)) == [5, 6]
    x, w = np.random.default_rng(0).standard_normal((2, 6, 4)), np.eye(4) * 0.5
    found = []
    for backend in ("cpu", "reference"):
        with mg.config.override(**{**COMPILED, "backend": backend}):
            found.append(predict(mg.tensor(x), mg.tensor(w)).numpy())
    np.testing.assert_allclose(*found, rtol=1e-6)


def test_turns_that_one_kernel_computes_stay_as_they_are():
    def orbit(c):
        z = c
        for _ in range(30):
            z = z * z + c
        return z

    assert loops(orbit, kind(100)) == []


def test_layers_with_weights_of_their_own_stay_as_they_are():
    def layers(x, *weights):
        for w in weights:
            x = mg.relu(x @ w)
        return x

    assert loops(layers, kind(4, 8), *[kind(8, 8)] * 12) == []
    assert loops(lambda x, w: layers(x, *[w] * 12), kind(4, 8), kind(8, 8)) == [12]


def swing(start, turns):
    """A simulation that writes into elements, and makes the same constant anew in each turn."""
    origin = mg.tensor([0.0, 0.0])
    places, speeds = mg.cat([origin.unsqueeze(0), start]), mg.zeros(2, 2)
    for _ in range(turns):
        forces = mg.zeros_like(places)
        along = places[1] - places[0]
        length = along.norm()
        forces[0] += (length - 1.0) * along / length
        forces[1] -= (length - 1.0) * along / length
        speeds = speeds + forces * 0.1
        places = places + speeds * 0.1
        places[0] = origin
        speeds[0] = mg.tensor([0.0, 0.0])
    return places


def test_a_simulation_that_writes_into_elements_is_a_loop():
    found = []
    for backend in ("cpu", "reference"):
        with mg.config.override(**{**COMPILED, "backend": backend}):
            start = mg.tensor([[0.3, -0.7]], requires_grad=True)
            swing(start, 20).square().sum().backward()
            found.append(start.grad.numpy())
    np.testing.assert_allclose(*found, rtol=1e-4)
    with mg.config.override(**COMPILED):
        start = mg.tensor([[0.3, -0.7]], requires_grad=True)
        few, many = (mg.explain(lambda n=n: swing(start, n)) for n in (20, 40))
    assert len(few.kernels) == len(many.kernels)


def test_convolutions_stay_as_they_are():
    def refined(x, w):
        for _ in range(9):
            x = mg.relu(F.conv2d(x, w, padding=1))
        return x

    assert loops(refined, kind(2, 4, 6, 6), kind(4, 4, 3, 3)) == []


def test_turns_that_do_not_depend_on_one_another_stay_as_they_are():
    def each(x, w):
        return mg.stack([(x[n] @ w).sum() for n in range(12)])

    assert loops(each, kind(12, 4, 4), kind(4, 4)) == []


def test_too_few_turns_stay_as_they_are():
    def power(x, turns):
        for _ in range(turns):
            x = mg.tanh(x @ x) @ x
        return x

    assert loops(lambda x: power(x, 3), kind(4, 4)) == []
    assert loops(lambda x: power(x, 4), kind(4, 4)) == [4]


def rows_step(x, labels, cell, start, turns):
    """A loop over rows of known data, which are leaves that lie one behind the other."""
    h = mg.zeros(x.shape[1], 5)
    loss = 0
    for n in range(start, start + turns):
        h = cell(x[n] * 0.5 + x[n], h)
        loss = loss + F.cross_entropy(h, labels[n + 1])
    loss.backward()
    return [loss.item(), *[p.grad.numpy().copy() for p in cell.parameters()]]


def test_rows_of_known_data_are_read_where_they_lie():
    mg.manual_seed(0)
    cell, rng = nn.GRUCell(3, 5), np.random.default_rng(0)
    x = mg.tensor(rng.standard_normal((20, 4, 3)).astype(np.float32))
    labels = mg.tensor(rng.integers(0, 5, (20, 4)))
    mg.synchronize()
    compilations = []
    for start in (0, 3, 8):
        found = []
        for backend in ("cpu", "reference"):
            with mg.config.override(**{**COMPILED, "backend": backend}):
                before = mg.stats().compilations
                cell.zero_grad()
                found.append(rows_step(x, labels, cell, start, 10))
                if backend == "cpu":
                    compilations.append(mg.stats().compilations - before)
        for one, other in zip(*found, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)
    assert compilations == [1, 0, 0]  # where the rows begin is no part of the program
    with mg.config.override(**COMPILED):
        cell.zero_grad()
        report = mg.explain(lambda: rows_step(x, labels, cell, 0, 10))
        cell.zero_grad()
        longer = mg.explain(lambda: rows_step(x, labels, cell, 0, 19))
    assert len(report.kernels) == len(longer.kernels)


def test_rows_in_another_order_are_other_leaves():
    w = mg.eye(3) * 0.5
    x = mg.tensor(np.arange(60.0, dtype=np.float32).reshape(20, 1, 3))
    mg.synchronize()

    def total(order):
        h = mg.zeros(1, 3)
        for n in order:
            h = h @ w + x[n]
        return h.numpy()

    def expected(order):
        h = np.zeros((1, 3))
        for n in order:
            h = h * 0.5 + x.numpy()[n]
        return h

    with mg.config.override(**COMPILED):
        for order in (range(10), range(2, 12), [0, 1, 2, 3, 9, 8, 7, 6, 5, 4], range(19, 0, -2)):
            np.testing.assert_allclose(total(order), expected(order), rtol=1e-5)


def decay(x, rates):
    for n, rate in enumerate(rates):
        x = mg.softmax(x * rate + n, 0)
    return x


def test_numbers_of_each_turn_are_filled_in_at_each_run():
    x = np.linspace(-1, 1, 6)
    with mg.config.override(**COMPILED):
        for start in (1.0, 2.0):
            rates = [start + n * n for n in range(9)]
            given = mg.tensor(x).requires_grad_()
            mg.synchronize()
            before = mg.stats().compilations
            loss = (decay(given, rates) ** 2).sum()
            loss.backward()
            made = loss.item(), given.grad.numpy()
            after = mg.stats().compilations
            with mg.config.override(backend="reference"):
                given = mg.tensor(x).requires_grad_()
                loss = (decay(given, rates) ** 2).sum()
                loss.backward()
                expected = loss.item(), given.grad.numpy()
            np.testing.assert_allclose(made[0], expected[0])
            np.testing.assert_allclose(made[1], expected[1], rtol=1e-6, atol=1e-12)
        assert after == before  # other numbers, the same program


def test_a_wrong_index_names_the_line():
    table = nn.Embedding(5, 4)
    w = mg.ones(4, 4)
    ids = mg.tensor(np.array([[1, 2, 3, 4, 0, 1, 2, 9, 1, 2]]))
    mg.synchronize()
    with mg.config.override(**COMPILED), pytest.raises(IndexError) as raised:
        h = mg.zeros(1, 4)
        for n in range(10):
            h = mg.tanh(h @ w + table(ids[:, n]))  # the line of the error
        h.sum().item()
    assert "index 9 is out of range" in str(raised.value)
    assert "test_roll.py" in str(raised.value)


def test_hooks_run_once_a_turn():
    w = mg.eye(3).requires_grad_()
    seen = []
    with mg.config.override(**COMPILED):
        h = mg.ones(2, 3)
        for _ in range(9):
            h = (h @ w) * 0.5
            h.register_hook(lambda g: seen.append(1) or g * 2)
        h.sum().backward()
        np.testing.assert_allclose(w.grad.numpy(), np.full((3, 3), 2 * (2 - 0.5**8)))
    assert len(seen) == 9


def test_a_retained_gradient_inside_a_turn():
    w = (mg.eye(3) * 0.5).requires_grad_()
    held = []
    with mg.config.override(**COMPILED):
        h = mg.ones(2, 3)
        for _ in range(9):
            h = h @ w
            h.retain_grad()
            held.append(h)
        h.sum().backward()
        for n, each in enumerate(held):
            np.testing.assert_allclose(each.grad.numpy(), np.full((2, 3), 0.5 ** (8 - n)))


def test_a_derivative_of_checked_labels_in_a_loop():
    """What a derivative requires of a turn's values is no check of the program around it."""
    mg.manual_seed(0)
    table, out = nn.Embedding(5, 4), nn.Linear(4, 5)
    ids = mg.tensor(np.arange(24).reshape(8, 3) % 5)

    def turn(carried, labels):
        h, loss = carried
        h = mg.tanh(h + table(labels))
        return (h, loss + F.cross_entropy(out(h), labels)), h

    def slope(backend):
        table.weight.grad = None
        with mg.config.override(**{**COMPILED, "backend": backend}):
            (_, loss), _ = mg.scan(turn, (mg.zeros(3, 4), mg.zeros(())), ids)
            loss.backward()
            return table.weight.grad.numpy().copy()

    np.testing.assert_allclose(slope("cpu"), slope("reference"), rtol=1e-4, atol=1e-6)


def test_writing_into_a_place_of_each_turn_is_one_write_behind_the_loop():
    def listed(x, w):
        outs, h = mg.zeros(12, 2, 4), x[0]
        for n in range(12):
            h = mg.tanh(h @ w + x[n])
            outs[n] = h
        return outs * 2.0

    kinds = kind(12, 2, 4), kind(4, 4)
    assert loops(listed, *kinds) == [12]

    def read_on_the_way(x, w):
        outs, h = mg.zeros(12, 2, 4), x[0]
        for n in range(12):
            h = mg.tanh(h @ w + outs.sum(0))
            outs[n] = h
        return outs

    assert loops(read_on_the_way, *kinds) == []

    def one_over_the_other(x, w):
        outs, h = mg.zeros(12, 2, 4), x[0]
        for n in range(12):
            h = mg.tanh(h @ w)
            outs[n // 2] = h
        return outs

    assert loops(one_over_the_other, *kinds) == []

    def overlapping(x, w):
        outs, h = mg.zeros(14, 2, 4), x[0]
        for n in range(12):
            h = mg.tanh(h @ w)
            outs[n : n + 3] = h
        return outs

    assert loops(overlapping, *kinds) == []
    x = np.random.default_rng(0).standard_normal((12, 2, 4))
    w = np.eye(4)
    for function in (listed, read_on_the_way, one_over_the_other, overlapping):
        found = []
        for backend in ("cpu", "reference"):
            with mg.config.override(**{**COMPILED, "backend": backend}):
                given = mg.tensor(x.astype(np.float32)), mg.tensor(w.astype(np.float32))
                given[0].requires_grad_()
                outs = function(*given)
                (outs**2).sum().backward()
                found.append((outs.detach().numpy(), given[0].grad.numpy()))
        for one, other in zip(*found, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)
