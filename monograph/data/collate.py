"""Collating: a list of samples becomes one batch of the same structure.

It happens in two steps, so that data workers never touch a tensor: `collate_arrays` stacks the
leaves with NumPy, `to_tensors` turns the arrays into tensors in the process that trains.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from monograph.data.dataset import as_array
from monograph.errors import OperandError


def default_collate(batch: Sequence[Any]) -> Any:
    """Batch samples: arrays and tensors are stacked, numbers become a tensor, texts a list.

    Tuples, lists and dictionaries keep their structure. Whole numbers become int64 and Python
    floats float64, as in PyTorch.

    >>> import monograph as mg
    >>> images, labels = mg.data.default_collate([(mg.zeros(2), 1), (mg.ones(2), 0)])
    >>> images.shape, labels.tolist()
    (Size([2, 2]), [1, 0])
    """
    return to_tensors(collate_arrays(batch), own=True)


def default_convert(data: Any) -> Any:
    """Turn the arrays of a sample into tensors, keeping its structure; nothing is batched.

    >>> default_convert({"x": np.zeros(2), "name": "a"})["name"]
    'a'
    """
    return map_leaves(map_leaves(data, np.generic, np.asarray), np.ndarray, _as_tensor)


def _as_tensor(array: np.ndarray) -> Any:
    from monograph.tensor import from_numpy

    return array if array.dtype.kind in "SUO" else from_numpy(array)


def collate_arrays(samples: Sequence[Any]) -> Any:
    """Batch samples with NumPy only.

    >>> collate_arrays([(1, "a"), (2, "b")])
    [array([1, 2]), ('a', 'b')]
    """
    first = samples[0]
    if isinstance(first, str | bytes):
        return samples  # a tuple where they are a field of tuples, as in PyTorch
    if isinstance(first, bool | int | float | complex | np.generic):
        return np.array(samples)
    if isinstance(first, np.ndarray) or hasattr(first, "detach"):
        return _stack([as_array(sample) for sample in samples])
    if isinstance(first, Mapping):
        return {key: collate_arrays([sample[key] for sample in samples]) for key in first}
    if isinstance(first, tuple | list):
        return _collate_fields(samples)
    raise TypeError(
        f"cannot batch samples of type {type(first).__name__}: return arrays, tensors, numbers, "
        "texts, or tuples, lists and dictionaries of them, or give the loader a collate_fn"
    )


def _stack(arrays: list[np.ndarray]) -> np.ndarray:
    shapes = {array.shape for array in arrays}
    if len(shapes) > 1:
        raise OperandError(
            f"cannot batch samples of different shapes {sorted(shapes)}: make them alike in the "
            "data set (crop, pad), or give the loader a collate_fn"
        )
    return np.stack(arrays)


def _collate_fields(samples: Sequence[Any]) -> Any:
    first = samples[0]
    if any(len(sample) != len(first) for sample in samples):
        lengths = sorted({len(sample) for sample in samples})
        raise OperandError(f"cannot batch samples with different numbers of fields {lengths}")
    columns = [collate_arrays(column) for column in zip(*samples)]
    return type(first)(*columns) if hasattr(first, "_fields") else columns


def to_tensors(batch: Any, own: bool) -> Any:
    """Turn every array of a batch into a tensor that shares its memory.

    `own` says that the arrays are the loader's and nobody else will change them, so that a step
    need not be waited for before the next batch is read.
    """
    from monograph.tensor import adopt, from_numpy

    return map_leaves(batch, np.ndarray, adopt if own else from_numpy)


def to_arrays(batch: Any) -> Any:
    """Turn every tensor of a batch into an array."""
    return map_leaves(batch, object, lambda leaf: as_array(leaf) if _is_tensor(leaf) else leaf)


def _is_tensor(leaf: Any) -> bool:
    return hasattr(leaf, "detach")


def map_leaves(batch: Any, kind: type, convert: Callable[[Any], Any]) -> Any:
    """Apply a function to the leaves of one kind, keeping lists, tuples and dictionaries."""
    if isinstance(batch, Mapping):
        return {key: map_leaves(value, kind, convert) for key, value in batch.items()}
    if isinstance(batch, tuple | list):
        values = [map_leaves(value, kind, convert) for value in batch]
        return type(batch)(*values) if hasattr(batch, "_fields") else type(batch)(values)
    return convert(batch) if isinstance(batch, kind) else batch
