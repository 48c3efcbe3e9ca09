"""Convolution as one contraction, and pooling as reductions over windows."""

from __future__ import annotations

from typing import Any

from ..ir import build, index
from ..ir.node import axis
from ..tensor import Tensor
from .define import operator


def spread(value: Any, rank: int) -> tuple[int, ...]:
    """One number for every spatial axis, or one each."""
    return (value,) * rank if isinstance(value, int) else tuple(value)


def _output_size(size: int, kernel: int, stride: int, pad: int, dilation: int, up: bool) -> int:
    span = size + 2 * pad - dilation * (kernel - 1) - 1
    result = (-(-span // stride) if up else span // stride) + 1
    if up and (result - 1) * stride >= size + pad:
        result -= 1  # a window must start inside the input or its left padding
    if result <= 0:
        raise ValueError(f"a window of {kernel} does not fit an axis of {size} padded by {pad}")
    return result


@operator(to=None, method=False, widen=False)
def conv(
    x: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Any = 1, padding: Any = 0,
    dilation: Any = 1, groups: int = 1,
) -> Any:  # fmt: skip
    """Convolution over the spatial axes of x [N, C, …] with weight [O, C / groups, …]."""
    rank = weight.ndim - 2
    if x.ndim != rank + 2:
        raise ValueError(f"expected an input of {rank + 2} axes, got {list(x.shape)}")
    n, channels = x.shape[:2]
    out_channels, inner = weight.shape[:2]
    if inner * groups != channels or out_channels % groups:
        raise ValueError(
            f"weight {list(weight.shape)} with {groups} groups does not fit {channels} channels"
        )
    strides, dilations = spread(stride, rank), spread(dilation, rank)
    pads = _same(weight.shape[2:], dilations) if padding == "same" else spread(
        0 if padding == "valid" else padding, rank
    )  # fmt: skip
    sizes = [
        _output_size(x.shape[2 + k], weight.shape[2 + k], strides[k], pads[k], dilations[k], False)
        for k in range(rank)
    ]
    out = contraction(x, weight, (n, out_channels, *sizes), strides, pads, dilations, groups)
    if bias is None:
        return out
    return out + build.reshape(bias, (out_channels, *([1] * rank)))


conv.operator.saves = {"*": ("x", "weight")}


def _same(kernel: tuple[int, ...], dilations: tuple[int, ...]) -> tuple[int, ...]:
    for k, d in zip(kernel, dilations, strict=True):
        if d * (k - 1) % 2:
            raise ValueError("padding='same' needs an odd kernel size here")
    return tuple([d * (k - 1) // 2 for k, d in zip(kernel, dilations, strict=True)])


def contraction(
    x: Any, weight: Any, shape: tuple[int, ...], strides: Any, pads: Any, dilations: Any,
    groups: int,
) -> Any:  # fmt: skip
    """out[n, o, y…] += x[n, c, y·s + k·d − p…] · weight[o, c, k…]."""
    out_channels, inner = weight.shape[:2]
    kernel = weight.shape[2:]
    rank = len(kernel)
    per_group = out_channels // groups
    extents = (shape[0], groups, per_group, *shape[2:], inner, *kernel)
    d = [axis(k, e) for k, e in enumerate(extents)]
    place = d[3 : 3 + rank]
    window = d[4 + rank :]
    channel_out = d[1] * per_group + d[2]
    channel_in = d[1] * inner + d[3 + rank]
    reads = [place[k] * strides[k] + window[k] * dilations[k] - pads[k] for k in range(rank)]
    return build.contract(
        x, weight, shape, extents, (d[0], channel_out, *place), (d[0], channel_in, *reads),
        (channel_out, d[3 + rank], *window),
    )  # fmt: skip


def windows(
    x: Any, kernel: Any, stride: Any, padding: Any, dilation: Any, fill: float, up: bool = False
) -> Any:
    """[N, C, out…, kernel…]: every window of x, `fill` where it reaches into the padding."""
    rank = x.ndim - 2
    kernel, pads, dilations = spread(kernel, rank), spread(padding, rank), spread(dilation, rank)
    strides = kernel if stride is None or stride == () else spread(stride, rank)
    sizes = [
        _output_size(x.shape[2 + k], kernel[k], strides[k], pads[k], dilations[k], up)
        for k in range(rank)
    ]
    shape = (*x.shape[:2], *sizes, *kernel)
    i = [axis(k, e) for k, e in enumerate(shape)]
    reads = [i[2 + k] * strides[k] + i[2 + rank + k] * dilations[k] - pads[k] for k in range(rank)]
    guard = tuple(c for k in range(rank) for c in index.within(reads[k], x.shape[2 + k]))
    return build.reindex(x, shape, (i[0], i[1], *reads), guard, fill)


@operator(to=None, method=False)
def max_pool(
    x: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1,
    ceil_mode: bool = False,
) -> Any:  # fmt: skip
    """The largest element of each window."""
    rank = x.ndim - 2
    seen = windows(x, kernel_size, stride, padding, dilation, float("-inf"), ceil_mode)
    return build.reduce("max", seen, range(2 + rank, 2 + 2 * rank))


@operator(to=None, method=False)
def avg_pool(
    x: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Any:  # fmt: skip
    """The mean of each window."""
    rank = x.ndim - 2
    axes = range(2 + rank, 2 + 2 * rank)
    seen = windows(x, kernel_size, stride, padding, 1, 0.0, ceil_mode)
    total = build.reduce("add", seen, axes)
    number = 1
    for extent in spread(kernel_size, rank):
        number *= extent
    if count_include_pad and not ceil_mode:
        return total * (1.0 / number)
    # Each window is divided by how many of its places lie inside, or inside the padding.
    inside = build.full(x.shape, 1.0, x.dtype)
    beside = 1.0 if count_include_pad else 0.0
    counted = windows(inside, kernel_size, stride, padding, 1, beside, ceil_mode)
    if count_include_pad:
        counted = build.select(_in_padding(x, counted, stride, kernel_size, padding), counted, 0.0)
    return total / build.reduce("add", counted, axes)


avg_pool.operator.saves = {"x": ("x",)}


def _in_padding(x: Any, seen: Any, stride: Any, kernel: Any, padding: Any) -> Any:
    """Which places of the windows `seen` are before the end of the padding."""
    rank = x.ndim - 2
    strides = spread(kernel if stride is None or stride == () else stride, rank)
    result: Any = None
    for k, pad in enumerate(spread(padding, rank)):
        start = build.coordinate(seen.shape, 2 + k) * strides[k]
        place = start + build.coordinate(seen.shape, 2 + rank + k)
        here = place < x.shape[2 + k] + 2 * pad
        result = here if result is None else getattr(build.functions, "and")(result, here)
    return result


@operator(to=None, method=False)
def adaptive_avg_pool(x: Tensor, output_size: Any) -> Any:
    """The mean over equal blocks, so that the result has output_size."""
    rank = x.ndim - 2
    sizes = spread(output_size, rank)
    for k in range(rank):
        if x.shape[2 + k] % sizes[k]:
            raise ValueError(
                f"adaptive pooling of an axis of {x.shape[2 + k]} to {sizes[k]}: "
                "only sizes that divide it are supported"
            )
    kernel = tuple([x.shape[2 + k] // sizes[k] for k in range(rank)])
    return avg_pool(x, kernel)
