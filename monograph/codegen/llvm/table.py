"""Tables: what depends on the vector axis alone is computed once per thread, not once per row.

Batch norm scales every row of channels by 1 / sqrt(variance + eps). A value like that, which knows
neither the rows nor an earlier stage's result, moves to a stage of its own that fills a table
before the rows begin; the body loads from there. Rows then cost what memory costs.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from ...ir.extent import hint
from ...ir.index import Expr, Var, variables
from ...ir.scalar import TABLE
from ..kernel import (
    Apply,
    BufferUse,
    Constant,
    Holds,
    IndexValue,
    Kernel,
    Load,
    Stage,
    Store,
    Value,
    map_stage,
    operands_of,
    postorder,
    stage_values,
)

ROLE = "table"  # of such a buffer: scratch of one thread, no argument
LEAST_ROWS = 32  # below, a table does not pay
LEAST_COST = 4  # instructions that one load replaces
BYTES = 32768  # of all tables of a kernel
_SLOW = {"div": 8, "sqrt": 8}  # instructions that take as long as several


def tabulated(kernel: Kernel) -> tuple[Kernel, Stage | None]:
    """The kernel with tables for what rows share, and the stage that fills them."""
    axis = kernel.schedule.vector
    if axis is None or kernel.segments or not isinstance(axis.extent, int):
        return kernel, None
    if prod(hint(v.extent) for v in kernel.outer if v != axis) < LEAST_ROWS:
        return kernel, None
    buffers = list(kernel.buffers)
    stores: list[Store] = []
    loads: dict[int, Value] = {}
    room = BYTES
    for value in _shared(kernel, axis):
        nbytes = axis.extent * value.dtype.itemsize
        if nbytes <= room:
            room -= nbytes
            stores.append(Store(len(buffers), axis, value))
            loads[id(value)] = Load(value.dtype, len(buffers), axis)
            buffers.append(BufferUse(value.dtype, axis.extent, ROLE))
    if not stores:
        return kernel, None
    stages = tuple(map_stage(stage, loads) for stage in kernel.stages)
    return replace(kernel, stages=stages, buffers=tuple(buffers)), Stage(
        (axis,), stores=tuple(stores)
    )


def _shared(kernel: Kernel, axis: Var) -> list[Value]:
    """The largest values that know the vector axis and nothing else, and cost enough."""
    order = postorder(value for stage in kernel.stages for value in stage_values(stage))
    known: dict[int, bool] = {}  # id → whether it varies; absent if it knows more than the axis
    for value in order:
        varies = _varies(value, kernel, axis, known)
        if varies is not None:
            known[id(value)] = varies
    used = {id(v) for stage in kernel.stages for v in stage_values(stage)}
    for value in order:
        if id(value) not in known:
            used |= {id(operand) for operand in operands_of(value)}
    found = [v for v in order if id(v) in used and known.get(id(v)) and isinstance(v, Apply)]
    return [v for v in found if v.dtype.itemsize >= 4 and _cost(v, known) >= LEAST_COST]


def _varies(value: Value, kernel: Kernel, axis: Var, known: dict[int, bool]) -> bool | None:
    """Whether a value differs along the axis; None if it knows anything else."""
    if isinstance(value, Constant):
        return False
    if isinstance(value, Apply):
        parts = [known.get(id(operand)) for operand in value.operands]
        return None if None in parts else any(parts)
    exprs: list[Expr] = []
    if isinstance(value, Load):
        if kernel.buffers[value.buffer].role != "in":
            return None
        exprs = [value.index, *(c.expr for c in value.guard)]
    elif isinstance(value, IndexValue):
        exprs = [value.expr]
    elif isinstance(value, Holds):
        exprs = [c.expr for c in value.guard]
    else:
        return None  # a Result
    used = {v for e in exprs for v in variables(e)}
    return bool(used) if used <= {axis} else None


def _cost(value: Value, known: dict[int, bool]) -> int:
    """Instructions per vector; what does not vary is computed once anyway."""
    total = 0
    for part in postorder([value]):
        if not known[id(part)]:
            continue
        if isinstance(part, Apply):
            total += 12 if TABLE[part.function].dear else _SLOW.get(part.function, 1)
        else:
            total += 1
    return total
