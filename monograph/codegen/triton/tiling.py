"""How a kernel is cut into Triton programs.

The outer domain is flattened into one coordinate, `row`, and the axes of a stage into another,
its `lane`. A program handles a tile of `rows` rows. When the lanes of a row fit one block they
are all held in registers, so a row is read once for all stages; longer rows are looped over, or,
where nothing is reduced along them, spread over the grid. A kernel with privatised outputs runs a
fixed number of programs, each of which walks over its share of the rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from ...ir.index import Var
from ..kernel import Kernel, Stage


class UnsupportedKernel(NotImplementedError):
    """A kernel that this emitter has no text for; the compiler must lower it in another way."""


@dataclass(frozen=True)
class Tuning:
    """The numbers behind the choice of tiles. The defaults suit a Hopper GPU of 132 processors.

    block: elements of a pointwise tile; resident: the longest row kept in registers;
    looped: lanes per step of a longer row; warps: threads / 32 per program, by the tile's size
    when 0; programs: how many share a privatised reduction, as many as run at once when 0;
    stages: rows whose loads are in flight at once in a privatised kernel; hoist: elements of a
    pointwise kernel from which dear numbers that all programs share get a launch of their own.
    """

    block: int = 1024
    resident: int = 16384
    looped: int = 4096
    processors: int = 132
    programs: int = 0
    warps: int = 0
    stages: int = 3
    hoist: int = 1 << 16


@dataclass(frozen=True)
class Lanes:
    """The flattened axes of stages: `extent` lanes in blocks of `block`.

    where: "block" (all at once), "loop" (a loop inside the program) or "grid" (one block each).
    """

    var: Var
    block: int
    where: str

    @property
    def blocks(self) -> int:
        return -(-self.var.extent // self.block)

    @property
    def masked(self) -> bool:
        return self.blocks * self.block != self.var.extent


@dataclass(frozen=True)
class Tiling:
    """The tile of a program and the grid of programs."""

    row: Var
    order: tuple[Var, ...]  # the outer axes as `row` counts them, the fastest last
    rows: int
    lanes: dict[int, Lanes]  # by extent: stages with equally many points share their lanes
    chunks: int  # programs that share the rows of a privatised kernel, 0 in other kernels
    warps: int
    stages: int

    @property
    def lane_blocks(self) -> int:
        """Programs along the lanes."""
        return math.prod(lanes.blocks for lanes in self.lanes.values() if lanes.where == "grid")

    @property
    def grid(self) -> int:
        along_rows = self.chunks or -(-self.row.extent // self.rows)
        return along_rows * self.lane_blocks

    @property
    def two_dimensional(self) -> bool:
        return self.rows > 1 and bool(self.lanes)

    def of(self, stage: Stage) -> Lanes | None:
        return self.lanes[points(stage.axes)] if stage.axes else None


def points(axes: tuple[Var, ...]) -> int:
    """How many points the axes span."""
    return math.prod(axis.extent for axis in axes)


def power_of_two(n: int) -> int:
    """The least power of two that is at least n."""
    return 1 << max(n - 1, 0).bit_length()


def choose(kernel: Kernel, tuning: Tuning) -> Tiling:
    """The tiling of a kernel."""
    vector = kernel.schedule.vector
    privatised = any(stage.privatised for stage in kernel.stages)
    across_rows = vector in kernel.outer and not privatised
    extents = sorted({points(stage.axes) for stage in kernel.stages if stage.axes})
    lanes = {
        extent: _lanes(kernel, f"lane{n}", extent, across_rows, len(extents) == 1, tuning)
        for n, extent in enumerate(extents)
    }
    widest = max((each.block for each in lanes.values()), default=1)
    row = Var("row", points(kernel.outer))
    # Across rows, neighbouring rows are neighbours in memory: a tile needs some to load at once.
    fewest = (32 if widest < 1024 else 16) if across_rows else 1
    rows = max(tuning.block // widest, fewest)
    rows = min(rows, power_of_two(row.extent)) if lanes else rows
    warps = _warps(rows * widest, tuning)
    chunks = 0
    if privatised:
        split = math.prod(each.blocks for each in lanes.values() if each.where == "grid")
        chunks = min(-(-row.extent // rows), max(1, _programs(warps, tuning) // split))
    order = kernel.outer
    if across_rows:
        order = (*(axis for axis in order if axis != vector), *(a for a in order if a == vector))
    return Tiling(row, order, rows, lanes, chunks, warps, tuning.stages)


def _lanes(
    kernel: Kernel, name: str, extent: int, across_rows: bool, alone: bool, tuning: Tuning
) -> Lanes:
    """Where the lanes of one extent go: registers, a loop, or the grid."""
    whole = power_of_two(extent)
    reduced = any(stage.reductions for stage in kernel.stages)
    forwarded = any(use.role == "row" for use in kernel.buffers)
    if alone and not reduced and not forwarded and all(stage.axes for stage in kernel.stages):
        block = min(whole, 16 if across_rows else tuning.block)
        return Lanes(Var(name, extent), block, "grid" if block < extent else "block")
    if across_rows:
        fits = whole <= 1024
        return Lanes(Var(name, extent), whole if fits else 64, "block" if fits else "loop")
    if whole <= tuning.resident:
        return Lanes(Var(name, extent), whole, "block")
    return Lanes(Var(name, extent), tuning.looped, "loop")


def _warps(elements: int, tuning: Tuning) -> int:
    if tuning.warps:
        return tuning.warps
    return min(max(elements // 512, 4), 16)


def _programs(warps: int, tuning: Tuning) -> int:
    """Few programs with several rows in flight each.

    Measured on an H200 for layer norm forward and backward: 528 programs with loads three rows
    ahead move 4.0 TB/s, 924 with one row 2.4.
    """
    return tuning.programs or tuning.processors * max(2, 16 // warps)
