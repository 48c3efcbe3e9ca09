"""Inside a compiled program: its instructions, the time of each, and the bytes that it moves.

`programs_of(step)` are the executables that a step launches; `instructions` says how long each of
their instructions takes; `traffic` counts the bytes that its kernels read and write, and the least
that any program with these inputs and results must. Call `compile_here` first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from monograph import record
from monograph.config import config
from monograph.explain import report_of
from monograph.recorder import current
from monograph.runtime.executor import EXECUTOR
from monograph.runtime.program import FRAMES

Step = Callable[[], object]


def compile_here() -> None:
    """Make every program in this process: one from disk does not say how it was made."""
    config.disk_cache = False


def finish() -> None:
    """Run what is pending and wait for it."""
    record.flush("benchmark")
    EXECUTOR.synchronize()


def programs_of(step: Step) -> list[Any]:
    """The executables that one call of the step launches, in order."""
    found: list[Any] = []
    recorder = current.recorder
    recorder.capture = lambda _, executable, *rest: found.append(executable)
    try:
        step()
        finish()
    finally:
        recorder.capture = None
    return found


# --- time ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class InstructionTime:
    """One instruction of a program: the shortest time that it took."""

    label: str
    microseconds: float
    nbytes: int
    flops: int = 0

    @property
    def speed(self) -> str:
        """GFLOP/s of a library call; GB/s of a kernel, if all its operands come from memory."""
        thousandths = max(self.microseconds, 1e-3) * 1e3
        if self.flops:
            return f"{self.flops / thousandths:.0f} GFLOP/s"
        return f"{self.nbytes / thousandths:.1f} GB/s"


def instructions(step: Step, rounds: int = 10) -> list[InstructionTime]:
    """Every instruction that a step runs, with its shortest time over the rounds."""
    executables = programs_of(step)
    programs = {id(e): e.native.program for e in executables}
    frames = {key: _frames(program) for key, program in programs.items()}
    _profile(frames, True)
    best: dict[tuple[int, int], float] = {}
    for _ in range(rounds):
        step()
        finish()
        for key in programs:
            times = max(frames[key], key=lambda frame: frame.ticket).times
            for n, (begin, end) in enumerate(zip(times, times[1:])):
                took = (end - begin) / 1e3
                best[key, n] = min(took, best.get((key, n), took))
    _profile(frames, False)
    found = []
    for executable in executables:
        labels = executable.native.program.labels
        for n, part in enumerate(executable.instructions()):
            took = best[id(executable), n]
            # Of a library call also the code that it runs; speed of others is that of memory.
            name = f"{labels[n]} {part.name}" if part.kind == "library" else part.name
            flops = part.flops if part.kind == "library" else 0
            found.append(InstructionTime(name, took, part.bytes, flops))
    return found


def _frames(program: Any) -> list[Any]:
    """The program's ring of frames, left as it was."""
    frames = [program.take_frame() for _ in range(FRAMES)]
    for frame in frames:
        program.return_frame(frame)
    return frames


def _profile(frames: dict[int, list[Any]], enabled: bool) -> None:
    for ring in frames.values():
        for frame in ring:
            frame.profile(enabled)


def kernel_seconds(step: Step, rounds: int = 20) -> float:
    """The time that a step spends inside kernels and library calls."""
    return sum(each.microseconds for each in instructions(step, rounds)) / 1e6


# --- bytes --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Traffic:
    """Bytes that the instructions of a step move, and the least possible."""

    instructions: int
    moved: int
    least: int

    @property
    def ratio(self) -> float:
        return self.moved / self.least


def traffic(step: Step) -> Traffic:
    """What a step moves, over all its programs."""
    reports = [report_of(executable.compilation) for executable in programs_of(step)]
    return Traffic(
        sum(len(report.kernels) for report in reports),
        sum(report.bytes for report in reports),
        sum(report.least_bytes for report in reports),
    )
