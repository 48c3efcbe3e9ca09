"""Equal calls on different data as one: what the turns of a loop do next to each other.

Steps of one kind that do not depend on one another, as those of the turns of an episode, become one
step on arrays with a row for each of them. What comes out of one such step goes into the next as it
is, where the same turns read it; elsewhere its rows are taken apart, and put together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..ir.rows import LARGEST
from ..storage import Meta
from .calls import Kind

FEWEST = 4  # calls that are worth it
# What to call, and the cells that it reads and fills.
Step = tuple[Kind, tuple[int, ...], tuple[int, ...]]


class Stack(Kind):
    """Puts arrays, or numbers, of one kind into the rows of one array."""

    def __init__(self, meta: Any) -> None:
        if meta.__class__ is Meta:
            size, join = meta.size, np.concatenate
            self.call = lambda *parts: [join(parts, None).reshape(-1, size)]
        else:
            self.call = lambda *parts: [np.array(parts)]


class Unstack(Kind):
    """Takes the rows of an array apart; of a column, each is repeated."""

    def __init__(self, meta: Meta, count: int) -> None:
        shape, size = (count, *meta.shape), meta.size

        def call(rows: np.ndarray) -> list[Any]:
            if rows.shape != (count, size):
                rows = np.broadcast_to(rows, (count, size))
            whole = rows.reshape(shape)
            return [whole[n, ...] for n in range(count)]

        self.call = call


class Together(Kind):
    """Calls of one kind, all at once."""

    def __init__(self, call: Callable[..., list[Any]]) -> None:
        self.call = call


class Joiner:
    """Steps in an order in which equal ones are one; `new` makes a cell for a kind of value."""

    def __init__(self, metas: Sequence[Any], new: Callable[[Any], int]) -> None:
        self._metas = metas
        self._new = new
        self._stacks: dict[tuple[int, ...], int] = {}  # cells → the cell of their rows
        self.steps: list[Step] = []

    def join(self, steps: Sequence[Step]) -> list[Step] | None:
        """The steps, of which many are one; None where too few are alike."""
        groups = self._groups(steps)
        calls = [g[0][0].rows() if len(g) >= FEWEST else None for g in groups]
        if not any(calls):
            return None
        for group, call in zip(groups, calls, strict=True):
            if call is None:
                self.steps += group
            else:
                self._together(group, call)
        return self.steps

    def _groups(self, steps: Sequence[Step]) -> list[list[Step]]:
        """Steps that depend on as many others before them; those that may be one, together."""
        depths: dict[int, int] = {}
        groups: dict[Any, list[Step]] = {}
        for number, step in enumerate(steps):
            kind, read, filled = step
            depth = 1 + max([depths.get(cell, 0) for cell in read], default=0)
            for cell in filled:
                depths[cell] = depth
            metas = tuple([self._metas[cell] for cell in filled])
            small = all([meta.__class__ is Meta and meta.size <= LARGEST for meta in metas])
            alike = (kind, metas) if small else number
            groups.setdefault((depth, alike), []).append(step)
        return [groups[key] for key in sorted(groups, key=lambda key: key[0])]

    def _together(self, group: list[Step], call: Callable[..., list[Any]]) -> None:
        read = [self._rows_of(cells) for cells in zip(*[step[1] for step in group], strict=True)]
        parts = [*zip(*[step[2] for step in group], strict=True)]
        made = [self._new(None) for _ in parts]
        self.steps.append((Together(call), tuple(read), tuple(made)))
        for cells, rows in zip(parts, made, strict=True):
            self._stacks[cells] = rows
            self.steps.append((Unstack(self._metas[cells[0]], len(group)), (rows,), cells))

    def _rows_of(self, cells: tuple[int, ...]) -> int:
        """The cell of an array with these as rows; with one, if all are the same."""
        if len({*cells}) == 1:
            cells = cells[:1]
        found = self._stacks.get(cells)
        if found is None:
            found = self._stacks[cells] = self._new(None)
            self.steps.append((Stack(self._metas[cells[0]]), cells, (found,)))
        return found
