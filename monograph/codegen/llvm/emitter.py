"""From a kernel to the text of an LLVM module.

`emit` writes one function, `void name(ptr args)`. The loops themselves are in a second function,
`void name.body(ptr args, i64 begin, i64 end)` over a range of the plan's units, which the runtime's
`mg_parallel` runs on its threads. A prologue is a function of its own that runs first. Kernels with
privatised outputs have chunks as units and are followed by a kernel that combines the partial
results. Outputs far larger than the cache are
written past it, by a second version of the body that is chosen when all of them are aligned.
"""

from __future__ import annotations

import dataclasses

from ...ir.extent import Extent, hint
from ...ir.index import Var
from .. import kernel as kernels
from ..along import Along
from ..kernel import Kernel, Load, Privatised, Stage, postorder, stage_values
from ..window import Window
from . import along, prefetch, window
from . import plan as planning
from .body import BodyWriter
from .bounds import HARMLESS_BYTES, NOTHING
from .machine import Machine
from .memory import ALL_LANES
from .sizes import Sizes
from .table import tabulated

PARALLEL = "declare void @mg_parallel(ptr, ptr, i64, i64)"
_ATTRIBUTES = 'nounwind "prefer-vector-width"="{bits}" "min-legal-vector-width"="{bits}"'


def emit(kernel: Kernel, machine: Machine) -> str:
    """The LLVM module of a kernel, as text.

    >>> from monograph.ir import dtypes
    >>> i = Var("i", 100)
    >>> uses = tuple(kernels.BufferUse(dtypes.float32, 100, role) for role in ("in", "out"))
    >>> stage = kernels.Stage((), stores=(kernels.Store(1, i, Load(dtypes.float32, 0, i)),))
    >>> copy = Kernel("copy", (i,), (stage,), uses, kernels.Schedule(i))
    >>> "load <16 x float>" in emit(copy, Machine(512))
    True
    """
    module = Module(machine)
    module.add(kernel)
    return module.text()


class Module:
    """The text of an LLVM module: all functions of the kernels that are added to it."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.functions: list[str] = []
        self.declarations: set[str] = {PARALLEL}
        self.sizes: dict[str, tuple[Extent, ...]] = {}  # what the table of a kernel holds

    @property
    def length(self) -> int:
        """How many characters of code there are so far."""
        return sum(len(text) for text in self.functions)

    def add(self, kernel: Kernel) -> None:
        """Write all functions of a kernel."""
        if isinstance(kernel, Window):
            writer = window.WindowWriter(kernel, self.machine)
            writer.write()
            self.functions += writer.functions
            self.declarations |= writer.declarations
            if writer.sizes.entries:
                self.sizes[kernel.name] = tuple(writer.sizes.entries)
            return
        if isinstance(kernel, Along):
            sizes = Sizes(_arguments(kernel) + self.machine.bounds)
            functions, declared = along.write_along(kernel, sizes)
            self.functions += functions
            self.declarations |= declared
            if sizes.entries:
                self.sizes[kernel.name] = tuple(sizes.entries)
            return
        sizes = Sizes(_arguments(kernel) + self.machine.bounds)
        calls = [*self._prologue(kernel), *self._launch(kernel, sizes)]
        for number, private in enumerate(_privatised(kernel)):
            calls += self._launch(_combining(kernel, number, private), sizes, f".{number}")
        if sizes.entries:
            self.sizes[kernel.name] = tuple(sizes.entries)
        lines = [f"define void @{kernel.name}(ptr %args) #0 {{", *calls, "  ret void", "}"]
        self.functions.append("\n".join(lines))

    def _prologue(self, kernel: Kernel) -> list[str]:
        """Write the prologue, a function per stage; the instructions that run it."""
        if kernel.prologue is None:
            return []
        uses = kernel.prologue.buffers
        skipped = _arguments(kernel) - len(uses)
        calls = [f"  %first = getelementptr ptr, ptr %args, i64 {skipped}"]
        for part in kernel.prologue_kernels():
            sizes = Sizes(len(uses) + self.machine.bounds)
            calls += self._launch(part, sizes, arguments="%first")
        return calls

    def _launch(
        self, kernel: Kernel, sizes: Sizes, suffix: str = "", arguments: str = "%args"
    ) -> list[str]:
        """Write a kernel's body; the instructions that run it."""
        kernel, filling = tabulated(kernel)
        plan = planning.make(kernel, self.machine)
        count, grain = _share(kernel, plan)
        if count == 0:
            return []
        body = f"@{kernel.name}.body"
        lines: list[str] = []
        streamed = _streamed(kernel, self.machine)
        if streamed and self._write(kernel, plan, f"{body}.stream", streamed, sizes, filling):
            # The version for outputs that are not aligned is rarely used, and so kept short.
            short = dataclasses.replace(plan, unrolled=False)
            self._write(kernel, short, body, frozenset(), sizes, filling)
            lines, body = _alignment_test(kernel, streamed, body, self.machine)
        else:
            self._write(kernel, plan, body, frozenset(), sizes, filling)
        fetch, units = sizes.load(count, f"count{suffix}")
        if kernel.schedule.parallel and (_varies(count, grain) or count > grain):
            more, least = sizes.load(grain, f"grain{suffix}")
            fetch += more
            call = f"@mg_parallel(ptr {body}, ptr %args, i64 {units}, i64 {least})"
        else:
            call = f"{body}(ptr {arguments}, i64 0, i64 {units})"
        return [*lines, *fetch, f"  call void {call}"]

    def _write(
        self, kernel: Kernel, plan: planning.Plan, name: str, streamed: frozenset[int],
        sizes: Sizes, filling: Stage | None,
    ) -> bool:  # fmt: skip
        """Write one version of the body; whether any of its stores is streamed."""
        writer = BodyWriter(kernel, plan, streamed, sizes, self.machine.bounds)
        writer.memory.ahead = prefetch.distances(kernel, plan, self.machine)
        text = writer.write(name, filling)
        if streamed and "!nontemporal" not in text:
            return False
        self.functions += [text, *writer.tables]
        self.declarations |= writer.builder.declarations
        return True

    def text(self) -> str:
        """The module."""
        attributes = _ATTRIBUTES.format(bits=self.machine.vector_bits)
        parts = [
            *sorted(self.declarations),
            f"{NOTHING} = private unnamed_addr constant [{HARMLESS_BYTES} x i8] "
            "zeroinitializer, align 64",
            f"{ALL_LANES} = private global i64 -1",
            *self.functions,
            f"attributes #0 = {{ {attributes} }}",
            "!0 = !{i32 1}",
        ]
        return "\n".join(parts) + "\n"


def regions_of(kernel: Kernel, machine: Machine, threads: int) -> int:
    """How many times a launch of a kernel of known sizes splits its work over threads."""
    if isinstance(kernel, Along):
        return int(threads > 1 and along.is_split(kernel))
    if isinstance(kernel, Window):
        return window.regions_of(kernel) if threads > 1 else 0
    parts = [_combining(kernel, *each) for each in enumerate(_privatised(kernel))]
    return sum(_is_split(part, machine, threads) for part in [kernel, *parts])


def _is_split(kernel: Kernel, machine: Machine, threads: int) -> bool:
    count, grain = _share(kernel, planning.make(kernel, machine))
    return kernel.schedule.parallel and threads > 1 and count > grain


def _share(kernel: Kernel, plan: planning.Plan) -> tuple[int, int]:
    """How many units of work a kernel has, and the least that a thread should take."""
    if _privatised(kernel):
        return kernel.schedule.chunks, 1
    return _tiles(kernel) if kernel.segments else plan.units, plan.grain


def _privatised(kernel: Kernel) -> list[Privatised]:
    return [private for stage in kernel.stages for private in stage.privatised]


def _arguments(kernel: Kernel) -> int:
    """How many pointers a kernel takes, its table of sizes not counted."""
    passed = [use for use in kernel.buffers if use.is_argument]
    first = len(kernel.prologue.buffers) if kernel.prologue else 0
    return first + sum(1 if use.shared else max(len(kernel.segments), 1) for use in passed)


def _varies(*sizes: int) -> bool:
    return any(isinstance(size, Extent) for size in sizes)


def _tiles(kernel: Kernel) -> int:
    return sum(-(-size // planning.TILE) for size in kernel.segments)


def _combining(kernel: Kernel, number: int, private: Privatised) -> Kernel:
    """The kernel that combines the rows of the partial results of one output."""
    column = Var("column", private.size)
    chunk = Var("chunk", kernel.schedule.chunks)
    partials = kernel.buffers[private.partials].dtype
    loaded = Load(partials, private.partials, chunk * private.size + column)
    reduction = kernels.Reduction(0, private.combine, loaded)
    store = kernels.Store(private.buffer, column, kernels.Result(partials, 0))
    stages = (
        kernels.Stage((chunk,), reductions=(reduction,)),
        kernels.Stage((), stores=(store,)),
    )
    schedule = kernels.Schedule(column, (column, 1), parallel=kernel.schedule.parallel)
    name = f"{kernel.name}.combine{number}"
    return Kernel(name, (column,), stages, kernel.buffers, schedule)


def _streamed(kernel: Kernel, machine: Machine) -> frozenset[int]:
    """The outputs that are much larger than the cache and never read here."""
    values = postorder(value for stage in kernel.stages for value in stage_values(stage))
    read = {value.buffer for value in values if isinstance(value, Load)}
    private = {one.buffer for one in _privatised(kernel)}
    found = set()
    for number, use in enumerate(kernel.buffers):
        large = hint(use.elements) * use.dtype.itemsize > machine.cache_bytes
        if use.role == "out" and large and number not in read | private:
            found.add(number)
    return frozenset() if kernel.segments else frozenset(found)


def _alignment_test(
    kernel: Kernel, streamed: frozenset[int], body: str, machine: Machine
) -> tuple[list[str], str]:
    """Instructions that choose the streaming body when its outputs are aligned, and the choice."""
    lines: list[str] = []
    joined = "0"
    argument = 0
    for number, use in enumerate(kernel.buffers):
        if not use.is_argument:
            continue
        if number in streamed:
            lines += [
                f"  %at{number} = getelementptr ptr, ptr %args, i64 {argument}",
                f"  %buffer{number} = load ptr, ptr %at{number}",
                f"  %bits{number} = ptrtoint ptr %buffer{number} to i64",
                f"  %joined{number} = or i64 {joined}, %bits{number}",
            ]
            joined = f"%joined{number}"
        argument += 1
    lines += [
        f"  %low = and i64 {joined}, {machine.vector_bits // 8 - 1}",
        "  %aligned = icmp eq i64 %low, 0",
        f"  %body = select i1 %aligned, ptr {body}.stream, ptr {body}",
    ]
    return lines, "%body"
