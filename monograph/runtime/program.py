"""A compiled step as one flat native table.

A `Program` is a list of instructions laid out in native memory: for each a function, an array of
argument pointers, and the places in those arrays that change from launch to launch. What changes
lives in a `Frame`: leaf pointers, the arena's pointer, slot bytes, and a status word that
instructions may set. The native driver `mg_run(frame)` patches the arguments and calls every
instruction in order, with no Python in between, and leaves the program when the status is set.
Every kernel is `void kernel(ptr args)`; a oneDNN primitive is a `Library` instruction.
"""

from __future__ import annotations

import ctypes
import struct
from array import array
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from monograph.runtime import native, openmp
from monograph.runtime.status import Owner

# Words at the head of a frame, as the driver below reads them.
(
    _PROGRAM, _STATUS, _DETAIL, _PROFILE, _ARENA, _SLOTS, _STATUS_ADDRESS, _OWNER, _SERIAL, _LEAVES,
) = range(10)  # fmt: skip
FRAME_WORDS = _LEAVES  # behind them stand the leaves

WORD = 8
FRAMES = 2  # launches of one program that may be in flight

# frame:       program, status, its detail, profile table, arena, slots, address of status, owner
#              or null, number of the launch, leaves...
# owner:       see `status.py`
# program:     patches, patch count, instructions, instruction count
# patch:       destination, frame word, byte offset
# instruction: function, arguments, library record or null
# library:     set_data_handle, execute, primitive, stream, memories, memory count,
#              execution arguments, execution argument count
# loop:        trips, its frame, its program, places, place count, instructions of the first turn;
#              the arguments of a loop are this record, its arena, slots, address of status, then
#              addresses that places start from
# place:       frame word, argument of the first turn or -1, argument of the base, step, shift, mask
# A library that fails sets the status to minus one minus the instruction's position. A check (a
# kernel of the driver's own) sets it to one plus its number, and the detail to the code it found.
_DRIVER = """
%timespec = type { i64, i64 }
@mg_programs = global i64 0
@mg_instructions = global i64 0
@mg_checks = global i64 0
declare i32 @clock_gettime(i32, ptr)

define internal i64 @now() {
  %time = alloca %timespec
  %ignored = call i32 @clock_gettime(i32 1, ptr %time)
  %seconds = load i64, ptr %time
  %fraction.at = getelementptr %timespec, ptr %time, i64 0, i32 1
  %fraction = load i64, ptr %fraction.at
  %whole = mul i64 %seconds, 1000000000
  %nanoseconds = add i64 %whole, %fraction
  ret i64 %nanoseconds
}

define internal void @stamp(ptr %profile, i64 %position) {
  %off = icmp eq ptr %profile, null
  br i1 %off, label %done, label %take
take:
  %time = call i64 @now()
  %at = getelementptr i64, ptr %profile, i64 %position
  store i64 %time, ptr %at
  br label %done
done:
  ret void
}

define internal void @patch(ptr %frame, ptr %patches, i64 %count) {
entry:
  br label %test
test:
  %i = phi i64 [ 0, %entry ], [ %next, %apply ]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %apply, label %done
apply:
  %patch = getelementptr [3 x i64], ptr %patches, i64 %i
  %word.at = getelementptr i64, ptr %patch, i64 1
  %offset.at = getelementptr i64, ptr %patch, i64 2
  %destination = load ptr, ptr %patch
  %word = load i64, ptr %word.at
  %offset = load i64, ptr %offset.at
  %base.at = getelementptr i64, ptr %frame, i64 %word
  %base = load i64, ptr %base.at
  %pointer = add i64 %base, %offset
  store i64 %pointer, ptr %destination
  %next = add i64 %i, 1
  br label %test
done:
  ret void
}

define internal i32 @call_library(ptr %library, ptr %arguments) {
entry:
  %execute.at = getelementptr ptr, ptr %library, i64 1
  %primitive.at = getelementptr ptr, ptr %library, i64 2
  %stream.at = getelementptr ptr, ptr %library, i64 3
  %memories.at = getelementptr ptr, ptr %library, i64 4
  %memory.count.at = getelementptr i64, ptr %library, i64 5
  %extras.at = getelementptr ptr, ptr %library, i64 6
  %extra.count.at = getelementptr i64, ptr %library, i64 7
  %set = load ptr, ptr %library
  %execute = load ptr, ptr %execute.at
  %primitive = load ptr, ptr %primitive.at
  %stream = load ptr, ptr %stream.at
  %memories = load ptr, ptr %memories.at
  %memory.count = load i64, ptr %memory.count.at
  %extras = load ptr, ptr %extras.at
  %extra.count.64 = load i64, ptr %extra.count.at
  %extra.count = trunc i64 %extra.count.64 to i32
  br label %test
test:
  %i = phi i64 [ 0, %entry ], [ %next, %bind ]
  %more = icmp slt i64 %i, %memory.count
  br i1 %more, label %bind, label %run
bind:
  %memory.at = getelementptr ptr, ptr %memories, i64 %i
  %argument.at = getelementptr ptr, ptr %arguments, i64 %i
  %memory = load ptr, ptr %memory.at
  %argument = load ptr, ptr %argument.at
  %bound = call i32 %set(ptr %memory, ptr %argument)
  %next = add i64 %i, 1
  %ok = icmp eq i32 %bound, 0
  br i1 %ok, label %test, label %failed
run:
  %result = call i32 %execute(ptr %primitive, ptr %stream, i32 %extra.count, ptr %extras)
  ret i32 %result
failed:
  ret i32 %bound
}

define void @mg_check(ptr %arguments) {
entry:
  %value = load ptr, ptr %arguments
  %code = load i64, ptr %value
  %checks = load i64, ptr @mg_checks
  %checks.now = add i64 %checks, 1
  store i64 %checks.now, ptr @mg_checks
  %fine = icmp eq i64 %code, 0
  br i1 %fine, label %done, label %wrong
wrong:
  %status.at = getelementptr ptr, ptr %arguments, i64 1
  %number.at = getelementptr i64, ptr %arguments, i64 2
  %status = load ptr, ptr %status.at
  %number = load i64, ptr %number.at
  %word = add i64 %number, 1
  %detail = getelementptr i64, ptr %status, i64 1
  store i64 %code, ptr %detail
  store i64 %word, ptr %status
  br label %done
done:
  ret void
}

define internal void @place(ptr %frame, ptr %arguments, ptr %places, i64 %count, i64 %turn) {
entry:
  %is.first = icmp eq i64 %turn, 0
  br label %test
test:
  %i = phi i64 [ 0, %entry ], [ %next, %put ]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %look, label %done
look:
  %next = add i64 %i, 1
  %place = getelementptr [6 x i64], ptr %places, i64 %i
  %first.at = getelementptr i64, ptr %place, i64 1
  %base.at = getelementptr i64, ptr %place, i64 2
  %step.at = getelementptr i64, ptr %place, i64 3
  %shift.at = getelementptr i64, ptr %place, i64 4
  %mask.at = getelementptr i64, ptr %place, i64 5
  %word = load i64, ptr %place
  %first = load i64, ptr %first.at
  %has.first = icmp sge i64 %first, 0
  %take.first = and i1 %is.first, %has.first
  br i1 %take.first, label %begin, label %later
begin:
  %first.argument = getelementptr i64, ptr %arguments, i64 %first
  %start = load i64, ptr %first.argument
  br label %put
later:
  %base = load i64, ptr %base.at
  %step = load i64, ptr %step.at
  %shift = load i64, ptr %shift.at
  %mask = load i64, ptr %mask.at
  %base.argument = getelementptr i64, ptr %arguments, i64 %base
  %from = load i64, ptr %base.argument
  %shifted = add i64 %turn, %shift
  %masked = and i64 %shifted, %mask
  %distance = mul i64 %masked, %step
  %there = add i64 %from, %distance
  br label %put
put:
  %address = phi i64 [ %start, %begin ], [ %there, %later ]
  %word.at = getelementptr i64, ptr %frame, i64 %word
  store i64 %address, ptr %word.at
  br label %test
done:
  ret void
}

define internal i64 @run_body(ptr %instructions, i64 %first, i64 %count, ptr %status) {
entry:
  br label %test
test:
  %i = phi i64 [ %first, %entry ], [ %next, %after ]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %run, label %done
run:
  %next = add i64 %i, 1
  %instruction = getelementptr [3 x ptr], ptr %instructions, i64 %i
  %arguments.at = getelementptr ptr, ptr %instruction, i64 1
  %library.at = getelementptr ptr, ptr %instruction, i64 2
  %arguments = load ptr, ptr %arguments.at
  %library = load ptr, ptr %library.at
  %plain = icmp eq ptr %library, null
  br i1 %plain, label %kernel, label %primitive
kernel:
  %function = load ptr, ptr %instruction
  call void %function(ptr %arguments)
  br label %after
primitive:
  %code = call i32 @call_library(ptr %library, ptr %arguments)
  %ok = icmp eq i32 %code, 0
  br i1 %ok, label %after, label %failed
failed:
  store i64 -1, ptr %status
  br label %after
after:
  %word = load i64, ptr %status
  %right = icmp eq i64 %word, 0
  br i1 %right, label %test, label %done
done:
  %end = phi i64 [ %i, %test ], [ %next, %after ]
  %ran = sub i64 %end, %first
  ret i64 %ran
}

define void @mg_loop(ptr %arguments) {
entry:
  %record = load ptr, ptr %arguments
  %arena.at = getelementptr i64, ptr %arguments, i64 1
  %slots.at = getelementptr i64, ptr %arguments, i64 2
  %status.at = getelementptr ptr, ptr %arguments, i64 3
  %arena = load i64, ptr %arena.at
  %slots = load i64, ptr %slots.at
  %status = load ptr, ptr %status.at
  %frame.at = getelementptr ptr, ptr %record, i64 1
  %program.at = getelementptr ptr, ptr %record, i64 2
  %places.at = getelementptr ptr, ptr %record, i64 3
  %place.count.at = getelementptr i64, ptr %record, i64 4
  %trips = load i64, ptr %record
  %frame = load ptr, ptr %frame.at
  %program = load ptr, ptr %program.at
  %places = load ptr, ptr %places.at
  %place.count = load i64, ptr %place.count.at
  %once.at = getelementptr i64, ptr %record, i64 5
  %once = load i64, ptr %once.at
  %frame.arena = getelementptr i64, ptr %frame, i64 4
  %frame.slots = getelementptr i64, ptr %frame, i64 5
  %frame.status = getelementptr ptr, ptr %frame, i64 6
  store i64 %arena, ptr %frame.arena
  store i64 %slots, ptr %frame.slots
  store ptr %status, ptr %frame.status
  %patch.count.at = getelementptr i64, ptr %program, i64 1
  %instructions.at = getelementptr ptr, ptr %program, i64 2
  %count.at = getelementptr i64, ptr %program, i64 3
  %patches = load ptr, ptr %program
  %patch.count = load i64, ptr %patch.count.at
  %instructions = load ptr, ptr %instructions.at
  %count = load i64, ptr %count.at
  br label %test
test:
  %turn = phi i64 [ 0, %entry ], [ %next, %after ]
  %ran = phi i64 [ 0, %entry ], [ %ran.now, %after ]
  %more = icmp slt i64 %turn, %trips
  br i1 %more, label %run, label %done
run:
  %next = add i64 %turn, 1
  call void @place(ptr %frame, ptr %arguments, ptr %places, i64 %place.count, i64 %turn)
  call void @patch(ptr %frame, ptr %patches, i64 %patch.count)
  %begins = icmp eq i64 %turn, 0
  %first = select i1 %begins, i64 0, i64 %once
  %ran.here = call i64 @run_body(ptr %instructions, i64 %first, i64 %count, ptr %status)
  %ran.now = add i64 %ran, %ran.here
  br label %after
after:
  %word = load i64, ptr %status
  %right = icmp eq i64 %word, 0
  br i1 %right, label %test, label %done
done:
  %ran.all = phi i64 [ %ran, %test ], [ %ran.now, %after ]
  %others = sub i64 %ran.all, 1
  %counted = load i64, ptr @mg_instructions
  %counted.now = add i64 %counted, %others
  store i64 %counted.now, ptr @mg_instructions
  ret void
}

define void @mg_run(ptr %frame) {
entry:
  %owner.at = getelementptr ptr, ptr %frame, i64 7
  %serial.at = getelementptr i64, ptr %frame, i64 8
  %owner = load ptr, ptr %owner.at
  %serial = load i64, ptr %serial.at
  %owned = icmp ne ptr %owner, null
  br i1 %owned, label %ask, label %start
ask:
  %earlier = load i64, ptr %owner
  %held = icmp ne i64 %earlier, 0
  br i1 %held, label %tell.done, label %start
start:
  %program = load ptr, ptr %frame
  %status = getelementptr i64, ptr %frame, i64 1
  %profile.at = getelementptr ptr, ptr %frame, i64 3
  %profile = load ptr, ptr %profile.at
  store i64 0, ptr %status
  %patch.count.at = getelementptr i64, ptr %program, i64 1
  %instructions.at = getelementptr ptr, ptr %program, i64 2
  %count.at = getelementptr i64, ptr %program, i64 3
  %patches = load ptr, ptr %program
  %patch.count = load i64, ptr %patch.count.at
  %instructions = load ptr, ptr %instructions.at
  %count = load i64, ptr %count.at
  call void @patch(ptr %frame, ptr %patches, i64 %patch.count)
  call void @stamp(ptr %profile, i64 0)
  br label %test
test:
  %i = phi i64 [ 0, %start ], [ %next, %after ]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %run, label %done
run:
  %next = add i64 %i, 1
  %instruction = getelementptr [3 x ptr], ptr %instructions, i64 %i
  %arguments.at = getelementptr ptr, ptr %instruction, i64 1
  %library.at = getelementptr ptr, ptr %instruction, i64 2
  %arguments = load ptr, ptr %arguments.at
  %library = load ptr, ptr %library.at
  %plain = icmp eq ptr %library, null
  br i1 %plain, label %kernel, label %primitive
kernel:
  %function = load ptr, ptr %instruction
  call void %function(ptr %arguments)
  br label %after
primitive:
  %code = call i32 @call_library(ptr %library, ptr %arguments)
  %ok = icmp eq i32 %code, 0
  br i1 %ok, label %after, label %failed
failed:
  %blame = sub i64 0, %next
  store i64 %blame, ptr %status
  br label %after
after:
  call void @stamp(ptr %profile, i64 %next)
  %word = load i64, ptr %status
  %right = icmp eq i64 %word, 0
  br i1 %right, label %test, label %wrong
wrong:
  br i1 %owned, label %tell.wrong, label %done
tell.wrong:
  %detail.at = getelementptr i64, ptr %frame, i64 2
  %detail = load i64, ptr %detail.at
  %owner.status = getelementptr i64, ptr %owner, i64 1
  %owner.detail = getelementptr i64, ptr %owner, i64 2
  %owner.instruction = getelementptr i64, ptr %owner, i64 3
  store i64 %word, ptr %owner.status
  store i64 %detail, ptr %owner.detail
  store i64 %i, ptr %owner.instruction
  store atomic i64 %serial, ptr %owner release, align 8
  br label %done
done:
  %run.count = phi i64 [ %count, %test ], [ %next, %wrong ], [ %next, %tell.wrong ]
  %ran = load i64, ptr @mg_instructions
  %ran.now = add i64 %ran, %run.count
  store i64 %ran.now, ptr @mg_instructions
  %programs = load i64, ptr @mg_programs
  %programs.now = add i64 %programs, 1
  store i64 %programs.now, ptr @mg_programs
  br i1 %owned, label %tell.done, label %exit
tell.done:
  %done.at = getelementptr i64, ptr %owner, i64 4
  store atomic i64 %serial, ptr %done.at release, align 8
  br label %exit
exit:
  ret void
}
"""


@dataclass(frozen=True, slots=True)
class Leaf:
    """The memory of the program's input number `index`, from `byte_offset` on."""

    index: int
    byte_offset: int = 0


@dataclass(frozen=True, slots=True)
class Arena:
    """Planned memory inside the arena."""

    byte_offset: int


@dataclass(frozen=True, slots=True)
class Slots:
    """The launch's numbers (learning rate, seed, sizes), from `byte_offset` on."""

    byte_offset: int


@dataclass(frozen=True, slots=True)
class Status:
    """The launch's status word, an i64 set non-zero when the data is wrong; behind it a detail."""


@dataclass(frozen=True, slots=True)
class Address:
    """Memory that never moves, such as a constant or a packed weight."""

    value: int


Operand = Leaf | Arena | Slots | Status | Address


@dataclass(frozen=True, slots=True)
class Instruction:
    """A call of a generated kernel, `void kernel(ptr args)`."""

    function_address: int
    operands: tuple[Operand, ...]
    label: str


@dataclass(frozen=True, slots=True)
class LibraryFunctions:
    """Addresses of `dnnl_memory_set_data_handle` and `dnnl_primitive_execute`."""

    set_data_handle: int
    execute: int


@dataclass(frozen=True, slots=True)
class Library:
    """A call of a oneDNN primitive.

    Operand i becomes the data handle of `memories[i]`. The primitive then runs with the prebuilt
    array of `dnnl_exec_arg_t` at `exec_args_address`, of `exec_args_count` entries.
    """

    functions: LibraryFunctions
    primitive: int
    stream: int
    memories: tuple[int, ...]
    exec_args_address: int
    exec_args_count: int
    operands: tuple[Operand, ...]
    label: str


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
        self.facts: Callable[[], Sequence[Any]] = tuple  # what is known of each instruction
        self._table = Table(self, instructions)
        self.pack_leaves = struct.Struct(f"{leaf_count}q").pack_into
        self._frames = deque(Frame(self) for _ in range(FRAMES))

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
        self._leaves: tuple[int, ...] | None = None
        self._buffer = bytearray(WORD * (_LEAVES + program.leaf_count))
        self.words = memoryview(self._buffer).cast("q")
        self.address = _address(self._buffer)
        self._slots = _aligned(program.slot_bytes)
        self.slots = memoryview(self._slots).cast("B")
        self._times: array[int] | None = None
        self.words[_PROGRAM] = program.address
        self.words[_SLOTS] = ctypes.addressof(self._slots)
        self.words[_STATUS_ADDRESS] = self.address + WORD * _STATUS
        self.owner: Owner | None = None

    def own(self, owner: Owner) -> None:
        """The next launch is the owner's next: it does not run if an earlier one of his failed."""
        self.owner = owner
        owner.serial = serial = owner.serial + 1
        self.words[_OWNER] = owner.address
        self.words[_SERIAL] = serial

    @property
    def serial(self) -> int:
        """How its owner counts the launch."""
        return self.words[_SERIAL]

    def fill(self, leaves: tuple[int, ...], arena: int = 0) -> None:
        """Set the address of every leaf, and of the arena."""
        if leaves != self._leaves:
            self.program.pack_leaves(self._buffer, WORD * _LEAVES, *leaves)
            self._leaves = leaves
        self.words[_ARENA] = arena

    @property
    def status(self) -> int:
        """The status word of the last launch; read it after that launch has completed."""
        return self.words[_STATUS]

    def profile(self, enabled: bool) -> array[int] | None:
        """Record, from the next launch on, when each instruction began and ended.

        The times go to the array that is returned, which must live until the launch is over.
        """
        count = len(self.program.labels) + 1
        self._times = array("q", bytes(WORD * count)) if enabled else None
        self.words[_PROFILE] = self._times.buffer_info()[0] if self._times is not None else 0
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
        self._header = array(
            "q",
            (
                self._patches.buffer_info()[0],
                len(self._patches) // 3,
                self._instructions.buffer_info()[0],
                len(instructions),
            ),
        )
        self.address = self._header.buffer_info()[0]

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
        record = array("q", (*functions, call.primitive, call.stream, *bound, *extras))
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
            return _LEAVES + index, offset
        case Arena(offset):
            _check(0 <= offset <= program.arena_bytes, operand)
            return _ARENA, offset
        case Slots(offset):
            _check(0 <= offset <= program.slot_bytes, operand)
            return _SLOTS, offset
        case Status():
            return _STATUS_ADDRESS, 0


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


def check(value: Operand, number: int) -> Instruction:
    """The instruction that ends a program if the i64 at `value` is not 0."""
    return Instruction(
        driver().address("mg_check"), (value, Status(), Address(number)), f"check {number}"
    )


@native.Once
def driver() -> native.Module:
    """The compiled driver; defines `mg_run(frame)`."""
    openmp.module()
    compiled = native.compile_cached(_DRIVER)
    native.link_symbols({"mg_run": compiled.address("mg_run")})
    return compiled


def counters() -> Counters:
    """What has run in this process since it started."""
    names = ("mg_programs", "mg_instructions", "mg_checks")
    programs, instructions, checks = [_counter(name) for name in names]
    return Counters(programs, instructions, openmp.regions(), checks)


def _counter(name: str) -> int:
    return ctypes.c_int64.from_address(driver().address(name)).value
