"""The backend that runs nothing: it compiles for a GPU that need not be there.

Any program is compiled as for CUDA: contractions that cuBLASLt would take become calls, all else
becomes Triton text, and `NullExecutable.compile` makes machine code of it on request. Running a
program counts its launches and returns zeros of the right shape and dtype; what a program would
overwrite in place keeps its contents. So everything up to the launch is tested on any machine.

>>> import monograph as mg
>>> with mg.config.override(backend="null"):
...     (mg.ones(2, 3) + 1).numpy()
array([[0., 0., 0.],
       [0., 0., 0.]], dtype=float32)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import statistics
from ..compiler.host import real_numbers
from ..compiler.pipeline import Outcome
from ..storage import Memory
from .cuda.compile import HOPPER, CompiledKernel, compile_kernel
from .cuda.matmul import accepts
from .cuda.program import CallList, make_calls

__all__ = ["NullExecutable", "accepts", "build", "supports", "workspace"]

supports = real_numbers


def workspace(kind: str, operands: dict[str, Any], options: dict[str, Any]) -> dict[str, int]:
    """Nothing runs, so no call needs any."""
    return {}


class NullExecutable:
    """A planned program with the text of all its kernels."""

    checks = ()
    watched = False

    def __init__(self, made: Any) -> None:
        self.compilation = made
        self.outputs: tuple[int, ...] = made.recording.wanted
        self.writes: tuple[tuple[int, int], ...] = made.recording.writes
        self.calls: CallList = make_calls(made)

    def run(self, leaves: Sequence[Any], slots: Sequence[Any]) -> list[Outcome]:
        """Zeros, apart from results that take the place of a leaf: those are the leaf."""
        statistics.counters.launches += self.calls.launches
        replaced = dict(self.writes)
        outcomes: list[Outcome] = []
        for position, node in zip(self.outputs, self.compilation.graph, strict=True):
            leaf = replaced.get(position)
            if leaf is None:
                outcomes.append(Memory(np.zeros(node.shape, node.dtype.numpy)))
            else:
                outcomes.append(leaves[leaf])
        return outcomes

    def compile(self, capability: int = HOPPER) -> dict[str, CompiledKernel]:
        """Machine code of every kernel and of what combines its partials, by name."""
        compiled: dict[str, CompiledKernel] = {}
        for text in self.calls.texts.values():
            for function in (text, *text.combine):
                compiled[function.name] = compile_kernel(function, capability)
        return compiled


def build(made: Any) -> NullExecutable:
    """Emit the text of all kernels of a planned program."""
    return NullExecutable(made)
