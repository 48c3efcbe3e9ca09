"""PyTorch's iterators of batches, which libraries drive with loaders of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ...data import DataLoader
from ...data.loader import Batches


class _DatasetKind:
    """Whether a data set is read by index."""

    Map, Iterable = 0, 1


def _items(loader: Any) -> Iterator[Any]:
    """What a library's own loader, which has the attributes that PyTorch reads, iterates over."""
    for item in loader.dataset:
        yield loader.collate_fn(item)


class _SingleProcessDataLoaderIter(Batches):
    """The batches of one epoch."""

    def __new__(cls, loader: Any) -> Any:
        return super().__new__(cls) if isinstance(loader, DataLoader) else _items(loader)


class _MultiProcessingDataLoaderIter(_SingleProcessDataLoaderIter):
    """The batches of one epoch; a library's own loader runs in this process."""


LOADER = {
    "_DatasetKind": _DatasetKind, "_BaseDataLoaderIter": Batches,
    "_SingleProcessDataLoaderIter": _SingleProcessDataLoaderIter,
    "_MultiProcessingDataLoaderIter": _MultiProcessingDataLoaderIter,
    "_collate_fn_t": Callable[[list[Any]], Any], "_worker_init_fn_t": Callable[[int], None],
}  # fmt: skip
