"""Native functions: Fourier transforms over the last axes, all before them a batch.

NumPy computes in the precision of its input, so single precision stays single. `norm` says which
direction is divided by the number of points, as in NumPy: "backward" the inverse, "forward" the
other one, "ortho" each by the root of it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .native import Array, Inferred, like, native


def _last(rank: int) -> tuple[int, ...]:
    return tuple(range(-rank, 0))


@native(like)
def fft(x: Array, rank: int, inverse: bool, norm: str) -> Array:
    """The transform of complex numbers over the last `rank` axes, or its inverse."""
    transform = np.fft.ifftn if inverse else np.fft.fftn
    return np.asarray(transform(x, axes=_last(rank), norm=norm))  # type: ignore[arg-type]


def _half(x: Any, *_: Any) -> Inferred:
    return (*x.shape[:-1], x.shape[-1] // 2 + 1), x.dtype.to_complex()


@native(_half)
def rfft(x: Array, rank: int, norm: str) -> Array:
    """The transform of real numbers: the half of the last axis that tells the other."""
    return np.asarray(np.fft.rfftn(x, axes=_last(rank), norm=norm))  # type: ignore[arg-type]


def _real(x: Any, rank: int, length: int, norm: str) -> Inferred:
    return (*x.shape[:-1], length), x.dtype.to_real()


@native(_real)
def irfft(x: Array, rank: int, length: int, norm: str) -> Array:
    """The inverse transform to real numbers, `length` of them along the last axis."""
    sizes = (*x.shape[x.ndim - rank : -1], length)
    return np.asarray(np.fft.irfftn(x, sizes, _last(rank), norm))  # type: ignore[arg-type]
