"""Linear algebra that multiplies: powers, exponentials, norms, products of vectors and tensors."""

from __future__ import annotations

from math import prod
from typing import Any

from .. import errors
from ..ir import build, dtypes
from ..ir.dtypes import DType, Kind
from ..ir.node import axis, coordinates
from ..tensor import Tensor
from . import matrix
from .define import function, operator
from .inplace import with_out
from .linalg import at_call, inv, inv_ex, solve, svdvals
from .matmul import matmul
from .reduce import amax, amin, axes_of, root, squared

f = build.functions
INFINITY = float("inf")


# --- powers -------------------------------------------------------------------------------------


def _square(a: Any, name: str) -> None:
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise errors.OperandError(
            f"{name}: A must be batches of square matrices, but it has shape {list(a.shape)}"
        )


@operator(to=None, method=False)
def like_identity(a: Tensor) -> Any:
    """The identity for each matrix."""
    return build.broadcast_to(matrix.identity(a.shape[-1], a.dtype), a.shape)


@function(to=("linalg", ""), method=True)
@with_out
def matrix_power(input: Tensor, n: int) -> Tensor:
    """A · A · … of n factors; a negative n inverts first.

    >>> import monograph as mg
    >>> mg.matrix_power(mg.tensor([[2.0]]), 3).item()
    8.0
    """
    _square(input, "linalg.matrix_power")
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
    _square(input, "linalg.matrix_exp")
    if input.dtype.kind < Kind.FLOAT:
        raise errors.OperandError(
            f"linalg.matrix_exp: Expected a floating point tensor. Got {input.dtype.name}"
        )
    return matrix.exponential(input)


# --- norms --------------------------------------------------------------------------------------


def _floating(x: Any, dtype: DType | None) -> Any:
    if dtype is not None:
        x = build.cast(x, dtype)
    if x.dtype.kind < Kind.FLOAT:
        raise ValueError(f"expected a floating point or complex dtype, got {x.dtype.name}")
    return x


@operator(to="linalg", method=False)
def vector_norm(
    x: Tensor, ord: float = 2, dim: Any = None, keepdim: bool = False, dtype: DType | None = None
) -> Any:  # fmt: skip
    """The norm of the elements over dim as of one vector: (Σ |x|ᵒʳᵈ)^(1/ord).

    >>> import monograph as mg
    >>> from monograph.ops import linalg_products
    >>> linalg_products.vector_norm(mg.tensor([3.0, 4.0])).item()
    5.0
    """
    x = _floating(x, dtype)
    if x.dtype is dtypes.float16:  # powers overflow early
        return build.cast(vector_norm(build.cast(x, dtypes.float32), ord, dim, keepdim), x.dtype)
    axes = axes_of(x, dim)
    power = float(ord)
    if prod(x.shape[k] for k in axes) == 0 and (power < 0 or power == INFINITY):
        raise ValueError(f"there is no norm of order {ord} of no elements")
    if power == 2:
        return root(build.reduce("add", squared(x), axes, keepdim))
    size = f.abs(x)
    if power == INFINITY:
        return amax(size, axes, keepdim) if axes else size
    if power == -INFINITY:
        return amin(size, axes, keepdim) if axes else size
    if power == 0:
        return build.reduce("add", build.cast(f.ne(x, 0.0), size.dtype), axes, keepdim)
    if power == 1:
        return build.reduce("add", size, axes, keepdim)
    total = build.reduce("add", _raised(size, power), axes, keepdim)
    return _raised(total, 1.0 / power)


def _raised(x: Any, power: float) -> Any:
    """x ** power for x >= 0, with derivative 0 at 0."""
    zero = f.eq(x, 0.0)
    at_zero = 0.0 if power > 0 else INFINITY
    return build.select(zero, at_zero, f.pow(build.select(zero, 1.0, x), power))


_MATRIX_ORDERS = ("fro", "nuc", INFINITY, -INFINITY, 1, -1, 2, -2)


@function(to="linalg")
@with_out
def matrix_norm(
    input: Tensor, ord: Any = "fro", dim: Any = (-2, -1), keepdim: bool = False, *,
    dtype: DType | None = None,
) -> Tensor:  # fmt: skip
    """The norm of the matrices over two axes: "fro", "nuc", ±inf, ±1 or ±2.

    >>> import monograph as mg
    >>> from monograph.ops import linalg_products
    >>> linalg_products.matrix_norm(mg.tensor([[1.0, -2.0], [3.0, 4.0]]), 1).item()
    6.0
    """
    rows, columns = (int(k) % max(input.ndim, 1) for k in _pair(dim))
    if input.ndim < 2 or rows == columns:
        raise errors.OperandError(
            f"linalg.matrix_norm: dim {dim} must name two axes of {list(input.shape)}"
        )
    if ord not in _MATRIX_ORDERS:
        raise errors.OperandError(f"linalg.matrix_norm: Order {ord} not supported.")
    if dtype is not None:
        input = input.to(dtype)
    if ord == "fro":
        return vector_norm(input, 2, (rows, columns), keepdim)
    if ord in ("nuc", 2, -2):
        result = _spectral(input, ord, rows, columns)
        for k in sorted((rows, columns)) if keepdim else ():
            result = result.unsqueeze(k)
        return result
    summed, kept = (rows, columns) if abs(ord) == 1 else (columns, rows)
    sums = vector_norm(input, 1, summed, True)
    result = sums.amax(kept, True) if ord > 0 else sums.amin(kept, True)
    return result if keepdim else result.squeeze((rows, columns))


def _pair(dim: Any) -> tuple[Any, Any]:
    if not isinstance(dim, (tuple, list)) or len(dim) != 2:
        raise errors.OperandError(f"linalg.matrix_norm: dim must be a 2-tuple. Got {dim}")
    return dim[0], dim[1]


def _spectral(A: Tensor, ord: Any, rows: int, columns: int) -> Any:
    others = [k for k in range(A.ndim) if k not in (rows, columns)]
    s = svdvals(A.permute(*others, rows, columns))
    if ord == "nuc":
        return s.sum(-1)
    return s.amax(-1) if ord == 2 else s.amin(-1)


@function(to="linalg")
@with_out
def norm(
    input: Tensor, ord: Any = None, dim: Any = None, keepdim: bool = False, *,
    dtype: DType | None = None,
) -> Tensor:  # fmt: skip
    """A vector norm or a matrix norm, whichever dim and ord mean.

    >>> import monograph as mg
    >>> from monograph.ops import linalg_products
    >>> linalg_products.norm(mg.tensor([[3.0, 4.0]])).item()
    5.0
    """
    if dim is not None and not isinstance(dim, int):
        dim = tuple(dim)
        if ord is not None and len(dim) not in (1, 2):
            raise errors.OperandError(
                f"linalg.norm: If dim is specified, it must be of length 1 or 2. Got {dim}"
            )
    if ord is None:
        return vector_norm(input, 2, dim, keepdim, dtype)
    if dim is None and input.ndim not in (1, 2):
        raise errors.OperandError(
            "linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. "
            f"Got {input.ndim}D."
        )
    matrices = isinstance(dim, tuple) and len(dim) == 2 or (dim is None and input.ndim == 2)
    if matrices:
        return matrix_norm(input, ord, dim or (-2, -1), keepdim, dtype=dtype)
    return vector_norm(input, ord, dim, keepdim, dtype)


@function(to="linalg")
@with_out
@at_call
def cond(input: Tensor, p: Any = None) -> Tensor:
    """How much a matrix may magnify relative errors: |A| · |A⁻¹|.

    >>> import monograph as mg
    >>> from monograph.ops import linalg_products
    >>> linalg_products.cond(mg.tensor([[4.0, 0.0], [0.0, 2.0]])).item()
    2.0
    """
    if p in (None, 2, -2):
        s = svdvals(input)
        low, high = s.amin(-1), s.amax(-1)
        return low / high if p == -2 else high / low
    _square(input, "linalg.cond")
    inverted, info = inv_ex(input)
    result = matrix_norm(input, p) * matrix_norm(inverted, p)
    return result.masked_fill(info != 0, INFINITY)


# --- products -----------------------------------------------------------------------------------


@function(to="linalg")
@with_out
def multi_dot(tensors: Any) -> Tensor:
    """The product of several matrices, in the order that costs least; the ends may be vectors.

    >>> import monograph as mg
    >>> from monograph.ops import linalg_products
    >>> linalg_products.multi_dot([mg.ones(2), mg.ones(2, 3), mg.ones(3)]).item()
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
    """The product of several matrices: `linalg.multi_dot`."""
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
    """The cross product along dim, or along the first axis of size 3."""
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
    >>> from monograph.ops import linalg_products
    >>> linalg_products.vecdot(mg.tensor([1.0, 2.0]), mg.tensor([3.0, 4.0])).item()
    11.0
    """
    return scalar_product(x, y, dim)


@function(to="linalg")
def vander(x: Tensor, *, N: int | None = None) -> Tensor:
    """Rows of powers: 1, x, x², … up to N columns.

    >>> import monograph as mg
    >>> from monograph.ops import linalg_products
    >>> linalg_products.vander(mg.tensor([2.0]), N=3).tolist()
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
    >>> from monograph.ops import linalg_products
    >>> linalg_products.diagonal(mg.tensor([[1, 2], [3, 4]])).tolist()
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


@operator(to="linalg", method=False)
def householder_product(A: Tensor, tau: Tensor) -> Any:
    """The first columns of the product of reflections I - tau · v · vᵀ, v below A's diagonal.

    >>> import monograph as mg
    >>> from monograph.ops import linalg_products
    >>> linalg_products.householder_product(mg.ones(2, 1), mg.tensor([1.0])).tolist()
    [[0.0], [-1.0]]
    """
    if A.ndim < 2:
        raise ValueError("A must have at least 2 dimensions")
    m, n = A.shape[-2:]
    if m < n:
        raise ValueError(f"A.shape[-2] must be greater than or equal to A.shape[-1], got {m} < {n}")
    if tau.shape[-1] > n:
        raise ValueError(f"A.shape[-1] must be at least tau.shape[-1], got {n} < {tau.shape[-1]}")
    below = matrix.triangle(A, False, -1) + matrix.identity(n, A.dtype, m)
    result = build.broadcast_to(matrix.identity(n, A.dtype, m), A.shape)
    for k in reversed(range(tau.shape[-1])):
        v = matrix.window(below, (0, m), (k, k + 1))
        scale = build.expand_dims(matrix.part(tau, k), [tau.ndim - 1, tau.ndim])
        result = result - scale * matmul(v, matmul(matrix.adjoint(v), result))
    return result


@function(method=True)
@with_out
def orgqr(input: Tensor, input2: Tensor) -> Tensor:
    """The product of reflections: `linalg.householder_product`."""
    return householder_product(input, input2)


@function(to="linalg")
@with_out
def tensorinv(input: Tensor, ind: int = 2) -> Tensor:
    """The inverse for tensordot over the first `ind` axes.

    >>> import monograph as mg
    >>> from monograph.ops import linalg_products
    >>> linalg_products.tensorinv(mg.tensor([[2.0]]), ind=1).tolist()
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
    >>> from monograph.ops import linalg_products
    >>> linalg_products.tensorsolve(mg.tensor([[2.0]]), mg.tensor([4.0])).tolist()
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
