"""One axis turned to the end and back: native functions work along the last one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..ir import build
from ..ir.index import Read
from ..ir.node import coordinates
from .reduce import axes_of

Restore = Callable[..., Any]


def axis_of(x: Any, dim: int) -> int:
    """The axis meant by `dim`; a number has one of size 1."""
    axes = axes_of(x, dim)
    return axes[0] if axes else 0


def to_last(x: Any, dim: int) -> tuple[Any, Restore]:
    """(x with axis `dim` last, the way back for an array of that form).

    The way back takes arrays whose last axis has another size, or with `gone` none any more.
    """
    if x.ndim == 0:
        axis_of(x, dim)
        return build.reshape(x, (1,)), lambda y, gone=False: build.reshape(y, ())
    k = axis_of(x, dim)
    order = [*[n for n in range(x.ndim) if n != k], k]

    def restore(y: Any, gone: bool = False) -> Any:
        return y if gone else build.permute(y, [order.index(n) for n in range(x.ndim)])

    return build.permute(x, order), restore


def take_last(rows: Any, where: Any) -> Any:
    """out[…, i] = rows[…, where[…, i]]: both have the same leading axes."""
    return take_along(rows, where, -1)


def take_along(x: Any, where: Any, axis: int) -> Any:
    """out[…, i, …] = x[…, where[…, i, …], …]: both have the same other axes."""
    places: list[Any] = list(coordinates(where.shape))
    places[axis] = Read(0, tuple(coordinates(where.shape)), x.shape[axis])
    return build.reindex(x, where.shape, places, reads=(where,))


def first_of_last(rows: Any, start: int, length: int) -> Any:
    """rows[…, start : start + length]."""
    shape = (*rows.shape[:-1], length)
    places: list[Any] = list(coordinates(shape))
    places[-1] = places[-1] + start
    return build.reindex(rows, shape, places)
