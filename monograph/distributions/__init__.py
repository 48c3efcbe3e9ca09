"""Probability distributions, named as in `torch.distributions`.

>>> import monograph as mg
>>> policy = Categorical(logits=mg.zeros(3, 4))
>>> policy.log_prob(policy.sample()).shape
Size([3])
"""

from . import constraints, kl, transforms
from .compound import Independent, LogNormal, MixtureSameFamily, TransformedDistribution
from .discrete import (
    Bernoulli,
    Binomial,
    Categorical,
    Geometric,
    Multinomial,
    OneHotCategorical,
    OneHotCategoricalStraightThrough,
    Poisson,
)
from .distribution import Distribution
from .gamma import Beta, Chi2, Dirichlet, Exponential, Gamma, StudentT
from .kl import kl_divergence, register_kl
from .location_scale import Cauchy, Gumbel, HalfNormal, Laplace, Normal, Uniform
from .multivariate import MultivariateNormal
from .relaxed import (
    ExpRelaxedCategorical,
    LogitRelaxedBernoulli,
    RelaxedBernoulli,
    RelaxedOneHotCategorical,
)
from .transforms import (
    AbsTransform,
    AffineTransform,
    ComposeTransform,
    ExpTransform,
    IndependentTransform,
    LowerCholeskyTransform,
    PowerTransform,
    ReshapeTransform,
    SigmoidTransform,
    SoftmaxTransform,
    SoftplusTransform,
    TanhTransform,
    Transform,
    identity_transform,
)
