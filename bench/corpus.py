"""Programs of the corpus, unmodified, under PyTorch eager and under `monograph run`.

Run `python -m bench.corpus [programs] [--quick]`. Each program runs in processes of its own, the
two implementations in turns, from the same weights and data and with the same number of threads.
A hook that both call after every step of an optimiser notes the time; nothing in a program is
edited. The first run of ours has an empty disk cache, the others find it filled.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bench.tables import Section, Table, run_part
from monograph.config import config
from tests.corpus.loops import THIRD, Loop, loops_of, steps_of
from tests.corpus.sizes import LARGER, LONGER, SETTLED

TITLE = "Programs of the corpus"
COLUMNS = [
    "program, loop", "PyTorch, ms", "ours, ms", "PyTorch / ours", "by CPU time",
    "end of step 3: PyTorch", "ours", "ours, from disk", "new executables after step 3",
]  # fmt: skip
ROUNDS = 6


@dataclass(frozen=True)
class Result:
    """What one program gave: the ratio of all its loops together, and of the slowest."""

    name: str
    ratio: float
    lowest: float
    by_cpu: float
    new: int


results: list[Result] = []


def measured(name: str, quick: bool) -> tuple[list[list[Loop]], list[list[Loop]]]:
    """The loops of every round, PyTorch's and ours."""
    arguments = LONGER[name] if quick else f"{LONGER[name]} {LARGER[name]}"
    theirs, ours = [], []
    with tempfile.TemporaryDirectory() as folder:
        beginning = Path(folder) / "beginning.pt"
        variables = {
            "MONOGRAPH_THREADS": str(config.threads),
            "MONOGRAPH_CACHE_DIR": str(Path(folder) / "cache"),
        }
        for _ in range(1 if quick else ROUNDS):
            theirs.append(loops_of(steps_of(name, arguments, beginning, "torch", **variables)))
            ours.append(loops_of(steps_of(name, arguments, beginning, "monograph", **variables)))
    return theirs, ours


def program(name: str, quick: bool) -> Table:
    """One program: a row for each of its loops."""
    table = Table(TITLE, COLUMNS)
    theirs, ours = measured(name, quick)
    count = len(ours[0])
    for n in range(count):
        a, b = [loops[n] for loops in theirs], [loops[n] for loops in ours]
        table.rows.append([name if count == 1 else f"{name}, {n + 1}", *row(name, a, b)])
    pairs = list(zip(theirs, ours))
    each = [
        statistics.median(a[n].period() / b[n].period() for a, b in pairs) for n in range(count)
    ]
    results.append(
        Result(
            name,
            statistics.median(_total(a) / _total(b) for a, b in pairs),
            min(each),
            statistics.median(_cpu(a) / _cpu(b) for a, b in pairs),
            sum(loop.new_executables(SETTLED.get(name, THIRD)) for loop in ours[0]),
        )
    )
    return table


def row(name: str, theirs: list[Loop], ours: list[Loop]) -> list[str]:
    """One loop, in all rounds."""
    median = statistics.median
    ratio = median(a.period() / b.period() for a, b in zip(theirs, ours))
    by_cpu = median(a.cpu() / b.cpu() for a, b in zip(theirs, ours))
    warm = [loop.settled().wall for loop in ours[1:]]
    sizes = ours[0].new_sizes()
    return [
        f"{1e3 * median(loop.period() for loop in theirs):.2f}",
        f"{1e3 * median(loop.period() for loop in ours):.2f}",
        f"{ratio:.2f}",
        f"{by_cpu:.2f}",
        f"{median(loop.settled().wall for loop in theirs):.1f} s",
        f"{ours[0].settled().wall:.1f} s",
        f"{median(warm):.1f} s" if warm else "–",
        f"{ours[0].new_executables(SETTLED.get(name, THIRD))}"
        + (f", {sizes} sizes" if sizes else ""),
    ]


def _total(loops: list[Loop]) -> float:
    """Seconds of one round of every loop."""
    return sum(loop.period() for loop in loops)


def _cpu(loops: list[Loop]) -> float:
    return sum(loop.cpu() for loop in loops)


def summary(quick: bool) -> Table:
    """The median over the programs that ran, and the slowest."""
    columns = ["what", "measured", "wanted"]
    if not results:
        return Table("Corpus: all programs", columns, notes=["no program was run"])
    slowest = min(results, key=lambda result: result.lowest)
    middle = statistics.median(result.ratio for result in results)
    by_cpu = statistics.median(result.by_cpu for result in results)
    settled = sum(not result.new for result in results)
    rows = [
        ["PyTorch / ours, median of programs", f"{middle:.2f}", "≥ 1.3"],
        ["the same by CPU time", f"{by_cpu:.2f}", "–"],
        ["slowest loop", f"{slowest.lowest:.2f} ({slowest.name})", "≥ 0.9"],
        ["programs without a new executable after step 3", f"{settled} of {len(results)}", "all"],
    ]
    return Table("Corpus: all programs", columns, rows)


SECTIONS: dict[str, Section] = {
    **{name: partial(program, name) for name in LONGER},
    "summary": summary,
}

if __name__ == "__main__":
    sys.exit(run_part(SECTIONS, sys.argv[1:]))
