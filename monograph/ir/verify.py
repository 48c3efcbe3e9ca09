"""The verifier: checks that a graph is well formed, so that a faulty pass is found where it ran.

`verify(outputs)` raises `GraphError`, which names the node and the rule it breaks. It checks order
(inputs are older than their users, so there is no cycle), shapes, dtypes, and that index
expressions speak of the right coordinates and stay inside the arrays they read. Bounds are proven
by ranges: an index that may leave its array needs a guard that limits something it depends on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from . import index, native, scalar
from .build import IDENTITY, SLOT_DTYPE, result_dtype
from .dtypes import Kind, bool_, int64, uint32
from .extent import Extent, deciding
from .index import Expr, Guard, Read
from .node import (
    Buffer,
    Call,
    Const,
    Contract,
    Coordinate,
    Loop,
    LoopResult,
    Map,
    Move,
    Node,
    Random,
    Reduce,
    Reindex,
    Scatter,
    Shape,
    Slot,
    ancestors,
    coordinates,
)


class GraphError(ValueError):
    """A node breaks a rule of the graph: `node` and `rule` say which."""

    def __init__(self, node: Node, rule: str) -> None:
        super().__init__(f"{node!r}\nbreaks the rule: {rule}")
        self.node = node
        self.rule = rule


def verify(outputs: Sequence[Node]) -> None:
    """Raise GraphError unless every node that the outputs need is well formed.

    >>> from monograph.ir import build, dtypes
    >>> verify([build.buffer(0, (3,), dtypes.float32) * 2.0])
    """
    with deciding(None):  # sizes that vary are checked at their hints: that assumes nothing
        _verify(outputs)


def _verify(outputs: Sequence[Node]) -> None:
    buffers: dict[int, Node] = {}
    for node in ancestors(outputs):
        _verify_common(node)
        RULES[type(node)](node)
        if isinstance(node, Buffer):
            other = buffers.setdefault(node.attributes[0], node)
            same = other.shape == node.shape and other.dtype is node.dtype
            _require(node, same, "a buffer number has one shape and dtype")


def _require(node: Node, holds: bool, rule: str) -> None:
    if not holds:
        raise GraphError(node, rule)


def _verify_common(node: Node) -> None:
    older = all(n.id < node.id for n in node.inputs)
    _require(node, older, "inputs are created before their users")
    whole = all(isinstance(extent, (int, Extent)) and extent >= 0 for extent in node.shape)
    _require(node, whole, "extents are integers of at least 0")
    complete = len(node.attributes) >= len(node.fields)
    _require(node, complete, f"attributes are {node.fields}")
    count = INPUTS.get(type(node))
    if count is not None:
        _require(node, len(node.inputs) == count, f"{node.kind} has {count} inputs")


# --- sources ------------------------------------------------------------------------------------


def _buffer(node: Node) -> None:
    _require(node, node.attributes[0] >= 0, "buffer numbers start at 0")


def _slot(node: Node) -> None:
    number, number_type = node.attributes
    _require(node, number >= 0, "slot numbers start at 0")
    _require(node, node.ndim <= 1, "a slot has shape (), a part of the table of slots has one axis")
    expected = SLOT_DTYPE.get(number_type)
    _require(node, node.dtype is expected, "a slot's dtype is that of its Python type")


_PYTHON_TYPE = {Kind.BOOL: bool, Kind.INT: int, Kind.FLOAT: float, Kind.COMPLEX: complex}


def _const(node: Node) -> None:
    _require(node, node.shape == (), "a constant has shape ()")
    expected = _PYTHON_TYPE[node.dtype.kind]
    matches = type(node.attributes[0]) is expected
    _require(node, matches, f"a {node.dtype.name} constant is a Python {expected.__name__}")


def _coordinate(node: Node) -> None:
    _require(node, 0 <= node.attributes[0] < node.ndim, "the axis exists")
    _require(node, node.dtype is int64, "coordinates are int64")


def _random(node: Node) -> None:
    for number in node.inputs:
        scalar_int = number.shape == () and number.dtype is int64
        _require(node, scalar_int, "seed and offset are int64 of shape ()")
    _require(node, node.dtype is uint32, "random bits are uint32")


# --- Map, Reduce, Move --------------------------------------------------------------------------


def _map(node: Node) -> None:
    function = node.attributes[0]
    entry = scalar.TABLE.get(function)
    if entry is None:
        raise GraphError(node, f"{function!r} is a scalar function")
    _require(node, len(node.inputs) == entry.arity, f"{function} takes {entry.arity} operands")
    same_shape = all(n.shape == node.shape for n in node.inputs)
    _require(node, same_shape, "operands have the shape of the result")
    if function == "bitcast":
        same_size = node.inputs[0].dtype.itemsize == node.dtype.itemsize
        _require(node, same_size, "bitcast keeps the number of bits")
    if entry.result == "given":
        return
    operands = node.inputs
    if function == "select":
        _require(node, operands[0].dtype is bool_, "select's condition is bool")
        operands = operands[1:]
    one_dtype = len({n.dtype for n in operands}) == 1
    _require(node, one_dtype, "operands have one dtype")
    expected = result_dtype(entry, operands[-1].dtype)
    _require(node, node.dtype is expected, f"{function} gives {expected.name} here")


def _reduce(node: Node) -> None:
    combine, axes = node.attributes
    (a,) = node.inputs
    in_order = list(axes) == sorted({k for k in axes if 0 <= k < a.ndim})
    _require(node, in_order, "reduced axes exist, are distinct and ascend")
    kept = tuple([extent for k, extent in enumerate(a.shape) if k not in axes])
    _require(node, node.shape == kept, f"the remaining axes are {list(kept)}")
    if combine in ("argmax", "argmin"):
        _require(node, node.dtype is int64, "positions are int64")
        _require(node, all(a.shape[k] for k in axes), "the reduced axes are not empty")
    else:
        _verify_combine(node, combine)


def _verify_combine(node: Node, combine: str) -> None:
    _require(node, combine in IDENTITY, f"{combine!r} is one of {', '.join(IDENTITY)}")
    _require(node, node.dtype is node.inputs[0].dtype, "the result has the input's dtype")
    if combine in ("and", "or"):
        _require(node, node.dtype is bool_, f"{combine} combines bool")


def _move(node: Node) -> None:
    (a,) = node.inputs
    unchanged = node.shape == a.shape and node.dtype is a.dtype
    _require(node, unchanged, "movement changes neither shape nor dtype")


# --- index expressions --------------------------------------------------------------------------


def _reindex(node: Node) -> None:
    where, guard, _ = node.attributes
    _require(node, node.dtype is node.inputs[0].dtype, "the result has the input's dtype")
    _verify_places(node, where, guard, over=node.shape, into=node.inputs[0].shape)


def _scatter(node: Node) -> None:
    combine, where, guard = node.attributes
    _verify_combine(node, combine)
    _verify_places(node, where, guard, over=node.inputs[0].shape, into=node.shape)


def _verify_places(
    node: Node, where: Sequence[Expr], guard: Guard, over: Shape, into: Shape
) -> None:
    """One index per axis of `into`, in the coordinates of `over`, inside where the guard holds."""
    _require(node, len(node.inputs) >= 1, f"{node.kind} has an input")
    for n, source in enumerate(node.inputs[1:]):
        _require(node, source.dtype.kind is Kind.INT, f"read{n} is an integer array")
    _require(node, len(where) == len(into), f"there is one index per axis of {list(into)}")
    everything = [*where, *(condition.expr for condition in guard)]
    _verify_variables(node, everything, over)
    reads = [atom for e in everything for atom in index.atoms(e) if isinstance(atom, Read)]
    for read in reads:
        known = 0 <= read.source < len(node.inputs) - 1
        _require(node, known, f"read{read.source} is an input of the node")
    if 0 in over:
        return
    _verify_bounds(node, where, into, guard)
    for read in reads:
        _verify_bounds(node, read.index, node.inputs[1 + read.source].shape, guard)


def _verify_variables(node: Node, exprs: Iterable[Expr], over: Shape) -> None:
    allowed = set(coordinates(over))
    for e in exprs:
        for v in index.variables(e) - allowed:
            rule = f"{v.name} < {v.extent} in {e} is a coordinate of {list(over)}"
            raise GraphError(node, rule)


def _verify_bounds(node: Node, where: Sequence[Expr], into: Shape, guard: Guard) -> None:
    _require(node, len(where) == len(into), f"there is one index per axis of {list(into)}")
    limited = {atom for condition in guard for atom in index.atoms(condition.expr)}
    for e, extent in zip(where, into, strict=True):
        if isinstance(extent, Extent) and -index.UNBOUNDED in (e.lo, -e.hi):
            continue  # sizes that vary may leave the range open
        inside = e.lo >= 0 and e.hi < extent
        if inside or index.atoms(e) & limited or (guard and extent == 0):
            continue
        rule = f"index {e}, in [{e.lo}, {e.hi}], lies in [0, {extent}) where the guard holds"
        raise GraphError(node, rule)


def _contract(node: Node) -> None:
    domain, fo, fa, fb = node.attributes
    a, b = node.inputs
    one_dtype = a.dtype is b.dtype is node.dtype
    _require(node, one_dtype, "operands and result have one dtype")
    for name, where, into in (("fo", fo, node.shape), ("fa", fa, a.shape), ("fb", fb, b.shape)):
        count = len(where) == len(into)
        _require(node, count, f"{name} has one index per axis of {list(into)}")
        _require(node, all(map(index.is_affine, where)), f"{name} is affine")
        _verify_variables(node, where, domain)


def _loop(node: Node) -> None:
    assert isinstance(node, Loop)
    body = node.body
    _require(node, bool(node.trips >= 1), "a loop has at least one turn")
    same = len(node.inputs) == len(body.parameters)
    _require(node, same, "a loop has an input for each parameter of its body")
    first = len(body.carries)
    for n, (given, parameter) in enumerate(zip(node.inputs, body.parameters, strict=True)):
        is_sequence = first <= n < first + body.sequences
        shape = (node.trips, *parameter.shape) if is_sequence else parameter.shape
        fits = given.shape == shape and given.dtype is parameter.dtype
        _require(node, fits, f"input {n} is {parameter.dtype.name}{list(shape)}")
    for carried, after in zip(body.carried, body.carries, strict=True):
        kept = carried.shape == after.shape and carried.dtype is after.dtype
        _require(node, kept, "what is carried keeps its shape and dtype")
    own = {parameter.id for parameter in body.parameters}
    _require(node, len(own) == len(body.parameters), "parameters of a body are distinct")
    inside = ancestors(body.outputs)
    closed = all(n.id in own for n in inside if isinstance(n, Buffer))
    _require(node, closed, "a body reads no memory but its parameters")
    _verify(body.outputs)


def _loop_result(node: Node) -> None:
    (source,) = node.inputs
    if not isinstance(source, Loop):
        raise GraphError(node, "it is the result of a loop")
    outputs = source.body.outputs
    number = node.attributes[0]
    _require(node, 0 <= number < len(outputs), "the loop has this result")
    one = outputs[number]
    stacked = number >= len(source.body.carries)
    shape = (source.trips, *one.shape) if stacked else one.shape
    fits = node.shape == shape and node.dtype is one.dtype
    _require(node, fits, f"it is {one.dtype.name}{list(shape)}")


def _call(node: Node) -> None:
    function, options = node.attributes
    entry = native.TABLE.get(function)
    if entry is None:
        raise GraphError(node, f"{function!r} is a native function")
    _require(node, options.__class__ is tuple, "options are a tuple")
    shape, dtype = entry.infer(*node.inputs, *options)
    _require(node, node.shape == tuple(shape), f"{function} gives shape {list(shape)} here")
    _require(node, node.dtype is dtype, f"{function} gives {dtype.name} here")


# --- the tables ---------------------------------------------------------------------------------

INPUTS: dict[type[Node], int] = {
    Buffer: 0,
    Slot: 0,
    Const: 0,
    Coordinate: 0,
    Random: 2,
    Reduce: 1,
    Contract: 2,
    LoopResult: 1,
    Move: 1,
}

RULES: dict[type[Node], Callable[[Node], None]] = {
    Buffer: _buffer,
    Slot: _slot,
    Const: _const,
    Coordinate: _coordinate,
    Random: _random,
    Map: _map,
    Reindex: _reindex,
    Reduce: _reduce,
    Scatter: _scatter,
    Contract: _contract,
    Call: _call,
    Loop: _loop,
    LoopResult: _loop_result,
    Move: _move,
}
