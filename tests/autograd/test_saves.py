"""What derivatives save: after a write to a result or an operand, who raises as PyTorch does.

A generated test. For each operator of the tables a result, or an operand that is a result itself,
is written to before the backward pass. PyTorch raises where its derivative saved what was written.
"""

import warnings

import numpy as np
import pytest
import torch
import torch.nn.functional as TF

import monograph as mg
import monograph.nn.functional as F

from ..ops.elementwise import ELEMENTWISE

A = np.linspace(0.1, 0.9, 9).reshape(3, 3) ** 1.3
B = np.linspace(0.15, 0.8, 9).reshape(3, 3)[::-1].copy()

METHODS = [
    *ELEMENTWISE, "clone", "tril", "triu", "sum", "mean", "prod", "var", "std", "norm", "max",
    "min", "median", "nansum", "nanmean", "diag_embed",
]  # fmt: skip
ALONG = [
    "softmax", "log_softmax", "cumsum", "cumprod", "cummax", "cummin", "logsumexp", "logcumsumexp",
    "sum", "mean", "prod", "var", "std", "amax", "amin", "max", "min", "median", "mode", "sort",
    "diff", "argsort",
]  # fmt: skip
FUNCTIONAL = [
    "relu", "relu6", "elu", "selu", "celu", "leaky_relu", "gelu", "silu", "mish", "softplus",
    "softsign", "softshrink", "hardtanh", "hardswish", "hardsigmoid", "logsigmoid", "tanhshrink",
    "normalize",
]  # fmt: skip
BINARY = [
    "add", "sub", "mul", "div", "true_divide", "pow", "maximum", "minimum", "fmax", "fmin", "atan2",
    "hypot", "copysign", "fmod", "remainder", "xlogy", "logaddexp", "logaddexp2", "matmul", "mm",
    "dist", "kron", "float_power", "ldexp", "cdist",
]  # fmt: skip
LOSSES = ["mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "kl_div"]
LINALG = ["inv", "det", "svdvals", "pinv", "eigvalsh", "eigh", "qr", "svd"]


def integers(m, values):
    return m.tensor(values)


OTHERS = {
    "topk": lambda m, f, a, b: a.topk(2),
    "kthvalue": lambda m, f, a, b: a.kthvalue(2),
    "max, kept axis": lambda m, f, a, b: a.max(1, keepdim=True),
    "min, kept axis": lambda m, f, a, b: a.min(0, keepdim=True),
    "flip": lambda m, f, a, b: a.flip(0),
    "roll": lambda m, f, a, b: a.roll(1, 0),
    "repeat": lambda m, f, a, b: a.repeat(2, 1),
    "renorm": lambda m, f, a, b: a.renorm(2, 0, 1.0),
    "clamp": lambda m, f, a, b: a.clamp(0.3, 0.6),
    "clamp by tensors": lambda m, f, a, b: m.clamp(a, b * 0.5, b),
    "cat": lambda m, f, a, b: m.cat([a, b]),
    "stack": lambda m, f, a, b: m.stack([a, b]),
    "to": lambda m, f, a, b: a.to(m.float64),
    "polygamma": lambda m, f, a, b: m.polygamma(1, a),
    "vector_norm 1": lambda m, f, a, b: m.linalg.vector_norm(a, 1, dim=1),
    "vector_norm 3": lambda m, f, a, b: m.linalg.vector_norm(a, 3, dim=1),
    "vector_norm inf": lambda m, f, a, b: m.linalg.vector_norm(a, float("inf"), dim=1),
    "var_mean": lambda m, f, a, b: m.var_mean(a, dim=1),
    "slogdet": lambda m, f, a, b: m.linalg.slogdet(a)[1],
    "solve": lambda m, f, a, b: m.linalg.solve(a, b),
    "lu_solve": lambda m, f, a, b: m.linalg.lu_solve(a, m.tensor([1, 2, 3], dtype=m.int32), b),
    "ormqr": lambda m, f, a, b: m.ormqr(a, b[0], b),
    "householder_product": lambda m, f, a, b: m.linalg.householder_product(a, b[0]),
    "fftn": lambda m, f, a, b: m.fft.fftn(a),
    "irfft": lambda m, f, a, b: m.fft.irfft(a),
    "scatter_reduce": lambda m, f, a, b: a.scatter_reduce(
        0, m.zeros(3, 3, dtype=m.int64), b, "prod"
    ),
    "masked softmax": lambda m, f, a, b: m.masked.softmax(a, 1, mask=b > 0.4),
    "times a number": lambda m, f, a, b: a * 2.0,
    "over a number": lambda m, f, a, b: a / 2.0,
    "a number over": lambda m, f, a, b: 2.0 / a,
    "to a number": lambda m, f, a, b: a**2.0,
    "a number to": lambda m, f, a, b: 2.0**a,
    "a number minus": lambda m, f, a, b: 1.0 - a,
    "times a constant": lambda m, f, a, b: a * b.detach(),
    "over a constant": lambda m, f, a, b: a / b.detach(),
    "to a constant": lambda m, f, a, b: a ** b.detach(),
    "float_power of a number": lambda m, f, a, b: m.float_power(a, 2.0),
    "dot": lambda m, f, a, b: m.dot(a[0], b[0]),
    "outer": lambda m, f, a, b: m.outer(a[0], b[0]),
    "bmm": lambda m, f, a, b: m.bmm(a[None], b[None]),
    "einsum": lambda m, f, a, b: m.einsum("ij,jk->ik", a, b),
    "addmm": lambda m, f, a, b: m.addmm(a, a, b),
    "where": lambda m, f, a, b: m.where(a > 0.5, a, b),
    "lerp": lambda m, f, a, b: m.lerp(a, b, 0.3),
    "lerp by a tensor": lambda m, f, a, b: m.lerp(a, b, b),
    "addcmul": lambda m, f, a, b: m.addcmul(a, b, a),
    "addcdiv": lambda m, f, a, b: m.addcdiv(a, b, a),
    "masked_fill": lambda m, f, a, b: a.masked_fill(a.detach() > 0.5, 0.0),
    "gather": lambda m, f, a, b: a.gather(1, integers(m, [[0], [1], [2]])),
    "index": lambda m, f, a, b: a[integers(m, [0, 1])],
    "mask": lambda m, f, a, b: a[a.detach() > 0.5],
    "index_select": lambda m, f, a, b: a.index_select(1, integers(m, [0, 1])),
    "index_add": lambda m, f, a, b: a.index_add(0, integers(m, [0, 1, 1]), b),
    "scatter_add": lambda m, f, a, b: a.scatter_add(1, integers(m, [[0, 1, 1]] * 3), b),
    "embedding": lambda m, f, a, b: f.embedding(integers(m, [0, 1, 1]), a),
    "cross_entropy": lambda m, f, a, b: f.cross_entropy(a, integers(m, [0, 1, 1])),
    "nll_loss": lambda m, f, a, b: f.nll_loss(a, integers(m, [0, 1, 1])),
    "binary_cross_entropy": lambda m, f, a, b: f.binary_cross_entropy(a, b.detach()),
    "with logits": lambda m, f, a, b: f.binary_cross_entropy_with_logits(a, b.detach()),
    "cosine_similarity": lambda m, f, a, b: f.cosine_similarity(a, b),
    "cdist 1": lambda m, f, a, b: m.cdist(a, b, p=1.0),
    "linear": lambda m, f, a, b: f.linear(a, b, b[0]),
    "conv1d": lambda m, f, a, b: f.conv1d(a[None], b[:, :, None]),
    "attention": lambda m, f, a, b: f.scaled_dot_product_attention(
        a[None, None], b[None, None], a[None, None]
    ),
    "hardshrink": lambda m, f, a, b: f.hardshrink(a, 0.4),
    "threshold": lambda m, f, a, b: f.threshold(a, 0.4, 0.1),
    "prelu": lambda m, f, a, b: f.prelu(a, b[0]),
    "glu": lambda m, f, a, b: f.glu(a[:, :2]),
    "softmin": lambda m, f, a, b: f.softmin(a, dim=1),
    "dropout": lambda m, f, a, b: f.dropout(a, 0.5),
    "dropout of nothing": lambda m, f, a, b: f.dropout(a, 0.0),
    "layer_norm": lambda m, f, a, b: f.layer_norm(a, (3,), b[0]),
    "rms_norm": lambda m, f, a, b: f.rms_norm(a, (3,), b[0]),
    "group_norm": lambda m, f, a, b: f.group_norm(a, 1, b[0], b[1]),
    "batch_norm": lambda m, f, a, b: f.batch_norm(a, None, None, b[0], b[1], training=True),
    "instance_norm": lambda m, f, a, b: f.instance_norm(a[None]),
    "local_response_norm": lambda m, f, a, b: f.local_response_norm(a[None], 2),
    "avg_pool1d": lambda m, f, a, b: f.avg_pool1d(a[None], 2, 1),
    "max_pool1d": lambda m, f, a, b: f.max_pool1d(a[None], 2, 1),
    "adaptive_avg_pool1d": lambda m, f, a, b: f.adaptive_avg_pool1d(a[None], 2),
    "interpolate": lambda m, f, a, b: f.interpolate(a[None], scale_factor=2.0, mode="linear"),
    "pad": lambda m, f, a, b: f.pad(a, (1, 1)),
    "pad by reflection": lambda m, f, a, b: f.pad(a, (1, 1), mode="reflect"),
    "pad by repetition": lambda m, f, a, b: f.pad(a[None], (1, 1), mode="replicate"),
    "pad around": lambda m, f, a, b: f.pad(a[None], (1, 1), mode="circular"),
}


def table():
    made = dict(OTHERS)
    for name in METHODS:
        made[name] = lambda m, f, a, b, name=name: getattr(a, name)()
    for name in ALONG:
        made[f"{name} along"] = lambda m, f, a, b, name=name: getattr(a, name)(dim=1)
    for name in FUNCTIONAL:
        made[f"F.{name}"] = lambda m, f, a, b, name=name: getattr(f, name)(a)
    for name in BINARY:
        made[f"{name} of two"] = lambda m, f, a, b, name=name: getattr(m, name)(a, b)
    for name in LOSSES:
        made[name] = lambda m, f, a, b, name=name: getattr(f, name)(a, b, reduction="none")
    for name in LINALG:
        made[f"linalg.{name}"] = lambda m, f, a, b, name=name: getattr(m.linalg, name)(a)
    return made


TABLE = table()
WRITES = ["result", "result within no_grad", "first operand", "second operand"]
NO_HALVES = (
    "slogdet", "solve", "lu_solve", "ormqr", "householder_product", "fftn", "irfft",
)  # fmt: skip
MIXED = [name for name in TABLE if "linalg" not in name and "cdist" not in name]


def outcome(m, f, call, write, dtype):
    """ "raises" or "computes", or what else went wrong."""
    given = [m.tensor(v.astype(dtype).tolist(), dtype=getattr(m, dtype)) for v in (A, B)]
    a, b = (t.requires_grad_() * 1 for t in given)
    made = call(m, f, a, b)
    results = [t for t in (made if isinstance(made, tuple) else (made,)) if t.requires_grad]
    if not results:
        return "no derivative"
    target = {"r": results[0], "f": a, "s": b}[write[0]]
    with m.set_grad_enabled(not write.endswith("no_grad")):
        target.add_(1)
    try:
        sum(t.to(m.float64).sum() for t in results).backward()
    except RuntimeError as problem:
        assert "modified by an inplace operation" in str(problem)
        return "raises"
    return "computes"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", TABLE)
def test_writes_raise_as_in_pytorch(name):
    for write in WRITES:
        expected = outcome(torch, TF, TABLE[name], write, "float64")
        assert outcome(mg, F, TABLE[name], write, "float64") == expected, write


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [n for n in MIXED if n not in NO_HALVES])
def test_writes_raise_as_in_pytorch_for_16_bits(name):
    for write in WRITES:
        expected = outcome(torch, TF, TABLE[name], write, "float16")
        assert outcome(mg, F, TABLE[name], write, "float16") == expected, write


def varies(m, f, call):
    """Of the gradients by both operands: whether they require gradients themselves."""
    a, b = (m.tensor(v.tolist(), dtype=m.float64, requires_grad=True) for v in (A, B))
    made = call(m, f, a, b)
    results = [t for t in (made if isinstance(made, tuple) else (made,)) if t.requires_grad]
    if not results:
        return None
    total = sum(t.to(m.float64).sum() for t in results)
    found = m.autograd.grad(total, (a, b), create_graph=True, allow_unused=True)
    return [None if g is None else (g.requires_grad, g.is_leaf) for g in found]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", TABLE)
def test_gradients_that_are_constants(name):
    assert varies(mg, F, TABLE[name]) == varies(torch, TF, TABLE[name])


def test_constants_along_a_chain():
    def program(m):
        x, w = (m.tensor([1.0, 2.0], requires_grad=True) for _ in range(2))
        v = m.tensor([1.0, 1.0], requires_grad=True)
        (a,) = m.autograd.grad((x * 2 + 1).relu().sum(), x, create_graph=True)
        b, c = m.autograd.grad((x * 2).sum() + (w * w).sum(), (x, w), create_graph=True)
        (d,) = m.autograd.grad(x * 3, x, v, create_graph=True)
        (x * 2).sum().backward(create_graph=True)
        flags = [t.requires_grad for t in (a, b, c, d, x.grad)]
        return flags, m.autograd.grad(d.sum(), v)[0].tolist()

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch warns of cycles, once in a process
        expected = program(torch)
    assert program(mg) == expected


def test_equal_medians_share_the_derivative():
    for values in ([1.0, 2.0, 2.0, 3.0], [1.0, float("nan"), 2.0], [5.0]):
        ours, theirs = (m.tensor(values, requires_grad=True) for m in (mg, torch))
        ours.median().backward()
        theirs.median().backward()
        assert ours.grad.tolist() == theirs.grad.tolist()
