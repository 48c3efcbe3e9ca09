"""What a flat program is made of: instructions, and the memory that they are called with.

An operand says where memory lies, without its address: a leaf, a place in the arena, the launch's
numbers. `program.py` lays instructions out as the native table that the driver reads.
"""

from __future__ import annotations

from dataclasses import dataclass

from .driver import driver


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
    array of `dnnl_exec_arg_t` at `exec_args_address`, of `exec_args_count` entries. `alone` says
    that no other thread is to help.
    """

    functions: LibraryFunctions
    primitive: int
    stream: int
    memories: tuple[int, ...]
    exec_args_address: int
    exec_args_count: int
    operands: tuple[Operand, ...]
    label: str
    alone: bool = False


def check(value: Operand, number: int) -> Instruction:
    """The instruction that ends a program if the i64 at `value` is not 0."""
    return Instruction(
        driver().address("mg_check"), (value, Status(), Address(number)), f"check {number}"
    )
