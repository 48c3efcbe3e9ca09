"""Families: the recordings of one structure, and the programs for many sizes that serve them.

The first sizes of a structure are compiled as constants. When the structure comes with others, what
varies becomes symbols of one program. A later recording needs no compilation if it fits: its
numbers have the form that the program was made for, and the facts that the program assumes hold.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import Any

from .. import statistics
from ..config import config
from ..ir.extent import Decisions
from .pipeline import Executable, Template, compile_template
from .recording import Recording
from .sizes import Form, Numbers, Structure, form_of, opened

PROGRAMS = 8  # attempts per structure: then each new size is compiled by itself
SAMPLES = 8  # sizes that are remembered to find out what varies
STEADY = 32  # runs of one size after another, after which it gets a program of its own


@dataclass
class Sized:
    """A program for many sizes."""

    form: Form
    decisions: Decisions
    template: Template
    wanted: frozenset[int]
    writes: tuple[tuple[int, int], ...]

    def fit(self, numbers: Numbers, recording: Recording) -> dict[str, int] | None:
        """The values of the symbols in this recording, if the program may run it."""
        if self.writes != recording.writes or not self.wanted.issuperset(recording.wanted):
            return None
        values = self.form.values(numbers)
        if values is None or not self.decisions.hold(values):
            return None
        return values if self.template.shapes_at(values) == recording.shapes else None


@dataclass
class Family:
    """All that is known of one structure."""

    samples: list[Numbers] = field(default_factory=list)
    programs: list[Sized] = field(default_factory=list)
    failed: set[Any] = field(default_factory=set)  # patterns of forms, and what was wanted
    latest: Any = None  # the executable that ran last
    runs: int = 0  # of the latest, one after another

    def is_steady(self, executable: Executable) -> bool:
        """Count a run. Whether the sizes stay as they are: then constants are worth compiling."""
        if executable is not self.latest:
            self.latest, self.runs = executable, 0
        self.runs += 1
        return self.runs > STEADY


@dataclass
class Member:
    """One recording of a family."""

    family: Family
    structure: Structure
    recording: Recording

    def find(self) -> Executable | None:
        """A program for many sizes that exists, set up for these."""
        for program in self.family.programs:
            executable = self._set_up(program)
            if executable is not None:
                return executable
        return None

    def note(self) -> None:
        """Remember the sizes."""
        numbers, family = self.structure.numbers, self.family
        known = [sample for sample in family.samples if sample != numbers]
        family.samples = [*known, numbers][-SAMPLES:]

    def make(self, backend: Any, patience: int) -> Executable | None:
        """A new program for many sizes, set up for these; None where sizes are to be fixed.

        `patience` is how many other sizes must have come before.
        """
        self.note()
        family, recording = self.family, self.recording
        attempts = len(family.programs) + len(family.failed)
        if len(family.samples) <= patience or attempts >= PROGRAMS:
            return None
        form = form_of(family.samples, self.structure.leading)
        pattern = (form.pattern, recording.wanted, recording.writes)
        if pattern in family.failed or not form.symbols:
            return None
        program = _compiled(form, recording, backend)
        if program is None:
            family.failed.add(pattern)
            return None
        family.programs.insert(0, program)
        return self._set_up(program)

    def _set_up(self, program: Sized) -> Executable | None:
        """The program at the sizes of this recording, if it may run it."""
        values = program.fit(self.structure.numbers, self.recording)
        if values is None:
            return None
        try:
            executable = program.template.bind(values)
        except (RuntimeError, AssertionError) as problem:  # a library declines these sizes
            _report(problem)
            return None
        statistics.counters.instantiations += 1
        executable.family = self.family
        return executable  # type: ignore[no-any-return]


def _compiled(form: Form, recording: Recording, backend: Any) -> Sized | None:
    decisions = Decisions(len(recording.slots))
    try:
        template = compile_template(opened(recording, form.sizes), backend, decisions)
    except Exception as problem:  # whatever needs a number, and there is none: fix the sizes
        _report(problem)
        return None
    statistics.note_compilation()
    return Sized(form, decisions, template, frozenset(recording.wanted), recording.writes)


def _report(problem: Exception) -> None:
    if config.verbosity:
        text = f"monograph: sizes are compiled as constants: {type(problem).__name__}: {problem}"
        print(text, file=sys.stderr)
