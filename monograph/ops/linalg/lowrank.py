"""Factors of low rank, by products with random matrices (Halko, Martinsson and Tropp, 2009)."""

from __future__ import annotations

from typing import Any

from ... import errors
from ...tensor import Tensor
from ..define import function
from ..draws import randn
from ..matmul import matmul
from .orthogonal import qr
from .spectral import svd


def _basis(a: Any, q: int, niter: int) -> Any:
    """Orthogonal columns that nearly span the range of a, by a few steps of subspace iteration."""
    found = qr(matmul(a, randn(a.shape[-1], q, dtype=a.dtype))).Q
    for _ in range(niter):
        found = qr(matmul(a, qr(matmul(a.mH, found)).Q)).Q
    return found


@function
def svd_lowrank(
    A: Tensor, q: int | None = 6, niter: int | None = 2, M: Tensor | None = None
) -> Any:
    """(U, S, V) with A - M ≈ U · diag(S) · Vᵀ, of rank q.

    >>> import monograph as mg
    >>> u, s, v = mg.svd_lowrank(mg.ones(4, 3), q=1)
    >>> round(s.item() ** 2, 3)
    12.0
    """
    rank = 6 if q is None else q
    steps = 2 if niter is None else niter
    a: Any = A if M is None else A - M.expand(*A.shape)
    wide = a.shape[-2] < a.shape[-1]
    a = a.mH if wide else a
    basis = _basis(a, rank, steps)
    u, s, vh = svd(matmul(basis.mH, a), False)
    u, v = matmul(basis, u), vh.mH
    return (v, s, u) if wide else (u, s, v)


@function
def pca_lowrank(A: Tensor, q: int | None = None, center: bool = True, niter: int = 2) -> Any:
    """(U, S, V): principal components of the rows of A, the directions in the columns of V.

    >>> import monograph as mg
    >>> u, s, v = mg.pca_lowrank(mg.tensor([[1.0, 0.0], [3.0, 0.0], [5.0, 0.0]]), q=1)
    >>> v.abs().round().tolist()
    [[1.0], [0.0]]
    """
    m, n = A.shape[-2:]
    rank = min(6, m, n) if q is None else q
    if not 0 <= rank <= min(m, n):
        raise errors.ValueOutOfRange(f"q(={rank}) must be non-negative integer and not greater "
                                     f"than min(m, n)={min(m, n)}")  # fmt: skip
    if niter < 0:
        raise errors.ValueOutOfRange(f"niter(={niter}) must be non-negative integer")
    middle = A.mean(-2, keepdim=True) if center else None
    return svd_lowrank(A, rank, niter, middle)
