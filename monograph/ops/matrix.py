"""Matrix functions as operators with derivatives: one native call each, the last two axes a matrix.

These are the parts that `linalg.py` is made of. A factorisation is one operator whose output holds
all its factors side by side; `part` takes one out. Derivatives are written with matrix products and
these same operators, so they can be differentiated again. Where a derivative divides by a gap
between singular values or eigenvalues that is zero, that part of it is left out.
"""

from __future__ import annotations

from typing import Any

from ..ir import build, dtypes
from ..ir.index import Expr
from ..ir.node import Node, Slot, axis, coordinates
from ..tensor import Tensor
from .define import Scalar, operator
from .matmul import matmul

f = build.functions


# --- nodes --------------------------------------------------------------------------------------


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


# --- systems ------------------------------------------------------------------------------------


@operator(to=None, method=False)
def inverse(a: Tensor) -> Any:
    """The inverse; a singular matrix is an error."""
    return build.call("inv", a)


@inverse.derivative
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


# --- Cholesky and LU ----------------------------------------------------------------------------


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


def permutation(pivots: Any, rows: int, dtype: Any) -> Any:
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
        rest = _divided(window(given, (k, m), (0, n)), up)
        g_up = g_up - triangle(product(adjoint(below), rest), True)
    elif n > m:
        beside = window(both, (0, m), (k, n))  # U₂ = L⁻¹ · A₂
        rest = solve_triangle(adjoint(low), window(given, (0, m), (k, n)), True, True)
        g_low = g_low - triangle(product(rest, adjoint(beside)), False, -1)
    inner = triangle(product(adjoint(low), g_low), False, -1)
    inner = inner + triangle(product(g_up, adjoint(up)), True)
    found = _divided(solve_triangle(adjoint(low), inner, True, True), up)
    if rest is not None:
        found = joined(found, rest, rows=m > n)
    return (product(permutation(pivots, m, a.dtype), found),)


def _divided(g: Any, up: Any) -> Any:
    """g · up⁻ᵀ for an upper triangle."""
    return adjoint(solve_triangle(up, adjoint(g), True, False))


def joined(first: Any, second: Any, rows: bool) -> Any:
    """Two matrices one below the other, or side by side."""
    from .shape import cat

    return cat([first, second], first.ndim - (2 if rows else 1))


# --- determinants -------------------------------------------------------------------------------


@operator(to=None, method=False)
def determinant(a: Tensor) -> Any:
    """The determinant."""
    return build.call("det", a)


@determinant.derivative
def _(g: Any, y: Any, a: Any) -> Any:
    return (build.expand_dims(g, [g.ndim, g.ndim + 1]) * f.conj(cofactors(a)),)


@operator(to=None, method=False)
def cofactors(a: Tensor) -> Any:
    """det(a) · a⁻ᵀ, of singular matrices too."""
    return build.call("cofactors", a)


@cofactors.derivative
def _(g: Any, y: Any, a: Any) -> Any:
    det, y = f.conj(determinant(a)), f.conj(y)
    wide = [det.ndim, det.ndim + 1]
    total = build.expand_dims(build.reduce("add", g * y, (a.ndim - 2, a.ndim - 1)), wide)
    return ((total * y - product(y, turned(g), y)) / build.expand_dims(det, wide),)


@operator(to=None, method=False)
def log_determinant(a: Tensor) -> Any:
    """(sign, logarithm of the absolute value of the determinant) packed."""
    return build.call("slogdet", a)


@log_determinant.derivative
def _(g: Any, y: Any, a: Any) -> Any:
    scale = real_of(part(g, 1))
    if a.dtype.is_complex:  # the sign turns on the unit circle
        turn = f.imag(f.conj(part(g, 0)) * part(y, 0))
        scale = f.complex(scale, -turn)
    scale = build.expand_dims(scale, [a.ndim - 2, a.ndim - 1])
    return (scale * adjoint(inverse_or_nan(a)),)


# --- spectral -----------------------------------------------------------------------------------


@operator(to=None, method=False)
def svd_packed(a: Tensor, full: bool) -> Any:
    """(U, S, Vh) packed."""
    return build.call("svd", a, options=(full,))


def svd_parts(packed: Any, m: int, n: int, full: bool) -> tuple[Any, Any, Any]:
    """U, S and Vh."""
    k = min(m, n)
    left, right = (m, n) if full else (k, k)
    u = part(packed, 0, m, left)
    s = real_of(part(packed, m * left, k))
    return u, s, part(packed, m * left + k, right, n)


@svd_packed.derivative
def _(g: Any, y: Any, a: Any, full: bool) -> Any:
    m, n = a.shape[-2:]
    k = min(m, n)
    u, s, vh = svd_parts(y, m, n, full)
    gu, gs, gvh = svd_parts(g, m, n, full)
    if full:  # what spans the rest is not unique, and takes no part
        u, gu = window(u, (0, m), (0, k)), window(gu, (0, m), (0, k))
        vh, gvh = window(vh, (0, k), (0, n)), window(gvh, (0, k), (0, n))
    # Not a difference of squares: fused into one rounding, that is not 0 on the diagonal.
    across, down = as_rows(s), as_columns(s)
    gap = inverse_or_zero((across - down) * (across + down))
    left, right = product(adjoint(u), gu), product(gvh, adjoint(vh))
    # skew(Vᵀ gV) from gVh: (gVh · V)ᵀ - gVh · V
    inner = (left - adjoint(left)) * gap * as_rows(s)
    inner = inner + (adjoint(right) - right) * gap * as_columns(s) + on_diagonal(gs)
    small = inverse_or_zero(s)
    if a.dtype.is_complex:  # singular vectors may turn together
        skew = (left - adjoint(left)) * 0.5
        inner = inner + skew * identity(k, s.dtype) * as_rows(small)
    found = product(u, inner, vh)
    if m > k:
        scaled = (gu - product(u, left)) * as_rows(small)
        found = found + product(scaled, vh)
    if n > k:
        scaled = (gvh - product(right, vh)) * as_columns(small)
        found = found + product(u, scaled)
    return (found,)


@operator(to=None, method=False)
def singular_values(a: Tensor) -> Any:
    """The singular values, the largest first."""
    return build.call("svdvals", a)


@singular_values.derivative
def _(g: Any, y: Any, a: Any) -> Any:
    m, n = a.shape[-2:]
    u, _, vh = svd_parts(svd_packed(a, False), m, n, False)
    return (product(u * as_rows(g), vh),)


@operator(to=None, method=False)
def eigh_packed(a: Tensor, lower: bool) -> Any:
    """(eigenvalues, eigenvectors) of a symmetric matrix, packed."""
    return build.call("eigh", a, options=(lower,))


def eigh_parts(packed: Any, n: int) -> tuple[Any, Any]:
    """The eigenvalues, and the eigenvectors as columns."""
    return real_of(part(packed, 0, n)), part(packed, n, n, n)


@eigh_packed.derivative
def _(g: Any, y: Any, a: Any, lower: bool) -> Any:
    n = a.shape[-1]
    values, vectors = eigh_parts(y, n)
    g_values, g_vectors = eigh_parts(g, n)
    gap = inverse_or_zero(as_rows(values) - as_columns(values))
    turn = product(adjoint(vectors), g_vectors)
    inner = (turn - adjoint(turn)) * gap * 0.5 + on_diagonal(g_values)
    return (product(vectors, inner, adjoint(vectors)),)


@operator(to=None, method=False)
def eigenvalues(a: Tensor, lower: bool) -> Any:
    """The eigenvalues of a symmetric matrix."""
    return build.call("eigvalsh", a, options=(lower,))


@eigenvalues.derivative
def _(g: Any, y: Any, a: Any, lower: bool) -> Any:
    _, vectors = eigh_parts(eigh_packed(a, lower), a.shape[-1])
    return (product(vectors * as_rows(g), adjoint(vectors)),)


# --- orthogonal factors, pseudo-inverse, exponential --------------------------------------------


@operator(to=None, method=False)
def qr_packed(a: Tensor, complete: bool) -> Any:
    """(Q, R) packed."""
    return build.call("qr", a, options=(complete,))


def qr_parts(packed: Any, m: int, n: int, complete: bool) -> tuple[Any, Any]:
    """Q and R."""
    k = m if complete else min(m, n)
    return part(packed, 0, m, k), part(packed, m * k, k, n)


@qr_packed.derivative
def _(g: Any, y: Any, a: Any, complete: bool) -> Any:
    """For a wide matrix A = (A₁ A₂): R₂ = Qᵀ · A₂, and A₁ is square."""
    m, n = a.shape[-2:]
    if complete and m > n:
        raise NotImplementedError(
            "The QR decomposition is not differentiable when mode='complete' and nrows > ncols"
        )
    q, r = qr_parts(y, m, n, complete)
    gq, gr = qr_parts(g, m, n, complete)
    rest = None
    if n > m:
        beside, g_beside = window(a, (0, m), (m, n)), window(gr, (0, m), (m, n))
        rest = product(q, g_beside)
        gq = gq + product(beside, adjoint(g_beside))
        r, gr = window(r, (0, m), (0, m)), window(gr, (0, m), (0, m))
    inner = product(gr, adjoint(r)) - product(adjoint(q), gq)
    inner = mirrored(triangle(inner, upper=True))
    found = _divided(gq + product(q, inner), r)
    return (found if rest is None else joined(found, rest, rows=False),)


@operator(to=None, method=False)
def pseudo_inverse(
    a: Tensor, atol: Tensor | Scalar, rtol: Tensor | Scalar, hermitian: bool
) -> Any:  # fmt: skip
    """The pseudo-inverse; singular values up to max(atol, rtol · largest) count as zero."""
    shape = (*a.shape[:-2], 2)
    limits = []
    for given in (atol, rtol):
        number = build.as_node(given, a.dtype)
        limits.append(build.broadcast_to(build.expand_dims(number, [number.ndim]), shape))
    first = f.eq(build.coordinate(shape, len(shape) - 1), 0)
    return build.call("pinv", a, build.select(first, *limits), options=(hermitian,))


@pseudo_inverse.derivative
def _(g: Any, y: Any, a: Any, atol: Any, rtol: Any, hermitian: bool) -> Any:
    tensors = [t for t in (atol, rtol) if isinstance(t, Node) and not isinstance(t, Slot)]
    return (_pull_pinv(g, y, a), *[None] * len(tensors))


def _pull_pinv(g: Any, y: Any, a: Any) -> Any:
    m, n = a.shape[-2:]
    back = adjoint(y)
    left = identity(m, a.dtype) - product(a, y)
    right = identity(n, a.dtype) - product(y, a)
    flipped = adjoint(g)
    found = -product(back, g, back)
    found = found + product(left, flipped, y, back)
    return found + product(back, y, flipped, right)


@operator(to=None, method=False)
def least_squares(a: Tensor, b: Tensor, rcond: float) -> Any:
    """x of least |a · x - b|, and of those the shortest; of equal leading axes."""
    return build.call("lstsq", a, b, options=(rcond,))


@least_squares.derivative
def _(g: Any, y: Any, a: Any, b: Any, rcond: float) -> Any:
    zero = build.const(0.0, a.dtype)
    inverted = pseudo_inverse(a, zero, build.const(rcond, a.dtype), False)
    pulled = product(g, adjoint(b))
    return _pull_pinv(pulled, inverted, a), product(adjoint(inverted), g)


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
