"""The values of a stage's body, for every copy of the point.

`Body.evaluate` takes values of which operands come first, and writes each of them once for each
copy on which it depends: a load that does not know the jammed axis is shared by all jam
copies, which is what makes unroll-and-jam pay.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...ir import dtypes
from ...ir.scalar import TABLE
from ..kernel import Apply, Constant, Holds, IndexValue, Load, Result, Value
from .memory import Memory
from .place import Copy
from .scope import Ref

_DEAR = 12  # instructions of an elementary function, roughly


def cost(values: Iterable[Value]) -> int:
    """About how many instructions the values take."""
    total = 0
    for value in values:
        if isinstance(value, Apply):
            total += _DEAR if TABLE[value.function].dear else 1
        elif isinstance(value, Load):
            total += 1
    return max(total, 1)


class Body:
    """Evaluates the values of one stage at the current place."""

    def __init__(self, memory: Memory, results: dict[tuple[int, Copy], Ref]) -> None:
        self.memory = memory
        self.results = results
        self._refs: dict[tuple[int, Copy], Ref] = {}
        self._depends: dict[int, tuple[bool, bool]] = {}  # on the jam, on the block

    def evaluate(self, values: list[Value]) -> None:
        """Write all values (in `order`) for all copies of the current point."""
        place = self.memory.place
        blocks = len(place.masks) if place.vector in place.coordinates else 1
        for value in values:
            on_jam, on_block = self._depends[id(value)] = self._dependence(value)
            for jam in range(place.jams if on_jam else 1):
                for block in range(blocks if on_block else 1):
                    copy = Copy(jam, block)
                    self._refs[id(value), copy] = self._emit(value, copy)

    def at(self, value: Value, copy: Copy) -> Ref:
        """The evaluated value at a copy."""
        on_jam, on_block = self._depends[id(value)]
        known = Copy(copy.jam if on_jam else 0, copy.block if on_block else 0)
        return self._refs[id(value), known]

    def _dependence(self, value: Value) -> tuple[bool, bool]:
        place = self.memory.place
        if isinstance(value, Constant):
            return False, False
        if isinstance(value, Apply):
            found = [self._depends[id(operand)] for operand in value.operands]
            return any(jam for jam, _ in found), any(block for _, block in found)
        if isinstance(value, Result):
            return True, self.memory.lanes_are_points
        if isinstance(value, Load):
            used = place.variables(value.index) | place.guard_variables(value.guard)
            if self.memory.buffers[value.buffer].role == "row":
                return True, self.memory.lanes_are_points or place.vector in used
        elif isinstance(value, IndexValue):
            used = place.variables(value.expr)
        else:
            assert isinstance(value, Holds)
            used = place.guard_variables(value.guard)
        return place.jam in used, place.vector in used and place.vector in place.coordinates

    def _emit(self, value: Value, copy: Copy) -> Ref:
        memory = self.memory
        builder = memory.builder
        if isinstance(value, Constant):
            return builder.const(value.value, value.dtype)
        if isinstance(value, Load):
            return builder.cast(memory.load(value, copy), value.dtype)
        if isinstance(value, Apply):
            operands = tuple(self.at(operand, copy) for operand in value.operands)
            return builder.apply(value.function, operands, value.dtype)
        if isinstance(value, IndexValue):
            return builder.cast(memory.lanes(value.expr, copy), value.dtype)
        if isinstance(value, Result):
            known = copy if memory.lanes_are_points else Copy(copy.jam, 0)
            return builder.cast(self.results[value.number, known], value.dtype)
        assert isinstance(value, Holds)
        truth = builder.const(True, dtypes.bool_)
        for test in memory.guard(value.guard, copy):
            if test is not None:
                truth = builder.and_(truth, test)
        return truth
