"""Tapes that outlive a flush: what a derivative may still read must not be written over.

A result that requires gradients holds its tape, and a backward pass may come after the flush. What
its derivatives read is computed again where it was not kept, from contents of before. As long as
no pass has gone over the tape, a write spares these contents: it takes memory of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from threading import Lock
from typing import Any
from weakref import ref

from .storage import Value

Writes = list[tuple[int, int]]
SPENT = 3  # of the latest results that hold a history which is freed, nothing is done about these
OPEN = 16  # results that may still be differentiated, and that are not looked through each time

_release: Callable[[Value], None] = lambda value: None  # noqa: E731
_reads: Callable[[Any], Iterable[int]] = lambda record: ()  # noqa: E731


def register(release: Callable[[Value], None], reads: Callable[[Any], Iterable[int]]) -> None:
    """How autograd lets go of what a pass has freed, and which inputs a derivative reads."""
    global _release, _reads
    _release, _reads = release, reads


def let_go(spent: list[ref[Value]]) -> list[ref[Value]]:
    """Cut off the history of results that backward passes have freed; those not looked at yet.

    The loss of a loop is gone when the next step is over, and the launch that made it. So only what
    still lives some steps later, a loss that is kept, is worth the work.
    """
    for reference in spent[:-SPENT]:
        value = reference()
        if value is not None:
            _release(value)
    return spent[-SPENT:]


def still_open(held: Sequence[ref[Value]]) -> list[ref[Value]]:
    """Those of the results that live and whose tape no pass has gone over."""
    found = []
    for reference in held:
        value = reference()
        if value is not None and value.tape is not None and not value.tape.walk:
            found.append(reference)
    return found


def is_held(value: Value) -> bool:
    """Whether a tensor holds a result, so that a pass may begin there.

    Launches hold values too, until they are over. What is written over must not depend on when
    that is: it would be another program.
    """
    return value.viewed is not None or (value.owner is not None and value.owner() is not None)


def spare(
    leaves: Sequence[Value], writes: Writes, roots: Sequence[Value], wanted: set[int]
) -> Writes:
    """The writes over leaves that no derivative of the roots reads.

    `wanted` are ids of results that will be known.
    """
    with _marking:
        _mark(roots, wanted)
        return [(place, leaf) for place, leaf in writes if leaves[leaf].needed != _passes]


def note_pass() -> None:
    """A backward pass was made: what it has freed may be written over."""
    global _passes
    _passes += 1


_passes = 1  # so many, and one
_marking = Lock()


def _mark(roots: Sequence[Value], wanted: set[int]) -> None:
    """Mark the values whose contents the derivatives of the roots go back to.

    Marks hold until the next backward pass, and so does a record's that was walked over: a loop
    that reads and writes in every turn looks at each record once.
    """
    contents: list[Value] = []
    stack = list(roots)
    try:
        while stack or contents:
            if contents:
                value = contents.pop()
                if value.needed == _passes:
                    continue
                value.needed = _passes
                if value.viewed is not None:
                    contents.append(value.viewed)
                if value.memory is None and id(value) not in wanted and value.record is not None:
                    contents += [v for v in value.record.inputs if v.__class__ is Value]
                continue
            tape = stack.pop().tape
            if tape is None or tape.walk or tape.marked == _passes:
                continue
            tape.marked = _passes
            inputs = tape.inputs
            stack += [v for v in inputs if v.__class__ is Value and v.requires_grad]
            contents += [inputs[place] for place in _reads(tape)]
    except BaseException:
        note_pass()  # the user pressed Ctrl-C: what is marked is not all
        raise
