"""Convolution and transposed convolution, each one contraction.

Both are the same triple of affine maps: x[n, c, y·s + k·d − p] meets weight[o, c, k] at
out[n, o, y]. A convolution sums over c and k; the transposed one writes where the other reads. So
derivatives of either are contractions of the same kind, and libraries have all of them.
"""

from __future__ import annotations

from typing import Any

from ..ir import build
from ..ir.node import axis
from ..tensor import Tensor
from .define import operator
from .window import batched, require_positive, spread, window_count


def contraction(
    x: Any, weight: Any, shape: tuple[int, ...], strides: Any, pads: Any, dilations: Any,
    groups: int, transposed: bool = False,
) -> Any:  # fmt: skip
    """out[n, o, y…] += x[n, c, y·s + k·d − p…] · weight[o, c, k…], or with out and x exchanged."""
    narrow = x.shape if transposed else shape  # of the side with one place for each window
    outer, inner = weight.shape[:2]
    kernel = weight.shape[2:]
    rank = len(kernel)
    per_group = outer // groups
    extents = (shape[0], groups, per_group, *narrow[2:], inner, *kernel)
    d = [axis(k, e) for k, e in enumerate(extents)]
    place = d[3 : 3 + rank]
    window = d[4 + rank :]
    channel = d[1] * per_group + d[2]
    reach = [place[k] * strides[k] + window[k] * dilations[k] - pads[k] for k in range(rank)]
    wide = (d[0], d[1] * inner + d[3 + rank], *reach)
    slim = (d[0], channel, *place)
    out, read = (wide, slim) if transposed else (slim, wide)
    return build.contract(
        x, weight, shape, extents, out, read, (channel, d[3 + rank], *window)
    )  # fmt: skip


def _check(
    x: Any, weight: Any, bias: Any, rank: int, groups: int, strides: Any, dilations: Any
) -> None:
    """What both kinds of convolution require."""
    if weight.ndim != rank + 2:
        raise ValueError(f"expected a weight of {rank + 2} axes, got {list(weight.shape)}")
    if x.ndim not in (rank + 1, rank + 2):
        raise ValueError(f"expected an input of {rank + 1} or {rank + 2} axes, got {list(x.shape)}")
    for given, what in ((weight, "weight"), (bias, "bias")):
        if given is not None and given.dtype is not x.dtype:
            raise ValueError(f"{what} is {given.dtype.name}, the input is {x.dtype.name}")
    if groups <= 0:
        raise ValueError(f"groups must be greater than zero, got {groups}")
    require_positive(strides, "stride")
    require_positive(dilations, "dilation")
    require_positive(weight.shape[2:], "the kernel's size")
    if weight.shape[0] % groups or weight.shape[0] < groups:
        raise ValueError(f"weight {list(weight.shape)} does not split into {groups} groups")


def _check_bias(bias: Any, channels: int) -> None:
    if bias is not None and bias.shape != (channels,):
        raise ValueError(f"expected a bias of [{channels}], got {list(bias.shape)}")


def _with_bias(out: Any, bias: Any) -> Any:
    if bias is None:
        return out
    return out + build.reshape(bias, (bias.shape[0], *([1] * (out.ndim - 2))))


def _pads(padding: Any, rank: int, kernel: Any, dilations: Any, strides: Any) -> Any:
    """(padding before, padding after) for each spatial axis."""
    if padding == "same":
        if max(strides) > 1:
            raise ValueError("padding='same' is not supported for strided convolutions")
        both = [d * (k - 1) for k, d in zip(kernel, dilations, strict=True)]
        return [(total // 2, total - total // 2) for total in both]
    if isinstance(padding, str) and padding != "valid":
        raise ValueError(f"padding must be numbers, 'same' or 'valid', got {padding!r}")
    pads = spread(0 if padding == "valid" else padding, rank, "padding")
    if min(pads, default=0) < 0:
        raise ValueError(f"padding must not be negative, got {list(pads)}")
    return [(pad, pad) for pad in pads]


def _convolve(
    rank: int, x: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, groups: int
) -> Any:
    strides, dilations = spread(stride, rank, "stride"), spread(dilation, rank, "dilation")
    _check(x, weight, bias, rank, groups, strides, dilations)
    x, restored = batched(x, rank)
    out_channels, inner, *kernel = weight.shape
    if inner * groups != x.shape[1]:
        raise ValueError(
            f"weight {list(weight.shape)} with {groups} groups does not fit {x.shape[1]} channels"
        )
    _check_bias(bias, out_channels)
    pads = _pads(padding, rank, kernel, dilations, strides)
    sizes = [
        window_count(x.shape[2 + k] + sum(pads[k]), kernel[k], strides[k], 0, dilations[k], False)
        for k in range(rank)
    ]
    before = [pad[0] for pad in pads]
    shape = (x.shape[0], out_channels, *sizes)
    out = contraction(x, weight, shape, strides, before, dilations, groups)
    return restored(_with_bias(out, bias))


def _convolve_transposed(
    rank: int, x: Any, weight: Any, bias: Any, stride: Any, padding: Any, output_padding: Any,
    groups: int, dilation: Any,
) -> Any:  # fmt: skip
    strides, dilations = spread(stride, rank, "stride"), spread(dilation, rank, "dilation")
    pads = spread(padding, rank, "padding")
    more = spread(output_padding, rank, "output_padding")
    _check(x, weight, bias, rank, groups, strides, dilations)
    x, restored = batched(x, rank)
    in_channels, inner, *kernel = weight.shape
    if in_channels != x.shape[1]:
        raise ValueError(f"weight {list(weight.shape)} does not fit {x.shape[1]} channels")
    _check_bias(bias, inner * groups)
    if min(pads, default=0) < 0 or min(more, default=0) < 0:
        raise ValueError("padding and output_padding must not be negative")
    for k in range(rank):
        if more[k] >= max(strides[k], dilations[k]):
            raise ValueError(
                f"output_padding {more[k]} must be smaller than stride {strides[k]} or "
                f"dilation {dilations[k]}"
            )
    sizes = [
        (x.shape[2 + k] - 1) * strides[k] - 2 * pads[k] + dilations[k] * (kernel[k] - 1)
        + more[k] + 1
        for k in range(rank)
    ]  # fmt: skip
    if min(sizes) <= 0:
        raise ValueError(f"the result would have the size {sizes}: the input is too small")
    shape = (x.shape[0], inner * groups, *sizes)
    out = contraction(x, weight, shape, strides, pads, dilations, groups, transposed=True)
    return restored(_with_bias(out, bias))


# --- for each number of spatial axes ------------------------------------------------------------

_AXES = {1: ("L", "K"), 2: ("H, W", "KH, KW"), 3: ("D, H, W", "KD, KH, KW")}


def _publish(rank: int) -> Any:
    """Declare conv1d, conv2d or conv3d."""
    axes, kernel = _AXES[rank]

    def conv(
        x: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Any = 1, padding: Any = 0,
        dilation: Any = 1, groups: int = 1,
    ) -> Any:  # fmt: skip
        return _convolve(rank, x, weight, bias, stride, padding, dilation, groups)

    conv.__name__ = name = f"conv{rank}d"
    conv.__doc__ = f"""Convolution of x [N, C, {axes}] with weight [O, C / groups, {kernel}].

    >>> import monograph as mg
    >>> mg.{name}(mg.ones(1, 2, *[4] * {rank}), mg.ones(3, 2, *[2] * {rank}), stride=2).shape
    Size({[1, 3] + [2] * rank})
    """
    return operator(conv, to=("", "nn.functional"), method=False, widen=False)


def _publish_transposed(rank: int) -> Any:
    """Declare conv_transpose1d, conv_transpose2d or conv_transpose3d."""
    axes, kernel = _AXES[rank]

    def conv_transpose(
        x: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Any = 1, padding: Any = 0,
        output_padding: Any = 0, groups: int = 1, dilation: Any = 1,
    ) -> Any:  # fmt: skip
        return _convolve_transposed(
            rank, x, weight, bias, stride, padding, output_padding, groups, dilation
        )

    conv_transpose.__name__ = name = f"conv_transpose{rank}d"
    conv_transpose.__doc__ = f"""The transpose of conv{rank}d: x [N, C, {axes}], weight [C, O / groups, {kernel}].

    >>> import monograph as mg
    >>> mg.{name}(mg.ones(1, 1, *[4] * {rank}), mg.ones(1, 2, *[2] * {rank}), stride=2).shape
    Size({[1, 2] + [8] * rank})
    """  # noqa: E501
    return operator(conv_transpose, to=("", "nn.functional"), method=False, widen=False)


conv1d, conv2d, conv3d = map(_publish, (1, 2, 3))
conv_transpose1d, conv_transpose2d, conv_transpose3d = map(_publish_transposed, (1, 2, 3))

for _made in (conv1d, conv2d, conv3d, conv_transpose1d, conv_transpose2d, conv_transpose3d):
    _made.operator.saves = {"*": ("x", "weight")}
    _made.operator.lies = "images"
