"""Probability distributions, named as in `torch.distributions`.

>>> import monograph as mg
>>> policy = Categorical(logits=mg.zeros(3, 4))
>>> policy.log_prob(policy.sample()).shape
Size([3])
"""

from . import constraints, kl, kl_by_moments, transforms
from .bounded import ContinuousBernoulli, NegativeBinomial, VonMises
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
from .distribution import Distribution, ExponentialFamily
from .gamma import Beta, Chi2, Dirichlet, Exponential, Gamma, StudentT
from .heavy_tailed import (
    FisherSnedecor,
    GeneralizedPareto,
    HalfCauchy,
    InverseGamma,
    Kumaraswamy,
    Pareto,
    Weibull,
)
from .kl import kl_divergence, register_kl
from .location_scale import Cauchy, Gumbel, HalfNormal, Laplace, Normal, Uniform
from .matrices import LKJCholesky, LogisticNormal, LowRankMultivariateNormal, Wishart
from .multivariate import MultivariateNormal
from .relaxed import (
    ExpRelaxedCategorical,
    LogitRelaxedBernoulli,
    RelaxedBernoulli,
    RelaxedOneHotCategorical,
)
from .structured_transforms import (
    CatTransform,
    CorrCholeskyTransform,
    CumulativeDistributionTransform,
    PositiveDefiniteTransform,
    StackTransform,
    StickBreakingTransform,
    biject_to,
    transform_to,
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
