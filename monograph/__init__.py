"""Monograph: deep learning in one graph. `import monograph as mg`."""

from __future__ import annotations

from . import autograd, nn, optim
from .autograd import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    no_grad,
    set_grad_enabled,
)
from .config import config
from .explain import explain, explain_last
from .ir.dtypes import (
    DType,
    bool_,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
)
from .jit import jit
from .modes import eager, eval, synchronize
from .ops.activation import log_softmax, relu, sigmoid, softmax
from .ops.creation import manual_seed, rand, rand_like, randn, randn_like
from .ops.index import gather, index_select
from .ops.math import (
    abs,
    add,
    ceil,
    clamp,
    cos,
    div,
    eq,
    erf,
    exp,
    expm1,
    floor,
    ge,
    gt,
    isnan,
    le,
    log,
    log1p,
    lt,
    maximum,
    minimum,
    mul,
    ne,
    neg,
    pow,
    reciprocal,
    round,
    rsqrt,
    sign,
    sin,
    sqrt,
    square,
    sub,
    tanh,
    where,
)
from .ops.matmul import matmul
from .ops.methods import (
    arange,
    chunk,
    flip,
    full,
    full_like,
    max,
    min,
    ones,
    ones_like,
    permute,
    reshape,
    split,
    stack,
    unbind,
    zeros,
    zeros_like,
)
from .ops.random import Generator
from .ops.reduce import all, amax, amin, any, argmax, argmin, logsumexp, mean, prod, std, sum, var
from .ops.shape import cat, flatten, squeeze, transpose, tril, triu, unsqueeze
from .stats import stats
from .tensor import Parameter, Tensor, from_numpy, tensor


def __getattr__(name: str) -> object:
    """`mg.data` is loaded when it is first used: it brings worker processes and NumPy's random."""
    if name == "data":
        import importlib

        return importlib.import_module(".data", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
