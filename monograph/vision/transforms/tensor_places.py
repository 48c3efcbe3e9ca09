"""Where the pixels of tensors go: other sizes, parts, borders, flips, and grids of any shape.

Images are [..., channels, height, width]. Grids are worked out by NumPy, and images are read at
them by an operator.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import monograph as mg
import monograph.nn.functional as F

from ...tensor import Tensor, adopt
from .resampling import weights
from .tensor_images import as_batch, at_once, channels_of, is_plain


def flipped(img: Tensor, axis: int) -> Tensor:
    """An image with the order of its rows (-2) or columns (-1) reversed."""
    if is_plain(img):
        return adopt(np.flip(img._array(), axis).copy())
    return img.flip(axis)


def cropped(img: Tensor, top: int, left: int, height: int, width: int) -> Tensor:
    """A part of an image; what lies outside is black."""
    rows, columns = (slice(max(a, 0), max(a + n, 0)) for a, n in ((top, height), (left, width)))
    place = (..., rows, columns)
    part = adopt(img._array()[place].copy()) if is_plain(img) else img[place]
    above, before = min(max(-top, 0), height), min(max(-left, 0), width)
    below, behind = height - above - part.shape[-2], width - before - part.shape[-1]
    if not (above or before or below or behind):
        return part
    return padded(part, (before, above, behind, below), 0, "constant")


def padded(img: Tensor, sides: Any, fill: Any, mode: str) -> Tensor:
    """An image with a border: (left, top, right, bottom), and how it is made."""
    left, top, right, bottom = sides
    if mode != "constant":
        return _continued(img, (top, bottom), (left, right), mode)
    colours = np.ravel(0 if fill is None else fill)
    if len(colours) > 1:
        return _framed(img, (left, right, top, bottom), colours)
    if is_plain(img) and min(sides) >= 0:
        height, width = img.shape[-2:]
        shape = (*img.shape[:-2], top + height + bottom, left + width + right)
        array = np.full(shape, colours[0], img.dtype.numpy)
        array[..., top : top + height, left : left + width] = img._array()
        return adopt(array)
    return F.pad(img, (left, right, top, bottom), value=float(colours[0]))


@at_once
def _framed(img: Tensor, pads: Any, colours: np.ndarray) -> Tensor:
    """An image with a border of a colour for each channel."""
    inside = F.pad(mg.ones_like(img, dtype=mg.bool), pads)
    colour = adopt(colours.reshape(-1, 1, 1).astype(img.dtype.numpy))
    return mg.where(inside, F.pad(img, pads), colour)


@at_once
def _continued(img: Tensor, rows: Any, columns: Any, mode: str) -> Tensor:
    """An image with a border of its own pixels: `edge`, `reflect` or `symmetric`."""
    for axis, (before, after) in ((-2, rows), (-1, columns)):
        places = np.arange(max(-before, 0), img.shape[axis] - max(-after, 0))
        way: Any = mode
        places = np.pad(places, (max(before, 0), max(after, 0)), mode=way)
        if len(places) != img.shape[axis]:
            img = img.index_select(axis, adopt(places))
    return img


@at_once
def erased(
    img: Tensor, top: int, left: int, height: int, width: int, value: Any, inplace: bool
) -> Tensor:
    """An image with a rectangle of other values."""
    place = (..., slice(top, top + height), slice(left, left + width))
    if not isinstance(value, Tensor):
        value = adopt(np.asarray(value).astype(img.dtype.numpy))
    if is_plain(img) and is_plain(value) and not inplace:
        array = img._array().copy()
        array[place] = value._array()
        return adopt(array)
    made = img if inplace else img.clone()
    made[place] = value
    return made


@at_once
def resized(img: Tensor, size: tuple[int, int], mode: str, antialias: bool) -> Tensor:
    """An image of another size; where many pixels weigh in, their weights are matrices."""
    if not (antialias and mode in ("bilinear", "bicubic")):
        aligned = False if mode in ("bilinear", "bicubic") else None
        return as_batch(img, lambda x: F.interpolate(x, size, None, mode, aligned))
    dtype = _precision(img)
    height, width = img.shape[-2:]
    down = weights(height, size[0], mode, True, dtype)
    across = weights(width, size[1], mode, True, dtype).T
    if is_plain(img):  # parts of random sizes would be many programs
        whole = adopt(np.ascontiguousarray(img._array()))
        return as_batch(whole, lambda x: adopt(down @ (x._array() @ across)))
    return as_batch(img, lambda x: adopt(down) @ (x @ adopt(across)))


# --- grids ----------------------------------------------------------------------------------------


def _precision(img: Tensor) -> Any:
    """What a grid for an image is worked out in."""
    return np.float64 if img.dtype is mg.float64 else np.float32


def _centres(size: tuple[int, int], dtype: Any) -> tuple[np.ndarray, np.ndarray]:
    """x [1, width] and y [height, 1] of the middles of pixels."""
    x, y = np.arange(size[1]) + 0.5, np.arange(size[0]) + 0.5
    return x[None].astype(dtype), y[:, None].astype(dtype)


def _linear(numbers: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """ax + by + c, rounded after each step as PyTorch does: a half pixel is seen as there."""
    a, b, c = numbers
    return a * x + b * y + c


def affine_grid(
    img: Tensor, matrix: np.ndarray, shift: Any, center: Any, expand: bool
) -> np.ndarray:
    """Places of an image that a matrix makes of those of the new one, about a centre."""
    dtype, size = _precision(img), (img.shape[-2], img.shape[-1])
    half = np.array(size[::-1]) / 2
    middle = np.zeros(2) if center is None else np.asarray(center) - half
    offset = middle - matrix @ (middle + np.asarray(shift))
    moves = np.column_stack([matrix, offset]).astype(dtype)
    new = _spread(half, moves) if expand else size
    x, y = _centres(new, dtype)
    moves = moves / half[:, None].astype(dtype)
    return np.stack([_linear(row, x - new[1] / 2, y - new[0] / 2) for row in moves], -1)


def _spread(half: np.ndarray, moves: np.ndarray) -> tuple[int, int]:
    """(height, width) of the whole of a turned image, without what is due to rounding."""
    corners = np.array([[-1, -1, 1], [-1, 1, 1], [1, 1, 1], [1, -1, 1]]) * [*half, 1]
    moved = corners.astype(np.float32) @ moves.T + half
    moved = np.trunc(moved / 1e-4) * 1e-4
    width, height = np.ceil(moved.max(0)) - np.floor(moved.min(0))
    return int(height), int(width)


def perspective_grid(img: Tensor, coefficients: Any) -> np.ndarray:
    """Places (ax + by + c, dx + ey + f) / (gx + hy + 1) of an image."""
    dtype, size = _precision(img), (img.shape[-2], img.shape[-1])
    numbers = np.array([*coefficients, 1.0], np.float32).reshape(3, 3).astype(dtype)
    x, y = _centres(size, dtype)
    depth = _linear(numbers[2], x, y)
    rows = numbers[:2] / (np.array(size[::-1], dtype) / 2)[:, None]
    return np.stack([_linear(row, x, y) / depth - 1 for row in rows], -1)


def even_grid(img: Tensor) -> np.ndarray:
    """The places of an image itself, between -1 and 1."""
    height, width = img.shape[-2:]
    x, y = _centres((height, width), _precision(img))
    return np.stack(np.broadcast_arrays(x * 2 / width - 1, y * 2 / height - 1), -1)


@at_once
def seen(img: Tensor, grid: Tensor | np.ndarray, mode: str, fill: Any) -> Tensor:
    """An image at the places [height, width, (x, y)] of a grid, and a fill outside.

    Where a place lies half outside, the image counts as black there, and then by half.
    """
    colours = None if fill is None else np.ravel(fill)
    if colours is not None and len(colours) not in (1, channels_of(img)):
        raise ValueError(
            "The number of elements in 'fill' cannot broadcast to match the number of channels "
            f"of the image ({len(colours)} != {channels_of(img)})"
        )
    places = adopt(grid) if isinstance(grid, np.ndarray) else grid
    return as_batch(img, lambda x: _sampled(x, places.to(x.dtype)[None], mode, colours))


def _sampled(batch: Tensor, grid: Tensor, mode: str, colours: np.ndarray | None) -> Tensor:
    if colours is None:
        return F.grid_sample(batch, grid.expand(len(batch), -1, -1, -1), mode, align_corners=False)
    inside = mg.ones_like(batch[:1, :1])
    share = F.grid_sample(inside, grid, mode, align_corners=False)
    made = F.grid_sample(batch, grid.expand(len(batch), -1, -1, -1), mode, align_corners=False)
    colour = adopt(colours.reshape(-1, 1, 1).astype(batch.dtype.numpy))
    if mode == "nearest":
        return mg.where(share < 0.5, colour, made)
    return made * share + (1.0 - share) * colour
