"""Tensors as images: [..., channels, height, width], whatever axes lead.

Transforms of tensors are written in tensor operators, so that they take batches and derivatives
pass. What each does is in `tensor_places.py` and `tensor_tones.py`; here is what these share.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ... import record
from ...config import HOST, config
from ...ir import dtypes
from ...recorder import current
from ...tensor import Tensor


def channels_of(img: Tensor) -> int:
    """How many channels an image has; one without that axis has one."""
    return 1 if img.ndim == 2 else int(img.shape[-3])


def check_channels(img: Tensor) -> None:
    """Raise for images that are neither grey nor of three colours."""
    if channels_of(img) not in (1, 3):
        raise TypeError(
            f"Input image tensor permitted channel values are [1, 3], but found {channels_of(img)}"
        )


def most_of(dtype: Any) -> int:
    """White: the largest whole number, or 1 for floats.

    >>> import monograph as mg
    >>> most_of(mg.uint8), most_of(mg.float32)
    (255, 1)
    """
    if dtype.is_floating_point or dtype is dtypes.bool_:
        return 1
    return int(np.iinfo(dtype.numpy).max)


def is_plain(img: Tensor) -> bool:
    """Whether an image is data that NumPy may read now: neither traced nor asked for derivatives.

    Parts, flips and borders of such are copied at once, which takes a tenth of a program's time.
    """
    recorder = current.recorder
    if img.__class__ is not Tensor or img.requires_grad or img.is_meta:
        return False
    return not recorder.hold and recorder.outer is None and config.backend in HOST


def at_once(change: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Let a function compute its tensor at the call, unless derivatives are asked for.

    Which transforms are made, and how, is drawn for each image: recorded together with what
    follows, nearly every batch would be a program of its own.
    """

    @functools.wraps(change)
    def changed(img: Tensor, *settings: Any) -> Tensor:
        made = change(img, *settings)
        if made is not img and not made.requires_grad:
            record.flush_here("transform")
        return made

    return changed


def as_batch(img: Tensor, change: Callable[[Tensor], Tensor]) -> Tensor:
    """A change of floats [batch, channels, height, width] made to an image of any kind.

    Whole numbers are rounded after it, and bytes stay within 0 and 255.
    """
    floats = img if img.dtype in (dtypes.float32, dtypes.float64) else img.float()
    height, width = img.shape[-2:]
    batch = floats.reshape(math.prod(img.shape[:-3]), channels_of(img), height, width)
    made = change(batch)
    made = made.reshape(*img.shape[:-2], *made.shape[-2:])
    if img.dtype is dtypes.uint8:
        made = made.clamp(0, 255)
    if not img.is_floating_point():
        made = made.round()
    return made.to(img.dtype)


@at_once
def converted(img: Tensor, dtype: Any) -> Tensor:
    """An image in another dtype, with its range from black to white."""
    if img.dtype is dtype:
        return img
    most, wanted = most_of(img.dtype), most_of(dtype)
    if dtype.is_floating_point:
        made = img.to(dtype)
        return made if img.is_floating_point() else made / float(most)
    if img.is_floating_point():
        if wanted >= 1 << (24 if img.dtype is dtypes.float32 else 53):
            raise RuntimeError(f"The cast from {img.dtype} to {dtype} cannot be performed safely.")
        return (img * (wanted + 1.0 - 1e-3)).to(dtype)  # 1.0 becomes the largest number
    if most > wanted:
        return (img // ((most + 1) // (wanted + 1))).to(dtype)
    return img.to(dtype) * ((wanted + 1) // (most + 1))
