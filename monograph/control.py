"""Control flow as functions: cond, while_loop, scan, fori_loop, map.

Plain Python loops and `if` work too; these say what a loop is, so that it can be mapped,
differentiated and compiled as one. `scan`, `fori_loop` and `map` call their function once, with
tensors that have no contents, and record one operator (`loop_recording.py`). A function that reads
values, writes into tensors from outside or registers hooks is called turn by turn instead.
while_loop makes 1, 2, 4, … turns and then reads whether to go on; once the number of turns is
known, its derivative is that of one loop. cond reads its predicate, unless it stands inside a trace
(`mg.jit`) or a mapped function: then both branches are computed and the results selected. All
derivatives are those of the unrolled code.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import errors, nested, tree
from .autograd.modes import no_grad
from .ir.dtypes import int64
from .loop_recording import NotOneBody, Repeated, record_loop
from .ops.comparison import logical_and
from .ops.creation import arange, zeros
from .ops.joining import stack
from .ops.math import where
from .recorder import current
from .tensor import Tensor, tensor

Function = Callable[..., Any]


def _tensors(given: Any) -> Any:
    """The tree with numbers made tensors, so that a carry has one kind throughout."""
    return tree.map_leaves(lambda x: x if isinstance(x, Tensor) else tensor(x), given)


def _call(function: Function, operands: Any) -> Any:
    return function(*operands) if isinstance(operands, tuple) else function(operands)


def _kinds(given: Any) -> Any:
    leaves, structure = tree.flatten(given)
    return structure, [leaf._value().meta.plain for leaf in leaves]


def _check_same(what: str, before: Any, after: Any) -> None:
    """Refuse trees that differ in structure, shapes or dtypes."""
    old_structure, old = _kinds(before)
    new_structure, new = _kinds(after)
    if old_structure != new_structure:
        raise errors.StructureError(f"{what}: {old_structure!r} became {new_structure!r}")
    for a, b in zip(old, new, strict=True):
        if a is not b:
            raise errors.StructureError(f"{what}: {a} became {b}")


def cond(pred: Any, true_fn: Function, false_fn: Function, operands: Any = ()) -> Any:
    """What `true_fn` gives for the operands if `pred` holds, else what `false_fn` gives.

    A tuple of operands becomes the arguments. Inside `mg.jit` and `mg.vmap` a tensor decides by
    selection: both functions are computed and must return the same shapes and dtypes.

    >>> import monograph as mg
    >>> x = mg.tensor(-2.0)
    >>> mg.cond(x > 0, lambda x: x, lambda x: -x, (x,)).item()
    2.0
    """
    if not isinstance(pred, Tensor):
        return _call(true_fn if pred else false_fn, operands)
    if pred.numel() != 1:
        raise errors.OperandError(
            f"cond: the predicate must have one element, got {list(pred.shape)}"
        )
    if not current.recorder.hold:
        return _call(true_fn if bool(pred) else false_fn, operands)
    holds = _call(true_fn, operands), _call(false_fn, operands)
    yes, no = (_tensors(result) for result in holds)
    _check_same("cond: the branches return different things", yes, no)
    return _select(pred, yes, no)


def while_loop(cond_fn: Function, body_fn: Function, carried: Any) -> Any:
    """Apply `body_fn` to what is carried as long as `cond_fn` of it holds.

    A tuple that is carried becomes the arguments of both. The body returns what it was given, in
    the same structure, shapes and dtypes. Both are called a few times, or for each turn where that
    will not do: a body that reads values, draws random numbers or writes into tensors from
    outside. Inside `mg.vmap` the loop goes on until no example needs another turn.

    >>> import monograph as mg
    >>> mg.while_loop(lambda x: x < 10, lambda x: x * 2, mg.tensor(3)).item()
    12
    """
    from .autograd.vmap import depends_on_examples, holds_for_any

    carried = _tensors(carried)
    tried = current.recorder.hold  # within a trace there is nothing to read
    while True:
        goes_on = _call(cond_fn, carried)
        if not (isinstance(goes_on, Tensor) and depends_on_examples(goes_on)):
            if not bool(goes_on):
                return carried
            carried = _next("while_loop", carried, _call(body_fn, carried))
        elif holds_for_any(goes_on):
            # Examples that are done keep what they have.
            after = _next("while_loop", carried, _call(body_fn, carried))
            carried = _select(goes_on, after, carried)
        else:
            return carried
        if not tried and isinstance(goes_on, Tensor):
            tried = True
            try:
                return _other_turns(cond_fn, body_fn, carried)
            except NotOneBody:
                pass


MOST_TURNS = 1024  # that are made without asking whether to go on


def _other_turns(cond_fn: Function, body_fn: Function, carried: Any) -> Any:
    """What while_loop carries in the end, from its second turn on; turns are traced once.

    More and more turns are made at a time. Those behind the last keep what is carried as it is, so
    at most as many are made in vain. That finds the number of turns; where gradients are asked for,
    a loop of that many turns is recorded, whose derivative computes nothing in vain.
    """
    start, state = tree.flatten(carried)

    def goes_on(now: Any) -> Tensor:
        going = _call(cond_fn, now)
        if not isinstance(going, Tensor) or going.numel() != 1:
            raise NotOneBody
        return going.bool().reshape(())  # type: ignore[attr-defined,no-any-return]

    def turn(now: list[Tensor], elements: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        before = tree.unflatten(state, now)
        after = _next("while_loop", before, _call(body_fn, before))
        return tree.flatten(after)[0], []

    def turn_if_going(now: list[Tensor], _: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        *before, going, count = now
        kept = [where(going, a, b) for a, b in zip(turn(before, [])[0], before, strict=True)]
        more = logical_and(going, goes_on(tree.unflatten(state, kept)))
        return [*kept, more, count + going], []

    with no_grad():
        now = [*start, goes_on(carried), zeros((), dtype=int64)]
        turns = Repeated(turn_if_going, now, going=len(start))
        trips = 2
        while bool((now := turns(now, trips))[-2]):
            trips = min(2 * trips, MOST_TURNS)
    made = int(now[-1])
    if not (current.recorder.grad and turns.requires_grad):
        return tree.unflatten(state, now[:-2])
    if made < 2:
        return tree.unflatten(state, turn(start, [])[0] if made else start)
    return tree.unflatten(state, record_loop(turn, start, [arange(made)], made, False))


def _select(pred: Tensor, yes: Any, no: Any) -> Any:
    decided = pred.bool().reshape(())
    return tree.map_leaves(lambda a, b: where(decided, a, b), yes, no)


def _next(name: str, before: Any, after: Any) -> Any:
    after = _tensors(after)
    _check_same(
        f"{name}: what is carried must keep its structure, shapes and dtypes", before, after
    )
    return after


def scan(
    f: Function, init: Any, xs: Any = None, length: int | None = None, reverse: bool = False
) -> tuple[Any, Any]:
    """Carry a state along the first axis of `xs`: carry, y = f(carry, x) for each x.

    Returns the last carry and the y's, stacked. `xs` may be a tree, or None with a `length`;
    `reverse` goes from the last x to the first.

    >>> import monograph as mg
    >>> add = lambda carry, x: (carry + x, carry + x)
    >>> total, sums = mg.scan(add, mg.tensor(0.0), mg.tensor([1.0, 2.0, 3.0]))
    >>> total.item(), sums.tolist()
    (6.0, [1.0, 3.0, 6.0])
    """
    leaves, structure = tree.flatten(xs)
    count = _length(leaves, length)
    carry = _tensors(init)
    if count > 1:
        try:
            return _as_loop(f, carry, leaves, structure, count, reverse)
        except NotOneBody:
            pass
    collected: list[list[Tensor]] = []
    kind: tree.Structure | None = None
    for n in reversed(range(count)) if reverse else range(count):
        carry, y = _turn(f, carry, tree.unflatten(structure, [leaf[n] for leaf in leaves]))
        parts, kind = tree.flatten(y)
        collected.append(parts)
    if kind is None:
        return carry, _no_results(f, carry, leaves, structure)
    if reverse:
        collected.reverse()
    return carry, tree.unflatten(kind, [stack(list(group)) for group in zip(*collected)])


def _as_loop(
    f: Function, carry: Any, leaves: list[Tensor], structure: tree.Structure, count: int,
    reverse: bool,
) -> tuple[Any, Any]:  # fmt: skip
    """One operator for all turns."""
    carried, state = tree.flatten(carry)
    kinds: list[tree.Structure] = []

    def turn(now: list[Tensor], elements: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        x = tree.unflatten(structure, elements)
        after, y = _turn(f, tree.unflatten(state, now), x)
        parts, kind = tree.flatten(y)
        kinds.append(kind)
        return tree.flatten(after)[0], parts

    made = record_loop(turn, carried, leaves, count, reverse)
    last = tree.unflatten(state, made[: len(carried)])
    return last, tree.unflatten(kinds[0], made[len(carried) :])


def _turn(f: Function, carry: Any, x: Any) -> tuple[Any, Any]:
    result = f(carry, x)
    if not isinstance(result, tuple) or len(result) != 2:
        raise errors.StructureError(
            f"scan: the function returns (carry, y), got {type(result).__name__}"
        )
    return _next("scan", carry, result[0]), _tensors(result[1])


def _length(leaves: list[Any], length: int | None) -> int:
    for leaf in leaves:
        if not isinstance(leaf, Tensor) or not leaf.ndim:
            raise errors.OperandError("scan: xs must be tensors with at least one axis")
    counts = {leaf.shape[0] for leaf in leaves} | ({length} if length is not None else set())
    if len(counts) != 1:
        found = ", ".join([str(n) for n in sorted(counts)]) or "neither xs nor length"
        raise errors.OperandError(f"scan: the number of turns is not one: got {found}")
    return int(counts.pop())


def _no_results(f: Function, carry: Any, leaves: list[Tensor], structure: tree.Structure) -> Any:
    """The stacked results of no turn: a turn is traced for their shapes."""
    from .autograd.vmap import placeholder

    with nested.inner() as recorder:
        given = [placeholder(recorder, tuple(x.shape[1:]), x.dtype) for x in leaves]
        _, y = _turn(f, carry, tree.unflatten(structure, given))
        parts, kind = tree.flatten(y)
        shapes = [(tuple(t.shape), t.dtype) for t in parts]
    return tree.unflatten(kind, [zeros(0, *shape, dtype=dtype) for shape, dtype in shapes])


def fori_loop(lower: int, upper: int, body_fn: Function, init: Any) -> Any:
    """Apply `body_fn(i, carry)` for i from lower to upper - 1.

    i is a tensor, since the function is called once for all turns; where that will not do, it is
    called for each with an integer.

    >>> import monograph as mg
    >>> mg.fori_loop(0, 4, lambda i, x: x + i, mg.tensor(0)).item()
    6
    """
    carry = _tensors(init)
    turns = range(int(lower), int(upper))
    if len(turns) > 1:
        carried, state = tree.flatten(carry)

        def turn(now: list[Tensor], elements: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
            before = tree.unflatten(state, now)
            after = _next("fori_loop", before, body_fn(elements[0], before))
            return tree.flatten(after)[0], []

        count = arange(turns.start, turns.stop)
        try:
            return tree.unflatten(state, record_loop(turn, carried, [count], len(turns), False))
        except (NotOneBody, errors.StructureError):
            pass
    for n in turns:
        carry = _next("fori_loop", carry, body_fn(n, carry))
    return carry


def map(f: Function, xs: Any) -> Any:
    """f of each x along the first axis, one after the other, and the results stacked.

    `mg.vmap` does all at once.

    >>> import monograph as mg
    >>> mg.map(lambda x: x * x, mg.tensor([1.0, 2.0])).tolist()
    [1.0, 4.0]
    """
    return scan(lambda _, x: ((), f(x)), (), xs)[1]
