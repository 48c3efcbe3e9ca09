"""Transforms: invertible functions, and how much they stretch the space around a point."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from typing import Any

import monograph as mg
import monograph.nn.functional as F

from ..tensor import Tensor
from . import constraints


class Transform:
    """An invertible function.

    `t(x)` applies it, `t.inv(y)` goes back, and `log_abs_det_jacobian` says how volumes change.
    """

    bijective = True
    sign: Any = 1
    event_dim = 0  # of an event that the transform mixes
    domain: Any = constraints.real
    codomain: Any = constraints.real

    def __init__(self, cache_size: int = 0) -> None:
        self._cache_size = cache_size
        self._last: tuple[Any, Any] = (None, None)

    def _call(self, x: Tensor) -> Tensor:
        raise NotImplementedError

    def _inverse(self, y: Tensor) -> Tensor:
        raise NotImplementedError

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """The logarithm of |dy / dx|."""
        raise NotImplementedError

    def __call__(self, x: Tensor) -> Tensor:
        if self._cache_size and self._last[0] is x:
            return self._last[1]
        y = self._call(x)
        if self._cache_size:
            self._last = (x, y)
        return y

    def _inv_call(self, y: Tensor) -> Tensor:
        if self._cache_size and self._last[1] is y:
            return self._last[0]
        return self._inverse(y)

    @property
    def inv(self) -> Transform:
        return _InverseTransform(self)

    def with_cache(self, cache_size: int = 1) -> Transform:
        """The same transform with another number of remembered pairs: 0 or 1."""
        if self._cache_size == cache_size:
            return self
        made = copy.copy(self)
        made._cache_size, made._last = cache_size, (None, None)
        return made

    def forward_shape(self, shape: Any) -> Any:
        """The shape of what comes out."""
        return shape

    inverse_shape = forward_shape

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._settings() == other._settings()  # type: ignore[attr-defined]

    def _settings(self) -> tuple[Any, ...]:
        return ()

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class _InverseTransform(Transform):
    """A transform backwards."""

    def __init__(self, of: Transform) -> None:
        super().__init__()
        self._of = of
        self.domain, self.codomain = of.codomain, of.domain
        self.event_dim, self.bijective, self.sign = of.event_dim, of.bijective, of.sign

    @property
    def inv(self) -> Transform:
        return self._of

    def __call__(self, x: Tensor) -> Tensor:
        return self._of._inv_call(x)

    def _inv_call(self, y: Tensor) -> Tensor:
        return self._of(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """The logarithm of |dy / dx|."""
        return -self._of.log_abs_det_jacobian(y, x)

    def forward_shape(self, shape: Any) -> Any:
        """The shape of what comes out."""
        return self._of.inverse_shape(shape)

    def inverse_shape(self, shape: Any) -> Any:
        """The shape of what goes in."""
        return self._of.forward_shape(shape)


class ComposeTransform(Transform):
    """Several transforms, one after the other.

    >>> import monograph as mg
    >>> t = mg.distributions.transforms
    >>> whole = t.ComposeTransform([t.ExpTransform(), t.AffineTransform(1.0, 2.0)])
    >>> whole(mg.tensor(0.0)).item(), whole.inv(mg.tensor(3.0)).item()
    (3.0, 0.0)
    """

    def __init__(self, parts: Sequence[Transform], cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.parts = list(parts)
        self.bijective = all(part.bijective for part in self.parts)
        self.event_dim = max((part.event_dim for part in self.parts), default=0)
        if self.parts:
            self.domain, self.codomain = self.parts[0].domain, self.parts[-1].codomain
        sign: Any = 1
        for part in self.parts:
            sign = sign * part.sign
        self.sign = sign

    def _call(self, x: Tensor) -> Tensor:
        for part in self.parts:
            x = part(x)
        return x

    def _inverse(self, y: Tensor) -> Tensor:
        for part in reversed(self.parts):
            y = part.inv(y)
        return y

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """The logarithm of |dy / dx|."""
        total: Any = 0.0
        for part in self.parts:
            z = part(x)
            term = part.log_abs_det_jacobian(x, z)
            total = total + sum_last(term, self.event_dim - part.event_dim)
            x = z
        return total if isinstance(total, Tensor) else mg.zeros_like(x)

    def forward_shape(self, shape: Any) -> Any:
        """The shape of what comes out."""
        for part in self.parts:
            shape = part.forward_shape(shape)
        return shape

    def _settings(self) -> tuple[Any, ...]:
        return tuple(self.parts)


def sum_last(x: Any, count: int) -> Any:
    """The sums over the last axes."""
    return x.flatten(-count).sum(-1) if count and isinstance(x, Tensor) and x.ndim else x


class AffineTransform(Transform):
    """loc + scale · x.

    >>> AffineTransform(1.0, 2.0)(mg.tensor(3.0)).item()
    7.0
    """

    def __init__(self, loc: Any, scale: Any, event_dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.loc, self.scale, self.event_dim = loc, scale, event_dim

    @property
    def sign(self) -> Any:  # type: ignore[override]
        return self.scale.sign() if isinstance(self.scale, Tensor) else math.copysign(1, self.scale)

    def _call(self, x: Tensor) -> Tensor:
        return self.loc + self.scale * x

    def _inverse(self, y: Tensor) -> Tensor:
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """The logarithm of |dy / dx|."""
        scale = self.scale
        if isinstance(scale, Tensor):
            term = mg.broadcast_to(scale.abs().log(), tuple(x.shape))
        else:
            term = mg.full_like(x, math.log(abs(scale)))
        return sum_last(term, self.event_dim)

    def _settings(self) -> tuple[Any, ...]:
        parts = (self.loc, self.scale)
        return tuple([p.tolist() if isinstance(p, Tensor) else p for p in parts])


class ExpTransform(Transform):
    """e to the x.

    >>> import monograph as mg
    >>> mg.distributions.ExpTransform()(mg.zeros(2)).tolist()
    [1.0, 1.0]
    """

    codomain = constraints.positive

    def _call(self, x: Tensor) -> Tensor:
        return x.exp()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """The logarithm of |dy / dx|."""
        return x


class PowerTransform(Transform):
    """x to the power of an exponent, for positive x.

    >>> import monograph as mg
    >>> mg.distributions.PowerTransform(mg.tensor(2.0))(mg.tensor([3.0])).tolist()
    [9.0]
    """

    domain = codomain = constraints.positive

    def __init__(self, exponent: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.exponent = exponent if isinstance(exponent, Tensor) else mg.tensor(float(exponent))

    @property
    def sign(self) -> Any:  # type: ignore[override]
        return self.exponent.sign()

    def _call(self, x: Tensor) -> Tensor:
        return x.pow(self.exponent)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.pow(1 / self.exponent)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """The logarithm of |dy / dx|."""
        return (self.exponent * y / x).abs().log()

    def _settings(self) -> tuple[Any, ...]:
        return (self.exponent.tolist(),)


def _clipped_sigmoid(x: Tensor) -> Tensor:
    limits = mg.finfo(x.dtype)
    return x.sigmoid().clamp(min=limits.tiny, max=1.0 - limits.eps)


class SigmoidTransform(Transform):
    """1 / (1 + e^-x).

    >>> import monograph as mg
    >>> mg.distributions.SigmoidTransform()(mg.zeros(1)).tolist()
    [0.5]
    """

    codomain = constraints.unit_interval

    def _call(self, x: Tensor) -> Tensor:
        return _clipped_sigmoid(x)

    def _inverse(self, y: Tensor) -> Tensor:
        limits = mg.finfo(y.dtype)
        y = y.clamp(min=limits.tiny, max=1.0 - limits.eps)
        return y.log() - (-y).log1p()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """The logarithm of |dy / dx|."""
        return -F.softplus(-x) - F.softplus(x)


class TanhTransform(Transform):
    """The hyperbolic tangent.

    >>> import monograph as mg
    >>> mg.distributions.TanhTransform()(mg.zeros(1)).tolist()
    [0.0]
    """

    codomain = constraints.interval(-1.0, 1.0)

    def _call(self, x: Tensor) -> Tensor:
        return x.tanh()

    def _inverse(self, y: Tensor) -> Tensor:
        return mg.atanh(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """The logarithm of |dy / dx|."""
        return 2.0 * (math.log(2.0) - x - F.softplus(-2.0 * x))


class SoftplusTransform(Transform):
    """log(1 + e^x).

    >>> import monograph as mg
    >>> mg.distributions.SoftplusTransform()(mg.tensor([30.0])).tolist()
    [30.0]
    """

    codomain = constraints.positive

    def _call(self, x: Tensor) -> Tensor:
        return F.softplus(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return (-y).expm1().neg().log() + y

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """The logarithm of |dy / dx|."""
        return -F.softplus(-x)


class AbsTransform(Transform):
    """The absolute value, which has two inverses.

    >>> import monograph as mg
    >>> mg.distributions.AbsTransform()(mg.tensor([-2.0, 3.0])).tolist()
    [2.0, 3.0]
    """

    bijective = False
    codomain = constraints.nonnegative

    def _call(self, x: Tensor) -> Tensor:
        return x.abs()

    def _inverse(self, y: Tensor) -> Tensor:
        return y


class SoftmaxTransform(Transform):
    """From any vector to probabilities.

    >>> import monograph as mg
    >>> mg.distributions.SoftmaxTransform()(mg.zeros(4)).tolist()
    [0.25, 0.25, 0.25, 0.25]
    """

    bijective = False
    event_dim = 1
    domain, codomain = constraints.real_vector, constraints.simplex

    def _call(self, x: Tensor) -> Tensor:
        return F.softmax(x, -1)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()


class LowerCholeskyTransform(Transform):
    """From any square matrix to a lower triangular one with a positive diagonal.

    >>> import monograph as mg
    >>> mg.distributions.LowerCholeskyTransform()(mg.zeros(2, 2)).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """

    event_dim = 2
    codomain = constraints.lower_cholesky

    def _call(self, x: Tensor) -> Tensor:
        return x.tril(-1) + x.diagonal(dim1=-2, dim2=-1).exp().diag_embed()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.tril(-1) + y.diagonal(dim1=-2, dim2=-1).log().diag_embed()


class IndependentTransform(Transform):
    """A transform whose last axes belong to one event.

    >>> import monograph as mg
    >>> t = mg.distributions.transforms
    >>> whole = t.IndependentTransform(t.ExpTransform(), 1)
    >>> whole.log_abs_det_jacobian(mg.ones(3), mg.ones(3)).item()
    3.0
    """

    def __init__(
        self, base_transform: Transform, reinterpreted_batch_ndims: int, cache_size: int = 0
    ) -> None:
        super().__init__(cache_size)
        self.base_transform = base_transform
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims
        self.event_dim = base_transform.event_dim + reinterpreted_batch_ndims
        self.bijective, self.sign = base_transform.bijective, base_transform.sign

    def _call(self, x: Tensor) -> Tensor:
        return self.base_transform(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return self.base_transform.inv(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """The logarithm of |dy / dx|."""
        term = self.base_transform.log_abs_det_jacobian(x, y)
        return sum_last(term, self.reinterpreted_batch_ndims)


class ReshapeTransform(Transform):
    """Events in another shape.

    >>> import monograph as mg
    >>> mg.distributions.ReshapeTransform((6,), (2, 3))(mg.zeros(4, 6)).shape
    Size([4, 2, 3])
    """

    def __init__(self, in_shape: Any, out_shape: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.in_shape, self.out_shape = tuple(in_shape), tuple(out_shape)
        if math.prod(self.in_shape) != math.prod(self.out_shape):
            raise ValueError("in_shape, out_shape have different numbers of elements")
        self.event_dim = len(self.in_shape)

    def _call(self, x: Tensor) -> Tensor:
        return x.reshape((*x.shape[: x.ndim - len(self.in_shape)], *self.out_shape))

    def _inverse(self, y: Tensor) -> Tensor:
        return y.reshape((*y.shape[: y.ndim - len(self.out_shape)], *self.in_shape))

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """The logarithm of |dy / dx|: nothing is stretched."""
        return mg.zeros(tuple(x.shape[: x.ndim - len(self.in_shape)]), dtype=x.dtype)

    def forward_shape(self, shape: Any) -> Any:
        """The shape of what comes out."""
        return (*shape[: len(shape) - len(self.in_shape)], *self.out_shape)

    def inverse_shape(self, shape: Any) -> Any:
        """The shape of what goes in."""
        return (*shape[: len(shape) - len(self.out_shape)], *self.in_shape)


identity_transform = ComposeTransform([])
