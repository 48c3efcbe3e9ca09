"""The nodes of the graph: three meta-operators, contractions, calls, sources and movement.

A node is immutable and interned: inside one `interning()` block, structurally equal means
identical. Its `id` grows with creation, and inputs exist before their users, so sorting by id is a
topological order. Its `origin`, no part of what it is, is the recorded call that it was first made
for. Build nodes with the constructors in `build.py`, which simplify; the classes
here only hold facts.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from .dtypes import DType, bool_, int64, uint32
from .index import Expr, Guard, Var

if TYPE_CHECKING:
    from .loop import LoopBody

Shape = tuple[int, ...]
Number = bool | int | float | complex


class Node:
    """One array value of the graph, with `shape`, `dtype` and the nodes it is computed from."""

    __slots__ = ("inputs", "shape", "dtype", "id", "attributes", "origin")
    fields: ClassVar[tuple[str, ...]] = ()
    inputs: tuple[Node, ...]
    shape: Shape
    dtype: DType
    id: int
    attributes: tuple[Any, ...]
    origin: int  # number of the recorded call, or -1

    if TYPE_CHECKING:  # arithmetic is attached in `build.py`, with broadcasting and promotion

        def _binary(self, other: Node | Number) -> Node: ...

        __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _binary
        __truediv__ = __rtruediv__ = __floordiv__ = __mod__ = __pow__ = _binary
        __lt__ = __le__ = __gt__ = __ge__ = _binary

        def __neg__(self) -> Node: ...

    @property
    def size(self) -> int:
        """Number of elements."""
        result = 1
        for extent in self.shape:
            result *= extent
        return result

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def kind(self) -> str:
        """The name of the node's class, as printed."""
        return type(self).__name__

    def __repr__(self) -> str:
        from .printer import describe

        return describe(self)


class Buffer(Node):
    """Source: the contents of memory handed in from outside, number `number`."""

    __slots__ = ()
    fields = ("number",)
    number: int


class Slot(Node):
    """Source: a Python number filled in at each run. Weak: it adopts the dtype it meets.

    With an axis it is a part of the table of numbers, from this one on, of which those of this
    type are read.
    """

    __slots__ = ()
    fields = ("number", "type")
    number: int
    type: type


class Const(Node):
    """Source: a number known at compile time, of shape ()."""

    __slots__ = ()
    fields = ("value",)
    value: Number


class Coordinate(Node):
    """Source: out[i] = i[axis], as int64."""

    __slots__ = ()
    fields = ("axis",)
    axis: int


class Random(Node):
    """Source: 32 random bits per element, by Philox on (seed, offset, flat index).

    Inputs are two scalars, the seed and the offset, so a draw depends on no order of evaluation.
    """

    __slots__ = ()


class Map(Node):
    """out[i] = f(a[i], b[i], …); all operands have the shape of the result."""

    __slots__ = ()
    fields = ("function",)
    function: str


class Reindex(Node):
    """out[i] = a[index(i)] where guard(i), else fill.

    `index` has one expression per axis of the first input, over the output's coordinates
    `axis(k, extent)`. Further inputs are integer arrays that `Read(n, …)` atoms refer to, n from 0.
    """

    __slots__ = ()
    fields = ("index", "guard", "fill")
    index: tuple[Expr, ...]
    guard: Guard
    fill: Number


class Reduce(Node):
    """out = ⊕ over `axes` of the input; the remaining axes keep their order.

    `combine` is add, mul, max, min, and, or; argmax and argmin give the flat position of the
    first extreme within the reduced axes.
    """

    __slots__ = ()
    fields = ("combine", "axes")
    combine: str
    axes: tuple[int, ...]


class Scatter(Node):
    """The other form of Reduce: out[index(j)] ⊕= a[j] where guard(j), for every j of the input.

    Used only where `index` reads integer tensors and so cannot be inverted into gather form.
    """

    __slots__ = ()
    fields = ("combine", "index", "guard")
    combine: str
    index: tuple[Expr, ...]
    guard: Guard


class Contract(Node):
    """out[fo(d)] += a[fa(d)] · b[fb(d)] for every point d of the domain.

    The maps are affine in the domain's coordinates `axis(k, extent)`. A point at which any of the
    three places is out of bounds is left out: that is padding.
    """

    __slots__ = ()
    fields = ("domain", "fo", "fa", "fb")
    domain: Shape
    fo: tuple[Expr, ...]
    fa: tuple[Expr, ...]
    fb: tuple[Expr, ...]


class Call(Node):
    """out = a named function of whole arrays, with options: what is not pointwise.

    `ir/native.py` says what each function means and which shape and dtype come out.
    """

    __slots__ = ()
    fields = ("function", "options")
    function: str
    options: tuple[Any, ...]


class Loop(Node):
    """The same body over and over, `trips` times: what `ir/loop.py` makes and takes apart.

    Inputs are what is carried from turn to turn, the sequences of which each turn sees one
    element, and what all turns share. A Loop itself has no value: `LoopResult` takes its results.
    With `reverse` the last element of the sequences comes first.
    """

    __slots__ = ()
    fields = ("trips", "body", "reverse")
    trips: int
    body: LoopBody
    reverse: bool


class LoopResult(Node):
    """One result of a Loop: what is carried in the end, or behind those a stack of all turns'."""

    __slots__ = ()
    fields = ("number",)
    number: int


class Move(Node):
    """The same value in another place: `device` (and later layout or placement)."""

    __slots__ = ()
    fields = ("device",)
    device: str


def _attribute(position: int) -> property:
    return property(lambda node: node.attributes[position])


for _kind in (
    Buffer, Slot, Const, Coordinate, Map, Reindex, Reduce, Scatter, Contract, Call, Loop,
    LoopResult, Move,
):  # fmt: skip
    for _position, _field in enumerate(_kind.fields):
        setattr(_kind, _field, _attribute(_position))


class _Scope(threading.local):
    """The table of the thread's current `interning()` block, if it is in one.

    `origin` is that of the nodes that are made now; -1 means that of their inputs.
    """

    table: dict[tuple[Any, ...], Node] | None = None
    origin: int = -1


_counter = itertools.count()
_scope = _Scope()

N = TypeVar("N", bound=Node)


@contextmanager
def interning() -> Iterator[None]:
    """The scope within which equal nodes are one. Nested scopes share the outer table."""
    if _scope.table is not None:
        yield
        return
    _scope.table = {}
    try:
        yield
    finally:
        _scope.table, _scope.origin = None, -1


def enter_origin(number: int) -> int:
    """Nodes made from now on come from this recorded call; the one they came from before."""
    before, _scope.origin = _scope.origin, number
    return before


def make(
    kind: type[N], inputs: tuple[Node, ...], shape: Shape, dtype: DType, *attributes: Any
) -> N:
    """The node with these facts: the existing one if there is one."""
    key = (kind, tuple([n.id for n in inputs]), shape, dtype, hashable(attributes))
    table = _scope.table
    if table is not None:
        found = table.get(key)
        if found is not None:
            if found.origin < 0:
                found.origin = _scope.origin
            return found  # type: ignore[return-value]
    node = kind.__new__(kind)
    node.inputs = inputs
    node.shape = shape
    node.dtype = dtype
    node.attributes = attributes
    node.id = next(_counter)
    origin = _scope.origin
    node.origin = max([n.origin for n in inputs], default=-1) if origin < 0 else origin
    if table is not None:
        table[key] = node
    return node


def hashable(attributes: tuple[Any, ...]) -> tuple[Any, ...]:
    """Attributes as a key of a dictionary."""
    # 1, 1.0 and True are equal in Python, and 0.0 equals -0.0; a graph must tell them apart.
    return tuple(
        [(type(a), repr(a)) if isinstance(a, (complex, float, int)) else a for a in attributes]
    )


@lru_cache(maxsize=4096)
def axis(k: int, extent: int) -> Var:
    """Coordinate k of an index space, with 0 <= axis < extent."""
    return Var(f"i{k}", extent)


def coordinates(shape: Iterable[int]) -> tuple[Var, ...]:
    """The coordinates of every axis of `shape`."""
    return tuple([axis(k, extent) for k, extent in enumerate(shape)])


def ancestors(roots: Iterable[Node]) -> list[Node]:
    """Every node that the roots need, in topological order."""
    seen: dict[int, Node] = {}
    stack = list(roots)
    while stack:
        node = stack.pop()
        if node.id not in seen:
            seen[node.id] = node
            stack.extend(node.inputs)
    return [seen[k] for k in sorted(seen)]


__all__ = [
    "Buffer", "Call", "Const", "Contract", "Coordinate", "DType", "Expr", "Guard", "Loop",
    "LoopResult", "Map", "Move", "Node", "Number", "Random", "Reduce", "Reindex", "Scatter",
    "Shape", "Slot", "ancestors", "axis", "bool_", "coordinates", "enter_origin", "int64",
    "interning", "make", "uint32",
]  # fmt: skip
