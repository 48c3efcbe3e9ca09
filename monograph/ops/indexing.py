"""Indexing and assignment: `x[key]` and `x[key] = new`, with all that keys may hold.

Integers, slices, None and … make a view. Integer tensors (lists, arrays) then pick places on their
axes. Boolean tensors become the places where they are true, for which their values are read; only
`x[mask] = number` does without.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any
from weakref import ref

import numpy as np

from .. import packs, record
from ..aliasing import row_of
from ..ir import build, dtypes
from ..ir.dtypes import Kind
from ..recorder import current
from ..storage import Value
from ..tensor import Tensor, adopt, tensor
from . import elements, math, overlapping, shape
from .define import Tensors, function
from .define import operator as declare
from .index import index_at
from .inplace import over, refuse_partial
from .places import crossed, integers
from .views import expand


def _part(part: Any) -> Any:
    """One part of a key as None, …, an integer, a slice or a tensor."""
    if part is None or part is Ellipsis or isinstance(part, (slice, Tensor)):
        return part
    if isinstance(part, (bool, np.bool_)):
        return tensor(bool(part))
    if isinstance(part, np.ndarray):
        return tensor(part if part.size else part.astype(np.int64))
    if isinstance(part, (list, tuple, range)):
        listed = [int(p) if isinstance(p, Tensor) else p for p in part]
        made = np.asarray(listed)
        return adopt(made if made.size else made.astype(np.int64))
    try:
        return operator.index(part)
    except TypeError:
        raise (IndexError if isinstance(part, float) else TypeError)(
            "only integers, slices, ellipsis (...), None and tensors (or lists) of integers or "
            f"booleans are valid indices, got {type(part).__name__}"
        ) from None


def _axes_used(part: Any) -> int:
    if part is None or part is Ellipsis:
        return 0
    if isinstance(part, Tensor) and part.dtype in (dtypes.bool_, dtypes.uint8):
        return part.ndim
    return 1


def _is_mask(part: Any) -> bool:
    return isinstance(part, Tensor) and part.dtype in (dtypes.bool_, dtypes.uint8)


def _is_many(key: Any) -> bool:
    """Whether a key is one part for each of several axes, as a short list of slices is."""
    if isinstance(key, list) and len(key) < _LONG:
        return any(p is None or p is Ellipsis or isinstance(p, _SEVERAL) for p in key)
    return isinstance(key, tuple)


_LONG, _SEVERAL = 32, (slice, Tensor, list, tuple, range, np.ndarray)


def _parts(x: Tensor, key: Any) -> list[Any]:
    """The key as a list that names every axis: … worked out."""
    parts = [_part(p) for p in (key if _is_many(key) else (key,))]
    used = sum([_axes_used(p) for p in parts])
    if used > x.ndim:
        raise IndexError(f"too many indices ({used}) for a tensor of {x.ndim} dimensions")
    result: list[Any] = []
    rest = x.ndim - used  # axes that no part names: where the first … stands, or at the end
    for part in parts:
        if part is Ellipsis:
            result += [slice(None)] * rest
            rest = 0
        else:
            result.append(part)
    return result + [slice(None)] * rest


def _places_of(mask: Tensor, x: Tensor, k: int) -> list[Tensor]:
    """The places where a mask over the axes of x from k on is true, one tensor an axis."""
    here = tuple(x.shape[k : k + mask.ndim])
    if tuple(mask.shape) != here:
        raise IndexError(
            f"the shape of the mask {list(mask.shape)} does not match the tensor's axes "
            f"{list(here)} from axis {k} on"
        )
    recorder, value, whole = current.recorder, mask._value(), mask._storage.value
    if recorder.capture is not None or recorder.outer is not None or recorder.inference:
        return [adopt(places) for places in np.nonzero(mask._array())]
    global _latest
    latest, shelf, found = _latest
    if latest() is value and packs.is_shelf(shelf, whole):
        return found
    shelf = packs.shelf(whole)
    found = [adopt(places) for places in np.nonzero(mask._array())]
    if mask._value() is value and packs.is_watched(whole) and packs.is_shelf(shelf, whole):
        _latest = ref(value), shelf, found
    return found


# The mask that was used last, what says that its contents are the same, and its places: x[mask] is
# often followed by y[mask].
_latest: tuple[Callable[[], Value | None], packs.Shelf, list[Tensor]] = (lambda: None, [], [])


def _bound(end: Any) -> int | None:
    return None if end is None else operator.index(end)


def _place(part: Any) -> Any:
    """A part for `basic_index`: an integer, None, or (start, stop, step)."""
    if isinstance(part, slice):
        step = _bound(part.step)
        if step is not None and step <= 0:
            raise ValueError("a slice's step must be greater than zero")
        return (_bound(part.start), _bound(part.stop), step)
    return part


_WHOLE = (None, None, None)


Picked = tuple[Tensor, list[Tensor], tuple[int, ...], tuple[bool, ...]]


def _split(x: Tensor, key: Any) -> Picked:
    """The view that the key's integers, slices and None make, and the tensors on its axes.

    Behind them, which of the tensors are places that are sure to exist: those of masks.
    """
    if isinstance(key, Tensor):  # alone: all but what is not ordinary, in a third of the time
        kind, rank = key._value().meta, len(x._value().meta.shape)
        if kind.dtype is dtypes.int64 and rank:
            return x, [key], (0,), ()
        if kind.dtype is dtypes.bool_ and 0 < len(kind.shape) <= rank:
            rank = len(kind.shape)
            return x, _places_of(key, x, 0), tuple(range(rank)), (True,) * rank
    basic: list[Any] = []
    tensors: list[Tensor] = []
    dims: list[int] = []
    sure: list[bool] = []
    source = k = 0  # the next axis of x, and of the view
    for part in _parts(x, key):
        picks: list[Tensor] = []
        if _is_mask(part) and part.ndim == 0:  # x[True]: a new axis of size 1, or 0
            basic.append(None)
            tensors.append(adopt(np.zeros(int(bool(part)), np.int64)))
            dims.append(k)
            sure.append(True)
            k += 1
        elif _is_mask(part):
            picks = _places_of(part, x, source)
        elif isinstance(part, Tensor):
            if part.dtype.kind is not Kind.INT:
                raise IndexError(
                    "tensors used as indices must be integers or booleans, this one is "
                    f"{part.dtype.name}"
                )
            picks = [part]
        else:
            basic.append(_place(part))
            k += 0 if isinstance(part, int) else 1
        for pick in picks:
            basic.append(_WHOLE)
            tensors.append(pick)
            dims.append(k)
            sure.append(pick is not part)
            k += 1
        source += _axes_used(part)
    plain = len(basic) == x.ndim and all(place == _WHOLE for place in basic)
    view = x if plain else shape.basic_index(x, tuple(basic))
    return view, tensors, tuple(dims), tuple(sure) if any(sure) else ()


_INTEGER = {int}
_BOUNDS = frozenset({int, type(None)})


def _plain(parts: tuple[Any, ...], rank: int) -> tuple[Any, ...] | None:
    """The places of a key of integers, slices, None and …, as most are; None of any other."""
    places: list[Any] = []
    rest, gap, whole = rank, -1, True
    for part in parts:
        if part.__class__ is int:
            places.append(part)
            rest -= 1
            whole = False
        elif part.__class__ is slice:
            start, stop, step = part.start, part.stop, part.step
            rest -= 1
            if start is None and stop is None and step is None:
                places.append(_WHOLE)
                continue
            if start.__class__ not in _BOUNDS or stop.__class__ not in _BOUNDS:
                return None
            if step is not None and (step.__class__ is not int or step <= 0):
                return None
            places.append((start, stop, step))
            whole = False
        elif part is None:
            places.append(None)
            whole = False
        elif part is Ellipsis and gap < 0:
            gap = len(places)
        else:
            return None
    if rest < 0:
        return None
    if whole:
        return ()
    gap = len(places) if gap < 0 else gap
    places[gap:gap] = [_WHOLE] * rest
    return tuple(places)


def getitem(x: Tensor, key: Any) -> Tensor:
    """x[key]."""
    parts = key if key.__class__ is tuple else (key,)
    if parts and parts[0].__class__ is int and record.may_be_quick():
        if {*map(type, parts)} == _INTEGER:
            row = row_of(x, shape.basic_index.operator, parts)
            if row is not None:
                return row
    places = _plain(parts, len(x._kind().shape))
    if places is not None:
        return shape.basic_index(x, places)  # type: ignore[no-any-return]
    view, tensors, dims, sure = _split(x, key)
    if not tensors:
        return shape.basic_index(x, ()) if view is x else view
    return index_at(view, tensors, dims, sure)


@declare(to=None, method=False, name="index_put")
def put_at(
    x: Tensor, values: Tensor, where: Tensors, dims: tuple[int, ...], accumulate: bool = False,
    sure: tuple[bool, ...] = (),
) -> Any:  # fmt: skip
    """x with the values at the places that integer tensors name on the axes `dims`."""
    region = crossed(x, [integers(w) for w in where], dims, sure)
    if not accumulate:
        return region.write(x, values)
    values = build.broadcast_to(build.cast(values, x.dtype), region.shape)
    return x + region.combine("add", values, x.shape)


def setitem(x: Tensor, key: Any, new: Any) -> None:
    """x[key] = new."""
    if elements.put(x, key, new):
        return
    if isinstance(key, Tensor) and key.dtype is dtypes.bool_ and _is_number(new):
        if tuple(key.shape) == tuple(x.shape[: key.ndim]):
            mask = key.reshape(*key.shape, *[1] * (x.ndim - key.ndim))
            value = new.reshape(()) if isinstance(new, Tensor) else new
            over(x, math.masked_fill(x, mask, value), "masked_fill", True)
            return
    if key is False:
        return  # nothing is written, and so nothing is differentiated
    view, tensors, dims, sure = _split(x, key)
    if isinstance(new, Tensor):
        values = new.to(x.dtype)
    elif _is_number(new):
        values = shape.full_of((), new, x.dtype)
    else:
        values = tensor(new, dtype=x.dtype)
    if tensors:
        result = put_at(view, values, tensors, dims, False, sure)
        if overlapping.overlaps(view):
            overlapping.write(view, result)
        else:
            view._write(result, fresh=view._view is None)
    else:
        target = shape.basic_index(x, ()) if view is x else view
        if isinstance(new, Tensor) and elements.lies_at(new, target):
            return  # x[k] += 1 writes the view x[k], which was written already
        fitted = _fitted(values, tuple(target.shape))
        refuse_partial(target, (fitted,))
        target._write(fitted)


def _fitted(values: Tensor, size: tuple[int, ...]) -> Tensor:
    """The values broadcast to a size; leading axes of size 1 too many are dropped."""
    while values.ndim > len(size) and values.shape[0] == 1:
        values = values.squeeze(0)
    return values if values._sizes == size else expand(values, *size)


def _is_number(new: Any) -> bool:
    if isinstance(new, Tensor):
        return new.numel() == 1
    return isinstance(new, (bool, int, float, complex, np.generic))


@function(method=True)
def index_put(input: Tensor, indices: Any, values: Tensor, accumulate: bool = False) -> Tensor:
    """x with values at the places that a tuple of index tensors names.

    >>> import monograph as mg
    >>> mg.zeros(3).index_put((mg.tensor([2, 0]),), mg.tensor([1.0, 5.0])).tolist()
    [5.0, 0.0, 1.0]
    """
    if values.dtype is not input.dtype:
        raise RuntimeError(
            f"index_put: the values are {values.dtype.name}, the tensor is {input.dtype.name}"
        )
    key = tuple([slice(None) if part is None else part for part in indices])
    view, tensors, dims, sure = _split(input, key)
    if not tensors:
        return math.clone(expand(values, *input.shape))
    return put_at(view, values, tensors, dims, accumulate, sure)


@function(method=True)
def index_put_(input: Tensor, indices: Any, values: Tensor, accumulate: bool = False) -> Tensor:
    """`index_put` in place; elements of x may share places."""
    result = index_put(input, indices, values, accumulate)
    if accumulate and overlapping.overlaps(input):
        return overlapping.write(input, result, add=True)
    return over(input, result, "index_put", True)


Tensor.__getitem__ = getitem  # type: ignore[method-assign,assignment]
Tensor.__setitem__ = setitem  # type: ignore[method-assign,assignment]
