"""Windows: arrays of a space rows × columns that are never stored as a whole.

A product of two small matrices may be a large one: attention's scores. Where such an array is only
used row by row, by kernels and by further products, those units become one (`codegen/window.py`),
which runs for a few rows at a time. What a later unit needs of it, a backward pass for instance, is
computed there again. Nothing here knows of attention: the units are what fusion and lowering made
of any graph.

1. Which arrays may be windows: those whose maker and all of whose users work by rows.
2. Users whose results are stored are joined to groups that share windows, without a cycle.
3. Each group pulls in what makes its windows, and becomes a unit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..codegen import kernel as k
from ..codegen.window import Window
from ..ir import dtypes
from ..ir.extent import Extent, hint
from ..ir.node import Node
from .assembly import Assembly, Fit
from .contract import MatmulCall
from .fuse import Fusion, Unit, operands
from .lower import Lowered
from .windowed import Copy, Space, by_rows, copy_of, multiply_of

LEAST_BYTES = 1 << 16  # of an array that is worth a window
LEAST_MATRIX = 1 << 13  # elements of one of its matrices
DEEPEST = 256  # sums longer than this are too dear to be taken again in a backward pass
FLOATS = (dtypes.float32, dtypes.float64)  # that products are made of


def form_windows(
    fusion: Fusion, units: Sequence[Unit], lowered: dict[int, Lowered], outputs: Sequence[Node],
    fit: Fit,
) -> list[Unit]:  # fmt: skip
    """Units with windows in place of those that they take in, in the fusion's books too."""
    stored = {node.id for node in outputs}
    products = [u.library for u in units if isinstance(u.library, MatmulCall)]
    spaces = {Space.of(call.node) for call in products if _is_large(call) is not None}
    remaining = list(units)
    for space in sorted(spaces, key=lambda s: (-hint(s.rows * s.columns), hint(s.rows))):
        remaining = _form(Finder(fusion, remaining, lowered, space, stored), fit)
    return remaining


def _is_large(call: MatmulCall) -> Node | None:
    """The result of a product that is larger than what it is made of."""
    node, depth = call.node, call.a.shape[-1]
    *_, m, n = call.c.shape
    if node.dtype not in FLOATS or node.ndim < 2 or call.epilogue:
        return None
    if hint(depth) > DEEPEST:
        return None
    if isinstance(m, Extent) and isinstance(n, Extent):  # there is no telling how large it gets
        return None if isinstance(depth, Extent) else node
    m, n, depth = hint(m), hint(n), hint(depth)
    if m * n < max(LEAST_MATRIX, (m + n) * depth):  # measured: stored, small ones are faster
        return None
    return node if hint(node.size) * node.dtype.itemsize >= LEAST_BYTES else None


def _form(finder: Finder, fit: Fit) -> list[Unit]:
    """Windows over one space; what does not go together is stored after all."""
    while True:
        finder.find()
        if not finder.windows:
            return list(finder.units)
        groups = finder.groups()
        made = [Assembly(finder, group).window(fit) for group in groups]
        failed = [group for group, window in zip(groups, made, strict=True) if window is None]
        if not failed:
            break
        for group in failed:
            finder.stored = finder.stored | finder.arrays(group)
    facts = [(finder.externals(group), finder.results(group)) for group in groups]
    for group, window, (externals, results) in zip(groups, made, facts, strict=True):
        assert window is not None
        finder.replace([*group.sinks, *group.copies], window, externals, results)
    return finder.remaining()


@dataclass
class Group:
    """Units that store results, and all that make their windows, in order."""

    sinks: list[Unit]
    members: dict[int, Unit] = field(default_factory=dict)  # by number; the sinks too
    copies: list[Unit] = field(default_factory=list)  # that are spared
    moved: dict[int, Node] = field(default_factory=dict)  # node id → where a copy would move it


@dataclass
class Finder:
    """Looks for windows of one space among units."""

    fusion: Fusion
    units: Sequence[Unit]
    lowered: dict[int, Lowered]
    space: Space
    stored: set[int]  # ids of nodes that must be in memory
    windows: dict[int, Node] = field(default_factory=dict)
    maker: dict[int, Unit] = field(default_factory=dict)
    users: dict[int, list[Unit]] = field(default_factory=dict)
    order: list[Unit] = field(default_factory=list)  # the units as they run
    place: dict[int, int] = field(default_factory=dict)  # unit → where it stands there
    touched: dict[int, tuple[list[Node], list[Node]]] = field(default_factory=dict)  # by unit
    kernels: dict[Any, k.Kernel | None] = field(default_factory=dict)  # by rows, if they can
    made: dict[Any, Window | None] = field(default_factory=dict)  # by what they are made of

    def __post_init__(self) -> None:
        self.order = self.fusion.sorted_units()
        self.place = {unit.number: n for n, unit in enumerate(self.order)}
        for unit in self.units:
            low = self.lowered.get(unit.number)
            self.touched[unit.number] = _reads(unit, low), _writes(unit, low)
            for node in self.reads(unit):
                self.users.setdefault(node.id, []).append(unit)
            for node in self.writes(unit):
                self.maker[node.id] = unit

    # --- which arrays may be windows ---

    def find(self) -> None:
        """Fill `windows`: begin with all that might be, and strike out what may not."""
        made = [
            node
            for unit in self.units
            for node in self.writes(unit)
            if self._is_large_product(unit) or unit.number in self.lowered
        ]
        self.windows = {
            node.id: node
            for node in made
            if node.id not in self.stored and Space.of(node) == self.space
        }
        self._strike_out()

    @staticmethod
    def _is_large_product(unit: Unit) -> bool:
        return isinstance(unit.library, MatmulCall) and _is_large(unit.library) is not None

    def _strike_out(self) -> None:
        """Round after round; from the second on only what shares a unit with what was struck."""
        suspects = dict(self.windows)
        while suspects:
            works: dict[int, bool] = {}  # by number of the unit
            bad = [node for node in suspects.values() if not self._may_stay(node, works)]
            for node in bad:
                del self.windows[node.id]
            near = [unit for node in bad for unit in self._touching(node)]
            around = [n for unit in near for n in [*self.reads(unit), *self.writes(unit)]]
            suspects = {n.id: n for n in around if n.id in self.windows}

    def _touching(self, node: Node) -> list[Unit]:
        """The maker and the users of an array."""
        made = [self.maker[node.id]] if node.id in self.maker else []
        return made + self.users.get(node.id, [])

    def _may_stay(self, node: Node, works: dict[int, bool]) -> bool:
        if node.id not in self.maker or not self.users.get(node.id):
            return False
        for unit in self._touching(node):
            if unit.number not in works:
                works[unit.number] = self._works_by_rows(unit)
            if not works[unit.number]:
                return False
        return True

    def _works_by_rows(self, unit: Unit) -> bool:
        if isinstance(unit.library, MatmulCall):
            return multiply_of(unit.library, self.windows, self.space) is not None
        if unit.number not in self.lowered:
            return False
        reads = [n.id for n in self.reads(unit) if n.id in self.windows]
        return bool(reads) and self.kernel_by_rows(unit) is not None

    def kernel_by_rows(self, unit: Unit) -> Lowered | None:
        """The unit's kernel with rows as its outer points. Layers share it: it is made once."""
        low = self.lowered[unit.number]
        inside = [isinstance(a, Node) and a.id in self.windows for a in low.arguments]
        key = low.kernel.name, tuple(inside)
        if key not in self.kernels:
            found = by_rows(low, self.windows, self.space)
            self.kernels[key] = None if found is None else found.kernel
        kernel = self.kernels[key]
        return None if kernel is None else replace(low, kernel=kernel)

    def reads(self, unit: Unit) -> list[Node]:
        """What a unit reads from memory."""
        return self.touched[unit.number][0]

    def writes(self, unit: Unit) -> list[Node]:
        """What a unit stores."""
        return self.touched[unit.number][1]

    # --- groups ---

    def groups(self) -> list[Group]:
        """Users of windows that store something, joined where they share windows."""
        found: list[Group] = []
        sharing: dict[int, list[int]] = {}  # by array, which groups have it
        for unit in self.order:
            reads = any(n.id in self.windows for n in self.reads(unit))
            stores = any(n.id not in self.windows for n in self.writes(unit))
            if not (reads and stores):
                continue
            alone = Group([unit], self._pulled(unit))
            arrays = self.arrays(alone)
            for number in sorted({n for array in arrays for n in sharing.get(array, ())}):
                group = found[number]
                if self._independent(group, alone):
                    group.sinks.append(unit)
                    group.members |= alone.members
                    break
            else:
                number = len(found)
                found.append(alone)
            for array in arrays:
                held = sharing.setdefault(array, [])
                if number not in held:
                    held.append(number)
        return found

    def _pulled(self, unit: Unit) -> dict[int, Unit]:
        """The unit and all that make the windows that it needs."""
        members = {unit.number: unit}
        stack = [unit]
        while stack:
            for node in self.reads(stack.pop()):
                if node.id in self.windows:
                    maker = self.maker[node.id]
                    if maker.number not in members:
                        members[maker.number] = maker
                        stack.append(maker)
        return members

    def arrays(self, group: Group) -> set[int]:
        """ids of the windows of a group."""
        nodes = [n for unit in group.members.values() for n in [*self.reads(unit)]]
        return {n.id for n in nodes if n.id in self.windows}

    def externals(self, group: Group) -> list[Node]:
        """What a group reads from memory."""
        found = {}
        for unit in group.members.values():
            for node in self.reads(unit):
                if node.id not in self.windows:
                    found[node.id] = node
        return list(found.values())

    def _independent(self, one: Group, other: Group) -> bool:
        """Whether neither needs a result of the other, not even by way of third units."""
        for needing, giving in ((one, other), (other, one)):
            given = sum(1 << sink.number for sink in giving.sinks)
            for node in self.externals(needing):
                home = self.fusion.home.get(node.id)
                if home is not None and (self.fusion.above[home.number] | 1 << home.number) & given:
                    return False
        return True

    # --- the result ---

    def results(self, group: Group) -> list[Node]:
        """What a group stores: not what is moved elsewhere at once, but what it is moved to."""
        found = [n for sink in group.sinks for n in self.writes(sink) if n.id not in self.windows]
        return [group.moved.get(n.id, n) for n in found]

    def copy(self, node: Node) -> tuple[Unit, Copy] | None:
        """The unit that only moves an array, if that is all that is done with it."""
        users = self.users.get(node.id, [])
        if len(users) != 1 or users[0].number not in self.lowered or node.id in self.stored:
            return None
        found = copy_of(self.lowered[users[0].number])
        return None if found is None else (users[0], found)

    def replace(
        self, sinks: list[Unit], window: Lowered, externals: list[Node], roots: list[Node]
    ) -> None:
        """Let the first sink stand for the whole group."""
        first, *others = sinks
        fusion = self.fusion
        needs = {fusion.home[n.id].number for n in externals if n.id in fusion.home}
        fusion.absorb(first, others)
        fusion.depend(first, needs)
        for other in others:
            self.lowered.pop(other.number, None)
        first.rows, first.columns, first.splits, first.totals = [], [], [], []
        first.roots = roots
        first.library = first.frame = None
        for node in roots:
            fusion.home[node.id] = first
        self.lowered[first.number] = window

    def remaining(self) -> list[Unit]:
        """The units without those that made only windows."""
        kept = []
        for unit in self.fusion.units:
            anchors = _writes(unit, self.lowered.get(unit.number))
            if anchors and all(node.id in self.windows for node in anchors):
                self.lowered.pop(unit.number, None)
            else:
                kept.append(unit)
        self.fusion.units[:] = kept
        return self.fusion.sorted_units()


def _reads(unit: Unit, low: Lowered | None) -> list[Node]:
    """What a unit reads from memory."""
    if unit.library is not None:
        return operands(unit.library)
    if unit.host is not None:
        return list(unit.host.operands)
    if unit.loop is not None:
        return unit.loop.operands
    assert low is not None
    return [a for use, a in low.pairs() if isinstance(a, Node) and use.role in ("in", "inout")]


def _writes(unit: Unit, low: Lowered | None) -> list[Node]:
    """What a unit stores."""
    if low is None:
        return unit.anchors
    return [a for use, a in low.pairs() if isinstance(a, Node) and use.role in ("out", "inout")]
