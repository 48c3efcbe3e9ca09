"""The programs of this process: found by the key of a recording, on disk, or compiled.

A program whose results include those wanted now serves again, so that a variable that happens to
be alive does not cost a compilation. Recordings that differ in sizes only share a program, after
the first sizes were compiled as constants; sizes that stay get constants again. A small recording
that was never seen before is interpreted at once and compiled when it comes again: a new cell of a
notebook answers in milliseconds. A recording that keeps coming with another number of the same
turns, as that of an episode does, or of calls that stand in several programs already, is run call
by call, until that has taken as long as compiling it would, or it comes again at once and takes
long: then it is a step of a loop.
"""

from __future__ import annotations

import gc
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import prod
from typing import TYPE_CHECKING, Any, cast

from . import backends, statistics
from .compiler.digest import digest_of
from .compiler.disk import shelf
from .compiler.family import Family, Member
from .compiler.periods import TurnsOf, find_runs, refrain
from .compiler.pipeline import Compilation, Executable, compile_recording
from .compiler.recording import BACKWARD, Recording
from .compiler.sizes import structure_of
from .config import config
from .ir import dtypes
from .ir.operator import Operator

if TYPE_CHECKING:
    from .backends.reference import ByNumPy

SHARED = 512  # sizes that programs for many sizes stay set up for
FAMILIES = 64  # structures that are remembered at least
ENTRIES = 1 << 15  # of all programs together that run by calls: each takes some 3 KB
KEPT = 3  # sizes of one structure that go to disk
SMALL = 1 << 14  # elements of all leaves together, up to which a recording may be interpreted
TURNS = 8  # times that each operator of a recording comes on average where it is a loop's
NEAR = 4  # meetings of interpreted recordings within which a step of a loop comes again
SOON = 50  # further runs within which compiling a step of a loop is to pay
PER_LEAF = 32  # calls for each leaf, from which on a recording is a loop rather than a deep model
LONG = 2.0  # seconds of compiling for which it is to pay within as many runs as there were
KIN = 4  # programs that most calls of a recording stand in, if it is one of ever more
FEW = 3  # the same, of one that takes so many seconds to compile:
DEAR = 0.5
MOST = 0.9  # of the calls
PACE = 0.005  # seconds that a compilation takes for each entry, until some were timed
LIGHT = 1 << 24  # elements of all leaves and results, up to which NumPy's time is bearable


@dataclass(frozen=True)
class _Interpreted:
    """A program that NumPy runs, and how long its recording was interpreted in all."""

    program: ByNumPy
    length: int  # entries of the recording
    lengths: set[int]  # of all recordings with other numbers of the same turns
    before: float  # seconds that programs for the same recording took before it
    met: int  # the number of its last meeting among those of all interpreted recordings
    times: int = 1  # that it was met
    family: Family | None = None  # that waits for more sizes

    @property
    def seconds(self) -> float:
        return self.before + self.program.seconds


class Programs:
    """All programs of this process, by the key of their recording."""

    def __init__(self) -> None:
        self._by_key: dict[Any, list[Executable]] = {}
        self._recorded: set[Any] = set()  # the parts of these keys that no setting changes
        self._met: set[Any] = set()  # keys that were interpreted when they came first
        self._lengths: dict[Any, set[int]] = {}  # by operators, see `refrain`: how many came
        # By operator and shapes, how many programs have such calls; by `refrain`, are like that.
        self._standing: dict[Any, int] = {}
        self._interpreted: dict[Any, _Interpreted] = {}
        self._meetings = 0  # of recordings that were interpreted
        self.pace = PACE  # as `PACE`, of late
        self._families: dict[Any, Family] = {}  # by structure: programs for many sizes
        self._shared: deque[Any] = deque()  # keys that such programs were set up for, oldest first
        self._steady: set[Any] = set()  # keys that are worth a program of their own
        self._seen: list[Compilation] | None = None

    @contextmanager
    def observed(self) -> Iterator[list[Compilation]]:
        """Compile everything afresh within, and collect the compilations."""
        self._seen = []
        try:
            yield self._seen
        finally:
            self._seen = None

    def find(
        self, key: Any, wanted: tuple[int, ...], writes: tuple[tuple[int, int], ...],
        often: bool = False,
    ) -> Executable | None:  # fmt: skip
        """A program for this recording that produces at least what is wanted.

        One that is to run `often`, as those that `mg.jit` keeps, is not interpreted.
        """
        if self._seen is not None:
            return None
        for executable in self._by_key.get(key, ()):
            if executable.writes == writes and (
                executable.outputs == wanted or set(executable.outputs) >= set(wanted)
            ):
                family = getattr(executable, "family", None)
                if family is None or not family.is_steady(executable):
                    return executable
                self._steady.add(key)
                self._by_key.pop(key, None)  # another thread may have been here
                return None
        held = self._interpreted.get(key)
        if held is not None and not often:
            return self._interpreted_again(key, held, wanted, writes)
        return None

    def make(
        self, key: Any, recording: Recording, backend: str, often: bool = False, again: bool = False
    ) -> Executable:
        """Find the program on disk, interpret it for now, or compile it and keep it.

        If it is sure to come `again`, it is not interpreted for being small.
        """
        started = time.perf_counter()
        try:
            with _no_collector():
                return self._make(key, recording, backend, often, again)
        finally:
            statistics.counters.program_seconds += time.perf_counter() - started
            statistics.note_span("make the program", started)

    def _make(
        self, key: Any, recording: Recording, backend: str, often: bool, again: bool
    ) -> Executable:
        if self._seen is not None:
            member = self._member(key, recording, backend)
            lookup = self._lookup(key, recording, _digest(recording, backend), member)
            return self._compile(key, recording, backend, None, lookup)
        others, fresh, many = None, False, False
        if backend == "cpu" and not often:
            others, fresh, many = self._others(recording)
        if others is not None and fresh:  # nothing serves it, and to ask the disk takes a while
            return cast("Executable", self._interpret(key, recording, others))
        member = self._member(key, recording, backend)
        executable = None if member is None else member.find()
        if executable is not None:
            return self._share(key, executable, lambda: _digest(recording, backend))
        if others is not None and many and self._is_rare(key, member):
            made = self._interpret(key, recording, others)
            if made is not None:
                return made
        digest = _digest(recording, backend)
        executable = _restore(digest, backend)
        if executable is not None:
            if member is not None:
                member.note()
                if getattr(executable, "shared", False):  # it was set up for these sizes
                    executable.family = member.family  # type: ignore[attr-defined]
                    return self._share(key, executable, None)
            self._hold(key, executable)
            return executable
        if member is not None and (member.family.samples or not _is_small(recording)):
            executable = member.recall(backends.load(backend))  # a small one is interpreted first
            if executable is not None:
                return self._share(key, executable, lambda: digest)
        if not often and backend == "cpu" and self._is_to_wait(key, recording, member):
            assert member is not None
            made = self._interpret(key, recording, others or set(), member.family)
            if made is not None:
                return made
        lookup = self._lookup(key, recording, digest, member)
        if member is not None:
            executable = member.make(backends.load(backend))
            if executable is not None:
                statistics.note_miss(f"{lookup}; made for many sizes")
                return self._share(key, executable, lambda: digest)
        if often or backend != "cpu":
            return self._compile(key, recording, backend, digest, lookup)
        if others is not None:
            held = self._interpreted.get(key)
            if held is None or not self._is_worth_compiling(held):
                made = self._interpret(key, recording, others)
                if made is not None:
                    return made
            self._interpreted.pop(key, None)
        elif key not in self._met and not again and _is_small(recording):
            self._met.add(key)
            self._note_meeting()
            return self._by_numpy(recording)
        return self._compile(key, recording, backend, digest, lookup)

    def _others(self, recording: Recording) -> tuple[set[int] | None, bool, bool]:
        """How long recordings were that have other numbers of the same turns, as episodes do.

        Each would be a program of its own, and no bound is known for how many there are. None where
        nothing speaks against a program. Also whether this length is new among others, and whether
        there are many programs like it.
        """
        if not config.tier0_limit:
            return None, False, False
        turns = refrain(_computing(recording))
        lengths = self._lengths.setdefault(turns, set())
        if len(self._lengths) > SHARED:
            del self._lengths[next(iter(self._lengths))]
        fresh = len(recording.entries) not in lengths
        lengths.add(len(recording.entries))
        if len(lengths) > 1 and _is_light(recording):
            return lengths, fresh, False
        enough = FEW if self.pace * len(recording.entries) > DEAR else KIN
        many = self._standing.get(turns, 0) >= enough or self._has_kin(recording, enough)
        return lengths if many or self._is_long(recording) else None, False, many

    def _is_rare(self, key: Any, member: Member | None) -> bool:
        """Whether to run it by calls without asking the disk, or for a program for its sizes."""
        held = self._interpreted.get(key)
        if held is not None or member is None:
            return held is None or not self._is_worth_compiling(held)
        member.note()
        return len(member.family.samples) < KIN

    def _is_to_wait(self, key: Any, recording: Recording, member: Member | None) -> bool:
        """Whether to see more sizes before a program for many is made, since that takes long.

        Sequences of two batches may have one length in common by chance.
        """
        if not config.tier0_limit or member is None or not member.meets_new_sizes():
            return False
        held = self._interpreted.get(key)
        if held is not None and self._is_worth_compiling(held):
            return False
        dear = self.pace * len(recording.entries) > DEAR
        return dear and _is_light(recording) and member.waits()

    def _is_long(self, recording: Recording) -> bool:
        """Whether it is a loop without a loss that takes long to compile, as over all pixels."""
        entries = recording.entries
        if self.pace * len(entries) < LONG or any([e.operator is BACKWARD for e in entries]):
            return False
        rolled = sum([(run.turns - 1) * run.period for run in find_runs(recording).values()])
        each = len(entries) / max(len(recording.leaves), 1)
        return each > PER_LEAF and self.pace * (len(entries) - rolled) > LONG

    def _has_kin(self, recording: Recording, enough: int) -> bool:
        """Whether most of its calls stand in several programs already: there may be ever more."""
        calls = _calls(recording)
        known = sum([self._standing.get(call, 0) >= enough for call in calls])
        return known >= MOST * len(calls) > 0

    def _interpreted_again(
        self, key: Any, held: _Interpreted, wanted: tuple[int, ...],
        writes: tuple[tuple[int, int], ...],
    ) -> Executable | None:  # fmt: skip
        """A program that was interpreted before, but not so often that compiling it pays."""
        program = held.program
        if program.writes != writes or not set(program.outputs) >= set(wanted):
            return None
        if self._is_worth_compiling(held) or (held.family is not None and held.family.programs):
            return None
        self._note_interpreted(key, replace(held, met=self._meetings, times=held.times + 1))
        return program

    def _is_worth_compiling(self, held: _Interpreted) -> bool:
        """Whether a recording has cost as much as compiling it would, or is about to in a loop.

        The second number of turns may be that of another loop, and stay.
        """
        again = self._meetings - held.met <= NEAR
        if again and len(held.lengths) == 2:
            return True
        cost = self.pace * held.length
        further = held.times if cost > LONG else SOON
        return held.seconds + (further * held.program.latest if again else 0) > cost

    def _interpret(
        self, key: Any, recording: Recording, lengths: set[int], family: Family | None = None
    ) -> Executable | None:
        """A program that runs call by call, and is kept; None if NumPy would take too long."""
        made = self._by_calls(recording) if not _is_light(recording) else self._by_numpy(recording)
        if made is None:
            return None
        held = self._interpreted.get(key)
        length, before = len(recording.entries), 0.0 if held is None else held.seconds
        times = 1 if held is None else held.times + 1
        held = _Interpreted(made, length, lengths, before, self._meetings, times, family)
        self._note_interpreted(key, held)
        self._let_go()
        return held.program

    def _let_go(self) -> None:
        """Forget the programs that were not met for longest, if all together are too large."""
        left = sum([held.length for held in self._interpreted.values()])
        while left > ENTRIES and len(self._interpreted) > 1:
            left -= self._interpreted.pop(next(iter(self._interpreted))).length

    def _by_calls(self, recording: Recording) -> ByNumPy | None:
        """A program that runs call by call, if that is possible."""
        from .backends import piecewise  # not before it is needed: it takes a while

        made = piecewise.interpreted(recording, self._make_call)
        if made is not None:
            made.turns = TurnsOf(recording)
        return made

    def _by_numpy(self, recording: Recording) -> ByNumPy:
        """A program that NumPy runs, call by call where that is possible."""
        made = self._by_calls(recording)
        if made is None:
            made = cast("ByNumPy", compile_recording(recording, backends.load("reference")))
            made.turns = TurnsOf(recording)
        return made

    def _make_call(self, recording: Recording) -> Executable:
        """A program for a single call that is dear."""
        key = (recording, config.backend, config.onednn, config.bounds_checks)
        return self.make(key, recording, config.backend, often=True)

    def _note_interpreted(self, key: Any, held: _Interpreted) -> None:
        self._interpreted.pop(key, None)  # it goes to the end: the latest
        self._interpreted[key] = held
        self._note_meeting()

    def _note_meeting(self) -> None:
        self._meetings += 1
        statistics.counters.interpreted += 1

    def _lookup(
        self, key: Any, recording: Recording, digest: str | None, member: Member | None
    ) -> str:
        """Where a program for this recording is found, or why there is none."""
        for each in self._by_key.get(key, ()):
            if each.writes == recording.writes and set(each.outputs) >= set(recording.wanted):
                return "found in memory"
        if digest is not None and shelf.path(digest).exists():
            return "found on disk"
        return f"not found: {self._absence(key, member)}, {_not_on_disk(digest)}"

    def _hold(self, key: Any, executable: Executable) -> None:
        self._by_key.setdefault(key, []).append(executable)
        self._recorded.add(key[0])

    def _absence(self, key: Any, member: Member | None) -> str:
        """Why no program in memory serves a recording."""
        if self._by_key.get(key):
            return "other results of it were needed so far"
        if key in self._met:
            return "it was interpreted when it came first"
        if key in self._steady:
            return "its sizes stay, and get a program of their own"
        if key[0] in self._recorded:
            return "the backend or a setting changed"
        if member is not None and member.family.samples:
            known, numbers = member.family.samples[-1], member.structure.numbers
            changes = [f"{a} → {b}" for a, b in zip(known, numbers, strict=True) if a != b]
            return f"other sizes than before ({', '.join(dict.fromkeys(changes)) or 'none'})"
        return "these operators were not recorded before"

    def _member(self, key: Any, recording: Recording, backend: str) -> Member | None:
        """The recording among those that differ in sizes only, where programs can be shared."""
        if key in self._steady or not getattr(backends.load(backend), "MANY_SIZES", False):
            return None
        structure = structure_of(recording)  # what integers are divided into follows the default
        known = (structure.key, dtypes.get_default_dtype(), *key[1:])
        family = self._families.get(known)
        if family is None:
            self._forget_families(len(recording.entries))
            family = self._families[known] = Family()
        return Member(family, structure, recording)

    def _forget_families(self, length: int) -> None:
        """Where structures of this length come without end, forget those that no program serves."""
        if len(self._families) < max(FAMILIES, ENTRIES // length):
            return
        idle = (known for known, family in self._families.items() if not family.programs)
        oldest = next(idle, None)
        if oldest is not None:
            del self._families[oldest]

    def _share(
        self, key: Any, executable: Executable, named: Callable[[], str | None] | None
    ) -> Executable:
        """Keep a program that was set up for these sizes, and let go of the oldest of many.

        The first of a family are kept on disk as well: the next process runs no pass for them.
        """
        image, family = getattr(executable, "image", None), getattr(executable, "family", None)
        if named is not None and image is not None and family is not None:
            executable.image = None  # type: ignore[attr-defined]
            if family.kept < KEPT and (digest := named()) is not None:
                family.kept += 1
                shelf.store(digest, image())
        self._hold(key, executable)
        self._shared.append(key)
        if len(self._shared) > SHARED:
            oldest = self._shared.popleft()
            held = self._by_key.pop(oldest, [])
            self._recorded.discard(oldest[0])
            kept = [each for each in held if getattr(each, "family", None) is None]
            if kept:
                self._by_key[oldest] = kept
                self._recorded.add(oldest[0])
        return executable

    def _compile(
        self, key: Any, recording: Recording, backend: str, digest: str | None, lookup: str
    ) -> Executable:
        if self._seen is None:
            statistics.note_miss(lookup)
        statistics.note_compilation()
        started = time.perf_counter()
        executable = compile_recording(recording, backends.load(backend), digest)
        if backend == "cpu" and key[0] is not recording:  # not for a single call
            for part in {*_calls(recording), refrain(_computing(recording))}:
                self._standing[part] = self._standing.get(part, 0) + 1
            took = (time.perf_counter() - started) / len(recording.entries)
            self.pace += (took - self.pace) / 4
        self._hold(key, executable)
        made: Compilation | None = getattr(executable, "compilation", None)
        if self._seen is not None and made is not None:
            made.lookup = lookup
            self._seen.append(made)
        return executable


@contextmanager
def _no_collector() -> Iterator[None]:
    """Python's collector, which walks over all objects of the process, waits while within.

    It would run dozens of times, and a compilation leaves hardly anything for it to find.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _computing(recording: Recording) -> list[Operator]:
    """The operators of a recording but for views, which take no time."""
    return [entry.operator for entry in recording.entries if not entry.operator.view]


def _calls(recording: Recording) -> list[Any]:
    """Operators and the shapes of their results, but for views."""
    found: list[Any] = []
    at = 0
    for entry in recording.entries:
        if not entry.operator.view:
            found.append((entry.operator, recording.shapes[at : at + entry.results]))
        at += entry.results
    return found


def _is_light(recording: Recording) -> bool:
    """Whether NumPy takes little time for it, whatever its calls."""
    work = sum([prod(shape) for shape in recording.shapes])
    return work + sum([leaf.size for leaf in recording.leaves]) <= LIGHT


def _is_small(recording: Recording) -> bool:
    """Whether to interpret it when it is met first: NumPy takes a fraction of a compilation's time.

    A Python loop that was recorded turn by turn is long, and still small.
    """
    if not config.tier0_limit:
        return False
    operators = _computing(recording)
    if config.tier0_limit < len(operators) < TURNS * len(set(operators)):
        return False
    return sum(leaf.size for leaf in recording.leaves) <= SMALL


def _digest(recording: Recording, backend: str) -> str | None:
    """The name under which the program is kept on disk; None where it is not kept."""
    identity = getattr(backends.load(backend), "identity", None)
    if not config.disk_cache or identity is None:
        return None
    return digest_of(recording, identity())


def _not_on_disk(digest: str | None) -> str:
    if not config.disk_cache:
        return "and the disk cache is off"
    if digest is None:
        return "and such programs have no name on disk"
    return "and not on disk"


def _restore(digest: str | None, backend: str) -> Executable | None:
    """The program of this name, if it is on disk and still fits this machine."""
    image = None if digest is None else shelf.load(digest)
    if image is None:
        return None
    try:
        executable: Executable = backends.load(backend).restore(image)
    except (RuntimeError, KeyError):  # a library declines what it offered before
        return None
    statistics.counters.programs_from_disk += 1
    return executable
