"""A backward pass over the results of many flushes, with one program for each of them.

The turns of an episode whose actions were read were flushed one by one. Their derivatives are taken
flush by flush too, the latest first, so that an episode of another length runs the same programs
another number of times. What a flush recorded, and the gradients that have reached it, make a
`Segment`: a recording that is formed and run by itself (`segment.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Any

from .. import appending, launches, pending, record, statistics
from ..compiler.recording import BACKWARD
from ..config import config
from ..recorder import Record, Recorder, current
from ..storage import Value
from ..tensor import Tensor, from_value
from . import saved
from .segment import Part, Unfit, form_of, formed

REASON = "backward pass over many flushes"
Tapes = dict[Record, list[Value]]  # with those of their results that were met


def accumulate(
    roots: Sequence[Value], cotangents: Sequence[Tensor | None], leaves: Sequence[Value],
    retain: bool,
) -> list[Value] | None:  # fmt: skip
    """The gradients of the leaves; None if the pass must be one program."""
    recorder = current.recorder
    recorder.passing += 1
    try:
        return _gradients(recorder, roots, cotangents, leaves, retain)
    except Unfit:
        return None
    finally:
        recorder.passing -= 1


def _gradients(
    recorder: Recorder, roots: Sequence[Value], cotangents: Sequence[Tensor | None],
    leaves: Sequence[Value], retain: bool,
) -> list[Value]:  # fmt: skip
    flushes, gone = _walk(recorder, roots)
    if gone:
        saved.replace_gone([step for tapes in flushes.values() for step in tapes])
    gradients: dict[int, Value | None] = {}  # by the id of a value; None is ones
    for root, given in zip(roots, cotangents, strict=True):
        if id(root) in gradients:
            raise Unfit
        gradients[id(root)] = None if given is None else record.value_of(given)
    tapes = flushes.pop(recorder.epoch, None)
    if tapes is not None:
        _pending(sorted(tapes, key=_place), tapes, gradients)
    if recorder.records:
        record.flush(REASON)
    if recorder.owner.failure is not None:
        record.wait()
    for born in sorted(flushes, reverse=True):
        tapes = flushes[born]
        _differentiate(recorder, born, tapes, gradients)
        if not retain:
            _release(tapes)
    return [_known(gradients[id(leaf)]) for leaf in leaves]


_place = attrgetter("place")


def _walk(recorder: Recorder, roots: Sequence[Value]) -> tuple[dict[int, Tapes], bool]:
    """The steps between the roots and leaves, by the recording that they were made in.

    And whether something that they read, and that has no derivative, was not kept.
    """
    flushes: dict[int, Tapes] = {}
    gone, epoch = False, recorder.epoch
    stack = list(roots)
    while stack:
        value = stack.pop()
        step = value.tape
        if step is None:
            continue
        born = step.born
        tapes = flushes.get(born)
        if tapes is None:
            tapes = flushes[born] = {}
        results = tapes.get(step)
        if results is not None:
            if value not in results:
                results.append(value)
            continue
        tapes[step] = [value]
        if not born or step.signature.operator is BACKWARD or value.meta.absent:
            raise Unfit
        for v in step.inputs:
            if v.__class__ is not Value:
                continue
            if not v.requires_grad:
                gone = gone or (v.memory is None and v.epoch != epoch)
            elif v.tape is not None:
                if v.tape.born >= born and (v.tape.born, v.tape.place) >= (born, step.place):
                    raise Unfit  # of another thread
                stack.append(v)
    return flushes, gone


def _pending(steps: list[Record], tapes: Tapes, gradients: dict[int, Value | None]) -> None:
    """Record the derivative of what is pending, and run all that is."""
    from .engine import record_pass

    recorder = current.recorder
    for step in steps:
        for value in tapes[step]:
            if value.epoch != recorder.epoch or value.position < 0:
                raise Unfit
            place = value.position
            for v in step.inputs:
                if v.__class__ is Value and v.position > place and v.epoch == recorder.epoch:
                    raise Unfit  # see `history.is_behind`
    part = Part(steps, tapes, gradients, None)
    parts = record_pass(
        part.sources, [None if g is None else from_value(g) for g in part.given], part.targets,
        False,
    )  # fmt: skip
    kept = []  # what has no tensor would not be computed
    for target, held, made in zip(part.targets, part.held, parts, strict=True):
        tensor = from_value(made)
        if held is not None:
            tensor = from_value(held) + tensor
        kept.append(tensor)
        gradients[id(target)] = tensor._value()
    record.flush(REASON)


def _known(gradient: Value | None) -> Value:
    if gradient is None:
        raise Unfit
    return gradient


def _release(tapes: Tapes) -> None:
    """Forget the contents of results that were kept for this pass."""
    for results in tapes.values():
        for value in results:
            owner = value.owner() if value.owner is not None else None
            if owner is None or owner.value is not value:
                value.memory = None


def _differentiate(
    recorder: Recorder, born: int, tapes: Tapes, gradients: dict[int, Value | None]
) -> None:
    """From the gradients at the results of one flush to those of what it was given."""
    of = appending.residuals.key_of(born)
    part = Part(sorted(tapes, key=_place), tapes, gradients, of)
    form, leaves, slots = form_of(part, of)
    statistics.note_flush(REASON, len(form.calls))
    chosen = tuple(sorted(form.wanted))
    key = (form.key, config.backend, config.onednn, config.bounds_checks)
    executable: Any = record.programs.find(key, chosen, ())
    if executable is None:
        recording = pending.form(formed(part, of)[1], chosen, ())
        executable = record.programs.make(key, recording, config.backend)
    if record.observer is not None:
        record.observer.replay([(each.code, each.offset) for each in part.lines(form)])
    outcomes = dict(zip(executable.outputs, executable.run(leaves, slots), strict=True))
    values = [Value(meta) for meta in form.metas]
    for value, target, place in zip(values, part.targets, form.wanted, strict=True):
        value.memory = outcomes[place]
        gradients[id(target)] = value
    owner = recorder.owner
    if executable.watched or owner.launches or owner.failure is not None:
        calls = part.lines(form) if executable.checks else []
        launch = launches.Replayed(executable, launches.lines_of(executable.checks, calls))
        launch.values = values
        launches.begin(owner, launch)
