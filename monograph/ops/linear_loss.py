"""Cross-entropy of a linear layer, a few rows at a time: rows × classes logits are never stored.

Forward and backward are loops over chunks of rows (`ir/loop.py`). A turn makes the logits of its
chunk and what follows from them; the backward's turns make them again. What is carried, the sum of
the losses or of the weight's gradients, decides nothing in a turn but is asked for: a product that
depended on no carry would be taken out of the loop, for all rows at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ..errors import OperandError
from ..ir import build, loop
from ..ir.dtypes import float64
from ..ir.index import Read, wrap
from ..ir.node import axis, coordinates
from ..tensor import Tensor
from .class_loss import cross_entropy, places_of
from .define import function, operator
from .matmul import linear
from .reduce import logsumexp

f = build.functions

LARGE = 1 << 26  # bytes of logits above which they are not stored
CHUNK = 1 << 25  # bytes of the logits of a chunk
MOST = 64  # chunks


def chunk_rows(rows: int, classes: int) -> int:
    """Rows of a chunk, or 0 if all logits may as well be stored."""
    if rows * classes * 4 <= LARGE:
        return 0
    return max(min(rows, CHUNK // (4 * classes)), -(-rows // MOST), 1)


@operator(to=None, method=False, name="linear_cross_entropy")
def chunked_cross_entropy(
    x: Tensor, weight: Tensor, bias: Tensor | None, target: Tensor, ignore_index: int, rows: int
) -> Any:
    """Σ -log softmax(x · weightᵀ + bias)[target] over all rows but those that are ignored."""
    place, counted = places_of(target, ignore_index, weight.shape[0])

    def turn(total: Any, piece: Any, places: Any, counts: Any, w: Any, b: Any) -> Any:
        logits = _logits(_behind(piece, total), w, b)
        losses = build.select(counts, logsumexp(logits, 1) - _chosen(logits, places), 0.0)
        return [total + build.reduce("add", losses, (0,))], []

    zero = build.full((), 0.0, x.dtype)
    return _over_chunks(turn, [zero], x, place, counted, weight, bias, rows)[0]


@chunked_cross_entropy.derivative
def _(
    g: Any, y: Any, x: Any, weight: Any, bias: Any, target: Any, ignore_index: int, rows: int
) -> Any:
    place, counted = places_of(target, ignore_index, weight.shape[0])

    def turn(*given: Any) -> Any:
        sums, (piece, places, counts, w, b) = given[:-5], given[-5:]
        piece = _behind(piece, build.reindex(sums[0], (), (0, 0)))
        logits = _logits(piece, w, b)
        share = build.expand_dims(build.cast(counts, logits.dtype), [1])
        part = f.exp(logits - logsumexp(logits, 1, True)) * share
        hit = f.eq(build.coordinate(logits.shape, 1), build.expand_dims(places, [1]))
        part = build.select(hit, part - share, part)
        after = [sums[0] + build.einsum("mn", "mk", "nk", part, piece)]
        if b is not None:
            after.append(sums[1] + build.reduce("add", part, (0,)))
        return after, [build.einsum("mn", "nk", "mk", part, w)]

    zeros = [build.full(p.shape, 0.0, x.dtype) for p in (weight, bias) if p is not None]
    *sums, pieces = _over_chunks(turn, zeros, x, place, counted, weight, bias, rows)
    flat = build.reshape(pieces, (pieces.shape[0] * pieces.shape[1], x.shape[1]))
    first = build.reindex(flat, x.shape, coordinates(x.shape))
    grads = [first * g, *[each * g for each in sums]]
    return (*grads, None)


def _behind(piece: Any, carried: Any) -> Any:
    """The chunk as it is, but known only once something carried is: no number exceeds infinity."""
    return build.select(f.gt(carried, math.inf), 0.0, piece)


def _logits(piece: Any, weight: Any, bias: Any) -> Any:
    made = build.einsum("mk", "nk", "mn", piece, weight)
    return made if bias is None else made + bias


def _chosen(logits: Any, places: Any) -> Any:
    row = axis(0, logits.shape[0])
    where = (row, Read(0, (row,), logits.shape[1]))
    return build.reindex(logits, places.shape, where, reads=(places,))


def _over_chunks(
    turn: Callable[..., Any], carried: list[Any], x: Any, place: Any, counted: Any, weight: Any,
    bias: Any, rows: int,
) -> list[Any]:  # fmt: skip
    """The results of a loop over chunks of `rows` rows; rows that are missing do not count."""
    trips = -(-x.shape[0] // rows)
    sequences = [_cut(each, trips, rows) for each in (x, place, counted)]
    shared = [p for p in (weight, bias) if p is not None]
    inputs = [*carried, *sequences, *shared]
    first = len(carried)
    shapes = [p.shape[1:] if first <= n < first + 3 else p.shape for n, p in enumerate(inputs)]
    parameters = [
        loop.parameter(n, shape, p.dtype)
        for n, (shape, p) in enumerate(zip(shapes, inputs, strict=True))
    ]
    given = parameters if bias is not None else [*parameters, None]
    after, stacked = turn(*given)
    body = loop.LoopBody(parameters, 3, after, stacked)
    return loop.results(loop.loop(inputs, body, trips, False))


def _cut(x: Any, trips: int, rows: int) -> Any:
    """x [N, …] as [trips, rows, …], with zeros behind."""
    shape = (trips, rows, *x.shape[1:])
    first, second, *rest = coordinates(shape)
    row = wrap(first) * rows + second
    guard = () if trips * rows == x.shape[0] else build.index.within(row, x.shape[0])
    return build.reindex(x, shape, (row, *rest), guard, 0)


def _is_chunked(x: Tensor, weight: Tensor, target: Tensor, reduction: str) -> bool:
    """Whether the logits are too many to be stored, and all is as the loops take it."""
    fits = x.ndim == 2 and target.shape == x.shape[:1] and x.shape[1] == weight.shape[1]
    whole = not target.is_floating_point() and x.dtype is not float64
    return (
        fits and whole and x.is_floating_point() and reduction in ("mean", "sum")
        and chunk_rows(x.shape[0], weight.shape[0]) > 0
    )  # fmt: skip


def _chunked(
    x: Tensor, weight: Tensor, bias: Tensor | None, target: Tensor, ignore_index: int,
    reduction: str,
) -> Any:  # fmt: skip
    rows = chunk_rows(x.shape[0], weight.shape[0])
    total = chunked_cross_entropy(x, weight, bias, target, ignore_index, rows)
    if reduction == "sum":
        return total
    return total / (target != ignore_index).sum()  # type: ignore[union-attr]


@function(to="nn.functional")
def linear_cross_entropy(
    input: Tensor, linear_weight: Tensor, target: Tensor, *, linear_bias: Tensor | None = None,
    weight: Tensor | None = None, reduction: str = "mean", ignore_index: int | None = None,
    label_smoothing: float = 0.0, options: Any = None,
) -> Tensor:  # fmt: skip
    """cross_entropy of linear(input, linear_weight, linear_bias).

    The weight may be [C, …, in]: the logits are then [N, C, …]. Large logits are made for a few
    rows at a time, and again in the backward pass, whatever the `options`.

    >>> import monograph as mg
    >>> F = mg.nn.functional
    >>> round(F.linear_cross_entropy(mg.zeros(1, 3), mg.ones(2, 3), mg.tensor([1])).item(), 4)
    0.6931
    """
    if ignore_index is not None and target.is_floating_point():
        raise OperandError("linear_cross_entropy: ignore_index does not go with probabilities")
    if linear_weight.ndim > 2 and input.ndim < 2:
        raise OperandError(
            f"linear_cross_entropy: the weight {list(linear_weight.shape)} needs a batch, "
            f"got the input {list(input.shape)}"
        )
    ignored = -100 if ignore_index is None else ignore_index
    plain = weight is None and not label_smoothing and linear_weight.ndim == 2
    if plain and _is_chunked(input, linear_weight, target, reduction):
        return _chunked(input, linear_weight, linear_bias, target, ignored, reduction)
    inner = linear_weight.shape[-1]
    bias = None if linear_bias is None else linear_bias.reshape(-1)  # type: ignore[attr-defined]
    rows = linear_weight.reshape(-1, inner)  # type: ignore[attr-defined]
    logits = linear(input, rows, bias)
    if linear_weight.ndim > 2:
        logits = logits.reshape(*input.shape[:-1], *linear_weight.shape[:-1])
    return cross_entropy(
        logits, target, weight, ignore_index=ignored, reduction=reduction,
        label_smoothing=label_smoothing,
    )  # fmt: skip
