"""Reductions: sums, products, extremes and what is made of them. Spread: see `moments.py`."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from .. import errors
from ..ir import build, dtypes, index
from ..ir.dtypes import DType
from ..ir.node import axis
from ..tensor import Tensor
from . import return_types
from .define import Tensors, function, operator
from .inplace import into, with_out
from .math import floating, maximum, minimum

f = build.functions


def axes_of(x: Any, dim: Any) -> tuple[int, ...]:
    """The axes meant by `dim`: all for None, one, or several; negative ones from the end."""
    if dim is None or dim == ():
        return tuple(range(x.ndim))
    listed = (dim,) if isinstance(dim, int) else tuple(dim)
    rank = max(x.ndim, 1)
    for k in listed:
        if not -rank <= k < rank:
            raise IndexError(f"dimension {k} is out of range for a tensor of {x.ndim} dimensions")
    found = tuple(k % rank for k in listed)
    if len(set(found)) != len(found):
        raise ValueError(f"dim {dim} names an axis twice")
    return found if x.ndim else ()


def count(x: Any, axes: tuple[int, ...]) -> int:
    """How many elements are reduced into one."""
    result = 1
    for k in axes:
        result *= x.shape[k]
    return result


_OTHER_NAMES = {"axis": "dim", "keepdims": "keepdim"}


def numpy_names(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with NumPy's names for `dim` and `keepdim` as well, which operators have."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if kwargs:
            kwargs = {_OTHER_NAMES.get(name, name): given for name, given in kwargs.items()}
        return function(*args, **kwargs)

    call.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
    return call


_MANY = 1 << 17  # so many numbers are not added up one after the other
_FEW = 1 << 9  # so many are
_BLOCK = 256
_SHORT = (dtypes.float32, dtypes.complex64)  # dtypes whose rounding shows in long sums


def total(x: Any, axes: tuple[int, ...], keepdim: bool = False) -> Any:
    """The sum over axes; of truth values, whether one is true.

    Long sums are sums of blocks' sums, so that rounding errors do not pile up. A sum over
    everything is one by itself: threads add up their own parts.
    """
    if x.dtype is dtypes.bool_:
        return build.reduce("or", x, axes, keepdim)
    number = count(x, axes)
    few = not isinstance(number, int) or number < _MANY  # a size that varies is not looked at
    if few or x.size == number or x.dtype not in _SHORT:
        return build.reduce("add", x, axes, keepdim)
    while count(x, axes) > _FEW:
        x = _block_sums(x, axes)
    result = build.reduce("add", x, axes)
    return build.expand_dims(result, axes) if keepdim else result


def _block_sums(x: Any, axes: tuple[int, ...]) -> Any:
    """x with the longest of the axes cut into blocks, each of them added up."""
    longest = max(axes, key=lambda k: x.shape[k])
    extent = x.shape[longest]
    block = next((n for n in range(_BLOCK, _BLOCK // 4, -1) if extent % n == 0), _BLOCK)
    blocks = -(-extent // block)
    shape = (*x.shape[:longest], blocks, block, *x.shape[longest + 1 :])
    where: list[Any] = [axis(k + (k > longest), e) for k, e in enumerate(x.shape)]
    where[longest] = place = axis(longest, blocks) * block + axis(longest + 1, block)
    parts = build.reindex(x, shape, where, index.within(place, extent))
    return build.reduce("add", parts, (longest + 1,))


@operator
def sum(x: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: DType | None = None) -> Any:
    """The sum over dim; integers and booleans add up in int64.

    >>> import monograph as mg
    >>> mg.sum(mg.tensor([[1, 2], [3, 4]]), 0).tolist()
    [4, 6]
    """
    target = dtype or (x.dtype if x.dtype.is_smooth else dtypes.int64)
    return total(build.cast(x, target), axes_of(x, dim), keepdim)


@operator
def nansum(x: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: DType | None = None) -> Any:
    """The sum over dim of what is not NaN.

    >>> import monograph as mg
    >>> mg.nansum(mg.tensor([1.0, float("nan"), 2.0])).item()
    3.0
    """
    if x.dtype.is_complex:
        raise ValueError("nansum does not take complex numbers")
    return sum(build.select(f.ne(x, x), 0, x), dim, keepdim, dtype=dtype)


nansum.operator.selects = True


@operator
def mean(x: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: DType | None = None) -> Any:
    """The mean over dim.

    >>> import monograph as mg
    >>> mg.mean(mg.tensor([1.0, 2.0, 6.0])).item()
    3.0
    """
    if dtype is not None:
        x = build.cast(x, dtype)
    if not x.dtype.is_smooth:
        raise ValueError(f"mean needs a floating point or complex dtype, got {x.dtype.name}")
    axes = axes_of(x, dim)
    number = count(x, axes)
    scale = 1.0 / number if number else float("nan")
    return total(x, axes, keepdim) * scale


@operator
def nanmean(
    x: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: DType | None = None
) -> Any:
    """The mean over dim of what is not NaN.

    >>> import monograph as mg
    >>> mg.nanmean(mg.tensor([1.0, float("nan"), 2.0])).item()
    1.5
    """
    if not x.dtype.is_smooth:
        raise ValueError(f"nanmean needs a floating point or complex dtype, got {x.dtype.name}")
    number = sum(build.cast(f.eq(x, x), x.dtype), dim, keepdim)
    return nansum(x, dim, keepdim, dtype=dtype) / build.apply("detach", number)


nanmean.operator.selects = True


def squared(x: Any) -> Any:
    """|x|²."""
    if not x.dtype.is_complex:
        return x * x
    real, imag = f.real(x), f.imag(x)
    return real * real + imag * imag


@operator(to=None, method=False)
def root(x: Tensor) -> Any:
    """The square root, with derivative 0 at 0: where equal numbers have no spread or length."""
    return f.sqrt(x)


@root.derivative
def _(g: Any, y: Any, x: Any) -> Any:
    return (build.select(f.eq(y, 0.0), 0.0, g / (y * 2.0)),)


@operator
def prod(
    x: Tensor, dim: int | None = None, keepdim: bool = False, *, dtype: DType | None = None
) -> Any:
    """The product over dim; of integers and booleans in int64.

    >>> import monograph as mg
    >>> mg.prod(mg.tensor([2, 3, 4])).item()
    24
    """
    if isinstance(dim, tuple):
        raise TypeError("dim must be one axis, not several")
    target = dtype or (x.dtype if x.dtype.is_smooth else dtypes.int64)
    combine = "and" if target is dtypes.bool_ else "mul"
    return build.reduce(combine, build.cast(x, target), axes_of(x, dim), keepdim)


prod.operator.saves = {"x": ("x", "result")}


# --- extremes -----------------------------------------------------------------------------------


def _filled_axes(x: Any, dim: Any) -> tuple[int, ...]:
    """The axes meant by `dim`, over which there is at least one element."""
    axes = axes_of(x, dim)
    if count(x, axes) == 0:
        raise IndexError("there is no extreme of no elements: a reduced axis has size 0")
    return axes


@operator
def amax(x: Tensor, dim: Any = None, keepdim: bool = False) -> Any:
    """The largest element over dim; equal ones share the derivative.

    >>> import monograph as mg
    >>> mg.amax(mg.tensor([[1, 5], [7, 3]]), 1).tolist()
    [5, 7]
    """
    return build.reduce("max", x, _filled_axes(x, dim), keepdim)


amax.operator.selects = True


@operator
def amin(x: Tensor, dim: Any = None, keepdim: bool = False) -> Any:
    """The smallest element over dim; equal ones share the derivative.

    >>> import monograph as mg
    >>> mg.amin(mg.tensor([[1, 5], [7, 3]]), 1).tolist()
    [1, 3]
    """
    return build.reduce("min", x, _filled_axes(x, dim), keepdim)


amin.operator.selects = True


def _shared(g: Any, y: Any, x: Any, dim: Any, keepdim: bool) -> tuple[Any]:
    axes = axes_of(x, dim)
    if not keepdim:
        g, y = build.expand_dims(g, axes), build.expand_dims(y, axes)
    ties = build.cast(f.eq(x, y), x.dtype)
    return (g * ties / build.reduce("add", ties, axes, True),)


amax.derivative(_shared)
amin.derivative(_shared)


@function(method=True)
@numpy_names
def aminmax(
    input: Tensor, *, dim: int | None = None, keepdim: bool = False, out: Any = None
) -> Any:
    """(min, max): the smallest and the largest element, of all or along dim.

    >>> import monograph as mg
    >>> low, high = mg.aminmax(mg.tensor([3.0, 1.0, 2.0]))
    >>> low.item(), high.item()
    (1.0, 3.0)
    """
    if dim is None:
        _require_elements(input, "aminmax")
    result = return_types.aminmax(amin(input, dim, keepdim), amax(input, dim, keepdim))
    if out is None:
        return result
    for target in out:
        if target.dtype is not input.dtype:
            raise errors.OperandError(
                f"aminmax: out must have dtype {input.dtype.name}, got {target.dtype.name}"
            )
    return into(out, result)


def _tensor(x: Any) -> Any:
    if not isinstance(x, Tensor):
        raise TypeError(f"input must be a Tensor, not {type(x).__name__}")
    return x


def _require_elements(x: Tensor, name: str) -> None:
    if x.numel() == 0:
        raise errors.OperandError(
            f"{name}: the input {list(x.shape)} has no elements: say the dim to reduce over"
        )


@operator(smooth=False)
def argmax(x: Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
    """The position of the first largest element along dim, or in the flattened tensor.

    >>> import monograph as mg
    >>> mg.argmax(mg.tensor([[1, 5], [7, 3]]), 1).tolist()
    [1, 0]
    """
    return build.reduce("argmax", x, _filled_axes(x, _one_axis(dim)), keepdim)


@operator(smooth=False)
def argmin(x: Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
    """The position of the first smallest element along dim, or in the flattened tensor.

    >>> import monograph as mg
    >>> mg.argmin(mg.tensor([[1, 5], [7, 3]]), 1).tolist()
    [0, 1]
    """
    return build.reduce("argmin", x, _filled_axes(x, _one_axis(dim)), keepdim)


def _one_axis(dim: Any) -> int | None:
    if dim is not None and not isinstance(dim, int):
        raise TypeError(f"dim must be an int, not {type(dim).__name__}")
    return dim


@operator(to=None, name="max", method=False)
def max_with_index(x: Tensor, dim: int, keepdim: bool = False) -> Any:
    """(values, indices) of the largest elements along dim."""
    axes = _filled_axes(x, _one_axis(dim))
    return build.reduce("max", x, axes, keepdim), build.reduce("argmax", x, axes, keepdim)


max_with_index.operator.selects = True
max_with_index.operator.saves = {"x": ("order",)}  # the indices


@operator(to=None, name="min", method=False)
def min_with_index(x: Tensor, dim: int, keepdim: bool = False) -> Any:
    """(values, indices) of the smallest elements along dim."""
    axes = _filled_axes(x, _one_axis(dim))
    return build.reduce("min", x, axes, keepdim), build.reduce("argmin", x, axes, keepdim)


min_with_index.operator.selects = True
min_with_index.operator.saves = {"x": ("order",)}


@function(name="max", method=True)
@with_out
@numpy_names
def maximum_of(
    input: Tensor, dim: Any = None, keepdim: bool = False, *, other: Tensor | None = None
) -> Any:
    """The largest element, (values, indices) along dim, or with a second tensor the larger of each.

    >>> import monograph as mg
    >>> mg.max(mg.tensor([[1, 5], [7, 3]]), 1).indices.tolist()
    [1, 0]
    """
    if other is not None or isinstance(dim, Tensor):
        return maximum(_tensor(input), dim if other is None else other)
    if dim is None:
        _require_elements(input, "max")
        return amax(input)
    return return_types.max(*max_with_index(input, dim, keepdim))


@function(name="min", method=True)
@with_out
@numpy_names
def minimum_of(
    input: Tensor, dim: Any = None, keepdim: bool = False, *, other: Tensor | None = None
) -> Any:
    """The smallest element, (values, indices) along dim, or of two tensors the smaller of each.

    >>> import monograph as mg
    >>> mg.min(mg.tensor([[1, 5], [7, 3]]), 1).values.tolist()
    [1, 3]
    """
    if other is not None or isinstance(dim, Tensor):
        return minimum(_tensor(input), dim if other is None else other)
    if dim is None:
        _require_elements(input, "min")
        return amin(input)
    return return_types.min(*min_with_index(input, dim, keepdim))


# --- truth --------------------------------------------------------------------------------------


def _truth(combine: str, x: Any, dim: Any, keepdim: bool) -> Any:
    """Of bytes the answer is a byte, else a truth value; an empty list of axes means none."""
    axes = () if dim == () else axes_of(x, dim)
    answer = build.reduce(combine, build.cast(x, dtypes.bool_), axes, keepdim)
    return build.cast(answer, dtypes.uint8) if x.dtype is dtypes.uint8 else answer


@operator(smooth=False)
def any(x: Tensor, dim: Any = None, keepdim: bool = False) -> Any:
    """Whether some element over dim is non-zero.

    >>> import monograph as mg
    >>> mg.any(mg.tensor([[0, 1], [0, 0]]), 1).tolist()
    [True, False]
    """
    return _truth("or", x, dim, keepdim)


@operator(smooth=False)
def all(x: Tensor, dim: Any = None, keepdim: bool = False) -> Any:
    """Whether every element over dim is non-zero.

    >>> import monograph as mg
    >>> mg.all(mg.tensor([[0, 1], [2, 3]]), 1).tolist()
    [False, True]
    """
    return _truth("and", x, dim, keepdim)


@operator(smooth=False)
def count_nonzero(x: Tensor, dim: Any = None) -> Any:
    """How many elements over dim are not 0.

    >>> import monograph as mg
    >>> mg.count_nonzero(mg.tensor([0.0, 2.0, -1.0])).item()
    2
    """
    truth = build.cast(build.cast(x, dtypes.bool_), dtypes.int64)
    return build.reduce("add", truth, axes_of(x, dim))


# --- and more -----------------------------------------------------------------------------------


@operator(to=("", "special"))
def logsumexp(x: Tensor, dim: Any, keepdim: bool = False) -> Any:
    """log Σ exp(x) over dim, without overflow.

    >>> import monograph as mg
    >>> mg.logsumexp(mg.tensor([1000.0, -1000.0]), 0).item()
    1000.0
    """
    x = floating(x)
    axes = axes_of(x, dim)
    top = build.apply("detach", build.reduce("max", f.real(x), axes, True))
    top = build.select(f.eq(f.abs(top), float("inf")), 0.0, top)
    result = f.log(build.reduce("add", f.exp(x - top), axes, True)) + top
    return result if keepdim else build.reshape(result, build.reduce("add", x, axes).shape)


logsumexp.operator.saves = {"x": ("x", "result")}


@operator(to=None, method=False)
def global_norm(tensors: Tensors) -> Any:
    """The 2-norm of all elements of all tensors."""
    whole: Any = None
    for x in tensors:
        part = build.reduce("add", squared(x), tuple(range(x.ndim)))
        whole = part if whole is None else whole + part
    return root(whole)


@operator(to=None, method=False)
def summed_to(x: Tensor, size: tuple[int, ...]) -> Any:
    """x with what was repeated to get from `size` to its shape added up."""
    lead = x.ndim - len(size)
    fits = lead >= 0 and [n for n, e in zip(size, x.shape[lead:], strict=True) if n not in (1, e)]
    if lead < 0 or fits:
        raise ValueError(f"size {list(size)} is not expandable to size {list(x.shape)}")
    axes = [k for k, e in enumerate(x.shape) if k < lead or size[k - lead] != e]
    return build.reshape(sum(x, tuple(axes)), size) if axes or not size else x


@function(to=None, method=True)
def sum_to_size(input: Tensor, *size: Any) -> Tensor:
    """The sum over the axes along which a tensor of this size would be repeated to fit.

    >>> import monograph as mg
    >>> mg.ones(2, 3).sum_to_size(1, 3).tolist()
    [[2.0, 2.0, 2.0]]
    """
    given = size[0] if len(size) == 1 and not isinstance(size[0], int) else size
    result: Tensor = summed_to(input, tuple(given))
    return result
