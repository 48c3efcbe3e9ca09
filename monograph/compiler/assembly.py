"""The window of a group of units: steps with their arguments, blocks, items, scratch memory.

`window.py` says which units go together. Here their kernels and products become the steps of a
`Window`, and it is decided how many rows a block and an item have. Groups alike, those of all
layers of a model, share one window.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from ..codegen import kernel as k
from ..codegen.window import Multiply, Rows, Window
from ..ir import dtypes
from ..ir.dtypes import DType
from ..ir.extent import Extent, clamped, divided, hint, smaller
from ..ir.node import Node
from .contract import MatmulCall
from .fuse import Unit
from .hidden import limited, visible_columns
from .lower import Lowered
from .schedule import fingerprint
from .windowed import multiply_of

if TYPE_CHECKING:
    from .window import Finder, Group

SCRATCH = 1 << 21  # bytes that the windows of a block should take
SMALL = 1 << 20  # elements of scratch memory that nobody minds
BLOCKS = (64, 48, 32, 24, 16)  # rows of a block, the best first
ITEMS = 16  # enough for threads to share evenly
LEAST_ITEM = 64  # rows of an item: operands are packed once for each
TILE = 8  # rows that products take at once
PIECES = 8  # items for which sums are made in parts, if there would be fewer

Fit = Callable[[Window], Window]


@dataclass
class Assembly:
    """Makes the window of one group."""

    finder: Finder
    group: Group
    buffers: list[k.BufferUse] = field(default_factory=list)
    arguments: list[Node | str] = field(default_factory=list)
    numbers: dict[int, int] = field(default_factory=dict)  # node id → argument
    inside: dict[int, int] = field(default_factory=dict)  # node id → window
    dtypes: set[DType] = field(default_factory=set)  # of the products

    def window(self, fit: Fit) -> Lowered | None:
        """The window with its arguments; None if the group does not go together."""
        self.space = self.finder.space
        place = self.finder.place
        members = sorted(self.group.members.values(), key=lambda unit: place[unit.number])
        steps = tuple([self._step(unit) for unit in members])
        slots, row_bytes = self._slots(members)
        self._argument("scratch", k.BufferUse(dtypes.float32, 0, "partials"))
        key = tuple(map(_key, steps)), tuple(self.buffers), slots, row_bytes
        made = self.finder.made
        if key not in made:
            made[key] = self.make(steps, slots, row_bytes, fit)
        window = made[key]
        return None if window is None else Lowered(window, self.arguments)

    def make(
        self, steps: tuple[Multiply | Rows, ...], slots: tuple[int, ...],
        row_bytes: tuple[int, ...], fit: Fit,
    ) -> Window | None:  # fmt: skip
        """The window of these steps: groups alike, those of all layers, have one."""
        if len(self.dtypes) != 1:
            return None
        cut = _cut([s for s in steps if isinstance(s, Multiply)])
        if cut is None:
            return None
        period, item = cut
        if not self._is_worthwhile(steps, period):
            return None
        block = _block_rows(sum(row_bytes), period)
        slot_bytes = tuple([nbytes * block for nbytes in row_bytes])
        split = False
        if item == 0:
            item, split = item_rows(self.space.rows // period, period, block, ITEMS)
        elif hint(self.space.rows // item) < PIECES:
            item, split = item_rows(self.space.rows // period, period, block, PIECES)
        visible = visible_columns(steps, period)
        if visible is not None:
            steps = tuple([limited(step, self.space.columns) for step in steps])
        made = Window(
            "", (), (), tuple(self.buffers), steps=steps, total=self.space.rows,
            columns=self.space.columns, period=period, block=block, item=item, split=split,
            slots=slots, slot_bytes=slot_bytes, visible=visible, dtype=next(iter(self.dtypes)),
        )  # fmt: skip
        made = fit(made)
        scratch, whole = made.buffers[-1].elements, self.space.rows * self.space.columns
        if hint(scratch) > max(SMALL, hint(whole) // 2):
            return None
        return named(made, "window")

    def _is_worthwhile(self, steps: Sequence[Multiply | Rows], period: int) -> bool:
        """Whether it is not just one layer after another."""
        kernels = [s.kernel for s in steps if isinstance(s, Rows)]
        reduced = any(stage.reductions for kernel in kernels for stage in kernel.stages)
        return reduced or self.space.rows != period

    def _argument(self, what: Node | str, use: k.BufferUse) -> int:
        self.buffers.append(use)
        self.arguments.append(what)
        return len(self.buffers) - 1

    def _number(self, node: Node, role: str) -> int:
        """The argument of an array in memory."""
        if node.id not in self.numbers:
            use = k.BufferUse(node.dtype, node.size, role)
            self.numbers[node.id] = self._argument(node, use)
        return self.numbers[node.id]

    def _inside(self, node: Node) -> int:
        return self.inside.setdefault(node.id, len(self.inside))

    def _step(self, unit: Unit) -> Multiply | Rows:
        windows = self.finder.windows
        if isinstance(unit.library, MatmulCall):
            found = multiply_of(unit.library, windows, self.space)
            assert found is not None
            self.dtypes.add(unit.library.node.dtype)
            moving = self.finder.copy(unit.library.node)
            moved = None if moving is None else found.moved(moving[1], self.space)
            if moving is not None and moved is not None:
                unit, copy = moving
                self.group.copies.append(unit)
                self.group.moved[copy.source.id] = copy.target
                found = moved
            return found.step(self._number, self._inside)
        low = self.finder.kernel_by_rows(unit)
        assert low is not None
        own = any(unit is sink for sink in self.group.sinks)
        arguments = []
        dropped = set()
        for number, (use, node) in enumerate(low.pairs()):
            if use.role == "row":
                continue
            assert isinstance(node, Node)
            if node.id in windows:
                arguments.append(("inside", self._inside(node)))
            elif own or use.role == "in":
                arguments.append(("buffer", self._number(node, use.role)))
            else:  # another group stores it
                dropped.add(number)
                arguments.append(("inside", 0))
        return Rows(_without_stores(low.kernel, dropped), tuple(arguments))

    def _slots(self, members: Sequence[Unit]) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Which windows share memory, and the bytes of one row of each slot."""
        finder = self.finder
        last: dict[int, int] = {}
        for step, unit in enumerate(members):
            for node in [*finder.reads(unit), *finder.writes(unit)]:
                if node.id in self.inside:
                    last[node.id] = step
        slots: dict[int, int] = {}
        free: list[int] = []
        sizes: list[int] = []
        for step, unit in enumerate(members):
            for node in finder.writes(unit):
                if node.id not in self.inside:
                    continue
                slot = free.pop() if free else len(sizes)
                if slot == len(sizes):
                    sizes.append(0)
                sizes[slot] = max(sizes[slot], self.space.columns * node.dtype.itemsize)
                slots[node.id] = slot
            free += [slots[n] for n, when in last.items() if when == step and n in slots]
        return tuple([slots[n] for n in self.inside]), tuple(sizes)


def _cut(products: Iterable[Multiply]) -> tuple[int, int] | None:
    """(period, rows of an item or 0): blocks lie in one matrix, sums in one item."""
    heights = {m.rows for m in products}
    period = min(heights, key=hint)
    if any(divided(rows, period) is None for rows in heights):
        return None
    sums = {m.rows for m in products if m.sums}
    if len(sums) > 1:
        return None
    return period, sums.pop() if sums else 0


def _block_rows(row_bytes: int, period: int) -> int:
    """Rows of a block; where sizes vary, as many whole tiles as fit the scratch memory."""
    if isinstance(row_bytes, Extent):
        return clamped(SCRATCH // TILE // row_bytes, BLOCKS[-1] // TILE, BLOCKS[0] // TILE) * TILE
    for rows in BLOCKS:
        if rows * row_bytes <= SCRATCH:
            break
    return rows if isinstance(period, Extent) else min(rows, period)


def item_rows(periods: int, period: int, block: int, items: int) -> tuple[int, bool]:
    """Rows of an item, and whether it is split off a period: a part of a long one where there are
    few periods, or a whole one."""
    blocks = (period + block - 1) // block
    if any(isinstance(n, Extent) for n in (periods, period, block)):
        parts = clamped(smaller(period // LEAST_ITEM, items // periods), 1, items)
        return smaller((blocks + parts - 1) // parts * block, period), True
    parts = max(1, min(period // LEAST_ITEM, items // periods))
    return (-(-blocks // parts) * block, True) if parts > 1 else (period, False)


def _without_stores(kernel: k.Kernel, dropped: set[int]) -> k.Kernel:
    """The kernel without its stores into some buffers."""
    if not dropped:
        return kernel
    stages = tuple(
        [
            replace(stage, stores=tuple([s for s in stage.stores if s.buffer not in dropped]))
            for stage in kernel.stages
        ]
    )
    made = replace(kernel, stages=stages)
    return replace(made, name=f"rows_{fingerprint(made)}")


def _key(step: Multiply | Rows) -> Any:
    """What tells steps apart: the name of a kernel says what it does."""
    return (step.kernel.name, step.arguments) if isinstance(step, Rows) else step


def named(window: Window, word: str) -> Window:
    """The window with a name that all that decides its code is part of."""
    text = repr(([_key(step) for step in window.steps], repr(replace(window, steps=()))))
    digest = blake2b(text.encode(), digest_size=8).hexdigest()
    return replace(window, name=f"{word}_{digest}")
