"""Losses of classes: targets are numbers of classes, or shares of all of them."""

from __future__ import annotations

from typing import Any

from ..errors import OperandError
from ..ir import build
from ..ir.check import check
from ..ir.dtypes import int64, uint8
from ..ir.index import Read
from ..ir.node import axis, coordinates
from ..tensor import Tensor
from .activation import logsigmoid
from .define import Scalar, function, no_tensor, operator
from .loss import reduced, reduction_of
from .promotion import require_floats
from .reduce import axes_of, logsumexp
from .softmax import log_softmax

f = build.functions


# --- one class for each row ---------------------------------------------------------------------


def _class_axis(x: Any) -> int:
    return 1 if x.ndim > 1 else 0


def _require_places(x: Any, target: Any) -> None:
    """The target has the shape of x without its classes, and holds integers."""
    if x.ndim == 0:
        raise ValueError("the input needs an axis of classes, got a tensor without axes")
    k = _class_axis(x)
    if target.shape != tuple([n for j, n in enumerate(x.shape) if j != k]):
        raise OperandError(
            f"expected logits [N, C, …] and targets [N, …], "
            f"got {list(x.shape)} and {list(target.shape)}"
        )
    _require_classes(target)


def _require_classes(target: Any) -> None:
    if target.dtype not in (int64, uint8):
        raise ValueError(f"targets must be int64 or uint8, got {target.dtype.name}")


def places_of(target: Any, ignore_index: int, classes: int) -> tuple[Any, Any]:
    """(targets as places, whether each counts); targets outside are reported."""
    target = build.cast(target, int64)
    counted = f.ne(target, ignore_index)
    place = build.select(counted, target, 0)
    outside = build.elementwise("or", place < 0, place > classes - 1)
    check(outside, place, f"target {{value}} is out of range for {classes} classes")
    return place, counted


def _chosen(x: Any, place: Any, k: int) -> Any:
    """x at its class."""
    here = coordinates(place.shape)
    if place.size == 0 or x.size == 0:
        return build.full(place.shape, 0, x.dtype)
    where = (*here[:k], Read(0, tuple(here), x.shape[k]), *here[k:])
    return build.reindex(x, place.shape, where, reads=(place,))


def _of_class(x: Any, weight: Any, place: Any, classes: int) -> Any:
    """The weight of each place's class."""
    if weight.dtype is not x.dtype:
        raise ValueError(f"the weight must be {x.dtype.name} as the input, got {weight.dtype.name}")
    if weight.shape != (classes,):
        raise ValueError(f"the weight must be one for each of {classes} classes, "
                         f"got {list(weight.shape)}")  # fmt: skip
    here = tuple(coordinates(place.shape))
    if place.size == 0 or classes == 0:
        return build.full(place.shape, 0, weight.dtype)
    return build.reindex(weight, place.shape, (Read(0, here, classes),), reads=(place,))


def _shares(x: Any, target: Any, weight: Any, ignore_index: int) -> tuple[Any, Any]:
    """(place, how much each target counts)."""
    classes = x.shape[_class_axis(x)]
    place, counted = places_of(target, ignore_index, classes)
    share = build.cast(counted, x.dtype)
    return place, share if weight is None else share * _of_class(x, weight, place, classes)


def _mean(losses: Any, share: Any) -> Any:
    total = build.reduce("add", share, axes_of(share, None))
    return build.reduce("add", losses, axes_of(losses, None)) / total


@operator(to=None, name="cross_entropy", method=False)
def row_cross_entropy(x: Tensor, target: Tensor, ignore_index: int = -100) -> Any:
    """-log softmax(x)[target] per row of x [N, C]; zero where target is ignore_index."""
    if x.ndim != 2 or target.shape != x.shape[:1]:
        raise ValueError(
            f"expected logits [N, C] and targets [N], got {list(x.shape)} and {list(target.shape)}"
        )
    require_floats(x)
    _require_classes(target)
    place, counted = places_of(target, ignore_index, x.shape[1])
    row = axis(0, x.shape[0])
    chosen = build.reindex(x, target.shape, (row, Read(0, (row,), x.shape[1])), reads=(place,))
    return build.select(counted, logsumexp(x, 1) - chosen, 0.0)


@row_cross_entropy.derivative
def _(g: Any, y: Any, x: Any, target: Any, ignore_index: int) -> Any:
    # softmax - one-hot, written as a comparison of the column with the target: nothing is stored.
    place, counted = places_of(target, ignore_index, x.shape[1])
    weight = build.expand_dims(build.select(counted, g, 0.0), [1])
    share = f.exp(x - logsumexp(x, 1, True)) * weight
    hit = f.eq(build.coordinate(x.shape, 1), build.expand_dims(place, [1]))
    return (build.select(hit, share - weight, share), None)


row_cross_entropy.operator.saves = {"x": ("target", "log_softmax")}  # the latter unseen


@operator(to=None, method=False)
def mean_over_counted(losses: Tensor, target: Tensor, ignore_index: int = -100) -> Any:
    """Σ losses / how many targets are not ignore_index."""
    counted = build.cast(f.ne(target, ignore_index), losses.dtype)
    total = build.reduce("add", counted, axes_of(counted, None))
    if losses.size == 0:
        return build.reduce("add", losses, axes_of(losses, None)) / total
    # Divided before they are added: the rows' own pass then makes the mean.
    return build.reduce("add", losses / total, axes_of(losses, None))


@operator(to=None, method=False, name="nll_loss")
def picked(
    x: Tensor, target: Tensor, weight: Tensor | None, ignore_index: int, reduction: str
) -> Any:
    """nll_loss in the reductions that all losses have."""
    require_floats(x)
    _require_places(x, target)
    place, share = _shares(x, target, weight, ignore_index)
    at_class = _chosen(x, place, _class_axis(x))
    losses = build.select(f.eq(share, 0.0), 0.0, -at_class * share)
    return _mean(losses, share) if reduction == "mean" else reduced(losses, reduction)


picked.operator.saves = {"x": ("x", "target", "weight")}


@function(to="nn.functional")
def nll_loss(
    input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: bool | None = None,
    ignore_index: int = -100, reduce: bool | None = None, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """-x[target] for log-probabilities [N, C] or [N, C, …], each weighted by its class.

    >>> import monograph as mg
    >>> mg.nn.functional.nll_loss(mg.tensor([[-1.0, -2.0]]), mg.tensor([1])).item()
    2.0
    """
    chosen = reduction_of(reduction, size_average, reduce)
    return picked(input, target, weight, ignore_index, chosen)  # type: ignore[no-any-return]


def _rows(x: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """x [N, C, …] as rows [M, C] and its targets as [M]; one unbatched sample becomes a row."""
    if x.ndim == 1:
        return x.unsqueeze(0), target.reshape(-1)  # type: ignore[attr-defined]
    order = (0, *range(2, x.ndim), 1)
    rows = x.permute(*order).reshape(-1, x.shape[1])  # type: ignore[attr-defined]
    return rows, target.reshape(-1)  # type: ignore[attr-defined]


@function(to="nn.functional")
def cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: bool | None = None,
    ignore_index: int = -100, reduce: bool | None = None, reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:  # fmt: skip
    """-log softmax(x)[target] for logits [N, C] or [N, C, …] and integer targets.

    Floating point targets are probabilities of the shape of x.

    >>> import monograph as mg
    >>> round(mg.nn.functional.cross_entropy(mg.zeros(1, 2), mg.tensor([1])).item(), 4)
    0.6931
    """
    chosen = reduction_of(reduction, size_average, reduce)
    if not 0 <= label_smoothing <= 1:
        raise OperandError(
            f"cross_entropy: label_smoothing must be between 0 and 1, got {label_smoothing}"
        )
    try:
        meta, classes = input._value().meta, not target.dtype.is_floating_point
    except AttributeError:
        raise no_tensor("cross_entropy", input=input, target=target) from None
    if not classes:
        return soft(input, target, weight, chosen, label_smoothing)  # type: ignore[no-any-return]
    if label_smoothing:
        return smoothed(  # type: ignore[no-any-return]
            input, target, weight, ignore_index, chosen, label_smoothing
        )
    axes = len(meta.shape)
    if weight is not None or axes == 0 or meta.size == 0:
        logs = log_softmax(input, _class_axis(input))
        return picked(logs, target, weight, ignore_index, chosen)  # type: ignore[no-any-return]
    if axes == 2:
        losses = row_cross_entropy(input, target, ignore_index)
    else:
        # As many targets in another order would fit the rows as well.
        if axes > 2 or target.numel() != 1:
            _require_places(input, target)
        rows, target_ = _rows(input, target)
        losses = row_cross_entropy(rows, target_, ignore_index)
    if chosen == "mean":
        return mean_over_counted(losses, target, ignore_index)  # type: ignore[no-any-return]
    if axes != 2:
        losses = losses.reshape(*target.shape)
    return losses if chosen == "none" else losses.sum()  # type: ignore[no-any-return]


@operator(to=None, method=False, name="cross_entropy")
def soft(
    x: Tensor, target: Tensor, weight: Tensor | None, reduction: str, label_smoothing: Scalar
) -> Any:
    """cross_entropy with targets that are probabilities."""
    k = _class_axis(x)
    if x.shape != target.shape:
        raise ValueError(
            f"targets that are probabilities need the shape of the logits {list(x.shape)}, "
            f"got {list(target.shape)}"
        )
    label_smoothing = build.as_node(label_smoothing, x.dtype)
    target = target * (1.0 - label_smoothing) + label_smoothing / max(x.shape[k], 1)
    logs = log_softmax(x, k)
    if weight is not None:
        logs = logs * build.reshape(weight, (x.shape[k], *[1] * (x.ndim - k - 1)))
    losses = -build.reduce("add", logs * target, (k,))
    if reduction != "mean":
        return reduced(losses, reduction)
    return build.reduce("add", losses, axes_of(losses, None)) / float(max(losses.size, 1))


@operator(to=None, method=False, name="cross_entropy")
def smoothed(
    x: Tensor, target: Tensor, weight: Tensor | None, ignore_index: int, reduction: str,
    label_smoothing: Scalar,
) -> Any:  # fmt: skip
    """cross_entropy with a share of each target spread over all classes."""
    _require_places(x, target)
    k = _class_axis(x)
    logs = log_softmax(x, k)
    place, share = _shares(x, target, weight, ignore_index)
    sharp = build.select(f.eq(share, 0.0), 0.0, -_chosen(logs, place, k) * share)
    if weight is not None:
        logs = logs * build.reshape(weight, (x.shape[k], *[1] * (x.ndim - k - 1)))
    counted = f.ne(build.cast(target, int64), ignore_index)
    even = build.select(counted, -build.reduce("add", logs, (k,)), 0.0) / max(x.shape[k], 1)
    label_smoothing = build.as_node(label_smoothing, x.dtype)
    losses = sharp * (1.0 - label_smoothing) + even * label_smoothing
    return _mean(losses, share) if reduction == "mean" else reduced(losses, reduction)


# --- margins ------------------------------------------------------------------------------------


@function(to="nn.functional")
def multi_margin_loss(
    input: Tensor, target: Tensor, p: int = 1, margin: float = 1.0, weight: Tensor | None = None,
    size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """Σ max(0, margin - x[target] + x[j]) ** p over the other classes j, by the number of classes.

    >>> import monograph as mg
    >>> mg.nn.functional.multi_margin_loss(mg.tensor([[1.0, 1.0]]), mg.tensor([0])).item()
    0.5
    """
    if p not in (1, 2):
        raise ValueError(f"only p of 1 and 2 is supported, got {p}")
    chosen = reduction_of(reduction, size_average, reduce)
    return margins(input, target, p, margin, weight, chosen)  # type: ignore[no-any-return]


@operator(to=None, method=False, name="multi_margin_loss")
def margins(
    x: Tensor, target: Tensor, p: int, margin: Scalar, weight: Tensor | None, reduction: str
) -> Any:
    """multi_margin_loss in the reductions that all losses have."""
    if x.ndim > 2:
        raise ValueError(f"expected an input [N, C] or [C], got {list(x.shape)}")
    if target.dtype is not int64:
        raise ValueError(f"targets must be int64, got {target.dtype.name}")
    if x.shape[-1:] == (0,):
        raise ValueError(f"the input needs at least one class, got {list(x.shape)}")
    alone = x.ndim < 2
    rows = build.reshape(x, (1, x.size)) if alone else x
    if target.ndim > 1 or target.size != rows.shape[0]:
        raise ValueError(f"inconsistent target size {list(target.shape)} for {list(x.shape)}")
    classes = rows.shape[1]
    place, _ = places_of(build.reshape(target, (rows.shape[0],)), -(2**62), classes)
    right = build.expand_dims(_chosen(rows, place, 1), [1])
    gap = margin - right + rows
    losses = build.select(gap > 0, gap if p == 1 else gap * gap, build.const(0, x.dtype))
    if weight is not None:
        losses = losses * build.expand_dims(_of_class(x, weight, place, classes), [1])
    own = f.eq(build.coordinate(rows.shape, 1), build.expand_dims(place, [1]))
    total = build.reduce("add", build.select(own, build.const(0, x.dtype), losses), (1,))
    total = total / float(classes)
    return reduced(build.reshape(total, ()) if alone else total, reduction)


@operator(to="nn.functional", method=False)
def multilabel_margin_loss(
    x: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None,
    reduction: str = "mean",
) -> Any:  # fmt: skip
    """Σ max(0, 1 - x[right] + x[wrong]) over all pairs; a row of target ends at its first -1.

    >>> import monograph as mg
    >>> F = mg.nn.functional
    >>> F.multilabel_margin_loss(mg.tensor([1.0, 1.0]), mg.tensor([0, -1])).item()
    0.5
    """
    if x.ndim > 2 or x.size and target.shape != x.shape or x.shape[-1:] == (0,):
        raise ValueError(
            f"expected an input [N, C] or [C] and a target of the same size, "
            f"got {list(x.shape)} and {list(target.shape)}"
        )
    alone = x.ndim < 2
    shape = (1, x.size) if alone else x.shape
    rows, places = build.reshape(x, shape), build.reshape(build.cast(target, int64), shape)
    classes = shape[1]
    outside = build.elementwise("or", places < -1, places > classes - 1)
    check(outside, places, f"target {{value}} is out of range for {classes} classes")
    # A label counts if no -1 stands at it or before: the first -1 is at `end`.
    column = build.coordinate(shape, 1)
    ends = build.select(places < 0, column, build.const(classes, int64))
    counted = column < build.reduce("min", ends, (1,), True)
    labels = build.select(counted, places, build.const(-1, int64))
    pairs = (*shape, classes)  # [row, label, class]
    hit = f.eq(build.coordinate(pairs, 2), build.expand_dims(labels, [2]))
    right = build.reduce("or", hit, (1,))
    here = tuple(coordinates(shape))
    safe = build.select(counted, places, build.const(0, int64))
    chosen = build.reindex(rows, shape, (here[0], Read(0, here, classes)), reads=(safe,))
    gap = 1.0 - build.expand_dims(chosen, [2]) + build.expand_dims(rows, [1])
    used = build.elementwise(
        "and", build.broadcast_to(build.expand_dims(counted, [2]), pairs),
        build.apply("not", build.broadcast_to(build.expand_dims(right, [1]), pairs)),
    )  # fmt: skip
    used = build.elementwise("and", used, gap > 0)
    losses = build.reduce("add", build.select(used, gap, build.const(0, x.dtype)), (1, 2))
    losses = losses / float(classes)
    return reduced(build.reshape(losses, ()) if alone else losses, reduction, size_average, reduce)


@operator(to="nn.functional", method=False)
def multilabel_soft_margin_loss(
    x: Tensor, target: Tensor, weight: Tensor | None = None, size_average: bool | None = None,
    reduce: bool | None = None, reduction: str = "mean",
) -> Any:  # fmt: skip
    """The mean over classes (the last axis) of binary_cross_entropy_with_logits.

    >>> import monograph as mg
    >>> F = mg.nn.functional
    >>> round(F.multilabel_soft_margin_loss(mg.zeros(1, 2), mg.ones(1, 2)).item(), 4)
    0.6931
    """
    losses = -(target * logsigmoid(x) + (1.0 - target) * logsigmoid(-x))
    if weight is not None:
        losses = losses * weight
    if x.ndim:
        losses = build.reduce("add", losses, (losses.ndim - 1,)) / float(losses.shape[-1])
    return reduced(losses, reduction, size_average, reduce)
