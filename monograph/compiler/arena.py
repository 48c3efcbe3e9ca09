"""Addresses in the arena: arrays that are alive together lie apart, and all take little room.

In go lifetimes, out come offsets. Arrays are placed one after the other, each in the lowest gap
that holds it; what is placed first decides. The largest come first. Where that leaves the arena
clearly above its lower bound, the array that stands out at the top is placed first instead, a few
times, and then the same from another order; of few arrays all orders are tried.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np

ALIGNMENT = 64
GOOD = 1.05  # of the lower bound: a plan as small as this is not improved
FEW = 5  # arrays of which all orders are tried
ROUNDS = 12  # placements from each of the orders, at most


@dataclass
class Lifetime:
    """One array of the arena: bytes, and the first and last step that use it."""

    nbytes: int
    first: int
    last: int
    offset: int = -1


def aligned(nbytes: int) -> int:
    """The bytes up to the next address that an array may have."""
    return -(-nbytes // ALIGNMENT) * ALIGNMENT


def assign(lifetimes: Sequence[Lifetime]) -> int:
    """Offsets so that arrays alive together do not overlap; the bytes needed in all."""
    good = lower_bound(lifetimes) * GOOD + ALIGNMENT
    best = sum(aligned(life.nbytes) for life in lifetimes)
    offsets: list[int] = []
    for order in _orders(lifetimes):
        for _ in range(ROUNDS):
            arena = _place(order)
            if not offsets or arena < best:
                best, offsets = arena, [life.offset for life in lifetimes]
            highest = int(np.argmax([life.offset + life.nbytes for life in order]))
            if best <= good or highest == 0:
                break
            order.insert(0, order.pop(highest))
        if best <= good:
            break
    for life, offset in zip(lifetimes, offsets):
        life.offset = offset
    return best


def _orders(lifetimes: Sequence[Lifetime]) -> Iterator[list[Lifetime]]:
    """Which to place first: the largest; those that are alive when most bytes are; of few any."""
    if not lifetimes:
        return
    yield sorted(lifetimes, key=lambda x: (-x.nbytes, x.first))
    alive = _alive(lifetimes)
    crowd = {id(x): int(alive[x.first : x.last + 1].max()) for x in lifetimes}
    yield sorted(lifetimes, key=lambda x: (-crowd[id(x)], -x.nbytes, x.first))
    if len(lifetimes) <= FEW:
        yield from map(list, permutations(lifetimes))


def _place(order: Sequence[Lifetime]) -> int:
    """Give each array in turn the lowest gap that holds it; the bytes needed in all."""
    # Of those that have an address: when they live, and where they begin and end.
    first, last, begin, end = np.zeros((4, len(order)), np.int64)
    for n, life in enumerate(order):
        meets = np.flatnonzero((first[:n] <= life.last) & (last[:n] >= life.first))
        busy = meets[np.argsort(begin[meets])]
        free = np.maximum.accumulate(np.concatenate([[0], end[busy]]))  # before each, and behind
        fits = np.flatnonzero(begin[busy] - free[:-1] >= life.nbytes)
        life.offset = int(free[fits[0]] if len(fits) else free[-1])
        first[n], last[n], begin[n] = life.first, life.last, life.offset
        end[n] = aligned(life.offset + life.nbytes)
    return int(end.max())


def lower_bound(lifetimes: Sequence[Lifetime]) -> int:
    """The largest sum of bytes alive at one step: no plan can do with less."""
    return int(_alive(lifetimes).max())


def _alive(lifetimes: Sequence[Lifetime]) -> np.ndarray:
    """The sum of bytes alive at each step."""
    changes = np.zeros(max((x.last for x in lifetimes), default=0) + 2, np.int64)
    for life in lifetimes:
        changes[life.first] += life.nbytes
        changes[life.last + 1] -= life.nbytes
    return changes.cumsum()
