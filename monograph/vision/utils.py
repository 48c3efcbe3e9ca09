"""Pictures of tensors: `make_grid` and `save_image`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..tensor import Tensor, adopt
from .pictures import has_pillow, write_png


def _batch(images: Any) -> np.ndarray:
    """Images as one array [N, C, H, W], of three channels where they had one."""
    if isinstance(images, (list, tuple)):
        array = np.stack([image.detach()._array() for image in images])
    elif isinstance(images, Tensor):
        array = images.detach()._array()
    else:
        raise TypeError(f"tensor or list of tensors expected, got {type(images)}")
    if array.ndim == 2:
        array = array[None]
    if array.ndim == 3:
        array = np.repeat(array, 3, 0) if array.shape[0] == 1 else array
        array = array[None]
    return np.repeat(array, 3, 1) if array.shape[1] == 1 else array


def _scaled(array: np.ndarray, span: Any, each: bool) -> np.ndarray:
    """Numbers between 0 and 1, by a range or by the smallest and largest."""

    def scale(part: np.ndarray) -> np.ndarray:
        low, high = (part.min(), part.max()) if span is None else span
        return (np.clip(part, low, high) - low) / max(high - low, 1e-5)

    made = np.stack([scale(part) for part in array]) if each else scale(array)
    return made.astype(array.dtype)


def make_grid(
    tensor: Any, nrow: int = 8, padding: int = 2, normalize: bool = False, value_range: Any = None,
    scale_each: bool = False, pad_value: float = 0.0, **_: Any,
) -> Tensor:  # fmt: skip
    """Several images side by side, `nrow` in a row.

    >>> import monograph as mg
    >>> make_grid(mg.zeros(4, 1, 8, 8), nrow=2).shape
    Size([3, 22, 22])
    """
    array = _batch(tensor)
    if normalize:
        array = _scaled(array, value_range, scale_each)
    if array.shape[0] == 1:
        return adopt(np.ascontiguousarray(array[0]))
    count, channels, height, width = array.shape
    across = min(nrow, count)
    down = math.ceil(count / across)
    high, wide = height + padding, width + padding
    grid = np.full(
        (channels, high * down + padding, wide * across + padding), pad_value, array.dtype
    )
    for n in range(count):
        top, left = (n // across) * high + padding, (n % across) * wide + padding
        grid[:, top : top + height, left : left + width] = array[n]
    return adopt(grid)


def save_image(tensor: Any, fp: Any, format: str | None = None, **options: Any) -> None:  # noqa: A002
    """Write images side by side as one file: PNG by ourselves, other formats by Pillow."""
    grid = make_grid(tensor, **options)._array()
    picture = np.clip(grid * 255 + 0.5, 0, 255).astype(np.uint8).transpose(1, 2, 0)
    kind = format or ("png" if hasattr(fp, "write") else str(fp).rpartition(".")[2])
    if kind.lower() == "png":
        write_png(fp, np.ascontiguousarray(picture))
        return
    if not has_pillow():
        raise ImportError(f"a {kind!r} file needs Pillow to be written; PNG files do not")
    from PIL import Image

    Image.fromarray(picture).save(fp, format=format)


def draw_bounding_boxes(
    image: Tensor, boxes: Tensor, labels: Sequence[str] | None = None, colors: Any = None,
    width: int = 1, **_: Any,
) -> Tensor:  # fmt: skip
    """An image of bytes with frames drawn into it; labels are not written.

    >>> import monograph as mg
    >>> image = mg.zeros(3, 8, 8, dtype=mg.uint8)
    >>> mg.vision.utils.draw_bounding_boxes(image, mg.tensor([[1, 1, 6, 6]])).shape
    Size([3, 8, 8])
    """
    array = image._array().copy()
    for box in boxes._array().astype(int):
        left, top, right, bottom = (int(v) for v in box)
        colour = np.array((255, 0, 0) if colors is None else colors, array.dtype).reshape(-1, 1, 1)
        for rows, columns in (
            (slice(top, top + width), slice(left, right + 1)),
            (slice(bottom - width + 1, bottom + 1), slice(left, right + 1)),
            (slice(top, bottom + 1), slice(left, left + width)),
            (slice(top, bottom + 1), slice(right - width + 1, right + 1)),
        ):
            array[:, rows, columns] = colour[: len(array)]
    return adopt(array)
