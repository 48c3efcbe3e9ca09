"""Orthogonal weights against PyTorch's: matrices, gradients, assignment and errors."""

import numpy as np
import pytest
import torch
from torch.nn.utils import parametrizations

import monograph as mg

SHAPES = [(3, 3), (4, 2), (2, 4), (2, 3, 3)]
MAPS = ["matrix_exp", "cayley", "householder"]


def holder(m, shape, seed=0):
    module = m.nn.Module()
    values = np.random.default_rng(seed).normal(size=shape)
    module.weight = m.nn.Parameter(m.tensor(values))
    return module


@pytest.mark.parametrize("name", MAPS)
@pytest.mark.parametrize("shape", SHAPES)
def test_matrix_and_gradient(name, shape):
    """With the same original and base, the same matrix and the same slopes."""
    theirs = parametrizations.orthogonal(holder(torch, shape), orthogonal_map=name)
    ours = mg.nn.utils.parametrizations.orthogonal(holder(mg, shape), orthogonal_map=name)
    square = np.asarray(ours.weight.tolist())
    if shape[-2] < shape[-1]:
        square = np.swapaxes(square, -1, -2)
    product = np.swapaxes(square, -1, -2) @ square
    assert np.allclose(product, np.eye(min(shape[-2:])), atol=1e-10)
    new = np.random.default_rng(1).normal(size=shape)
    for k in range(min(shape[-2:])):
        new[..., k, k] = -1.0  # signs, which are no numbers to be trained
    state = {key: mg.tensor(x.numpy()) for key, x in theirs.state_dict().items()}
    ours.load_state_dict(state)
    results = []
    for m, module in ((mg, ours), (torch, theirs)):
        original = module.parametrizations.weight.original
        with m.no_grad():
            original.copy_(m.tensor(new))
        y = module.weight
        weights = np.arange(y.numel(), dtype=np.float64).reshape(tuple(y.shape))
        (y * m.tensor(weights)).sum().backward()
        results.append([np.asarray(y.tolist()), np.asarray(original.grad.tolist())])
    for mine, other in zip(*results, strict=True):
        assert np.allclose(mine, other, atol=1e-9)


def test_assignment():
    for m, lib in ((mg, mg.nn.utils.parametrizations), (torch, parametrizations)):
        module = lib.orthogonal(holder(m, (3, 3)))
        q = np.linalg.qr(np.random.default_rng(2).normal(size=(3, 3)))[0]
        module.weight = m.tensor(q)
        assert np.allclose(np.asarray(module.weight.tolist()), q)


def test_reflections_without_a_base():
    results = []
    for m, lib in ((mg, mg.nn.utils.parametrizations), (torch, parametrizations)):
        module = holder(m, (4, 3))
        lib.orthogonal(module, orthogonal_map="householder", use_trivialization=False)
        results.append(np.asarray(module.weight.tolist()))
    assert np.allclose(*results)


def test_wrong_calls():
    for m, lib in ((mg, mg.nn.utils.parametrizations), (torch, parametrizations)):
        with pytest.raises(ValueError):
            lib.orthogonal(holder(m, (3,)))
        with pytest.raises(ValueError):
            lib.orthogonal(holder(m, (3, 3)), "bias")
        with pytest.raises(ValueError):
            lib.orthogonal(holder(m, (3, 3)), orthogonal_map="x")
        plain = holder(m, (3, 3))
        lib.orthogonal(plain, orthogonal_map="cayley", use_trivialization=False)
        with pytest.raises(NotImplementedError):
            plain.weight = m.tensor(np.eye(3))
