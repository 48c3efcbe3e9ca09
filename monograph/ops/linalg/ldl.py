"""LDL factors of symmetric matrices that need not be positive-definite."""

from __future__ import annotations

from typing import Any

from ... import errors
from ...ir import build, dtypes
from ...tensor import Tensor
from .. import return_types
from ..define import function, operator
from ..inplace import with_out
from .checks import at_call, batched, check_matrix, same_dtype
from .matrix import part, real_of


@operator(to=None, method=False, smooth=False)
def ldl_factors(a: Tensor, hermitian: bool) -> Any:
    """(both factors in one matrix, pivots, info)."""
    n = a.shape[-1]
    packed = build.call("ldl_factor", a, options=(hermitian,))
    pivots, info = part(packed, n * n, n), part(packed, n * n + n)
    return part(packed, 0, n, n), *[build.cast(real_of(v), dtypes.int32) for v in (pivots, info)]


@operator(to=None, method=False, smooth=False)
def solve_by_ldl(factors: Tensor, pivots: Tensor, b: Tensor, hermitian: bool) -> Any:
    """x with A · x = b, given the factors of A, of equal leading axes."""
    return build.call("ldl_solve", factors, pivots, b, options=(hermitian,))


@function(to="linalg")
@with_out
def ldl_factor_ex(A: Tensor, *, hermitian: bool = False, check_errors: bool = False) -> Any:
    """(LD, pivots, info): info is 0, or says which element on the diagonal of D is zero.

    >>> import monograph as mg
    >>> mg.linalg.ldl_factor_ex(mg.zeros(2, 2)).info.item()
    1
    """
    check_matrix(A, "linalg.ldl_factor_ex", square=True)
    factors, pivots, info = ldl_factors(A, bool(hermitian and A.dtype.is_complex))
    if check_errors and info.numel() and bool((info != 0).any()):
        raise errors.LinAlgError("linalg.ldl_factor_ex: D has a zero on its diagonal")
    return return_types.linalg_ldl_factor_ex(factors, pivots, info)


@function(to="linalg")
@with_out
@at_call
def ldl_factor(A: Tensor, *, hermitian: bool = False) -> Any:
    """(LD, pivots) with A = L · D · Lᵀ: L has ones on its diagonal, D blocks of one or two.

    >>> import monograph as mg
    >>> mg.linalg.ldl_factor(mg.tensor([[2.0, 1.0], [1.0, 2.0]])).LD.tolist()
    [[2.0, 0.0], [0.5, 1.5]]
    """
    factors, pivots, _ = ldl_factor_ex(A, hermitian=hermitian, check_errors=True)
    return return_types.linalg_ldl_factor(factors, pivots)


@function(to="linalg")
@with_out
def ldl_solve(LD: Tensor, pivots: Tensor, B: Tensor, *, hermitian: bool = False) -> Tensor:
    """X with A · X = B, given `ldl_factor` of A.

    >>> import monograph as mg
    >>> factors = mg.linalg.ldl_factor(mg.tensor([[0.0, 1.0], [1.0, 0.0]]))
    >>> mg.linalg.ldl_solve(*factors, mg.tensor([[2.0], [3.0]])).tolist()
    [[3.0], [2.0]]
    """
    check_matrix(LD, "linalg.ldl_solve", square=True, letter="LD")
    check_matrix(B, "linalg.ldl_solve", letter="B")
    same_dtype(LD, B, "linalg.ldl_solve")
    if B.shape[-2] != LD.shape[-1] or tuple(pivots.shape) != tuple(LD.shape[:-1]):
        raise errors.OperandError(
            f"linalg.ldl_solve: factors {list(LD.shape)}, pivots {list(pivots.shape)} and "
            f"B {list(B.shape)} do not fit"
        )
    factors, b = batched(LD, B)
    where = pivots.expand(*factors.shape[:-1])
    return solve_by_ldl(factors, where, b, bool(hermitian and LD.dtype.is_complex))  # type: ignore[no-any-return]
