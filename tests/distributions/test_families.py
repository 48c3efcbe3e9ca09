"""The rarer families against PyTorch's: densities, moments, divergences, draws, transforms."""

import itertools

import numpy as np
import pytest
import torch as pytorch
from torch.distributions.kl import _KL_REGISTRY

import monograph as mg
import monograph.torch as torch

COVARIANCE = [[2.0, 0.5], [0.5, 1.0]]
# name: (how it is made of two parameters, values, parameters)
CASES = {
    "Pareto": (lambda D, a, b: D.Pareto(a, b), [2.5, 3.0], ([1.0, 2.0], [3.0, 4.5])),
    "GeneralizedPareto": (
        lambda D, a, b: D.GeneralizedPareto(a, b, 0.2), [1.5, 2.5], ([1.0, 2.0], [3.0, 4.5])),
    "GeneralizedPareto, flat": (
        lambda D, a, b: D.GeneralizedPareto(a, b, 0.0), [1.5, 2.5], ([1.0, 2.0], [3.0, 4.5])),
    "GeneralizedPareto, bounded": (
        lambda D, a, b: D.GeneralizedPareto(a, b, -0.5), [1.5, 2.5], ([1.0, 2.0], [3.0, 4.5])),
    "Weibull": (lambda D, a, b: D.Weibull(a, b), [0.5, 0.3], ([1.0, 2.0], [0.8, 3.0])),
    "Kumaraswamy": (lambda D, a, b: D.Kumaraswamy(a, b), [0.5, 0.3], ([1.5, 2.0], [0.8, 3.0])),
    "HalfCauchy": (lambda D, a, b: D.HalfCauchy(a), [0.5, 0.3], ([1.0, 2.0], [1.0, 1.0])),
    "InverseGamma": (lambda D, a, b: D.InverseGamma(a, b), [0.5, 0.3], ([5.0, 4.0], [0.8, 3.0])),
    "FisherSnedecor": (
        lambda D, a, b: D.FisherSnedecor(a, b), [0.5, 0.3], ([5.0, 4.0], [10.0, 12.0])),
    "ContinuousBernoulli": (
        lambda D, a, b: D.ContinuousBernoulli(a), [0.5, 0.3], ([0.2, 0.5], [1.0, 1.0])),
    "ContinuousBernoulli of logits": (
        lambda D, a, b: D.ContinuousBernoulli(logits=a), [0.5, 0.3], ([-1.0, 2.0], [1.0, 1.0])),
    "NegativeBinomial": (
        lambda D, a, b: D.NegativeBinomial(a, b), [3.0, 0.0], ([3.0, 4.0], [0.2, 0.5])),
    "NegativeBinomial of logits": (
        lambda D, a, b: D.NegativeBinomial(a, logits=b), [3.0, 0.0], ([3.0, 4.0], [0.2, -0.5])),
    "VonMises": (lambda D, a, b: D.VonMises(a, b), [0.5, 0.3], ([0.0, 1.0], [0.8, 30.0])),
    "LogisticNormal": (
        lambda D, a, b: D.LogisticNormal(a, b), [0.2, 0.3, 0.5], ([0.0, 1.0], [0.8, 0.3])),
    "LowRankMultivariateNormal": (
        lambda D, a, b: D.LowRankMultivariateNormal(a, a.unsqueeze(-1) + 1, b), [0.5, 0.3],
        ([0.0, 1.0], [0.8, 0.3])),
    "Wishart": (
        lambda D, a, b: D.Wishart(a, b), COVARIANCE, (4.0, COVARIANCE)),
    "Wishart of precision": (
        lambda D, a, b: D.Wishart(a, precision_matrix=b), COVARIANCE, (4.0, COVARIANCE)),
    "LKJCholesky": (
        lambda D, a, b: D.LKJCholesky(3, a),
        [[1.0, 0.0, 0.0], [0.6, 0.8, 0.0], [0.0, 0.6, 0.8]], (1.5, 1.0)),
}  # fmt: skip


def build(lib, name, grad=False, shift=0.0):
    make, _, given = CASES[name]
    # PyTorch compares the concentration of this one with a float32.
    dtype = lib.float32 if name.startswith("GeneralizedPareto") and not shift else lib.float64
    made = [lib.tensor(np.asarray(part) + shift, dtype=dtype) for part in given]
    for part in made:
        part.requires_grad_(grad)
    return make(lib.distributions, *made), made


def numbers(x):
    return np.asarray(x.detach().tolist(), np.float64)


@pytest.mark.parametrize("name", CASES)
def test_numbers_and_their_derivatives(name):
    (theirs, given), (ours, own) = build(pytorch, name, True), build(torch, name, True)
    assert tuple(ours.batch_shape) == tuple(theirs.batch_shape)
    assert tuple(ours.event_shape) == tuple(theirs.event_shape)
    compared = 0
    for fact in ("log_prob", "cdf", "entropy", "mean", "variance", "stddev", "mode"):
        results = []
        for lib, made in ((pytorch, theirs), (torch, ours)):
            try:
                found = getattr(made, fact)
                if callable(found):
                    value = lib.tensor(
                        CASES[name][1], dtype=(given if lib is pytorch else own)[0].dtype
                    )
                    found = found(value) if fact in ("log_prob", "cdf") else found()
                results.append(found)
            except NotImplementedError:
                results.append(None)
        if results[0] is None:
            continue
        expected, found = results
        assert np.allclose(numbers(found), numbers(expected), rtol=1e-6, equal_nan=True), fact
        compared += 1
        if not expected.requires_grad or fact == "mode" or (name, fact) == ("InverseGamma", "cdf"):
            continue  # that derivative PyTorch has not
        slopes = [
            lib.autograd.grad(x.sum(), parts, allow_unused=True, retain_graph=True)
            for lib, x, parts in ((pytorch, expected, given), (torch, found, own))
        ]
        for mine, slope in zip(slopes[1], slopes[0], strict=True):
            assert (mine is None) == (slope is None) or not numbers(mine or slope).any(), fact
            if mine is not None and slope is not None:
                close = 1e-3 if name == "VonMises" else 1e-5  # PyTorch approximates I0 and I1
                assert np.allclose(numbers(mine), numbers(slope), rtol=close, equal_nan=True), fact
    assert compared >= 1


QUICK = ("Pareto", "VonMises", "NegativeBinomial", "LKJCholesky")


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[] if n in QUICK else pytest.mark.long) for n in CASES]
)
def test_draws(name):
    torch.manual_seed(0)
    ours, _ = build(torch, name)
    theirs, _ = build(pytorch, name)
    drawn = ours.sample((4000,))
    assert tuple(drawn.shape) == tuple(theirs.sample((4000,)).shape)
    dtype = getattr(pytorch, drawn.dtype.name)
    theirs.log_prob(
        pytorch.tensor(drawn.tolist(), dtype=dtype)
    )  # which checks that they lie in the support
    sample = numbers(drawn)
    if name == "VonMises":  # moments of an angle are those on the circle
        away = np.cos(sample - numbers(ours.loc)).mean(0)
        assert np.allclose(1 - away, numbers(ours.variance), atol=0.03)
    elif name in ("HalfCauchy", "LogisticNormal", "LKJCholesky"):
        reference = numbers(theirs.sample((4000,)))
        for share in (0.25, 0.5, 0.75):
            found, expected = (np.quantile(x, share, axis=0) for x in (sample, reference))
            assert np.allclose(found, expected, rtol=0.15, atol=0.05), share
    else:
        spread = np.maximum(numbers(ours.stddev), 1e-3)
        assert (abs(sample.mean(0) - numbers(ours.mean)) < 0.12 * spread).all()


@pytest.mark.parametrize("name", [
    "Pareto", "Weibull", "Kumaraswamy", "HalfCauchy", "ContinuousBernoulli",
    "LogisticNormal", "LowRankMultivariateNormal",
])  # fmt: skip
def test_derivatives_of_draws(name):
    """By differences of draws with the same random numbers."""
    torch.manual_seed(1)
    made, own = build(torch, name, True)
    assert made.has_rsample == build(pytorch, name)[0].has_rsample
    weight = torch.tensor(np.random.default_rng(0).normal(size=tuple(made.rsample((5,)).shape)))
    torch.manual_seed(2)
    (made.rsample((5,)) * weight).sum().backward()
    step, total = 1e-6, 0.0
    for sign in (1, -1):
        torch.manual_seed(2)
        moved, _ = build(torch, name, shift=sign * step)
        total += sign * (moved.rsample((5,)) * weight).sum().item()
    slope = sum(numbers(part.grad).sum() for part in own if part.grad is not None)
    assert np.isclose(slope, total / (2 * step), rtol=1e-4)


@pytest.mark.long
@pytest.mark.parametrize("name", ["InverseGamma", "FisherSnedecor", "Wishart"])
def test_mean_of_derivatives_of_draws(name):
    """Draws by way of gamma numbers: the mean of the slopes is the slope of the mean."""
    torch.manual_seed(1)
    made, own = build(torch, name, True)
    made.rsample((20000,)).mean(0).sum().backward()
    found = [numbers(part.grad) for part in own]
    expected = torch.autograd.grad(build(torch, name, True)[0].mean.sum(), own, allow_unused=True)
    again, parts = build(torch, name, True)
    expected = torch.autograd.grad(again.mean.sum(), parts, allow_unused=True)
    for mine, slope in zip(found, expected, strict=True):
        slope = 0.0 if slope is None else numbers(slope)
        assert np.allclose(mine, slope, atol=0.06 * (1 + np.abs(slope).max()))


# --- divergences ----------------------------------------------------------------------------------

PARAMETERS = {
    "Normal": [(0.3, 1.2), (0.7, 0.4)], "Laplace": [(0.3, 1.2), (0.7, 0.4)],
    "Gumbel": [(0.3, 1.2), (0.7, 0.9)], "Cauchy": [(0.3, 1.2), (0.7, 0.4)],
    "Exponential": [(0.7,), (2.0,)], "Gamma": [(2.0, 3.0), (1.5, 0.7)],
    "Beta": [(2.0, 3.0), (1.5, 0.7)], "Pareto": [(1.0, 3.0), (0.5, 2.5)],
    "Uniform": [(0.2, 0.9), (-1.0, 3.0), (1.5, 4.0)], "ContinuousBernoulli": [(0.3,), (0.8,)],
    "Bernoulli": [(0.3,), (0.8,)], "Poisson": [(0.7,), (2.0,)], "Binomial": [(3, 0.4), (3, 0.7)],
    "Geometric": [(0.3,), (0.8,)], "HalfNormal": [(0.7,), (2.0,)],
}  # fmt: skip
PAIRS = sorted(
    {(a.__name__, b.__name__) for a, b in _KL_REGISTRY}
    & set(itertools.product(PARAMETERS, PARAMETERS))
)


def family(lib, name, given):
    """A batch of distributions, of rows of parameters."""
    made = [lib.tensor(x, dtype=lib.float64) for x in zip(*given, strict=True)]
    return getattr(lib.distributions, name)(*made)


@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_divergence(pair):
    given = list(itertools.product(*[PARAMETERS[name] for name in pair]))
    found, expected = (
        lib.distributions.kl_divergence(
            *[family(lib, name, [both[k] for both in given]) for k, name in enumerate(pair)]
        ).tolist()
        for lib in (torch, pytorch)
    )
    assert np.allclose(found, expected, rtol=1e-6, atol=1e-9)


def test_no_pair_is_missing():
    from monograph.distributions import kl

    ours = {(a.__name__, b.__name__) for a, b in kl._rules}
    assert {(a.__name__, b.__name__) for a, b in _KL_REGISTRY} <= ours


def test_divergence_of_low_rank_normals():
    results = []
    for lib in (torch, pytorch):
        D, t = lib.distributions, lambda x, lib=lib: lib.tensor(x, dtype=lib.float64)
        low = D.LowRankMultivariateNormal(t([0.0, 1.0]), t([[1.0], [0.5]]), t([0.3, 0.7]))
        other = D.LowRankMultivariateNormal(t([0.2, 1.0]), t([[0.1], [0.9]]), t([1.3, 0.2]))
        full = D.MultivariateNormal(t([0.5, 0.5]), t(COVARIANCE))
        pairs = ((low, other), (low, full), (full, low))
        results.append([D.kl_divergence(p, q).item() for p, q in pairs])
    assert np.allclose(*results, rtol=1e-6)


def test_a_family_of_ones_own():
    """Entropy and divergence of an exponential family follow from its log-normaliser."""
    results = []
    for lib in (torch, pytorch):

        class Rate(lib.distributions.ExponentialFamily):
            _mean_carrier_measure = 0.0

            def __init__(self, rate):
                self.rate = rate
                super().__init__(rate.shape, validate_args=False)

            @property
            def _natural_params(self):
                return (-self.rate,)

            def _log_normalizer(self, x):
                return -(-x).log()

        p, q = Rate(lib.tensor([0.5, 2.0])), Rate(lib.tensor([1.5, 1.0]))
        results.append([*p.entropy().tolist(), *lib.distributions.kl_divergence(p, q).tolist()])
    assert np.allclose(*results, rtol=1e-5)
    assert np.allclose(results[0][:2], 1 - np.log([0.5, 2.0]), rtol=1e-5)


# --- transforms and constraints -------------------------------------------------------------------

TRANSFORMS = {
    "StickBreaking": (lambda T, D: D.StickBreakingTransform(), [[0.3, -1.0, 0.5]]),
    "CorrCholesky": (lambda T, D: D.CorrCholeskyTransform(), [[0.3, -1.0, 0.5]]),
    "PositiveDefinite": (lambda T, D: D.PositiveDefiniteTransform(), [[0.3, 0.0], [-0.4, 0.5]]),
    "CumulativeDistribution": (
        lambda T, D: D.CumulativeDistributionTransform(D.Normal(0.0, 1.0)), [0.3, -1.0]),
    "Cat": (lambda T, D: D.CatTransform([T.ExpTransform(), T.TanhTransform()], 0, [1, 2]),
            [0.3, -1.0, 0.5]),
    "Stack": (lambda T, D: D.StackTransform([T.ExpTransform(), T.TanhTransform()], 1),
              [[0.3, -1.0], [0.1, 0.2]]),
}  # fmt: skip


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms(name):
    make, given = TRANSFORMS[name]
    results = []
    for lib in (torch, pytorch):
        D = lib.distributions
        made, x = make(D.transforms, D), lib.tensor(given, dtype=lib.float64)
        y = made(x)
        found = [y, made.inv(y)]
        if name != "PositiveDefinite":
            found.append(made.log_abs_det_jacobian(x, y))
        results.append([numbers(part) for part in found])
        assert tuple(made.forward_shape(x.shape)) == tuple(y.shape)
    for ours, theirs in zip(*results, strict=True):
        assert np.allclose(ours, theirs, rtol=1e-6)


CONSTRAINTS = {
    "real": lambda c, t: c.real, "positive": lambda c, t: c.positive,
    "below": lambda c, t: c.less_than(3.0), "unit": lambda c, t: c.unit_interval,
    "interval": lambda c, t: c.interval(-1.0, 3.0),
    "bounds that are tensors": lambda c, t: c.interval(t([0.0, 1.0, 2.0]), t([5.0, 6.0, 7.0])),
    "simplex": lambda c, t: c.simplex, "vector": lambda c, t: c.independent(c.positive, 1),
    "cat": lambda c, t: c.cat([c.positive, c.real], -1, [1, 2]),
    "stack": lambda c, t: c.stack([c.positive, c.real, c.less_than(2.0)], -1),
    "factor of correlations": lambda c, t: c.corr_cholesky,
}  # fmt: skip


@pytest.mark.parametrize("name", CONSTRAINTS)
@pytest.mark.parametrize("table", ["biject_to", "transform_to"])
def test_from_constraints_to_transforms(name, table):
    results = []
    for lib in (torch, pytorch):
        D = lib.distributions
        constraint = CONSTRAINTS[name](D.constraints, lib.tensor)
        made = getattr(D, table)(constraint)
        y = made(lib.tensor([0.3, -1.0, 0.5]))
        assert bool(constraint.check(y).all())
        results.append(numbers(y))
    assert np.allclose(*results, rtol=1e-5)


def test_constraints_of_ones_own():
    for lib in (torch, pytorch):
        D = lib.distributions

        class Even(D.constraints.Constraint):
            is_discrete = True

            def check(self, value):
                return value % 2 == 0

        assert Even().check(lib.tensor([1, 2])).tolist() == [False, True]
        assert repr(D.constraints.positive) == "GreaterThan(lower_bound=0.0)"
        assert repr(D.constraints.real_vector) == "IndependentConstraint(Real(), 1)"
        with pytest.raises(NotImplementedError):
            D.biject_to(Even())
        D.biject_to.register(Even, lambda c, D=D: D.transforms.ExpTransform())
        assert D.biject_to(Even())(lib.zeros(1)).item() == 1.0


def test_wrong_parameters():
    with pytest.raises(ValueError, match="df"):
        mg.distributions.Wishart(mg.tensor(0.5), mg.eye(3))
    with pytest.raises(ValueError, match="Exactly one"):
        mg.distributions.Wishart(mg.tensor(4.0))
    with pytest.raises(ValueError, match="dim"):
        mg.distributions.LKJCholesky(1)
    with pytest.raises(ValueError, match="cov_factor"):
        mg.distributions.LowRankMultivariateNormal(mg.zeros(3), mg.ones(2, 1), mg.ones(3))
