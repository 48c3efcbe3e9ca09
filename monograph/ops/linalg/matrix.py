"""Matrices as nodes, the last two axes: turned, cut, joined, and taken out of packed results.

The operators of linear algebra and their derivatives are written with these. A factorisation is one
operator whose output holds all its factors side by side; `part` takes one out. Where a
derivative divides by a gap between singular values or eigenvalues that is zero, that part of it
is left out.
"""

from __future__ import annotations

from typing import Any

from ...ir import build
from ...ir.index import Expr
from ...ir.node import axis, coordinates
from ..matmul import matmul
from ..shape import cat

f = build.functions


def turned(a: Any) -> Any:
    """Rows and columns exchanged."""
    order = list(range(a.ndim))
    order[-2:] = [a.ndim - 1, a.ndim - 2]
    return build.permute(a, order)


def adjoint(a: Any) -> Any:
    """Rows and columns exchanged, and conjugated if the matrix is complex."""
    return turned(f.conj(a))


def real_of(a: Any) -> Any:
    """The real part; of a real array, that array."""
    return f.real(a) if a.dtype.is_complex else a


def product(*matrices: Any) -> Any:
    """The matrix product of several."""
    result = matrices[0]
    for matrix in matrices[1:]:
        result = matmul(result, matrix)
    return result


def identity(n: int, dtype: Any, m: int | None = None) -> Any:
    """Ones on the diagonal of an m × n matrix, zeros elsewhere."""
    shape = (n if m is None else m, n)
    return build.cast(f.eq(build.coordinate(shape, 0), build.coordinate(shape, 1)), dtype)


def triangle(a: Any, upper: bool, diagonal: int = 0) -> Any:
    """One triangle of a, zeros elsewhere: from the diagonal of this number on."""
    rows, columns = (build.coordinate(a.shape, a.ndim - k) for k in (2, 1))
    offset = columns - rows
    inside = offset >= diagonal if upper else offset <= diagonal
    return build.select(inside, a, build.const(0, a.dtype))


def mirrored(half: Any) -> Any:
    """The self-adjoint matrix of which one triangle is given; its diagonal is made real."""
    whole = half + adjoint(half)
    return whole * (1.0 - identity(half.shape[-1], real_of(whole).dtype) * 0.5)


def window(a: Any, rows: tuple[int, int], columns: tuple[int, int]) -> Any:
    """a[…, rows[0] : rows[1], columns[0] : columns[1]]."""
    shape = (*a.shape[:-2], rows[1] - rows[0], columns[1] - columns[0])
    where: list[Any] = list(coordinates(shape))
    where[-2], where[-1] = where[-2] + rows[0], where[-1] + columns[0]
    return build.reindex(a, shape, where)


def part(packed: Any, start: int, *sizes: int) -> Any:
    """The array of these sizes that begins at `start` of the packed last axis."""
    lead = packed.shape[:-1]
    shape = (*lead, *sizes)
    place: Expr | int = start
    step = 1
    for k in reversed(range(len(sizes))):
        place = axis(len(lead) + k, sizes[k]) * step + place
        step *= sizes[k]
    return build.reindex(packed, shape, (*coordinates(lead), place))


def on_diagonal(values: Any) -> Any:
    """A matrix with these values on its diagonal."""
    n = values.shape[-1]
    rows = build.expand_dims(values, [values.ndim - 1])
    return rows * identity(n, values.dtype)


def as_rows(values: Any) -> Any:
    """One value per column, for every row."""
    return build.expand_dims(values, [values.ndim - 1])


def as_columns(values: Any) -> Any:
    """One value per row, for every column."""
    return build.expand_dims(values, [values.ndim])


def inverse_or_zero(values: Any) -> Any:
    """1 / values, and 0 where they are 0."""
    zero = f.eq(values, 0.0)
    return build.select(zero, 0.0, 1.0 / build.select(zero, 1.0, values))


def joined(first: Any, second: Any, rows: bool) -> Any:
    """Two matrices one below the other, or side by side."""
    return cat([first, second], first.ndim - (2 if rows else 1))
