"""The plan of a kernel's loops: lanes, units of parallel work, blocks, how much to unroll.

The unit that threads share is a row: one point of the outer axes, where a jammed axis counts in
groups and the vector axis, if it is an outer one, in pieces of `piece` elements. A kernel without
a vector axis runs as if its last outer axis were one, with one lane.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from ...ir import dtypes
from ...ir.extent import Extent, clamped, hint
from ...ir.index import Var
from ..kernel import Apply, Kernel, Load, Stage, Value, postorder, stage_values
from .combine import is_positional
from .machine import Machine
from .values import cost

TILE = 4096  # elements of a piece of the vector axis
WORK = 1 << 18  # instructions on elements that are worth a thread's attention
_ACCUMULATORS = 16  # vectors of accumulators that fit the registers


@dataclass(frozen=True)
class Plan:
    """See the module's text. `lanes` is 0 for scalar code."""

    lanes: int
    axis: Var | None
    lanes_are_points: bool
    rows: tuple[tuple[Var, int], ...]  # outer axes and how many steps each takes
    jam: Var | None
    jams: int
    blocks: int  # vectors per iteration when lanes are points
    piece: int
    pieces: int
    work: int  # instructions on elements per unit
    unrolled: bool = True  # whether stages may take several vectors per iteration

    @property
    def units(self) -> int:
        """How many units of parallel work there are."""
        return math.prod(steps for _, steps in self.rows) * self.pieces

    @property
    def grain(self) -> int:
        """The least number of units that a thread should take."""
        if isinstance(self.work, Extent):
            return clamped(WORK // self.work, 1, WORK)
        return max(1, WORK // max(self.work, 1))


def lanes_of(kernel: Kernel, machine: Machine) -> int:
    """Lanes for the kernel: 64-bit ones only if it computes with nothing smaller."""
    values = postorder(value for stage in kernel.stages for value in stage_values(stage))
    used = {value.dtype for value in values if isinstance(value, (Load, Apply))}
    used |= {buffer.dtype for buffer in kernel.buffers}
    sizes = {dtype.itemsize for dtype in used if dtype is not dtypes.bool_}
    return machine.vector_bits // (64 if sizes == {8} else 32)


def stage_blocks(stage: Stage, lanes: int, jams: int, extent: int) -> int:
    """How many vectors of a stage's vector axis one iteration takes.

    Short bodies take several, so that the chain through an accumulator is not what limits them.
    """
    values = postorder(stage_values(stage))
    return _blocks(values, _accumulators(stage), lanes, jams, extent)


def _accumulators(stage: Stage) -> int:
    return sum(4 if is_positional(reduction.combine) else 1 for reduction in stage.reductions)


def _blocks(values: list[Value], accumulators: int, lanes: int, jams: int, extent: int) -> int:
    size = cost(values)
    for blocks in (4, 2):
        if blocks * lanes > hint(extent) or size * blocks * jams > 48:
            continue
        if blocks * jams * accumulators <= _ACCUMULATORS:
            return blocks
    return 1


def make(kernel: Kernel, machine: Machine) -> Plan:
    """The plan that follows from a kernel's schedule."""
    schedule = kernel.schedule
    axis, lanes = schedule.vector, 0
    if axis is not None:
        lanes = lanes_of(kernel, machine)
    elif kernel.outer:
        axis = kernel.outer[-1]
    points = axis in kernel.outer
    jam, jams = schedule.unroll or (None, 1)
    blocks = _point_blocks(kernel, axis, lanes, jams) if points else 1
    if jam is not None and jam == axis and points:
        jam, jams, blocks = None, 1, max(jams, 1)
    if jam is None or jam not in kernel.outer or jams <= 1:
        jam, jams = None, 1
    rows = tuple(
        (var, (var.extent + jams - 1) // jams if var == jam else var.extent)
        for var in kernel.outer
        if not (points and var == axis)
    )
    inner = sum(
        cost(postorder(stage_values(stage))) * math.prod(var.extent for var in stage.axes)
        for stage in kernel.stages
    )
    piece, pieces = 1, 1
    if points:
        assert axis is not None
        piece, pieces = _pieces(axis.extent, max(lanes, 1) * blocks, inner * jams)
    work = max(inner, 1) * jams * (piece if points else 1)
    return Plan(lanes, axis, points, rows, jam, jams, blocks, piece, pieces, work)


def _point_blocks(kernel: Kernel, axis: Var | None, lanes: int, jams: int) -> int:
    """Vectors per iteration when lanes are outer points: accumulators of all stages count."""
    if not lanes or axis is None:
        return 1
    values = postorder(value for stage in kernel.stages for value in stage_values(stage))
    accumulators = sum(map(_accumulators, kernel.stages))
    return _blocks(values, accumulators, lanes, jams, axis.extent)


def _pieces(extent: int, step: int, work: int) -> tuple[int, int]:
    """(length, count) of the pieces of an outer vector axis: about equal, whole iterations."""
    wanted = min(TILE, max(step, WORK // max(hint(work), 1)))
    if isinstance(extent, Extent):
        length = -(-wanted // step) * step
        return length, (extent + length - 1) // length
    count = max(1, -(-extent // wanted))
    length = max(1, -(-extent // count))
    length = -(-length // step) * step
    return length, max(1, -(-extent // length))
