"""Data workers: forked processes that read and collate batches ahead of the training loop.

The parent sends each worker what to read, a few batches ahead and to one after the other, and takes
the batches in the same order, so that they come as without workers. A worker is asked through one
pipe and answers through another; a thread of it empties the first, so that asking never waits. An
exception in a worker is raised again in the parent, and the worker goes on. Answers carry the
number of their epoch: workers that outlive an epoch that was left early answer its questions still.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import queue
import random
import threading
import traceback
import warnings
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from monograph.ops.random import default_generator

Fetch = Callable[[Any], Any]  # what a step of the plan names; StopIteration where data ends


@dataclass(frozen=True)
class WorkerInfo:
    """Which worker this process is, out of how many, with its seed and its data set."""

    id: int
    num_workers: int
    seed: int
    dataset: Any = field(repr=False)
    init: Callable[[int], None] | None = field(default=None, repr=False)


@dataclass(frozen=True)
class _Failure:
    """An exception on its way from a worker to the parent."""

    error: BaseException
    text: str


class _End:
    """There is no more data in this worker."""


_current: WorkerInfo | None = None


def current_worker() -> WorkerInfo | None:
    return _current


class Workers:
    """Processes that fetch what they are asked for, each with a source of data of its own."""

    def __init__(
        self, count: int, open_source: Callable[[], Fetch], info_of: Callable[[int], WorkerInfo]
    ) -> None:
        self.questions: list[Connection] = []
        self.answers: list[Connection] = []
        self.processes: list[Any] = []
        self.owner = os.getpid()
        self.epoch = 0
        context = multiprocessing.get_context("fork")
        for worker in range(count):
            asked, question = context.Pipe(duplex=False)
            answer, answered = context.Pipe(duplex=False)
            self.questions.append(question)
            self.answers.append(answer)
            held = [*self.questions, *self.answers]  # the parent's ends, which a child has too
            arguments = (open_source, info_of(worker), asked, answered, held)
            process = context.Process(target=_work, args=arguments, daemon=True)
            with warnings.catch_warnings():
                # Python warns about forking beside threads; these children never use them.
                warnings.simplefilter("ignore", DeprecationWarning)
                process.start()
            self.processes.append(process)
            asked.close()
            answered.close()  # before the next fork, so that a dead worker's pipe reads as ended

    def ask(self, worker: int, planned: Any) -> None:
        """Tell a worker what to fetch next."""
        with suppress(BrokenPipeError):  # it died: taking its answer says so
            self.questions[worker].send((self.epoch, planned))

    def take(self, worker: int, timeout: float) -> Any:
        """The worker's next answer of this epoch."""
        while True:
            try:
                if timeout and not self.answers[worker].poll(timeout):
                    raise RuntimeError(f"DataLoader timed out after {timeout} seconds")
                epoch, answer = self.answers[worker].recv()
            except (EOFError, ConnectionResetError):
                self.processes[worker].join()
                code = self.processes[worker].exitcode
                raise RuntimeError(f"data worker {worker} died with exit code {code}") from None
            if epoch == self.epoch:
                return answer

    def close(self) -> None:
        """End the processes."""
        if os.getpid() != self.owner:
            return
        for end in (*self.questions, *self.answers):
            end.close()
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            process.join()
        self.processes.clear()

    def __del__(self) -> None:
        if self.processes:
            self.close()


class Epoch:
    """One pass over a plan: an iterator of the batches that workers make of it, in order.

    Each worker has `ahead` questions open. One that has no more data is asked no more.
    """

    def __init__(self, workers: Workers, plan: Iterator[Any], ahead: int, timeout: float) -> None:
        self.workers = workers
        self.plan = plan
        self.timeout = timeout
        workers.epoch += 1
        count = len(workers.processes)
        self.turns = deque(range(count))  # workers that have data, the next to be asked first
        self.asked: deque[int] = deque()  # workers that owe an answer
        for _ in range(max(1, ahead) * count):
            self._ask()

    def _ask(self) -> None:
        if not self.turns:
            return
        try:
            planned = next(self.plan)
        except StopIteration:
            return
        worker = self.turns[0]
        self.turns.rotate(-1)
        self.workers.ask(worker, planned)
        self.asked.append(worker)

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        while self.asked:
            worker = self.asked.popleft()
            if worker not in self.turns:
                continue
            answer = self.workers.take(worker, self.timeout)
            if answer is _End:
                self.turns.remove(worker)
                self._ask()
                continue
            self._ask()
            if isinstance(answer, _Failure):
                answer.error.add_note(f"in data worker {worker}:\n{answer.text}")
                raise answer.error
            return answer
        raise StopIteration


# --- in a worker ----------------------------------------------------------------------------------


def _work(
    open_source: Callable[[], Fetch],
    info: WorkerInfo,
    asked: Connection,
    answered: Connection,
    others: list[Connection],
) -> None:
    """The life of one worker."""
    global _current
    _current = info
    for end in others:  # only the parent has these; when it dies, reading fails and we end
        end.close()
    _seed(info.seed)
    inbox: queue.SimpleQueue[Any] = queue.SimpleQueue()
    threading.Thread(target=_receive, args=(asked, inbox), daemon=True).start()
    try:
        failed = None
        try:
            if info.init is not None:
                info.init(info.id)
        except Exception as error:
            failed = _failure(error)
        _answer_all(open_source, inbox, answered, failed)
    except (BrokenPipeError, KeyboardInterrupt):
        return


def _seed(seed: int) -> None:
    """Start all random sequences of this process."""
    random.seed(seed)
    np.random.seed([seed % 2**32, seed // 2**32])
    default_generator.manual_seed(seed)


def _receive(asked: Connection, inbox: queue.SimpleQueue[Any]) -> None:
    try:
        while True:
            inbox.put(asked.recv())
    except (EOFError, OSError):
        inbox.put(None)


def _answer_all(
    open_source: Callable[[], Fetch],
    inbox: queue.SimpleQueue[Any],
    answered: Connection,
    failed: _Failure | None,
) -> None:
    epoch = 0
    fetch: Fetch | None = None
    while (question := inbox.get()) is not None:
        if question[0] != epoch:
            epoch, fetch = question[0], None
        answer: Any = failed
        if failed is None:
            try:
                fetch = fetch or open_source()
                answer = fetch(question[1])
            except StopIteration:
                answer = _End
            except KeyboardInterrupt:
                raise
            except BaseException as error:
                answer = _failure(error)
        try:
            answered.send((epoch, answer))
        except BrokenPipeError:
            raise
        except Exception as error:  # a batch that cannot make the journey
            answered.send((epoch, _failure(error)))


def _failure(error: BaseException) -> _Failure:
    text = traceback.format_exc()
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:  # some exceptions cannot make the journey
        error = RuntimeError(f"{type(error).__name__}: {error}")
    return _Failure(error, text)
