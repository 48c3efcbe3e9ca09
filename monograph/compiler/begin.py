"""Begin: kernels that differ only in where their inputs begin become one.

The turns of a loop that Python ran read a sequence one place further each time, and would be
compiled one by one. An argument may begin anywhere in its array, so the first place that is read is
moved out of the kernel and into the argument. Plans are made with the kernels as they
were: what may share memory depends on where elements lie in their arrays.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ..codegen import kernel as k
from ..ir import index
from ..ir.extent import Extent
from ..ir.index import Expr, Read
from .lower import Lowered
from .schedule import expressions, fingerprint


def move_begins(lowered: Iterable[Lowered]) -> None:
    """Give kernels whose inputs begin further on the code that reads from the beginning."""
    known: dict[str, tuple[k.Kernel, tuple[int, ...]]] = {}
    for low in lowered:
        kernel = low.kernel
        if type(kernel) is not k.Kernel or kernel.segments or kernel.prologue is not None:
            continue
        found = known.get(kernel.name)
        if found is None:
            begins = _begins(kernel)
            found = known[kernel.name] = (_moved(kernel, begins) if begins else kernel, begins)
        low.emitted, low.begins = found


def _begins(kernel: k.Kernel) -> tuple[int, ...]:
    """For each buffer the first element that is read, whatever guards say; nothing if all are 0."""
    least: dict[int, int] = {}
    for stage in kernel.stages:
        for value in k.postorder(k.stage_values(stage)):
            if isinstance(value, k.Load):
                begin = value.index.lo
                if isinstance(begin, Extent) or isinstance(value.index.hi, Extent):
                    begin = 0  # it varies with the sizes
                least[value.buffer] = min(least.get(value.buffer, begin), begin)
    found = [0] * len(kernel.buffers)
    for number, begin in least.items():
        use = kernel.buffers[number]
        if use.role == "in" and isinstance(use.elements, int) and 0 < begin < use.elements:
            found[number] = begin
    if any(found):
        for e in expressions(kernel):
            for source in _sources(e):  # what an index is read from stays where it is
                found[source] = 0
    return tuple(found) if any(found) else ()


def _sources(e: Expr) -> set[int]:
    return {atom.source for atom in index.atoms(e) if isinstance(atom, Read)}


def _moved(kernel: k.Kernel, begins: tuple[int, ...]) -> k.Kernel:
    """The kernel whose inputs begin so many elements further on."""
    made: dict[int, k.Value] = {}
    for value in k.postorder([v for stage in kernel.stages for v in k.stage_values(stage)]):
        if isinstance(value, k.Load) and begins[value.buffer]:
            made[id(value)] = replace(value, index=index.add(value.index, -begins[value.buffer]))
        elif isinstance(value, k.Apply):
            operands = tuple([made[id(o)] for o in k.operands_of(value)])
            made[id(value)] = replace(value, operands=operands)
        else:
            made[id(value)] = value
    stages = tuple([_with_values(stage, made) for stage in kernel.stages])
    moved = replace(kernel, stages=stages)
    uses = list(kernel.buffers)
    for number, begin in enumerate(begins):
        if begin:
            left, use = uses[number].elements - begin, uses[number]
            uses[number] = replace(use, elements=min(left, _reach(moved, number)))
    moved = replace(moved, buffers=tuple(uses))
    hint = kernel.name.rpartition("_")[0]
    return replace(moved, name=f"{hint}_{fingerprint(moved)}")


def _reach(kernel: k.Kernel, number: int) -> int:
    """How many elements of a buffer are read, if no guard says that it is fewer."""
    values = k.postorder([v for stage in kernel.stages for v in k.stage_values(stage)])
    loads = [v for v in values if isinstance(v, k.Load) and v.buffer == number]
    return 1 + max([load.index.hi for load in loads])


def _with_values(stage: k.Stage, made: dict[int, k.Value]) -> k.Stage:
    return k.Stage(
        stage.axes,
        tuple([replace(r, value=made[id(r.value)]) for r in stage.reductions]),
        tuple([replace(s, value=made[id(s.value)]) for s in stage.stores]),
        tuple([replace(p, value=made[id(p.value)]) for p in stage.privatised]),
    )
