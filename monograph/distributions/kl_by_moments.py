"""Divergences between distributions of different families.

KL(p ‖ q) is minus the entropy of p, less the mean of log q(x) over draws x of p. That mean is made
of a few moments of p: of x, of its square, of log x, of log(1 - x), of e^(-x / s). So each q says
how its log-density is made of them, each p says which it has, and one rule serves all pairs. Where
p draws values that q excludes, the divergence is infinite.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import monograph as mg

from ..tensor import Tensor
from .bounded import ContinuousBernoulli
from .discrete import Bernoulli, Binomial, Poisson
from .distribution import Distribution, ExponentialFamily
from .gamma import Beta, Exponential, Gamma
from .heavy_tailed import Pareto
from .kl import kl_divergence, register_kl
from .location_scale import EULER, Cauchy, Gumbel, Laplace, Normal, Uniform
from .matrices import LowRankMultivariateNormal
from .multivariate import MultivariateNormal


def _x_log_x(x: Tensor) -> Tensor:
    return mg.xlogy(x, x)


# --- moments of p ---------------------------------------------------------------------------------

_LOG: dict[type, Callable[[Any], Tensor]] = {  # the mean of log x
    Gamma: lambda p: mg.digamma(p.concentration) - p.rate.log(),
    Exponential: lambda p: -EULER - p.rate.log(),
    Beta: lambda p: mg.digamma(p.concentration1) - mg.digamma(_total(p)),
    Uniform: lambda p: (_x_log_x(p.high) - _x_log_x(p.low)) / (p.high - p.low) - 1,
    Pareto: lambda p: p.scale.log() + p.alpha.reciprocal(),
}
_LOG_REST: dict[type, Callable[[Any], Tensor]] = {  # the mean of log(1 - x)
    Beta: lambda p: mg.digamma(p.concentration0) - mg.digamma(_total(p)),
    Uniform: lambda p: (_x_log_x(1 - p.low) - _x_log_x(1 - p.high)) / (p.high - p.low) - 1,
}
_DECAY: dict[type, Callable[[Any, Tensor], Tensor]] = {  # the mean of e^(-x / s)
    Exponential: lambda p, s: 1 / (1 + 1 / (p.rate * s)),
    Gamma: lambda p, s: (-p.concentration * mg.log1p(1 / (p.rate * s))).exp(),
    Uniform: lambda p, s: s * ((-p.low / s).exp() - (-p.high / s).exp()) / (p.high - p.low),
    Normal: lambda p, s: (-p.loc / s + 0.5 * (p.scale / s).square()).exp(),
}


def _total(p: Beta) -> Tensor:
    return p.concentration1 + p.concentration0


def _moment(table: dict[type, Any], p: Distribution) -> Any:
    return next(table[kind] for kind in type(p).__mro__ if kind in table)


# --- the mean of log q(x) over draws of p ---------------------------------------------------------


def _mean_normal(p: Any, q: Normal) -> Any:
    spread = p.variance + (p.mean - q.loc).square()
    return -0.5 * spread / q.scale.square() - q.scale.log() - 0.5 * math.log(2 * math.pi)


def _mean_exponential(p: Any, q: Exponential) -> Any:
    return q.rate.log() - q.rate * p.mean


def _mean_gamma(p: Any, q: Gamma) -> Any:
    level = q.concentration * q.rate.log() - mg.lgamma(q.concentration)
    return level + (q.concentration - 1) * _moment(_LOG, p)(p) - q.rate * p.mean


def _mean_beta(p: Any, q: Beta) -> Any:
    a, b = q.concentration1, q.concentration0
    level = mg.lgamma(a + b) - mg.lgamma(a) - mg.lgamma(b)
    return level + (a - 1) * _moment(_LOG, p)(p) + (b - 1) * _moment(_LOG_REST, p)(p)


def _mean_pareto(p: Any, q: Pareto) -> Any:
    return q.alpha.log() + q.alpha * q.scale.log() - (q.alpha + 1) * _moment(_LOG, p)(p)


def _mean_continuous_bernoulli(p: Any, q: ContinuousBernoulli) -> Any:
    return p.mean * q.logits + mg.log1p(-q.probs) + q._cont_bern_log_norm()


def _mean_gumbel(p: Any, q: Gumbel) -> Any:
    decay = (q.loc / q.scale).exp() * _moment(_DECAY, p)(p, q.scale)
    return -q.scale.log() - (p.mean - q.loc) / q.scale - decay


def _mean_uniform(p: Any, q: Uniform) -> Any:
    return -(q.high - q.low).log()


_MEANS: dict[type, Callable[[Any, Any], Any]] = {
    Normal: _mean_normal, Exponential: _mean_exponential, Gamma: _mean_gamma, Beta: _mean_beta,
    Pareto: _mean_pareto, ContinuousBernoulli: _mean_continuous_bernoulli, Gumbel: _mean_gumbel,
    Uniform: _mean_uniform,
}  # fmt: skip
_FINITE: dict[type, tuple[type, ...]] = {
    Beta: (ContinuousBernoulli, Exponential, Gamma, Normal),
    ContinuousBernoulli: (ContinuousBernoulli, Exponential, Normal),
    Exponential: (Gumbel, Normal), Gamma: (Exponential, Gumbel, Normal), Gumbel: (Normal,),
    Laplace: (Normal,), Normal: (Gumbel,), Pareto: (Exponential, Gamma, Normal),
}  # fmt: skip
_INFINITE: dict[type, tuple[type, ...]] = {
    Beta: (Pareto,), ContinuousBernoulli: (Pareto,),
    Exponential: (Beta, ContinuousBernoulli, Pareto, Uniform),
    Gamma: (Beta, ContinuousBernoulli, Pareto, Uniform),
    Gumbel: (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    Laplace: (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    Normal: (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    Pareto: (Beta, ContinuousBernoulli, Uniform), Poisson: (Bernoulli, Binomial),
}  # fmt: skip
# Whether p may draw what q excludes, for pairs where the parameters decide.
_Excludes = dict[tuple[type, type], Callable[[Any, Any], Tensor]]
_EXCLUDED: _Excludes = {
    (Beta, Uniform): lambda p, q: (q.low > 0) | (q.high < 1),
    (ContinuousBernoulli, Uniform): lambda p, q: (q.low > 0) | (q.high < 1),
    (Pareto, Pareto): lambda p, q: p.scale < q.scale,
    (Uniform, Beta): lambda p, q: (p.high > 1) | (p.low < 0),
    (Uniform, ContinuousBernoulli): lambda p, q: (p.high >= 1) | (p.low <= 0),
    (Uniform, Exponential): lambda p, q: p.low < 0,
    (Uniform, Gamma): lambda p, q: p.low < 0,
    (Uniform, Gumbel): lambda p, q: p.low != p.low,
    (Uniform, Pareto): lambda p, q: p.low < q.scale,
}


def _register() -> None:
    def finite(p: Any, q: Any, mean: Any) -> Any:
        return -p.entropy() - mean(p, q)

    def bounded(p: Any, q: Any, mean: Any, outside: Any) -> Any:
        return mg.where(outside(p, q), math.inf, finite(p, q, mean))

    def infinite(p: Any, q: Any) -> Any:
        shape = mg.broadcast_shapes(tuple(p.batch_shape), tuple(q.batch_shape))
        return mg.full(shape, math.inf, dtype=p.mean.dtype)

    for first, others in _FINITE.items():
        for second in others:
            register_kl(first, second)(lambda p, q, mean=_MEANS[second]: finite(p, q, mean))
    for (first, second), outside in _EXCLUDED.items():
        register_kl(first, second)(
            lambda p, q, mean=_MEANS[second], outside=outside: bounded(p, q, mean, outside)
        )
    for first, others in _INFINITE.items():
        for second in others:
            register_kl(first, second)(infinite)


_register()


@register_kl(Normal, Laplace)
def _(p: Normal, q: Laplace) -> Any:
    distance = p.loc - q.loc
    ratio = distance / p.scale
    folded = math.sqrt(2 / math.pi) * p.scale * (-0.5 * ratio.square()).exp()
    folded = folded + distance * mg.erf(ratio * math.sqrt(0.5))  # the mean of |x - loc|
    return -p.entropy() + (2 * q.scale).log() + folded / q.scale


@register_kl(Bernoulli, Poisson)
def _(p: Bernoulli, q: Poisson) -> Any:
    return -p.entropy() - (p.probs * q.rate.log() - q.rate)


@register_kl(Cauchy, Cauchy)
def _(p: Cauchy, q: Cauchy) -> Any:
    wide = (p.scale + q.scale).pow(2) + (p.loc - q.loc).pow(2)
    return wide.log() - (4 * p.scale * q.scale).log()


@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
@register_kl(LowRankMultivariateNormal, MultivariateNormal)
@register_kl(MultivariateNormal, LowRankMultivariateNormal)
def _(p: Any, q: Any) -> Any:
    if p.event_shape != q.event_shape:
        raise ValueError("KL-divergence between two normals of different event shapes")
    p, q = [MultivariateNormal(d.loc, scale_tril=d.scale_tril, validate_args=False) for d in (p, q)]
    return kl_divergence(p, q)


@register_kl(ExponentialFamily, ExponentialFamily)
def _(p: ExponentialFamily, q: ExponentialFamily) -> Any:
    """By the gradient of the log-normaliser; for families that have no rule of their own."""
    if type(p) is not type(q):
        raise NotImplementedError(
            f"The cross KL-divergence between different exponential families cannot be computed: "
            f"{type(p).__name__} and {type(q).__name__}"
        )
    with mg.enable_grad():
        of_p = [part.detach().requires_grad_() for part in p._natural_params]
        level = p._log_normalizer(*of_p)
        slopes = mg.autograd.grad(level.sum(), of_p, create_graph=True)
    result: Any = q._log_normalizer(*q._natural_params) - level
    for mine, theirs, slope in zip(of_p, q._natural_params, slopes, strict=True):
        term = (theirs - mine) * slope
        result = result - term.reshape((*q.batch_shape, -1)).sum(-1)
    return result
