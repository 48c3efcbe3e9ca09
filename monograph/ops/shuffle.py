"""Channels and pixels exchanged: pixel_shuffle, its inverse, channel_shuffle."""

from __future__ import annotations

from typing import Any

from ..ir import build
from ..tensor import Tensor
from .define import operator


def _blocks(x: Any, factor: int, what: str) -> tuple[tuple[int, ...], int, int, int]:
    """(leading sizes, channels, rows, columns) of an image."""
    if x.ndim < 3:
        raise ValueError(f"expected an input of at least 3 axes, got {list(x.shape)}")
    if factor <= 0:
        raise ValueError(f"{what} must be positive, got {factor}")
    return x.shape[:-3], *x.shape[-3:]


@operator(to=("", "nn.functional"), method=False)
def pixel_shuffle(x: Tensor, upscale_factor: int) -> Any:
    """[…, C · r², H, W] as […, C, H · r, W · r].

    >>> import monograph as mg
    >>> mg.pixel_shuffle(mg.arange(4.0).reshape(4, 1, 1), 2).tolist()
    [[[0.0, 1.0], [2.0, 3.0]]]
    """
    lead, channels, rows, columns = _blocks(x, upscale_factor, "upscale_factor")
    r = upscale_factor
    if channels % (r * r):
        raise ValueError(f"{channels} channels are not divisible by {r} squared")
    n = len(lead)
    split = build.reshape(x, (*lead, channels // (r * r), r, r, rows, columns))
    order = (*range(n), n, n + 3, n + 1, n + 4, n + 2)
    return build.reshape(
        build.permute(split, order), (*lead, channels // (r * r), rows * r, columns * r)
    )


@operator(to=("", "nn.functional"), method=False)
def pixel_unshuffle(x: Tensor, downscale_factor: int) -> Any:
    """[…, C, H · r, W · r] as […, C · r², H, W].

    >>> import monograph as mg
    >>> mg.pixel_unshuffle(mg.arange(4.0).reshape(1, 2, 2), 2).tolist()
    [[[0.0]], [[1.0]], [[2.0]], [[3.0]]]
    """
    lead, channels, rows, columns = _blocks(x, downscale_factor, "downscale_factor")
    r = downscale_factor
    if rows % r or columns % r:
        raise ValueError(f"rows and columns {[rows, columns]} are not divisible by {r}")
    n = len(lead)
    split = build.reshape(x, (*lead, channels, rows // r, r, columns // r, r))
    order = (*range(n), n, n + 2, n + 4, n + 1, n + 3)
    return build.reshape(
        build.permute(split, order), (*lead, channels * r * r, rows // r, columns // r)
    )


@operator(to=("", "nn.functional"), method=False)
def channel_shuffle(x: Tensor, groups: int) -> Any:
    """The channels (axis 1) of groups taken in turn: one of each group, then the next.

    >>> import monograph as mg
    >>> mg.channel_shuffle(mg.arange(4.0).reshape(1, 4, 1), 2).flatten().tolist()
    [0.0, 2.0, 1.0, 3.0]
    """
    if x.ndim < 3:
        raise ValueError(f"expected an input of at least 3 axes, got {list(x.shape)}")
    if groups <= 0 or x.shape[1] % groups:
        raise ValueError(f"{x.shape[1]} channels do not make {groups} equal groups")
    split = (x.shape[0], groups, x.shape[1] // groups, *x.shape[2:])
    order = (0, 2, 1, *range(3, len(split)))
    return build.reshape(build.permute(build.reshape(x, split), order), x.shape)
