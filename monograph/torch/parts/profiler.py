"""`torch.profiler` and `torch.autograd.profiler`: times of named blocks of a program.

What runs is one compiled program per step, so there are no times of single operators. A profile
shows how long the blocks named by `record_function` and the whole took, and what was compiled.
"""

from __future__ import annotations

import enum
import json
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from ... import modes
from ...stats import stats


class ProfilerActivity(enum.Enum):
    """What to watch."""

    CPU = 0
    CUDA = 1
    XPU = 2
    MTIA = 3
    HPU = 4
    PrivateUse1 = 5


class ProfilerAction(enum.Enum):
    """What a schedule says of a step."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


_WATCHED = (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)

_running: list[profile] = []


class record_function:  # noqa: N801 - PyTorch's spelling
    """Name a block of code, as a context or a decorator."""

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name = name
        self.start = 0.0

    def __enter__(self) -> record_function:
        self.start = time.perf_counter()
        return self

    def __exit__(self, *exception: Any) -> None:
        for profiler in _running:
            profiler.spans.append((self.name, self.start, time.perf_counter()))

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def named(*args: Any, **options: Any) -> Any:
            with record_function(self.name):
                return function(*args, **options)

        return named


def schedule(
    *, wait: int = 0, warmup: int = 0, active: int, repeat: int = 0, skip_first: int = 0, **_: Any
) -> Callable[[int], ProfilerAction]:
    """Which steps to watch: after `skip_first`, cycles of waiting, warming up and watching.

    >>> plan = schedule(wait=1, warmup=1, active=1)
    >>> [plan(step).name for step in range(4)]
    ['NONE', 'WARMUP', 'RECORD_AND_SAVE', 'NONE']
    """
    cycle = wait + warmup + active

    def plan(step: int) -> ProfilerAction:
        step -= skip_first
        if step < 0 or (repeat and step // cycle >= repeat):
            return ProfilerAction.NONE
        place = step % cycle
        if place < wait:
            return ProfilerAction.NONE
        if place < wait + warmup:
            return ProfilerAction.WARMUP
        last = place == cycle - 1
        return ProfilerAction.RECORD_AND_SAVE if last else ProfilerAction.RECORD

    return plan


class Averages(list[Any]):
    """The blocks of a profile by name."""

    def table(self, sort_by: str | None = None, row_limit: int = 100, **_: Any) -> str:
        """The times as text."""
        lines = [f"{'block':<40} {'calls':>8} {'total ms':>12} {'mean ms':>12}"]
        for event in self[:row_limit]:
            total = event.total / 1e3
            lines.append(
                f"{event.key:<40} {event.count:>8} {total:>12.3f} {total / event.count:>12.3f}"
            )
        return "\n".join(lines)


class Event:
    """How often a block ran, and how long."""

    def __init__(self, key: str, count: int, total: float) -> None:
        self.key, self.count, self.total = key, count, total
        self.cpu_time_total = self.self_cpu_time_total = total
        self.cpu_time = total / count
        self.device_time_total = self.self_device_time_total = 0.0


class profile:  # noqa: N801
    """Measure the blocks named within, and the whole."""

    def __init__(
        self, *args: Any, activities: Iterable[Any] | None = None, schedule: Any = None,
        on_trace_ready: Callable[..., Any] | None = None, enabled: bool = True, **_: Any,
    ) -> None:  # fmt: skip
        self.spans: list[tuple[str, float, float]] = []
        self.schedule, self.on_trace_ready = schedule, on_trace_ready
        self.step_num = 0
        self.begun = 0.0
        self.compilations = 0

    def start(self) -> None:
        """Begin to measure."""
        self.begun = time.perf_counter()
        self.compilations = stats().compilations
        _running.append(self)

    def stop(self) -> None:
        """End; what is pending is computed first."""
        modes.synchronize()
        self.spans.append(("total", self.begun, time.perf_counter()))
        self.compilations = stats().compilations - self.compilations
        if self in _running:
            _running.remove(self)
        if self.on_trace_ready is not None and self.current_action in _WATCHED:
            self.on_trace_ready(self)

    @property
    def current_action(self) -> ProfilerAction:
        """What is done with the step that runs now."""
        return ProfilerAction.RECORD if self.schedule is None else self.schedule(self.step_num)

    def step(self) -> None:
        """Say that a step of the training has ended."""
        ended = self.current_action
        self.step_num += 1
        if self.on_trace_ready is not None and ended is ProfilerAction.RECORD_AND_SAVE:
            self.on_trace_ready(self)

    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(self, *exception: Any) -> None:
        self.stop()

    def key_averages(self, *args: Any, **options: Any) -> Averages:
        """The blocks by name, the longest first."""
        found: dict[str, list[float]] = {}
        for name, start, end in self.spans:
            found.setdefault(name, []).append((end - start) * 1e6)
        events = [Event(name, len(times), sum(times)) for name, times in found.items()]
        return Averages(sorted(events, key=lambda event: -event.total))

    def export_chrome_trace(self, path: str) -> None:
        """Write the blocks for a viewer of traces."""
        events = [
            {"name": name, "ph": "X", "ts": start * 1e6, "dur": (end - start) * 1e6, "pid": 0,
             "tid": 0}
            for name, start, end in self.spans
        ]  # fmt: skip
        Path(path).write_text(json.dumps({"traceEvents": events}), encoding="utf-8")


def tensorboard_trace_handler(dir_name: str, *args: Any, **options: Any) -> Callable[..., None]:
    """A function that writes each profile into a folder."""

    def write(profiler: profile) -> None:
        folder = Path(dir_name)
        folder.mkdir(parents=True, exist_ok=True)
        profiler.export_chrome_trace(str(folder / f"step{profiler.step_num}.pt.trace.json"))

    return write


class emit_nvtx(profile):  # noqa: N801
    """Mark operators for NVIDIA's viewer; there is no GPU to mark them on."""


EventList, FunctionEvent = Averages, Event  # their names in PyTorch

__all__ = [
    "EventList", "FunctionEvent", "ProfilerAction", "ProfilerActivity", "emit_nvtx", "profile",
    "record_function", "schedule",
    "tensorboard_trace_handler",
]  # fmt: skip
