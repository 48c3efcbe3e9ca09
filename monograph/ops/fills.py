"""Filling a tensor with random numbers in place: `x.uniform_()`, `x.random_()` and others."""

from __future__ import annotations

from typing import Any

from .. import errors
from ..ir import build, dtypes
from ..ir.dtypes import DType, Kind
from ..tensor import Tensor
from . import random
from .define import function
from .draws import _check_bounds, _from, _integers
from .random import Generator


def _require(kept: bool, message: str) -> None:
    if not kept:
        raise errors.OperandError(message)


def _shape(x: Tensor) -> tuple[int, ...]:
    return tuple(x.shape)


def _smooth(x: Tensor, name: str, complex_too: bool = False) -> DType:
    fine = x.dtype.is_floating_point or (complex_too and x.dtype.is_complex)
    if not fine:
        raise NotImplementedError(f"{name} is not implemented for {x.dtype.name}")
    return x.dtype


@function(to=None, method=True)
def uniform_(
    x: Tensor, from_: float = 0.0, to: float = 1.0, *, generator: Generator | None = None,
    **named: Any,
) -> Tensor:  # fmt: skip
    """Fill x with uniform numbers in [from, to)."""
    low, high = float(named.get("from", from_)), float(to)
    _require(
        low <= high,
        f"uniform_ expects to return a [from, to) range, but found from={low} > to={high}",
    )
    dtype = _smooth(x, "uniform_", True)
    made = random.uniform(_shape(x), dtype, *_from(generator), low, high)
    return x._write(made, fresh=True)


@function(to=None, method=True)
def normal_(
    x: Tensor, mean: float = 0.0, std: float = 1.0, *, generator: Generator | None = None
) -> Tensor:
    """Fill x with normally distributed numbers."""
    _require(std >= 0, f"normal expects std >= 0.0, but found std {std}")
    dtype = _smooth(x, "normal_", True)
    centre = complex(mean) if isinstance(mean, complex) else float(mean)
    made = random.normal(_shape(x), dtype, *_from(generator, 2), centre, float(std))
    return x._write(made, fresh=True)


@function(to=None, method=True)
def log_normal_(
    x: Tensor, mean: float = 1.0, std: float = 2.0, *, generator: Generator | None = None
) -> Tensor:
    """Fill x with numbers whose logarithms are normally distributed."""
    _require(std > 0, f"log_normal_ expects std > 0.0, but found std={std}")
    dtype = dtypes.accumulator(_smooth(x, "log_normal_"))
    made = random.normal(_shape(x), dtype, *_from(generator, 2), float(mean), float(std))
    return x._write(made.exp().to(x.dtype), fresh=True)


@function(to=None, method=True)
def exponential_(x: Tensor, lambd: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Fill x with exponentially distributed numbers of that rate."""
    _require(lambd > 0, f"exponential_ expects lambda > 0.0, but found lambda={lambd}")
    dtype = _smooth(x, "exponential_")
    made = random.exponential(_shape(x), dtype, *_from(generator), float(lambd))
    return x._write(made, fresh=True)


@function(to=None, method=True)
def geometric_(x: Tensor, p: float, *, generator: Generator | None = None) -> Tensor:
    """Fill x with the number of trials to the first success at probability p."""
    _require(0 < p < 1, f"geometric_ expects p to be in (0, 1), but got p={p}")
    if x.dtype.is_complex or x.dtype.kind is Kind.BOOL:
        raise NotImplementedError(f"geometric_ is not implemented for {x.dtype.name}")
    made = random.geometric(_shape(x), x.dtype, *_from(generator), float(p))
    return x._write(made, fresh=True)


@function(to=None, method=True)
def cauchy_(
    x: Tensor, median: float = 0.0, sigma: float = 1.0, *, generator: Generator | None = None
) -> Tensor:
    """Fill x with numbers from a Cauchy distribution."""
    _require(sigma > 0, f"cauchy_ expects sigma > 0.0, but found sigma={sigma}")
    dtype = _smooth(x, "cauchy_")
    made = random.cauchy(_shape(x), dtype, *_from(generator), float(median), float(sigma))
    return x._write(made, fresh=True)


@function(to=None, method=True)
def bernoulli_(x: Tensor, p: Any = 0.5, *, generator: Generator | None = None) -> Tensor:
    """Fill x with 1 at probability p (a number or a tensor), else 0."""
    if not isinstance(p, Tensor):
        _require(0 <= p <= 1, f"bernoulli_ expects p to be in [0, 1], but got p={p}")
    chance = p if isinstance(p, Tensor) else float(p)
    made = random.hits(chance, _shape(x), x.dtype, *_from(generator))
    return x._write(made, fresh=True)


@function(to=None, method=True)
def random_(
    x: Tensor, from_: int | None = None, to: int | None = None, *,
    generator: Generator | None = None, **named: Any,
) -> Tensor:  # fmt: skip
    """Fill x with integers in [from, to); with one bound in [0, bound); else with any.

    >>> import monograph as mg
    >>> mg.zeros(2).random_(1).tolist()
    [0.0, 0.0]
    """
    first = named.get("from", from_)
    if first is not None and to is None and "from" not in named:
        first, to = 0, first
    low = 0 if first is None else int(first)
    high = _beyond(x.dtype) if to is None else int(to)
    _check_bounds("random_", low, high, x.dtype)
    return x._write(_integers(_shape(x), low, high, x.dtype, generator), fresh=True)


def _beyond(dtype: DType) -> int:
    """One more than the largest number that `random_` draws for a dtype."""
    if dtype.kind is Kind.BOOL:
        return 2
    if dtype.kind is Kind.INT:
        return int(build.highest(dtype)) + (dtype is not dtypes.int64)
    digits = {dtypes.float16: 11, dtypes.bfloat16: 8, dtypes.float32: 24}
    return 2 ** digits.get(dtype, 53) + 1
