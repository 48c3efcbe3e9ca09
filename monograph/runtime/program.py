"""A compiled step as one flat native table.

A `Program` is a list of instructions laid out in native memory: for each a function, an array of
argument pointers, and the places in those arrays that change from launch to launch. What changes
lives in a `Frame`: leaf pointers, the arena's pointer, slot bytes, and a status word that
instructions may set. The native driver (`driver.py`) patches the arguments and calls every
instruction in order, with no Python in between, and leaves the program when the status is set.
Every kernel is `void kernel(ptr args)`; a oneDNN primitive is a `Library` instruction.
"""

from __future__ import annotations

import ctypes
import struct
from array import array
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from monograph.runtime import openmp
from monograph.runtime.driver import (
    ARENA,
    LEAVES,
    OWNER,
    PROFILE,
    PROGRAM,
    SERIAL,
    SLOTS,
    STATUS,
    STATUS_ADDRESS,
    WORD,
    driver,
)
from monograph.runtime.instructions import (
    Address,
    Arena,
    Instruction,
    Leaf,
    Library,
    Operand,
    Slots,
    Status,
)
from monograph.runtime.status import Owner

FRAMES = 2  # launches of one program that may be in flight


@dataclass(frozen=True, slots=True)
class Failure:
    """A launch that ended with a non-zero status word, and that no thread owns."""

    ticket: int
    status: int


@dataclass(frozen=True, slots=True)
class Counters:
    """What the native driver has run so far in this process.

    Instructions are kernels, library calls, and checks, which look at one number.
    """

    programs: int
    instructions: int
    parallel_regions: int
    checks: int = 0

    @property
    def kernels(self) -> int:
        """Instructions that do work."""
        return self.instructions - self.checks


class Program:
    """Instructions laid out as a native table, with a small ring of frames to launch them.

    `keep` holds whatever the instructions need to stay alive: modules, constants, primitives.
    """

    def __init__(
        self,
        instructions: Sequence[Instruction | Library],
        leaf_count: int,
        slot_bytes: int = 0,
        arena_bytes: int = 0,
        keep: object = None,
    ) -> None:
        self.labels = tuple(instruction.label for instruction in instructions)
        self.leaf_count = leaf_count
        self.slot_bytes = slot_bytes
        self.arena_bytes = arena_bytes
        self.keep = keep
        self.failures: list[Failure] = []
        self.light = False  # so short, and without Python, that any thread may run it alone
        self.brief = False  # and shorter than waking another thread
        self.facts: Callable[[], Sequence[Any]] = tuple  # what is known of each instruction
        self._table = Table(self, instructions)
        self.packs: dict[int, Callable[..., None]] = {}  # by the number of addresses
        self._frames = deque(Frame(self) for _ in range(FRAMES))

    def with_others(
        self, addresses: Mapping[int, int], calls: Mapping[int, Library], keep: object
    ) -> Program:
        """The same program, but for some fixed addresses and library calls.

        Addresses go by the number of the argument among all, calls by that of the instruction.
        """
        made = copy(self)
        labels = list(self.labels)
        for number, call in calls.items():
            labels[number] = call.label
        made.labels = tuple(labels)
        made.keep = keep
        made.failures = []
        made._table = self._table.with_others(addresses, calls)
        made.packs = {}
        made._frames = deque(Frame(made) for _ in range(FRAMES))
        return made

    @property
    def address(self) -> int:
        """The address of the native table."""
        return self._table.address

    def take_frame(self) -> Frame:
        """The frame launched longest ago; its launch may still be in flight."""
        try:
            return self._frames.popleft()
        except IndexError:  # other threads are filling all of them
            return Frame(self)

    def return_frame(self, frame: Frame) -> None:
        """Put a frame back at the end of the ring, after it was submitted."""
        self._frames.append(frame)


class Frame:
    """What one launch of a program reads: leaf pointers, arena, slots; and its status word."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.ticket = 0
        self._leaves: Sequence[int] | None = None
        self._results: Sequence[int] | None = None
        self._buffer = bytearray(WORD * (LEAVES + program.leaf_count))
        self.words = memoryview(self._buffer).cast("q")
        self.address = _address(self._buffer)
        self._slots = _aligned(program.slot_bytes)
        self.slots = memoryview(self._slots).cast("B")
        self._times: array[int] | None = None
        self.words[PROGRAM] = program.address
        self.words[SLOTS] = ctypes.addressof(self._slots)
        self.words[STATUS_ADDRESS] = self.address + WORD * STATUS
        self.owner: Owner | None = None

    def own(self, owner: Owner) -> None:
        """The next launch is the owner's next: it does not run if an earlier one of his failed."""
        self.owner = owner
        owner.serial = serial = owner.serial + 1
        self.words[OWNER] = owner.address
        self.words[SERIAL] = serial

    @property
    def serial(self) -> int:
        """How its owner counts the launch."""
        return self.words[SERIAL]

    def fill(
        self, leaves: Sequence[int], arena: int = 0, results: Sequence[int] | None = None
    ) -> None:
        """Set the address of every leaf, and of the arena.

        Those that results are written to may be given apart; they are leaves as well, and change
        more often. What is given is kept: it must not be changed later.
        """
        if leaves != self._leaves:
            count = len(leaves) + (0 if results is None else len(results))
            if count != self.program.leaf_count:
                raise ValueError(f"{count} addresses for {self.program.leaf_count} leaves")
            self._put(0, leaves)
            self._leaves = leaves
        if results is not None and results != self._results:
            self._put(len(leaves), results)
            self._results = results
        self.words[ARENA] = arena

    def _put(self, first: int, addresses: Sequence[int]) -> None:
        pack = self.program.packs.get(len(addresses))
        if pack is None:
            pack = struct.Struct(f"{len(addresses)}q").pack_into
            self.program.packs[len(addresses)] = pack
        pack(self._buffer, WORD * (LEAVES + first), *addresses)

    @property
    def status(self) -> int:
        """The status word of the last launch; read it after that launch has completed."""
        return self.words[STATUS]

    def profile(self, enabled: bool) -> array[int] | None:
        """Record, from the next launch on, when each instruction began and ended.

        The times go to the array that is returned, which must live until the launch is over.
        """
        count = len(self.program.labels) + 1
        self._times = array("q", bytes(WORD * count)) if enabled else None
        self.words[PROFILE] = self._times.buffer_info()[0] if self._times is not None else 0
        return self._times

    @property
    def times(self) -> list[int]:
        """Nanoseconds at the start and after each instruction, of the last profiled launch."""
        return [] if self._times is None else list(self._times)


class Sizes(Protocol):
    """What the operands of a table must lie within: a program, or a loop of one."""

    leaf_count: int
    slot_bytes: int
    arena_bytes: int


class Table:
    """The native form of a list of instructions, as the driver reads it."""

    def __init__(self, program: Sizes, instructions: Sequence[Instruction | Library]) -> None:
        operand_count = sum(len(instruction.operands) for instruction in instructions)
        self._arguments = array("q", bytes(WORD * operand_count))
        self._patches = array("q")
        self._instructions = array("q")
        self._records: list[array[int]] = []  # library records and their memories
        position = 0
        for instruction in instructions:
            self._add(instruction, position)
            self._bind(program, instruction.operands, position)
            position += len(instruction.operands)
        self._finish()

    def _finish(self) -> None:
        patches, count = self._patches.buffer_info()
        instructions, length = self._instructions.buffer_info()
        self._header = array("q", (patches, count // 3, instructions, length // 3))
        self.address = self._header.buffer_info()[0]

    def with_others(self, addresses: Mapping[int, int], calls: Mapping[int, Library]) -> Table:
        """The same table, but for some fixed addresses and library calls."""
        made = copy(self)
        made._arguments = self._arguments[:]
        made._patches, made._instructions = self._patches[:], self._instructions[:]
        made._records = self._records.copy()
        distance = made._argument_address(0) - self._argument_address(0)
        np.frombuffer(made._patches, np.int64)[0::3] += distance
        np.frombuffer(made._instructions, np.int64)[1::3] += distance
        for number, address in addresses.items():
            made._arguments[number] = address
        for number, call in calls.items():
            made._instructions[3 * number + 2] = made._record(call)
        made._finish()
        return made

    def _add(self, instruction: Instruction | Library, position: int) -> None:
        arguments = self._argument_address(position)
        if isinstance(instruction, Library):
            self._instructions.extend((0, arguments, self._record(instruction)))
        else:
            self._instructions.extend((instruction.function_address, arguments, 0))

    def _record(self, call: Library) -> int:
        if len(call.memories) != len(call.operands):
            raise ValueError(
                f"{call.label}: {len(call.operands)} operands for {len(call.memories)} memories"
            )
        memories = array("q", call.memories)
        functions = (call.functions.set_data_handle, call.functions.execute)
        bound = (memories.buffer_info()[0], len(memories))
        extras = (call.exec_args_address, call.exec_args_count)
        words = (*functions, call.primitive, call.stream, *bound, *extras, call.alone)
        record = array("q", words)
        self._records += (memories, record)
        return record.buffer_info()[0]

    def _bind(self, program: Sizes, operands: tuple[Operand, ...], position: int) -> None:
        """Write fixed addresses now; list what the driver must patch at each launch."""
        for index, operand in enumerate(operands, position):
            if isinstance(operand, Address):
                self._arguments[index] = operand.value
            else:
                word, offset = _frame_word(program, operand)
                self._patches.extend((self._argument_address(index), word, offset))

    def _argument_address(self, index: int) -> int:
        return self._arguments.buffer_info()[0] + WORD * index


def _frame_word(program: Sizes, operand: Leaf | Arena | Slots | Status) -> tuple[int, int]:
    """Which word of the frame an operand starts from, and how many bytes to add to it."""
    match operand:
        case Leaf(index, offset):
            _check(0 <= index < program.leaf_count, operand)
            return LEAVES + index, offset
        case Arena(offset):
            _check(0 <= offset <= program.arena_bytes, operand)
            return ARENA, offset
        case Slots(offset):
            _check(0 <= offset <= program.slot_bytes, operand)
            return SLOTS, offset
        case Status():
            return STATUS_ADDRESS, 0


def _check(inside: bool, operand: Operand) -> None:
    if not inside:
        raise ValueError(f"{operand} lies outside its program")


def _address(buffer: bytearray) -> int:
    return ctypes.addressof(ctypes.c_char.from_buffer(buffer))


def _aligned(nbytes: int) -> ctypes.Array[ctypes.c_char]:
    """Zeroed bytes that begin at a multiple of 64."""
    raw = ctypes.create_string_buffer(nbytes + 64)
    skip = -ctypes.addressof(raw) % 64
    return (ctypes.c_char * nbytes).from_buffer(raw, skip)


def counters() -> Counters:
    """What has run in this process since it started."""
    names = ("mg_programs", "mg_instructions", "mg_checks")
    programs, instructions, checks = [_counter(name) for name in names]
    return Counters(programs, instructions, openmp.regions(), checks)


def _counter(name: str) -> int:
    return ctypes.c_int64.from_address(driver().address(name)).value
