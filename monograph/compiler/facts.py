"""What each step of a program moves and computes, and which recorded calls it comes from.

`facts_of` reads it off a compilation, for reports and for the profiler. Facts are plain data and
are kept on disk with the program, so that one that was not compiled here can be profiled too. The
user's lines are no part of them: `origin` names calls of the recording by number.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

from ..codegen import kernel as k
from ..codegen.along import Along
from ..codegen.window import Window
from ..ir.dtypes import BY_NAME
from ..ir.extent import Values, value_at
from ..ir.index import Var
from ..ir.node import Node
from .fuse import Fusion, Unit
from .lower import Lowered
from .plan import (
    EPILOGUES,
    CheckStep,
    HostStep,
    KernelStep,
    LibraryStep,
    LoopStep,
    Plan,
    Planner,
    Step,
)

# What is written or read again while it is still in cache does not go to memory twice.
CACHE_BYTES = 1 << 20
# Scalar functions that move numbers and compute none.
MOVES = frozenset({"cast", "select", "real", "imag", "complex", "detach", "mark"})


@dataclass(frozen=True)
class Facts:
    """One step. `kind` is "generated", "library", "copy", "check", which only looks, or "loop".

    `bytes` is what it moves from and to memory, `least_bytes` what it would if each element were
    moved once. `flops` counts one for each scalar function of floats, exp no more than add.
    """

    name: str
    kind: str
    bytes: int
    least_bytes: int
    flops: int = 0
    origin: tuple[int, ...] = ()  # numbers of recorded calls, that of the result first
    on_host: bool = False  # runs NumPy
    times: int = 1  # how often it runs in a launch: in a loop once a turn
    inside: tuple[Facts, ...] = ()  # the steps of a loop, whose bytes and flops are its own
    alone: bool = False  # a library's, which asks no other thread for help


def facts_of(plan: Plan, planner: Planner, values: Values | None = None) -> list[Facts]:
    """The facts of every step of a plan; `values` are those of the sizes that vary."""
    return _facts_of(plan.steps, plan.units, planner, values or {}, [1] * len(plan.steps))


def _facts_of(
    steps: Sequence[Step], numbers: Sequence[int], planner: Planner, values: Values,
    times: Sequence[int],
) -> list[Facts]:  # fmt: skip
    kernels = {low.code.name: low for low in planner.lowered.values()}
    units = {unit.number: unit for unit in planner.order}
    found = []
    for step, number, count in zip(steps, numbers, times, strict=True):
        if number not in planner.origins:
            planner.origins[number] = _origin(units[number], planner.fusion)
        origin = planner.origins[number]
        if isinstance(step, LoopStep):
            inner = planner.loops[number].planner
            turns = [count if n < step.once else count * step.trips for n in range(len(step.body))]
            inside = _facts_of(step.body, step.units, inner, values, turns)
            found.append(_loop(step, inside, count, origin))
        else:
            found.append(replace(_facts(step, kernels, values, origin), times=count))
    return found


def _loop(step: LoopStep, inside: Sequence[Facts], times: int, origin: tuple[int, ...]) -> Facts:
    """A loop moves and computes what its turns do."""
    moved, least, flops = (
        sum(getattr(each, name) * each.times for each in inside) // times
        for name in ("bytes", "least_bytes", "flops")
    )
    name = f"loop of {step.trips} turns"
    return Facts(name, "loop", moved, least, flops, origin, False, times, tuple(inside))


def launched(facts: Sequence[Facts]) -> Iterator[Facts]:
    """What a launch runs: instead of a loop its steps, each with the times that it runs."""
    for each in facts:
        if each.kind == "loop":
            yield from launched(each.inside)
        else:
            yield each


def _facts(
    step: KernelStep | HostStep | CheckStep | LibraryStep,
    kernels: Mapping[str, Lowered],
    values: Values,
    origin: tuple[int, ...],
) -> Facts:
    if isinstance(step, KernelStep):
        kernel = kernels[step.name].kernel
        if isinstance(kernel, Window):
            return _window(kernel, values, origin)
        if isinstance(kernel, Along):
            return _along(kernel, values, origin)
        kind = "copy" if is_copy(kernel) else "generated"
        traffic = Traffic(kernel, values)
        return Facts(
            step.name, kind, traffic.bytes, traffic.least_bytes, flops_of(kernel, values), origin
        )
    if isinstance(step, HostStep):
        nbytes = sum(prod(a.shape) * BY_NAME[a.dtype].itemsize for a in step.arrays)
        return Facts(step.label, "library", nbytes, nbytes, 0, origin, on_host=True)
    if isinstance(step, CheckStep):
        return Facts(f"check {step.check}", "check", 0, 0, 0, origin)
    return _library(step, origin)


def _window(window: Window, values: Values, origin: tuple[int, ...]) -> Facts:
    passed = [use for use in window.buffers if use.role != "partials"]
    nbytes = sum(value_at(use.elements, values) * use.dtype.itemsize for use in passed)
    flops = value_at(window.flops, values)
    return Facts(window.name, "generated", nbytes, nbytes, flops, origin)


FLOPS = {"scan_add": 1, "scan_mul": 1, "scan_linear": 2}  # for each element, along an axis


def _along(kernel: Along, values: Values, origin: tuple[int, ...]) -> Facts:
    passed = [use for use in kernel.buffers if use.role != "partials"]
    nbytes = sum(value_at(use.elements, values) * use.dtype.itemsize for use in passed)
    elements = value_at(kernel.rows * kernel.length, values)
    flops = elements * FLOPS.get(kernel.function, 0)
    return Facts(kernel.name, "generated", nbytes, nbytes, flops, origin)


def _library(step: LibraryStep, origin: tuple[int, ...]) -> Facts:
    sizes = {n: prod(o.shape) for n, o in step.operands.items()}
    nbytes = sum(sizes[n] * BY_NAME[o.dtype].itemsize for n, o in step.operands.items())
    src, weights, dst = (step.operands[n].shape for n in ("src", "weights", "dst"))
    flops = 2 * sizes["dst"] * (src[-1] if step.kind == "matmul" else prod(weights[1:]))
    shapes = " ".join("×".join(map(str, shape)) for shape in (src, weights, dst))
    shapes += "".join(f" {EPILOGUES[n]}" for n in step.options.get("epilogue", ()))
    return Facts(f"{step.kind} {shapes}", "library", nbytes, nbytes, flops, origin)


# --- bytes and operations -------------------------------------------------------------------------


class Traffic:
    """The bytes that a kernel moves."""

    def __init__(self, kernel: k.Kernel, values: Values) -> None:
        self.kernel = kernel
        self.values = values
        self.rows = self._points(kernel.outer)
        self.bytes = self.least_bytes = 0
        if kernel.segments:
            self._count_segments()
        else:
            self._count()
        first = kernel.prologue.buffers if kernel.prologue else ()
        single = sum(use.dtype.itemsize for use in first)
        self.bytes, self.least_bytes = self.bytes + single, self.least_bytes + single

    def _points(self, axes: Sequence[Var]) -> int:
        return prod([value_at(v.extent, self.values) for v in axes])

    def _count_segments(self) -> None:
        total = sum(self.kernel.segments)
        for use in self.kernel.buffers:
            self.bytes += use.dtype.itemsize * (1 if use.shared else total)
        self.least_bytes = self.bytes

    def _count(self) -> None:
        passes = self._passes()
        cached = self._row_bytes(passes) <= CACHE_BYTES
        for number, use in enumerate(self.kernel.buffers):
            if use.role == "row":
                continue
            whole = value_at(use.elements, self.values) * use.dtype.itemsize
            if use.role == "partials":
                self.bytes += 2 * whole if whole > CACHE_BYTES else 0
                continue
            sizes = [min(whole, points * use.dtype.itemsize) for points in passes[number]]
            self.least_bytes += max(sizes)
            self.bytes += max(sizes) if cached else sum(sizes)

    def _passes(self) -> dict[int, list[int]]:
        """Per buffer, at how many points each pass over it reads or writes it."""
        found: dict[int, list[int]] = {n: [] for n in range(len(self.kernel.buffers))}
        largest = 0
        for stage in self.kernel.stages:
            points = self.rows * self._points(stage.axes)
            largest = max(largest, points)
            loads = {v.buffer for v in stage.values if isinstance(v, k.Load)}
            for number in loads:
                found[number].append(points)
            for number in {s.buffer for s in stage.stores}:
                found[number].append(points)
            for private in stage.privatised:
                found[private.buffer].append(value_at(private.size, self.values))
        # What only an index reads: a gather touches no more of it than there are points.
        return {number: passes or [largest] for number, passes in found.items()}

    def _row_bytes(self, passes: Mapping[int, Sequence[int]]) -> int:
        """Bytes of all buffers that one outer point touches."""
        total = 0
        for number, use in enumerate(self.kernel.buffers):
            if use.role not in ("row", "partials"):
                touched = min(value_at(use.elements, self.values), max(passes[number]))
                total += touched * use.dtype.itemsize // max(self.rows, 1)
        return total


def flops_of(kernel: k.Kernel, values: Values) -> int:
    """Scalar functions of floats that a kernel evaluates, and additions of its reductions."""
    total = 0
    seen: set[int] = set()
    rows = prod([value_at(v.extent, values) for v in kernel.outer])
    if kernel.segments:
        rows = sum(kernel.segments)
    for stage in kernel.stages:
        found = [v for v in stage.values if id(v) not in seen]
        seen.update(id(v) for v in found)
        count = sum(isinstance(v, k.Apply) and _computes(v) for v in found)
        count += sum(r.value.dtype.is_floating_point for r in stage.reductions)
        count += sum(p.value.dtype.is_floating_point for p in stage.privatised)
        total += count * rows * prod([value_at(v.extent, values) for v in stage.axes])
    return total


def _computes(value: k.Apply) -> bool:
    return value.dtype.is_floating_point and value.function not in MOVES


def is_copy(kernel: k.Kernel) -> bool:
    """Whether a kernel only moves elements from one place to another."""
    if kernel.prologue is not None:
        return False
    for stage in kernel.stages:
        if stage.reductions or stage.privatised:
            return False
        if not all(isinstance(_moved(store.value), k.Load) for store in stage.stores):
            return False
    return True


def _moved(value: k.Value) -> k.Value:
    """The value under casts to the dtype that it has."""
    while isinstance(value, k.Apply) and value.function == "cast":
        if value.operands[0].dtype is not value.dtype:
            break
        value = value.operands[0]
    return value


def source_of(low: Lowered) -> str:
    """The kernel as text, loop by loop."""
    return low.describe()


# --- where a step comes from ----------------------------------------------------------------------


def _origin(unit: Unit, fusion: Fusion) -> tuple[int, ...]:
    """The recorded calls of all nodes that a unit computes, those of its results first."""
    found: dict[int, None] = {}
    for node in _computed(unit, fusion):
        if node.origin >= 0:
            found[node.origin] = None
    return tuple(found)


def _computed(unit: Unit, fusion: Fusion) -> Iterator[Node]:
    """The nodes of a unit, from its results down to what is in memory."""
    stack = sorted(unit.anchors, key=lambda node: node.id)
    own = {node.id for node in stack}
    seen: set[int] = set()
    while stack:
        node = stack.pop()
        if node.id in seen or (fusion.is_boundary(node) and node.id not in own):
            continue
        seen.add(node.id)
        yield node
        if unit.library is None:
            stack += node.inputs
        elif node is unit.library.node:
            yield from unit.library.inside


# --- regions --------------------------------------------------------------------------------------


def regions_of(plan: Plan) -> list[tuple[object, ...]]:
    """The parts of a program between library calls, each as what it does, whatever its arrays.

    Equal ones have the same kernels, wired in the same way.
    """
    return _regions(plan.steps)


def _regions(steps: Sequence[Step]) -> list[tuple[object, ...]]:
    found: list[tuple[object, ...]] = []  # of loops
    regions: list[list[KernelStep]] = [[]]
    for step in steps:
        if isinstance(step, KernelStep):
            regions[-1].append(step)
        elif not isinstance(step, CheckStep):
            regions.append([])
        if isinstance(step, LoopStep):
            found += _regions(step.body)
    return [_canonical(region) for region in regions if region] + found


def _canonical(region: Sequence[KernelStep]) -> tuple[object, ...]:
    numbers: dict[object, int] = {}
    lines: list[object] = []
    for step in region:
        wires = [numbers.setdefault(ref, len(numbers)) for ref in step.arguments]
        lines.append((step.name, tuple(wires)))
    return tuple(lines)
