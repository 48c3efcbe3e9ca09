"""Distributions of positive numbers made of waiting times: exponential, gamma, beta and others.

A gamma number is drawn by Marsaglia and Tsang's method: of a few candidates the first that is
accepted. Its derivative by the concentration follows from the distribution function, which must
keep its value as the concentration changes.
"""

from __future__ import annotations

import math
from typing import Any

import monograph as mg

from ..ops.define import members
from ..tensor import Tensor
from . import constraints
from .distribution import Distribution, ExponentialFamily, broadcast_all, standard_normal, uniform

gammainc = members("special")["gammainc"]
CANDIDATES = 8  # each is accepted with probability 0.95 or more


def standard_gamma(concentration: Tensor) -> Tensor:
    """Draws with rate 1, differentiable by the concentration.

    >>> bool((standard_gamma(mg.full((100,), 0.5)) > 0).all())
    True
    """
    with mg.no_grad():
        alpha = concentration.detach().to(mg.float64)
        small = alpha < 1
        shape = mg.where(small, alpha + 1, alpha)
        d = (shape - 1 / 3).unsqueeze(-1)
        many = (*alpha.shape, CANDIDATES)
        normal = standard_normal(many, alpha)
        v = (1 + normal / (9 * d).sqrt()) ** 3
        positive = v.clamp(min=1e-30)
        bound = 0.5 * normal**2 + d - d * v + d * positive.log()
        accepted = (v > 0) & (uniform(many, alpha).log() < bound)
        first = accepted.to(mg.int64).argmax(-1, keepdim=True)
        drawn = (d * positive).gather(-1, first).squeeze(-1)
        boost = uniform(tuple(alpha.shape), alpha).log() / alpha
        drawn = mg.where(small, drawn * boost.exp(), drawn)
        drawn = drawn.to(concentration.dtype).clamp(min=mg.finfo(concentration.dtype).tiny)
    if not (concentration.requires_grad and mg.is_grad_enabled()):
        return drawn
    wide, x = concentration.to(mg.float64), drawn.to(mg.float64)
    density = ((alpha - 1) * x.log() - x - mg.lgamma(alpha)).exp()
    below = gammainc(wide, x)
    moved = (below - below.detach()) / density.clamp(min=1e-300)
    return drawn - moved.to(concentration.dtype)


class Exponential(ExponentialFamily):
    """The time until something happens that happens `rate` times in a unit of time.

    >>> import monograph as mg
    >>> mg.distributions.Exponential(mg.tensor(4.0)).mean.item()
    0.25
    """

    arg_constraints = {"rate": constraints.positive}
    has_rsample = True
    support = constraints.nonnegative

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        (self.rate,) = broadcast_all(rate)
        super().__init__(self.rate.shape, (), validate_args, (rate,))

    @property
    def mean(self) -> Tensor:
        return self.rate.reciprocal()

    @property
    def variance(self) -> Tensor:
        return self.rate.pow(-2)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Draw so that gradients reach the parameters."""
        return -uniform(self._extended_shape(sample_shape), self.rate).log() / self.rate

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density."""
        return self.rate.log() - self.rate * self._checked(value)

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of at most this value."""
        return 1 - (-self.rate * self._checked(value)).exp()

    def icdf(self, value: Tensor) -> Tensor:
        """The value that this probability lies below."""
        return -mg.log1p(-value) / self.rate

    def entropy(self) -> Tensor:
        """The expected surprise."""
        return 1.0 - self.rate.log()


class Gamma(ExponentialFamily):
    """The time until something has happened `concentration` times.

    >>> import monograph as mg
    >>> mg.distributions.Gamma(mg.tensor(3.0), mg.tensor(2.0)).mean.item()
    1.5
    """

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    has_rsample = True
    support = constraints.nonnegative

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        self.concentration, self.rate = broadcast_all(concentration, rate)
        super().__init__(self.rate.shape, (), validate_args, (concentration, rate))

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.rate

    @property
    def mode(self) -> Tensor:
        return ((self.concentration - 1) / self.rate).clamp(min=0)

    @property
    def variance(self) -> Tensor:
        return self.concentration / self.rate.pow(2)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Draw so that gradients reach the parameters."""
        shape = self._extended_shape(sample_shape)
        return standard_gamma(self.concentration.expand(shape)) / self.rate.expand(shape)

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density."""
        value = self._checked(value)
        return (
            mg.xlogy(self.concentration, self.rate) + mg.xlogy(self.concentration - 1, value)
            - self.rate * value - mg.lgamma(self.concentration)
        )  # fmt: skip

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of at most this value."""
        return gammainc(self.concentration, self.rate * self._checked(value))

    def entropy(self) -> Tensor:
        """The expected surprise."""
        a = self.concentration
        return a - self.rate.log() + mg.lgamma(a) + (1.0 - a) * mg.digamma(a)


class Chi2(Gamma):
    """The sum of squares of `df` normal numbers.

    >>> import monograph as mg
    >>> mg.distributions.Chi2(mg.tensor(3.0)).mean.item()
    3.0
    """

    arg_constraints = {"df": constraints.positive}

    def __init__(self, df: Any, validate_args: bool | None = None) -> None:
        (self.df,) = broadcast_all(df)
        super().__init__(0.5 * self.df, mg.full_like(self.df, 0.5), validate_args)


class Dirichlet(ExponentialFamily):
    """Probabilities that add up to 1.

    >>> import monograph as mg
    >>> mg.distributions.Dirichlet(mg.tensor([1.0, 3.0])).mean.tolist()
    [0.25, 0.75]
    """

    arg_constraints = {"concentration": constraints.independent(constraints.positive, 1)}
    has_rsample = True
    support = constraints.simplex

    def __init__(self, concentration: Tensor, validate_args: bool | None = None) -> None:
        if concentration.ndim < 1:
            raise ValueError("`concentration` parameter must be at least one-dimensional.")
        self.concentration = concentration
        shape = concentration.shape
        super().__init__(shape[:-1], shape[-1:], validate_args)

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.concentration.sum(-1, True)

    @property
    def variance(self) -> Tensor:
        total = self.concentration.sum(-1, True)
        return self.concentration * (total - self.concentration) / (total**2 * (total + 1))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Draw so that gradients reach the parameters."""
        drawn = standard_gamma(self.concentration.expand(self._extended_shape(sample_shape)))
        return drawn / drawn.sum(-1, True)

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density."""
        a, value = self.concentration, self._checked(value)
        return mg.xlogy(a - 1.0, value).sum(-1) + mg.lgamma(a.sum(-1)) - mg.lgamma(a).sum(-1)

    def entropy(self) -> Tensor:
        """The expected surprise."""
        a, size = self.concentration, self.concentration.shape[-1]
        total = a.sum(-1)
        return (
            mg.lgamma(a).sum(-1) - mg.lgamma(total) - (size - total) * mg.digamma(total)
            - ((a - 1.0) * mg.digamma(a)).sum(-1)
        )  # fmt: skip


class Beta(ExponentialFamily):
    """A probability, after so many successes and failures.

    >>> import monograph as mg
    >>> mg.distributions.Beta(2.0, 2.0).mean.item()
    0.5
    """

    arg_constraints = {
        "concentration1": constraints.positive, "concentration0": constraints.positive,
    }  # fmt: skip
    has_rsample = True
    support = constraints.unit_interval

    def __init__(
        self, concentration1: Any, concentration0: Any, validate_args: bool | None = None
    ) -> None:
        self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        given = (concentration1, concentration0)
        super().__init__(self.concentration1.shape, (), validate_args, given)

    def _dirichlet(self) -> Dirichlet:
        both = mg.stack([self.concentration1, self.concentration0], -1)
        return Dirichlet(both, validate_args=False)

    @property
    def mean(self) -> Tensor:
        return self.concentration1 / (self.concentration1 + self.concentration0)

    @property
    def variance(self) -> Tensor:
        total = self.concentration1 + self.concentration0
        return self.concentration1 * self.concentration0 / (total**2 * (total + 1))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Draw so that gradients reach the parameters."""
        return self._dirichlet().rsample(sample_shape).select(-1, 0)

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density."""
        value = self._checked(value)
        return self._dirichlet().log_prob(mg.stack([value, 1.0 - value], -1))

    def entropy(self) -> Tensor:
        """The expected surprise."""
        return self._dirichlet().entropy()


class StudentT(Distribution):
    """A normal number divided by an estimate of its deviation with `df` degrees of freedom.

    >>> import monograph as mg
    >>> mg.distributions.StudentT(mg.tensor(4.0)).variance.item()
    2.0
    """

    arg_constraints = {
        "df": constraints.positive, "loc": constraints.real, "scale": constraints.positive,
    }  # fmt: skip
    has_rsample = True

    def __init__(
        self, df: Any, loc: Any = 0.0, scale: Any = 1.0, validate_args: bool | None = None
    ) -> None:
        self.df, self.loc, self.scale = broadcast_all(df, loc, scale)
        super().__init__(self.df.shape, (), validate_args, (df, loc, scale))

    @property
    def mean(self) -> Tensor:
        return mg.where(self.df > 1, self.loc, math.nan)

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        known = self.scale**2 * self.df / (self.df - 2)
        return mg.where(self.df > 2, known, mg.where(self.df > 1, math.inf, math.nan))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Draw so that gradients reach the parameters."""
        shape = self._extended_shape(sample_shape)
        spread = Chi2(self.df, validate_args=False).rsample(sample_shape)
        drawn = standard_normal(shape, self.df) * mg.rsqrt(spread / self.df)
        return self.loc + self.scale * drawn

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density."""
        y = (self._checked(value) - self.loc) / self.scale
        z = (
            self.scale.log() + 0.5 * self.df.log() + 0.5 * math.log(math.pi)
            + mg.lgamma(0.5 * self.df) - mg.lgamma(0.5 * (self.df + 1.0))
        )  # fmt: skip
        return -0.5 * (self.df + 1.0) * mg.log1p(y**2.0 / self.df) - z

    def entropy(self) -> Tensor:
        """The expected surprise."""
        half = 0.5 * self.df
        beta = mg.lgamma(half) + mg.lgamma(mg.tensor(0.5)) - mg.lgamma(0.5 * (self.df + 1))
        return (
            self.scale.log() + 0.5 * (self.df + 1) * (mg.digamma(half + 0.5) - mg.digamma(half))
            + 0.5 * self.df.log() + beta
        )  # fmt: skip
