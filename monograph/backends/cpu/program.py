"""A plan made native: kernels compiled and loaded, primitives created, one table to launch."""

from __future__ import annotations

import struct
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from math import prod
from typing import Any

from ...compiler.facts import Facts
from ...compiler.plan import (
    CheckStep,
    HostStep,
    KernelStep,
    LibraryStep,
    LoopStep,
    Place,
    Plan,
    Ref,
    Step,
)
from ...config import config
from ...ir import dtypes
from ...runtime import native, openmp, status
from ...runtime.driver import WORD
from ...runtime.executor import EXECUTOR
from ...runtime.instructions import (
    Address,
    Arena,
    Instruction,
    Leaf,
    Library,
    LibraryFunctions,
    Operand,
    Slots,
    Status,
    check,
)
from ...runtime.memory import Block, Pool
from ...runtime.program import Program
from ...runtime.turns import AnyInstruction, TurnPlace, Turns
from . import library, onednn
from .host import host_function
from .onednn import Primitive

pool = Pool()
Operands = Callable[[Ref], Operand]
# Of an instruction the number of its step, and the primitive that it runs or a loop's instructions.
Part = tuple[int, Any]


class ArenaMemory:
    """The one arena of this device: it grows to the largest program, and never moves in between.

    Whoever asks where it lies holds the executor's lock for as long as that matters.
    """

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
        self.keep = keep
        self.addresses = addresses
        self._kept: list[Any] = [keep]
        self.shares = False  # whether a library may call for other threads
        # Of each table of sizes its argument's number and its length, and of each library step its
        # calls, by the number of the first instruction.
        self._tables: list[tuple[int, int]] = []
        self._calls: dict[int, tuple[int, list[Library]]] = {}
        instructions, self.parts = self._instructions(plan.steps, plan.leaves)
        count = plan.leaves + len(plan.results)
        self.program = Program(
            instructions, count, 8 * max(plan.slots, 1), plan.arena_bytes, self._kept
        )
        self._describe_results()

    def _describe_results(self) -> None:
        self._pack: Callable[..., None] | None = None
        self.metas = [(shape, dtypes.BY_NAME[name]) for shape, name in self.plan.results]
        self.sizes = [prod(shape) * dtype.itemsize for shape, dtype in self.metas]

    def with_sizes(self, plan: Plan, sizes: array[int]) -> NativeProgram | None:
        """The same program for a plan of other sizes, which are given one table after the other.

        All must lie at the same places. None if a library call has other parts.
        """
        made = copy(self)
        made.plan, made._kept, made.shares = plan, [self.keep, sizes], False
        begin, _ = sizes.buffer_info()
        addresses = {}
        for number, length in self._tables:
            addresses[number] = begin
            begin += WORD * length
        calls: dict[int, Library] = {}
        primitives: dict[int, Iterator[Primitive]] = {}
        for number, (first, before) in self._calls.items():
            step = plan.steps[number]
            assert isinstance(step, LibraryStep)
            after, parts = made._library(step, lambda ref: _operand(ref, plan.leaves))
            if [call.operands for call in after] != [call.operands for call in before]:
                return None
            calls.update(enumerate(after, first))
            primitives[number] = iter(parts)
        made.parts = [
            (number, next(primitives[number]) if number in primitives else inside)
            for number, inside in self.parts
        ]
        made.program = self.program.with_others(addresses, calls, made._kept)
        made._describe_results()
        return made

    def _instructions(
        self, steps: Sequence[Step], leaves: int
    ) -> tuple[list[AnyInstruction], list[Part]]:
        """The instructions of some steps; results are numbered behind that many leaves."""
        made: list[AnyInstruction] = []
        parts: list[Part] = []
        arguments = counted = 0  # of the instructions so far

        def operand(ref: Ref) -> Operand:
            return _operand(ref, leaves)

        for number, step in enumerate(steps):
            inside: tuple[Part, ...] | None = None
            arguments += sum([len(each.operands) for each in made[counted:]])
            counted = len(made)
            if isinstance(step, KernelStep):
                operands = tuple(map(operand, step.arguments))
                if step.sizes:
                    table = array("q", step.sizes)
                    self._kept.append(table)
                    self._tables.append((arguments + len(operands), len(table)))
                    operands += (Address(table.buffer_info()[0]),)
                made.append(Instruction(self.addresses[step.name], operands, step.name))
            elif isinstance(step, CheckStep):
                made.append(check(operand(step.value), step.check))
            elif isinstance(step, HostStep):
                made.append(self._host(step, operand))
            elif isinstance(step, LoopStep):
                instruction, inside = self._loop(step, operand)
                made.append(instruction)
            else:
                calls, primitives = self._library(step, operand)
                self._calls[number] = len(made), calls
                made += calls
                parts += [(number, primitive) for primitive in primitives]
                continue
            parts.append((number, inside))
        return made, parts

    def _loop(self, step: LoopStep, operand: Operands) -> tuple[Instruction, tuple[Part, ...]]:
        inside, parts = self._instructions(step.body, len(step.leaves))
        once = sum(number < step.once for number, _ in parts)
        places = [_turn_place(place, operand) for place in (*step.leaves, *step.results)]
        slots = 8 * max(self.plan.slots, 1)
        turns = Turns(step.trips, inside, once, places, step.arena_bytes, slots)
        self._kept.append(turns)
        return turns.instruction(Arena(step.arena)), tuple(parts)

    def _host(self, step: HostStep, operand: Operands) -> Instruction:
        function = host_function(step)
        self._kept.append(function)
        return function.instruction([operand(ref) for ref in step.arguments])

    def _library(
        self, step: LibraryStep, operand: Operands
    ) -> tuple[list[Library], list[Primitive]]:
        bound = library.prepare(step.kind, step.operands, step.options)
        if bound is None or library.workspace(bound) != step.workspace:
            raise RuntimeError(f"oneDNN no longer offers {step.kind} {step.operands}")
        made = []
        for part in bound:
            self._kept.append(part.primitive)
            self.shares = self.shares or not part.primitive.alone
            operands = tuple(operand(step.arguments[name]) for name in part.buffers)
            made.append(library_call(part.primitive, operands, step.kind))
        return made, [part.primitive for part in bound]

    def launch(
        self, leaves: Sequence[int], slots: Sequence[Any], results: Sequence[int], keep: object
    ) -> int:
        """Start the program; a ticket to wait for."""
        frame = EXECUTOR.frame(self.program)
        if self.plan.numbers:
            slots = (*slots, *self.plan.numbers)
        if slots:
            if self._pack is None:
                self._pack = struct.Struct("".join(_FORMAT[type(s)] for s in slots)).pack_into
            self._pack(frame.slots, 0, *slots)
        frame.own(status.current())
        with EXECUTOR.lock:  # until it is submitted, no other thread may let the arena grow
            frame.fill(leaves, arena.address(self.plan.arena_bytes), results)
            return EXECUTOR.submit(frame, keep)


def library_call(p: Primitive, operands: tuple[Operand, ...], kind: str) -> Library:
    """The instruction that runs a primitive."""
    functions = LibraryFunctions(*onednn.function_addresses())
    return Library(
        functions, p.handle, p.stream, p.memories, p.exec_args_address, len(p.argument_ids),
        operands, f"{kind} {p.implementation}", p.alone,
    )  # fmt: skip


def _operand(ref: Ref, leaves: int) -> Operand:
    kind, number, offset = ref
    if kind == "arena":
        return Arena(number)
    if kind == "slot":
        return Slots(8 * number + offset)
    if kind == "status":
        return Status()
    return Leaf(number if kind == "leaf" else leaves + number, offset)


def _turn_place(place: Place, operand: Operands) -> TurnPlace:
    first, base, step, shift, mask = place
    start = None if first is None else operand(first)
    return TurnPlace(start, operand(base), step, shift, mask)


def facts_of_parts(parts: Sequence[Part], facts: Sequence[Facts]) -> list[Facts]:
    """What is known of each instruction, from what is known of each step."""
    made = []
    for number, what in parts:
        fact = facts[number]
        if isinstance(what, tuple):
            fact = replace(fact, inside=tuple(facts_of_parts(what, fact.inside)))
        elif what is not None:
            fact = _of_primitive(fact, what)
        made.append(fact)
    return made


def _of_primitive(known: Facts, primitive: Primitive) -> Facts:
    """One of the primitives that a library call is made of: the call itself, or a copy for it."""
    sizes = zip(primitive.operands, primitive.operand_bytes, strict=True)
    nbytes = sum(size for name, size in sizes if name != "scratchpad")
    if primitive.is_copy:
        name = f"copy for {known.name}"
        known = replace(known, name=name, kind="copy")
    flops, alone = primitive.flops, primitive.alone
    return replace(known, bytes=nbytes, least_bytes=nbytes, flops=flops, alone=alone)


_FORMAT = {float: "d", int: "q", bool: "?7x"}


def prepare_runtime() -> None:
    """Load the OpenMP helper that kernels call, and set the number of threads."""
    native.set_cache_folder(config.cache_dir / "objects" if config.disk_cache else None)
    gomp = openmp.library()
    openmp.module()
    openmp.set_threads(config.threads)
    if gomp is not None:  # oneDNN asks when a primitive is made, on this thread
        gomp.omp_set_num_threads(config.threads)
