"""Runs a program of the corpus under PyTorch and under `monograph run`, and compares the losses."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROGRAMS = Path(__file__).parent / "programs"
NUMBER = re.compile(r"-?\b(?:\d+\.\d+(?:e[-+]?\d+)?|nan|inf)\b")


@dataclass(frozen=True)
class Outcome:
    """What a program printed, and how it ended."""

    lines: list[str]
    errors: str
    code: int

    def losses(self) -> list[list[float]]:
        """The numbers of every line about a loss."""
        shown = [line for line in self.lines if line.startswith("loss")]
        return [[float(number) for number in NUMBER.findall(line)] for line in shown]

    def rest(self) -> list[str]:
        """The other lines, which must be equal."""
        return [line for line in self.lines if not line.startswith("loss")]


def run(name: str, beginning: Path, implementation: str) -> Outcome:
    """The outcome of one program under "torch" or "monograph"."""
    program = [str(PROGRAMS / f"{name}.py")]
    if implementation == "monograph":
        program = ["-m", "monograph.cli.main", "run", *program]
    environment = {
        **os.environ, "CORPUS_BEGINNING": str(beginning), "PYTHONPATH": str(ROOT),
        "PYTHONWARNINGS": "ignore",
    }  # fmt: skip
    environment.pop("MONOGRAPH_VERIFY", None)  # the verifier is for the tests of the compiler
    environment.pop("MONOGRAPH_TIER0_LIMIT", None)
    done = subprocess.run(
        [sys.executable, *program], capture_output=True, text=True, env=environment, cwd=PROGRAMS
    )
    return Outcome(done.stdout.splitlines(), done.stderr, done.returncode)


def difference(theirs: Outcome, ours: Outcome, tolerance: float) -> str | None:
    """What is not the same, or None."""
    if theirs.code:
        return f"the program fails under PyTorch:\n{theirs.errors}"
    if ours.code:
        return f"the program fails under monograph run:\n{ours.errors}"
    if theirs.rest() != ours.rest():
        return f"PyTorch prints {theirs.rest()}\nmonograph run {ours.rest()}"
    pairs = list(zip(theirs.losses(), ours.losses()))
    if len(theirs.losses()) != len(ours.losses()) or not pairs:
        return f"{len(theirs.losses())} lines of losses under PyTorch, {len(ours.losses())} here"
    for number, (expected, found) in enumerate(pairs):
        if len(expected) != len(found) or not all(
            abs(a - b) <= tolerance * max(1.0, abs(a)) for a, b in zip(expected, found)
        ):
            return f"line {number}: {expected} under PyTorch, {found} here"
    return None
