"""Random numbers: functions of (seed, offset, position), so that no order of evaluation matters."""

from __future__ import annotations

import math
from typing import Any

from ..ir import build, dtypes
from ..ir.dtypes import DType
from ..ir.node import coordinates
from ..record import Live
from ..tensor import Tensor
from .define import Scalar, operator

f = build.functions


class Seed(Live):
    """The seed of a generator, read anew at every replay."""

    __slots__ = ()
    kind = int

    def get(self) -> int:
        """The seed as it is now."""
        seed: int = self.mapping.seed
        return seed


class Draw(Live):
    """The next offset of a generator: taking it moves the generator on."""

    __slots__ = ()
    kind = int

    def get(self) -> int:
        """The offset, taken."""
        offset: int = self.mapping.offset
        self.mapping.offset = offset + self.name
        return offset


class Generator:
    """A seed and a counter: each draw takes the next offset.

    >>> import monograph as mg
    >>> mg.Generator().manual_seed(1).initial_seed()
    1
    """

    def __init__(self) -> None:
        self.seed = 0
        self.offset = 0

    def manual_seed(self, seed: int) -> Generator:
        """Start the sequence of `seed`."""
        self.seed, self.offset = int(seed), 0
        return self

    def initial_seed(self) -> int:
        """The seed that the sequence started from."""
        return self.seed

    def draw(self, count: int = 1) -> tuple[Seed, Draw]:
        """(seed, offset) of the next draw: numbers that are taken when they are recorded."""
        return Seed(self, "seed"), Draw(self, count)

    def get_state(self) -> tuple[int, int]:
        """What `set_state` takes."""
        return self.seed, self.offset

    def set_state(self, state: tuple[int, int]) -> None:
        """Continue where `get_state` was called."""
        self.seed, self.offset = state


default_generator = Generator()


def unit(shape: Any, seed: Any, offset: Any, dtype: DType) -> Any:
    """Uniform numbers in [0, 1): multiples of 2⁻²⁴, exact in float32; fewer bits in 16."""
    bits = build.random_bits(shape, seed, offset)
    digits = {dtypes.float16: 11, dtypes.bfloat16: 8}.get(dtype, 24)
    high = f.shr(bits, build.const(32 - digits, dtypes.uint32))
    return build.cast(high, dtype) * 2.0**-digits


def paired(parts: Any) -> Any:
    """Complex numbers of the pairs along the last axis."""
    shape = parts.shape[:-1]
    where = coordinates(shape)
    return f.complex(*[build.reindex(parts, shape, (*where, n)) for n in (0, 1)])


@operator(to=None, method=False)
def uniform(
    shape: tuple[int, ...], dtype: DType, seed: Scalar, offset: Scalar, low: Scalar, high: Scalar
) -> Any:
    """Uniform numbers in [low, high); of a complex dtype, both parts are."""
    if dtype.is_complex:
        return paired(uniform((*shape, 2), dtype.to_real(), seed, offset, low, high))
    return unit(shape, seed, offset, dtype) * (high - low) + low


@operator(to=None, method=False)
def normal(
    shape: tuple[int, ...], dtype: DType, seed: Scalar, offset: Scalar, mean: Scalar, std: Scalar
) -> Any:
    """Normally distributed numbers, by Box and Muller; uses two offsets.

    Of complex numbers each part has half of the variance.
    """
    if dtype.is_complex:
        spread = build.as_node(std, dtypes.float64) * math.sqrt(0.5)
        return paired(normal((*shape, 2), dtype.to_real(), seed, offset, 0.0, spread)) + mean
    wide = dtypes.accumulator(dtype)
    radius = f.sqrt(f.log(1.0 - unit(shape, seed, offset, wide)) * -2.0)
    angle = unit(shape, seed, offset + 1, wide) * (2.0 * math.pi)
    return build.cast(radius * f.cos(angle) * std + mean, dtype)


def drop(x: Any, p: Any, seed: Any, offset: Any) -> Any:
    """x with elements zeroed at probability p and the others scaled by 1 / (1 - p)."""
    kept = unit(x.shape, seed, offset, dtypes.float32) >= p
    keep = 1.0 - build.as_node(p, x.dtype)
    scale = 1.0 / build.select(keep > 0, keep, 1.0)  # at p = 1 nothing is kept, and 0 · ∞ is no 0
    return build.select(kept, x * scale, 0.0)


@operator(to=None, name="dropout", method=False)
def dropout_with(x: Tensor, p: Scalar, seed: Scalar, offset: Scalar) -> Any:
    """Dropout whose draw is named by (seed, offset)."""
    return drop(x, p, seed, offset)
