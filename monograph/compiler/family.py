"""Families: the recordings of one structure, and the programs for many sizes that serve them.

The first sizes of a structure are compiled as constants. When the structure comes with others, what
varies becomes symbols of one program. A later recording needs no compilation if it fits: its
numbers have the form that the program was made for, and the facts that the program assumes hold.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from .. import statistics
from ..config import config
from ..ir.extent import Assigned, Decisions
from .digest import digest_of
from .disk import shelf
from .pipeline import Executable, Template, compile_template
from .recording import Recording
from .sizes import Form, Numbers, Structure, forms_of, opened

PROGRAMS = 8  # attempts per structure: then each new size is compiled by itself
SAMPLES = 8  # sizes that are remembered to find out what varies
WAIT = 3  # recordings of new sizes, of which the last makes a program that takes long to make
STEADY = 32  # runs of one size after another, after which it gets a program of its own


@dataclass
class Sized:
    """A program for many sizes."""

    form: Form
    decisions: Decisions
    template: Template
    wanted: frozenset[int]
    writes: tuple[tuple[int, int], ...]

    def fit(self, numbers: Numbers, recording: Recording) -> Assigned | None:
        """The values of the symbols in this recording, if the program may run it."""
        if self.writes != recording.writes or not self.wanted.issuperset(recording.wanted):
            return None
        values = self.form.values(numbers)
        if values is None or not self.decisions.hold(values):
            return None
        return values if self.template.shapes_at(values) == recording.shapes else None

    def values_of(self, sizes: Sequence[int]) -> Assigned | None:
        """The values of the symbols, given the sizes of leaves alone; None if it does not fit.

        Nothing was recorded at these sizes, and of an axis of one place it might have been
        something else: `squeeze` leaves it out.
        """
        values = self.form.values_of(sizes)
        if values is None or 1 in values.values():
            return None
        return values if self.decisions.hold(values) else None


@dataclass
class Family:
    """All that is known of one structure."""

    samples: list[Numbers] = field(default_factory=list)
    programs: list[Sized] = field(default_factory=list)
    failed: set[Any] = field(default_factory=set)  # patterns of forms, and what was wanted
    made: set[Any] = field(default_factory=set)  # the same of `programs`
    recalled: bool = False  # whether the disk was looked at
    latest: Any = None  # the executable that ran last
    runs: int = 0  # of the latest, one after another
    waited: int = 0  # times that a program was put off, to see more sizes
    kept: int = 0  # how many of its sizes this process has put on disk

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

    def meets_new_sizes(self) -> bool:
        """Whether others came before, and not these."""
        samples = self.family.samples
        return bool(samples) and self.structure.numbers not in samples

    def waits(self) -> bool:
        """Whether the next program is to wait for more sizes than these, which are noted."""
        self.note()
        self.family.waited += 1
        return self.family.waited < WAIT

    def note(self) -> None:
        """Remember the sizes."""
        numbers, family = self.structure.numbers, self.family
        known = [sample for sample in family.samples if sample != numbers]
        family.samples = [*known, numbers][-SAMPLES:]

    def make(self, backend: Any) -> Executable | None:
        """A new program for many sizes, set up for these; None where sizes are to be fixed."""
        self.note()
        family = self.family
        attempts = len(family.programs) + len(family.failed)
        if len(family.samples) < 2 or attempts >= PROGRAMS:
            return None
        name = self._name(backend)
        executable = self._made(family.samples, name, backend)
        if executable is not None and name is not None:
            shelf.keep(name, json.dumps(family.samples).encode())
        return executable

    def recall(self, backend: Any) -> Executable | None:
        """The program for many sizes that an earlier process made, set up for these.

        What is on disk is how it was made, and the code of its kernels.
        """
        family = self.family
        if family.recalled or family.programs:
            return None
        family.recalled = True
        name = self._name(backend)
        stored = None if name is None else shelf.fetch(name)
        if name is None or stored is None:
            return None
        try:
            samples = [tuple(map(int, sample)) for sample in json.loads(stored)]
        except (ValueError, TypeError):
            return None
        if not samples or {len(sample) for sample in samples} != {len(self.structure.numbers)}:
            return None
        executable = self._made(samples, name, backend)
        if family.programs:
            family.samples = samples[-SAMPLES:]
        return executable

    def _name(self, backend: Any) -> str | None:
        """The name of this structure on disk; None where it is not kept."""
        identity = getattr(backend, "identity", None)
        if not config.disk_cache or identity is None:
            return None
        closed = opened(self.recording, [-1] * len(self.structure.numbers))
        return digest_of(closed, f"{identity()}\nfor many sizes")

    def _made(self, samples: list[Numbers], name: str | None, backend: Any) -> Executable | None:
        """A program for what these sizes have in common, set up for this recording's."""
        family, recording = self.family, self.recording
        for form in forms_of(samples, self.structure, name):
            pattern = (form.pattern, recording.wanted, recording.writes)
            if pattern in family.failed or not form.symbols:
                continue
            if pattern in family.made and not form.exact:
                continue  # it would decide as before
            program = _compiled(form, recording, backend)
            if program is None:
                family.failed.add(pattern)
                continue
            family.programs.insert(0, program)
            family.waited = 0
            family.made.add(pattern)
            executable = self._set_up(program)
            if executable is not None:
                return executable
        return None

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
        executable.family, executable.program = self.family, program
        return executable  # type: ignore[no-any-return]


def _compiled(form: Form, recording: Recording, backend: Any) -> Sized | None:
    decisions = Decisions(len(recording.slots))
    try:
        template = compile_template(opened(recording, form.sizes), backend, decisions)
    except Exception as problem:  # whatever needs a number, and there is none: fix the sizes
        _report(problem)
        return None
    if template.compiled:
        statistics.note_compilation()
    else:
        statistics.counters.programs_from_disk += 1
    return Sized(form, decisions, template, frozenset(recording.wanted), recording.writes)


def _report(problem: Exception) -> None:
    if config.verbosity:
        text = f"monograph: sizes are compiled as constants: {type(problem).__name__}: {problem}"
        print(text, file=sys.stderr)
