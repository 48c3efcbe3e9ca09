"""Training steps of whole models, against PyTorch eager and compiled, from the same weights.

Run `python -m bench.models [names] [--quick]`; names are those of `bench.workloads`. Times
alternate within one process; below them stands where our time goes. Peak memory is that of a
process of its own for each framework, which includes the framework itself.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from typing import Any

from bench import pytorch
from bench.alternate import Spread, alternate, ratios
from bench.anatomy import compile_here, finish, instructions, programs_of
from bench.processes import python
from bench.tables import Section, Table, run_part
from bench.workloads import WORKLOADS, Workload, ours, theirs
from monograph.explain import report_of

HEADER = ["model", "Monograph", "PyTorch eager / ours", "torch.compile / ours", "loss differs by"]
MEMORY = [
    "model", "Monograph peak", "PyTorch eager peak", "torch.compile peak", "arena",
    "arena / lower bound (≤ 1.1)",
]  # fmt: skip
SLOWEST = 8


def contestants(workload: Workload, notes: list[str]) -> dict[str, Callable[[], Any]]:
    """The steps, ours first; every one has run once, and its losses are `.item()`s."""
    if pytorch.torch is None:
        return {"ours": ours(workload)}
    eager, weights = theirs(workload, compile_it=False)
    found = {"ours": ours(workload, weights), "eager": eager}
    if pytorch.can_compile():
        compiled, _ = theirs(workload, compile_it=True)
        if pytorch.works(compiled, notes, f"{workload.title}: torch.compile"):
            found["compiled"] = compiled
    return found


def waited(step: Callable[[], Any]) -> None:
    """A step whose loss is read, which waits for all of it."""
    step().item()


def times(name: str, quick: bool) -> Table:
    """One row: step times and ratios."""
    workload = WORKLOADS[name]
    table = Table("Training steps", HEADER)
    steps = contestants(workload, table.notes)
    row = [workload.title]
    differ = "–"
    if "eager" in steps:
        own, other = steps["ours"]().item(), steps["eager"]().item()
        differ = f"{abs(own - other) / abs(other):.1e}"
    calls = {label: partial(waited, step) for label, step in steps.items()}
    measured = alternate(calls, rounds=3 if quick else 15, warmup=2, repeats=_repeats(name))
    row.append(Spread.of(measured["ours"]).show("{:.2f}", 1e3) + " ms")
    for label in ("eager", "compiled"):
        present = label in measured
        row.append(ratios(measured[label], measured["ours"]).show() if present else "–")
    table.rows.append([*row, differ])
    table.notes += where_time_goes(workload.title, steps["ours"], 3 if quick else 10)
    return table


def _repeats(name: str) -> int:
    return 1 if WORKLOADS[name].large else 5


def where_time_goes(title: str, step: Callable[[], Any], rounds: int) -> list[str]:
    """Lines on the instructions that take most of a step."""
    parts = instructions(step, rounds)
    total = sum(part.microseconds for part in parts)
    groups: dict[str, list[Any]] = defaultdict(list)
    for part in parts:
        groups[part.label].append(part)
    lines = [f"{title}: {len(parts)} instructions, {total / 1e3:.2f} ms in them; the slowest:"]
    order = sorted(groups.items(), key=lambda item: -sum(p.microseconds for p in item[1]))
    for label, group in order[:SLOWEST]:
        took = sum(part.microseconds for part in group)
        lines.append(
            f"- {took / 1e3:.2f} ms ({took / total:.0%}), {len(group)} × `{label}`, "
            f"{group[0].speed}"
        )
    return lines


def memory(name: str, quick: bool) -> Table:
    """One row: peak resident memory of a process for each framework, and the arena."""
    workload = WORKLOADS[name]
    table = Table("Memory", MEMORY)
    row = [workload.title]
    frameworks = ["monograph", "eager", "compiled"]
    for framework in frameworks:
        possible = framework == "monograph" or pytorch.torch is not None
        if not possible or (framework == "compiled" and not pytorch.can_compile()):
            row.append("–")
            continue
        found = python("-m", "bench.workloads", name, framework, "--steps", "3")
        row.append(_mebibytes(found["peak"]))
    step = ours(workload)
    step()
    finish()
    plans = [executable.native.plan for executable in programs_of(step)]
    arena, bound = (max(getattr(p, k) for p in plans) for k in ("arena_bytes", "lower_bound"))
    table.rows.append([*row, _mebibytes(arena), f"{arena / max(bound, 1):.2f}"])
    return table


def _mebibytes(nbytes: float) -> str:
    return f"{nbytes / 2**20:.1f} MiB"


COUNTS = [
    "model", "operators recorded", "nodes after expansion", "kernels", "library calls",
    "copies", "distinct kernels", "parallel regions", "bytes / least",
]  # fmt: skip


def counts(name: str, quick: bool) -> Table:
    """One row: what a step was compiled to."""
    workload = WORKLOADS[name]
    step = ours(workload)
    step()
    finish()
    executable = programs_of(step)[-1]
    report = report_of(executable.compilation)
    generated = [kernel.name for kernel in report.kernels if kernel.kind == "generated"]
    numbers = (
        report.nodes_recorded, report.meta_nodes, len(generated),
        [kernel.kind for kernel in report.kernels].count("library"),
        [kernel.kind for kernel in report.kernels].count("copy"), len(set(generated)),
        report.parallel_regions,
    )  # fmt: skip
    ratio = f"{report.bytes / report.least_bytes:.2f}"
    row = [workload.title, *map(str, numbers), ratio]
    return Table("Counts of a training step", COUNTS, [row])


def section(measure: Callable[[str, bool], Table], name: str) -> Section:
    """A section that is left out of quick runs if its model is large."""

    def run(quick: bool) -> Table:
        if quick and WORKLOADS[name].large:
            return Table(WORKLOADS[name].title, [], notes=["left out of quick runs"])
        return measure(name, quick)

    return run


SECTIONS: dict[str, Section] = {
    **{name: section(times, name) for name in WORKLOADS},
    **{f"{name}-counts": section(counts, name) for name in WORKLOADS},
    **{f"{name}-memory": section(memory, name) for name in WORKLOADS},
}

if __name__ == "__main__":
    compile_here()
    sys.exit(run_part(SECTIONS, sys.argv[1:]))
