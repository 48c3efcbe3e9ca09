"""Native functions on matrices, the last two axes; all before them are a batch.

LAPACK is reached through NumPy, which has no LU factors, no triangular solver and no matrix
exponential: those are written here with a loop over columns or blocks, each step vectorised over
the batch. Half precision is computed in single. Packed results lie flat along the last axis, in the
order in which their function names them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import errors
from . import dtypes
from .native import Array, Inferred, like, native

LinAlgError = errors.LinAlgError
BLOCK = 32  # rows of a triangular system that are substituted one by one


def _square_pack(*sizes: Callable[[int, int], int]) -> Callable[..., Inferred]:
    """How long the packed row of a matrix of m rows and n columns is."""

    def infer(a: Any, *_: Any) -> Inferred:
        m, n = a.shape[-2:]
        return (*a.shape[:-2], sum(size(m, n) for size in sizes)), a.dtype

    return infer


def _pack(*parts: Array) -> Array:
    """Results side by side along the last axis."""
    return np.concatenate(parts, axis=-1)


def _flat(a: Array) -> Array:
    return a.reshape(*a.shape[:-2], a.shape[-2] * a.shape[-1])


def _turned(a: Array) -> Array:
    return np.swapaxes(a, -1, -2)


def _batch_note(a: Array, failed: Array) -> str:
    """PyTorch's words for which matrix of a batch failed."""
    if a.ndim == 2:
        return ""
    return f"(Batch element {int(np.flatnonzero(failed.reshape(-1))[0])}): "


def _wide(function: Callable[..., Array]) -> Callable[..., Array]:
    """LAPACK knows no half precision."""

    def run(*args: Any) -> Array:
        half = args[0].dtype == np.float16
        if not half:
            return function(*args)
        wide = [x.astype(np.float32) if isinstance(x, np.ndarray) else x for x in args]
        return function(*wide)

    run.__name__, run.__doc__ = function.__name__, function.__doc__
    run.__module__ = function.__module__
    return run


# --- systems of equations -----------------------------------------------------------------------


def _singular(a: Array) -> Array:
    """Which matrices have an exact zero on the diagonal of their upper factor."""
    factors, _ = lu_in_place(a)
    diagonal = np.diagonal(factors, axis1=-2, axis2=-1)
    return np.asarray(np.any(diagonal == 0, axis=-1))


@native(like, fails=LinAlgError)
@_wide
def inv(a: Array) -> Array:
    """The inverse."""
    try:
        return np.linalg.inv(a)
    except np.linalg.LinAlgError:
        failed = _singular(a)
        zero = _first_zero(a.reshape(-1, *a.shape[-2:]), failed)
        raise LinAlgError(
            f"linalg.inv: {_batch_note(a, failed)}The diagonal element {zero} is zero, the "
            f"inversion could not be completed because the input matrix is singular."
        ) from None


def _first_zero(matrices: Array, failed: Array) -> int:
    places = np.flatnonzero(failed.reshape(-1))
    which = matrices[int(places[0]) if len(places) else 0]
    diagonal = np.diagonal(lu_in_place(which)[0])
    zeros = np.flatnonzero(diagonal == 0)
    return int(zeros[0]) + 1 if len(zeros) else len(diagonal)


def _with_info(a: Any) -> Inferred:
    n = a.shape[-1]
    return (*a.shape[:-2], n * n + 1), a.dtype


@native(_with_info)
@_wide
def inv_info(a: Array) -> Array:
    """(inverse, 0 or the place of the first zero pivot): never fails."""
    info = np.zeros(a.shape[:-2], np.int64)
    try:
        result = np.linalg.inv(a)
    except np.linalg.LinAlgError:
        result = np.full_like(a, np.nan)
        for place in np.ndindex(*a.shape[:-2]):
            try:
                result[place] = np.linalg.inv(a[place])
            except np.linalg.LinAlgError:
                info[place] = _first_zero(a[place][None], np.array([True]))
    return _pack(_flat(result), info[..., None].astype(a.dtype))


def _of_right_side(a: Any, b: Any, *_: Any) -> Inferred:
    return b.shape, b.dtype


@native(_of_right_side, fails=LinAlgError)
@_wide
def solve(a: Array, b: Array) -> Array:
    """x with a · x = b."""
    try:
        return np.linalg.solve(a, b)
    except np.linalg.LinAlgError:
        note = _batch_note(a, _singular(a))
        raise LinAlgError(
            f"linalg.solve: {note}The solver failed because the input matrix is singular."
        ) from None


@native(_of_right_side)
@_wide
def solve_triangular(a: Array, b: Array, upper: bool, unit: bool) -> Array:
    """x with a · x = b, where only one triangle of a is read."""
    with np.errstate(all="ignore"):
        if not upper:
            return _substitute(a, b, unit)
        # Backwards from the last row: reverse both orders, and it is a lower triangle.
        return _substitute(a[..., ::-1, ::-1], b[..., ::-1, :], unit)[..., ::-1, :]


def _substitute(a: Array, b: Array, unit: bool) -> Array:
    x = np.array(b)
    n = a.shape[-1]
    for start in range(0, n, BLOCK):
        end = min(start + BLOCK, n)
        if start:
            x[..., start:end, :] -= a[..., start:end, :start] @ x[..., :start, :]
        for k in range(start, end):
            if k > start:
                x[..., k : k + 1, :] -= a[..., k : k + 1, start:k] @ x[..., start:k, :]
            if not unit:
                x[..., k, :] /= a[..., k, k, None]
    return x


# --- Cholesky -----------------------------------------------------------------------------------


@native(like, fails=LinAlgError)
@_wide
def cholesky(a: Array) -> Array:
    """The lower factor of a positive-definite matrix; its upper triangle is not read."""
    try:
        return np.linalg.cholesky(a)
    except np.linalg.LinAlgError:
        orders = _failing_minors(a)
        failed = np.flatnonzero(orders.reshape(-1))
        order = int(orders.reshape(-1)[failed[0]]) if len(failed) else a.shape[-1]
        raise LinAlgError(
            f"linalg.cholesky: {_batch_note(a, orders > 0)}The factorization could not be "
            f"completed because the input is not positive-definite (the leading minor of order "
            f"{order} is not positive-definite)."
        ) from None


def _failing_minors(a: Array) -> Array:
    """For each matrix the order of the first leading minor that is not positive, or 0."""
    orders = np.zeros(a.shape[:-2], np.int64)
    for place in np.ndindex(*a.shape[:-2]):
        for order in range(1, a.shape[-1] + 1):
            try:
                np.linalg.cholesky(a[place][:order, :order])
            except np.linalg.LinAlgError:
                orders[place] = order
                break
    return orders


@native(_with_info)
@_wide
def cholesky_info(a: Array) -> Array:
    """(factor, 0 or the order of the first minor that is not positive): never fails."""
    info = np.zeros(a.shape[:-2], np.int64)
    try:
        result = np.linalg.cholesky(a)
    except np.linalg.LinAlgError:
        info = _failing_minors(a)
        result = np.tril(a)
        for place in np.ndindex(*a.shape[:-2]):
            done = int(info[place]) - 1 if info[place] else a.shape[-1]
            result[place][:done, :done] = np.linalg.cholesky(a[place][:done, :done])
    return _pack(_flat(result), info[..., None].astype(a.dtype))


# --- LU -----------------------------------------------------------------------------------------


def lu_in_place(a: Array) -> tuple[Array, Array]:
    """(factors in one array, pivots from 0): row k was exchanged with row pivots[k]."""
    m, n = a.shape[-2:]
    work = np.array(a).reshape(math.prod(a.shape[:-2]), m, n)
    steps = min(m, n)
    pivots = np.zeros((len(work), steps), np.int64)
    with np.errstate(all="ignore"):
        for start in range(0, steps, BLOCK):
            end = min(start + BLOCK, steps)
            _factor_columns(work, pivots, start, end)
            if end < n:  # the rows beside these columns, and what lies below both
                corner, beside = work[:, start:end, start:end], work[:, start:end, end:]
                work[:, start:end, end:] = _substitute(corner, beside, unit=True)
                work[:, end:, end:] -= work[:, end:, start:end] @ work[:, start:end, end:]
    return work.reshape(a.shape), pivots.reshape(*a.shape[:-2], steps)


def _magnitude(a: Array) -> Array:
    """By what LAPACK chooses pivots: |re| + |im|."""
    return np.abs(a) if a.dtype.kind != "c" else np.abs(a.real) + np.abs(a.imag)


def _factor_columns(work: Array, pivots: Array, start: int, end: int) -> None:
    """Eliminate below the diagonal in some columns; whole rows are exchanged."""
    each = np.arange(len(work))
    for k in range(start, end):
        best = k + np.argmax(_magnitude(work[:, k:, k]), axis=1)
        pivots[:, k] = best
        rows = work[each, best].copy()
        work[each, best] = work[:, k]
        work[:, k] = rows
        pivot = work[:, k, k, None]
        work[:, k + 1 :, k] /= np.where(pivot == 0, 1, pivot)
        rest = slice(k + 1, end)
        work[:, k + 1 :, rest] -= work[:, k + 1 :, k, None] * work[:, None, k, rest]


@native(_square_pack(lambda m, n: m * n, lambda m, n: min(m, n)))
@_wide
def lu_factor(a: Array) -> Array:
    """(both factors in one matrix, pivots from 1)."""
    factors, pivots = lu_in_place(a)
    return _pack(_flat(factors), (pivots + 1).astype(a.dtype))


def _permuted(pivots: Any, rows: int) -> Inferred:
    return (*pivots.shape[:-1], rows), dtypes.int64


@native(_permuted)
def pivots_to_permutation(pivots: Array, rows: int) -> Array:
    """out[i]: which row of the matrix stands in row i after all exchanges."""
    lead, steps = pivots.shape[:-1], pivots.shape[-1]
    flat = pivots.reshape(math.prod(lead), steps).astype(np.int64) - 1
    order = np.tile(np.arange(rows), (len(flat), 1))
    each = np.arange(len(flat))
    for k in range(steps):
        other = flat[:, k]
        held = order[each, other].copy()
        order[each, other] = order[:, k]
        order[:, k] = held
    return order.reshape(*lead, rows)


# --- determinants -------------------------------------------------------------------------------


def _one_each(a: Any, *_: Any) -> Inferred:
    return a.shape[:-2], a.dtype


@native(_one_each)
@_wide
def det(a: Array) -> Array:
    """The determinant."""
    return np.asarray(np.linalg.det(a))


@native(_square_pack(lambda m, n: 2))
@_wide
def slogdet(a: Array) -> Array:
    """(sign, logarithm of the absolute value) of the determinant."""
    return np.stack(np.linalg.slogdet(a), axis=-1)


@native(like)
@_wide
def cofactors(a: Array) -> Array:
    """The derivative of the determinant: it exists for singular matrices too."""
    if a.shape[-1] == 0:
        return a
    u, s, vh = np.linalg.svd(a)
    sign = np.linalg.det(u) * np.linalg.det(vh)
    n = s.shape[-1]
    others = np.broadcast_to(s[..., None, :], (*s.shape[:-1], n, n))
    others = np.where(np.eye(n, dtype=bool), 1, others).prod(axis=-1)
    scaled = sign[..., None, None] * np.conj(u) * others[..., None, :]
    return np.asarray(scaled @ np.conj(vh))


# --- spectral -----------------------------------------------------------------------------------


def _converges(function: Callable[..., Any], name: str, *args: Any) -> Any:
    try:
        return function(*args)
    except np.linalg.LinAlgError:
        raise LinAlgError(
            f"{name}: The algorithm failed to converge because the input matrix is ill-conditioned "
            f"or has NaN or too many repeated values."
        ) from None


def _svd_sizes(a: Any, full: bool) -> Inferred:
    m, n = a.shape[-2:]
    k = min(m, n)
    length = (m * m if full else m * k) + k + (n * n if full else k * n)
    return (*a.shape[:-2], length), a.dtype


@native(_svd_sizes, fails=LinAlgError)
@_wide
def svd(a: Array, full: bool) -> Array:
    """(U, S, Vh)."""
    u, s, vh = _converges(np.linalg.svd, "linalg.svd", a, full)
    return _pack(_flat(u), s, _flat(vh))


def _values(a: Any, *_: Any) -> Inferred:
    return (*a.shape[:-2], min(a.shape[-2:])), a.dtype.to_real()


@native(_values, fails=LinAlgError)
@_wide
def svdvals(a: Array) -> Array:
    """The singular values, the largest first."""
    return np.asarray(_converges(np.linalg.svdvals, "linalg.svdvals", a))


@native(_square_pack(lambda m, n: n, lambda m, n: n * n), fails=LinAlgError)
@_wide
def eigh(a: Array, lower: bool) -> Array:
    """(eigenvalues in ascending order, eigenvectors as columns) of a symmetric matrix."""
    values, vectors = _converges(np.linalg.eigh, "linalg.eigh", a, "L" if lower else "U")
    return _pack(values, _flat(vectors))


@native(_values, fails=LinAlgError)
@_wide
def eigvalsh(a: Array, lower: bool) -> Array:
    """The eigenvalues of a symmetric matrix in ascending order."""
    side = "L" if lower else "U"
    return np.asarray(_converges(np.linalg.eigvalsh, "linalg.eigvalsh", a, side))


def _eig_sizes(a: Any) -> Inferred:
    n = a.shape[-1]
    return (*a.shape[:-2], n + n * n), a.dtype.to_complex()


@native(_eig_sizes, fails=LinAlgError)
@_wide
def eig(a: Array) -> Array:
    """(eigenvalues, eigenvectors as columns of length 1), complex."""
    values, vectors = _converges(np.linalg.eig, "linalg.eig", a)
    return _pack(*[x.astype(np.result_type(a, np.complex64)) for x in (values, _flat(vectors))])


def _complex_values(a: Any) -> Inferred:
    return a.shape[:-1], a.dtype.to_complex()


@native(_complex_values, fails=LinAlgError)
@_wide
def eigvals(a: Array) -> Array:
    """The eigenvalues, complex."""
    values = _converges(np.linalg.eigvals, "linalg.eigvals", a)
    return np.asarray(values.astype(np.result_type(a, np.complex64)))


# --- orthogonal factors -------------------------------------------------------------------------


def _qr_sizes(a: Any, complete: bool) -> Inferred:
    m, n = a.shape[-2:]
    k = m if complete else min(m, n)
    return (*a.shape[:-2], m * k + k * n), a.dtype


@native(_qr_sizes)
@_wide
def qr(a: Array, complete: bool) -> Array:
    """(Q, R)."""
    q, r = np.linalg.qr(a, "complete" if complete else "reduced")
    return _pack(_flat(q), _flat(r))


def _other_way_round(a: Any, *_: Any) -> Inferred:
    return (*a.shape[:-2], a.shape[-1], a.shape[-2]), a.dtype


@native(_other_way_round, fails=LinAlgError)
@_wide
def pinv(a: Array, tolerances: Array, hermitian: bool) -> Array:
    """The pseudo-inverse; tolerances are (absolute, relative to the largest singular value)."""
    if a.size == 0:
        return np.zeros((*a.shape[:-2], a.shape[-1], a.shape[-2]), a.dtype)
    absolute, relative = np.real(tolerances[..., 0]), np.real(tolerances[..., 1])
    u, s, vh = _converges(np.linalg.svd, "linalg.pinv", a, False, True, hermitian)
    limit = np.maximum(absolute, relative * s[..., 0])[..., None]
    with np.errstate(all="ignore"):
        inverse = np.where(s > limit, 1 / s, 0).astype(s.dtype)
    return np.asarray(np.conj(_turned(vh)) @ (inverse[..., None] * np.conj(_turned(u))))


def _solved(a: Any, b: Any, *_: Any) -> Inferred:
    return (*b.shape[:-2], a.shape[-1], b.shape[-1]), b.dtype


@native(_solved)
@_wide
def lstsq(a: Array, b: Array, rcond: float) -> Array:
    """x of least |a · x - b|, and of those the shortest."""
    out = np.zeros((*b.shape[:-2], a.shape[-1], b.shape[-1]), b.dtype)
    for place in np.ndindex(*b.shape[:-2]):
        out[place] = np.linalg.lstsq(a[place], b[place], rcond)[0]
    return out


# --- the exponential ----------------------------------------------------------------------------

# Coefficients of the [13/13] Padé approximant of exp, and the norm up to which it is accurate.
_PADE = [math.factorial(26 - j) // (math.factorial(j) * math.factorial(13 - j)) for j in range(14)]
_NORM_LIMIT = 5.371920351148152


@native(like)
@_wide
def matrix_exp(a: Array) -> Array:
    """exp(a) by scaling, a rational approximation, and squaring."""
    n = a.shape[-1]
    if a.size == 0:
        return a
    flat = a.reshape(-1, n, n).astype(np.float64 if a.dtype.kind == "f" else a.dtype)
    out = np.empty_like(flat)
    for k, matrix in enumerate(flat):
        norm = float(np.abs(matrix).sum(axis=0).max())
        if not math.isfinite(norm):
            out[k] = np.nan
            continue
        halvings = max(0, math.ceil(math.log2(norm / _NORM_LIMIT))) if norm > 0 else 0
        result = _pade(matrix / 2.0**halvings)
        for _ in range(halvings):
            result = result @ result
        out[k] = result
    return out.reshape(a.shape)


def _pade(a: Array) -> Array:
    b = [float(c) / float(_PADE[13]) for c in _PADE]
    one = np.eye(len(a), dtype=a.dtype)
    a2 = a @ a
    a4 = a2 @ a2
    a6 = a4 @ a2
    odd = a @ (
        a6 @ (b[13] * a6 + b[11] * a4 + b[9] * a2) + b[7] * a6 + b[5] * a4 + b[3] * a2 + b[1] * one
    )
    even = (
        a6 @ (b[12] * a6 + b[10] * a4 + b[8] * a2) + b[6] * a6 + b[4] * a4 + b[2] * a2 + b[0] * one
    )
    return np.linalg.solve(even - odd, even + odd)
