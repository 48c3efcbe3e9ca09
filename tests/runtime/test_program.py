"""Programs: patches, slots, order, status, library calls, profiles, counters."""

from __future__ import annotations

import ctypes
import struct

import numpy as np
import pytest

from monograph.runtime import openmp
from monograph.runtime.executor import EXECUTOR
from monograph.runtime.instructions import (
    Address,
    Arena,
    Instruction,
    Leaf,
    Library,
    LibraryFunctions,
    Slots,
    Status,
)
from monograph.runtime.program import Failure, Program, counters

from .kernels import address


def call(name: str, *operands: Leaf | Arena | Slots | Status | Address) -> Instruction:
    return Instruction(address(name), operands, name)


def launch(program: Program, *leaves: np.ndarray, arena: int = 0, slots: bytes = b"") -> int:
    frame = EXECUTOR.frame(program)
    frame.fill(tuple(leaf.ctypes.data for leaf in leaves), arena)
    frame.slots[: len(slots)] = slots
    return EXECUTOR.submit(frame, keep=leaves)


@pytest.mark.parametrize("count", [0, 1, 15, 16, 17, 1000, 4096])
def test_parallel_loop_visits_every_element_once(count: int) -> None:
    data = np.zeros(count + 1, np.float32)
    program = Program([call("increment", Leaf(0), Slots(0))], 1, slot_bytes=8)
    EXECUTOR.wait(launch(program, data, slots=struct.pack("q", count)))
    assert data.tolist() == [1.0] * count + [0.0]


def test_threads_can_be_set() -> None:
    data = np.zeros(1000, np.float32)
    program = Program([call("increment", Leaf(0), Slots(0))], 1, slot_bytes=8)
    size = struct.pack("q", 1000)
    try:
        for threads, regions in ((1, 0), (3, 1)):
            openmp.set_threads(threads)
            before = counters()
            EXECUTOR.wait(launch(program, data, slots=size))
            if openmp.library() is not None:
                assert counters().parallel_regions - before.parallel_regions == regions
    finally:
        openmp.set_threads(0)
    assert data.tolist() == [2.0] * 1000


def test_instructions_run_in_order() -> None:
    data = np.array([3.0], np.float32)
    one = np.array([1], np.int64)
    grow = call("increment", Leaf(0), Address(one.ctypes.data))
    program = Program([grow, call("double", Leaf(0)), grow], 1, keep=one)
    EXECUTOR.wait(launch(program, data))
    assert data[0] == 9.0


def test_leaves_and_arena_are_patched_at_each_launch() -> None:
    arena = np.zeros(4, np.float32)
    program = Program(
        [call("copy", Leaf(0, 4), Arena(8)), call("copy", Arena(8), Leaf(1))], 2, arena_bytes=16
    )
    for value in (1.0, 2.0, 3.0):
        source = np.array([0.0, value], np.float32)
        target = np.zeros(1, np.float32)
        EXECUTOR.wait(launch(program, source, target, arena=arena.ctypes.data))
        assert target[0] == arena[2] == value


def test_two_frames_in_flight_have_their_own_slots() -> None:
    results = np.zeros(6, np.float32)
    pause = np.array([2000], np.int64)
    wait = call("sleep", Address(pause.ctypes.data))
    program = Program([wait, call("copy", Slots(0), Leaf(0))], 1, slot_bytes=4, keep=pause)
    for i in range(6):
        launch(program, results[i:], slots=struct.pack("f", i + 1))
    EXECUTOR.synchronize()
    assert results.tolist() == [1, 2, 3, 4, 5, 6]


def test_status_is_reported_once_per_launch() -> None:
    choice = np.zeros(1, np.float32)
    program = Program([call("fail", Status())], 1)
    ticket = launch(program, choice)
    EXECUTOR.wait(ticket)
    assert program.failures == [Failure(ticket, 7)]
    frame = program.take_frame()
    assert {frame.status, program.take_frame().status} == {0, 7}


def library(execute: str, memory: ctypes.Array[ctypes.c_int64]) -> Library:
    functions = LibraryFunctions(address("set_data_handle"), address(execute))
    cell = ctypes.addressof(memory)
    memory[1], memory[2] = 1, cell  # one execution argument: kind, memory
    return Library(functions, 0, 0, (cell,), cell + 8, 1, (Leaf(0),), execute)


def test_library_calls() -> None:
    data = np.array([4.0], np.float32)
    memory = (ctypes.c_int64 * 3)()
    program = Program([library("execute", memory)], 1, keep=memory)
    EXECUTOR.wait(launch(program, data))
    assert data[0] == 8.0
    assert memory[0] == data.ctypes.data


def test_library_failure_names_its_instruction() -> None:
    data = np.array([4.0], np.float32)
    memory = (ctypes.c_int64 * 3)()
    program = Program([call("double", Leaf(0)), library("execute_badly", memory)], 1, keep=memory)
    EXECUTOR.wait(launch(program, data))
    assert [failure.status for failure in program.failures] == [-2]


def test_profile_times_every_instruction() -> None:
    pause = np.array([3000], np.int64)
    data = np.zeros(1, np.float32)
    program = Program(
        [call("double", Leaf(0)), call("sleep", Address(pause.ctypes.data))], 1, keep=pause
    )
    frame = EXECUTOR.frame(program)
    frame.profile(True)
    frame.fill((data.ctypes.data,))
    EXECUTOR.wait(EXECUTOR.submit(frame))
    begin, middle, end = frame.times
    assert begin <= middle
    assert end - middle >= 3_000_000


def test_counters() -> None:
    data = np.zeros(1, np.float32)
    program = Program([call("double", Leaf(0))] * 5, 1)
    before = counters()
    EXECUTOR.wait(launch(program, data))
    after = counters()
    assert after.programs - before.programs == 1
    assert after.instructions - before.instructions == 5


def test_operands_are_checked() -> None:
    for operand in (Leaf(1), Leaf(-1), Arena(17), Slots(9)):
        with pytest.raises(ValueError, match="outside"):
            Program([Instruction(0, (operand,), "bad")], 1, slot_bytes=8, arena_bytes=16)


def test_the_number_of_leaves_is_checked() -> None:
    program = Program([], 2)
    for given in [(1, 2, 3), (1,)]:
        with pytest.raises(ValueError, match="addresses for 2 leaves"):
            EXECUTOR.frame(program).fill(given)
    with pytest.raises(ValueError, match="3 addresses"):
        EXECUTOR.frame(program).fill([1, 2], results=[3])
