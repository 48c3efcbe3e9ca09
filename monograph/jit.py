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
from typing import Any

import numpy as np

from . import record, sharing, statistics, tree
from .config import config
from .guards import PLAIN, Guards
from .ir.dtypes import DType, get_default_dtype
from .jit_sizes import fixed_by, resized, without_sizes
from .recorder import current
from .replay import Replay, Trace
from .storage import Meta, Value, births
from .tensor import Parameter, Tensor

TRACES = 64  # signatures kept per function
STATES = 8  # traces of one signature, under other guards; and misses in a row before giving up


def jit(function: Callable[..., Any]) -> Jitted:
    """Run the function's Python once per signature, and replay what it recorded after that.

    What it finds besides tensors is compared at each call: if it changed, Python runs again. Python
    also runs at each call where it reads values or makes tensors of NumPy arrays: see `reasons`.

    >>> import monograph as mg
    >>> @mg.jit
    ... def double(x):
    ...     return x * 2
    >>> [double(mg.tensor(v)).item() for v in (1.0, 2.0, 3.0)]
    [2.0, 4.0, 6.0]
    """
    return Jitted(function)


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
        recorder.measured, recorder.optimizers = trace.measured, []
        births.values = trace.made
        shown = [t._value() for t in leaves]
        _exchange(leaves, shown, entry)
        try:
            result = _own_storages(self.function(*args, **kwargs))
            record.flush("jit")
            deposits, modules = recorder.deposits, recorder.modules
            cleared, optimizers = recorder.cleared, recorder.optimizers
        finally:
            births.values = None
            _exchange(leaves, entry, shown)
            recorder.hold -= trace.holding
            recorder.capture, recorder.deposits, recorder.modules = None, [], []
            recorder.cleared, recorder.measured, recorder.optimizers = set(), [], []
            for storage, old in trace.shared:  # arrays of NumPy's are to see what was written
                record.read(storage)
                sharing.move(storage.value, old)
        if reason is not None:
            self._note(f"traced again: {reason}")
        problem = _obstacle(trace, result, deposits)
        if trace.arrays or _has_array(key[0]):
            problem = problem or _ARRAY
        replay = None
        if any(storage.value is not before for storage, before in bases):
            problem = problem or "it writes into an argument that is a view"
        if problem is None:
            guards.settle(modules, optimizers, trace.begun)
            replay = Replay(trace, leaves, entry, result, deposits, guards)
            problem = _guard_tensors(guards, replay, deposits, cleared)
            problem = problem or _carried(replay, [*trace.replaced, *guards.replaced])
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
    return "a NumPy array" if part is np.ndarray else repr(part)


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


def _carried(replay: Replay, replaced: list[Any]) -> str | None:
    """Why a call cannot be replayed that hands tensors on to the next one, or None.

    Such a tensor is read, and another takes its place: in a variable, a container, an attribute or
    a gradient. A replay would read the same one again.
    """
    captured = {id(storage) for storage in replay.captured}
    if replay.lost or any(id(t._storage) in captured for t in replaced):
        return (
            "it reads a tensor and puts another in its place, for the next call to read; write "
            "into the tensor, as copy_ does"
        )
    return None


class Gradient:
    """Stands for the storage of a tensor's gradient, whichever that is."""

    __slots__ = ("leaf",)

    def __init__(self, leaf: Any) -> None:
        self.leaf = leaf

    @property
    def value(self) -> Value:
        return self.leaf._grad._value()  # type: ignore[no-any-return]


def _signature(given: Any, leaves: list[Tensor]) -> Any:
    """The structure of arguments: tensors by shape and dtype, anything else by value."""
    if isinstance(given, Tensor):
        leaves.append(given)
        value = given._value()
        return (value.meta, value.requires_grad)
    if isinstance(given, (tuple, list)):
        return (type(given), *[_signature(item, leaves) for item in given])
    if isinstance(given, dict):
        return tuple([(name, _signature(item, leaves)) for name, item in given.items()])
    if isinstance(given, np.ndarray):
        return np.ndarray  # with any, a call is not replayed
    try:
        hash(given)
    except TypeError:
        return _Itself(given)
    return given if not isinstance(given, (bool, int, float)) else (type(given), given)


class _Itself:
    """An object that cannot be compared by value, in a signature."""

    def __init__(self, thing: Any) -> None:
        self.thing = thing  # held, so that no other takes its place in memory

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Itself) and other.thing is self.thing

    def __hash__(self) -> int:
        return id(self.thing)

    def __repr__(self) -> str:
        return f"another {type(self.thing).__name__}"


def _has_array(signature: Any) -> bool:
    """Whether there are NumPy arrays among arguments of that signature."""
    if isinstance(signature, tuple):
        return any(map(_has_array, signature))
    return signature is np.ndarray


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


def _own_storages(result: Any) -> Any:
    """Returned views become tensors of their own."""
    return tree.map_leaves(
        lambda x: x.clone() if isinstance(x, Tensor) and x._view is not None else x, result
    )


def _obstacle(trace: Trace, result: Any, deposits: list[Any]) -> str | None:
    """Why this call cannot be replayed, or None."""
    if trace.flushes != ["jit"]:
        if not trace.flushes:
            return "nothing was recorded"
        return f"it computed values in between ({trace.flushes[0]})"
    if trace.reads:
        return "it reads a value, as item(), float() and numpy() do"
    for leaf in tree.leaves(result):
        if isinstance(leaf, Tensor):
            if not deposits and leaf.requires_grad and not leaf.is_leaf:
                return "it returns a tensor to differentiate later"
        elif not isinstance(leaf, (*PLAIN, DType)):
            return f"it returns a {type(leaf).__name__}, which may hold what was computed"
    return None


_ARRAY = (
    "it uses a NumPy array, whose numbers may be others at the next call; give it a tensor, as of "
    "mg.from_numpy(array)"
)
_UNSEEN: Any = ()
