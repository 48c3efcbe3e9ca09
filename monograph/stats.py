"""`mg.stats()`: what was recorded, flushed, compiled and launched."""

from __future__ import annotations

from dataclasses import fields, replace

from . import packs
from .recorder import current
from .statistics import Counters, counters, misses, recent


class Stats:
    """Callable handle on the counters.

    >>> import monograph as mg
    >>> mg.stats.reset()
    >>> mg.stats().flushes
    0
    """

    _skip = 0  # operators that were pending at the last reset

    def __call__(self) -> Counters:
        pending = len(current.recorder.records)
        recorded = counters.recorded + pending - self._skip
        held = packs.held_bytes()
        return replace(counters, pending=pending, recorded=recorded, packed_bytes=held)

    def reset(self) -> None:
        """Set every counter to zero."""
        for field in fields(Counters):
            setattr(counters, field.name, 0)
        self._skip = len(current.recorder.records)
        recent.clear()
        misses.clear()


stats = Stats()
