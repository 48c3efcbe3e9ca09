"""The normal distribution of vectors."""

from __future__ import annotations

import math
from typing import Any

import monograph as mg

from ..tensor import Tensor
from . import constraints
from .distribution import Distribution, Located, derived, standard_normal


def _squared_distance(factor: Tensor, x: Tensor) -> Tensor:
    """|L⁻¹ x|² for each vector."""
    shape = mg.broadcast_shapes(tuple(factor.shape[:-1]), tuple(x.shape))
    wide = factor.expand(*shape, factor.shape[-1])
    solved = mg.linalg.solve_triangular(wide, x.expand(shape).unsqueeze(-1), upper=False)
    return solved.squeeze(-1).square().sum(-1)


class ByCovariance(Distribution):
    """A distribution that is given covariances, their inverse, or a triangular factor of them."""

    # Lower triangular; its product with its transpose is the covariances. The name is PyTorch's:
    # classes of users give it.
    _unbroadcasted_scale_tril: Tensor

    @staticmethod
    def _one_of(
        covariance_matrix: Any, precision_matrix: Any, scale_tril: Any
    ) -> tuple[str, Tensor]:
        """The matrix that was given, with its name."""
        given = {
            "covariance_matrix": covariance_matrix, "precision_matrix": precision_matrix,
            "scale_tril": scale_tril,
        }  # fmt: skip
        matrices = {name: matrix for name, matrix in given.items() if matrix is not None}
        if len(matrices) != 1:
            raise ValueError(
                "Exactly one of covariance_matrix or precision_matrix or scale_tril may be "
                "specified."
            )
        ((name, matrix),) = matrices.items()
        if matrix.ndim < 2:
            raise ValueError(
                f"{name} must be at least two-dimensional, with optional leading batch dimensions"
            )
        return name, matrix

    def _hold(self, name: str, matrix: Tensor, batch: Any) -> None:
        self.__dict__[name] = matrix.expand(*batch, *matrix.shape[-2:])

    def _factor_of(self, name: str) -> Tensor:
        """The triangular factor, from the matrix that is held under this name."""
        held: Tensor = self.__dict__[name]
        if name == "scale_tril":
            return held
        if name == "covariance_matrix":
            return mg.linalg.cholesky(held)
        return _factor_of_inverse(held)

    @derived
    def scale_tril(self) -> Tensor:
        """The triangular factor of the covariance."""
        return self._unbroadcasted_scale_tril

    @derived
    def covariance_matrix(self) -> Tensor:
        """The covariances."""
        return self._unbroadcasted_scale_tril @ self._unbroadcasted_scale_tril.mT

    @derived
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariances."""
        return mg.cholesky_inverse(self._unbroadcasted_scale_tril)


class MultivariateNormal(ByCovariance, Located):
    """A normal vector with a mean and a covariance, a precision, or a triangular factor of one.

    >>> MultivariateNormal(mg.zeros(2), mg.eye(2)).log_prob(mg.zeros(2)).item()
    -1.8378770351409912
    """

    arg_constraints = {
        "loc": constraints.real_vector, "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
    }  # fmt: skip
    support = constraints.real_vector
    has_rsample = True

    def __init__(
        self, loc: Tensor, covariance_matrix: Any = None, precision_matrix: Any = None,
        scale_tril: Any = None, validate_args: bool | None = None,
    ) -> None:  # fmt: skip
        name, matrix = self._one_of(covariance_matrix, precision_matrix, scale_tril)
        batch = mg.broadcast_shapes(tuple(matrix.shape[:-2]), tuple(loc.shape[:-1]))
        self._hold(name, matrix, batch)
        self.loc = loc.expand(*batch, loc.shape[-1])
        super().__init__(batch, self.loc.shape[-1:], validate_args)
        self._unbroadcasted_scale_tril = self._factor_of(name)

    @property
    def variance(self) -> Tensor:
        return self._unbroadcasted_scale_tril.pow(2).sum(-1).expand(self._extended_shape())

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Draw so that gradients reach the parameters."""
        eps = standard_normal(self._extended_shape(sample_shape), self.loc)
        return self.loc + (self._unbroadcasted_scale_tril @ eps.unsqueeze(-1)).squeeze(-1)

    def _half_log_det(self) -> Tensor:
        return self._unbroadcasted_scale_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density."""
        apart = self._checked(value) - self.loc
        distance = _squared_distance(self._unbroadcasted_scale_tril, apart)
        size = self._event_shape[0]
        return -0.5 * (size * math.log(2 * math.pi) + distance) - self._half_log_det()

    def entropy(self) -> Tensor:
        """The expected surprise."""
        size = self._event_shape[0]
        made = 0.5 * size * (1.0 + math.log(2 * math.pi)) + self._half_log_det()
        return made.expand(tuple(self._batch_shape))


def _factor_of_inverse(precision: Tensor) -> Tensor:
    """The lower triangular factor of a precision matrix's inverse."""
    flipped = mg.linalg.cholesky(precision.flip((-2, -1)))
    inverse = flipped.flip((-2, -1)).mT
    identity = mg.eye(precision.shape[-1], dtype=precision.dtype)
    return mg.linalg.solve_triangular(inverse, identity.expand(precision.shape), upper=False)
