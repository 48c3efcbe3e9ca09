"""The second kernel of a privatised reduction: partials [chunks, width] → outputs.

It is built as an ordinary kernel, `out[i] = ⊕ over chunks of partials[chunk, lane(i)]`, and
emitted like any other. Totals are kept per lane; where several lanes belong to one output
element they are combined here too, for which the output index is turned around into lanes.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...ir.index import (
    Expr,
    Var,
    coefficient,
    contiguous_strides,
    flatten,
    floordiv,
    mod,
    num,
    total,
    variables,
)
from ..kernel import (
    BufferUse,
    Kernel,
    Load,
    Privatised,
    Reduction,
    Result,
    Schedule,
    Stage,
    Store,
)
from .tiling import Tiling, UnsupportedKernel, points


@dataclass(frozen=True)
class Combine:
    """A kernel that finishes privatised outputs; `buffers[n]` is its buffer n in the parent."""

    kernel: Kernel
    buffers: tuple[int, ...]


def partials_elements(kernel: Kernel, tiling: Tiling) -> dict[int, int]:
    """How many elements each workspace of partials needs, by buffer number."""
    return {
        each.partials: chunks_of(each, stage, tiling) * width_of(each, stage)
        for stage in kernel.stages
        for each in stage.privatised
    }


def width_of(each: Privatised, stage: Stage) -> int:
    """Partials per chunk: one per lane, or one in all."""
    return points(stage.axes) if variables(each.index) else 1


def chunks_of(each: Privatised, stage: Stage, tiling: Tiling) -> int:
    """How many rows the partials have."""
    return tiling.chunks if width_of(each, stage) > 1 else tiling.grid


def combines(kernel: Kernel, tiling: Tiling) -> tuple[Combine, ...]:
    """One kernel for each group of outputs that are laid out alike."""
    groups: dict[tuple[object, ...], list[tuple[Privatised, Stage]]] = {}
    for stage in kernel.stages:
        for each in stage.privatised:
            key = (each.size, each.index, stage.axes)
            groups.setdefault(key, []).append((each, stage))
    return tuple(_combine(kernel, tiling, n, group) for n, group in enumerate(groups.values()))


def _combine(
    kernel: Kernel, tiling: Tiling, number: int, group: list[tuple[Privatised, Stage]]
) -> Combine:
    first, stage = group[0]
    out = Var("i", first.size)
    chunk = Var("chunk", chunks_of(first, stage, tiling))
    place, summed = _lane_of(first, stage, out)
    axes = (chunk, *summed)
    if not variables(place) and chunk.extent == 1:
        axes = (chunk,)
    index = total([chunk * width_of(first, stage), place])
    buffers: list[int] = []
    reductions: list[Reduction] = []
    stores: list[Store] = []
    for n, (each, _) in enumerate(group):
        dtype = kernel.buffers[each.partials].dtype
        buffers += [each.partials, each.buffer]
        reductions.append(Reduction(n, each.combine, Load(dtype, 2 * n, index)))
        stores.append(Store(2 * n + 1, out, Result(dtype, n)))
    uses = tuple(_use(kernel.buffers[n], tiling, kernel, n) for n in buffers)
    stages = (Stage(axes, tuple(reductions)), Stage((), (), tuple(stores)))
    vector = out if first.size > 1 else axes[-1]
    name = f"{kernel.name}_combine{number}"
    return Combine(Kernel(name, (out,), stages, uses, Schedule(vector)), tuple(buffers))


def _use(use: BufferUse, tiling: Tiling, kernel: Kernel, number: int) -> BufferUse:
    elements = partials_elements(kernel, tiling).get(number, use.elements)
    return BufferUse(use.dtype, elements, "in" if use.role == "partials" else "out")


def _lane_of(each: Privatised, stage: Stage, out: Var) -> tuple[Expr, tuple[Var, ...]]:
    """The lane that feeds element `out`, and the axes over which several lanes do."""
    used = variables(each.index)
    if not used:
        return num(0), ()
    strides = {axis: coefficient(each.index, axis) for axis in used}
    span = 1
    where: dict[Var, Expr] = {}
    for axis, stride in sorted(strides.items(), key=lambda item: item[1] or 0):
        if stride != span:
            raise UnsupportedKernel(f"the privatised index {each.index} cannot be turned around")
        where[axis] = mod(floordiv(out, num(span)), num(axis.extent))
        span *= axis.extent
    if span != each.size:
        raise UnsupportedKernel(f"the privatised index {each.index} does not cover {each.size}")
    summed = tuple(axis for axis in stage.axes if axis not in used)
    place = [where.get(axis, axis) for axis in stage.axes]
    shape = [axis.extent for axis in stage.axes]
    return flatten(place, contiguous_strides(shape)), summed
