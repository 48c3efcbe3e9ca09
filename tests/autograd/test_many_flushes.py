"""Backward passes over the results of many flushes: turns whose values were read."""

import numpy as np
import pytest
import torch

import monograph as mg

WEIGHT = np.random.default_rng(0).standard_normal((3, 4)).astype(np.float32)
HEAD = np.random.default_rng(1).standard_normal(4).astype(np.float32)


def episode(library, turns):
    """Turns that read a value each; a state is carried through them. The loss and its leaves."""
    weight = library.tensor(WEIGHT, requires_grad=True)
    head = library.tensor(HEAD, requires_grad=True)
    carried, scores = library.ones(3), []
    for n in range(turns):
        hidden = library.tanh(carried @ weight)
        score = (hidden * head).sum()
        chosen = float(score.item() > 0.1) + n
        scores.append(score * chosen)
        carried = library.nn.functional.softmax(hidden[:3], 0)
    return library.stack(scores).sum(), (weight, head)


def close(ours, theirs):
    np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=2e-5, atol=1e-6)


def test_gradients_are_those_of_one_pass():
    for turns in (2, 6, 9):
        ours, mine = episode(mg, turns)
        theirs, want = episode(torch, turns)
        ours.backward()
        theirs.backward()
        for a, b in zip(mine, want):
            close(a.grad, b.grad)


def test_a_pass_that_is_retained_can_be_made_again():
    ours, mine = episode(mg, 8)
    theirs, want = episode(torch, 8)
    for loss in (ours, theirs):
        loss.backward(retain_graph=True)
        loss.backward()
    for a, b in zip(mine, want):
        close(a.grad, b.grad)
    with pytest.raises(RuntimeError, match="second time"):
        ours.backward()


def test_derivatives_of_derivatives_over_many_flushes():
    found = []
    for library in (mg, torch):
        loss, leaves = episode(library, 7)
        first = library.autograd.grad(loss, leaves, create_graph=True)
        sum((g * g).sum() for g in first).backward()
        found.append([leaf.grad for leaf in leaves])
    for a, b in zip(*found):
        close(a, b)


@pytest.mark.compiled
def test_more_turns_are_more_runs_of_the_same_programs():
    for turns in (8, 12):
        for _ in range(3):
            episode(mg, turns)[0].backward()
            mg.synchronize()
    mg.stats.reset()
    loss, _ = episode(mg, 16)
    loss.backward()
    mg.synchronize()
    assert mg.stats().compilations <= 1  # the sum of sixteen scores
    assert mg.stats().launches >= 24


def test_parameters_change_behind_the_pass_only():
    found = []
    for library in (mg, torch):
        loss, leaves = episode(library, 9)
        optimizer = library.optim.SGD(leaves, lr=0.1)
        loss.backward()
        optimizer.step()
        found.append([leaf.detach() for leaf in leaves])
    for a, b in zip(*found):
        close(a, b)


def test_a_pass_goes_flush_by_flush_without_recording_again():
    loss, leaves = episode(mg, 9)
    mg.stats.reset()
    loss.backward()
    assert mg.stats().pending == 0  # all parts were run
    assert mg.stats().flushes >= 9
    assert all(leaf.grad._storage.value.ready for leaf in leaves)


def test_gradients_are_added_to_those_there():
    found = []
    for library in (mg, torch):
        loss, leaves = episode(library, 7)
        for leaf in leaves:
            leaf.grad = library.ones(tuple(leaf.shape))
        loss.backward()
        found.append([leaf.grad for leaf in leaves])
    for a, b in zip(*found):
        close(a, b)


def test_a_loss_that_was_read_and_a_gradient_that_is_given():
    found = []
    for library in (mg, torch):
        loss, leaves = episode(library, 7)
        loss.item()
        loss.backward(library.tensor(2.5))
        found.append([leaf.grad for leaf in leaves])
    for a, b in zip(*found):
        close(a, b)


def test_masks_that_nobody_kept_are_computed_again():
    found = []
    for library in (mg, torch):
        weight = library.tensor(WEIGHT, requires_grad=True)
        losses = []
        for n in range(7):
            hidden = library.ones(3) @ weight * (n - 3)
            kept = library.where(hidden.detach() > 0, hidden * hidden, hidden)
            if kept.sum().item() != 0:
                losses.append(kept.sum())
        library.stack(losses).sum().backward()
        found.append(weight.grad)
    close(*found)


def walk(library, turns=8, frozen=False):
    """Numbers that follow from one another, each of which is read; and the leaves."""
    weight = library.tensor(1.5, requires_grad=not frozen)
    start = library.tensor(2.0, requires_grad=True)
    here, kept = start, []
    for _ in range(turns):
        here = library.tanh(here * weight + 0.5)
        here.item()
        kept.append(here)
    return kept, (weight, start)


def test_roots_that_lie_on_the_way_to_others():
    found = []
    for library in (mg, torch):
        kept, leaves = walk(library)
        library.autograd.backward([kept[3], kept[7], kept[5]])
        found.append([leaf.grad for leaf in leaves])
    for a, b in zip(*found):
        close(a, b)


@pytest.mark.parametrize("order", [(False, True, False), (True, False, True)])
def test_the_same_flushes_with_other_leaves_to_differentiate_for(order):
    for frozen in order:
        found = []
        for library in (mg, torch):
            kept, leaves = walk(library, frozen=frozen)
            kept[7].backward()
            found.append([leaf.grad for leaf in leaves if leaf.requires_grad])
        assert len(found[0]) == 2 - frozen
        for a, b in zip(*found):
            close(a, b)


@pytest.mark.parametrize("same", [(True, False, True), (False, True, False)])
def test_one_gradient_may_be_given_twice(same):
    for twice in same:
        found = []
        for library in (mg, torch):
            kept, leaves = walk(library)
            kept = [each * 2 for each in kept]
            kept[6].item()
            first, second = library.tensor(0.5), library.tensor(-3.0)
            library.autograd.backward([kept[5], kept[6]], [first, first if twice else second])
            found.append([leaf.grad for leaf in leaves])
        for a, b in zip(*found):
            close(a, b)


def test_what_a_pass_has_met_before_is_not_formed_again(monkeypatch):
    from monograph.autograd import segment

    made = []
    formed = segment.formed
    monkeypatch.setattr(segment, "formed", lambda *given: made.append(1) or formed(*given))
    for _ in range(3):
        episode(mg, 9)[0].backward()
    made.clear()
    loss, leaves = episode(mg, 9)
    loss.backward()
    assert not made
    expected, theirs = episode(torch, 9)
    expected.backward()
    for a, b in zip(leaves, theirs):
        close(a.grad, b.grad)
