"""Data workers: forked processes that read and collate batches ahead of the training loop.

Worker `w` of `n` makes batches w, w+n, w+2n, … and writes them into its own pipe; the parent reads
the pipes in turn, so the order is that of a loader without workers. A full pipe makes its worker
wait, which bounds how far it runs ahead. Workers send NumPy data only: a forked child must not
enter the parent's thread pools. An exception in a worker is raised again in the parent.
"""

from __future__ import annotations

import multiprocessing
import pickle
import random
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from monograph.data.collate import to_arrays


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


_END = "end of this worker's batches"
_current: WorkerInfo | None = None


def current_worker() -> WorkerInfo | None:
    return _current


def batches_from_workers(
    count: int,
    batches_of: Callable[[int], Iterable[Any]],
    info_of: Callable[[int], WorkerInfo],
    timeout: float = 0,
) -> Iterator[Any]:
    """Yield batches made by `count` forked workers, in turn, until each has ended.

    With a `timeout`, a batch that takes more seconds is an error.
    """
    context = multiprocessing.get_context("fork")
    readers: list[Connection] = []
    processes = []
    try:
        for worker in range(count):
            reader, writer = context.Pipe(duplex=False)
            readers.append(reader)
            arguments = (batches_of, info_of(worker), writer, list(readers))
            process = context.Process(target=_work, args=arguments, daemon=True)
            with warnings.catch_warnings():
                # Python warns about forking beside threads; these children never use them.
                warnings.simplefilter("ignore", DeprecationWarning)
                process.start()
            processes.append(process)
            writer.close()  # before the next fork, so that a dead worker's pipe reads as ended
        yield from _in_turn(readers, processes, timeout)
    finally:
        for reader in readers:
            reader.close()
        for process in processes:
            process.terminate()
        for process in processes:
            process.join()


def _in_turn(readers: list[Connection], processes: list[Any], timeout: float) -> Iterator[Any]:
    running = list(range(len(readers)))
    turn = 0
    while running:
        turn %= len(running)
        worker = running[turn]
        try:
            if timeout and not readers[worker].poll(timeout):
                raise RuntimeError(f"DataLoader timed out after {timeout} seconds")
            message = readers[worker].recv()
        except EOFError:
            processes[worker].join()
            code = processes[worker].exitcode
            raise RuntimeError(f"data worker {worker} died with exit code {code}") from None
        if isinstance(message, _Failure):
            message.error.add_note(f"in data worker {worker}:\n{message.text}")
            raise message.error
        if isinstance(message, str) and message == _END:
            running.pop(turn)
            continue
        yield message[0]
        turn += 1


def _work(
    batches_of: Callable[[int], Iterable[Any]],
    info: WorkerInfo,
    writer: Connection,
    readers: list[Connection],
) -> None:
    """The life of one worker."""
    global _current
    _current = info
    for reader in readers:  # only the parent reads; when it dies, writing fails and we end
        reader.close()
    random.seed(info.seed)
    np.random.seed(info.seed)
    try:
        if info.init is not None:
            info.init(info.id)
        for batch in batches_of(info.id):
            writer.send((to_arrays(batch),))
        writer.send(_END)
    except BrokenPipeError:
        return
    except BaseException as error:
        _send_failure(writer, error)


def _send_failure(writer: Connection, error: BaseException) -> None:
    text = traceback.format_exc()
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:  # some exceptions cannot make the journey
        error = RuntimeError(f"{type(error).__name__}: {error}")
    writer.send(_Failure(error, text))
