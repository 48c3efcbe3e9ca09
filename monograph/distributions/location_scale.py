"""Distributions of one number that are moved and stretched: normal, Laplace, uniform and others."""

from __future__ import annotations

import math
from typing import Any

import monograph as mg

from ..tensor import Tensor
from . import constraints
from .distribution import (
    Distribution,
    ExponentialFamily,
    Located,
    broadcast_all,
    standard_normal,
    uniform,
)

LOG_2PI = math.log(2 * math.pi)
EULER = 0.57721566490153286060


class LocationScale(Located):
    """A distribution with a place `loc` and a width `scale`."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.shape, (), validate_args, (loc, scale))

    def _standard(self, value: Any) -> Tensor:
        return (self._checked(value) - self.loc) / self.scale

    def _drawn(self, shape: tuple[int, ...]) -> Tensor:
        """Draws of the distribution with loc 0 and scale 1."""
        raise NotImplementedError

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Draw so that gradients reach the parameters."""
        return self.loc + self.scale * self._drawn(self._extended_shape(sample_shape))


class Normal(LocationScale, ExponentialFamily):
    """The normal distribution.

    >>> Normal(0.0, 1.0).log_prob(mg.tensor(0.0)).item()
    -0.9189385175704956
    """

    @property
    def stddev(self) -> Tensor:
        return self.scale

    @property
    def variance(self) -> Tensor:
        return self.scale**2

    def _drawn(self, shape: tuple[int, ...]) -> Tensor:
        return standard_normal(shape, self.loc)

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density."""
        centred = self._checked(value) - self.loc
        return -(centred**2) / (2 * self.scale**2) - self.scale.log() - 0.5 * LOG_2PI

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of at most this value."""
        return 0.5 * (1 + mg.erf(self._standard(value) * math.sqrt(0.5)))

    def icdf(self, value: Tensor) -> Tensor:
        """The value that this probability lies below."""
        return self.loc + self.scale * mg.erfinv(2 * value - 1) * math.sqrt(2)

    def entropy(self) -> Tensor:
        """The expected surprise."""
        return 0.5 + 0.5 * LOG_2PI + self.scale.log()


class Laplace(LocationScale):
    """Two exponential distributions back to back.

    >>> import monograph as mg
    >>> mg.distributions.Laplace(0.0, 2.0).variance.item()
    8.0
    """

    @property
    def variance(self) -> Tensor:
        return 2 * self.scale**2

    def _drawn(self, shape: tuple[int, ...]) -> Tensor:
        u = mg.rand(*shape, dtype=self.loc.dtype) * 2 - 1
        return -u.sign() * mg.log1p(-u.abs().clamp(max=1 - 2**-24))

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density."""
        return -(2 * self.scale).log() - self._standard(value).abs()

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of at most this value."""
        z = self._standard(value)
        return 0.5 - 0.5 * z.sign() * mg.expm1(-z.abs())

    def icdf(self, value: Tensor) -> Tensor:
        """The value that this probability lies below."""
        term = value - 0.5
        return self.loc - self.scale * term.sign() * mg.log1p(-2 * term.abs())

    def entropy(self) -> Tensor:
        """The expected surprise."""
        return 1 + (2 * self.scale).log()


class Cauchy(LocationScale):
    """The ratio of two normal numbers; it has no mean.

    >>> import monograph as mg
    >>> mg.distributions.Cauchy(0.0, 1.0).cdf(mg.tensor(0.0)).item()
    0.5
    """

    @property
    def mean(self) -> Tensor:
        return mg.full_like(self.loc, math.nan)

    @property
    def variance(self) -> Tensor:
        return mg.full_like(self.loc, math.inf)

    def _drawn(self, shape: tuple[int, ...]) -> Tensor:
        return mg.tan(math.pi * (uniform(shape, self.loc) - 0.5))

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density."""
        z = self._standard(value)
        return -math.log(math.pi) - self.scale.log() - (z**2).log1p()

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of at most this value."""
        return mg.atan(self._standard(value)) / math.pi + 0.5

    def icdf(self, value: Tensor) -> Tensor:
        """The value that this probability lies below."""
        return mg.tan(math.pi * (value - 0.5)) * self.scale + self.loc

    def entropy(self) -> Tensor:
        """The expected surprise."""
        return math.log(4 * math.pi) + self.scale.log()


class Gumbel(LocationScale):
    """The largest of many numbers.

    >>> import monograph as mg
    >>> mg.distributions.Gumbel(0.0, 1.0).sample((5,)).shape
    Size([5])
    """

    @property
    def mean(self) -> Tensor:
        return self.loc + self.scale * EULER

    @property
    def variance(self) -> Tensor:
        return (math.pi**2 / 6) * self.scale**2

    def _drawn(self, shape: tuple[int, ...]) -> Tensor:
        return -(-uniform(shape, self.loc).log()).log()

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density."""
        z = self._standard(value)
        return -(z + (-z).exp()) - self.scale.log()

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of at most this value."""
        return (-(-self._standard(value)).exp()).exp()

    def icdf(self, value: Tensor) -> Tensor:
        """The value that this probability lies below."""
        return self.loc - self.scale * (-value.log()).log()

    def entropy(self) -> Tensor:
        """The expected surprise."""
        return self.scale.log() + (1 + EULER)


class HalfNormal(Distribution):
    """The distance of a normal number from 0.

    >>> import monograph as mg
    >>> mg.distributions.HalfNormal(1.0).sample((100,)).min().item() >= 0
    True
    """

    arg_constraints = {"scale": constraints.positive}
    has_rsample = True
    support = constraints.nonnegative

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        (self.scale,) = broadcast_all(scale)
        super().__init__(self.scale.shape, (), validate_args, (scale,))

    @property
    def mean(self) -> Tensor:
        return self.scale * math.sqrt(2 / math.pi)

    @property
    def variance(self) -> Tensor:
        return self.scale**2 * (1 - 2 / math.pi)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Draw so that gradients reach the parameters."""
        return (standard_normal(self._extended_shape(sample_shape), self.scale) * self.scale).abs()

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density."""
        inner = Normal(mg.zeros_like(self.scale), self.scale, validate_args=False)
        shown = inner.log_prob(self._checked(value)) + math.log(2)
        return mg.where(value >= 0, shown, -math.inf)

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of at most this value."""
        return mg.erf(self._checked(value) / (self.scale * math.sqrt(2)))

    def icdf(self, value: Tensor) -> Tensor:
        """The value that this probability lies below."""
        return self.scale * math.sqrt(2) * mg.erfinv(value)

    def entropy(self) -> Tensor:
        """The expected surprise."""
        return 0.5 + 0.5 * LOG_2PI + self.scale.log() - math.log(2)


class Uniform(Distribution):
    """All numbers between `low` and `high` alike.

    >>> import monograph as mg
    >>> mg.distributions.Uniform(0.0, 4.0).mean.item()
    2.0
    """

    arg_constraints = {"low": constraints.dependent, "high": constraints.dependent}
    has_rsample = True

    def __init__(self, low: Any, high: Any, validate_args: bool | None = None) -> None:
        self.low, self.high = broadcast_all(low, high)
        super().__init__(self.low.shape, (), validate_args, (low, high))
        if self._validate_args and not isinstance(low, Tensor) and not isinstance(high, Tensor):
            if not low < high:
                raise ValueError("Uniform is not defined when low>= high")

    @property
    def support(self) -> Any:
        return constraints.interval(self.low, self.high)

    @property
    def mean(self) -> Tensor:
        return (self.high + self.low) / 2

    @property
    def variance(self) -> Tensor:
        return (self.high - self.low) ** 2 / 12

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Draw so that gradients reach the parameters."""
        drawn = mg.rand(*self._extended_shape(sample_shape), dtype=self.low.dtype)
        return self.low + drawn * (self.high - self.low)

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density."""
        value = self._checked(value)
        inside = (self.low <= value) & (value < self.high)
        return inside.to(self.low.dtype).log() - (self.high - self.low).log()

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of at most this value."""
        return ((self._checked(value) - self.low) / (self.high - self.low)).clamp(0, 1)

    def icdf(self, value: Tensor) -> Tensor:
        """The value that this probability lies below."""
        return value * (self.high - self.low) + self.low

    def entropy(self) -> Tensor:
        """The expected surprise."""
        return (self.high - self.low).log()
