"""New tensors: of one number, of a range, of random numbers."""

from __future__ import annotations

from typing import Any

from .. import errors
from ..ir import dtypes
from ..ir.dtypes import DType
from ..tensor import Tensor
from . import random, shape
from .define import function
from .random import Generator, default_generator
from .views import sizes_of


@function
def full_like(x: Tensor, value: float, dtype: DType | None = None) -> Tensor:
    """`value` everywhere, in the shape of x."""
    return full(tuple(x.shape), value, dtype=dtype or x.dtype)


@function
def full(
    size: Any, value: float, dtype: DType | None = None, requires_grad: bool = False
) -> Tensor:
    """`value` everywhere.

    >>> import monograph as mg
    >>> mg.full((2,), 7).tolist()
    [7, 7]
    """
    sizes = (size,) if isinstance(size, int) else tuple(size)
    made: Tensor = shape.full_of(sizes, value, dtype or dtypes.of_number(type(value)))
    return made.requires_grad_() if requires_grad else made


@function
def zeros(*size: Any, dtype: DType | None = None, requires_grad: bool = False) -> Tensor:
    """Zeros of that size."""
    return full(sizes_of(size), 0.0, dtype, requires_grad)


@function
def ones(*size: Any, dtype: DType | None = None, requires_grad: bool = False) -> Tensor:
    """Ones of that size."""
    return full(sizes_of(size), 1.0, dtype, requires_grad)


@function
def zeros_like(x: Tensor, dtype: DType | None = None) -> Tensor:
    """Zeros in the shape of x."""
    return full_like(x, 0, dtype)


@function
def ones_like(x: Tensor, dtype: DType | None = None) -> Tensor:
    """Ones in the shape of x."""
    return full_like(x, 1, dtype)


@function
def arange(start: float, end: float | None = None, step: float = 1, dtype: Any = None) -> Tensor:
    """start, start + step, … below end.

    >>> import monograph as mg
    >>> mg.arange(3).tolist()
    [0, 1, 2]
    """
    if end is None:
        start, end = 0, start
    kind = float if any(isinstance(v, float) for v in (start, end, step)) else int
    length = -int((start - end) // step) if step else 0
    if step == 0:
        raise errors.OperandError("arange: step must not be zero")
    result: Tensor = shape.arange_of(
        length if length > 0 else 0, kind(start), kind(step), dtype or dtypes.of_number(kind)
    )
    return result


@function
def manual_seed(seed: int) -> Generator:
    """Start all random sequences from `seed`.

    >>> import monograph as mg
    >>> a = (mg.manual_seed(0), mg.rand(2))[1].tolist()
    >>> a == (mg.manual_seed(0), mg.rand(2))[1].tolist()
    True
    """
    from ..data.randomness import seed_shuffling

    seed_shuffling(seed)
    return default_generator.manual_seed(seed)


@function
def rand(
    *size: Any, dtype: DType | None = None, generator: Generator | None = None,
    requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """Uniform numbers in [0, 1)."""
    chosen = dtype or dtypes.get_default_dtype()
    seed, offset = (generator or default_generator).draw()
    made: Tensor = random.uniform(sizes_of(size), chosen, seed, offset, 0.0, 1.0)
    return made.requires_grad_() if requires_grad else made


@function
def randn(
    *size: Any, dtype: DType | None = None, generator: Generator | None = None,
    requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """Normally distributed numbers."""
    chosen = dtype or dtypes.get_default_dtype()
    seed, offset = (generator or default_generator).draw(2)
    made: Tensor = random.normal(sizes_of(size), chosen, seed, offset, 0.0, 1.0)
    return made.requires_grad_() if requires_grad else made


@function
def rand_like(x: Tensor) -> Tensor:
    """Uniform numbers in the shape of x."""
    return rand(*x.shape, dtype=x.dtype)


@function
def randn_like(x: Tensor) -> Tensor:
    """Normally distributed numbers in the shape of x."""
    return randn(*x.shape, dtype=x.dtype)


@function(to=None, method=True)
def uniform_(x: Tensor, low: float = 0.0, high: float = 1.0) -> Tensor:
    """Fill x with uniform numbers in [low, high)."""
    seed, offset = default_generator.draw()
    return x._write(random.uniform(tuple(x.shape), x.dtype, seed, offset, float(low), float(high)))


@function(to=None, method=True)
def normal_(x: Tensor, mean: float = 0.0, std: float = 1.0) -> Tensor:
    """Fill x with normally distributed numbers."""
    seed, offset = default_generator.draw(2)
    return x._write(random.normal(tuple(x.shape), x.dtype, seed, offset, float(mean), float(std)))
