"""Launches in flight: what must be taken back, and what to raise, if the data turns out wrong.

Programs run on their own, so that a wrong index shows after Python has moved on. A program that
checks its data, and whatever its thread launches behind it, is noted here until it is known to have
gone well. If it failed, everything is as before those launches: storages hold the values they held
(what a program writes in place it has not written), results are promises again, and the error is
raised at the thread's next read, with the line that recorded the call. Reading such a result later
computes it again: what was not at fault comes out, the rest raises once more.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from . import errors, packs
from .compiler.checks import Note, failed
from .lines import line_of
from .runtime import host, status
from .runtime.waiting import synchronize
from .storage import Value, failures

IN_FLIGHT = 64  # launches that are noted at most; then they are waited for

Line = tuple[Any, int]  # code object (or None) and offset of the instruction within
_busy: dict[status.Owner, None] = {}  # owners with launches in flight
_taking_back = threading.Lock()


class Failure:
    """What went wrong. Each time it is met, an exception of its own is raised."""

    def __init__(self, error: type[Exception], message: str) -> None:
        self.error = error
        self.message = message

    def exception(self) -> Exception:
        """The error to raise."""
        return self.error(self.message)


class Raised(Failure):
    """An exception that a step on the host raised."""

    def __init__(self, problem: BaseException) -> None:
        super().__init__(type(problem), str(problem))  # type: ignore[arg-type]
        self.problem = problem

    def exception(self) -> Exception:
        """A new one like it; one that cannot be made anew is raised itself."""
        try:
            return self.error(*self.problem.args)
        except TypeError:
            return self.problem  # type: ignore[return-value]


class Launch:
    """A launch in flight, and how to take it back."""

    __slots__ = ("serial", "executable")
    serial: int  # 0 until it is noted
    executable: Any

    def lines(self) -> Sequence[Line]:
        """Where the calls were recorded that the executable's checks are about, in their order."""
        raise NotImplementedError

    def take_back(self, failure: Failure) -> None:
        """Make everything as it was before the launch."""
        raise NotImplementedError


class Flushed(Launch):
    """The launch of a recording.

    `replaced` pairs results with what their storages held, `writes` those that were written over.
    """

    __slots__ = ("records", "results", "leaves", "writes", "replaced")

    def __init__(
        self, recorder: Any, executable: Any, writes: Sequence[tuple[int, int]],
        replaced: list[tuple[Value, Value]],
    ) -> None:  # fmt: skip
        self.serial = 0
        self.executable = executable
        self.records = recorder.records
        self.results: list[Value] = recorder.results
        self.leaves: list[Value] = recorder.leaves
        self.writes = writes
        self.replaced = replaced

    def lines(self) -> Sequence[Line]:
        """Where the records of the checks were recorded."""
        return lines_of(self.executable.checks, self.records)

    def take_back(self, failure: Failure) -> None:
        """Results are promises again; leaves that were written over hold their memory again."""
        for position, leaf in self.writes:
            new, old = self.results[position], self.leaves[leaf]
            if old.memory is None:  # the program was to write over it, and did not
                old.memory = new.memory
        makers = [r for r in self.records for _ in r.signature.outputs]
        for position in self.executable.outputs:
            forget(self.results[position], failure, makers[position])
        written = [(self.results[position], self.leaves[leaf]) for position, leaf in self.writes]
        restore([*self.replaced, *written])


class Replayed(Launch):
    """The launch of a replay: its results have no record, and stay unknown."""

    __slots__ = ("_lines", "values", "replaced")

    def __init__(self, executable: Any, lines: Sequence[Line]) -> None:
        self.serial = 0
        self.executable = executable
        self._lines = lines
        self.values: list[Value] = []  # results, apart from those in a leaf's memory
        self.replaced: list[tuple[Value, Value]] = []

    def lines(self) -> Sequence[Line]:
        """Where the calls were recorded when they were traced."""
        return self._lines

    def take_back(self, failure: Failure) -> None:
        """Results cannot be read; storages hold what they held."""
        for value in self.values:
            forget(value, failure, None)
        restore(self.replaced)


def forget(value: Value, failure: Failure, record: Any) -> None:
    """A result that was not computed: a promise again, or just a failure."""
    value.memory, value.record = None, record
    failures[value] = failure
    packs.forget(value)
    storage = value.owner() if value.owner is not None else None
    if storage is not None and storage.value is value:
        storage.version += 1  # views of it are views of nothing
    forget_gradient(value)


def forget_gradient(value: Value) -> None:
    """If a value is the gradient of a leaf: as if backward had not been called."""
    leaf = value.gradient_of() if value.gradient_of is not None else None
    if leaf is not None and leaf._grad is not None and leaf._grad._storage.value is value:
        leaf._grad = None


def restore(replaced: Sequence[tuple[Value, Value]]) -> None:
    """Give storages the last value they held that exists."""
    for value, old in reversed(replaced):
        storage = value.owner() if value.owner is not None else None
        value.replaces = old
        while not old.ready and old.replaces is not None:
            old = old.replaces
        if old.ready and storage is not None and storage.value is value:
            storage.value, old.replaced = old, 0
            storage.version += 1


def lines_of(checks: Sequence[Note], records: Sequence[Any]) -> list[Line]:
    """Where the calls were recorded that the checks are about."""
    return [(records[note.entry].code, records[note.entry].offset) for note in checks]


def begin(owner: status.Owner, launch: Launch) -> None:
    """Note a launch that was just submitted, and forget those that went well."""
    if launch not in owner.launches:
        owner.launches.append(launch)
    launch.serial = owner.serial
    _busy[owner] = None
    done = owner.words[status.DONE]
    if not owner.words[status.FAILED]:  # asked after `done`: what was done by then has not failed
        _retire(owner, done)
    if len(owner.launches) > IN_FLIGHT:
        synchronize()
        settle(owner)


def settle(owner: status.Owner) -> None:
    """Everything launched has finished: forget what went well, and raise what did not."""
    for each in [owner, *_busy]:
        if each.held:
            _take_back(each)
        if each is owner or not each.thread.is_alive():  # only one thread may retire
            _retire(each, each.serial)
    failure: Failure | None = owner.failure
    if failure is not None:
        owner.release()
        raise failure.exception()


def in_flight() -> bool:
    """Whether any thread has launches that may still fail."""
    return bool(_busy)


def _retire(owner: status.Owner, done: int) -> None:
    launches = owner.launches
    while launches and launches[0].serial <= done:
        launches.popleft()
    if not launches:
        _busy.pop(owner, None)


def _take_back(owner: status.Owner) -> None:
    """Take back the launch of an owner that failed, and all that were to run after it."""
    first, launches = owner.words[status.FAILED], owner.launches
    with _taking_back:
        spoilt: list[Launch] = []  # the latest first
        while launches and launches[-1].serial >= first:
            spoilt.append(launches.pop())
        if owner.failure is None:
            owner.failure = _failure(spoilt[-1] if spoilt else None, owner)
        for launch in spoilt:
            launch.take_back(owner.failure)


def _failure(launch: Launch | None, owner: status.Owner) -> Failure:
    word, detail = owner.words[status.STATUS], owner.words[status.DETAIL]
    if word == host.FAILED:
        problem = host.take(detail)
        assert problem is not None
        return Raised(problem)
    if launch is not None:
        notes: Sequence[Note] = launch.executable.checks
        if 0 < word <= len(notes):
            found, message = failed(notes, word - 1, detail)
            where = line_of(*launch.lines()[notes.index(found)])
            return Failure(getattr(errors, found.error), f"{message}, recorded at {where}")
        describe = getattr(launch.executable, "describe", None)
        if describe is not None:
            message = describe(word, owner.words[status.INSTRUCTION])
            return Failure(errors.InternalError, message)
    return Failure(errors.InternalError, f"a program ended with status {word}")
