"""Linear algebra in PyTorch's spelling: systems, factorisations, spectra, determinants.

What may fail (a singular matrix, an iteration that does not converge) runs when it is called, since
programs catch the error and try again: all that is pending is flushed, then the call itself, and
`LinAlgError` is raised there. While `mg.jit` traces or replays, it is raised at the next read.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import errors, record
from ..ir import build, dtypes
from ..ir.dtypes import Kind
from ..ir.node import Node
from ..tensor import Tensor, adopt
from . import matrix, return_types
from .define import function, operator
from .inplace import with_out
from .matmul import matmul

f = build.functions


def at_call(made: Callable[..., Any]) -> Callable[..., Any]:
    """Run the function's program before returning, so that it fails here or not at all."""

    @functools.wraps(made)
    def call(*args: Any, **kwargs: Any) -> Any:
        if record.recorder().hold or any(isinstance(a, Node) for a in args):
            return made(*args, **kwargs)
        record.flush("linalg")
        result = made(*args, **kwargs)
        record.flush("linalg")
        record.wait()
        return result

    return call


# --- checks -------------------------------------------------------------------------------------


def _check(a: Any, name: str, square: bool = False, letter: str = "A") -> None:
    if a.ndim < 2:
        raise errors.OperandError(
            f"{name}: The input tensor {letter} must have at least 2 dimensions."
        )
    if a.dtype.kind < Kind.FLOAT:
        raise errors.OperandError(
            f"{name}: Expected a floating point or complex tensor as input. Got {a.dtype.name}"
        )
    if a.dtype is dtypes.float16:
        raise errors.OperandError(f"{name}: Low precision dtypes not supported. Got {a.dtype.name}")
    m, n = a.shape[-2:]
    if square and m != n:
        raise errors.OperandError(
            f"{name}: {letter} must be batches of square matrices, but they are {m} by {n} matrices"
        )


def _same_dtype(a: Any, b: Any, name: str) -> None:
    if a.dtype is not b.dtype:
        raise errors.OperandError(
            f"{name}: Expected A and B to have the same dtype, but found A of type {a.dtype.name} "
            f"and B of type {b.dtype.name} instead"
        )


def _is_vector(a: Any, b: Any) -> bool:
    """PyTorch's rule: b is one vector, or one per matrix of the batch."""
    return b.ndim == 1 or (a.ndim - 1 == b.ndim and tuple(b.shape) == tuple(a.shape[:-1]))


def _batched(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """Both matrices with the same leading axes."""
    lead = build.broadcast_shapes(tuple(a.shape[:-2]), tuple(b.shape[:-2]))
    return a.expand(*lead, *a.shape[-2:]), b.expand(*lead, *b.shape[-2:])


# --- systems ------------------------------------------------------------------------------------


@function(to="linalg")
@with_out
@at_call
def inv(A: Tensor) -> Tensor:
    """The inverse of a square matrix, or of each of a batch.

    >>> import monograph as mg
    >>> mg.inverse(mg.tensor([[2.0, 0.0], [0.0, 4.0]])).tolist()
    [[0.5, 0.0], [0.0, 0.25]]
    """
    _check(A, "linalg.inv", square=True)
    return matrix.inverse(A)


@function(method=True)
@with_out
def inverse(input: Tensor) -> Tensor:
    """The inverse: `linalg.inv`."""
    return inv(input)


def _whole(x: Any) -> Any:
    return build.cast(matrix.real_of(x), dtypes.int32)


@operator(to=None, method=False)
def unpacked_with_info(packed: Tensor, n: int) -> Any:
    """(matrix, info as int32) of a result that was packed with its info."""
    return matrix.part(packed, 0, n, n), _whole(matrix.part(packed, n * n))


@function(to="linalg")
@with_out
def inv_ex(A: Tensor, *, check_errors: bool = False) -> Any:
    """(inverse, info): info is 0, or says which pivot of a singular matrix is zero.

    >>> import monograph as mg
    >>> from monograph.ops import linalg
    >>> linalg.inv_ex(mg.zeros(2, 2)).info.item()
    1
    """
    _check(A, "linalg.inv", square=True)
    if check_errors:
        inv(A)
    packed = matrix.inverse_info(A)
    return return_types.linalg_inv_ex(unpacked_with_info(packed, A.shape[-1]))


@function(to="linalg")
@with_out
@at_call
def solve(A: Tensor, B: Tensor, *, left: bool = True) -> Tensor:
    """X with A · X = B, or X · A = B if not left; B may be a vector.

    >>> import monograph as mg
    >>> from monograph.ops import linalg
    >>> linalg.solve(mg.tensor([[2.0, 0.0], [0.0, 4.0]]), mg.tensor([2.0, 2.0])).tolist()
    [1.0, 0.5]
    """
    _check(A, "linalg.solve", square=True)
    _same_dtype(A, B, "linalg.solve")
    vector = _is_vector(A, B)
    if vector and not left:
        raise errors.OperandError("linalg.solve: Vector broadcasting of the left hand side "
                                  "is not supported for left=False.")  # fmt: skip
    wide = B.unsqueeze(-1) if vector else B
    if wide.shape[-2 if left else -1] != A.shape[-1]:
        raise errors.OperandError(
            f"linalg.solve: Incompatible shapes of A and B for the equation "
            f"{'AX = B' if left else 'XA = B'} ({A.shape[-2]}x{A.shape[-1]} and "
            f"{wide.shape[-2]}x{wide.shape[-1]})"
        )
    if left:
        a, b = _batched(A, wide)
        result = matrix.solve_system(a, b)
    else:
        a, b = _batched(A.mT, wide.mT)
        result = matrix.solve_system(a, b).mT
    return result.squeeze(-1) if vector else result


@function(to="linalg")
@with_out
def solve_ex(A: Tensor, B: Tensor, *, left: bool = True, check_errors: bool = False) -> Any:
    """(result, info): like `solve`, but a singular matrix gives NaN and a non-zero info.

    >>> import monograph as mg
    >>> from monograph.ops import linalg
    >>> linalg.solve_ex(mg.ones(1, 1), mg.ones(1, 1)).info.item()
    0
    """
    if check_errors:
        solve(A, B, left=left)
    inverse, info = inv_ex(A)
    vector = _is_vector(A, B)
    wide = B.unsqueeze(-1) if vector else B
    result = matmul(inverse, wide) if left else matmul(wide, inverse)
    return return_types.linalg_solve_ex(result.squeeze(-1) if vector else result, info)


@function(to="linalg")
@with_out
def solve_triangular(
    input: Tensor, B: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False
) -> Tensor:
    """X with A · X = B for a triangular A; the other triangle is not read.

    >>> import monograph as mg
    >>> from monograph.ops import linalg
    >>> a, b = mg.tensor([[2.0, 9.0], [1.0, 1.0]]), mg.tensor([[2.0], [3.0]])
    >>> linalg.solve_triangular(a, b, upper=False).tolist()
    [[1.0], [2.0]]
    """
    name = "linalg.solve_triangular"
    _check(input, name, square=True)
    _check(B, name, letter="B")
    _same_dtype(input, B, name)
    if B.shape[-2 if left else -1] != input.shape[-1]:
        raise errors.OperandError(
            f"{name}: Incompatible shapes of A and B for the equation "
            f"{'AX = B' if left else 'XA = B'} ({input.shape[-2]}x{input.shape[-1]} and "
            f"{B.shape[-2]}x{B.shape[-1]})"
        )
    if left:
        a, b = _batched(input, B)
        return matrix.solve_triangle(a, b, upper, unitriangular)
    a, b = _batched(input.mT, B.mT)
    return matrix.solve_triangle(a, b, not upper, unitriangular).mT


# --- Cholesky -----------------------------------------------------------------------------------


@function(to="linalg")
@with_out
@at_call
def cholesky(input: Tensor, *, upper: bool = False) -> Tensor:
    """The triangular factor L with A = L · Lᵀ of a positive-definite matrix.

    >>> import monograph as mg
    >>> mg.cholesky(mg.tensor([[4.0, 2.0], [2.0, 2.0]])).tolist()
    [[2.0, 0.0], [1.0, 1.0]]
    """
    _check(input, "linalg.cholesky", square=True)
    factor = matrix.cholesky_factor(input, bool(upper))
    return factor.mH if upper else factor


@function(name="cholesky", method="cholesky")
@with_out
def cholesky_of(input: Tensor, upper: bool = False) -> Tensor:
    """The triangular factor of a positive-definite matrix: `linalg.cholesky`."""
    return cholesky(input, upper=upper)


@function(to="linalg")
@with_out
def cholesky_ex(input: Tensor, *, upper: bool = False, check_errors: bool = False) -> Any:
    """(L, info): info is 0, or the order of the minor that is not positive-definite.

    >>> import monograph as mg
    >>> from monograph.ops import linalg
    >>> linalg.cholesky_ex(-mg.ones(1, 1)).info.item()
    1
    """
    _check(input, "linalg.cholesky_ex", square=True)
    if check_errors:
        cholesky(input)
    packed = matrix.cholesky_info(input, bool(upper))
    factor, info = unpacked_with_info(packed, input.shape[-1])
    return return_types.linalg_cholesky_ex(factor.mH if upper else factor, info)


@function(method=True)
@with_out
def cholesky_solve(input: Tensor, input2: Tensor, upper: bool = False) -> Tensor:
    """X with A · X = B, where L is the Cholesky factor of A.

    >>> import monograph as mg
    >>> mg.cholesky_solve(mg.tensor([[8.0]]), mg.tensor([[2.0]])).item()
    2.0
    """
    _check(input2, "cholesky_solve", square=True)
    _same_dtype(input2, input, "cholesky_solve")
    low, b = _batched(input2.mH if upper else input2, input)
    return matrix.solve_by_cholesky(b, low)


@function(method=True)
@with_out
def cholesky_inverse(input: Tensor, upper: bool = False) -> Tensor:
    """The inverse of A, where L is its Cholesky factor.

    >>> import monograph as mg
    >>> mg.cholesky_inverse(mg.tensor([[2.0]])).item()
    0.25
    """
    _check(input, "cholesky_inverse", square=True)
    n = input.shape[-1]
    one = adopt(np.eye(n, dtype=input.dtype.numpy)).expand(*input.shape[:-2], n, n)
    return cholesky_solve(one, input, upper)


# --- LU -----------------------------------------------------------------------------------------


@operator(to=None, method=False)
def lu_factors(a: Tensor) -> Any:
    """(both factors in one matrix, pivots)."""
    return matrix.lu_parts(matrix.lu_packed(a), *a.shape[-2:])


@operator(to=None, method=False, smooth=False)
def permutation(both: Tensor, pivots: Tensor) -> Any:
    """P with A = P · L · U."""
    return matrix.permutation(pivots, both.shape[-2], both.dtype)


@operator(to=None, method=False)
def triangles(both: Tensor) -> Any:
    """(L, U) of both factors in one matrix."""
    return matrix.unit_lower(both), matrix.upper_factor(both)


def _unpacked(both: Tensor, pivots: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    return permutation(both, pivots), *triangles(both)


def _pivoting(pivot: bool, name: str) -> None:
    if not pivot:
        raise errors.OperandError(f"{name}: LU without pivoting is not implemented on the CPU")


@function(to="linalg")
@with_out
def lu_factor(A: Tensor, *, pivot: bool = True) -> Any:
    """(LU, pivots): both factors in one matrix, and which rows were exchanged, from 1.

    >>> import monograph as mg
    >>> from monograph.ops import linalg
    >>> linalg.lu_factor(mg.tensor([[1.0, 2.0], [2.0, 2.0]])).pivots.tolist()
    [2, 2]
    """
    both, pivots, info = lu_factor_ex(A, pivot=pivot)
    if info.numel() and bool((info != 0).any()):
        place = int(info.numpy()[info.numpy() != 0].flat[0])
        raise errors.OperandError(
            f"torch.linalg.lu_factor: U[{place},{place}] is zero and using it on lu_solve would "
            f"result in a division by zero. If you still want to perform the factorization, "
            f"consider calling linalg.lu(A, pivot) or linalg.lu_factor_ex(A, pivot)"
        )
    return return_types.linalg_lu_factor(both, pivots)


@operator(to=None, method=False, smooth=False)
def zero_pivots(both: Tensor) -> Any:
    """The place of the first zero on the diagonal of U, from 1, or 0."""
    m, n = both.shape[-2:]
    diagonal = matrix.window(both, (0, min(m, n)), (0, n))
    diagonal = build.reduce("add", diagonal * matrix.identity(n, both.dtype, min(m, n)), (-1,))
    length = diagonal.shape[-1]
    last = (diagonal.ndim - 1,)
    if length == 0:
        return build.full(both.shape[:-2], 0, dtypes.int32)
    place = build.coordinate(diagonal.shape, diagonal.ndim - 1) + 1
    found = build.reduce("min", build.select(f.eq(diagonal, 0.0), place, length + 1), last)
    return build.cast(build.select(found > length, 0, found), dtypes.int32)


@function(to="linalg")
@with_out
def lu_factor_ex(A: Tensor, *, pivot: bool = True, check_errors: bool = False) -> Any:
    """(LU, pivots, info): info is 0, or says which element on the diagonal of U is zero.

    >>> import monograph as mg
    >>> from monograph.ops import linalg
    >>> linalg.lu_factor_ex(mg.zeros(2, 2)).info.item()
    1
    """
    _check(A, "linalg.lu_factor")
    _pivoting(pivot, "linalg.lu_factor")
    both, pivots = lu_factors(A)
    info = zero_pivots(both)
    if check_errors and info.numel() and bool((info != 0).any()):
        raise errors.LinAlgError("linalg.lu_factor_ex: U has a zero on its diagonal")
    return return_types.linalg_lu_factor_ex(both, pivots, info)


@function(to="linalg")
@with_out
def lu(A: Tensor, *, pivot: bool = True) -> Any:
    """(P, L, U) with A = P · L · U.

    >>> import monograph as mg
    >>> from monograph.ops import linalg
    >>> linalg.lu(mg.tensor([[1.0, 2.0], [2.0, 2.0]])).U.tolist()
    [[2.0, 2.0], [0.0, 1.0]]
    """
    _check(A, "linalg.lu")
    _pivoting(pivot, "linalg.lu")
    return return_types.linalg_lu(_unpacked(*lu_factors(A)))


@function(to="linalg")
@with_out
def lu_solve(
    LU: Tensor, pivots: Tensor, B: Tensor, *, left: bool = True, adjoint: bool = False
) -> Tensor:
    """X with A · X = B, given `lu_factor` of A.

    >>> import monograph as mg
    >>> from monograph.ops import linalg
    >>> linalg.lu_solve(*linalg.lu_factor(mg.tensor([[2.0]])), mg.tensor([[4.0]])).item()
    2.0
    """
    _check(LU, "linalg.lu_solve", square=True, letter="LU")
    if not left:
        return lu_solve(LU, pivots, B.mH, adjoint=not adjoint).mH
    p, low, up = _unpacked(LU, pivots)
    if adjoint:  # Aᴴ = Uᴴ · Lᴴ · Pᵀ
        half = solve_triangular(up.mH, B, upper=False)
        return matmul(p, solve_triangular(low.mH, half, upper=True, unitriangular=True))
    half = solve_triangular(low, matmul(p.mT, B), upper=False, unitriangular=True)
    return solve_triangular(up, half, upper=True)


# --- determinants -------------------------------------------------------------------------------


@function(to="linalg")
@with_out
def det(A: Tensor) -> Tensor:
    """The determinant.

    >>> import monograph as mg
    >>> mg.det(mg.tensor([[2.0, 1.0], [0.0, 3.0]])).item()
    6.0
    """
    _check(A, "linalg.det", square=True)
    return matrix.determinant(A)


@function(name="det", method="det")
@with_out
def det_of(input: Tensor) -> Tensor:
    """The determinant: `linalg.det`."""
    return det(input)


@operator(to=None, method=False)
def sign_and_log(a: Tensor) -> Any:
    """(sign, logarithm of the absolute value) of the determinant."""
    packed = matrix.log_determinant(a)
    sign = matrix.part(packed, 0)
    if not a.dtype.is_complex:
        sign = build.apply("detach", sign)
    return sign, matrix.real_of(matrix.part(packed, 1))


@function(to="linalg")
@with_out
def slogdet(A: Tensor) -> Any:
    """(sign, logabsdet) of the determinant, without overflow.

    >>> import monograph as mg
    >>> mg.slogdet(-mg.ones(1, 1)).sign.item()
    -1.0
    """
    _check(A, "linalg.slogdet", square=True)
    return return_types.linalg_slogdet(sign_and_log(A))


@function(name="slogdet", method="slogdet")
@with_out
def slogdet_of(input: Tensor) -> Any:
    """(sign, logabsdet) of the determinant: `linalg.slogdet`."""
    return return_types.slogdet(*slogdet(input))


@operator
def logdet(x: Tensor) -> Any:
    """The logarithm of the determinant; NaN where that is negative.

    >>> import monograph as mg
    >>> mg.logdet(mg.eye(2) if hasattr(mg, "eye") else mg.tensor([[1.0]])).item()
    0.0
    """
    _check(x, "logdet", square=True)
    sign, size = sign_and_log(x)
    if x.dtype.is_complex:
        return f.log(sign) + size
    return build.select(sign < 0, float("nan"), size)


# --- spectra ------------------------------------------------------------------------------------


@operator(to=None, method=False)
def svd_factors(a: Tensor, full: bool) -> Any:
    """(U, S, Vh)."""
    m, n = a.shape[-2:]
    return matrix.svd_parts(matrix.svd_packed(a, full), m, n, full)


@function(to="linalg")
@with_out
@at_call
def svd(A: Tensor, full_matrices: bool = True, *, driver: str | None = None) -> Any:
    """(U, S, Vh) with A = U · diag(S) · Vh.

    >>> import monograph as mg
    >>> from monograph.ops import linalg
    >>> linalg.svd(mg.tensor([[3.0, 0.0], [0.0, 4.0]])).S.tolist()
    [4.0, 3.0]
    """
    _check(A, "linalg.svd")
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
    >>> from monograph.ops import linalg
    >>> linalg.svdvals(mg.tensor([[3.0, 0.0], [0.0, 4.0]])).tolist()
    [4.0, 3.0]
    """
    _check(A, "linalg.svdvals")
    return matrix.singular_values(A)


@operator(to=None, method=False)
def eigh_factors(a: Tensor, lower: bool) -> Any:
    """(eigenvalues, eigenvectors) of a symmetric matrix."""
    return matrix.eigh_parts(matrix.eigh_packed(a, lower), a.shape[-1])


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
    >>> from monograph.ops import linalg
    >>> linalg.eigh(mg.tensor([[2.0, 0.0], [0.0, 1.0]])).eigenvalues.tolist()
    [1.0, 2.0]
    """
    _check(input, "linalg.eigh", square=True)
    return return_types.linalg_eigh(eigh_factors(input, _lower(UPLO, "linalg.eigh")))


@function(to="linalg")
@with_out
@at_call
def eigvalsh(input: Tensor, UPLO: str = "L") -> Tensor:
    """The eigenvalues of a symmetric matrix in ascending order.

    >>> import monograph as mg
    >>> from monograph.ops import linalg
    >>> linalg.eigvalsh(mg.tensor([[2.0, 0.0], [0.0, 1.0]])).tolist()
    [1.0, 2.0]
    """
    _check(input, "linalg.eigvalsh", square=True)
    return matrix.eigenvalues(input, _lower(UPLO, "linalg.eigvalsh"))


@operator(to=None, method=False)
def qr_factors(a: Tensor, complete: bool) -> Any:
    """(Q, R)."""
    return matrix.qr_parts(matrix.qr_packed(a, complete), *a.shape[-2:], complete)


@operator(to=None, method=False)
def r_factor(a: Tensor) -> Any:
    """(an empty Q, R)."""
    _, r = matrix.qr_parts(matrix.qr_packed(a, False), *a.shape[-2:], False)
    return build.full((0,), 0.0, a.dtype), r


@function(to="linalg")
@with_out
def qr(A: Tensor, mode: str = "reduced") -> Any:
    """(Q, R) with A = Q · R; mode "complete" has a square Q, mode "r" an empty one.

    >>> import monograph as mg
    >>> from monograph.ops import linalg
    >>> linalg.qr(mg.tensor([[3.0], [4.0]])).R.abs().tolist()
    [[5.0]]
    """
    _check(A, "linalg.qr")
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


def _tolerances(A: Tensor, atol: Any, rtol: Any) -> tuple[Any, Any]:
    """PyTorch's defaults: relative by precision and size, unless an absolute one is given."""
    if rtol is None:
        positive = atol is not None and (isinstance(atol, Tensor) or atol > 0)
        precision = float(np.finfo(A.dtype.numpy).eps) * max(A.shape[-2:])
        rtol = 0.0 if positive else precision
    wrapped = [t if isinstance(t, Tensor) else float(t or 0.0) for t in (atol, rtol)]
    return wrapped[0], wrapped[1]


@function(to="linalg")
@with_out
@at_call
def pinv(
    input: Tensor, rcond: Any = None, hermitian: bool = False, *, atol: Any = None, rtol: Any = None
) -> Tensor:
    """The pseudo-inverse: singular values up to max(atol, rtol · largest) count as zero.

    >>> import monograph as mg
    >>> mg.pinverse(mg.tensor([[2.0], [0.0]])).tolist()
    [[0.5, 0.0]]
    """
    _check(input, "linalg.pinv", square=hermitian)
    absolute, relative = _tolerances(input, atol, rcond if rtol is None else rtol)
    return matrix.pseudo_inverse(input, absolute, relative, bool(hermitian))


@function(method=True)
def pinverse(input: Tensor, rcond: float = 1e-15) -> Tensor:
    """The pseudo-inverse: `linalg.pinv` with this relative tolerance."""
    return pinv(input, rtol=rcond)


@operator(to=None, method=False, smooth=False)
def count_above(s: Tensor, atol: Any, rtol: Any) -> Any:
    """How many values are above max(atol, rtol · largest)."""
    if s.shape[-1] == 0:
        return build.full(s.shape[:-1], 0, dtypes.int64)
    size = f.abs(s)
    top = build.reduce("max", size, (s.ndim - 1,), True)
    limit = f.maximum(top * rtol, build.full((), atol, s.dtype))
    return build.reduce("add", build.cast(size > limit, dtypes.int64), (s.ndim - 1,))


@function(to="linalg")
@with_out
@at_call
def matrix_rank(
    input: Tensor, tol: Any = None, hermitian: bool = False, *, atol: Any = None, rtol: Any = None
) -> Tensor:
    """How many singular values are above the tolerance.

    >>> import monograph as mg
    >>> from monograph.ops import linalg
    >>> linalg.matrix_rank(mg.ones(3, 3)).item()
    1
    """
    _check(input, "linalg.matrix_rank", square=hermitian)
    absolute, relative = _tolerances(input, tol if atol is None else atol, rtol)
    s = eigvalsh(input) if hermitian else svdvals(input)
    if not isinstance(absolute, Tensor) and not isinstance(relative, Tensor):
        return count_above(s, absolute, relative)
    if s.shape[-1] == 0:
        return count_above(s, 0.0, 0.0)
    size = s.abs()
    limit = size.amax(-1) * relative
    other = absolute if isinstance(absolute, Tensor) else limit * 0 + absolute
    return (size > limit.maximum(other).unsqueeze(-1)).sum(-1)


@function(to="linalg")
@at_call
def lstsq(
    input: Tensor, b: Tensor, rcond: float | None = None, *, driver: str | None = None
) -> Any:
    """(solution, residuals, rank, singular_values) of the least |input · X - b|.

    >>> import monograph as mg
    >>> from monograph.ops import linalg
    >>> linalg.lstsq(mg.tensor([[1.0], [1.0]]), mg.tensor([[1.0], [3.0]])).solution.item()
    2.0
    """
    name = "torch.linalg.lstsq"
    _check(input, name)
    _same_dtype(input, b, name)
    if driver not in (None, "gels", "gelsy", "gelsd", "gelss"):
        raise errors.OperandError(
            f"{name}: parameter `driver` should be one of (gels, gelsy, gelsd, gelss)"
        )
    vector = _is_vector(input, b)
    wide = b.unsqueeze(-1) if vector else b
    m, n = input.shape[-2:]
    if wide.shape[-2] != m:
        raise errors.OperandError(f"{name}: input.size(-2) should match other.size(-2)")
    kind = input.dtype.numpy
    limit = float(np.finfo(kind).eps) * max(m, n) if rcond is None else float(rcond)
    solution = matrix.least_squares(*_batched(input, wide), limit)
    s = svdvals(input.detach())
    rank = count_above(s, 0.0, limit)
    residuals = solution.reshape(-1).narrow(0, 0, 0).abs()
    if m > n and driver not in (None, "gelsy") and bool((rank == n).all()):
        residuals = (matmul(input, solution) - wide).abs().square().sum(-2)
    values = s if driver in ("gelsd", "gelss") else adopt(np.zeros(0, s.dtype.numpy))
    ranks = adopt(np.zeros(0, np.int64)) if driver == "gels" else rank
    return return_types.linalg_lstsq(
        solution.squeeze(-1) if vector else solution, residuals, ranks, values
    )
