"""A plan made native: kernels compiled and loaded, primitives created, one table to launch."""

from __future__ import annotations

import struct
from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ...compiler.facts import Facts
from ...compiler.plan import CheckStep, HostStep, KernelStep, LibraryStep, Plan, Ref
from ...config import config
from ...ir import dtypes
from ...runtime import native, openmp, status
from ...runtime.executor import EXECUTOR
from ...runtime.memory import Block, Pool
from ...runtime.program import (
    Address,
    Arena,
    Instruction,
    Leaf,
    Library,
    LibraryFunctions,
    Operand,
    Program,
    Slots,
    Status,
    check,
)
from . import library, onednn
from .host import host_function
from .onednn import Primitive

pool = Pool()


class ArenaMemory:
    """The one arena of this device: it grows to the largest program, and never moves in between."""

    def __init__(self) -> None:
        self.block: Block | None = None

    def address(self, nbytes: int) -> int:
        """The address of at least that many bytes."""
        if self.block is None or self.block.nbytes < nbytes:
            EXECUTOR.synchronize()
            self.block = pool.allocate(max(nbytes, 64))
        return self.block.address


arena = ArenaMemory()


class NativeProgram:
    """A program that the executor runs."""

    def __init__(self, plan: Plan, addresses: Mapping[str, int], keep: object = None) -> None:
        self.plan = plan
        self._kept: list[Any] = [keep]
        instructions: list[Instruction | Library] = []
        self.parts: list[tuple[int, Primitive | None]] = []  # step of each instruction
        for number, step in enumerate(plan.steps):
            if isinstance(step, KernelStep):
                operands = tuple(self._operand(r) for r in step.arguments)
                if step.sizes:
                    table = array("q", step.sizes)
                    self._kept.append(table)
                    operands += (Address(table.buffer_info()[0]),)
                instructions.append(Instruction(addresses[step.name], operands, step.name))
            elif isinstance(step, CheckStep):
                instructions.append(check(self._operand(step.value), step.check))
            elif isinstance(step, HostStep):
                instructions.append(self._host(step))
            else:
                instructions += self._library(step, number)
                continue
            self.parts.append((number, None))
        count = plan.leaves + len(plan.results)
        self.program = Program(
            instructions, count, 8 * max(plan.slots, 1), plan.arena_bytes, self._kept
        )
        self._pack: Callable[..., None] | None = None
        self.metas = [(shape, dtypes.BY_NAME[name]) for shape, name in plan.results]
        self.sizes = [
            int(np.prod(shape, dtype=np.int64)) * dtype.itemsize for shape, dtype in self.metas
        ]

    def _operand(self, ref: Ref) -> Operand:
        kind, number, offset = ref
        if kind == "arena":
            return Arena(number)
        if kind == "slot":
            return Slots(8 * number)
        if kind == "status":
            return Status()
        return Leaf(number if kind == "leaf" else self.plan.leaves + number, offset)

    def _host(self, step: HostStep) -> Instruction:
        function = host_function(step)
        self._kept.append(function)
        return function.instruction([self._operand(ref) for ref in step.arguments])

    def _library(self, step: LibraryStep, number: int) -> list[Library]:
        bound = library.prepare(step.kind, step.operands, step.options)
        if bound is None or library.workspace(bound) != step.workspace:
            raise RuntimeError(f"oneDNN no longer offers {step.kind} {step.operands}")
        functions = LibraryFunctions(*onednn.function_addresses())
        made = []
        for part in bound:
            self._kept.append(part.primitive)
            self.parts.append((number, part.primitive))
            operands = tuple(self._operand(step.arguments[name]) for name in part.buffers)
            p = part.primitive
            made.append(
                Library(functions, p.handle, p.stream, p.memories, p.exec_args_address,
                        len(p.argument_ids), operands, f"{step.kind} {p.implementation}")
            )  # fmt: skip
        return made

    def launch(
        self, leaves: Sequence[int], slots: Sequence[Any], results: Sequence[int], keep: object
    ) -> int:
        """Start the program; a ticket to wait for."""
        frame = EXECUTOR.frame(self.program)
        frame.fill((*leaves, *results), arena.address(self.plan.arena_bytes))
        if self.plan.numbers:
            slots = (*slots, *self.plan.numbers)
        if slots:
            if self._pack is None:
                self._pack = struct.Struct("".join(_FORMAT[type(s)] for s in slots)).pack_into
            self._pack(frame.slots, 0, *slots)
        frame.own(status.current())
        return EXECUTOR.submit(frame, keep)


def facts_of_parts(
    parts: Sequence[tuple[int, Primitive | None]], facts: Callable[[], Sequence[Facts]]
) -> list[Facts]:
    """What is known of each instruction, from what is known of each step."""
    known = facts()
    return [
        known[number] if primitive is None else _of_primitive(known[number], primitive)
        for number, primitive in parts
    ]


def _of_primitive(known: Facts, primitive: Primitive) -> Facts:
    """One of the primitives that a library call is made of: the call itself, or a copy for it."""
    sizes = zip(primitive.operands, primitive.operand_bytes, strict=True)
    nbytes = sum(size for name, size in sizes if name != "scratchpad")
    if primitive.is_copy:
        name = f"copy for {known.name}"
        return replace(known, name=name, kind="copy", bytes=nbytes, least_bytes=nbytes, flops=0)
    return replace(known, bytes=nbytes, least_bytes=nbytes, flops=primitive.flops)


_FORMAT = {float: "d", int: "q", bool: "?7x"}


def prepare_runtime() -> None:
    """Load the OpenMP helper that kernels call, and set the number of threads."""
    native.set_cache_folder(config.cache_dir / "objects" if config.disk_cache else None)
    gomp = openmp.library()
    openmp.module()
    openmp.set_threads(config.threads)
    if gomp is not None:  # oneDNN asks when a primitive is made, on this thread
        gomp.omp_set_num_threads(config.threads)
