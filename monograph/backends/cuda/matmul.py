"""Which contractions cuBLASLt takes, and as what: operands in its column-major terms.

A row-major product c = a · b is to cuBLASLt the column-major product cᵀ = bᵀ · aᵀ. Nothing here
calls the library, so that the decision is the same on a machine without a GPU.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

DTYPES = ("float32", "float64")


@dataclass(frozen=True)
class Matrix:
    """A column-major matrix in memory: `leading` elements between columns."""

    rows: int
    columns: int
    leading: int
    transposed: bool  # the product takes the transpose of what lies there
    batch_stride: int


@dataclass(frozen=True)
class Product:
    """d = a · b in column-major terms, `batch` times; `swapped` when a is our right operand."""

    a: Matrix
    b: Matrix
    d: Matrix
    batch: int
    dtype: str
    swapped: bool


def accepts(kind: str, operands: dict[str, Any], options: dict[str, Any]) -> bool:
    """Whether cuBLASLt takes the call: matrix products; convolutions become loops for now."""
    return kind == "matmul" and product(operands) is not None


def product(operands: dict[str, Any]) -> Product | None:
    """A matmul step's operands as cuBLASLt describes them, or None if it cannot."""
    a, b, c = (operands[name] for name in ("src", "weights", "dst"))
    dtype: str = c.dtype
    if dtype not in DTYPES or a.dtype != dtype or b.dtype != dtype:
        return None
    m, n, k = c.shape[-2], c.shape[-1], a.shape[-1]
    if min(m, n, k) < 1 or m * n * k < 64:
        return None
    batch = batches([a, b, c])
    if batch is None:
        return None
    count, strides = batch
    # Rows of c are contiguous: compute cᵀ = bᵀ aᵀ. Columns are: compute c = a b.
    swapped = c.strides[-1] == 1
    if not swapped and c.strides[-2] != 1:
        return None
    target = _matrix(c, swapped, strides[2])
    first = _matrix(b if swapped else a, swapped, strides[1] if swapped else strides[0])
    second = _matrix(a if swapped else b, swapped, strides[0] if swapped else strides[1])
    if target is None or target.transposed or first is None or second is None:
        return None
    return Product(first, second, target, count, dtype, swapped)


def _matrix(layout: Any, flipped: bool, batch_stride: int) -> Matrix | None:
    """The last two axes of an operand, or their transpose, as a column-major matrix."""
    (rows, columns), (down, along) = layout.shape[-2:], layout.strides[-2:]
    if flipped:
        rows, columns, down, along = columns, rows, along, down
    if (down == 1 or rows == 1) and along >= rows:
        return Matrix(rows, columns, along, False, batch_stride)
    if (along == 1 or columns == 1) and down >= columns:
        return Matrix(columns, rows, down, True, batch_stride)
    return None


def batches(layouts: list[Any]) -> tuple[int, list[int]] | None:
    """(how many products, stride of each operand between them) when one stride is enough."""
    rank = len(layouts[0].shape) - 2
    count = 1
    strides = [0] * len(layouts)
    for axis in reversed(range(rank)):
        extent = max(layout.shape[axis] for layout in layouts)
        if extent == 1:
            continue
        here = [0 if o.shape[axis] == 1 else o.strides[axis] for o in layouts]
        if count == 1:
            count, strides = extent, here
        elif here == [stride * count for stride in strides]:
            count *= extent
        else:
            return None
    return count, strides
