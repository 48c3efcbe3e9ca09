"""Singular values and eigenvalues, with their vectors."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import errors
from ...ir import build
from ...tensor import Tensor, adopt
from .. import return_types
from ..define import function, operator
from ..inplace import with_out
from .checks import at_call, check_matrix
from .matrix import (
    adjoint,
    as_columns,
    as_rows,
    identity,
    inverse_or_zero,
    on_diagonal,
    part,
    product,
    real_of,
    window,
)
from .systems import solve_system

f = build.functions


@operator(to=None, method=False)
def svd_packed(a: Tensor, full: bool) -> Any:
    """(U, S, Vh) packed."""
    return build.call("svd", a, options=(full,))


def svd_parts(packed: Any, m: int, n: int, full: bool) -> tuple[Any, Any, Any]:
    """U, S and Vh."""
    k = min(m, n)
    left, right = (m, n) if full else (k, k)
    u = part(packed, 0, m, left)
    s = real_of(part(packed, m * left, k))
    return u, s, part(packed, m * left + k, right, n)


@svd_packed.derivative
def _(g: Any, y: Any, a: Any, full: bool) -> Any:
    m, n = a.shape[-2:]
    k = min(m, n)
    u, s, vh = svd_parts(y, m, n, full)
    gu, gs, gvh = svd_parts(g, m, n, full)
    if full:  # what spans the rest is not unique, and takes no part
        u, gu = window(u, (0, m), (0, k)), window(gu, (0, m), (0, k))
        vh, gvh = window(vh, (0, k), (0, n)), window(gvh, (0, k), (0, n))
    # Not a difference of squares: fused into one rounding, that is not 0 on the diagonal.
    across, down = as_rows(s), as_columns(s)
    gap = inverse_or_zero((across - down) * (across + down))
    left, right = product(adjoint(u), gu), product(gvh, adjoint(vh))
    # skew(Vᵀ gV) from gVh: (gVh · V)ᵀ - gVh · V
    inner = (left - adjoint(left)) * gap * as_rows(s)
    inner = inner + (adjoint(right) - right) * gap * as_columns(s) + on_diagonal(gs)
    small = inverse_or_zero(s)
    if a.dtype.is_complex:  # singular vectors may turn together
        skew = (left - adjoint(left)) * 0.5
        inner = inner + skew * identity(k, s.dtype) * as_rows(small)
    found = product(u, inner, vh)
    if m > k:
        scaled = (gu - product(u, left)) * as_rows(small)
        found = found + product(scaled, vh)
    if n > k:
        scaled = (gvh - product(right, vh)) * as_columns(small)
        found = found + product(u, scaled)
    return (found,)


@operator(to=None, method=False)
def singular_values(a: Tensor) -> Any:
    """The singular values, the largest first."""
    return build.call("svdvals", a)


singular_values.operator.saves = {"a": ("result",)}


@singular_values.derivative
def _(g: Any, y: Any, a: Any) -> Any:
    m, n = a.shape[-2:]
    u, _, vh = svd_parts(svd_packed(a, False), m, n, False)
    return (product(u * as_rows(g), vh),)


@operator(to=None, method=False)
def eigh_packed(a: Tensor, lower: bool) -> Any:
    """(eigenvalues, eigenvectors) of a symmetric matrix, packed."""
    return build.call("eigh", a, options=(lower,))


def eigh_parts(packed: Any, n: int) -> tuple[Any, Any]:
    """The eigenvalues, and the eigenvectors as columns."""
    return real_of(part(packed, 0, n)), part(packed, n, n, n)


@eigh_packed.derivative
def _(g: Any, y: Any, a: Any, lower: bool) -> Any:
    n = a.shape[-1]
    values, vectors = eigh_parts(y, n)
    g_values, g_vectors = eigh_parts(g, n)
    gap = inverse_or_zero(as_rows(values) - as_columns(values))
    turn = product(adjoint(vectors), g_vectors)
    inner = (turn - adjoint(turn)) * gap * 0.5 + on_diagonal(g_values)
    return (product(vectors, inner, adjoint(vectors)),)


@operator(to=None, method=False)
def eigenvalues(a: Tensor, lower: bool) -> Any:
    """The eigenvalues of a symmetric matrix."""
    return build.call("eigvalsh", a, options=(lower,))


eigenvalues.operator.saves = {"a": ("result",)}


@eigenvalues.derivative
def _(g: Any, y: Any, a: Any, lower: bool) -> Any:
    _, vectors = eigh_parts(eigh_packed(a, lower), a.shape[-1])
    return (product(vectors * as_rows(g), adjoint(vectors)),)


@operator(to=None, method=False)
def svd_factors(a: Tensor, full: bool) -> Any:
    """(U, S, Vh)."""
    m, n = a.shape[-2:]
    return svd_parts(svd_packed(a, full), m, n, full)


svd_factors.operator.saves = {"a": ("results",)}


@function(to="linalg")
@with_out
@at_call
def svd(A: Tensor, full_matrices: bool = True, *, driver: str | None = None) -> Any:
    """(U, S, Vh) with A = U · diag(S) · Vh.

    >>> import monograph as mg
    >>> mg.linalg.svd(mg.tensor([[3.0, 0.0], [0.0, 4.0]])).S.tolist()
    [4.0, 3.0]
    """
    check_matrix(A, "linalg.svd")
    return return_types.linalg_svd(svd_factors(A, bool(full_matrices)))


@function(name="svd", method="svd")
@with_out
def svd_of(input: Tensor, some: bool = True, compute_uv: bool = True) -> Any:
    """(U, S, V) with x = U · diag(S) · Vᵀ; without compute_uv, U and V are zeros.

    >>> import monograph as mg
    >>> mg.svd(mg.tensor([[3.0, 0.0], [0.0, 4.0]])).S.tolist()
    [4.0, 3.0]
    """
    if compute_uv:
        u, s, vh = svd(input, not some)
        return return_types.svd(u, s, vh.mH)
    m, n = input.shape[-2:]
    lead, kind = tuple(input.shape[:-2]), input.dtype.numpy
    left, right = (adopt(np.zeros((*lead, k, k), kind)) for k in (m, n))
    return return_types.svd(left, svdvals(input), right)


@function(to="linalg")
@with_out
@at_call
def svdvals(A: Tensor, *, driver: str | None = None) -> Tensor:
    """The singular values in descending order.

    >>> import monograph as mg
    >>> mg.linalg.svdvals(mg.tensor([[3.0, 0.0], [0.0, 4.0]])).tolist()
    [4.0, 3.0]
    """
    check_matrix(A, "linalg.svdvals")
    return singular_values(A)


@operator(to=None, method=False)
def eigh_factors(a: Tensor, lower: bool) -> Any:
    """(eigenvalues, eigenvectors) of a symmetric matrix."""
    return eigh_parts(eigh_packed(a, lower), a.shape[-1])


eigh_factors.operator.saves = {"a": ("results",)}


def _lower(side: str, name: str) -> bool:
    if side.upper() not in ("L", "U"):
        raise errors.OperandError(
            f"{name}: Expected UPLO argument to be 'L' or 'U', but got {side}"
        )
    return side.upper() == "L"


@function(to="linalg")
@with_out
@at_call
def eigh(input: Tensor, UPLO: str = "L") -> Any:
    """(eigenvalues, eigenvectors) of a symmetric matrix, of which one triangle is read.

    >>> import monograph as mg
    >>> mg.linalg.eigh(mg.tensor([[2.0, 0.0], [0.0, 1.0]])).eigenvalues.tolist()
    [1.0, 2.0]
    """
    check_matrix(input, "linalg.eigh", square=True)
    return return_types.linalg_eigh(eigh_factors(input, _lower(UPLO, "linalg.eigh")))


@function(to="linalg")
@with_out
@at_call
def eigvalsh(input: Tensor, UPLO: str = "L") -> Tensor:
    """The eigenvalues of a symmetric matrix in ascending order.

    >>> import monograph as mg
    >>> mg.linalg.eigvalsh(mg.tensor([[2.0, 0.0], [0.0, 1.0]])).tolist()
    [1.0, 2.0]
    """
    check_matrix(input, "linalg.eigvalsh", square=True)
    return eigenvalues(input, _lower(UPLO, "linalg.eigvalsh"))


# --- matrices that need not be symmetric --------------------------------------------------------


@operator(to=None, method=False)
def eig_packed(a: Tensor) -> Any:
    """(eigenvalues, eigenvectors) packed, complex."""
    return build.call("eig", a)


def eig_parts(packed: Any, n: int) -> tuple[Any, Any]:
    """The eigenvalues, and the eigenvectors as columns."""
    return part(packed, 0, n), part(packed, n, n, n)


@eig_packed.derivative
def _(g: Any, y: Any, a: Any) -> Any:
    """Eigenvectors keep the length 1: what would stretch them is taken out."""
    n = a.shape[-1]
    values, vectors = eig_parts(y, n)
    g_values, g_vectors = eig_parts(g, n)
    turn = product(adjoint(vectors), g_vectors)
    one = identity(n, values.dtype)
    stretch = f.real(build.reduce("add", turn * one, (a.ndim - 2,)))
    turn = turn - product(adjoint(vectors), vectors * as_rows(stretch))
    gap = f.conj(as_rows(values) - as_columns(values))
    inner = turn * inverse_or_zero(gap) * (1.0 - one) + on_diagonal(g_values)
    return (_pull_eig(inner, vectors, a),)


def _pull_eig(inner: Any, vectors: Any, a: Any) -> Any:
    back = adjoint(vectors)
    found = solve_system(back, product(inner, back))
    return found if a.dtype.is_complex else f.real(found)


@operator(to=None, method=False)
def complex_eigenvalues(a: Tensor) -> Any:
    """The eigenvalues, complex."""
    return build.call("eigvals", a)


complex_eigenvalues.operator.saves = {"a": ("result",)}


@complex_eigenvalues.derivative
def _(g: Any, y: Any, a: Any) -> Any:
    _, vectors = eig_parts(eig_packed(a), a.shape[-1])
    return (_pull_eig(on_diagonal(g), vectors, a),)


@operator(to=None, method=False)
def eig_factors(a: Tensor) -> Any:
    """(eigenvalues, eigenvectors)."""
    return eig_parts(eig_packed(a), a.shape[-1])


eig_factors.operator.saves = {"a": ("results",)}


@function(to="linalg")
@with_out
@at_call
def eig(input: Tensor) -> Any:
    """(eigenvalues, eigenvectors) of a square matrix, complex, in no certain order.

    >>> import monograph as mg
    >>> mg.linalg.eig(mg.tensor([[0.0, 1.0], [-1.0, 0.0]])).eigenvalues.imag.abs().tolist()
    [1.0, 1.0]
    """
    check_matrix(input, "linalg.eig", square=True)
    return return_types.linalg_eig(eig_factors(input))


@function(to="linalg")
@with_out
@at_call
def eigvals(input: Tensor) -> Tensor:
    """The eigenvalues of a square matrix, complex, in no certain order.

    >>> import monograph as mg
    >>> mg.linalg.eigvals(mg.tensor([[2.0, 1.0], [0.0, 2.0]])).tolist()
    [(2+0j), (2+0j)]
    """
    check_matrix(input, "linalg.eigvals", square=True)
    return complex_eigenvalues(input)
