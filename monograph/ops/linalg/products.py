"""Products of matrices and vectors, powers, and the exponential of a matrix."""

from __future__ import annotations

from typing import Any

from ... import errors
from ...ir import build, dtypes
from ...ir.dtypes import Kind
from ...ir.node import axis, coordinates
from ...tensor import Tensor
from ..define import function, operator
from ..inplace import with_out
from ..matmul import matmul
from ..reduce import axes_of
from .checks import check_square
from .matrix import adjoint, identity, joined, window
from .systems import inv

f = build.functions


@operator(to=None, method=False)
def exponential(a: Tensor) -> Any:
    """exp of a matrix."""
    return build.call("matrix_exp", a)


@exponential.derivative
def _(g: Any, y: Any, a: Any) -> Any:
    """The corner of the exponential of a block matrix holds the derivative."""
    n = a.shape[-1]
    back = adjoint(a)
    above = joined(back, g, rows=False)
    below = joined(build.full(a.shape, 0.0, a.dtype), back, rows=False)
    whole = exponential(joined(above, below, rows=True))
    return (window(whole, (0, n), (n, 2 * n)),)


@operator(to=None, method=False)
def like_identity(a: Tensor) -> Any:
    """The identity for each matrix."""
    return build.broadcast_to(identity(a.shape[-1], a.dtype), a.shape)


@function(to=("linalg", ""), method=True)
@with_out
def matrix_power(input: Tensor, n: int) -> Tensor:
    """A · A · … of n factors; a negative n inverts first.

    >>> import monograph as mg
    >>> mg.matrix_power(mg.tensor([[2.0]]), 3).item()
    8.0
    """
    check_square(input, "linalg.matrix_power")
    base = inv(input) if n < 0 else input
    left = abs(n)
    if left == 0:
        return like_identity(input)
    result: Any = None
    while left:
        if left & 1:
            result = base if result is None else matmul(result, base)
        left >>= 1
        base = matmul(base, base) if left else base
    return result.clone() if result is input else result


@function(to=("linalg", ""), method=True)
def matrix_exp(input: Tensor) -> Tensor:
    """The exponential of a matrix.

    >>> import monograph as mg
    >>> mg.matrix_exp(mg.zeros(1, 1)).item()
    1.0
    """
    check_square(input, "linalg.matrix_exp")
    if input.dtype.kind < Kind.FLOAT:
        raise errors.OperandError(
            f"linalg.matrix_exp: Expected a floating point tensor. Got {input.dtype.name}"
        )
    return exponential(input)


@function(to="linalg")
@with_out
def multi_dot(tensors: Any) -> Tensor:
    """The product of several matrices, in the order that costs least; the ends may be vectors.

    >>> import monograph as mg
    >>> mg.linalg.multi_dot([mg.ones(2), mg.ones(2, 3), mg.ones(3)]).item()
    6.0
    """
    given = list(tensors)
    if len(given) < 2:
        raise errors.OperandError(f"multi_dot(): expected at least 2 tensors but got {len(given)}")
    row, column = given[0].ndim == 1, given[-1].ndim == 1
    if row:
        given[0] = given[0].unsqueeze(0)
    if column:
        given[-1] = given[-1].unsqueeze(1)
    for n, each in enumerate(given):
        if each.ndim != 2:
            raise errors.OperandError(f"multi_dot(): tensor {n} must be 2D but got {each.ndim}D")
    result = _chained(given)
    if row:
        result = result.squeeze(0)
    return result.squeeze(-1) if column else result


def _chained(matrices: list[Any]) -> Any:
    """Multiply by the cheapest bracketing."""
    count = len(matrices)
    sizes = [matrices[0].shape[0], *[m.shape[1] for m in matrices]]
    cost: dict[tuple[int, int], tuple[int, int]] = {(n, n): (0, n) for n in range(count)}
    for length in range(1, count):
        for i in range(count - length):
            j = i + length
            cost[i, j] = min(
                (cost[i, k][0] + cost[k + 1, j][0] + sizes[i] * sizes[k + 1] * sizes[j + 1], k)
                for k in range(i, j)
            )

    def multiply(i: int, j: int) -> Any:
        if i == j:
            return matrices[i]
        k = cost[i, j][1]
        return matmul(multiply(i, k), multiply(k + 1, j))

    return multiply(0, count - 1)


@function
def chain_matmul(*matrices: Any) -> Tensor:
    """The product of several matrices: `linalg.multi_dot`.

    >>> import monograph as mg
    >>> mg.chain_matmul(mg.ones(2, 3), mg.ones(3, 4), mg.ones(4, 1)).tolist()
    [[12.0], [12.0]]
    """
    return matrices[0] if len(matrices) == 1 else multi_dot(matrices)


@operator(to=None, method=False)
def cross_product(x: Tensor, other: Tensor, dim: int) -> Any:
    """The cross product along an axis of size 3; the others broadcast."""
    if x.ndim != other.ndim:
        raise ValueError("inputs must have the same number of dimensions")
    k = axes_of(x, dim)[0]
    if x.shape[k] != 3 or other.shape[k] != 3:
        raise ValueError(
            f"inputs dimension {dim} must have length 3. Got {x.shape[k]} and {other.shape[k]}"
        )
    common = build.common_dtype([x, other])
    shape = build.broadcast_shapes(x.shape, other.shape)
    a, b = (build.broadcast_to(build.cast(v, common), shape) for v in (x, other))
    return _rolled(a, k, 1) * _rolled(b, k, 2) - _rolled(a, k, 2) * _rolled(b, k, 1)


def _rolled(x: Any, k: int, by: int) -> Any:
    where: list[Any] = list(coordinates(x.shape))
    where[k] = (where[k] + by) % x.shape[k]
    return build.reindex(x, x.shape, where)


@function(name="cross", to="linalg")
@with_out
def cross(input: Tensor, other: Tensor, *, dim: int = -1) -> Tensor:
    """The cross product of vectors of three along dim.

    >>> import monograph as mg
    >>> mg.cross(mg.tensor([1.0, 0.0, 0.0]), mg.tensor([0.0, 1.0, 0.0])).tolist()
    [0.0, 0.0, 1.0]
    """
    return cross_product(input, other, dim)


@function(name="cross", method="cross")
@with_out
def cross_of(input: Tensor, other: Tensor, dim: int | None = None) -> Tensor:
    """The cross product along dim, or along the first axis of size 3.

    >>> import monograph as mg
    >>> mg.cross(mg.tensor([1.0, 0.0, 0.0]), mg.tensor([0.0, 1.0, 0.0])).tolist()
    [0.0, 0.0, 1.0]
    """
    if dim is None:
        found = [k for k, extent in enumerate(input.shape) if extent == 3]
        if not found:
            raise errors.OperandError("no dimension of size 3 in input")
        dim = found[0]
    return cross_product(input, other, dim)


@operator(to=None, method=False)
def scalar_product(x: Tensor, y: Tensor, dim: int) -> Any:
    """Σ x · y along dim."""
    product = f.conj(x) * y
    return build.reduce("add", product, axes_of(product, dim))


@function(to="linalg")
@with_out
def vecdot(x: Tensor, y: Tensor, *, dim: int = -1) -> Tensor:
    """The scalar product of vectors along dim.

    >>> import monograph as mg
    >>> mg.linalg.vecdot(mg.tensor([1.0, 2.0]), mg.tensor([3.0, 4.0])).item()
    11.0
    """
    return scalar_product(x, y, dim)


@function(to="linalg")
def vander(x: Tensor, *, N: int | None = None) -> Tensor:
    """Rows of powers: 1, x, x², … up to N columns.

    >>> import monograph as mg
    >>> mg.linalg.vander(mg.tensor([2.0]), N=3).tolist()
    [[1.0, 2.0, 4.0]]
    """
    if x.ndim == 0:
        x = x.reshape(1)
    if N is not None and N <= 1:
        raise errors.OperandError(f"linalg.vander: N must be greater than 1, but got {N}")
    return powers(x, x.shape[-1] if N is None else N)


@operator(to=None, method=False)
def powers(x: Tensor, columns: int) -> Any:
    """1, x, x², … along a new last axis; integers in int64."""
    if x.dtype.kind < Kind.FLOAT:
        x = build.cast(x, dtypes.int64)
    shape = (*x.shape, columns)
    wide = build.broadcast_to(build.expand_dims(x, [x.ndim]), shape)
    result = build.full(shape, 1, x.dtype)
    power = build.coordinate(shape, x.ndim)
    for k in range(1, columns):  # a product, so that 0 has a derivative of every order
        result = build.select(power >= k, result * wide, result)
    return result


@operator(to="linalg", method=False, view=True)
def diagonal(A: Tensor, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Any:
    """The diagonal of the matrices over two axes, as a last axis; it shares the storage.

    >>> import monograph as mg
    >>> mg.linalg.diagonal(mg.tensor([[1, 2], [3, 4]])).tolist()
    [1, 4]
    """
    rows, columns = axes_of(A, (dim1, dim2))
    skip_rows, skip_columns = max(-offset, 0), max(offset, 0)
    length = max(min(A.shape[rows] - skip_rows, A.shape[columns] - skip_columns), 0)
    others = [k for k in range(A.ndim) if k not in (rows, columns)]
    shape = (*[A.shape[k] for k in others], length)
    where: list[Any] = [None] * A.ndim
    for place, k in enumerate(others):
        where[k] = axis(place, A.shape[k])
    last = axis(len(others), length)
    where[rows], where[columns] = last + skip_rows, last + skip_columns
    return build.reindex(A, shape, where)
