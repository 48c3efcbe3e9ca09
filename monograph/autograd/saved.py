"""What a derivative needs of the forward pass: which inputs and results it reads.

PyTorch saves tensors for the backward pass, frees them after it, and raises if one was written to
in between. Here nothing is saved and values never change, but programs must meet the same errors.
What an operator's derivative reads is found by taking it once, on placeholders, for each signature
and each choice of inputs that require gradients; `Operator.saves` says where PyTorch's reads
something else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from .. import errors, tapes
from ..compiler.recording import BACKWARD, placeholders
from ..ir import build
from ..ir.node import Buffer, Map, Node, Random, Slot, interning
from ..ir.operator import Rule, noting
from ..record import register_refusal
from ..recorder import ARGUMENT, Freed, Record, Signature, current
from ..storage import InferenceStorage, Memory, Meta, Value
from ..transform.derivative import vjp
from .graph import backward_name


class Reads(NamedTuple):
    """Which inputs and results a derivative reads, and whether it reads anything at all.

    `hidden` says whether that is also something that nobody sees, computed from the inputs.
    """

    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    anything: bool
    hidden: bool = False


Needs = tuple[bool, ...]
_reads: dict[tuple[int, Needs], Reads] = {}
_saves: dict[tuple[int, Needs], Reads] = {}


def needs_of(record: Record) -> Needs:
    """Which inputs derivatives are taken by."""
    return tuple([v.__class__ is Value and v.requires_grad for v in record.inputs])


def reads(signature: Signature, needs: Needs) -> Reads:
    """What our own derivative reads."""
    key = (signature.number, needs)
    found = _reads.get(key)
    if found is None:
        found = _reads[key] = _derive(signature, needs)
    return found


def saves(signature: Signature, needs: Needs) -> Reads:
    """What PyTorch's derivative reads, and therefore saves."""
    key = (signature.number, needs)
    found = _saves.get(key)
    if found is None:
        stated = signature.operator.saves
        if callable(stated):
            stated = stated(signature.inputs, signature.attributes)
        found = reads(signature, needs) if stated is None else _stated(signature, needs, stated)
        _saves[key] = found
    return found


def _derive(signature: Signature, needs: Needs) -> Reads:
    if signature.operator is BACKWARD:
        return Reads((), (), True)
    rules: dict[int, Rule] = {}
    with interning(), noting(rules):
        inputs = placeholders(signature.inputs)
        outputs = signature.operator.expand(inputs, signature.attributes)
        smooth = [node for node in outputs if node.dtype.is_smooth]
        given = [build.buffer(-1000 - n, node.shape, node.dtype) for n, node in enumerate(smooth)]
        wanted = [node for node, needed in zip(inputs, needs, strict=True) if needed and node]
        parts = vjp(smooth, given, wanted, rules)
        return _reached([part for part in parts if part is not None], outputs)


def _reached(roots: Sequence[Node], outputs: Sequence[Node]) -> Reads:
    """Walk the gradients down to inputs, and to results, which count as kept.

    Of a 16-bit result also the float32 that it was rounded from: it is what PyTorch would round.
    """
    kept = {node.id: n for n, node in enumerate(outputs) if node.inputs}
    for n, node in enumerate(outputs):
        if node.dtype.is_half and isinstance(node, Map) and node.function == "cast":
            kept.setdefault(node.inputs[0].id, n)
    read: set[int] = set()
    results: set[int] = set()
    anything = False
    seen: set[int] = set()
    stack = list(roots)
    while stack:
        node = stack.pop()
        if node.id in seen:
            continue
        seen.add(node.id)
        if node.id in kept:
            results.add(kept[node.id])
            continue
        if isinstance(node, Buffer) and node.number >= 0:
            read.add(node.number)
        anything = anything or isinstance(node, (Slot, Random))
        stack.extend(node.inputs)
    anything = anything or bool(read or results)
    return Reads(tuple(sorted(read)), tuple(sorted(results)), anything)


def _stated(signature: Signature, needs: Needs, stated: Mapping[str, tuple[str, ...]]) -> Reads:
    """What the operator says PyTorch reads; a name of no input is something that nobody sees."""
    places: dict[str, int] = {}
    for parameter in signature.operator.parameters:
        if parameter.role == "input":
            places[parameter.name] = len(places)
    names = {
        read
        for name, place in places.items()
        if needs[place]
        for read in stated.get(name, stated.get("*", ()))
    }
    kinds = signature.inputs
    inputs = sorted(places[n] for n in names if n in places and isinstance(kinds[places[n]], Meta))
    outputs: tuple[int, ...] = (0,) if "result" in names else ()
    if "results" in names:
        outputs = tuple(range(len(signature.outputs)))
    hidden = names - places.keys() - {"result", "results", "order"}  # an order is of integers
    return Reads(tuple(inputs), outputs, bool(names), bool(hidden))


def varying(
    roots: Sequence[Value], given: Sequence[Value | None], wanted: Sequence[Value]
) -> set[int]:
    """Ids of the values whose gradients are no constants, so that they can be differentiated.

    A gradient depends on something if the one that it comes from does, or if the derivative that
    takes it further reads what requires gradients itself.
    """
    ends = {id(v) for v in wanted}
    found: set[int] = set()
    depends = [root for root, g in zip(roots, given, strict=True) if g and g.requires_grad]
    seen: set[int] = set()
    stack = list(roots)
    while stack:
        tape = stack.pop().tape
        if tape is None or id(tape) in seen:
            continue
        seen.add(id(tape))
        for place, value in enumerate(tape.inputs):
            if value.__class__ is Value and value.requires_grad:
                if id(value) not in ends:
                    stack.append(value)
                if _reads_smooth(tape, place):
                    depends.append(value)
    while depends:
        value = depends.pop()
        if id(value) not in found:
            found.add(id(value))
            if value.tape is not None and id(value) not in ends:
                inputs = [v for v in value.tape.inputs if v.__class__ is Value]
                depends += [v for v in inputs if v.requires_grad]
    return found


def _reads_smooth(tape: Any, place: int) -> bool:
    """Whether the derivative by one input reads something that requires gradients."""
    if tape.__class__ is not Record or tape.signature.operator is BACKWARD:
        return True  # of the user's code, and of what it does not tell, nothing is known
    if tape.signature.operator.selects and not tape.inputs[place].meta.dtype.is_complex:
        return False
    kept = saves(tape.signature, tuple([n == place for n in range(len(tape.inputs))]))
    return (
        kept.hidden or bool(kept.outputs) or any(tape.inputs[n].requires_grad for n in kept.inputs)
    )


def refuse_inference(result: Value, inputs: Sequence[Any]) -> None:
    """Raise if the derivative of a call would need a tensor made in inference mode."""
    record = result.tape
    if record.__class__ is not Record:
        return
    for place in saves(record.signature, needs_of(record)).inputs:
        storage = getattr(inputs[place], "_storage", None)
        if isinstance(storage, InferenceStorage):
            raise errors.GradientError(
                "Inference tensors cannot be saved for backward. Please do not use Tensors created "
                "in inference mode in computation tracked by autograd. To work around this, you "
                "can make a clone to get a normal tensor and use it in autograd."
            )


register_refusal(refuse_inference)


# --- checks at a backward pass --------------------------------------------------------------------


def written_at(value: Value) -> int:
    """The version that wrote over a value, or over what it is a view of; 0 if none did."""
    here: Value | None = value
    while here is not None:
        if here.replaced:
            return here.replaced
        here = here.viewed
    return 0


def _own_write(record: Record, result: Value, value: Value, version: int) -> bool:
    """Whether it was this very operator, in place, that wrote over its input."""
    here = value
    while not here.replaced and here.viewed is not None:
        here = here.viewed
    return result.version == version and result.owner is here.owner


def check_versions(steps: Iterable[tuple[Any, Sequence[Value]]]) -> None:
    """Raise if a value that a derivative needs was written over since; steps are (tape, results).

    What is gone but not needed is replaced by zeros, so that the steps can be recorded again.
    """
    for record, results in steps:
        if record.__class__ is not Record:
            continue
        needs = needs_of(record)
        kept = saves(record.signature, needs)
        for place in kept.inputs:
            value = record.inputs[place]
            version = written_at(value)
            if version and not any(_own_write(record, r, value, version) for r in results):
                raise _modified(value, version)
        for result in results:
            if result.index in kept.outputs and written_at(result):
                raise _modified(result, written_at(result))
        _revive(record, needs)


def _revive(record: Record, needs: Needs) -> None:
    """Contents that are gone, of inputs that the derivative does not read."""
    needed = reads(record.signature, needs).inputs
    for place, value in enumerate(record.inputs):
        gone = value.__class__ is Value and not value.ready and value.record is None
        if gone and place not in needed:
            meta = value.meta
            value.memory = Memory(_zeros(meta))


def replace_gone(steps: Iterable[Any]) -> None:
    """Zeros for inputs that were not kept, that no derivative reads, and that cannot be computed.

    Such an input was computed from contents that were written over: nothing had to spare them. If a
    derivative reads one, all stay as they are, and recording them again raises.
    """
    epoch = current.recorder.epoch
    sound: set[int] = set()  # ids of values that can be computed again
    gone: list[Value] = []
    for record in steps:
        if record.__class__ is not Record:
            continue
        for place, value in enumerate(record.inputs):
            if value.__class__ is not Value or value.memory is not None or value.requires_grad:
                continue
            if value.epoch != epoch and _is_gone(value, epoch, sound):
                if place in inputs_read(record):
                    return
                gone.append(value)
    for value in gone:
        value.memory = Memory(_zeros(value.meta))


def _is_gone(value: Value, epoch: int, sound: set[int]) -> bool:
    """Whether contents that a value would be computed from are gone."""
    seen: set[int] = set()
    stack = [value]
    while stack:
        here = stack.pop()
        known = here.memory is not None or here.epoch == epoch or here.meta.absent
        if known or id(here) in seen or id(here) in sound:
            continue
        if here.record is None:
            return True
        seen.add(id(here))
        if here.record is ARGUMENT:
            continue
        stack += [v for v in here.record.inputs if v.__class__ is Value]
    sound |= seen
    return False


def _zeros(meta: Any) -> Any:
    import numpy as np

    return np.zeros(meta.shape, meta.dtype.numpy)


def _modified(value: Value, version: int) -> errors.GradientError:
    maker = value.tape or value.record
    made = "a leaf"
    if maker.__class__ is Record:
        name = backward_name(maker.signature.operator.name)
        made = f"output {value.index} of {name} (recorded at {maker.line})"
    return errors.GradientError(
        "one of the variables needed for gradient computation has been modified by an inplace "
        f"operation: {value.meta}, which is {made}, is at version {version}; expected version "
        f"{version - 1} instead. Write into a clone(), or use the operator that is not in place."
    )


def check_unwritten(value: Value) -> None:
    """Raise if this value was written over."""
    version = written_at(value)
    if version:
        raise _modified(value, version)


def check_freed(tapes: Iterable[Any]) -> None:
    """Raise if a pass has freed what one of these, visited again, needs."""
    for tape in tapes:
        if tape.__class__ is Freed or (
            tape.__class__ is Record and saves(tape.signature, needs_of(tape)).anything
        ):
            raise errors.GradientError(FREED)


def release(value: Value) -> None:
    """Let go of the history of a value that a backward pass has gone over.

    Steps that keep nothing can be gone over again, as in PyTorch. They are copied, and the history
    ends behind them: what else uses the values in between still finds theirs.
    """
    if value.tape.__class__ is not Record or not value.tape.walk:
        return
    made: dict[int, Record] = {}
    unfinished: list[tuple[Record, Record]] = []

    def spent(tape: Record) -> Record:
        found = made.get(id(tape))
        if found is None:
            if saves(tape.signature, needs_of(tape)).anything:
                found = made[id(tape)] = Freed(tape)
            else:
                found = made[id(tape)] = tape.copy()
                unfinished.append((tape, found))
        return found

    value.tape = spent(value.tape)
    if value.ready:
        value.record = None
    while unfinished:
        tape, copy = unfinished.pop()
        for n, v in enumerate(tape.inputs):
            if v.__class__ is Value and v.tape.__class__ is Record and v.tape.walk:
                copy.inputs[n] = end = Value(v.meta, None, v.index)
                end.requires_grad, end.tape = True, spent(v.tape)


def inputs_read(tape: Any) -> Sequence[int]:
    """Which inputs a derivative may read, or its result be computed from, which it reads."""
    if tape.__class__ is Record and tape.signature.operator is not BACKWARD:
        found = reads(tape.signature, needs_of(tape))
        if not found.outputs:
            return found.inputs
    return [n for n, v in enumerate(tape.inputs) if v.__class__ is Value]


tapes.register(release, inputs_read)


FREED = (
    "Trying to backward through the graph a second time (or directly access saved tensors after "
    "they have already been freed). Saved intermediate values of the graph are freed when you call "
    ".backward() or autograd.grad(). Specify retain_graph=True if you need to backward through the "
    "graph a second time or if you need to access saved tensors after calling backward."
)
