"""Reductions: sum, mean, variance, extremes and what is made of them."""

from __future__ import annotations

from typing import Any

from ..ir import build, dtypes
from ..ir.dtypes import DType
from ..ir.extent import real
from ..tensor import Tensor
from .define import Tensors, function, operator

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


@operator
def sum(x: Tensor, dim: Any = None, keepdim: bool = False, dtype: DType | None = None) -> Any:
    """The sum over dim; integers and booleans add up in int64."""
    target = dtype or (x.dtype if x.dtype.is_smooth else dtypes.int64)
    return build.reduce("add", build.cast(x, target), axes_of(x, dim), keepdim)


@operator
def mean(x: Tensor, dim: Any = None, keepdim: bool = False, dtype: DType | None = None) -> Any:
    """The mean over dim."""
    if dtype is not None:
        x = build.cast(x, dtype)
    if not x.dtype.is_smooth:
        raise ValueError(f"mean needs a floating point or complex dtype, got {x.dtype.name}")
    axes = axes_of(x, dim)
    number = count(x, axes)
    scale = 1.0 / number if number else float("nan")
    return build.reduce("add", x, axes, keepdim) * scale


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
def var(x: Tensor, dim: Any = None, correction: float = 1, keepdim: bool = False) -> Any:
    """The variance over dim, divided by n - correction."""
    axes = axes_of(x, dim)
    number = count(x, axes)
    centred = x - mean(x, axes, True)
    freedom = max(number - correction, 0)
    return build.reduce("add", squared(centred), axes, keepdim) / real(freedom)


@operator
def std(x: Tensor, dim: Any = None, correction: float = 1, keepdim: bool = False) -> Any:
    """The standard deviation over dim."""
    return root(var(x, dim, correction, keepdim))


@operator
def prod(x: Tensor, dim: Any = None, keepdim: bool = False) -> Any:
    """The product over dim."""
    target = x.dtype if x.dtype.is_smooth else dtypes.int64
    return build.reduce("mul", build.cast(x, target), axes_of(x, dim), keepdim)


prod.operator.saves = {"x": ("x", "result")}


def _filled_axes(x: Any, dim: Any) -> tuple[int, ...]:
    """The axes meant by `dim`, over which there is at least one element."""
    axes = axes_of(x, dim)
    if count(x, axes) == 0:
        raise IndexError("there is no extreme of no elements: a reduced axis has size 0")
    return axes


@operator
def amax(x: Tensor, dim: Any = None, keepdim: bool = False) -> Any:
    """The largest element over dim; equal ones share the derivative."""
    return build.reduce("max", x, _filled_axes(x, dim), keepdim)


@operator
def amin(x: Tensor, dim: Any = None, keepdim: bool = False) -> Any:
    """The smallest element over dim; equal ones share the derivative."""
    return build.reduce("min", x, _filled_axes(x, dim), keepdim)


def _shared(g: Any, y: Any, x: Any, dim: Any, keepdim: bool) -> tuple[Any]:
    axes = axes_of(x, dim)
    if not keepdim:
        g, y = build.expand_dims(g, axes), build.expand_dims(y, axes)
    ties = build.cast(f.eq(x, y), x.dtype)
    return (g * ties / build.reduce("add", ties, axes, True),)


amax.derivative(_shared)
amin.derivative(_shared)


@operator
def argmax(x: Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
    """The position of the first largest element along dim, or in the flattened tensor."""
    return build.reduce("argmax", x, _filled_axes(x, dim), keepdim)


@operator
def argmin(x: Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
    """The position of the first smallest element along dim, or in the flattened tensor."""
    return build.reduce("argmin", x, _filled_axes(x, dim), keepdim)


@operator(to=None, name="max", method=False)
def max_with_index(x: Tensor, dim: int, keepdim: bool = False) -> Any:
    """(values, indices) of the largest elements along dim."""
    axes = _filled_axes(x, dim)
    return build.reduce("max", x, axes, keepdim), build.reduce("argmax", x, axes, keepdim)


@operator(to=None, name="min", method=False)
def min_with_index(x: Tensor, dim: int, keepdim: bool = False) -> Any:
    """(values, indices) of the smallest elements along dim."""
    axes = _filled_axes(x, dim)
    return build.reduce("min", x, axes, keepdim), build.reduce("argmin", x, axes, keepdim)


@operator
def any(x: Tensor, dim: Any = None, keepdim: bool = False) -> Any:
    """Whether some element over dim is non-zero."""
    return build.reduce("or", build.cast(x, dtypes.bool_), axes_of(x, dim), keepdim)


@operator
def all(x: Tensor, dim: Any = None, keepdim: bool = False) -> Any:
    """Whether every element over dim is non-zero."""
    return build.reduce("and", build.cast(x, dtypes.bool_), axes_of(x, dim), keepdim)


@operator
def logsumexp(x: Tensor, dim: Any, keepdim: bool = False) -> Any:
    """log Σ exp(x) over dim, without overflow."""
    axes = axes_of(x, dim)
    top = build.apply("detach", build.reduce("max", f.real(x), axes, True))
    top = build.select(f.eq(f.abs(top), float("inf")), 0.0, top)
    total = f.log(build.reduce("add", f.exp(x - top), axes, True)) + top
    return total if keepdim else build.reshape(total, build.reduce("add", x, axes).shape)


logsumexp.operator.saves = {"x": ("x", "result")}


@operator(to=None, method=False)
def global_norm(tensors: Tensors) -> Any:
    """The 2-norm of all elements of all tensors."""
    total: Any = None
    for x in tensors:
        part = build.reduce("add", squared(x), tuple(range(x.ndim)))
        total = part if total is None else total + part
    return root(total)


@function(name="max", method=True)
def maximum_of(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
    """The largest element, or (values, indices) along dim."""
    return amax(input) if dim is None else max_with_index(input, dim, keepdim)


@function(name="min", method=True)
def minimum_of(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
    """The smallest element, or (values, indices) along dim."""
    return amin(input) if dim is None else min_with_index(input, dim, keepdim)


@function(method=True)
def norm(input: Tensor) -> Tensor:
    """The 2-norm of all elements."""
    return global_norm([input])
