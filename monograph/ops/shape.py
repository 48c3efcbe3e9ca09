"""Shape: reshape, permute, slices, joining. Views share the storage they come from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..ir import build, index
from ..ir.extent import Extent, agree
from ..ir.node import axis, coordinates
from ..ir.pieces import are_apart, beside, in_steps
from ..tensor import Tensor
from ..transform.derivative import vjp
from .define import Scalar, Tensors, operator


def axis_of(x: Any, dim: int, extra: int = 0) -> int:
    """The axis that dim names, which may count from the end."""
    rank = x.ndim + extra
    if not -max(rank, 1) <= dim < max(rank, 1):
        raise IndexError(f"dimension {dim} is out of range for a tensor of {x.ndim} dimensions")
    return dim % max(rank, 1)


def resolve_shape(size: int, shape: Any) -> tuple[int, ...]:
    """The shape with its -1 worked out."""
    if list(shape).count(-1) > 1:
        raise ValueError("only one dimension can be inferred")
    if any(extent < -1 for extent in shape):
        raise ValueError(f"shape {list(shape)} has a negative size")
    known = 1
    for extent in shape:
        known *= extent if extent != -1 else 1
    if -1 in shape:
        if known == 0 or size % known:
            raise ValueError(f"shape {list(shape)} is invalid for {size} elements")
        shape = tuple([size // known if e == -1 else e for e in shape])
    elif not agree(known, size):
        raise ValueError(f"shape {list(shape)} is invalid for {size} elements")
    return tuple(shape)


@operator(to=None, name="reshape", method=False, view=True)
def reshape_to(x: Tensor, shape: tuple[int, ...]) -> Any:
    """The same elements in another shape; one extent may be -1."""
    return build.reshape(x, resolve_shape(x.size, shape))


@operator(to=None, name="reshape", method=False)
def reshape_copy(x: Tensor, shape: tuple[int, ...]) -> Any:
    """The same elements in another shape, on a storage of their own."""
    return build.reshape(x, resolve_shape(x.size, shape))


@operator(to=None, name="as_strided", method=False, view=True)
def strided(x: Tensor, size: tuple[int, ...], stride: tuple[int, ...], offset: int) -> Any:
    """Element i is element offset + Σ stride[k] · i[k] of the line x."""
    if len(size) != len(stride):
        raise ValueError(f"size {list(size)} and stride {list(stride)} differ in length")
    if min((*size, *stride, offset), default=0) < 0:
        raise ValueError("as_strided takes no negative sizes, strides or offsets")
    reach = offset + sum([s * (n - 1) for s, n in zip(stride, size, strict=True)])
    if 0 not in size and reach >= x.shape[0]:
        raise ValueError(f"size {list(size)} and stride {list(stride)} reach beyond the storage")
    return build.reindex(x, size, [index.flatten(coordinates(size), stride, offset)])


@operator(to=None, name="permute", method=False, view=True)
def permute_to(x: Tensor, dims: tuple[int, ...]) -> Any:
    """Axes in another order."""
    order = [axis_of(x, d) for d in dims]
    if sorted(order) != list(range(x.ndim)):
        raise ValueError(f"dims {list(dims)} are no permutation of {x.ndim} axes")
    return build.permute(x, order)


@operator(view=True, aliases=("swapdims",))
def transpose(x: Tensor, dim0: int, dim1: int) -> Any:
    """Two axes exchanged.

    >>> import monograph as mg
    >>> mg.ones(2, 3).transpose(0, 1).shape
    Size([3, 2])
    """
    order = list(range(x.ndim))
    a, b = axis_of(x, dim0), axis_of(x, dim1)
    if x.ndim == 0:
        return x
    order[a], order[b] = order[b], order[a]
    return build.permute(x, order)


@operator(view=True)
def unsqueeze(x: Tensor, dim: int) -> Any:
    """A new axis of size 1 at dim.

    >>> import monograph as mg
    >>> mg.ones(2, 3).unsqueeze(1).shape
    Size([2, 1, 3])
    """
    return build.expand_dims(x, [axis_of(x, dim, 1)])


@operator(view=True)
def squeeze(x: Tensor, dim: Any = None) -> Any:
    """Without the axes of size 1 (all, or those named).

    >>> import monograph as mg
    >>> mg.ones(1, 2, 1).squeeze(0).shape
    Size([2, 1])
    """
    if dim is None:
        gone = set(range(x.ndim))
    else:
        listed = [axis_of(x, d) for d in ((dim,) if isinstance(dim, int) else dim)]
        gone = set(listed)
        if len(gone) != len(listed):
            raise ValueError(f"dim {dim} names an axis twice")
    return build.reshape(x, tuple([e for k, e in enumerate(x.shape) if not (k in gone and e == 1)]))


@operator(to=None, name="expand", method=False, view=True)
def expand_to(x: Tensor, shape: tuple[int, ...]) -> Any:
    """Axes of size 1 repeated to `shape`; -1 keeps an extent."""
    lead = len(shape) - x.ndim
    if lead < 0:
        raise ValueError(f"shape {list(shape)} has fewer axes than the tensor's {list(x.shape)}")
    if any(e < -1 or (e == -1 and k < lead) for k, e in enumerate(shape)):
        raise ValueError(f"shape {list(shape)} has a negative size where there is none to keep")
    full = tuple([x.shape[k - lead] if e == -1 and k >= lead else e for k, e in enumerate(shape)])
    return build.broadcast_to(x, full)


@operator(to=None, method=False, view=True)
def narrow(x: Tensor, dim: int, start: int, length: int) -> Any:
    """`length` places along dim from `start`, which may count from the end."""
    if not x.ndim:
        raise ValueError("narrow() cannot be applied to a 0-dim tensor")
    k = axis_of(x, dim)
    extent = x.shape[k]
    if length < 0:
        raise ValueError("narrow(): length must be non-negative")
    if not -extent <= start <= extent:
        raise IndexError(f"start {start} is out of range for an axis of size {extent}")
    first = start + extent if start < 0 else start
    if first > extent - length:
        raise ValueError(
            f"start {start} and length {length} are out of range for an axis of size {extent}"
        )
    return _slice(x, k, first, length, 1)


@operator(to=None, method=False, view=True)
def select(x: Tensor, dim: int, index: int) -> Any:
    """x at one place along dim, which goes."""
    if not x.ndim:
        raise IndexError("select() cannot be applied to a 0-dim tensor")
    k = axis_of(x, dim)
    extent = x.shape[k]
    if not -extent <= index < extent:
        raise IndexError(f"index {index} is out of range for an axis of size {extent}")
    piece = _slice(x, k, index % extent, 1, 1)
    return build.reshape(piece, (*x.shape[:k], *x.shape[k + 1 :]))


@operator(to=None, method=False, name="slice", view=True)
def slice_along(x: Tensor, dim: int, start: int | None, end: int | None, step: int) -> Any:
    """Every step-th place along dim from start to before end; both may count from the end."""
    if not x.ndim:
        raise ValueError("slice() cannot be applied to a 0-dim tensor")
    if step <= 0:
        raise ValueError("slice step must be positive")
    k = axis_of(x, dim)
    first, stop, _ = slice(start, end, step).indices(x.shape[k])
    return _slice(x, k, first, len(range(first, stop, step)), step)


@operator(view=True)
def diagonal(x: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    """The diagonal of the matrices over two axes, as a last axis; it shares the storage.

    >>> import monograph as mg
    >>> mg.diagonal(mg.tensor([[1, 2], [3, 4]])).tolist()
    [1, 4]
    """
    rows, columns = axis_of(x, dim1), axis_of(x, dim2)
    if not x.ndim:
        raise IndexError("diagonal needs at least two axes, got a tensor without axes")
    if rows == columns:
        raise ValueError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    skip_rows, skip_columns = max(-offset, 0), max(offset, 0)
    length = max(min(x.shape[rows] - skip_rows, x.shape[columns] - skip_columns), 0)
    others = [k for k in range(x.ndim) if k not in (rows, columns)]
    shape = (*[x.shape[k] for k in others], length)
    where: list[Any] = [0] * x.ndim
    for place, k in enumerate(others):
        where[k] = axis(place, x.shape[k])
    along = axis(len(others), length)
    where[rows], where[columns] = along + skip_rows, along + skip_columns
    return build.reindex(x, shape, where)


@operator(to=None, name="unfold", method=True, view=True)
def windows(x: Tensor, dimension: int, size: int, step: int) -> Any:
    """Windows of `size` places along an axis, one every `step`; their places are a last axis.

    >>> import monograph as mg
    >>> mg.arange(5).unfold(0, 2, 2).tolist()
    [[0, 1], [2, 3]]
    """
    k = axis_of(x, dimension)
    extent = x.shape[k] if x.ndim else 1
    if size < 0 or size > extent:
        raise ValueError(f"the window of {size} is larger than the axis of size {extent}")
    if step <= 0:
        raise ValueError(f"step must be positive, got {step}")
    if not x.ndim:
        return build.reindex(x, (size,), [])
    count = (extent - size) // step + 1
    shape = (*x.shape[:k], count, *x.shape[k + 1 :], size)
    where: list[Any] = list(coordinates(shape))[:-1]
    where[k] = axis(k, count) * step + axis(x.ndim, size)
    return build.reindex(x, shape, where)


def _slice(x: Any, k: int, start: int, length: int, step: int) -> Any:
    shape = (*x.shape[:k], length, *x.shape[k + 1 :])
    where: list[Any] = list(coordinates(shape))
    where[k] = axis(k, length) * step + start
    return build.reindex(x, shape, where)


@operator(to=None, name="index", method=False, view=True)
def basic_index(x: Tensor, places: tuple[Any, ...]) -> Any:
    """x[places] for integers, (start, stop, step) triples and None; `Tensor[...]` calls this."""
    k = 0
    for place in places:
        if place is None:
            x = build.expand_dims(x, [k])
            k += 1
        elif isinstance(place, (int, Extent)):
            extent = x.shape[k]
            if not -extent <= place < extent:
                raise IndexError(f"index {place} is out of range for an axis of size {extent}")
            x = _slice(x, k, place + extent if place < 0 else place, 1, 1)
            x = build.reshape(x, (*x.shape[:k], *x.shape[k + 1 :]))
        else:
            x = _slice(x, k, *_steps(*place, x.shape[k]))
            k += 1
    return x


def _steps(start: Any, stop: Any, step: Any, extent: int) -> tuple[int, int, int]:
    """(first, how many, step) of the places that a slice names along an axis."""
    step = 1 if step is None else step
    if step < 0:
        start, stop, step = slice(start, stop, step).indices(extent)
        return start, len(range(start, stop, step)), step
    start = _inside(0 if start is None else start, extent)
    stop = _inside(extent if stop is None else stop, extent)
    if stop <= start:
        return start, 0, step
    return start, (stop - start + step - 1) // step, step


def _inside(place: int, extent: int) -> int:
    """A bound of a slice as a place in [0, extent]."""
    if place < 0:
        place = place + extent
    if place < 0:
        return 0
    return extent if place > extent else place


@operator(to=None, name="flip", method=False)
def flip_axes(x: Tensor, dims: tuple[int, ...]) -> Any:
    """The order of elements along dims reversed."""
    where: list[Any] = list(coordinates(x.shape))
    named = [axis_of(x, d) for d in dims]
    if len(set(named)) != len(named):
        raise ValueError(f"dims {list(dims)} name an axis twice")
    for k in named if x.ndim else ():
        where[k] = x.shape[k] - 1 - where[k]
    return build.reindex(x, x.shape, where)


flip_axes.operator.lies = "operand"


@operator(to=None, method=False)
def cat(tensors: Tensors, dim: int = 0) -> Any:
    """Tensors joined along dim. Empty ones of one axis are left out, as they always were."""
    if not tensors:
        raise ValueError("expected a non-empty list of tensors")
    if any(not t.ndim for t in tensors):
        raise ValueError("zero-dimensional tensors cannot be concatenated")
    common = build.common_dtype(tensors)
    kept = [t for t in tensors if t.shape != (0,)]
    if not kept:
        return build.cast(tensors[0], common)
    k = axis_of(kept[0], dim)
    _check_beside(kept, k, dim)
    shape = (*kept[0].shape[:k], sum([t.shape[k] for t in kept]), *kept[0].shape[k + 1 :])
    view = beside([build.cast(t, common) for t in kept], k)
    if view is not None:
        return view
    result, start = None, 0
    for t in kept:
        where: list[Any] = list(coordinates(shape))
        where[k] = where[k] - start
        guard = index.within(where[k], t.shape[k])
        part = build.reindex(build.cast(t, common), shape, where, guard)
        if result is None:
            result = part
        else:
            result = build.select(build.coordinate(shape, k) < start, result, part)
        start += t.shape[k]
    return result


def _joins(kinds: Sequence[Any], attributes: Sequence[Any]) -> int | None:
    """The axis, where no input is left out or cast."""
    first = kinds[0]
    if any(len(kind.shape) != len(first.shape) or kind.dtype is not first.dtype for kind in kinds):
        return None
    return int(attributes[-1]) % len(first.shape)


cat.operator.joins = _joins


def _check_beside(tensors: list[Any], k: int, dim: int) -> None:
    """All sizes but that of axis k agree."""
    beside = [[e for n, e in enumerate(t.shape) if n != k] for t in tensors]
    if any(t.ndim != tensors[0].ndim for t in tensors) or any(b != beside[0] for b in beside):
        shapes = ", ".join(str(list(t.shape)) for t in tensors)
        raise ValueError(f"sizes must match except along dim {dim}: {shapes}")


@operator(to=None, method=False)
def arange_of(length: int, start: Scalar, step: Scalar, dtype: Any) -> Any:
    """start + step · (0, 1, …)."""
    count = build.coordinate((length,), 0)
    value = build.cast(count, dtype) * build.as_node(step, dtype) + build.as_node(start, dtype)
    return build.cast(value, dtype)


@operator(to=None, method=False)
def full_of(shape: tuple[int, ...], value: Scalar, dtype: Any) -> Any:
    """An array of one number."""
    return build.broadcast_to(build.as_node(value, dtype), shape)


@operator(to=None, method=False)
def write_view(base: Tensor, new: Tensor, chain: tuple[Any, ...]) -> Any:
    """base with `new` written through a chain of views.

    The views are injective index maps, so their transpose puts each element of `new` in its place,
    and the transpose of ones says which places were written. The parts of a complex base are
    places of their own, since a view may be of one of them.
    """
    part = base.dtype.to_real()
    sources: list[Any] = [build.buffer(-1, base.shape, part)]
    view: Any = sources[0]
    if base.dtype.is_complex:
        sources.append(build.buffer(-2, base.shape, part))
        view = build.apply("complex", *sources)
    return _written(base, new, _seen(view, chain), sources)


def _seen(view: Any, chain: tuple[Any, ...]) -> Any:
    """What a chain of views shows."""
    for step, attributes in chain:
        if step.smooth:  # detach moves nothing
            (view,) = step.expand((view,), attributes)
    return view


def _written(base: Any, new: Any, view: Any, sources: list[Any]) -> Any:
    """base with `new` where a view of the sources shows it."""
    f = build.functions
    one = complex(1, 1) if view.dtype.is_complex else 1
    given = build.broadcast_to(build.cast(new, view.dtype), view.shape)
    placed = vjp([view], [given], sources)
    written = vjp([view], [build.full(view.shape, one, view.dtype)], sources)
    parts = []
    for before, new_part, hit in zip(_parts(base), placed, written, strict=True):
        known = new_part is not None and hit is not None
        parts.append(build.select(f.ne(hit, 0), new_part, before) if known else before)
    return parts[0] if len(parts) == 1 else build.apply("complex", *parts)


def _write_series(base: Any, news: Any, attributes: Sequence[Any]) -> Any:
    """Writes to pieces that lie in even steps, apart from one another, as one."""
    if base.dtype.is_complex:
        return None
    source = build.buffer(-1, base.shape, base.dtype)
    view = in_steps([_seen(source, chain) for (chain,) in attributes])
    if view is None or view.shape != news.shape or not are_apart(view):
        return None
    return _written(base, news, view, [source])


write_view.operator.series = _write_series


def _parts(x: Any) -> list[Any]:
    """x, or the two parts of a complex x."""
    return [build.functions.real(x), build.functions.imag(x)] if x.dtype.is_complex else [x]
