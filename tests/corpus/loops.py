"""Loops of a program, found from the steps that its optimisers took.

Optimisers whose steps come in turns belong to one loop, as the two of a GAN do. One round of a loop
is from one step to the next of the optimiser that steps least often; the loop has settled when
each of its optimisers has stepped three times.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tests.corpus.compare import PROGRAMS, ROOT

THIRD = 3


@dataclass(frozen=True)
class Step:
    """One step of an optimiser, and the state of the process behind it."""

    optimizer: int
    wall: float  # seconds since the process began
    cpu: float  # seconds of all its threads
    executables: int  # made so far, or read from disk
    instantiations: int
    interpreted: int


@dataclass(frozen=True)
class Loop:
    """The steps of one loop, in their order."""

    steps: list[Step]

    def _of_each(self) -> list[list[Step]]:
        numbers = dict.fromkeys(step.optimizer for step in self.steps)
        return [[s for s in self.steps if s.optimizer == number] for number in numbers]

    def rounds(self) -> list[Step]:
        """The steps of the optimiser that steps least often."""
        return min(self._of_each(), key=len)

    def settled(self, count: int = THIRD) -> Step:
        """The step by which each optimiser has stepped so often."""
        last = [steps[min(count, len(steps)) - 1] for steps in self._of_each()]
        return max(last, key=lambda step: step.wall)

    def new_executables(self, count: int = THIRD) -> int:
        """How many were made behind the third step, or a later one."""
        return self.steps[-1].executables - self.settled(count).executables

    def new_sizes(self) -> int:
        """How often one was set up for other sizes, or something new was interpreted."""
        last, third = self.steps[-1], self.settled()
        more = last.instantiations - third.instantiations
        return more + last.interpreted - third.interpreted

    def steady(self) -> list[Step]:
        """The rounds behind the third, or the later half where there are few."""
        rounds = self.rounds()
        return rounds[min(THIRD + 2, len(rounds) // 2) :]

    def _between(self) -> list[tuple[Step, Step]]:
        """Neighbouring steady rounds between which no executable was made."""
        steps = self.steady()
        pairs = list(zip(steps, steps[1:]))
        return [(a, b) for a, b in pairs if a.executables == b.executables] or pairs

    def period(self) -> float:
        """Seconds of a round: the mean, since rounds differ where an epoch ends with a test."""
        return statistics.mean(b.wall - a.wall for a, b in self._between())

    def cpu(self) -> float:
        """Seconds of all threads in a round: the mean."""
        return statistics.mean(b.cpu - a.cpu for a, b in self._between())


def loops_of(steps: list[Step]) -> list[Loop]:
    """The loops, in the order in which they began."""
    places: dict[int, list[int]] = {}
    for place, step in enumerate(steps):
        places.setdefault(step.optimizer, []).append(place)
    borders: list[list[int]] = []
    for each in places.values():
        if borders and each[0] < borders[-1][1]:
            borders[-1][1] = max(borders[-1][1], each[-1])
        else:
            borders.append([each[0], each[-1]])
    return [Loop(steps[low : high + 1]) for low, high in borders]


def steps_of(
    name: str, arguments: str, beginning: Path, implementation: str, **variables: str
) -> list[Step]:
    """Run a program in a process of its own."""
    environment = {
        **os.environ, "CORPUS_BEGINNING": str(beginning), "PYTHONPATH": str(ROOT),
        "PYTHONWARNINGS": "ignore", **variables,
    }  # fmt: skip
    environment.pop("MONOGRAPH_VERIFY", None)
    environment.pop("MONOGRAPH_TIER0_LIMIT", None)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "steps.json"
        done = subprocess.run(
            [sys.executable, str(Path(__file__).parent / "steps.py"), implementation, str(file),
             str(PROGRAMS / f"{name}.py"), *arguments.split()],
            capture_output=True, text=True, env=environment, cwd=PROGRAMS,
        )  # fmt: skip
        if done.returncode:
            raise RuntimeError(f"{name} under {implementation}:\n{done.stderr}")
        return [Step(*each) for each in json.loads(file.read_text())]
