"""Steps of a program that run Python: the executor's thread calls back through one function.

A `HostFunction` is a Python callable that gets the addresses of its operands. In a program it is an
instruction like any other: its function is the address of `entry()`, its first argument says which
HostFunction is meant, its second is the launch's status word. What it raises is kept (`take` hands
it out), and the status word is set, so that the driver leaves the program and the thread that
launched it is told. The callback takes the GIL, which every thread that waits has let go, and takes
no lock, so it can block nobody who waits for it.
"""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakValueDictionary

from .driver import WORD
from .instructions import Address, Instruction, Operand, Status
from .native import Once

FAILED = -(1 << 62)  # in the status word: a host function raised; the detail says which exception

_numbers = itertools.count(1)
_functions: WeakValueDictionary[int, HostFunction] = WeakValueDictionary()
_raised: dict[int, BaseException] = {}  # by the number in the detail of the status


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
    try:
        function = _functions[number]
        operands = ctypes.c_int64 * function.count
        function.work(list(operands.from_address(arguments + 2 * WORD)))
    except BaseException as problem:
        detail = next(_numbers)
        _raised[detail] = problem
        ctypes.c_int64.from_address(status_address + WORD).value = detail
        ctypes.c_int64.from_address(status_address).value = FAILED


def take(detail: int) -> BaseException | None:
    """What the host function raised whose launch failed with this detail."""
    return _raised.pop(detail, None)
