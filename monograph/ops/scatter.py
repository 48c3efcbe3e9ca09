"""Writing at places that integer tensors name: scatter, index_add and their kin."""

from __future__ import annotations

from typing import Any

from ..ir import build
from ..ir.dtypes import int64
from ..ir.index import within
from ..ir.node import axis
from ..tensor import Tensor
from .creation import full
from .define import ANYWHERE, Scalar, function, operator
from .index import check_beside
from .inplace import into
from .places import Region, along, crossed, integers, slices
from .shape import axis_of

f = build.functions


def _int64(index: Any) -> Any:
    if index.dtype.name not in ("int32", "int64") and index.size:
        raise ValueError(f"the index must be int32 or int64, got {index.dtype.name}")
    return build.cast(index, int64)


def _check_source(x: Any, k: int, index: Any, src: Any) -> None:
    if src.dtype is not x.dtype:
        raise ValueError(f"src is {src.dtype.name}, the tensor is {x.dtype.name}")
    check_beside(x, index, k, "tensor")
    if index.size and max(index.ndim, 1) != max(src.ndim, 1):
        raise ValueError(
            f"the index {list(index.shape)} needs as many axes as src {list(src.shape)}"
        )
    if index.size and any(a > b for a, b in zip(index.shape, src.shape, strict=False)):
        raise ValueError(f"the index {list(index.shape)} exceeds src {list(src.shape)}")


def _corner(src: Any, shape: tuple[int, ...]) -> Any:
    """The part of src that an index of this shape names."""
    if src.shape == shape or not src.ndim:
        return build.broadcast_to(src, shape)
    return build.reindex(src, shape, [axis(k, e) for k, e in enumerate(shape)])


@operator(to=None, method=False, name="scatter")
def scatter_tensor(x: Tensor, dim: int, index: Tensor, src: Tensor) -> Any:
    """x with src at index along dim."""
    k, where = axis_of(x, dim), _int64(index)
    _check_source(x, k, where, src)
    return along(x, k, where).write(x, _corner(src, where.shape))


@operator(to=None, method=False, name="scatter")
def scatter_number(x: Tensor, dim: int, index: Tensor, value: Scalar) -> Any:
    """x with one number at index along dim."""
    k, where = axis_of(x, dim), _int64(index)
    check_beside(x, where, k, "tensor")
    return along(x, k, where).write(x, build.as_node(value, x.dtype))


@function(method=True, inplace=True)
def scatter(
    input: Tensor, dim: int, index: Tensor, src: Any = None, *, value: Any = None,
    reduce: str | None = None, out: Any = None,
) -> Tensor:  # fmt: skip
    """x with src, a tensor or a number, written at index along dim.

    Of several elements at one place the last one stays; with reduce "add" or "multiply" all of them
    are combined with what is there.

    >>> import monograph as mg
    >>> mg.zeros(1, 3).scatter(1, mg.tensor([[2, 0]]), mg.tensor([[5.0, 6.0]])).tolist()
    [[6.0, 0.0, 5.0]]
    """
    given = value if src is None else src
    if reduce is not None:
        names = {"add": "sum", "multiply": "prod"}
        if reduce not in names:
            raise RuntimeError(f"scatter: reduce must be 'add' or 'multiply', got {reduce!r}")
        if not isinstance(given, Tensor):
            given = full(tuple(index.shape), given, dtype=input.dtype)
        return scatter_reduce(input, dim, index, given, names[reduce], out=out)
    way = scatter_tensor if isinstance(given, Tensor) else scatter_number
    made = way(input, dim, index, given)
    return made if out is None else into(out, made)


@operator(inplace=True)
def scatter_add(x: Tensor, dim: int, index: Tensor, src: Tensor) -> Any:
    """x with src added at index along dim.

    >>> import monograph as mg
    >>> mg.zeros(3).scatter_add(0, mg.tensor([1, 1]), mg.tensor([2.0, 3.0])).tolist()
    [0.0, 5.0, 0.0]
    """
    k, where = axis_of(x, dim), _int64(index)
    _check_source(x, k, where, src)
    region = along(x, k, where)
    return _plus(x, region.combine("add", _corner(src, where.shape), x.shape))


def _plus(x: Any, more: Any) -> Any:
    return f.cast(f.add(x, more), x.dtype) if x.dtype.name != "bool" else getattr(f, "or")(x, more)


_WAYS = ("sum", "prod", "mean", "amax", "amin")


def _check_way(reduce: str) -> None:
    if reduce not in _WAYS:
        raise ValueError(f"reduce must be one of {', '.join(_WAYS)}, got {reduce!r}")


def _combined(x: Any, region: Region, src: Any, how: str, include_self: bool) -> Any:
    """x combined with the elements of src that go to each place."""
    count = region.hit(x.shape)
    met = count > 0
    combine = {"sum": "add", "mean": "add", "prod": "mul", "amax": "max", "amin": "min"}[how]
    parts = region.combine(combine, src, x.shape)
    if not include_self:
        if how == "mean":
            parts = _mean(parts, count)
        return build.select(met, parts, x)
    if how in ("sum", "mean"):
        total = f.add(x, parts)
        return total if how == "sum" else _mean(total, count + 1)
    two = {"prod": f.mul, "amax": f.maximum, "amin": f.minimum}[how]
    return build.select(met, two(x, parts), x)


def _mean(total: Any, count: Any) -> Any:
    count = f.maximum(count, 1)
    if total.dtype.is_floating_point:
        return total / build.cast(count, total.dtype)
    return f.floordiv(total, build.cast(count, total.dtype))


def _pull(
    g: Any, y: Any, x: Any, src: Any, region: Region, how: str, include_self: bool
) -> tuple[Any, Any]:
    """Cotangents of x and of src in the region."""
    count = region.hit(x.shape)
    met = count > 0
    if how in ("sum", "mean"):
        share = g
        if how == "mean":
            number = count + 1 if include_self else f.maximum(count, 1)
            share = g / build.cast(number, g.dtype)
        own = share if include_self else build.select(met, 0.0, g)
        return own, region.read(share)
    if how == "prod":
        return _pull_product(g, x, src, region, include_self, met)
    same = f.eq(src, region.read(y))
    ties = region.combine("add", build.cast(same, g.dtype), x.shape)
    if include_self:
        mine = build.cast(f.eq(x, y), g.dtype)
        share = g / (ties + mine)
        return mine * share, build.select(same, region.read(share), 0.0)
    share = build.select(met, g / f.maximum(ties, 1.0), 0.0)
    return build.select(met, 0.0, g), build.select(same, region.read(share), 0.0)


def _pull_product(
    g: Any, x: Any, src: Any, region: Region, include_self: bool, met: Any
) -> tuple[Any, Any]:
    """The product of all others, without a division by 0.

    It is made of the product of what is not 0, how many are, and their sum: that is 0, but for its
    derivative, so that second derivatives are right where one or two factors are 0.
    """
    zero = f.eq(src, 0.0)
    safe = build.select(zero, 1.0, src)
    others = region.combine("mul", safe, x.shape)
    zeros = region.combine("add", build.cast(zero, int64), x.shape)
    nothing = region.combine("add", build.select(zero, src, 0.0), x.shape)
    pull_x = build.select(met, 0.0, g)
    whole, all_zeros, all_nothing = others, zeros, nothing
    if include_self:
        own_zero = f.eq(x, 0.0)
        whole = others * build.select(own_zero, 1.0, x)
        all_zeros = zeros + build.cast(own_zero, int64)
        all_nothing = nothing + build.select(own_zero, x, 0.0)
        pull_x = g * others * _without(zeros, nothing)
    whole, all_zeros, all_nothing, g = (region.read(v) for v in (whole, all_zeros, all_nothing, g))
    left = all_zeros - build.cast(zero, int64)
    return pull_x, g * whole / safe * _without(left, all_nothing - build.select(zero, src, 0.0))


def _without(zeros: Any, nothing: Any) -> Any:
    """The product of this many factors that are 0, of which the sum is given."""
    one_or_more = build.select(f.eq(zeros, 1), nothing, 0.0)
    return build.select(f.eq(zeros, 0), 1.0, one_or_more)


def _spread_back(src: Any, part: Any) -> Any:
    """The cotangent of src from that of its corner."""
    if src.shape == part.shape:
        return part
    guard: tuple[Any, ...] = ()
    place = []
    for k, extent in enumerate(src.shape):
        place.append(axis(k, extent))
        guard += within(axis(k, extent), part.shape[k])
    return build.reindex(part, src.shape, place, guard)


@operator(inplace=True)
def scatter_reduce(
    x: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True
) -> Any:
    """x with src combined at index along dim, by sum, prod, mean, amax or amin.

    >>> import monograph as mg
    >>> mg.ones(2).scatter_reduce(0, mg.tensor([1, 1]), mg.tensor([4.0, 6.0]), "amax").tolist()
    [1.0, 6.0]
    """
    _check_way(reduce)
    k, where = axis_of(x, dim), _int64(index)
    _check_source(x, k, where, src)
    return _combined(x, along(x, k, where), _corner(src, where.shape), reduce, include_self)


@scatter_reduce.derivative
def _(
    g: Any, y: Any, x: Any, dim: int, index: Any, src: Any, reduce: str, include_self: bool
) -> Any:
    k, where = axis_of(x, dim), _int64(index)
    region = along(x, k, where)
    own, part = _pull(g, y, x, _corner(src, where.shape), region, reduce, include_self)
    return own, None, _spread_back(src, part)


def _saved(source: str, reduction: int) -> Any:
    """PyTorch's derivative of a product divides the result; `reduction` is among the attributes."""

    def saves(inputs: Any, attributes: Any) -> Any:
        if attributes[reduction] != "prod":
            return None
        return dict.fromkeys(("x", source), ("x", "index", source, "result"))

    return saves


scatter_reduce.operator.saves = _saved("src", 1)


def _slices_of(x: Any, dim: int, index: Any, source: Any) -> tuple[Region, Any]:
    """The region of whole slices, and the source in its shape."""
    k = axis_of(x, dim)
    if index.dtype.name not in ("int32", "int64"):
        raise ValueError(f"the index must be int32 or int64, got {index.dtype.name}")
    if index.ndim > 1:
        raise IndexError(f"the index must have at most one axis, got {list(index.shape)}")
    if source.dtype is not x.dtype:
        raise ValueError(f"the source is {source.dtype.name}, the tensor is {x.dtype.name}")
    region = slices(x, k, integers(index))
    if x.ndim == 0:
        return region, build.reshape(source, ())
    if source.ndim == 0:
        source = build.reshape(source, (1,))
    if source.shape != region.shape:
        raise ValueError(
            f"the source {list(source.shape)} does not fit the slices {list(region.shape)}"
        )
    return region, source


@operator(inplace=True)
def index_add(x: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: Scalar = 1) -> Any:
    """x with alpha · source added to its slices at index.

    >>> import monograph as mg
    >>> mg.zeros(2, 2).index_add(0, mg.tensor([1, 1]), mg.ones(2, 2)).tolist()
    [[0.0, 0.0], [2.0, 2.0]]
    """
    region, source = _slices_of(x, dim, index, source)
    if source.dtype.name != "bool":
        source = f.mul(source, build.as_node(alpha, source.dtype))
        return f.add(x, region.combine("add", source, x.shape))
    counted = getattr(f, "and")(source, build.as_node(alpha, source.dtype))
    met = region.combine("max", build.cast(counted, int64), x.shape) > 0
    return getattr(f, "or")(x, met)


index_add.operator.selects = True


index_add.operator.saves = {"x": (), "source": ("index", "source")}


@operator(inplace=True)
def index_copy(x: Tensor, dim: int, index: Tensor, source: Tensor) -> Any:
    """x with its slices at index replaced by those of source.

    >>> import monograph as mg
    >>> mg.zeros(2, 2).index_copy(0, mg.tensor([1]), mg.ones(1, 2)).tolist()
    [[0.0, 0.0], [1.0, 1.0]]
    """
    if index.dtype is not int64:
        raise ValueError(f"the index must be int64, got {index.dtype.name}")
    if x.ndim == 0:
        _slices_of(x, dim, index, source)
        return build.reshape(source, ())
    region, source = _slices_of(x, dim, index, source)
    return region.write(x, source)


@operator(to=None, method=False, name="index_fill")
def fill_slices(x: Tensor, dim: int, index: Tensor, value: Tensor | Scalar) -> Any:
    """x with its slices at index filled with a number."""
    k = axis_of(x, dim)
    filled = build.as_node(value, x.dtype)
    if x.ndim == 0:
        return filled
    return slices(x, k, integers(index), negative=True).write(x, filled)


@function(method=True, inplace=ANYWHERE)
def index_fill(input: Tensor, dim: int, index: Tensor, value: Any) -> Tensor:
    """x with its slices at index filled with a number.

    >>> import monograph as mg
    >>> mg.zeros(3).index_fill(0, mg.tensor([0, 2]), 4).tolist()
    [4.0, 0.0, 4.0]
    """
    if isinstance(value, Tensor) and value.ndim:
        raise RuntimeError(
            f"index_fill: the value must have no axes, it has the shape {list(value.shape)}"
        )
    if index.dtype is not int64:
        raise IndexError(f"index_fill: the index must be int64, got {index.dtype.name}")
    if isinstance(value, complex) and not input.dtype.name.startswith("complex"):
        raise RuntimeError("index_fill: a complex value for a tensor that is not")
    return fill_slices(input, dim, index, value)


@operator(inplace=True)
def index_reduce(
    x: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True
) -> Any:
    """x with the slices of source combined at index, by prod, mean, amax or amin.

    >>> import monograph as mg
    >>> mg.ones(2).index_reduce(0, mg.tensor([1, 1]), mg.tensor([4.0, 6.0]), "prod").tolist()
    [1.0, 24.0]
    """
    if reduce not in _WAYS[1:]:
        raise ValueError(f"reduce must be one of {', '.join(_WAYS[1:])}, got {reduce!r}")
    region, source = _slices_of(x, dim, index, source)
    return _combined(x, region, source, reduce, include_self)


@index_reduce.derivative
def _(
    g: Any, y: Any, x: Any, dim: int, index: Any, source: Any, reduce: str, include_self: bool
) -> Any:
    region, shaped = _slices_of(x, dim, index, source)
    own, part = _pull(g, y, x, shaped, region, reduce, include_self)
    return own, None, build.reshape(part, source.shape)


index_reduce.operator.saves = _saved("source", 1)


@operator(inplace=True)
def put(x: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Any:
    """x, seen as one line, with source at the indices.

    >>> import monograph as mg
    >>> mg.zeros(2, 2).put(mg.tensor([1, -1]), mg.tensor([5.0, 6.0])).tolist()
    [[0.0, 5.0], [0.0, 6.0]]
    """
    if index.dtype is not int64:
        raise ValueError(f"the index must be int64, got {index.dtype.name}")
    if source.dtype is not x.dtype:
        raise ValueError(f"the source is {source.dtype.name}, the tensor is {x.dtype.name}")
    if source.size != index.size:
        raise ValueError(f"{index.size} indices and {source.size} elements do not match")
    if x.size == 0 and index.size:
        raise IndexError("cannot put elements into an empty tensor")
    line = build.reshape(x, (x.size,))
    region = crossed(line, [build.reshape(index, (index.size,))], (0,))
    values = build.reshape(source, (source.size,))
    if accumulate:
        result = _plus(line, region.combine("add", values, line.shape))
    else:
        result = region.write(line, values)
    return build.reshape(result, x.shape)
