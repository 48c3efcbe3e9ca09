"""The reference backend: NumPy executes the expanded graph, node by node."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..compiler.checks import Note
from ..compiler.pipeline import Compilation, Outcome
from ..compiler.recording import Turns
from ..ir import reference
from ..runtime import status
from ..runtime.waiting import synchronize
from ..storage import Memory, Value

CHECKS = True  # programs check what the data must be, and write nothing when it is not


class ByNumPy:
    """A program that NumPy executes; how is for those who derive from it."""

    def __init__(
        self, outputs: tuple[int, ...], writes: tuple[tuple[int, int], ...], watched: bool
    ) -> None:
        self.outputs = outputs
        self.writes = writes
        self.watched = watched
        # That compiling it would have saved in all, and in its last run; `kept` would remain.
        self.seconds = self.latest = self.kept = 0.0
        self.turns: Sequence[Turns] = ()

    @property
    def checks(self) -> Sequence[Note]:
        """What to say of each check, in their order."""
        raise NotImplementedError

    def run(self, leaves: Sequence[Value], slots: Sequence[Any]) -> list[Outcome]:
        """The results, those that overwrite a leaf written into the leaf's memory."""
        synchronize()
        started = time.perf_counter()
        owner = status.current()
        owner.serial += 1
        arrays = [value.array() for value in leaves]
        results = self._results(arrays, slots, owner)
        self.latest = time.perf_counter() - started - self.kept
        self.seconds += self.latest
        owner.results = (owner.serial, results)  # from here on, an interrupted run is finished
        return self._written(leaves, arrays, results, owner)

    def interrupted(self, leaves: Sequence[Value]) -> list[Outcome] | None:
        """The outcomes of a run that was interrupted once all was computed; None before it."""
        owner = status.current()
        serial, results = owner.results
        if serial != owner.serial:
            return None
        return self._written(leaves, [value.array() for value in leaves], results, owner)

    def _written(
        self, leaves: Sequence[Value], arrays: list[np.ndarray], results: list[np.ndarray],
        owner: status.Owner,
    ) -> list[Outcome]:  # fmt: skip
        outcomes: list[Outcome] = [Memory(array) for array in results]
        for position, leaf in self.writes:
            place, old = self.outputs.index(position), leaves[leaf]
            if not owner.held:
                np.copyto(arrays[leaf], results[place])
            outcomes[place] = old
        owner.words[status.DONE] = owner.serial
        return outcomes

    def _results(
        self, arrays: list[np.ndarray], slots: Sequence[Any], owner: status.Owner
    ) -> list[np.ndarray]:
        """What is computed; nothing, after a failure that nobody was told of."""
        raise NotImplementedError


class Interpreted(ByNumPy):
    """A program that is interpreted node by node."""

    def __init__(self, compilation: Compilation) -> None:
        recording = compilation.recording
        super().__init__(recording.wanted, recording.writes, bool(compilation.checks))
        self.compilation = compilation

    @property
    def checks(self) -> Sequence[Note]:
        """What to say of each check."""
        return self.compilation.checks

    def _results(
        self, arrays: list[np.ndarray], slots: Sequence[Any], owner: status.Owner
    ) -> list[np.ndarray]:
        if owner.held:
            return [np.zeros(n.shape, n.dtype.numpy) for n in self.compilation.results]
        found = reference.run(self.compilation.graph, arrays, slots)
        for group, code in enumerate(found[len(self.outputs) :]):
            if code and not owner.held:
                owner.fail(group + 1, int(code))
        return found[: len(self.outputs)]


def compile(made: Compilation) -> Interpreted:  # noqa: A001
    """There is nothing to compile: the graph is the program."""
    return Interpreted(made)
