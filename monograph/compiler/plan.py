"""The plan: units in their final order, and an address for everything in memory.

Results go to memory of their own, or over a leaf where the program says so and no later unit reads
the old contents. All else lives in one arena; arrays whose lifetimes do not overlap share
addresses. A plan is plain data, so that it can be kept on disk.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from ..codegen import kernel as k
from ..config import config
from ..ir.encode import encode
from ..ir.extent import Extent, Values, hint, value_at
from ..ir.node import Buffer, LoopResult, Node, Slot
from .arena import Lifetime, aligned, assign, lower_bound
from .contract import ConvolutionCall, MatmulCall, Operand, Strides
from .fuse import Fusion, Unit, operands
from .host import HostCall
from .lower import Lowered
from .turns import LoweredLoop, Places, nbytes

PACKED = "packed_weights"  # the workspace that holds weights in a library's layout
EPILOGUE = "epilogue"  # begins the names of operands that are vectors of an epilogue
EPILOGUES = ("add", "sub", "mul", "div", "relu")  # by number in the option "epilogue"
# Where an argument lies: ("leaf", number, byte), ("result", number, byte), ("arena", byte, 0),
# ("slot", number, byte offset), or ("status", 0, 0), the word that says whether all went well.
Ref = tuple[str, int, int]


@dataclass(frozen=True)
class KernelStep:
    """One launch of a generated kernel."""

    name: str
    arguments: tuple[Ref, ...]
    label: str = ""
    sizes: tuple[int, ...] = ()  # the table of those that vary


@dataclass(frozen=True)
class Layout:
    """Sizes and strides (in elements) of a library operand."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str


@dataclass(frozen=True)
class LibraryStep:
    """One library call: "matmul", or a convolution's "forward", "backward_data", …

    The option "epilogue" lists what is done to the result, see EPILOGUES; the vector that the n-th
    function takes is the operand "epilogue<n>". In a loop, "pack" brings the weights of a product
    into the library's layout once, and the product has the option "packed", as have those whose
    weights are kept packed from launch to launch.
    """

    kind: str
    operands: dict[str, Layout]
    arguments: dict[str, Ref]
    options: dict[str, tuple[int, ...]] = field(default_factory=dict)
    workspace: dict[str, int] = field(default_factory=dict)  # bytes of each


@dataclass(frozen=True)
class CheckStep:
    """Ends the program if the number at `value` is not 0: the data is wrong."""

    check: int  # number of the group of checks
    value: Ref


@dataclass(frozen=True)
class HostStep:
    """One value by the reference interpreter: `graph` (see `ir/encode.py`) over the operands.

    `arrays` and `arguments` are the operands in order, and last the result.
    """

    label: str
    graph: Sequence[Any]
    arrays: tuple[Layout, ...]
    arguments: tuple[Ref, ...]


# Where an argument lies in turn s of a loop: (in the first turn, or None; base, step, shift, mask),
# that is base + ((s + shift) & mask) · step, in bytes.
Place = tuple[Ref | None, Ref, int, int, int]


@dataclass(frozen=True)
class LoopStep:
    """Steps that run `trips` times, but for the first `once`, which run in the first turn only.

    Their leaves and results are the places; their arena is this program's from `arena` on.
    """

    trips: int
    body: tuple[Step, ...]
    leaves: tuple[Place, ...]
    results: tuple[Place, ...]
    arena: int
    arena_bytes: int
    once: int = 0
    units: tuple[int, ...] = ()  # by number, the unit of each step


Step = KernelStep | LibraryStep | HostStep | CheckStep | LoopStep


def flat(steps: Sequence[Step]) -> Iterator[Step]:
    """Every step, those of loops among them, each once."""
    for step in steps:
        if isinstance(step, LoopStep):
            yield from flat(step.body)
        else:
            yield step


def each_kernel(steps: Sequence[Step], change: Callable[[KernelStep], KernelStep]) -> list[Step]:
    """The steps with every launch of a kernel changed."""
    made: list[Step] = []
    for step in steps:
        if isinstance(step, LoopStep):
            step = replace(step, body=tuple(each_kernel(step.body, change)))
        elif isinstance(step, KernelStep):
            step = change(step)
        made.append(step)
    return made


# (kind, operands, options) of a library step → bytes of each workspace that it needs.
Workspace = Callable[[str, dict[str, Layout], dict[str, tuple[int, ...]]], dict[str, int]]
Accept = Callable[[str, dict[str, Layout], dict[str, tuple[int, ...]]], bool]


@dataclass
class Plan:
    """All that a backend needs to run a program, apart from the kernels' code."""

    steps: list[Step]
    results: list[tuple[tuple[int, ...], str]]  # shape and dtype of each
    in_place: dict[int, int]  # result → leaf whose memory it takes
    leaves: int
    slots: int
    arena_bytes: int
    lower_bound: int
    keys: list[int] = field(default_factory=list)
    numbers: tuple[int | float, ...] = ()  # computed from sizes that vary: the last slots
    once: int = 0  # of a loop's body: how many of the first steps run in the first turn only
    units: list[int] = field(default_factory=list)  # number of the unit that each step is of


def step_of(
    call: MatmulCall | ConvolutionCall, strides: Strides | None
) -> tuple[str, dict[str, Layout], dict[str, tuple[int, ...]]]:
    """(kind, operand layouts, options) of a library call, without addresses."""
    vectors = {
        name: Layout((n.size,), (1,), n.dtype.name) for name, n in _epilogue_vectors(call).items()
    }
    functions = tuple([EPILOGUES.index(step.function) for step in call.epilogue])
    ending = {"epilogue": functions} if functions else {}
    if isinstance(call, MatmulCall):
        named = {"src": call.a, "weights": call.b, "dst": call.c}
        layouts = {name: _layout(o) for name, o in named.items()}
        return "matmul", {**layouts, **vectors}, ending
    assert strides is not None
    nodes = {"src": call.source, "weights": call.weights, "dst": call.target}
    layouts = {name: Layout(n.shape, strides(n), n.dtype.name) for name, n in nodes.items()}
    options = {
        "stride": call.stride, "dilation": call.dilation, "padding_left": call.padding,
        "padding_right": call.padding_right, "groups": (call.groups,), **ending,
    }  # fmt: skip
    return call.kind, {**layouts, **vectors}, options


def _epilogue_vectors(call: MatmulCall | ConvolutionCall) -> dict[str, Node]:
    """The vectors of an epilogue, each named by the step that takes it."""
    steps = enumerate(call.epilogue)
    return {f"{EPILOGUE}{n}": step.vector for n, step in steps if step.vector is not None}


LibraryFacts = tuple[str, dict[str, Layout], dict[str, tuple[int, ...]]]


def _step_with(step: LibraryFacts, number: Callable[[int], int]) -> LibraryFacts:
    kind, layouts, options = step
    bound = {
        name: Layout(tuple(map(number, o.shape)), tuple(map(number, o.strides)), o.dtype)
        for name, o in layouts.items()
    }
    return kind, bound, {name: tuple(map(number, option)) for name, option in options.items()}


def step_at(step: LibraryFacts, values: Values) -> LibraryFacts:
    """A library step at given values of the sizes that vary."""
    return _step_with(step, lambda size: value_at(size, values)) if values else step


def at_hints(step: LibraryFacts) -> LibraryFacts:
    """A library step at the sizes that the program is compiled at."""
    return _step_with(step, hint)


def shape_at(shape: tuple[int, ...], values: Values) -> tuple[int, ...]:
    """Sizes at given values of those that vary."""
    return tuple([value_at(extent, values) for extent in shape])


def _layout(operand: Operand) -> Layout:
    return Layout(operand.shape, operand.strides, operand.base.dtype.name)


def library_nodes(call: MatmulCall | ConvolutionCall) -> dict[str, tuple[Node, int]]:
    """Operand name → (node in memory, element offset)."""
    vectors = {name: (node, 0) for name, node in _epilogue_vectors(call).items()}
    if isinstance(call, MatmulCall):
        named = {"src": call.a, "weights": call.b, "dst": call.c}
        return {name: (o.base, o.offset) for name, o in named.items()} | vectors
    nodes = {"src": call.source, "weights": call.weights, "dst": call.target}
    return {name: (node, 0) for name, node in nodes.items()} | vectors


def _is_room(place: Lifetime | None, life: Lifetime) -> bool:
    """Whether an array can lie where another was to lie at the same time."""
    if place is None or (place.first, place.last) != (life.first, life.last):
        return False
    return life.nbytes <= place.nbytes


@dataclass
class Planner:
    """Gives every array an address."""

    fusion: Fusion
    outputs: Sequence[Node]
    writes: dict[int, int]  # output → leaf to overwrite
    lowered: dict[int, Lowered]  # unit number → kernel
    workspace: Workspace
    leaves: int
    slots: int
    checks: Sequence[Node] = ()  # numbers that say whether the data is as it must be
    loops: dict[int, LoweredLoop] = field(default_factory=dict)  # by unit number
    once: set[int] = field(default_factory=set)  # units of a body that run in the first turn only
    steady: set[int] = field(default_factory=set)  # units of a body: products by the same weights
    packs: Accept | None = None  # whether the library has a layout for such weights
    _open: dict[int, LibraryFacts] = field(default_factory=dict)  # by unit number, for any sizes
    _calls: dict[int, LibraryFacts] = field(default_factory=dict)  # the same, at these
    _packed: set[int] = field(default_factory=set)
    _inner: dict[int, Plan] = field(default_factory=dict)  # of their bodies
    workspaces: dict[int, dict[str, int]] = field(default_factory=dict)  # by unit number, bytes
    values: Values = field(default_factory=dict)  # of the sizes that vary
    lifetimes: dict[object, Lifetime] = field(default_factory=dict)
    _held: dict[object, Lifetime] = field(default_factory=dict)  # of the largest sizes so far
    _arena: int = 0  # bytes for these
    # Where sizes vary and change no place: the latest plan, and how many bytes there are for arrays
    # of so many elements, of so many bytes each.
    _latest: Plan | None = None
    _rooms: dict[tuple[Extent, int], int] = field(default_factory=dict)
    order: list[Unit] = field(default_factory=list)
    origins: dict[int, tuple[int, ...]] = field(default_factory=dict)  # recorded calls, by unit

    def run(self, units: Sequence[Unit]) -> Plan:
        """The plan for these units."""
        self.arrange(units)
        return self.addressed({})

    def arrange(self, units: Sequence[Unit]) -> None:
        """All that does not depend on sizes: the order, and what is written in place."""
        self._in_place = self._order_writes(units)
        self.order = self.fusion.sorted_units()
        if self.once:  # they depend on one another at most
            self.order.sort(key=lambda unit: unit.number not in self.once)
        if config.verify:
            self._verify_order()

    def addressed(self, values: Values) -> Plan:
        """The plan for given values of the sizes that vary."""
        self.values = values
        self.lifetimes, self.workspaces = {}, {}
        self._inner = {n: low.planner.addressed(values) for n, low in self.loops.items()}
        self._packed = set()
        for unit in self.order:
            if unit.library is not None:
                self._calls[unit.number] = call = self._call(unit)
                self.workspaces[unit.number] = self.workspace(*call)
        self._find_lifetimes()
        arena = self._placed()
        self._place = {node.id: n for n, node in enumerate(self.outputs)}
        steps = [(step, unit.number) for unit in self.order for step in self._steps(unit)]
        once = sum(number in self.once for _, number in steps)
        steps[once:once] = [(self._pack_step(unit), unit.number) for unit in self.order
                            if unit.number in self._packed]  # fmt: skip
        plan = Plan(
            [step for step, _ in steps],
            [(shape_at(node.shape, values), node.dtype.name) for node in self.outputs],
            self._in_place,
            self.leaves,
            self.slots,
            arena,
            lower_bound(list(self.lifetimes.values())),
            units=[number for _, number in steps],
            once=once + len(self._packed),
        )
        if values and self._is_fixed:
            self._latest, self._rooms = plan, self._find_rooms()
        return plan

    def readdressed(self, values: Values) -> Plan | None:
        """The plan for other values than the latest's, if all can stay where it lies.

        Only library calls are looked at again, and `lower_bound` is still that of the latest.
        """
        latest = self._latest
        if latest is None or any([s.at(values) * n > room for (s, n), room in self._rooms.items()]):
            return None
        self.values = values
        steps = latest.steps.copy()
        for place, number in enumerate(latest.units):
            before = steps[place]
            if isinstance(before, LibraryStep):
                kind, layouts, options = self._call(self._units[number])
                needs = self.workspace(kind, layouts, options)
                rooms = {name: self._held[number, name].nbytes for name in before.workspace}
                if needs.keys() != rooms.keys() or any([needs[n] > rooms[n] for n in needs]):
                    return None
                steps[place] = LibraryStep(kind, layouts, before.arguments, options, needs)
        results = [(shape_at(node.shape, values), node.dtype.name) for node in self.outputs]
        return replace(latest, steps=steps, results=results)

    def _verify_order(self) -> None:
        """Every unit comes after those that compute what it reads."""
        computed: set[int] = set()
        for unit in self.order:
            computed.update(anchor.id for anchor in unit.anchors)
            for node in self._reads(unit):
                late = node.id in self.fusion.home and node.id not in computed
                assert not late, f"unit {unit.number} reads {node!r} before it is computed"

    # --- writes over leaves ---

    def _order_writes(self, units: Sequence[Unit]) -> dict[int, int]:
        """Which results take their leaf's memory; readers of the old contents go first."""
        readers: dict[int, set[int]] = {}
        for unit in units:
            for node in self._reads(unit):
                if isinstance(node, Buffer):
                    readers.setdefault(node.number, set()).add(unit.number)
        in_place: dict[int, int] = {}
        # Nothing is written over before all checks are done: wrong data leaves state untouched.
        checking = {self.fusion.home[node.id].number for node in self.checks}
        checking |= {u.number for u in units if self._may_fail(u)}
        for result, leaf in self.writes.items():
            node = self.outputs[result]
            writer = self.fusion.home[node.id]
            if writer.number in checking:
                continue
            others = (readers.get(leaf, set()) | checking) - {writer.number}
            depends = any(self.fusion.above[u] >> writer.number & 1 for u in others)
            if depends or not self._same_place(writer, node, leaf):
                continue
            self.fusion.depend(writer, others)
            in_place[result] = leaf
        return in_place

    def _may_fail(self, unit: Unit) -> bool:
        """Whether a call on the host may find no answer, here or in a loop."""
        if unit.loop is not None:
            inner = self.loops[unit.number].planner
            return any(inner._may_fail(each) for each in inner.order)
        return unit.host is not None and unit.host.may_fail

    def _reads(self, unit: Unit) -> list[Node]:
        if unit.library is not None:
            return operands(unit.library)
        if unit.host is not None:
            return list(unit.host.operands)
        if unit.loop is not None:
            return unit.loop.operands
        return [a for a in self.lowered[unit.number].arguments if isinstance(a, Node)]

    def _same_place(self, unit: Unit, node: Node, leaf: int) -> bool:
        """Whether the unit reads the leaf only at the element that it writes."""
        kernel = unit.library is None and unit.host is None and unit.loop is None
        if not kernel or unit.scatter is not None or unit.along is not None:
            return leaf not in {n.number for n in self._reads(unit) if isinstance(n, Buffer)}
        lowered = self.lowered[unit.number]
        prologue = lowered.kernel.prologue
        if prologue is not None and node in lowered.arguments[-len(prologue.buffers) :]:
            return _same_place_first(lowered, prologue, node, leaf)
        if lowered.kernel.segments:
            return True
        targets = [n for n, a in enumerate(lowered.arguments) if a is node]
        sources = [
            n for n, a in enumerate(lowered.arguments)
            if isinstance(a, Buffer) and a.number == leaf
        ]  # fmt: skip
        stages = lowered.kernel.stages
        stores = [s for stage in stages for s in stage.stores if s.buffer in targets]
        if len(stores) != 1 or len(stages) > 1:
            return not sources
        for value in k.postorder(k.stage_values(stages[0])):
            if isinstance(value, k.Load) and value.buffer in sources:
                if value.index != stores[0].index:
                    return False
        return True

    # --- lifetimes ---

    def _find_lifetimes(self) -> None:
        results = {node.id for node in self.outputs}
        for step, unit in enumerate(self.order):
            for node in self._touched(unit):
                if isinstance(node, (Buffer, Slot)) or node.id in results:
                    continue
                held = self.lifetimes.get(node.id)
                if held is None:
                    kept = unit.number in self.once  # for all turns
                    last = len(self.order) - 1 if kept else step
                    self.lifetimes[node.id] = Lifetime(self._bytes(unit, node), step, last)
                else:
                    held.last = max(held.last, step)
            for name, size in self._workspace(unit).items():
                packed = name == PACKED and unit.number in self._packed  # for all turns
                first, last = (0, len(self.order) - 1) if packed else (step, step)
                self.lifetimes[unit.number, name] = Lifetime(size, first, last)

    def _placed(self) -> int:
        """Give everything an address; the bytes of the arena.

        Where sizes vary, addresses stay as long as all fits: to find new ones takes longest.
        """
        if not self.values:
            return assign(list(self.lifetimes.values()))
        held = self._held
        if any(not _is_room(held.get(key), life) for key, life in self.lifetimes.items()):
            held = {key: replace(life) for key, life in self.lifetimes.items()}
            for key, life in held.items():
                before = self._held.get(key)
                life.nbytes = max(life.nbytes, before.nbytes if before is not None else 0)
            self._arena = assign(list(held.values()))
            self._held = held
        for key, life in self.lifetimes.items():
            life.offset = held[key].offset
        return self._arena

    @cached_property
    def _units(self) -> dict[int, Unit]:
        return {unit.number: unit for unit in self.order}

    @cached_property
    def _is_fixed(self) -> bool:
        """Whether sizes change nothing about the steps but what is called: no place, no turns."""
        begins = [b for low in self.lowered.values() for b in low.begins or ()]
        for unit in self.order:
            if unit.host is not None or unit.loop is not None:
                return False
            if unit.library is not None:
                begins += [offset for _, offset in library_nodes(unit.library).values()]
        return all([isinstance(begin, int) for begin in begins])

    def _find_rooms(self) -> dict[tuple[Extent, int], int]:
        """The bytes there are for each array of so many elements, of so many bytes each."""
        rooms: dict[tuple[Extent, int], int] = {}
        for unit in self.order:
            sized: list[tuple[object, Any, int]] = [
                (node.id, node.size, node.dtype.itemsize) for node in self._touched(unit)
            ]
            if unit.library is None:
                partials = self._partials(unit)
                sized += [((unit.number, n), u.elements, u.dtype.itemsize) for n, u in partials]
            for key, size, itemsize in sized:
                held = self._held.get(key)
                if held is not None and isinstance(size, Extent):
                    least = rooms.get((size, itemsize), held.nbytes)
                    rooms[size, itemsize] = min(held.nbytes, least)
        return rooms

    def _touched(self, unit: Unit) -> list[Node]:
        if unit.library is not None:
            return [node for node, _ in library_nodes(unit.library).values()]
        if unit.host is not None:
            return [*unit.host.operands, unit.host.node]
        if unit.loop is not None:
            return [*unit.loop.operands, *unit.loop.results]
        return self._reads(unit)

    def _workspace(self, unit: Unit) -> dict[str, int]:
        if unit.library is not None:
            return self.workspaces[unit.number]
        if unit.host is not None:
            return {}
        if unit.loop is not None:
            return self._turn_memory(unit)
        return {
            name: value_at(use.elements, self.values) * use.dtype.itemsize
            for name, use in self._partials(unit)
        }

    def _partials(self, unit: Unit) -> list[tuple[str, k.BufferUse]]:
        """What a kernel keeps for itself, by name."""
        pairs = self.lowered[unit.number].pairs()
        return [(what, u) for u, what in pairs if isinstance(what, str) and u.role == "partials"]

    # --- steps ---

    def _call(self, unit: Unit) -> LibraryFacts:
        assert unit.library is not None
        step = self._open.get(unit.number)
        if step is None:
            step = self._open[unit.number] = step_of(unit.library, self.fusion.layouts.strides)
        found = step_at(step, self.values)
        if unit.number in self.steady and self.packs is not None and self.packs(*found):
            self._packed.add(unit.number)
            kind, layouts, options = found
            return kind, layouts, {**options, "packed": (1,)}
        return found

    def _pack_step(self, unit: Unit) -> LibraryStep:
        assert unit.library is not None
        _, layouts, _ = self._calls[unit.number]
        node, offset = library_nodes(unit.library)["weights"]
        place: Ref = ("arena", self.lifetimes[unit.number, PACKED].offset, 0)
        size = self.workspaces[unit.number][PACKED]
        arguments = {"weights": self._ref(node, offset), PACKED: place}
        return LibraryStep("pack", layouts, arguments, {}, {PACKED: size})

    def _ref(self, node: Node, offset: int = 0) -> Ref:
        offset = value_at(offset, self.values)
        if isinstance(node, Buffer):
            return ("leaf", node.number, offset * node.dtype.itemsize)
        if isinstance(node, Slot):
            return ("slot", node.number, offset * node.dtype.itemsize)
        if node.id in self._place:
            return ("result", self._place[node.id], offset * node.dtype.itemsize)
        start = self.lifetimes[node.id].offset + offset * node.dtype.itemsize
        if isinstance(node, LoopResult):
            low = self.loops[self.fusion.home[node.id].number]
            if low.final(node) is not None and value_at(low.call.node.trips, self.values) % 2:
                start += aligned(nbytes(node, self.values))  # the last turn wrote the second buffer
        return ("arena", start, 0)

    # --- loops ---

    def _bytes(self, unit: Unit, node: Node) -> int:
        """The memory that a node needs; the end of what a loop carries needs two buffers."""
        size = nbytes(node, self.values)
        if isinstance(node, LoopResult) and unit.loop is not None and node in unit.loop.results:
            if self.loops[unit.number].final(node) is not None:
                return 2 * aligned(size)
        return size

    def _ends(self, unit: Unit) -> dict[int, Node]:
        """Of the outputs of a turn that have two buffers, those that are used behind the loop."""
        assert unit.loop is not None
        low = self.loops[unit.number]
        pairs = [(low.final(node), node) for node in unit.loop.results]
        return {place: node for place, node in pairs if place is not None}

    def _turn_memory(self, unit: Unit) -> dict[str, int]:
        low = self.loops[unit.number]
        ends = self._ends(unit)
        sizes = {
            f"carry {n}": 2 * aligned(nbytes(low.outputs.nodes[n], self.values))
            for n in low.buffered() if n not in ends
        }  # fmt: skip
        sizes["turn"] = self._inner[unit.number].arena_bytes
        return sizes

    def _loop_step(self, unit: Unit) -> LoopStep:
        low = self.loops[unit.number]
        ends = self._ends(unit)

        def buffer(place: int) -> tuple[Ref, int]:
            key: object = ends[place].id if place in ends else (unit.number, f"carry {place}")
            step = aligned(nbytes(low.outputs.nodes[place], self.values))
            return ("arena", self.lifetimes[key].offset, 0), step

        places = Places(low, self.values, self._ref, buffer)
        inner = self._inner[unit.number]
        return LoopStep(
            places.trips, tuple(inner.steps), places.parameters(), places.outputs(),
            self.lifetimes[unit.number, "turn"].offset, inner.arena_bytes, inner.once,
            tuple(inner.units),
        )  # fmt: skip

    def _steps(self, unit: Unit) -> list[Step]:
        """What a unit becomes: itself, and the checks of what it computes."""
        made = [self._step(unit)]
        for number, node in enumerate(self.checks):
            if self.fusion.home[node.id] is unit:
                made.append(CheckStep(number, self._ref(node)))
        return made

    def _host_step(self, call: HostCall) -> HostStep:
        nodes = [*call.operands, call.node]
        strides = self.fusion.layouts.strides
        arrays = tuple([Layout(n.shape, strides(n), n.dtype.name) for n in nodes])
        arguments = tuple([self._ref(n) for n in nodes])
        return HostStep(call.label, encode([call.graph]), arrays, arguments)

    def _step(self, unit: Unit) -> Step:
        if unit.host is not None:
            return self._host_step(unit.host)
        if unit.loop is not None:
            return self._loop_step(unit)
        if unit.library is None:
            lowered = self.lowered[unit.number]
            arguments = []
            for number, (use, what) in enumerate(lowered.pairs()):
                if use.role == "row":
                    continue
                if isinstance(what, str):
                    arguments.append(("arena", self.lifetimes[unit.number, what].offset, 0))
                else:
                    begin = lowered.begins[number] if lowered.begins else 0
                    arguments.append(self._ref(what, begin))
            return KernelStep(lowered.code.name, tuple(arguments))
        kind, layouts, options = self._calls[unit.number]
        arguments_by_name = {
            name: self._ref(node, offset)
            for name, (node, offset) in library_nodes(unit.library).items()
        }
        workspace = self.workspaces[unit.number]
        for name in workspace:
            arguments_by_name[name] = ("arena", self.lifetimes[unit.number, name].offset, 0)
        return LibraryStep(kind, layouts, arguments_by_name, options, workspace)


def _same_place_first(lowered: Lowered, prologue: k.Prologue, node: Node, leaf: int) -> bool:
    """Whether nothing reads the leaf behind the stage of a prologue that writes the node."""

    def is_leaf(what: Node | str) -> bool:
        return isinstance(what, Buffer) and what.number == leaf

    count = len(prologue.buffers)
    if any(map(is_leaf, lowered.arguments[:-count])):
        return False
    first = lowered.arguments[-count:]
    written = False
    for stage in prologue.stages:
        for value in k.postorder(k.stage_values(stage)):
            if written and isinstance(value, k.Load) and is_leaf(first[value.buffer]):
                return False
        written |= any(first[store.buffer] is node for store in stage.stores)
    return True
