"""Transforms of vectors and matrices as wholes: to simplices, Cholesky factors, stacks of parts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import monograph as mg
import monograph.nn.functional as F

from ..tensor import Tensor
from . import constraints
from .distribution import Distribution
from .transforms import ComposeTransform, LowerCholeskyTransform, Transform, identity_transform
from .transforms import sum_last as sum_last


class StickBreakingTransform(Transform):
    """From n numbers to n + 1 probabilities: each takes its share of what is left of a stick.

    >>> import monograph as mg
    >>> made = mg.distributions.StickBreakingTransform()(mg.zeros(2))
    >>> [round(p, 4) for p in made.tolist()]
    [0.3333, 0.3333, 0.3333]
    """

    event_dim = 1
    domain, codomain = constraints.real_vector, constraints.simplex

    def _offset(self, x: Tensor) -> Tensor:
        """How many parts are still to come, so that zeros give equal shares."""
        return mg.arange(x.shape[-1], 0, -1, dtype=x.dtype)

    def _call(self, x: Tensor) -> Tensor:
        share = (x - self._offset(x).log()).sigmoid()
        left = (1 - share).cumprod(-1)
        return F.pad(share, [0, 1], value=1) * F.pad(left, [1, 0], value=1)

    def _inverse(self, y: Tensor) -> Tensor:
        parts = y[..., :-1]
        left = (1 - parts.cumsum(-1)).clamp(min=mg.finfo(y.dtype).tiny)
        return parts.log() - left.log() + self._offset(parts).log()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """The logarithm of |dy / dx|."""
        moved = x - self._offset(x).log()
        return (-moved + F.logsigmoid(moved) + y[..., :-1].log()).sum(-1)

    def forward_shape(self, shape: Any) -> Any:
        """The shape of what comes out."""
        return (*shape[:-1], shape[-1] + 1)

    def inverse_shape(self, shape: Any) -> Any:
        """The shape of what goes in."""
        return (*shape[:-1], shape[-1] - 1)


def vec_to_tril_matrix(vec: Tensor, diag: int = 0) -> Tensor:
    """A lower triangular matrix with these numbers, row by row, up to a diagonal.

    >>> vec_to_tril_matrix(mg.tensor([1.0, 2.0, 3.0])).tolist()
    [[1.0, 0.0], [2.0, 3.0]]
    """
    count = vec.shape[-1]
    size = (-(1 + 2 * diag) + math.sqrt((1 + 2 * diag) ** 2 + 8 * count + 4 * abs(diag) * (diag + 1))) / 2  # fmt: skip  # noqa: E501
    n = round(size)
    if abs(size - n) > 1e-6:
        raise ValueError(
            f"The size of last dimension is {count} which cannot be expressed as the lower "
            "triangular part of a square D x D matrix."
        )
    rows, columns = mg.tril_indices(n, n, diag)
    matrix = mg.zeros(*vec.shape[:-1], n * n, dtype=vec.dtype)
    where = (rows * n + columns).expand(*vec.shape[:-1], count)
    return matrix.scatter(-1, where, vec).reshape((*vec.shape[:-1], n, n))


def tril_matrix_to_vec(mat: Tensor, diag: int = 0) -> Tensor:
    """The numbers of a lower triangular matrix, row by row, up to a diagonal.

    >>> tril_matrix_to_vec(mg.tensor([[1.0, 9.0], [2.0, 3.0]])).tolist()
    [1.0, 2.0, 3.0]
    """
    n = mat.shape[-1]
    if not -n <= diag < n:
        raise ValueError(f"diag ({diag}) provided is outside [{-n}, {n - 1}].")
    rows, columns = mg.tril_indices(n, n, diag)
    return mat.flatten(-2)[..., rows * n + columns]


class CorrCholeskyTransform(Transform):
    """From d (d - 1) / 2 numbers to the Cholesky factor of a correlation matrix of size d.

    >>> import monograph as mg
    >>> mg.distributions.CorrCholeskyTransform()(mg.zeros(1)).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """

    event_dim = 1
    domain = constraints.real_vector

    @property
    def codomain(self) -> Any:  # type: ignore[override]
        return constraints.corr_cholesky

    def _call(self, x: Tensor) -> Tensor:
        eps = mg.finfo(x.dtype).eps
        partial = vec_to_tril_matrix(x.tanh().clamp(min=-1 + eps, max=1 - eps), -1)
        left = (1 - partial**2).sqrt().cumprod(-1)
        rows = partial + mg.eye(partial.shape[-1], dtype=x.dtype)
        return rows * F.pad(left[..., :-1], [1, 0], value=1)

    def _inverse(self, y: Tensor) -> Tensor:
        left = F.pad((1 - (y * y).cumsum(-1))[..., :-1], [1, 0], value=1)
        partial = tril_matrix_to_vec(y, -1) / tril_matrix_to_vec(left, -1).sqrt()
        return (partial.log1p() - (-partial).log1p()) / 2

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """The logarithm of |dy / dx|, for the elements of y below the diagonal."""
        left = tril_matrix_to_vec(1 - (y * y).cumsum(-1), -2)
        bent = -2 * (x + F.softplus(-2 * x) - math.log(2.0)).sum(-1)
        return 0.5 * left.log().sum(-1) + bent

    def forward_shape(self, shape: Any) -> Any:
        """The shape of what comes out."""
        size = round((0.25 + 2 * shape[-1]) ** 0.5 + 0.5)
        if size * (size - 1) // 2 != shape[-1]:
            raise ValueError("Input is not a flattened lower-diagonal number")
        return (*shape[:-1], size, size)

    def inverse_shape(self, shape: Any) -> Any:
        """The shape of what goes in."""
        if shape[-2] != shape[-1]:
            raise ValueError("Input is not square")
        return (*shape[:-2], shape[-1] * (shape[-1] - 1) // 2)


class PositiveDefiniteTransform(Transform):
    """From any square matrix to a positive definite one.

    >>> import monograph as mg
    >>> mg.distributions.PositiveDefiniteTransform()(mg.zeros(2, 2)).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """

    event_dim = 2
    codomain = constraints.positive_definite

    def _call(self, x: Tensor) -> Tensor:
        factor = LowerCholeskyTransform()(x)
        return factor @ factor.mT

    def _inverse(self, y: Tensor) -> Tensor:
        return LowerCholeskyTransform().inv(mg.linalg.cholesky(y))


class CumulativeDistributionTransform(Transform):
    """From a number to its probability of at most that, under a distribution.

    >>> import monograph as mg
    >>> d = mg.distributions
    >>> d.CumulativeDistributionTransform(d.Normal(0.0, 1.0))(mg.zeros(1)).tolist()
    [0.5]
    """

    codomain = constraints.unit_interval
    sign = +1

    def __init__(self, distribution: Distribution, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.distribution = distribution

    @property
    def domain(self) -> Any:  # type: ignore[override]
        return self.distribution.support

    def _call(self, x: Tensor) -> Tensor:
        return self.distribution.cdf(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return self.distribution.icdf(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """The logarithm of |dy / dx|."""
        return self.distribution.log_prob(x)


class CatTransform(Transform):
    """Transforms for the pieces of an axis.

    >>> import monograph as mg
    >>> t = mg.distributions.transforms
    >>> made = mg.distributions.CatTransform([t.ExpTransform(), t.identity_transform], 0, [1, 2])
    >>> made(mg.zeros(3)).tolist()
    [1.0, 0.0, 0.0]
    """

    def __init__(
        self, tseq: Sequence[Transform], dim: int = 0, lengths: Any = None, cache_size: int = 0
    ) -> None:
        super().__init__(cache_size)
        self.transforms = list(tseq)
        self.lengths = list(lengths or [1] * len(self.transforms))
        if len(self.lengths) != len(self.transforms):
            raise ValueError("CatTransform needs a length for each transform")
        self.dim = dim
        self.bijective = all(part.bijective for part in self.transforms)
        self.event_dim = max((part.event_dim for part in self.transforms), default=0)
        self.domain = constraints.cat([p.domain for p in self.transforms], dim, self.lengths)
        self.codomain = constraints.cat([p.codomain for p in self.transforms], dim, self.lengths)

    @property
    def length(self) -> int:
        return sum(self.lengths)

    def _pieces(self, x: Tensor) -> Any:
        if x.shape[self.dim] != self.length:
            raise ValueError(f"axis {self.dim} of {list(x.shape)} must have {self.length} elements")
        return x.split(self.lengths, self.dim)

    def _call(self, x: Tensor) -> Tensor:
        parts = zip(self.transforms, self._pieces(x), strict=True)
        return mg.cat([part(piece) for part, piece in parts], self.dim)

    def _inverse(self, y: Tensor) -> Tensor:
        parts = zip(self.transforms, self._pieces(y), strict=True)
        return mg.cat([part.inv(piece) for part, piece in parts], self.dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """The logarithm of |dy / dx|."""
        terms = []
        for part, a, b in zip(self.transforms, self._pieces(x), self._pieces(y), strict=True):
            term = part.log_abs_det_jacobian(a, b)
            terms.append(sum_last(term, self.event_dim - part.event_dim))
        axis = self.dim if self.dim < 0 else self.dim - x.ndim
        axis += self.event_dim
        return mg.cat(terms, axis) if axis < 0 else sum(terms)  # type: ignore[return-value]


class StackTransform(Transform):
    """A transform for each place of an axis.

    >>> import monograph as mg
    >>> t = mg.distributions.transforms
    >>> made = mg.distributions.StackTransform([t.ExpTransform(), t.identity_transform])
    >>> made(mg.zeros(2)).tolist()
    [1.0, 0.0]
    """

    def __init__(self, tseq: Sequence[Transform], dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.transforms, self.dim = list(tseq), dim
        self.bijective = all(part.bijective for part in self.transforms)
        self.domain = constraints.stack([part.domain for part in self.transforms], dim)
        self.codomain = constraints.stack([part.codomain for part in self.transforms], dim)

    def _slices(self, x: Tensor) -> Any:
        if x.shape[self.dim] != len(self.transforms):
            raise ValueError(f"axis {self.dim} of {list(x.shape)} must have as many elements as "
                             f"there are transforms, {len(self.transforms)}")  # fmt: skip
        return x.unbind(self.dim)

    def _call(self, x: Tensor) -> Tensor:
        parts = zip(self.transforms, self._slices(x), strict=True)
        return mg.stack([part(piece) for part, piece in parts], self.dim)

    def _inverse(self, y: Tensor) -> Tensor:
        parts = zip(self.transforms, self._slices(y), strict=True)
        return mg.stack([part.inv(piece) for part, piece in parts], self.dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """The logarithm of |dy / dx|."""
        parts = zip(self.transforms, self._slices(x), self._slices(y), strict=True)
        return mg.stack([part.log_abs_det_jacobian(a, b) for part, a, b in parts], self.dim)


# --- from constraints to transforms ---------------------------------------------------------------


class ConstraintRegistry:
    """A table that gives for each constraint a transform from all numbers to what it allows.

    >>> import monograph as mg
    >>> d = mg.distributions
    >>> d.biject_to(d.constraints.positive)(mg.zeros(1)).tolist()
    [1.0]
    """

    def __init__(self) -> None:
        self._registry: dict[Any, Any] = {}

    def register(self, constraint: Any, factory: Any = None) -> Any:
        """Note the function that makes a transform for a class of constraints."""
        if factory is None:
            return lambda made: self.register(constraint, made)
        kind = constraint if isinstance(constraint, type) else type(constraint)
        if not issubclass(kind, constraints.Constraint):
            raise TypeError(
                "Expected constraint to be either a Constraint subclass or instance, but got "
                f"{constraint}"
            )
        self._registry[_sort_of(constraint)] = factory
        return factory

    def __call__(self, constraint: Any) -> Transform:
        factory = self._registry.get(_sort_of(constraint))
        if factory is None:
            raise NotImplementedError(f"Cannot transform {type(constraint).__name__} constraints")
        made: Transform = factory(constraint)
        return made


def _sort_of(constraint: Any) -> Any:
    """The class of a constraint; those that are made by a function go by their names."""
    if isinstance(constraint, type):
        return constraint
    kind = type(constraint)
    return constraint.name if kind is constraints.Constraint else kind


biject_to, transform_to = ConstraintRegistry(), ConstraintRegistry()


def _register() -> None:
    from .transforms import (
        AffineTransform,
        ExpTransform,
        IndependentTransform,
        SigmoidTransform,
        SoftmaxTransform,
    )

    c = constraints

    def scaled(limits: Any) -> Transform:
        low, high = limits.lower_bound, limits.upper_bound
        if not isinstance(low, Tensor) and not isinstance(high, Tensor) and (low, high) == (0, 1):
            return SigmoidTransform()
        return ComposeTransform([SigmoidTransform(), AffineTransform(low, high - low)])

    for table in (biject_to, transform_to):
        inner = table
        table.register(c.real, lambda _: identity_transform)
        table.register(
            c.independent,
            lambda k, inner=inner: IndependentTransform(
                inner(k.base_constraint), k.reinterpreted_batch_ndims
            ),
        )
        above = lambda k: ComposeTransform([ExpTransform(), AffineTransform(k.lower_bound, 1)])  # noqa: E731
        table.register(c.greater_than, above)
        table.register(c.greater_than_eq, above)
        table.register(
            c.less_than,
            lambda k: ComposeTransform([ExpTransform(), AffineTransform(k.upper_bound, -1)]),
        )
        table.register(c.interval, scaled)
        table.register(c.half_open_interval, scaled)
        table.register(c.lower_cholesky, lambda _: LowerCholeskyTransform())
        table.register(c.corr_cholesky, lambda _: CorrCholeskyTransform())
        table.register(
            c.cat,
            lambda k, inner=inner: CatTransform([inner(p) for p in k.cseq], k.dim, k.lengths),
        )
        table.register(
            c.stack, lambda k, inner=inner: StackTransform([inner(p) for p in k.cseq], k.dim)
        )
    biject_to.register(c.simplex, lambda _: StickBreakingTransform())
    transform_to.register(c.simplex, lambda _: SoftmaxTransform())
    for made in (c.positive_definite, c.positive_semidefinite):
        transform_to.register(made, lambda _: PositiveDefiniteTransform())


_register()
