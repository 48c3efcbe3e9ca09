"""Parameter updates: a whole group of an optimiser's parameters in one operator.

What is the same for all parameters (rates, corrections) is worked out in float64, as PyTorch does
in Python, and then rounded to each parameter's dtype: 1 - 0.999 has only 4 digits in float32.
"""

from __future__ import annotations

from typing import Any

from ..ir import build
from ..ir.dtypes import float64
from ..tensor import Tensor
from .define import Scalar, Tensors, operator

f = build.functions


def _exact(function: str, *operands: Any) -> Any:
    """A scalar function in float64."""
    return build.elementwise(function, *operands, dtype=float64)


@operator(to=None, method=False, smooth=False)
def sgd_update(
    parameters: Tensors, gradients: Tensors, buffers: Tensors, lr: Scalar, momentum: Scalar,
    dampening: Scalar, weight_decay: Scalar, nesterov: bool = False, maximize: bool = False,
) -> Any:  # fmt: skip
    """(parameters…, momentum buffers…) after one step."""
    share = _exact("sub", 1.0, dampening)
    updated, moved = [], []
    for n, p in enumerate(parameters):
        g = -gradients[n] if maximize else gradients[n]
        g = g + p * weight_decay
        if buffers:
            velocity = buffers[n] * momentum + g * build.cast(share, p.dtype)
            moved.append(velocity)
            g = g + velocity * momentum if nesterov else velocity
        updated.append(p - g * lr)
    return tuple(updated + moved)


@operator(to=None, method=False, smooth=False)
def adam_update(
    parameters: Tensors, gradients: Tensors, means: Tensors, squares: Tensors, step: Tensor,
    lr: Scalar, beta1: Scalar, beta2: Scalar, eps: Scalar, weight_decay: Scalar,
    decoupled: bool = False, maximize: bool = False,
) -> Any:  # fmt: skip
    """(parameters…, means…, squares…, step) after one step of Adam, or AdamW if decoupled."""
    step = step + 1.0
    share1, share2 = _exact("sub", 1.0, beta1), _exact("sub", 1.0, beta2)
    correction1 = _exact("sub", 1.0, _exact("pow", beta1, step))
    correction2 = _exact("sqrt", _exact("sub", 1.0, _exact("pow", beta2, step)))
    rate = _exact("div", lr, correction1)
    keep = _exact("sub", 1.0, _exact("mul", lr, weight_decay))
    updated, first, second = [], [], []
    for n, p in enumerate(parameters):
        g = -gradients[n] if maximize else gradients[n]
        if decoupled:
            p = p * build.cast(keep, p.dtype)
        else:
            g = g + p * weight_decay
        mean = means[n] * beta1 + g * build.cast(share1, p.dtype)
        square = squares[n] * beta2 + g * g * build.cast(share2, p.dtype)
        first.append(mean)
        second.append(square)
        spread = f.sqrt(square) / build.cast(correction2, p.dtype) + eps
        updated.append(p - mean * build.cast(rate, p.dtype) / spread)
    return (*updated, *first, *second, step)
