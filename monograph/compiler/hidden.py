"""Hidden columns: what a causal mask makes useless is found, so that it need not be computed.

A point (row, column) is hidden if its column lies beyond the row's own place by more than a
constant. The kernels of a window are followed at such a point: -infinity stays -infinity when
something is taken from it, its exponential is 0, and 0 times anything is 0. If every sum then gets
0 there, every maximum -infinity, and every product a 0, then nothing at hidden points matters, for
finite data. Where data is not finite, the rows that can see it hold NaN in either case.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..codegen import kernel as k
from ..codegen.window import GROUP, Inside, Multiply, Rows
from ..ir import index
from ..ir.extent import hint, part_of, proven
from ..ir.index import Expr, Var
from .schedule import fingerprint, map_expressions

Known = float | bool | None  # the value at hidden points; None where it is not known

_SWAPPED = {"ge": "le", "gt": "lt"}
_NEUTRAL = {"add": 0.0, "max": -math.inf}


def visible_columns(steps: Sequence[Multiply | Rows], period: int) -> int | None:
    """The constant c such that columns beyond row + c are hidden for all steps; None if none is."""
    for step in steps:
        if isinstance(step, Rows):
            for reach in sorted(_reaches(step.kernel, period), key=hint):
                if proven(reach, 0) and _hides(steps, period, reach):
                    return reach
    return None


def limited(step: Multiply | Rows, columns: int) -> Multiply | Rows:
    """A kernel whose loops over columns end where the block's last row sees no more."""
    if isinstance(step, Multiply):
        return step
    kernel = step.kernel
    extent: Any = part_of("columns", columns)
    if isinstance(columns, int) and columns % GROUP == 0:
        extent = part_of("groups", columns // GROUP) * GROUP
    axis = kernel.schedule.vector
    assert axis is not None
    shorter = Var(axis.name, extent)
    kernel = map_expressions(kernel, lambda e: index.substitute(e, {axis: shorter}))
    stages = tuple([replace(s, axes=(shorter,) if s.axes else ()) for s in kernel.stages])
    kernel = replace(kernel, stages=stages, schedule=replace(kernel.schedule, vector=shorter))
    return replace(step, kernel=replace(kernel, name=f"rows_{fingerprint(kernel)}"))


def _reaches(kernel: k.Kernel, period: int) -> set[int]:
    """Constants c for which the kernel asks whether column <= row + c."""
    found = set()
    for stage in kernel.stages:
        for value in k.postorder(k.stage_values(stage)):
            reach = _reach(value, _row(kernel, period), stage)
            if reach is not None:
                found.add(reach)
    return found


def _row(kernel: k.Kernel, period: int) -> Var | None:
    last = kernel.outer[-1] if kernel.outer else None
    return last if last is not None and last.extent == period else None


def _reach(value: k.Value, row: Var | None, stage: k.Stage) -> int | None:
    """c if the value is `column <= row + c`."""
    if row is None or len(stage.axes) != 1:
        return None
    difference: Expr | None = None
    strict = False
    if isinstance(value, k.Apply) and value.function in ("le", "lt", "ge", "gt"):
        low, high = value.operands
        if value.function in _SWAPPED:
            low, high = high, low
        if isinstance(low, k.IndexValue) and isinstance(high, k.IndexValue):
            difference = high.expr - low.expr
            strict = value.function in ("lt", "gt")
    elif isinstance(value, k.Holds) and len(value.guard) == 1 and not value.guard[0].equal:
        difference = value.guard[0].expr
    if difference is None:
        return None
    constant, terms = index.split(difference)
    if terms != {row: 1, stage.axes[0]: -1}:
        return None
    return constant - strict


def _hides(steps: Sequence[Multiply | Rows], period: int, reach: int) -> bool:
    """Whether nothing beyond row + reach matters."""
    zero: set[int] = set()  # windows that hold 0 there
    for step in steps:
        if isinstance(step, Rows):
            if not _Walk(step, period, reach, zero).run():
                return False
        elif step.kind != "produce":
            used = [p.number for p in (step.a, step.b) if isinstance(p, Inside)]
            if not zero.issuperset(used):
                return False
    return True


@dataclass
class _Walk:
    """One kernel followed at a hidden point."""

    step: Rows
    period: int
    reach: int
    zero: set[int]
    rows: dict[int, Known] = field(default_factory=dict)  # what scratch rows hold there

    def run(self) -> bool:
        kernel = self.step.kernel
        passed = [n for n, use in enumerate(kernel.buffers) if use.is_argument]
        self.inside = {
            n: which
            for n, (kind, which) in zip(passed, self.step.arguments, strict=True)
            if kind == "inside"
        }
        return all(self._stage(stage) for stage in kernel.stages)

    def _stage(self, stage: k.Stage) -> bool:
        values: dict[int, Known] = {}
        for value in k.postorder(k.stage_values(stage)):
            values[id(value)] = self._value(value, stage, values)
        for reduction in stage.reductions:
            neutral = _NEUTRAL.get(reduction.combine)
            if neutral is None or values[id(reduction.value)] != neutral:
                return False
        for store in stage.stores:
            known = values[id(store.value)]
            if store.buffer in self.inside:
                if known != 0.0:
                    return False
                self.zero.add(self.inside[store.buffer])
            elif self.step.kernel.buffers[store.buffer].role == "row":
                self.rows[store.buffer] = known
            elif stage.axes:
                return False
        return stage.axes in ((), (self.step.kernel.schedule.vector,))

    def _value(self, value: k.Value, stage: k.Stage, values: dict[int, Known]) -> Known:
        if isinstance(value, k.Constant):
            number = value.value
            return number if isinstance(number, (bool, int, float)) else None
        if isinstance(value, k.Load):
            if value.buffer in self.rows:
                return self.rows[value.buffer]
            return 0.0 if self.inside.get(value.buffer) in self.zero else None
        if _reach(value, _row(self.step.kernel, self.period), stage) == self.reach:
            return False
        if isinstance(value, k.Apply):
            return _apply(value.function, [values[id(o)] for o in value.operands])
        return None


def _apply(function: str, x: list[Known]) -> Known:
    """A scalar function of values that may be known, for finite unknown ones."""
    if function == "select":
        if x[0] is None:
            return x[1] if x[1] == x[2] else None
        return x[1] if x[0] else x[2]
    if function in ("cast", "detach", "mark"):
        return x[0]
    if function == "not":
        return None if x[0] is None else not x[0]
    if function == "and":
        return False if False in x else None
    if function == "or":
        return True if True in x else None
    if function == "mul":
        return 0.0 if 0.0 in x else None
    if function == "div":
        return 0.0 if x[0] == 0.0 else None
    if function == "exp":
        return 0.0 if x[0] == -math.inf else None
    if function == "neg":
        return None if x[0] is None else -x[0]
    if function in ("add", "sub"):
        return _sum(function, x[0], x[1])
    return None


def _sum(function: str, a: Known, b: Known) -> Known:
    if a == -math.inf and b not in (math.inf, -math.inf):
        return a
    if a is None or b is None:
        return None
    return float(a + b) if function == "add" else float(a - b)
