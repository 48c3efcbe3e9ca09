"""Parameters as one vector and back; convolutions that take over the batch norm behind them."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

from ...autograd.modes import no_grad
from ...ops.shape import cat
from ...tensor import Parameter, Tensor


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """All elements of the parameters, one after the other.

    >>> import monograph as mg
    >>> parameters_to_vector(mg.nn.Linear(2, 3).parameters()).shape
    Size([9])
    """
    result: Tensor = cat([p.reshape(-1) for p in parameters])
    return result


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Give the parameters the elements of a vector, in order.

    >>> import monograph as mg
    >>> layer = mg.nn.Linear(2, 1)
    >>> mg.nn.utils.vector_to_parameters(mg.arange(3.0), layer.parameters())
    >>> layer.weight.tolist(), layer.bias.tolist()
    ([[0.0, 1.0]], [2.0])
    """
    if not isinstance(vec, Tensor):
        raise TypeError(f"expected Tensor, but got: {type(vec).__name__}")
    start = 0
    source = vec.detach()
    with no_grad():
        for p in parameters:
            p.copy_(source[start : start + p.numel()].reshape(*p.shape))
            start += p.numel()


def fuse_conv_bn_weights(
    conv_w: Any, conv_b: Any, bn_rm: Any, bn_rv: Any, bn_eps: float, bn_w: Any, bn_b: Any,
    transpose: bool = False,
) -> tuple[Parameter, Parameter]:  # fmt: skip
    """Weight and bias of a convolution that does what it and a batch norm did."""
    scale = (bn_rv + bn_eps).rsqrt()
    if bn_w is not None:
        scale = scale * bn_w
    shape = [1] * conv_w.ndim
    shape[1 if transpose else 0] = -1
    bias = (-bn_rm if conv_b is None else conv_b - bn_rm) * scale
    if bn_b is not None:
        bias = bias + bn_b
    weight = (conv_w * scale.reshape(*shape)).to(conv_w.dtype)
    return Parameter(weight.detach(), conv_w.requires_grad), Parameter(bias.detach())


def fuse_conv_bn_eval(conv: Any, bn: Any, transpose: bool = False) -> Any:
    """A copy of the convolution that does what it and the batch norm do in evaluation.

    >>> import monograph as mg
    >>> conv, norm = mg.nn.Conv2d(3, 8, 3).eval(), mg.nn.BatchNorm2d(8).eval()
    >>> x = mg.rand(1, 3, 6, 6)
    >>> mg.allclose(mg.nn.utils.fuse_conv_bn_eval(conv, norm)(x), norm(conv(x)), atol=1e-5)
    True
    """
    if conv.training or bn.training:
        raise AssertionError("Fusion only for eval!")
    if bn.running_mean is None or bn.running_var is None:
        raise AssertionError("bn.running_mean and bn.running_var must not be None")
    fused = copy.deepcopy(conv)
    with no_grad():
        fused.weight, fused.bias = fuse_conv_bn_weights(
            conv.weight, conv.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias,
            transpose,
        )  # fmt: skip
    return fused


def fuse_linear_bn_eval(linear: Any, bn: Any) -> Any:
    """A copy of the linear layer that does what it and the batch norm do in evaluation.

    >>> import monograph as mg
    >>> linear, norm = mg.nn.Linear(3, 8).eval(), mg.nn.BatchNorm1d(8).eval()
    >>> x = mg.rand(2, 3)
    >>> mg.allclose(mg.nn.utils.fuse_linear_bn_eval(linear, norm)(x), norm(linear(x)), atol=1e-5)
    True
    """
    return fuse_conv_bn_eval(linear, bn)
