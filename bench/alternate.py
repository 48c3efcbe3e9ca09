"""Compares contestants in alternating rounds of one run, and prints ratios with their spread.

Machines drift: they heat up, and neighbours come and go. So each round times every contestant once,
in an order that rotates, and ratios are taken within a round before the median over rounds.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Result:
    """Times of one contestant, in seconds, and its ratio to the first contestant per round."""

    name: str
    seconds: list[float]
    ratios: list[float]


def compare(
    title: str,
    contestants: Mapping[str, Callable[[], object]],
    *,
    rounds: int = 20,
    warmup: int = 3,
    repeats: int = 1,
) -> list[Result]:
    """Time the contestants and print a table; the first one is what the others are compared with.

    Each must return only when its work is done. A ratio above one is slower than the first.
    """
    names = list(contestants)
    for name in names:
        for _ in range(warmup):
            contestants[name]()
    times: dict[str, list[float]] = {name: [] for name in names}
    for turn in range(rounds):
        shift = turn % len(names)
        for name in names[shift:] + names[:shift]:
            begin = time.perf_counter()
            for _ in range(repeats):
                contestants[name]()
            times[name].append((time.perf_counter() - begin) / repeats)
    first = times[names[0]]
    results = [
        Result(name, times[name], [own / base for own, base in zip(times[name], first)])
        for name in names
    ]
    show(title, results)
    return results


def show(title: str, results: list[Result]) -> None:
    width = max(len(result.name) for result in results)
    print(title)
    for result in results:
        low, high = tenths(result.ratios)
        print(
            f"  {result.name:<{width}}  {statistics.median(result.seconds) * 1e3:10.3f} ms  "
            f"× {statistics.median(result.ratios):.2f} ({low:.2f} .. {high:.2f})"
        )


def tenths(values: list[float]) -> tuple[float, float]:
    """The 10th and 90th percentile."""
    if len(values) < 2:
        return values[0], values[0]
    cuts = statistics.quantiles(values, n=10, method="inclusive")
    return cuts[0], cuts[-1]
