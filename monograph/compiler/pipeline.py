"""The compiler, top to bottom: from a recording to an executable program.

`compile_recording` expands a recording into the graph, derivatives included; `compile_for` is the
list of all passes after that. Every pass is timed, checked by the verifier when that is on, and
shown when `config.dump` names it.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol

from .. import statistics
from ..config import config
from ..ir.extent import Decisions, Extent, Values, deciding
from ..ir.node import Buffer, Loop, LoopResult, Node, ancestors, interning
from ..ir.printer import format_graph
from ..ir.verify import verify
from ..storage import Memory, Value
from . import epilogue
from .alike import Alike
from .begin import move_begins
from .checks import Note, reductions
from .contract import MatmulCall
from .contractions import Contracted, lower_contractions
from .disk import shelf
from .facts import Facts
from .fuse import Fusion, Unit, operands
from .host import everything
from .image import Image
from .loops import in_bodies, optimise_loops
from .lower import Lowered, Lowering
from .pairs import has_complex, split_complex
from .plan import Plan, Planner, shape_at
from .products import form_products
from .prologue import attach
from .recognise import recognise
from .recording import Expansion, Recording, Turns
from .roll import RolledExpansion
from .schedule import finish
from .segments import join
from .simplify import copied, simplify
from .turns import LoopUnit, LoweredLoop, lowered_by_name, outputs_of
from .unroll import has_empty, has_loops, unroll
from .window import form_windows

# Where a result lies: in memory of its own, or in that of the leaf which it has taken.
Outcome = Memory | Value


class Executable(Protocol):
    """A program ready to run: `outputs` are the result positions that it produces.

    `checks` are the notes of what may be wrong with the data, `watched` says whether a launch may
    fail at all. `turns` says which results are those of turns of a loop.
    """

    outputs: tuple[int, ...]
    writes: tuple[tuple[int, int], ...]
    watched: bool = False
    turns: Sequence[Turns] = ()

    @property
    def checks(self) -> Sequence[Note]: ...

    def run(self, leaves: Sequence[Value], slots: Sequence[Any]) -> list[Outcome]: ...


@dataclass
class Pass:
    """One step of the compiler as it ran: for reports."""

    name: str
    seconds: float
    dump: str = ""


@dataclass
class Compilation:
    """What a compilation produced and how long each pass took."""

    recording: Recording
    passes: list[Pass] = field(default_factory=list)
    graph: list[Node] = field(default_factory=list)
    units: list[Unit] = field(default_factory=list)
    lowered: dict[int, Lowered] = field(default_factory=dict)
    loops: dict[int, LoweredLoop] = field(default_factory=dict)  # by unit number
    planner: Planner | None = None
    plan: Plan | None = None
    decisions: Decisions | None = None  # where the program is for many sizes
    image: Image | None = None  # where the backend makes one: what is kept on disk
    backend: Any = None
    compiled: bool = True  # whether any of its code was not on disk
    lookup: str = ""  # where a program was looked for before this one was made
    instructions: list[Facts] = field(default_factory=list)  # where a step may be several
    packed_bytes: Callable[[], int] = lambda: 0  # of weights that its executable keeps packed
    meta_nodes: int = 0
    checks: tuple[Note, ...] = ()  # what each check of the data tells the user
    turns: tuple[Turns, ...] = ()  # which results are those of turns of a loop

    @property
    def kernels(self) -> dict[str, Lowered]:
        """Every kernel by its name, those of loops included."""
        return lowered_by_name(self.lowered, self.loops)

    @property
    def results(self) -> list[Node]:
        """The nodes of the wanted results; behind them in `graph` stand the checks."""
        return self.graph[: len(self.recording.wanted)]

    @cached_property
    def open_sizes(self) -> list[tuple[str, Extent]]:
        """The sizes that vary and how they are shown, the longest text first; once all is made."""
        shapes = [leaf.shape for leaf in self.recording.leaves]
        shapes += [node.shape for node in ancestors(self.graph)]
        found = {size for shape in shapes for size in shape if isinstance(size, Extent)}
        return sorted([(repr(size), size) for size in found], key=lambda pair: -len(pair[0]))

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Time a pass, and check and show what it made."""
        start = time.perf_counter()
        yield
        self.passes.append(Pass(name, time.perf_counter() - start))
        statistics.note_span(name, start)
        self.meta_nodes = self.meta_nodes or len(ancestors(self.graph))
        # Sizes that vary may be equal without being the same: then two shapes meet that differ.
        always = self.decisions is not None and name in ("expand", "contract")
        if self.graph and (config.verify or always):
            verify(self.graph)
        if config.dump and (config.dump == "all" or name in config.dump.split(",")):
            print(f"--- {name}\n{self.describe()}", file=sys.stderr)

    def summary(self) -> str:
        """One line: how much was compiled and how long it took; with verbosity 2, by pass."""
        seconds = sum(each.seconds for each in self.passes)
        text = (
            f"monograph: {len(self.recording.entries)} operators, {len(self.units)} passes over "
            f"memory, compiled in {seconds * 1e3:.0f} ms"
        )
        if config.verbosity > 1:
            text += ": " + ", ".join(f"{p.name} {p.seconds * 1e3:.0f}" for p in self.passes)
        return text

    def describe(self) -> str:
        """The graph, or once there are kernels, the kernels."""
        if self.lowered:
            return "\n".join(low.describe() for low in self.kernels.values())
        return format_graph(self.graph)


def compile_recording(recording: Recording, backend: Any, digest: str | None = None) -> Executable:
    """Expand the recording and compile it for a backend; keep it on disk as `digest`."""
    with interning():
        made = Compilation(recording)
        with made.step("expand"):
            made.graph = _expand(made, _expansion(recording, backend), backend)
        whole = getattr(backend, "compile", None)  # a backend that does without kernels
        executable: Executable = compile_for(made, backend) if whole is None else whole(made)
    if digest is not None and made.image is not None:
        with made.step("keep"):
            shelf.store(digest, made.image)
    if config.verbosity:
        print(made.summary(), file=sys.stderr)
    return executable


def _expansion(recording: Recording, backend: Any) -> Expansion:
    """How to expand a recording: with its loops rolled, for a backend that has loops."""
    return (RolledExpansion if getattr(backend, "LOOPS", False) else Expansion)(recording)


def _expand(made: Compilation, expansion: Expansion, backend: Any) -> list[Node]:
    """The nodes of the results, and of the checks for a backend that carries them out."""
    graph = expansion.run()
    made.turns = tuple(expansion.turns)
    if not expansion.checks or not getattr(backend, "CHECKS", False):
        return graph
    made.checks = tuple(expansion.notes)
    return graph + reductions(expansion.checks)


def compile_for(made: Compilation, backend: Any) -> Executable:
    """All passes after expansion, in order."""
    made.backend = backend
    with made.step("recognise"):
        made.graph = recognise(in_bodies(made.graph, recognise))
    if has_loops(made.graph):
        with made.step("loops"):
            made.graph = optimise_loops(made.graph)
            if not getattr(backend, "LOOPS", False) or has_empty(made.graph):
                made.graph = unroll(made.graph)
    if has_complex(made.graph):
        with made.step("pairs"):
            made.graph = split_complex(in_bodies(made.graph, split_complex))
    with made.step("simplify"):
        made.graph = simplify(in_bodies(made.graph, simplify))
    supports = getattr(backend, "supports", everything)
    with made.step("contract"):
        contracted = lower_contractions(made.graph, backend.accepts, supports)
        contracted = _plain_outputs(contracted)
        made.graph = contracted.outputs
    with made.step("fuse"):
        outputs = [node for node in made.graph if node.size != 0]
        fuses = getattr(backend, "fuses", None) if made.decisions is None else None
        found = epilogue.find(contracted, outputs, fuses)
        along = getattr(backend, "along", None)
        fusion = Fusion(outputs, contracted.layouts, found.calls, supports, found.absorbed, along)
        made.units = fusion.run()
        if made.decisions is not None:
            _require_fixed_sizes(made.units)
    with made.step("lower"):
        made.lowered = lower_units(fusion, made.units, outputs)
        made.units = join(fusion, made.units, made.lowered)
        slots = len(made.recording.slots)
        made.loops = lower_loops(made.units, backend, slots, made.decisions is not None)
    if hasattr(backend, "fit_window"):
        with made.step("window"):
            made.units = _windowed(fusion, made.units, made.lowered, outputs, backend)
    if getattr(backend, "PROLOGUES", False):
        with made.step("prologue"):
            checks = made.graph[len(made.recording.wanted) :]
            made.units = attach(fusion, made.units, made.lowered, checks)
    if getattr(backend, "BEGINS", False):
        with made.step("begin"):
            inner = [low for loop in made.loops.values() for low in loop.lowerings()]
            move_begins([*made.lowered.values(), *inner])
    with made.step("plan"):
        made.planner = _planner(made, fusion, outputs, backend)
        made.plan = made.planner.addressed({}) if made.decisions is None else None
    with made.step("emit"):
        executable: Executable = backend.build(made)
    return executable


@dataclass(frozen=True)
class Template:
    """A program for many sizes: `bind` makes an executable for given values of the symbols."""

    bind: Callable[[Values], Any]
    shapes: tuple[tuple[int, ...], ...]  # of all results of the recording
    compiled: bool = True  # whether any of its code was not on disk

    def shapes_at(self, values: Values) -> tuple[tuple[int, ...], ...]:
        """The shapes of all results at given sizes."""
        return tuple([shape_at(shape, values) for shape in self.shapes])


def compile_template(recording: Recording, backend: Any, decisions: Decisions) -> Template:
    """A program for many sizes: leaves and attributes of the recording hold Extents.

    Facts that the program depends on are noted in `decisions`.
    """
    with interning(), deciding(decisions):
        made = Compilation(recording, decisions=decisions)
        expansion = _expansion(recording, backend)
        with made.step("expand"):
            made.graph = _expand(made, expansion, backend)
            for node in ancestors(made.graph):  # no array is empty, but those that always are
                if 0 not in node.shape and not all(extent >= 1 for extent in node.shape):
                    raise TypeError("a program for many sizes has no room for empty arrays")
        bind: Any = compile_for(made, backend)
    if config.verbosity:
        print(f"{made.summary()}, for many sizes", file=sys.stderr)
    return Template(bind, tuple([node.shape for node in expansion.results]), made.compiled)


def notes_at(made: Compilation, values: Values) -> tuple[Note, ...]:
    """What checks tell the user, with the sizes of a run in place of symbols."""
    if not made.checks:
        return ()
    shown = [(text, str(size.at(values))) for text, size in made.open_sizes]
    notes = []
    for note in made.checks:
        message = note.message
        for text, number in shown:
            message = message.replace(text, number)
        notes.append(replace(note, message=message))
    return tuple(notes)


def _ends_loop(node: Node) -> bool:
    """Whether the node is what a loop carried to its end: that lies in one of two buffers."""
    if not isinstance(node, LoopResult):
        return False
    source = node.inputs[0]
    assert isinstance(source, Loop)
    return node.number < len(source.body.carries)


def _plain_outputs(contracted: Contracted) -> Contracted:
    """Results leave the program in plain layout, each in memory of its own.

    So those that lie otherwise are copied, and leaves, and what is asked for a second time.
    """
    layouts = contracted.layouts
    outputs: list[Node] = []
    present = {node.id for node in ancestors(contracted.outputs)}
    taken: set[int] = set()
    for node in contracted.outputs:
        laid_out = node.shape in layouts.channels_last
        own = not isinstance(node, Buffer) and node.id not in taken and not _ends_loop(node)
        if not own or (laid_out and node.id not in layouts.plain):
            node = copied(node)
            while node.id in taken or (laid_out and node.id in present):
                node = copied(node)  # the copy that a convolution reads must lie otherwise
            if laid_out:
                layouts.plain.add(node.id)
        taken.add(node.id)
        outputs.append(node)
    return Contracted(outputs, contracted.calls, layouts)


def lower_units(
    fusion: Fusion, units: Sequence[Unit], outputs: Sequence[Node]
) -> dict[int, Lowered]:
    """Kernels of all units that are neither library calls, nor calls on the host, nor loops."""
    needed = {node.id for node in outputs}
    for unit in units:
        needed |= _outside_reads(fusion, unit)
    lowered: dict[int, Lowered] = {}
    alike = Alike(fusion, needed)
    for unit in units:
        if unit.library is not None or unit.host is not None or unit.loop is not None:
            continue
        if unit.along is not None:
            made = _lower_along(fusion, unit.along)
        elif unit.scatter is not None:
            made = Lowering(fusion, unit, needed).run_scatter()
            made.kernel = finish(made.kernel, "scatter")
        else:
            made = alike.find(unit) or _lower(fusion, unit, needed, alike)
        lowered[unit.number] = made
    return lowered


def _windowed(
    fusion: Fusion, units: Sequence[Unit], lowered: dict[int, Lowered], outputs: Sequence[Node],
    backend: Any,
) -> list[Unit]:  # fmt: skip
    """The units with windows, and with kernels for products that no library takes."""
    units = form_windows(fusion, units, lowered, outputs, backend.fit_window)
    form_products(units, lowered, backend.multiplies, backend.fit_window)
    return units


def _require_fixed_sizes(units: Sequence[Unit]) -> None:
    """What the reference interpreter runs needs numbers where a program leaves sizes open."""
    if any([unit.host is not None and not unit.host.has_fixed_sizes for unit in units]):
        raise TypeError("what the reference interpreter runs has sizes of its own")


def _lower_along(fusion: Fusion, node: Node) -> Lowered:
    """The kernel of a Call: its operands, its result, and scratch memory if it has any."""
    assert fusion.along is not None
    kernel = fusion.along(node)
    scratch = ["scratch"] * (len(kernel.buffers) - len(node.inputs) - 1)
    return Lowered(kernel, [*node.inputs, node, *scratch])


def _lower(fusion: Fusion, unit: Unit, needed: set[int], alike: Alike) -> Lowered:
    made = Lowering(fusion, unit, needed).run()
    made.kernel = finish(made.kernel, name_of(unit))
    alike.add(unit, made)
    return made


def lower_loops(
    units: Sequence[Unit], backend: Any, slots: int, many_sizes: bool
) -> dict[int, LoweredLoop]:
    """The bodies of loops, each a program of its own with its kernels and planner."""
    made: dict[int, LoweredLoop] = {}
    supports = getattr(backend, "supports", everything)
    for unit in units:
        if unit.loop is None:
            continue
        wanted = outputs_of(unit.loop)
        contracted = lower_contractions(wanted.nodes, backend.accepts, supports)
        contracted = _plain_outputs(contracted)
        fusion = Fusion(
            contracted.outputs, contracted.layouts, contracted.calls, supports,
            along=getattr(backend, "along", None),
        )  # fmt: skip
        inside = fusion.run()
        if many_sizes:
            _require_fixed_sizes(inside)
        lowered = lower_units(fusion, inside, contracted.outputs)
        if hasattr(backend, "fit_window"):
            inside = _windowed(fusion, inside, lowered, contracted.outputs, backend)
        fixed = shared_units(fusion, unit.loop, contracted.outputs)
        once = join(fusion, [u for u in inside if u.number in fixed], lowered)
        inside = once + join(fusion, [u for u in inside if u.number not in fixed], lowered)
        loops = lower_loops(inside, backend, slots, many_sizes)
        planner = Planner(
            fusion, contracted.outputs, {}, lowered, backend.workspace,
            len(unit.loop.node.inputs), slots, loops=loops, once={u.number for u in once},
            steady=steady_products(fusion, inside, unit.loop, {u.number for u in once}),
            packs=getattr(backend, "packs", None),
        )  # fmt: skip
        planner.arrange(inside)
        made[unit.number] = LoweredLoop(unit.loop, wanted, lowered, loops, planner)
    return made


def shared_units(fusion: Fusion, call: LoopUnit, outputs: Sequence[Node]) -> set[int]:
    """Numbers of the units whose results are the same in all turns: a weight that is copied."""
    body = call.node.body
    first = len(body.carries) + body.sequences  # of the parameters that turns share
    asked = {node.id for node in outputs}
    found: set[int] = set()
    by_id = {node.id: node for node in fusion.nodes}
    for unit in fusion.sorted_units():
        if any(anchor.id in asked for anchor in unit.anchors) or unit.loop is not None:
            continue
        reads = [by_id[n] for n in _outside_reads(fusion, unit)]
        varies = [n for n in reads if isinstance(n, Buffer) and n.number < first]
        homes = {fusion.home[n.id].number for n in reads if n.id in fusion.home}
        if not varies and homes <= found:
            found.add(unit.number)
    return found


def steady_products(
    fusion: Fusion, units: Sequence[Unit], call: LoopUnit, fixed: set[int]
) -> set[int]:
    """Numbers of the units that multiply by a matrix that is the same in all turns."""
    first = len(call.node.body.carries) + call.node.body.sequences
    found = set()
    for unit in units:
        if isinstance(unit.library, MatmulCall):
            base = unit.library.b.base
            home = fusion.home.get(base.id)
            same = home.number in fixed if home is not None else (
                isinstance(base, Buffer) and base.number >= first
            )  # fmt: skip
            if same:
                found.add(unit.number)
    return found


def name_of(unit: Unit) -> str:
    """A word for what a unit does."""
    if unit.rows or unit.splits:
        return "rows" if unit.rows else "total"
    return "columns" if unit.columns else "map"


def _outside_reads(fusion: Fusion, unit: Unit) -> set[int]:
    """ids of nodes that a unit reads and does not compute."""
    if unit.library is not None:
        return {node.id for node in operands(unit.library)}
    if unit.host is not None:
        return {node.id for node in unit.host.operands}
    if unit.loop is not None:
        return {node.id for node in unit.loop.operands}
    found: set[int] = set()
    for anchor in unit.anchors:
        found |= fusion.touched(anchor)
        found |= fusion.read_ids(anchor)
    return found - {anchor.id for anchor in unit.anchors}


def _planner(made: Compilation, fusion: Fusion, outputs: Sequence[Node], backend: Any) -> Planner:
    recording = made.recording
    checks = made.graph[len(recording.wanted) :]
    outputs = outputs[: len(outputs) - len(checks)]
    place = {node.id: n for n, node in enumerate(outputs)}
    writes = {}
    for position, leaf in recording.writes:
        node = made.graph[recording.wanted.index(position)]
        if node.id in place:
            writes[place[node.id]] = leaf
    planner = Planner(
        fusion, outputs, writes, made.lowered, backend.workspace, len(recording.leaves),
        len(recording.slots), checks, made.loops,
    )  # fmt: skip
    planner.arrange(made.units)
    return planner
