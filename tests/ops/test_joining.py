"""Joining many tensors: known ones at once, others by a program, with one meaning."""

import numpy as np
import pytest

import monograph as mg

LINES = [np.arange(n % 7 + 1) + n for n in range(100)]


def made_by(function):
    """A result, and how many operators were recorded for it."""
    mg.stats.reset()
    result = function()
    return result, mg.stats().recorded


def test_many_known_tensors_are_joined_without_a_program():
    lines = [mg.tensor(line) for line in LINES]
    text, recorded = made_by(lambda: mg.cat(lines))
    assert recorded == 0
    np.testing.assert_array_equal(text.numpy(), np.concatenate(LINES))
    rows = [mg.tensor([n, n + 1]) for n in range(40)]
    table, recorded = made_by(lambda: mg.stack(rows, -1))
    assert recorded == 0
    np.testing.assert_array_equal(table.numpy(), [np.arange(40), np.arange(1, 41)])


def test_a_change_afterwards_is_not_seen():
    rows = [mg.zeros(2) for _ in range(40)]
    joined = mg.cat(rows)
    rows[0].fill_(5.0)
    joined[1] = 3.0
    assert joined[:2].tolist() == [0.0, 3.0]
    assert rows[0].tolist() == [5.0, 5.0]
    whole = mg.arange(40.0)
    places = [whole[n] for n in range(40)]
    whole.mul_(2)
    assert mg.stack(places).tolist() == (2 * np.arange(40.0)).tolist()


def test_many_tensors_are_differentiated_and_traced():
    rows = [mg.full((2,), float(n), requires_grad=True) for n in range(40)]
    (mg.stack(rows) * mg.arange(80.0).view(40, 2)).sum().backward()
    assert rows[3].grad.tolist() == [6.0, 7.0]
    known = [mg.tensor([float(n)]) for n in range(39)]
    joined = mg.jit(lambda x: mg.cat([x, *known]).sum())
    assert [joined(mg.tensor([v])).item() for v in (1.0, 2.0)] == [742.0, 743.0]
    mixed = [mg.tensor([1]), *[mg.tensor([0.5])] * 40]
    assert mg.cat(mixed).dtype is mg.float32


def test_many_tensors_that_do_not_fit_are_refused():
    with pytest.raises(RuntimeError):
        mg.cat([mg.zeros(2, 3)] * 40 + [mg.zeros(2)])
    with pytest.raises(IndexError):
        mg.cat([mg.zeros(2)] * 40, 2)
    with pytest.raises(RuntimeError):
        mg.cat([mg.tensor(1.0)] * 40)
