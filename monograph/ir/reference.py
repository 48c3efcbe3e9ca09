"""The reference interpreter: executes any graph with NumPy, and so defines what nodes mean.

`run(outputs, buffers, slots)` walks the graph once in topological order. Each kind of node has one
small function from the values of its inputs to its own value, found in `MEANING`. Clarity comes
before speed, with one exception: affine maps are read and written through strided views, so that a
convolution costs a matrix product and not a table of indices. Every Map is rounded to its dtype:
16-bit floats are widened to float32, computed with, and rounded; they accumulate in float32.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from . import build, index, native, scalar
from .convert import convert, widened
from .dtypes import DType, accumulator, uint64
from .index import Expr, Guard, Var
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
    Number,
    Random,
    Reduce,
    Reindex,
    Scatter,
    Shape,
    Slot,
    ancestors,
    coordinates,
)
from .philox import WORD, philox4x32

Array = np.ndarray[Any, Any]


def run(
    outputs: Sequence[Node], buffers: Sequence[Array], slots: Sequence[Number] = ()
) -> list[Array]:
    """The values of `outputs`, as fresh arrays, for these buffers and slots.

    >>> from monograph.ir import build, dtypes
    >>> x = build.buffer(0, (3,), dtypes.float32)
    >>> run([x * 2.0], [np.arange(3, dtype=np.float32)])
    [array([0., 2., 4.], dtype=float32)]
    """
    with np.errstate(all="ignore"):
        order = _order(outputs)
        known = {n.id: _buffer(n, buffers) for n, _ in order if isinstance(n, Buffer)}
        return [np.array(value, order="C") for value in _evaluate(order, outputs, known, slots)]


# The nodes that are computed, each with those that nobody needs from then on.
Order = list[tuple[Node, list[int]]]


def _order(outputs: Sequence[Node]) -> Order:
    nodes = ancestors(outputs)
    needed = {node.id for node in outputs}
    order: Order = []
    for node in reversed(nodes):
        done = {n.id for n in node.inputs} - needed
        needed |= done
        order.append((node, list(done)))
    return order[::-1]


def _evaluate(
    order: Order, outputs: Sequence[Node], known: dict[int, Array], slots: Sequence[Number]
) -> list[Array]:
    """The values of outputs: `order` is all that they need, `known` the contents of Buffers."""
    values: dict[int, Any] = {}
    for node, done in order:
        operands = [values[n.id] for n in node.inputs]
        if isinstance(node, Buffer):
            values[node.id] = known[node.id]
        elif isinstance(node, Slot):
            values[node.id] = _slot(node, slots)
        elif isinstance(node, Loop):
            values[node.id] = _loop(node, operands, slots)
        else:
            values[node.id] = MEANING[type(node)](node, *operands)
        for each in done:
            del values[each]
    return [values[node.id] for node in outputs]


# --- sources ------------------------------------------------------------------------------------


def _buffer(node: Buffer, buffers: Sequence[Array]) -> Array:
    number: int = node.attributes[0]
    array = buffers[number]
    if array.shape != node.shape or array.dtype != node.dtype.numpy:
        raise ValueError(
            f"buffer {number} should be {node.dtype.name} of shape {node.shape}, "
            f"but {array.dtype} of shape {array.shape} was given"
        )
    return array


def _slot(node: Slot, slots: Sequence[Number]) -> Array:
    number, number_type = node.attributes
    if node.shape:  # a part of the table: elements of other types are not read
        part = slots[number : number + node.shape[0]]
        return np.array([x if type(x) is number_type else 0 for x in part], node.dtype.numpy)
    given = slots[number]
    if number_type is complex:
        given = complex(given.real, slots[number + 1].real)
    return np.asarray(given, node.dtype.numpy)


def _const(node: Node) -> Array:
    return np.asarray(node.attributes[0], node.dtype.numpy)


def _coordinate(node: Node) -> Array:
    along: int = node.attributes[0]
    return np.broadcast_to(_open_grid(node.shape)[along], node.shape)


class NumPyHandler:
    """The primitive operations on uint64 arrays that `philox4x32` is written in."""

    add = staticmethod(np.add)
    mul = staticmethod(np.multiply)
    shr = staticmethod(np.right_shift)
    and_ = staticmethod(np.bitwise_and)
    xor = staticmethod(np.bitwise_xor)

    @staticmethod
    def const(value: int, dtype: DType) -> Array:
        return np.asarray(value, dtype.numpy)

    @staticmethod
    def cast(a: Array, dtype: DType) -> Array:
        return a.astype(dtype.numpy)


def _random(node: Node, seed: Array, offset: Array) -> Array:
    """Element i takes word (i//16) % 4 of the counter (i//64)·16 + i%16."""
    blocks = -(-node.size // 64)
    counter = np.arange(blocks * 16, dtype=np.uint64)
    words = philox4x32(NumPyHandler, *_halves(counter), *_halves(offset), *_halves(seed))
    full = [np.broadcast_to(word, counter.shape).reshape(blocks, 16) for word in words]
    flat = np.stack(full, axis=1).reshape(-1)  # [blocks, 4 words, 16 counters]
    return flat[: node.size].astype(np.uint32).reshape(node.shape)


def _halves(a: Array) -> tuple[Array, Array]:
    """The low and the high 32 bits, each as uint64."""
    bits = a.astype(uint64.numpy)
    return bits & np.uint64(WORD), bits >> np.uint64(32)


# --- Map ----------------------------------------------------------------------------------------


def _map(node: Node, *operands: Array) -> Array:
    function = node.attributes[0]
    if function == "bitcast":
        return operands[0].view(node.dtype.numpy)
    result = scalar.TABLE[function].numpy(*[widened(x) for x in operands])
    return convert(result, node.dtype)


# --- Reindex and Scatter ------------------------------------------------------------------------


def _open_grid(shape: Shape) -> list[Array]:
    """One array per axis that holds its coordinate and broadcasts against the others."""
    return list(np.ogrid[tuple(slice(extent) for extent in shape)]) if shape else []


class _Points:
    """Evaluates index expressions at every point of `shape` at once."""

    def __init__(self, shape: Shape, reads: Sequence[Array]) -> None:
        self.shape = shape
        self.reads = reads
        self.values: Any = dict(zip(coordinates(shape), _open_grid(shape), strict=True))

    def evaluate(self, e: Expr) -> Any:
        """The value of e: an integer, or an array that broadcasts to `shape`."""
        return index.evaluate(e, self.values, self._read)

    def allowed(self, guard: Guard) -> Any:
        """Where every condition holds: a bool, or an array that broadcasts to `shape`."""
        mask: Any = np.True_
        for condition in guard:
            value = self.evaluate(condition.expr)
            mask = mask & ((value == 0) if condition.equal else (value >= 0))
        return mask

    def _read(self, source: int, where: tuple[Any, ...]) -> Any:
        return _clipped_gather(self.reads[source], where).astype(np.int64)


def _clipped_gather(a: Array, where: Sequence[Any]) -> Array:
    """a[where], with places outside of `a` moved to its border: those are guarded out."""
    inside = [np.clip(i, 0, extent - 1) for i, extent in zip(where, a.shape, strict=True)]
    return np.asarray(a[tuple(inside)])


def _reindex(node: Node, a: Array, *reads: Array) -> Array:
    where, guard, fill = node.attributes
    if 0 in node.shape:
        return np.empty(node.shape, a.dtype)
    if a.size == 0 or any(read.size == 0 for read in reads):  # then the guard excludes every point
        return np.full(node.shape, fill, a.dtype)
    points = _Points(node.shape, reads)
    if all(map(index.is_affine, where)) and all(map(_inside, where, a.shape)):
        taken = _strided_view(a, where, coordinates(node.shape))
    else:
        taken = _clipped_gather(a, [points.evaluate(e) for e in where])
    if guard:
        taken = np.where(points.allowed(guard), taken, a.dtype.type(fill))
    return np.broadcast_to(taken, node.shape)


def _scatter(node: Node, a: Array, *reads: Array) -> Array:
    combine, where, guard = node.attributes
    work = _accumulator(node.dtype)
    out = np.full(node.shape, build.IDENTITY[combine](node.dtype), work)
    points = _Points(a.shape, reads)
    flat: Any = 0
    for e, extent in zip(where, node.shape, strict=True):  # a read lies within its extent
        flat = flat * extent + np.clip(points.evaluate(e), 0, extent - 1)
    allowed = np.broadcast_to(points.allowed(guard), a.shape)
    target = np.broadcast_to(flat, a.shape)[allowed]
    COMBINE[combine].at(out.reshape(-1), target, a[allowed].astype(work))
    return out.astype(node.dtype.numpy)


# --- Reduce -------------------------------------------------------------------------------------

COMBINE: dict[str, Any] = {
    "add": np.add,
    "mul": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
}


def _accumulator(dtype: DType) -> Any:
    return accumulator(dtype).numpy


def _reduce(node: Node, a: Array) -> Array:
    combine, axes = node.attributes
    if combine in ("argmax", "argmin"):
        return _first_extreme(combine, a, axes)
    identity = build.IDENTITY[combine](node.dtype)
    work = _accumulator(node.dtype)
    total = COMBINE[combine].reduce(widened(a), axis=axes, dtype=work, initial=identity)
    return np.asarray(total).astype(node.dtype.numpy, copy=False)


def _first_extreme(combine: str, a: Array, axes: Sequence[int]) -> Array:
    kept = [k for k in range(a.ndim) if k not in axes]
    rows = widened(a).transpose(*kept, *axes)
    count = math.prod(a.shape[k] for k in axes)
    rows = rows.reshape(*[a.shape[k] for k in kept], count)
    find = np.argmax if combine == "argmax" else np.argmin
    return np.asarray(find(rows, axis=-1), np.int64)


# --- Contract -----------------------------------------------------------------------------------


def _contract(node: Node, a: Array, b: Array) -> Array:
    """Padded operands as strided views over the domain, einsum, and a sum into the output.

    A place outside of an operand reads 0. A coordinate in neither operand brings ones.
    """
    domain, fo, fa, fb = node.attributes
    work = _accumulator(node.dtype)
    if 0 in domain:
        return np.zeros(node.shape, node.dtype.numpy)
    space = coordinates(domain)
    terms: list[Any] = []
    used: set[Var] = set()
    for operand, where in ((a.astype(work, copy=False), fa), (b.astype(work, copy=False), fb)):
        mine = _used(where, space)
        terms += [_strided_view(_pad(operand, where), _shifted(where), mine), _letters(mine, space)]
        used.update(mine)
    for absent in space:
        if absent not in used:
            terms += [np.ones(absent.extent, work), _letters([absent], space)]
    kept = _used(fo, space)
    product = np.einsum(*terms, _letters(kept, space), optimize=True)
    return _sum_into(node.shape, fo, kept, product).astype(node.dtype.numpy, copy=False)


def _sum_into(shape: Shape, where: Sequence[Expr], space: Sequence[Var], product: Array) -> Array:
    """out[where(d)] += product[d], leaving out places outside of `out`.

    Coordinates that share an axis of the output meet at one place. One of them per axis is kept in
    a strided view, which then writes each place once; the others are looped over.
    """
    padded = [_reach(e, extent) for e, extent in zip(where, shape, strict=True)]
    out = np.zeros(padded, product.dtype)
    shifted = _shifted(where)
    parallel, looped = _without_overlap(shifted, space)
    order = [space.index(v) for v in (*looped, *parallel)]
    parts = product.transpose(order)
    for place in np.ndindex(*[v.extent for v in looped]):
        fixed: Any = {v: index.num(i) for v, i in zip(looped, place, strict=True)}
        here = [index.substitute(e, fixed) for e in shifted]
        view = _strided_view(out, here, parallel, writeable=True)
        view += parts[place]
    starts = [_before(e) for e in where]
    return out[tuple([slice(s, s + extent) for s, extent in zip(starts, shape, strict=True)])]


def _without_overlap(where: Sequence[Expr], space: Sequence[Var]) -> tuple[list[Var], list[Var]]:
    """(parallel, looped): the parallel coordinates each have an axis of their own, widest first."""
    taken: set[int] = set()
    parallel: list[Var] = []
    for v in sorted(space, key=lambda v: -v.extent):
        mine = {k for k, e in enumerate(where) if index.coefficient(e, v)}
        if not mine & taken:
            taken |= mine
            parallel.append(v)
    return parallel, [v for v in space if v not in parallel]


def _used(where: Sequence[Expr], space: Sequence[Var]) -> list[Var]:
    return [v for v in space if any(index.coefficient(e, v) for e in where)]


def _letters(mine: Sequence[Var], space: Sequence[Var]) -> list[int]:
    return [space.index(v) for v in mine]


# --- affine maps as strided views ---------------------------------------------------------------


def _before(e: Expr) -> int:
    """How many places before 0 the expression reaches."""
    return max(0, -e.lo)


def _reach(e: Expr, extent: int) -> int:
    """The extent of an axis that is padded to hold every value of e."""
    return _before(e) + max(extent, e.hi + 1)


def _inside(e: Expr, extent: int) -> bool:
    return e.lo >= 0 and e.hi < extent


def _pad(a: Array, where: Sequence[Expr]) -> Array:
    """a with zeros around it, so that every place in `where` exists once shifted."""
    widths = []
    for e, extent in zip(where, a.shape, strict=True):
        before = _before(e)
        widths.append((before, _reach(e, extent) - before - extent))
    return np.pad(a, widths) if any(map(any, widths)) else a


def _shifted(where: Sequence[Expr]) -> list[Expr]:
    """The same places, counted from the start of the padding."""
    return [e + _before(e) for e in where]


def _strided_view(
    a: Array, where: Sequence[Expr], space: Sequence[Var], writeable: bool = False
) -> Array:
    """The array over `space` with a[where] at each point, for affine maps that stay inside."""
    strides = [
        sum((index.coefficient(e, v) or 0) * step for e, step in zip(where, a.strides, strict=True))
        for v in space
    ]
    # The dots keep this a view where there are no axes.
    start: tuple[Any, ...] = (..., *[slice(index.split(e)[0], None) for e in where])
    return as_strided(a[start], [v.extent for v in space], strides, writeable=writeable)


# --- the table ----------------------------------------------------------------------------------


def _call(node: Node, *operands: Array) -> Array:
    function, options = node.attributes
    result = native.run(function, list(operands), options)
    return result.astype(node.dtype.numpy, copy=False)


def _loop(node: Loop, inputs: Sequence[Array], slots: Sequence[Number]) -> list[Array]:
    """All results: what is carried in the end, then the stacks."""
    body = node.body
    count, rest = len(body.carries), len(body.carries) + body.sequences
    carried, sequences, shared = inputs[:count], inputs[count:rest], inputs[rest:]
    stacks = [np.empty((node.trips, *y.shape), y.dtype.numpy) for y in body.stacked]
    order = _order(body.outputs)
    turns = range(node.trips)
    for turn in reversed(turns) if node.reverse else turns:
        given = [*carried, *[xs[turn] for xs in sequences], *shared]
        known = {p.id: np.asarray(x) for p, x in zip(body.parameters, given, strict=True)}
        made = _evaluate(order, body.outputs, known, slots)
        carried = made[:count]
        for stack, y in zip(stacks, made[count:], strict=True):
            stack[turn] = y
    return [*carried, *stacks]


def _loop_result(node: Node, results: Any) -> Array:
    made: Array = results[node.attributes[0]]
    return made


def _move(node: Node, a: Array) -> Array:
    return a


MEANING: dict[type[Node], Callable[..., Array]] = {
    Const: _const,
    Coordinate: _coordinate,
    Random: _random,
    Map: _map,
    Reindex: _reindex,
    Reduce: _reduce,
    Scatter: _scatter,
    Contract: _contract,
    Call: _call,
    LoopResult: _loop_result,
    Move: _move,
}
