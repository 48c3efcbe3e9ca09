"""Kinds of calls: what an operator computes of inputs of given shapes, and its derivative.

Each kind is worked out once, as a `Closure` of NumPy calls. Most are cheap that way. One that has
taken NumPy as long as compiling it would, a convolution for example, is a program of its own from
then on.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import accumulate, count
from typing import Any

import numpy as np

from ..compiler.checks import GROUP, reductions
from ..compiler.pipeline import Executable
from ..compiler.recording import (
    BACKWARD,
    KNOWN,
    Entry,
    Expansion,
    Recording,
    described,
    placeholders,
)
from ..compiler.simplify import substitute
from ..ir import build, by_numpy, dtypes
from ..ir.check import Check, collecting
from ..ir.closure import Closure, NoClosure
from ..ir.node import (
    Buffer,
    Contract,
    Map,
    Node,
    Reduce,
    Reindex,
    Slot,
    ancestors,
    interning,
    make,
)
from ..ir.operator import Operator, Rule, noting
from ..ir.rows import LARGEST, Rows
from ..runtime.waiting import reader, synchronize
from ..storage import Memory, Meta, Value, meta_of
from ..transform.derivative import vjp

DEAR = 0.02  # seconds of NumPy's: about what compiling a single call takes
# Seconds that NumPy takes for a point of a matrix product, of another product, and of all else.
PRODUCT, WINDOW, POINT = 1e-9, 3e-8, 3e-9


class Kind:
    """A function of arrays and numbers: `call` takes those inputs that `inputs` names.

    `inputs` are places in `kinds`: the Meta of an array, or the type of a number. Where it can be
    compiled, `recording` has the arrays as leaves and the numbers as slots, in this order.
    """

    kinds: tuple[Any, ...] = ()
    inputs: Sequence[int]
    call: Callable[..., list[Any]]
    recording: Recording | None = None
    metas: tuple[Meta, ...] = ()  # of what it computes
    seconds = 0.0  # that a program would have saved, or will in the first call
    compiled = False
    _nodes: Sequence[Node] = ()  # what it computes, until it is known whether that fits rows
    _rows: Callable[..., list[Any]] | None = None

    def compile(self, made: Callable[[Recording], Executable]) -> None:
        """Let a program compute it from now on, if it reads nothing that NumPy does without."""
        recording, self.recording = self.recording, None
        assert recording is not None
        if not _read(recording, self.kinds) <= set(self.inputs):
            return
        self.call = _function(made(recording), recording, self.kinds, self.inputs, self.metas)
        self.compiled = True

    def rows(self) -> Callable[..., list[Any]] | None:
        """Its function for many inputs at once, see `ir/rows.py`; None if it has none."""
        nodes, self._nodes = self._nodes, ()
        if nodes:
            with suppress(NoClosure):
                self._rows = Rows(nodes).call
        return self._rows

    def _use(self, outputs: Sequence[Node]) -> None:
        closure = Closure(outputs)
        self.inputs, self.call = closure.inputs, closure.call
        if all([node.size <= LARGEST for node in outputs]):
            self._nodes = outputs
        expected = sum([_expected(node) for node in ancestors(outputs)])
        if expected > DEAR:
            self.seconds = expected


def _expected(node: Node) -> float:
    """The seconds that NumPy takes for a node, roughly."""
    if isinstance(node, Contract):
        rate = WINDOW if by_numpy.product_of(node) is None else PRODUCT
        return math.prod(node.attributes[0]) * rate
    if isinstance(node, Reduce):
        return node.inputs[0].size * POINT
    return 0.0 if isinstance(node, Reindex) else node.size * POINT


def _read(recording: Recording, kinds: Sequence[Any]) -> set[int]:
    """The places of the inputs that the graph of a recording reads."""
    arrays = [n for n, kind in enumerate(kinds) if kind.__class__ is Meta]
    numbers = [n for n, kind in enumerate(kinds) if isinstance(kind, type)]
    with interning():
        nodes = ancestors(Expansion(recording).run())
    return {
        (arrays if isinstance(node, Buffer) else numbers)[node.attributes[0]]
        for node in nodes if isinstance(node, (Buffer, Slot))
    }  # fmt: skip


def _function(
    executable: Executable,
    recording: Recording,
    kinds: Sequence[Any],
    inputs: Sequence[int],
    metas: Sequence[Meta],
) -> Callable[..., list[Any]]:
    """A program as a function of the inputs that it reads."""
    arrays = [n for n, kind in enumerate(kinds) if kind.__class__ is Meta]
    numbers = [n for n, kind in enumerate(kinds) if isinstance(kind, type)]
    order = [executable.outputs.index(position) for position in recording.wanted]

    def call(*given: Any) -> list[Any]:
        held = dict(zip(inputs, given, strict=True))
        leaves = [_value(kinds[n], held.get(n)) for n in arrays]
        reader.calls = True
        try:
            outcomes = executable.run(leaves, [held.get(n, 0) for n in numbers])
        finally:
            reader.calls = False
        synchronize()
        return [_array(meta, outcomes[n]) for meta, n in zip(metas, order, strict=True)]

    return call


def _value(meta: Meta, array: Any) -> Value:
    """An input of a program; one that it does not read may be anything."""
    if array is None:
        array = np.zeros(meta.shape, meta.dtype.numpy)
    value = Value(meta)
    value.memory = Memory(np.asarray(array, meta.dtype.numpy, order="C"))
    return value


def _array(meta: Meta, outcome: Any) -> np.ndarray:
    value = Value(meta)
    value.memory = outcome
    return value.array()


class Sum(Kind):
    """The sum of two cotangents."""

    inputs = (0, 1)

    def __init__(self) -> None:
        self.call = self._rows = lambda a, b: [a + b]


class Call(Kind):
    """What a kind of call means: its results' kinds, and how NumPy computes them.

    Behind the results stand the codes of its checks, see `compiler/checks.py`; `failures` has for
    each check, in groups that share a code, the error and what to say. What checks its data is not
    compiled: a program of its own would raise by itself.
    """

    def __init__(
        self, operator: Operator, attributes: tuple[Any, ...], kinds: tuple[Any, ...]
    ) -> None:
        self.kinds = kinds
        along = _joined(operator, attributes, kinds)
        if along is not None:
            self.inputs, self.call = (
                range(len(kinds)),
                lambda *parts: [np.concatenate(parts, along)],
            )
            shape = list(kinds[0].shape)
            shape[along] = sum([kind.shape[along] for kind in kinds])
            self.metas = (meta_of(tuple(shape), kinds[0].dtype),)
            self.groups, self.failures = 0, []
            return
        checks: list[Check] = []
        with interning():
            inputs = placeholders(kinds)
            with collecting(checks):
                outputs = operator.expand(inputs, attributes)
            codes = reductions(checks)
            self._use([*outputs, *codes])
        self.metas = tuple([meta_of(node.shape, node.dtype) for node in outputs])
        self.groups = len(codes)
        name, shown = operator.name, ", ".join([described(node) for node in inputs])
        self.failures = [(c.error, f"{name}: {c.message} (inputs: {shown})") for c in checks]
        if checks:  # each group has its full number
            self.failures += self.failures[-1:] * (GROUP * self.groups - len(checks))
        else:
            entry = Entry(operator, attributes, _refs(kinds), False, len(outputs))
            self.recording = _recorded([entry], kinds, range(len(outputs)), self.metas)


class Pull(Kind):
    """The derivative of a kind of call: from cotangents of some results to those of some inputs.

    It reads inputs, results and cotangents, numbered in this order. `parts` says for each input
    that is needed which output of the closure it is, or None where nothing depends on it.
    """

    parts: list[int | None]

    def __init__(
        self, entry: Entry, kinds: tuple[Any, ...], needs: tuple[int, ...], given: tuple[int, ...]
    ) -> None:
        along = _joined(entry.operator, entry.attributes, kinds)
        if along is not None:
            self._cut(kinds, needs, along)
            return
        rules: dict[int, Rule] = {}
        checks: list[Check] = []
        with interning(), noting(rules), collecting(checks):
            inputs = placeholders(kinds)
            for n in needs:
                node = inputs[n]
                assert node is not None
                inputs[n] = make(Map, (node,), node.shape, node.dtype, "mark", n)
            outputs = entry.operator.expand(inputs, entry.attributes)
            results = _buffers(outputs, len(kinds))
            chosen = [outputs[n] for n in given]
            cotangents = _buffers(chosen, len(kinds) + len(outputs))
            wanted = [node for n, node in enumerate(inputs) if n in needs and node is not None]
            found = vjp(chosen, cotangents, wanted, rules, through=False)
            parts = [part for part in found if part is not None]
            known = {node.id: result for node, result in zip(outputs, results) if node.inputs}
            self._use(substitute(parts, known))
        places = iter(range(len(parts)))
        self.parts = [None if part is None else next(places) for part in found]
        self.metas = tuple([meta_of(part.shape, part.dtype) for part in parts])
        made = [meta_of(node.shape, node.dtype) for node in outputs]
        self.kinds = (*kinds, *made, *[made[n] for n in given])
        if not checks:
            self._record(entry, kinds, needs, given)

    def _cut(self, kinds: tuple[Any, ...], needs: tuple[int, ...], along: int) -> None:
        """Of inputs that were joined: the pieces of the cotangent."""
        ends = list(accumulate([meta.shape[along] for meta in kinds], initial=0))
        lead = (slice(None),) * along
        pieces = [(*lead, slice(ends[n], ends[n + 1])) for n in needs]
        self.inputs = (len(kinds) + 1,)  # behind the inputs and the result
        self.call = lambda cotangent: [cotangent[piece] for piece in pieces]
        self.parts = list(range(len(needs)))

    def _record(
        self, entry: Entry, kinds: tuple[Any, ...], needs: tuple[int, ...], given: tuple[int, ...]
    ) -> None:
        """The call, results that are known, and a backward pass, as a recording."""
        refs = _refs(self.kinds)
        width = entry.results
        known = refs[len(kinds) : len(kinds) + width]
        roots = [width + n for n in given]  # the known ones stand behind those of the call
        pass_refs = (*roots, *refs[len(kinds) + width :], *[refs[n] for n in needs])
        entries = [
            Entry(entry.operator, entry.attributes, refs[: len(kinds)], False, width),
            *[Entry(KNOWN, (), (n, contents), False, 1) for n, contents in enumerate(known)],
            Entry(BACKWARD, (len(given),), pass_refs, True, len(needs)),
        ]
        made = self.kinds[len(kinds) : len(kinds) + width]
        metas = (*made, *made, *[kinds[n] for n in needs])
        wanted = [2 * width + n for n, part in enumerate(self.parts) if part is not None]
        self.recording = _recorded(entries, self.kinds, wanted, metas)


def _joined(operator: Operator, attributes: tuple[Any, ...], kinds: tuple[Any, ...]) -> int | None:
    """The axis along which an operator only joins what it is given, if it does."""
    if operator.joins is None or any(kind.__class__ is not Meta for kind in kinds):
        return None
    return operator.joins(kinds, attributes)


def _buffers(nodes: Sequence[Node], first: int) -> list[Node]:
    return [build.buffer(first + n, node.shape, node.dtype) for n, node in enumerate(nodes)]


def _refs(kinds: Sequence[Any]) -> tuple[Any, ...]:
    """How entries refer to inputs of these kinds."""
    leaf = count(1)
    return tuple([-next(leaf) if kind.__class__ is Meta else kind for kind in kinds])


def _recorded(
    entries: Sequence[Entry], kinds: Sequence[Any], wanted: Sequence[int], metas: Sequence[Meta]
) -> Recording:
    """A recording on arrays and numbers of these kinds; `metas` are those of its results."""
    leaves = tuple([kind for kind in kinds if kind.__class__ is Meta])
    slots = tuple([kind for kind in kinds if isinstance(kind, type)])
    shapes = tuple([meta.shape for meta in metas])
    return Recording(tuple(entries), leaves, slots, tuple(wanted), (), shapes)


KINDS = 1 << 12  # of each sort that are known at most
_calls: dict[Any, Call | None] = {}
_pulls: dict[Any, Pull | None] = {}


def _keep(known: dict[Any, Any], key: Any, made: Any) -> None:
    """Note a kind, and forget the oldest of many: sizes may vary without end."""
    known[key] = made
    if len(known) > KINDS:
        known.pop(next(iter(known)), None)


def call_of(operator: Operator, attributes: tuple[Any, ...], kinds: tuple[Any, ...]) -> Call | None:
    """What a kind of call means; None if only the reference can tell."""
    key = (operator, attributes, kinds, dtypes.get_default_dtype())
    if key not in _calls:
        try:
            made: Call | None = Call(operator, attributes, kinds)
        except NoClosure:
            made = None
        _keep(_calls, key, made)
        return made
    return _calls[key]


def pull_of(
    entry: Entry, kinds: tuple[Any, ...], needs: tuple[int, ...], given: tuple[int, ...]
) -> Pull | None:
    """The derivative of a kind of call; None if only the reference can tell."""
    key = (entry.operator, entry.attributes, kinds, needs, given, dtypes.get_default_dtype())
    if key not in _pulls:
        try:
            made: Pull | None = Pull(entry, kinds, needs, given)
        except (NoClosure, NotImplementedError):
            made = None
        _keep(_pulls, key, made)
        return made
    return _pulls[key]
