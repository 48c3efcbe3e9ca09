"""Distributions on an interval, on a circle and of counts: continuous Bernoulli, von Mises, …"""

from __future__ import annotations

import math
from typing import Any

import monograph as mg
import monograph.nn.functional as F

from ..ops.define import members
from ..tensor import Tensor
from . import constraints
from .discrete import _Chance, clamp_probs
from .distribution import ExponentialFamily, Located, broadcast_all, uniform
from .gamma import Gamma

i0e, i1e = members("special")["i0e"], members("special")["i1e"]
TURNS = 32  # candidates of a draw on the circle; one is accepted with probability 0.65 or more


class ContinuousBernoulli(_Chance, ExponentialFamily):
    """A number between 0 and 1 whose log-density is that of a Bernoulli number, normalised.

    >>> import monograph as mg
    >>> mg.distributions.ContinuousBernoulli(mg.tensor(0.5)).mean.item()
    0.5
    """

    support = constraints.unit_interval
    has_rsample = True

    def __init__(
        self, probs: Any = None, logits: Any = None, lims: tuple[float, float] = (0.499, 0.501),
        validate_args: bool | None = None,
    ) -> None:  # fmt: skip
        self._take(probs, logits, validate_args)
        if logits is None:
            self.probs = clamp_probs(self.probs)
        self._lims = lims

    def _outside(self) -> Tensor:
        """Where the formulas hold; near 1/2 both sides of their fractions vanish."""
        return (self.probs <= self._lims[0]) | (self.probs > self._lims[1])

    def _cut(self) -> Tensor:
        """The probabilities, and elsewhere one for which the formulas hold."""
        return mg.where(self._outside(), self.probs, self._lims[0])

    def _cont_bern_log_norm(self) -> Tensor:
        cut = self._cut()
        low = mg.where(cut <= 0.5, cut, 0.0)
        high = mg.where(cut >= 0.5, cut, 1.0)
        size = (mg.log1p(-cut) - cut.log()).abs().log()
        exact = size - mg.where(cut <= 0.5, mg.log1p(-2 * low), (2 * high - 1).log())
        x = (self.probs - 0.5).pow(2)
        return mg.where(self._outside(), exact, math.log(2.0) + (4 / 3 + 104 / 45 * x) * x)

    @property
    def mean(self) -> Tensor:
        cut = self._cut()
        exact = cut / (2 * cut - 1) + 1 / (mg.log1p(-cut) - cut.log())
        x = self.probs - 0.5
        return mg.where(self._outside(), exact, 0.5 + (1 / 3 + 16 / 45 * x.pow(2)) * x)

    @property
    def variance(self) -> Tensor:
        cut = self._cut()
        exact = cut * (cut - 1) / (1 - 2 * cut).pow(2) + 1 / (mg.log1p(-cut) - cut.log()).pow(2)
        x = (self.probs - 0.5).pow(2)
        return mg.where(self._outside(), exact, 1 / 12 - (1 / 15 - 128 / 945 * x) * x)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Draw so that gradients reach the parameters."""
        return self.icdf(mg.rand(*self._extended_shape(sample_shape), dtype=self.probs.dtype))

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density."""
        logits, value = broadcast_all(self.logits, self._checked(value))
        plain = -F.binary_cross_entropy_with_logits(logits, value, reduction="none")
        return plain + self._cont_bern_log_norm()

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of at most this value."""
        value, cut = self._checked(value), self._cut()
        exact = (cut.pow(value) * (1 - cut).pow(1 - value) + cut - 1) / (2 * cut - 1)
        known = mg.where(self._outside(), exact, value)
        return mg.where(value <= 0, 0.0, mg.where(value >= 1, 1.0, known))

    def icdf(self, value: Tensor) -> Tensor:
        """The value that this probability lies below."""
        cut = self._cut()
        above = mg.log1p(-cut + value * (2 * cut - 1)) - mg.log1p(-cut)
        return mg.where(self._outside(), above / (cut.log() - mg.log1p(-cut)), value)

    def entropy(self) -> Tensor:
        """The expected surprise."""
        no, yes = mg.log1p(-self.probs), self.probs.log()
        return self.mean * (no - yes) - self._cont_bern_log_norm() - no

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (self.logits,)

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        (x,) = natural_params
        apart = (x <= self._lims[0] - 0.5) | (x > self._lims[1] - 0.5)
        cut = mg.where(apart, x, self._lims[0] - 0.5)
        exact = (cut.exp() - 1).abs().log() - cut.abs().log()
        return mg.where(apart, exact, 0.5 * x + x.pow(2) / 24 - x.pow(4) / 2880)


class NegativeBinomial(_Chance):
    """How many successes come before so many failures.

    >>> import monograph as mg
    >>> mg.distributions.NegativeBinomial(3.0, probs=mg.tensor(0.5)).mean.item()
    3.0
    """

    arg_constraints = {
        "total_count": constraints.greater_than_eq(0),
        "probs": constraints.half_open_interval(0.0, 1.0), "logits": constraints.real,
    }  # fmt: skip
    support = constraints.nonnegative_integer

    def __init__(
        self, total_count: Any, probs: Any = None, logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:  # fmt: skip
        self._take(probs, logits, validate_args, total_count)
        given = self.logits if probs is None else self.probs
        self.total_count = self.total_count.to(given.dtype)

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.logits.exp()

    @property
    def mode(self) -> Tensor:
        return ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0.0)

    @property
    def variance(self) -> Tensor:
        return self.mean / (-self.logits).sigmoid()

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Draw a count."""
        with mg.no_grad():
            rates = Gamma(self.total_count, (-self.logits).exp(), validate_args=False)
            return mg.poisson(rates.sample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the probability."""
        value = self._checked(value)
        count, logits = self.total_count, self.logits
        odds = count * F.logsigmoid(-logits) + value * F.logsigmoid(logits)
        ways = mg.lgamma(count + value) - mg.lgamma(1.0 + value) - mg.lgamma(count)
        return odds + mg.where(count + value == 0, 0.0, ways)


class VonMises(Located):
    """An angle that is normal on the circle.

    >>> import monograph as mg
    >>> mg.distributions.VonMises(mg.tensor(0.0), mg.tensor(4.0)).mean.item()
    0.0
    """

    arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real

    def __init__(self, loc: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.loc, self.concentration = broadcast_all(loc, concentration)
        super().__init__(self.loc.shape, (), validate_args, (loc, concentration))

    @property
    def variance(self) -> Tensor:
        return 1 - i1e(self.concentration) / i0e(self.concentration)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Draw an angle from -π to π: of a few candidates the first that is accepted."""
        with mg.no_grad():
            shape = (*self._extended_shape(sample_shape), TURNS)
            k = self.concentration.to(mg.float64).unsqueeze(-1)
            tau = 1 + (1 + 4 * k**2).sqrt()
            rho = (tau - (2 * tau).sqrt()) / (2 * k)
            flat = 1 / k + k  # where the square root would lose all digits
            width = mg.where(k < 1e-5, flat, (1 + rho**2) / (2 * rho))
            z = (math.pi * uniform(shape, k)).cos()
            f = (1 + width * z) / (width + z)
            c = k * (width - f)
            u = uniform(shape, k)
            accepted = (c * (2 - c) - u > 0) | ((c / u).log() + 1 - c >= 0)
            first = accepted.to(mg.int64).argmax(-1, keepdim=True)
            chosen = f.gather(-1, first).squeeze(-1).clamp(-1.0, 1.0)
            side = (uniform(tuple(chosen.shape), k) - 0.5).sign()
            angle = side * chosen.acos() + self.loc
            wrapped = (angle + math.pi) % (2 * math.pi) - math.pi
            return wrapped.to(self.loc.dtype)

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density."""
        k = self.concentration
        around = k * ((self._checked(value) - self.loc).cos() - 1)
        return around - math.log(2 * math.pi) - i0e(k).log()
