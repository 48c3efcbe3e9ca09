"""The kernel: what the compiler hands to a backend, free of any machine's details.

A kernel is a loop nest. Its `outer` axes are independent and may run in parallel. For each outer
point the `stages` run in order; a stage loops over its own `axes`, accumulates `reductions` into
one number per outer point, and performs `stores`. A later stage may use an earlier stage's result
(`Result`), so a row is read from memory once and stays in cache: softmax and layer norm are one
kernel. A reduction over the outer axes is `privatised`: chunk p of the outer domain accumulates
into row p of `partials`, and `combine` sums the rows afterwards, so that the result does not
depend on the number of threads.

Values inside a stage are `Value` expressions, a graph of loads, index arithmetic and scalar
functions. Equal values are one object within a kernel, so emitters memoise by identity.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from ..ir.dtypes import DType
from ..ir.index import Expr, Guard, Var

Number = Any  # bool, int or float; complex only until `compiler/interleave.py` has run


@dataclass(frozen=True, eq=False)
class Value:
    """One scalar value of the body; see the subclasses."""

    dtype: DType


@dataclass(frozen=True, eq=False)
class Constant(Value):
    """A number known at compile time (bool, int or float)."""

    value: Number


@dataclass(frozen=True, eq=False)
class Load(Value):
    """Element `index` (flat, in elements) of buffer number `buffer`.

    Where `guard` does not hold nothing is read and the value is `fill`. dtype is the buffer's. A
    `Read` in an index names a buffer and has one flat index.
    """

    buffer: int
    index: Expr
    guard: Guard = ()
    fill: Number = 0


@dataclass(frozen=True, eq=False)
class IndexValue(Value):
    """The integer `expr` of the coordinates, as a number (dtype int64)."""

    expr: Expr


@dataclass(frozen=True, eq=False)
class Holds(Value):
    """The truth of `guard` at the coordinates (dtype bool)."""

    guard: Guard


@dataclass(frozen=True, eq=False)
class Apply(Value):
    """Scalar function `function` (a name in `ir.scalar.TABLE`) of other values."""

    function: str
    operands: tuple[Value, ...]


@dataclass(frozen=True, eq=False)
class Result(Value):
    """The finished accumulator `number` of this kernel: a value per outer point."""

    number: int


@dataclass(frozen=True)
class Reduction:
    """Accumulator `number` ⊕= value over the stage's axes.

    `combine` is "add", "mul", "max", "min", "and", "or" or "argmax"/"argmin". For the last two
    `value` is compared and the result (int64) is the `position` of the first extreme.
    """

    number: int
    combine: str
    value: Value
    position: Expr | None = None


@dataclass(frozen=True)
class Store:
    """buffer[index] = value, for every point of the stage at which `guard` holds."""

    buffer: int
    index: Expr
    value: Value
    guard: Guard = ()


@dataclass(frozen=True)
class Privatised:
    """partials[chunk, index] ⊕= value, later combined into buffer[index] over all chunks.

    `index` uses the stage's axes only and runs over [0, size). The workspace may be wider than
    the output (float32 for float16). An index that is a constant is accumulated in registers.
    """

    buffer: int
    partials: int  # buffer number of the workspace [chunks, size]
    size: int
    combine: str
    index: Expr
    value: Value


@dataclass(frozen=True)
class Stage:
    """One pass over `axes` for each outer point. Without axes it runs once per outer point.

    At a point all values are computed before anything is stored, and points may run in any order:
    what one point stores, another point of the same stage must not load.
    """

    axes: tuple[Var, ...]
    reductions: tuple[Reduction, ...] = ()
    stores: tuple[Store, ...] = ()
    privatised: tuple[Privatised, ...] = ()

    @cached_property
    def values(self) -> list[Value]:
        """Every value that it computes, operands first, each once."""
        return postorder(stage_values(self))


@dataclass(frozen=True)
class BufferUse:
    """One argument of the kernel. role: "in", "out", "inout", "partials", or "row".

    A "row" is scratch of `elements` per thread, private to an outer point: what one stage stores
    there a later stage loads. It is not passed as an argument. Nor is a "table", which emitters
    add: scratch per thread, filled before the outer points. In a kernel with segments, a
    `shared` buffer is the same for all segments (a learning rate), the others come once each.
    """

    dtype: DType
    elements: int
    role: str
    shared: bool = False

    @property
    def is_argument(self) -> bool:
        """Whether an address is passed for it."""
        return self.role not in ("row", "table")


@dataclass(frozen=True)
class Schedule:
    """How to run the loops.

    vector: the axis that lanes run along; one of the outer axes (every lane is another outer
    point) or the last axis of the stages (lanes share an outer point), or None for scalar code.
    unroll: (outer axis, count) to jam: several outer points per iteration share their loads; of the
    vector axis itself, vectors per iteration.
    parallel: whether the outer domain is split over threads; chunks: how many rows `partials` has.
    """

    vector: Var | None = None
    unroll: tuple[Var, int] | None = None
    parallel: bool = True
    chunks: int = 1


@dataclass(frozen=True)
class Prologue:
    """Single numbers that are computed once, before the outer points: the count of an optimiser.

    The stages have no axes and run in order. Their buffers are arguments behind those of the
    kernel, numbered from 0; the kernel reads what they store by buffers of its own.
    """

    stages: tuple[Stage, ...]
    buffers: tuple[BufferUse, ...]


@dataclass(frozen=True)
class Kernel:
    """A loop nest over buffers; `name` is unique by content and `buffers[n]` is argument n.

    With `segments` (a parameter update over many tensors) the kernel is pointwise with one outer
    axis, and runs for each segment s over segments[s] elements in a single launch. Its arguments
    are then, buffer after buffer, one pointer for a shared buffer and len(segments) for another.
    """

    name: str
    outer: tuple[Var, ...]
    stages: tuple[Stage, ...]
    buffers: tuple[BufferUse, ...]
    schedule: Schedule = field(default_factory=Schedule)
    segments: tuple[int, ...] = ()
    prologue: Prologue | None = None

    def prologue_kernels(self) -> list[Kernel]:
        """The stages of the prologue as kernels over its buffers, to run before this one."""
        if self.prologue is None:
            return []
        uses, schedule = self.prologue.buffers, Schedule(parallel=False)
        return [
            Kernel(f"{self.name}.first{number}", (), (stage,), uses, schedule)
            for number, stage in enumerate(self.prologue.stages)
        ]


# --- walking values -----------------------------------------------------------------------------


def operands_of(value: Value) -> tuple[Value, ...]:
    """The values directly inside a value."""
    return value.operands if isinstance(value, Apply) else ()


def stage_values(stage: Stage) -> list[Value]:
    """The values that a stage reduces or stores."""
    found = [reduction.value for reduction in stage.reductions]
    found += [store.value for store in stage.stores]
    return found + [private.value for private in stage.privatised]


def postorder(roots: Iterable[Value]) -> list[Value]:
    """Every value below the roots, operands first, each once."""
    order: list[Value] = []
    seen: set[int] = set()
    stack = [(root, False) for root in roots]
    stack.reverse()
    while stack:
        value, done = stack.pop()
        if done:
            order.append(value)
        elif id(value) not in seen:
            seen.add(id(value))
            stack.append((value, True))
            stack.extend((operand, False) for operand in reversed(operands_of(value)))
    return order


def map_stage(stage: Stage, replaced: dict[int, Value]) -> Stage:
    """The stage with some values (by id) replaced by others."""
    made: dict[int, Value] = dict(replaced)
    for value in postorder(stage_values(stage)):
        if id(value) in made:
            continue
        inner = operands_of(value)
        if any(made[id(o)] is not o for o in inner):
            assert isinstance(value, Apply)
            fresh = tuple(made[id(o)] for o in inner)
            made[id(value)] = Apply(value.dtype, value.function, fresh)
        else:
            made[id(value)] = value
    return Stage(
        stage.axes,
        tuple(Reduction(r.number, r.combine, made[id(r.value)], r.position)
              for r in stage.reductions),
        tuple(Store(s.buffer, s.index, made[id(s.value)], s.guard) for s in stage.stores),
        tuple(Privatised(p.buffer, p.partials, p.size, p.combine, p.index, made[id(p.value)])
              for p in stage.privatised),
    )  # fmt: skip
