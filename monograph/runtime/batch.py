"""Many modules compiled at once, on all cores.

llvmlite compiles one module at a time in a process, so a `Batch` shares its modules with compile
workers: other processes that are fed through pipes. Modules are submitted as they are written;
when the last one is, this process compiles too. Nothing depends on a worker: one that does not
start, dies or refuses costs only its help.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import queue
import select
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

from . import compile_worker
from .compile_worker import receive, send
from .native import compile_to_object

MAXIMUM_WORKERS = 7
READY_POLL_SECONDS = 0.005


class WorkerLost(Exception):
    """The worker does not answer any more."""


class Worker:
    """A process that compiles."""

    def __init__(self) -> None:
        # -P: the worker's own folder is no place to import from.
        command = [sys.executable, "-P", str(Path(compile_worker.__file__))]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe)
        assert self._process.stdin is not None and self._process.stdout is not None
        self._questions, self._answers = self._process.stdin, self._process.stdout
        self._started = False

    def ready(self, timeout: float) -> bool:
        """Whether it has started; waits that many seconds for it."""
        if not self._started and select.select([self._answers], [], [], timeout)[0]:
            self._answer()
            self._started = True
        return self._started

    def compile(self, text: str) -> bytes:
        """Object code, or nothing where the worker met an error."""
        try:
            send(self._questions, text.encode())
        except (OSError, ValueError) as problem:
            raise WorkerLost from problem
        return self._answer()

    def _answer(self) -> bytes:
        try:
            answer = receive(self._answers)
        except (OSError, ValueError) as problem:
            raise WorkerLost from problem
        if answer is None:
            raise WorkerLost
        return answer

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def end(self) -> None:
        """End the process."""
        self._process.kill()
        for pipe in (self._questions, self._answers):
            with contextlib.suppress(OSError):  # what was not sent yet cannot be
                pipe.close()
        self._process.wait()


class Workers:
    """The workers of this process. One batch has them at a time; the others do without."""

    def __init__(self) -> None:
        self._started: list[Worker] = []
        self._lock = threading.Lock()

    def _start(self, count: int) -> None:
        """See to it that so many are running."""
        for worker in [w for w in self._started if not w.alive]:
            self.drop(worker)
        with contextlib.suppress(OSError, TypeError):  # no processes left, or no interpreter known
            while len(self._started) < min(count, MAXIMUM_WORKERS):
                self._started.append(Worker())

    def take(self, count: int) -> list[Worker]:
        """Workers for a batch that will `give_back`; none when another batch has them."""
        if count <= 0 or not self._lock.acquire(blocking=False):
            return []
        self._start(count)
        if not self._started:
            self._lock.release()
        return self._started[:count]

    def give_back(self) -> None:
        self._lock.release()

    def drop(self, worker: Worker) -> None:
        """Forget a worker that was lost."""
        self._started.remove(worker)
        worker.end()

    def end(self) -> None:
        """End all of them."""
        for worker in list(self._started):
            self.drop(worker)

    def forget(self) -> None:
        """In a forked child: the workers are the parent's."""
        self.__init__()  # type: ignore[misc]


WORKERS = Workers()
atexit.register(WORKERS.end)
os.register_at_fork(after_in_child=WORKERS.forget)


class Batch:
    """Modules to compile, with the help of at most `helpers` workers.

    >>> with Batch() as batch:
    ...     batch.submit("define i64 @one() { ret i64 1 }")
    ...     [code[1:4] for code in batch.collect()]
    [b'ELF']
    """

    def __init__(self, helpers: int = 0) -> None:
        self._texts: list[str] = []
        self._codes: dict[int, bytes] = {}
        self._waiting: queue.SimpleQueue[int | None] = queue.SimpleQueue()
        self._closing = False
        workers = WORKERS.take(helpers)
        self._threads = [threading.Thread(target=self._feed, args=(w,)) for w in workers]
        for thread in self._threads:
            thread.daemon = True
            thread.start()

    def submit(self, text: str) -> None:
        """Add a module."""
        self._texts.append(text)
        self._waiting.put(len(self._texts) - 1)

    def collect(self) -> list[bytes]:
        """The object code of all modules, in the order in which they were submitted."""
        for number in self._rest():
            self._codes[number] = compile_to_object(self._texts[number])
        self._dismiss()
        for number, text in enumerate(self._texts):
            if not self._codes.get(number):
                self._codes[number] = compile_to_object(text)
        return [self._codes[number] for number in range(len(self._texts))]

    def _rest(self) -> Iterator[int]:
        """Take what no worker has taken yet."""
        with contextlib.suppress(queue.Empty):
            while (number := self._waiting.get_nowait()) is not None:
                yield number

    def __enter__(self) -> Batch:
        return self

    def __exit__(self, *problem: object) -> None:
        for _ in self._rest():
            pass
        self._dismiss()

    def _dismiss(self) -> None:
        """Wait for the workers and let others have them."""
        self._closing = True
        for _ in self._threads:
            self._waiting.put(None)
        for thread in self._threads:
            thread.join()
        if self._threads:
            self._threads = []
            WORKERS.give_back()

    def _feed(self, worker: Worker) -> None:
        """Give a worker one module after the other."""
        try:
            while not worker.ready(READY_POLL_SECONDS):
                if self._closing:
                    return  # a later batch will find it ready
            while (number := self._waiting.get()) is not None:
                self._codes[number] = worker.compile(self._texts[number])
        except WorkerLost:
            WORKERS.drop(worker)
