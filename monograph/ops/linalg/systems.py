"""Systems of equations and inverses."""

from __future__ import annotations

from math import prod
from typing import Any

from ... import errors
from ...ir import build, dtypes
from ...tensor import Tensor
from .. import return_types
from ..define import function, operator
from ..inplace import with_out
from ..matmul import matmul
from .checks import at_call, batched, check_matrix, check_sides, is_vector, same_dtype
from .matrix import adjoint, part, product, real_of, triangle


@operator(to=None, method=False)
def inverted(a: Tensor) -> Any:
    """The inverse; a singular matrix is an error."""
    return build.call("inv", a)


@inverted.derivative
def _(g: Any, y: Any, a: Any) -> Any:
    back = adjoint(y)
    return (-product(back, g, back),)


@operator(to=None, method=False)
def inverse_info(a: Tensor) -> Any:
    """(inverse, 0 or the place of a zero pivot) packed; a singular matrix has NaN."""
    return build.call("inv_info", a)


@inverse_info.derivative
def _(g: Any, y: Any, a: Any) -> Any:
    n = a.shape[-1]
    back = adjoint(part(y, 0, n, n))
    return (-product(back, part(g, 0, n, n), back),)


def inverse_or_nan(a: Any) -> Any:
    """The inverse, for derivatives: it never fails."""
    return part(inverse_info(a), 0, *a.shape[-2:])


@operator(to=None, method=False)
def solve_system(a: Tensor, b: Tensor) -> Any:
    """x with a · x = b, of equal leading axes."""
    return build.call("solve", a, b)


@solve_system.derivative
def _(g: Any, y: Any, a: Any, b: Any) -> Any:
    part_b = solve_system(adjoint(a), g)
    return -product(part_b, adjoint(y)), part_b


@operator(to=None, method=False)
def solve_triangle(a: Tensor, b: Tensor, upper: bool, unit: bool) -> Any:
    """x with a · x = b for a triangular a, of equal leading axes."""
    return build.call("solve_triangular", a, b, options=(upper, unit))


@solve_triangle.derivative
def _(g: Any, y: Any, a: Any, b: Any, upper: bool, unit: bool) -> Any:
    part_b = solve_triangle(adjoint(a), g, not upper, unit)
    edge = (1 if upper else -1) if unit else 0
    return triangle(-product(part_b, adjoint(y)), upper, edge), part_b


def divided_by_upper(g: Any, up: Any) -> Any:
    """g · up⁻ᵀ for an upper triangle."""
    return adjoint(solve_triangle(up, adjoint(g), True, False))


@function(to="linalg")
@with_out
@at_call
def inv(A: Tensor) -> Tensor:
    """The inverse of a square matrix, or of each of a batch.

    >>> import monograph as mg
    >>> mg.inverse(mg.tensor([[2.0, 0.0], [0.0, 4.0]])).tolist()
    [[0.5, 0.0], [0.0, 0.25]]
    """
    check_matrix(A, "linalg.inv", square=True)
    return inverted(A)


@function(method=True)
@with_out
def inverse(input: Tensor) -> Tensor:
    """The inverse: `linalg.inv`.

    >>> import monograph as mg
    >>> mg.inverse(mg.tensor([[2.0, 0.0], [0.0, 4.0]])).tolist()
    [[0.5, 0.0], [0.0, 0.25]]
    """
    return inv(input)


def _whole(x: Any) -> Any:
    return build.cast(real_of(x), dtypes.int32)


@operator(to=None, method=False)
def unpacked_with_info(packed: Tensor, n: int) -> Any:
    """(matrix, info as int32) of a result that was packed with its info."""
    return part(packed, 0, n, n), _whole(part(packed, n * n))


@function(to="linalg")
@with_out
def inv_ex(A: Tensor, *, check_errors: bool = False) -> Any:
    """(inverse, info): info is 0, or says which pivot of a singular matrix is zero.

    >>> import monograph as mg
    >>> mg.linalg.inv_ex(mg.zeros(2, 2)).info.item()
    1
    """
    check_matrix(A, "linalg.inv", square=True)
    if check_errors:
        inv(A)
    packed = inverse_info(A)
    return return_types.linalg_inv_ex(unpacked_with_info(packed, A.shape[-1]))


@function(to="linalg")
@with_out
@at_call
def solve(A: Tensor, B: Tensor, *, left: bool = True) -> Tensor:
    """X with A · X = B, or X · A = B if not left; B may be a vector.

    >>> import monograph as mg
    >>> mg.linalg.solve(mg.tensor([[2.0, 0.0], [0.0, 4.0]]), mg.tensor([2.0, 2.0])).tolist()
    [1.0, 0.5]
    """
    check_matrix(A, "linalg.solve", square=True)
    same_dtype(A, B, "linalg.solve")
    vector = is_vector(A, B)
    if vector and not left:
        raise errors.OperandError("linalg.solve: Vector broadcasting of the left hand side "
                                  "is not supported for left=False.")  # fmt: skip
    wide = B.unsqueeze(-1) if vector else B
    check_sides(A, wide, left, "linalg.solve")
    if left:
        a, b = batched(A, wide)
        result = solve_system(a, b)
    else:
        a, b = batched(A.mT, wide.mT)
        result = solve_system(a, b).mT
    return result.squeeze(-1) if vector else result


@function(to="linalg")
@with_out
def solve_ex(A: Tensor, B: Tensor, *, left: bool = True, check_errors: bool = False) -> Any:
    """(result, info): like `solve`, but a singular matrix gives NaN and a non-zero info.

    >>> import monograph as mg
    >>> mg.linalg.solve_ex(mg.ones(1, 1), mg.ones(1, 1)).info.item()
    0
    """
    if check_errors:
        solve(A, B, left=left)
    inverse, info = inv_ex(A)
    vector = is_vector(A, B)
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
    >>> a, b = mg.tensor([[2.0, 9.0], [1.0, 1.0]]), mg.tensor([[2.0], [3.0]])
    >>> mg.linalg.solve_triangular(a, b, upper=False).tolist()
    [[1.0], [2.0]]
    """
    name = "linalg.solve_triangular"
    check_matrix(input, name, square=True)
    check_matrix(B, name, letter="B")
    same_dtype(input, B, name)
    check_sides(input, B, left, name)
    if left:
        a, b = batched(input, B)
        return solve_triangle(a, b, upper, unitriangular)
    a, b = batched(input.mT, B.mT)
    return solve_triangle(a, b, not upper, unitriangular).mT


@function(method=True)
@with_out
def triangular_solve(
    b: Tensor, A: Tensor, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> Any:
    """(X, a copy of A) with A · X = b for a triangular A: `linalg.solve_triangular`.

    >>> import monograph as mg
    >>> mg.triangular_solve(mg.tensor([[4.0]]), mg.tensor([[2.0]])).solution.item()
    2.0
    """
    check_matrix(b, "triangular_solve", letter="b")
    check_matrix(A, "triangular_solve", square=True)
    used = A.mT if transpose else A
    found = solve_triangular(used, b, upper=upper != transpose, unitriangular=unitriangular)
    lead = tuple(found.shape[:-2])
    return return_types.triangular_solve(found, A.expand(*lead, *A.shape[-2:]).clone())


@function(to="linalg")
@with_out
def tensorinv(input: Tensor, ind: int = 2) -> Tensor:
    """The inverse for tensordot over the first `ind` axes.

    >>> import monograph as mg
    >>> mg.linalg.tensorinv(mg.tensor([[2.0]]), ind=1).tolist()
    [[0.5]]
    """
    if ind <= 0:
        raise errors.OperandError("Expected a strictly positive integer for 'ind'")
    first, second = tuple(input.shape[:ind]), tuple(input.shape[ind:])
    if prod(first) != prod(second):
        raise errors.OperandError(
            f"Expected self to satisfy the requirement prod(self.shape[ind:]) == "
            f"prod(self.shape[:ind]), but got {prod(second)} != {prod(first)}"
        )
    flat = input.reshape(prod(first), prod(second))
    return inv(flat).reshape(*second, *first)


@function(to="linalg")
@with_out
def tensorsolve(input: Tensor, other: Tensor, dims: Any = None) -> Tensor:
    """X with tensordot(A, X) = B over the trailing axes of A.

    >>> import monograph as mg
    >>> mg.linalg.tensorsolve(mg.tensor([[2.0]]), mg.tensor([4.0])).tolist()
    [2.0]
    """
    if dims is not None:
        last = [int(d) % input.ndim for d in dims]
        input = input.permute(*[k for k in range(input.ndim) if k not in last], *last)
    rest = tuple(input.shape[other.ndim :])
    if prod(rest) != other.numel():
        raise errors.OperandError(
            f"Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == "
            f"prod(self.shape[:other.ndim]), but got {prod(rest)} != {other.numel()}"
        )
    flat = input.reshape(other.numel(), prod(rest))
    return solve(flat, other.reshape(-1)).reshape(*rest)
