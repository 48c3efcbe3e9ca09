"""Schedules: merge axes that step as one, choose the vector axis, what to unroll and to split.

A cost model of few facts: which loads are contiguous along an axis, how long it is, and how much
work there is in all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from hashlib import blake2b

from ..codegen import kernel as k
from ..ir import index
from ..ir.extent import Extent, hint
from ..ir.index import Condition, Expr, FloorDiv, Guard, Mod, Var

COLUMN = "l"  # the name of a scatter's column axis
SHORTEST = 16  # of the parts of an axis that is split
JAMMED_ROWS = 4
LONGEST_BODY = 1024  # operations of all jammed copies; LLVM takes minutes for very long bodies
PARALLEL_WORK = 65536  # element operations, some two microseconds, below which one thread works


def finish(kernel: k.Kernel, hint: str) -> k.Kernel:
    """The kernel with its axes merged, a schedule, and a name made of its content."""
    if not any(s.reductions or s.privatised for s in kernel.stages) and len(kernel.stages) == 1:
        stage = kernel.stages[0]
        kernel = replace(
            kernel, outer=(*kernel.outer, *stage.axes), stages=(replace(stage, axes=()),)
        )
    kernel = split_axes(collapse(kernel))
    kernel = replace(kernel, schedule=_schedule(kernel))
    return replace(kernel, name=f"{hint}_{fingerprint(kernel)}")


# --- expressions --------------------------------------------------------------------------------


def expressions(kernel: k.Kernel) -> Iterator[Expr]:
    """Every index expression of a kernel."""
    for stage in kernel.stages:
        for value in k.postorder(k.stage_values(stage)):
            yield from _value_expressions(value)
        for reduction in stage.reductions:
            if reduction.position is not None:
                yield reduction.position
        for store in stage.stores:
            yield store.index
            yield from (c.expr for c in store.guard)
        for part in stage.privatised:
            yield part.index


def _value_expressions(value: k.Value) -> Iterator[Expr]:
    if isinstance(value, k.Load):
        yield value.index
        yield from (c.expr for c in value.guard)
    elif isinstance(value, k.IndexValue):
        yield value.expr
    elif isinstance(value, k.Holds):
        yield from (c.expr for c in value.guard)


def map_expressions(kernel: k.Kernel, change: Callable[[Expr], Expr]) -> k.Kernel:
    """The kernel with every index expression changed."""

    def guard_of(guard: Guard) -> Guard:
        return tuple(Condition(change(c.expr), c.equal) for c in guard)

    made: dict[int, k.Value] = {}
    for value in k.postorder([v for stage in kernel.stages for v in k.stage_values(stage)]):
        if isinstance(value, k.Load):
            made[id(value)] = replace(value, index=change(value.index), guard=guard_of(value.guard))
        elif isinstance(value, k.IndexValue):
            made[id(value)] = replace(value, expr=change(value.expr))
        elif isinstance(value, k.Holds):
            made[id(value)] = replace(value, guard=guard_of(value.guard))
        elif isinstance(value, k.Apply):
            operands = tuple(made[id(o)] for o in k.operands_of(value))
            made[id(value)] = replace(value, operands=operands)
        else:
            made[id(value)] = value
    stages = []
    for stage in kernel.stages:
        stages.append(
            k.Stage(
                stage.axes,
                tuple(replace(r, value=made[id(r.value)],
                              position=None if r.position is None else change(r.position))
                      for r in stage.reductions),
                tuple(replace(s, index=change(s.index), value=made[id(s.value)],
                              guard=guard_of(s.guard)) for s in stage.stores),
                tuple(replace(p, index=change(p.index), value=made[id(p.value)])
                      for p in stage.privatised),
            )
        )  # fmt: skip
    return replace(kernel, stages=tuple(stages))


# --- merging axes -------------------------------------------------------------------------------


def collapse(kernel: k.Kernel) -> k.Kernel:
    """Merge neighbouring axes that every expression steps through as one; drop unit axes."""
    kernel = _drop_units(kernel)
    merged = True
    while merged:
        merged = False
        exprs = list(dict.fromkeys(expressions(kernel)))
        for first, second in _neighbours(kernel):
            if all(_steps_as_one(e, first, second) for e in exprs):
                kernel = _merge(kernel, first, second)
                merged = True
                break
    return kernel


def _drop_units(kernel: k.Kernel) -> k.Kernel:
    axes = [*kernel.outer, *(v for stage in kernel.stages for v in stage.axes)]
    units: dict[Expr, Expr] = {v: index.ZERO for v in axes if v.extent == 1}
    if not units:
        return kernel
    kernel = map_expressions(kernel, lambda e: index.substitute(e, units))
    stages = tuple(
        replace(s, axes=tuple(v for v in s.axes if v.extent != 1)) for s in kernel.stages
    )
    return replace(kernel, outer=tuple(v for v in kernel.outer if v.extent != 1), stages=stages)


def _neighbours(kernel: k.Kernel) -> list[tuple[Var, Var]]:
    pairs = list(zip(kernel.outer, kernel.outer[1:], strict=False))
    for stage in kernel.stages:
        pairs += zip(stage.axes, stage.axes[1:], strict=False)
    return list(dict.fromkeys(pairs))


def _steps_as_one(e: Expr, first: Var, second: Var) -> bool:
    a, b = index.coefficient(e, first), index.coefficient(e, second)
    return a is not None and b is not None and a == b * second.extent


def _merge(kernel: k.Kernel, first: Var, second: Var) -> k.Kernel:
    joined = Var(f"{first.name}{second.name}", first.extent * second.extent)
    swap: dict[Expr, Expr] = {first: index.ZERO, second: joined}

    def axes_of(axes: tuple[Var, ...]) -> tuple[Var, ...]:
        return tuple(joined if v == second else v for v in axes if v != first)

    kernel = map_expressions(kernel, lambda e: index.substitute(e, swap))
    stages = tuple(
        replace(s, axes=axes_of(s.axes)) if first in s.axes else s for s in kernel.stages
    )
    outer = axes_of(kernel.outer) if first in kernel.outer else kernel.outer
    return replace(kernel, outer=outer, stages=stages)


# --- splitting axes -----------------------------------------------------------------------------


def split_axes(kernel: k.Kernel) -> k.Kernel:
    """Split axes that are only divided by one number: v // 49 and v % 49 become axes.

    So a reshape of a turned array is read in squares, and no element is divided for. Parts that
    are shorter than a vector are not worth it.
    """
    exprs = list(dict.fromkeys(expressions(kernel)))
    for axis in dict.fromkeys(_axes(kernel)):
        radix = _radix(axis, exprs)
        if radix is not None:
            kernel = _split(kernel, axis, radix)
    return kernel


def _radix(axis: Var, exprs: list[Expr]) -> int | None:
    """The one number that all expressions divide an axis by, if it divides its extent."""
    found: set[Expr] = set()
    for e in exprs:
        for atom in index.atoms(e):
            if atom is not axis and atom != axis and axis in index.variables(atom):
                if not isinstance(atom, (FloorDiv, Mod)) or atom.a != axis:
                    return None
                found.add(atom.n)
    radix = index.constant(found.pop()) if len(found) == 1 else None
    if not isinstance(radix, int) or radix < SHORTEST or not isinstance(axis.extent, int):
        return None
    return radix if axis.extent % radix == 0 else None


def _split(kernel: k.Kernel, axis: Var, radix: int) -> k.Kernel:
    high, low = Var(f"{axis.name}h", axis.extent // radix), Var(f"{axis.name}l", radix)
    swap: dict[Expr, Expr] = {axis: high * radix + low}

    def axes_of(axes: tuple[Var, ...]) -> tuple[Var, ...]:
        return tuple(part for v in axes for part in ((high, low) if v == axis else (v,)))

    kernel = map_expressions(kernel, lambda e: index.substitute(e, swap))
    stages = tuple(replace(s, axes=axes_of(s.axes)) for s in kernel.stages)
    return replace(kernel, outer=axes_of(kernel.outer), stages=stages)


# --- the schedule -------------------------------------------------------------------------------


def _schedule(kernel: k.Kernel) -> k.Schedule:
    inner = _common_last_axis(kernel)
    outer = kernel.outer[-1] if kernel.outer else None
    if any(use.role == "inout" for use in kernel.buffers):
        # Rows are added one after the other: lanes may only run along columns.
        vector = inner if inner is not None and inner.name == COLUMN else None
        return k.Schedule(vector, None, _work(kernel) >= PARALLEL_WORK, 1)
    vector = _vector_axis(kernel, inner, outer)
    work = _work(kernel)
    unroll = _unroll(kernel, vector) or _transposed(kernel, vector) or _side_by_side(kernel, vector)
    if unroll is not None and unroll[1] * _longest(kernel) > LONGEST_BODY:
        unroll = None
    return k.Schedule(vector, unroll, work >= PARALLEL_WORK, kernel.schedule.chunks)


def _common_last_axis(kernel: k.Kernel) -> Var | None:
    """The last axis of the stages that have axes, if it is the same for all."""
    last = {stage.axes[-1] for stage in kernel.stages if stage.axes}
    return last.pop() if len(last) == 1 else None


def _vector_axis(kernel: k.Kernel, inner: Var | None, outer: Var | None) -> Var | None:
    fixed = any(stage.privatised for stage in kernel.stages)
    candidates = [v for v in (inner, None if fixed and inner is not None else outer) if v]
    candidates = [v for v in candidates if hint(v.extent) >= 4]
    if not candidates:
        return None
    return max(candidates, key=lambda v: (_contiguity(kernel, v), v is inner))


def _contiguity(kernel: k.Kernel, axis: Var) -> float:
    """The share of loads that lanes along this axis do well, less what short axes waste."""
    good = total = 0.0
    for stage in kernel.stages:
        weight = 8.0 if stage.axes else 1.0
        for value in k.postorder(k.stage_values(stage)):
            if isinstance(value, k.Load) and hint(kernel.buffers[value.buffer].elements) > 1:
                step = index.coefficient(value.index, axis)
                total += weight
                good += weight * {0: 1.0, 1: 1.0}.get(-1 if step is None else step, 0.1)
        for store in stage.stores:
            step = index.coefficient(store.index, axis)
            total += weight
            good += weight * (1.0 if step == 1 else 0.1)
    lanes = min(hint(axis.extent), 16) / 16
    return (good / total if total else 1.0) * (0.25 + 0.75 * lanes)


def _work(kernel: k.Kernel) -> int:
    """Operations on elements, over the whole kernel: many, where sizes vary."""
    axes = [*kernel.outer, *(v for stage in kernel.stages for v in stage.axes)]
    if any(isinstance(v.extent, Extent) for v in axes):
        return PARALLEL_WORK  # each launch decides
    rows = 1
    for v in kernel.outer:
        rows *= v.extent
    total = 0
    for stage in kernel.stages:
        points = 1
        for v in stage.axes:
            points *= v.extent
        total += points * max(len(k.postorder(k.stage_values(stage))), 1)
    return rows * total


def _longest(kernel: k.Kernel) -> int:
    """Operations of the longest stage."""
    return max([len(k.postorder(k.stage_values(stage))) for stage in kernel.stages])


def _unroll(kernel: k.Kernel, vector: Var | None) -> tuple[Var, int] | None:
    """Jam an outer axis that one load of a product does not depend on: the larger array's.

    So a few rows times a matrix read the matrix once.
    """
    stage = kernel.stages[0]
    if vector is None or len(kernel.stages) > 2 or len(stage.reductions) != 1 or stage.privatised:
        return None
    loads = [v for v in k.postorder([stage.reductions[0].value]) if isinstance(v, k.Load)]
    if len(loads) != 2 or not stage.axes:
        return None
    best: tuple[int, Var] | None = None
    for axis in reversed(kernel.outer):
        if axis != vector and hint(axis.extent) >= 2:
            free = [v for v in loads if axis not in index.variables(v.index)]
            if len(free) == 1:
                saved = hint(kernel.buffers[free[0].buffer].elements)
                if best is None or saved > best[0]:
                    best = saved, axis
    if best is None:
        return None
    axis = best[1]
    return axis, min(hint(axis.extent), 4)


def _transposed(kernel: k.Kernel, vector: Var | None) -> tuple[Var, int] | None:
    """Jam the axis along which a load is contiguous when lanes run along another: squares."""
    if vector is None or vector not in kernel.outer or len(kernel.stages) != 1:
        return None
    stage = kernel.stages[0]
    if stage.axes:
        return None
    for value in k.postorder(k.stage_values(stage)):
        if isinstance(value, k.Load) and index.coefficient(value.index, vector) not in (0, 1):
            for axis in kernel.outer:
                if axis != vector and index.coefficient(value.index, axis) == 1:
                    return axis, 8 if value.dtype.itemsize == 8 else 16
    return None


def _side_by_side(kernel: k.Kernel, vector: Var | None) -> tuple[Var, int] | None:
    """Jam rows that are summed side by side: their sum is added to the partial results.

    Those are in memory, and what was just stored there is slow to load again.
    """
    looping = [stage for stage in kernel.stages if stage.axes]
    if vector is None or vector in kernel.outer or len(looping) != 1 or not kernel.outer:
        return None
    (stage,) = looping
    rows = kernel.outer[-1]
    if stage.reductions or not stage.privatised or hint(rows.extent) < JAMMED_ROWS:
        return None
    if any(index.coefficient(p.index, vector) != 1 for p in stage.privatised):
        return None
    return rows, JAMMED_ROWS


# --- names --------------------------------------------------------------------------------------


def fingerprint(kernel: k.Kernel) -> str:
    """A digest of everything that decides the kernel's code."""
    numbers: dict[int, int] = {}
    lines: list[str] = [repr(kernel.outer), repr(kernel.schedule), repr(kernel.segments)]
    lines.append(f"prologue {kernel.prologue and kernel.prologue.buffers!r}")
    lines += [f"{use.dtype.name} {use.elements} {use.role} {use.shared}" for use in kernel.buffers]
    lines += [f"{v.name}:{v.extent}" for v in _axes(kernel)]
    first = kernel.prologue.stages if kernel.prologue else ()
    for stage in (*first, *kernel.stages):
        for value in k.postorder(k.stage_values(stage)):
            if id(value) not in numbers:
                numbers[id(value)] = len(numbers)
                lines.append(_describe(value, numbers))
        for r in stage.reductions:
            lines.append(f"r {r.number} {r.combine} {numbers[id(r.value)]} {r.position}")
        for s in stage.stores:
            lines.append(f"s {s.buffer} {s.index} {numbers[id(s.value)]} {s.guard}")
        for p in stage.privatised:
            lines.append(f"p {p.buffer} {p.partials} {p.size} {p.combine} {p.index} "
                         f"{numbers[id(p.value)]}")  # fmt: skip
        lines.append(repr(stage.axes))
    return blake2b("\n".join(lines).encode(), digest_size=8).hexdigest()


def _axes(kernel: k.Kernel) -> list[Var]:
    return [*kernel.outer, *(v for stage in kernel.stages for v in stage.axes)]


def _describe(value: k.Value, numbers: dict[int, int]) -> str:
    head = f"{numbers[id(value)]} {value.dtype.name} "
    if isinstance(value, k.Apply):
        return head + value.function + repr([numbers[id(o)] for o in value.operands])
    if isinstance(value, k.Load):
        return head + f"load {value.buffer} {value.index} {value.guard} {value.fill!r}"
    if isinstance(value, k.Constant):
        return head + f"const {value.value!r}"
    if isinstance(value, k.IndexValue):
        return head + f"index {value.expr}"
    if isinstance(value, k.Holds):
        return head + f"holds {value.guard}"
    assert isinstance(value, k.Result)
    return head + f"result {value.number}"
