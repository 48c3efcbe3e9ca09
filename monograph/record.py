"""Recording: an operator call becomes one entry of a list; a flush runs the list as one program.

`call` is what every operator does when a user calls it. It looks up the signature (operator,
attributes, shapes and dtypes of the inputs), which knows the shapes that come out, and appends an
entry. Nothing is computed. `flush` takes all that is pending: the key of the recording (the
operators and how they are wired; numbers and addresses are not part of it) finds a compiled
program, or makes one, and the results become data. Recorder and gradient mode are thread-local.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any
from weakref import ref

import numpy as np

from . import errors, launches, near, pending, signatures, statistics, tapes
from .appending import NUMBERS, append, enter, residuals
from .compiler import recording as rec_form
from .config import config
from .foresight import Foresight
from .ir import dtypes
from .ir.dtypes import DType
from .ir.node import Node
from .ir.operator import Operator
from .lines import inside, user_line
from .programs import Programs
from .recorder import (
    TOO_MUCH,
    Live,
    Record,
    Recorder,
    Signature,
    current,
    inference_storages,
    is_one_of_many,
    new_record,
)
from .retention import is_time_to_cut
from .runtime.status import NO_RESULTS
from .runtime.waiting import reader, synchronize
from .signatures import known as known_signatures
from .signatures import new_signature
from .storage import UNRECORDED, InferenceStorage, Storage, Value, concrete, meta_of
from .usual import LEAST, MOST, handles, usual

BACKWARD, KNOWN = rec_form.BACKWARD, rec_form.KNOWN
Replaced = list[tuple[Value, Value]]  # results, and what their storages held


class _Unregistered:
    """Stands in until the frontend names its handle class."""


handle_class: Any = _Unregistered
_wrap: Callable[..., Any] = lambda value: value  # noqa: E731
_wrap_view: Callable[..., Any] = lambda value: value  # noqa: E731
_part: Callable[..., Any] = lambda *given: None  # noqa: E731
_settled: Callable[..., Any] = lambda given, value: value  # noqa: E731


def register_handle(
    handle: type,
    wrap: Callable[[Value], Any],
    wrap_view: Callable[..., Any],
    part: Callable[..., Any],
    settled: Callable[..., Any],
) -> None:
    """The frontend's Tensor class, and how it makes one of a Value, or of a view of another.

    `part` makes a view that lies in one piece of known memory, if it does, so that nothing needs
    to be recorded. `settled` gives the value to use of a tensor whose memory the user may change.
    """
    global handle_class, _wrap, _wrap_view, _part, _settled
    handle_class, _wrap, _wrap_view, _part, _settled = handle, wrap, wrap_view, part, settled
    handles.add(handle)


def use_default_dtype(dtype: DType) -> None:
    """Change the default dtype; what this thread has recorded is run under the old one."""
    flush("default dtype")
    signatures.use_default_dtype(dtype)


def call(operator: Operator, inputs: Sequence[Any], attributes: tuple[Any, ...]) -> Any:
    """Record one call and return its Tensor(s); inside a definition, expand instead."""
    recorder = current.recorder
    casts = recorder.autocast is not None and operator.precision is not None
    try:
        outputs = None if casts else _usual(recorder, operator, inputs, attributes)
        if outputs is None:  # classes of users are never part of a usual call
            taken = None if _override is None else _override(operator, inputs, attributes)
            if taken is not None:
                return taken[0]
            if casts:
                inputs = _autocast(operator, inputs, recorder.autocast)
                outputs = _usual(recorder, operator, inputs, attributes)
            if outputs is None:
                outputs = _call_values(recorder, operator, inputs, attributes)
    except Overridden as found:
        return found.result
    except errors.SparseOperand:
        return _sparse(operator, inputs, attributes)
    if outputs.__class__ is Value:
        result = _wrap(outputs)
    elif outputs.__class__ is list:
        made = [_wrap(value) for value in outputs]
        result = made[0] if len(made) == 1 else tuple(made)
        if recorder.attention:
            _attend(recorder, outputs, inputs, result)
    else:  # nodes
        return outputs if len(outputs) > 1 else outputs[0]
    if recorder.urgent is not None or len(recorder.records) >= PENDING_LIMIT:
        _flush_if_due(recorder)
        if recorder.eager and recorder.owner.launches:
            wait()  # so that an error is raised by the call that made it
    return result


def _flush_if_due(recorder: Recorder) -> None:
    """Flush if it is urgent, or too much is pending; a loop is cut at one line of it."""
    if len(recorder.records) >= PENDING_LIMIT:
        flush(recorder.urgent or "many pending operators")
    elif recorder.urgent is not TOO_MUCH or is_time_to_cut(recorder):
        flush(recorder.urgent or TOO_MUCH)


def call_view(operator: Operator, inputs: Sequence[Any], attributes: tuple[Any, ...]) -> Any:
    """`call` for an operator whose result shares the storage of its first input."""
    base = inputs[0]
    if _override is not None and base.__class__ not in handles:
        taken = _override(operator, inputs, attributes)
        if taken is not None:
            return taken[0]
    if isinstance(base, handle_class):
        try:
            whole = base._storage.value
        except errors.SparseOperand:
            return _sparse(operator, inputs, attributes)
        if whole.memory is not None and not whole.requires_grad:
            piece = _part(base, operator, attributes)
            if piece is not None:
                return piece
    recorder = current.recorder
    value: Any = _usual(recorder, operator, inputs, attributes)
    if value is None:
        outputs = _call_values(recorder, operator, inputs, attributes)
        value = outputs[0]
        if outputs.__class__ is not list:
            return value  # a node
    return _wrap_view(value, base, operator, attributes, recorder.grad)


_sparse: Callable[..., Any] = lambda operator, inputs, attributes: None  # noqa: E731


def register_sparse(apply: Callable[..., Any]) -> None:
    """What operators do with operands that have no storage: see `ops/sparse_rules.py`."""
    global _sparse
    _sparse = apply


_override: Callable[..., tuple[Any] | None] | None = None
_ask: Callable[..., Any] = lambda *given: NotImplemented  # noqa: E731


def may_be_quick() -> bool:
    """Whether no class of the user's is to be asked about calls."""
    return _override is None


def override(taken: Callable[..., tuple[Any] | None]) -> None:
    """Ask from now on whether a class of the user's takes over a call: see `overriding.py`."""
    global _override
    _override = taken


def register_asking(ask: Callable[..., Any]) -> None:
    """How a class with `__torch_function__` is asked about a call."""
    global _ask
    _ask = ask


class Overridden(Exception):  # noqa: N818
    """An operand that is no tensor has taken over the call."""

    def __init__(self, result: Any) -> None:
        super().__init__()
        self.result = result


_autocast: Callable[..., Any] = lambda operator, inputs, lower: inputs  # noqa: E731


def register_autocast(cast: Callable[..., Any]) -> None:
    """How `amp` casts the inputs of the operators that it has marked."""
    global _autocast
    _autocast = cast


def _attend(recorder: Recorder, outputs: list[Value], inputs: Sequence[Any], result: Any) -> None:
    """What a call does beyond being recorded: about inference mode and saved tensors."""
    if recorder.inference:
        for made in result if isinstance(result, tuple) else (result,):
            made._storage = inference_storage(made._storage.value)
    elif any([value.requires_grad for value in outputs]):
        _refuse_inference(outputs[0], inputs)
        if recorder.packing:
            _pack(outputs, inputs, result)
    recorder.attend()


def inference_storage(value: Value) -> Storage:
    """A storage that derivatives never meet."""
    made = InferenceStorage(value)
    inference_storages.add(made)
    return made


_refuse_inference: Callable[[Value, Sequence[Any]], None] = lambda value, inputs: None  # noqa: E731


def register_refusal(refuse: Callable[[Value, Sequence[Any]], None]) -> None:
    """How autograd refuses a call whose derivative would need a tensor of inference mode."""
    global _refuse_inference
    _refuse_inference = refuse


_pack: Callable[[Sequence[Value], Sequence[Any], Any], None] = lambda *given: None  # noqa: E731


def register_packing(pack: Callable[[Sequence[Value], Sequence[Any], Any], None]) -> None:
    """How autograd hands what a call saves to the user's hooks."""
    global _pack
    _pack = pack


_refuse_uses: Callable[[Sequence[Any]], None] | None = None


def watch_uses(refuse: Callable[[Sequence[Any]], None]) -> None:
    """Ask from now on before a call that derivatives pass through; see `autograd/births.py`."""
    global _refuse_uses, _usual
    _refuse_uses, _usual = refuse, _none


_usual: Callable[..., Any] = usual


def _none(*given: Any) -> None:
    """No call is usual."""


def _call_values(
    recorder: Recorder, operator: Operator, inputs: Sequence[Any], attributes: tuple[Any, ...]
) -> list[Value] | tuple[Any, ...]:
    """Record one call; its values, or inside a definition the nodes that it expands to."""
    key: list[Any] = [operator, attributes]
    values: list[Any] = []
    needs_grad = False
    detached: list[int] = []  # places where the whole stands for what was detached from it
    for given in inputs:
        kind = given.__class__
        if isinstance(given, handle_class):
            storage, view = given._storage, given._view
            value = held = storage.value
            cut = False
            if view is not None:
                if view.version == storage.version:
                    value = view.value
                elif view.version == UNRECORDED and not held.exposed and recorder.outer is None:
                    cut = value.requires_grad
                else:
                    value = given._value()
            memory = held.memory
            if memory is not None and memory.exposed:
                value = _settled(given, value)
            if cut:
                detached.append(len(values))
            elif value.requires_grad:
                needs_grad = True
            key.append(value.meta)
            values.append(value)
        elif kind in NUMBERS or given is None:
            if kind is int and not LEAST <= given <= MOST:
                raise OverflowError(f"{operator.name}() got {given}, which 64 bits do not hold")
            key.append(kind)
            values.append(given)
        elif isinstance(given, Live):
            key.append(given.kind)
            values.append(given)
        elif isinstance(given, Node):
            return operator.expand(inputs, attributes)
        else:
            if hasattr(kind, "__torch_function__"):
                kinds = [part.__class__ for part in inputs if hasattr(part, "__torch_function__")]
                others = [part for part in kinds if not issubclass(part, handle_class)]
                raise Overridden(_ask(others, operator, inputs, attributes))
            value = _foreign(operator, given)
            key.append(value.__class__ if not isinstance(value, Value) else value.meta)
            values.append(value)
    signature = known_signatures.get(tuple(key))
    if signature is None:
        if any([isinstance(given, handle_class) for given in attributes]):
            plain = tuple([_plain(given) for given in attributes])
            return _call_values(recorder, operator, inputs, plain)
        signature = new_signature(operator, attributes, key)
    if detached and needs_grad and recorder.grad:  # derivatives are not to pass through these
        for place in detached:
            values[place] = inputs[place]._value()
        detached = []
    return record_call(recorder, signature, values, needs_grad, _NEAREST_CALLER, bool(detached))


def _plain(attribute: Any) -> Any:
    """An attribute; a tensor of one integer stands for that integer."""
    return attribute.__index__() if isinstance(attribute, handle_class) else attribute


def value_of(given: Any) -> Value:
    """What to record of a tensor, as a call does."""
    value: Value = given._value()
    settled: Value = _settled(given, value) if given._storage.value.exposed else value
    return settled


def call_on(
    operator: Operator,
    values: Sequence[Value],
    numbers: Sequence[Live],
    attributes: tuple[Any, ...],
) -> list[Value]:
    """Record a call on values and numbers in this order, as an optimiser's step has hundreds."""
    key = (operator, attributes, *[v.meta for v in values], *[number.kind for number in numbers])
    signature = known_signatures.get(key)
    if signature is None:
        signature = new_signature(operator, attributes, list(key))
    needs_grad = False
    for value in values:
        if value.requires_grad:
            needs_grad = True
            break
    inputs = [*values, *numbers]
    return record_call(current.recorder, signature, inputs, needs_grad, _NEAREST_STEP)


# Loops that never read a value are cut here, so that pending work stays bounded.
PENDING_LIMIT = 20_000


# How many frames at least lie between `record_call` and one of a user's: those of backward, or of
# `_call_values`, `call` and the operator's own function, or of an optimiser's step with its hooks.
_NEAREST, _NEAREST_CALLER, _NEAREST_STEP = 3, 4, 5


def record_call(
    recorder: Recorder, signature: Signature, inputs: list[Any], needs_grad: bool,
    nearest: int = _NEAREST, cut: bool = False,
) -> list[Value]:  # fmt: skip
    """Append one call and mark what it returns as differentiable where it is.

    `cut` says that nothing is to be, whatever requires gradients.
    """
    grad = recorder.grad
    if _refuse_uses is not None and needs_grad and grad and signature.operator.smooth:
        _refuse_uses(inputs)
    stop = cut or (needs_grad and not grad)
    record = new_record(signature, inputs, stop, recorder.epoch, len(recorder.records))
    if signature.absent:
        return _without_data(record, needs_grad and grad)
    # The user's line is that of the innermost frame outside this package.
    try:
        frame: Any = sys._getframe(nearest)
    except ValueError:  # a thread that runs nothing but an operator, for instance
        frame = None
    while frame is not None:
        code = frame.f_code
        if not inside[code.co_filename]:
            record.code, record.offset = code, frame.f_lasti
            break
        frame = frame.f_back
    outputs = append(recorder, record)
    if needs_grad and grad and signature.operator.smooth:
        for value in outputs:
            if value.meta.smooth:
                value.requires_grad = True
                value.tape = record
    return outputs


def _without_data(record: Record, tracked: bool) -> list[Value]:
    """The results of a call on the device `meta`: shapes, and the way back for derivatives."""
    outputs = [Value(meta) for meta in record.signature.outputs]
    record.born = record.place = 0  # it stands in no recording
    if tracked and record.signature.operator.smooth:
        for value in outputs:
            value.requires_grad = value.meta.smooth
            value.tape = record if value.meta.smooth else None
    return outputs


def _foreign(operator: Operator, given: Any) -> Any:
    """An input that is no tensor and no number: NumPy scalars and arrays are taken."""
    if isinstance(given, np.generic):
        return given.item()
    if isinstance(given, np.ndarray):
        current.recorder.note_array()
        kind = meta_of(given.shape, dtypes.from_numpy(given.dtype))
        return concrete(np.array(given, order="C", copy=True), kind)
    raise TypeError(f"{operator.name}() takes tensors and numbers, but got {type(given).__name__}")


# --- flushing -----------------------------------------------------------------------------------

LOOP = "backward in a loop"  # a reason to flush: where it is one, that place comes again
programs = Programs()
foresight = Foresight()
observer: Any = None  # the profiler, while it is on


def flush(reason: str) -> None:
    """Run everything that is pending in this thread."""
    recorder = current.recorder
    if not recorder.records:
        return
    if observer is not None and not observer.inside:
        observer.flush(recorder, reason)  # which comes back here
        return
    if recorder.outer is not None:
        if reason in (recorder.urgent, "many pending operators"):
            return  # the outer recording is flushed in its turn
        raise errors.TransformError(f"nothing can be computed inside vmap ({reason}){user_line()}")
    if recorder.owner.failure is not None:  # another thread found that ours failed
        wait()
    statistics.note_flush(reason, len(recorder.records))
    wanted, writes = pending.live(recorder)
    if not wanted:
        recorder.reset()
        return
    rows = pending.rows(recorder)
    base = key = _key(recorder, rows)
    gradients = foresight.extend(recorder, key, append)
    if gradients:
        key, wanted = _key(recorder, rows), wanted + gradients
    else:
        wanted = residuals.extend(key, wanted)
    epoch, serial = recorder.epoch, recorder.owner.serial
    executable: Any = None
    outcomes = launch = None
    replaced: Replaced = []
    try:
        often = recorder.capture is not None and reason == "jit"
        executable = programs.find(key, wanted, writes, often)
        if executable is None:
            if not gradients:
                wanted = residuals.expect(key, pending.calls(recorder), wanted)
            recording = pending.form(recorder, wanted, writes, rows)
            again = reason == LOOP
            executable = programs.make(key, recording, config.backend, often, again)
            executable.key = key
        # The equal key of the first time, where there is one: this one is freed at once.
        if not gradients:
            base = getattr(executable, "key", key)
        residuals.remember(epoch, base, getattr(executable, "turns", ()))
        outcomes = executable.run(recorder.leaves, recorder.slots)
        launch = _conclude(recorder, executable, outcomes, replaced, writes, reason)
        recorder.reset()
        recorder.owner.results = NO_RESULTS
        if launch is not None:
            launches.begin(recorder.owner, launch)
    except BaseException:  # the compiler's, or the user pressed Ctrl-C
        if recorder.epoch == epoch:  # else it is over but for this
            if outcomes is None and recorder.owner.serial != serial:
                outcomes = outcomes_behind(executable, recorder.leaves)
            if outcomes is None:  # it has not begun to run
                _abandon(recorder)
            else:
                launch = _conclude(recorder, executable, outcomes, replaced, writes, reason)
        recorder.reset()
        if launch is not None and not launch.serial:
            launches.begin(recorder.owner, launch)
        raise


def _key(recorder: Recorder, rows: pending.Rows) -> tuple[Any, ...]:
    recorded = (*recorder.key, rows) if rows else tuple(recorder.key)
    return recorded, config.backend, config.onednn, config.bounds_checks


def _conclude(
    recorder: Recorder, executable: Any, outcomes: list[Any], replaced: Replaced,
    writes: tuple[tuple[int, int], ...], reason: str,
) -> launches.Flushed | None:  # fmt: skip
    """Hand the outcomes to the results. Done twice, it is as if it had been done once.

    Results with what their storages held go to `replaced`, but for what the program wrote over:
    that is in `writes`. Returns the launch, if it is to be noted.
    """
    results = recorder.results
    for position, outcome in zip(executable.outputs, outcomes, strict=True):
        value = results[position]
        before = value.replaces
        if outcome.__class__ is Value:  # what was in the memory of that leaf is gone
            if value.memory is None:
                value.memory = outcome.memory
            outcome.memory = outcome.record = None
        else:
            value.memory = outcome
            if before is not None:
                replaced.append((value, before))
        value.replaces = None
        # A known result no longer needs its history, unless a derivative may.
        value.record = tape = value.tape
        if tape is not None:
            (recorder.spent if tape.walk else recorder.open).append(ref(value))
    if len(recorder.spent) > 2 * tapes.SPENT and not recorder.passing:
        recorder.spent = tapes.let_go(recorder.spent)
    if recorder.capture is not None:
        recorder.capture(recorder, executable, reason)
    owner = recorder.owner
    if executable.watched or owner.launches or owner.failure is not None:
        return launches.Flushed(recorder, executable, writes, replaced)
    return None


def outcomes_behind(executable: Any, leaves: list[Value]) -> list[Any] | None:
    """The outcomes of a run that was interrupted, if its launch had begun."""
    finish = getattr(executable, "interrupted", None)
    outcomes: list[Any] | None = None if finish is None else finish(leaves)
    return outcomes


def flush_here(reason: str) -> None:
    """Flush at a place that recurs in the user's program, without waiting.

    While a recording is held (by jit, a trace or vmap) it goes on instead.
    """
    if not current.recorder.hold:
        flush(reason)


_read_outside: Callable[..., np.ndarray] = lambda recorder, storage: storage.value.array()  # noqa: E731


def register_outside(read: Callable[..., np.ndarray]) -> None:
    """How a function that is traced reads what lies outside of it: see `nested.py`."""
    global _read_outside
    _read_outside = read


def read(storage: Storage) -> np.ndarray:
    """The data of a storage, computing it first if it is pending."""
    recorder = current.recorder
    if recorder.outer is not None and not storage.value.ready and not storage.value.meta.absent:
        recorder.note_read()
        return _read_outside(recorder, storage)
    return settled(storage).array()


def settled(storage: Storage) -> Value:
    """The value of a storage with its contents, which are computed first if they are pending."""
    recorder, value = current.recorder, storage.value
    recorder.note_read()
    if value.memory is None:
        if value.meta.absent:
            raise errors.NoDataError()
        if recorder.outer is not None:
            return concrete(_read_outside(recorder, storage), value.meta)
        if value.epoch != recorder.epoch:
            enter(recorder, value)
        if _is_read_near(recorder, value):
            return value
        reader.waits = True
        try:
            flush("read")
        finally:
            reader.waits = False
    settle(recorder)
    value = storage.value
    if value.memory is None:  # it was in a launch of another thread
        raise value.missing()
    return value


def _is_read_near(recorder: Recorder, value: Value) -> bool:
    """Compute a pending value without a flush, if that takes a call or two."""
    calls = near.is_near(recorder, value)
    if calls is None:
        return False
    settle(recorder)
    near.compute(value, calls)
    near.take_back(recorder)
    return True


def read_near(storage: Storage) -> None:
    """Compute what is sure to be read, if that takes no flush."""
    recorder, value = current.recorder, storage.value
    if value.memory is None and value.epoch == recorder.epoch and recorder.outer is None:
        _is_read_near(recorder, value)


def expose(value: Value) -> None:
    """Let arrays of the user's lie on a value's memory: what is pending on it is computed first."""
    recorder = current.recorder
    read = value.epoch == recorder.epoch and value.position < 0
    if recorder.records and (read or id(value) in recorder.shared):
        flush("memory shared with NumPy")
        wait()
    value.expose()


def wait() -> None:
    """Wait for all that was launched; raise if the data of this thread's launches was wrong."""
    synchronize()
    recorder = current.recorder
    if recorder.owner.held or launches.in_flight():
        try:
            launches.settle(recorder.owner)
        except Exception:
            _drop_if_spoilt(recorder)
            raise
    recorder.waited = recorder.owner.serial


def finish() -> None:
    """At the end of a program: `wait`, and for what is pending too if its data may be wrong."""
    if any([record.signature.checked for record in current.recorder.records]):
        flush("end of the program")
    wait()


def settle(recorder: Recorder) -> None:
    """`wait`, if anything was launched since this thread has waited the last time."""
    if recorder.waited != recorder.owner.serial or is_one_of_many():
        wait()


def _drop_if_spoilt(recorder: Recorder) -> None:
    """Forget what is pending if it was recorded on a result that does not exist."""
    for leaf in recorder.leaves:
        memory = leaf.memory
        if memory is None or (memory.part_of is not None and memory.part_of.memory is None):
            _abandon(recorder)
            return


def _abandon(recorder: Recorder) -> None:
    """Forget what is pending: storages hold what they held, and its gradients are gone."""
    results = recorder.results
    launches.restore([(v, v.replaces) for v in results if v.replaces is not None])
    for value in results:
        launches.forget_gradient(value)
    recorder.reset()
