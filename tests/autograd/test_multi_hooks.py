"""Hooks on several tensors see what PyTorch's see, as often and in the same state."""

import pytest
import torch

import monograph as mg


def story(lib):
    """What hooks on several tensors were given, in order."""
    told = []

    def shown(given):
        told.append([None if g is None else g.tolist() for g in given])

    a, b = [lib.tensor([2.0, 3.0], requires_grad=True) for _ in range(2)]
    c, d = a * b, a * b
    register = lib.autograd.graph.register_multi_grad_hook
    handle = register((a, b, c, d), shown)
    c.sum().backward(retain_graph=True)
    c.sum().backward(inputs=(a,), retain_graph=True)
    (c + 2 * d).sum().backward(retain_graph=True)
    handle.remove()
    c.sum().backward(retain_graph=True)
    with register((b, c), lambda g: told.append(g.tolist()), mode="any"):
        c.sum().backward(retain_graph=True)
        (b * 7).sum().backward()
    c.sum().backward()
    with lib.no_grad():
        a.mul_(2)  # the hook stays with the leaf
    register([a], shown)
    (a * 3).sum().backward()
    return told


def test_hooks_on_several_tensors():
    told = story(mg)
    assert len(told) == 6
    assert told == story(torch)


def test_modes():
    with pytest.raises(ValueError, match="Expects mode to be one of"):
        mg.autograd.graph.register_multi_grad_hook([], print, mode="some")
