"""Activations, softmax and attention."""

from __future__ import annotations

import math
from typing import Any

from ..ir import build
from ..tensor import Tensor
from .define import Scalar, operator
from .math import floating
from .matmul import matmul
from .random import drop
from .reduce import axes_of, logsumexp

f = build.functions


@operator(to=("", "nn.functional"), inplace=True)
def relu(x: Tensor) -> Any:
    """max(x, 0)."""
    return build.select(x <= 0, build.const(0, x.dtype), x)


@relu.derivative
def _(g: Any, y: Any, x: Any) -> Any:
    return (build.select(y <= 0, 0.0, g),)  # so that NaN passes, as in PyTorch


@operator(to=("", "nn.functional"), inplace=True)
def sigmoid(x: Tensor) -> Any:
    """1 / (1 + exp(-x))."""
    return 1.0 / (1.0 + f.exp(-floating(x)))


@sigmoid.derivative
def _(g: Any, y: Any, x: Any) -> Any:
    return (g * f.conj(y * (1.0 - y)),)


@operator(to="nn.functional", method=False)
def silu(x: Tensor) -> Any:
    """x · sigmoid(x)."""
    return x * sigmoid(x)


@silu.derivative
def _(g: Any, y: Any, x: Any) -> Any:
    # By way of exp(-x) this would be infinity · 0 where x is far below zero.
    share = sigmoid(x)
    return (g * f.conj(share * (1.0 + x * (1.0 - share))),)


@operator(to="nn.functional", method=False)
def leaky_relu(x: Tensor, negative_slope: Scalar = 0.01) -> Any:
    """x, or negative_slope · x below zero."""
    return build.select(x > 0, x, x * negative_slope)


@operator(to="nn.functional", method=False)
def gelu(x: Tensor, approximate: str = "none") -> Any:
    """x · Φ(x), exactly by erf or by the tanh formula."""
    if approximate == "tanh":
        inner = (x + x * x * x * 0.044715) * math.sqrt(2.0 / math.pi)
        return x / (f.exp(inner * -2.0) + 1.0)  # (1 + tanh(u)) / 2 is 1 / (1 + exp(-2u))
    if approximate != "none":
        raise ValueError(f"approximate must be 'none' or 'tanh', got {approximate!r}")
    return x * 0.5 * (f.erf(x * math.sqrt(0.5)) + 1.0)


@operator(to=("", "nn.functional"))
def softmax(x: Tensor, dim: int) -> Any:
    """exp(x) normalised to sum 1 along dim."""
    axes = axes_of(x, dim)
    e = f.exp(x - build.apply("detach", build.reduce("max", x, axes, True)))
    return e / build.reduce("add", e, axes, True)


@softmax.derivative
def _(g: Any, y: Any, x: Any, dim: int) -> Any:
    inner = g * y
    return (inner - y * build.reduce("add", inner, axes_of(x, dim), True),)


@operator(to=("", "nn.functional"))
def log_softmax(x: Tensor, dim: int) -> Any:
    """log(softmax(x))."""
    return x - logsumexp(x, dim, True)


@log_softmax.derivative
def _(g: Any, y: Any, x: Any, dim: int) -> Any:
    return (g - f.exp(y) * build.reduce("add", g, axes_of(x, dim), True),)


@operator(to=None, method=False)
def attention(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None, causal: bool = False,
    scale: Scalar = 1.0, dropout: Scalar = None, seed: Scalar = 0, offset: Scalar = 0,
) -> Any:  # fmt: skip
    """softmax(query · keyᵀ · scale + mask) · value over the last two axes."""
    order = [*range(key.ndim - 2), key.ndim - 1, key.ndim - 2]
    scores = matmul(query, build.permute(key, order)) * scale
    if mask is not None and mask.dtype.name == "bool":
        scores = build.select(mask, scores, float("-inf"))
    elif mask is not None:
        scores = scores + mask
    if causal:
        rank = scores.ndim
        seen = build.coordinate(scores.shape, rank - 1) <= build.coordinate(scores.shape, rank - 2)
        scores = build.select(seen, scores, float("-inf"))
    weights = softmax(scores, -1)
    if dropout is not None:
        weights = drop(weights, dropout, seed, offset)
    return matmul(weights, value)
