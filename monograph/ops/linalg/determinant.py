"""Determinants and their logarithms."""

from __future__ import annotations

from typing import Any

from ...ir import build
from ...tensor import Tensor
from .. import return_types
from ..define import function, operator
from ..inplace import with_out
from .checks import check_matrix
from .matrix import adjoint, part, product, real_of, turned
from .systems import inverse_or_nan

f = build.functions


@operator(to=None, method=False)
def determinant(a: Tensor) -> Any:
    """The determinant."""
    return build.call("det", a)


determinant.operator.saves = {"a": ("a", "result")}


@determinant.derivative
def _(g: Any, y: Any, a: Any) -> Any:
    return (build.expand_dims(g, [g.ndim, g.ndim + 1]) * f.conj(cofactors(a)),)


@operator(to=None, method=False)
def cofactors(a: Tensor) -> Any:
    """det(a) · a⁻ᵀ, of singular matrices too."""
    return build.call("cofactors", a)


@cofactors.derivative
def _(g: Any, y: Any, a: Any) -> Any:
    det, y = f.conj(determinant(a)), f.conj(y)
    wide = [det.ndim, det.ndim + 1]
    total = build.expand_dims(build.reduce("add", g * y, (a.ndim - 2, a.ndim - 1)), wide)
    return ((total * y - product(y, turned(g), y)) / build.expand_dims(det, wide),)


@operator(to=None, method=False)
def log_determinant(a: Tensor) -> Any:
    """(sign, logarithm of the absolute value of the determinant) packed."""
    return build.call("slogdet", a)


@log_determinant.derivative
def _(g: Any, y: Any, a: Any) -> Any:
    scale = real_of(part(g, 1))
    if a.dtype.is_complex:  # the sign turns on the unit circle
        turn = f.imag(f.conj(part(g, 0)) * part(y, 0))
        scale = f.complex(scale, -turn)
    scale = build.expand_dims(scale, [a.ndim - 2, a.ndim - 1])
    return (scale * adjoint(inverse_or_nan(a)),)


@function(to="linalg")
@with_out
def det(A: Tensor) -> Tensor:
    """The determinant.

    >>> import monograph as mg
    >>> mg.det(mg.tensor([[2.0, 1.0], [0.0, 3.0]])).item()
    6.0
    """
    check_matrix(A, "linalg.det", square=True)
    return determinant(A)


@function(name="det", method="det")
@with_out
def det_of(input: Tensor) -> Tensor:
    """The determinant: `linalg.det`.

    >>> import monograph as mg
    >>> mg.det(mg.tensor([[2.0, 0.0], [0.0, 3.0]])).item()
    6.0
    """
    return det(input)


@operator(to=None, method=False)
def sign_and_log(a: Tensor) -> Any:
    """(sign, logarithm of the absolute value) of the determinant."""
    packed = log_determinant(a)
    sign = part(packed, 0)
    if not a.dtype.is_complex:
        sign = build.apply("detach", sign)
    return sign, real_of(part(packed, 1))


@function(to="linalg")
@with_out
def slogdet(A: Tensor) -> Any:
    """(sign, logabsdet) of the determinant, without overflow.

    >>> import monograph as mg
    >>> mg.slogdet(-mg.ones(1, 1)).sign.item()
    -1.0
    """
    check_matrix(A, "linalg.slogdet", square=True)
    return return_types.linalg_slogdet(sign_and_log(A))


@function(name="slogdet", method="slogdet")
@with_out
def slogdet_of(input: Tensor) -> Any:
    """(sign, logabsdet) of the determinant: `linalg.slogdet`.

    >>> import monograph as mg
    >>> sign, logarithm = mg.slogdet(mg.eye(3))
    >>> sign.item(), logarithm.item()
    (1.0, 0.0)
    """
    return return_types.slogdet(*slogdet(input))


@operator
def logdet(x: Tensor) -> Any:
    """The logarithm of the determinant; NaN where that is negative.

    >>> import monograph as mg
    >>> mg.logdet(mg.eye(2) if hasattr(mg, "eye") else mg.tensor([[1.0]])).item()
    0.0
    """
    check_matrix(x, "logdet", square=True)
    sign, size = sign_and_log(x)
    if x.dtype.is_complex:
        return f.log(sign) + size
    return build.select(sign < 0, float("nan"), size)
