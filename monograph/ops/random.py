"""Random numbers: functions of (seed, offset, position), so that no order of evaluation matters."""

from __future__ import annotations

import math
import os
from typing import Any

import numpy as np

from ..ir import build, dtypes
from ..ir.check import check
from ..ir.dtypes import DType
from ..ir.node import coordinates
from ..placement import CPU, require_here
from ..recorder import Live
from ..tensor import Tensor, adopt
from .define import Scalar, operator

f = build.functions


class Seed(Live):
    """The seed of a generator, read anew at every replay."""

    __slots__ = ()
    kind = int

    def get(self) -> int:
        """The seed as it is now, as a signed number of 64 bits."""
        seed: int = self.mapping.position[0]
        return (seed + 2**63) % 2**64 - 2**63


class Draw(Live):
    """The next offset of a generator: taking it moves the generator on."""

    __slots__ = ()
    kind = int

    def get(self) -> int:
        """The offset, taken."""
        seed, offset = self.mapping.position
        self.mapping.position = (seed, offset + self.name)
        return offset  # type: ignore[no-any-return]


class Generator:
    """A seed and a counter: each draw takes the next offset.

    >>> import monograph as mg
    >>> mg.Generator().manual_seed(1).initial_seed()
    1
    """

    device = CPU

    def __init__(self, device: Any = "cpu") -> None:
        require_here(device)
        self.position = (DEFAULT_SEED, 0)  # the seed, and the offset of the next draw

    def manual_seed(self, seed: int) -> Generator:
        """Start the sequence of `seed`; a negative one counts from 2⁶⁴."""
        number = int(seed)
        if not -(2**63) <= number < 2**64:
            raise RuntimeError(f"Overflow when unpacking long long: the seed {number}")
        self.position = (number % 2**64, 0)
        return self

    def seed(self) -> int:
        """Start a sequence that nobody can foresee; its seed is returned."""
        self.manual_seed(int.from_bytes(os.urandom(8), "little"))
        return self.initial_seed()

    def initial_seed(self) -> int:
        """The seed that the sequence started from."""
        return self.position[0]

    def draw(self, count: int = 1) -> tuple[Seed, Draw]:
        """(seed, offset) of the next draw: numbers that are taken when they are recorded."""
        return Seed(self, "seed"), Draw(self, count)

    def get_state(self) -> Tensor:
        """The seed and the offset as a tensor of bytes, which `set_state` takes."""
        return adopt(np.array(self.position, np.uint64).view(np.uint8))

    def set_state(self, new_state: Tensor) -> None:
        """Continue where `get_state` was called."""
        if not isinstance(new_state, Tensor) or new_state.dtype is not dtypes.uint8:
            raise TypeError("the state of a generator is a tensor of dtype uint8")
        if tuple(new_state.shape) != (16,):
            raise RuntimeError(f"the state of a generator has 16 bytes, not {new_state.numel()}")
        seed, offset = np.ascontiguousarray(new_state._array()).view(np.uint64).tolist()
        self.position = (seed, offset)

    def clone_state(self) -> Generator:
        """Another generator at the same place of the same sequence."""
        twin = Generator()
        twin.position = self.position
        return twin


DEFAULT_SEED = 67280421310721  # the number that PyTorch's generators start from, too
default_generator = Generator()
_OTHER_STREAM = 0x5851F42D4C957F2D  # turns a seed into that of its stream of lower bits


def words(shape: Any, seed: Any, offset: Any) -> tuple[Any, Any]:
    """Twice 32 random bits per element, as int64: of the seed, and of a seed made of it."""
    other = f.xor(build.as_node(seed, dtypes.int64), build.const(_OTHER_STREAM, dtypes.int64))
    drawn = [build.random_bits(shape, key, offset) for key in (seed, other)]
    high, low = (build.cast(bits, dtypes.int64) for bits in drawn)
    return high, low


def unit(shape: Any, seed: Any, offset: Any, dtype: DType) -> Any:
    """Uniform numbers in [0, 1): multiples of 2⁻²⁴ or, in float64, 2⁻⁵³; fewer bits in 16."""
    if dtype is dtypes.float64:
        high, low = words(shape, seed, offset)
        count = f.shr(high, 5) * 2**26 + f.shr(low, 6)
        return build.cast(count, dtype) * 2.0**-53
    bits = build.random_bits(shape, seed, offset)
    digits = {dtypes.float16: 11, dtypes.bfloat16: 8}.get(dtype, 24)
    high = f.shr(bits, build.const(32 - digits, dtypes.uint32))
    return build.cast(high, dtype) * 2.0**-digits


def open_unit(shape: Any, seed: Any, offset: Any, dtype: DType) -> Any:
    """Uniform numbers between 0 and 1 that are neither: odd multiples of 2⁻²⁴ or 2⁻⁵³."""
    if dtype is dtypes.float64:
        high, low = words(shape, seed, offset)
        count = f.shr(high, 6) * 2**26 + f.shr(low, 6)
        return (build.cast(count, dtype) + 0.5) * 2.0**-52
    bits = build.random_bits(shape, seed, offset)
    high = f.shr(bits, build.const(9, dtypes.uint32))
    return (build.cast(high, dtype) + 0.5) * 2.0**-23


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


def _rounded(drawn: Any, dtype: DType) -> Any:
    """A draw in the dtype of the tensor that it goes to."""
    return build.cast(drawn, dtype)


def _wide(dtype: DType) -> DType:
    """The float dtype in which numbers for a tensor of `dtype` are drawn."""
    return dtypes.accumulator(dtype) if dtype.is_floating_point else dtypes.float64


@operator(to=None, method=False, name="normal")
def normal_of(
    mean: Tensor | Scalar, std: Tensor | Scalar, shape: tuple[int, ...], dtype: DType,
    seed: Scalar, offset: Scalar,
) -> Any:  # fmt: skip
    """Normally distributed numbers, each with a mean and a deviation of its own."""
    drawn = normal(shape, dtype, seed, offset, 0.0, 1.0)
    spread, centre = build.as_node(std, dtype.to_real()), build.as_node(mean, dtype)
    check(f.lt(spread, 0), spread, "normal expects all elements of std >= 0.0",
          error="ValueOutOfRange")  # fmt: skip
    return drawn * spread + centre


@operator(to=None, method=False, name="bernoulli", smooth=False)
def hits(
    p: Tensor | Scalar, shape: tuple[int, ...], dtype: DType, seed: Scalar, offset: Scalar
) -> Any:
    """1 at probability p, else 0."""
    chance = build.broadcast_to(build.as_node(p, dtypes.float64), shape)
    outside = build.elementwise("not", build.elementwise("and", chance >= 0, chance <= 1))
    check(outside, chance, "Expected p_in >= 0 && p_in <= 1 to be true, but got a probability "
          "outside", error="ValueOutOfRange")  # fmt: skip
    return build.cast(unit(shape, seed, offset, dtypes.float64) < chance, dtype)


hits.operator.lies = "contiguous"


@operator(to=None, method=False, smooth=False)
def hits_of(count: Tensor, p: Tensor, most: int, seed: Scalar, offset: Scalar) -> Any:
    """How many of `count` trials hit at probability p; no count is above `most`."""
    shape = (most, *count.shape)
    drawn = unit(shape, seed, offset, dtypes.float64) < build.cast(p, dtypes.float64)
    tried = build.coordinate(shape, 0) < build.cast(count, dtypes.int64)
    hit = build.elementwise("and", drawn, tried)
    return build.reduce("add", build.cast(hit, count.dtype), (0,))


@operator(to=None, method=False)
def integers_between(
    shape: tuple[int, ...], dtype: DType, seed: Scalar, offset: Scalar, low: Scalar, high: Scalar
) -> Any:
    """Integers in [low, high), from 63 random bits."""
    upper, lower = words(shape, seed, offset)
    count = upper * 2**31 + f.shr(lower, 1)
    first, last = build.as_node(low, dtypes.int64), build.as_node(high, dtypes.int64)
    return build.cast(f.remainder(count, last - first) + first, dtype)


@operator(to=None, method=False)
def any_integers(shape: tuple[int, ...], dtype: DType, seed: Scalar, offset: Scalar) -> Any:
    """Integers of 64 random bits."""
    upper, lower = words(shape, seed, offset)
    return build.cast(f.shl(upper, 32) + lower, dtype)


@operator(to=None, method=False)
def exponential(
    shape: tuple[int, ...], dtype: DType, seed: Scalar, offset: Scalar, rate: Scalar
) -> Any:
    """Positive numbers whose density falls by e every 1 / rate."""
    drawn = f.log(open_unit(shape, seed, offset, _wide(dtype)))
    return _rounded(-drawn / rate, dtype)


@operator(to=None, method=False)
def geometric(shape: tuple[int, ...], dtype: DType, seed: Scalar, offset: Scalar, p: Scalar) -> Any:
    """How many trials, each a success at probability p, it takes to the first success."""
    wide = _wide(dtype)
    failures = f.log1p(-build.as_node(p, wide))
    return _rounded(f.ceil(f.log(open_unit(shape, seed, offset, wide)) / failures), dtype)


@operator(to=None, method=False)
def cauchy(
    shape: tuple[int, ...], dtype: DType, seed: Scalar, offset: Scalar, median: Scalar,
    sigma: Scalar,
) -> Any:  # fmt: skip
    """The tangent of a uniform angle."""
    angle = (open_unit(shape, seed, offset, _wide(dtype)) - 0.5) * math.pi
    return _rounded(f.sin(angle) / f.cos(angle) * sigma + median, dtype)


# --- Poisson ------------------------------------------------------------------------------------

SMALL_RATE = 10.0
WAITS = 48  # more events than this at a rate below SMALL_RATE have probability 1e-17
CANDIDATES = 16  # each is taken with probability 0.85 or more


def _log_factorial(k: Any) -> Any:
    """log k! by Stirling's series, at k + 10 where it is exact to the last digits."""
    product = k + 1.0
    for n in range(2, 11):
        product = product * (k + float(n))
    z = k + 11.0
    inverse = 1.0 / z
    square = inverse * inverse
    series = inverse * (1 / 12 - square * (1 / 360 - square * (1 / 1260 - square / 1680)))
    return (z - 0.5) * f.log(z) - z + 0.5 * math.log(2 * math.pi) + series - f.log(product)


def _few(rate: Any, seed: Any, offset: Any) -> Any:
    """For small rates: how many exponential waits fit into the time `rate`."""
    shape = (*rate.shape, WAITS)
    waits = -f.log(open_unit(shape, seed, offset, dtypes.float64))
    passed = build.call("scan_add", waits)
    within = passed < build.broadcast_to(build.expand_dims(rate, [rate.ndim]), shape)
    return build.reduce("add", build.cast(within, dtypes.float64), (rate.ndim,))


def _many(rate: Any, seed: Any, offset: Any) -> Any:
    """For larger rates: Hörmann's transformed rejection, the first candidate that is accepted."""
    shape = (*rate.shape, CANDIDATES)
    mean = build.broadcast_to(build.expand_dims(rate, [rate.ndim]), shape)
    u = unit(shape, seed, offset, dtypes.float64) - 0.5
    v = open_unit(shape, seed, offset + 1, dtypes.float64)
    b = 0.931 + 2.53 * f.sqrt(mean)
    a = -0.059 + 0.02483 * b
    us = 0.5 - f.abs(u)
    us = build.select(us > 0, us, 2.0**-54)
    k = f.floor((2.0 * a / us + b) * u + mean + 0.43)
    known = build.select(k < 0, 0.0, k)
    density = known * f.log(mean) - mean - _log_factorial(known)
    inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
    accepted = f.log(v * inverse_alpha / (a / (us * us) + b)) <= density
    taken = build.elementwise("and", k >= 0, accepted)
    first = build.reduce("argmax", build.cast(taken, dtypes.float64), (rate.ndim,), True)
    chosen = f.eq(build.coordinate(shape, rate.ndim), build.broadcast_to(first, shape))
    return build.reduce("add", build.select(chosen, known, 0.0), (rate.ndim,))


@operator(to=None, method=False, smooth=False)
def poisson_of(rate: Tensor, seed: Scalar, offset: Scalar) -> Any:
    """How many events happen where `rate` of them are expected; uses three offsets."""
    mean = build.cast(rate, dtypes.float64)
    check(build.elementwise("not", mean >= 0), mean, "invalid Poisson rate, expected rate to be "
          "non-negative", error="ValueOutOfRange")  # fmt: skip
    small = mean < SMALL_RATE
    few = _few(build.select(small, mean, 0.0), seed, offset)
    many = _many(build.select(small, SMALL_RATE, mean), seed, offset + 1)
    return build.cast(build.select(small, few, many), rate.dtype)


# --- dropout ------------------------------------------------------------------------------------


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
