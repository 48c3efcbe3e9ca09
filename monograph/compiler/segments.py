"""Segments: many small pointwise kernels with the same body become one launch.

The update of a parameter is the same few operations for every parameter. Units that are pointwise
over one flat axis, have the same body and do not depend on one another are joined into a kernel
that walks over all their arrays in turn: one parallel region, the same bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..codegen import kernel as k
from ..ir import index
from ..ir.extent import Extent
from ..ir.index import Expr, Var
from ..ir.node import Node
from .fuse import Fusion, Unit
from .lower import Lowered
from .schedule import fingerprint, map_expressions

Body = tuple[object, ...]


def join(fusion: Fusion, units: Sequence[Unit], lowered: dict[int, Lowered]) -> list[Unit]:
    """Join what can be joined, in the fusion's books and in `lowered`; the units that remain."""
    groups: dict[Body, list[Unit]] = {}
    for unit in units:
        if unit.number in lowered:
            body = flat_body(lowered[unit.number])
            if body is not None:
                groups.setdefault(body, []).append(unit)
    gone: set[int] = set()
    for members in groups.values():
        joined = _independent(fusion, members)
        if len(joined) > 1:
            first = joined[0]
            lowered[first.number] = _merged([lowered[u.number] for u in joined])
            fusion.absorb(first, joined[1:])
            gone.update(u.number for u in joined[1:])
    for number in gone:
        del lowered[number]
    return [u for u in units if u.number not in gone]


def flat_body(low: Lowered) -> Body | None:
    """What a kernel does per element, if it is pointwise over one flat axis; else None."""
    kernel = low.kernel
    if len(kernel.outer) != 1 or len(kernel.stages) != 1 or kernel.segments:
        return None
    (stage,) = kernel.stages
    (axis,) = kernel.outer
    if stage.axes or stage.reductions or stage.privatised or isinstance(axis.extent, Extent):
        return None
    lines: list[object] = [(use.dtype, use.role, use.elements == 1) for use in kernel.buffers]
    numbers: dict[int, int] = {}
    for value in k.postorder(k.stage_values(stage)):
        numbers[id(value)] = len(numbers)
        line = _line(value, axis, numbers)
        if line is None:
            return None
        lines.append(line)
    for store in stage.stores:
        if store.index != axis or store.guard:
            return None
        lines.append(("store", store.buffer, numbers[id(store.value)]))
    return tuple(lines)


def _line(value: k.Value, axis: Var, numbers: dict[int, int]) -> object:
    if isinstance(value, k.Constant):
        return ("const", value.dtype, repr(value.value))
    if isinstance(value, k.Apply):
        return (value.function, value.dtype, *[numbers[id(o)] for o in value.operands])
    if isinstance(value, k.Load) and not value.guard:
        if value.index == axis:
            return ("load", value.buffer)
        if value.index == index.ZERO:
            return ("scalar", value.buffer)
    return None


def _independent(fusion: Fusion, members: Sequence[Unit]) -> list[Unit]:
    """Members of which none depends on another."""
    chosen: list[Unit] = []
    mask = 0
    for unit in members:
        if fusion.above[unit.number] & mask == 0:
            if not any(fusion.above[u.number] >> unit.number & 1 for u in chosen):
                chosen.append(unit)
                mask |= 1 << unit.number
    return chosen


def _merged(parts: Sequence[Lowered]) -> Lowered:
    first = parts[0].kernel
    sizes = tuple(part.kernel.outer[0].extent for part in parts)
    axis = Var("i", max(sizes))
    swap: dict[Expr, Expr] = {first.outer[0]: axis}
    made = map_expressions(first, lambda e: index.substitute(e, swap))
    buffers: list[k.BufferUse] = []
    arguments: list[Node | str] = []
    for n, use in enumerate(first.buffers):
        given = [part.arguments[n] for part in parts]
        shared = use.elements == 1 and all(g is given[0] for g in given)
        elements = max(part.kernel.buffers[n].elements for part in parts)
        buffers.append(replace(use, elements=elements, shared=shared))
        arguments += given[:1] if shared else given
    schedule = k.Schedule(axis, None, sum(sizes) > 4096, 1)
    made = replace(made, outer=(axis,), buffers=tuple(buffers), segments=sizes, schedule=schedule)
    return Lowered(replace(made, name=f"update_{fingerprint(made)}"), arguments)
