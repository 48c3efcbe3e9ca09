"""Gradient clipping, recorded like any other work: no value is read.

The norm of all gradients is one operator and scaling all of them is another, so that clipping
costs two records however many parameters there are.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from ..autograd.modes import no_grad
from ..ir import build
from ..ops.define import Scalar, Tensors, operator
from ..ops.math import maximum, minimum
from ..ops.reduce import global_norm
from ..tensor import Tensor
from .parameter import known, take


@operator(to=None, method=False, smooth=False)
def scale_to_norm(tensors: Tensors, norm: Tensor, limit: Scalar) -> Any:
    """The tensors times limit / norm where norm is above the limit."""
    factor = build.functions.minimum(limit / (norm + 1e-6), 1.0)
    return tuple([x * build.cast(factor, x.dtype) for x in tensors])


@operator(to=None, method=False, smooth=False)
def limit_each(tensors: Tensors, limit: Scalar) -> Any:
    """The tensors with every element within ±limit."""
    f = build.functions
    return tuple([f.maximum(f.minimum(x, limit), -limit) for x in tensors])


def _gradients(parameters: Tensor | Iterable[Tensor]) -> list[Tensor]:
    listed = [parameters] if isinstance(parameters, Tensor) else parameters
    return [p.grad for p in listed if p.grad is not None]


def _norm(gradients: list[Tensor], norm_type: float) -> Tensor:
    if norm_type == 2:
        result: Tensor = global_norm(gradients)
    elif math.isinf(norm_type):
        joined, of_one = (maximum, "amax") if norm_type > 0 else (minimum, "amin")
        result = getattr(gradients[0].abs(), of_one)()  # type: ignore[attr-defined]
        for g in gradients[1:]:
            result = joined(result, getattr(g.abs(), of_one)())  # type: ignore[attr-defined]
    elif norm_type == 0:
        # The norm of the norms, as PyTorch has it: how many gradients are not all zero.
        return sum([(g != 0).any().to(g.dtype) for g in gradients])  # type: ignore
    else:
        total: Any = 0.0
        for g in gradients:
            total = (g.abs() ** norm_type).sum() + total  # type: ignore[attr-defined]
        result = total ** (1.0 / norm_type)
    return result


@no_grad()
def get_total_norm(
    tensors: Tensor | Iterable[Tensor], norm_type: float = 2.0, error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:  # fmt: skip
    """The norm of all tensors together, as if they were one vector.

    >>> import monograph as mg
    >>> mg.nn.utils.get_total_norm([mg.tensor([3.0]), mg.tensor([4.0])]).item()
    5.0
    """
    listed = [tensors] if isinstance(tensors, Tensor) else list(tensors)
    if not listed:
        return known(np.zeros((), np.float32))
    norm = _norm(listed, float(norm_type))
    if error_if_nonfinite and not math.isfinite(norm.item()):
        raise RuntimeError(f"The total norm of order {norm_type} for tensors is non-finite")
    return norm


@no_grad()
def clip_grad_norm_(
    parameters: Tensor | Iterable[Tensor], max_norm: float, norm_type: float = 2.0,
    error_if_nonfinite: bool = False, foreach: bool | None = None,
) -> Tensor:  # fmt: skip
    """Scale the gradients in place so that the norm of all together is at most max_norm.

    Returns the norm before. `error_if_nonfinite` reads it, and so waits for it.

    >>> import monograph as mg
    >>> p = mg.nn.Parameter([3.0, 4.0])
    >>> (p * p / 2).sum().backward()
    >>> mg.nn.utils.clip_grad_norm_([p], 1.0).item()
    5.0
    >>> [round(g, 3) for g in p.grad.tolist()]
    [0.6, 0.8]
    """
    gradients = _gradients(parameters)
    if not gradients:
        return known(np.zeros((), np.float32))
    norm = _norm(gradients, float(norm_type))
    if error_if_nonfinite and not math.isfinite(norm.item()):
        raise RuntimeError(
            f"The total norm of order {norm_type} for gradients is non-finite, so it cannot be "
            "clipped"
        )
    scaled = scale_to_norm(gradients, norm, float(max_norm))
    for g, new in zip(gradients, scaled if len(gradients) > 1 else (scaled,), strict=True):
        take(g, new)
    return norm


@no_grad()
def clip_grad_value_(
    parameters: Tensor | Iterable[Tensor], clip_value: float, foreach: bool | None = None
) -> None:
    """Limit every element of the gradients to ±clip_value, in place.

    >>> import monograph as mg
    >>> p = mg.nn.Parameter([1.0])
    >>> (p * 5).sum().backward()
    >>> mg.nn.utils.clip_grad_value_([p], 2.0)
    >>> p.grad.tolist()
    [2.0]
    """
    gradients = _gradients(parameters)
    if not gradients:
        return
    limited = limit_each(gradients, float(clip_value))
    for g, new in zip(gradients, limited if len(gradients) > 1 else (limited,), strict=True):
        take(g, new)
