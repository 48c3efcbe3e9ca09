"""Norms of vectors and matrices, and condition numbers."""

from __future__ import annotations

from math import prod
from typing import Any

from ... import errors
from ...ir import build, dtypes
from ...ir.dtypes import DType, Kind
from ...tensor import Tensor
from ..define import function, operator
from ..inplace import with_out
from ..reduce import amax, amin, axes_of, root, squared
from .checks import at_call, check_square
from .spectral import svdvals
from .systems import inv_ex

f = build.functions
INFINITY = float("inf")


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
    >>> mg.linalg.vector_norm(mg.tensor([3.0, 4.0])).item()
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


vector_norm.operator.saves = {"x": ("x", "result")}


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
    >>> mg.linalg.matrix_norm(mg.tensor([[1.0, -2.0], [3.0, 4.0]]), 1).item()
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
    >>> mg.linalg.norm(mg.tensor([[3.0, 4.0]])).item()
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
    >>> mg.linalg.cond(mg.tensor([[4.0, 0.0], [0.0, 2.0]])).item()
    2.0
    """
    if p in (None, 2, -2):
        s = svdvals(input)
        low, high = s.amin(-1), s.amax(-1)
        return low / high if p == -2 else high / low
    check_square(input, "linalg.cond")
    inverted, info = inv_ex(input)
    result = matrix_norm(input, p) * matrix_norm(inverted, p)
    return result.masked_fill(info != 0, INFINITY)
