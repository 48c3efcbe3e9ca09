"""Distributions of matrices, and normal vectors with a covariance of low rank and a diagonal."""

from __future__ import annotations

import math
from typing import Any

import monograph as mg

from ..tensor import Tensor
from . import constraints
from .compound import TransformedDistribution
from .distribution import Distribution, ExponentialFamily, Located, derived, standard_normal
from .gamma import Beta, Chi2
from .location_scale import Normal
from .multivariate import ByCovariance, _squared_distance
from .structured_transforms import StickBreakingTransform


class LogisticNormal(TransformedDistribution):
    """Probabilities whose shares of a stick are normal numbers seen through a sigmoid.

    >>> import monograph as mg
    >>> made = mg.distributions.LogisticNormal(mg.zeros(3), mg.ones(3))
    >>> made.event_shape
    Size([4])
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.simplex  # type: ignore[assignment]

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        base = Normal(loc, scale, validate_args)
        if not base.batch_shape:
            base = base.expand([1])
        super().__init__(base, StickBreakingTransform(), validate_args)

    @property
    def loc(self) -> Tensor:
        return self.base_dist.base_dist.loc  # type: ignore[attr-defined,no-any-return]

    @property
    def scale(self) -> Tensor:
        return self.base_dist.base_dist.scale  # type: ignore[attr-defined,no-any-return]


class LowRankMultivariateNormal(Located):
    """A normal vector whose covariance is W Wᵀ and a diagonal.

    >>> import monograph as mg
    >>> made = mg.distributions.LowRankMultivariateNormal(
    ...     mg.zeros(2), mg.tensor([[1.0], [0.0]]), mg.ones(2)
    ... )
    >>> made.variance.tolist()
    [2.0, 1.0]
    """

    arg_constraints = {
        "loc": constraints.real_vector,
        "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }
    support = constraints.real_vector
    has_rsample = True

    def __init__(
        self, loc: Tensor, cov_factor: Tensor, cov_diag: Tensor, validate_args: bool | None = None
    ) -> None:
        if loc.ndim < 1:
            raise ValueError("loc must be at least one-dimensional.")
        size = loc.shape[-1]
        if cov_factor.ndim < 2 or cov_factor.shape[-2] != size:
            raise ValueError(f"cov_factor must be a batch of matrices with shape {size} x m")
        if cov_diag.shape[-1] != size:
            raise ValueError(f"cov_diag must be a batch of vectors with shape ({size},)")
        shapes = (loc.shape[:-1], cov_factor.shape[:-2], cov_diag.shape[:-1])
        batch = mg.broadcast_shapes(*[tuple(shape) for shape in shapes])
        self.loc, self.cov_diag = loc.expand(*batch, size), cov_diag.expand(*batch, size)
        self.cov_factor = cov_factor.expand(*batch, *cov_factor.shape[-2:])
        super().__init__(batch, loc.shape[-1:], validate_args)
        scaled = self.cov_factor.mT / self.cov_diag.unsqueeze(-2)
        inner = scaled @ self.cov_factor + mg.eye(cov_factor.shape[-1], dtype=loc.dtype)
        self._capacitance = mg.linalg.cholesky(inner)

    @derived
    def variance(self) -> Tensor:  # type: ignore[override]
        """The variance of each element."""
        return (self.cov_factor.pow(2).sum(-1) + self.cov_diag).expand(self._extended_shape())

    @derived
    def covariance_matrix(self) -> Tensor:
        """The covariances."""
        return self.cov_factor @ self.cov_factor.mT + self.cov_diag.diag_embed()

    @derived
    def scale_tril(self) -> Tensor:
        """The triangular factor of the covariance."""
        return mg.linalg.cholesky(self.covariance_matrix)

    @derived
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariances."""
        scaled = self.cov_factor.mT / self.cov_diag.unsqueeze(-2)
        solved = mg.linalg.solve_triangular(self._capacitance, scaled, upper=False)
        return self.cov_diag.reciprocal().diag_embed() - solved.mT @ solved

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Draw so that gradients reach the parameters."""
        shape = self._extended_shape(sample_shape)
        low = standard_normal((*shape[:-1], self.cov_factor.shape[-1]), self.loc)
        own = standard_normal(shape, self.loc)
        along = (self.cov_factor @ low.unsqueeze(-1)).squeeze(-1)
        return self.loc + along + self.cov_diag.sqrt() * own

    def _log_det(self) -> Tensor:
        """Of the covariance, by the small matrix."""
        inner = self._capacitance.diagonal(dim1=-2, dim2=-1).log().sum(-1)
        return 2 * inner + self.cov_diag.log().sum(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density."""
        distance = self._checked(value) - self.loc
        scaled = self.cov_factor.mT / self.cov_diag.unsqueeze(-2)
        along = (scaled @ distance.unsqueeze(-1)).squeeze(-1)
        square = (distance.pow(2) / self.cov_diag).sum(-1)
        square = square - _squared_distance(self._capacitance, along)
        size = self._event_shape[0]
        return -0.5 * (size * math.log(2 * math.pi) + self._log_det() + square)

    def entropy(self) -> Tensor:
        """The expected surprise."""
        size = self._event_shape[0]
        made = 0.5 * (size * (1.0 + math.log(2 * math.pi)) + self._log_det())
        return made.expand(tuple(self._batch_shape))


class Wishart(ByCovariance, ExponentialFamily):
    """The scatter matrix of `df` normal vectors.

    >>> import monograph as mg
    >>> mg.distributions.Wishart(mg.tensor(3.0), mg.eye(2)).mean.tolist()
    [[3.0, 0.0], [0.0, 3.0]]
    """

    arg_constraints = {
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky, "df": constraints.greater_than(0),
    }  # fmt: skip
    support = constraints.positive_definite
    has_rsample = True

    def __init__(
        self, df: Any, covariance_matrix: Any = None, precision_matrix: Any = None,
        scale_tril: Any = None, validate_args: bool | None = None,
    ) -> None:  # fmt: skip
        name, matrix = self._one_of(covariance_matrix, precision_matrix, scale_tril)
        df = df if isinstance(df, Tensor) else mg.tensor(float(df), dtype=matrix.dtype)
        batch = mg.broadcast_shapes(tuple(matrix.shape[:-2]), tuple(df.shape))
        self.df = df.expand(batch)
        if bool((self.df <= matrix.shape[-1] - 1).any()):
            raise ValueError(
                f"Value of df={df} expected to be greater than ndim - 1 = {matrix.shape[-1] - 1}."
            )
        self._hold(name, matrix, batch)
        super().__init__(batch, matrix.shape[-2:], validate_args)
        self._unbroadcasted_scale_tril = self._factor_of(name)

    def _df(self) -> Tensor:
        return self.df[..., None, None]

    @property
    def mean(self) -> Tensor:
        return self._df() * self.covariance_matrix

    @property
    def mode(self) -> Tensor:
        factor = self._df() - self.covariance_matrix.shape[-1] - 1
        return mg.where(factor <= 0, math.nan, factor) * self.covariance_matrix

    @property
    def variance(self) -> Tensor:
        v = self.covariance_matrix
        diagonal = v.diagonal(dim1=-2, dim2=-1)
        return self._df() * (v.pow(2) + diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2))

    def rsample(self, sample_shape: Any = (), max_try_correction: Any = None) -> Tensor:
        """Draw so that gradients reach the parameters, by Bartlett's triangular factor."""
        shape = self._extended_shape(sample_shape)
        size = self._event_shape[-1]
        degrees = self.df.unsqueeze(-1) - mg.arange(size, dtype=self.df.dtype)
        spread = Chi2(degrees, validate_args=False).rsample(sample_shape).sqrt()
        factor = self._unbroadcasted_scale_tril
        chol = factor @ (standard_normal(shape, factor).tril(-1) + spread.diag_embed())
        return chol @ chol.mT

    def _log_det(self) -> Tensor:
        """Half of it, of the vectors' covariance."""
        return self._unbroadcasted_scale_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)

    def _log_gamma(self) -> Tensor:
        return mg.mvlgamma(0.5 * self.df, self._event_shape[-1])

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density."""
        value, p = self._checked(value), self._event_shape[-1]
        factor = self._unbroadcasted_scale_tril
        wide = (*mg.broadcast_shapes(tuple(factor.shape), tuple(value.shape)),)
        solved = mg.cholesky_solve(value.expand(wide), factor.expand(wide))
        trace = solved.diagonal(dim1=-2, dim2=-1).sum(-1)
        return (
            -self.df * (0.5 * p * math.log(2) + self._log_det()) - self._log_gamma()
            + 0.5 * (self.df - p - 1) * mg.linalg.slogdet(value).logabsdet - 0.5 * trace
        )  # fmt: skip

    def entropy(self) -> Tensor:
        """The expected surprise."""
        p = self._event_shape[-1]
        steps = 0.5 * mg.arange(p, dtype=self.df.dtype)
        expected = mg.digamma(0.5 * self.df.unsqueeze(-1) - steps).sum(-1)
        return (
            (p + 1) * (0.5 * p * math.log(2) + self._log_det()) + self._log_gamma()
            - 0.5 * (self.df - p - 1) * expected + 0.5 * p * self.df
        )  # fmt: skip


class LKJCholesky(Distribution):
    """The Cholesky factor of a correlation matrix; a concentration of 1 makes all alike likely.

    >>> import monograph as mg
    >>> mg.distributions.LKJCholesky(3, 0.5).sample().shape
    Size([3, 3])
    """

    arg_constraints = {"concentration": constraints.positive}
    support = constraints.corr_cholesky

    def __init__(
        self, dim: int, concentration: Any = 1.0, validate_args: bool | None = None
    ) -> None:
        if dim < 2:
            raise ValueError(f"Expected dim to be an integer greater than or equal to 2. Found dim={dim}.")  # fmt: skip  # noqa: E501
        self.dim = dim
        given = concentration
        self.concentration = given if isinstance(given, Tensor) else mg.tensor(float(given))
        super().__init__(self.concentration.shape, (dim, dim), validate_args, (given,))

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Draw row by row: a length, and a direction."""
        with mg.no_grad():
            dtype = self.concentration.dtype
            marginal = self.concentration + 0.5 * (self.dim - 2)
            offset = mg.arange(self.dim - 1, dtype=dtype)
            offset = mg.cat([offset.new_zeros((1,)), offset])
            lengths = Beta(offset + 0.5, marginal.unsqueeze(-1) - 0.5 * offset, False)
            y = lengths.sample(sample_shape).unsqueeze(-1)
            u = standard_normal(self._extended_shape(sample_shape), self.concentration).tril(-1)
            sphere = u / u.norm(dim=-1, keepdim=True)
            rows = mg.cat([mg.zeros_like(sphere[..., :1, :]), sphere[..., 1:, :]], -2)
            w = y.sqrt() * rows
            rest = (1 - w.pow(2).sum(-1)).clamp(min=mg.finfo(dtype).tiny).sqrt()
            return w + rest.diag_embed()

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density."""
        value, c = self._checked(value), self.concentration
        diagonal = value.diagonal(dim1=-1, dim2=-2)[..., 1:]
        order = mg.arange(2, self.dim + 1, dtype=c.dtype)
        order = 2 * (c - 1).unsqueeze(-1) + self.dim - order
        inner = self.dim - 1
        alpha = c + 0.5 * inner
        norm = (
            0.5 * inner * math.log(math.pi) + mg.mvlgamma(alpha - 0.5, inner)
            - mg.lgamma(alpha) * inner
        )  # fmt: skip
        return (order * diagonal.log()).sum(-1) - norm
