"""Lowering: from a unit of fused nodes to a kernel.

The unit's anchors are demanded at their places, the values built, and every reduction and store
put into the earliest stage in which its inputs are known. Expensive values that several stages
need stay in a row of scratch memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ..codegen import kernel as k
from ..codegen.along import Along, format_along
from ..codegen.printer import format_kernel
from ..codegen.window import Window, format_window
from ..ir import build, dtypes, index
from ..ir.extent import clamped, divided, hint
from ..ir.index import Expr, Var
from ..ir.node import Node, Reduce, Scatter, axis
from ..ir.scalar import TABLE
from .body import Body, Demand, Place
from .frame import Frame
from .fuse import Fusion, Unit, kept_place, reduce_place
from .interleave import interleaved
from .layout import Layouts

ROW_LIMIT = 16384  # elements of a row that may be kept in scratch
PARTIALS = "partials"


@dataclass
class Lowered:
    """A kernel and, per argument, what it is: a node, or a workspace of this kernel.

    What is compiled may be another kernel (`code`), which reads its arguments from `begins` on.
    """

    kernel: k.Kernel
    arguments: list[Node | str]
    emitted: k.Kernel | None = None
    begins: tuple[int, ...] = ()  # elements, for each buffer; none if all are read from the first

    @property
    def code(self) -> k.Kernel:
        """The kernel that is compiled."""
        return self.emitted or self.kernel

    def describe(self) -> str:
        """The kernel as text."""
        made = self.kernel
        if isinstance(made, Along):
            return format_along(made)
        return format_window(made) if isinstance(made, Window) else format_kernel(made)

    def pairs(self) -> list[tuple[k.BufferUse, Node | str]]:
        """Every argument with how it is used; a segmented buffer stands for several arguments."""
        uses = []
        for use in self.kernel.buffers:
            several = self.kernel.segments and not use.shared
            uses += [use] * (len(self.kernel.segments) if several else 1)
        uses += self.kernel.prologue.buffers if self.kernel.prologue else ()
        return list(zip(uses, self.arguments, strict=True))


@dataclass
class Lowering:
    """The lowering of one unit. `needed` are the ids of nodes that must be stored."""

    fusion: Fusion
    unit: Unit
    needed: set[int]
    uses: list[k.BufferUse] = field(default_factory=list)
    arguments: list[Node | str] = field(default_factory=list)
    numbers: dict[object, int] = field(default_factory=dict)
    results: dict[int, int] = field(default_factory=dict)  # reduction id → accumulator
    by_id: dict[int, Node] = field(default_factory=dict)

    @property
    def layouts(self) -> Layouts:
        return self.fusion.layouts

    def run(self) -> Lowered:
        """The kernel of a fused unit."""
        unit, frame = self.unit, self.unit.frame
        assert frame is not None
        unit.rows.sort(key=lambda node: node.id)  # inputs of a reduction come before it
        for number, node in enumerate([*unit.rows, *unit.splits]):
            self.results[node.id] = number
        demand = Demand(self._is_boundary)
        wanted = self._wanted(frame)
        for node, place in wanted.values():
            demand.ask(node, place)
        for _ in demand.run():
            pass
        self.by_id = self.fusion.by_id
        body = Body(self._load, self._number_of_id, self._strides_of_id)
        self._body = body
        body.build(demand)
        values = {key: body.values[node.id, place] for key, (node, place) in wanted.items()}
        stages = Staging(self, frame, values).stages()
        several = unit.columns or unit.splits or unit.totals
        chunks = _chunks(frame.rows) if several else 1
        return self._finish(frame.outer_axes, stages, chunks)

    def _wanted(self, frame: Frame) -> dict[int, tuple[Node, Place]]:
        """Per anchor id: the node whose value is needed (a reduction's input), and where."""
        unit = self.unit
        wanted: dict[int, tuple[Node, Place]] = {}
        for node in [*unit.rows, *unit.columns, *unit.splits, *unit.totals]:
            place = (reduce_place(node, frame, self.layouts), frame.guard)
            wanted[node.id] = (node.inputs[0], place)
        for node in unit.roots:
            if node.id in self.needed:
                where = frame.place(node, self.layouts)
                assert where is not None
                wanted[node.id] = (node, (where, frame.guard))
        return wanted

    def _is_boundary(self, node: Node) -> bool:
        return self.fusion.is_boundary(node) and node not in self.unit.roots

    def _load(self, node: Node, place: Place) -> k.Value:
        if node.id in self.results:
            return k.Result(node.dtype, self.results[node.id])
        where, guard = place
        flat = index.flatten(where, self.layouts.strides(node))
        number = self.number(node, "in")
        if node.size == 1:
            return k.Load(node.dtype, number, index.ZERO)
        body = self._body
        return k.Load(node.dtype, number, body.kernel_expr(flat), body.kernel_guard(guard))

    def number(self, node: Node, role: str) -> int:
        """The argument number of a node's memory, in that role."""
        found = self.numbers.get((node.id, role))
        if found is None:
            found = self._new(node, k.BufferUse(node.dtype, node.size, role))
            self.numbers[node.id, role] = found
        return found

    def _new(self, what: Node | str, use: k.BufferUse) -> int:
        self.uses.append(use)
        self.arguments.append(what)
        return len(self.uses) - 1

    def scratch(self, name: str, use: k.BufferUse) -> int:
        """The argument number of new scratch memory."""
        return self._new(name, use)

    def _number_of_id(self, node_id: int) -> int:
        return self.number(self.by_id[node_id], "in")

    def _strides_of_id(self, node_id: int) -> tuple[int, ...]:
        return self.layouts.strides(self.by_id[node_id])

    def _finish(
        self, outer: tuple[Var, ...], stages: Sequence[k.Stage], chunks: int, parallel: bool = True
    ) -> Lowered:
        schedule = k.Schedule(None, None, parallel, chunks)
        made = k.Kernel("", outer, tuple(stages), tuple(self.uses), schedule)
        return Lowered(interleaved(made), self.arguments)

    # --- scatter ---

    def run_scatter(self) -> Lowered:
        """out[index(j)] ⊕= a[j]: every thread owns a range of the trailing columns."""
        node = self.unit.scatter
        assert isinstance(node, Scatter)
        source = node.inputs[0]
        trailing = _shared_tail(node)
        split = source.ndim - trailing
        block = _column_block(source.shape[split:])
        rows = tuple(Var(f"j{n}", e) for n, e in enumerate(source.shape[:split]))
        columns = source.size // max(_product(source.shape[:split]), 1)
        outer, lane = Var("c", columns // block), Var("l", block)
        tail = index.unflatten(outer * block + lane, source.shape[split:])
        place: Place = ((*rows, *tail), ())
        demand = Demand(self.fusion.is_boundary)
        demand.ask(source, place)
        for _ in demand.run():
            pass
        self.by_id = self.fusion.by_id
        body = self._body = Body(self._load, self._number_of_id, self._strides_of_id)
        body.build(demand)
        target = self.number(node, "inout")
        return self._scatter_kernel(node, body, place, target, (outer, lane), rows)

    def _scatter_kernel(
        self, node: Node, body: Body, place: Place, target: int, columns: tuple[Var, Var],
        rows: tuple[Var, ...],
    ) -> Lowered:  # fmt: skip
        assert isinstance(node, Scatter)
        source = node.inputs[0]
        outer, lane = columns
        mapping: dict[Expr, Expr] = {
            axis(n, e): p for n, (e, p) in enumerate(zip(source.shape, place[0], strict=True))
        }
        moved = Scattering(node, mapping, body)
        flat = index.flatten(moved.where(), index.contiguous_strides(node.shape))
        guard = moved.guard()
        width = outer.extent * lane.extent
        start = k.Constant(node.dtype, build.IDENTITY[node.combine](node.dtype))
        line = Var("v", node.size // width)
        clear = k.Store(target, line * width + outer * lane.extent + lane, start)
        held = k.Load(node.dtype, target, flat, guard, 0)
        function = {"add": "add", "mul": "mul", "max": "maximum", "min": "minimum"}[node.combine]
        joined = k.Apply(node.dtype, function, (held, body.values[source.id, place]))
        update = k.Store(target, flat, joined, guard)
        stages = (
            k.Stage((line, lane), stores=(clear,)),
            k.Stage((*rows, lane), stores=(update,)),
        )
        return self._finish((outer,), stages, 1)


@dataclass
class Scattering:
    """The target coordinates of a scatter at a place of its input."""

    node: Node
    mapping: dict[Expr, Expr]
    body: Body

    def _moved(self, e: Expr) -> Expr:
        named = index.renumber_reads(e, lambda n: self.node.inputs[1 + n].id)
        return self.body.kernel_expr(index.substitute(named, self.mapping))

    def where(self) -> list[Expr]:
        """One expression per axis of the result."""
        assert isinstance(self.node, Scatter)
        return [self._moved(e) for e in self.node.index]

    def guard(self) -> index.Guard:
        """What must hold for an element to be added."""
        assert isinstance(self.node, Scatter)
        return index.reduce_guard(
            index.Condition(self._moved(c.expr), c.equal) for c in self.node.guard
        )


@dataclass
class Staging:
    """Puts reductions and stores into stages."""

    lowering: Lowering
    frame: Frame
    values: dict[int, k.Value]
    levels: dict[int, int] = field(default_factory=dict)  # accumulator → stage
    memo: dict[int, int] = field(default_factory=dict)

    def stages(self) -> list[k.Stage]:
        """All stages: over the inner axes one per level, then one per row."""
        unit = self.lowering.unit
        reductions: list[list[k.Reduction]] = []
        for node in [*unit.rows, *unit.splits]:
            level = self.level(self.values[node.id])
            number = self.lowering.results[node.id]
            self.levels[number] = level
            _slot(reductions, level).append(self._reduction(node, number))
        stores: list[list[k.Store]] = []
        last: list[k.Store] = []
        for node in unit.roots:
            if node.id in self.values:
                self._store(node, stores, last)
        last += [self._row_store(n) for n in unit.rows if n.id in self.lowering.needed]
        privatised: list[list[k.Privatised]] = []
        for node in unit.columns:
            value = self.values[node.id]
            _slot(privatised, self.level(value)).append(self._column(node, value))
        count = max(len(reductions), len(stores), len(privatised))
        made = []
        for n in range(count):
            made.append(
                k.Stage(
                    self.frame.inner_axes,
                    tuple(_slot(reductions, n)),
                    tuple(_slot(stores, n)),
                    tuple(_slot(privatised, n)),
                )
            )
        totals = tuple(self._total(n) for n in unit.splits)
        totals += tuple(self._privatised(n, index.ZERO, self.values[n.id]) for n in unit.totals)
        if last or totals:
            made.append(k.Stage((), (), tuple(last), totals))
        return keep_rows(made, self.lowering, self.frame)

    def level(self, value: k.Value) -> int:
        """The first stage in which a value can be computed."""
        stack = [value]
        while stack:
            v = stack[-1]
            missing = [o for o in k.operands_of(v) if id(o) not in self.memo]
            if missing and id(v) not in self.memo:
                stack += missing
                continue
            stack.pop()
            if isinstance(v, k.Result):
                self.memo[id(v)] = self.levels[v.number] + 1
            else:
                self.memo[id(v)] = max([self.memo[id(o)] for o in k.operands_of(v)], default=0)
        return self.memo[id(value)]

    def _reduction(self, node: Node, number: int) -> k.Reduction:
        assert isinstance(node, Reduce)
        value = self.values[node.id]
        frame = self.frame
        if frame.limit is not None:
            holds = k.Holds(dtypes.bool_, frame.guard)
            neutral = k.Constant(value.dtype, build.IDENTITY[node.combine](value.dtype))
            value = k.Apply(value.dtype, "select", (holds, value, neutral))
        position = None
        if node.combine.startswith("arg"):
            source = node.inputs[0]
            full = reduce_place(node, frame, self.lowering.layouts)
            reduced = [full[a] for a in node.axes]
            strides = index.contiguous_strides([source.shape[a] for a in node.axes])
            position = index.flatten(reduced, strides)
        return k.Reduction(number, node.combine, value, position)

    def _store(self, node: Node, stores: list[list[k.Store]], last: list[k.Store]) -> None:
        frame, layouts = self.frame, self.lowering.layouts
        where = frame.place(node, layouts)
        assert where is not None
        flat = index.flatten(where, layouts.strides(node))
        value = self.values[node.id]
        store = k.Store(self.lowering.number(node, "out"), flat, value, frame.guard)
        if node.size == frame.size:
            _slot(stores, self.level(value)).append(store)
        else:
            last.append(store)

    def _row_store(self, node: Node) -> k.Store:
        layouts = self.lowering.layouts
        where = kept_place(node, reduce_place(node, self.frame, layouts))
        flat = index.flatten(where, layouts.strides(node))
        result = k.Result(node.dtype, self.lowering.results[node.id])
        return k.Store(self.lowering.number(node, "out"), flat, result)

    def _column(self, node: Node, value: k.Value) -> k.Privatised:
        assert isinstance(node, Reduce)
        layouts = self.lowering.layouts
        where = kept_place(node, reduce_place(node, self.frame, layouts))
        flat = index.flatten(where, layouts.strides(node))
        return self._privatised(node, flat, value)

    def _total(self, node: Node) -> k.Privatised:
        result = k.Result(node.dtype, self.lowering.results[node.id])
        return self._privatised(node, index.ZERO, result)

    def _privatised(self, node: Node, flat: Expr, value: k.Value) -> k.Privatised:
        assert isinstance(node, Reduce)
        elements = _chunks(self.frame.rows) * node.size
        use = k.BufferUse(dtypes.accumulator(node.dtype), elements, PARTIALS)
        scratch = self.lowering.scratch(f"{PARTIALS}{node.id}", use)
        target = self.lowering.number(node, "out")
        return k.Privatised(target, scratch, node.size, node.combine, flat, value)


def keep_rows(stages: list[k.Stage], lowering: Lowering, frame: Frame) -> list[k.Stage]:
    """Expensive values that more than one stage uses are computed once and kept in scratch."""
    cols = frame.size // max(frame.rows, 1)
    if hint(cols) > ROW_LIMIT or len(stages) < 2:
        return stages
    users: dict[int, list[int]] = {}
    dear: dict[int, k.Apply] = {}
    for n, stage in enumerate(stages):
        for v in k.postorder(k.stage_values(stage)):
            if stage.axes and isinstance(v, k.Apply) and TABLE[v.function].dear:
                users.setdefault(id(v), []).append(n)
                dear[id(v)] = v
    kept = {key: v for key, v in dear.items() if len(users[key]) > 1}
    made = list(stages)
    flat = index.flatten(
        frame.inner_axes, index.contiguous_strides([v.extent for v in frame.inner_axes])
    )
    for key, value in kept.items():
        first, *later = users[key]
        row = lowering.scratch("row", k.BufferUse(value.dtype, cols, "row"))
        before = made[first]
        made[first] = k.Stage(
            before.axes, before.reductions, (*before.stores, k.Store(row, flat, value)),
            before.privatised,
        )  # fmt: skip
        loaded = k.Load(value.dtype, row, flat)
        for n in later:
            made[n] = k.map_stage(made[n], {id(value): loaded})
    return made


def _slot(lists: list[list], level: int) -> list:  # type: ignore[type-arg]
    while len(lists) <= level:
        lists.append([])
    return lists[level]


def _chunks(rows: int) -> int:
    """How many partial results a reduction over rows keeps: fixed by the domain alone."""
    chunks: int = clamped(rows // 16, 1, 64)
    return chunks


def _product(sizes: Sequence[int]) -> int:
    result = 1
    for size in sizes:
        result *= size
    return result


def _shared_tail(node: Node) -> int:
    """How many trailing axes a scatter copies straight through."""
    assert isinstance(node, Scatter)
    source = node.inputs[0]
    count = 0
    while (
        count < min(source.ndim, node.ndim)
        and node.shape[-1 - count] == source.shape[-1 - count]
        and node.index[-1 - count] == axis(source.ndim - 1 - count, source.shape[-1 - count])
        and not _elsewhere(node, axis(source.ndim - 1 - count, source.shape[-1 - count]), count)
    ):
        count += 1
    return count


def _elsewhere(node: Node, coordinate: Var, count: int) -> bool:
    assert isinstance(node, Scatter)
    others = [e for k, e in enumerate(node.index) if k != len(node.index) - 1 - count]
    exprs = [*others, *(c.expr for c in node.guard)]
    return any(coordinate in index.variables(e) for e in exprs)


def _column_block(shape: Sequence[int]) -> int:
    """Columns that one thread takes at a time: a divisor of the last size, at most 64."""
    if not shape:
        return 1
    total = _product(shape)
    for block in (64, 32, 16, 8):
        if divided(total, block) is not None:
            return block
    return total
