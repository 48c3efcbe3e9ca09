"""The incomplete gamma functions: one integral, by one quadrature, for all arguments.

With v = -log(t / x), or s = t / x - 1, both functions are x**a e**-x / Γ(a) times an integral over
(0, ∞) of a smooth function that decays at least exponentially, once its width is divided out:

    igamma(a, x)  = x**a e**-x / Γ(a) ∫ exp(-a v + x (1 - e**-v)) dv      used up to x = a + 1
    igammac(a, x) = x**a e**-x / Γ(a) ∫ exp((a - 1) log(1 + s) - x s) ds  used beyond

The double exponential rule needs 60 points for 13 digits. Being a sum of smooth terms, it has
derivatives by both arguments.
"""

from __future__ import annotations

import math as numbers
from typing import Any

from ..ir import build
from ..ir.dtypes import float64
from ..tensor import Tensor
from .define import function, operator
from .math import floating, tensors_only
from .special import choose, lgamma, polynomial

f = build.functions
_INF, _NAN = numbers.inf, numbers.nan
_POINTS, _FIRST, _LAST = 60, -3.6, 4.4
_STEP = (_LAST - _FIRST) / (_POINTS - 1)
# log Γ(a) = (a - 1/2) log(a) - a + log(2 π) / 2 + q(1 / a²) / a, from 10 on.
_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156)


def _factor(a: Any, x: Any) -> Any:
    """x**a e**-x / Γ(a); of large a without the difference of large logarithms."""
    large = a >= 10.0
    small_a = build.select(large, 1.0, a)
    direct = small_a * f.log(x) - x - lgamma(small_a)
    large_a = build.select(large, a, 10.0)
    excess = (x - large_a) / large_a
    correction = polynomial(1.0 / (large_a * large_a), _STIRLING) / large_a
    peak = f.log(large_a * (0.5 / numbers.pi)) * 0.5 - correction
    far = large_a * (f.log1p(excess) - excess) + peak
    return f.exp(build.select(large, far, direct))


def _integral(a: Any, x: Any, lower: Any) -> Any:
    """The integral of the module's first lines, the lower one where `lower` holds."""
    slope = build.select(lower, a - x, x - a + 1.0)
    width = f.maximum(slope, 0.0) + f.sqrt(f.maximum(a, 1.0))
    shape = (*a.shape, _POINTS)
    along = build.cast(build.coordinate(shape, len(a.shape)), float64)
    t = along * _STEP + _FIRST
    w = f.exp(t - f.exp(-t))
    weight = w * (f.exp(-t) + 1.0) * _STEP
    column = [build.reshape(part, (*part.shape, 1)) for part in (a, x, width, lower)]
    a, x, width, lower = [build.broadcast_to(part, shape) for part in column]
    v = w / width
    below = -(a * v) - x * f.expm1(-v)
    above = (a - 1.0) * f.log1p(v) - x * v
    terms = f.exp(build.select(lower, below, above)) * weight / width
    return build.reduce("add", terms, (-1,))


def _shares(x: Any, other: Any) -> tuple[Any, Any, Any]:
    """(igamma, igammac, dtype) in float64, for arguments above zero and finite."""
    tensors_only(x=x, other=other)
    dtype = floating(build.const(0, build.common_dtype([x, other]))).dtype
    shape = build.broadcast_shapes(x.shape, other.shape)
    a, z = [build.broadcast_to(build.cast(part, float64), shape) for part in (x, other)]
    regular = getattr(f, "and")(_regular(a), _regular(z))
    a_safe, z_safe = build.select(regular, a, 1.0), build.select(regular, z, 1.0)
    lower = z_safe < a_safe + 1.0
    # igamma(a) = igamma(a + 1) + x**a e**-x / Γ(a + 1): so the integral never has a small a.
    raised = getattr(f, "and")(lower, a_safe < 1.0)
    order = build.select(raised, a_safe + 1.0, a_safe)
    factor = _factor(order, z_safe)
    share = factor * _integral(order, z_safe, lower)
    share = build.select(raised, share + factor / z_safe, share)
    share = build.select(f.gt(share, 1.0), 1.0, share)
    low, high = build.select(lower, share, 1.0 - share), build.select(lower, 1.0 - share, share)
    # The borders: 0, infinity, and what is no argument at all.
    unfit = getattr(f, "or")(_unfit(a), _unfit(z))
    both = getattr(f, "and")(f.eq(a, _INF), f.eq(z, _INF))
    none = getattr(f, "and")(f.eq(a, 0.0), f.eq(z, 0.0))
    unfit = getattr(f, "or")(unfit, getattr(f, "or")(both, none))
    whole = getattr(f, "or")(f.eq(a, 0.0), f.eq(z, _INF))
    low = choose((unfit, _NAN), (regular, low), (whole, 1.0), otherwise=0.0)
    high = choose((unfit, _NAN), (regular, high), (whole, 0.0), otherwise=1.0)
    return low, high, dtype


def _regular(x: Any) -> Any:
    return getattr(f, "and")(x > 0.0, x < _INF)


def _unfit(x: Any) -> Any:
    return getattr(f, "not")(x >= 0.0)


@operator(inplace=True)
def igamma(x: Tensor, other: Tensor) -> Any:
    """The regularised lower incomplete gamma function of a = x and other.

    >>> import monograph as mg
    >>> round(mg.igamma(mg.tensor([4.0]), mg.tensor([3.0])).item(), 4)
    0.3528
    """
    low, _, dtype = _shares(x, other)
    return build.cast(low, dtype)


@operator(inplace=True)
def igammac(x: Tensor, other: Tensor) -> Any:
    """The regularised upper incomplete gamma function of a = x and other.

    >>> import monograph as mg
    >>> round(mg.igammac(mg.tensor([4.0]), mg.tensor([3.0])).item(), 4)
    0.6472
    """
    _, high, dtype = _shares(x, other)
    return build.cast(high, dtype)


function(igamma, name="gammainc", to="special")
function(igammac, name="gammaincc", to="special")
