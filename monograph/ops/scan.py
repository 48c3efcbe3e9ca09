"""Running totals along an axis, differences, and integrals by trapezoids."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import errors
from ..ir import build, dtypes, index
from ..ir.dtypes import DType, Kind
from ..ir.node import coordinates
from ..tensor import Tensor
from . import return_types
from .axis import axis_of, first_of_last, take_along, to_last
from .define import function, operator
from .inplace import with_out
from .math import floating
from .shape import cat, narrow

f = build.functions


def _summable(x: Any, dtype: DType | None) -> Any:
    """x in the dtype in which it is added up: integers in int64."""
    return build.cast(x, dtype or (dtypes.int64 if x.dtype.kind < Kind.FLOAT else x.dtype))


def _from_last(x: Any, dim: int) -> int:
    """The axis meant by `dim`, counted from the last."""
    axis: int = axis_of(x, dim) - x.ndim
    return axis


def _along(x: Any, dim: int, function: Callable[[Any, int], Any]) -> Any:
    """A function of an array and an axis; a number has one of size 1."""
    if x.ndim:
        return function(x, _from_last(x, dim))
    axis_of(x, dim)
    return build.reshape(function(build.reshape(x, (1,)), -1), ())


def _scanned(function: str, x: Any, *options: Any) -> Any:
    """A running total along an axis, counted from the last; 16-bit floats in float32."""
    wide = build.cast(x, dtypes.accumulator(x.dtype))
    return build.cast(build.call(function, wide, options=options), x.dtype)


# --- along one axis, which counts from the last: -1, -2, … ----------------------------------------


@operator(to=None, method=False)
def running_sum(x: Tensor, axis: int = -1, reverse: bool = False) -> Any:
    """out[…, i] = x[…, 0] + … + x[…, i]; in reverse, x[…, i] + … + x[…, -1]."""
    return _scanned("scan_add", x, axis, reverse)


@running_sum.derivative
def _(g: Any, y: Any, x: Any, axis: int = -1, reverse: bool = False) -> Any:
    return (running_sum(g, axis, not reverse),)


@operator(to=None, method=False)
def running_product(x: Tensor, axis: int = -1) -> Any:
    """out[…, i] = x[…, 0] · … · x[…, i]."""
    return _scanned("scan_mul", x, axis)


@operator(to=None, method=False)
def running_logsumexp(x: Tensor, axis: int = -1) -> Any:
    """out[…, i] = log(exp x[…, 0] + … + exp x[…, i])."""
    return _scanned("scan_logaddexp", x, axis)


@running_product.derivative
def _(g: Any, y: Any, x: Any, axis: int = -1) -> Any:
    """No division, so zeros do no harm."""
    return (_asked(g, x, axis, False) * f.conj(_shifted(y, 1, 1.0, axis)),)


@operator(to=None, method=False)
def running_linear(x: Tensor, factor: Tensor, axis: int = -1, reverse: bool = False) -> Any:
    """out[…, i] = factor[…, i] · out[…, i - 1] + x[…, i]; out[…, 0] = x[…, 0].

    In reverse it is factor[…, i] · out[…, i + 1] + x[…, i], from the last on.
    """
    wide = [build.cast(a, dtypes.accumulator(a.dtype)) for a in (x, factor)]
    return build.cast(build.call("scan_linear", *wide, options=(axis, reverse)), x.dtype)


@running_linear.derivative
def _(g: Any, y: Any, x: Any, factor: Any, axis: int = -1, reverse: bool = False) -> Any:
    h = _asked(g, factor, axis, reverse)
    return h, h * f.conj(_shifted(y, -1 if reverse else 1, 0.0, axis))


def _asked(g: Any, factor: Any, axis: int, reverse: bool) -> Any:
    """h[i] = g[i] + factor[i + 1] · h[i + 1]: what a result and all later ones ask of x[i]."""
    later = f.conj(_shifted(factor, 1 if reverse else -1, 0.0, axis))
    return running_linear(g, later, axis, not reverse)


@running_logsumexp.derivative
def _(g: Any, y: Any, x: Any, axis: int = -1) -> Any:
    """The sum of g[j] exp(x[i] - y[j]) over j >= i; as a recurrence, it has no power above 1.

    Behind the last there is infinity: its share is 0, and so are all derivatives of that.
    """
    share = f.conj(_exp_apart(y, _shifted(y, -1, float("inf"), axis)))
    return (running_linear(g, share, axis, True) * f.conj(_exp_apart(x, y)),)


def _exp_apart(a: Any, b: Any) -> Any:
    """exp(a - b), and 1 of equal infinities, which have no difference."""
    same = getattr(f, "and")(f.eq(a, b), f.eq(f.abs(a), float("inf")))
    return f.exp(build.select(same, 0.0, a - b))


def _shifted(rows: Any, by: int, fill: float, axis: int) -> Any:
    """Each row along the axis moved `by` places on, with `fill` moving in."""
    places: list[Any] = list(coordinates(rows.shape))
    places[axis] = place = places[axis] - by
    return build.reindex(rows, rows.shape, places, index.within(place, rows.shape[axis]), fill)


# --- what users call ----------------------------------------------------------------------------


@operator(inplace=True)
def cumsum(x: Tensor, dim: int, dtype: DType | None = None) -> Any:
    """The running sum along dim; integers add up in int64.

    >>> import monograph as mg
    >>> mg.cumsum(mg.tensor([1.0, 2.0, 3.0]), 0).tolist()
    [1.0, 3.0, 6.0]
    """
    return _along(_summable(x, dtype), dim, running_sum)


@operator(inplace=True)
def cumprod(x: Tensor, dim: int, dtype: DType | None = None) -> Any:
    """The running product along dim; integers multiply in int64.

    >>> import monograph as mg
    >>> mg.cumprod(mg.tensor([1, 2, 3]), 0).tolist()
    [1, 2, 6]
    """
    return _along(_summable(x, dtype), dim, running_product)


cumprod.operator.saves = {"x": ("x", "result")}


@operator
def logcumsumexp(x: Tensor, dim: int) -> Any:
    """The logarithm of the running sum of exp(x) along dim, without overflow.

    >>> import monograph as mg
    >>> mg.logcumsumexp(mg.tensor([100.0, 100.0]), 0)
    tensor([100.0000, 100.6931])
    """
    return _along(floating(x), dim, running_logsumexp)


logcumsumexp.operator.saves = {"x": ("x", "result")}


@operator(to=None, method=False)
def running_extreme(x: Tensor, dim: int, which: str) -> Any:
    """(values, indices) of the largest or smallest so far, the latest of equal ones."""
    if x.ndim == 0:
        values, where = running_extreme(build.reshape(x, (1,)), dim, which)
        return build.reshape(values, ()), build.reshape(where, ())
    axis = _from_last(x, dim)
    wide = build.cast(x, dtypes.accumulator(x.dtype))
    where = build.call(f"scan_{which}", wide, options=(axis,))
    return take_along(x, where, axis), where


running_extreme.operator.selects = True


running_extreme.operator.saves = {"x": ("x", "order")}


@function(method=True)
@with_out
def cummax(input: Tensor, dim: int) -> Any:
    """(values, indices) of the largest elements so far along dim.

    >>> import monograph as mg
    >>> mg.cummax(mg.tensor([1, 3, 2]), 0).values.tolist()
    [1, 3, 3]
    """
    return return_types.cummax(running_extreme(input, dim, "argmax"))


@function(method=True)
@with_out
def cummin(input: Tensor, dim: int) -> Any:
    """(values, indices) of the smallest elements so far along dim.

    >>> import monograph as mg
    >>> mg.cummin(mg.tensor([3, 1, 2]), 0).indices.tolist()
    [0, 1, 1]
    """
    return return_types.cummin(running_extreme(input, dim, "argmin"))


# --- differences and integrals ------------------------------------------------------------------


@operator(to=None, method=False)
def difference(x: Tensor, dim: int) -> Any:
    """x[i + 1] - x[i] along dim; of booleans, whether they differ."""
    rows, back = to_last(x, dim)
    length = max(rows.shape[-1] - 1, 0)
    if length == 0:
        return back(first_of_last(rows, 0, 0))
    low, high = first_of_last(rows, 0, length), first_of_last(rows, 1, length)
    return back(f.ne(high, low) if x.dtype is dtypes.bool_ else high - low)


difference.operator.lies = "operand"


@function(method=True)
@with_out
def diff(
    input: Tensor, n: int = 1, dim: int = -1, prepend: Tensor | None = None,
    append: Tensor | None = None,
) -> Any:  # fmt: skip
    """The n-th difference of neighbours along dim.

    >>> import monograph as mg
    >>> mg.diff(mg.tensor([1, 4, 9])).tolist()
    [3, 5]
    """
    if input.ndim == 0:
        raise errors.OperandError("diff expects input to be at least one-dimensional")
    if n < 0:
        raise errors.OperandError(f"order must be non-negative but got {n}")
    parts = [part for part in (prepend, input, append) if part is not None]
    result = cat(parts, dim) if len(parts) > 1 and n else input
    for _ in range(min(n, result.shape[dim])):
        result = difference(result, dim)
    return result if n else result.clone()


@operator(to=None, method=False)
def trapezoids(y: Tensor, x: Tensor | None, dim: int) -> Any:
    """Twice the area between neighbours: the sum of heights, times the width if there are x."""
    k = axis_of(y, dim)
    length = max(y.shape[k] - 1, 0)
    low, high = narrow(y, k, 0, length), narrow(y, k, min(1, y.shape[k]), length)
    if x is None:
        return low + high
    if x.ndim == 1 and y.ndim > 1:
        x = build.reshape(x, (x.shape[0], *[1] * (y.ndim - 1 - k)))
    along = x.ndim - (y.ndim - k)
    if along < 0 or x.shape[along] != y.shape[k]:
        raise ValueError("there must be one x value for each sample point")
    width = narrow(x, along, min(1, y.shape[k]), length) - narrow(x, along, 0, length)
    return (low + high) * width


def _width(x: Tensor | None, dx: Any, name: str) -> float:
    """By what the sums are multiplied: half of the distance between points, if that is one."""
    if x is not None and dx is not None:
        raise errors.OperandError(f"{name}: takes x or dx, not both")
    return 0.5 if dx is None else float(dx) / 2


@function(aliases=("trapz",))
def trapezoid(y: Tensor, x: Tensor | None = None, *, dx: Any = None, dim: int = -1) -> Any:
    """The integral of y along dim, by trapezoids of width dx or between the points x.

    >>> import monograph as mg
    >>> mg.trapezoid(mg.tensor([1.0, 5.0, 10.0])).item()
    10.5
    """
    width = _width(x, dx, "trapezoid")
    return trapezoids(y, x, dim).sum(dim) * width


@function
def cumulative_trapezoid(
    y: Tensor, x: Tensor | None = None, *, dx: Any = None, dim: int = -1
) -> Any:
    """The running integral of y along dim, by trapezoids.

    >>> import monograph as mg
    >>> mg.cumulative_trapezoid(mg.tensor([1.0, 5.0, 10.0])).tolist()
    [3.0, 10.5]
    """
    width = _width(x, dx, "cumulative_trapezoid")
    return cumsum(trapezoids(y, x, dim), dim) * width
