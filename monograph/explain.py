"""Reports: what a piece of code becomes. `mg.explain(fn, *args)` and `mg.explain_last()`.

A report is read off the compilation itself: the passes with their times, every kernel with the
bytes that it moves, the memory plan, and why the program was flushed and compiled.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import prod
from typing import Any

from . import record, statistics
from .codegen.kernel import Kernel
from .codegen.printer import format_kernel
from .compiler.pipeline import Compilation
from .compiler.plan import CheckStep, HostStep, KernelStep, LibraryStep
from .ir.dtypes import BY_NAME


@dataclass(frozen=True)
class KernelReport:
    """One entry of the program. `kind` is "generated", "library" or "host"."""

    name: str
    kind: str
    bytes: int
    flops: int = 0
    source: str = ""


@dataclass
class Report:
    """What a recording was compiled to."""

    kernels: list[KernelReport] = field(default_factory=list)
    nodes_recorded: int = 0
    meta_nodes: int = 0
    arena_bytes: int = 0
    arena_lower_bound: int = 0
    least_bytes: int = 0
    compile_seconds: float = 0.0
    pass_seconds: dict[str, float] = field(default_factory=dict)
    flushes: list[str] = field(default_factory=list)
    parallel_regions: int = 0

    @property
    def bytes(self) -> int:
        """Bytes that all kernels read and write."""
        return sum(kernel.bytes for kernel in self.kernels)

    def __str__(self) -> str:
        count = {kind: 0 for kind in ("generated", "library", "host")}
        for kernel in self.kernels:
            count[kernel.kind] += 1
        on_host = f"{count['host']} calls on the host, " if count["host"] else ""
        lines = [
            f"{self.nodes_recorded} operators recorded, {self.meta_nodes} nodes after expansion",
            f"{count['generated']} generated kernels, {count['library']} library calls, {on_host}"
            f"{_size(self.bytes)} moved (inputs and results alone: {_size(self.least_bytes)})",
            f"arena {_size(self.arena_bytes)} (no plan needs less than "
            f"{_size(self.arena_lower_bound)})",
            f"compiled in {self.compile_seconds * 1e3:.0f} ms: "
            + ", ".join(f"{n} {s * 1e3:.0f}" for n, s in self.pass_seconds.items()),
            f"flushed because: {', '.join(self.flushes) or 'nothing was pending'}",
        ]
        lines += [f"  {k.kind:9} {_size(k.bytes):>10}  {k.name}" for k in self.kernels]
        return "\n".join(lines)


def _size(nbytes: float) -> str:
    for unit in ("B", "kB", "MB"):
        if nbytes < 1000:
            return f"{nbytes:.0f} {unit}" if unit == "B" else f"{nbytes:.1f} {unit}"
        nbytes /= 1000
    return f"{nbytes:.2f} GB"


def report_of(made: Compilation) -> Report:
    """The report of a compilation."""
    report = Report(nodes_recorded=len(made.recording.entries), meta_nodes=made.meta_nodes)
    report.pass_seconds = {p.name: p.seconds for p in made.passes}
    report.compile_seconds = sum(report.pass_seconds.values())
    report.least_bytes = _least_bytes(made)
    if made.plan is None:
        return report
    report.arena_bytes = made.plan.arena_bytes
    report.arena_lower_bound = made.plan.lower_bound
    kernels = {low.kernel.name: low for low in made.lowered.values()}
    for step in made.plan.steps:
        if isinstance(step, CheckStep):
            continue  # looks at one number
        if isinstance(step, KernelStep):
            low = kernels[step.name]
            report.parallel_regions += low.kernel.schedule.parallel
            source = format_kernel(low.kernel)
            report.kernels.append(
                KernelReport(step.name, "generated", kernel_bytes(low.kernel), 0, source)
            )
        elif isinstance(step, HostStep):
            report.kernels.append(_host(step))
        else:
            report.kernels.append(_library(step))
            report.parallel_regions += 1
    return report


def kernel_bytes(kernel: Kernel) -> int:
    """Bytes of memory that a kernel reads and writes, each element once."""
    if kernel.segments:
        total = sum(kernel.segments)
        return sum(use.dtype.itemsize * (1 if use.shared else total) for use in kernel.buffers)
    rows = prod(v.extent for v in kernel.outer)
    points = rows * max(prod(v.extent for v in stage.axes) for stage in kernel.stages)
    return sum(
        min(use.elements, points) * use.dtype.itemsize  # a gather touches no more than its points
        for use in kernel.buffers
        if use.role not in ("row", "partials")
    )


def _host(step: HostStep) -> KernelReport:
    nbytes = sum(prod(a.shape) * BY_NAME[a.dtype].itemsize for a in step.arrays)
    return KernelReport(step.label, "host", nbytes)


def _library(step: LibraryStep) -> KernelReport:
    sizes = {n: prod(o.shape) for n, o in step.operands.items()}
    nbytes = sum(sizes[n] * BY_NAME[o.dtype].itemsize for n, o in step.operands.items())
    src, weights, dst = (step.operands[n].shape for n in ("src", "weights", "dst"))
    if step.kind == "matmul":
        flops = 2 * sizes["dst"] * src[-1]
    else:
        flops = 2 * sizes["dst"] * prod(weights[1:])
    shapes = " ".join("×".join(map(str, shape)) for shape in (src, weights, dst))
    return KernelReport(f"{step.kind} {shapes}", "library", nbytes, flops)


def _least_bytes(made: Compilation) -> int:
    leaves = sum(m.size * m.dtype.itemsize for m in made.recording.leaves)
    return leaves + sum(node.size * node.dtype.itemsize for node in made.results)


def explain(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Report:
    """Run a function once, compiled afresh, and report what it was compiled to.

    >>> import monograph as mg
    >>> report = mg.explain(lambda x: mg.softmax(x * 2, 1), mg.ones(64, 64))
    >>> len(report.kernels)
    1
    """
    record.flush("explain")
    statistics.recent.clear()
    with record.programs.observed() as seen:
        kept = function(*args, **kwargs)
        record.flush("explain")
    if not seen:
        return Report(flushes=[reason for reason, _ in statistics.recent])
    report = report_of(max(seen, key=lambda made: len(made.recording.entries)))
    report.flushes = [reason for reason, _ in statistics.recent]
    del kept
    return report


def explain_last() -> str:
    """Why the last flushes of this process happened, the latest first."""
    lines = [
        f"{records} operators, because of: {reason}"
        for reason, records in reversed(statistics.recent)
    ]
    return "\n".join(lines) or "nothing was flushed yet"
