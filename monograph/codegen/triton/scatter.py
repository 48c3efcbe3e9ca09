"""Scatters: kernels that combine into places that the data names.

On the CPU a thread owns some columns and walks over all rows. A GPU has too many threads for
that, so the kernel is cut in two: one clears the target, and a second, launched after it, has a
thread for every element and combines with atomic instructions.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..kernel import Apply, Kernel, Load, Schedule, Stage, Store
from .tiling import UnsupportedKernel

# The scalar function that joins old and new → Triton's atomic instruction.
ATOMICS = {"add": "add", "maximum": "max", "minimum": "min"}


@dataclass(frozen=True)
class AtomicStore(Store):
    """buffer[index] ⊕= value; several points may name the same element."""

    instruction: str = "add"


def is_scatter(kernel: Kernel) -> bool:
    """Whether points of a stage read and write the same elements of a buffer."""
    return any(_target(stage) is not None for stage in kernel.stages)


def split(kernel: Kernel) -> tuple[Kernel, Kernel]:
    """(what clears the target, what combines into it)."""
    if len(kernel.stages) != 2 or any(s.reductions or s.privatised for s in kernel.stages):
        raise UnsupportedKernel("a scatter must be one stage that clears and one that combines")
    clear, combine = kernel.stages
    update = _target(combine)
    if update is None:
        raise UnsupportedKernel("the second stage of a scatter must combine into its target")
    assert isinstance(update.value, Apply)
    function, added = update.value.function, update.value.operands[1]
    if function not in ATOMICS:
        raise UnsupportedKernel(f"GPUs have no atomic {function}")
    atomic = AtomicStore(update.buffer, update.index, added, update.guard, ATOMICS[function])
    return (
        _flat(kernel, f"{kernel.name}_clear", clear),
        _flat(kernel, kernel.name, replace(combine, stores=(atomic,))),
    )


def _target(stage: Stage) -> Store | None:
    """The store of a stage that combines with what it overwrites."""
    for store in stage.stores:
        value = store.value
        if isinstance(value, Apply) and len(value.operands) == 2:
            held = value.operands[0]
            if isinstance(held, Load) and held.buffer == store.buffer:
                if held.index == store.index and stage.axes:
                    return store
    return None


def _flat(kernel: Kernel, name: str, stage: Stage) -> Kernel:
    """One stage as a kernel of its own, all its points independent, columns the fastest."""
    *rows, lane = stage.axes
    outer = (*rows, *kernel.outer, lane)
    return Kernel(name, outer, (replace(stage, axes=()),), kernel.buffers, Schedule(vector=lane))
