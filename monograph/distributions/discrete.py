"""Distributions of whole numbers: Bernoulli, categorical, binomial, Poisson and others.

Probabilities are given by themselves or by their logits; the other is computed when it is needed.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import monograph as mg
import monograph.nn.functional as F

from ..ir import build, dtypes
from ..ops.define import operator
from ..tensor import Size, Tensor
from . import constraints
from .distribution import (
    PARAMETER,
    Distribution,
    ExponentialFamily,
    broadcast_all,
    derived,
    uniform,
)


def clamp_probs(probs: Tensor) -> Tensor:
    """Probabilities that are neither 0 nor 1."""
    eps = mg.finfo(probs.dtype).eps
    return probs.clamp(min=eps, max=1 - eps)


def probs_to_logits(probs: Tensor, is_binary: bool = False) -> Tensor:
    """The logarithms of probabilities, or of p / (1 - p) where there is yes and no."""
    kept = clamp_probs(probs)
    return kept.log() - mg.log1p(-kept) if is_binary else kept.log()


def logits_to_probs(logits: Tensor, is_binary: bool = False) -> Tensor:
    """The probabilities that `probs_to_logits` was given."""
    return logits.sigmoid() if is_binary else F.softmax(logits, -1)


def _one_of(probs: Any, logits: Any) -> None:
    if (probs is None) == (logits is None):
        raise ValueError("Either `probs` or `logits` must be specified, but not both.")


class _Chance(Distribution):
    """A distribution whose parameter is a probability of yes."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}

    def _take(self, probs: Any, logits: Any, validate_args: bool | None, *more: Any) -> None:
        _one_of(probs, logits)
        name, given = ("probs", probs) if logits is None else ("logits", logits)
        made = broadcast_all(given, *more)
        self.__dict__[name] = made[0]
        if more:
            self.total_count = made[1]
        super().__init__(made[0].shape, (), validate_args, (given,))

    @derived
    def logits(self) -> Tensor:
        """log(p / (1 - p))."""
        return probs_to_logits(self.probs, is_binary=True)

    @derived
    def probs(self) -> Tensor:
        """The probability of yes."""
        return self.logits.sigmoid()

    @property
    def param_shape(self) -> Any:
        return self._batch_shape

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        """The same distribution for a larger batch."""
        return super().expand(batch_shape, _instance)


class Bernoulli(_Chance, ExponentialFamily):
    """Yes or no.

    >>> Bernoulli(probs=mg.tensor(0.25)).variance.item()
    0.1875
    """

    support = constraints.boolean
    has_enumerate_support = True

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self._take(probs, logits, validate_args)

    @property
    def mean(self) -> Tensor:
        return self.probs

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Draw 0 or 1."""
        with mg.no_grad():
            return mg.bernoulli(self.probs.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the probability."""
        logits, value = broadcast_all(self.logits, self._checked(value))
        return -F.binary_cross_entropy_with_logits(logits, value, reduction="none")

    def entropy(self) -> Tensor:
        """The expected surprise."""
        return F.binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """0 and 1."""
        values = mg.arange(2, dtype=self.probs.dtype).view(-1, *([1] * len(self._batch_shape)))
        return values.expand(2, *self._batch_shape) if expand else values


class Geometric(_Chance):
    """How many failures come before the first success.

    >>> import monograph as mg
    >>> mg.distributions.Geometric(mg.tensor(0.25)).mean.item()
    3.0
    """

    support = constraints.nonnegative_integer

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self._take(probs, logits, validate_args)

    @property
    def mean(self) -> Tensor:
        return 1.0 / self.probs - 1.0

    @property
    def variance(self) -> Tensor:
        return (1.0 / self.probs - 1.0) / self.probs

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Draw a number of failures."""
        with mg.no_grad():
            u = uniform(self._extended_shape(sample_shape), self.probs)
            return (u.log() / (-self.probs).log1p()).floor()

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the probability."""
        value, probs = broadcast_all(self._checked(value), self.probs)
        probs = mg.where((probs == 1) & (value == 0), 0.0, probs)
        return value * (-probs).log1p() + self.probs.log()

    def entropy(self) -> Tensor:
        """The expected surprise."""
        bits = F.binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")
        return bits / self.probs


class Binomial(_Chance):
    """How many of `total_count` trials are successes.

    >>> import monograph as mg
    >>> mg.distributions.Binomial(10, mg.tensor(0.5)).variance.item()
    2.5
    """

    def __init__(
        self, total_count: Any = 1, probs: Any = None, logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:  # fmt: skip
        self._take(probs, logits, validate_args, total_count)

    @property
    def support(self) -> Any:
        return constraints.integer_interval(0, self.total_count)

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.probs

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Draw a number of successes: as many trials as the largest count are made."""
        with mg.no_grad():
            shape = self._extended_shape(sample_shape)
            most = int(self.total_count.max().item())
            u = mg.rand(*shape, most, dtype=self.probs.dtype)
            tried = mg.arange(most, dtype=self.probs.dtype) < self.total_count.unsqueeze(-1)
            return ((u < self.probs.unsqueeze(-1)) & tried).to(self.probs.dtype).sum(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the probability."""
        value, n = self._checked(value), self.total_count
        ways = mg.lgamma(n + 1) - mg.lgamma(value + 1) - mg.lgamma(n - value + 1)
        low = self.logits.clamp(min=0)
        return value * self.logits - n * low - n * (-self.logits.abs()).exp().log1p() + ways

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """0 to the count, which must be the same throughout."""
        most = int(self.total_count.max().item())
        if int(self.total_count.min().item()) != most:
            raise NotImplementedError("Inhomogeneous total count not supported")
        values = mg.arange(1 + most, dtype=self.probs.dtype)
        values = values.view(-1, *([1] * len(self._batch_shape)))
        return values.expand(-1, *self._batch_shape) if expand else values

    def entropy(self) -> Tensor:
        """The expected surprise."""
        each = self.log_prob(self.enumerate_support(False))
        return -(each.exp() * each).sum(0)


class Poisson(ExponentialFamily):
    """How often something happens that is expected `rate` times.

    >>> import monograph as mg
    >>> mg.distributions.Poisson(mg.tensor(3.0)).variance.item()
    3.0
    """

    arg_constraints = {"rate": constraints.nonnegative}
    support = constraints.nonnegative_integer

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        (self.rate,) = broadcast_all(rate)
        super().__init__(self.rate.shape, (), validate_args, (rate,))

    @property
    def mean(self) -> Tensor:
        return self.rate

    @property
    def variance(self) -> Tensor:
        return self.rate

    @property
    def mode(self) -> Tensor:
        return self.rate.floor()

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Draw a number of events."""
        with mg.no_grad():
            return mg.poisson(self.rate.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the probability."""
        rate, value = broadcast_all(self.rate, self._checked(value))
        return mg.xlogy(value, rate) - rate - mg.lgamma(value + 1)


class _Categories(Distribution):
    """A distribution over the places of the last axis of its parameter."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}

    def _take(self, probs: Any, logits: Any, validate_args: bool | None) -> Tensor:
        """Keep the parameter, normalised and checked; as it was given."""
        _one_of(probs, logits)
        name, given = ("probs", probs) if logits is None else ("logits", logits)
        if given.ndim < 1:
            raise ValueError(f"`{name}` parameter must be at least one-dimensional.")
        normalised = shares if logits is None else log_shares
        if not (self._validate_args if validate_args is None else validate_args):
            self.__dict__[name] = normalised(given, None)
            return given
        constraint = self.arg_constraints[name]
        message = constraints.complaint(
            PARAMETER, tuple(given.shape), constraint, type(self).__name__, name
        )
        condition = constraints.condition(constraint, message)
        made = normalised(given, condition)
        if condition is None:
            made = constraints.validated(made, constraint, message, False)
        self.__dict__[name] = made
        return given

    def _check_parameters(self, now: bool) -> None:
        """They were checked when they were normalised."""

    @derived
    def logits(self) -> Tensor:
        """Logarithms of the probabilities."""
        return log_between(self.probs, mg.finfo(self.probs.dtype).eps)

    @derived
    def probs(self) -> Tensor:
        """The probabilities."""
        return F.softmax(self.logits, -1)

    @property
    def param_shape(self) -> Any:
        return self._parameter.shape

    @property
    def _parameter(self) -> Tensor:
        held = self.__dict__
        return held["probs"] if "probs" in held else held["logits"]

    @property
    def _num_events(self) -> int:
        return int(self._parameter.shape[-1])

    def _draw(self, sample_shape: Any) -> Tensor:
        """Categories of shape sample_shape + batch_shape."""
        with mg.no_grad():
            rows = self.probs.reshape(-1, self._num_events)
            count = Size(sample_shape).numel()
            drawn = mg.multinomial(rows, count, True).t()
            return drawn.reshape((*sample_shape, *self._parameter.shape[:-1]))

    def entropy(self) -> Tensor:
        """The expected surprise."""
        logits = self.logits
        return mean_surprise(logits, self.probs, mg.finfo(logits.dtype).min)


# Policies make a distribution at every turn. So what it takes is one recorded call each.


@operator(to=None, method=False)
def shares(x: Tensor, condition: Any) -> Any:
    """Weights divided by their sum along the last axis, and checked."""
    made = mg.div(x, mg.sum(x, -1, True))
    constraints.require_within(made, condition)
    return made


@operator(to=None, method=False)
def log_shares(x: Tensor, condition: Any) -> Any:
    """The same in logarithms."""
    made = mg.sub(x, mg.logsumexp(x, -1, True))
    constraints.require_within(made, condition)
    return made


@operator(to=None, method=False)
def log_between(x: Tensor, eps: float) -> Any:
    """The logarithm of probabilities that are kept away from 0 and 1."""
    return mg.log(mg.clamp(x, eps, 1 - eps))


@operator(to=None, method=False)
def mean_surprise(logits: Tensor, probs: Tensor, least: float) -> Any:
    """-Σ p log p along the last axis, where no logarithm is below `least`."""
    return mg.neg(mg.sum(mg.mul(mg.clamp(logits, least), probs), -1))


@operator(to=None, method=False)
def at_category(logits: Tensor, value: Tensor, condition: Any) -> Any:
    """What the last axis has at the place of a category, which is checked; batches broadcast."""
    constraints.require_within(value, condition)
    place: Any = build.cast(value, dtypes.int64)  # type: ignore[arg-type] # nodes
    shape = build.broadcast_shapes(logits.shape[:-1], place.shape)
    count = logits.shape[-1]
    rows: Any = build.broadcast_to(logits, (*shape, count))  # type: ignore[arg-type]
    place = build.broadcast_to(place, shape)
    return mg.squeeze(mg.gather(rows, -1, mg.unsqueeze(place, -1)), -1)


@functools.lru_cache(64)
def _places(count: int) -> Any:
    """The numbers of so many categories; a policy asks for the same ones at every turn."""
    return constraints.integer_interval(0, count - 1)


class Categorical(_Categories):
    """The number of a category.

    >>> Categorical(probs=mg.tensor([1.0, 3.0])).log_prob(mg.tensor(1)).exp().item()
    0.75
    """

    has_enumerate_support = True

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        given = self._take(probs, logits, validate_args)
        super().__init__(given.shape[:-1], (), validate_args)

    @property
    def support(self) -> Any:
        return _places(self._num_events)

    @property
    def mean(self) -> Tensor:
        return mg.full(tuple(self._batch_shape), math.nan)

    @property
    def variance(self) -> Tensor:
        return mg.full(tuple(self._batch_shape), math.nan)

    @property
    def mode(self) -> Tensor:
        return self._parameter.argmax(-1)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Draw the number of a category."""
        return self._draw(sample_shape)

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the probability."""
        wanted = self._expected(value)
        condition = None if wanted is None else constraints.condition(*wanted)
        if wanted is not None and condition is None:
            value = constraints.validated(value, *wanted, False)
        return at_category(self.logits, value, condition)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """The numbers of all categories."""
        values = mg.arange(self._num_events).view(-1, *([1] * len(self._batch_shape)))
        return values.expand(-1, *self._batch_shape) if expand else values


class OneHotCategorical(_Categories):
    """A category as a vector with one 1.

    >>> import monograph as mg
    >>> mg.distributions.OneHotCategorical(mg.tensor([0.5, 0.5])).sample().sum().item()
    1.0
    """

    support = constraints.one_hot

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        given = self._take(probs, logits, validate_args)
        super().__init__(given.shape[:-1], given.shape[-1:], validate_args)

    @property
    def mean(self) -> Tensor:
        return self.probs

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)

    @property
    def mode(self) -> Tensor:
        return F.one_hot(self.probs.argmax(-1), self._num_events).to(self.probs.dtype)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Draw a vector with one 1."""
        return F.one_hot(self._draw(sample_shape), self._num_events).to(self.probs.dtype)

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the probability."""
        value, logits = mg.broadcast_tensors(self._checked(value), self.logits)
        place = value.argmax(-1, keepdim=True)
        return logits.gather(-1, place).squeeze(-1)


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """The same, whose draws pass gradients on to the probabilities.

    >>> import monograph as mg
    >>> logits = mg.zeros(3, requires_grad=True)
    >>> drawn = mg.distributions.OneHotCategoricalStraightThrough(logits=logits).rsample()
    >>> drawn.sum().item(), drawn.requires_grad
    (1.0, True)
    """

    has_rsample = True

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Draw so that gradients reach the parameters."""
        return self.sample(sample_shape) + (self.probs - self.probs.detach())


class Multinomial(_Categories):
    """How often each category comes in `total_count` draws.

    >>> import monograph as mg
    >>> drawn = mg.distributions.Multinomial(10, mg.tensor([0.5, 0.25, 0.25])).sample()
    >>> drawn.sum().item()
    10.0
    """

    total_count: int

    def __init__(
        self, total_count: int = 1, probs: Any = None, logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:  # fmt: skip
        if not isinstance(total_count, int):
            raise NotImplementedError("inhomogeneous total_count is not supported")
        self.total_count = total_count
        given = self._take(probs, logits, validate_args)
        super().__init__(given.shape[:-1], given.shape[-1:], validate_args)

    @property
    def support(self) -> Any:
        return constraints.independent(constraints.nonnegative_integer, 1)

    @property
    def mean(self) -> Tensor:
        return self.probs * self.total_count

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    def entropy(self) -> Tensor:
        """The expected surprise."""
        n = self.total_count
        counts = Binomial(n, probs=self.probs)
        values = counts.enumerate_support(False)[1:]
        repeats = (counts.log_prob(values).exp() * mg.lgamma(values + 1)).sum((0, -1))
        return n * super().entropy() - math.lgamma(n + 1) + repeats

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Draw counts."""
        drawn = self._draw((self.total_count, *sample_shape))
        return F.one_hot(drawn, self._num_events).sum(0).to(self.probs.dtype)

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the probability."""
        logits, value = mg.broadcast_tensors(self.logits, self._checked(value))
        ways = mg.lgamma(value.sum(-1) + 1) - mg.lgamma(value + 1).sum(-1)
        logits = mg.where((value == 0) & (logits == -math.inf), 0.0, logits)
        return ways + (logits * value).sum(-1)
