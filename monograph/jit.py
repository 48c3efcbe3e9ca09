"""`@mg.jit`: replay a function without running its Python again.

The first call with a signature runs the function with all flushes held back, so that it becomes
one recording, and notes where every input comes from: an argument, the storage of a tensor that
the function closed over, or a number that is read anew. Later calls launch the program and put the
results where the function put them: parameters, buffers, optimiser state, gradients, and the value
returned. A function that reads a value in between, or that returns something to differentiate
later, cannot be replayed: it runs as usual, and `reasons` says why.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from weakref import ref

from . import launches, record, statistics
from .config import config
from .storage import Meta, Storage, Value
from .tensor import Tensor, from_value

TRACES = 64  # signatures kept per function


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
    executable: Any = None
    leaves: list[Value] = field(default_factory=list)
    slots: list[Any] = field(default_factory=list)
    live: list[tuple[int, Any]] = field(default_factory=list)
    results: list[Value] = field(default_factory=list)
    lines: list[launches.Line] = field(default_factory=list)
    origins: list[launches.Line] = field(default_factory=list)  # of each record

    def __call__(self, recorder: record.Recorder, executable: Any, reason: str) -> None:
        self.flushes.append(reason)
        self.executable = executable
        self.leaves = list(recorder.leaves)
        self.slots = list(recorder.slots)
        self.live = list(recorder.live_slots)
        self.results = recorder.results
        self.lines = launches.lines_of(executable.checks, recorder.records)
        self.origins = [(each.code, each.offset) for each in recorder.records]


class Jitted:
    """A function that replays. `reasons` lists why calls were traced, or cannot be replayed."""

    def __init__(self, function: Callable[..., Any]) -> None:
        functools.update_wrapper(self, function)
        self.function = function
        self.reasons: list[str] = []
        self._replays: dict[Any, Replay | None] = {}

    def __get__(self, owner: Any, kind: type | None = None) -> Any:
        return self if owner is None else functools.partial(self, owner)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        recorder = record.recorder()
        if recorder.hold:
            return self.function(*args, **kwargs)  # inside another trace
        if recorder.records:
            record.flush("jit entry")
        leaves: list[Tensor] = []
        shape = [_signature(arg, leaves) for arg in args]
        if kwargs:
            shape.append(("by name", _signature(kwargs, leaves)))
        key = (tuple(shape), recorder.grad, config.backend, config.onednn, config.bounds_checks)
        replay = self._replays.get(key, _UNSEEN)
        if replay is None:
            return self.function(*args, **kwargs)
        if replay is not _UNSEEN:
            values = replay.inputs(leaves)
            changed = replay.changed(values)
            if changed is None:
                return replay.run(values)
            self.reasons.append(f"traced again: {changed}")
        return self._trace(key, args, kwargs, leaves)

    def _trace(self, key: Any, args: Any, kwargs: Any, leaves: list[Tensor]) -> Any:
        recorder = record.recorder()
        trace = Trace()
        entry = [t._value() for t in leaves]
        recorder.hold += 1
        recorder.capture, recorder.deposits, recorder.modules = trace, [], []
        try:
            result = _own_storages(self.function(*args, **kwargs))
            record.flush("jit")
            deposits, modules = recorder.deposits, recorder.modules
        finally:
            recorder.hold -= 1
            recorder.capture, recorder.deposits, recorder.modules = None, [], []
        problem = _obstacle(trace, result, deposits)
        if len(self._replays) >= TRACES:
            self._replays.pop(next(iter(self._replays)))
        if problem is not None:
            self.reasons.append(f"not replayed: {problem}")
            self._replays[key] = None
        else:
            self._replays[key] = Replay(trace, entry, result, deposits, modules)
        return result


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


_UNSEEN: Any = object()


class _Cell:
    """Holds a value as a storage does: an argument, or a value that nothing else holds."""

    __slots__ = ("value",)

    def __init__(self, value: Value) -> None:
        self.value = value


class Replay:
    """A traced call that can be launched again."""

    def __init__(
        self, trace: Trace, entry: list[Value], result: Any, deposits: list[Any], modules: list[Any]
    ) -> None:
        self.executable = trace.executable
        self.slots = trace.slots
        self.live = trace.live
        self.watched = trace.executable.watched
        self.lines = trace.lines
        self.origins = trace.origins
        arguments = {id(value): n for n, value in enumerate(entry)}
        self.arguments: list[tuple[_Cell, int]] = []  # which argument a leaf is
        self.captured: list[Storage] = []  # read at each call
        self.cells: list[_Cell | Storage] = []  # where the value of each leaf is found
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
        self.modules = [(m, m.training) for m in dict.fromkeys(modules)]
        self._note_results(trace, result, deposits)

    def _note_results(self, trace: Trace, result: Any, deposits: list[Any]) -> None:
        """Where each result goes: to the caller, to a gradient, or over a storage."""
        place = {id(trace.results[p]): n for n, p in enumerate(self.executable.outputs)}
        returned = _tensors(result)
        fresh = {id(t._storage): None for t in returned}
        self.result = result
        self.returned = {id(t): place.get(id(t._storage.value)) for t in returned}
        self.gradients = [
            (leaf, ref(leaf), made._storage.value.meta, place[id(made._storage.value)])
            for leaf, made in deposits if id(made._storage.value) in place
        ]  # fmt: skip
        fresh |= {id(made._storage): None for _, made in deposits}
        self.states: list[tuple[int, Any]] = []  # results that replace a storage's value
        self.stays: list[Storage] = []  # storages whose memory is written over
        held = {id(storage) for storage in self.captured}
        in_place: frozenset[int] = getattr(self.executable, "in_place", frozenset())
        for n, position in enumerate(self.executable.outputs):
            value = trace.results[position]
            storage = value.owner() if value.owner is not None else None
            if storage is None or storage.value is not value or id(storage) in fresh:
                continue
            if n in in_place and id(storage) in held:
                self.stays.append(storage)
            else:
                self.states.append((n, ref(storage)))

    def inputs(self, arguments: list[Tensor]) -> list[Value]:
        """The arguments and the present state, in the order of the program's leaves."""
        for cell, n in self.arguments:
            cell.value = arguments[n]._value()
        return [cell.value for cell in self.cells]

    def changed(self, values: list[Value]) -> str | None:
        """What differs from when the call was traced, or None."""
        for module, training in self.modules:
            if module.training is not training:
                return f"{type(module).__name__}.training is now {module.training}"
        if [value.meta for value in values] != self.metas:
            metas = zip(values, self.metas, strict=True)
            other = next(value.meta for value, meta in metas if value.meta is not meta)
            return f"a captured tensor is now {other}"
        return None

    def run(self, values: list[Value]) -> Any:
        """Launch the program on these values."""
        if False in [value.ready for value in values]:
            record.flush("jit arguments")
            for value in values:
                if not value.ready:
                    raise record._unknown(value)
        if record.observer is not None:
            record.observer.replay(self.origins)
        slots = self.slots
        for n, live in self.live:
            slots[n] = live.get()
        outcomes = self.executable.run(values, slots)
        statistics.note_flush("jit replay", 0)
        launch = launches.Replayed(self.executable, self.lines)
        self._put(outcomes, launch)
        result = self._hand_out(outcomes, launch)
        owner = record.recorder().owner
        if self.watched or owner.launches or owner.failure is not None:
            launches.begin(owner, launch)
        return result

    def _put(self, outcomes: list[Any], launch: launches.Replayed) -> None:
        for storage in self.stays:
            storage.version += 1
        for n, where in self.states:
            target = where()
            if target is not None:
                old = target.value
                value = _ready(old.meta, outcomes[n])
                value.requires_grad, value.leaf = old.requires_grad, old.leaf
                target.write(value)
                value.replaces = None
                launch.values.append(value)
                launch.replaced.append((value, old))
        values = launch.values
        for leaf, reference, meta, n in self.gradients:  # as many as there are parameters
            value = Value(meta)
            value.data, value.block, value.address = outcomes[n]
            value.ready, value.gradient_of = True, reference
            leaf._grad = gradient = Tensor()
            gradient._storage, gradient._view = Storage(value), None
            values.append(value)

    def _hand_out(self, outcomes: list[Any], launch: launches.Replayed) -> Any:
        def give(t: Tensor) -> Tensor:
            n = self.returned[id(t)]
            if n is None:
                return t
            value = _ready(t._storage.value.meta, outcomes[n])
            launch.values.append(value)
            return from_value(value)

        return give(self.result) if isinstance(self.result, Tensor) else _map(self.result, give)


def _ready(meta: Meta, outcome: Any) -> Value:
    """A known value of that shape and dtype."""
    value = Value(meta)
    if isinstance(outcome, Value):  # the memory of a leaf
        value.exposed = outcome.exposed
        outcome = (outcome.data, outcome.block, outcome.address)
    value.data, value.block, value.address = outcome
    value.ready = True
    return value
