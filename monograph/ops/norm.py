"""Normalisation."""

from __future__ import annotations

from typing import Any

from ..ir import build
from ..tensor import Tensor
from .define import Scalar, Tensors, operator
from .reduce import count

f = build.functions


@operator(to=None, method=False)
def layer_norm(
    x: Tensor, normalized_shape: tuple[int, ...], weight: Tensor | None = None,
    bias: Tensor | None = None, eps: Scalar = 1e-5,
) -> Any:  # fmt: skip
    """x centred and scaled over its last axes, then weight · x + bias."""
    rank = len(normalized_shape)
    if tuple(x.shape[x.ndim - rank :]) != tuple(normalized_shape):
        raise ValueError(
            f"normalized_shape {list(normalized_shape)} must be the last sizes of {list(x.shape)}"
        )
    axes = tuple(range(x.ndim - rank, x.ndim))
    _, _, y = moments(x, axes, eps)
    return affine(y, weight, bias)


@layer_norm.derivative
def _(g: Any, y: Any, x: Any, normalized_shape: Any, weight: Any, bias: Any, eps: Any) -> Any:
    # All sums over a row need only its mean: they are taken in one pass, with the variance.
    rank = len(normalized_shape)
    axes, rows = tuple(range(x.ndim - rank, x.ndim)), tuple(range(x.ndim - rank))
    share = 1.0 / max(count(x, axes), 1)
    mean, variance, normal = moments(x, axes, eps)
    scale = 1.0 / f.sqrt(variance + eps)
    scaled = g if weight is None else g * weight
    level = build.reduce("add", scaled, axes, True) * share
    slope = build.reduce("add", scaled * (x - mean), axes, True) * share * scale
    parts = [(scaled - level - normal * slope) * scale]
    if weight is not None:
        parts.append(build.reduce("add", g * normal, rows))
    if bias is not None:
        parts.append(build.reduce("add", g, rows))
    return parts


layer_norm.operator.saves = {"*": ("x", "weight", "moments")}


def moments(x: Any, axes: tuple[int, ...], eps: Any) -> tuple[Any, Any, Any]:
    """(mean, biased variance, normalised x) over the axes, which stay with size 1."""
    number = count(x, axes)
    share = 1.0 / number if number else float("nan")
    mean = build.reduce("add", x, axes, True) * share
    centred = x - mean
    variance = build.reduce("add", centred * centred, axes, True) * share
    return mean, variance, centred * (1.0 / f.sqrt(variance + eps))


def affine(y: Any, weight: Any, bias: Any) -> Any:
    """weight · y + bias, either of which may be absent."""
    if weight is not None:
        y = y * weight
    return y if bias is None else y + bias


def _per_channel(v: Any, x: Any) -> Any:
    return None if v is None else build.reshape(v, (x.shape[1], *([1] * (x.ndim - 2))))


def _batch_axes(x: Any) -> tuple[int, ...]:
    """All axes but the channels, of which each must have more than one value."""
    if x.size // max(x.shape[1], 1) <= 1:
        raise ValueError(f"batch norm needs more than one value per channel, got {list(x.shape)}")
    return (0, *range(2, x.ndim))


@operator(to=None, method=False)
def batch_norm_training(
    x: Tensor, weight: Tensor | None = None, bias: Tensor | None = None, eps: Scalar = 1e-5
) -> Any:
    """x [N, C, …] normalised over all axes but the channels."""
    _, _, y = moments(x, _batch_axes(x), eps)
    return affine(y, _per_channel(weight, x), _per_channel(bias, x))


@batch_norm_training.derivative
def _(g: Any, y: Any, x: Any, weight: Any, bias: Any, eps: Any) -> Any:
    # Two sums per channel, taken in one pass, are all that the second pass needs.
    axes = _batch_axes(x)
    share = 1.0 / count(x, axes)
    mean, variance, normal = moments(x, axes, eps)
    scale = 1.0 / f.sqrt(variance + eps)
    level = build.reduce("add", g, axes, True)
    slope = build.reduce("add", g * (x - mean), axes, True) * scale
    inner = g - level * share - normal * (slope * share)
    channels = (x.shape[1],)
    parts = [inner * (scale if weight is None else scale * _per_channel(weight, x))]
    if weight is not None:
        parts.append(build.reshape(slope, channels))
    if bias is not None:
        parts.append(build.reshape(level, channels))
    return parts


batch_norm_training.operator.saves = {"*": ("x", "weight", "moments")}


@operator(to=None, method=False, smooth=False)
def batch_statistics(x: Tensor) -> Any:
    """(mean, unbiased variance) per channel, for running averages: no derivative passes."""
    axes = _batch_axes(x)
    number = count(x, axes)
    mean, variance, _ = moments(x, axes, 0.0)
    channels = (x.shape[1],)
    unbiased = variance * (number / (number - 1))
    return build.reshape(mean, channels), build.reshape(unbiased, channels)


@operator(to=None, method=False, smooth=False)
def running_average(averages: Tensors, news: Tensors, momentum: Tensor | Scalar) -> Any:
    """Each average moved towards its new value by the share `momentum`."""
    return tuple([a + (n - a) * momentum for a, n in zip(averages, news, strict=True)])


@operator(to=None, method=False)
def batch_norm_inference(
    x: Tensor, mean: Tensor, variance: Tensor, weight: Tensor | None = None,
    bias: Tensor | None = None, eps: Scalar = 1e-5,
) -> Any:  # fmt: skip
    """x normalised with the given statistics."""
    scale = 1.0 / f.sqrt(variance + eps)
    y = (x - _per_channel(mean, x)) * _per_channel(scale, x)
    return affine(y, _per_channel(weight, x), _per_channel(bias, x))
