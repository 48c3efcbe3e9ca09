"""Layers that models are built of: convolutions with norms, weighted channels, left-out blocks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import monograph as mg

from .. import nn
from ..tensor import Tensor


class ConvNormActivation(nn.Sequential):
    """A convolution, a normalisation and an activation, of which the last two may be absent."""

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any = 3, stride: Any = 1,
        padding: Any = None, groups: int = 1,
        norm_layer: Callable[..., Any] | None = nn.BatchNorm2d,
        activation_layer: Callable[..., Any] | None = nn.ReLU, dilation: Any = 1,
        inplace: bool | None = True, bias: bool | None = None,
        conv_layer: Callable[..., Any] = nn.Conv2d,
    ) -> None:  # fmt: skip
        if padding is None:
            padding = _kept(kernel_size, dilation)
        with_bias = norm_layer is None if bias is None else bias
        layers: list[Any] = [
            conv_layer(in_channels, out_channels, kernel_size, stride, padding, dilation=dilation,
                       groups=groups, bias=with_bias)
        ]  # fmt: skip
        if norm_layer is not None:
            layers.append(norm_layer(out_channels))
        if activation_layer is not None:
            layers.append(activation_layer(**({} if inplace is None else {"inplace": inplace})))
        super().__init__(*layers)
        self.out_channels = out_channels


def _kept(kernel: Any, dilation: Any) -> Any:
    """The padding that keeps the size."""
    if isinstance(kernel, int) and isinstance(dilation, int):
        return (kernel - 1) // 2 * dilation
    rank = len(dilation if isinstance(kernel, int) else kernel)
    kernels = [kernel] * rank if isinstance(kernel, int) else kernel
    spread = [dilation] * rank if isinstance(dilation, int) else dilation
    return tuple([(k - 1) // 2 * d for k, d in zip(kernels, spread, strict=True)])


class Conv2dNormActivation(ConvNormActivation):
    """A convolution of images, a normalisation and an activation.

    >>> import monograph as mg
    >>> mg.vision.ops.Conv2dNormActivation(3, 8, stride=2)(mg.zeros(1, 3, 8, 8)).shape
    Size([1, 8, 4, 4])
    """


class Conv3dNormActivation(ConvNormActivation):
    """A convolution of videos, a normalisation and an activation.

    >>> import monograph as mg
    >>> mg.vision.ops.Conv3dNormActivation(3, 8, stride=2)(mg.zeros(1, 3, 4, 8, 8)).shape
    Size([1, 8, 2, 4, 4])
    """

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any = 3, stride: Any = 1,
        padding: Any = None, groups: int = 1,
        norm_layer: Callable[..., Any] | None = nn.BatchNorm3d,
        activation_layer: Callable[..., Any] | None = nn.ReLU, dilation: Any = 1,
        inplace: bool | None = True, bias: bool | None = None,
    ) -> None:  # fmt: skip
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, groups, norm_layer,
            activation_layer, dilation, inplace, bias, nn.Conv3d,
        )  # fmt: skip


class SqueezeExcitation(nn.Module):
    """Channels weighted by what their means say.

    >>> import monograph as mg
    >>> mg.vision.ops.SqueezeExcitation(8, 2)(mg.zeros(1, 8, 4, 4)).shape
    Size([1, 8, 4, 4])
    """

    def __init__(
        self, input_channels: int, squeeze_channels: int,
        activation: Callable[..., Any] = nn.ReLU, scale_activation: Callable[..., Any] = nn.Sigmoid,
    ) -> None:  # fmt: skip
        super().__init__()
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc1 = nn.Conv2d(input_channels, squeeze_channels, 1)
        self.fc2 = nn.Conv2d(squeeze_channels, input_channels, 1)
        self.activation, self.scale_activation = activation(), scale_activation()

    def forward(self, x: Tensor) -> Tensor:
        """x times a weight for each channel."""
        scale = self.fc2(self.activation(self.fc1(self.avgpool(x))))
        return self.scale_activation(scale) * x


class Permute(nn.Module):
    """Axes in another order.

    >>> import monograph as mg
    >>> mg.vision.ops.Permute([0, 2, 3, 1])(mg.zeros(1, 3, 4, 5)).shape
    Size([1, 4, 5, 3])
    """

    def __init__(self, dims: Sequence[int]) -> None:
        super().__init__()
        self.dims = list(dims)

    def forward(self, x: Tensor) -> Tensor:
        """x with its axes in that order."""
        return x.permute(self.dims)


def stochastic_depth(input: Tensor, p: float, mode: str, training: bool = True) -> Tensor:  # noqa: A002
    """The input, or nothing, at a probability: for the whole batch or row by row.

    >>> import monograph as mg
    >>> mg.vision.ops.stochastic_depth(mg.ones(2, 3), 0.5, "row", training=False).tolist()
    [[1.0, 1.0, 1.0], [1.0, 1.0, 1.0]]
    """
    if not training or p == 0.0:
        return input
    rows = input.shape[0] if mode == "row" else 1
    shape = (rows, *([1] * (input.ndim - 1)))
    noise = mg.empty(shape, dtype=input.dtype, device=input.device).bernoulli_(1.0 - p)
    return input * (noise / (1.0 - p) if p < 1.0 else noise)


class StochasticDepth(nn.Module):
    """`stochastic_depth` as a layer.

    >>> import monograph as mg
    >>> mg.vision.ops.StochasticDepth(0.5, "row").eval()(mg.ones(2)).tolist()
    [1.0, 1.0]
    """

    def __init__(self, p: float, mode: str) -> None:
        super().__init__()
        self.p, self.mode = p, mode

    def forward(self, x: Tensor) -> Tensor:
        """x, or nothing."""
        return stochastic_depth(x, self.p, self.mode, self.training)
