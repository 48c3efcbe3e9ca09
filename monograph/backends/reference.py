"""The reference backend: NumPy executes the expanded graph, node by node."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..compiler.pipeline import Compilation, Outcome
from ..ir import reference
from ..runtime.waiting import synchronize
from ..storage import Value


@dataclass
class Interpreted:
    """A program that NumPy executes."""

    compilation: Compilation

    @property
    def outputs(self) -> tuple[int, ...]:
        return self.compilation.recording.wanted

    @property
    def writes(self) -> tuple[tuple[int, int], ...]:
        return self.compilation.recording.writes

    def run(self, leaves: Sequence[Value], slots: Sequence[Any]) -> list[Outcome]:
        """The results, those that overwrite a leaf written into the leaf's memory."""
        synchronize()
        arrays = [value.array() for value in leaves]
        found = reference.run(self.compilation.graph, arrays, slots)
        results = [np.array(a, order="C") for a in found]
        for position, leaf in self.writes:
            place = self.outputs.index(position)
            np.copyto(arrays[leaf], results[place])
            results[place] = arrays[leaf]
        return [(array, None, 0) for array in results]


def compile(made: Compilation) -> Interpreted:  # noqa: A001
    """There is nothing to compile: the graph is the program."""
    return Interpreted(made)
