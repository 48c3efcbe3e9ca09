"""vmap: a function of one example becomes a function of many.

The function is called once, with tensors that have the shape of one example and no contents, in a
recording of its own. That recording becomes one entry of the outer one: an operator whose
definition expands it and gives the graph a batch axis (`transform/batching.py`). So shapes,
derivatives of any order, an outer vmap and compilation follow as they do for any operator. What the
function captures is an input of that operator, and numbers are its slots. Recordings of equal
structure are one object: the second call finds the program of the first.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from .. import appending, errors, nested, pending, record, tree
from ..compiler.recording import Expansion, Recording
from ..ir import build
from ..ir.check import check
from ..ir.dtypes import DType
from ..ir.node import Node
from ..ir.operator import Operator, Parameter
from ..recorder import ARGUMENT, Live, Record, Recorder, current
from ..signatures import signature_of
from ..storage import Value, meta_of
from ..tensor import Tensor, from_value
from ..transform.batching import RANDOMNESS, Batching, example


@dataclass(frozen=True, eq=False)
class Traced:
    """A function of one example as it was recorded; one object per structure."""

    recording: Recording
    mapped: tuple[int | None, ...]  # per leaf: the axis that counts examples
    placed: tuple[int | None, ...]  # per result: where that axis goes
    cut: tuple[bool, ...]  # per result: whether derivatives end at it
    draws: tuple[int, ...]  # slots with which the function draws random numbers
    size: int
    randomness: str


_traced: dict[Any, Traced] = {}


def _definition(operands: Sequence[Node], traced: Traced) -> tuple[Node, ...]:
    """The recording expanded on examples of the operands, and then batched."""
    recording = traced.recording
    numbers = operands[len(recording.leaves) :]
    leaves: list[Node] = []
    bound: list[tuple[Node, Node]] = []
    for node, dim in zip(operands, traced.mapped):
        if dim is not None:
            many = _moved(node, dim, 0)
            node = example(many.shape[1:], many)
            bound.append((node, many))
        leaves.append(node)
    expansion = Expansion(recording, leaves, numbers)
    outputs = expansion.run()
    draws = frozenset([numbers[n].id for n in traced.draws])
    batching = Batching(traced.size, traced.randomness, expansion.rules, draws)
    for one, many in bound:
        batching.bind(one, many)
    results = []
    for node, dim, cut in zip(outputs, traced.placed, traced.cut, strict=True):
        made = _placed(batching, node, dim)
        results.append(build.apply("detach", made) if cut else made)
    for each, note in zip(expansion.checks, expansion.notes, strict=True):
        check(batching.all(each.bad), batching.all(each.value), note.message, each.error)
    batching.carry(expansion.rules)
    return tuple(results)


def _placed(batching: Batching, node: Node, dim: int | None) -> Node:
    if dim is not None:
        return _moved(batching.all(node), 0, dim)
    if batching.of(node) is not None:
        raise ValueError("an output with out_dims=None depends on a mapped input")
    return node


def _moved(node: Node, source: int, target: int) -> Node:
    order = [k for k in range(node.ndim) if k != source]
    order.insert(target, source)
    return build.permute(node, order)


VMAP = Operator(
    "vmap", _definition,
    (Parameter("operands", "inputs", None), Parameter("traced", "attribute", None)),
)  # fmt: skip


class Taken(Live):
    """A live number that was taken while the function was traced: not taken twice."""

    __slots__ = ("live", "number", "kind")

    def __init__(self, live: Live, number: Any) -> None:
        self.live, self.number = live, number
        self.kind = live.kind

    def get(self) -> Any:
        """The number that was taken, and anew from the second time on."""
        number, self.number = self.number, None
        return self.live.get() if number is None else number


@dataclass
class _Call:
    """One call of a mapped function: its flat arguments and where their examples lie."""

    leaves: list[Any]
    structure: tree.Structure
    dims: list[int | None]
    size: int


def vmap(
    func: Callable[..., Any],
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """A function that applies `func` to each example of its arguments, all at once.

    `in_dims` says along which axis the examples of each argument lie, None that all share it;
    `out_dims` where that axis goes in results. Both may be trees. Random numbers inside are an
    error unless `randomness` says that examples draw 'different' or the 'same' ones. `chunk_size`
    bounds how many examples are computed at a time.

    >>> import monograph as mg
    >>> dot = lambda a, b: (a * b).sum()
    >>> mg.vmap(dot, in_dims=(0, None))(mg.tensor([[1.0, 2.0], [3.0, 4.0]]), mg.ones(2)).tolist()
    [3.0, 7.0]
    """
    if randomness not in RANDOMNESS:
        raise errors.OperandError(
            f"vmap: randomness is one of {', '.join(RANDOMNESS)}, got {randomness!r}"
        )
    if chunk_size is not None and chunk_size < 1:
        raise errors.OperandError(f"vmap: chunk_size must be positive, got {chunk_size}")

    @functools.wraps(func, updated=())
    def mapped(*args: Any, **kwargs: Any) -> Any:
        call = _sort(func, in_dims, args)
        inside = functools.partial(func, **kwargs) if kwargs else func
        if chunk_size is None or chunk_size >= call.size:
            return _map_whole(inside, call, out_dims, randomness)
        return _map_chunks(inside, call, out_dims, randomness, chunk_size)

    return mapped


def _sort(func: Callable[..., Any], in_dims: Any, args: tuple[Any, ...]) -> _Call:
    """Flat arguments with their mapped axes, checked."""
    name = f"vmap({getattr(func, '__name__', 'function')})"
    if not isinstance(in_dims, (int, tuple, list)):
        raise errors.OperandError(f"{name}: in_dims is an integer or a tuple, got {in_dims!r}")
    if not args:
        raise errors.OperandError(f"{name}: there are no arguments to map over")
    prefix = in_dims if isinstance(in_dims, int) else tuple(in_dims)
    dims = tree.spread(prefix, args)
    leaves, structure = tree.flatten(args)
    if dims is None:
        raise errors.OperandError(
            f"{name}: in_dims {in_dims!r} do not fit the arguments {structure!r}"
        )
    sizes: dict[int, None] = {}
    for n, (leaf, dim) in enumerate(zip(leaves, dims, strict=True)):
        if dim is None:
            continue
        if not isinstance(dim, int):
            raise errors.OperandError(f"{name}: in_dims holds {dim!r}; use integers or None")
        if not isinstance(leaf, Tensor):
            raise errors.OperandError(
                f"{name}: in_dims is {dim} for an argument of type {type(leaf).__name__}; "
                "only tensors are mapped over, use None for others"
            )
        if not -leaf.ndim <= dim < leaf.ndim:
            raise errors.OperandError(
                f"{name}: in_dims {dim} is out of range for a tensor of {leaf.ndim} dimensions"
            )
        dims[n] = dim % leaf.ndim
        sizes[leaf.shape[dims[n]]] = None
    if not sizes:
        raise errors.OperandError(f"{name}: in_dims maps over no argument")
    if len(sizes) > 1:
        raise errors.OperandError(
            f"{name}: the mapped axes must be of one size, got {', '.join(map(str, sizes))}"
        )
    return _Call(leaves, structure, dims, next(iter(sizes)))


@dataclass
class _Mapping:
    """What a function is mapped over while it is traced."""

    values: list[Value]  # the whole arguments
    dims: tuple[int, ...]
    size: int
    randomness: str


def _map_whole(func: Callable[..., Any], call: _Call, out_dims: Any, randomness: str) -> Any:
    values = [
        None if d is None else record.value_of(t)
        for t, d in zip(call.leaves, call.dims, strict=True)
    ]
    mapping = _Mapping(
        [v for v in values if v is not None], tuple([d for d in call.dims if d is not None]),
        call.size, randomness,
    )  # fmt: skip
    with nested.inner() as recorder:
        recorder.mapping = mapping
        given = [
            leaf if value is None else _example(recorder, value, dim)
            for leaf, value, dim in zip(call.leaves, values, call.dims, strict=True)
        ]
        result = func(*tree.unflatten(call.structure, given))
        outputs, structure = tree.flatten(result)
        dims = _out_dims(out_dims, result, outputs)
        wanted = [_position(recorder, t) for t in outputs]
        leaves = mapping.values + recorder.leaves[len(mapping.values) :]
        needs_grad = recorder.grad and any([v.requires_grad for v in leaves])
        if needs_grad:
            _refuse_custom([t._value() for t in outputs])
        cut = [needs_grad and t._value().meta.smooth and not t.requires_grad for t in outputs]
        traced = _intern(recorder, mapping, tuple(wanted), dims, tuple(cut))
        slots = list(recorder.slots)
        for n, live in recorder.live_slots:
            slots[n] = Taken(live, slots[n])
        del given, result
    made = record_traced(VMAP, traced, [*leaves, *slots])
    return tree.unflatten(structure, made)


def _example(recorder: Recorder, value: Value, dim: int | None) -> Tensor:
    """A tensor without contents in the shape of one example."""
    assert dim is not None
    shape = value.meta.shape[:dim] + value.meta.shape[dim + 1 :]
    return placeholder(recorder, shape, value.meta.dtype, value.requires_grad)


def placeholder(
    recorder: Recorder, shape: tuple[int, ...], dtype: DType, requires_grad: bool = False
) -> Tensor:
    """A tensor without contents: an argument of the function that this inner recorder traces."""
    place = -1 - len(recorder.leaves)
    one = Value(meta_of(shape, dtype), ARGUMENT, 0, recorder.epoch, place)
    one.requires_grad = requires_grad
    recorder.leaves.append(one)
    return from_value(one)


def _position(recorder: Recorder, output: Any) -> int:
    if not isinstance(output, Tensor):
        raise errors.OperandError(
            f"vmap: the function must return tensors only, got {type(output).__name__}"
        )
    value = record.value_of(output)
    if value.epoch != recorder.epoch:
        appending.enter(recorder, value)
    return value.position


def reached(roots: Sequence[Value]) -> Iterator[Value]:
    """The values that roots are computed from and that require gradients, themselves included."""
    seen: set[int] = set()
    stack = [value for value in roots if value.requires_grad]
    while stack:
        value = stack.pop()
        if id(value) not in seen:
            seen.add(id(value))
            yield value
            if value.tape is not None:
                inputs = value.tape.inputs
                stack += [v for v in inputs if v.__class__ is Value and v.requires_grad]


def _refuse_custom(outputs: list[Value]) -> None:
    """Outside, derivatives are those of the graph: Python code of the user's has no part in it."""
    for value in reached(outputs):
        if value.tape is not None and value.tape.__class__ is not Record:
            raise errors.TransformError(
                "vmap: derivatives through an autograd.Function inside the mapped function can "
                "only be taken inside too: vmap(grad(f)) instead of grad(vmap(f))"
            )


def _out_dims(out_dims: Any, result: Any, outputs: list[Any]) -> tuple[int | None, ...]:
    dims = tree.spread(out_dims, result)
    if dims is None:
        raise errors.OperandError(f"vmap: out_dims {out_dims!r} do not fit what was returned")
    placed: list[int | None] = []
    for output, dim in zip(outputs, dims, strict=True):
        rank = getattr(output, "ndim", 0) + 1
        if dim is not None and not -rank <= dim < rank:
            raise errors.IndexOutOfRange(
                f"vmap: out_dims {dim} is out of range for a result of {rank} dimensions"
            )
        placed.append(None if dim is None else dim % rank)
    return tuple(placed)


def _intern(
    recorder: Recorder, mapping: _Mapping, wanted: tuple[int, ...],
    placed: tuple[int | None, ...], cut: tuple[bool, ...],
) -> Traced:  # fmt: skip
    """The one object for this structure."""
    draws = tuple([n for n, _ in recorder.live_slots])
    leaves = tuple([value.meta for value in recorder.leaves])
    rest = (placed, cut, draws, mapping.size, mapping.randomness)
    key = (tuple(recorder.key), leaves, mapping.dims, wanted, *rest)
    found = _traced.get(key)
    if found is None:
        recording = pending.form(recorder, wanted, ())
        captured = (None,) * (len(leaves) - len(mapping.dims))
        found = _traced[key] = Traced(recording, mapping.dims + captured, *rest)
    return found


def record_traced(operator: Operator, traced: Any, inputs: list[Any]) -> list[Tensor]:
    """Record a traced function as one entry: a call of an operator that has it as its attribute."""
    kinds = [v.meta if isinstance(v, Value) else getattr(v, "kind", type(v)) for v in inputs]
    signature = signature_of(operator, (len(inputs), traced), kinds)
    needs_grad = any([isinstance(v, Value) and v.requires_grad for v in inputs])
    outputs = record.record_call(current.recorder, signature, inputs, needs_grad)
    for value, cut in zip(outputs, traced.cut, strict=True):
        if cut:
            value.requires_grad, value.tape = False, None
    made = [from_value(value) for value in outputs]
    urgent = current.recorder.urgent
    if urgent is not None:
        record.flush(urgent)
    return made


def _map_chunks(
    func: Callable[..., Any], call: _Call, out_dims: Any, randomness: str, chunk_size: int
) -> Any:
    from ..ops.shape import cat, narrow

    parts: list[list[Any]] = []
    for start in range(0, call.size, chunk_size):
        count = min(chunk_size, call.size - start)
        leaves = [
            leaf if dim is None else narrow(leaf, dim, start, count)
            for leaf, dim in zip(call.leaves, call.dims, strict=True)
        ]
        piece = _Call(leaves, call.structure, call.dims, count)
        result = _map_whole(func, piece, out_dims, randomness)
        outputs, structure = tree.flatten(result)
        parts.append(outputs)
        dims = tree.spread(out_dims, result)
    assert dims is not None
    joined = [
        group[0] if dim is None else cat(list(group), dim)
        for dim, group in zip(dims, zip(*parts, strict=True), strict=True)
    ]
    return tree.unflatten(structure, joined)


# --- conditions inside a mapped function ----------------------------------------------------------


def depends_on_examples(t: Tensor) -> bool:
    """Whether a tensor inside a mapped function may differ from example to example."""
    seen: set[int] = set()
    stack = [t._value()]
    while stack:
        value = stack.pop()
        if id(value) in seen or value.ready or value.record is None:
            continue
        if value.record is ARGUMENT:
            return True
        seen.add(id(value))
        stack += [v for v in value.record.inputs if isinstance(v, Value)]
    return False


def holds_for_any(condition: Tensor) -> bool:
    """Whether a condition inside a mapped function holds for any of the examples, as data.

    What was recorded of the function so far is computed for all of them.
    """
    recorder = current.recorder
    mapping = recorder.mapping
    if recorder.outer is None or mapping is None:
        return bool(condition)
    place = _position(recorder, condition)
    leaves = mapping.values + recorder.leaves[len(mapping.values) :]
    traced = _intern(recorder, mapping, (place,), (0,), (False,))
    with nested.outside(recorder):
        (each,) = record_traced(VMAP, traced, [*leaves, *recorder.slots])
        return holds_for_any(each.any())  # type: ignore[attr-defined]
