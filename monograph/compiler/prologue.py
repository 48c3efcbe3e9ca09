"""Prologues: single numbers are computed by the kernel that needs them, before it starts.

The number of steps of an optimiser is a result of its own, so it is an anchor, and a unit that
computes one number. Such a unit joins the first kernel that reads it: there it runs once, ahead of
the outer points, so that the update of a whole model is one launch. In memory nothing changes:
the number is stored first and read from there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..codegen import kernel as k
from ..ir import index
from ..ir.node import Node
from .fuse import Fusion, Unit
from .lower import Lowered
from .schedule import fingerprint


def attach(
    fusion: Fusion, units: Sequence[Unit], lowered: dict[int, Lowered], checks: Sequence[Node]
) -> list[Unit]:
    """Move what computes single numbers into its readers; the units that remain.

    What a check of the data reads stays apart: writes over leaves wait for it.
    """
    checked = {node.id for node in checks}
    left = list(units)
    for unit in reversed(fusion.sorted_units()):  # of a chain the last number first
        if unit.number not in lowered or _is_checked(unit, checked):
            continue
        if not _is_single(lowered[unit.number].kernel):
            continue
        reader = _reader(fusion, unit, left, lowered, checked)
        if reader is not None:
            lowered[reader.number] = _joined(lowered.pop(unit.number), lowered[reader.number])
            fusion.absorb(reader, [unit])
            left.remove(unit)
    return left


def _is_checked(unit: Unit, checked: set[int]) -> bool:
    return any(anchor.id in checked for anchor in unit.anchors)


def _is_single(kernel: k.Kernel) -> bool:
    """Whether a kernel has one point, and reads and writes single numbers there."""
    if type(kernel) is not k.Kernel or kernel.outer or kernel.segments or kernel.prologue:
        return False
    if len(kernel.stages) != 1 or any(use.elements != 1 for use in kernel.buffers):
        return False
    (stage,) = kernel.stages
    if stage.axes or stage.reductions or stage.privatised:
        return False
    values = k.postorder(k.stage_values(stage))
    loads = [v for v in values if not isinstance(v, (k.Apply, k.Constant))]
    places = [v.index for v in loads if isinstance(v, k.Load) and not v.guard]
    places += [store.index for store in stage.stores if not store.guard]
    return len(places) == len(loads) + len(stage.stores) and set(places) == {index.ZERO}


def _reader(
    fusion: Fusion, unit: Unit, units: Sequence[Unit], lowered: dict[int, Lowered],
    checked: set[int],
) -> Unit | None:  # fmt: skip
    """A kernel that reads what a unit computes, and that no other reader comes before."""
    made = {anchor.id for anchor in unit.anchors}
    after = [u for u in units if fusion.above[u.number] >> unit.number & 1]
    for reader in after:
        low = lowered.get(reader.number)
        if low is None or type(low.kernel) is not k.Kernel or reader.scatter is not None:
            continue
        reads = any(isinstance(a, Node) and a.id in made for a in low.arguments)
        late = any(fusion.above[reader.number] >> u.number & 1 for u in after)
        if reads and not late and not _is_checked(reader, checked):
            return reader
    return None


def _joined(number: Lowered, reader: Lowered) -> Lowered:
    """The reader with the other kernel as the first part of its prologue."""
    before = reader.kernel.prologue or k.Prologue((), ())
    stage = _shifted(number.kernel.stages[0], len(before.buffers))
    prologue = k.Prologue((stage, *before.stages), (*before.buffers, *number.kernel.buffers))
    kernel = replace(reader.kernel, prologue=prologue)
    kind = kernel.name.partition("_")[0]
    kernel = replace(kernel, name=f"{kind}_{fingerprint(kernel)}")
    return Lowered(kernel, [*reader.arguments, *number.arguments])


def _shifted(stage: k.Stage, shift: int) -> k.Stage:
    """A stage of single numbers with its buffers numbered from `shift` on."""
    values = k.postorder(k.stage_values(stage))
    moved: dict[int, k.Value] = {
        id(v): replace(v, buffer=v.buffer + shift) for v in values if isinstance(v, k.Load)
    }
    made = k.map_stage(stage, moved)
    stores = [replace(store, buffer=store.buffer + shift) for store in made.stores]
    return replace(made, stores=tuple(stores))
