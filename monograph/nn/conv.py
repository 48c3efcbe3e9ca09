"""Convolution layers over one, two or three spatial axes, and their transposes."""

from __future__ import annotations

from typing import Any

from ..ir.dtypes import DType
from ..ops.window import spread
from ..tensor import Parameter, Tensor
from . import functional as F
from .linear import fill_as_pytorch
from .module import Module
from .parameter import zeros

_PADDING_MODES = ("zeros", "reflect", "replicate", "circular")


class _Layer(Module):
    """What both kinds of layer have: the weights, and how the window moves."""

    rank: int
    transposed = False
    weight: Parameter
    bias: Parameter | None

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any, padding: Any,
        dilation: Any, output_padding: Any, groups: int, bias: bool, padding_mode: str,
        device: Any, dtype: DType | None,
    ) -> None:  # fmt: skip
        super().__init__()
        _check_channels(in_channels, out_channels, groups)
        if padding_mode not in _PADDING_MODES:
            raise ValueError(
                f"padding_mode must be one of {', '.join(_PADDING_MODES)}, got {padding_mode!r}"
            )
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = spread(kernel_size, self.rank)
        self.stride = spread(stride, self.rank)
        self.padding = padding if isinstance(padding, str) else spread(padding, self.rank)
        self.dilation = spread(dilation, self.rank)
        self.output_padding = spread(output_padding, self.rank)
        self.groups = groups
        self.padding_mode = padding_mode
        _check_padding(padding, self.stride)
        sides = (in_channels, out_channels) if self.transposed else (out_channels, in_channels)
        shape = (sides[0], sides[1] // groups, *self.kernel_size)
        self.weight = Parameter(zeros(*shape, dtype=dtype, device=device))
        self.register_parameter(
            "bias", Parameter(zeros(out_channels, dtype=dtype, device=device)) if bias else None
        )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new weights."""
        fill_as_pytorch(self.weight, self.bias)

    def extra_repr(self) -> str:
        text = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}"
        text += f", stride={self.stride}"
        if self.padding != (0,) * self.rank:
            text += f", padding={self.padding}"
        if self.dilation != (1,) * self.rank:
            text += f", dilation={self.dilation}"
        if self.output_padding != (0,) * self.rank:
            text += f", output_padding={self.output_padding}"
        if self.groups != 1:
            text += f", groups={self.groups}"
        if self.bias is None:
            text += ", bias=False"
        return text if self.padding_mode == "zeros" else f"{text}, padding_mode={self.padding_mode}"


def _check_channels(in_channels: int, out_channels: int, groups: int) -> None:
    if groups <= 0:
        raise ValueError("groups must be a positive integer")
    if in_channels % groups or out_channels % groups:
        raise ValueError(
            f"in_channels {in_channels} and out_channels {out_channels} "
            f"must be divisible by groups {groups}"
        )


def _check_padding(padding: Any, stride: tuple[int, ...]) -> None:
    if isinstance(padding, str) and padding not in ("same", "valid"):
        raise ValueError(f"padding must be numbers, 'same' or 'valid', got {padding!r}")
    if padding == "same" and max(stride) > 1:
        raise ValueError("padding='same' is not supported for strided convolutions")


class _Conv(_Layer):
    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1,
        padding: Any = 0, dilation: Any = 1, groups: int = 1, bias: bool = True,
        padding_mode: str = "zeros", device: Any = None, dtype: DType | None = None,
    ) -> None:  # fmt: skip
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, dilation, 0, groups, bias,
            padding_mode, device, dtype,
        )  # fmt: skip

    @property
    def _reversed_padding_repeated_twice(self) -> list[int]:
        """The padding as (before, after) pairs, from the last axis on: what `F.pad` takes."""
        pairs: list[tuple[int, int]] = []
        for k in range(self.rank):
            if self.padding == "same":
                total = self.dilation[k] * (self.kernel_size[k] - 1)
                pairs.append((total // 2, total - total // 2))
            else:
                pad = 0 if self.padding == "valid" else int(self.padding[k])
                pairs.append((pad, pad))
        return [pad for pair in reversed(pairs) for pad in pair]

    def forward(self, input: Tensor) -> Tensor:
        return self._conv_forward(input, self.weight, self.bias)

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """Convolve with other weights than its own: many subclasses change them first."""
        function = (F.conv1d, F.conv2d, F.conv3d)[self.rank - 1]
        padding: Any = self.padding
        if self.padding_mode != "zeros":
            input, padding = (
                F.pad(input, self._reversed_padding_repeated_twice, mode=self.padding_mode),
                0,
            )
        result: Tensor = function(
            input, weight, bias, self.stride, padding, self.dilation, self.groups
        )
        return result


class Conv1d(_Conv):
    """Convolution of [N, C, L].

    >>> import monograph as mg
    >>> mg.nn.Conv1d(3, 8, 3, stride=2)(mg.zeros(1, 3, 7)).shape
    Size([1, 8, 3])
    """

    rank = 1


class Conv2d(_Conv):
    """Convolution of [N, C, H, W].

    >>> import monograph as mg
    >>> mg.nn.Conv2d(3, 8, 3, padding=1)(mg.zeros(1, 3, 6, 6)).shape
    Size([1, 8, 6, 6])
    """

    rank = 2


class Conv3d(_Conv):
    """Convolution of [N, C, D, H, W].

    >>> import monograph as mg
    >>> mg.nn.Conv3d(2, 8, 3, padding=1)(mg.zeros(1, 2, 4, 5, 6)).shape
    Size([1, 8, 4, 5, 6])
    """

    rank = 3


class _ConvTranspose(_Layer):
    transposed = True

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1,
        padding: Any = 0, output_padding: Any = 0, groups: int = 1, bias: bool = True,
        dilation: Any = 1, padding_mode: str = "zeros", device: Any = None,
        dtype: DType | None = None,
    ) -> None:  # fmt: skip
        if padding_mode != "zeros":
            raise ValueError(f"transposed convolutions pad with zeros only, got {padding_mode!r}")
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, dilation, output_padding,
            groups, bias, padding_mode, device, dtype,
        )  # fmt: skip

    def forward(self, input: Tensor, output_size: Any = None) -> Tensor:
        functions = (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)
        more = self._output_padding(
            input, output_size, self.stride, self.padding, self.kernel_size, self.rank,
            self.dilation,
        )  # fmt: skip
        result: Tensor = functions[self.rank - 1](
            input, self.weight, self.bias, self.stride, self.padding, more, self.groups,
            self.dilation,
        )  # fmt: skip
        return result

    def _output_padding(
        self, input: Tensor, output_size: Any, stride: Any, padding: Any, kernel_size: Any,
        num_spatial_dims: int, dilation: Any = None,
    ) -> tuple[int, ...]:  # fmt: skip
        """The output padding that gives the result these spatial sizes; its own if None."""
        if output_size is None:
            return self.output_padding
        x, rank, sizes = input, num_spatial_dims, list(output_size)
        sizes = sizes[-rank:] if len(sizes) == x.ndim else sizes
        if len(sizes) != rank:
            raise ValueError(f"output_size needs {rank} or {x.ndim} numbers, got {sizes}")
        more = []
        for k in range(rank):
            reach = (1 if dilation is None else dilation[k]) * (kernel_size[k] - 1) + 1
            least = (x.shape[k - rank] - 1) * stride[k] - 2 * padding[k] + reach
            if not least <= sizes[k] < least + stride[k]:
                raise ValueError(
                    f"output_size {sizes[k]} of axis {k} must be from {least} to "
                    f"{least + stride[k] - 1}"
                )
            more.append(sizes[k] - least)
        return tuple(more)


class ConvTranspose1d(_ConvTranspose):
    """The transpose of Conv1d.

    >>> import monograph as mg
    >>> mg.nn.ConvTranspose1d(2, 8, 4, stride=2, padding=1)(mg.zeros(1, 2, 5)).shape
    Size([1, 8, 10])
    """

    rank = 1


class ConvTranspose2d(_ConvTranspose):
    """The transpose of Conv2d: with a stride it makes images larger.

    >>> import monograph as mg
    >>> mg.nn.ConvTranspose2d(8, 3, 4, stride=2, padding=1)(mg.zeros(1, 8, 5, 5)).shape
    Size([1, 3, 10, 10])
    """

    rank = 2


class ConvTranspose3d(_ConvTranspose):
    """The transpose of Conv3d.

    >>> import monograph as mg
    >>> mg.nn.ConvTranspose3d(2, 8, 2, stride=2)(mg.zeros(1, 2, 3, 4, 5)).shape
    Size([1, 8, 6, 8, 10])
    """

    rank = 3
