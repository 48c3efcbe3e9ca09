"""Writing into known data at the call, instead of recording it.

Programs fill tensors in Python loops, one place after the other: the words of a text, the rows of
a batch, each of its own length, the ones of a one-hot code, the cells of a table. Recorded, each
write would be a new version of the whole tensor, and lengths would be numbers of the program that
reads the batch. Where the contents are known and nobody else holds them, what is written is put
into memory; where somebody does, as a recording or another view, into a copy, which then is the
tensor's alone. A tensor that is still to be made is made for it if that takes a call or two
(`near.py`).
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from .. import packs, record
from ..config import HOST, config
from ..ir.dtypes import DType, Kind
from ..recorder import Record, current
from ..storage import Storage, Value, concrete
from ..tensor import Tensor
from .shape import full_of

LARGEST = {32: 3.4e38, 64: 1.7e308}  # of floats, by their bits; what is beyond is left to operators
LONGEST = 1 << 14  # elements that are computed or copied for one write
_HELD = 3  # references to an object that a storage, a local name and `getrefcount` have


def put(x: Tensor, key: Any, new: Any) -> bool:
    """Do x[key] = new for integers and slices at the call; False where it is to be recorded."""
    places = key if key.__class__ is tuple else (key,)
    for place in places:
        if place.__class__ is not int and not _is_plain_slice(place):
            return False
    shape = x.shape
    if len(places) > len(shape):
        return False
    for place, extent in zip(places, shape, strict=False):
        if place.__class__ is int and not -extent <= place < extent:
            return False  # the operator says what is wrong
    source = _contents(new, x) if isinstance(new, Tensor) else None
    if source is None and not _fits(new, x.dtype):
        return False
    if not _is_plain(x):
        return False
    rows = source is not None or any([place.__class__ is slice for place in places])
    if rows and x._storage.value.meta.size > LONGEST and not _is_alone(x):
        return False  # it would be copied
    if source is None:
        _memory(x)[places] = new
    elif not _copied(source, _memory(x)[(*places, ...)]):
        return False
    _noted(x)
    return True


def _is_plain_slice(place: Any) -> bool:
    """Whether NumPy takes the slice as PyTorch does: bounds of Python's, and a step forward."""
    if place.__class__ is not slice:
        return False
    bounds = {place.start.__class__, place.stop.__class__} <= _BOUNDS
    return bounds and (place.step is None or (place.step.__class__ is int and place.step > 0))


_BOUNDS = {int, type(None)}


def _contents(new: Tensor, x: Tensor) -> np.ndarray | None:
    """What a tensor holds, if that is known and is written into x as it is."""
    storage = new._storage
    if new.dtype is not x.dtype or new.requires_grad or storage is x._storage:
        return None
    if storage.__class__ is not Storage or config.backend not in HOST:
        return None
    if new.numel() > LONGEST or not _is_known(storage):
        return None
    if new._view is not None and (new._view.value.requires_grad or new._geometry().reads):
        return None
    memory = storage.value.memory
    if new._view is None and memory.data is not None and sys.getrefcount(memory) == _HELD:
        return memory.data  # no launch holds it: there is nothing to wait for
    return new._array()


def _copied(source: np.ndarray, target: np.ndarray) -> bool:
    """Write an array over another; False if it does not fit, as the operator then says."""
    if source.size == 1:
        target[...] = source.reshape(())
    elif source.shape == target.shape:
        target[...] = source
    else:
        return False
    return True


def _is_known(storage: Storage) -> bool:
    """Whether there are contents, if need be after a call or two."""
    if storage.value.memory is None and storage.value.meta.size <= LONGEST:
        record.read_near(storage)
    return storage.value.memory is not None


def add(x: Tensor, number: Any) -> bool:
    """Do x += number at the call where x is one place; False where it is to be recorded."""
    if x._view is None or x.ndim or not _is_plain(x) or not _fits(number, x.dtype):
        return False
    if x.dtype.kind is Kind.BOOL:
        return False
    place = _memory(x)
    with np.errstate(over="ignore"):
        place[()] = place[()] + place.dtype.type(number)
    _noted(x)
    return True


def lies_at(x: Tensor, target: Tensor) -> bool:
    """Whether two tensors are the same places of one storage, as in x[0] += 1."""
    if x._storage is not target._storage:
        return False
    if (x.requires_grad or target.requires_grad) and not (_is_linked(x) and _is_linked(target)):
        return False
    return x._geometry() == target._geometry()


def _is_linked(x: Tensor) -> bool:
    """Whether derivatives by x are those by these places of its storage, which may be written."""
    storage, view = x._storage, x._view
    if storage.value.tape is None or storage.__class__ is not Storage:
        return False
    return view is None or (view.birth is None and all([step.smooth for step, _ in view.chain()]))


def _memory(x: Tensor) -> np.ndarray:
    """The places of x in memory that is its storage's alone, to be written."""
    if not _is_alone(x):  # nor is it while a launch holds it
        record.wait()
        _own(x._storage)
    packs.forget(x._storage.value)
    return x._array()


def _is_plain(x: Tensor) -> bool:
    """Whether x is data that may be written to, of which no derivative is asked."""
    recorder, storage = current.recorder, x._storage
    if recorder.hold or recorder.outer is not None or config.backend not in HOST:
        return False
    whole, view = storage.value, x._view
    if storage.__class__ is not Storage or whole.requires_grad or whole.exposed:
        return False
    if whole.meta.strides is not None:
        return False
    memory = whole.memory
    if memory is None and _filling(whole) is None:
        if not _is_known(storage):
            return False
        memory = storage.value.memory
    if memory is not None and memory.part_of is not None:
        return False
    if view is None:
        return True
    seen = x._geometry()
    return not (view.value.requires_grad or seen.overlaps or seen.reads)


def _filling(whole: Value) -> Any:
    """The number that a tensor is to be filled with; None of one that is made otherwise."""
    made = whole.record
    if made.__class__ is Record and made.signature.operator is full_of.operator:
        return made.inputs[0]
    return None


def _own(storage: Storage) -> None:
    """Give a storage contents that nobody else holds."""
    whole = storage.value
    if whole.memory is not None:
        contents = whole.array().copy()
    else:
        contents = np.full(whole.meta.shape, _filling(whole), whole.meta.dtype.numpy)
    storage.write(concrete(contents, whole.meta))
    storage.value.replaces = None  # it was not computed: nothing is to be written over


def _fits(number: Any, dtype: DType) -> bool:
    """Whether NumPy writes the number as PyTorch does."""
    if number.__class__ is float:
        if dtype.kind is not Kind.FLOAT or dtype.itemsize < 4:
            return False
        return not LARGEST[8 * dtype.itemsize] < abs(number) < float("inf")
    if number.__class__ is not int and number.__class__ is not bool:
        return False
    if dtype.kind is Kind.FLOAT:
        return dtype.itemsize >= 4 and abs(number) < 1 << 64
    if dtype.kind is Kind.INT:
        return dtype.itemsize >= 4 and -(1 << 31) <= number < 1 << 31
    return dtype.kind is Kind.BOOL


def _is_alone(x: Tensor) -> bool:
    """Whether nobody but x's storage, and x where it is a view, holds the contents."""
    whole = x._storage.value
    memory = whole.memory
    if memory is None or sys.getrefcount(memory) > _HELD:
        return False
    array = memory.data
    if array is None or array.base is not None or not array.flags.writeable:
        return False
    held, views = _HELD, 0
    part = _piece(x)
    if part is not None:
        if sys.getrefcount(part) > _HELD or sys.getrefcount(part.memory) > _HELD - 1:
            return False
        held += 2  # `part_of` and `viewed`
        views = 1
    return sys.getrefcount(whole) <= held and sys.getrefcount(array) <= _HELD + views


def _piece(x: Tensor) -> Value | None:
    """The value of a view that is a piece of its storage's memory, of today."""
    view = x._view
    if view is None or view.value.memory is None:
        return None
    return view.value if view.value.memory.part_of is x._storage.value else None


def _noted(x: Tensor) -> None:
    """Count the write, as every other is."""
    storage = x._storage
    storage.version = storage.value.version = storage.version + 1
    if x._view is not None and _piece(x) is not None:
        x._view.version = storage.version  # it lies in the memory that was written
