"""Monograph: deep learning in one graph. `import monograph as mg`."""

from __future__ import annotations

from typing import Any

from . import autograd, fft, func, linalg, masked, nn, optim, random, signal, sparse, special
from .autograd import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)
from .config import config
from .control import cond, fori_loop, map, scan, while_loop
from .display import get_printoptions, printoptions, set_printoptions
from .explain import explain, explain_last
from .func import (
    functional_call,
    grad,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    linearize,
    stack_module_state,
    value_and_grad,
    vjp,
    vmap,
)
from .func import jacrev as jacobian
from .ir.dtypes import (
    ALIASES,
    DType,
    bfloat16,
    bool_,
    complex64,
    complex128,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)
from .jit import jit
from .modes import eager, eval, synchronize
from .ops import members
from .ops.random import Generator, default_generator
from .placement import (
    channels_last,
    channels_last_3d,
    contiguous_format,
    device,
    layout,
    memory_format,
    preserve_format,
    sparse_coo,
    strided,
)
from .profiler import profile
from .saving import load, save
from .stats import stats
from .tensor import Parameter, Tensor, from_dlpack, from_numpy, tensor

__version__ = "0.1.0"

globals().update(ALIASES)
globals().update(members(""))


def __getattr__(name: str) -> Any:
    """Parts that are loaded when they are first used, such as `mg.data`, which brings workers."""
    if name in ("amp", "data", "distributions", "torch", "vision"):
        import importlib

        return importlib.import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
