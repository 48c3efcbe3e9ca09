"""Samplers: the order in which a loader reads the samples of a data set.

A sampler is iterated once per epoch and yields indices; a batch sampler yields lists of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from types import GenericAlias
from typing import Any, Protocol

import numpy as np

from monograph.data.dataset import as_array
from monograph.data.randomness import Seedable, numpy_generator, source_of
from monograph.errors import OperandError

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

    __class_getitem__: Any = classmethod(GenericAlias)  # Sampler[int], in annotations and bases

    def __init__(self, data_source: Any = None) -> None: ...

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


class Endless(Sampler):
    """Nothing, over and over: the order of data that has its own.

    >>> next(iter(Endless())) is None
    True
    """

    def __iter__(self) -> Iterator[None]:
        while True:
            yield None


class _Drawn(Sampler):
    """A sampler that draws when an epoch begins, from a generator of its own or the default one."""

    def __init__(self, generator: Seedable) -> None:
        # A seed starts one sequence, so that each epoch has another order.
        self.generator = source_of(generator)

    def draw(self, random: np.random.Generator) -> Iterable[Any]:
        raise NotImplementedError

    def __iter__(self) -> Iterator[Any]:
        yield from self.draw(numpy_generator(self.generator))


def _positive(num_samples: Any) -> None:
    whole = isinstance(num_samples, int | np.integer) and not isinstance(num_samples, bool)
    if not whole or num_samples <= 0:
        raise ValueError(
            "num_samples should be a positive integer value, but got "
            f"num_samples={num_samples}: is the data set empty?"
        )


def _whether(replacement: Any) -> None:
    if not isinstance(replacement, bool):
        raise TypeError(f"replacement should be a boolean value, but got {replacement=}")


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
        self.data_source = data_source
        self.replacement = replacement
        self._num_samples = num_samples
        _whether(replacement)
        _positive(self.num_samples)

    @property
    def num_samples(self) -> int:
        """How many are drawn: as many as there are, unless told otherwise."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def draw(self, random: np.random.Generator) -> Iterator[int]:
        if self.replacement:
            # A stream of its own: however many are taken of it, the next epoch is another one.
            random = np.random.default_rng(random.integers(2**63))
        return self._rounds(random, len(self.data_source), self.num_samples)

    def _rounds(self, random: np.random.Generator, total: int, left: int) -> Iterator[int]:
        """Programs ask for more than anybody takes, so they are drawn as they are needed."""
        while left > 0:
            if self.replacement:
                drawn = random.integers(total, size=min(left, AT_ONCE))
            else:
                drawn = random.permutation(total)[:left]
            yield from drawn.tolist()
            left -= len(drawn)

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(_Drawn):
    """The given indices, in random order.

    >>> import monograph as mg
    >>> sorted(mg.data.SubsetRandomSampler([7, 3, 5]))
    [3, 5, 7]
    """

    def __init__(self, indices: Sequence[Any], generator: Seedable = None) -> None:
        super().__init__(generator)
        self.indices = indices

    def draw(self, random: np.random.Generator) -> Iterator[Any]:
        return (self.indices[place] for place in random.permutation(len(self.indices)).tolist())

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
        from monograph.tensor import tensor

        super().__init__(generator)
        _positive(num_samples)
        _whether(replacement)
        shares = np.array(as_array(weights), dtype=np.float64)
        if shares.ndim != 1:
            raise ValueError(
                "weights should be a 1d sequence but given weights have shape "
                f"{tuple(shares.shape)}"
            )
        if (shares < 0).any() or not shares.sum() > 0:
            raise OperandError("weights must be numbers ≥ 0 that are not all zero")
        if not replacement and num_samples > len(shares):
            raise OperandError("cannot sample more than there are weights without replacement")
        self.weights = tensor(shares)
        self.num_samples = num_samples
        self.replacement = replacement

    def draw(self, random: np.random.Generator) -> list[int]:
        shares = as_array(self.weights)
        chances = shares / shares.sum()
        drawn = random.choice(len(shares), self.num_samples, replace=self.replacement, p=chances)
        return drawn.tolist()  # type: ignore[no-any-return]

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

    def __init__(self, sampler: Iterable[Any], batch_size: int, drop_last: bool = False) -> None:
        if isinstance(batch_size, bool) or not isinstance(batch_size, int) or batch_size <= 0:
            raise ValueError(f"batch_size must be a positive whole number, got {batch_size!r}")
        if not isinstance(drop_last, bool):
            raise ValueError(f"drop_last should be a boolean value, but got {drop_last=}")
        self.sampler = sampler
        self.batch_size = batch_size
        self.drop_last = drop_last

    def __iter__(self) -> Iterator[list[Any]]:
        batch: list[Any] = []
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
