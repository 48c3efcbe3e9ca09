"""Many small pieces of data are joined at the call: what comes out, and when it is recorded."""

import random

import numpy as np
import pytest
import torch

import monograph as mg


def pieces(library, count=12):
    base = library.tensor(np.arange(6.0 * count, dtype=np.float32).reshape(count, 6))
    return [base[n, 1:5].unsqueeze(0) if n % 2 else base[n][None, :4] for n in range(count)]


def test_batches_of_ever_other_pieces_are_one_program():
    random.seed(0)
    memory = [mg.tensor([[float(n), 1.0, 2.0]]) for n in range(40)]
    weight = mg.ones(3, 2)
    mg.synchronize()
    for step in range(12):
        chosen = random.sample(range(39), 16)
        now, then = mg.cat([memory[n] for n in chosen]), mg.cat([memory[n + 1] for n in chosen])
        total = (now @ weight + then @ weight).sum()
        assert total.item() == sum(4 * n + 2 + 12 for n in chosen)
        if step == 1:
            mg.stats.reset()
    assert mg.stats().compilations == mg.stats().interpreted == 0


@pytest.mark.parametrize("dim", [0, 1, -1])
@pytest.mark.parametrize("join", ["cat", "stack"])
def test_what_is_joined_at_the_call_is_pytorchs(join, dim):
    made = getattr(mg, join)(pieces(mg), dim)
    assert mg.stats().pending == 0
    want = getattr(torch, join)(pieces(torch), dim)
    np.testing.assert_array_equal(made.numpy(), want.numpy())


def test_a_write_afterwards_is_not_seen():
    parts = [mg.zeros(2) for _ in range(9)]
    mg.synchronize()
    joined = mg.cat(parts)
    parts[0].add_(1)
    assert joined.sum().item() == 0


def test_views_of_results_that_were_read():
    table = mg.tensor(np.arange(20.0, dtype=np.float32).reshape(10, 2))
    chosen = []
    for n in range(10):
        best = (table[n] * 2).max(0, keepdim=True).indices.view(1, 1)
        assert best.item() == 1
        chosen.append(best)
    joined = mg.cat(chosen)
    assert mg.stats().pending == 0 and joined.tolist() == [[1]] * 10
    turned = [(table * n).t() for n in range(9)]
    mg.synchronize()
    assert mg.cat(turned, 1)[1].tolist() == [
        float(n * (2 * k + 1)) for n in range(9) for k in range(10)
    ]


def test_pieces_of_other_dtypes_are_promoted():
    parts = [mg.ones(2) if n % 2 else mg.ones(2, dtype=mg.int64) for n in range(9)]
    mg.synchronize()
    assert mg.cat(parts).dtype is mg.float32


def test_a_piece_that_was_written_shows_it():
    whole = mg.zeros(9, 2)
    parts = [whole[n] for n in range(9)]
    whole.add_(1)
    mg.synchronize()
    assert mg.cat(parts).tolist() == [1.0] * 18


def test_what_needs_gradients_or_is_pending_or_large_is_recorded():
    known = [mg.ones(2) for _ in range(9)]
    mg.synchronize()
    leaf = mg.ones(2, requires_grad=True)
    mg.cat([*known, leaf]).sum().backward()
    assert leaf.grad.tolist() == [1.0, 1.0]
    pending = mg.ones(2) * 3
    assert mg.cat([*known, pending]).sum().item() == 24
    large = [mg.ones(4000) for _ in range(9)]
    mg.synchronize()
    joined = mg.cat(large)
    assert mg.stats().pending == 1 and joined.sum().item() == 36000


def test_a_replay_joins_what_it_is_given():
    @mg.jit
    def total(*parts):
        return mg.cat(parts).sum()

    for n in range(4):
        assert total(*[mg.full((2,), float(n)) for _ in range(9)]).item() == 18 * n


def test_pieces_that_do_not_fit_are_refused_in_the_operators_words():
    parts = [mg.ones(2, 3) for _ in range(9)]
    mg.synchronize()
    with pytest.raises(RuntimeError, match="cat: sizes must match except along dim 0"):
        mg.cat([*parts, mg.ones(2, 4)])
    with pytest.raises(IndexError):
        mg.cat(parts, 5)
