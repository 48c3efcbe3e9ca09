"""Values that a derivative needs, written over before backward: raise if and only if PyTorch does.

And the same question put differently: which operators can be differentiated a second time after
their graph was freed.
"""

import numpy as np
import pytest
import torch
import torch.nn.functional as TF

import monograph as mg
import monograph.nn.functional as MF

A = np.linspace(0.2, 0.9, 6).reshape(2, 3)
B = np.linspace(1.1, 1.8, 6).reshape(2, 3)


def F(library):
    return TF if library is torch else MF


def integers(library, values):
    return library.tensor(values, dtype=library.int64)


# name → (function of the library and its inputs, how many inputs)
OPERATORS = {
    "add": (lambda m, a, b: a + b, 2),
    "sub": (lambda m, a, b: a - b, 2),
    "mul": (lambda m, a, b: a * b, 2),
    "div": (lambda m, a, b: a / b, 2),
    "add a number": (lambda m, a: a + 2.0, 1),
    "mul a number": (lambda m, a: a * 2.0, 1),
    "div by a number": (lambda m, a: a / 2.0, 1),
    "a number divided": (lambda m, a: 2.0 / a, 1),
    "a number minus": (lambda m, a: 2.0 - a, 1),
    "pow 2": (lambda m, a: a**2, 1),
    "pow 3": (lambda m, a: a**3, 1),
    "pow tensor": (lambda m, a, b: a**b, 2),
    "neg": (lambda m, a: -a, 1),
    "abs": (lambda m, a: a.abs(), 1),
    "square": (lambda m, a: m.square(a), 1),
    "exp": (lambda m, a: a.exp(), 1),
    "expm1": (lambda m, a: m.expm1(a), 1),
    "log": (lambda m, a: a.log(), 1),
    "log1p": (lambda m, a: m.log1p(a), 1),
    "sqrt": (lambda m, a: a.sqrt(), 1),
    "rsqrt": (lambda m, a: m.rsqrt(a), 1),
    "reciprocal": (lambda m, a: m.reciprocal(a), 1),
    "sin": (lambda m, a: a.sin(), 1),
    "cos": (lambda m, a: a.cos(), 1),
    "tanh": (lambda m, a: a.tanh(), 1),
    "erf": (lambda m, a: m.erf(a), 1),
    "sigmoid": (lambda m, a: a.sigmoid(), 1),
    "relu": (lambda m, a: a.relu(), 1),
    "silu": (lambda m, a: F(m).silu(a), 1),
    "gelu": (lambda m, a: F(m).gelu(a), 1),
    "leaky_relu": (lambda m, a: F(m).leaky_relu(a, 0.1), 1),
    "softmax": (lambda m, a: a.softmax(1), 1),
    "log_softmax": (lambda m, a: a.log_softmax(1), 1),
    "sum": (lambda m, a: a.sum(), 1),
    "sum over an axis": (lambda m, a: a.sum(1), 1),
    "mean": (lambda m, a: a.mean(), 1),
    "var": (lambda m, a: a.var(1), 1),
    "std": (lambda m, a: a.std(1), 1),
    "prod": (lambda m, a: a.prod(), 1),
    "amax": (lambda m, a: a.amax(1), 1),
    "max": (lambda m, a: a.max(1)[0], 1),
    "logsumexp": (lambda m, a: a.logsumexp(1), 1),
    "matmul": (lambda m, a, b: a @ b.transpose(0, 1), 2),
    "linear": (lambda m, a, b: F(m).linear(a, b), 2),
    "maximum": (lambda m, a, b: m.maximum(a, b), 2),
    "clamp": (lambda m, a: a.clamp(0.3, 0.6), 1),
    "where": (lambda m, a, b: m.where(a > 0.5, a, b), 2),
    "masked_fill": (lambda m, a: a.masked_fill(a > 0.5, 1.0), 1),
    "reshape": (lambda m, a: a.reshape(6), 1),
    "transpose": (lambda m, a: a.transpose(0, 1), 1),
    "slice": (lambda m, a: a[:, 1:], 1),
    "expand": (lambda m, a: a.sum(1).unsqueeze(1).expand(2, 4) * 1.0, 1),
    "cat": (lambda m, a, b: m.cat([a, b], 0), 2),
    "clone": (lambda m, a: a.clone(), 1),
    "mse_loss": (lambda m, a, b: F(m).mse_loss(a, b), 2),
    "l1_loss": (lambda m, a, b: F(m).l1_loss(a, b), 2),
    "layer_norm": (lambda m, a: F(m).layer_norm(a, (3,)), 1),
    "layer_norm with weights": (lambda m, a, b: F(m).layer_norm(a, (3,), b[0], b[1]), 2),
    "batch_norm": (lambda m, a, b: F(m).batch_norm(a, None, None, b[0], b[1], True), 2),
    "tril": (lambda m, a: a.tril(), 1),
    "stack": (lambda m, a, b: m.stack([a, b]), 2),
    "flip": (lambda m, a: a.flip(1), 1),
    "gather": (lambda m, a: m.gather(a, 1, integers(m, [[0, 2], [1, 1]])), 1),
    "index_select": (lambda m, a: m.index_select(a, 1, integers(m, [0, 2])), 1),
    "embedding": (lambda m, a: F(m).embedding(integers(m, [0, 1, 1]), a), 1),
    "cross_entropy": (lambda m, a: F(m).cross_entropy(a, integers(m, [0, 2])), 1),
    "conv1d": (lambda m, a, b: F(m).conv1d(a.unsqueeze(0), b[:, :2].unsqueeze(1), groups=2), 2),
    "avg_pool1d": (lambda m, a: F(m).avg_pool1d(a.unsqueeze(0), 2), 1),
    "max_pool1d": (lambda m, a: F(m).max_pool1d(a.unsqueeze(0), 2), 1),
    "adaptive_avg_pool1d": (lambda m, a: F(m).adaptive_avg_pool1d(a.unsqueeze(0), 1), 1),
    "dropout": (lambda m, a: F(m).dropout(a, 0.5), 1),
    "pad": (lambda m, a: F(m).pad(a, (1, 1)), 1),
    "to": (lambda m, a: a.to(m.float32), 1),
    "addcmul": (lambda m, a, b: m.addcmul(a, a, b), 2),
    "minimum": (lambda m, a, b: m.minimum(a, b), 2),
    "floor": (lambda m, a: a.floor(), 1),
    "sign": (lambda m, a: a.sign(), 1),
    "norm": (lambda m, a: a.norm(), 1),
    "argmax": (lambda m, a: a + a.argmax(), 1),
}


def leaf(library, array):
    made = mg.tensor(array) if library is mg else torch.from_numpy(array.copy())
    return made.requires_grad_()


def raises_when_written(library, name, target, needing):
    """Whether backward raises after an in-place write into an input, or into the result."""
    function, count = OPERATORS[name]
    leaves = [leaf(library, array) for array in (A, B)[:count]]
    inputs = [x + 0.0 if n in needing else x.detach() + 0.0 for n, x in enumerate(leaves)]
    result = function(library, *inputs)
    written = result if target == "result" else inputs[target]
    written.add_(1.0)
    try:
        result.sum().backward()
    except RuntimeError as problem:
        assert "modified by an inplace operation" in str(problem)
        return True
    return False


CASES = [
    (name, target, needing)
    for name, (_, count) in OPERATORS.items()
    for target in ("result", *range(count))
    for needing in ([(0,)] if count == 1 else [(0, 1), (0,), (1,)])
]


@pytest.mark.parametrize("name, target, needing", CASES)
def test_raises_where_pytorch_does(name, target, needing):
    expected = raises_when_written(torch, name, target, needing)
    assert raises_when_written(mg, name, target, needing) == expected


def raises_the_second_time(library, name):
    function, count = OPERATORS[name]
    result = function(library, *[leaf(library, array) for array in (A, B)[:count]])
    result.backward(library.ones_like(result).detach())
    try:
        result.backward(library.ones_like(result).detach())
    except RuntimeError as problem:
        assert "backward through the graph a second time" in str(problem)
        return True
    return False


@pytest.mark.parametrize("name", OPERATORS)
def test_second_backward_raises_where_pytorch_does(name):
    assert raises_the_second_time(mg, name) == raises_the_second_time(torch, name)
