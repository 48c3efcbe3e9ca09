"""`@mg.jit`: replay a function without running its Python again.

The first call with a signature runs the function with all flushes held back, so that it becomes
one recording, and notes where every input comes from: an argument, the storage of a tensor that
the function closed over, or a number that is read anew. Later calls launch the program and put the
results where the function put them: parameters, buffers, optimiser state, gradients, and the value
returned. What else Python found when it ran is guarded (`guards.py`): if it changed, the function
is traced again. Traces with other sizes share a program, as recordings do, and where Python saw no
size that varies, further sizes need no trace (`jit_sizes.py`). A function that reads a
value in between, or that returns something to differentiate later, cannot be replayed: it runs as
usual. `reasons` says why.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from weakref import ref

from . import launches, packs, record, sharing, statistics
from .config import config
from .guards import Guards
from .ir.dtypes import get_default_dtype
from .jit_sizes import fixed_by, resized, without_sizes
from .recorder import Recorder, current
from .storage import Meta, Storage, Value, promises
from .tensor import Parameter, Tensor, from_value

TRACES = 64  # signatures kept per function
STATES = 8  # traces of one signature, under other guards; and misses in a row before giving up


def jit(function: Callable[..., Any]) -> Jitted:
    """Run the function's Python once per signature, and replay what it recorded after that.

    >>> import monograph as mg
    >>> @mg.jit
    ... def double(x):
    ...     return x * 2
    >>> [double(mg.tensor(v)).item() for v in (1.0, 2.0, 3.0)]
    [2.0, 4.0, 6.0]
    """
    return Jitted(function)


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
    shared: list[tuple[Storage, Value]] = field(default_factory=list)  # written, and what was there

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


class Jitted:
    """A function that replays. `reasons` lists why calls were traced again, or not replayed."""

    def __init__(self, function: Callable[..., Any]) -> None:
        functools.update_wrapper(self, function)
        self.function = function
        self.reasons: list[str] = []  # the latest last
        self._replays: dict[Any, list[Replay] | None] = {}  # None: cannot be replayed
        self._open: dict[Any, Replay] = {}  # by the key without sizes: the latest trace
        self._misses = 0  # calls in a row whose guards did not hold

    def __get__(self, owner: Any, kind: type | None = None) -> Any:
        return self if owner is None else functools.partial(self, owner)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        recorder = current.recorder
        if recorder.hold or recorder.eager or recorder.packing:
            # Inside another trace, step by step, or with Python hooks on what is saved.
            return self.function(*args, **kwargs)
        if recorder.records:
            record.flush("jit entry")
        leaves: list[Tensor] = []
        shape = [_signature(arg, leaves) for arg in args]
        if kwargs:
            shape.append(("by name", _signature(kwargs, leaves)))
        key = (
            tuple(shape), recorder.grad, recorder.inference, recorder.autocast, config.backend,
            config.onednn, config.bounds_checks, get_default_dtype(), _shared(leaves),
        )  # fmt: skip
        replays = self._replays.get(key, _UNSEEN)
        if replays is None:
            return self.function(*args, **kwargs)
        reason = None
        entry = [_entered(t) for t in leaves]
        for replay in replays:
            values = replay.inputs(leaves, entry)
            changed = replay.changed(values)
            if changed is None:
                self._misses = 0
                return replay.run(values)
            reason = reason or changed  # of the latest trace
        if replays is _UNSEEN:
            resized, why = self._resized(key, leaves, entry)
            if resized is not None:
                self._keep(key, resized)
                return resized.run(resized.inputs(leaves, entry))
            if self._replays:
                reason = self._difference(key) + why
        return self._trace(key, args, kwargs, leaves, entry, reason)

    def _resized(
        self, key: Any, leaves: list[Tensor], entry: list[Value]
    ) -> tuple[Replay | None, str]:
        """A trace for other sizes made into one for these; and if there is none, why."""
        known = self._open.get(without_sizes(key))
        if known is None or getattr(known.executable, "program", None) is None:
            return None, ""
        if known.fixed is not None:
            return None, known.fixed and f"; {known.fixed}"
        values = known.inputs(leaves, entry)
        if known.changed(values, [value.meta for value in values]) is not None:
            return None, ""
        captured = {id(cell) for cell, _ in known.arguments}
        for cell, value, meta in zip(known.cells, values, known.metas, strict=True):
            if id(cell) not in captured and value.meta is not meta:
                return None, ""
        return resized(known, values), ""

    def _trace(
        self, key: Any, args: Any, kwargs: Any, leaves: list[Tensor], entry: list[Value],
        reason: str | None,
    ) -> Any:  # fmt: skip
        """Run the function and note what it does, because of that reason."""
        recorder = current.recorder
        trace = Trace()
        bases = [(t._storage, t._storage.value) for t in leaves if t._view is not None]
        guards = Guards(self.function, self._arguments(args, kwargs))
        recorder.hold += 1
        recorder.capture, recorder.deposits, recorder.modules = trace, [], []
        recorder.measured = trace.measured
        shown = [t._value() for t in leaves]
        _exchange(leaves, shown, entry)
        try:
            result = _own_storages(self.function(*args, **kwargs))
            record.flush("jit")
            deposits, modules = recorder.deposits, recorder.modules
            cleared = recorder.cleared
        finally:
            _exchange(leaves, entry, shown)
            recorder.hold -= trace.holding
            recorder.capture, recorder.deposits, recorder.modules = None, [], []
            recorder.cleared, recorder.measured = set(), []
            for storage, old in trace.shared:  # arrays of NumPy's are to see what was written
                record.read(storage)
                sharing.move(storage.value, old)
        if reason is not None:
            self._note(f"traced again: {reason}")
        problem = _obstacle(trace, result, deposits)
        replay = None
        if any(storage.value is not before for storage, before in bases):
            problem = problem or "it writes into an argument that is a view"
        if problem is None:
            guards.settle(modules)
            replay = Replay(trace, leaves, entry, result, deposits, guards)
            problem = _guard_tensors(guards, replay, deposits, cleared)
            replay.fixed = fixed_by(replay, trace)
        if problem is not None:
            self._note(f"not replayed: {problem}")
        self._keep(key, replay if problem is None else None)
        return result

    def _keep(self, key: Any, replay: Replay | None) -> None:
        """Keep a trace, unless what it assumes never holds for long."""
        known = self._replays.get(key)
        self._misses += bool(known)
        if replay is None or (known and self._misses > STATES):
            if replay is not None:
                self._note(f"not replayed: {STATES} calls in a row found something changed")
            self._replays[key] = None
            return
        if known is None and len(self._replays) >= TRACES:
            self._replays.pop(next(iter(self._replays)))
        self._replays[key] = [replay, *(known or ())][:STATES]
        before = self._open.get(open_key := without_sizes(key))
        if before is None or before.metas == replay.metas:
            replay.fixed = replay.fixed or ""  # one size so far: what depends on it is not known
        elif before.numbers() != replay.numbers():
            replay.fixed = replay.fixed or "numbers that it computes with depend on sizes"
        self._open[open_key] = replay

    def _arguments(self, args: Any, kwargs: Any) -> Mapping[str, Any]:
        """The arguments by name, where they have names."""
        try:
            return inspect.signature(self.function).bind(*args, **kwargs).arguments
        except (TypeError, ValueError):
            return kwargs  # type: ignore[no-any-return]

    def _difference(self, key: Any) -> str:
        """What sets a call apart from the latest one that was traced."""
        latest = next(reversed(self._replays))
        try:
            names = list(inspect.signature(self.function).parameters)
        except (TypeError, ValueError):
            names = []
        for n, (new, old) in enumerate(zip(key[0], latest[0])):
            if new != old:
                name = names[n] if n < len(names) else f"argument {n}"
                return f"{name} is now {_shown(new)}, was {_shown(old)}"
        if len(key[0]) != len(latest[0]):
            return "other arguments were given"
        for name, new, old in zip(MODES, key[1:], latest[1:]):
            if new != old:
                return f"{name} is now {new}, was {old}"
        return "other arguments were given"

    def _note(self, reason: str) -> None:
        self.reasons = [*self.reasons[1 - TRACES :], reason]
        statistics.note_trace(f"{getattr(self, '__name__', 'a function')} was {reason}")


# What the key of a trace holds behind the arguments.
MODES = (
    "grad mode",
    "inference mode",
    "autocast",
    "the backend",
    "onednn",
    "bounds_checks",
    "the default dtype",
)


def _shown(part: Any) -> str:
    """An argument in a signature, in words."""
    if isinstance(part, tuple) and part and isinstance(part[0], Meta):
        return f"{part[0]!r}{' with gradients' if part[1] else ''}"
    if isinstance(part, tuple) and len(part) == 2 and isinstance(part[0], type):
        return repr(part[1])
    return repr(part)


def _shared(tensors: list[Tensor]) -> Any:
    """Which arguments are one tensor or share a storage; parameters count as what they are."""
    if not tensors:
        return ()
    numbers = {id(t._storage): n for n, t in enumerate(tensors)}
    known = [(n, id(t)) for n, t in enumerate(tensors) if isinstance(t, Parameter)]
    if len(numbers) == len(tensors):
        return tuple(known)
    places = {id(t): n for n, t in enumerate(tensors)}
    return (*[(numbers[id(t._storage)], places[id(t)]) for t in tensors], *known)


def _guard_tensors(
    guards: Guards, replay: Replay, deposits: list[Any], cleared: set[int]
) -> str | None:
    """Guard which gradients there were, and which captured tensors required some.

    One that the function set to None itself before it put another there does not matter. Returns
    why the call cannot be replayed after all, if it cannot.
    """
    guards.gradients = [
        (leaf, None) for leaf, _ in deposits
        if id(leaf) not in cleared and id(leaf) not in replay.passed
    ]  # fmt: skip
    sums = {id(t._grad._storage) for t in replay.given if t._grad is not None}
    if any(id(storage) in sums for storage in replay.captured):
        return "it uses the gradient that an argument had"
    written = {id(storage) for storage in replay.written()}
    captured = replay.captured
    known = {id(storage) for storage in captured}
    for storage in captured:
        guards.capture(storage)
        leaf = storage.value.leaf() if storage.value.leaf is not None else None
        held = None if leaf is None else leaf._grad
        if held is None or id(held._storage) not in known:
            continue
        if id(held._storage) in written:
            guards.gradients.append((leaf, held))
        else:  # only read, as an optimiser's step does: whichever it is then
            guards.needed.append(leaf)
            replay.follow(held._storage, Gradient(leaf))
    return None


class Gradient:
    """Stands for the storage of a tensor's gradient, whichever that is."""

    __slots__ = ("leaf",)

    def __init__(self, leaf: Any) -> None:
        self.leaf = leaf

    @property
    def value(self) -> Value:
        return self.leaf._grad._value()  # type: ignore[no-any-return]


def _signature(tree: Any, leaves: list[Tensor]) -> Any:
    """The structure of arguments: tensors by shape and dtype, anything else by value."""
    if isinstance(tree, Tensor):
        leaves.append(tree)
        value = tree._value()
        return (value.meta, value.requires_grad)
    if isinstance(tree, (tuple, list)):
        return (type(tree), *[_signature(item, leaves) for item in tree])
    if isinstance(tree, dict):
        return tuple([(name, _signature(item, leaves)) for name, item in tree.items()])
    try:
        hash(tree)
    except TypeError:
        return id(tree)
    return tree if not isinstance(tree, (bool, int, float)) else (type(tree), tree)


def _entered(t: Tensor) -> Value:
    """The value of an argument that a trace takes for it.

    Of a view that is still to be computed it is a copy: else a trace would read the storage behind
    it, and at the places of its first call.
    """
    value = t._value()
    if t._view is None or value.ready or value.requires_grad or value.meta.absent:
        return value
    return sharing.snapshot(t._array(), value)


def _exchange(leaves: list[Tensor], old: list[Value], new: list[Value]) -> None:
    """Let views have the new values, unless they were written to since they had the old ones."""
    for t, before, value in zip(leaves, old, new, strict=True):
        if t._view is not None and t._view.value is before:
            t._view.value = value


def _map(tree: Any, change: Callable[[Tensor], Any]) -> Any:
    if isinstance(tree, Tensor):
        return change(tree)
    if isinstance(tree, (tuple, list)):
        return type(tree)([_map(item, change) for item in tree])
    if isinstance(tree, dict):
        return {name: _map(item, change) for name, item in tree.items()}
    return tree


def _tensors(tree: Any) -> list[Tensor]:
    found: list[Tensor] = []
    _map(tree, found.append)
    return found


def _own_storages(result: Any) -> Any:
    """Returned views become tensors of their own."""
    return _map(result, lambda t: t if t._view is None else t.clone())  # type: ignore[attr-defined]


def _obstacle(trace: Trace, result: Any, deposits: list[Any]) -> str | None:
    """Why this call cannot be replayed, or None."""
    if trace.flushes != ["jit"]:
        if not trace.flushes:
            return "nothing was recorded"
        return f"it computed values in between ({trace.flushes[0]})"
    if not deposits and any(t.requires_grad and not t.is_leaf for t in _tensors(result)):
        return "it returns a tensor to differentiate later"
    return None


_UNSEEN: Any = ()


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
        returned = _tensors(result)
        made = [t for t in returned if id(t) not in old and id(t._storage) not in held]
        fresh = {id(t._storage): None for t in made}
        self.result = result
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
        return [cell.value for cell in self.cells]

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
            result = _map(self.result, lambda t: self._returned(t, given))
        if self.watched or owner.launches or owner.failure is not None:
            launches.begin(owner, launch)
        return result

    def _returned(self, t: Tensor, given: list[Tensor]) -> Tensor:
        """What a call returns where the traced one returned that tensor."""
        n = self.returned[id(t)]
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


def _ready(meta: Meta, outcome: Any) -> Value:
    """A known value of that shape and dtype."""
    value = Value(meta)
    value.memory = outcome.memory if isinstance(outcome, Value) else outcome
    return value
