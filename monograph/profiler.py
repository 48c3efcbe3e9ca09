"""`mg.profile()`: how long each kernel takes, how fast it is, and which line of yours it is of.

While a profile is on, the executor notes the time after each instruction, natively; when none is
on, that costs nothing. A profile prints as a table, and `save` writes a trace that Perfetto and
Chrome show: one track per Python thread with what it recorded, flushed and compiled, and one for
the executor with its kernels. Kernels are timed on the CPU backend only.
"""

from __future__ import annotations

import json
import os
import threading
import time
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import errors, launches, record, statistics
from .compiler.facts import Facts
from .lines import line_of
from .runtime.executor import EXECUTOR
from .runtime.program import Frame, Program

SHOWN = 20  # lines of a table
EXECUTOR_TRACK = 0


def profile() -> Profile:
    """Time everything that runs within.

    >>> import monograph as mg
    >>> x = mg.ones(256, 256)
    >>> with mg.profile() as run:
    ...     y = mg.softmax(x + 1, 1)
    >>> [(kernel.kind, kernel.calls) for kernel in run.kernels]
    [('generated', 1)]
    """
    return Profile()


@dataclass
class KernelTime:
    """One kernel or library call, over all its launches. `line` is the user's."""

    name: str
    kind: str
    line: str
    calls: int = 0
    seconds: float = 0.0
    bytes: int = 0
    flops: int = 0

    @property
    def gigabytes_per_second(self) -> float:
        """How fast it moved memory."""
        return self.bytes / max(self.seconds, 1e-12) / 1e9

    @property
    def gigaflops_per_second(self) -> float:
        """How fast it computed."""
        return self.flops / max(self.seconds, 1e-12) / 1e9


@dataclass(frozen=True)
class Span:
    """Something that took time on a track: a thread of Python, or the executor's."""

    name: str
    kind: str  # "python", "flush", "compile", or the kind of a kernel
    begin: float  # seconds of `time.perf_counter`
    end: float
    track: int
    facts: Facts | None = None
    lines: tuple[str, ...] = ()


@dataclass
class _Launch:
    """One launch: the program, when each of its instructions began and ended, recorded lines."""

    program: Program
    times: array[int]
    lines: Sequence[launches.Line]


@dataclass
class _Inside(threading.local):
    """What a thread is doing."""

    inside: bool = False  # a flush that is being observed
    lines: Sequence[launches.Line] = ()
    free_since: float = 0.0  # the end of its last flush


@dataclass
class Profile:
    """What ran while it was on. Use as `with mg.profile() as run:`, then print or save it."""

    seconds: float = 0.0
    spans: list[Span] = field(default_factory=list)
    kernels: list[KernelTime] = field(default_factory=list)  # the longest first
    interpreted: int = 0  # flushes that NumPy ran: small ones, when they come for the first time
    _begin: float = 0.0
    _launches: list[_Launch] = field(default_factory=list)
    _frames: dict[int, Frame] = field(default_factory=dict)
    _thread: _Inside = field(default_factory=_Inside)

    # --- on and off ---

    def __enter__(self) -> Profile:
        if record.observer is not None:
            raise errors.ProfileError("a profile is on already: profiles are not nested")
        record.flush("profile")
        record.wait()
        statistics.spans = []
        EXECUTOR.watch, record.observer = self._watch, self
        self.interpreted = -statistics.counters.interpreted
        self._begin = time.perf_counter()
        return self

    def __exit__(self, *raised: Any) -> None:
        try:
            if raised[0] is None:
                record.flush("profile")
                record.wait()
        finally:
            EXECUTOR.synchronize()
            self.seconds = time.perf_counter() - self._begin
            EXECUTOR.watch, record.observer = None, None
            self.interpreted += statistics.counters.interpreted
            for frame in self._frames.values():
                frame.profile(False)
            self._collect(statistics.spans or [])
            statistics.spans = None
            self._launches, self._frames = [], {}

    # --- what `record`, `jit` and the executor tell ---

    @property
    def inside(self) -> bool:
        """Whether this thread is in a flush that is observed already."""
        return self._thread.inside

    def flush(self, recorder: Any, reason: str) -> None:
        """Flush, and note when, and what was recorded before."""
        here, records = self._thread, recorder.records
        begin = time.perf_counter()
        self._note("python", f"record {len(records)} operators", here.free_since, begin)
        here.inside, here.lines = True, [(each.code, each.offset) for each in records]
        try:
            record.flush(reason)
        finally:
            here.inside, here.free_since = False, time.perf_counter()
            self._note("flush", f"flush: {reason}", begin, here.free_since)

    def replay(self, lines: Sequence[launches.Line]) -> None:
        """A replay by `mg.jit` begins, of what was recorded at these lines."""
        here, now = self._thread, time.perf_counter()
        self._note("python", "replay", here.free_since, now)
        here.lines, here.free_since = lines, now

    def _note(self, kind: str, name: str, begin: float, end: float) -> None:
        begin = max(begin, self._begin)
        self.spans.append(Span(name, kind, begin, end, threading.get_ident()))

    def _watch(self, frame: Frame) -> None:
        times = frame.profile(True)
        assert times is not None
        self._frames[id(frame)] = frame
        self._launches.append(_Launch(frame.program, times, self._thread.lines))

    # --- afterwards ---

    def _collect(self, compiled: Sequence[tuple[str, float, float, int]]) -> None:
        self.spans += [Span(name, "compile", *rest) for name, *rest in compiled]  # type: ignore[arg-type]
        known: dict[int, Sequence[Facts]] = {}
        for launch in self._launches:
            if launch.times[0]:  # it ran: nothing of its thread had failed before
                facts = known.setdefault(id(launch.program), launch.program.facts())
                self._collect_launch(launch, facts)
        kernels: dict[tuple[str, str], KernelTime] = {}
        for span in self.spans:
            if span.facts is not None:
                line = span.lines[0] if span.lines else "<unknown>"
                found = kernels.setdefault(
                    (span.name, line), KernelTime(span.name, span.kind, line)
                )
                found.calls += 1
                found.seconds += span.end - span.begin
                found.bytes += span.facts.bytes
                found.flops += span.facts.flops
        self.kernels = sorted(kernels.values(), key=lambda each: -each.seconds)
        self.spans.sort(key=lambda span: span.begin)

    def _collect_launch(self, launch: _Launch, facts: Sequence[Facts]) -> None:
        times = launch.times
        for n, each in enumerate(facts):
            if each.kind == "check" or not times[n + 1]:
                continue
            lines = [line_of(*launch.lines[k]) for k in each.origin if k < len(launch.lines)]
            span = Span(
                each.name, each.kind, times[n] / 1e9, times[n + 1] / 1e9, EXECUTOR_TRACK, each,
                tuple(dict.fromkeys(lines)),
            )  # fmt: skip
            self.spans.append(span)

    @property
    def kernel_seconds(self) -> float:
        """The time inside kernels and library calls."""
        return sum(kernel.seconds for kernel in self.kernels)

    def __str__(self) -> str:
        share = self.kernel_seconds / max(self.seconds, 1e-12)
        lines = [
            f"{self.seconds * 1e3:.1f} ms, {self.kernel_seconds * 1e3:.1f} ms ({share:.0%}) of it "
            f"in kernels{self._untimed()}",
            f"{'ms':>9} {'share':>6} {'calls':>6} {'µs each':>9} {'GB/s':>7} {'GFLOP/s':>8}  "
            f"{'kind':9}  kernel, line",
        ]
        total = max(self.kernel_seconds, 1e-12)
        for each in self.kernels[:SHOWN]:
            lines.append(
                f"{each.seconds * 1e3:9.3f} {each.seconds / total:6.1%} {each.calls:6} "
                f"{each.seconds / each.calls * 1e6:9.1f} {each.gigabytes_per_second:7.1f} "
                f"{each.gigaflops_per_second:8.1f}  {each.kind:9}  {each.name}, {_short(each.line)}"
            )
        rest = self.kernels[SHOWN:]
        if rest:
            seconds = sum(each.seconds for each in rest)
            lines.append(f"{seconds * 1e3:9.3f} {seconds / total:6.1%}  {len(rest)} more")
        return "\n".join(lines)

    def _untimed(self) -> str:
        """Work that is in no line of the table."""
        if not self.interpreted:
            return ""
        return f"; {self.interpreted} small flushes that were new ran in NumPy, untimed"

    def save(self, path: str | Path) -> None:
        """Write a trace that ui.perfetto.dev and chrome://tracing open."""
        tracks = {EXECUTOR_TRACK: "kernels"}
        for span in self.spans:
            tracks.setdefault(span.track, f"Python {len(tracks)}")
        process = os.getpid()
        events: list[dict[str, Any]] = [
            {
                "name": "thread_name", "ph": "M", "pid": process, "tid": place,
                "args": {"name": name},
            }
            for place, name in enumerate(tracks.values())
        ]  # fmt: skip
        places = {track: place for place, track in enumerate(tracks)}
        for span in self.spans:
            events.append(
                {
                    "name": span.name, "cat": span.kind, "ph": "X", "pid": process,
                    "tid": places[span.track], "ts": (span.begin - self._begin) * 1e6,
                    "dur": (span.end - span.begin) * 1e6, "args": _arguments(span),
                }
            )  # fmt: skip
        text = json.dumps({"traceEvents": events, "displayTimeUnit": "ms"})
        Path(path).write_text(text, encoding="utf-8")


def _arguments(span: Span) -> dict[str, Any]:
    """What a viewer shows of a span beside its name and times."""
    if span.facts is None:
        return {}
    seconds = max(span.end - span.begin, 1e-12)
    return {
        "bytes": span.facts.bytes,
        "flops": span.facts.flops,
        "GB/s": round(span.facts.bytes / seconds / 1e9, 3),
        "GFLOP/s": round(span.facts.flops / seconds / 1e9, 3),
        "lines": list(span.lines),
    }


def _short(line: str) -> str:
    """A file and line without its folder."""
    return line.rpartition(os.sep)[2]
