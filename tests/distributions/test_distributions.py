"""Distributions against PyTorch's: densities, moments, entropies, divergences, draws, gradients."""

import numpy as np
import pytest
import torch as pytorch

import monograph as mg
import monograph.torch as torch

# name: (how it is made from a library and its distributions, a value)
CASES = {
    "Normal": (lambda t, D: D.Normal(t([0.0, 1.0]), t([1.0, 2.0])), [0.5, 0.3]),
    "LogNormal": (lambda t, D: D.LogNormal(t([0.0, 1.0]), t([1.0, 0.5])), [0.5, 0.3]),
    "Laplace": (lambda t, D: D.Laplace(t([0.0, 1.0]), t([1.0, 2.0])), [0.5, 0.3]),
    "Exponential": (lambda t, D: D.Exponential(t([1.0, 2.0])), [0.5, 0.3]),
    "Uniform": (lambda t, D: D.Uniform(t([0.0, -1.0]), t([1.0, 2.0])), [0.5, 0.3]),
    "Cauchy": (lambda t, D: D.Cauchy(t([0.0, 1.0]), t([1.0, 2.0])), [0.5, 0.3]),
    "Gumbel": (lambda t, D: D.Gumbel(t([0.0, 1.0]), t([1.0, 2.0])), [0.5, 0.3]),
    "HalfNormal": (lambda t, D: D.HalfNormal(t([1.0, 2.0])), [0.5, 0.3]),
    "Gamma": (lambda t, D: D.Gamma(t([0.7, 3.0]), t([1.0, 2.0])), [0.5, 0.3]),
    "Chi2": (lambda t, D: D.Chi2(t([0.7, 3.0])), [0.5, 0.3]),
    "Beta": (lambda t, D: D.Beta(t([0.7, 3.0]), t([1.0, 2.0])), [0.5, 0.3]),
    "Dirichlet": (lambda t, D: D.Dirichlet(t([0.7, 3.0, 2.0])), [0.5, 0.3, 0.2]),
    "StudentT": (lambda t, D: D.StudentT(t([3.5, 5.0]), t([0.0, 1.0]), 2.0), [0.5, 0.3]),
    "Bernoulli": (lambda t, D: D.Bernoulli(logits=t([0.7, -1.0])), [0.0, 1.0]),
    "Bernoulli of probs": (lambda t, D: D.Bernoulli(t([0.7, 0.1])), [0.0, 1.0]),
    "Geometric": (lambda t, D: D.Geometric(t([0.7, 0.1])), [0.0, 3.0]),
    "Binomial": (lambda t, D: D.Binomial(5, t([0.7, 0.1])), [0.0, 3.0]),
    "Poisson": (lambda t, D: D.Poisson(t([0.7, 4.0])), [0.0, 3.0]),
    "Categorical": (
        lambda t, D: D.Categorical(logits=t([[0.1, 0.2, 0.7], [1.0, 2.0, 3.0]])), [0, 2],
    ),
    "Categorical of probs": (lambda t, D: D.Categorical(t([[0.1, 0.2], [1.0, 3.0]])), [0, 1]),
    "OneHotCategorical": (lambda t, D: D.OneHotCategorical(t([0.1, 0.2, 0.7])), [0.0, 1.0, 0.0]),
    "Multinomial": (lambda t, D: D.Multinomial(4, t([0.1, 0.2, 0.7])), [1.0, 1.0, 2.0]),
    "MultivariateNormal": (
        lambda t, D: D.MultivariateNormal(t([0.0, 1.0]), t([[2.0, 0.5], [0.5, 1.0]])), [0.5, 0.3],
    ),
    "MultivariateNormal of precision": (
        lambda t, D: D.MultivariateNormal(
            t([0.0, 1.0]), precision_matrix=t([[2.0, 0.5], [0.5, 1.0]])
        ), [0.5, 0.3],
    ),
    "MultivariateNormal of factor": (
        lambda t, D: D.MultivariateNormal(t([0.0, 1.0]), scale_tril=t([[2.0, 0.0], [0.5, 1.0]])),
        [0.5, 0.3],
    ),
    "Independent": (
        lambda t, D: D.Independent(D.Normal(t([0.0, 1.0]), t([1.0, 2.0])), 1), [0.5, 0.3],
    ),
    "Tanh of Normal": (
        lambda t, D: D.TransformedDistribution(
            D.Normal(t([0.0, 1.0]), t([1.0, 2.0])), [D.transforms.TanhTransform(cache_size=1)]
        ), [0.5, 0.3],
    ),
    "Sigmoid of Affine": (
        lambda t, D: D.TransformedDistribution(
            D.Normal(t([0.0, 1.0]), t([1.0, 2.0])),
            [D.AffineTransform(1.0, -2.0), D.SigmoidTransform()],
        ), [0.5, 0.3],
    ),
    "RelaxedOneHotCategorical": (
        lambda t, D: D.RelaxedOneHotCategorical(t(0.5), t([0.1, 0.2, 0.7])), [0.2, 0.3, 0.5],
    ),
    "RelaxedBernoulli": (lambda t, D: D.RelaxedBernoulli(t(0.5), t([0.1, 0.7])), [0.2, 0.3]),
    "Mixture": (
        lambda t, D: D.MixtureSameFamily(
            D.Categorical(t([1.0, 1.0])), D.Normal(t([0.0, 1.0]), t([1.0, 2.0]))
        ), [0.5, 0.3],
    ),
}  # fmt: skip
NO_MEAN = {"Cauchy", "Categorical", "Categorical of probs"}


def made(lib, name):
    return CASES[name][0](lib.tensor, lib.distributions)


def numbers(x):
    return np.asarray(x.detach().tolist(), np.float64)


@pytest.mark.parametrize("name", CASES)
def test_numbers_are_those_of_pytorch(name):
    theirs, ours, value = made(pytorch, name), made(torch, name), CASES[name][1]
    assert tuple(ours.batch_shape) == tuple(theirs.batch_shape)
    assert tuple(ours.event_shape) == tuple(theirs.event_shape)
    compared = 0
    for fact in ("log_prob", "cdf", "icdf", "entropy", "mean", "variance", "stddev"):
        given = (value,) if fact in ("log_prob", "cdf", "icdf") else ()
        if fact == "icdf" and name in ("Sigmoid of Affine", "Tanh of Normal"):
            continue  # PyTorch takes the argument for a value of the support
        try:
            expected = getattr(theirs, fact)
            if callable(expected):
                expected = expected(*[pytorch.tensor(v) for v in given])
        except (NotImplementedError, ValueError):
            continue
        found = getattr(ours, fact)
        found = found(*[mg.tensor(v) for v in given]) if callable(found) else found
        assert np.allclose(
            numbers(found), numbers(expected), rtol=2e-4, atol=2e-5, equal_nan=True
        ), fact
        compared += 1
    assert compared >= 1


@pytest.mark.parametrize("name", CASES)
def test_draws_have_their_shape_mean_and_spread(name):
    torch.manual_seed(0)
    ours = made(torch, name)
    drawn = ours.sample((4000,))
    assert tuple(drawn.shape) == (4000, *ours.batch_shape, *ours.event_shape)
    assert tuple(made(pytorch, name).sample((3,)).shape[1:]) == tuple(drawn.shape[1:])
    try:
        mean, spread = numbers(ours.mean), numbers(ours.stddev)
    except NotImplementedError:
        return
    if name in NO_MEAN:
        return
    assert np.allclose(numbers(drawn).mean(0), mean, atol=0.12 * spread.max(), rtol=0.05)
    if name not in ("LogNormal", "StudentT"):
        assert np.allclose(numbers(drawn).std(0), spread, rtol=0.15)


PAIRS = [
    ("Normal", "Normal"), ("Gamma", "Gamma"), ("Beta", "Beta"), ("Dirichlet", "Dirichlet"),
    ("Bernoulli", "Bernoulli of probs"), ("Categorical", "Categorical"), ("Laplace", "Laplace"),
    ("MultivariateNormal", "MultivariateNormal of precision"), ("Independent", "Independent"),
    ("Exponential", "Gamma"), ("Poisson", "Poisson"), ("Geometric", "Geometric"),
    ("Uniform", "Normal"), ("Gumbel", "Gumbel"), ("HalfNormal", "HalfNormal"),
    ("OneHotCategorical", "OneHotCategorical"), ("LogNormal", "LogNormal"),
    ("Binomial", "Binomial"), ("Exponential", "Exponential"),
]  # fmt: skip


def moved(made):
    """The same kind of distribution with other parameters."""
    if hasattr(made, "loc") and hasattr(made, "scale") and "LogNormal" not in type(made).__name__:
        return type(made)(made.loc + 1, made.scale * 2)
    if hasattr(made, "rate") and not hasattr(made, "concentration"):
        return type(made)(made.rate * 2)
    if hasattr(made, "concentration") and hasattr(made, "rate"):
        return type(made)(made.concentration + 1, made.rate * 2)
    return made


@pytest.mark.parametrize(("p", "q"), PAIRS)
def test_divergences(p, q):
    found = [
        numbers(lib.distributions.kl_divergence(made(lib, p), moved(made(lib, q))))
        for lib in (pytorch, torch)
    ]
    assert np.allclose(found[0], found[1], rtol=1e-4, atol=1e-5)


def test_gradients_reach_parameters_through_draws():
    torch.manual_seed(0)
    for name, slope in (("gamma", 1.0), ("normal", 1.0)):
        x = mg.full((4000,), 2.5, requires_grad=True)
        if name == "gamma":
            drawn = torch.distributions.Gamma(x, mg.tensor(1.0)).rsample()
        else:
            drawn = torch.distributions.Normal(x, 1.0).rsample()
        drawn.sum().backward()
        assert x.grad.mean().item() == pytest.approx(slope, abs=0.05)


def test_policy_gradients_flow():
    logits = mg.zeros(3, 4, requires_grad=True)
    policy = torch.distributions.Categorical(logits=logits)
    action = policy.sample()
    assert not action.requires_grad
    (-policy.log_prob(action) * mg.tensor([1.0, 2.0, 3.0])).sum().backward()
    assert np.allclose(logits.grad.sum(-1).tolist(), 0.0, atol=1e-6)


@pytest.mark.parametrize("given", ["probs", "logits"])
@pytest.mark.parametrize("name", ["Bernoulli", "Categorical", "OneHotCategorical"])
def test_a_draw_takes_no_gradients_from_what_follows(name, given):
    gradients = []
    for library, values in ((mg, mg.distributions), (pytorch, pytorch.distributions)):
        parameter = library.tensor([0.2, 0.5, 0.3], requires_grad=True)
        made = getattr(values, name)(**{given: parameter})
        made.sample()
        made.log_prob(made.sample())
        made.entropy().sum().backward()
        gradients.append(parameter.grad.tolist())
    np.testing.assert_allclose(gradients[0], gradients[1], rtol=1e-4, atol=1e-6)


def test_straight_through_draws_have_gradients():
    logits = mg.zeros(3, requires_grad=True)
    drawn = mg.distributions.OneHotCategoricalStraightThrough(logits=logits).rsample()
    (drawn * mg.arange(3.0)).sum().backward()
    assert drawn.sum().item() == 1 and logits.grad.abs().sum().item() > 0


MATRICES = {
    "definite": [[[2.0, 0.5], [0.5, 1.0]], [[1.0, 0.0], [0.0, 1e-3]]],
    "not definite": [[[1.0, 2.0], [2.0, 1.0]], [[-1.0, 0.0], [0.0, 1.0]]],
    "not symmetric": [[[1.0, 0.5], [0.0, 1.0]]],
    "not square": [[[1.0, 0.5, 0.0], [0.5, 1.0, 0.0]]],
}


@pytest.mark.parametrize("matrices", MATRICES)
@pytest.mark.parametrize("name", ["square", "symmetric", "positive_definite"])
def test_constraints_on_matrices(name, matrices):
    results = []
    for library in (mg, pytorch):
        constraint = getattr(library.distributions.constraints, name)
        results.append(constraint.check(library.tensor(MATRICES[matrices])).tolist())
    assert results[0] == results[1]


def test_bad_parameters_are_refused():
    with pytest.raises(ValueError, match="Expected parameter scale"):
        torch.distributions.Normal(0.0, -1.0)
    spoilt = torch.distributions.Normal(mg.zeros(2), mg.tensor([1.0, -1.0]))
    with pytest.raises(ValueError, match="Expected parameter scale"):
        spoilt.sample().sum().item()
    with pytest.raises(ValueError, match="Either `probs` or `logits`"):
        torch.distributions.Categorical()
    with pytest.raises(ValueError, match="within the support"):
        torch.distributions.Exponential(mg.ones(2)).log_prob(mg.tensor([-1.0, 1.0])).sum().item()


def test_expanding_a_batch():
    wide = torch.distributions.Normal(mg.zeros(2), mg.ones(2)).expand((3, 2))
    assert wide.sample().shape == (3, 2)
    assert wide.log_prob(mg.zeros(3, 2)).shape == (3, 2)


def test_transforms_invert_themselves():
    transforms = torch.distributions.transforms
    x = mg.tensor([0.3, 0.7])
    for made in (
        transforms.ExpTransform(), transforms.SigmoidTransform(), transforms.TanhTransform(),
        transforms.SoftplusTransform(), transforms.AffineTransform(1.0, 3.0),
        transforms.ComposeTransform([transforms.ExpTransform(), transforms.AffineTransform(0, 2)]),
    ):  # fmt: skip
        assert np.allclose(made.inv(made(x)).tolist(), x.tolist(), atol=1e-5)


def test_a_category_costs_few_recorded_calls():
    chances, category = mg.tensor([0.25, 0.75]), mg.tensor(1)
    mg.synchronize()
    mg.stats.reset()
    found = mg.distributions.Categorical(chances).log_prob(category)
    assert mg.stats().pending == 3  # probabilities, logarithms, the place; checks among them
    assert found.item() == pytest.approx(np.log(0.75))


@pytest.mark.parametrize("value", [-1, 2, 7])
def test_categories_that_are_none_raise(value):
    made = mg.distributions.Categorical(mg.tensor([0.25, 0.75]))
    with pytest.raises(ValueError, match="within the support"):
        made.log_prob(mg.tensor(value)).item()


def test_a_constraint_of_the_users_own_is_asked():
    class Even(mg.distributions.constraints.integer_interval):
        def check(self, value):
            return super().check(value) & (value % 2 == 0)

    class Halves(mg.distributions.Categorical):
        support = Even(0, 3)

    made = Halves(mg.tensor([0.25, 0.25, 0.25, 0.25]))
    assert made.log_prob(mg.tensor(2)).item() == pytest.approx(np.log(0.25))
    with pytest.raises(ValueError, match="within the support"):
        made.log_prob(mg.tensor(1)).item()


@pytest.mark.parametrize("lib", [torch, pytorch], ids=["here", "pytorch"])
def test_a_normal_of_users_brings_its_factor(lib):
    normal = lib.distributions.MultivariateNormal

    class Mine(normal):
        def __init__(self, loc, factor):
            self.loc, self._unbroadcasted_scale_tril = loc, factor
            super(normal, self).__init__(loc.shape[:-1], loc.shape[-1:], validate_args=False)

    loc, factor = lib.tensor([0.5, 1.0]), lib.tensor([[2.0, 0.0], [1.0, 1.0]])
    expected = normal(loc, scale_tril=factor).log_prob(lib.zeros(2))
    assert Mine(loc, factor).log_prob(lib.zeros(2)).item() == pytest.approx(expected.item())


@pytest.mark.parametrize("lib", [torch, pytorch], ids=["here", "pytorch"])
def test_a_class_of_users_expands_into_its_own_object(lib):
    class Diagonal(lib.distributions.Independent):
        def __init__(self, loc):
            super().__init__(lib.distributions.Normal(loc, lib.ones_like(loc)), 1)

        def expand(self, batch_shape, new=None):
            new = self._get_checked_instance(Diagonal, new)
            return super().expand(batch_shape, new)

    made = Diagonal(lib.zeros(3)).expand((4,))
    assert type(made) is Diagonal and made.log_prob(lib.zeros(4, 3)).shape == (4,)

    class Other(Diagonal):
        def __init__(self):
            super().__init__(lib.zeros(3))

    with pytest.raises(NotImplementedError, match="must also define a custom .expand"):
        Other().expand((4,))
