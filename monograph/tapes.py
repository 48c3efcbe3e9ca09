"""Tapes that outlive a flush: what a derivative may still read must not be written over.

A result that requires gradients holds its tape, and a backward pass may come after the flush. What
its derivatives read is computed again where it was not kept, from contents of before. As long as
no pass has gone over the tape, a write spares these contents: it takes memory of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any
from weakref import ref

from .storage import Value

Writes = list[tuple[int, int]]


def still_open(held: Sequence[ref[Value]]) -> list[ref[Value]]:
    """Those of the results that live and whose tape no pass has gone over."""
    found = []
    for reference in held:
        value = reference()
        if value is not None and value.tape is not None and not value.tape.walk:
            found.append(reference)
    return found


def spare(
    leaves: Sequence[Value], writes: Writes, roots: Sequence[Value], wanted: set[int],
    reads: Callable[[Any], Iterable[int]],
) -> Writes:  # fmt: skip
    """The writes over leaves that no derivative of the roots reads.

    `wanted` are ids of results that will be known; `reads` says which inputs the derivative of a
    record reads.
    """
    needed = _needed(roots, wanted, reads)
    return [(position, leaf) for position, leaf in writes if id(leaves[leaf]) not in needed]


def _needed(
    roots: Sequence[Value], wanted: set[int], reads: Callable[[Any], Iterable[int]]
) -> set[int]:
    """Ids of the values whose contents the derivatives of the roots go back to."""
    found: set[int] = set()  # contents that are read, or needed to compute what is read
    walked: set[int] = set()  # records that derivatives go through
    contents: list[Value] = []
    stack = list(roots)
    while stack or contents:
        if contents:
            value = contents.pop()
            if id(value) in found:
                continue
            found.add(id(value))
            if value.viewed is not None:
                contents.append(value.viewed)
            if not value.ready and id(value) not in wanted and value.record is not None:
                contents += [v for v in value.record.inputs if v.__class__ is Value]
            continue
        tape = stack.pop().tape
        if tape is None or tape.walk or id(tape) in walked:
            continue
        walked.add(id(tape))
        inputs = tape.inputs
        stack += [v for v in inputs if v.__class__ is Value and v.requires_grad]
        contents += [inputs[place] for place in reads(tape)]
    return found
