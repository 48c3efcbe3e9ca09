"""Changes of the tones of a picture: fewer bits, more contrast, sharper, brighter in the dark.

Bytes run from 0 to 255 and floats from 0 to 1, as in `functional.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...ir import dtypes
from ...tensor import Tensor
from ..pictures import array_of, like, size_of
from . import tensor_tones
from .functional import _blended, _channels, _check_factor, _flat, _most


def posterize(img: Any, bits: int) -> Any:
    """A picture of bytes with only the highest bits of each.

    >>> import numpy as np
    >>> posterize(np.array([[255, 100]], np.uint8), 1).tolist()
    [[128, 0]]
    """
    _check_bytes(img)
    if not 0 <= bits <= 8:
        raise ValueError(f"The number if bits should be between 0 and 8. Got {bits}")
    if isinstance(img, Tensor):
        return tensor_tones.posterized(img, bits)
    return like(img, array_of(img) & np.uint8(256 - 2 ** (8 - bits)))


def _check_bytes(img: Any) -> None:
    dtype = img.dtype if isinstance(img, Tensor) else array_of(img).dtype
    if dtype not in (dtypes.uint8, np.uint8):
        raise TypeError(f"Only bytes are supported, but found {dtype}")


def solarize(img: Any, threshold: float) -> Any:
    """A picture whose bright pixels, from a threshold on, are negatives.

    >>> import numpy as np
    >>> solarize(np.array([[200, 100]], np.uint8), 128).tolist()
    [[55, 100]]
    """
    if threshold > _most(img):
        raise TypeError(f"Threshold should be less than bound of img, got {threshold}")
    if isinstance(img, Tensor):
        return tensor_tones.solarized(img, threshold)
    array = array_of(img)
    made = np.where(array >= threshold, _most(array) - array, array)
    return like(img, made.astype(array.dtype))


def autocontrast(img: Any) -> Any:
    """A picture whose darkest tones are black and whose brightest are full, channel by channel.

    >>> import numpy as np
    >>> autocontrast(np.array([[50, 100, 150]], np.uint8)).tolist()
    [[0, 127, 255]]
    """
    if isinstance(img, Tensor):
        return tensor_tones.stretched(img)
    array = array_of(img)
    values = _channels(array).astype(np.float64)
    low, high = values.min((0, 1), keepdims=True), values.max((0, 1), keepdims=True)
    flat = low == high
    wide = np.where(flat, _most(array), high - low)
    made = np.clip((values - np.where(flat, 0.0, low)) * _most(array) / wide, 0, _most(array))
    return like(img, _flat(made.astype(array.dtype), array))


def equalize(img: Any) -> Any:
    """A picture of bytes whose tones are spread evenly, channel by channel.

    >>> import numpy as np
    >>> picture = np.array([[10, 20]] * 1000, np.uint8)
    >>> equalize(picture)[0].tolist()
    [0, 255]
    """
    _check_bytes(img)
    if isinstance(img, Tensor):
        return tensor_tones.equalized(img)
    array = array_of(img)
    planes = _channels(array)
    made = [_spread(planes[:, :, k]) for k in range(planes.shape[2])]
    return like(img, _flat(np.stack(made, 2), array))


def _spread(plane: np.ndarray) -> np.ndarray:
    counts = np.bincount(plane.reshape(-1), minlength=256)
    step = (counts.sum() - counts[np.flatnonzero(counts)[-1]]) // 255
    if step == 0:
        return plane
    below = np.concatenate([[0], np.cumsum(counts)[:-1]])
    table = np.clip((below + step // 2) // step, 0, 255).astype(np.uint8)
    return table[plane]


def adjust_sharpness(img: Any, sharpness_factor: float) -> Any:
    """A picture between blurred (0), itself (1) and sharper.

    >>> import monograph as mg
    >>> mg.vision.transforms.functional.adjust_sharpness(mg.rand(3, 8, 8), 2.0).shape
    Size([3, 8, 8])
    """
    _check_factor("sharpness_factor", sharpness_factor)
    if isinstance(img, Tensor):
        return tensor_tones.sharpened(img, sharpness_factor)
    if min(size_of(img)) <= 2:
        return img
    array = array_of(img)
    return _blended(img, lambda values: _smoothed(values, array.dtype), sharpness_factor)


def _smoothed(values: np.ndarray, dtype: Any) -> np.ndarray:
    """The means of 3 by 3 pixels, the one in the middle five times; the border stays."""
    height, width = values.shape[:2]
    total = 4.0 * values[1:-1, 1:-1]
    for row in range(3):
        for column in range(3):
            total = total + values[row : height - 2 + row, column : width - 2 + column]
    made = values.copy()
    inner = total / 13.0
    made[1:-1, 1:-1] = np.rint(inner) if dtype == np.uint8 else inner
    return made


def adjust_gamma(img: Any, gamma: float, gain: float = 1) -> Any:
    """A picture whose tones are gain · tone to the power of gamma.

    >>> import monograph as mg
    >>> F = mg.vision.transforms.functional
    >>> F.adjust_gamma(mg.full((1, 1, 1), 0.5), 2.0).item()
    0.25
    """
    if gamma < 0:
        raise ValueError("Gamma should be a non-negative real number")
    if isinstance(img, Tensor):
        return tensor_tones.powered(img, gamma, gain)
    array = array_of(img)
    made = np.clip(gain * (array.astype(np.float64) / _most(array)) ** gamma, 0.0, 1.0)
    if array.dtype == np.uint8:
        made = np.clip(np.floor(made * (255 + 1 - 1e-3)), 0, 255)
    return like(img, made.astype(array.dtype))
