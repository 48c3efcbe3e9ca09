"""What one thread has recorded: calls, the values between them, and the modes they are made in.

A `Recorder` holds the entries since the last flush; `record.py` adds to it and empties it. There is
one per thread, `current.recorder`, and one more for each function that a transform traces.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Set
from functools import partial
from typing import Any
from weakref import WeakSet, ref

from . import errors
from .ir.dtypes import DType
from .ir.operator import Operator
from .lines import line_of, user_line
from .runtime import status
from .storage import Meta, Storage, Value

# Storages made in inference mode that are still alive: while there are any, calls look for them.
inference_storages: WeakSet[Storage] = WeakSet()


class Signature:
    """What is known of a call before its values: operator, attributes, input and output kinds."""

    __slots__ = ("number", "operator", "attributes", "inputs", "outputs", "checked", "absent")

    def __init__(
        self, number: int, operator: Operator, attributes: tuple[Any, ...], inputs: tuple[Any, ...],
        outputs: tuple[Meta, ...], checked: bool = False,
    ) -> None:  # fmt: skip
        self.number = number
        self.operator = operator
        self.attributes = attributes
        self.inputs = inputs
        self.outputs = outputs
        self.checked = checked  # its data may be wrong, such as an index
        # Of tensors without contents nothing is recorded but shapes and the way back.
        self.absent = any([kind.__class__ is Meta and kind.absent for kind in inputs])


class Record:
    """One recorded call. `stop` cuts derivatives (it was called under no_grad)."""

    __slots__ = (
        "signature", "inputs", "stop", "code", "offset", "walk", "hooks", "born", "place", "marked",
    )  # fmt: skip

    signature: Signature
    inputs: list[Any]  # Values, None, or numbers
    stop: bool
    code: Any  # of the user's function, and how far into it
    offset: int
    walk: int  # the backward pass that freed what this one needs
    hooks: Any  # of the user's, on its node in the graph
    born: int  # the epoch of the recording that it was made for, and where
    place: int
    marked: int  # see `tapes.py`

    def copy(self) -> Record:
        """The same call, with a list of inputs of its own."""
        made = new_record(self.signature, list(self.inputs), self.stop, self.born, self.place)
        made.code, made.offset = self.code, self.offset
        made.walk, made.hooks = self.walk, self.hooks
        return made

    @property
    def line(self) -> str:
        """The user's file and line."""
        return line_of(self.code, self.offset)


_blank = partial(object.__new__, Record)


def new_record(
    signature: Signature, inputs: list[Any], stop: bool, born: int = 0, place: int = 0
) -> Record:
    """A call that is not linked to a line or a backward pass yet.

    As an `__init__` would make it, in two thirds of the time.
    """
    made = _blank()
    # Each for itself: Python does `x = y = 0` in more steps.
    made.signature = signature
    made.inputs = inputs
    made.stop = stop
    made.code = None
    made.offset = 0
    made.walk = 0
    made.hooks = None
    made.born = born
    made.place = place
    made.marked = 0
    return made


class Freed(Record):
    """In place of a record that a backward pass has gone over: what it kept is free to go."""

    __slots__ = ()

    def __init__(self, spent: Record) -> None:
        self.signature, self.inputs, self.stop = spent.signature, [], False
        self.code, self.offset, self.walk = spent.code, spent.offset, spent.walk
        self.hooks = None
        self.born = self.place = self.marked = 0


class _Argument:
    """In place of a record: the value is an argument of a function that a transform traces."""

    inputs = ()


ARGUMENT = _Argument()


class Live:
    """A number that is read again at every replay: `Live(group, "lr")`."""

    __slots__ = ("mapping", "name")
    kind: type = float

    def __init__(self, mapping: Any, name: Any) -> None:
        self.mapping = mapping
        self.name = name

    def get(self) -> float | int:
        """The number as it is now."""
        return float(self.mapping[self.name])


TOO_MUCH = "memory of pending work"  # less urgent than other reasons: see `retention.py`


class Recorder:
    """What one thread has recorded since its last flush."""

    __slots__ = (
        "grad", "eager", "urgent", "autocast", "inference", "packing", "attention", "hold",
        "capture", "measured", "deposits", "modules", "optimizers", "cleared", "depth", "outer",
        "saved", "own", "mapping", "open", "spent", "passing", "epoch", "flushes", "owner", "known",
        "shared", "pieces", "records", "results", "leaves", "slots", "live_slots", "key", "brought",
        "cut", "many", "ahead", "waited", "__weakref__",
    )  # fmt: skip

    def __init__(self) -> None:
        self.grad = True
        self.eager = False
        self.urgent: str | None = None  # why the next call must not stay pending
        self.autocast: DType | None = None  # the lower precision that products are computed in
        self.inference = False  # what is made now is kept from derivatives
        self.packing: tuple[Any, ...] = ()  # hooks on saved tensors: `autograd/saved_hooks.py`
        self.attention = False  # whether calls must do what `_attend` does
        self.hold = 0  # while positive, only an explicit read flushes (tracing by jit)
        self.capture: Any = None
        self.measured: list[Any] = []  # (value, axis or None): sizes seen while captured
        self.deposits: list[tuple[Any, Any]] = []  # (leaf, gradient tensor) while held
        self.modules: list[Any] = []  # modules called while held
        self.optimizers: list[Any] = []  # those that step while held, with their facts
        self.cleared: set[int] = set()  # ids of tensors whose gradient was set to None while held
        self.depth = 0  # of calls of modules within one another
        self.outer: Recorder | None = None  # while a transform traces a function: see `inner`
        self.saved: list[tuple[Value, int, int, Any]] = []  # places of values from outside
        self.own: dict[int, Value] = {}  # values that the function made from data
        self.mapping: Any = None  # what vmap maps over, while it traces a function
        self.open: list[ref[Value]] = []  # results of flushes whose tape may still be walked over
        self.many = 0  # of these, before it is worth looking which are still alive
        self.spent: list[ref[Value]] = []  # results whose history backward passes have freed
        self.ahead: Any = None  # gradients that no pass has asked for yet: see `foresight.py`
        self.passing = 0  # while positive, a backward pass is under way
        self.waited = 0  # launches of this thread that were waited for
        self.epoch = 0
        self.flushes: list[str] = []
        self.owner = status.current()
        self.reset()

    def hurry(self, reason: str) -> None:
        """The next call must not stay pending."""
        if self.urgent is None or self.urgent is TOO_MUCH:
            self.urgent = reason

    def note_read(self) -> None:
        """Python reads a value: a trace does not know what it makes of it."""
        if self.capture is not None:
            self.capture.reads = True
        if self.outer is not None:
            self.outer.note_read()

    def note_array(self) -> None:
        """A tensor is made of a NumPy array: a trace would take its numbers for constants."""
        if self.capture is not None:
            self.capture.arrays = True
        if self.outer is not None:
            self.outer.note_array()

    def attend(self) -> None:
        """Look whether there are tensors of inference mode, or will be, or hooks on saved ones."""
        wanted = self.inference or len(inference_storages) > 0 or bool(self.packing)
        self.attention = wanted

    def reset(self) -> None:
        """Forget what was pending; the next recording starts."""
        self.epoch = next_epoch()
        self.urgent = "eager" if self.eager else None
        self.known: list[Value] = []  # results that are data and were recorded again all the same
        self.shared: set[int] = set()  # ids of values of which a part is among the leaves
        self.pieces: list[Value] = []  # those parts
        self.records: list[Record] = []
        self.results: list[Value] = []
        self.leaves: list[Value] = []
        self.slots: list[Any] = []
        self.live_slots: list[tuple[int, Any]] = []
        self.key: list[Any] = []  # of each record, its signature's number and its inputs' places
        self.brought = 0  # bytes of data that tensors were made of: see `retention.py`
        self.cut: tuple[Any, int] | None = None  # the line behind which it is to be cut

    def captured(self, value: Value) -> bool:
        """Whether a function that a transform traces has this value from outside."""
        if self.outer is None or id(value) in self.own:
            return False
        return value.epoch != self.epoch or value.position < 0

    def check_deposit(self, leaf: Value) -> None:
        """Refuse to fill `.grad` of a tensor from outside."""
        if self.captured(leaf) and leaf.record is not ARGUMENT:
            raise errors.TransformError(
                "backward() inside vmap adds to .grad of a tensor from outside; use mg.grad, or "
                "backward(inputs=...)"
            )

    def check_write(self, value: Value) -> None:
        """Refuse to overwrite what a traced function did not make itself."""
        if self.captured(value):
            whose = "its argument" if value.record is ARGUMENT else "a tensor that it captured"
            raise errors.TransformError(
                f"a function under vmap writes in place into {whose}; clone() it first{user_line()}"
            )


_epochs = itertools.count(1)


def next_epoch() -> int:
    """A number that no other recording has, in any thread: counting is one step of Python's."""
    return next(_epochs)


_of_threads: dict[int, ref[Recorder]] = {}  # by id: its length is asked at each flush


class _Local(threading.local):
    def __init__(self) -> None:
        self.recorder = Recorder()
        number = id(self.recorder)
        _of_threads[number] = ref(self.recorder, lambda _: _of_threads.pop(number, None))


_NOTHING: frozenset[int] = frozenset()


def is_one_of_many() -> bool:
    """Whether other threads have recorded, too."""
    return len(_of_threads) > 1


def held_elsewhere() -> Set[int]:
    """Ids of values that other threads' pending work reads, whose memory must not be written."""
    if len(_of_threads) < 2:
        return _NOTHING
    mine = {id(current.recorder)}
    outer = current.recorder.outer
    while outer is not None:
        mine.add(id(outer))
        outer = outer.outer
    held: set[int] = set()
    for each in [there() for there in list(_of_threads.values())]:
        if each is not None and each.records and id(each) not in mine:
            for leaf in list(each.leaves):
                memory = leaf.memory
                whole = None if memory is None else memory.part_of
                held.add(id(leaf if whole is None else whole))
    return held


current = _Local()
