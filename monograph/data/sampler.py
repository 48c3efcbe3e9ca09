"""Samplers: the order in which a loader reads the samples of a data set.

A sampler is iterated once per epoch and yields indices; a batch sampler yields lists of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np

from monograph.data.randomness import Seedable, numpy_generator

AT_ONCE = 4096  # indices that are drawn together where there may be no end of them


class Sized(Protocol):
    def __len__(self) -> int: ...


class Sampler:
    """Base class of samplers; define `__iter__`, and `__len__` where the length is known.

    >>> import monograph as mg
    >>> class Backwards(mg.data.Sampler):
    ...     def __iter__(self):
    ...         return iter([2, 1, 0])
    >>> loader = mg.data.DataLoader(mg.data.TensorDataset(mg.arange(3)), sampler=Backwards())
    >>> [int(x) for (x,) in loader]
    [2, 1, 0]
    """

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError(f"{type(self).__name__} must define __iter__")


class SequentialSampler(Sampler):
    """Every sample, in order.

    >>> import monograph as mg
    >>> list(mg.data.SequentialSampler("abc"))
    [0, 1, 2]
    """

    def __init__(self, data_source: Sized) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class _Drawn(Sampler):
    """A sampler that draws all indices of an epoch at once, when the epoch begins."""

    def __init__(self, generator: Seedable) -> None:
        # A seed or tensor generator starts one stream, so that each epoch has another order.
        self._random = None if generator is None else numpy_generator(generator)

    def draw(self, random: np.random.Generator) -> np.ndarray:
        raise NotImplementedError

    def __iter__(self) -> Iterator[int]:
        return iter(self.draw(self._random or numpy_generator(None)).tolist())


class RandomSampler(_Drawn):
    """Samples in random order; with `replacement`, each drawn from all of them.

    >>> sorted(RandomSampler(range(4), generator=0))
    [0, 1, 2, 3]
    """

    def __init__(
        self,
        data_source: Sized,
        replacement: bool = False,
        num_samples: int | None = None,
        generator: Seedable = None,
    ) -> None:
        super().__init__(generator)
        if num_samples is not None and num_samples <= 0:
            raise ValueError(f"num_samples must be positive, got {num_samples}")
        self.data_source = data_source
        self.replacement = replacement
        self.num_samples = num_samples

    def __iter__(self) -> Iterator[int]:
        if not self.replacement:
            return super().__iter__()
        random = self._random or numpy_generator(None)
        # A stream of its own: however many are taken of it, the next epoch is another one.
        return self._drawn_one_by_one(np.random.default_rng(random.integers(2**63)))

    def _drawn_one_by_one(self, random: np.random.Generator) -> Iterator[int]:
        """Programs ask for more than anybody takes, so they are drawn as they are needed."""
        left = len(self)
        while left > 0:
            drawn = random.integers(len(self.data_source), size=min(left, AT_ONCE))
            yield from drawn.tolist()
            left -= len(drawn)

    def draw(self, random: np.random.Generator) -> np.ndarray:
        total, wanted = len(self.data_source), len(self)
        if total == 0:
            return np.zeros(0, dtype=np.int64)
        rounds = -(-wanted // total)
        return np.concatenate([random.permutation(total) for _ in range(rounds)])[:wanted]

    def __len__(self) -> int:
        return len(self.data_source) if self.num_samples is None else self.num_samples


class SubsetRandomSampler(_Drawn):
    """The given indices, in random order.

    >>> import monograph as mg
    >>> sorted(mg.data.SubsetRandomSampler([7, 3, 5]))
    [3, 5, 7]
    """

    def __init__(self, indices: Sequence[int], generator: Seedable = None) -> None:
        super().__init__(generator)
        self.indices = indices

    def draw(self, random: np.random.Generator) -> np.ndarray:
        return random.permutation(np.asarray(self.indices, dtype=np.int64))

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(_Drawn):
    """Indices drawn with the given weights, which need not sum to one.

    >>> set(WeightedRandomSampler([0, 1, 0], num_samples=5, generator=0))
    {1}
    """

    def __init__(
        self,
        weights: Sequence[float],
        num_samples: int,
        replacement: bool = True,
        generator: Seedable = None,
    ) -> None:
        super().__init__(generator)
        self.weights = np.asarray(weights, dtype=np.float64)
        if self.weights.ndim != 1 or (self.weights < 0).any() or self.weights.sum() <= 0:
            raise ValueError("weights must be one row of numbers ≥ 0 that are not all zero")
        self.num_samples = num_samples
        self.replacement = replacement

    def draw(self, random: np.random.Generator) -> np.ndarray:
        chances = self.weights / self.weights.sum()
        return random.choice(len(chances), self.num_samples, replace=self.replacement, p=chances)

    def __len__(self) -> int:
        return self.num_samples


class DistributedSampler(Sampler):
    """The share of one process: every `num_replicas`-th sample, shuffled alike in all of them.

    Shares are of one length; samples are repeated for that, or left out with `drop_last`. Call
    `set_epoch` before each epoch, so that each has another order.

    >>> [list(DistributedSampler(range(5), 2, rank, shuffle=False)) for rank in (0, 1)]
    [[0, 2, 4], [1, 3, 0]]
    """

    def __init__(
        self,
        dataset: Sized,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        if num_replicas is None or rank is None:
            raise RuntimeError("give num_replicas and rank: there is no process group to ask")
        if not 0 <= rank < num_replicas:
            raise ValueError(
                f"Invalid rank {rank}, rank should be in the interval [0, {num_replicas - 1}]"
            )
        self.dataset = dataset
        self.num_replicas, self.rank = num_replicas, rank
        self.shuffle, self.seed, self.drop_last = shuffle, seed, drop_last
        self.epoch = 0
        whole = len(dataset)
        self.num_samples = whole // num_replicas if drop_last else -(-whole // num_replicas)
        self.total_size = self.num_samples * num_replicas

    def __iter__(self) -> Iterator[int]:
        whole = len(self.dataset)
        if self.shuffle:
            order = np.random.default_rng(self.seed + self.epoch).permutation(whole)
        else:
            order = np.arange(whole)
        spread = np.resize(order, self.total_size)  # repeats, or cuts off
        return iter(spread[self.rank :: self.num_replicas].tolist())

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Choose the order of the next epoch."""
        self.epoch = epoch


class BatchSampler(Sampler):
    """Groups the indices of another sampler into lists of `batch_size`.

    >>> list(BatchSampler(range(5), batch_size=2, drop_last=False))
    [[0, 1], [2, 3], [4]]
    """

    def __init__(self, sampler: Iterable[int], batch_size: int, drop_last: bool = False) -> None:
        if isinstance(batch_size, bool) or not isinstance(batch_size, int) or batch_size <= 0:
            raise ValueError(f"batch_size must be a positive whole number, got {batch_size!r}")
        self.sampler = sampler
        self.batch_size = batch_size
        self.drop_last = drop_last

    def __iter__(self) -> Iterator[list[int]]:
        batch: list[int] = []
        for index in self.sampler:
            batch.append(index)
            if len(batch) == self.batch_size:
                yield batch
                batch = []
        if batch and not self.drop_last:
            yield batch

    def __len__(self) -> int:
        count = len(self.sampler)  # type: ignore[arg-type]
        return count // self.batch_size if self.drop_last else -(-count // self.batch_size)
