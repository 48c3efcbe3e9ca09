"""Distributions made of others: independent events, transformed ones, mixtures."""

from __future__ import annotations

from typing import Any

import monograph as mg
import monograph.nn.functional as F

from ..tensor import Tensor
from . import constraints
from .discrete import Categorical
from .distribution import Distribution
from .location_scale import Normal
from .transforms import (
    ComposeTransform,
    ExpTransform,
    Transform,
    sum_last,
)


class Independent(Distribution):
    """The last axes of a distribution's batch as one event.

    >>> import monograph as mg
    >>> normal = mg.distributions.Normal(mg.zeros(3, 4), mg.ones(3, 4))
    >>> mg.distributions.Independent(normal, 1).log_prob(mg.zeros(3, 4)).shape
    Size([3])
    """

    def __init__(
        self, base_distribution: Distribution, reinterpreted_batch_ndims: int,
        validate_args: bool | None = None,
    ) -> None:  # fmt: skip
        count = reinterpreted_batch_ndims
        rank = len(base_distribution.batch_shape)
        if count > rank:
            raise ValueError(
                "Expected reinterpreted_batch_ndims <= len(base_distribution.batch_shape), "
                f"actual {count} vs {rank}"
            )
        shape = (*base_distribution.batch_shape, *base_distribution.event_shape)
        self.base_dist = base_distribution
        self.reinterpreted_batch_ndims = count
        super().__init__(shape[: rank - count], shape[rank - count :], validate_args)

    @property
    def has_rsample(self) -> bool:  # type: ignore[override]
        return self.base_dist.has_rsample

    @property
    def support(self) -> Any:
        return constraints.independent(self.base_dist.support, self.reinterpreted_batch_ndims)

    @property
    def mean(self) -> Tensor:
        return self.base_dist.mean

    @property
    def mode(self) -> Tensor:
        return self.base_dist.mode

    @property
    def variance(self) -> Tensor:
        return self.base_dist.variance

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Draw."""
        return self.base_dist.sample(sample_shape)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Draw so that gradients reach the parameters."""
        return self.base_dist.rsample(sample_shape)

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density."""
        return sum_last(self.base_dist.log_prob(value), self.reinterpreted_batch_ndims)

    def entropy(self) -> Tensor:
        """The expected surprise."""
        return sum_last(self.base_dist.entropy(), self.reinterpreted_batch_ndims)

    def __repr__(self) -> str:
        return f"Independent({self.base_dist}, {self.reinterpreted_batch_ndims})"


class TransformedDistribution(Distribution):
    """What becomes of draws that a transform is applied to.

    >>> made = TransformedDistribution(Normal(0.0, 1.0), [ExpTransform()])
    >>> made.log_prob(mg.tensor(1.0)).item()
    -0.9189385175704956
    """

    def __init__(
        self, base_distribution: Distribution, transforms: Any, validate_args: bool | None = None
    ) -> None:
        listed = [transforms] if isinstance(transforms, Transform) else list(transforms)
        if not all(isinstance(part, Transform) for part in listed):
            raise ValueError("transforms must be a Transform or a list of Transforms")
        self.transforms = listed
        whole = ComposeTransform(listed)
        rank = len(base_distribution.event_shape)
        events = max(rank, whole.event_dim)
        if events > rank:
            base_distribution = Independent(base_distribution, events - rank)
        self.base_dist = base_distribution
        shape = (*base_distribution.batch_shape, *base_distribution.event_shape)
        shape = tuple(whole.forward_shape(shape))
        cut = len(shape) - events
        super().__init__(shape[:cut], shape[cut:], validate_args)

    @property
    def has_rsample(self) -> bool:  # type: ignore[override]
        return self.base_dist.has_rsample

    @property
    def support(self) -> Any:
        return self.transforms[-1].codomain if self.transforms else self.base_dist.support

    def _forward(self, x: Tensor) -> Tensor:
        for part in self.transforms:
            x = part(x)
        return x

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Draw."""
        with mg.no_grad():
            return self._forward(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Draw so that gradients reach the parameters."""
        return self._forward(self.base_dist.rsample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density."""
        events, total, y = len(self._event_shape), 0.0, value
        for part in reversed(self.transforms):
            x = part.inv(y)
            stretched = part.log_abs_det_jacobian(x, y)
            total = total - sum_last(stretched, events - part.event_dim)
            y = x
        inner = len(self.base_dist.event_shape)
        return total + sum_last(self.base_dist.log_prob(y), events - inner)

    def _monotone(self, value: Tensor) -> Tensor:
        sign: Any = 1
        for part in self.transforms:
            sign = sign * part.sign
        return value if isinstance(sign, int) and sign == 1 else sign * (value - 0.5) + 0.5

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of at most this value."""
        for part in reversed(self.transforms):
            value = part.inv(value)
        return self._monotone(self.base_dist.cdf(value))

    def icdf(self, value: Tensor) -> Tensor:
        """The value that this probability lies below."""
        return self._forward(self.base_dist.icdf(self._monotone(value)))


class LogNormal(TransformedDistribution):
    """A number whose logarithm is normal.

    >>> import monograph as mg
    >>> mg.distributions.LogNormal(0.0, 1.0).sample((100,)).min().item() > 0
    True
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    base_dist: Normal

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        super().__init__(Normal(loc, scale, validate_args), ExpTransform(), validate_args)

    @property
    def loc(self) -> Tensor:
        return self.base_dist.loc

    @property
    def scale(self) -> Tensor:
        return self.base_dist.scale

    @property
    def mean(self) -> Tensor:
        return (self.loc + self.scale.pow(2) / 2).exp()

    @property
    def mode(self) -> Tensor:
        return (self.loc - self.scale.square()).exp()

    @property
    def variance(self) -> Tensor:
        square = self.scale.pow(2)
        return square.expm1() * (2 * self.loc + square).exp()

    def entropy(self) -> Tensor:
        """The expected surprise."""
        return self.base_dist.entropy() + self.loc


class MixtureSameFamily(Distribution):
    """One of several distributions, chosen by a categorical one.

    >>> import monograph as mg
    >>> weights = mg.distributions.Categorical(mg.tensor([0.75, 0.25]))
    >>> parts = mg.distributions.Normal(mg.tensor([0.0, 4.0]), mg.ones(2))
    >>> mg.distributions.MixtureSameFamily(weights, parts).mean.item()
    1.0
    """

    def __init__(
        self, mixture_distribution: Categorical, component_distribution: Distribution,
        validate_args: bool | None = None,
    ) -> None:  # fmt: skip
        self._mixture_distribution = mixture_distribution
        self._component_distribution = component_distribution
        batch = component_distribution.batch_shape[:-1]
        super().__init__(batch, component_distribution.event_shape, validate_args)

    @property
    def mixture_distribution(self) -> Categorical:
        return self._mixture_distribution

    @property
    def component_distribution(self) -> Distribution:
        return self._component_distribution

    @property
    def support(self) -> Any:
        return self._component_distribution.support

    def _weights(self) -> Tensor:
        probs = self._mixture_distribution.probs
        return probs.reshape((*probs.shape, *([1] * len(self._event_shape))))

    def _axis(self) -> int:
        return -1 - len(self._event_shape)

    @property
    def mean(self) -> Tensor:
        return (self._weights() * self._component_distribution.mean).sum(self._axis())

    @property
    def variance(self) -> Tensor:
        inner = self._component_distribution
        spread = inner.variance + (inner.mean - self.mean.unsqueeze(self._axis())) ** 2
        return (self._weights() * spread).sum(self._axis())

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Draw."""
        with mg.no_grad():
            chosen = self._mixture_distribution.sample(sample_shape)
            drawn = self._component_distribution.sample(sample_shape)
            events = len(self._event_shape)
            place = chosen.reshape((*chosen.shape, *([1] * (events + 1))))
            wide = (*chosen.shape, 1, *self._event_shape)
            return drawn.gather(self._axis() + drawn.ndim, place.expand(wide)).squeeze(self._axis())

    def cdf(self, x: Tensor) -> Tensor:
        """The probability of at most this value."""
        each = self._component_distribution.cdf(x.unsqueeze(self._axis()))
        return (each * self._mixture_distribution.probs).sum(-1)

    def log_prob(self, x: Tensor) -> Tensor:
        """The logarithm of the density."""
        padded = x.unsqueeze(self._axis())
        each = self._component_distribution.log_prob(padded)
        weight = F.log_softmax(self._mixture_distribution.logits, -1)
        return mg.logsumexp(each + weight, -1)
