"""Native functions along one axis, always the last: running totals, order, search, counts.

Where PyTorch says something of NaN, so do these: NaN is the greatest value, and a running maximum
that met NaN stays NaN.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from . import dtypes
from .convert import widened
from .native import Array, Inferred, like, native


def _positions(x: Any, *_: Any) -> Inferred:
    return x.shape, dtypes.int64


# --- running totals -----------------------------------------------------------------------------


def _wide(x: Array) -> Any:
    """The dtype in which to add up: halves in single precision."""
    return np.float32 if x.dtype == np.float16 else x.dtype


def _wider(x: Array) -> Any:
    """The dtype of running totals: single precision in double."""
    return np.float64 if x.dtype == np.float32 else _wide(x)


@native(like)
def scan_add(x: Array, axis: int = -1, reverse: bool = False) -> Array:
    """out[i] = x[0] + … + x[i] along an axis, which counts from the last: -1, -2, …

    In reverse it is x[i] + … + x[-1].
    """
    if reverse:
        return np.flip(scan_add(np.flip(x, axis), axis), axis)
    with np.errstate(all="ignore"):
        return np.cumsum(x, axis=axis, dtype=_wider(x)).astype(x.dtype, copy=False)


@native(like)
def scan_mul(x: Array, axis: int = -1) -> Array:
    """out[i] = x[0] · … · x[i] along an axis."""
    with np.errstate(all="ignore"):
        return np.cumprod(x, axis=axis, dtype=_wider(x)).astype(x.dtype, copy=False)


@native(like)
def scan_linear(x: Array, factor: Array, axis: int = -1, reverse: bool = False) -> Array:
    """out[i] = factor[i] · out[i - 1] + x[i] along an axis; out[0] = x[0].

    In reverse it is factor[i] · out[i + 1] + x[i], from the last on.
    """
    if reverse:
        return np.flip(scan_linear(np.flip(x, axis), np.flip(factor, axis), axis), axis)
    out = np.array(np.moveaxis(x, axis, 0), _wider(x))
    factors = np.moveaxis(factor, axis, 0)
    with np.errstate(all="ignore"):
        for k in range(1, len(out)):
            out[k] += factors[k] * out[k - 1]
    return np.moveaxis(out, 0, axis).astype(x.dtype)


@native(like)
def scan_logaddexp(x: Array, axis: int = -1) -> Array:
    """out[i] = log(exp x[0] + … + exp x[i]) along an axis."""
    if x.dtype.kind == "c":
        return np.moveaxis(_scan_logaddexp_complex(np.moveaxis(x, axis, -1)), -1, axis)
    wide = x.astype(_wider(x), copy=False)
    with np.errstate(all="ignore"):
        return np.logaddexp.accumulate(wide, axis=axis).astype(x.dtype, copy=False)


def _scan_logaddexp_complex(x: Array) -> Array:
    """The same step by step: of two numbers the one with the larger real part is taken out."""
    out = np.array(x, np.complex128)
    with np.errstate(all="ignore"):
        for k in range(1, x.shape[-1]):
            a, b = out[..., k - 1], out[..., k]
            larger, smaller = np.where(a.real >= b.real, (a, b), (b, a))
            total = np.log(1 + np.exp(smaller - larger)) + larger
            endless = np.isinf(larger.real) & (smaller.real == larger.real)
            none = endless & (larger.real < 0)  # log(0 + 0)
            total = np.where(endless, np.where(none, smaller, np.log(np.exp(a) + np.exp(b))), total)
            out[..., k] = np.where(np.isnan(a) | np.isnan(b), complex(np.nan, np.nan), total)
    return out.astype(x.dtype)


@native(_positions)
def scan_argmax(x: Array, axis: int = -1) -> Array:
    """Where the largest of x[0] … x[i] along an axis stands, the latest of equal ones."""
    return _latest(x, np.maximum, axis)


@native(_positions)
def scan_argmin(x: Array, axis: int = -1) -> Array:
    """Where the smallest of x[0] … x[i] along an axis stands, the latest of equal ones."""
    return _latest(x, np.minimum, axis)


@native(like)
def scan_max(x: Array, axis: int = -1) -> Array:
    """The largest of x[0] … x[i] along an axis, the latest of equal ones (-0 equals 0)."""
    return np.take_along_axis(x, scan_argmax(x, axis), axis)


@native(like)
def scan_min(x: Array, axis: int = -1) -> Array:
    """The smallest of x[0] … x[i] along an axis, the latest of equal ones."""
    return np.take_along_axis(x, scan_argmin(x, axis), axis)


def _latest(x: Array, extreme: Any, axis: int) -> Array:
    best = extreme.accumulate(x, axis=axis)
    found = (x == best) | (x != x)  # NaN is unequal to itself
    steps = np.arange(x.shape[axis]).reshape(-1, *[1] * (-1 - axis))
    return np.maximum.accumulate(np.where(found, steps, -1), axis=axis)


# --- order --------------------------------------------------------------------------------------


@native(_positions)
def argsort(x: Array, descending: bool) -> Array:
    """The stable order; NaN counts as the greatest value."""
    x = widened(x)  # NumPy does not know where NaN of a bfloat16 belongs
    if not descending:
        return np.argsort(x, axis=-1, kind="stable")
    backwards = np.argsort(x[..., ::-1], axis=-1, kind="stable")
    order: Array = x.shape[-1] - 1 - backwards[..., ::-1]
    return order


def _top(x: Any, k: int, largest: bool) -> Inferred:
    return (*x.shape[:-1], k), dtypes.int64


@native(_top)
def top_positions(x: Array, k: int, largest: bool) -> Array:
    """The first k of the order, without sorting the rest; which of equal ones is left open."""
    x, length = widened(x), x.shape[-1]
    if k == 0 or 4 * k >= length:
        return argsort(x, largest)[..., :k]
    border = length - k if largest else k - 1
    found = np.argpartition(x, border, axis=-1)
    found = found[..., length - k :] if largest else found[..., :k]
    found.sort(axis=-1)  # so that the order among equal ones is theirs
    order = argsort(np.take_along_axis(x, found, axis=-1), largest)
    return np.take_along_axis(found, order, axis=-1)


def _row_position(x: Any, *_: Any) -> Inferred:
    return x.shape[:-1], dtypes.int64


@native(_row_position)
def mode_position(x: Array) -> Array:
    """Where the smallest of the most frequent values of a row stands last."""
    x = widened(x)
    order = np.argsort(x, axis=-1, kind="stable")
    ranked = np.take_along_axis(x, order, axis=-1)
    length = x.shape[-1]
    ends = np.ones(x.shape, bool)  # where a run of equal values ends
    ends[..., :-1] = ranked[..., :-1] != ranked[..., 1:]
    place = np.arange(length)
    previous = np.full(x.shape, -1)
    previous[..., 1:] = np.maximum.accumulate(np.where(ends, place, -1), axis=-1)[..., :-1]
    runs = np.where(ends, place - previous, 0)
    longest = np.argmax(runs, axis=-1)[..., None]
    return np.take_along_axis(order, longest, axis=-1)[..., 0]


# --- search and counts --------------------------------------------------------------------------


def _searched(bounds: Any, x: Any, right: bool, int32: bool) -> Inferred:
    return x.shape, dtypes.int32 if int32 else dtypes.int64


@native(_searched)
def searchsorted(bounds: Array, x: Array, right: bool, int32: bool) -> Array:
    """Where each x would be put into the ascending bounds; one row of bounds, or one a row."""
    side: Any = "right" if right else "left"
    kind = np.int32 if int32 else np.int64
    if bounds.ndim == 1:
        return np.searchsorted(bounds, x, side).astype(kind)
    found = np.zeros(x.shape, kind)
    for place in np.ndindex(*bounds.shape[:-1]):
        found[place] = np.searchsorted(bounds[place], x[place], side)
    return found


def _counted(x: Any, limits: Any, bins: int) -> Inferred:
    return (bins,), x.dtype


@native(_counted, batch=False)
def histogram(x: Array, limits: Array, bins: int) -> Array:
    """How many elements of x fall into each of `bins` equal bins from limits[0] to limits[1]."""
    low, high = limits.astype(x.dtype)
    inside = x[(x >= low) & (x <= high)]
    place = np.floor((inside - low) * x.dtype.type(bins) / (high - low)).astype(np.int64)
    return np.bincount(np.minimum(place, bins - 1), minlength=bins).astype(x.dtype)
