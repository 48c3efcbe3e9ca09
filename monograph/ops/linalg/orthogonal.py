"""Orthogonal factors: QR, and products of Householder reflections."""

from __future__ import annotations

from typing import Any

from ... import errors
from ...ir import build
from ...tensor import Tensor
from .. import return_types
from ..define import function, operator
from ..inplace import with_out
from ..matmul import matmul
from .checks import check_matrix
from .matrix import adjoint, identity, joined, mirrored, part, product, triangle, window
from .systems import divided_by_upper


@operator(to=None, method=False)
def qr_packed(a: Tensor, complete: bool) -> Any:
    """(Q, R) packed."""
    return build.call("qr", a, options=(complete,))


def qr_parts(packed: Any, m: int, n: int, complete: bool) -> tuple[Any, Any]:
    """Q and R."""
    k = m if complete else min(m, n)
    return part(packed, 0, m, k), part(packed, m * k, k, n)


@qr_packed.derivative
def _(g: Any, y: Any, a: Any, complete: bool) -> Any:
    """For a wide matrix A = (A₁ A₂): R₂ = Qᵀ · A₂, and A₁ is square."""
    m, n = a.shape[-2:]
    if complete and m > n:
        raise NotImplementedError(
            "The QR decomposition is not differentiable when mode='complete' and nrows > ncols"
        )
    q, r = qr_parts(y, m, n, complete)
    gq, gr = qr_parts(g, m, n, complete)
    rest = None
    if n > m:
        beside, g_beside = window(a, (0, m), (m, n)), window(gr, (0, m), (m, n))
        rest = product(q, g_beside)
        gq = gq + product(beside, adjoint(g_beside))
        r, gr = window(r, (0, m), (0, m)), window(gr, (0, m), (0, m))
    inner = product(gr, adjoint(r)) - product(adjoint(q), gq)
    inner = mirrored(triangle(inner, upper=True))
    found = divided_by_upper(gq + product(q, inner), r)
    return (found if rest is None else joined(found, rest, rows=False),)


@operator(to=None, method=False)
def qr_factors(a: Tensor, complete: bool) -> Any:
    """(Q, R)."""
    return qr_parts(qr_packed(a, complete), *a.shape[-2:], complete)


qr_factors.operator.saves = {"a": ("results",)}


@operator(to=None, method=False)
def r_factor(a: Tensor) -> Any:
    """(an empty Q, R)."""
    _, r = qr_parts(qr_packed(a, False), *a.shape[-2:], False)
    return build.full((0,), 0.0, a.dtype), r


@function(to="linalg")
@with_out
def qr(A: Tensor, mode: str = "reduced") -> Any:
    """(Q, R) with A = Q · R; mode "complete" has a square Q, mode "r" an empty one.

    >>> import monograph as mg
    >>> mg.linalg.qr(mg.tensor([[3.0], [4.0]])).R.abs().tolist()
    [[5.0]]
    """
    check_matrix(A, "linalg.qr")
    if mode not in ("reduced", "complete", "r"):
        raise errors.OperandError(
            f"qr received unrecognized mode '{mode}' but expected one of 'reduced' (default), "
            f"'r', or 'complete'"
        )
    if mode == "r":
        return return_types.linalg_qr(r_factor(A))
    return return_types.linalg_qr(qr_factors(A, mode == "complete"))


@function(name="qr", method="qr")
@with_out
def qr_of(input: Tensor, some: bool = True) -> Any:
    """(Q, R) with x = Q · R: `linalg.qr`."""
    return return_types.qr(*qr(input, "reduced" if some else "complete"))


@operator(to="linalg", method=False)
def householder_product(A: Tensor, tau: Tensor) -> Any:
    """The first columns of the product of reflections I - tau · v · vᵀ, v below A's diagonal.

    >>> import monograph as mg
    >>> mg.linalg.householder_product(mg.ones(2, 1), mg.tensor([1.0])).tolist()
    [[0.0], [-1.0]]
    """
    if A.ndim < 2:
        raise ValueError("A must have at least 2 dimensions")
    m, n = A.shape[-2:]
    if m < n:
        raise ValueError(f"A.shape[-2] must be greater than or equal to A.shape[-1], got {m} < {n}")
    if tau.shape[-1] > n:
        raise ValueError(f"A.shape[-1] must be at least tau.shape[-1], got {n} < {tau.shape[-1]}")
    below = triangle(A, False, -1) + identity(n, A.dtype, m)
    result = build.broadcast_to(identity(n, A.dtype, m), A.shape)
    for k in reversed(range(tau.shape[-1])):
        v = window(below, (0, m), (k, k + 1))
        scale = build.expand_dims(part(tau, k), [tau.ndim - 1, tau.ndim])
        result = result - scale * matmul(v, matmul(adjoint(v), result))
    return result


householder_product.operator.saves = dict.fromkeys(("A", "tau"), ("A", "tau", "result"))


@function(method=True)
@with_out
def orgqr(input: Tensor, input2: Tensor) -> Tensor:
    """The product of reflections: `linalg.householder_product`."""
    return householder_product(input, input2)


@operator(to=None, method=False, smooth=False)
def reflections(a: Tensor) -> Any:
    """(R with the vectors of the reflections below its diagonal, their factors)."""
    m, n = a.shape[-2:]
    packed = build.call("qr_raw", a)
    return part(packed, 0, m, n), part(packed, m * n, min(m, n))


@function(method=True)
@with_out
def geqrf(input: Tensor) -> Any:
    """(a, tau): R, and below its diagonal the reflections that `householder_product` takes.

    >>> import monograph as mg
    >>> mg.geqrf(mg.tensor([[3.0], [4.0]])).a[0].abs().tolist()
    [5.0]
    """
    check_matrix(input, "geqrf")
    return return_types.geqrf(reflections(input))


@operator
def ormqr(x: Tensor, tau: Tensor, other: Tensor, left: bool = True, transpose: bool = False) -> Any:
    """Q · other, or other · Q if not left, for the product Q of reflections that `geqrf` gives.

    >>> import monograph as mg
    >>> a, tau = mg.geqrf(mg.tensor([[3.0], [4.0]]))
    >>> mg.ormqr(a, tau, mg.tensor([[3.0], [4.0]]), transpose=True).abs().round().tolist()
    [[5.0], [0.0]]
    """
    for what, given in (("input", x), ("other", other)):
        if given.ndim < 2:
            raise ValueError(f"{what} must have at least 2 dimensions")
    m, k = x.shape[-2:]
    if tau.shape[-1] != min(m, k):
        raise ValueError(
            "tau.shape[-1] must be equal to min(other.shape[-2], input.shape[-1]), got "
            f"{tau.shape[-1]} and {min(m, k)}"
        )
    if other.shape[-2 if left else -1] != m:
        raise ValueError(f"{list(other.shape)} does not fit reflections of size {m}")
    wide = window(x, (0, m), (0, min(m, k)))
    if m > wide.shape[-1]:  # all columns of Q: the rest has no reflections of its own
        rest = build.full((*x.shape[:-2], m, m - wide.shape[-1]), 0.0, x.dtype)
        wide = joined(wide, rest, rows=False)
    q = householder_product(wide, tau)
    q = adjoint(q) if transpose else q
    return matmul(q, other) if left else matmul(other, q)


_READ = ("x", "tau", "other", "result")
ormqr.operator.saves = {"x": _READ, "tau": _READ, "other": ("x", "tau")}
