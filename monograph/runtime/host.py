"""Steps of a program that run Python: the executor's thread calls back through one function.

A `HostFunction` is a Python callable that gets the addresses of its operands. In a program it is an
instruction like any other: its function is the address of `entry()`, its first argument says which
HostFunction is meant, its second is the launch's status word. What it raises is kept, the status
word is set, later host functions of that launch are skipped, and `raise_failure` raises in the
thread that launched the program, when that next waits. The callback takes the GIL, which every
thread that waits has let go, and takes no lock, so it can block nobody who waits for it.
"""

from __future__ import annotations

import ctypes
import itertools
import threading
from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakValueDictionary

from .native import Once
from .program import Address, Instruction, Operand, Status

FAILED = -(1 << 62)  # in the status word: a host function raised
WORD = 8

_numbers = itertools.count(1)
_functions: WeakValueDictionary[int, HostFunction] = WeakValueDictionary()
_launched_by: dict[int, int] = {}  # address of a status word → thread
_failures: list[tuple[int, BaseException]] = []  # thread, what was raised there


class HostFunction:
    """A Python callable on addresses, as an instruction; whoever holds the program keeps it."""

    def __init__(self, work: Callable[[Sequence[int]], None], count: int, label: str) -> None:
        self.work = work
        self.count = count
        self.label = label
        self.number = next(_numbers)
        _functions[self.number] = self

    def instruction(self, operands: Sequence[Operand]) -> Instruction:
        """The instruction that runs it on these operands."""
        assert len(operands) == self.count
        address = ctypes.cast(entry(), ctypes.c_void_p).value
        assert address is not None
        return Instruction(address, (Address(self.number), Status(), *operands), self.label)


@Once
def entry() -> Any:
    """The C function that every host instruction calls."""
    return ctypes.CFUNCTYPE(None, ctypes.c_void_p)(_run)


def _run(arguments: int) -> None:
    number, status_address = (ctypes.c_int64 * 2).from_address(arguments)
    status = ctypes.c_int64.from_address(status_address)
    try:
        if status.value == 0:
            function = _functions[number]
            operands = ctypes.c_int64 * function.count
            function.work(list(operands.from_address(arguments + 2 * WORD)))
    except BaseException as problem:
        status.value = FAILED
        _failures.append((_launched_by.get(status_address, 0), problem))


def note_launch(status_address: int) -> None:
    """Say which thread launches: errors are raised there."""
    _launched_by[status_address] = threading.get_ident()


def raise_failure() -> None:
    """Raise what the first failed host function of this thread's launches raised."""
    if not _failures:
        return
    me = threading.get_ident()
    mine = [failure for failure in _failures if failure[0] == me]
    if not mine:
        return
    for failure in mine:
        _failures.remove(failure)
    raise mine[0][1]
