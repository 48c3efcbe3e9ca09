"""Fusion: which nodes are computed together in one pass over memory.

Everything that must exist in memory (results, operands of libraries, reductions) is an anchor; all
else is computed where it is used. Anchors join a unit when they share its frame, touch the same
data, and depend on one another only within a row. A node that several units would compute again
from more than one array is kept in memory by the first of them. Units are bit positions in
ancestor sets, so that joining never makes a cycle.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..ir import index
from ..ir.extent import hint
from ..ir.index import Expr
from ..ir.node import (
    Buffer,
    Call,
    Const,
    Contract,
    Loop,
    LoopResult,
    Map,
    Node,
    Random,
    Reduce,
    Reindex,
    Scatter,
    Slot,
    ancestors,
)
from ..ir.scalar import TABLE
from .absorb import base_of
from .body import Demand, Place, inlined
from .breadth import CROWD, broad, is_broad
from .contract import ConvolutionCall, MatmulCall
from .frame import Frame, input_order, ordered, pointwise_frame, reduction_frame
from .host import HostCall, Supports, everything, host_call, kept_for_host, runs_on_host
from .layout import Layouts
from .repeats import repeated
from .turns import LoopUnit

LibraryCall = MatmulCall | ConvolutionCall
AlongKernel = Callable[[Node], Any]  # the kernel of a Call, or None
TOTALS = frozenset({"add", "mul", "max", "min", "and", "or"})


@dataclass
class Unit:
    """One pass: a kernel in the making, a library call, a scatter, a function along an axis, a call
    on the host, a loop."""

    number: int
    frame: Frame | None = None
    rows: list[Node] = field(default_factory=list)  # reductions to one value per row
    columns: list[Node] = field(default_factory=list)  # reductions over the rows
    splits: list[Node] = field(default_factory=list)  # long reductions cut into rows
    totals: list[Node] = field(default_factory=list)  # one number, of a value per row
    roots: list[Node] = field(default_factory=list)  # stored point by point
    library: LibraryCall | None = None
    scatter: Node | None = None
    along: Node | None = None
    host: HostCall | None = None
    loop: LoopUnit | None = None
    flexible: bool = True  # only pointwise so far: the frame may still change
    closed: bool = False  # nothing joins it: it copies an array into another order, in squares
    touches: set[int] = field(default_factory=set)  # ids of arrays read or written

    @property
    def anchors(self) -> list[Node]:
        """Everything this unit computes."""
        if self.library is not None:
            return [self.library.node]
        if self.scatter is not None:
            return [self.scatter]
        if self.along is not None:
            return [self.along]
        if self.host is not None:
            return [self.host.node]
        if self.loop is not None:
            return list(self.loop.results)
        return [*self.rows, *self.columns, *self.splits, *self.totals, *self.roots]

    @property
    def count(self) -> int:
        """How many arrays a kernel computes."""
        parts = (self.rows, self.columns, self.splits, self.totals, self.roots)
        return sum([len(part) for part in parts])


@dataclass
class Fusion:
    """The state of grouping anchors into units."""

    outputs: Sequence[Node]
    layouts: Layouts
    calls: dict[int, LibraryCall]  # by id of what it computes: a Contract, or what follows one
    supports: Supports = everything  # element types that kernels may have
    absorbed: set[int] = field(default_factory=set)  # Contracts within the call of another node
    along: AlongKernel | None = None  # kernels of Calls, where the backend has any
    units: list[Unit] = field(default_factory=list)
    home: dict[int, Unit] = field(default_factory=dict)  # anchor id → unit
    above: list[int] = field(default_factory=list)  # unit → bit set of units it depends on
    nodes: list[Node] = field(default_factory=list)
    by_id: dict[int, Node] = field(default_factory=dict)
    sizes: dict[int, int] = field(default_factory=dict)
    kept: set[int] = field(default_factory=set)  # ids of inlined kinds that are kept in memory
    host: set[int] = field(default_factory=set)  # ids of what no kernel computes
    _touching: dict[int, list[int]] = field(default_factory=dict)  # array → units, as they opened
    _followed: int = 0  # bit set of units that others depend on

    def run(self) -> list[Unit]:
        """The units, in an order that respects their dependencies."""
        self.nodes = ancestors(self.outputs)
        self.by_id = {node.id: node for node in self.nodes}
        self.sizes = {node.id: hint(node.size) for node in self.nodes}
        self.host = {
            node.id for node in self.nodes
            if runs_on_host(node, self.supports) and not self._is_along(node)
        }  # fmt: skip
        self._keep_required()
        self.kept |= repeated(self.nodes, self.is_boundary)
        self._keep_shared()
        self.kept |= broad(self.nodes, self.is_boundary)
        for node in self.nodes:
            if self.is_anchor(node):
                self._assign(node)
        self._unite()
        return self.sorted_units()

    def _is_along(self, node: Node) -> bool:
        """Whether a kernel computes this Call: its operand and result lie plain."""
        if self.along is None or not isinstance(node, Call) or self.along(node) is None:
            return False
        around = (node, *node.inputs)
        if not all(self.supports(n.dtype) for n in around):
            return False
        plain = [index.contiguous_strides(n.shape) for n in around]
        return [self.layouts.strides(n) for n in around] == plain

    # --- what is kept in memory ---

    def is_anchor(self, node: Node) -> bool:
        """Whether a unit produces this node, rather than each use computing it."""
        kinds = (Reduce, Contract, Scatter, Loop, LoopResult, Call)
        if isinstance(node, kinds) and node.id not in self.host and node.id not in self.absorbed:
            return True
        return node.id in self.kept

    def is_boundary(self, node: Node) -> bool:
        """Whether a body finds this node in memory or in an accumulator."""
        known = isinstance(node, (Buffer, Slot)) or node.id in self.absorbed
        return known or self.is_anchor(node)

    def _keep(self, nodes: Iterable[Node]) -> None:
        self.kept.update(n.id for n in nodes if inlined(n))

    def _keep_required(self) -> None:
        self._keep(self.outputs)
        self.kept |= self.layouts.turned
        for node in self.nodes:
            if isinstance(node, (Reindex, Scatter)):
                self._keep(node.inputs[1:])
            if isinstance(node, Call) and node.id not in self.host:
                self._keep(node.inputs)
            if node.id in self.calls:
                self._keep(operands(self.calls[node.id]))
            if isinstance(node, Loop):
                self._keep(base for base, _ in self._sources(node))
        self._keep_narrowed()
        if self.host:
            sources = {n.id for n in self.nodes if isinstance(n, (Buffer, Slot))}
            self.kept |= kept_for_host(self.nodes, self.outputs, self.host) - sources

    def _sources(self, node: Loop) -> list[tuple[Node, int]]:
        """Where the inputs of a loop lie in memory."""
        return [base_of(source, self.layouts.strides) for source in node.inputs]

    def _keep_narrowed(self) -> None:
        """Keep what rows are reduced and then narrowed to, where nobody asks for the wide ones."""
        readers: dict[int, list[Node]] = {}
        for node in self.nodes:
            for source in node.inputs:
                if isinstance(source, Reduce):
                    readers.setdefault(source.id, []).append(node)
        asked = {node.id for node in self.outputs}
        for source_id, (first, *others) in readers.items():
            narrowed = isinstance(first, Map) and first.function == "cast" and not others
            if narrowed and source_id not in asked:
                wide = first.inputs[0]
                smaller = first.dtype.itemsize < wide.dtype.itemsize
                if smaller and reduction_frame(wide, self.layouts)[1] == "row":
                    self._keep([first])

    def _keep_shared(self) -> None:
        """Keep what different passes would compute again at a price.

        Walks from the results down. `users` counts the anchors that a node is computed in; two
        anchors over the same space count as one, since they will share a pass.
        """
        loads = self._loads()
        users: dict[int, set[object]] = {n.id: set() for n in self.nodes}
        for node in reversed(self.nodes):
            if inlined(node) and node.id not in self.kept and len(users[node.id]) > 1:
                if self._worth_keeping(node, loads[node.id]):
                    self.kept.add(node.id)
            seen = {self._space(node)} if self.is_anchor(node) else users[node.id]
            for source in node.inputs:
                users[source.id] |= seen

    def _space(self, node: Node) -> object:
        """Anchors with the same space are expected to share a pass."""
        if node.id in self.host:
            return node.id
        if isinstance(node, Reduce):
            frame, form = reduction_frame(node, self.layouts)
            return (frame.runs, self._depth(node)) if form != "split" else node.id
        if isinstance(node, (Contract, Scatter, Loop, LoopResult, Call)) or node.id in self.calls:
            return node.id
        return (pointwise_frame(node, self.layouts).runs, self._depth(node))

    def _depth(self, node: Node) -> int:
        """How many library calls lie before a node: passes between the same two may merge."""
        return self._depths()[node.id]

    def _depths(self) -> dict[int, int]:
        if not hasattr(self, "_depth_of"):
            depth: dict[int, int] = {}
            whole: dict[int, int] = {}  # the size of the largest array that a node is made of
            for node in self.nodes:
                before = max((depth[s.id] for s in node.inputs), default=0)
                alone = isinstance(node, (Contract, Scatter, Loop, Call)) or node.id in self.host
                read = max((whole[s.id] for s in node.inputs), default=0)
                # A product that loops compute reads its operands all over, as a library does.
                if isinstance(node, Reduce) and read < self.sizes[node.inputs[0].id]:
                    alone = True
                whole[node.id] = read if isinstance(node, (Map, Reindex)) else self.sizes[node.id]
                depth[node.id] = before + alone
            self._depth_of = depth
        return self._depth_of

    def _loads(self) -> dict[int, set[int]]:
        """Per node, the large arrays that computing it reads."""
        loads: dict[int, set[int]] = {}
        for node in self.nodes:
            if isinstance(node, (Slot, Const)):
                loads[node.id] = set()
            elif self.is_boundary(node):
                loads[node.id] = {node.id}
            else:
                found: set[int] = set()
                for source in node.inputs:
                    if hint(source.size) * 4 > hint(node.size):
                        found |= loads[source.id]
                loads[node.id] = found
        return loads

    @staticmethod
    def _worth_keeping(node: Node, loads: set[int]) -> bool:
        if isinstance(node, (Const, Reindex, Random)) or hint(node.size) < 64:
            return False
        if len(loads) > 1:
            return True
        return isinstance(node, Map) and _effort(node) > 60

    # --- grouping ---

    def _assign(self, node: Node) -> None:
        if node.id in self.host:
            on_host = host_call(node, self.is_boundary)
            self._open(Unit(0, host=on_host), node, self._needs_nodes(on_host.operands))
            return
        if isinstance(node, Loop):
            looped = LoopUnit(node, self._sources(node))
            self._open(Unit(0, loop=looped), node, self._needs_nodes(looped.operands))
            return
        if isinstance(node, LoopResult):
            unit = self.home[node.id] = self.home[node.inputs[0].id]
            assert unit.loop is not None
            unit.loop.results.append(node)
            unit.touches.add(node.id)
            return
        if node.id in self.calls:
            call = self.calls[node.id]
            self._open(Unit(0, library=call), node, self._needs_nodes(operands(call)))
            return
        if isinstance(node, Call):
            self._open(Unit(0, along=node), node, self._needs_nodes(node.inputs))
            return
        if isinstance(node, Scatter):
            self._open(Unit(0, scatter=node), node, self._needs(node, None, None))
            return
        form, frame = self._wanted(node)
        turns = node.id in self.layouts.turned
        for unit in () if turns else self._candidates(node):
            if self._join(unit, node, form, frame):
                return
        needs = self._needs(node, frame, None)
        assert needs is not None
        unit = Unit(0, frame=frame, flexible=form == "root" and not turns, closed=turns)
        self._open(unit, node, needs)
        self._add(unit, node, form, needs)

    def _wanted(self, node: Node) -> tuple[str, Frame]:
        if isinstance(node, Reduce):
            frame, form = reduction_frame(node, self.layouts)
            return form, frame
        return "root", pointwise_frame(node, self.layouts)

    def _candidates(self, node: Node) -> list[Unit]:
        """Units that touch the same arrays, the latest first."""
        around = [self._touching.get(n, [])[-CROWD:] for n in self._shared(node)]
        near = {number for numbers in around for number in numbers}
        found = [self.units[number] for number in sorted(near, reverse=True)]
        return [unit for unit in found if unit.frame is not None and not unit.closed]

    def _shared(self, node: Node) -> set[int]:
        """Arrays that make it worth sharing a pass: not single numbers."""
        return {n for n in self.touched(node) if self.sizes[n] > 1}

    def touched(self, node: Node) -> set[int]:
        """Arrays next to a node: what its body reads, by a walk that ignores coordinates."""
        found: set[int] = set()
        stack = list(node.inputs)
        seen: set[int] = set()
        while stack:
            here = stack.pop()
            if here.id in seen or isinstance(here, Slot):
                continue
            seen.add(here.id)
            if self.is_boundary(here):  # a constant too, if it is a result: others read it there
                found.add(here.id)
            else:
                stack.extend(here.inputs)
        return found

    def _join(self, unit: Unit, node: Node, form: str, frame: Frame) -> bool:
        """Add the node to the unit if that is legal."""
        assert unit.frame is not None
        if is_broad(unit.touches, self._shared(node)):
            return False
        target = unit.frame
        if self._is_total(node, unit):
            form = "total"
        elif form == "root":
            if unit.frame.place(node, self.layouts) is None or node.size != unit.frame.size:
                if not (node.size == unit.frame.rows and unit.rows):
                    return False
        elif frame.runs != unit.frame.runs or frame.limit != unit.frame.limit:
            if not (unit.flexible and frame.size == unit.frame.size and frame.limit is None):
                return False
            target = frame
        if target is not unit.frame and not self._refit(unit, target):
            return False
        needs = self._needs(node, target, unit)
        if needs is None or any(self.above[n] >> unit.number & 1 for n in needs):
            return False
        if target is not unit.frame:
            unit.frame = target
        self._add(unit, node, form, needs)
        return True

    @staticmethod
    def _is_total(node: Node, unit: Unit) -> bool:
        """Whether a reduction takes one value of each row of a unit that reduces rows."""
        if not isinstance(node, Reduce) or node.size != 1 or node.combine not in TOTALS:
            return False
        frame = unit.frame
        assert frame is not None
        plain = bool(unit.rows) and not unit.splits and frame.limit is None
        count = node.inputs[0].size
        return plain and count == frame.rows and count != frame.size and hint(count) > 1

    def _refit(self, unit: Unit, frame: Frame) -> bool:
        """Whether everything in a pointwise unit is still legal in another frame."""
        probe = Unit(unit.number, frame=frame, roots=list(unit.roots))
        return all(self._needs(root, frame, probe) is not None for root in unit.roots)

    def _add(self, unit: Unit, node: Node, form: str, needs: set[int]) -> None:
        lists = {
            "root": unit.roots, "row": unit.rows, "column": unit.columns, "split": unit.splits,
            "total": unit.totals,
        }  # fmt: skip
        lists[form].append(node)
        unit.flexible = unit.flexible and form == "root"
        self._touch(unit, self._shared(node) | {node.id})
        self.home[node.id] = unit
        self.depend(unit, needs)

    def _open(self, unit: Unit, node: Node, needs: set[int] | None) -> None:
        assert needs is not None
        unit.number = len(self.units)
        self.units.append(unit)
        self.above.append(0)
        self.home[node.id] = unit
        self._touch(unit, {node.id})
        self.depend(unit, needs)

    def _touch(self, unit: Unit, arrays: set[int]) -> None:
        for n in arrays - unit.touches:
            self._touching.setdefault(n, []).append(unit.number)
        unit.touches |= arrays

    def depend(self, unit: Unit, needs: set[int]) -> None:
        """Note that a unit, and so all that depend on it, must come after others."""
        more = 0
        for n in needs:
            more |= self.above[n] | 1 << n
        self._depend_on(unit, more)

    def _depend_on(self, unit: Unit, more: int) -> None:
        """As `depend`, of a bit set with all that those others depend on."""
        if not more & ~self.above[unit.number]:
            return
        self._followed |= more
        bit = 1 << unit.number
        if not self._followed & bit:
            self.above[unit.number] |= more
            return
        for n, held in enumerate(self.above):
            if n == unit.number or held & bit:
                self.above[n] = held | more

    def _needs_nodes(self, nodes: Iterable[Node]) -> set[int]:
        return {self.home[n.id].number for n in nodes if n.id in self.home}

    def _needs(self, node: Node, frame: Frame | None, unit: Unit | None) -> set[int] | None:
        """Units that computing the node in this frame reads from; None if it cannot be there."""
        if frame is None:
            return self._needs_nodes(n for n, _ in self._references(node, None))
        found: set[int] = set()
        for source, place in self._references(node, frame):
            home = self.home.get(source.id)
            if home is None:
                continue
            if unit is not None and home.number == unit.number:
                if not self._is_local(unit, source, place, frame):
                    return None
            else:
                found.add(home.number)
        for n in self._index_reads(node):
            if unit is not None and n == unit.number:
                return None
            found.add(n)
        return found

    def _index_reads(self, node: Node) -> set[int]:
        """Units that produce integers by which the node's body reads."""
        return {self.home[n].number for n in self.read_ids(node) if n in self.home}

    def read_ids(self, node: Node) -> set[int]:
        """ids of the integer arrays by which the node's body reads."""
        found: set[int] = set()
        stack: list[Node] = [node]
        seen: set[int] = set()
        while stack:
            here = stack.pop()
            if here.id in seen or (here is not node and self.is_boundary(here)):
                continue
            seen.add(here.id)
            if isinstance(here, (Reindex, Scatter)):
                found |= {source.id for source in here.inputs[1:]}
            stack.extend(here.inputs)
        return found

    def _references(self, node: Node, frame: Frame | None) -> list[tuple[Node, Place]]:
        demand = Demand(lambda n: n is not node and self.is_boundary(n))
        if frame is None:
            return [(self.by_id[n], ((), ())) for n in self.touched(node)]
        if isinstance(node, Reduce):
            demand.ask(node.inputs[0], (reduce_place(node, frame, self.layouts), frame.guard))
        else:
            place = frame.place(node, self.layouts)
            assert place is not None
            demand.ask(node, (place, frame.guard))
        return list(demand.run())

    def _is_local(self, unit: Unit, source: Node, place: Place, frame: Frame) -> bool:
        """Whether a unit's own result is used at the very point or row that computes it."""
        if source in unit.rows:
            full = reduce_place(source, frame, self.layouts)
            return place[0] == kept_place(source, full)
        if source in unit.roots:
            return place[0] == frame.place(source, self.layouts)
        return False

    # --- uniting units ---

    def _unite(self) -> None:
        """Join whole units that turned out to walk the same frame over the same arrays."""
        near: dict[int, list[Unit]] = {}
        for unit in self.units:
            if unit.frame is not None:
                for n in unit.touches:
                    if self.sizes[n] > 1:
                        near.setdefault(n, []).append(unit)
        refused: set[tuple[int, ...]] = set()  # pairs that cannot unite while they are as they are
        while self._unite_some(near, refused):
            pass

    def _unite_some(self, near: dict[int, list[Unit]], refused: set[tuple[int, ...]]) -> bool:
        """Let each unit in turn go into an earlier one near it; whether any could."""
        before = len(self.units)
        for later in self.sorted_units():
            if later.frame is None:
                continue
            around = [near.get(n, []) for n in later.touches]
            close = {u.number: u for units in around if len(units) <= CROWD for u in units}
            for number in sorted(close):
                unit = close[number]
                pair = number, later.number, unit.count, later.count
                if pair in refused:
                    continue
                if self._may_unite(unit, later) and self._try_unite(unit, later):
                    for n in later.touches:
                        if n in near:
                            near[n] = [u for u in near[n] if u is not later and u is not unit]
                            near[n].append(unit)
                    break
                refused.add(pair)
        return len(self.units) < before

    def _may_unite(self, unit: Unit, later: Unit) -> bool:
        if unit is later or unit.frame is None or later.frame is None:
            return False
        if unit.closed or later.closed:
            return False
        if self.above[unit.number] >> later.number & 1:
            return False
        if is_broad(unit.touches, later.touches):
            return False
        return unit.frame.runs == later.frame.runs and unit.frame.limit == later.frame.limit

    def _try_unite(self, unit: Unit, later: Unit) -> bool:
        """Let `unit` take over all of `later`, if each part is legal there."""
        assert unit.frame is not None
        trial = Unit(unit.number, unit.frame, [*unit.rows], [*unit.columns], [*unit.splits],
                     [*unit.totals], [*unit.roots])  # fmt: skip
        homes = {a.id: self.home[a.id] for a in [*unit.anchors, *later.anchors]}
        self._take_over(trial, later)
        for anchor in unit.anchors:
            self.home[anchor.id] = trial
        for anchor in later.anchors:
            needs = self._needs(anchor, unit.frame, trial)
            if needs is None or any(self.above[n] >> unit.number & 1 for n in needs):
                self.home.update(homes)
                return False
        self.home.update(homes)
        self.absorb(unit, [later])
        return True

    def _take_over(self, unit: Unit, other: Unit) -> None:
        for anchor in other.anchors:
            self.home[anchor.id] = unit
        unit.rows += other.rows
        unit.columns += other.columns
        unit.splits += other.splits
        unit.totals += other.totals
        unit.roots += other.roots
        unit.touches |= other.touches
        unit.flexible = unit.flexible and other.flexible

    def absorb(self, unit: Unit, others: Sequence[Unit]) -> None:
        """Let one unit stand for several that do not depend on one another."""
        mask = 0
        for other in others:
            mask |= 1 << other.number
            self._take_over(unit, other)
            self.units.remove(other)
        more = 0
        for other in others:
            more |= self.above[other.number]
        self._depend_on(unit, more & ~(1 << unit.number))
        # What came after one of the others comes after all that this unit now depends on.
        whole = self.above[unit.number] | 1 << unit.number
        self._followed |= whole
        for n, held in enumerate(self.above):
            if held & mask and n != unit.number:
                self.above[n] = held | whole

    # --- order ---

    def sorted_units(self) -> list[Unit]:
        """Units by how many units they depend on, which is a topological order."""
        return sorted(self.units, key=lambda u: (self.above[u.number].bit_count(), u.number))


def reduce_place(node: Node, frame: Frame, layouts: Layouts) -> tuple[Expr, ...]:
    """Coordinates of a reduction's input at a point of the frame, or for a total at its row."""
    source = node.inputs[0]
    flat = frame.flat if source.size == frame.size else frame.flat_row
    return ordered(flat, source.shape, input_order(node, layouts))


def kept_place(node: Node, full: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """Of the input's coordinates those that the reduction keeps."""
    assert isinstance(node, Reduce)
    return tuple(e for k, e in enumerate(full) if k not in node.axes)


def operands(call: LibraryCall) -> list[Node]:
    """What a library call reads."""
    vectors = [step.vector for step in call.epilogue if step.vector is not None]
    if isinstance(call, MatmulCall):
        return [call.a.base, call.b.base, *vectors]
    named = (call.source, call.weights, call.target)
    return [n for n in named if n is not call.node] + vectors


def _effort(node: Node) -> int:
    """A rough count of instructions to compute a node from what is in memory."""
    total, stack, seen = 0, [node], set()
    while stack and total < 1000:
        here = stack.pop()
        if here.id in seen or not inlined(here):
            continue
        seen.add(here.id)
        if isinstance(here, Random):
            total += 100
        elif isinstance(here, Map):
            total += 15 if TABLE[here.function].dear else 1
        stack.extend(here.inputs)
    return total
