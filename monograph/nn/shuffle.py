"""Layers that exchange channels and pixels."""

from __future__ import annotations

from ..tensor import Tensor
from . import functional as F
from .module import Module


class PixelShuffle(Module):
    """[…, C · r², H, W] as […, C, H · r, W · r].

    >>> import monograph as mg
    >>> mg.nn.PixelShuffle(2)(mg.zeros(1, 8, 3, 4)).shape
    Size([1, 2, 6, 8])
    """

    def __init__(self, upscale_factor: int) -> None:
        super().__init__()
        self.upscale_factor = upscale_factor

    def forward(self, input: Tensor) -> Tensor:
        result: Tensor = F.pixel_shuffle(input, self.upscale_factor)
        return result

    def extra_repr(self) -> str:
        return f"upscale_factor={self.upscale_factor}"


class PixelUnshuffle(Module):
    """[…, C, H · r, W · r] as […, C · r², H, W].

    >>> import monograph as mg
    >>> mg.nn.PixelUnshuffle(2)(mg.zeros(1, 2, 6, 8)).shape
    Size([1, 8, 3, 4])
    """

    def __init__(self, downscale_factor: int) -> None:
        super().__init__()
        self.downscale_factor = downscale_factor

    def forward(self, input: Tensor) -> Tensor:
        result: Tensor = F.pixel_unshuffle(input, self.downscale_factor)
        return result

    def extra_repr(self) -> str:
        return f"downscale_factor={self.downscale_factor}"


class ChannelShuffle(Module):
    """The channels of groups taken in turn: one of each group, then the next.

    >>> import monograph as mg
    >>> mg.nn.ChannelShuffle(2)(mg.arange(4.0).view(1, 4, 1)).flatten().tolist()
    [0.0, 2.0, 1.0, 3.0]
    """

    def __init__(self, groups: int) -> None:
        super().__init__()
        self.groups = groups

    def forward(self, input: Tensor) -> Tensor:
        result: Tensor = F.channel_shuffle(input, self.groups)
        return result

    def extra_repr(self) -> str:
        return f"groups={self.groups}"
