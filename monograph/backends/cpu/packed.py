"""The second program of an executable: the same steps, with weights that are packed once.

oneDNN multiplies faster by weights that lie in an order of its own. Bringing them there in each
call costs more than it gains where few rows are multiplied, so programs start without. Once a
program was launched with the same weights a few times, and none of its steps writes them, they are
packed (`packs.py` says how long packs are kept) and from then on the second program is launched,
in which those products and convolutions read the packs. It is made from the plan of the first: the
same kernels at the same addresses, and each pack is one leaf more. When a weight changes, the
first program runs again, until the new weights have stayed as long.

Whether packing pays is decided here and nowhere else: by `ROWS`, `LEAST` and `LAUNCHES`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from math import prod
from operator import itemgetter
from threading import Lock
from typing import Any

from ... import packs, statistics
from ...compiler.arena import aligned
from ...compiler.facts import Facts
from ...compiler.plan import PACKED, LibraryStep, Plan, Ref, Step
from ...runtime import status
from ...runtime.executor import EXECUTOR
from ...runtime.instructions import Leaf
from ...runtime.program import Program
from ...storage import Value
from . import library, onednn
from .program import NativeProgram, facts_of_parts, library_call, pool

ROWS = 64  # multiplied by a weight: with more, the packed product is hardly faster
LEAST = 1 << 12  # elements of a weight; below, calls are all that counts
LARGEST = 2  # times the weight: rows and columns are filled up, which small ones have few of
LAUNCHES = 2  # with the same weights, before they are packed
WORTH = 16  # launches that make up for packing; weights that change sooner have to wait longer
PATIENCE = 1 << 10  # launches that they have to wait at most
MODELS = 8  # sets of weights, of one program, that are told apart

KINDS = ("matmul", "forward", "backward_data")  # library steps that have weights


@dataclass(frozen=True)
class Ready:
    """What a launch with packed weights is given. The blocks are held until it is over."""

    addresses: tuple[int, ...]
    blocks: tuple[Any, ...]


@dataclass(frozen=True)
class Weight:
    """A weight of the program: which leaf, the layout that it is packed to, and what packs it."""

    leaf: int
    layout: Hashable
    nbytes: int
    program: Program


def packable(plan: Plan) -> dict[int, LibraryStep]:
    """The steps, by number, for which it may pay to keep their weights packed."""
    written = set(plan.in_place.values())
    found = {}
    for number, step in enumerate(plan.steps):
        if not isinstance(step, LibraryStep) or step.kind not in KINDS:
            continue
        kind, leaf, _ = step.arguments["weights"]
        weights = step.operands["weights"].shape
        if kind != "leaf" or leaf in written or prod(weights) < LEAST:
            continue
        channels = step.operands["dst"].shape[-1 if step.kind == "matmul" else 1]
        rows = prod(step.operands["dst"].shape) // channels
        in_call = step.kind == "matmul" or PACKED in step.workspace
        if in_call and rows <= ROWS:
            found[number] = step
    return found


def second_program(
    native: NativeProgram, written: Sequence[int], facts: Callable[[], Sequence[Facts]]
) -> PackedProgram | None:
    """The program to launch once the weights have stayed the same; None where none would gain."""
    steps = {
        number: step for number, step in packable(native.plan).items()
        if step.arguments["weights"][1] not in written
    }  # fmt: skip
    return PackedProgram(native, steps, facts) if steps else None


class PackedProgram:
    """The program with packed weights of an executable, and for which values it has packs."""

    def __init__(
        self, native: NativeProgram, steps: dict[int, LibraryStep],
        facts: Callable[[], Sequence[Facts]],
    ) -> None:  # fmt: skip
        self._first = native
        self._steps = steps
        self._facts = facts
        self._native: NativeProgram | None = None  # made when it is first wanted
        self._weights: list[Weight] = []
        self._choose([step.arguments["weights"][1] for step in steps.values()])
        self._ready: dict[tuple[int, ...], Ready] = {}  # by the ids of the values, all alive
        self._seen: dict[tuple[int, ...], int] = {}  # launches, by ids of values alive or not
        self._patience = LAUNCHES
        self._served = 0  # launches since the last loss
        self._lock = Lock()

    def at(self, leaves: Sequence[Value], addresses: Sequence[int]) -> Ready | None:
        """The packs of these leaves; None while the first program is to be launched."""
        ids = tuple(map(id, self._chosen(leaves)))
        found = self._ready.get(ids)
        if found is None:
            return self._look(ids, leaves, addresses)
        self._served += 1
        return found

    def lose(self, pack: packs.Pack) -> None:
        """A pack is gone: its value is, or has other contents."""
        for ids, ready in self._ready.copy().items():
            if pack.block in ready.blocks:
                self._ready.pop(ids, None)
                self._seen.pop(ids, None)
                early = self._served < WORTH
                self._patience = min(2 * self._patience, PATIENCE) if early else LAUNCHES
                self._served = 0

    @property
    def is_void(self) -> bool:
        """Whether it has turned out that there is nothing to gain."""
        return self._native is None and not self._steps

    @property
    def nbytes(self) -> int:
        """The memory that the packs of one set of weights take."""
        with self._lock:
            return sum([weight.nbytes for weight in self._weights]) if self._is_made() else 0

    def _choose(self, leaves: Sequence[int]) -> None:
        numbers = sorted(set(leaves))
        self._chosen = itemgetter(*numbers, numbers[0])  # two at least: it returns a tuple then

    def _look(
        self, ids: tuple[int, ...], leaves: Sequence[Value], addresses: Sequence[int]
    ) -> Ready | None:
        """Pack the weights if they have stayed long enough."""
        if len(self._seen) > MODELS:
            self._seen.clear()
        self._seen[ids] = seen = self._seen.get(ids, 0) + 1
        if seen <= self._patience or not self._lock.acquire(blocking=False):
            return None
        try:
            found = self._pack(leaves, addresses) if self._is_made() else None
        except MemoryError:
            found = None
        finally:
            self._lock.release()
        if found is None:  # it is not to be tried at every launch
            self._seen.clear()
            self._patience = min(2 * self._patience, PATIENCE)
        return found

    # --- the program ---

    def _is_made(self) -> bool:
        """Make the program, unless that was tried before; False if there is none."""
        if self._steps:
            try:
                self._make()
            except onednn.OneDNNError:  # as in a forked process: what was made before serves on
                self._weights = []
            self._steps = {}
        return self._native is not None

    def _make(self) -> None:
        plan = self._first.plan
        steps: list[Step] = list(plan.steps)
        places: dict[Hashable, int] = {}  # of packs, behind the leaves
        end, scratch = aligned(plan.arena_bytes), 0
        for number, step in self._steps.items():
            options = {**step.options, "packed": (1,)}
            packing = library.prepare(f"{library.PACK} {step.kind}", step.operands, step.options)
            bound = library.prepare(step.kind, step.operands, options)
            if packing is None or bound is None or not _gains(step, packing[0], bound):
                continue
            layout = _layout(step, packing[0])
            leaf = step.arguments["weights"][1]
            if (leaf, layout) not in places:
                places[leaf, layout] = len(places)
                self._weights.append(_weight(step, layout, packing[0]))
            arguments: dict[str, Ref] = dict(step.arguments)
            workspace = library.workspace(bound)
            for name, size in workspace.items():
                if name == PACKED:
                    arguments[name] = ("leaf", plan.leaves + places[leaf, layout], 0)
                elif size > step.workspace.get(name, 0):  # behind all else
                    arguments[name], scratch = ("arena", end, 0), max(scratch, size)
            steps[number] = LibraryStep(step.kind, step.operands, arguments, options, workspace)
        if not places:
            return
        leaves, arena_bytes = plan.leaves + len(places), plan.arena_bytes
        arena_bytes = end + scratch if scratch else arena_bytes
        second = replace(plan, steps=steps, leaves=leaves, arena_bytes=arena_bytes)
        self._choose([weight.leaf for weight in self._weights])
        self._native = NativeProgram(second, self._first.addresses, self._first.keep)
        parts, facts = self._native.parts, self._facts
        self._native.program.facts = lambda: facts_of_parts(parts, facts())

    def launch(
        self, ready: Ready, leaves: Sequence[int], slots: Sequence[Any], results: Sequence[int],
        keep: tuple[Any, ...],
    ) -> None:  # fmt: skip
        """Start the second program on these packs."""
        assert self._native is not None
        self._native.launch([*leaves, *ready.addresses], slots, results, (*keep, ready.blocks))

    @property
    def native(self) -> NativeProgram | None:
        """The second program, once there is one."""
        return self._native

    # --- the packs ---

    def _pack(self, leaves: Sequence[Value], addresses: Sequence[int]) -> Ready | None:
        """Packs of all weights: those that are kept, and new ones, once they are complete."""
        values = [leaves[weight.leaf] for weight in self._weights]
        if not all(map(packs.is_watched, values)):
            return None
        shelves = [packs.shelf(value) for value in values]
        EXECUTOR.synchronize()
        if status.current().held:
            return None
        found: list[packs.Pack] = []
        fresh: list[tuple[packs.Shelf, packs.Pack]] = []
        for weight, value, shelf in zip(self._weights, values, shelves, strict=True):
            pack = next((pack for pack in shelf if pack.layout == weight.layout), None)
            if pack is None:
                pack = packs.Pack(weight.layout, pool.allocate(weight.nbytes))
                fresh.append((shelf, pack))
                _run(weight.program, addresses[weight.leaf], value.memory, pack.block)
            found.append(pack)
        EXECUTOR.synchronize()
        if any(weight.program.failures for weight in self._weights):
            return None
        for shelf, pack in fresh:
            shelf.append(pack)
        statistics.counters.packings += len(fresh)
        for pack in found:
            pack.readers.add(self)
        blocks = tuple([pack.block for pack in found])
        ids = tuple(map(id, self._chosen(leaves)))
        self._ready[ids] = ready = Ready(tuple([block.address for block in blocks]), blocks)
        if not all(map(packs.is_shelf, shelves, values)):  # another thread has changed one
            self._ready.pop(ids, None)
            return None
        return ready


def _run(program: Program, source: int, memory: Any, block: Any) -> None:
    """Pack a weight. The launch is nobody's: it runs even if an earlier one has failed."""
    frame = EXECUTOR.frame(program)
    frame.fill([source, block.address])
    EXECUTOR.submit(frame, (memory, block))


def _gains(
    step: LibraryStep, packing: library.BoundStep, bound: Sequence[library.BoundStep]
) -> bool:
    """Whether the call packs its weights each time, and runs the same code without doing so.

    The code of a product packs in its scratchpad: one that needs as much of it when the weights are
    packed takes them as they lie. The same code gives the same bits.
    """
    primitive = packing.primitive
    if primitive.bytes_of("dst") > LARGEST * primitive.bytes_of("src"):
        return False
    if step.kind != "matmul":
        return True
    first = library.prepare(step.kind, step.operands, step.options)
    scratch = library.workspace(list(bound)).get("scratchpad", 0)
    return (
        first is not None
        and first[0].primitive.implementation == bound[0].primitive.implementation
        and scratch < step.workspace.get("scratchpad", 0)
    )


def _layout(step: LibraryStep, packing: library.BoundStep) -> Hashable:
    """How a pack follows from the memory of its weight, for programs that may share it."""
    weights, target = step.operands["weights"], packing.primitive.kernel.descriptor("dst")
    begin = step.arguments["weights"][2]
    return begin, weights.shape, weights.strides, target.shape, onednn.layout_number(target)


def _weight(step: LibraryStep, layout: Hashable, packing: library.BoundStep) -> Weight:
    _, leaf, begin = step.arguments["weights"]
    primitive = packing.primitive
    call = library_call(primitive, (Leaf(0, begin), Leaf(1)), library.PACK)
    program = Program([call], 2, keep=primitive)
    size = primitive.bytes_of("dst")
    shape = "×".join(map(str, step.operands["weights"].shape))
    moved = sum(primitive.operand_bytes)
    program.facts = lambda: [Facts(f"pack {shape}", "copy", moved, moved)]
    return Weight(leaf, layout, size, program)
