"""Constructors of nodes: they broadcast, promote, fold constants and compose as they build.

Operators are written with these and with arithmetic on nodes (`x * y + 1.0`), which this module
attaches to `Node`. Simplification that needs only a node and its inputs happens here, once, so
no pass has to undo what a definition wrote plainly.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from ..errors import OperandError
from . import (
    dtypes,
    index,
    native,
    native_factors,
    native_fft,
    native_linalg,
    native_order,
    scalar,
)
from .convert import convert, widened
from .dtypes import DType, Kind
from .extent import Extent, Real, agree, decisions
from .index import Condition, Expr, Guard, Index
from .node import (
    Buffer,
    Call,
    Const,
    Contract,
    Coordinate,
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
    axis,
    coordinates,
    make,
)
from .parts import PARTS

# Imported for the functions that they register.
LIBRARIES = (native_factors, native_fft, native_linalg, native_order)

# --- sources ------------------------------------------------------------------------------------


def buffer(number: int, shape: Shape, dtype: DType) -> Node:
    """Memory handed in from outside."""
    return make(Buffer, (), shape, dtype, number)


SLOT_DTYPE = {
    complex: dtypes.complex128, float: dtypes.float64, int: dtypes.int64, bool: dtypes.bool_
}  # fmt: skip


def slot(number: int, number_type: type) -> Node:
    """A Python number that is filled in at each run; a complex one fills two places."""
    return make(Slot, (), (), SLOT_DTYPE[number_type], number, number_type)


def exact(value: Number, dtype: DType) -> Number:
    """The Python number that `value` is once it is rounded to dtype."""
    item: Number = convert(np.asarray(value), dtype).item()
    return item


def known_size(number: Any) -> Any:
    """A number that depends on sizes that vary, as the slot that it is filled into."""
    if isinstance(number, (Extent, Real)):
        return slot(decisions().slot(number), int if isinstance(number, Extent) else float)
    return number


def const(value: Number, dtype: DType) -> Node:
    """A number known now, of shape ()."""
    return make(Const, (), (), dtype, exact(value, dtype))


def full(shape: Shape, value: Number, dtype: DType) -> Node:
    """An array of one number."""
    return broadcast_to(const(value, dtype), shape)


def coordinate(shape: Shape, along: int) -> Node:
    """out[i] = i[along]."""
    return make(Coordinate, (), shape, dtypes.int64, along)


def random_bits(shape: Shape, seed: Node, offset: Node) -> Node:
    """32 random bits per element."""
    seed, offset = cast(seed, dtypes.int64), cast(offset, dtypes.int64)
    return make(Random, (seed, offset), shape, dtypes.uint32)


def constant_value(node: Node) -> Number | None:
    """The number that every element of `node` is, or None."""
    while isinstance(node, Reindex) and not node.guard:
        node = node.inputs[0]
    return node.value if isinstance(node, Const) else None


# --- Map ----------------------------------------------------------------------------------------


def apply(function: str, *operands: Node, dtype: DType | None = None) -> Node:
    """Map of a scalar function over operands of one shape and (but for select, cast) dtype."""
    entry = scalar.TABLE[function]
    if dtype is None:
        dtype = result_dtype(entry, operands[-1].dtype)
    if operands[-1].dtype.is_complex and function != "cast" and function not in PARTS:
        raise NotImplementedError(f"{function} is not defined for complex numbers")
    simpler = _simpler_map(function, operands, dtype)
    if simpler is not None:
        return simpler
    folded = _fold(entry, operands, dtype)
    if folded is not None:
        return folded
    if entry.commutative and _rank(operands[0]) > _rank(operands[1]):
        operands = (operands[1], operands[0])
    return make(Map, operands, operands[0].shape, dtype, function)


def result_dtype(entry: scalar.Scalar, operand: DType) -> DType:
    """The dtype that a scalar function gives for an operand of that dtype."""
    if entry.result == "bool":
        return dtypes.bool_
    if entry.result == "real":
        return operand.to_real()
    return operand.to_complex() if entry.result == "complex" else operand


def _rank(node: Node) -> tuple[bool, int]:
    """The order of commuting operands: arrays before repeated numbers, then the older first."""
    return (isinstance(node, Reindex) and node.inputs[0].size == 1, node.id)


def _fold(entry: scalar.Scalar, operands: Sequence[Node], dtype: DType) -> Node | None:
    values = []
    for node in operands:
        value = constant_value(node)
        if value is None:
            return None
        values.append(widened(np.asarray(value, node.dtype.numpy)))
    if entry.name == "bitcast":
        return None
    with np.errstate(all="ignore"):
        result = convert(entry.numpy(*values), dtype)
    return full(operands[0].shape, result.item(), dtype)


def _same_number(a: Number, b: Number) -> bool:
    if isinstance(a, complex) or isinstance(b, complex):
        a, b = complex(a), complex(b)
        return _same_number(a.real, b.real) and _same_number(a.imag, b.imag)
    return a == b and math.copysign(1, a) == math.copysign(1, b)


def _simpler_map(function: str, operands: Sequence[Node], dtype: DType) -> Node | None:
    """The operand or node that this Map equals for every input, NaN and -0.0 included."""
    first = operands[0]
    if function in ("cast", "bitcast"):
        return first if first.dtype is dtype else None
    if function in ("real", "imag", "conj"):
        return _simpler_part(function, first)
    if function == "mul":
        for value, other in ((first, operands[1]), (operands[1], first)):
            known = constant_value(value)
            if known == 1:
                return other
            if known == -1:
                return apply("neg", other)
    elif function in ("sub", "div", "add"):
        known = constant_value(operands[1])
        # x - 0.0 and x + -0.0 are x for every x; x + 0.0 and x - -0.0 are not, at x = -0.0.
        zero: Number = -0.0 if dtype.kind is Kind.FLOAT else 0
        zero = complex(-0.0, -0.0) if dtype.is_complex else zero
        unit = {"div": 1, "sub": 0, "add": zero}[function]
        if known is not None and _same_number(known, unit):
            return first
    elif function == "neg" and isinstance(first, Map) and first.function == "neg":
        return first.inputs[0]
    elif function == "select":
        known = constant_value(first)
        if known is not None:
            return operands[1] if known else operands[2]
        if operands[1] is operands[2]:
            return operands[1]
    return None


def _simpler_part(function: str, z: Node) -> Node | None:
    """A part of a number whose parts are known."""
    if not z.dtype.is_complex:
        return full(z.shape, 0, z.dtype) if function == "imag" else z
    if function == "conj":
        inverse = isinstance(z, Map) and z.function == "conj"
        return z.inputs[0] if inverse else None
    if isinstance(z, Map) and z.function == "complex":
        return z.inputs[function == "imag"]
    return None


def cast(a: Node, dtype: DType) -> Node:
    """The same numbers in another dtype."""
    return apply("cast", a, dtype=dtype)


def common_dtype(operands: Iterable[Node | Number]) -> DType:
    """The promoted dtype of tensors and numbers, as PyTorch: arrays beat 0-d beats numbers."""
    ranked: list[DType | None] = [None, None]
    kinds: list[type] = []
    for operand in operands:
        if isinstance(operand, Slot):
            kinds.append(operand.type)
        elif isinstance(operand, (Extent, Real)):
            kinds.append(int if isinstance(operand, Extent) else float)
        elif isinstance(operand, Node):
            rank = 0 if operand.ndim else 1
            held = ranked[rank]
            ranked[rank] = operand.dtype if held is None else dtypes.promote(held, operand.dtype)
        else:
            kinds.append(type(operand))
    arrays, zero_d = ranked
    result = arrays or zero_d
    if arrays is not None and zero_d is not None:
        result = dtypes.promote_weak(arrays, zero_d)
    for kind in kinds:
        if result is None:
            result = dtypes.of_number(kind)
        else:
            result = dtypes.promote_number(result, kind)
    assert result is not None
    return result


def as_node(operand: Node | Number, dtype: DType) -> Node:
    """A node of that dtype from a node or a number."""
    operand = known_size(operand)
    if isinstance(operand, Slot) and operand.dtype is dtype:
        # A slot is weak, this is not: what is made of it keeps the dtype.
        return make(Map, (operand,), (), dtype, "cast")
    return cast(operand, dtype) if isinstance(operand, Node) else const(operand, dtype)


def elementwise(function: str, *operands: Node | Number, dtype: DType | None = None) -> Node:
    """Map with promotion and broadcasting: what `a + b` means."""
    common = common_dtype(operands) if dtype is None else dtype
    nodes = [as_node(operand, common) for operand in operands]
    shape = broadcast_shapes(*[n.shape for n in nodes])
    return apply(function, *[broadcast_to(n, shape) for n in nodes])


def select(condition: Node, a: Node | Number, b: Node | Number) -> Node:
    """a where condition holds, else b."""
    common = common_dtype([a, b])
    nodes = [cast(condition, dtypes.bool_), as_node(a, common), as_node(b, common)]
    shape = broadcast_shapes(*[n.shape for n in nodes])
    return apply("select", *[broadcast_to(n, shape) for n in nodes])


# --- Reindex ------------------------------------------------------------------------------------


def reindex(
    a: Node,
    shape: Shape,
    where: Sequence[Index],
    guard: Guard = (),
    fill: Number = 0,
    reads: Sequence[Node] = (),
) -> Node:
    """out[i] = a[where(i)] where guard(i), else fill."""
    # A coordinate of extent 1 is 0: said once here, so that equal places have equal text.
    unit: dict[Expr, Expr] = {axis(k, 1): index.ZERO for k, n in enumerate(shape) if n == 1}
    exprs = tuple([index.substitute(index.wrap(e), unit) for e in where])
    guard = index.substitute_guard(guard, unit)
    if any(condition.never for condition in guard):
        return full(shape, fill, a.dtype)
    same = tuple([unit.get(v, v) for v in coordinates(shape)])
    if not guard and shape == a.shape and exprs == same:
        return a
    if not guard:
        fill = 0
    if isinstance(a, Reindex):
        composed = _compose(a, shape, exprs, guard, fill, reads)
        if composed is not None:
            return composed
    known = constant_value(a)
    if known is not None and guard and _same_number(known, fill):
        return full(shape, fill, a.dtype)
    if known is not None and not guard and reads:
        return full(shape, known, a.dtype)
    return make(Reindex, (a, *reads), shape, a.dtype, exprs, guard, fill)


def _compose(
    inner: Node, shape: Shape, outer: tuple[Expr, ...], guard: Guard, fill: Number, reads: Any
) -> Node | None:
    """inner[outer(i)] as one Reindex of inner's input, unless two different fills are needed."""
    assert isinstance(inner, Reindex)
    if guard and inner.guard and not _same_number(fill, inner.fill):
        return None
    own_reads = inner.inputs[1:]
    moved = [index.renumber_reads(e, lambda n: n + len(own_reads)) for e in outer]
    mapping: dict[Expr, Expr] = dict(zip(coordinates(inner.shape), moved, strict=True))
    exprs = [index.substitute(e, mapping) for e in inner.index]
    shifted = tuple(
        Condition(index.renumber_reads(c.expr, lambda n: n + len(own_reads)), c.equal)
        for c in guard
    )
    both = shifted + index.substitute_guard(inner.guard, mapping)
    return reindex(
        inner.inputs[0], shape, exprs, both, inner.fill if inner.guard else fill,
        (*own_reads, *reads),
    )  # fmt: skip


def broadcast_shapes(*shapes: Shape) -> Shape:
    """The common shape, or an OperandError that names the shapes."""
    rank = max(map(len, shapes), default=0)
    result = []
    for k in range(-rank, 0):
        first, *others = {s[k] for s in shapes if len(s) >= -k} - {1} or {1}
        if others and not all(agree(first, other) for other in others):
            listed = " and ".join(str(s) for s in shapes)
            raise OperandError(f"shapes {listed} do not broadcast together (axis {k})")
        result.append(first)
    return tuple(result)


def broadcast_to(a: Node, shape: Shape) -> Node:
    """a repeated along axes of size 1 and new leading axes."""
    if a.shape == shape:
        return a
    lead = len(shape) - len(a.shape)
    where = []
    for k, extent in enumerate(a.shape):
        if extent == shape[lead + k]:
            where.append(index.wrap(axis(lead + k, extent)))
        elif extent == 1:
            where.append(index.ZERO)
        elif agree(extent, shape[lead + k]):
            where.append(index.wrap(axis(lead + k, shape[lead + k])))
        else:
            raise ValueError(f"shape {a.shape} does not broadcast to {shape}")
    return reindex(a, shape, where)


def reshape(a: Node, shape: Shape) -> Node:
    """The same elements, row-major, in another shape."""
    if shape == a.shape:
        return a
    if 0 in shape:
        return make(Reindex, (a,), shape, a.dtype, (index.ZERO,) * a.ndim, (), 0)
    flat = index.flatten(coordinates(shape), index.contiguous_strides(shape))
    return reindex(a, shape, index.unflatten(flat, a.shape))


def permute(a: Node, order: Sequence[int]) -> Node:
    """out's axis k is a's axis order[k]."""
    shape = tuple([a.shape[k] for k in order])
    where: list[Index] = [0] * a.ndim
    for k, source in enumerate(order):
        where[source] = axis(k, shape[k])
    return reindex(a, shape, where)


def expand_dims(a: Node, positions: Sequence[int]) -> Node:
    """Axes of size 1 inserted so that they stand at `positions` of the result."""
    kept = iter(a.shape)
    rank = a.ndim + len(positions)
    return reshape(a, tuple([1 if k in positions else next(kept) for k in range(rank)]))


# --- Reduce -------------------------------------------------------------------------------------

IDENTITY: dict[str, Callable[[DType], Number]] = {
    "add": lambda d: 0,
    "mul": lambda d: 1,
    "max": lambda d: lowest(d),
    "min": lambda d: highest(d),
    "and": lambda d: True,
    "or": lambda d: False,
}


def lowest(dtype: DType) -> Number:
    """The value that no value of the dtype is below."""
    _require_order(dtype)
    if dtype.kind is Kind.FLOAT:
        return float("-inf")
    return False if dtype.kind is Kind.BOOL else int(np.iinfo(dtype.numpy).min)


def highest(dtype: DType) -> Number:
    """The value that no value of the dtype is above."""
    _require_order(dtype)
    if dtype.kind is Kind.FLOAT:
        return float("inf")
    return True if dtype.kind is Kind.BOOL else int(np.iinfo(dtype.numpy).max)


def _require_order(dtype: DType) -> None:
    if dtype.is_complex:
        raise NotImplementedError("complex numbers have no order: there is no largest or smallest")


def reduce(combine: str, a: Node, axes: Sequence[int], keepdim: bool = False) -> Node:
    """⊕ over the axes; with keepdim they stay with size 1."""
    if combine in ("max", "min", "argmax", "argmin"):
        _require_order(a.dtype)
    gone = tuple(sorted({k % a.ndim for k in axes})) if axes else ()
    unit = [k for k in gone if a.shape[k] == 1]
    if unit and not combine.startswith("arg"):
        return _reduce_without(combine, a, gone, unit, keepdim)
    kept = tuple([extent for k, extent in enumerate(a.shape) if k not in gone])
    if not gone and not combine.startswith("arg"):
        return a
    dtype = dtypes.int64 if combine.startswith("arg") else a.dtype
    result: Node = make(Reduce, (a,), kept, dtype, combine, gone)
    return expand_dims(result, gone) if keepdim and gone else result


def _reduce_without(
    combine: str, a: Node, gone: tuple[int, ...], unit: list[int], keepdim: bool
) -> Node:
    """A reduction whose axes of size 1 are left out first: there is nothing to combine."""
    kept = [k for k in range(a.ndim) if k not in unit]
    rest = [n for n, k in enumerate(kept) if k in gone]
    result = reduce(combine, reshape(a, tuple([a.shape[k] for k in kept])), rest)
    return expand_dims(result, gone) if keepdim else result


def scatter(
    combine: str, a: Node, shape: Shape, where: Sequence[Index], guard: Guard = (),
    reads: Sequence[Node] = (),
) -> Node:  # fmt: skip
    """out[where(j)] ⊕= a[j], starting from the identity of ⊕."""
    exprs = tuple([index.wrap(e) for e in where])
    guard = index.reduce_guard(guard)
    used = {v for e in [*exprs, *(c.expr for c in guard)] for v in index.variables(e)}
    axes = coordinates(a.shape)
    idle = [k for k, v in enumerate(axes) if v not in used]
    if idle:  # what goes to one place is combined before it is scattered
        kept = [v for v in axes if v in used]
        swap: dict[Expr, Expr] = {v: axis(n, v.extent) for n, v in enumerate(kept)}
        moved = [index.substitute(e, swap) for e in exprs]
        return scatter(
            combine, reduce(combine, a, idle), shape, moved, index.substitute_guard(guard, swap),
            reads,
        )  # fmt: skip
    return make(Scatter, (a, *reads), shape, a.dtype, combine, exprs, guard)


# --- Contract, Call, Move -----------------------------------------------------------------------


def contract(
    a: Node, b: Node, shape: Shape, domain: Shape, fo: Sequence[Expr], fa: Sequence[Expr],
    fb: Sequence[Expr],
) -> Node:  # fmt: skip
    """out[fo(d)] += a[fa(d)] · b[fb(d)] over the domain."""
    wrapped = [tuple([index.wrap(e) for e in part]) for part in (fo, fa, fb)]
    return make(Contract, (a, b), shape, a.dtype, domain, *wrapped)


def einsum(letters_a: str, letters_b: str, letters_out: str, a: Node, b: Node) -> Node:
    """A contraction without affine maps, named as in einsum: einsum("mk", "kn", "mn", a, b)."""
    sizes = dict(zip(letters_a, a.shape, strict=True))
    for letter, extent in zip(letters_b, b.shape, strict=True):
        if not agree(sizes.setdefault(letter, extent), extent):
            raise ValueError(f"sizes of axis {letter!r} differ: {a.shape} and {b.shape}")
    letters = letters_out + "".join(c for c in sizes if c not in letters_out)
    domain = tuple([sizes[c] for c in letters])
    place = {c: axis(k, sizes[c]) for k, c in enumerate(letters)}
    maps = [[place[c] for c in part] for part in (letters_out, letters_a, letters_b)]
    return contract(a, b, tuple([sizes[c] for c in letters_out]), domain, *maps)


def call(function: str, *operands: Node, options: tuple[Any, ...] = ()) -> Node:
    """A native function of whole arrays."""
    shape, dtype = native.TABLE[function].infer(*operands, *options)
    return make(Call, operands, tuple(shape), dtype, function, options)


def move(a: Node, device: str) -> Node:
    """The same value on another device."""
    return make(Move, (a,), a.shape, a.dtype, device)


# --- the namespace and the arithmetic -----------------------------------------------------------


class _Functions:
    """Scalar functions by name, for derivatives and definitions: functions.exp(x)."""

    cast = staticmethod(cast)
    select = staticmethod(select)

    @staticmethod
    def conj(x: Node) -> Node:
        """The complex conjugate; a real number is its own."""
        return apply("conj", x) if x.dtype.is_complex else x

    def __getattr__(self, name: str) -> Callable[..., Node]:
        if name not in scalar.TABLE:
            raise AttributeError(f"there is no scalar function {name!r}")

        def call(*operands: Node | Number) -> Node:
            return elementwise(name, *operands)

        setattr(self, name, call)
        return call


functions = _Functions()


def _true_divide(a: Node | Number, b: Node | Number) -> Node:
    common = common_dtype([a, b])
    if not common.is_smooth:
        common = dtypes.get_default_dtype()
    return elementwise("div", a, b, dtype=common)


def _attach() -> None:
    arithmetic = {
        "add": functions.add, "sub": functions.sub, "mul": functions.mul, "truediv": _true_divide,
        "floordiv": functions.floordiv, "mod": functions.remainder, "pow": functions.pow,
    }  # fmt: skip
    for name, function in arithmetic.items():
        setattr(Node, f"__{name}__", lambda a, b, f=function: f(a, b))
        setattr(Node, f"__r{name}__", lambda a, b, f=function: f(b, a))
    for name in ("lt", "le", "gt", "ge"):
        compare = getattr(functions, name)
        setattr(Node, f"__{name}__", lambda a, b, f=compare: f(a, b))
    setattr(Node, "__neg__", lambda a: functions.neg(a))  # noqa: B010


_attach()
