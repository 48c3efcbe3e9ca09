"""Tensors of random numbers, drawn from the default generator or a given one."""

from __future__ import annotations

from typing import Any

from ..ir import dtypes
from ..ir.dtypes import DType
from ..tensor import Tensor
from . import random
from .methods import _listed
from .random import Generator, default_generator


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


def rand(
    *size: Any, dtype: DType = dtypes.float32, generator: Generator | None = None,
    requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """Uniform numbers in [0, 1)."""
    seed, offset = (generator or default_generator).draw()
    made: Tensor = random.uniform(_listed(size), dtype, seed, offset, 0.0, 1.0)
    return made.requires_grad_() if requires_grad else made


def randn(
    *size: Any, dtype: DType = dtypes.float32, generator: Generator | None = None,
    requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """Normally distributed numbers."""
    seed, offset = (generator or default_generator).draw(2)
    made: Tensor = random.normal(_listed(size), dtype, seed, offset, 0.0, 1.0)
    return made.requires_grad_() if requires_grad else made


def rand_like(x: Tensor) -> Tensor:
    """Uniform numbers in the shape of x."""
    return rand(*x.shape, dtype=x.dtype)


def randn_like(x: Tensor) -> Tensor:
    """Normally distributed numbers in the shape of x."""
    return randn(*x.shape, dtype=x.dtype)


def uniform_(x: Tensor, low: float = 0.0, high: float = 1.0) -> Tensor:
    """Fill x with uniform numbers in [low, high)."""
    seed, offset = default_generator.draw()
    return x._write(random.uniform(tuple(x.shape), x.dtype, seed, offset, float(low), float(high)))


def normal_(x: Tensor, mean: float = 0.0, std: float = 1.0) -> Tensor:
    """Fill x with normally distributed numbers."""
    seed, offset = default_generator.draw(2)
    return x._write(random.normal(tuple(x.shape), x.dtype, seed, offset, float(mean), float(std)))


Tensor.uniform_ = uniform_  # type: ignore[attr-defined]
Tensor.normal_ = normal_  # type: ignore[attr-defined]
