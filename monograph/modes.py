"""Ways of running: `with mg.eager():` computes each operator as soon as it is called."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from . import record


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
    recorder = record.recorder()
    before = recorder.eager
    record.flush("eager")
    recorder.eager = True
    try:
        yield
    finally:
        recorder.eager = before
        record.flush("eager")
