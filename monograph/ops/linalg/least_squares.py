"""Pseudo-inverses, ranks, and systems that have no solution or many."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import errors
from ...ir import build, dtypes
from ...ir.node import Node, Slot
from ...tensor import Tensor, adopt
from .. import return_types
from ..define import Scalar, function, operator
from ..inplace import with_out
from ..matmul import matmul
from .checks import at_call, batched, check_matrix, is_vector, same_dtype
from .matrix import adjoint, identity, product
from .spectral import eigvalsh, svdvals

f = build.functions


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


def _tolerances(A: Tensor, atol: Any, rtol: Any) -> tuple[Any, Any]:
    """PyTorch's defaults: relative by precision and size, unless an absolute one is given."""
    if rtol is None:
        positive = atol is not None and (isinstance(atol, Tensor) or atol > 0)
        precision = float(np.finfo(A.dtype.numpy).eps) * max(A.shape[-2:])
        rtol = 0.0 if positive else precision
    wrapped = [t if isinstance(t, Tensor) else float(t or 0.0) for t in (atol, rtol)]
    return wrapped[0], wrapped[1]


@function(to="linalg")
@with_out
@at_call
def pinv(
    input: Tensor, rcond: Any = None, hermitian: bool = False, *, atol: Any = None, rtol: Any = None
) -> Tensor:
    """The pseudo-inverse: singular values up to max(atol, rtol · largest) count as zero.

    >>> import monograph as mg
    >>> mg.pinverse(mg.tensor([[2.0], [0.0]])).tolist()
    [[0.5, 0.0]]
    """
    check_matrix(input, "linalg.pinv", square=hermitian)
    absolute, relative = _tolerances(input, atol, rcond if rtol is None else rtol)
    return pseudo_inverse(input, absolute, relative, bool(hermitian))


@function(method=True)
def pinverse(input: Tensor, rcond: float = 1e-15) -> Tensor:
    """The pseudo-inverse: `linalg.pinv` with this relative tolerance."""
    return pinv(input, rtol=rcond)


@operator(to=None, method=False, smooth=False)
def count_above(s: Tensor, atol: Any, rtol: Any) -> Any:
    """How many values are above max(atol, rtol · largest)."""
    if s.shape[-1] == 0:
        return build.full(s.shape[:-1], 0, dtypes.int64)
    size = f.abs(s)
    top = build.reduce("max", size, (s.ndim - 1,), True)
    limit = f.maximum(top * rtol, build.full((), atol, s.dtype))
    return build.reduce("add", build.cast(size > limit, dtypes.int64), (s.ndim - 1,))


@function(to="linalg")
@with_out
@at_call
def matrix_rank(
    input: Tensor, tol: Any = None, hermitian: bool = False, *, atol: Any = None, rtol: Any = None
) -> Tensor:
    """How many singular values are above the tolerance.

    >>> import monograph as mg
    >>> mg.linalg.matrix_rank(mg.ones(3, 3)).item()
    1
    """
    check_matrix(input, "linalg.matrix_rank", square=hermitian)
    absolute, relative = _tolerances(input, tol if atol is None else atol, rtol)
    s = eigvalsh(input) if hermitian else svdvals(input)
    if not isinstance(absolute, Tensor) and not isinstance(relative, Tensor):
        return count_above(s, absolute, relative)
    if s.shape[-1] == 0:
        return count_above(s, 0.0, 0.0)
    size = s.abs()
    limit = size.amax(-1) * relative
    other = absolute if isinstance(absolute, Tensor) else limit * 0 + absolute
    return (size > limit.maximum(other).unsqueeze(-1)).sum(-1)


@function(to="linalg")
@at_call
def lstsq(
    input: Tensor, b: Tensor, rcond: float | None = None, *, driver: str | None = None
) -> Any:
    """(solution, residuals, rank, singular_values) of the least |input · X - b|.

    >>> import monograph as mg
    >>> mg.linalg.lstsq(mg.tensor([[1.0], [1.0]]), mg.tensor([[1.0], [3.0]])).solution.item()
    2.0
    """
    name = "torch.linalg.lstsq"
    check_matrix(input, name)
    same_dtype(input, b, name)
    if driver not in (None, "gels", "gelsy", "gelsd", "gelss"):
        raise errors.OperandError(
            f"{name}: parameter `driver` should be one of (gels, gelsy, gelsd, gelss)"
        )
    vector = is_vector(input, b)
    wide = b.unsqueeze(-1) if vector else b
    m, n = input.shape[-2:]
    if wide.shape[-2] != m:
        raise errors.OperandError(f"{name}: input.size(-2) should match other.size(-2)")
    kind = input.dtype.numpy
    limit = float(np.finfo(kind).eps) * max(m, n) if rcond is None else float(rcond)
    solution = least_squares(*batched(input, wide), limit)
    s = svdvals(input.detach())
    rank = count_above(s, 0.0, limit)
    residuals = solution.reshape(-1).narrow(0, 0, 0).abs()
    if m > n and driver not in (None, "gelsy") and bool((rank == n).all()):
        residuals = (matmul(input, solution) - wide).abs().square().sum(-2)
    values = s if driver in ("gelsd", "gelss") else adopt(np.zeros(0, s.dtype.numpy))
    ranks = adopt(np.zeros(0, np.int64)) if driver == "gels" else rank
    return return_types.linalg_lstsq(
        solution.squeeze(-1) if vector else solution, residuals, ranks, values
    )
