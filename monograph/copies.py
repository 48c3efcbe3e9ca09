"""Copies of tensors and tensors that share: `copy`, `deepcopy`, `x.data = y`, shared memory.

A deep copy copies storages, each once: tensors that share one share its copy. A shallow copy and an
assignment to `.data` share the storage itself.
"""

from __future__ import annotations

import copy
import sys
from typing import Any

from . import errors, record, sharing
from .guards import changes
from .storage import Memory
from .tensor import Parameter, Tensor, _restore, lies_like, without_data

# References to a temporary on the right of `x.data = …`: the caller's, ours, and `getrefcount`'s.
_TEMPORARY = 4


def deep(source: Tensor, memo: dict[int, Any]) -> Tensor:
    """A copy on a copy of the storage, which `memo` knows by the storage's id."""
    if source.requires_grad and not source.is_leaf:
        raise errors.GradientError(
            "Only Tensors created explicitly by the user (graph leaves) support the deepcopy "
            "protocol at the moment: this one was computed from others that require gradients. "
            "Copy its detach() instead, or take it within no_grad."
        )
    storage = source._storage
    base = memo.get(id(storage))
    if base is None:
        whole = object.__new__(Tensor)
        whole._storage, whole._view = storage, None
        if whole.is_meta:
            base = without_data(whole)
        else:
            base = lies_like(_restore(Tensor, whole._array().copy(), False), whole)
        memo[id(storage)] = base
    made = object.__new__(type(source))
    memo[id(source)] = made
    made._storage, made._view = base._storage, None
    if source._view is not None:
        for operator, attributes in source._view.chain():
            base = record.call_view(operator, (base,), attributes)
        made._view = base._view
    if source.requires_grad and source.is_leaf:
        made.requires_grad_(True)
    if source._grad is not None and not isinstance(source, Parameter):
        made._grad = copy.deepcopy(source._grad, memo)
    return made


def shallow(source: Tensor) -> Tensor:
    """Another tensor on the same storage; of a leaf, a leaf of its own."""
    made = object.__new__(type(source))
    leaf = source.requires_grad and source.is_leaf
    _share(made, source.detach() if leaf else source)
    return made.requires_grad_(True) if leaf else made


def take_data(target: Tensor, new: Tensor) -> None:
    """Let a tensor see the contents of another, and share them; a leaf stays a leaf."""
    if not isinstance(new, Tensor):
        raise TypeError(f"data has to be a tensor, but got {type(new).__name__}")
    if new._storage is target._storage and _places(new) == _places(target):
        return  # `x.data -= y` has written already, and hands back what it wrote to
    old = target._value()
    leaf = old.requires_grad and old.tape is None
    changes.leave(target._storage)
    if not _is_temporary(new):
        new = _cut_off(new)
    _share(target, new)
    if leaf:
        target.requires_grad_(True)


def _places(x: Tensor) -> list[Any]:
    """The steps from the storage to a tensor that say which elements it has."""
    steps = () if x._view is None else x._view.chain()
    return [step for step in steps if step[0].name not in ("data", "detach")]


def _cut_off(new: Tensor) -> Tensor:
    """The same elements without derivatives, in one step however often they were cut off before."""
    if new._view is None or _places(new):
        return new.detach()
    whole = object.__new__(Tensor)
    whole._storage, whole._view = new._storage, None
    return whole.detach()


def _is_temporary(new: Tensor) -> bool:
    """Whether nobody else will look at this tensor: then its storage is simply taken."""
    return (
        sys.getrefcount(new) <= _TEMPORARY + 1
        and sys.getrefcount(new._storage) <= 2
        and new._view is None
        and not new.requires_grad
    )


def _share(target: Tensor, source: Tensor) -> None:
    target._storage, target._view = source._storage, source._view


def move_to_shared_memory(tensor: Tensor) -> Tensor:
    """Let the storage lie in memory that processes forked from here on share with this one."""
    array = record.read(tensor._storage)
    value = tensor._storage.value
    if not sharing.lies_in_shared_memory(array):
        value.memory = Memory(sharing.in_shared_memory(array))
    record.expose(value)  # another process may change it at any time
    return tensor
