"""Times contestants in alternating rounds of one run, and compares them by ratios with spread.

Machines drift: they heat up, and neighbours come and go. So each round times every contestant once,
in an order that rotates, and ratios are taken within a round before the median over rounds.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

Contestants = Mapping[str, Callable[[], object]]


@dataclass(frozen=True)
class Spread:
    """Median, smallest and largest of some measurements."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        return cls(statistics.median(values), min(values), max(values))

    def show(self, pattern: str = "{:.2f}", scale: float = 1.0) -> str:
        """`median (low … high)`, each number written by the pattern."""
        median, low, high = (pattern.format(v * scale) for v in self._numbers())
        return f"{median} ({low} … {high})"

    def _numbers(self) -> tuple[float, float, float]:
        return self.median, self.low, self.high


@contextmanager
def no_collector() -> Iterator[None]:
    """Keep Python's garbage collector out of what is timed."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def alternate(
    contestants: Contestants, *, rounds: int = 10, warmup: int = 2, repeats: int = 1
) -> dict[str, list[float]]:
    """Seconds per call of every contestant in every round.

    Each must return only when its work is done.
    """
    names = list(contestants)
    for name in names:
        for _ in range(warmup):
            contestants[name]()
    times: dict[str, list[float]] = {name: [] for name in names}
    with no_collector():
        for turn in range(rounds):
            shift = turn % len(names)
            for name in names[shift:] + names[:shift]:
                call = contestants[name]
                begin = time.perf_counter()
                for _ in range(repeats):
                    call()
                times[name].append((time.perf_counter() - begin) / repeats)
    return times


def ratios(own: Sequence[float], base: Sequence[float]) -> Spread:
    """How many times longer `own` took than `base`, round by round."""
    return Spread.of([a / b for a, b in zip(own, base)])


def shortest(action: Callable[[], object], repeats: int) -> float:
    """The least number of seconds that an action took: what it costs when nothing disturbs it."""
    best = float("inf")
    with no_collector():
        for _ in range(repeats):
            begin = time.perf_counter()
            action()
            best = min(best, time.perf_counter() - begin)
    return best
