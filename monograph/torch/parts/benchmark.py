"""`torch.utils.benchmark`: how long a statement takes, the work that it left pending included."""

from __future__ import annotations

import statistics
import timeit
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ... import synchronize


@dataclass
class Measurement:
    """Times of a statement, each of `number_per_run` runs, in seconds."""

    number_per_run: int
    raw_times: list[float] = field(default_factory=list)
    label: str = ""
    sub_label: str | None = None
    description: str | None = None
    num_threads: int = 1

    @property
    def times(self) -> list[float]:
        return [time / self.number_per_run for time in self.raw_times]

    @property
    def median(self) -> float:
        return statistics.median(self.times)

    @property
    def mean(self) -> float:
        return statistics.fmean(self.times)

    @property
    def iqr(self) -> float:
        if len(self.times) < 2:
            return 0.0
        first, _, third = statistics.quantiles(self.times, n=4)
        return third - first

    def __repr__(self) -> str:
        count = len(self.times) * self.number_per_run
        return f"{self.label or 'statement'}: {self.median * 1e6:.2f} us (median of {count} runs)"


class Timer:
    """Times a statement; what it records is computed before the clock stops.

    >>> Timer("x + 1", globals={"x": 1}).timeit(10).number_per_run
    10
    """

    def __init__(
        self, stmt: str = "pass", setup: str = "pass", global_setup: str = "",
        timer: Callable[[], float] = timeit.default_timer, globals: dict[str, Any] | None = None,
        label: str | None = None, sub_label: str | None = None, description: str | None = None,
        env: str | None = None, num_threads: int = 1, language: Any = "python",
    ) -> None:  # fmt: skip
        def clock() -> float:
            synchronize()
            return timer()

        names = dict(globals or {})
        self._timer = timeit.Timer(stmt, setup, clock, names)
        self._about = {
            "label": label or stmt, "sub_label": sub_label, "description": description,
            "num_threads": num_threads,
        }  # fmt: skip

    def timeit(self, number: int = 1_000_000) -> Measurement:
        """Run the statement so many times, after a few runs that are not counted."""
        self._timer.timeit(max(number // 100, 2))
        return Measurement(number, [self._timer.timeit(number)], **self._about)  # type: ignore[arg-type]

    def blocked_autorange(
        self, callback: Callable[[int, float], Any] | None = None, min_run_time: float = 0.2
    ) -> Measurement:
        """Run blocks of the statement for at least so many seconds."""
        self._timer.timeit(2)
        number = 1
        while (time := self._timer.timeit(number)) < min_run_time / 100:
            number *= 2
        times = [time]
        while sum(times) < min_run_time:
            times.append(self._timer.timeit(number))
            if callback is not None:
                callback(number, times[-1])
        return Measurement(number, times, **self._about)  # type: ignore[arg-type]

    def adaptive_autorange(
        self, threshold: float = 0.1, *, min_run_time: float = 0.01, max_run_time: float = 10.0,
        callback: Callable[[int, float], Any] | None = None,
    ) -> Measurement:  # fmt: skip
        """`blocked_autorange` for longer, until the spread is below a share of the median."""
        made = self.blocked_autorange(callback, min_run_time)
        while made.iqr > threshold * made.median and sum(made.raw_times) < max_run_time:
            made.raw_times.append(self._timer.timeit(made.number_per_run))
        return made


__all__ = ["Measurement", "Timer"]
