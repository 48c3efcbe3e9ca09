"""DataLoader: an iterable of batches.

Each pass over the loader is one epoch. A batch goes through three steps: the batch sampler gives
indices, the fetcher reads and collates their samples as NumPy arrays, and the loader turns the
arrays into tensors. With workers, the middle step happens in other processes; see `workers.py`.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from types import GenericAlias
from typing import Any

from monograph import record
from monograph.data.collate import collate_arrays, default_collate, default_convert, to_tensors
from monograph.data.dataset import IterableDataset, batch_reader, read_samples
from monograph.data.randomness import Seedable, numpy_generator, source_of
from monograph.data.sampler import BatchSampler, Endless, RandomSampler, SequentialSampler
from monograph.data.workers import Epoch, Fetch, WorkerInfo, Workers, current_worker

Collate = Callable[[list[Any]], Any]


# Attributes that what was made of them would not follow.
FIXED = (
    "batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers",
)  # fmt: skip

AHEAD = 2  # batches that each worker is asked for before they are needed


class DataLoader:
    """Reads a data set in batches.

    `generator` may be a seed, a NumPy generator or a tensor generator. `num_workers` processes read
    and collate `prefetch_factor` batches ahead; they are forked, for each epoch anew unless they
    are `persistent_workers`, and need no `if __name__ == "__main__"` in the script.
    `batch_size=None` hands out the samples one by one. A batch that takes longer than `timeout`
    seconds is an error. `pin_memory`, `multiprocessing_context` and `in_order` are taken and have
    no effect: memory is never pinned, workers are forked, and batches keep their order.

    >>> import numpy as np
    >>> from monograph.data import TensorDataset
    >>> loader = DataLoader(TensorDataset(np.arange(10)), batch_size=4, drop_last=True)
    >>> len(loader)
    2
    """

    __class_getitem__: Any = classmethod(GenericAlias)  # DataLoader[Sample], in annotations
    _kept: Workers | None = None  # that outlive the epoch

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool = False,
        sampler: Iterable[int] | None = None,
        batch_sampler: Iterable[list[int]] | None = None,
        num_workers: int = 0,
        collate_fn: Collate | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], None] | None = None,
        multiprocessing_context: Any = None,
        generator: Seedable = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
    ) -> None:
        _check_workers(num_workers, timeout, prefetch_factor, persistent_workers)
        _check_context(multiprocessing_context, num_workers)
        self.pin_memory, self.timeout = pin_memory, timeout
        self.multiprocessing_context = multiprocessing_context
        self.prefetch_factor = AHEAD if num_workers and prefetch_factor is None else prefetch_factor
        self.persistent_workers = persistent_workers
        self.generator = source_of(generator)
        self.dataset = dataset
        self.drop_last = drop_last
        self.num_workers = num_workers
        alone = batch_size is None and batch_sampler is None
        self.collate_fn = collate_fn or (default_convert if alone else default_collate)
        self.worker_init_fn = worker_init_fn
        self._iterable = isinstance(dataset, IterableDataset)
        self.batch_size = None if batch_sampler is not None else batch_size
        self.sampler, self.batch_sampler = self._order(batch_size, shuffle, sampler, batch_sampler)
        self._made = True

    def _order(
        self, batch_size: int | None, shuffle: bool, sampler: Any, batch_sampler: Any
    ) -> tuple[Any, Any]:
        """What decides the order of samples, and what groups them."""
        if self._iterable:
            if shuffle or sampler is not None or batch_sampler is not None:
                raise ValueError("an IterableDataset fixes its own order: no shuffle or sampler")
            sampler = Endless()
        if batch_sampler is not None:
            if batch_size != 1 or shuffle or sampler is not None or self.drop_last:
                raise ValueError(
                    "batch_sampler already decides batch_size, shuffle, sampler and drop_last"
                )
            return SequentialSampler(self.dataset), batch_sampler
        if sampler is None:
            if shuffle:
                sampler = RandomSampler(self.dataset, generator=self.generator)
            else:
                sampler = SequentialSampler(self.dataset)
        elif shuffle:
            raise ValueError("give either shuffle=True or a sampler, not both")
        if batch_size is not None:
            return sampler, BatchSampler(sampler, batch_size, self.drop_last)
        if self.drop_last:
            raise ValueError("drop_last needs a batch_size")
        return sampler, None

    def __setattr__(self, name: str, value: Any) -> None:
        if name in FIXED and "_made" in self.__dict__:
            raise ValueError(f"{name} of a DataLoader cannot be changed: make another loader")
        super().__setattr__(name, value)

    def __iter__(self) -> Batches:
        # What the last batch was for is under way while the next one is read.
        record.flush_here("next batch")
        return Batches(self)

    def __len__(self) -> int:
        if not self._iterable:
            plan = self.sampler if self.batch_sampler is None else self.batch_sampler
            return len(plan)  # type: ignore[arg-type]
        count = len(self.dataset)
        if self.batch_size is None:
            return count
        return count // self.batch_size if self.drop_last else -(-count // self.batch_size)

    def _plan(self) -> Iterator[Any]:
        """What to read: lists of indices, or single ones; of iterable data, only how many."""
        plan: Any = self.sampler if self.batch_sampler is None else self.batch_sampler
        return iter(plan)

    def _open_source(self) -> Fetch:
        """A function that reads and collates what one step of the plan names.

        An epoch keeps the data that it began with, also if the loader gets other data.
        """
        if self._iterable:
            return self._following(iter(self.dataset))
        return partial(self._fetch, self.dataset)

    def _fetch(self, dataset: Any, planned: Any) -> Any:
        if self.batch_sampler is None:
            return self._collated(dataset[planned])
        if self.collate_fn is default_collate:
            reader = batch_reader(dataset)
            if reader is not None:
                return reader(planned)
        return self._collated(read_samples(dataset, planned))

    def _following(self, samples: Iterator[Any]) -> Fetch:
        """Reads on in data that has an order of its own."""

        def fetch(planned: Any) -> Any:
            if self.batch_sampler is None:
                return self._collated(next(samples))
            group = _some(samples, len(planned))
            if not group or (self.drop_last and len(group) < len(planned)):
                raise StopIteration
            return self._collated(group)

        return fetch

    def _collated(self, samples: Any) -> Any:
        return (collate_arrays if self.collate_fn is default_collate else self.collate_fn)(samples)

    def _workers(self, seed: int) -> Workers:
        """Processes for this epoch, or those of the epoch before."""
        if self._kept is not None:
            return self._kept
        workers = Workers(
            self.num_workers,
            self._open_source,
            lambda worker: WorkerInfo(
                id=worker,
                num_workers=self.num_workers,
                seed=seed + worker,
                dataset=self.dataset,
                init=self.worker_init_fn,
            ),
        )
        if self.persistent_workers:
            self._kept = workers
        return workers


class Batches:
    """The batches of one epoch. It goes on after an error: the next batch is the one behind it."""

    def __init__(self, loader: DataLoader) -> None:
        self.loader = loader
        # Drawn with or without workers, so that both have the same order.
        seed = int(numpy_generator(loader.generator).integers(2**62))
        self._workers: Workers | None = None
        if loader.num_workers:
            self._workers = loader._workers(seed)
            ahead = loader.prefetch_factor or AHEAD
            epoch = Epoch(self._workers, loader._plan(), ahead, loader.timeout)
            self._next: Callable[[], Any] = epoch.__next__
        else:
            fetch, plan = loader._open_source(), loader._plan()
            self._next = lambda: fetch(next(plan))

    def __iter__(self) -> Batches:
        return self

    def __next__(self) -> Any:
        record.flush_here("next batch")
        try:
            batch = self._next()
        except StopIteration:
            self.close()
            raise
        return to_tensors(batch) if self.loader.collate_fn is default_collate else batch

    def __len__(self) -> int:
        return len(self.loader)

    def close(self) -> None:
        """End the workers, unless they stay for the next epoch."""
        self._next = iter(()).__next__
        if self._workers is not None and self._workers is not self.loader._kept:
            self._workers.close()


def _some(samples: Iterator[Any], count: int) -> list[Any]:
    """The next samples; `islice` would start anew where data is its own iterator."""
    found: list[Any] = []
    try:
        while len(found) < count:
            found.append(next(samples))
    except StopIteration:
        pass
    return found


def _check_context(context: Any, num_workers: int) -> None:
    if context is None:
        return
    if num_workers == 0:
        raise ValueError("multiprocessing_context can only be used with num_workers > 0")
    known = multiprocessing.get_all_start_methods()
    if isinstance(context, str) and context not in known:
        raise ValueError(
            f"multiprocessing_context option should specify a valid start method in {known}, but "
            f"got multiprocessing_context={context!r}"
        )


def _check_workers(
    num_workers: int, timeout: float, prefetch_factor: int | None, persistent_workers: bool
) -> None:
    if num_workers < 0:
        raise ValueError(f"num_workers must be 0 or more, got {num_workers}")
    if timeout < 0:
        raise ValueError("timeout option should be non-negative")
    if num_workers == 0 and prefetch_factor is not None:
        raise ValueError(
            "prefetch_factor option could only be specified in multiprocessing: let num_workers > 0"
        )
    if prefetch_factor is not None and prefetch_factor < 0:
        raise ValueError("prefetch_factor option should be non-negative")
    if persistent_workers and num_workers == 0:
        raise ValueError("persistent_workers option needs num_workers > 0")


def get_worker_info() -> WorkerInfo | None:
    """In a data worker, which one it is; elsewhere None.

    An `IterableDataset` uses it to read only its worker's share.

    >>> import monograph as mg
    >>> mg.data.get_worker_info() is None
    True
    """
    return current_worker()
