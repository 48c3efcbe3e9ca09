"""Counters of what happened, for every part of the package to count with."""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from dataclasses import dataclass


@dataclass
class Counters:
    """What was recorded, flushed, compiled and launched since the start or the last reset."""

    recorded: int = 0
    flushes: int = 0
    interpreted: int = 0
    compilations: int = 0
    instantiations: int = 0  # sizes that a program for many sizes was set up for
    programs_from_disk: int = 0
    launches: int = 0
    pending: int = 0
    peak_pending_nodes: int = 0
    packings: int = 0  # weights that were brought into a library's order, to be kept
    arena_bytes: int = 0
    packed_bytes: int = 0  # of weights that are kept in a library's order too, now
    program_seconds: float = 0.0  # spent on finding programs on disk and on compiling them


counters = Counters()
compiled: Counter[str] = Counter()  # how many programs were compiled, by the flush's reason
recent: deque[tuple[str, int]] = deque(maxlen=32)  # (reason, records) of the last flushes


misses: dict[int, str] = {}  # number of a flush → why its program had to be made


def note_miss(why: str) -> None:
    """Remember why the program of the present flush had to be made."""
    misses[counters.flushes] = why
    while len(misses) > recent.maxlen:  # type: ignore[operator]
        del misses[next(iter(misses))]


# (name, begin, end, thread) of what Python did, in seconds of `time.perf_counter`; while profiling
spans: list[tuple[str, float, float, int]] | None = None


def note_span(name: str, begin: float) -> None:
    """What began then ends now; remembered only while somebody profiles."""
    if spans is not None:
        spans.append((name, begin, time.perf_counter(), threading.get_ident()))


def note_trace(what: str) -> None:
    """Remember what became of a trace, beside why the program of its flush had to be made."""
    known = misses.get(counters.flushes)
    note_miss(what if known is None else f"{what}; {known}")


def note_flush(reason: str, records: int) -> None:
    """Count a flush and remember why it happened."""
    counters.flushes += 1
    counters.recorded += records
    if records > counters.peak_pending_nodes:
        counters.peak_pending_nodes = records
    recent.append((reason, records))


def note_compilation() -> None:
    """Count a program that is compiled for the flush under way."""
    counters.compilations += 1
    compiled[recent[-1][0] if recent else "explain"] += 1
