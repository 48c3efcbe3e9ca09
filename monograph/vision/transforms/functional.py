"""What transforms do to a picture or to tensors, as functions.

A tensor is [..., channels, height, width]: one image, or any number of them that are changed alike.
Tensors are changed by tensor operators (`tensor_places.py`, `tensor_tones.py`), through which
derivatives pass. Pictures are worked on as arrays with channels last.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...ir import dtypes
from ...tensor import Tensor, adopt
from ..pictures import array_of, is_pillow, like, picture_of, size_of
from . import tensor_places as places
from . import tensor_tones
from .resampling import blurred, resampled, turned
from .tensor_images import channels_of, converted, is_plain, most_of


class InterpolationMode(enum.Enum):
    """Ways of finding values between pixels."""

    NEAREST = "nearest"
    NEAREST_EXACT = "nearest-exact"
    BILINEAR = "bilinear"
    BICUBIC = "bicubic"
    BOX = "box"
    HAMMING = "hamming"
    LANCZOS = "lanczos"


_BY_NUMBER = {0: "nearest", 1: "lanczos", 2: "bilinear", 3: "bicubic", 4: "box", 5: "hamming"}


def mode_name(mode: Any) -> str:
    """The name of a mode given as one of the above, as Pillow's number, or as itself."""
    if isinstance(mode, InterpolationMode):
        return mode.value
    return _BY_NUMBER.get(int(mode), "bilinear") if not isinstance(mode, str) else mode


def pair(size: Any) -> tuple[int, int]:
    """(height, width) of one number or of two."""
    if isinstance(size, (int, np.integer)):
        return int(size), int(size)
    sizes = [int(s) for s in size]
    return (sizes[0], sizes[0]) if len(sizes) == 1 else (sizes[0], sizes[1])


def _channels(array: np.ndarray) -> np.ndarray:
    return array[:, :, None] if array.ndim == 2 else array


def _flat(array: np.ndarray, of: np.ndarray) -> np.ndarray:
    return array[:, :, 0] if of.ndim == 2 and array.ndim == 3 else array


def _rounded(values: np.ndarray, dtype: Any) -> np.ndarray:
    """Values in the dtype of the picture: bytes are rounded and stay bytes."""
    if np.issubdtype(dtype, np.integer):
        return np.clip(np.rint(values), 0, np.iinfo(dtype).max).astype(dtype)
    return values.astype(dtype)


def _most(img: Any) -> float:
    """White: 255 for bytes, 1 for floats."""
    if isinstance(img, Tensor):
        return float(most_of(img.dtype))
    return 255.0 if array_of(img).dtype == np.uint8 else 1.0


# --- between pictures and tensors -----------------------------------------------------------------


def to_tensor(pic: Any) -> Tensor:
    """A picture as floats from 0 to 1, [channels, height, width].

    >>> to_tensor(np.full((2, 3), 255, np.uint8)).shape
    Size([1, 2, 3])
    """
    if isinstance(pic, Tensor):
        raise TypeError(f"pic should be PIL Image or ndarray. Got {type(pic)}")
    array = _channels(array_of(pic)).transpose(2, 0, 1)
    if array.dtype == np.uint8:
        return adopt(np.divide(array, np.float32(255), dtype=np.float32))
    return adopt(np.ascontiguousarray(array))


def pil_to_tensor(pic: Any) -> Tensor:
    """A picture as bytes, [channels, height, width]."""
    return adopt(np.ascontiguousarray(_channels(array_of(pic)).transpose(2, 0, 1)))


def to_pil_image(pic: Any, mode: str | None = None) -> Any:
    """A tensor or an array as a picture of bytes."""
    array = array_of(pic)
    if isinstance(pic, Tensor) and np.issubdtype(array.dtype, np.floating):
        array = (array * 255).astype(np.uint8)  # as PyTorch's byte()
    if array.ndim == 3 and array.shape[2] == 1:
        array = array[:, :, 0]
    return picture_of(np.ascontiguousarray(array))


def convert_image_dtype(image: Tensor, dtype: Any = dtypes.float32) -> Tensor:
    """A tensor in another dtype, with its range from black to white.

    >>> import monograph as mg
    >>> whole = mg.tensor([[[0, 255]]], dtype=mg.uint8)
    >>> mg.vision.transforms.functional.convert_image_dtype(whole).tolist()
    [[[0.0, 1.0]]]
    """
    return converted(image, dtype)


def normalize(
    tensor: Tensor, mean: Sequence[float], std: Sequence[float], inplace: bool = False
) -> Tensor:
    """(x - mean) / std for each channel.

    >>> import monograph as mg
    >>> mg.vision.transforms.functional.normalize(mg.ones(1, 1, 2), [0.5], [0.25]).tolist()
    [[[2.0, 2.0]]]
    """
    if not isinstance(tensor, Tensor):
        raise TypeError(f"img should be Tensor Image. Got {type(tensor)}")
    if not tensor.is_floating_point():
        raise TypeError(f"Input tensor should be a float tensor. Got {tensor.dtype}.")
    if tensor.ndim < 3:
        raise ValueError(f"Expected tensor of size (..., C, H, W). Got {tuple(tensor.shape)}")
    if any(s == 0 for s in np.atleast_1d(std)):
        raise ValueError("std evaluated to zero, leading to division by zero.")
    shape = (-1, 1, 1)
    middle = np.asarray(mean, tensor.dtype.numpy).reshape(shape)
    width = np.asarray(std, tensor.dtype.numpy).reshape(shape)
    if not {len(middle), len(width)} <= {1, tensor.shape[-3]}:
        raise RuntimeError(
            f"normalize: {len(middle)} means and {len(width)} deviations do not fit the "
            f"{tensor.shape[-3]} channels of {list(tensor.shape)}"
        )
    if is_plain(tensor) and not inplace:
        return adopt((tensor._array() - middle) / width)
    made = (tensor - adopt(middle)) / adopt(width)
    return tensor.copy_(made) if inplace else made


# --- geometry -------------------------------------------------------------------------------------


def resize(
    img: Any, size: Any, interpolation: Any = InterpolationMode.BILINEAR,
    max_size: int | None = None, antialias: bool | None = True,
) -> Any:  # fmt: skip
    """A picture of another size; one number is that of the shorter side.

    >>> import monograph as mg
    >>> mg.vision.transforms.functional.resize(mg.rand(3, 8, 16), 4).shape
    Size([3, 4, 8])
    """
    height, width = size_of(img)
    wanted = _target(height, width, size, max_size)
    if wanted == (height, width):
        return img
    if is_pillow(img):
        numbers = {name: n for n, name in _BY_NUMBER.items()}
        return img.resize(wanted[::-1], numbers[mode_name(interpolation)])
    mode = mode_name(interpolation)
    if isinstance(img, Tensor):
        return places.resized(img, wanted, mode, bool(antialias))
    array = array_of(img)
    if mode == "nearest":
        mode = "nearest-exact"  # as Pillow finds the nearest pixel
    made = resampled(_channels(array), wanted, mode, bool(antialias))
    return like(img, _flat(_rounded(made, array.dtype), array))


def _target(height: int, width: int, size: Any, max_size: int | None) -> tuple[int, int]:
    if not isinstance(size, (int, np.integer)) and len(size) == 2:
        return pair(size)
    short = pair(size)[0]
    if height <= width:
        new = (short, int(short * width / height))
    else:
        new = (int(short * height / width), short)
    if max_size is not None and max(new) > max_size:
        scale = max_size / max(new)
        wide = new[1] > new[0]
        new = (int(scale * new[0]), max_size) if wide else (max_size, int(scale * new[1]))
    return new


def crop(img: Any, top: int, left: int, height: int, width: int) -> Any:
    """A part of a picture; what lies outside is black.

    >>> import monograph as mg
    >>> mg.vision.transforms.functional.crop(mg.arange(9.0).view(1, 3, 3), 1, 0, 2, 2).tolist()
    [[[3.0, 4.0], [6.0, 7.0]]]
    """
    if isinstance(img, Tensor):
        return places.cropped(img, top, left, height, width)
    array = array_of(img)
    high, wide = array.shape[:2]
    sides = [
        (max(0, -top), max(0, top + height - high)), (max(0, -left), max(0, left + width - wide)),
    ]  # fmt: skip
    if any(n for side in sides for n in side):
        array = np.pad(array, [*sides, *([(0, 0)] * (array.ndim - 2))])
        top, left = max(top, 0), max(left, 0)
    return like(img, array[top : top + height, left : left + width])


def center_crop(img: Any, output_size: Any) -> Any:
    """The middle of a picture.

    >>> import monograph as mg
    >>> mg.vision.transforms.functional.center_crop(mg.zeros(3, 8, 6), 4).shape
    Size([3, 4, 4])
    """
    height, width = pair(output_size)
    high, wide = size_of(img)
    if height > high or width > wide:
        add = (max(0, width - wide), max(0, height - high))
        img = pad(img, [add[0] // 2, add[1] // 2, (add[0] + 1) // 2, (add[1] + 1) // 2])
        high, wide = size_of(img)
    top, left = int(round((high - height) / 2.0)), int(round((wide - width) / 2.0))
    return crop(img, top, left, height, width)


def five_crop(img: Any, size: Any) -> tuple[Any, ...]:
    """The corners of a picture, and its middle.

    >>> import monograph as mg
    >>> image = mg.arange(9.0).view(1, 3, 3)
    >>> [part.item() for part in mg.vision.transforms.functional.five_crop(image, 1)]
    [0.0, 2.0, 6.0, 8.0, 4.0]
    """
    (height, width), (h, w) = size_of(img), pair(size)
    if h > height or w > width:
        raise ValueError(
            f"Requested crop size {(h, w)} is bigger than input size {(height, width)}"
        )
    corners = [(0, 0), (0, width - w), (height - h, 0), (height - h, width - w)]
    found = [crop(img, top, left, h, w) for top, left in corners]
    return (*found, center_crop(img, (h, w)))


def ten_crop(img: Any, size: Any, vertical_flip: bool = False) -> tuple[Any, ...]:
    """The corners of a picture and its middle, and those of the flipped picture.

    >>> import monograph as mg
    >>> len(mg.vision.transforms.functional.ten_crop(mg.zeros(3, 8, 8), 4))
    10
    """
    flipped = vflip(img) if vertical_flip else hflip(img)
    return (*five_crop(img, size), *five_crop(flipped, size))


def resized_crop(
    img: Any, top: int, left: int, height: int, width: int, size: Any,
    interpolation: Any = InterpolationMode.BILINEAR, antialias: bool | None = True,
) -> Any:  # fmt: skip
    """A part of a picture at another size.

    >>> import monograph as mg
    >>> mg.vision.transforms.functional.resized_crop(mg.rand(3, 8, 8), 0, 0, 4, 4, [2, 2]).shape
    Size([3, 2, 2])
    """
    return resize(crop(img, top, left, height, width), pair(size), interpolation, None, antialias)


def hflip(img: Any) -> Any:
    """Left and right exchanged.

    >>> import monograph as mg
    >>> mg.vision.transforms.functional.hflip(mg.tensor([[[1.0, 2.0]]])).tolist()
    [[[2.0, 1.0]]]
    """
    if isinstance(img, Tensor):
        return places.flipped(img, -1)
    return like(img, array_of(img)[:, ::-1])


def vflip(img: Any) -> Any:
    """Up and down exchanged.

    >>> import monograph as mg
    >>> mg.vision.transforms.functional.vflip(mg.tensor([[[1.0], [2.0]]])).tolist()
    [[[2.0], [1.0]]]
    """
    if isinstance(img, Tensor):
        return places.flipped(img, -2)
    return like(img, array_of(img)[::-1])


def pad(img: Any, padding: Any, fill: Any = 0, padding_mode: str = "constant") -> Any:
    """A border around a picture: one number, (left and right, top and bottom), or all four.

    >>> import monograph as mg
    >>> mg.vision.transforms.functional.pad(mg.ones(1, 1, 1), [1, 0]).tolist()
    [[[0.0, 1.0, 0.0]]]
    """
    sides = [padding] * 4 if isinstance(padding, int) else list(padding)
    if len(sides) == 2:
        sides = [sides[0], sides[1], sides[0], sides[1]]
    elif len(sides) == 1:
        sides = sides * 4
    if padding_mode not in ("constant", "edge", "reflect", "symmetric"):
        raise ValueError("Padding mode should be either constant, edge, reflect or symmetric")
    if isinstance(img, Tensor):
        return places.padded(img, sides, fill, padding_mode)
    left, top, right, bottom = sides
    array = array_of(img)
    width = [(top, bottom), (left, right), *([(0, 0)] * (array.ndim - 2))]
    if padding_mode != "constant":
        return like(img, np.pad(array, width, mode=padding_mode))  # type: ignore[call-overload]
    made = np.pad(array, width)
    if np.any(fill):
        inside = np.pad(np.ones(array.shape[:2], bool), width[:2])
        made[~inside] = fill
    return like(img, made)


def rotate(
    img: Any, angle: float, interpolation: Any = InterpolationMode.NEAREST, expand: bool = False,
    center: Any = None, fill: Any = None,
) -> Any:  # fmt: skip
    """A picture turned by degrees against the clock.

    >>> import monograph as mg
    >>> mg.vision.transforms.functional.rotate(mg.tensor([[[1.0, 2.0]]]), 180.0).tolist()
    [[[2.0, 1.0]]]
    """
    radians = math.radians(angle)
    matrix = np.array(
        [[math.cos(radians), -math.sin(radians)], [math.sin(radians), math.cos(radians)]]
    )
    return _moved(img, matrix, (0.0, 0.0), interpolation, fill, center, expand)


def affine(
    img: Any, angle: float, translate: Sequence[float], scale: float, shear: Any,
    interpolation: Any = InterpolationMode.NEAREST, fill: Any = None, center: Any = None,
) -> Any:  # fmt: skip
    """A picture turned, moved, scaled and sheared, about its centre.

    >>> import monograph as mg
    >>> F = mg.vision.transforms.functional
    >>> F.affine(mg.tensor([[[1.0, 2.0, 3.0]]]), 0.0, [1, 0], 1.0, [0.0]).tolist()
    [[[0.0, 1.0, 2.0]]]
    """
    shears = [shear, 0.0] if isinstance(shear, (int, float)) else list(shear)
    if len(shears) == 1:
        shears *= 2
    if len(shears) != 2:
        raise ValueError(f"affine: shear is one angle or two, got {shear}")
    turn, sx, sy = math.radians(angle), *[math.radians(s) for s in shears]
    a = math.cos(turn - sy) / math.cos(sy)
    b = -math.cos(turn - sy) * math.tan(sx) / math.cos(sy) - math.sin(turn)
    c = math.sin(turn - sy) / math.cos(sy)
    d = -math.sin(turn - sy) * math.tan(sx) / math.cos(sy) + math.cos(turn)
    matrix = np.array([[d, -b], [-c, a]]) / scale  # from the new picture to the old
    return _moved(img, matrix, tuple(translate), interpolation, fill, center, False)


def _moved(
    img: Any, matrix: np.ndarray, shift: Any, interpolation: Any, fill: Any, center: Any,
    expand: bool,
) -> Any:  # fmt: skip
    if isinstance(img, Tensor):
        grid = places.affine_grid(img, matrix, shift, center, expand)
        return places.seen(img, grid, mode_name(interpolation), fill)
    array = array_of(img)
    made = turned(_channels(array), matrix, shift, mode_name(interpolation), fill, center, expand)
    return like(img, _flat(_rounded(made, array.dtype), array))


# --- colours --------------------------------------------------------------------------------------


def _grey(values: np.ndarray) -> np.ndarray:
    """The brightness of each pixel, with one channel."""
    if values.shape[2] == 1:
        return values
    return (values[:, :, :3] @ np.array([0.2989, 0.587, 0.114]))[:, :, None]


def rgb_to_grayscale(img: Any, num_output_channels: int = 1) -> Any:
    """A picture without colours, in one channel or three.

    >>> import monograph as mg
    >>> mg.vision.transforms.functional.rgb_to_grayscale(mg.rand(3, 4, 4)).shape
    Size([1, 4, 4])
    """
    if isinstance(img, Tensor):
        return tensor_tones.grey(img, num_output_channels)
    array = array_of(img)
    grey = _rounded(np.floor(_grey(_channels(array).astype(np.float64))) if array.dtype == np.uint8
                    else _grey(_channels(array)), array.dtype)  # fmt: skip
    made = np.repeat(grey, num_output_channels, 2)
    return like(img, made[:, :, 0] if num_output_channels == 1 else made)


to_grayscale = rgb_to_grayscale


def _blended(img: Any, other: Any, ratio: float) -> Any:
    array = array_of(img)
    values = _channels(array).astype(np.float64)
    mixed = np.clip(ratio * values + (1.0 - ratio) * other(values), 0, _most(array))
    kept = np.floor(mixed) if array.dtype == np.uint8 else mixed
    return like(img, _flat(kept.astype(array.dtype), array))


def _check_factor(name: str, factor: float) -> None:
    if factor < 0:
        raise ValueError(f"{name} ({factor}) is not non-negative.")


def adjust_brightness(img: Any, brightness_factor: float) -> Any:
    """A picture between black (0), itself (1) and brighter.

    >>> import monograph as mg
    >>> F = mg.vision.transforms.functional
    >>> F.adjust_brightness(mg.full((3, 1, 1), 0.25), 2.0).flatten().tolist()
    [0.5, 0.5, 0.5]
    """
    _check_factor("brightness_factor", brightness_factor)
    if isinstance(img, Tensor):
        return tensor_tones.brightened(img, brightness_factor)
    return _blended(img, np.zeros_like, brightness_factor)


def adjust_contrast(img: Any, contrast_factor: float) -> Any:
    """A picture between its mean grey (0), itself (1) and more contrast.

    >>> import monograph as mg
    >>> F = mg.vision.transforms.functional
    >>> round(F.adjust_contrast(mg.full((3, 2, 2), 0.5), 3.0).max().item(), 3)
    0.5
    """
    _check_factor("contrast_factor", contrast_factor)
    if isinstance(img, Tensor):
        return tensor_tones.contrasted(img, contrast_factor)
    return _blended(img, lambda v: np.full_like(v, _grey(v).mean()), contrast_factor)


def adjust_saturation(img: Any, saturation_factor: float) -> Any:
    """A picture between grey (0), itself (1) and more colour.

    >>> import monograph as mg
    >>> mg.vision.transforms.functional.adjust_saturation(mg.rand(3, 4, 4), 2.0).shape
    Size([3, 4, 4])
    """
    _check_factor("saturation_factor", saturation_factor)
    if isinstance(img, Tensor):
        return tensor_tones.saturated(img, saturation_factor)
    return _blended(img, lambda v: np.broadcast_to(_grey(v), v.shape), saturation_factor)


def adjust_hue(img: Any, hue_factor: float) -> Any:
    """A picture whose colours are turned around the circle, by -0.5 to 0.5.

    >>> import monograph as mg
    >>> mg.vision.transforms.functional.adjust_hue(mg.rand(3, 4, 4), 0.1).shape
    Size([3, 4, 4])
    """
    if not -0.5 <= hue_factor <= 0.5:
        raise ValueError(f"hue_factor ({hue_factor}) is not in [-0.5, 0.5].")
    if isinstance(img, Tensor):
        return tensor_tones.tinted(img, hue_factor)
    array = array_of(img)
    if array.ndim == 2 or array.shape[2] == 1:
        return img
    values = array.astype(np.float64) / _most(array)
    top, low = values.max(2), values.min(2)
    span = np.where(top == low, 1.0, top - low)
    r, g, b = (top[:, :, None] - values).transpose(2, 0, 1) / span
    hue = np.select([values[:, :, 0] == top, values[:, :, 1] == top], [b - g, 2 + r - b], 4 + g - r)
    hue = np.where(top == low, 0.0, (hue / 6.0 + hue_factor) % 1.0)
    saturation = np.where(top == 0, 0.0, (top - low) / np.where(top == 0, 1.0, top))
    sector = np.floor(hue * 6.0)
    part = hue * 6.0 - sector
    p, q, t = (top * (1.0 - saturation * x) for x in (1.0, part, 1.0 - part))
    table = [(top, t, p), (q, top, p), (p, top, t), (p, q, top), (t, p, top), (top, p, q)]
    choice = sector.astype(np.int64) % 6
    planes = [np.choose(choice, [row[k] for row in table]) for k in range(3)]
    return like(img, _rounded(np.stack(planes, 2) * _most(array), array.dtype))


def invert(img: Any) -> Any:
    """The negative of a picture.

    >>> import monograph as mg
    >>> mg.vision.transforms.functional.invert(mg.tensor([[[1.0, 0.25]]])).tolist()
    [[[0.0, 0.75]]]
    """
    if isinstance(img, Tensor):
        return tensor_tones.inverted(img)
    array = array_of(img)
    return like(img, (_most(array) - array).astype(array.dtype))


def gaussian_blur(img: Any, kernel_size: Any, sigma: Any = None) -> Any:
    """A picture out of focus; sizes and deviations of the bell are (across, down).

    >>> import monograph as mg
    >>> mg.vision.transforms.functional.gaussian_blur(mg.rand(3, 8, 8), 3).shape
    Size([3, 8, 8])
    """
    sizes = pair(kernel_size)
    if any(n % 2 == 0 or n < 0 for n in sizes):
        raise ValueError(f"kernel_size should have odd and positive integers. Got {kernel_size}")
    if sigma is None:
        widths = (sizes[0] * 0.15 + 0.35, sizes[1] * 0.15 + 0.35)
    else:
        listed = [float(s) for s in np.atleast_1d(sigma)]
        widths = (listed[0], listed[-1])
    if min(widths) <= 0:
        raise ValueError(f"sigma should have positive values. Got {sigma}")
    if isinstance(img, Tensor):
        return tensor_tones.blurred(img, sizes, widths)
    array = array_of(img)
    made = blurred(_channels(array).astype(np.float64), sizes[::-1], widths[::-1])
    return like(img, _flat(_rounded(made, array.dtype), array))


def erase(img: Tensor, i: int, j: int, h: int, w: int, v: Any, inplace: bool = False) -> Tensor:
    """A tensor with a rectangle of other values.

    >>> import monograph as mg
    >>> mg.vision.transforms.functional.erase(mg.ones(1, 2, 2), 0, 0, 1, 2, 0.0).tolist()
    [[[0.0, 0.0], [1.0, 1.0]]]
    """
    return places.erased(img, i, j, h, w, v, inplace)


def get_image_num_channels(img: Any) -> int:
    """How many channels a picture has."""
    return get_dimensions(img)[0]


def get_image_size(img: Any) -> list[int]:
    """[width, height].

    >>> import monograph as mg
    >>> mg.vision.transforms.functional.get_image_size(mg.zeros(3, 8, 6))
    [6, 8]
    """
    return list(size_of(img))[::-1]


def get_dimensions(img: Any) -> list[int]:
    """[channels, height, width].

    >>> import monograph as mg
    >>> mg.vision.transforms.functional.get_dimensions(mg.zeros(3, 8, 6))
    [3, 8, 6]
    """
    if isinstance(img, Tensor):
        return [channels_of(img), *size_of(img)]
    return [_channels(array_of(img)).shape[2], *size_of(img)]


# Changes of tones have a file of their own, which is built on this one.
from . import tones as _tones  # noqa: E402

adjust_gamma, adjust_sharpness = _tones.adjust_gamma, _tones.adjust_sharpness
autocontrast, equalize = _tones.autocontrast, _tones.equalize
posterize, solarize = _tones.posterize, _tones.solarize
horizontal_flip, vertical_flip = hflip, vflip
