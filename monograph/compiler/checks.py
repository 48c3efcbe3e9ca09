"""All checks of a recording as one number: what is wrong first, and the value that shows it.

Every element of every checked array gives 0 where it is fine, else a code: the number of the check
and the offending value, packed into an int64. The largest code over all arrays is one reduction,
so that a step with two embeddings and a loss pays for one small kernel. Only a recording with very
many checks has several such numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..ir import build, index
from ..ir.check import Check
from ..ir.dtypes import int64
from ..ir.extent import covering
from ..ir.node import Node, axis

GROUP = 64  # checks that share a number
_BITS = 56  # of a code, for the value
_LARGEST = 1 << (_BITS - 1)


@dataclass(frozen=True)
class Note:
    """What to tell the user when a check fails: part of the program. The line is not."""

    entry: int  # number of the recorded call
    error: str  # name of a class in `monograph.errors`
    message: str  # with {value} where the number goes


def reductions(checks: Sequence[Check]) -> list[Node]:
    """For each group of checks an int64: 0, or the code of what is wrong."""
    groups = [checks[n : n + GROUP] for n in range(0, len(checks), GROUP)]
    return [_reduction(group) for group in groups]


def _reduction(group: Sequence[Check]) -> Node:
    longest = covering([each.bad.size for each in group])
    here = axis(0, longest)
    worst: Node | None = None
    for number, each in enumerate(group):
        flat = build.reshape(_codes(each, number), (each.bad.size,))
        guard = index.within(here, each.bad.size)
        padded = build.reindex(flat, (longest,), (here,), guard)
        worst = padded if worst is None else build.elementwise("maximum", worst, padded)
    assert worst is not None
    return build.reduce("max", worst, [0])


def _codes(each: Check, number: int) -> Node:
    value = build.broadcast_to(each.value, each.bad.shape)
    value = build.elementwise("maximum", value, -_LARGEST)
    value = build.elementwise("minimum", value, _LARGEST - 1)
    first = ((GROUP - number) << _BITS) + _LARGEST
    return build.select(each.bad, value + build.const(first, int64), build.const(0, int64))


def failed(notes: Sequence[Note], group: int, code: int) -> tuple[Note, str]:
    """The note of the check that a code is about, and its message with the value in it."""
    note = notes[group * GROUP + GROUP - (code >> _BITS)]
    value = (code & ((1 << _BITS) - 1)) - _LARGEST
    shown = str(value)
    if value in (-_LARGEST, _LARGEST - 1):  # larger ones do not fit beside the number
        shown += " or less" if value < 0 else " or more"
    return note, note.message.replace("{value}", shown)
