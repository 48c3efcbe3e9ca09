"""A traced call, and how it is launched again.

A `Trace` is what a call recorded. A `Replay` knows where each input of its program comes from: an
argument, a storage that the function finds by itself, or a constant; and where each result goes: to
the caller, into a gradient, or over a storage.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, field
from typing import Any
from weakref import ref

from . import launches, packs, record, sharing, statistics, tree
from .guards import Guards
from .recorder import Recorder, current, held_elsewhere
from .storage import Meta, Storage, Value, concrete, promises
from .tensor import Tensor, from_value


@dataclass
class Trace:
    """What a call recorded, when it was flushed."""

    flushes: list[str] = field(default_factory=list)
    holding: bool = True  # whether flushes are held back
    executable: Any = None
    leaves: list[Value] = field(default_factory=list)
    slots: list[Any] = field(default_factory=list)
    live: list[tuple[int, Any]] = field(default_factory=list)
    results: list[Value] = field(default_factory=list)
    lines: list[launches.Line] = field(default_factory=list)
    origins: list[launches.Line] = field(default_factory=list)  # of each record
    measured: list[Any] = field(default_factory=list)  # (value, axis): sizes that Python has seen
    reads: bool = False  # whether Python has seen a value, which may be another the next time
    arrays: bool = False  # whether it made a tensor of an array of NumPy's
    shared: list[tuple[Storage, Value]] = field(default_factory=list)  # written, and what was there
    replaced: list[Any] = field(default_factory=list)  # tensors whose place in a module others took
    begun: list[tuple[Any, str]] = field(default_factory=list)  # attributes that were None
    made: list[Value] = field(default_factory=list)  # of data, by the function itself

    def assigned(self, held: dict[str, Any], name: str) -> None:
        """A tensor is about to become an attribute of a module."""
        old = held.get(name)
        if isinstance(old, Tensor):
            self.replaced.append(old)
        elif old is None:
            self.begun.append((held, name))

    def __call__(self, recorder: Recorder, executable: Any, reason: str) -> None:
        self.flushes.append(reason)
        if reason != "jit":  # it cannot be replayed, and so goes on as if it were not traced
            self.holding, recorder.capture = False, None
            recorder.hold -= 1
            return
        self.executable = executable
        self.leaves = list(recorder.leaves)
        self.slots = list(recorder.slots)
        self.live = list(recorder.live_slots)
        self.results = recorder.results
        self.lines = launches.lines_of(executable.checks, recorder.records)
        self.origins = [(each.code, each.offset) for each in recorder.records]


class _Cell:
    """Holds a value as a storage does: an argument, or a value that nothing else holds."""

    __slots__ = ("value",)

    def __init__(self, value: Value) -> None:
        self.value = value


class Replay:
    """A traced call that can be launched again."""

    def __init__(
        self, trace: Trace, given: list[Tensor], entry: list[Value], result: Any,
        deposits: list[Any], guards: Guards,
    ) -> None:  # fmt: skip
        self.executable = trace.executable
        self.fixed: str | None = None  # why it serves its own sizes only, if so
        self.slots = trace.slots
        self.live = trace.live
        self.watched = trace.executable.watched
        self.lines = trace.lines
        self.origins = trace.origins
        self.given = given  # the tensors among the arguments, of the latest call
        self.passed = {id(t): n for n, t in enumerate(given)}  # those of the trace
        arguments = {id(value): n for n, value in enumerate(entry)}
        self.arguments: list[tuple[_Cell, int]] = []  # which argument a leaf is
        self.captured: list[Storage] = []  # read at each call
        self.cells: list[Any] = []  # where the value of each leaf is found
        self.lost = 0  # leaves that were there before, and that nothing but the program holds now
        made = {id(value) for value in trace.made}
        for value in trace.leaves:
            owner = value.owner() if value.owner is not None else None
            if id(value) in arguments:
                self.cells.append(cell := _Cell(value))
                self.arguments.append((cell, arguments[id(value)]))
            elif owner is not None:
                self.cells.append(owner)
                self.captured.append(owner)
            else:
                self.cells.append(_Cell(value))
                self.lost += value.owner is not None and id(value) not in made
        self.metas = [value.meta for value in trace.leaves]
        self.guards = guards
        self._note_results(trace, result, deposits)

    def _note_results(self, trace: Trace, result: Any, deposits: list[Any]) -> None:
        """Where each result goes: to the caller, to a gradient, or over a storage."""
        outputs = list(enumerate(self.executable.outputs))
        place = {id(trace.results[p]): n for n, p in outputs}
        self.kinds = {n: trace.results[p].meta for n, p in outputs}  # of the results
        held = {id(storage) for storage in self.captured}
        known = [each for each in self.guards.objects() if isinstance(each, Tensor)]
        old = {*self.passed, *[id(t) for t in known]}  # tensors that were there before
        # Arguments are not to be what the function finds by itself, or the same as in the trace.
        self.met = held | {id(t._storage) for t in known}
        self.twice = self._met()
        self.leaves, self.structure = tree.flatten(result)
        returned = [leaf for leaf in self.leaves if isinstance(leaf, Tensor)]
        made = [t for t in returned if id(t) not in old and id(t._storage) not in held]
        fresh = {id(t._storage): None for t in made}
        self.returned: dict[int, int | None] = dict.fromkeys([id(t) for t in returned])
        put = [each for each in deposits if id(each[1]._storage.value) in place]
        kept = [each for each in put if id(each[0]) not in self.passed]
        new = [gradient._storage.value for _, gradient in kept]
        self.gradients = [
            (leaf, ref(leaf), place[id(value)])
            for (leaf, _), value in zip(kept, new, strict=True)
        ]  # fmt: skip
        # Results that are new values at each call: those gradients, then what is returned.
        for t in made:
            value = t._storage.value
            if id(value) in place and self.returned[id(t)] is None:
                self.returned[id(t)] = len(new) - len(kept)
                new.append(value)
        self.fresh = [place[id(value)] for value in new[len(kept) :]]
        self.fresh_metas = tuple([value.meta for value in new])
        self.single = isinstance(result, Tensor) and self.returned[id(result)] is not None
        # Gradients of arguments, by their number.
        self.gradients_of_arguments = [
            (self.passed[id(leaf)], place[id(made._storage.value)])
            for leaf, made in put if id(leaf) in self.passed
        ]  # fmt: skip
        fresh |= {id(made._storage): None for _, made in deposits}
        self.states: list[tuple[int, Any]] = []  # results that replace a storage's value
        self.states_of_arguments: list[tuple[int, int]] = []
        self.stays: list[Storage] = []  # storages whose memory is written over
        arguments = {id(t._storage): n for n, t in enumerate(self.given)}
        in_place: frozenset[int] = getattr(self.executable, "in_place", frozenset())
        for n, position in enumerate(self.executable.outputs):
            value = trace.results[position]
            storage = value.owner() if value.owner is not None else None
            if storage is None or storage.value is not value or id(storage) in fresh:
                continue
            if id(storage) in arguments:
                self.states_of_arguments.append((n, arguments[id(storage)]))
            elif n in in_place and id(storage) in held:
                self.stays.append(storage)
            else:
                self.states.append((n, ref(storage)))

    def _met(self) -> list[Any]:
        """Of each argument, whether the function finds it by itself too, and which it is."""
        return [_places(t) if id(t._storage) in self.met else None for t in self.given]

    def numbers(self) -> list[Any]:
        """The numbers that stay as they are from call to call."""
        live = {n for n, _ in self.live}
        return [number for n, number in enumerate(self.slots) if n not in live]

    def written(self) -> list[Any]:
        """The storages that the function writes to."""
        return [*self.stays, *[where() for _, where in self.states]]

    def follow(self, storage: Storage, source: Any) -> None:
        """Read from now on `source.value` where the storage's was read."""
        self.cells = [source if cell is storage else cell for cell in self.cells]

    def inputs(self, arguments: list[Tensor], entry: list[Value]) -> list[Value]:
        """The arguments and the present state, in the order of the program's leaves."""
        self.given = arguments
        for cell, n in self.arguments:
            cell.value = entry[n]
        if held := held_elsewhere():
            self._spare(held)
        return [cell.value for cell in self.cells]

    def _spare(self, held: Set[int]) -> None:
        """Write to other memory where another thread is still to read what is there."""
        for storage in self.written():
            if storage is not None and id(storage.value) in held:
                _leave(storage)
        of_arguments = {n for _, n in self.states_of_arguments}
        for cell, n in self.arguments:
            if n in of_arguments and id(cell.value) in held:
                _leave(self.given[n]._storage)
                cell.value = self.given[n]._storage.value

    def changed(self, values: list[Value], expected: list[Meta] | None = None) -> str | None:
        """What differs from when the call was traced, or None."""
        changed = self.guards.changed()
        if changed is not None:
            return changed
        expected = expected or self.metas
        if [value.meta for value in values] != expected:
            metas = zip(values, expected, strict=True)
            other = next(value.meta for value, meta in metas if value.meta is not meta)
            return f"a captured tensor is now {other}"
        if self._met() != self.twice:
            return "an argument is a captured tensor, or was"
        for n, _ in self.gradients_of_arguments:
            if self.given[n]._grad is not None:
                return "an argument has a gradient now"
        return None

    def run(self, values: list[Value]) -> Any:
        """Launch the program on these values."""
        recorder = current.recorder
        if recorder.records:  # an argument is a view of something written to since
            record.flush("jit arguments")
        if record.observer is not None:
            record.observer.replay(self.origins)
        slots = self.slots
        for n, live in self.live:
            slots[n] = live.get()
        statistics.note_flush("jit replay", 0)
        executable, owner, outcomes = self.executable, recorder.owner, None
        launch, serial = launches.Replayed(executable, self.lines), owner.serial
        try:
            outcomes = executable.run(values, slots)
            return self._conclude(outcomes, launch, owner)
        except BaseException:  # the user pressed Ctrl-C, perhaps behind the launch
            if outcomes is None and owner.serial != serial:
                outcomes = record.outcomes_behind(executable, values)
            if outcomes is not None and not launch.serial:
                self._conclude(outcomes, launch, owner, again=True)
            raise

    def _conclude(
        self, outcomes: list[Any], launch: launches.Replayed, owner: Any, again: bool = False
    ) -> Any:
        """Put the results where the function put them; what it returns.

        Done `again` after it was interrupted, it is as if it had been done once.
        """
        if self.stays:
            packs.forget_contents(self.stays)
        for storage in self.stays:
            storage.version += 1
        for n, where in self.states:
            target = where()
            if target is not None:
                _write(target, outcomes[n], launch, again)
        for n, number in self.states_of_arguments:
            _write(self.given[number]._storage, outcomes[n], launch, again)
        for number, n in self.gradients_of_arguments:
            value = _ready(self.kinds[n], outcomes[n])
            value.gradient_of = ref(self.given[number])
            self.given[number]._grad = from_value(value)
            launch.values.append(value)
        made = promises(self.fresh_metas, None, -1, 0)
        launch.values += made
        for (leaf, reference, n), value in zip(self.gradients, made):
            value.memory = outcomes[n]
            value.gradient_of = reference
            leaf._grad = from_value(value)
        given = []
        for n, value in zip(self.fresh, made[len(self.gradients) :], strict=True):
            outcome = outcomes[n]
            value.memory = outcome.memory if outcome.__class__ is Value else outcome
            given.append(from_value(value))
        if self.single:
            result: Any = given[0]
        else:
            result = tree.unflatten(self.structure, [self._returned(t, given) for t in self.leaves])
        if self.watched or owner.launches or owner.failure is not None:
            launches.begin(owner, launch)
        return result

    def _returned(self, t: Any, given: list[Tensor]) -> Any:
        """What a call returns where the traced one returned that tensor, or number."""
        n = self.returned.get(id(t))
        if n is not None:
            return given[n]
        return self.given[self.passed[id(t)]] if id(t) in self.passed else t


def _places(t: Tensor) -> Any:
    """Which elements of which storage an argument is."""
    return id(t._storage), () if t._view is None else t._view.chain()


def _write(target: Storage, outcome: Any, launch: launches.Replayed, again: bool) -> None:
    """Give a storage a new value, unless it has got it already."""
    old = target.value
    if again and any(value is old for value, _ in launch.replaced):
        return
    value = _ready(old.meta, outcome)
    value.requires_grad, value.leaf = old.requires_grad, old.leaf
    if old.exposed and sharing.is_shared(old):
        record.wait()
        sharing.move(value, old)
    launch.values.append(value)
    launch.replaced.append((value, old))
    target.write(value)
    value.replaces = None


def _leave(storage: Storage) -> None:
    """Give a storage memory of its own; another thread is still to read what it has."""
    old = storage.value
    value = concrete(old.array().copy(), old.meta)
    value.requires_grad, value.leaf = old.requires_grad, old.leaf
    storage.write(value)
    value.replaces = None


def _ready(meta: Meta, outcome: Any) -> Value:
    """A known value of that shape and dtype."""
    value = Value(meta)
    value.memory = outcome.memory if isinstance(outcome, Value) else outcome
    return value
