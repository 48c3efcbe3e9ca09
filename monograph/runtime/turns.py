"""Loops of a flat program: instructions that run many times, over memory that moves with the turn.

`Turns` lays the instructions of a loop's body out as a table of its own, with a frame of its own.
In the program around it, a loop is one instruction: its function is `mg_loop`, its arguments are
where everything starts. Before each turn `mg_loop` computes where the turn's memory lies, patches
the body's arguments as `mg_run` does a program's, and runs the body. No Python takes part. A body
may hold loops.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass

from .driver import LEAVES, WORD, driver
from .instructions import Address, Arena, Instruction, Library, Operand, Slots, Status
from .program import Table

AnyInstruction = Instruction | Library


@dataclass(frozen=True, slots=True)
class TurnPlace:
    """Where memory lies in turn s: `first` in the first if given, else, in bytes,

    base + ((s + shift) & mask) · step.
    """

    first: Operand | None
    base: Operand
    step: int
    shift: int
    mask: int


class Turns:
    """A loop: its body's table, and the places of the body's leaves in the order of their numbers.

    The first `once` instructions run in the first turn only. Whoever holds the program keeps it.
    """

    def __init__(
        self,
        trips: int,
        instructions: Sequence[AnyInstruction],
        once: int,
        places: Sequence[TurnPlace],
        arena_bytes: int,
        slot_bytes: int,
    ) -> None:
        self.leaf_count = len(places)
        self.arena_bytes = arena_bytes
        self.slot_bytes = slot_bytes
        self.labels = tuple(instruction.label for instruction in instructions)
        self._table = Table(self, instructions)
        self._frame = array("q", bytes(WORD * (LEAVES + len(places))))
        self._operands: list[Operand] = []
        rows = array("q")
        for number, place in enumerate(places):
            first = -1 if place.first is None else self._argument(place.first)
            base = self._argument(place.base)
            rows.extend((LEAVES + number, first, base, place.step, place.shift, place.mask))
        self._places = rows
        self._record = array(
            "q",
            (
                trips,
                self._frame.buffer_info()[0],
                self._table.address,
                rows.buffer_info()[0],
                len(places),
                once,
            ),
        )

    def _argument(self, operand: Operand) -> int:
        """The number of the argument that holds an operand's address, behind the fixed four."""
        self._operands.append(operand)
        return 3 + len(self._operands)

    def instruction(self, arena: Arena) -> Instruction:
        """The instruction that runs the loop, with its body's arena at that place."""
        fixed = (Address(self._record.buffer_info()[0]), arena, Slots(0), Status())
        return Instruction(driver().address("mg_loop"), (*fixed, *self._operands), "loop")
