"""`mg.stats()`: what was recorded, flushed, compiled and launched."""

from __future__ import annotations

from dataclasses import fields, replace

from .record import recorder
from .statistics import Counters, counters, recent


class Stats:
    """Callable handle on the counters.

    >>> import monograph as mg
    >>> mg.stats.reset()
    >>> mg.stats().flushes
    0
    """

    def __call__(self) -> Counters:
        counters.pending = len(recorder().records)
        return replace(counters)

    def reset(self) -> None:
        """Set every counter to zero."""
        for field in fields(Counters):
            setattr(counters, field.name, 0)
        recent.clear()


stats = Stats()
