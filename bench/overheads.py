"""What everything but the kernels costs: recording, launching, importing, compiling.

Run `python -m bench.overheads [sections] [--quick]`. Each figure stands beside its budget.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import monograph as mg
from bench.alternate import Spread, no_collector, shortest
from bench.anatomy import compile_here, finish, kernel_seconds
from bench.processes import python
from bench.tables import Section, Table, run_part
from bench.workloads import WORKLOADS
from monograph import record
from monograph.nn import functional as F
from monograph.runtime import openmp
from monograph.runtime.executor import EXECUTOR
from monograph.runtime.program import Program
from tests.models import networks

CHAIN = 1000
WINDOWS = 20  # of a hundred steps, of which the quietest counts
MICRO = "{:.2f} µs"

# --- recording ----------------------------------------------------------------------------------


def chains() -> dict[str, Callable[[Any, Any], Any]]:
    """Operators whose recording is timed, as functions of a tensor and another."""
    return {
        "`x * 1.01` (a number)": lambda x, other: x * 1.01,
        "`x + y` (two tensors)": lambda x, other: x + other,
        "`F.relu(x)`": lambda x, other: F.relu(x),
        "`x.reshape(4, 4)` (a view)": lambda x, other: x.reshape(4, 4),
    }


def record_chain(operator: Callable[[Any, Any], Any], x: Any, other: Any) -> None:
    for _ in range(CHAIN):
        x = operator(x, other)


def recording(quick: bool) -> Table:
    """A chain of small operators is recorded and dropped before anything is computed.

    All take turns, so that a busy neighbour does not find one of them all the time.
    """
    table = Table("Recording an operator", ["operator", "cost", "budget"])
    cases: list[tuple[str, Callable[[], None]]] = []
    for requires_grad in (False, True):
        for name, operator in chains().items():
            x, other = mg.rand(4, 4), mg.rand(4, 4)
            finish()
            x.requires_grad_(requires_grad)
            label = f"{name}, gradients on" if requires_grad else name
            cases.append((label, partial(record_chain, operator, x, other)))
    best = dict.fromkeys([label for label, _ in cases], float("inf"))
    for _ in range(5 if quick else 60):
        for label, chain in cases:
            best[label] = min(best[label], shortest(chain, 1))
            record.flush("nothing is alive")
    for label, seconds in best.items():
        table.rows.append([label, MICRO.format(seconds / CHAIN * 1e6), "≤ 3 µs"])
    return table


# --- a cached step ------------------------------------------------------------------------------


def tiny_step() -> Callable[[], Any]:
    """A training step whose kernels take almost no time."""
    model = networks.mlp(mg.nn, F, (16, 16, 16, 4))
    optimizer = mg.optim.AdamW(model.parameters(), lr=1e-3)
    x, y = mg.rand(8, 16), mg.tensor(np.arange(8) % 4)
    finish()

    def step() -> Any:
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    return step


def waited(step: Callable[[], Any]) -> None:
    step()
    EXECUTOR.synchronize()


def cached_step(quick: bool) -> Table:
    """A step of a tiny MLP that was compiled before: all but its kernels is overhead."""
    table = Table("A cached step beyond its kernels", ["what", "measured", "budget"])
    step = tiny_step()
    for _ in range(5):
        waited(step)
    mg.stats.reset()
    waited(step)
    counts = mg.stats()
    budget = 50 + 4 * counts.recorded
    kernels = kernel_seconds(step, 20 if quick else 200) * 1e6
    windows = 1 if quick else WINDOWS
    rounds = _windows(lambda: waited(step), windows)
    times, host = _quietest(rounds), _quietest(_windows(step, windows))
    beyond = Spread.of(times).median - kernels
    table.rows += [
        ["operators recorded, compilations, launches",
         f"{counts.recorded}, {counts.compilations}, {counts.launches}", "–, 0, 1"],
        ["step, waited for: median of the quietest hundred",
         MICRO.format(Spread.of(times).median), "–"],
        ["step, waited for: median of all windows",
         MICRO.format(Spread.of([t for each in rounds for t in each]).median), "–"],
        ["step, waited for: shortest", MICRO.format(min(times)), "–"],
        ["of which in kernels (sum of shortest)", MICRO.format(kernels), "–"],
        ["beyond kernels, per step", MICRO.format(beyond), f"≤ {budget} µs (50 + 4 per operator)"],
        ["beyond kernels, per operator", MICRO.format(beyond / counts.recorded), "–"],
        ["Python's part, not waiting: median", MICRO.format(Spread.of(host).median), "–"],
    ]  # fmt: skip
    table.rows.append(jit_row(kernels, quick))
    return table


def jit_row(kernels: float, quick: bool) -> list[str]:
    """The same step under `mg.jit`, whose kernels are the same."""
    step = mg.jit(tiny_step())
    for _ in range(5):
        waited(step)
    times = _quietest(_windows(lambda: waited(step), 1 if quick else WINDOWS))
    beyond = Spread.of(times).median - kernels
    return ["`mg.jit`, beyond kernels", MICRO.format(beyond), "≤ 20 µs"]


def _windows(action: Callable[[], object], count: int) -> list[list[float]]:
    """Microseconds of every call, in windows of a hundred calls."""
    return [_each(action, 100) for _ in range(count)]


def _quietest(windows: list[list[float]]) -> list[float]:
    """The window with the least median.

    A neighbour on the same core makes all of Python take half as long again, for seconds.
    """
    return min(windows, key=lambda times: Spread.of(times).median)


def _each(action: Callable[[], object], repeats: int) -> list[float]:
    """Microseconds of every call."""
    times = []
    with no_collector():
        for _ in range(repeats):
            begin = time.perf_counter()
            action()
            times.append((time.perf_counter() - begin) * 1e6)
    EXECUTOR.synchronize()
    return times


def hand_over(quick: bool) -> Table:
    """An empty program, from Python to the executor's thread and back."""
    openmp.module()
    nothing = Program([], 0)

    def launch() -> int:
        frame = EXECUTOR.frame(nothing)
        frame.fill(())
        return EXECUTOR.submit(frame)

    count = 300 if quick else 5000
    there = Spread.of(sorted(_each(lambda: EXECUTOR.wait(launch()), count)))
    away = Spread.of(sorted(_each(launch, count)))
    rows = [
        ["hand over and wait", MICRO.format(there.median), "≤ 10 µs"],
        ["hand over only", MICRO.format(away.median), "–"],
    ]
    return Table("Hand-over to the executor", ["what", "median", "budget"], rows)


# --- processes ----------------------------------------------------------------------------------

IMPORT = """
import time, numpy
start = time.perf_counter()
import monograph
print(time.perf_counter() - start)
"""
FIRST_USE = """
import time
start = time.perf_counter()
import monograph as mg
a = mg.tensor([[1.0, 2.0], [3.0, 4.0]])
text = str(a @ a)
print(time.perf_counter() - start)
"""


def imports(quick: bool) -> Table:
    """Import beyond NumPy, and import with the first printed matmul, in fresh processes."""
    times = 2 if quick else 5
    table = Table("Import and first use", ["what", "shortest", "budget"])
    alone = min(python("-c", IMPORT) for _ in range(times))
    table.rows.append(["`import monograph` beyond NumPy", f"{alone:.3f} s", "≤ 0.25 s"])
    with tempfile.TemporaryDirectory() as kept:
        cold = python("-c", FIRST_USE, cache=kept)
        warm = min(python("-c", FIRST_USE, cache=kept) for _ in range(times))
    rows = [("first use, empty disk cache", cold), ("first use, disk cache kept", warm)]
    table.rows += [[name, f"{seconds:.3f} s", "≤ 0.5 s"] for name, seconds in rows]
    return table


def compile_times(quick: bool) -> Table:
    """Fresh processes, with an empty cache and then, several times, with a kept one.

    Programs: seconds spent on compiling them, or on finding them on disk. First step: the first
    step less a later one, with all else that a first step does: touching new memory, working out
    the shapes of every operator.
    """
    table = Table(
        "Compile times",
        ["model", "programs cold", "from disk", "from disk / cold (≤ 10 %)", "cold budget",
         "first step cold", "first step warm", "compilations cold, warm"],
    )  # fmt: skip
    for name, workload in WORKLOADS.items():
        if workload.large and quick:
            continue
        with tempfile.TemporaryDirectory() as kept:
            measure = ("-m", "bench.workloads", name, "monograph", "--steps", "2")
            runs = [python(*measure, cache=kept) for _ in range(2 if quick else 6)]
        # The shortest of the warm runs: one time slice of another process is as long as they are.
        runs = [runs[0], min(runs[1:], key=lambda run: run["programs"])]
        cold, warm = (max(run["programs"], 1e-4) for run in runs)
        first_cold, first_warm = (max(run["first"] - run["later"], 1e-3) for run in runs)
        budget = f"≤ {workload.budget} s" if workload.budget else "–"
        counts = ", ".join(f"{run['compilations']:.0f}" for run in runs)
        table.rows.append(
            [
                workload.title,
                f"{cold:.3f} s",
                f"{warm:.3f} s",
                f"{warm / cold:.0%}",
                budget,
                f"{first_cold:.2f} s",
                f"{first_warm:.2f} s",
                counts,
            ]
        )
    return table


def compilations(quick: bool) -> Table:
    """How often training compiles: 100 steps with a schedule, clipping and dropout."""
    mg.manual_seed(0)
    model = networks.cnn(mg.nn, F, dropout=0.5)
    optimizer = mg.optim.AdamW(model.parameters(), lr=1e-3)
    factor = networks.cosine_with_warmup(10, 100)
    schedule = mg.optim.lr_scheduler.LambdaLR(optimizer, factor)
    rng = np.random.default_rng(0)
    losses = []
    mg.stats.reset()
    for _ in range(100):
        x = mg.tensor(rng.standard_normal((16, 1, 14, 14), np.float32))
        y = mg.tensor(rng.integers(0, 10, 16))
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        mg.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        losses.append(loss)
    counts = mg.stats()
    rows = [
        ["compilations", str(counts.compilations), "≤ 3"],
        ["flushes", str(counts.flushes), "100"],
        ["native launches", str(counts.launches), "–"],
        ["operators recorded", str(counts.recorded), "–"],
    ]
    title = "100 steps with schedule, clipping and dropout"
    return Table(title, ["what", "count", "expected"], rows)


SECTIONS: dict[str, Section] = {
    "recording": recording,
    "step": cached_step,
    "hand-over": hand_over,
    "compilations": compilations,
    "imports": imports,
    "compile": compile_times,
}

if __name__ == "__main__":
    compile_here()
    sys.exit(run_part(SECTIONS, sys.argv[1:]))
