"""Parameters, and how their contents are replaced.

Optimisers, gradient clipping, initialisers and `load_state_dict` all give a tensor new contents
without changing what it is: the same storage, the same leaf. The functions here do that for values
nobody else holds, so that nothing is copied.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import OperandError
from ..ir import dtypes
from ..ops.math import detach
from ..placement import META, place_of
from ..recorder import current
from ..storage import UNRECORDED, Value, absent_of, concrete, meta_of
from ..tensor import Parameter, Tensor, from_value, tensor
from ..view import View

__all__ = [
    "Buffer", "Parameter", "copy_recorded", "detached", "fill_from_array", "is_known", "known",
    "replace_contents", "take", "values_of", "zero_gradient", "zeros",
]  # fmt: skip


class Buffer(Tensor):
    """A tensor that a module keeps as state when it is assigned to it, and does not train.

    >>> import monograph as mg
    >>> module = mg.nn.Module()
    >>> module.scale = mg.nn.Buffer(mg.ones(2))
    >>> list(module.state_dict())
    ['scale']
    """

    persistent = True

    def __new__(cls, data: Any = None, *, persistent: bool = True) -> Any:
        source = data if isinstance(data, Tensor) else tensor([] if data is None else data)
        made = source.detach().as_subclass(cls)
        made.persistent = persistent
        return made


def known(array: np.ndarray) -> Tensor:
    """A tensor whose contents are known: nothing is recorded to make it.

    >>> known(np.zeros(2, np.float32)).tolist()
    [0.0, 0.0]
    """
    return from_value(concrete(array, meta_of(array.shape, dtypes.from_numpy(array.dtype))))


def zeros(*size: int, dtype: dtypes.DType | None = None, device: Any = None) -> Tensor:
    """A new parameter's or buffer's contents; layers fill them with their initialiser."""
    kind = dtype or dtypes.get_default_dtype()
    if not isinstance(kind, dtypes.DType):
        kind = dtypes.named(kind)
    if size and min(size) < 0:
        raise OperandError(f"a size must not be negative, got {list(size)}")
    if place_of(device) is META:
        return from_value(Value(absent_of(meta_of(size, kind))))
    return known(np.zeros(size, kind.numpy))


def take(target: Tensor, result: Tensor) -> Tensor:
    """Give `target` the value of a fresh `result` that nobody else holds; a leaf stays a leaf."""
    return target._write(result, fresh=True)


def values_of(tensors: Sequence[Any]) -> list[Value]:
    """The current value of each."""
    return [t._storage.value if t._view is None else t._value() for t in tensors]


def replace_contents(targets: Sequence[Tensor], values: Sequence[Value]) -> None:
    """Give each target a fresh recorded value, within no_grad: leaves stay leaves.

    What `take` does for one tensor, for the many of an optimiser's step.
    """
    for target, value in zip(targets, values, strict=True):
        if target._view is not None:
            take(target, from_value(value))
            continue
        storage = target._storage
        old = storage.value
        if old.requires_grad and old.tape is None:
            value.requires_grad = True
            value.leaf = old.leaf
        if value.meta is not old.meta:
            storage.write(value)
            continue
        # `storage.write`, without the call
        value.replaces = old if old.memory is not None else old.replaces
        value.owner = storage.reference
        storage.value = value
        storage.version = value.version = old.replaced = storage.version + 1


def fill_from_array(target: Tensor, array: Any, dtype: dtypes.DType | None = None) -> None:
    """Copy an array into `target`, in the target's dtype unless another is given."""
    chosen = dtype or target.dtype
    recorder = current.recorder
    before, recorder.grad = recorder.grad, False
    try:
        if chosen is not target.dtype:
            # Others that share the storage keep their dtype: this tensor gets one of its own.
            target.data = known(np.array(array, dtype=chosen.numpy, order="C"))
        else:
            take(target, known(np.array(array, dtype=chosen.numpy, order="C")))
    finally:
        recorder.grad = before


def is_known(source: Tensor) -> bool:
    """Whether the contents are there, or nothing will ever be."""
    return source._storage.value.ready or source.is_meta


def copy_recorded(target: Tensor, source: Tensor) -> None:
    """Copy contents that are still to be computed, without waiting: a moving average of weights."""
    recorder = current.recorder
    before, recorder.grad = recorder.grad, False
    try:
        target._write(source)
    finally:
        recorder.grad = before


def detached(source: Tensor) -> Tensor:
    """`source.detach()`, but recorded only when it is first used."""
    if source._view is not None:
        return source.detach()
    seen = object.__new__(Tensor)
    seen._storage = source._storage
    seen._view = View((None, detach.operator, ()), UNRECORDED, source._storage.value)
    seen._grad = None
    return seen


def zero_gradient(gradient: Tensor) -> None:
    """Set a gradient to zero: the same tensor, cut off from what it was computed from."""
    recorder = current.recorder
    before, recorder.grad = recorder.grad, False
    try:
        if gradient.grad_fn is not None:
            gradient.detach_()
        gradient.zero_()  # type: ignore[attr-defined]
    finally:
        recorder.grad = before
