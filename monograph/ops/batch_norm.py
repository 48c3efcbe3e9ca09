"""Batch norm and instance norm: normalisation per channel, with running statistics."""

from __future__ import annotations

from typing import Any

from ..autograd.modes import no_grad
from ..errors import OperandError
from ..ir import build
from ..ir.extent import is_one
from ..ir.node import axis
from ..tensor import Tensor
from .creation import zeros
from .define import Scalar, Tensors, function, operator
from .norm import affine, layer_norm, moments, per_channel, require_dtypes
from .reduce import count

f = build.functions


def _batch_axes(x: Any) -> tuple[int, ...]:
    """All axes but the channels, of which each must have more than one value."""
    if x.ndim < 2:
        raise ValueError(f"batch norm takes [N, C, …], got {list(x.shape)}")
    if count(x, (0, *range(2, x.ndim))) == 1:
        raise ValueError(f"batch norm needs more than one value per channel, got {list(x.shape)}")
    return (0, *range(2, x.ndim))


def channel_moments(x: Any, eps: Any) -> tuple[Any, Any, Any]:
    """(mean, biased variance, normalised x) per channel, from two sums taken in one pass.

    Both are of distances from a pivot, the channel's first value, so that a large mean does not
    swallow a small variance. Neither depends on it, so no derivative passes through it.
    """
    axes = _batch_axes(x)
    share = 1.0 / count(x, axes)
    first = [0 if k in axes else axis(k, size) for k, size in enumerate(x.shape)]
    shape = tuple([1 if k in axes else size for k, size in enumerate(x.shape)])
    pivot = build.apply("detach", build.reindex(x, shape, first))
    distance = x - pivot
    shift = build.reduce("add", distance, axes, True) * share
    spread = build.reduce("add", distance * distance, axes, True) * share - shift * shift
    variance = build.select(spread < 0, build.const(0, x.dtype), spread)
    return pivot + shift, variance, (distance - shift) * (1.0 / f.sqrt(variance + eps))


@operator(to=None, method=False)
def batch_norm_training(
    x: Tensor, weight: Tensor | None = None, bias: Tensor | None = None, eps: Scalar = 1e-5
) -> Any:
    """x [N, C, …] normalised over all axes but the channels."""
    require_dtypes(x, weight, bias)
    if x.size == 0:
        return x
    _, _, y = channel_moments(x, eps)
    return build.cast(affine(y, per_channel(weight, x), per_channel(bias, x)), x.dtype)


@batch_norm_training.derivative
def _(g: Any, y: Any, x: Any, weight: Any, bias: Any, eps: Any) -> Any:
    # Two sums per channel, taken in one pass, are all that the second pass needs.
    if x.size == 0:
        return [g, *[build.full(v.shape, 0, v.dtype) for v in (weight, bias) if v is not None]]
    axes = _batch_axes(x)
    share = 1.0 / count(x, axes)
    mean, variance, normal = channel_moments(x, eps)
    scale = 1.0 / f.sqrt(variance + eps)
    level = build.reduce("add", g, axes, True)
    slope = build.reduce("add", g * (x - mean), axes, True) * scale
    inner = g - level * share - normal * (slope * share)
    channels = (x.shape[1],)
    parts = [inner * (scale if weight is None else scale * per_channel(weight, x))]
    if weight is not None:
        parts.append(build.reshape(slope, channels))
    if bias is not None:
        parts.append(build.reshape(level, channels))
    return parts


batch_norm_training.operator.saves = {"*": ("x", "weight", "moments")}
batch_norm_training.operator.lies = "images"


@operator(to=None, method=False, smooth=False)
def batch_statistics(x: Tensor) -> Any:
    """(mean, unbiased variance) per channel, for running averages: no derivative passes."""
    axes = _batch_axes(x)
    number = count(x, axes)
    mean, variance, _ = channel_moments(x, 0.0)
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
    require_dtypes(x, mean, variance, weight, bias)
    if x.size == 0:
        return x
    scale = 1.0 / f.sqrt(variance + eps)
    y = (x - per_channel(mean, x)) * per_channel(scale, x)
    return build.cast(affine(y, per_channel(weight, x), per_channel(bias, x)), x.dtype)


batch_norm_inference.operator.lies = "images"


def _move(running: Any, news: Any, momentum: Any) -> None:
    """Move running averages, of which either may be absent, towards those of this batch."""
    pairs = [(old, new) for old, new in zip(running, news, strict=True) if old is not None]
    averages, chosen = zip(*pairs, strict=True)
    moved = running_average(averages, chosen, momentum)
    for target, new in zip(averages, moved if len(averages) > 1 else (moved,), strict=True):
        target._write(new if new.dtype is target.dtype else new.to(target.dtype), fresh=True)


def _require_statistics(x: Tensor, given: Tensor) -> None:
    try:
        require_dtypes(x, given)
    except ValueError as problem:
        raise OperandError(f"batch_norm: {problem}") from None


@function(to="nn.functional")
def batch_norm(
    input: Tensor, running_mean: Tensor | None, running_var: Tensor | None,
    weight: Tensor | None = None, bias: Tensor | None = None, training: bool = False,
    momentum: Any = 0.1, eps: float = 1e-5,
) -> Tensor:  # fmt: skip
    """x [N, C, …] normalised per channel; in training the running statistics are updated in place.

    >>> import monograph as mg
    >>> F = mg.nn.functional
    >>> F.batch_norm(mg.ones(2, 3), None, None, training=True).sum().item()
    0.0
    """
    if not training:
        if running_mean is None or running_var is None:
            raise OperandError("batch_norm in evaluation needs running_mean and running_var")
        return batch_norm_inference(  # type: ignore[no-any-return]
            input, running_mean, running_var, weight, bias, eps
        )
    for given in (running_mean, running_var):
        if given is not None and given.dtype is not input.dtype:
            _require_statistics(input, given)
    y = batch_norm_training(input, weight, bias, eps)
    if (running_mean is not None or running_var is not None) and 0 not in input._sizes:
        with no_grad():
            _move((running_mean, running_var), batch_statistics(input), momentum)
    return y  # type: ignore[no-any-return]


@function(name="batch_norm")
def batch_norm_in_order(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor | None,
    running_var: Tensor | None, training: bool, momentum: float, eps: float,
    cudnn_enabled: bool = True,
) -> Tensor:  # fmt: skip
    """nn.functional.batch_norm in another order of arguments.

    >>> import monograph as mg
    >>> mg.batch_norm(mg.ones(2, 3), None, None, None, None, True, 0.1, 1e-5).sum().item()
    0.0
    """
    return batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)


@operator(to=None, method=False, name="native_batch_norm")
def with_statistics(x: Tensor, weight: Tensor | None, bias: Tensor | None, eps: Scalar) -> Any:
    """(batch norm of x, mean, 1 / deviation) per channel."""
    mean, variance, y = channel_moments(x, eps)
    channels = (x.shape[1],)
    scale = 1.0 / f.sqrt(variance + eps)
    y = build.cast(affine(y, per_channel(weight, x), per_channel(bias, x)), x.dtype)
    return y, build.reshape(mean, channels), build.reshape(scale, channels)


@function
def native_batch_norm(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor | None,
    running_var: Tensor | None, training: bool, momentum: float, eps: float,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """Batch norm with the mean and 1 / deviation that it used; both empty in evaluation.

    >>> import monograph as mg
    >>> mg.native_batch_norm(mg.ones(2, 1), None, None, None, None, True, 0.1, 1e-5)[1].tolist()
    [1.0]
    """
    if not training:
        y = batch_norm(input, running_mean, running_var, weight, bias, False, momentum, eps)
        with no_grad():
            none = zeros(0, dtype=input.dtype)
        return y, none, none
    made = with_statistics(input, weight, bias, eps)
    if running_mean is not None or running_var is not None:
        with no_grad():
            _move((running_mean, running_var), batch_statistics(input), momentum)
    return made  # type: ignore[no-any-return]


# --- instance norm ------------------------------------------------------------------------------


def _spatial(x: Any) -> int:
    """How many numbers an instance (one channel of one sample) has: more than one."""
    if x.ndim < 3:
        raise ValueError(f"expected an input [N, C, L, …], got {list(x.shape)}")
    number = count(x, tuple(range(2, x.ndim)))
    if is_one(number):
        raise ValueError(
            f"instance norm needs more than one number in an instance, got {list(x.shape)}"
        )
    return number


@operator(to=None, method=False, name="instance_norm")
def by_instance(x: Tensor, weight: Tensor | None, bias: Tensor | None, eps: Scalar) -> Any:
    """Each channel of each sample normalised by itself."""
    require_dtypes(x, weight, bias)
    number = _spatial(x)
    rows = build.reshape(x, (x.shape[0], x.shape[1], number))
    y = build.reshape(layer_norm(rows, (number,), None, None, eps), x.shape)
    return build.cast(affine(y, per_channel(weight, x), per_channel(bias, x)), x.dtype)


by_instance.operator.saves = {"*": ("x", "weight", "moments")}


@operator(to=None, method=False, smooth=False)
def instance_statistics(x: Tensor) -> Any:
    """(mean, unbiased variance) per channel: those of the samples, averaged."""
    number = _spatial(x)
    mean, variance, _ = moments(x, tuple(range(2, x.ndim)), 0.0)
    share = 1.0 / max(x.shape[0], 1)
    both = [build.reshape(v, x.shape[:2]) for v in (mean, variance * (number / (number - 1)))]
    return tuple([build.reduce("add", v, (0,)) * share for v in both])


@function(to="nn.functional")
def instance_norm(
    input: Tensor, running_mean: Tensor | None = None, running_var: Tensor | None = None,
    weight: Tensor | None = None, bias: Tensor | None = None, use_input_stats: bool = True,
    momentum: float = 0.1, eps: float = 1e-5,
) -> Tensor:  # fmt: skip
    """x [N, C, …] with each channel of each sample normalised by itself.

    >>> import monograph as mg
    >>> mg.nn.functional.instance_norm(mg.zeros(1, 2, 3)).sum().item()
    0.0
    """
    if not use_input_stats:
        return batch_norm(input, running_mean, running_var, weight, bias, False, momentum, eps)
    y = by_instance(input, weight, bias, eps)
    if running_mean is not None or running_var is not None:
        with no_grad():
            _move((running_mean, running_var), instance_statistics(input), momentum)
    return y  # type: ignore[no-any-return]
