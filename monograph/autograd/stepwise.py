"""A backward pass that makes stops: at hooks, custom functions, and what the caller asks for.

The records between root and leaves are taken in PyTorch's order, the latest first. Neighbours that
need no Python code form a segment, and each segment is one recorded entry from the gradients known
so far to those at its border. In between, Python code runs, once, with gradients that are recorded
and not computed, unless it reads them.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any
from weakref import ref

from .. import appending, errors, history, tapes
from ..compiler.recording import BACKWARD
from ..placement import CPU, META
from ..recorder import Freed, Record, current
from ..storage import Value
from ..tensor import Tensor, from_value
from . import anomaly, saved
from .engine import _walks, deposit, record_pass
from .graph import PythonNode
from .hooks import hooks_of, run_hooks

Order = tuple[int, int, int]


class Survey:
    """What lies between roots and the values wanted (None: all leaves that require gradients)."""

    def __init__(self, roots: Sequence[Value], wanted: Sequence[Value] | None) -> None:
        self.results: dict[int, list[Value]] = {}  # id of a tape → those of its results met
        values = self._values(roots)
        chosen = None if wanted is None else {id(v) for v in wanted}
        needed: set[int] = set()  # ids of tapes to differentiate
        goals: set[int] = set()  # ids of values that a gradient is needed for
        tapes: dict[int, Any] = {}
        met = {id(v) for v in values}
        for value in values:  # inputs come before results
            tape = value.tape
            if tape.__class__ is Freed and (chosen is None or not chosen <= met):
                raise errors.GradientError(saved.FREED)
            if tape is None:
                if chosen is None or id(value) in chosen:
                    goals.add(id(value))
                continue
            if any(id(v) in goals for v in tape.inputs):
                needed.add(id(tape))
            if id(tape) in needed or (chosen is not None and id(value) in chosen):
                goals.add(id(value))
                tapes[id(tape)] = tape
                self.results.setdefault(id(tape), []).append(value)
        self.needed = needed
        self.goals = goals
        self.values = values
        order = _orders(values)
        # Tapes that are met but not needed have results that are wanted themselves.
        self.tapes = sorted(tapes.values(), key=lambda t: order[id(t)], reverse=True)
        self.ends = [v for v in values if v.tape is None and id(v) in goals]

    @staticmethod
    def _values(roots: Sequence[Value]) -> list[Value]:
        """All values on the tape, inputs before results."""
        found: list[Value] = []
        seen: set[int] = set()
        stack: list[tuple[Value, bool]] = [(root, False) for root in roots]
        while stack:
            value, done = stack.pop()
            if done:
                found.append(value)
                continue
            if id(value) in seen:
                continue
            seen.add(id(value))
            stack.append((value, True))
            if value.tape is not None:
                inputs = [v for v in value.tape.inputs if v.__class__ is Value and v.requires_grad]
                stack.extend((v, False) for v in inputs)
        return found

    def steps(self) -> list[tuple[Any, list[Value]]]:
        """The tapes to differentiate, with their results."""
        return [(t, self.results[id(t)]) for t in self.tapes if id(t) in self.needed]

    def check(self, retain: bool) -> None:
        """Raise where PyTorch would: freed before, or written over since."""
        steps = self.steps()
        saved.check_freed([tape for tape, _ in steps if tape.walk])
        saved.check_versions(steps)
        saved.replace_gone([tape for tape, _ in steps])
        if not retain:
            tapes.note_pass()
            number = next(_walks)
            for tape, _ in steps:
                tape.walk = number


def _orders(values: Sequence[Value]) -> dict[int, Order]:
    """Of every tape its place in time: the latest is differentiated first.

    Values that are data by now have lost theirs; they come after what they were computed from.
    """
    found: dict[int, Order] = {}
    for value in values:
        tape = value.tape
        if tape is None:
            continue
        before = [
            found[id(v.tape)] for v in tape.inputs
            if v.__class__ is Value and v.requires_grad and v.tape is not None
        ]  # fmt: skip
        own: Order = (-1, 0, 0)
        if isinstance(tape, PythonNode):
            own = (*tape.order, 0)
        elif value.position >= 0:
            own = (value.epoch, value.position, 0)
        latest = max(before, default=own)
        if before and own <= latest:
            own = (latest[0], latest[1], latest[2] + 1)
        found[id(tape)] = max(own, found.get(id(tape), own))
    return found


class Pass:
    """One backward pass over a survey. Gradients are tensors whose values are recorded."""

    def __init__(self, survey: Survey, captured: Sequence[Value], create: bool) -> None:
        self.survey = survey
        self.create = create
        self.captured = {id(v) for v in captured}
        self.found: dict[int, Tensor] = {}  # what the caller asked for, by the id of its value
        self.gradients: dict[int, Tensor | None] = {}  # known so far, by value; None is ones
        self.shared: dict[int, Any] = {}  # gradients that somebody else may hold, weakly, by id
        self.watched = anomaly.enabled()
        self.notes: dict[Any, Any] = {}  # what hooks on several tensors remember

    def run(self, roots: Sequence[Value], cotangents: Sequence[Tensor | None]) -> None:
        """Hand gradients down from the roots."""
        for root, given in zip(roots, cotangents, strict=True):
            if given is None and id(root) not in self.gradients:
                self.gradients[id(root)] = None  # ones that nobody may ever look at
                continue
            self._add(root, _ones(root) if given is None else given)
            self._share(given)
        last: dict[int, Any] = {}
        for tape in self.survey.tapes:
            if id(tape) in self.survey.needed:
                last.update((id(v), tape) for v in tape.inputs if v.__class__ is Value)
        ending: dict[int, list[Value]] = {}
        for end in self.survey.ends:
            ending.setdefault(id(last.get(id(end))), []).append(end)
        for end in ending.pop(id(None), []):
            self._finish(end)
        self._steps(ending)

    def _steps(self, ending: dict[int, list[Value]]) -> None:
        segment: list[Any] = []
        waiting: list[Value] = []
        for tape in self.survey.tapes:
            if self._stops_at(tape):
                self._close(segment, waiting)
                segment = self._stop(tape)
            else:
                segment.append(tape)
            for end in ending.get(id(tape), ()):
                waiting.append(end)
                if _leaf_hooks(end):
                    self._close(segment, waiting)
                    segment = []
        self._close(segment, waiting)

    def _stops_at(self, tape: Any) -> bool:
        if self.watched or isinstance(tape, PythonNode) or tape.hooks is not None:
            return True
        results = self.survey.results[id(tape)]
        return any(id(v) in self.captured or hooks_of(v) is not None for v in results)

    # --- gradients ---

    def _gradient(self, value: Value) -> Tensor | None:
        """The gradient of a value so far; None if there is none."""
        if id(value) in self.gradients and self.gradients[id(value)] is None:
            self.gradients[id(value)] = _ones(value)
        return self.gradients.get(id(value))

    def _add(self, value: Value, gradient: Tensor) -> None:
        held = self._gradient(value)
        self.gradients[id(value)] = gradient if held is None else held + gradient

    def _share(self, gradient: Tensor | None) -> None:
        """Note that somebody else may hold a gradient."""
        if gradient is not None:
            self.shared[id(gradient)] = ref(gradient)

    def _is_shared(self, gradient: Tensor) -> bool:
        noted = self.shared.get(id(gradient))  # of one that is gone, another may have the place
        return noted is not None and noted() is gradient

    def _close(self, segment: list[Any], waiting: list[Value]) -> None:
        """Record the derivative of a segment, and hand out what is complete then."""
        if segment:
            self._differentiate(segment)
            segment.clear()
        for end in waiting:
            self._finish(end)
        waiting.clear()

    def _differentiate(self, segment: list[Any]) -> None:
        """From the gradients known at a segment's results to those at its border."""
        results, goals = self.survey.results, self.survey.goals
        live: set[int] = set()  # values inside that receive a gradient
        sources: list[Value] = []
        border: dict[int, Value] = {}
        inside = {id(v) for tape in segment for v in results[id(tape)]}
        used: list[Any] = []
        for tape in segment:
            known = [v for v in results[id(tape)] if id(v) in self.gradients]
            sources += known
            if not known and not any(id(v) in live for v in results[id(tape)]):
                continue
            used.append(tape)
            for v in tape.inputs:
                if v.__class__ is Value and v.requires_grad and id(v) in goals:
                    live.add(id(v))
                    if id(v) not in inside:
                        border[id(v)] = v
        if not border:
            return
        _restore(used, results)
        given = [self.gradients.pop(id(v)) for v in sources]
        targets = list(border.values())
        parts = record_pass(sources, given, targets, self.create)
        for target, part in zip(targets, parts, strict=True):
            self._add(target, from_value(part))

    # --- stops ---

    def _stop(self, tape: Any) -> list[Any]:
        """Run the Python code that belongs to a step; what remains to be differentiated of it."""
        results = self.survey.results[id(tape)]
        needed = id(tape) in self.survey.needed
        for value in results:
            gradient = self._gradient(value)
            if gradient is None:
                continue
            changed = _run_value_hooks(value, gradient)
            self._share(changed)
            if id(value) in self.captured:
                # As in PyTorch: what goes further is changed by hooks, but not what is captured.
                self.found[id(value)] = gradient if needed else changed
            self.gradients[id(value)] = changed
        if not needed:
            for value in results:
                self.gradients.pop(id(value), None)
            return []
        if not any(id(value) in self.gradients for value in results):
            return []
        if isinstance(tape, PythonNode) or tape.hooks is not None or self.watched:
            self._step(tape, results)
            return []
        return [tape]

    def _step(self, tape: Any, results: list[Value]) -> None:
        """One step by itself, with the hooks on its node."""
        is_python = isinstance(tape, PythonNode)
        count = tape.count if is_python else len(tape.signature.outputs)
        outputs: list[Tensor | None] = [None] * count
        for value in results:
            number = tape.numbers[id(value)] if is_python else value.index
            outputs[number] = self._gradient(value)
            self.gradients.pop(id(value), None)
        hooks = tape.hooks
        for hook in list(hooks.before.values()) if hooks is not None else ():
            outputs = _replaced(hook(tuple(outputs)), outputs)
        inputs = [v if v.__class__ is Value and v.requires_grad else None for v in tape.inputs]
        if is_python:
            parts = list(tape.pull(outputs))
        else:
            parts = self._one(tape, results, outputs, inputs)
        for hook in list(hooks.after.values()) if hooks is not None else ():
            parts = _replaced(hook(tuple(parts), tuple(outputs)), parts)
        if self.watched:
            anomaly.check(tape, parts)
        for target, part in zip(inputs, parts, strict=True):
            if target is not None and part is not None and id(target) in self.survey.goals:
                self._share(part)
                self._add(target, part)

    def _one(
        self, tape: Record, results: list[Value], outputs: list[Tensor | None], inputs: list[Any]
    ) -> list[Tensor | None]:
        """The gradients of a single record's inputs."""
        known = [v for v in results if outputs[v.index] is not None]
        parts: list[Tensor | None] = [None] * len(inputs)
        targets = [v for v in inputs if v is not None]
        if not known or not targets:
            return parts
        _restore([tape], self.survey.results)
        unique = list({id(v): v for v in targets}.values())
        made = record_pass(known, [outputs[v.index] for v in known], unique, self.create)
        gradient = {id(v): part for v, part in zip(unique, made, strict=True)}
        for n, target in enumerate(inputs):
            if target is not None and id(target) in gradient:  # one that stands twice gets it once
                parts[n] = from_value(gradient.pop(id(target)))
        return parts

    def _finish(self, end: Value) -> None:
        """A leaf's gradient is complete."""
        gradient = self._gradient(end)
        self.gradients.pop(id(end), None)
        tensor = end.leaf() if end.leaf is not None else None
        if gradient is None:
            return
        if tensor is not None and tensor._hooks:
            gradient = run_hooks(tensor._hooks, gradient)
            self._share(gradient)
        if id(end) in self.captured:
            self.found[id(end)] = gradient
        elif tensor is not None:
            recorder = current.recorder
            if recorder.outer is not None:
                recorder.check_deposit(end)
            own = gradient.clone() if self._is_shared(gradient) else gradient
            deposit(tensor, own, self.create)
            for hook in list(tensor._post_hooks.values()) if tensor._post_hooks else ():
                hook(tensor)


class Running(threading.local):
    """The passes of a thread that are under way; a checkpoint's is one inside another."""

    def __init__(self) -> None:
        self.passes: list[Pass] = []


running = Running()


def _replaced(made: Any, given: list[Any]) -> list[Any]:
    """What a hook on a node returned, as a list; None leaves all as it was."""
    if made is None:
        return given
    listed = list(made) if isinstance(made, (tuple, list)) else [made]
    if len(listed) != len(given):
        raise errors.GradientError(
            f"a hook has returned an incorrect number of gradients (got {len(listed)}, "
            f"but expected {len(given)})"
        )
    return listed


def _run_value_hooks(value: Value, gradient: Tensor) -> Tensor:
    hooks = hooks_of(value)
    if hooks is None:
        return gradient
    gradient = run_hooks(hooks.before, gradient)
    keeper = hooks.keeper() if hooks.keeper is not None else None
    if keeper is not None:
        keeper._grad = gradient.clone() if keeper._grad is None else keeper._grad + gradient
    return gradient


def _leaf_hooks(end: Value) -> bool:
    tensor = end.leaf() if end.leaf is not None else None
    return tensor is not None and bool(tensor._hooks or tensor._post_hooks)


def _ones(root: Value) -> Tensor:
    from ..ops.creation import full

    where = META if root.meta.absent else CPU
    return full(root.meta.shape, 1.0, dtype=root.meta.dtype, device=where)


def _restore(tapes: Sequence[Any], results: dict[int, list[Value]]) -> None:
    """Make sure that a segment stands in the pending recording."""
    recorder = current.recorder
    values: list[Value] = []
    for tape in reversed(tapes):
        if tape.signature.operator is BACKWARD:
            count = tape.signature.attributes[0]
            if any(v.epoch != recorder.epoch or v.position < 0 for v in results[id(tape)]):
                appending.record_tape(tape.inputs[:count], tape.inputs[2 * count :])
        values += results[id(tape)]
    appending.record_values(values)


# --- what the engine calls ------------------------------------------------------------------------


def _sweep(
    roots: Sequence[Value], cotangents: Sequence[Tensor | None], wanted: Sequence[Value] | None,
    captured: Sequence[Value], retain: bool, create: bool,
) -> Pass:  # fmt: skip
    survey = Survey(roots, wanted)
    survey.check(retain)
    made = Pass(survey, captured, create)
    records = [tape for tape, _ in survey.steps() if tape.__class__ is Record]
    _go(made, roots, cotangents, records, retain)
    return made


def _go(
    made: Pass, roots: Sequence[Value], cotangents: Sequence[Tensor | None], records: list[Record],
    retain: bool,
) -> None:  # fmt: skip
    """Run a pass, and let go of what it has freed."""
    survey, recorder = made.survey, current.recorder
    before, recorder.grad = recorder.grad, made.create
    recorder.passing += 1
    running.passes.append(made)
    try:
        _restore(records, survey.results)  # in one go: a segment would enter the next one's as data
        made.run(roots, cotangents)
    finally:
        recorder.grad = before
        recorder.passing -= 1
        running.passes.pop()
        if not retain:
            for tape, _ in survey.steps():
                if isinstance(tape, PythonNode):
                    tape.release()
            recorder.spent += [ref(value) for value in roots if value.ready]
            history.release_known(recorder)


def accumulate(
    roots: Sequence[Value], cotangents: Sequence[Tensor | None], retain: bool, create: bool,
    inputs: Tensor | Sequence[Tensor] | None,
) -> None:  # fmt: skip
    """Add gradients to `.grad` of all leaves, or of the tensors named."""
    wanted = None
    if inputs is not None:
        tensors = [inputs] if isinstance(inputs, Tensor) else list(inputs)
        if not tensors:
            raise errors.GradientError("`inputs` argument to `backward()` cannot be empty.")
        for tensor in tensors:
            tensor.retain_grad()
        wanted = [tensor._value() for tensor in tensors]
    _sweep(roots, cotangents, wanted, (), retain, create)


def gradients(
    roots: Sequence[Value], cotangents: Sequence[Tensor | None], retain: bool, create: bool,
    inputs: Sequence[Tensor],
) -> list[Tensor | None]:  # fmt: skip
    """The gradients of the tensors named; None for those that the roots do not depend on."""
    latest = [t._value() for t in inputs]
    earlier = _earlier(roots, inputs)
    values = [*latest, *[value for _, value in earlier]]
    found = gradients_of(roots, cotangents, retain, create, values)
    recorder = current.recorder
    before, recorder.grad = recorder.grad, create
    try:
        for (n, _), part in zip(earlier, found[len(latest) :], strict=True):
            if part is not None:
                found[n] = part if found[n] is None else found[n] + part  # type: ignore[operator]
    finally:
        recorder.grad = before
    return found[: len(latest)]


def _earlier(roots: Sequence[Value], inputs: Sequence[Tensor]) -> list[tuple[int, Value]]:
    """Values that leaves among the inputs had when they were used: (number of the input, value).

    A leaf written to within no_grad has a new value, and the tape ends at the one of before.
    """
    numbers = {id(t): n for n, t in enumerate(inputs) if t._storage.version and t.is_leaf}
    if not numbers:
        return []
    found: list[tuple[int, Value]] = []
    seen: set[int] = set()
    stack = list(roots)
    while stack:
        value = stack.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if value.tape is not None:
            stack += [v for v in value.tape.inputs if v.__class__ is Value and v.requires_grad]
            continue
        leaf = value.leaf() if value.leaf is not None else None
        if leaf is not None and id(leaf) in numbers and leaf._value() is not value:
            found.append((numbers[id(leaf)], value))
    return found


def gradients_of(
    roots: Sequence[Value], cotangents: Sequence[Tensor | None], retain: bool, create: bool,
    wanted: Sequence[Value],
) -> list[Tensor | None]:  # fmt: skip
    """The same by values."""
    found = _sweep(roots, cotangents, wanted, wanted, retain, create).found
    return [found.get(id(value)) for value in wanted]
