"""Prefetching: while a row is worked on, the rows after it are on their way into the cache.

A kernel of several stages reads its row in the first and computes in the others, when memory would
idle. The processor's own prefetcher does not help: it stops at the end of a page, which is often
the end of a row. So each whole vector that is loaded asks for its counterpart a few rows ahead.
All stages ask, since a request is dropped when too many are on their way. It goes to the second
cache: in the first it would drive out the rows in use.
"""

from __future__ import annotations

from ...ir import index
from ...ir.extent import hint
from ..kernel import Kernel, Load, postorder, stage_values
from .machine import Machine
from .plan import Plan

AHEAD = 8192  # bytes that lie at least between a row and those that are asked for
LONGEST = 65536  # bytes of a row above which it is a stream of its own


def distances(kernel: Kernel, plan: Plan, machine: Machine) -> dict[int, int]:
    """For loads (by id) that ask ahead: by how many elements."""
    if plan.lanes_are_points or not plan.rows or plan.jam is not None:
        return {}
    looping = [stage for stage in kernel.stages if stage.axes and stage.axes[-1] == plan.axis]
    if len(looping) < 2:
        return {}
    row = plan.rows[-1][0]
    found: dict[int, int] = {}
    for value in postorder(value for stage in looping for value in stage_values(stage)):
        if isinstance(value, Load) and _is_far(kernel, value, machine):
            step = index.coefficient(value.index, row)
            own = index.coefficient(value.index, looping[0].axes[-1])
            if step is None or own != 1:
                continue
            nbytes = abs(hint(step)) * value.dtype.itemsize
            if 0 < nbytes <= LONGEST:
                found[id(value)] = step * max(1, -(-AHEAD // nbytes))
    return found


def _is_far(kernel: Kernel, value: Load, machine: Machine) -> bool:
    """Whether an array is only read, and too large to be in a cache near by."""
    use = kernel.buffers[value.buffer]
    return use.role == "in" and hint(use.elements) * use.dtype.itemsize > machine.near_bytes
