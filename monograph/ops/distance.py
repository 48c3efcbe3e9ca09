"""Lengths of vectors and distances between them, and losses that are made of distances."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..errors import OperandError
from ..ir import build, dtypes
from ..ir.dtypes import Kind
from ..ir.index import Read
from ..ir.node import axis
from ..tensor import Tensor
from .define import Scalar, function, operator
from .inplace import into
from .linalg.norms import vector_norm
from .loss import reduced, reduction_of
from .math import clamp, minimum
from .matmul import matmul
from .reduce import axes_of, root

f = build.functions


@operator(to=None, method=False, name="normalize")
def unit_length(x: Tensor, p: float, dim: Any, eps: Scalar) -> Any:
    """x divided by its p-norm along dim, or by eps if that is larger."""
    size = vector_norm(x, p, axes_of(x, dim), True)
    return x / build.select(size < eps, build.as_node(eps, size.dtype), size)


unit_length.operator.saves = {"x": ("x",)}


unit_length.operator.lies = "operand"


@function(to="nn.functional")
def normalize(
    input: Tensor, p: float = 2.0, dim: Any = 1, eps: float = 1e-12, out: Tensor | None = None
) -> Tensor:
    """x divided by its p-norm along dim, or by eps if that is larger.

    >>> import monograph as mg
    >>> mg.nn.functional.normalize(mg.tensor([[3.0, 4.0]]), p=1.0).tolist()
    [[0.4285714328289032, 0.5714285969734192]]
    """
    chosen = tuple(dim) if isinstance(dim, list) else dim
    made = unit_length(input, float(p), chosen, float(eps))
    return made if out is None else into(out, made)  # type: ignore[no-any-return]


@operator(to=("", "nn.functional"), method=False)
def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: Scalar = 1e-8) -> Any:
    """The cosine of the angle between vectors along dim; lengths below eps count as eps.

    >>> import monograph as mg
    >>> mg.cosine_similarity(mg.tensor([[1.0, 0.0]]), mg.tensor([[2.0, 0.0]])).tolist()
    [1.0]
    """
    common = build.common_dtype([x1, x2])
    if common.kind < Kind.FLOAT:
        raise ValueError(f"a floating point dtype is needed, got {common.name}")
    shape = build.broadcast_shapes(x1.shape, x2.shape)
    x1, x2 = [build.broadcast_to(build.cast(x, common), shape) for x in (x1, x2)]
    axes = axes_of(x1, dim)
    parts = []
    for x in (x1, x2):
        size = vector_norm(x, 2, axes, True)
        short = build.apply("detach", build.select(size < eps, eps - size, 0.0))
        parts.append(x / (size + short))  # the derivative is as if the length were not held up
    return build.reduce("add", parts[0] * parts[1], axes)


@operator(to=("", "nn.functional"), method=False)
def pairwise_distance(
    x1: Tensor, x2: Tensor, p: float = 2.0, eps: Scalar = 1e-6, keepdim: bool = False
) -> Any:
    """The p-norm of x1 - x2 + eps along the last axis.

    >>> import monograph as mg
    >>> x = mg.tensor([[3.0, 4.0]])
    >>> round(mg.pairwise_distance(x, mg.zeros(1, 2)).item(), 3)
    5.0
    """
    difference = x1 - x2 + eps
    return vector_norm(difference, p, (difference.ndim - 1,) if difference.ndim else (), keepdim)


@function(to="nn.functional", method=False)
def pdist(input: Tensor, p: float = 2) -> Tensor:
    """The distances between all pairs of rows, the upper triangle in one line.

    >>> import monograph as mg
    >>> mg.nn.functional.pdist(mg.tensor([[0.0, 0.0], [3.0, 4.0]])).tolist()
    [5.0]
    """
    if input.ndim != 2:
        raise OperandError(f"pdist takes a matrix, got {list(input.shape)}")
    if p < 0:
        raise OperandError(f"pdist: p must not be negative, got {p}")
    return pair_distances(input, float(p))  # type: ignore[no-any-return]


@operator(to=None, method=False, name="pdist")
def pair_distances(x: Tensor, p: float) -> Any:
    """pdist of a matrix."""
    rows, columns = x.shape
    count = rows * (rows - 1) // 2
    if count == 0 or columns == 0:
        return build.full((count,), 0, x.dtype)
    # Pair n lies in row i of the triangle, found from the square table by its place.
    table = vector_norm(build.expand_dims(x, [1]) - build.expand_dims(x, [0]), p, (2,))
    first, second = _triangle(rows, count)
    line = axis(0, count)
    where = (Read(0, (line,), rows), Read(1, (line,), rows))
    return build.reindex(table, (count,), where, reads=(first, second))


def _triangle(rows: int, count: int) -> tuple[Any, Any]:
    """(row, column) of each pair, as integers computed from its number."""
    n = build.coordinate((count,), 0)
    # Counted from the end, pair m is in the last row r with r (r + 1) / 2 <= m.
    m = build.cast(count - 1 - n, dtypes.float64)
    back = build.cast(f.floor((f.sqrt(m * 8.0 + 1.0) - 1.0) / 2.0), dtypes.int64)
    first = rows - 2 - back
    before = first * (rows * 2 - first - 1) // 2
    return first, n - before + first + 1


@function
def cdist(x1: Tensor, x2: Tensor, p: float = 2.0, compute_mode: str | None = None) -> Tensor:
    """The distance of each row of x1 to each row of x2.

    >>> import monograph as mg
    >>> mg.cdist(mg.tensor([[0.0, 0.0]]), mg.tensor([[3.0, 4.0], [0.0, 1.0]])).tolist()
    [[5.0, 1.0]]
    """
    if min(x1.ndim, x2.ndim) < 2:
        raise OperandError(f"cdist takes matrices, got {list(x1.shape)} and {list(x2.shape)}")
    if x1.shape[-1] != x2.shape[-1]:
        raise OperandError(f"cdist: {list(x1.shape)} and {list(x2.shape)} differ in columns")
    if x1.dtype is not x2.dtype:
        raise OperandError(f"cdist takes one dtype, got {x1.dtype.name} and {x2.dtype.name}")
    if p < 0:
        raise OperandError(f"cdist: p must not be negative, got {p}")
    modes = {None: 1, "use_mm_for_euclid_dist_if_necessary": 1, "use_mm_for_euclid_dist": 2,
             "donot_use_mm_for_euclid_dist": 0}  # fmt: skip
    if compute_mode not in modes:
        raise ValueError(f"{compute_mode} is not a valid value for compute_mode")
    large = x1.shape[-2] > 25 or x2.shape[-2] > 25
    product = p == 2 and modes[compute_mode] + large > 1
    return all_distances(x1, x2, float(p), product)  # type: ignore[no-any-return]


@operator(to=None, method=False, name="cdist")
def all_distances(x1: Tensor, x2: Tensor, p: float, product: bool) -> Any:
    """cdist, by a matrix product or by differences."""
    common = build.common_dtype([x1, x2])
    x1, x2 = build.cast(x1, common), build.cast(x2, common)
    lead = build.broadcast_shapes(x1.shape[:-2], x2.shape[:-2])
    shape = (*lead, x1.shape[-2], x2.shape[-2])
    if x1.shape[-1] == 0 or 0 in shape:
        return build.full(shape, 0, common)
    if not product:
        apart = build.expand_dims(x1, [x1.ndim - 1]) - build.expand_dims(x2, [x2.ndim - 2])
        return vector_norm(apart, p, (apart.ndim - 1,))
    order = (*range(x2.ndim - 2), x2.ndim - 1, x2.ndim - 2)
    squares = build.reduce("add", x1 * x1, (x1.ndim - 1,), True)
    others = build.permute(build.reduce("add", x2 * x2, (x2.ndim - 1,), True), order)
    total = squares + others - matmul(x1, build.permute(x2, order)) * 2.0
    return root(build.select(total < 0, build.const(0, common), total))


all_distances.operator.saves = {"*": ("x1", "x2", "result")}


# --- losses -------------------------------------------------------------------------------------


@operator(to=("", "nn.functional"), method=False)
def cosine_embedding_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: Scalar = 0.0,
    size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean",
) -> Any:  # fmt: skip
    """1 - cos where the target is 1, max(0, cos - margin) where it is -1.

    >>> import monograph as mg
    >>> x, y = mg.tensor([[1.0, 0.0]]), mg.tensor([[0.0, 1.0]])
    >>> mg.nn.functional.cosine_embedding_loss(x, y, mg.tensor([1.0])).item()
    1.0
    """
    if target.ndim not in (0, 1) or input1.ndim != target.ndim + 1 or input2.ndim != input1.ndim:
        raise ValueError(
            f"{target.ndim}D target tensor expects {target.ndim + 1}D input tensors, "
            f"got {list(input1.shape)} and {list(input2.shape)}"
        )
    k = target.ndim
    if build.common_dtype([input1, input2]).kind < Kind.FLOAT:  # sums of integers are int64
        input1, input2 = build.cast(input1, dtypes.int64), build.cast(input2, dtypes.int64)
    total = build.reduce("add", input1 * input2, (k,))
    first = build.reduce("add", input1 * input1, (k,)) + 1e-12
    second = build.reduce("add", input2 * input2, (k,)) + 1e-12
    cosine = total / f.sqrt(first * second)
    zero = build.const(0, cosine.dtype)
    apart = build.select(cosine < margin, zero, cosine - margin)
    alike = build.select(f.eq(target, 1), 1.0 - cosine, zero)
    losses = alike + build.select(f.eq(target, -1), apart, zero)
    return reduced(losses, reduction, size_average, reduce)


@function(to=("", "nn.functional"))
def triplet_margin_loss(
    anchor: Tensor, positive: Tensor, negative: Tensor, margin: float = 1.0, p: float = 2,
    eps: float = 1e-6, swap: bool = False, size_average: bool | None = None,
    reduce: bool | None = None, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """max(0, margin + |anchor - positive| - |anchor - negative|), in the p-norm.

    >>> import monograph as mg
    >>> x, y = mg.zeros(1, 2), mg.ones(1, 2)
    >>> round(mg.nn.functional.triplet_margin_loss(x, x, y).item(), 3)
    0.0
    """
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    chosen = reduction_of(reduction, size_average, reduce)
    return triplets(  # type: ignore[no-any-return]
        anchor, positive, negative, margin, float(p), eps, swap, chosen
    )


@operator(to=None, method=False, name="triplet_margin_loss")
def triplets(
    anchor: Tensor, positive: Tensor, negative: Tensor, margin: Scalar, p: float, eps: Scalar,
    swap: bool, reduction: str,
) -> Any:  # fmt: skip
    """triplet_margin_loss in the reductions that all losses have."""
    if not anchor.ndim == positive.ndim == negative.ndim:
        raise ValueError("anchor, positive and negative need as many axes")
    near = pairwise_distance(anchor, positive, p, eps)
    far = pairwise_distance(anchor, negative, p, eps)
    if swap:
        far = f.minimum(far, pairwise_distance(positive, negative, p, eps))
    gap = near - far + margin
    return reduced(build.select(gap < 0, build.const(0, gap.dtype), gap), reduction)


@function(to="nn.functional")
def triplet_margin_with_distance_loss(
    anchor: Tensor, positive: Tensor, negative: Tensor, *,
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None, margin: float = 1.0,
    swap: bool = False, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """triplet_margin_loss with any function of two tensors as the distance.

    >>> import monograph as mg
    >>> x, y = mg.zeros(1, 2), mg.ones(1, 2)
    >>> F = mg.nn.functional
    >>> round(F.triplet_margin_with_distance_loss(x, x, y).item(), 3)
    0.0
    """
    chosen = reduction_of(reduction)
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    if not anchor.ndim == positive.ndim == negative.ndim:
        raise OperandError("anchor, positive and negative need as many axes")
    distance: Any = distance_function or pairwise_distance
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = minimum(far, distance(positive, negative))
    losses = clamp(near - far + margin, 0.0)
    if chosen == "none":
        return losses  # type: ignore[no-any-return]
    return losses.mean() if chosen == "mean" else losses.sum()  # type: ignore[no-any-return]
