"""Inside a compiled program: its instructions, the time of each, and the bytes that it moves.

`programs_of(step)` are the executables that a step launches; `instructions` says how long each of
their instructions takes; `traffic` counts the bytes that its kernels read and write, and the least
that any program with these inputs and results must.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from monograph import record
from monograph.backends.cpu import library
from monograph.compiler.plan import KernelStep
from monograph.ir.node import Node
from monograph.runtime.executor import EXECUTOR
from monograph.runtime.program import FRAMES

Step = Callable[[], object]


def finish() -> None:
    """Run what is pending and wait for it."""
    record.flush("benchmark")
    EXECUTOR.synchronize()


def programs_of(step: Step) -> list[Any]:
    """The executables that one call of the step launches, in order."""
    found: list[Any] = []
    recorder = record.recorder()
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

    @property
    def bandwidth(self) -> float:
        """GB/s, if all its operands come from memory once."""
        return self.nbytes / max(self.microseconds, 1e-3) / 1e3


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
        for n, (label, nbytes) in enumerate(described(executable)):
            found.append(InstructionTime(label, best[id(executable), n], nbytes))
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


def described(executable: Any) -> list[tuple[str, int]]:
    """(label, bytes of its operands) of every instruction of a program."""
    made = executable.compilation
    kernel_bytes = {low.kernel.name: _kernel_bytes(low) for low in made.lowered.values()}
    labels = executable.native.program.labels
    found: list[tuple[str, int]] = []
    for step in made.plan.steps:
        if isinstance(step, KernelStep):
            found.append((step.name, kernel_bytes[step.name]))
            continue
        shapes = " ".join("×".join(map(str, o.shape)) for o in step.operands.values())
        nbytes = sum(4 * _elements(o.shape) for o in step.operands.values())
        for _ in library.prepare(step.kind, step.operands, step.options) or ():
            found.append((f"{labels[len(found)]} {shapes}", nbytes))
    return found


def _elements(shape: tuple[int, ...]) -> int:
    count = 1
    for extent in shape:
        count *= extent
    return count


def _kernel_bytes(low: Any) -> int:
    """Bytes of all arrays that a kernel reads and writes; scratch of a row stays in cache."""
    total = 0
    for use, what in low.pairs():
        if use.role == "row":
            continue
        elements = what.size if isinstance(what, Node) else use.elements
        both_ways = use.role in ("inout", "partials")
        total += elements * use.dtype.itemsize * (2 if both_ways else 1)
    return total


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
    count = moved = least = 0
    for executable in programs_of(step):
        parts = described(executable)
        count += len(parts)
        moved += sum(nbytes for _, nbytes in parts)
        least += _least(executable)
    return Traffic(count, moved, least)


def _least(executable: Any) -> int:
    """Every input read once, every result written once."""
    made = executable.compilation
    inputs = sum(meta.size * meta.dtype.itemsize for meta in made.recording.leaves)
    return inputs + sum(executable.native.sizes)
