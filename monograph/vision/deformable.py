"""Convolutions whose kernels reach to places that are computed: each point has its own offset."""

from __future__ import annotations

import math
from typing import Any

import monograph as mg

from .. import nn
from ..tensor import Tensor


def _pair(size: Any) -> tuple[int, int]:
    return (size, size) if isinstance(size, int) else (size[0], size[1])


def deform_conv2d(
    input: Tensor, offset: Tensor, weight: Tensor, bias: Tensor | None = None,  # noqa: A002
    stride: Any = 1, padding: Any = 0, dilation: Any = 1, mask: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """A convolution that reads its input off the grid, bilinearly, and 0 outside.

    `offset` [N, 2 · groups · kh · kw, oh, ow] says by how many rows and columns each point of the
    kernel is moved at each place, `mask` [N, groups · kh · kw, oh, ow] how much it counts.

    >>> import monograph as mg
    >>> x, weight = mg.rand(1, 2, 5, 5), mg.rand(3, 2, 3, 3)
    >>> y = mg.vision.ops.deform_conv2d(x, mg.zeros(1, 18, 3, 3), weight)
    >>> mg.allclose(y, mg.nn.functional.conv2d(x, weight), atol=1e-5)
    True
    """
    count, channels, height, width = input.shape
    outer, inner, kh, kw = weight.shape
    points = kh * kw
    groups = offset.shape[1] // (2 * points)
    if groups == 0:
        raise RuntimeError(
            "the shape of the offset tensor at dimension 1 is not valid. It should be a multiple "
            f"of 2 * weight.size[2] * weight.size[3].\nGot offset.shape[1]={offset.shape[1]}, "
            f"while 2 * weight.size[2] * weight.size[3]={2 * points}"
        )
    oh, ow = offset.shape[-2:]
    ys, xs = _places(offset, (kh, kw), _pair(stride), _pair(padding), _pair(dilation))
    flat = input.reshape(count, groups, channels // groups, height * width)
    columns = _sampled(flat, ys, xs, height, width)  # [N, groups, C / groups, points, oh, ow]
    if mask is not None:
        columns = columns * mask.reshape(count, groups, 1, points, oh, ow)
    # Groups of weights are other ones than groups of offsets.
    parts = channels // inner
    columns = columns.reshape(count, parts, inner * points, oh * ow)
    kernels = weight.reshape(parts, outer // parts, inner * points)
    made = (kernels @ columns).reshape(count, outer, oh, ow)
    return made if bias is None else made + bias[:, None, None]


def _places(
    offset: Tensor, kernel: tuple[int, int], stride: tuple[int, int], padding: tuple[int, int],
    dilation: tuple[int, int],
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """The rows and columns that are read: each [N, groups, points, oh, ow]."""
    count, _, *out = offset.shape
    points = kernel[0] * kernel[1]
    moved = offset.reshape(count, -1, points, 2, *out)

    def grid(k: int) -> Tensor:
        starts = mg.arange(out[k], dtype=offset.dtype) * stride[k] - padding[k]
        steps = mg.arange(kernel[k], dtype=offset.dtype) * dilation[k]
        shape = [1, 1, 1, 1]  # kernel's rows and columns, places' rows and columns
        shape[k] = kernel[k]
        at = [1, 1, 1, 1]
        at[2 + k] = out[k]
        whole = steps.reshape(shape) + starts.reshape(at)
        return whole.expand(*kernel, *out).reshape(points, *out)

    return moved[:, :, :, 0] + grid(0), moved[:, :, :, 1] + grid(1)


def _sampled(flat: Tensor, ys: Tensor, xs: Tensor, height: int, width: int) -> Tensor:
    """Values of maps [N, groups, C, H · W] at places [N, groups, points, oh, ow]."""
    top, left = ys.floor().detach(), xs.floor().detach()
    down, right = ys - top, xs - left
    shape = (*flat.shape[:3], *ys.shape[2:])
    made: Any = 0.0
    for row, share in ((top, 1 - down), (top + 1, down)):
        for column, part in ((left, 1 - right), (left + 1, right)):
            inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
            place = row.clamp(0, height - 1) * width + column.clamp(0, width - 1)
            index = place.long().flatten(2)[:, :, None].expand(-1, -1, flat.shape[2], -1)
            weight = (share * part * inside)[:, :, None]
            made = made + flat.gather(3, index).reshape(shape) * weight
    return made


class DeformConv2d(nn.Module):
    """`deform_conv2d` as a layer; the offsets come from another one.

    >>> import monograph as mg
    >>> layer = mg.vision.ops.DeformConv2d(2, 4, 3, padding=1)
    >>> layer(mg.zeros(1, 2, 5, 5), mg.zeros(1, 18, 5, 5)).shape
    Size([1, 4, 5, 5])
    """

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1,
        padding: Any = 0, dilation: Any = 1, groups: int = 1, bias: bool = True,
    ) -> None:  # fmt: skip
        super().__init__()
        if in_channels % groups:
            raise ValueError("in_channels must be divisible by groups")
        if out_channels % groups:
            raise ValueError("out_channels must be divisible by groups")
        self.in_channels, self.out_channels, self.groups = in_channels, out_channels, groups
        self.kernel_size, self.stride = _pair(kernel_size), _pair(stride)
        self.padding, self.dilation = _pair(padding), _pair(dilation)
        self.weight = nn.Parameter(mg.empty(out_channels, in_channels // groups, *self.kernel_size))
        if bias:
            self.bias = nn.Parameter(mg.empty(out_channels))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """New weights, as of a convolution."""
        nn.init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            reach = 1 / math.sqrt(self.weight[0].numel())
            nn.init.uniform_(self.bias, -reach, reach)

    def forward(self, input: Tensor, offset: Tensor, mask: Tensor | None = None) -> Tensor:  # noqa: A002
        """The convolution with these offsets."""
        return deform_conv2d(
            input, offset, self.weight, self.bias, self.stride, self.padding, self.dilation, mask
        )

    def extra_repr(self) -> str:
        """The settings."""
        return (
            f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, "
            f"stride={self.stride}"
        )
