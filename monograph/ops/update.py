"""Parameter updates: a whole group of an optimiser's parameters in one operator."""

from __future__ import annotations

from typing import Any

from ..ir import build
from .define import Scalar, Tensors, operator
from ..tensor import Tensor

f = build.functions


@operator(method=False, smooth=False)
def sgd_update(
    parameters: Tensors, gradients: Tensors, buffers: Tensors, lr: Scalar, momentum: Scalar,
    dampening: Scalar, weight_decay: Scalar, nesterov: bool = False, maximize: bool = False,
) -> Any:  # fmt: skip
    """(parameters…, momentum buffers…) after one step."""
    updated, moved = [], []
    for n, p in enumerate(parameters):
        g = -gradients[n] if maximize else gradients[n]
        g = g + p * weight_decay
        if buffers:
            velocity = buffers[n] * momentum + g * (1.0 - dampening)
            moved.append(velocity)
            g = g + velocity * momentum if nesterov else velocity
        updated.append(p - g * lr)
    return tuple(updated + moved)


@operator(method=False, smooth=False)
def adam_update(
    parameters: Tensors, gradients: Tensors, means: Tensors, squares: Tensors, step: Tensor,
    lr: Scalar, beta1: Scalar, beta2: Scalar, eps: Scalar, weight_decay: Scalar,
    decoupled: bool = False, maximize: bool = False,
) -> Any:  # fmt: skip
    """(parameters…, means…, squares…, step) after one step of Adam, or AdamW if decoupled."""
    step = step + 1.0
    correction1 = 1.0 - f.pow(beta1, step)
    correction2 = f.sqrt(1.0 - f.pow(beta2, step))
    rate = lr / correction1
    updated, first, second = [], [], []
    for n, p in enumerate(parameters):
        g = -gradients[n] if maximize else gradients[n]
        if decoupled:
            p = p * (1.0 - lr * weight_decay)
        else:
            g = g + p * weight_decay
        mean = means[n] * beta1 + g * (1.0 - beta1)
        square = squares[n] * beta2 + g * g * (1.0 - beta2)
        first.append(mean)
        second.append(square)
        updated.append(p - mean * rate / (f.sqrt(square) / correction2 + eps))
    return (*updated, *first, *second, step)
