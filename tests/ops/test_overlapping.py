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


WRITES = {
    "after": lambda x: x[1:].add_(x[:-1]),
    "before": lambda x: x[:-1].mul_(x[1:]),
    "copied": lambda x: x[1:].copy_(x[:-1]),
    "assigned": lambda x: x.__setitem__(slice(1, None), x[:-1]),
    "added": lambda x: x[1:].__iadd__(x[:-1]),
    "turned": lambda x: x.view(2, 3)[:, :2].T.T.sub_(x.view(2, 3)[:, :2]),
    "transposed": lambda x: x[:4].view(2, 2).add_(x[:4].view(2, 2).T),
    "row": lambda x: x.view(2, 3).add_(x.view(2, 3)[0]),
    "third": lambda x: x[1:].addcmul_(x[:-1] * 1, x[:-1]),
    "clamped": lambda x: x[1:].clamp_(max=x[:-1]),
    "compared": lambda x: x[1:].ge_(x[:-1]),
    "mixed": lambda x: x[1:].lerp_(x[:-1], 0.5),
    "itself": lambda x: x.add_(x),
    "the same places": lambda x: x[1:].add_(x[1:]),
    "the same, seen": lambda x: x.add_(x.view(6).detach()),
    "every other": lambda x: x[::2].add_(x[1::2]),
    "beside": lambda x: x[:3].add_(x[3:]),
    "columns": lambda x: x.view(2, 3)[:, 1:].add_(x.view(2, 3)[:, :-1]),
    "a copy": lambda x: x[1:].add_(x[:-1].clone()),
    "a number of its own": lambda x: x[1:].mul_(x[:1].sum()),
    "nothing": lambda x: x[:0].add_(x[:0]),
}


@pytest.mark.parametrize("write", WRITES)
def test_operands_that_share_places_with_what_is_written(write):
    x, y = torch.arange(6.0), mg.arange(6.0)
    try:
        WRITES[write](x)
    except RuntimeError as error:
        said = str(error)[:40]
        with pytest.raises(RuntimeError, match=said):
            WRITES[write](y)
        assert y.tolist() == list(range(6))
    else:
        WRITES[write](y)
        if write not in ("columns",):  # PyTorch reads what it has written there
            assert y.tolist() == x.tolist()


def test_products_are_computed_as_if_apart():
    x = mg.arange(4.0).reshape(2, 2)
    expected = x + x @ x
    assert mg.equal(x.addmm_(x, x), expected)
