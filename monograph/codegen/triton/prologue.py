"""Numbers that are the same for every program of a kernel, computed once by a launch before it.

An Adam step raises its decay rates to the power of the step count, in float64. On the CPU that
happens once per call; in a GPU kernel every thread of every program would do it again and wait
longer for that than for memory.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ...ir.dtypes import float64
from ...ir.index import ZERO, Var
from ...ir.index import constant as known
from ...ir.scalar import TABLE
from ..kernel import (
    Apply,
    BufferUse,
    Constant,
    Kernel,
    Load,
    Stage,
    Store,
    Value,
    operands_of,
    postorder,
)
from .tiling import Tuning


@dataclass(frozen=True)
class Split:
    """A kernel for the common numbers, whose buffer n is buffers[n] of `rest`, and the rest."""

    first: Kernel
    buffers: tuple[int, ...]
    rest: Kernel


def split(kernel: Kernel, tuning: Tuning) -> Split | None:
    """The kernel in two parts, if it is pointwise, large, and has such numbers that are dear."""
    if len(kernel.stages) != 1 or kernel.stages[0].axes or kernel.stages[0].privatised:
        return None
    elements = sum(kernel.segments)
    if not kernel.segments:
        elements = 1
        for axis in kernel.outer:
            elements *= axis.extent
    if elements < tuning.hoist:
        return None
    stage = kernel.stages[0]
    order = postorder([store.value for store in stage.stores])
    common = _dear_and_common(kernel, order)
    if not common:
        return None
    count = len(kernel.buffers)
    uses = (*kernel.buffers, *(BufferUse(v.dtype, 1, "partials", shared=True) for v in common))
    replaced = {id(v): Load(v.dtype, count + n, ZERO) for n, v in enumerate(common)}
    made = _rebuilt(order, replaced)
    stores = tuple(replace(store, value=made[id(store.value)]) for store in stage.stores)
    rest = replace(kernel, stages=(replace(stage, stores=stores),), buffers=uses)
    return _first(kernel, common, rest)


def _first(kernel: Kernel, common: list[Value], rest: Kernel) -> Split:
    """The kernel that stores the common numbers, over only the buffers that it uses."""
    order = postorder(common)
    targets = range(len(kernel.buffers), len(rest.buffers))
    numbers = sorted({v.buffer for v in order if isinstance(v, Load)} | set(targets))
    place = {number: n for n, number in enumerate(numbers)}
    loads = {id(v): replace(v, buffer=place[v.buffer]) for v in order if isinstance(v, Load)}
    made = _rebuilt(order, loads)
    stores = tuple(Store(place[t], ZERO, made[id(v)]) for t, v in zip(targets, common))
    uses = tuple(replace(rest.buffers[n], shared=False) for n in numbers)
    once = Var("once", 1)
    first = Kernel(f"{kernel.name}_numbers", (once,), (Stage((), stores=stores),), uses)
    return Split(first, tuple(numbers), rest)


def _dear_and_common(kernel: Kernel, order: list[Value]) -> list[Value]:
    """The largest values that depend on nothing but numbers and need a dear float64 function."""
    common: set[int] = set()
    dear: set[int] = set()
    inner: set[int] = set()
    for v in order:
        if isinstance(v, Constant) or (isinstance(v, Load) and _is_number(kernel, v)):
            common.add(id(v))
        elif isinstance(v, Apply) and all(id(o) in common for o in v.operands):
            common.add(id(v))
            inner.update(id(o) for o in v.operands)
            costs = TABLE[v.function].dear and v.dtype is float64
            if costs or any(id(o) in dear for o in v.operands):
                dear.add(id(v))
    used_outside = {id(o) for v in order if id(v) not in common for o in operands_of(v)}
    return [v for v in order if id(v) in dear and (id(v) not in inner or id(v) in used_outside)]


def _is_number(kernel: Kernel, load: Load) -> bool:
    use = kernel.buffers[load.buffer]
    everywhere = use.shared or not kernel.segments
    return use.role == "in" and everywhere and not load.guard and known(load.index) is not None


def _rebuilt(order: list[Value], replaced: dict[int, Load]) -> dict[int, Value]:
    """Every value, by the id of the old one, with some exchanged for loads."""
    made: dict[int, Value] = {}
    for v in order:
        if id(v) in replaced:
            made[id(v)] = replaced[id(v)]
        elif isinstance(v, Apply):
            made[id(v)] = replace(v, operands=tuple(made[id(o)] for o in v.operands))
        else:
            made[id(v)] = v
    return made
