"""Cholesky factors of positive-definite matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...ir import build
from ...tensor import Tensor, adopt
from .. import return_types
from ..define import function, operator
from ..inplace import with_out
from .checks import at_call, batched, check_matrix, same_dtype
from .matrix import adjoint, part, product, triangle
from .systems import solve_triangle, unpacked_with_info


@operator(to=None, method=False)
def cholesky_factor(a: Tensor, upper: bool) -> Any:
    """The lower factor; a matrix that is not positive-definite is an error.

    `upper` says which triangle is read. The derivative is the same for both, as in PyTorch.
    """
    return build.call("cholesky", adjoint(a) if upper else a)


@cholesky_factor.derivative
def _(g: Any, y: Any, a: Any, upper: bool) -> Any:
    return (_pull_cholesky(g, y),)


@operator(to=None, method=False)
def cholesky_info(a: Tensor, upper: bool) -> Any:
    """(lower factor, 0 or the order of the minor that is not positive) packed."""
    return build.call("cholesky_info", adjoint(a) if upper else a)


@cholesky_info.derivative
def _(g: Any, y: Any, a: Any, upper: bool) -> Any:
    n = a.shape[-1]
    return (_pull_cholesky(part(g, 0, n, n), part(y, 0, n, n)),)


def _pull_cholesky(g: Any, factor: Any) -> Any:
    # As PyTorch has it: a cotangent that is not real on the diagonal stays as it is there.
    half = triangle(product(adjoint(factor), g), upper=False)
    inner = (half + adjoint(triangle(half, False, -1))) * 0.5
    # factor⁻ᵀ · inner · factor⁻¹, by two triangular systems
    left = solve_triangle(adjoint(factor), inner, True, False)
    return adjoint(solve_triangle(adjoint(factor), adjoint(left), True, False))


@operator(to=None, method=False)
def solve_by_cholesky(b: Tensor, factor: Tensor) -> Any:
    """x with factor · factorᵀ · x = b for a lower factor, of equal leading axes."""
    half = solve_triangle(factor, b, False, False)
    return solve_triangle(adjoint(factor), half, True, False)


@solve_by_cholesky.derivative
def _(g: Any, y: Any, b: Any, factor: Any) -> Any:
    """As PyTorch has it: the derivative of factor · factorᵀ by a factor with two triangles."""
    part_b = solve_by_cholesky(g, factor)
    both = product(part_b, adjoint(y))
    return part_b, -product(both + adjoint(both), factor)


@function(to="linalg")
@with_out
@at_call
def cholesky(input: Tensor, *, upper: bool = False) -> Tensor:
    """The triangular factor L with A = L · Lᵀ of a positive-definite matrix.

    >>> import monograph as mg
    >>> mg.cholesky(mg.tensor([[4.0, 2.0], [2.0, 2.0]])).tolist()
    [[2.0, 0.0], [1.0, 1.0]]
    """
    check_matrix(input, "linalg.cholesky", square=True)
    factor = cholesky_factor(input, bool(upper))
    return factor.mH if upper else factor


@function(name="cholesky", method="cholesky")
@with_out
def cholesky_of(input: Tensor, upper: bool = False) -> Tensor:
    """The triangular factor of a positive-definite matrix: `linalg.cholesky`.

    >>> import monograph as mg
    >>> mg.cholesky(mg.tensor([[4.0, 0.0], [0.0, 9.0]])).tolist()
    [[2.0, 0.0], [0.0, 3.0]]
    """
    return cholesky(input, upper=upper)


@function(to="linalg")
@with_out
def cholesky_ex(input: Tensor, *, upper: bool = False, check_errors: bool = False) -> Any:
    """(L, info): info is 0, or the order of the minor that is not positive-definite.

    >>> import monograph as mg
    >>> mg.linalg.cholesky_ex(-mg.ones(1, 1)).info.item()
    1
    """
    check_matrix(input, "linalg.cholesky_ex", square=True)
    if check_errors:
        cholesky(input)
    packed = cholesky_info(input, bool(upper))
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
    check_matrix(input2, "cholesky_solve", square=True)
    same_dtype(input2, input, "cholesky_solve")
    low, b = batched(input2.mH if upper else input2, input)
    return solve_by_cholesky(b, low)


@function(method=True)
@with_out
def cholesky_inverse(input: Tensor, upper: bool = False) -> Tensor:
    """The inverse of A, where L is its Cholesky factor.

    >>> import monograph as mg
    >>> mg.cholesky_inverse(mg.tensor([[2.0]])).item()
    0.25
    """
    check_matrix(input, "cholesky_inverse", square=True)
    n = input.shape[-1]
    one = adopt(np.eye(n, dtype=input.dtype.numpy)).expand(*input.shape[:-2], n, n)
    return cholesky_solve(one, input, upper)
