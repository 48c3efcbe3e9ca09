"""Ways of running: `with mg.eager():` computes each operator as soon as it is called."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from . import record
from .recorder import current


@contextmanager
def eager() -> Iterator[None]:
    """Flush after every operator of this thread, for debugging.

    >>> import monograph as mg
    >>> x = mg.tensor([1.0, 2.0])
    >>> with mg.eager():
    ...     y = x * 3
    >>> mg.stats().pending
    0
    """
    recorder = current.recorder
    before = recorder.eager
    record.flush("eager")
    recorder.eager, recorder.urgent = True, "eager"
    try:
        yield
    finally:
        recorder.eager = before
        record.flush("eager")
        recorder.urgent = "eager" if before else None


def synchronize() -> None:
    """Compute all that is pending in this thread, and wait until it has finished.

    An error that only the data shows, such as an index out of range, is raised here or by the next
    read, whichever comes first.
    """
    record.flush("synchronize")
    record.wait()


def eval(*tensors: object) -> None:  # noqa: A001
    """Start computing the tensors (and all else that is pending) without waiting.

    >>> import monograph as mg
    >>> y = mg.ones(2) + 1
    >>> mg.eval(y)
    >>> mg.stats().pending
    0
    """
    record.flush("eval")
