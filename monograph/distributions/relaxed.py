"""Relaxed distributions: choices as points near corners, so that gradients pass through draws."""

from __future__ import annotations

from typing import Any

import monograph as mg

from ..tensor import Tensor
from . import constraints
from .compound import TransformedDistribution
from .discrete import Bernoulli, _Categories, clamp_probs
from .distribution import Distribution, broadcast_all, uniform
from .transforms import ExpTransform, SigmoidTransform, Transform


class ExpRelaxedCategorical(_Categories):
    """The logarithms of a relaxed category.

    >>> import monograph as mg
    >>> drawn = mg.distributions.ExpRelaxedCategorical(0.5, logits=mg.zeros(3)).rsample()
    >>> round(drawn.exp().sum().item(), 4)
    1.0
    """

    support = constraints.real_vector
    has_rsample = True

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:  # fmt: skip
        given = self._take(probs, logits, validate_args)
        self.temperature = temperature
        super().__init__(given.shape[:-1], given.shape[-1:], validate_args)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Draw so that gradients reach the parameters."""
        u = clamp_probs(uniform(self._extended_shape(sample_shape), self._parameter))
        scores = (self.logits - (-u.log()).log()) / self.temperature
        return scores - scores.logsumexp(-1, keepdim=True)

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density."""
        size = self._num_events
        logits, value = mg.broadcast_tensors(self.logits, value)
        heat = self.temperature if isinstance(self.temperature, Tensor) else mg.tensor(
            float(self.temperature), dtype=logits.dtype
        )  # fmt: skip
        constant = mg.lgamma(mg.tensor(float(size))) + (size - 1) * heat.log()
        score = logits - value * heat
        return (score - score.logsumexp(-1, keepdim=True)).sum(-1) + constant


class LogitRelaxedBernoulli(Bernoulli):
    """The logit of a relaxed yes or no.

    >>> import monograph as mg
    >>> mg.distributions.LogitRelaxedBernoulli(0.5, mg.tensor(0.5)).rsample((4,)).shape
    Size([4])
    """

    support = constraints.real
    has_rsample = True

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:  # fmt: skip
        self.temperature = temperature
        super().__init__(probs, logits, validate_args)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Draw."""
        return Distribution.sample(self, sample_shape)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Draw so that gradients reach the parameters."""
        probs = clamp_probs(self.probs.expand(self._extended_shape(sample_shape)))
        u = clamp_probs(uniform(tuple(probs.shape), probs))
        noise = u.log() - (-u).log1p()
        return (noise + probs.log() - (-probs).log1p()) / self.temperature

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density."""
        logits, value = broadcast_all(self.logits, value)
        diff = logits - value * self.temperature
        heat = mg.as_tensor(self.temperature).log()
        return heat + diff - 2 * diff.exp().log1p()


class _Relaxed(TransformedDistribution):
    """A relaxed choice: another distribution, and the transform that its draws go through."""

    base_dist: Any
    scores: type[ExpRelaxedCategorical] | type[LogitRelaxedBernoulli]
    transform: type[Transform]

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:  # fmt: skip
        base = self.scores(temperature, probs, logits, validate_args)
        super().__init__(base, self.transform(), validate_args)

    @property
    def temperature(self) -> Any:
        return self.base_dist.temperature

    @property
    def logits(self) -> Tensor:
        return self.base_dist.logits

    @property
    def probs(self) -> Tensor:
        return self.base_dist.probs


class RelaxedOneHotCategorical(_Relaxed):
    """A category as a point near a corner of the simplex, nearer at low temperature.

    >>> import monograph as mg
    >>> drawn = mg.distributions.RelaxedOneHotCategorical(0.5, logits=mg.zeros(3)).rsample()
    >>> round(drawn.sum().item(), 4)
    1.0
    """

    scores = ExpRelaxedCategorical
    transform = ExpTransform
    support = constraints.simplex


class RelaxedBernoulli(_Relaxed):
    """A number between 0 and 1, near one of them at low temperature.

    >>> import monograph as mg
    >>> drawn = mg.distributions.RelaxedBernoulli(0.5, mg.tensor(0.5)).rsample((100,))
    >>> 0 <= drawn.min().item() <= drawn.max().item() <= 1
    True
    """

    scores = LogitRelaxedBernoulli
    transform = SigmoidTransform
    support = constraints.unit_interval
