"""Native functions: what a `Call` node may name.

An entry says what a function means in NumPy, on whole arrays, and which shape and dtype come out.
There is one output. Several results of one dtype are packed side by side along the last axis, and
Reindex takes them apart: so planning and derivatives know one kind of value, and a factorisation
runs once for all its parts. Leading axes are a batch, unless the entry says otherwise: a function
works on the trailing ones only. An entry that can fail raises from `errors`, and the user meets
that at the next read.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .dtypes import DType

Array = np.ndarray[Any, Any]
Inferred = tuple[tuple[int, ...], DType]


@dataclass(frozen=True)
class Native:
    """One function. `numpy` and `infer` get the operands (arrays, nodes), then the options."""

    name: str
    numpy: Callable[..., Array]
    infer: Callable[..., Inferred]
    fails: type[Exception] | None = None  # raised where the data has no answer
    batch: bool = True  # whether more leading axes, the same for all operands, are a batch


TABLE: dict[str, Native] = {}


def native(
    infer: Callable[..., Inferred],
    name: str | None = None,
    fails: type[Exception] | None = None,
    batch: bool = True,
) -> Callable[[Callable[..., Array]], Callable[..., Array]]:
    """Register the decorated NumPy function under its name.

    >>> @native(lambda x: (x.shape, x.dtype), name="example_reverse")
    ... def reverse(x):
    ...     return x[..., ::-1]
    >>> run("example_reverse", [np.arange(3)], ())
    array([2, 1, 0])
    >>> del TABLE["example_reverse"]
    """

    def register(function: Callable[..., Array]) -> Callable[..., Array]:
        title = name or function.__name__.strip("_")
        TABLE[title] = Native(title, function, infer, fails, batch)
        return function

    return register


def run(name: str, operands: list[Array], options: tuple[Any, ...]) -> Array:
    """The meaning of one call."""
    return np.asarray(TABLE[name].numpy(*operands, *options))


def like(x: Any, *_: Any) -> Inferred:
    """The shape and dtype of the first operand: what many functions give."""
    return x.shape, x.dtype
