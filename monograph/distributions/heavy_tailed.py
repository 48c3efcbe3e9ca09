"""Distributions of positive numbers, many of which have long tails: Pareto, Weibull and others.

Most are a simple distribution seen through transforms, so that draws, densities and distribution
functions follow; what is written here are moments and entropies.
"""

from __future__ import annotations

import math
from typing import Any

import monograph as mg

from ..tensor import Tensor
from . import constraints
from .compound import TransformedDistribution
from .distribution import Distribution, broadcast_all
from .gamma import Exponential, Gamma
from .location_scale import EULER, Cauchy, Uniform
from .transforms import AbsTransform, AffineTransform, ExpTransform, PowerTransform


class Pareto(TransformedDistribution):
    """What is left above a least value, and falls by a power.

    >>> import monograph as mg
    >>> mg.distributions.Pareto(mg.tensor(1.0), mg.tensor(3.0)).mean.item()
    1.5
    """

    arg_constraints = {"alpha": constraints.positive, "scale": constraints.positive}

    def __init__(self, scale: Any, alpha: Any, validate_args: bool | None = None) -> None:
        self.scale, self.alpha = broadcast_all(scale, alpha)
        base = Exponential(self.alpha, validate_args)
        transforms = [ExpTransform(), AffineTransform(0.0, self.scale)]
        super().__init__(base, transforms, validate_args)

    @property
    def support(self) -> Any:
        return constraints.greater_than_eq(self.scale)

    @property
    def mean(self) -> Tensor:
        a = self.alpha.clamp(min=1)
        return a * self.scale / (a - 1)

    @property
    def mode(self) -> Tensor:
        return self.scale

    @property
    def variance(self) -> Tensor:
        a = self.alpha.clamp(min=2)
        return self.scale.square() * a / ((a - 1).square() * (a - 2))

    def entropy(self) -> Tensor:
        """The expected surprise."""
        return (self.scale / self.alpha).log() + 1 + self.alpha.reciprocal()


class GeneralizedPareto(Distribution):
    """What exceeds a high threshold; a concentration of 0 makes it exponential.

    >>> import monograph as mg
    >>> made = mg.distributions.GeneralizedPareto(0.0, 1.0, 0.5)
    >>> made.cdf(mg.tensor(2.0)).item()
    0.75
    """

    arg_constraints = {
        "loc": constraints.real, "scale": constraints.positive, "concentration": constraints.real,
    }  # fmt: skip
    has_rsample = True

    def __init__(
        self, loc: Any, scale: Any, concentration: Any, validate_args: bool | None = None
    ) -> None:
        self.loc, self.scale, self.concentration = broadcast_all(loc, scale, concentration)
        super().__init__(self.loc.shape, (), validate_args, (loc, scale, concentration))

    @property
    def support(self) -> Any:
        end = self.loc - self.scale / self.concentration
        return constraints.interval(self.loc, mg.where(self.concentration < 0, end, math.inf))

    def _shape(self) -> tuple[Tensor, Tensor]:
        """(whether the concentration is 0, the concentration without zeros)."""
        flat = mg.isclose(self.concentration, mg.zeros_like(self.concentration))
        return flat, mg.where(flat, 1.0, self.concentration)

    @property
    def mean(self) -> Tensor:
        known = self.loc + self.scale / (1 - self.concentration)
        return mg.where(self.concentration < 1, known, math.nan)

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        c = self.concentration
        known = self.scale**2 / ((1 - c) ** 2 * (1 - 2 * c))
        return mg.where(c < 0.5, known, math.nan)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Draw so that gradients reach the parameters."""
        return self.icdf(mg.rand(*self._extended_shape(sample_shape), dtype=self.loc.dtype))

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density."""
        z = (self._checked(value) - self.loc) / self.scale
        flat, c = self._shape()
        power = 1 / c + mg.ones_like(z)
        bent = mg.where(power == 0, power, power * mg.log1p(c * z))
        return -self.scale.log() - mg.where(flat, z, bent)

    def log_survival_function(self, value: Tensor) -> Tensor:
        """The logarithm of the probability of more than this value."""
        z = (self._checked(value) - self.loc) / self.scale
        flat, c = self._shape()
        return mg.where(flat, -z, -mg.log1p(c * z) / c)

    def log_cdf(self, value: Tensor) -> Tensor:
        """The logarithm of the probability of at most this value."""
        return mg.log1p(-self.log_survival_function(value).exp())

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of at most this value."""
        return self.log_cdf(value).exp()

    def icdf(self, value: Tensor) -> Tensor:
        """The value that this probability lies below."""
        flat, c = self._shape()
        rest = mg.log1p(-value)
        bent = self.loc + self.scale / c * mg.expm1(-c * rest)
        return mg.where(flat, self.loc - self.scale * rest, bent)

    def entropy(self) -> Tensor:
        """The expected surprise."""
        return self.scale.log() + self.concentration + 1


class Weibull(TransformedDistribution):
    """How long something lasts whose risk grows or falls by a power of its age.

    >>> import monograph as mg
    >>> mg.distributions.Weibull(mg.tensor(2.0), mg.tensor(1.0)).mean.item()
    2.0
    """

    arg_constraints = {"scale": constraints.positive, "concentration": constraints.positive}
    support = constraints.positive  # type: ignore[assignment]

    def __init__(self, scale: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.scale, self.concentration = broadcast_all(scale, concentration)
        self.concentration_reciprocal = self.concentration.reciprocal()
        base = Exponential(mg.ones_like(self.scale), validate_args)
        powers = PowerTransform(exponent=self.concentration_reciprocal)
        super().__init__(base, [powers, AffineTransform(0.0, self.scale)], validate_args)

    def _moment(self, order: int) -> Tensor:
        return mg.lgamma(1 + order * self.concentration_reciprocal).exp()

    @property
    def mean(self) -> Tensor:
        return self.scale * self._moment(1)

    @property
    def mode(self) -> Tensor:
        inner = (self.concentration - 1) / self.concentration
        return self.scale * inner**self.concentration_reciprocal

    @property
    def variance(self) -> Tensor:
        return self.scale.pow(2) * (self._moment(2) - self._moment(1).square())

    def entropy(self) -> Tensor:
        """The expected surprise."""
        bend = EULER * (1 - self.concentration_reciprocal)
        return bend + (self.scale * self.concentration_reciprocal).log() + 1


class Kumaraswamy(TransformedDistribution):
    """Like a beta number, but with a distribution function in closed form.

    >>> import monograph as mg
    >>> mg.distributions.Kumaraswamy(mg.tensor(1.0), mg.tensor(1.0)).mean.item()
    0.5
    """

    arg_constraints = {
        "concentration1": constraints.positive, "concentration0": constraints.positive,
    }  # fmt: skip
    support = constraints.unit_interval  # type: ignore[assignment]

    def __init__(
        self, concentration1: Any, concentration0: Any, validate_args: bool | None = None
    ) -> None:
        self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        none = mg.zeros_like(self.concentration0)
        transforms = [
            PowerTransform(exponent=self.concentration0.reciprocal()),
            AffineTransform(loc=1.0, scale=-1.0),
            PowerTransform(exponent=self.concentration1.reciprocal()),
        ]
        super().__init__(Uniform(none, none + 1, validate_args), transforms, validate_args)

    def _moment(self, order: int) -> Tensor:
        a, b = 1 + order / self.concentration1, self.concentration0
        return (b.log() + mg.lgamma(a) + mg.lgamma(b) - mg.lgamma(a + b)).exp()

    @property
    def mean(self) -> Tensor:
        return self._moment(1)

    @property
    def mode(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        place = b.reciprocal() * mg.log1p(-b) - mg.log1p(-b * a)  # as in PyTorch
        return mg.where((b < 1) | (a < 1), math.nan, place).exp()

    @property
    def variance(self) -> Tensor:
        return self._moment(2) - self._moment(1).pow(2)

    def entropy(self) -> Tensor:
        """The expected surprise."""
        a, b = self.concentration1, self.concentration0
        harmonic = mg.digamma(b + 1) + EULER
        return 1 - b.reciprocal() + (1 - a.reciprocal()) * harmonic - a.log() - b.log()


class HalfCauchy(TransformedDistribution):
    """The absolute value of a Cauchy number.

    >>> import monograph as mg
    >>> mg.distributions.HalfCauchy(mg.tensor(1.0)).cdf(mg.tensor(1.0)).item()
    0.5
    """

    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative  # type: ignore[assignment]
    base_dist: Cauchy

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        super().__init__(Cauchy(0, scale, validate_args=False), AbsTransform(), validate_args)

    @property
    def scale(self) -> Tensor:
        return self.base_dist.scale

    @property
    def mean(self) -> Tensor:
        return mg.full_like(self.scale, math.inf)

    @property
    def mode(self) -> Tensor:
        return mg.zeros_like(self.scale)

    @property
    def variance(self) -> Tensor:
        return self.base_dist.variance

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density."""
        value = self._checked(value)
        inside = self.base_dist.log_prob(value) + math.log(2)
        return mg.where(value >= 0, inside, -math.inf)

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of at most this value."""
        return 2 * self.base_dist.cdf(self._checked(value)) - 1

    def icdf(self, prob: Tensor) -> Tensor:
        """The value that this probability lies below."""
        return self.base_dist.icdf((prob + 1) / 2)

    def entropy(self) -> Tensor:
        """The expected surprise."""
        return self.base_dist.entropy() - math.log(2)


class InverseGamma(TransformedDistribution):
    """One over a gamma number.

    >>> import monograph as mg
    >>> mg.distributions.InverseGamma(mg.tensor(3.0), mg.tensor(4.0)).mean.item()
    2.0
    """

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.positive  # type: ignore[assignment]
    base_dist: Gamma

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        base = Gamma(concentration, rate, validate_args)
        inverse = PowerTransform(-mg.ones((), dtype=base.rate.dtype))
        super().__init__(base, inverse, validate_args)

    @property
    def concentration(self) -> Tensor:
        return self.base_dist.concentration

    @property
    def rate(self) -> Tensor:
        return self.base_dist.rate

    @property
    def mean(self) -> Tensor:
        known = self.rate / (self.concentration - 1)
        return mg.where(self.concentration > 1, known, math.inf)

    @property
    def mode(self) -> Tensor:
        return self.rate / (self.concentration + 1)

    @property
    def variance(self) -> Tensor:
        c = self.concentration
        known = self.rate.square() / ((c - 1).square() * (c - 2))
        return mg.where(c > 2, known, math.inf)

    def entropy(self) -> Tensor:
        """The expected surprise."""
        c = self.concentration
        return c + self.rate.log() + mg.lgamma(c) - (1 + c) * mg.digamma(c)


class FisherSnedecor(Distribution):
    """The ratio of two variances, estimated with `df1` and `df2` degrees of freedom.

    >>> import monograph as mg
    >>> mg.distributions.FisherSnedecor(mg.tensor(1.0), mg.tensor(4.0)).mean.item()
    2.0
    """

    arg_constraints = {"df1": constraints.positive, "df2": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, df1: Any, df2: Any, validate_args: bool | None = None) -> None:
        self.df1, self.df2 = broadcast_all(df1, df2)
        self._gamma1 = Gamma(self.df1 * 0.5, self.df1)
        self._gamma2 = Gamma(self.df2 * 0.5, self.df2)
        super().__init__(self.df1.shape, (), validate_args, (df1, df2))

    @property
    def mean(self) -> Tensor:
        return mg.where(self.df2 > 2, self.df2 / (self.df2 - 2), math.nan)

    @property
    def mode(self) -> Tensor:
        known = (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2)
        return mg.where(self.df1 > 2, known, math.nan)

    @property
    def variance(self) -> Tensor:
        a, b = self.df1, self.df2
        known = 2 * b.pow(2) * (a + b - 2) / (a * (b - 2).pow(2) * (b - 4))
        return mg.where(b > 4, known, math.nan)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Draw so that gradients reach the parameters."""
        least = mg.finfo(self.df1.dtype).tiny
        above, below = self._gamma1.rsample(sample_shape), self._gamma2.rsample(sample_shape)
        return (above / below.clamp(min=least)).clamp(min=least)

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density."""
        value, a, b = self._checked(value), 0.5 * self.df1, 0.5 * self.df2
        ratio = self.df1 / self.df2
        ways = mg.lgamma(a + b) - mg.lgamma(a) - mg.lgamma(b)
        return ways + a * ratio.log() + (a - 1) * value.log() - (a + b) * mg.log1p(ratio * value)
