"""Loops as one recorded operator: the body is traced once, with tensors that have no contents.

`record_loop` calls a turn with placeholders in a recording of its own, as `vmap` does. That
recording becomes the attribute of one entry of the outer one: an operator whose definition expands
it into the body of a `Loop` (`ir/loop.py`). What the turn captures from outside is shared by all
turns, and numbers are slots. Recordings of equal structure are one object, so a second call
compiles nothing, and neither does another number of turns once two were seen.

Where a turn does what has no single recording (it reads a value, writes into a tensor from outside,
has hooks), `NotOneBody` is raised, and the caller makes one turn after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from . import appending, errors, nested, pending, record
from .autograd.hooks import hooks_of
from .autograd.vmap import Taken, placeholder, reached, record_traced
from .compiler.recording import Expansion, Recording
from .ir import build, loop
from .ir.check import check
from .ir.dtypes import int64
from .ir.node import Node
from .ir.operator import Operator, Parameter, noted
from .ops.creation import arange
from .ops.random import Draw
from .recorder import Record, Recorder
from .storage import Value
from .tensor import Tensor

# One turn on lists of tensors: (carried, elements) → (next carries, what is stacked).
Turn = Callable[[list[Tensor], list[Tensor]], tuple[list[Tensor], list[Tensor]]]


class NotOneBody(Exception):
    """A turn cannot be recorded once for all turns."""


@dataclass(frozen=True, eq=False)
class TracedLoop:
    """A turn as it was recorded; one object per structure.

    The leaves of the recording are what is carried, one element of each sequence, and what the turn
    captured.
    """

    recording: Recording
    carries: int
    sequences: int
    cut: tuple[bool, ...]  # per result: whether derivatives end at it
    draws: tuple[tuple[int, int], ...]  # slots to draw random numbers with, and steps per turn
    reverse: bool
    length: int | None  # the number of turns, where there is no sequence to tell
    going: int | None  # the carry that says whether a turn counts, where not all do


_traced: dict[Any, TracedLoop] = {}


def _definition(operands: Sequence[Node], traced: TracedLoop) -> tuple[Node, ...]:
    """The loop: its body is the recording, expanded on parameters."""
    recording = traced.recording
    leaves = list(operands[: len(recording.leaves)])
    numbers = list(operands[len(recording.leaves) :])
    first, rest = traced.carries, traced.carries + traced.sequences
    trips = traced.length if traced.length is not None else leaves[first].shape[0]
    shapes = [x.shape[1:] if first <= n < rest else x.shape for n, x in enumerate(leaves)]
    parameters = [
        loop.parameter(n, shape, x.dtype)
        for n, (shape, x) in enumerate(zip(shapes, leaves, strict=True))
    ]
    inputs = leaves
    given = parameters
    if traced.draws:  # each turn draws behind the one before
        turn = loop.parameter(len(parameters), (), int64)
        count = build.coordinate((trips,), 0)
        count = trips - 1 - count if traced.reverse else count
        inputs = [*leaves[:rest], count, *leaves[rest:]]
        given = [*parameters[:rest], turn, *parameters[rest:]]
        for slot, steps in traced.draws:
            numbers[slot] = build.cast(numbers[slot], int64) + turn * steps
    expansion = Expansion(recording, parameters, numbers)
    outputs = expansion.run()
    rules = noted()
    if rules is not None:
        for number, rule in expansion.rules.items():
            rules.setdefault(number, rule)
    wrong = []
    for each in expansion.checks:
        # What is wrong in a turn that does not count is nobody's fault.
        counts = None if traced.going is None else parameters[traced.going]
        wrong.append(each.bad if counts is None else build.elementwise("and", each.bad, counts))
        wrong.append(each.value)
    body = loop.LoopBody(
        given, traced.sequences + bool(traced.draws), outputs[:first], outputs[first:] + wrong
    )
    made = loop.results(loop.loop(inputs, body, trips, traced.reverse))
    found = iter(made[len(outputs) :])
    for each, note in zip(expansion.checks, expansion.notes, strict=True):
        check(next(found), next(found), note.message, each.error)
    pairs = zip(made, traced.cut, strict=False)  # behind the results stand the checks
    return tuple([build.apply("detach", node) if cut else node for node, cut in pairs])


LOOP = Operator(
    "loop", _definition,
    (Parameter("operands", "inputs", None), Parameter("traced", "attribute", None)),
    widen=False,
)  # fmt: skip


def record_loop(
    turn: Turn, carried: Sequence[Tensor], sequences: Sequence[Tensor], trips: int, reverse: bool
) -> list[Tensor]:
    """What is carried in the end, and the stacks: the results of one recorded operator."""
    inputs, traced = _traced_loop(turn, carried, sequences, trips, reverse, None)
    return record_traced(LOOP, traced, inputs)


class Repeated:
    """A turn that was traced once, to be made as often as it takes.

    Of the turns those count whose carry number `going` is true; the others must leave all that is
    carried as it is.
    """

    def __init__(self, turn: Turn, carried: Sequence[Tensor], going: int) -> None:
        self.turn = turn
        self.carries = len(carried)
        self.inputs, self.traced = _traced_loop(turn, carried, [arange(2)], 2, False, going)

    @property
    def requires_grad(self) -> bool:
        """Whether something that the turns read requires gradients."""
        return any([isinstance(v, Value) and v.requires_grad for v in self.inputs])

    def __call__(self, carried: Sequence[Tensor], trips: int) -> list[Tensor]:
        """What is carried after so many turns."""
        given = [record.value_of(t) for t in (*carried, arange(trips))]
        return record_traced(LOOP, self.traced, [*given, *self.inputs[len(given) :]])


def _traced_loop(
    turn: Turn, carried: Sequence[Tensor], sequences: Sequence[Tensor], trips: int, reverse: bool,
    going: int | None,
) -> tuple[list[Any], TracedLoop]:  # fmt: skip
    """The inputs of the operator, and its attribute."""
    given = [record.value_of(t) for t in (*carried, *sequences)]
    with nested.inner() as recorder:
        try:
            return _trace(recorder, turn, given, len(carried), trips, reverse, going)
        except errors.TransformError as problem:
            _move_generators(recorder, -1)
            raise NotOneBody from problem
        except BaseException:
            _move_generators(recorder, -1)
            raise


def _trace(
    recorder: Recorder, turn: Turn, given: list[Value], carries: int, trips: int,
    reverse: bool, going: int | None,
) -> tuple[list[Any], TracedLoop]:  # fmt: skip
    arguments = []
    for n, value in enumerate(given):
        # A carry may come to require gradients in a later turn.
        grad = recorder.grad and value.meta.smooth if n < carries else value.requires_grad
        shape = value.meta.shape if n < carries else value.meta.shape[1:]
        arguments.append(placeholder(recorder, shape, value.meta.dtype, grad))
    after, stacked = turn(arguments[:carries], arguments[carries:])
    values = [record.value_of(t) for t in (*after, *stacked)]
    for value in values:
        if value.epoch != recorder.epoch:
            appending.enter(recorder, value)
    leaves = given + recorder.leaves[len(given) :]
    cut = _cut(recorder, values, leaves, carries)
    draws = _draws(recorder)
    if draws and going is not None:
        raise errors.TransformError("how many numbers are drawn depends on data")
    length = trips if len(given) == carries else None
    kinds = tuple([value.meta for value in recorder.leaves])
    wanted = tuple([value.position for value in values])
    rest = (carries, len(given) - carries, cut, draws, reverse, length, going)
    key = (tuple(recorder.key), kinds, wanted, *rest)
    traced = _traced.get(key)
    if traced is None:
        traced = _traced[key] = TracedLoop(pending.form(recorder, wanted, ()), *rest)
    return [*leaves, *_slots(recorder, trips)], traced


def _cut(
    recorder: Recorder, results: list[Value], leaves: list[Value], carries: int
) -> tuple[bool, ...]:
    """Which results derivatives end at: they depend on nothing that requires gradients."""
    inside = recorder.leaves
    active = {
        id(one) for one, whole in zip(inside, leaves, strict=True) if whole.requires_grad
    } if recorder.grad else set()  # fmt: skip
    if not active:
        return (False,) * len(results)
    _refuse_python(results)
    reach = [{id(v) for v in reached([value])} for value in results]
    while True:  # what is carried hands on what it depends on
        more = {
            id(inside[k]) for k in range(carries) if reach[k] & active and results[k].requires_grad
        } - active
        if not more:
            break
        active |= more
    return tuple([v.meta.smooth and not (r & active) for v, r in zip(results, reach, strict=True)])


def _refuse_python(results: list[Value]) -> None:
    """Code of the user's on the tape runs once per turn, so each turn is recorded."""
    for value in reached(results):
        custom = value.tape is not None and value.tape.__class__ is not Record
        if custom or hooks_of(value) is not None or getattr(value.tape, "hooks", None):
            raise errors.TransformError("the derivative of a turn runs Python code")


# --- random numbers -------------------------------------------------------------------------------


def _draw(live: Any) -> Draw | None:
    """The draw behind a live number, if it is one."""
    while isinstance(live, Taken):
        live = live.live
    return live if isinstance(live, Draw) else None


def _steps(recorder: Recorder) -> dict[Any, int]:
    """By generator, how far one turn moves it on."""
    found: dict[Any, int] = {}
    for _, live in recorder.live_slots:
        draw = _draw(live)
        if draw is not None:
            found[draw.mapping] = found.get(draw.mapping, 0) + draw.name
    return found


def _draws(recorder: Recorder) -> tuple[tuple[int, int], ...]:
    steps = _steps(recorder)
    pairs = [(n, _draw(live)) for n, live in recorder.live_slots]
    return tuple([(n, steps[draw.mapping]) for n, draw in pairs if draw is not None])


def _move_generators(recorder: Recorder, turns: int) -> None:
    """Move on the generators that a turn drew from, by that many turns."""
    for generator, steps in _steps(recorder).items():
        seed, offset = generator.position
        generator.position = (seed, offset + turns * steps)


def _slots(recorder: Recorder, trips: int) -> list[Any]:
    """The numbers of the operator; the last draw of a generator moves it behind all turns."""
    slots = list(recorder.slots)
    steps = _steps(recorder)
    _move_generators(recorder, trips - 1)
    for n, live in reversed(recorder.live_slots):
        draw = _draw(live)
        if draw is not None and draw.mapping in steps:
            live = Draw(draw.mapping, draw.name + (trips - 1) * steps.pop(draw.mapping))
        slots[n] = Taken(live, slots[n])
    return slots
