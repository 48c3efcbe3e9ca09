"""Data sets: something with a length whose samples are read by index, and ways to combine them.

A sample is anything that `default_collate` can batch: arrays, tensors, numbers, and tuples or
dictionaries of them. A data set may read a whole batch at once: by `__getitems__(indices)`, which
returns a list of samples as in PyTorch, or by `read_batch(indices)`, which returns them collated.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate
from types import GenericAlias
from typing import Any

import numpy as np

from monograph.data.randomness import Seedable, numpy_generator
from monograph.errors import LengthError
from monograph.lines import warn
from monograph.tensor import Tensor


class Dataset:
    """Base class of data sets that are read by index; define `__getitem__` and `__len__`.

    >>> import monograph as mg
    >>> class Squares(mg.data.Dataset):
    ...     def __getitem__(self, index):
    ...         return index * index
    ...     def __len__(self):
    ...         return 4
    >>> Squares()[3], len(Squares())
    (9, 4)
    """

    __class_getitem__: Any = classmethod(GenericAlias)  # Dataset[Sample], in annotations and bases

    def __getitem__(self, index: int) -> Any:
        raise NotImplementedError(f"{type(self).__name__} must define __getitem__")

    def __add__(self, other: Dataset) -> ConcatDataset:
        return ConcatDataset([self, other])


class IterableDataset(Dataset):
    """Base class of data sets that can only be read in order; define `__iter__`.

    >>> import monograph as mg
    >>> class Digits(mg.data.IterableDataset):
    ...     def __iter__(self):
    ...         return iter([1, 2, 3])
    >>> [batch.tolist() for batch in mg.data.DataLoader(Digits(), batch_size=2)]
    [[1, 2], [3]]
    """

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError(f"{type(self).__name__} must define __iter__")

    def __add__(self, other: Dataset) -> ChainDataset:  # type: ignore[override]
        return ChainDataset([self, other])


class ChainDataset(IterableDataset):
    """Several iterable data sets, one after the other.

    >>> import monograph as mg
    >>> class Digits(mg.data.IterableDataset):
    ...     def __iter__(self):
    ...         return iter([1, 2])
    >>> list(mg.data.ChainDataset([Digits(), Digits()]))
    [1, 2, 1, 2]
    """

    def __init__(self, datasets: Iterable[Dataset]) -> None:
        self.datasets = datasets

    def __iter__(self) -> Iterator[Any]:
        for dataset in self.datasets:
            if not isinstance(dataset, IterableDataset):
                raise AssertionError("ChainDataset only supports IterableDataset")
            yield from dataset

    def __len__(self) -> int:
        total = 0
        for dataset in self.datasets:
            total += len(dataset)  # type: ignore[arg-type]
        return total


class TensorDataset(Dataset):
    """Arrays or tensors of one length; sample `i` is the tuple of their rows `i`.

    >>> pairs = TensorDataset(np.arange(6).reshape(3, 2), np.array([0, 1, 2]))
    >>> len(pairs), pairs[1][0].tolist()
    (3, [2, 3])
    """

    def __init__(self, *tensors: Any) -> None:
        if not tensors:
            raise ValueError("TensorDataset needs at least one tensor")
        lengths = [len(tensor) for tensor in tensors]
        if len(set(lengths)) != 1:
            raise LengthError(f"TensorDataset needs tensors of one length, got lengths {lengths}")
        self.tensors = tensors

    def __getitem__(self, index: int) -> tuple[Any, ...]:
        return tuple(tensor[index] for tensor in self.tensors)

    def read_batch(self, indices: Sequence[int]) -> list[Any]:
        """Rows are gathered in NumPy: one read per tensor, and nothing is recorded."""
        rows = np.asarray(indices)
        return [
            tensor[rows] if getattr(tensor, "requires_grad", False) else as_array(tensor)[rows]
            for tensor in self.tensors
        ]

    def __len__(self) -> int:
        return len(self.tensors[0])


class Subset(Dataset):
    """Some samples of another data set, chosen by index.

    >>> import monograph as mg
    >>> part = mg.data.Subset(mg.data.TensorDataset(mg.arange(5)), [4, 0])
    >>> [int(x) for (x,) in part]
    [4, 0]
    """

    def __init__(self, dataset: Dataset, indices: Sequence[int]) -> None:
        self.dataset = dataset
        self.indices = indices

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, list):
            return self.dataset[[self.indices[i] for i in index]]  # type: ignore[index]
        return self.dataset[self.indices[index]]

    @property
    def read_batch(self) -> Callable[[Sequence[int]], Any]:
        """What the whole can do at once, the part can do too."""
        reader = batch_reader(self.dataset)
        if reader is None:
            raise AttributeError(f"{type(self.dataset).__name__} reads no batches")
        return lambda chosen: reader([self.indices[i] for i in chosen])

    def __getitems__(self, chosen: Sequence[int]) -> list[Any]:
        return read_samples(self.dataset, [self.indices[i] for i in chosen])

    def __len__(self) -> int:
        return len(self.indices)


class ConcatDataset(Dataset):
    """Several data sets, one after the other.

    >>> both = ConcatDataset([TensorDataset(np.zeros(2)), TensorDataset(np.ones(3))])
    >>> len(both), float(both[2][0]), float(both[-1][0])
    (5, 1.0, 1.0)
    """

    def __init__(self, datasets: Iterable[Dataset]) -> None:
        self.datasets = list(datasets)
        if not self.datasets:
            raise AssertionError("ConcatDataset needs at least one data set")
        if any(isinstance(dataset, IterableDataset) for dataset in self.datasets):
            raise AssertionError("ConcatDataset does not support IterableDataset")
        self._ends = list(accumulate(len(dataset) for dataset in self.datasets))  # type: ignore[arg-type]

    @property
    def cumulative_sizes(self) -> list[int]:
        """Where each data set ends."""
        return self._ends

    def __getitem__(self, index: int) -> Any:
        if not -len(self) <= index < len(self):
            kind = ValueError if index < 0 else IndexError  # as in PyTorch
            raise kind(f"sample {index} of {len(self)}")
        index %= len(self)
        part = bisect_right(self._ends, index)
        start = self._ends[part - 1] if part else 0
        return self.datasets[part][index - start]

    def __len__(self) -> int:
        return self._ends[-1]


class StackDataset(Dataset):
    """Data sets of one length side by side: a sample is the tuple, or dictionary, of theirs.

    >>> both = StackDataset(image=[10, 20], label=[0, 1])
    >>> both[1]
    {'image': 20, 'label': 1}
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if args and kwargs:
            raise ValueError(
                "Supported either ``tuple``- (via ``args``) or ``dict``- (via ``kwargs``) like "
                "input/output, but both types are given."
            )
        if not args and not kwargs:
            raise ValueError("At least one dataset should be passed")
        self.datasets: Any = args or kwargs
        lengths = {len(dataset) for dataset in self._parts()}
        if len(lengths) != 1:
            raise ValueError("Size mismatch between datasets")
        self._length = lengths.pop()

    def _parts(self) -> list[Any]:
        held = self.datasets
        return list(held.values() if isinstance(held, dict) else held)

    def _joined(self, parts: Sequence[Any]) -> Any:
        if isinstance(self.datasets, dict):
            return dict(zip(self.datasets, parts, strict=True))
        return tuple(parts)

    def __getitem__(self, index: int) -> Any:
        return self._joined([dataset[index] for dataset in self._parts()])

    def __getitems__(self, indices: Sequence[int]) -> list[Any]:
        columns = [read_samples(dataset, indices) for dataset in self._parts()]
        return [self._joined(row) for row in zip(*columns, strict=True)]

    def __len__(self) -> int:
        return self._length


def random_split(
    dataset: Dataset, lengths: Sequence[float], generator: Seedable = None
) -> list[Subset]:
    """Split a data set at random into parts of the given lengths, or fractions that sum to one.

    >>> parts = random_split(TensorDataset(np.arange(10)), [0.75, 0.25], generator=0)
    >>> [len(part) for part in parts]
    [8, 2]
    """
    total = len(dataset)  # type: ignore[arg-type]
    counts = _whole_lengths(lengths, total)
    if sum(counts) != total:
        raise ValueError(f"lengths {list(lengths)} do not sum to the data set's {total} samples")
    for n, count in enumerate(counts):
        if count == 0:
            warn(f"Length of split at index {n} is 0. This might result in an empty dataset.")
    order = numpy_generator(generator).permutation(total).tolist()
    ends = list(accumulate(counts))
    return [Subset(dataset, order[end - count : end]) for count, end in zip(counts, ends)]


def _whole_lengths(lengths: Sequence[float], total: int) -> list[int]:
    if not (math.isclose(sum(lengths), 1) and all(0 <= part <= 1 for part in lengths)):
        return [int(length) for length in lengths]
    counts = [math.floor(total * part) for part in lengths]
    for i in range(total - sum(counts)):  # the remainder goes round, one sample a part
        counts[i % len(counts)] += 1
    return counts


def batch_reader(dataset: Any) -> Callable[[Sequence[int]], Any] | None:
    """How the data set reads a collated batch, unless a subclass says what a sample is."""
    for kind in type(dataset).__mro__:
        if "read_batch" in vars(kind):
            reader: Callable[[Sequence[int]], Any] | None = getattr(dataset, "read_batch", None)
            return reader
        if "__getitem__" in vars(kind) or "__getitems__" in vars(kind):
            return None
    return None


def read_samples(dataset: Any, indices: Sequence[int]) -> list[Any]:
    """The samples with these indices, in one read where the data set can do that."""
    if hasattr(dataset, "__getitems__"):
        return dataset.__getitems__(indices)
    return [dataset[index] for index in indices]


def as_array(value: Any) -> np.ndarray:
    """The elements of a tensor or an array, to be read at once: nobody else is to hold them."""
    if isinstance(value, Tensor) and not value.is_meta:
        return (value.clone() if value._reads() else value)._array()
    if hasattr(value, "detach"):
        value = value.detach().cpu().numpy()
    return np.asarray(value)
