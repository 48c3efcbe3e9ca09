"""What becomes of the tones of tensors [..., channels, height, width]: colours, contrast, focus."""

from __future__ import annotations

from typing import Any

import numpy as np

import monograph as mg
import monograph.nn.functional as F

from ...tensor import Tensor, adopt
from .tensor_images import as_batch, at_once, channels_of, check_channels, converted, most_of


def _luma(img: Tensor) -> Tensor:
    """The brightness of each pixel, with one channel."""
    if channels_of(img) == 1:
        return img
    red, green, blue = img.unbind(-3)
    return (0.2989 * red + 0.587 * green + 0.114 * blue).to(img.dtype).unsqueeze(-3)


@at_once
def grey(img: Tensor, channels: int) -> Tensor:
    """An image without colours, in one channel or three."""
    if img.ndim < 3:
        raise TypeError(f"Input image tensor should have at least 3 dimensions, found {img.ndim}")
    check_channels(img)
    if channels not in (1, 3):
        raise ValueError("num_output_channels should be either 1 or 3")
    made = img.clone() if channels_of(img) == 1 else _luma(img)
    return made.expand(*img.shape[:-3], channels, *img.shape[-2:])


def _blended(img: Tensor, other: Any, ratio: float) -> Tensor:
    mixed = ratio * img + (1.0 - ratio) * other
    return mixed.clamp(0, most_of(img.dtype)).to(img.dtype)


@at_once
def brightened(img: Tensor, factor: float) -> Tensor:
    """Between black and an image, or beyond it."""
    check_channels(img)
    return _blended(img, 0.0, factor)


@at_once
def contrasted(img: Tensor, factor: float) -> Tensor:
    """Between the mean grey of each image and itself, or beyond it."""
    check_channels(img)
    luma = _luma(img)
    floats = luma if img.is_floating_point() else luma.float()
    axes = tuple(range(max(img.ndim - 3, 0), img.ndim))
    return _blended(img, floats.mean(axes, keepdim=True), factor)


@at_once
def saturated(img: Tensor, factor: float) -> Tensor:
    """Between an image without colours and itself, or beyond it."""
    check_channels(img)
    return img if channels_of(img) == 1 else _blended(img, _luma(img), factor)


@at_once
def tinted(img: Tensor, turn: float) -> Tensor:
    """An image whose colours are turned around the circle."""
    check_channels(img)
    if channels_of(img) == 1:
        return img
    return converted(_turned(converted(img, mg.float32), turn), img.dtype)


def _turned(img: Tensor, turn: float) -> Tensor:
    """Colours as hue, saturation and value, with another hue, and back."""
    top, low = img.max(-3).values, img.min(-3).values
    flat = top == low
    span = top - low
    saturation = span / mg.where(flat, 1.0, top)
    far = (top.unsqueeze(-3) - img) / mg.where(flat, 1.0, span).unsqueeze(-3)
    red, green, blue = far.unbind(-3)
    is_red, is_green, _ = (img == top.unsqueeze(-3)).unbind(-3)
    hue = mg.where(is_green, 2.0 + red - blue, 4.0 + green - red)
    hue = mg.where(is_red, blue - green, hue)
    hue = ((hue / 6.0 + 1.0) % 1.0 + turn) % 1.0
    sixth = (hue * 6.0).floor()
    part = hue * 6.0 - sixth
    p, q, t = ((top * (1.0 - saturation * x)).clamp(0, 1) for x in (1.0, part, 1.0 - part))
    # Green goes through the tones of red two sixths of the circle later, and blue four.
    red_by_sixth = mg.stack([top, q, p, p, t, top], -3)
    later = mg.tensor([0, 2, 4]).view(3, 1, 1)
    return red_by_sixth.gather(-3, (sixth.long().unsqueeze(-3) - later) % 6)


@at_once
def inverted(img: Tensor) -> Tensor:
    """The negative of an image."""
    return most_of(img.dtype) - img


@at_once
def posterized(img: Tensor, bits: int) -> Tensor:
    """Bytes with only the highest bits of each."""
    return img & (256 - 2 ** (8 - bits))


@at_once
def solarized(img: Tensor, threshold: float) -> Tensor:
    """An image whose bright pixels are negatives."""
    return mg.where(img >= threshold, most_of(img.dtype) - img, img)


@at_once
def stretched(img: Tensor) -> Tensor:
    """An image whose tones span the full range, channel by channel."""
    check_channels(img)
    most = most_of(img.dtype)
    floats = img if img.is_floating_point() else img.float()
    low, high = floats.amin((-2, -1), keepdim=True), floats.amax((-2, -1), keepdim=True)
    span = high - low
    flat = ~(most / span.detach()).isfinite()
    scale = mg.where(flat, float(most), span).reciprocal() * most
    made = (floats - mg.where(flat, 0.0, low)) * scale
    return made.clamp(0, most).to(img.dtype)


@at_once
def equalized(img: Tensor) -> Tensor:
    """Bytes whose tones are spread evenly, channel by channel."""
    planes = img.reshape(-1, img.shape[-2] * img.shape[-1]).long()
    counts = mg.zeros(len(planes), 256, dtype=mg.int64)
    counts = counts.scatter_add(1, planes, mg.ones_like(planes))
    brightest = counts.gather(1, planes.amax(1, keepdim=True))
    step = (planes.shape[1] - brightest) // 255
    wide = step.clamp(min=1)
    table = ((counts.cumsum(1) - counts + wide // 2) // wide).clamp(0, 255)
    made = mg.where(step == 0, planes, table.gather(1, planes))
    return made.reshape(img.shape).to(img.dtype)


@at_once
def powered(img: Tensor, gamma: float, gain: float) -> Tensor:
    """gain · tone to the power of gamma."""
    floats = img if img.is_floating_point() else converted(img, mg.float32)
    return converted((gain * floats**gamma).clamp(0, 1), img.dtype)


# --- focus ----------------------------------------------------------------------------------------


@at_once
def sharpened(img: Tensor, factor: float) -> Tensor:
    """Between the means of 3 by 3 pixels and an image, or beyond it; its border stays."""
    check_channels(img)
    if min(img.shape[-2:]) <= 2:
        return img
    kernel = np.ones((1, 1, 3, 3))
    kernel[..., 1, 1] = 5.0
    smooth = img.clone()
    smooth[..., 1:-1, 1:-1] = as_batch(img, lambda x: _filtered(x, kernel / kernel.sum()))
    return _blended(img, smooth, factor)


@at_once
def blurred(img: Tensor, size: tuple[int, int], sigma: tuple[float, float]) -> Tensor:
    """An image under a Gaussian bell, (across, down); its border is reflected."""
    across, down = (_bell(n, s) for n, s in zip(size, sigma, strict=True))
    x, y = size[0] // 2, size[1] // 2

    def change(batch: Tensor) -> Tensor:
        wide = F.pad(batch, (x, x, y, y), mode="reflect")
        return _filtered(_filtered(wide, across[None, None, None]), down[None, None, :, None])

    return as_batch(img, change)


def _bell(size: int, sigma: float) -> np.ndarray:
    x = np.arange(size) - (size - 1) / 2
    bell = np.exp(-0.5 * (x / sigma) ** 2)
    return bell / bell.sum()


def _filtered(batch: Tensor, kernel: np.ndarray) -> Tensor:
    """Each channel under the same kernel."""
    channels = batch.shape[1]
    each = np.broadcast_to(kernel, (channels, *kernel.shape[1:]))
    return F.conv2d(batch, adopt(each.astype(batch.dtype.numpy)), groups=channels)
