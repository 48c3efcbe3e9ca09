"""Sparse tensors against PyTorch's: structure, products, sums, derivatives, and what is refused."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
import torch

import monograph as mg
from monograph import errors

INDICES = [[0, 2, 1, 2, 2], [1, 0, 3, 3, 3]]  # one place twice
VALUES = [1.5, -2.0, 3.0, 4.0, 0.5]
SIZE = (3, 4)


def both(**options):
    made = [
        t.sparse_coo_tensor(INDICES, t.tensor(VALUES, requires_grad=True), SIZE, **options)
        for t in (mg, torch)
    ]
    return made


def dense(x):
    return np.asarray((x.to_dense() if x.is_sparse else x).detach().tolist())


def agree(ours, theirs):
    assert ours.is_sparse == theirs.is_sparse
    assert tuple(ours.shape) == tuple(theirs.shape)
    assert str(ours.dtype).split(".")[1] == str(theirs.dtype).split(".")[1]
    if ours.is_sparse:
        assert ours.is_coalesced() == theirs.is_coalesced()
        assert ours._indices().tolist() == theirs._indices().tolist()
    np.testing.assert_allclose(dense(ours), dense(theirs), rtol=1e-6)


RESULTS = {
    "itself": lambda t, x: x,
    "coalesce": lambda t, x: x.coalesce(),
    "transpose": lambda t, x: x.t(),
    "function of axes": lambda t, x: t.transpose(x, 0, 1),
    "twice": lambda t, x: x.t().t(),
    "scaled": lambda t, x: x * 2,
    "halved": lambda t, x: x / 2,
    "negative": lambda t, x: -x,
    "sum": lambda t, x: x.sum(),
    "rows": lambda t, x: x.sum(1),
    "kept axis": lambda t, x: x.sum(1, keepdim=True).coalesce(),
    "columns": lambda t, x: t.sparse.sum(x, 0),
    "double": lambda t, x: x.double(),
    "square": lambda t, x: x.pow(2),
    "abs": lambda t, x: x.abs(),
    "two": lambda t, x: (x + x * 3).coalesce(),
    "coalesced two": lambda t, x: x.coalesce() - x.coalesce() * 3,
    "dense and sparse": lambda t, x: t.ones(3, 4) + x,
    "by dense": lambda t, x: x * t.arange(12.0).reshape(3, 4),
    "by row": lambda t, x: x * t.arange(4.0),
    "product": lambda t, x: x @ t.arange(8.0).reshape(4, 2),
    "mm": lambda t, x: t.mm(x, t.arange(8.0).reshape(4, 2)),
    "spmm": lambda t, x: t.sparse.mm(x, t.arange(8.0).reshape(4, 2)),
    "vector": lambda t, x: t.mv(x, t.arange(4.0)),
    "dense first": lambda t, x: t.arange(6.0).reshape(2, 3) @ x,
    "both sparse": lambda t, x: x @ x.t(),
    "added product": lambda t, x: t.sparse.addmm(t.ones(3, 2), x, t.ones(4, 2), beta=2.0),
    "softmax": lambda t, x: t.sparse.softmax(x, 1),
    "log softmax": lambda t, x: t.sparse.log_softmax(x, 0),
    "joined": lambda t, x: t.cat([x, x], 1),
    "mask": lambda t, x: t.arange(12.0).reshape(3, 4).sparse_mask(x.detach().coalesce()),
    "back": lambda t, x: x.to_dense().to_sparse(),
}


@pytest.mark.parametrize("name", RESULTS)
def test_results_are_those_of_pytorch(name):
    if name == "vector":  # PyTorch has no derivative of it
        ours, theirs = (x.detach() for x in both())
    else:
        ours, theirs = both()
    agree(RESULTS[name](mg, ours), RESULTS[name](torch, theirs))


@pytest.mark.parametrize(
    "name", ["product", "dense first", "both sparse", "scaled", "sum", "columns"]
)
def test_derivatives_reach_the_values(name):
    found = []
    for t in (mg, torch):
        values = t.tensor(VALUES, requires_grad=True)
        x = t.sparse_coo_tensor(INDICES, values, SIZE)
        made = RESULTS[name](t, x)
        made = made.to_dense() if made.is_sparse else made
        (made * made).sum().backward()
        found.append(values.grad.tolist())
    np.testing.assert_allclose(found[0], found[1], rtol=1e-5)


def test_derivatives_reach_the_dense_operand_and_a_sparse_leaf():
    found = []
    for t in (mg, torch):
        x = t.sparse_coo_tensor(INDICES, VALUES, SIZE).coalesce().requires_grad_()
        weight = t.arange(8.0).reshape(4, 2).requires_grad_()
        t.sparse.mm(x, weight).pow(2).sum().backward()
        found.append((dense(weight.grad), dense(x.grad)))
        assert x.requires_grad and x.is_leaf
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5)


def test_what_is_known_of_one():
    for x in both():
        assert x._nnz() == 5 and x.sparse_dim() == 2 and x.dense_dim() == 0
        assert x.size() == SIZE and x.size(1) == 4 and len(x) == 3 and x.numel() == 12
        assert str(x.layout).endswith("sparse_coo") and str(x.device) == "cpu"
        assert x.coalesce().values().tolist() == [1.5, 3.0, -2.0, 4.5]
        assert x.coalesce().is_coalesced() and not x.is_coalesced()
    assert isinstance(both()[0], mg.Tensor)
    assert not mg.ones(2).is_sparse and mg.ones(2, 2).sparse_dim() == 0


def test_text():
    ours, theirs = (x.detach() for x in both())
    shown = repr(theirs).replace("torch.sparse_coo", "monograph.sparse_coo")
    assert repr(ours) == shown


def test_values_with_axes_of_their_own_and_sizes_found():
    for t in (mg, torch):
        x = t.sparse_coo_tensor([[2, 0]], [[1.0, 2.0], [3.0, 4.0]])
        assert tuple(x.shape) == (3, 2) and x.dense_dim() == 1
        assert x.to_dense().tolist() == [[3.0, 4.0], [0.0, 0.0], [1.0, 2.0]]
        assert t.sparse_coo_tensor((2, 3)).to_dense().tolist() == [[0.0] * 3] * 2
        truth = t.sparse_coo_tensor([[1, 1]], [True, True], (2,))
        assert truth.to_dense().tolist() == [False, True]
        half = t.eye(3)[:, :2].to_sparse(1)
        assert half.indices().tolist() == [[0, 1]] and half.dense_dim() == 1


def test_copies_and_buffers():
    x = both()[0].detach()
    for copied in (copy.deepcopy(x), pickle.loads(pickle.dumps(x)), x.clone()):
        assert copied.is_sparse and dense(copied).tolist() == dense(x).tolist()
    module = mg.nn.Module()
    module.register_buffer("adjacency", x, persistent=False)
    assert module.double().adjacency.dtype is mg.float64
    assert module.to("cpu").adjacency.is_sparse and not module.state_dict()


def test_a_function_keeps_one_for_its_derivative():
    class Product(mg.autograd.Function):
        @staticmethod
        def forward(ctx, indices, values, b):
            a = mg.sparse_coo_tensor(indices, values, (2, 2))
            ctx.save_for_backward(a, b)
            return a @ b

        @staticmethod
        def backward(ctx, grad):
            a, b = ctx.saved_tensors
            places = a._indices()[0] * 2 + a._indices()[1]
            return None, (grad @ b.t()).reshape(-1)[places], a.t() @ grad

    indices = mg.tensor([[0, 1], [1, 0]])
    values = mg.tensor([2.0, 3.0], requires_grad=True)
    b = mg.tensor([[1.0], [5.0]], requires_grad=True)
    Product.apply(indices, values, b).sum().backward()
    assert values.grad.tolist() == [5.0, 1.0] and b.grad.tolist() == [[3.0], [2.0]]


REFUSED = {
    "reshape": lambda x: x.reshape(4, 3),
    "comparison": lambda x: x == 0,
    "maximum": lambda x: x.max(),
    "exponential": lambda x: x.exp(),
    "numbers": lambda x: x.tolist(),
    "array": lambda x: x.numpy(),
    "sparse and dense": lambda x: x + mg.ones(3, 4),
    "uncoalesced values": lambda x: x.values(),
    "sizes": lambda x: x @ mg.ones(3, 1),
    "dtypes": lambda x: x @ mg.ones(4, 1, dtype=mg.float64),
    "dense indices": lambda x: mg.ones(2).indices(),
    "too few axes": lambda x: mg.sparse_coo_tensor([[0], [1]], [1.0], (2,)),
    "outside": lambda x: mg.sparse_coo_tensor([[3]], [1.0], (3,), check_invariants=True),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_there_says_so(name):
    with pytest.raises((RuntimeError, TypeError)):
        REFUSED[name](both()[0].detach())


def test_an_operator_that_is_not_there_names_those_that_are():
    with pytest.raises(errors.SparseOperand, match=r"exp .* to_dense\(\) .* matmul"):
        mg.exp(both()[0])


def test_a_training_loop_compiles_nothing_after_the_third_step():
    x = both()[0].detach()
    layer = mg.nn.Linear(4, 2)
    step = mg.optim.SGD(layer.parameters(), 0.01)
    counts = []
    for _ in range(6):
        step.zero_grad()
        mg.sparse.mm(x.t(), layer(mg.ones(3, 4))).pow(2).mean().backward()
        step.step()
        mg.synchronize()
        counts.append(mg.stats().compilations)
    assert counts[2] == counts[-1]


@pytest.mark.parametrize(
    "ask, error, words",
    [
        (lambda x: x.numpy(), TypeError, "to_dense"),
        (lambda x: x[:1], RuntimeError, "indexing"),
        (lambda x: x.view(6), NotImplementedError, "view"),
        (lambda x: x @ mg.ones(5, 1), RuntimeError, "matmul"),
    ],
)
def test_what_is_refused_is_named(ask, error, words):
    x = mg.sparse_coo_tensor([[0, 1], [2, 0]], [3.0, 4.0], (2, 3))
    with pytest.raises(error, match=words):
        ask(x)
