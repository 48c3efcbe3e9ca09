"""DataLoader: an iterable of batches.

Each pass over the loader is one epoch. A batch goes through three steps: the batch sampler gives
indices, the fetcher reads and collates their samples as NumPy arrays, and the loader turns the
arrays into tensors. With workers, the middle step happens in other processes; see `workers.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from typing import Any

from monograph import record
from monograph.data.collate import collate_arrays, to_tensors
from monograph.data.dataset import IterableDataset, read_samples
from monograph.data.randomness import Seedable, numpy_generator
from monograph.data.sampler import BatchSampler, RandomSampler, SequentialSampler
from monograph.data.workers import WorkerInfo, batches_from_workers, current_worker

Collate = Callable[[list[Any]], Any]


# Attributes that what was made of them would not follow.
FIXED = (
    "batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers",
)  # fmt: skip

ENDLESS = 1 << 20  # batches of an epoch, from which on nobody waits for the plan of all


class DataLoader:
    """Reads a data set in batches.

    `generator` may be a seed, a NumPy generator or a tensor generator. `num_workers` processes read
    and collate ahead; they are forked, and need no `if __name__ == "__main__"` in the script.
    `batch_size=None` hands out the samples one by one. A batch that takes longer than `timeout`
    seconds is an error. `pin_memory`, `multiprocessing_context`, `prefetch_factor`,
    `persistent_workers` and `in_order` are taken and have no effect: memory is never pinned,
    workers are forked for each epoch, run ahead as far as their pipes hold, and keep the order.

    >>> import numpy as np
    >>> from monograph.data import TensorDataset
    >>> loader = DataLoader(TensorDataset(np.arange(10)), batch_size=4, drop_last=True)
    >>> len(loader)
    2
    """

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
        self.pin_memory, self.timeout = pin_memory, timeout
        self.multiprocessing_context = multiprocessing_context
        self.prefetch_factor = prefetch_factor
        self.persistent_workers = persistent_workers
        self.generator = generator
        self.dataset = dataset
        self.drop_last = drop_last
        self.num_workers = num_workers
        self.collate_fn = collate_fn
        # Stacking and reading batches make new arrays; a collate function may hand out its own.
        self._makes_arrays = collate_fn is None and batch_size is not None
        self.worker_init_fn = worker_init_fn
        self._random = None if generator is None else numpy_generator(generator)
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
            return None, None
        if batch_sampler is not None:
            if batch_size != 1 or shuffle or sampler is not None or self.drop_last:
                raise ValueError(
                    "batch_sampler already decides batch_size, shuffle, sampler and drop_last"
                )
            return None, batch_sampler
        if sampler is None:
            if shuffle:
                sampler = RandomSampler(self.dataset, generator=self._random)
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

    def __iter__(self) -> Iterator[Any]:
        if self.num_workers == 0:
            batches = self._fetch_all(self._plan())
        else:
            batches = self._fetch_with_workers()
        # What the last batch was for is under way while the next one is read.
        record.flush_here("next batch")
        for batch in batches:
            yield to_tensors(batch, own=self._makes_arrays)
            record.flush_here("next batch")

    def __len__(self) -> int:
        if not self._iterable:
            plan = self.sampler if self.batch_sampler is None else self.batch_sampler
            return len(plan)  # type: ignore[arg-type]
        count = len(self.dataset)
        if self.batch_size is None:
            return count
        return count // self.batch_size if self.drop_last else -(-count // self.batch_size)

    def _plan(self) -> Iterator[Any]:
        """What to read: lists of indices, single indices, or (iterable data) lists of samples."""
        if not self._iterable:
            plan = self.sampler if self.batch_sampler is None else self.batch_sampler
            assert plan is not None
            return iter(plan)
        samples = iter(self.dataset)
        return samples if self.batch_size is None else self._grouped(samples, self.batch_size)

    def _grouped(self, samples: Iterator[Any], size: int) -> Iterator[list[Any]]:
        while group := list(islice(samples, size)):
            if len(group) == size or not self.drop_last:
                yield group

    def _fetch_all(self, plan: Iterable[Any]) -> Iterator[Any]:
        return map(self._fetch, plan)

    def _fetch(self, planned: Any) -> Any:
        """Read and collate what one step of the plan names."""
        if self.batch_size is None and self.batch_sampler is None:
            sample = planned if self._iterable else self.dataset[planned]
            return sample if self.collate_fn is None else self.collate_fn(sample)
        if self._iterable:
            samples = planned
        elif self.collate_fn is None and hasattr(self.dataset, "read_batch"):
            return self.dataset.read_batch(planned)
        else:
            samples = read_samples(self.dataset, planned)
        return collate_arrays(samples) if self.collate_fn is None else self.collate_fn(samples)

    def _fetch_with_workers(self) -> Iterator[Any]:
        random = self._random or numpy_generator(None)
        seed = int(random.integers(2**31))
        if self._iterable:
            return batches_from_workers(
                self.num_workers,
                lambda _: self._fetch_all(self._plan()),
                self._worker_info(seed),
                self.timeout,
            )
        try:
            count = len(self)
        except TypeError:
            raise ValueError("num_workers needs a sampler of known length") from None
        # Every worker is forked with the whole plan of the epoch and takes its share of it, so
        # nothing has to be sent to the workers. A plan without end is followed by each of them; it
        # begins here, so that the next epoch has another.
        plan: Any = self._plan()
        plan = chain([next(plan)], plan) if count > ENDLESS else list(plan)
        return batches_from_workers(
            self.num_workers,
            lambda worker: self._fetch_all(islice(plan, worker, None, self.num_workers)),
            self._worker_info(seed),
            self.timeout,
        )

    def _worker_info(self, seed: int) -> Callable[[int], WorkerInfo]:
        return lambda worker: WorkerInfo(
            id=worker,
            num_workers=self.num_workers,
            seed=seed + worker,
            dataset=self.dataset,
            init=self.worker_init_fn,
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
