"""Collating: a list of samples becomes one batch of the same structure.

It happens in two steps, so that data workers compute nothing with tensors: `collate_arrays` stacks
the leaves with NumPy, `to_tensors` turns the arrays into tensors in the process that trains. What
is done with a kind of leaf is a table, `default_collate_fn_map`, which users may add to.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping, MutableSequence, Sequence
from copy import copy
from functools import reduce
from typing import Any

import numpy as np

from monograph.data.dataset import as_array
from monograph.errors import OperandError
from monograph.ir import dtypes
from monograph.ir.dtypes import get_default_dtype
from monograph.tensor import Tensor, adopt, from_numpy

Table = Mapping[Any, Callable[..., Any]]


def default_collate(batch: Sequence[Any]) -> Any:
    """Batch samples: arrays and tensors are stacked, numbers become a tensor, texts a list.

    Tuples, lists and dictionaries keep their structure. Whole numbers become int64 and Python
    floats float64, as in PyTorch.

    >>> import monograph as mg
    >>> images, labels = mg.data.default_collate([(mg.zeros(2), 1), (mg.ones(2), 0)])
    >>> images.shape, labels.tolist()
    (Size([2, 2]), [1, 0])
    """
    return collate(batch, collate_fn_map=default_collate_fn_map)


def collate(batch: Sequence[Any], *, collate_fn_map: Table | None = None) -> Any:
    """Batch samples by a table that says for classes of leaves how a list of them is batched.

    >>> collate([(1, "a"), (2, "b")], collate_fn_map={int: lambda batch, **_: sum(batch),
    ...                                               str: lambda batch, **_: "".join(batch)})
    [3, 'ab']
    """
    return to_tensors(_collate(batch, collate_fn_map or {}))


def collate_arrays(samples: Sequence[Any]) -> Any:
    """Batch samples with NumPy only.

    >>> collate_arrays([(1, "a"), (2, "b")])
    [array([1, 2]), ('a', 'b')]
    """
    return _collate(samples, default_collate_fn_map)


def _collate(samples: Sequence[Any], table: Table) -> Any:
    first = samples[0]
    found = table.get(type(first))
    if found is None:
        found = next((table[kind] for kind in table if isinstance(first, kind)), None)
    if found is not None:
        return found(samples, collate_fn_map=table)
    if isinstance(first, Mapping):
        columns = {key: _collate([sample[key] for sample in samples], table) for key in first}
        return like_mapping(first, columns)
    if isinstance(first, Sequence):
        return _collate_fields(samples, table)
    raise TypeError(
        f"cannot batch samples of type {type(first).__name__}: return arrays, tensors, numbers, "
        "texts, or tuples, lists and dictionaries of them, or give the loader a collate_fn"
    )


def _collate_fields(samples: Sequence[Any], table: Table) -> Any:
    first = samples[0]
    if any(len(sample) != len(first) for sample in samples):
        lengths = sorted({len(sample) for sample in samples})
        raise OperandError(f"cannot batch samples with different numbers of fields {lengths}")
    columns = [_collate(column, table) for column in zip(*samples)]
    if isinstance(first, tuple) and not hasattr(first, "_fields"):
        return columns
    return like_sequence(first, columns)


# --- leaves ---------------------------------------------------------------------------------------


def _texts(batch: Sequence[Any], **_: Any) -> Any:
    return batch  # a tuple where they are a field of tuples, as in PyTorch


def _floats(batch: Sequence[Any], **_: Any) -> Any:
    return np.array(batch, np.float64)


def _integers(batch: Sequence[Any], **_: Any) -> Any:
    found = np.array(batch)
    return found.astype(get_default_dtype().numpy) if found.dtype.kind == "f" else found


def _numbers(batch: Sequence[Any], **_: Any) -> Any:
    return np.array(batch)


def _arrays(batch: Sequence[Any], **_: Any) -> Any:
    if batch[0].dtype.kind in "SUO":
        raise TypeError(f"cannot batch arrays of dtype {batch[0].dtype}: they are no numbers")
    return _stack([as_array(sample) for sample in batch])


def _tensors(batch: Sequence[Any], **_: Any) -> Any:
    if any(getattr(sample, "requires_grad", False) for sample in batch):
        from monograph.ops.joining import stack  # derivatives go through it

        return stack(list(batch))
    return _stack([as_array(sample) for sample in batch])


def _stack(arrays: list[np.ndarray]) -> np.ndarray:
    shapes = {array.shape for array in arrays}
    if len(shapes) > 1:
        raise OperandError(
            f"cannot batch samples of different shapes {sorted(shapes)}: make them alike in the "
            "data set (crop, pad), or give the loader a collate_fn"
        )
    kinds = {array.dtype for array in arrays}
    if len(kinds) > 1:
        wanted = reduce(dtypes.promote, [dtypes.from_numpy(kind) for kind in kinds]).numpy
        return np.stack([array.astype(wanted) for array in arrays])
    return np.stack(arrays)


default_collate_fn_map: dict[Any, Callable[..., Any]] = {
    Tensor: _tensors,
    np.ndarray: _arrays,
    float: _floats,
    int: _integers,
    str: _texts,
    bytes: _texts,
    (np.bool_, np.number): _numbers,
}


# --- structure ------------------------------------------------------------------------------------


def like_mapping(given: Mapping[Any, Any], values: dict[Any, Any]) -> Any:
    """A mapping of the class of another, with other values; a dictionary where that fails."""
    if type(given) is dict:
        return values
    try:
        if isinstance(given, MutableMapping):
            made = copy(given)
            made.update(values)
            return made
        return type(given)(values)  # type: ignore[call-arg]
    except TypeError:
        return values


def like_sequence(given: Sequence[Any], values: list[Any]) -> Any:
    """A sequence of the class of another, with other elements; a list where that fails."""
    if type(given) is list:
        return values
    if hasattr(given, "_fields"):  # a named tuple
        return type(given)(*values)
    try:
        if isinstance(given, MutableSequence):
            made = copy(given)
            for n, value in enumerate(values):
                made[n] = value
            return made
        return type(given)(values)  # type: ignore[call-arg]
    except TypeError:
        return values


def _mapped(batch: Any, convert: Callable[[Any], Any]) -> Any:
    """Apply a function to the leaves of a batch."""
    if isinstance(batch, Mapping):
        return like_mapping(batch, {key: _mapped(batch[key], convert) for key in batch})
    if isinstance(batch, Sequence) and not isinstance(batch, str | bytes):
        return like_sequence(batch, [_mapped(value, convert) for value in batch])
    return convert(batch)


def to_tensors(batch: Any) -> Any:
    """Turn every array of a collated batch into a tensor that has its memory.

    The arrays are the loader's and nobody else will change them, so that a step need not be waited
    for before the next batch is read.
    """
    return _mapped(batch, lambda leaf: adopt(leaf) if isinstance(leaf, np.ndarray) else leaf)


def default_convert(data: Any) -> Any:
    """Turn the arrays of a sample into tensors, keeping its structure; nothing is batched.

    >>> default_convert({"x": np.zeros(2), "name": "a"})["name"]
    'a'
    """
    if isinstance(data, tuple) and not hasattr(data, "_fields"):
        return [default_convert(value) for value in data]  # a list, as in PyTorch
    if isinstance(data, Mapping):
        return like_mapping(data, {key: default_convert(data[key]) for key in data})
    if isinstance(data, Sequence) and not isinstance(data, str | bytes):
        return like_sequence(data, [default_convert(value) for value in data])
    if isinstance(data, np.generic) and not isinstance(data, str | bytes | np.void):
        data = np.asarray(data)
    if isinstance(data, np.ndarray) and data.dtype.kind not in "SUO":
        return from_numpy(data)
    return data
