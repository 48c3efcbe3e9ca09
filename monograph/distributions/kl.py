"""`kl_divergence`: how far one distribution is from another, by pairs of classes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import monograph as mg
import monograph.nn.functional as F

from ..tensor import Tensor
from .compound import Independent, LogNormal, TransformedDistribution
from .discrete import Bernoulli, Binomial, Categorical, Geometric, OneHotCategorical, Poisson
from .distribution import Distribution
from .gamma import Beta, Dirichlet, Exponential, Gamma
from .location_scale import Gumbel, HalfNormal, Laplace, Normal, Uniform
from .multivariate import MultivariateNormal, _squared_distance
from .transforms import sum_last

_rules: dict[tuple[type, type], Callable[..., Any]] = {}


def register_kl(type_p: type, type_q: type) -> Callable[..., Any]:
    """Decorate the function that gives KL(p || q) for two classes and their subclasses."""
    for name, given in (("type_p", type_p), ("type_q", type_q)):
        if not isinstance(given, type):  # libraries have distributions of other base classes
            raise TypeError(f"Expected {name} to be a Distribution subclass but got {given}")

    def note(function: Callable[..., Any]) -> Callable[..., Any]:
        _rules[type_p, type_q] = function
        return function

    return note


def _rule(p: type, q: type) -> Callable[..., Any] | None:
    """The rule of the nearest classes."""
    found = [
        (p.__mro__.index(a) + q.__mro__.index(b), rule)
        for (a, b), rule in _rules.items()
        if issubclass(p, a) and issubclass(q, b)
    ]
    return min(found, key=lambda pair: pair[0])[1] if found else None


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """The mean of log p(x) - log q(x) over draws x of p.

    >>> kl_divergence(Normal(0.0, 1.0), Normal(1.0, 1.0)).item()
    0.5
    """
    rule = _rule(type(p), type(q))
    if rule is None:
        raise NotImplementedError(
            f"No KL(p || q) is implemented for p type {type(p).__name__} and q type "
            f"{type(q).__name__}"
        )
    return rule(p, q)


@register_kl(Normal, Normal)
def _(p: Normal, q: Normal) -> Any:
    ratio = (p.scale / q.scale).pow(2)
    distance = ((p.loc - q.loc) / q.scale).pow(2)
    return 0.5 * (ratio + distance - 1 - ratio.log())


@register_kl(Bernoulli, Bernoulli)
def _(p: Bernoulli, q: Bernoulli) -> Any:
    yes = p.probs * (F.softplus(-q.logits) - F.softplus(-p.logits))
    no = (1 - p.probs) * (F.softplus(q.logits) - F.softplus(p.logits))
    yes = mg.where(q.probs == 0, math.inf, yes)
    no = mg.where(q.probs == 1, math.inf, no)
    return mg.where(p.probs == 0, 0.0, yes) + mg.where(p.probs == 1, 0.0, no)


@register_kl(Binomial, Binomial)
def _(p: Binomial, q: Binomial) -> Any:
    return p.total_count * (
        p.probs * (p.logits - q.logits) + (-p.probs).log1p() - (-q.probs).log1p()
    )


@register_kl(Categorical, Categorical)
def _(p: Categorical, q: Categorical) -> Any:
    t = p.probs * (p.logits - q.logits)
    t = mg.where(q.probs == 0, math.inf, t)
    return mg.where(p.probs == 0, 0.0, t).sum(-1)


@register_kl(OneHotCategorical, OneHotCategorical)
def _(p: OneHotCategorical, q: OneHotCategorical) -> Any:
    return kl_divergence(Categorical(logits=p.logits), Categorical(logits=q.logits))


@register_kl(Poisson, Poisson)
def _(p: Poisson, q: Poisson) -> Any:
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


@register_kl(Geometric, Geometric)
def _(p: Geometric, q: Geometric) -> Any:
    return -p.entropy() - (-q.probs).log1p() / p.probs - q.logits


@register_kl(Exponential, Exponential)
def _(p: Exponential, q: Exponential) -> Any:
    ratio = q.rate / p.rate
    return -ratio.log() + ratio - 1


@register_kl(Gamma, Gamma)
def _(p: Gamma, q: Gamma) -> Any:
    a, b = p.concentration, q.concentration
    return (
        b * (p.rate / q.rate).log() + mg.lgamma(b) - mg.lgamma(a) + (a - b) * mg.digamma(a)
        + (q.rate - p.rate) * (a / p.rate)
    )  # fmt: skip


@register_kl(Exponential, Gamma)
def _(p: Exponential, q: Gamma) -> Any:
    ratio = q.rate / p.rate
    a = q.concentration
    return (
        -a * ratio.log()
        + ratio
        + mg.lgamma(a)
        + a * 0.57721566490153286060
        - (1 + 0.57721566490153286060)
    )


@register_kl(Beta, Beta)
def _(p: Beta, q: Beta) -> Any:
    return kl_divergence(p._dirichlet(), q._dirichlet())


@register_kl(Dirichlet, Dirichlet)
def _(p: Dirichlet, q: Dirichlet) -> Any:
    a, b = p.concentration, q.concentration
    total = a.sum(-1)
    shift = mg.digamma(a) - mg.digamma(total).unsqueeze(-1)
    ways = mg.lgamma(total) - mg.lgamma(b.sum(-1)) - (mg.lgamma(a) - mg.lgamma(b)).sum(-1)
    return ways + ((a - b) * shift).sum(-1)


@register_kl(Laplace, Laplace)
def _(p: Laplace, q: Laplace) -> Any:
    ratio, distance = p.scale / q.scale, (p.loc - q.loc).abs()
    return -ratio.log() + distance / q.scale + ratio * (-distance / p.scale).exp() - 1


@register_kl(Uniform, Uniform)
def _(p: Uniform, q: Uniform) -> Any:
    known = ((q.high - q.low) / (p.high - p.low)).log()
    return mg.where((q.low > p.low) | (q.high < p.high), math.inf, known)


@register_kl(Uniform, Normal)
def _(p: Uniform, q: Normal) -> Any:
    width = p.high - p.low
    first = (math.sqrt(math.pi * 2) * q.scale / width).log()
    second = width.pow(2) / 12
    third = ((p.high + p.low - 2 * q.loc) / 2).pow(2)
    return first + 0.5 * (second + third) / q.scale.pow(2)


@register_kl(HalfNormal, HalfNormal)
def _(p: HalfNormal, q: HalfNormal) -> Any:
    ratio = (p.scale / q.scale).pow(2)
    return 0.5 * (ratio - 1 - ratio.log())


@register_kl(Gumbel, Gumbel)
def _(p: Gumbel, q: Gumbel) -> Any:
    euler = 0.57721566490153286060
    ratio = p.scale / q.scale
    first, second = q.loc / q.scale, p.loc / q.scale
    t = -ratio.log() - first + second
    return t + ratio * euler + (first - second + mg.lgamma(1 + ratio)).exp() - (1 + euler)


@register_kl(LogNormal, LogNormal)
def _(p: LogNormal, q: LogNormal) -> Any:
    return kl_divergence(p.base_dist, q.base_dist)


@register_kl(MultivariateNormal, MultivariateNormal)
def _(p: MultivariateNormal, q: MultivariateNormal) -> Any:
    if p.event_shape != q.event_shape:
        raise ValueError("KL-divergence between two normals of different event shapes")
    size = p.event_shape[0]
    mine, other = p._unbroadcasted_scale_tril, q._unbroadcasted_scale_tril
    whole = mine + other
    solved = mg.linalg.solve_triangular(other.expand_as(whole), mine.expand_as(whole), upper=False)
    trace = solved.pow(2).sum((-2, -1))
    distance = _squared_distance(other, q.loc - p.loc)
    return q._half_log_det() - p._half_log_det() + 0.5 * (trace + distance - size)


@register_kl(Independent, Independent)
def _(p: Independent, q: Independent) -> Any:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError
    return sum_last(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


@register_kl(TransformedDistribution, TransformedDistribution)
def _(p: TransformedDistribution, q: TransformedDistribution) -> Any:
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError
    return kl_divergence(p.base_dist, q.base_dist)
