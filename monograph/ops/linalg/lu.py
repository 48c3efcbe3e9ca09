"""LU factors: lower and upper triangles, and which rows were exchanged."""

from __future__ import annotations

from typing import Any

from ... import errors
from ...ir import build, dtypes
from ...tensor import Tensor
from .. import return_types
from ..define import function, operator
from ..inplace import with_out
from .checks import batched, check_matrix, check_sides, same_dtype
from .matrix import adjoint, identity, joined, part, product, real_of, triangle, turned, window
from .systems import divided_by_upper, solve_triangle

f = build.functions


@operator(to=None, method=False)
def lu_packed(a: Tensor) -> Any:
    """(both factors in one matrix, pivots from 1) packed."""
    return build.call("lu_factor", a)


def lu_parts(packed: Any, m: int, n: int) -> tuple[Any, Any]:
    """(both factors in one matrix, pivots as int32)."""
    pivots = real_of(part(packed, m * n, min(m, n)))
    return part(packed, 0, m, n), build.cast(pivots, dtypes.int32)


def unit_lower(both: Any) -> Any:
    """The lower factor, with ones on its diagonal, of two factors in one matrix."""
    m, n = both.shape[-2:]
    k = min(m, n)
    return triangle(window(both, (0, m), (0, k)), False, -1) + identity(k, both.dtype, m)


def upper_factor(both: Any) -> Any:
    """The upper factor of two factors in one matrix."""
    n = both.shape[-1]
    return triangle(window(both, (0, min(both.shape[-2:])), (0, n)), upper=True)


def permutation_of(pivots: Any, rows: int, dtype: Any) -> Any:
    """P with A = P · L · U."""
    order = build.call("pivots_to_permutation", pivots, options=(rows,))
    shape = (*order.shape[:-1], rows, rows)
    where = build.broadcast_to(build.expand_dims(order, [order.ndim - 1]), shape)
    return build.cast(f.eq(where, build.coordinate(shape, len(shape) - 2)), dtype)


@lu_packed.derivative
def _(g: Any, y: Any, a: Any) -> Any:
    """A square matrix first; what is beyond it is solved for, and its share passed on."""
    m, n = a.shape[-2:]
    k = min(m, n)
    both, pivots = lu_parts(y, m, n)
    given = part(g, 0, m, n)
    square = window(both, (0, k), (0, k))
    low, up = unit_lower(square), upper_factor(square)
    g_low = triangle(window(given, (0, k), (0, k)), False, -1)
    g_up = triangle(window(given, (0, k), (0, k)), True)
    rest = None
    if m > n:
        below = window(both, (k, m), (0, n))  # L₂ = A₂ · U⁻¹
        rest = divided_by_upper(window(given, (k, m), (0, n)), up)
        g_up = g_up - triangle(product(adjoint(below), rest), True)
    elif n > m:
        beside = window(both, (0, m), (k, n))  # U₂ = L⁻¹ · A₂
        rest = solve_triangle(adjoint(low), window(given, (0, m), (k, n)), True, True)
        g_low = g_low - triangle(product(rest, adjoint(beside)), False, -1)
    inner = triangle(product(adjoint(low), g_low), False, -1)
    inner = inner + triangle(product(g_up, adjoint(up)), True)
    found = divided_by_upper(solve_triangle(adjoint(low), inner, True, True), up)
    if rest is not None:
        found = joined(found, rest, rows=m > n)
    return (product(permutation_of(pivots, m, a.dtype), found),)


@operator(to=None, method=False)
def lu_factors(a: Tensor) -> Any:
    """(both factors in one matrix, pivots)."""
    return lu_parts(lu_packed(a), *a.shape[-2:])


@operator(to=None, method=False, smooth=False)
def permutation(both: Tensor, pivots: Tensor) -> Any:
    """P with A = P · L · U."""
    return permutation_of(pivots, both.shape[-2], both.dtype)


@operator(to=None, method=False)
def triangles(both: Tensor) -> Any:
    """(L, U) of both factors in one matrix."""
    return unit_lower(both), upper_factor(both)


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
    >>> mg.linalg.lu_factor(mg.tensor([[1.0, 2.0], [2.0, 2.0]])).pivots.tolist()
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
    diagonal = window(both, (0, min(m, n)), (0, n))
    diagonal = build.reduce("add", diagonal * identity(n, both.dtype, min(m, n)), (-1,))
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
    >>> mg.linalg.lu_factor_ex(mg.zeros(2, 2)).info.item()
    1
    """
    check_matrix(A, "linalg.lu_factor")
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
    >>> mg.linalg.lu(mg.tensor([[1.0, 2.0], [2.0, 2.0]])).U.tolist()
    [[2.0, 2.0], [0.0, 1.0]]
    """
    check_matrix(A, "linalg.lu")
    _pivoting(pivot, "linalg.lu")
    return return_types.linalg_lu(_unpacked(*lu_factors(A)))


@function(to="linalg")
@with_out
def lu_solve(
    LU: Tensor, pivots: Tensor, B: Tensor, *, left: bool = True, adjoint: bool = False
) -> Tensor:
    """X with A · X = B, given `lu_factor` of A.

    >>> import monograph as mg
    >>> mg.linalg.lu_solve(*mg.linalg.lu_factor(mg.tensor([[2.0]])), mg.tensor([[4.0]])).item()
    2.0
    """
    check_matrix(LU, "linalg.lu_solve", square=True, letter="LU")
    check_matrix(B, "linalg.lu_solve", letter="B")
    same_dtype(LU, B, "linalg.lu_solve")
    check_sides(LU, B, left, "linalg.lu_solve")
    factors, b = batched(LU, B if left else B.mH)
    where = pivots.expand(*factors.shape[:-1])
    found = solve_by_lu(factors, where, b, adjoint == left)
    return found if left else found.mH


@operator(to=None, method=False)
def solve_by_lu(both: Tensor, pivots: Tensor, b: Tensor, adjoint: bool) -> Any:
    """x with A · x = b, or Aᴴ · x = b, given the factors of A, of equal leading axes."""
    p = permutation_of(pivots, both.shape[-2], both.dtype)
    low, up = unit_lower(both), upper_factor(both)
    if adjoint:  # Aᴴ = Uᴴ · Lᴴ · Pᵀ
        half = solve_triangle(turned(f.conj(up)), b, False, False)
        return product(p, solve_triangle(turned(f.conj(low)), half, True, True))
    half = solve_triangle(low, product(turned(p), b), False, True)
    return solve_triangle(up, half, True, False)


solve_by_lu.operator.saves = {"both": ("both", "pivots", "result"), "b": ("both", "pivots")}


# --- PyTorch's older spellings ------------------------------------------------------------------


@function(name="lu", method="lu")
@with_out
def lu_of(input: Tensor, pivot: bool = True, get_infos: bool = False) -> Any:
    """(LU, pivots), and info if it is asked for: `linalg.lu_factor`, `lu_factor_ex`.

    >>> import monograph as mg
    >>> mg.lu(mg.tensor([[1.0, 2.0], [2.0, 2.0]]))[1].tolist()
    [2, 2]
    """
    if get_infos:
        return return_types.lu(lu_factor_ex(input, pivot=pivot))
    return tuple(lu_factor(input, pivot=pivot))


@function
@with_out
def lu_unpack(
    LU_data: Tensor, LU_pivots: Tensor, unpack_data: bool = True, unpack_pivots: bool = True
) -> Any:
    """(P, L, U) of what `lu_factor` gives; parts that are not asked for are empty.

    >>> import monograph as mg
    >>> mg.lu_unpack(*mg.linalg.lu_factor(mg.tensor([[1.0, 2.0], [2.0, 2.0]]))).L.tolist()
    [[1.0, 0.0], [0.5, 1.0]]
    """
    if LU_pivots.dtype is not dtypes.int32:
        raise errors.OperandError(
            "lu_unpack: LU_pivots is expected to be a contiguous tensor of torch.int32 dtype"
        )
    nothing = LU_data.detach().reshape(-1).narrow(0, 0, 0)
    p = permutation(LU_data, LU_pivots) if unpack_pivots else nothing
    low, up = triangles(LU_data) if unpack_data else (nothing, nothing)
    return return_types.lu_unpack(p, low, up)


@function(name="lu_solve", method="lu_solve")
@with_out
def lu_solve_of(b: Tensor, LU_data: Tensor, LU_pivots: Tensor) -> Tensor:
    """X with A · X = b, given `lu_factor` of A: `linalg.lu_solve`."""
    return lu_solve(LU_data, LU_pivots, b)
