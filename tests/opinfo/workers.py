"""Entries spread over processes. A process that dies or hangs costs one entry, not the run."""

from __future__ import annotations

import multiprocessing
import multiprocessing.connection
from collections.abc import Iterator
from typing import Any

from .report import Options, Report

SECONDS = 900.0  # for one entry
RENEWED = 40  # entries after which a process is replaced, so that compiled programs do not pile up


def _serve(pipe: Any, options: Options) -> None:
    from . import report

    while (name := pipe.recv()) is not None:
        pipe.send(report.of(name, options))


class _Worker:
    def __init__(self, options: Options) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, other = context.Pipe()
        self.process = context.Process(target=_serve, args=(other, options), daemon=True)
        self.process.start()
        other.close()
        self.entry: str | None = None
        self.served = 0

    def give(self, entry: str) -> None:
        self.entry = entry
        self.served += 1
        self.pipe.send(entry)

    def stop(self) -> None:
        self.process.kill()
        self.process.join()
        self.pipe.close()


def spread(names: list[str], options: Options, jobs: int) -> Iterator[Report]:
    """Reports in the order in which they are ready."""
    waiting = list(reversed(names))
    busy: list[_Worker] = []
    for _ in range(min(jobs, len(names))):
        worker = _Worker(options)
        worker.give(waiting.pop())
        busy.append(worker)
    while busy:
        ready = multiprocessing.connection.wait([w.pipe for w in busy], SECONDS)
        answered = [w for w in busy if w.pipe in ready] or busy[:1]
        for worker in answered:
            busy.remove(worker)
            fine = bool(ready)
            try:
                report = worker.pipe.recv() if fine else _lost(worker, "takes too long")
            except EOFError:
                fine, report = False, _lost(worker, "the process died")
            yield report
            if not fine or worker.served >= RENEWED or not waiting:
                worker.stop()
                if not waiting:
                    continue
                worker = _Worker(options)
            worker.give(waiting.pop())
            busy.append(worker)


def _lost(worker: _Worker, why: str) -> Report:
    assert worker.entry is not None
    from .claims import Claim

    claim = Claim(worker.entry, reason=why)
    return Report(worker.entry, failures=[why], claim=claim)
