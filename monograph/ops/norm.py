"""Normalisation over the last axes, over groups of channels, and by the root mean square."""

from __future__ import annotations

from typing import Any

from ..ir import build
from ..ir.dtypes import float32
from ..ir.extent import is_one
from ..ir.index import within
from ..ir.limits import finfo
from ..ir.node import coordinates
from ..tensor import Tensor
from .define import Scalar, operator
from .reduce import count

f = build.functions


def _last_axes(x: Any, normalized_shape: Any) -> tuple[int, ...]:
    """The axes that are normalised together: the last ones, of these sizes."""
    sizes = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
    rank = len(sizes)
    if not rank or tuple(x.shape[max(x.ndim - rank, 0) :]) != sizes:
        raise ValueError(
            f"normalized_shape {list(sizes)} must be the last sizes of {list(x.shape)}"
        )
    return tuple(range(x.ndim - rank, x.ndim))


def require_dtypes(x: Any, *parameters: Any) -> None:
    """Parameters have the input's dtype; beside inputs of 16 bits they may be float32."""
    for given in parameters:
        if given is None or given.dtype is x.dtype:
            continue
        if given.dtype is not float32:
            raise ValueError(
                f"mixed dtype: expect parameter to have scalar type of Float, "
                f"got {given.dtype.name} beside an input of {x.dtype.name}"
            )
        if x.dtype.is_smooth and not x.dtype.is_half:
            raise ValueError(
                f"mixed dtype: all inputs must share same datatype, "
                f"got {x.dtype.name} and {given.dtype.name}"
            )
    if not x.dtype.is_smooth:
        raise NotImplementedError(f"normalisation is not implemented for {x.dtype.name}")


def _require_affine(shape: tuple[int, ...], *parameters: Any) -> None:
    for given in parameters:
        if given is not None and tuple(given.shape) != shape:
            raise ValueError(f"weight and bias must be {list(shape)}, got {list(given.shape)}")


@operator(to=("", "nn.functional"), method=False)
def layer_norm(
    x: Tensor, normalized_shape: tuple[int, ...], weight: Tensor | None = None,
    bias: Tensor | None = None, eps: Scalar = 1e-5,
) -> Any:  # fmt: skip
    """x centred and scaled over its last axes, then weight · x + bias.

    >>> import monograph as mg
    >>> mg.layer_norm(mg.tensor([1.0, 1.0]), (2,)).tolist()
    [0.0, 0.0]
    """
    axes = _last_axes(x, normalized_shape)
    _require_affine(tuple(x.shape[axes[0] :]), weight, bias)
    require_dtypes(x, weight, bias)
    _, _, y = moments(x, axes, eps)
    return build.cast(affine(y, weight, bias), x.dtype)  # of 16 bits, beside weights of 32


@layer_norm.derivative
def _(g: Any, y: Any, x: Any, normalized_shape: Any, weight: Any, bias: Any, eps: Any) -> Any:
    # All sums over a row need only its mean: they are taken in one pass, with the variance.
    axes = _last_axes(x, normalized_shape)
    rows = tuple(range(axes[0]))
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


@operator(to=("", "nn.functional"), method=False)
def rms_norm(
    x: Tensor, normalized_shape: tuple[int, ...], weight: Tensor | None = None,
    eps: Scalar | None = None,
) -> Any:  # fmt: skip
    """x divided by the root of the mean of its squares over the last axes, times weight.

    >>> import monograph as mg
    >>> mg.rms_norm(mg.tensor([2.0, 2.0]), (2,)).tolist()
    [1.0, 1.0]
    """
    axes = _last_axes(x, normalized_shape)
    _require_affine(tuple(x.shape[axes[0] :]), weight)
    if eps is None:
        eps = finfo(x.dtype).eps
    squares = build.reduce("add", x * x, axes, True) * (1.0 / max(count(x, axes), 1))
    return affine(x * (1.0 / f.sqrt(squares + eps)), weight, None)


rms_norm.operator.saves = lambda kinds, _: (
    {"*": ("copies", "weight")}
    if kinds[0].dtype.is_half
    else None  # PyTorch first makes them float32
)


def per_channel(v: Any, x: Any) -> Any:
    """A vector of channels so that it meets axis 1 of x; or None."""
    if v is None:
        return None
    if v.size != x.shape[1]:
        raise ValueError(f"{v.size} numbers do not fit the channels of {list(x.shape)}")
    return build.reshape(v, (x.shape[1], *([1] * (x.ndim - 2))))


def _group_axes(x: Any, num_groups: int) -> tuple[int, int, int]:
    """(samples, groups, numbers in a group) of x [N, C, …]."""
    if x.ndim < 2:
        raise ValueError(f"expected an input [N, C, …], got {list(x.shape)}")
    if num_groups <= 0 or x.shape[1] % num_groups:
        raise ValueError(f"{x.shape[1]} channels do not make {num_groups} equal groups")
    inner = count(x, tuple(range(1, x.ndim))) // num_groups
    return x.shape[0], num_groups, inner


@operator(to=("", "nn.functional"), method=False)
def group_norm(
    x: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None,
    eps: Scalar = 1e-5,
) -> Any:  # fmt: skip
    """x [N, C, …] normalised over each group of channels, then weight · x + bias per channel.

    >>> import monograph as mg
    >>> mg.group_norm(mg.ones(1, 4, 2), 2).sum().item()
    0.0
    """
    samples, groups, inner = _group_axes(x, num_groups)
    require_dtypes(x, weight, bias)
    if is_one(samples * inner):
        raise ValueError(f"group norm needs more than one value per group, got {list(x.shape)}")
    rows = build.reshape(x, (samples, groups, inner))
    y = build.reshape(layer_norm(rows, (inner,), None, None, eps), x.shape)
    return build.cast(affine(y, per_channel(weight, x), per_channel(bias, x)), x.dtype)


group_norm.operator.lies = "images"


@operator(to=("", "nn.functional"), method=False)
def local_response_norm(
    x: Tensor, size: int, alpha: Scalar = 1e-4, beta: Scalar = 0.75, k: Scalar = 1.0
) -> Any:
    """x divided by (k + alpha · mean of squares of `size` neighbouring channels) ** beta.

    >>> import monograph as mg
    >>> mg.nn.functional.local_response_norm(mg.ones(1, 3, 2), 2, alpha=0.0).sum().item()
    6.0
    """
    if x.ndim < 3:
        raise ValueError(f"expected an input of 3 or more axes, got {list(x.shape)}")
    if x.size == 0:
        return x
    near = (*x.shape, size)
    here = coordinates(near)
    place = here[1] + here[-1] - size // 2
    where = (here[0], place, *here[2:-1])
    squares = build.reindex(x * x, near, where, within(place, x.shape[1]))
    total = build.reduce("add", squares, (x.ndim,))
    # Integers are averaged to integers, as PyTorch's pooling does.
    mean = total * (1.0 / size) if x.dtype.is_floating_point else total // size
    return x / f.pow(mean * alpha + k, beta)


local_response_norm.operator.saves = {"x": ("x",)}


# --- with the statistics ------------------------------------------------------------------------


def _with_statistics(x: Any, axes: tuple[int, ...], eps: Any) -> tuple[Any, Any, Any]:
    """(normalised x, mean, 1 / deviation)."""
    mean, variance, y = moments(x, axes, eps)
    return y, mean, 1.0 / f.sqrt(variance + eps)


@operator(method=False)
def native_layer_norm(
    x: Tensor, normalized_shape: tuple[int, ...], weight: Tensor | None, bias: Tensor | None,
    eps: Scalar,
) -> Any:  # fmt: skip
    """layer_norm with the mean and 1 / deviation of each row.

    >>> import monograph as mg
    >>> mg.native_layer_norm(mg.ones(2, 3), (3,), None, None, 1e-5)[1].tolist()
    [[1.0], [1.0]]
    """
    axes = _last_axes(x, normalized_shape)
    _require_affine(tuple(x.shape[axes[0] :]), weight, bias)
    y, mean, scale = _with_statistics(x, axes, eps)
    return affine(y, weight, bias), mean, scale


@operator(method=False)
def native_group_norm(
    x: Tensor, weight: Tensor | None, bias: Tensor | None, N: int, C: int, HxW: int, group: int,
    eps: Scalar,
) -> Any:  # fmt: skip
    """group_norm with the mean and 1 / deviation of each group.

    >>> import monograph as mg
    >>> mg.native_group_norm(mg.ones(1, 2, 3), None, None, 1, 2, 3, 2, 1e-5)[1].tolist()
    [[1.0, 1.0]]
    """
    samples, groups, inner = _group_axes(x, group)
    rows = build.reshape(x, (samples, groups, inner))
    y, mean, scale = _with_statistics(rows, (2,), eps)
    y = affine(build.reshape(y, x.shape), per_channel(weight, x), per_channel(bias, x))
    return y, build.reshape(mean, (samples, groups)), build.reshape(scale, (samples, groups))
