"""Reports: what a piece of code becomes. `mg.explain(fn, *args)` and `mg.explain_last()`.

A report is read off the compilations themselves: the passes with their times, every kernel with
the bytes that it moves, the memory plan, why there was a flush, and whether a cache had the
program. It lists what a launch runs, one entry for each native instruction but the checks, which
look at one number; `monograph.runtime.program.counters().kernels` counts the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from . import record, statistics
from .compiler.facts import Facts, facts_of, launched, regions_of, source_of
from .compiler.pipeline import Compilation
from .ir.extent import hint


@dataclass(frozen=True)
class KernelReport:
    """One pass over memory.

    `kind` is "generated", "library" (oneDNN, or NumPy where `on_host`), or "copy", which moves
    elements and computes nothing. `bytes` is what it moves, `least_bytes` what it would if each
    element were moved once. `source` is a generated kernel as text. `times` is how often a launch
    runs it: in a loop once a turn.
    """

    name: str
    kind: str
    source: str
    bytes: int
    least_bytes: int
    flops: int
    on_host: bool = False
    times: int = 1


@dataclass
class Report:
    """What a function was compiled to, over all of its flushes.

    `regions` are the parts between contractions and other library calls. `cache` says for each
    program whether it would have been found, or why not.
    """

    kernels: list[KernelReport] = field(default_factory=list)
    parallel_regions: int = 0
    arena_bytes: int = 0
    arena_lower_bound: int = 0
    packed_bytes: int = 0  # of weights, in a library's order, if they stay as they are
    nodes_recorded: int = 0
    meta_nodes: int = 0
    regions: int = 0
    distinct_regions: int = 0
    compile_seconds: float = 0.0
    pass_seconds: dict[str, float] = field(default_factory=dict)
    flushes: list[str] = field(default_factory=list)
    cache: list[str] = field(default_factory=list)
    least_bytes: int = 0  # of inputs and results alone

    @property
    def bytes(self) -> int:
        """Bytes that all kernels read and write."""
        return sum(kernel.bytes * kernel.times for kernel in self.kernels)

    def __str__(self) -> str:
        count = {kind: 0 for kind in ("generated", "library", "copy")}
        for kernel in self.kernels:
            count[kernel.kind] += 1
        on_host = sum(kernel.on_host for kernel in self.kernels)
        rest = f"{on_host} calls on the host, " if on_host else ""
        rest += f"{count['copy']} copies, " if count["copy"] else ""
        lines = [
            f"{self.nodes_recorded} operators recorded, {self.meta_nodes} nodes after expansion",
            f"{count['generated']} generated kernels, {count['library'] - on_host} library calls, "
            f"{rest}"
            f"{size_text(self.bytes)} moved (inputs and results alone: "
            f"{size_text(self.least_bytes)})",
            f"{self.parallel_regions} parallel regions; {self.regions} regions between library "
            f"calls, {self.distinct_regions} of them distinct",
            f"arena {size_text(self.arena_bytes)} (no plan needs less than "
            f"{size_text(self.arena_lower_bound)})"
            + (f"; packed weights {size_text(self.packed_bytes)}" if self.packed_bytes else ""),
            f"compiled in {self.compile_seconds * 1e3:.0f} ms: "
            + ", ".join(f"{n} {s * 1e3:.0f}" for n, s in self.pass_seconds.items()),
            f"flushed because: {', '.join(self.flushes) or 'nothing was pending'}",
            f"cache: {'; '.join(dict.fromkeys(self.cache)) or 'nothing was looked for'}",
        ]
        for k in self.kernels:
            often = f" × {k.times}" if k.times > 1 else ""
            lines.append(f"  {k.kind:9} {size_text(k.bytes):>10}  {k.name}{often}")
        return "\n".join(lines)


def size_text(nbytes: float) -> str:
    """A number of bytes, as people write it."""
    for unit in ("B", "kB", "MB"):
        if nbytes < 1000:
            return f"{nbytes:.0f} {unit}" if unit == "B" else f"{nbytes:.1f} {unit}"
        nbytes /= 1000
    return f"{nbytes:.2f} GB"


def report_of(*compilations: Compilation) -> Report:
    """The report of one or several compilations."""
    report = Report()
    regions: list[object] = []
    for made in compilations:
        report.nodes_recorded += len(made.recording.entries)
        report.meta_nodes += made.meta_nodes
        report.least_bytes += _least_bytes(made)
        report.cache.append(made.lookup)
        for each in made.passes:
            known = report.pass_seconds.get(each.name, 0.0)
            report.pass_seconds[each.name] = known + each.seconds
        if made.plan is not None:
            report.arena_bytes = max(report.arena_bytes, made.plan.arena_bytes)
            report.arena_lower_bound = max(report.arena_lower_bound, made.plan.lower_bound)
            report.packed_bytes += made.packed_bytes()
            report.kernels += _kernels(made)
            report.parallel_regions += _parallel_regions(made)
            regions += regions_of(made.plan)
    report.compile_seconds = sum(report.pass_seconds.values())
    report.regions, report.distinct_regions = len(regions), len(set(regions))
    return report


def _kernels(made: Compilation) -> list[KernelReport]:
    assert made.plan is not None and made.planner is not None
    facts: Sequence[Facts] = made.instructions or facts_of(made.plan, made.planner)
    text = {name: source_of(low) for name, low in made.kernels.items()}
    return [
        KernelReport(
            each.name, each.kind, text.get(each.name, ""), each.bytes, each.least_bytes, each.flops,
            each.on_host, each.times,
        )
        for each in launched(facts)
        if each.kind != "check"
    ]  # fmt: skip


def _parallel_regions(made: Compilation) -> int:
    """Times that a launch splits work over threads; a large library call is taken to do it once."""
    split = getattr(made.backend, "parallel_regions", None)
    if split is None or made.backend.is_light(made.instructions):  # a GPU, or a single thread
        return 0
    assert made.plan is not None
    kernels = made.kernels
    total = 0
    for each in launched(made.instructions):
        if each.name in kernels:
            total += each.times * split(kernels[each.name].kernel)
        elif each.kind != "check" and not each.on_host and not each.alone:
            total += each.times
    return total


def _least_bytes(made: Compilation) -> int:
    leaves = sum(hint(m.size) * m.dtype.itemsize for m in made.recording.leaves)
    return leaves + sum(hint(node.size) * node.dtype.itemsize for node in made.results)


def explain(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Report:
    """Run a function once, compiled afresh, and report what it was compiled to.

    >>> import monograph as mg
    >>> report = mg.explain(lambda x: mg.softmax(x * 2, 1), mg.ones(64, 64))
    >>> [(kernel.kind, kernel.bytes == kernel.least_bytes) for kernel in report.kernels]
    [('generated', True)]
    """
    record.flush("explain")
    statistics.recent.clear()
    with record.programs.observed() as seen:
        kept = function(*args, **kwargs)
        record.flush("explain")
    report = report_of(*seen)
    report.flushes = [reason for reason, _ in statistics.recent]
    del kept
    return report


def explain_last() -> str:
    """Why the last flushes of this process happened, the latest first.

    Behind those whose program was not there yet stands why it was not.
    """
    lines = []
    for ago, (reason, records) in enumerate(reversed(statistics.recent)):
        line = f"{records} operators, because of: {reason}"
        miss = statistics.misses.get(statistics.counters.flushes - ago)
        lines.append(line if miss is None else f"{line}; {miss}")
    return "\n".join(lines) or "nothing was flushed yet"
