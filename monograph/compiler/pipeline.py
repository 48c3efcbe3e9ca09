"""The compiler, top to bottom: from a recording to an executable program.

`PASSES` lists what happens in order. Programs that were made are kept by the key of their
recording; a program whose results include those wanted now serves again, so that a variable that
happens to be alive does not cost a compilation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from .. import statistics
from ..ir import reference
from ..ir.node import Node, interning
from .recording import Expansion, Recording


class Executable(Protocol):
    """A program ready to run: `outputs` are the result positions that it produces."""

    outputs: tuple[int, ...]
    writes: tuple[tuple[int, int], ...]

    def run(self, leaves: Sequence[np.ndarray], slots: Sequence[Any]) -> list[np.ndarray]: ...


@dataclass
class Interpreted:
    """A program that the NumPy reference executes."""

    graph: list[Node]
    outputs: tuple[int, ...]
    writes: tuple[tuple[int, int], ...]

    def run(self, leaves: Sequence[np.ndarray], slots: Sequence[Any]) -> list[np.ndarray]:
        """The results, those that overwrite a leaf written into the leaf's memory."""
        arrays = reference.run(self.graph, leaves, slots)
        results = [np.array(a, order="C") for a in arrays]
        for position, leaf in self.writes:
            place = self.outputs.index(position)
            np.copyto(leaves[leaf], results[place])
            results[place] = leaves[leaf]
        return results


class Programs:
    """All programs of this process, by the key of their recording."""

    def __init__(self) -> None:
        self._by_key: dict[Any, list[Executable]] = {}

    def find(
        self, key: Any, wanted: tuple[int, ...], writes: tuple[tuple[int, int], ...]
    ) -> Executable | None:
        """A program for this recording that produces at least what is wanted."""
        for executable in self._by_key.get(key, ()):
            if executable.writes == writes and (
                executable.outputs == wanted or set(executable.outputs) >= set(wanted)
            ):
                return executable
        return None

    def make(self, key: Any, recording: Recording) -> Executable:
        """Compile, and keep."""
        executable = compile_recording(recording, key[1])
        self._by_key.setdefault(key, []).append(executable)
        return executable


def compile_recording(recording: Recording, backend: str) -> Executable:
    """Run the passes."""
    with interning():
        graph = Expansion(recording).run()
    statistics.counters.compilations += 1
    return Interpreted(graph, recording.wanted, recording.writes)
