"""The CPU backend: which contractions the library takes, and a plan made into a program."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import statistics
from ...codegen.llvm import Machine, emit
from ...compiler.pipeline import Compilation, Outcome, on_synchronize
from ...config import config
from ...runtime import native
from ...runtime.executor import EXECUTOR
from ...storage import Value
from . import library
from .program import NativeProgram, pool, prepare_runtime

on_synchronize(EXECUTOR.synchronize)


def accepts(kind: str, operands: dict[str, Any], options: dict[str, Any]) -> bool:
    """Whether oneDNN has good code for this call."""
    return library.prepare(kind, operands, options) is not None


def workspace(kind: str, operands: dict[str, Any], options: dict[str, Any]) -> dict[str, int]:
    """Bytes of packed weights and scratchpads that the call needs."""
    steps = library.prepare(kind, operands, options)
    assert steps is not None
    return library.workspace(steps)


class CpuExecutable:
    """A compiled program with the positions of its results."""

    def __init__(self, made: Compilation, native_program: NativeProgram) -> None:
        recording = made.recording
        self.outputs = recording.wanted
        self.writes = recording.writes
        self.native = native_program
        self.compilation = made
        nonempty = [n for n, node in enumerate(made.graph) if node.size]
        self._place = {n: place for place, n in enumerate(nonempty)}
        self._metas = [(node.shape, node.dtype) for node in made.graph]
        overwritten = {
            recording.wanted.index(position): leaf for position, leaf in recording.writes
        }
        self._in_place = native_program.plan.in_place
        self._copied = {
            n: leaf for n, leaf in overwritten.items()
            if n in self._place and self._place[n] not in self._in_place
        }  # fmt: skip

    def run(self, leaves: Sequence[Value], slots: Sequence[Any]) -> list[Outcome]:
        """Launch; the results are valid once the executor has finished."""
        program = self.native
        addresses = [value.address or value.locate() for value in leaves]
        results: list[int] = []
        blocks: list[Any] = []
        in_place = self._in_place
        for n, nbytes in enumerate(program.sizes):
            leaf = in_place.get(n)
            if leaf is None:
                block = pool.allocate(nbytes)
                blocks.append(block)
                results.append(block.address)
            else:
                blocks.append(None)
                results.append(addresses[leaf])
        program.launch(addresses, slots, results, (leaves, blocks))
        statistics.counters.launches += 1
        if any(value.exposed for value in leaves):
            EXECUTOR.synchronize()
        return self._outcomes(leaves, blocks, results)

    def _outcomes(
        self, leaves: Sequence[Value], blocks: Sequence[Any], results: Sequence[int]
    ) -> list[Outcome]:
        outcomes: list[Outcome] = []
        for n, (shape, dtype) in enumerate(self._metas):
            place = self._place.get(n)
            if place is None:
                outcomes.append((np.empty(shape, dtype.numpy), None, 0))
                continue
            leaf = self._in_place.get(place)
            if leaf is not None:
                old = leaves[leaf]
                outcomes.append((old.data, old.block, old.address))
            elif n in self._copied and leaves[self._copied[n]].exposed:
                old = leaves[self._copied[n]]
                EXECUTOR.synchronize()
                np.copyto(old.array(), blocks[place].numpy(dtype.numpy, shape))
                outcomes.append((old.data, old.block, old.address))
            else:
                outcomes.append((None, blocks[place], results[place]))
        return outcomes


def build(made: Compilation) -> CpuExecutable:
    """Compile the kernels and make the native program."""
    assert made.plan is not None
    prepare_runtime(config.threads)
    kernels = {low.kernel.name: low.kernel for low in made.lowered.values()}
    machine = Machine(native.vector_bits())
    modules = {name: native.compile_ir(emit(kernel, machine)) for name, kernel in kernels.items()}
    addresses = {name: module.address(name) for name, module in modules.items()}
    program = NativeProgram(made.plan, addresses, modules)
    statistics.counters.arena_bytes = max(
        statistics.counters.arena_bytes, made.plan.arena_bytes
    )
    return CpuExecutable(made, program)


