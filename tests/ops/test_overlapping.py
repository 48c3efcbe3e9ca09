"""Writes into tensors whose elements share places: what PyTorch allows, and what it refuses."""

import numpy as np
import pytest
import torch

import monograph as mg

pytestmark = pytest.mark.filterwarnings("ignore:Use of:UserWarning")  # of PyTorch

MASK = np.array([[True, False, True, False], [False] * 4, [False, True, False, False]])
PICKS = np.array([0, 2])

ALLOWED = {
    "masked_fill_": lambda m, x: x.masked_fill_(m.tensor(MASK), 5),
    "masked_fill_ by a tensor": lambda m, x: x.masked_fill_(m.tensor(MASK), m.tensor(5.0)),
    "index_fill_": lambda m, x: x.index_fill_(1, m.tensor(PICKS), 3),
    "index_put_": lambda m, x: x.index_put_((m.tensor(PICKS),), m.tensor([1.0, 2.0, 3.0, 4.0])),
    "index_put_ adding": lambda m, x: x.index_put_(
        (m.tensor(PICKS),), m.tensor(3.0), accumulate=True
    ),
    "mask": lambda m, x: x.__setitem__(m.tensor(MASK), 1.0),
    "list": lambda m, x: x.__setitem__([0, 1], 1.0),
    "fill_diagonal_": lambda m, x: x.fill_diagonal_(1.0),
    "tril_": lambda m, x: x.tril_(),
    "triu_": lambda m, x: x.triu_(),
    "threshold_": lambda m, x: m.nn.functional.threshold_(x, 1.5, -1.0),
    "fill_": lambda m, x: x.fill_(2.0),
    "zero_": lambda m, x: x.zero_(),
}
REFUSED = {
    "fill_ by a tensor": lambda m, x: x.fill_(m.tensor(2.0)),
    "add_": lambda m, x: x.add_(1),
    "copy_": lambda m, x: x.copy_(m.ones(3, 4)),
    "relu_": lambda m, x: x.relu_(),
    "masked_scatter_": lambda m, x: x.masked_scatter_(m.tensor(MASK), m.ones(3, 4)),
    "index_add_": lambda m, x: x.index_add_(1, m.tensor(PICKS), m.ones(3, 2)),
    "index_copy_": lambda m, x: x.index_copy_(1, m.tensor(PICKS), m.ones(3, 2)),
    "scatter_": lambda m, x: x.scatter_(1, m.tensor(PICKS).expand(3, 2), 3.0),
    "put_": lambda m, x: x.put_(m.tensor(PICKS), m.ones(2)),
    "x[0] = 1": lambda m, x: x.__setitem__(0, 1.0),
    "uniform_": lambda m, x: x.uniform_(),
    "out=": lambda m, x: m.add(m.ones(3, 4), 1, out=x),
}


def expanded(m):
    base = m.tensor([[1.0], [2.0], [3.0]])
    return base, base.expand(3, 4)


@pytest.mark.parametrize("name", ALLOWED)
def test_what_is_allowed(name):
    for make in (expanded, lambda m: _windows(m)):
        (a, x), (b, y) = make(mg), make(torch)
        ALLOWED[name](mg, x)
        ALLOWED[name](torch, y)
        assert a.tolist() == b.tolist()
        assert x.tolist() == y.tolist()


def _windows(m):
    base = m.arange(6.0)
    return base, base.as_strided((3, 4), (1, 1))


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name):
    for m in (torch, mg):
        base, x = expanded(m)
        with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
            REFUSED[name](m, x)
        assert base.flatten().tolist() == [1.0, 2.0, 3.0]


def test_not_a_number_that_stays():
    results = []
    for m in (mg, torch):
        base = m.tensor([[float("nan")], [2.0]])
        base.expand(2, 3).masked_fill_(m.tensor([[True, False, False], [False] * 3]), 4.0)
        results.append(base.tolist())
    assert results[0] == results[1] == [[4.0], [2.0]]


def test_gradient():
    """PyTorch allows the write and then refuses the backward pass."""
    leaf = mg.tensor([[1.0], [2.0], [3.0]], requires_grad=True)
    base = leaf * 2
    base.expand(3, 4).masked_fill_(mg.tensor(MASK), 5)
    (base * base).sum().backward()
    assert leaf.grad.tolist() == [[0.0], [16.0], [0.0]]
