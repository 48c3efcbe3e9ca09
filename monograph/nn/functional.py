"""Functions of tensors in PyTorch's spelling: `import monograph.nn.functional as F` gives these."""

from __future__ import annotations

import math as _math
from typing import TYPE_CHECKING, Any

from ..autograd.modes import no_grad
from ..ops import activation, index, loss, math, norm, random
from ..ops.activation import log_softmax
from ..ops.define import members
from ..tensor import Tensor
from .parameter import take

globals().update(members("nn.functional"))

if TYPE_CHECKING:  # what the operators say belongs here

    def __getattr__(name: str) -> Any: ...


def layer_norm(
    x: Tensor, normalized_shape: Any, weight: Tensor | None = None, bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:  # fmt: skip
    """x centred and scaled over its last axes."""
    sizes = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
    result: Tensor = norm.layer_norm(x, sizes, weight, bias, eps)
    return result


def batch_norm(
    x: Tensor, running_mean: Tensor | None, running_var: Tensor | None,
    weight: Tensor | None = None, bias: Tensor | None = None, training: bool = False,
    momentum: Any = 0.1, eps: float = 1e-5,
) -> Tensor:  # fmt: skip
    """Batch norm; in training the running statistics are updated in place."""
    if not training:
        if running_mean is None or running_var is None:
            raise ValueError("batch_norm in evaluation needs running_mean and running_var")
        inference: Tensor = norm.batch_norm_inference(
            x, running_mean, running_var, weight, bias, eps
        )
        return inference
    y: Tensor = norm.batch_norm_training(x, weight, bias, eps)
    if running_mean is not None or running_var is not None:
        with no_grad():
            news = norm.batch_statistics(x)
            both = zip((running_mean, running_var), news, strict=True)
            averages, news = zip(*[(t, n) for t, n in both if t is not None], strict=True)
            moved = norm.running_average(averages, news, momentum)
            moved = moved if len(averages) > 1 else (moved,)
            for target, new in zip(averages, moved, strict=True):
                take(target, new)
    return y  # type: ignore[no-any-return]


def dropout(x: Tensor, p: float = 0.5, training: bool = True) -> Tensor:
    """Elements zeroed at probability p while training."""
    if not 0 <= p <= 1:
        raise ValueError(f"dropout probability must be between 0 and 1, got {p}")
    if not training or p == 0:
        return x
    seed, offset = random.default_generator.draw()
    result: Tensor = random.dropout_with(x, float(p), seed, offset)
    return result


def embedding(where: Tensor, weight: Tensor, padding_idx: int | None = None) -> Tensor:
    """Rows of weight at the indices `where`; the row padding_idx gets no gradient."""
    rows: Tensor = index.embedding(weight, where)
    if padding_idx is None:
        return rows
    is_padding = math.eq(where, padding_idx % weight.shape[0]).unsqueeze(-1)
    result: Tensor = math.where(is_padding, rows.detach(), rows)
    return result


def _classes_last(x: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """x [N, C, …] as rows [M, C] and its targets as [M]; one unbatched sample becomes a row."""
    if x.ndim == 1:
        return x.unsqueeze(0), target.unsqueeze(0)  # type: ignore[attr-defined]
    if x.ndim == 2:
        return x, target
    order = (0, *range(2, x.ndim), 1)
    rows = x.permute(*order).reshape(-1, x.shape[1])  # type: ignore[attr-defined]
    return rows, target.reshape(-1)  # type: ignore[attr-defined]


def cross_entropy(
    x: Tensor, target: Tensor, weight: Tensor | None = None, ignore_index: int = -100,
    reduction: str = "mean", label_smoothing: float = 0.0,
) -> Tensor:  # fmt: skip
    """-log softmax(x)[target] for logits [N, C] or [N, C, …] and integer targets.

    Floating point targets are probabilities of the shape of x.
    """
    if target.is_floating_point():
        return _soft_cross_entropy(x, target, weight, reduction, label_smoothing)
    if label_smoothing:
        return _smoothed_cross_entropy(x, target, weight, ignore_index, reduction, label_smoothing)
    if weight is not None:
        classes = 0 if x.ndim == 1 else 1
        return nll_loss(log_softmax(x, classes), target, weight, ignore_index, reduction)
    rows, places = _classes_last(x, target)
    losses = loss.row_cross_entropy(rows, places, ignore_index)
    if reduction == "mean":
        mean: Tensor = loss.mean_over_counted(losses, places, ignore_index)
        return mean
    return _reduced(losses.reshape(*target.shape), reduction)


def _reduced(losses: Any, reduction: str) -> Tensor:
    if reduction == "none":
        return losses  # type: ignore[no-any-return]
    if reduction not in ("mean", "sum"):
        raise ValueError(f"reduction must be 'none', 'mean' or 'sum', got {reduction!r}")
    return losses.sum() if reduction == "sum" else losses.mean()  # type: ignore[no-any-return]


def _soft_cross_entropy(
    x: Tensor, target: Any, weight: Any, reduction: str, smoothing: float
) -> Tensor:
    classes = 0 if x.ndim == 1 else 1
    if tuple(x.shape) != tuple(target.shape):
        raise ValueError(
            f"targets that are probabilities need the shape of the logits {list(x.shape)}, "
            f"got {list(target.shape)}"
        )
    if smoothing:
        target = target * (1 - smoothing) + smoothing / x.shape[classes]
    logs: Any = log_softmax(x, classes)
    if weight is not None:
        logs = logs * weight.reshape(-1, *[1] * (x.ndim - classes - 1))
    losses = -(logs * target).sum(classes)
    if reduction == "mean":
        return losses.sum() / max(losses.numel(), 1)  # type: ignore[no-any-return]
    return _reduced(losses, reduction)


def _smoothed_cross_entropy(
    x: Tensor, target: Tensor, weight: Any, ignore_index: int, reduction: str, smoothing: float
) -> Tensor:
    rows, places = _classes_last(x, target)
    logs: Any = log_softmax(rows, 1)
    counted: Any = math.ne(places, ignore_index)
    share = counted.to(logs.dtype)
    spread = logs if weight is None else logs * weight
    even = -spread.sum(1) * share / rows.shape[1]
    sharp = nll_loss(logs, places, weight, ignore_index, "none")
    losses: Any = sharp * (1 - smoothing) + even * smoothing
    if reduction != "mean":
        return _reduced(losses.reshape(*target.shape), reduction)
    if weight is not None:
        share = share * index.index_select(weight, 0, math.where(counted, places, 0))
    return losses.sum() / share.sum()  # type: ignore[no-any-return]


def nll_loss(
    x: Tensor, target: Tensor, weight: Tensor | None = None, ignore_index: int = -100,
    reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """-x[target] for log-probabilities [N, C] or [N, C, …], each weighted by its class."""
    rows, places = _classes_last(x, target)
    counted: Any = math.ne(places, ignore_index)
    places = math.where(counted, places, 0)
    share: Any = counted.to(x.dtype)
    if weight is not None:
        share = share * index.index_select(weight, 0, places)
    picked = rows.gather(1, places.unsqueeze(1)).squeeze(1)  # type: ignore[attr-defined]
    losses = -picked * share
    if reduction == "mean":
        return losses.sum() / share.sum()  # type: ignore[no-any-return]
    return _reduced(losses.reshape(*target.shape), reduction)


def scaled_dot_product_attention(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None,
    dropout_p: float = 0.0, is_causal: bool = False, scale: float | None = None,
) -> Tensor:  # fmt: skip
    """softmax(query · keyᵀ · scale) · value."""
    factor = 1.0 / _math.sqrt(query.shape[-1]) if scale is None else float(scale)
    if dropout_p > 0:
        seed, offset = random.default_generator.draw()
        dropped: Tensor = activation.attention(
            query, key, value, attn_mask, is_causal, factor, float(dropout_p), seed, offset
        )
        return dropped
    result: Tensor = activation.attention(query, key, value, attn_mask, is_causal, factor)
    return result
