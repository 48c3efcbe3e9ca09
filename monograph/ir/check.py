"""Checks: what a definition requires of values that only the data shows.

A definition says `check(bad, value, message)`: `bad` is true where an element must not be as it is,
`value` is the integer to name, and `message` says what is wrong with it. While a recording is
expanded, `collecting` gathers what definitions say; elsewhere (finding out a result's shape,
differentiating) a check is nothing. The compiler makes one small reduction of all checks.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from . import build, index
from .dtypes import Kind, int64
from .node import Const, Coordinate, Map, Node, Reduce, Reindex, axis

_collected = threading.local()


@dataclass(frozen=True)
class Check:
    """A requirement of one expansion. `error` is a class of `monograph.errors`."""

    bad: Node
    value: Node
    message: str  # with {value} where the number goes
    error: str


@contextmanager
def collecting(checks: list[Check]) -> Iterator[None]:
    """While within, definitions add their checks to the list."""
    before = getattr(_collected, "checks", None)
    _collected.checks = checks
    try:
        yield
    finally:
        _collected.checks = before


def check(bad: Node, value: Node, message: str, error: str = "IndexOutOfRange") -> None:
    """Require that `bad` is false everywhere; `message` may name the `{value}` of an element."""
    checks: list[Check] | None = getattr(_collected, "checks", None)
    if checks is None or bad.size == 0 or build.constant_value(bad) is False:
        return
    checks.append(Check(bad, build.cast(value, int64), message, error))


def check_index(where: Node, extent: int, along: int, negative: bool = False) -> None:
    """Require 0 <= where < extent; with `negative`, -extent <= where."""
    low, high = (-extent if negative else 0), extent - 1
    if _lies_within(where, low, high):
        return
    where = _without_repeats(where)
    check(
        build.elementwise("or", where < low, where > high),
        where,
        f"index {{value}} is out of range for axis {along} of size {extent}",
    )


def _without_repeats(node: Node) -> Node:
    """What an array repeats: of an index that was expanded, each element is looked at once."""
    while isinstance(node, Reindex) and not node.guard and len(node.inputs) == 1:
        if not _shows_all(node):
            break
        node = node.inputs[0]
    return node


def _shows_all(node: Reindex) -> bool:
    """Whether each axis of the source is one of the result's, or has a single place."""
    free = {index.wrap(axis(k, extent)): extent for k, extent in enumerate(node.shape)}
    for place, extent in zip(node.index, node.inputs[0].shape, strict=True):
        if place != index.ZERO or extent != 1:
            if free.pop(place, None) != extent:
                return False
    return True


def _lies_within(node: Node, low: int, high: int) -> bool:
    """Whether all elements are known to lie between two numbers, without looking at data."""
    while True:
        if isinstance(node, Const):
            return low <= node.value.real <= high
        if isinstance(node, Coordinate):
            return low <= 0 and node.shape[node.axis] - 1 <= high
        if isinstance(node, Reduce) and node.combine.startswith("arg"):
            count = 1
            for k in node.axes:
                count *= node.inputs[0].shape[k]
            return low <= 0 and count - 1 <= high
        if isinstance(node, Reindex) and not node.guard:
            node = node.inputs[0]
        elif isinstance(node, Map) and node.function in ("cast", "detach", "mark"):
            node = node.inputs[0]
            if node.dtype.kind is not Kind.INT:  # rounding may have moved it
                return False
        else:
            return False
