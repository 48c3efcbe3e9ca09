"""Functions of tensors in PyTorch's spelling: `import monograph.nn.functional as F` gives these."""

from __future__ import annotations

import math as _math
from typing import Any

from ..autograd.modes import no_grad
from ..ops import activation, index, loss, math, norm, random, reduce
from ..ops import conv as _conv
from ..ops.activation import gelu, leaky_relu, log_softmax, relu, sigmoid, silu, softmax
from ..ops.index import one_hot
from ..ops.loss import l1_loss, mse_loss
from ..ops.matmul import linear
from ..ops.methods import pad
from ..tensor import Tensor

tanh = math.tanh


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
    momentum: float = 0.1, eps: float = 1e-5,
) -> Tensor:  # fmt: skip
    """Batch norm; in training the running statistics are updated in place."""
    if not training:
        if running_mean is None or running_var is None:
            raise ValueError("batch_norm in evaluation needs running_mean and running_var")
        inference: Tensor = norm.batch_norm_inference(
            x, running_mean, running_var, weight, bias, eps
        )
        return inference
    y, mean, variance = norm.batch_norm_training(x, weight, bias, eps)
    with no_grad():
        for running, new in ((running_mean, mean), (running_var, variance)):
            if running is not None:
                running.lerp_(new, momentum)  # type: ignore[attr-defined]
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


def embedding(where: Tensor, weight: Tensor) -> Tensor:
    """Rows of weight at the indices `where`."""
    result: Tensor = index.embedding(weight, where)
    return result


def cross_entropy(
    x: Tensor, target: Tensor, ignore_index: int = -100, reduction: str = "mean"
) -> Tensor:
    """-log softmax(x)[target] for logits [N, C] or [N, C, …] and integer targets."""
    if x.ndim == 1:
        x, target = x.unsqueeze(0), target.unsqueeze(0)  # type: ignore[attr-defined]
    shape_ = tuple(target.shape)
    if x.ndim > 2:
        order = (0, *range(2, x.ndim), 1)
        x = x.permute(*order).reshape(-1, x.shape[1])  # type: ignore[attr-defined]
        target = target.reshape(-1)  # type: ignore[attr-defined]
    losses = loss.row_cross_entropy(x, target, ignore_index)
    if reduction == "none":
        return losses.reshape(*shape_)  # type: ignore[no-any-return]
    if reduction == "sum":
        return reduce.sum(losses)  # type: ignore[no-any-return]
    return loss.mean_over_counted(losses, target, ignore_index)  # type: ignore[no-any-return]


def nll_loss(x: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """-x[target] for log-probabilities [N, C]."""
    picked = -x.gather(1, target.unsqueeze(1)).squeeze(1)  # type: ignore[attr-defined]
    if reduction == "none":
        return picked  # type: ignore[no-any-return]
    return picked.sum() if reduction == "sum" else picked.mean()  # type: ignore[no-any-return]


def _convolution(rank: int) -> Any:
    def convolution(
        x: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Any = 1, padding: Any = 0,
        dilation: Any = 1, groups: int = 1,
    ) -> Tensor:  # fmt: skip
        if x.ndim == rank + 1:
            single = convolution(
                x.unsqueeze(0), weight, bias, stride, padding, dilation, groups  # type: ignore
            )
            return single.squeeze(0)  # type: ignore[attr-defined,no-any-return]
        result: Tensor = _conv.conv(x, weight, bias, stride, padding, dilation, groups)
        return result

    convolution.__name__ = f"conv{rank}d"
    convolution.__doc__ = f"Convolution over {rank} spatial axes."
    return convolution


conv1d, conv2d, conv3d = _convolution(1), _convolution(2), _convolution(3)
max_pool1d = max_pool2d = max_pool3d = _conv.max_pool
avg_pool1d = avg_pool2d = avg_pool3d = _conv.avg_pool
adaptive_avg_pool1d = adaptive_avg_pool2d = adaptive_avg_pool3d = _conv.adaptive_avg_pool


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


__all__ = [
    "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "avg_pool1d",
    "avg_pool2d", "avg_pool3d", "batch_norm", "conv1d", "conv2d", "conv3d", "cross_entropy",
    "dropout", "embedding", "gelu", "l1_loss", "layer_norm", "leaky_relu", "linear",
    "log_softmax", "max_pool1d", "max_pool2d", "max_pool3d", "mse_loss", "nll_loss", "one_hot",
    "pad", "relu", "scaled_dot_product_attention", "sigmoid", "silu", "softmax", "tanh",
]  # fmt: skip
