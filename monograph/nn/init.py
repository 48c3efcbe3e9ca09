"""Initialisers: functions that fill a tensor in place and return it, named as in PyTorch.

Those that scale by the layer's size use its fans: how many inputs one output sums over (fan in)
and how many outputs one input reaches (fan out).
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from ..autograd.modes import no_grad
from ..ir.dtypes import float32, float64
from ..ops import random
from ..ops.random import Generator, default_generator
from ..tensor import Tensor
from .parameter import fill_from_array, take

_GAINS = {
    "linear": 1.0, "conv1d": 1.0, "conv2d": 1.0, "conv3d": 1.0, "conv_transpose1d": 1.0,
    "conv_transpose2d": 1.0, "conv_transpose3d": 1.0, "sigmoid": 1.0, "tanh": 5.0 / 3,
    "relu": math.sqrt(2.0), "selu": 0.75,
}  # fmt: skip


def _without_gradient(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Tensor:
        filled: Tensor = args[0] if args else kwargs["tensor"]
        if filled.is_meta:
            return filled  # there is nothing to fill
        with no_grad():
            return function(*args, **kwargs)

    return call


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """The factor that keeps the variance through a nonlinearity.

    >>> calculate_gain("leaky_relu", 1.0)
    1.0
    """
    if nonlinearity == "leaky_relu":
        if isinstance(param, (bool, str)):
            raise ValueError(f"negative_slope {param} not a valid number")
        slope = 0.01 if param is None else float(param)
        return math.sqrt(2.0 / (1 + slope**2))
    if nonlinearity not in _GAINS:
        names = ", ".join(sorted([*_GAINS, "leaky_relu"]))
        raise ValueError(f"unsupported nonlinearity {nonlinearity!r}; there are {names}")
    return _GAINS[nonlinearity]


@_without_gradient
def uniform_(
    tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Generator | None = None
) -> Tensor:
    """Fill with uniform numbers in [a, b).

    >>> import monograph as mg
    >>> w = mg.nn.init.uniform_(mg.empty(1000), 2.0, 3.0)
    >>> 2 <= w.min().item() <= w.max().item() <= 3
    True
    """
    seed, offset = (generator or default_generator).draw()
    shape = tuple(tensor.shape)
    return take(tensor, random.uniform(shape, tensor.dtype, seed, offset, float(a), float(b)))


@_without_gradient
def normal_(
    tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Generator | None = None
) -> Tensor:
    """Fill with normally distributed numbers.

    >>> import monograph as mg
    >>> mg.nn.init.normal_(mg.empty(3), mean=5.0, std=0.0).tolist()
    [5.0, 5.0, 5.0]
    """
    seed, offset = (generator or default_generator).draw(2)
    shape = tuple(tensor.shape)
    return take(tensor, random.normal(shape, tensor.dtype, seed, offset, float(mean), float(std)))


@_without_gradient
def trunc_normal_(
    tensor: Tensor, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0,
    generator: Generator | None = None,
) -> Tensor:  # fmt: skip
    """Fill with normally distributed numbers, those outside [a, b] drawn again.

    >>> import monograph as mg
    >>> mg.nn.init.trunc_normal_(mg.empty(1000), a=-1.0, b=1.0).abs().max().item() <= 1
    True
    """
    if mean < a - 2 * std or mean > b + 2 * std:
        warnings.warn(
            "mean is more than 2 std from [a, b] in nn.init.trunc_normal_. "
            "The distribution of values may be incorrect.",
            stacklevel=3,
        )
    draws = _draw(tensor, tuple(tensor.shape), generator) * std + mean
    outside = (draws < a) | (draws > b)
    while outside.any():
        draws[outside] = _draw(tensor, (int(outside.sum()),), generator) * std + mean
        outside = (draws < a) | (draws > b)
    fill_from_array(tensor, draws)
    return tensor


def _draw(tensor: Tensor, shape: tuple[int, ...], generator: Generator | None) -> np.ndarray:
    """Normally distributed numbers as an array, in a dtype that NumPy computes in."""
    kind = float64 if tensor.dtype is float64 else float32
    seed, offset = (generator or default_generator).draw(2)
    drawn: Tensor = random.normal(shape, kind, seed, offset, 0.0, 1.0)
    return drawn._array().copy()


@_without_gradient
def constant_(tensor: Tensor, val: float) -> Tensor:
    """Fill with one number.

    >>> import monograph as mg
    >>> mg.nn.init.constant_(mg.empty(2), 3.0).tolist()
    [3.0, 3.0]
    """
    fill_from_array(tensor, np.full(tuple(tensor.shape), val))
    return tensor


def zeros_(tensor: Tensor) -> Tensor:
    """Fill with zeros.

    >>> import monograph as mg
    >>> mg.nn.init.zeros_(mg.empty(2)).tolist()
    [0.0, 0.0]
    """
    return constant_(tensor, 0.0)


def ones_(tensor: Tensor) -> Tensor:
    """Fill with ones.

    >>> import monograph as mg
    >>> mg.nn.init.ones_(mg.empty(2)).tolist()
    [1.0, 1.0]
    """
    return constant_(tensor, 1.0)


@_without_gradient
def eye_(tensor: Tensor) -> Tensor:
    """Fill a matrix with the identity.

    >>> import monograph as mg
    >>> mg.nn.init.eye_(mg.empty(2, 2)).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    if tensor.ndim != 2:
        raise ValueError("only tensors of 2 dimensions are supported")
    fill_from_array(tensor, np.eye(*tensor.shape))
    return tensor


@_without_gradient
def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Fill the kernels of a convolution so that it hands on its channels unchanged.

    >>> import monograph as mg
    >>> mg.nn.init.dirac_(mg.empty(2, 2, 3))[0].tolist()
    [[0.0, 1.0, 0.0], [0.0, 0.0, 0.0]]
    """
    shape = tuple(tensor.shape)
    if len(shape) not in (3, 4, 5):
        raise ValueError("Only tensors with 3, 4, or 5 dimensions are supported")
    if shape[0] % groups:
        raise ValueError("dim 0 must be divisible by groups")
    kernels = np.zeros(shape)
    outputs = shape[0] // groups
    middle = tuple([extent // 2 for extent in shape[2:]])
    for group in range(groups):
        for d in range(min(outputs, shape[1])):
            kernels[(group * outputs + d, d, *middle)] = 1.0
    fill_from_array(tensor, kernels)
    return tensor


@_without_gradient
def sparse_(
    tensor: Tensor, sparsity: float, std: float = 0.01, generator: Generator | None = None
) -> Tensor:
    """Fill a matrix with normal numbers, and a part of each column with zeros.

    >>> import monograph as mg
    >>> (mg.nn.init.sparse_(mg.empty(10, 4), 0.5) == 0).sum(0).tolist()
    [5, 5, 5, 5]
    """
    if tensor.ndim != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    rows, columns = tensor.shape
    values = _draw(tensor, (rows, columns), generator) * std
    order = _draw(tensor, (rows, columns), generator).argsort(0)
    values[order < math.ceil(sparsity * rows)] = 0.0
    fill_from_array(tensor, values)
    return tensor


@_without_gradient
def orthogonal_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Fill with a (semi-)orthogonal matrix of shape [size(0), the rest].

    >>> import monograph as mg
    >>> w = mg.nn.init.orthogonal_(mg.empty(3, 5))
    >>> mg.allclose(w @ w.T, mg.eye(3), atol=1e-5)
    True
    """
    if tensor.ndim < 2:
        raise ValueError("Only tensors with 2 or more dimensions are supported")
    if 0 in tensor.shape:
        return tensor
    rows = tensor.shape[0]
    flat = _draw(tensor, (rows, tensor.numel() // rows), generator)
    tall = flat if flat.shape[0] >= flat.shape[1] else flat.T
    q, r = np.linalg.qr(tall)
    q = q * np.sign(np.diag(r))
    matrix = q if flat.shape[0] >= flat.shape[1] else q.T
    fill_from_array(tensor, gain * matrix.reshape(tuple(tensor.shape)))
    return tensor


def _calculate_fan_in_and_fan_out(tensor: Tensor) -> tuple[int, int]:
    shape = tuple(tensor.shape)
    if len(shape) < 2:
        raise ValueError("fan in and fan out need a tensor of 2 or more dimensions")
    window = math.prod(shape[2:])
    return shape[1] * window, shape[0] * window


def _calculate_correct_fan(tensor: Tensor, mode: str) -> int:
    mode = mode.lower()
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"mode must be 'fan_in' or 'fan_out', got {mode!r}")
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    return fan_in if mode == "fan_in" else fan_out


def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Uniform, with variance 2 gain² / (fan in + fan out).

    >>> import monograph as mg
    >>> mg.nn.init.xavier_uniform_(mg.empty(2, 4)).abs().max().item() <= 1
    True
    """
    bound = gain * math.sqrt(6.0 / sum(_calculate_fan_in_and_fan_out(tensor)))
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Normal, with variance 2 gain² / (fan in + fan out).

    >>> import monograph as mg
    >>> w = mg.nn.init.xavier_normal_(mg.empty(300, 700))
    >>> round(w.std().item() * 500**0.5, 1)
    1.0
    """
    std = gain * math.sqrt(2.0 / sum(_calculate_fan_in_and_fan_out(tensor)))
    return normal_(tensor, 0.0, std, generator)


def kaiming_uniform_(
    tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu",
    generator: Any = None,
) -> Tensor:  # fmt: skip
    """Uniform, with variance gain² / fan.

    >>> import monograph as mg
    >>> mg.nn.init.kaiming_uniform_(mg.empty(4, 6)).abs().max().item() <= 1
    True
    """
    if 0 in tensor.shape:
        return tensor
    std = calculate_gain(nonlinearity, a) / math.sqrt(_calculate_correct_fan(tensor, mode))
    bound = math.sqrt(3.0) * std
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu",
    generator: Any = None,
) -> Tensor:  # fmt: skip
    """Normal, with variance gain² / fan.

    >>> import monograph as mg
    >>> w = mg.nn.init.kaiming_normal_(mg.empty(256, 512), nonlinearity="relu")
    >>> round(w.std().item() * 512**0.5, 1)
    1.4
    """
    if 0 in tensor.shape:
        return tensor
    std = calculate_gain(nonlinearity, a) / math.sqrt(_calculate_correct_fan(tensor, mode))
    return normal_(tensor, 0.0, std, generator)
