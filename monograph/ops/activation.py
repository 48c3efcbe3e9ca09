"""Activations: functions of one number that layers put between their linear parts."""

from __future__ import annotations

import math
from typing import Any

from ..errors import OperandError
from ..ir import build, dtypes
from ..ir.dtypes import Kind
from ..ir.node import coordinates
from ..tensor import Tensor
from .define import ANYWHERE, Scalar, function, operator
from .inplace import over
from .math import floating
from .random import default_generator, unit
from .shape import axis_of

f = build.functions

_SELU_ALPHA, _SELU_SCALE = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946


@operator(to=("", "nn.functional"), inplace=True, flag=True)
def relu(x: Tensor) -> Any:
    """max(x, 0).

    >>> import monograph as mg
    >>> mg.relu(mg.tensor([-1.0, 2.0])).tolist()
    [0.0, 2.0]
    """
    if x.dtype.kind is Kind.BOOL:
        raise ValueError("relu takes numbers, got bool")
    return build.select(x < 0, build.const(0, x.dtype), x)  # -0.0 stays what it is


@relu.derivative
def _(g: Any, y: Any, x: Any) -> Any:
    return (build.select(y <= 0, 0.0, g),)  # so that NaN passes, as in PyTorch


@operator(to=("", "nn.functional"), inplace=True)
def sigmoid(x: Tensor) -> Any:
    """1 / (1 + exp(-x)).

    >>> import monograph as mg
    >>> mg.sigmoid(mg.tensor(0.0)).item()
    0.5
    """
    return 1.0 / (1.0 + f.exp(-floating(x)))


@sigmoid.derivative
def _(g: Any, y: Any, x: Any) -> Any:
    return (g * f.conj(y * (1.0 - y)),)


@operator(to="nn.functional", method=False, flag=True)
def silu(x: Tensor) -> Any:
    """x · sigmoid(x).

    >>> import monograph as mg
    >>> mg.nn.functional.silu(mg.tensor(0.0)).item()
    0.0
    """
    return x * sigmoid(x)


@silu.derivative
def _(g: Any, y: Any, x: Any) -> Any:
    # By way of exp(-x) this would be infinity · 0 where x is far below zero.
    share = sigmoid(x)
    return (g * f.conj(share * (1.0 + x * (1.0 - share))),)


@operator(to="nn.functional", method=False, inplace=True, flag=True)
def leaky_relu(x: Tensor, negative_slope: Scalar = 0.01) -> Any:
    """x, or negative_slope · x below zero.

    >>> import monograph as mg
    >>> mg.nn.functional.leaky_relu(mg.tensor([-1.0, 1.0]), 0.5).tolist()
    [-0.5, 1.0]
    """
    return build.select(x > 0, x, x * negative_slope)


@operator(to="nn.functional", method=False)
def gelu(x: Tensor, approximate: str = "none") -> Any:
    """x · Φ(x), exactly by erf or by the tanh formula.

    >>> import monograph as mg
    >>> mg.nn.functional.gelu(mg.tensor(0.0)).item()
    0.0
    """
    if not x.dtype.is_floating_point:
        raise NotImplementedError(f"gelu is not implemented for {x.dtype.name}")
    if approximate == "tanh":
        return x / (_gelu_exp(x) + 1.0)  # (1 + tanh(u)) / 2 is 1 / (1 + exp(-2u))
    if approximate != "none":
        raise ValueError(f"approximate must be 'none' or 'tanh', got {approximate!r}")
    return x * 0.5 * (f.erf(x * math.sqrt(0.5)) + 1.0)


_GELU_RATE = -math.sqrt(8.0 / math.pi) / math.log(2.0)


def _gelu_exp(x: Any) -> Any:
    """exp(-2u) for the tanh formula's u, in fewer steps as a power of 2."""
    return f.exp2(x * (x * x * (0.044715 * _GELU_RATE) + _GELU_RATE))


def _gelu_slope(x: Any) -> Any:
    """The derivative of 2u."""
    return x * x * (6.0 * 0.044715 * math.sqrt(2.0 / math.pi)) + math.sqrt(8.0 / math.pi)


@operator(to=None, method=False)
def gelu_share(x: Tensor) -> Any:
    """(1 + tanh(u)) / 2: the share of x that GELU lets pass."""
    return 1.0 / (_gelu_exp(x) + 1.0)


@operator(to=None, method=False)
def gelu_rest(x: Tensor) -> Any:
    """1 - gelu_share(x) without cancellation, nor infinity · 0 where x is far below zero."""
    grown = _gelu_exp(x)
    return build.select(grown < 1e38, grown, build.const(1e38, grown.dtype)) * gelu_share(x)


@gelu_share.derivative
def _(g: Any, y: Any, x: Any) -> Any:
    return (g * _gelu_slope(x) * (gelu_share(x) * gelu_rest(x)),)


@gelu_rest.derivative
def _(g: Any, y: Any, x: Any) -> Any:
    return (-g * _gelu_slope(x) * (gelu_share(x) * gelu_rest(x)),)


@gelu.derivative
def _(g: Any, y: Any, x: Any, approximate: str) -> Any:
    if approximate == "tanh":
        share = gelu_share(x)
        return (g * (share + x * _gelu_slope(x) * (share * gelu_rest(x))),)
    below = f.erf(x * math.sqrt(0.5)) * 0.5 + 0.5
    return (g * (below + x * f.exp(x * x * -0.5) * math.sqrt(0.5 / math.pi)),)


def _below(x: Any) -> Any:
    """x where it is below zero, else zero: so that exp of it neither overflows nor is NaN · 0."""
    return build.select(x > 0, build.const(0, x.dtype), x)


@operator(to="nn.functional", method=False, inplace=True, flag=True)
def elu(x: Tensor, alpha: Scalar = 1.0) -> Any:
    """x, or alpha · (exp(x) - 1) below zero.

    >>> import monograph as mg
    >>> mg.nn.functional.elu(mg.tensor([0.0, 2.0])).tolist()
    [0.0, 2.0]
    """
    return build.select(x > 0, x, f.expm1(_below(x)) * alpha)


@operator(to=("", "nn.functional"), method=False, inplace=True, flag=True)
def selu(x: Tensor) -> Any:
    """elu scaled so that layers keep mean 0 and variance 1.

    >>> import monograph as mg
    >>> mg.selu(mg.tensor(0.0)).item()
    0.0
    """
    return elu(x, _SELU_ALPHA) * _SELU_SCALE


@function(to=("", "nn.functional"), inplace=True)
def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """x, or alpha · (exp(x / alpha) - 1) below zero.

    >>> import monograph as mg
    >>> mg.celu(mg.tensor([0.0, 2.0]), 0.5).tolist()
    [0.0, 2.0]
    """
    if alpha == 0:
        raise OperandError("celu: alpha cannot be 0")
    return smooth_below(input, alpha, inplace)  # type: ignore[no-any-return]


@operator(to=None, method=False, flag=True, name="celu")
def smooth_below(x: Tensor, alpha: Scalar) -> Any:
    """celu, whose alpha is not 0."""
    return build.select(x > 0, x, f.expm1(_below(x) / alpha) * alpha)


@operator(to="nn.functional", method=False, flag=True)
def mish(x: Tensor) -> Any:
    """x · tanh(softplus(x)).

    >>> import monograph as mg
    >>> mg.nn.functional.mish(mg.tensor(0.0)).item()
    0.0
    """
    return x * f.tanh(softplus(x))


@operator(to="nn.functional", method=False)
def softplus(x: Tensor, beta: Scalar = 1.0, threshold: Scalar = 20.0) -> Any:
    """log(1 + exp(beta · x)) / beta; x where beta · x is above the threshold.

    >>> import monograph as mg
    >>> round(mg.nn.functional.softplus(mg.tensor(0.0)).item(), 4)
    0.6931
    """
    scaled = x * beta
    far = scaled > threshold
    near = f.log1p(f.exp(build.select(far, build.const(0, x.dtype), scaled)))
    return build.select(far, x, near / beta)


@operator(to="nn.functional", method=False, name="logsigmoid")
def logsigmoid(x: Tensor) -> Any:
    """log(sigmoid(x)), exact far below zero.

    >>> import monograph as mg
    >>> mg.nn.functional.logsigmoid(mg.tensor(-100.0)).item()
    -100.0
    """
    return f.minimum(x, 0.0) - f.log1p(f.exp(-f.abs(x)))


@logsigmoid.derivative
def _(g: Any, y: Any, x: Any) -> Any:
    return (g * sigmoid(-x),)  # smooth at 0, where the definition has corners


@operator(to="nn.functional", method=False)
def softsign(x: Tensor) -> Any:
    """x / (1 + |x|).

    >>> import monograph as mg
    >>> mg.nn.functional.softsign(mg.tensor(1.0)).item()
    0.5
    """
    return x / (f.abs(x) + 1)


softsign.operator.saves = {"x": ("x",)}


@operator(to="nn.functional", method=False)
def tanhshrink(x: Tensor) -> Any:
    """x - tanh(x).

    >>> import monograph as mg
    >>> mg.nn.functional.tanhshrink(mg.tensor(0.0)).item()
    0.0
    """
    return x - f.tanh(floating(x))


tanhshrink.operator.saves = {"x": ("tanh",)}  # which nobody sees


def _limited(x: Any, low: Any, high: Any) -> Any:
    """x within [low, high]; no derivative passes at the limits."""
    low, high = build.as_node(low, x.dtype), build.as_node(high, x.dtype)
    return build.select(x <= low, low, build.select(x >= high, high, x))


@function(to="nn.functional", inplace=True)
def hardtanh(
    input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False
) -> Tensor:
    """x limited to [min_val, max_val].

    >>> import monograph as mg
    >>> mg.nn.functional.hardtanh(mg.tensor([-2.0, 0.5, 2.0])).tolist()
    [-1.0, 0.5, 1.0]
    """
    if min_val > max_val:
        raise ValueError(f"hardtanh: min_val {min_val} is greater than max_val {max_val}")
    return limit(input, min_val, max_val, inplace)  # type: ignore[no-any-return]


@operator(to=None, method=False, flag=True, name="hardtanh")
def limit(x: Tensor, min_val: Scalar, max_val: Scalar) -> Any:
    """hardtanh of limits that are in order."""
    if x.dtype.kind is Kind.BOOL:
        raise ValueError("hardtanh takes numbers, got bool")
    return _limited(x, min_val, max_val)


@operator(to="nn.functional", method=False, flag=True)
def relu6(x: Tensor) -> Any:
    """x limited to [0, 6].

    >>> import monograph as mg
    >>> mg.nn.functional.relu6(mg.tensor([-1.0, 7.0])).tolist()
    [0.0, 6.0]
    """
    if x.dtype.kind is Kind.BOOL:
        raise ValueError("relu6 takes numbers, got bool")
    zero = build.const(0, x.dtype)
    inner = build.select(x < 0, zero, build.apply("detach", x) if x.dtype.is_smooth else x)
    return build.select(x <= 0, inner, _limited(x, 0, 6))  # -0.0 stays what it is


@operator(to="nn.functional", method=False, flag=True)
def hardsigmoid(x: Tensor) -> Any:
    """(x + 3) / 6 limited to [0, 1].

    >>> import monograph as mg
    >>> mg.nn.functional.hardsigmoid(mg.tensor([-3.0, 0.0, 3.0])).tolist()
    [0.0, 0.5, 1.0]
    """
    return _limited(x + 3.0, 0, 6) / 6.0


@operator(to="nn.functional", method=False, flag=True)
def hardswish(x: Tensor) -> Any:
    """x · hardsigmoid(x).

    >>> import monograph as mg
    >>> mg.nn.functional.hardswish(mg.tensor([-3.0, 3.0])).tolist()
    [-0.0, 3.0]
    """
    return x * _limited(x + 3.0, 0, 6) / 6.0


@operator(to=("", "nn.functional"), name="hardshrink")
def hardshrink(x: Tensor, lambd: Scalar = 0.5) -> Any:
    """x, or 0 within [-lambd, lambd].

    >>> import monograph as mg
    >>> mg.hardshrink(mg.tensor([-1.0, 0.2])).tolist()
    [-1.0, 0.0]
    """
    return build.select(f.abs(x) <= lambd, build.const(0, x.dtype), x)


@function(to="nn.functional")
def softshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """x moved towards 0 by lambd, and 0 within [-lambd, lambd].

    >>> import monograph as mg
    >>> mg.nn.functional.softshrink(mg.tensor([-1.0, 0.2])).tolist()
    [-0.5, 0.0]
    """
    if lambd < 0:
        raise OperandError(f"softshrink: lambd must not be negative, got {lambd}")
    return shrink(input, lambd)  # type: ignore[no-any-return]


@operator(to=None, method=False, name="softshrink")
def shrink(x: Tensor, lambd: Scalar) -> Any:
    """softshrink by a number that is not negative."""
    lambd = build.as_node(lambd, x.dtype)  # arithmetic of numbers alone would be in float32
    nothing = build.select(f.ne(x, x), build.apply("detach", x), build.const(0.0, x.dtype))
    inner = build.select(x < -lambd, x + lambd, nothing)
    return build.select(x > lambd, x - lambd, inner)


@operator(to=("", "nn.functional"), method=False, inplace=ANYWHERE, flag=True)
def threshold(x: Tensor, threshold: Scalar, value: Scalar) -> Any:
    """x, or `value` where x is not above the threshold.

    >>> import monograph as mg
    >>> mg.threshold(mg.tensor([0.5, 2.0]), 1.0, -1.0).tolist()
    [-1.0, 2.0]
    """
    return build.select(x <= threshold, build.as_node(value, x.dtype), x)


@operator(to="nn.functional", method=False)
def glu(x: Tensor, dim: int = -1) -> Any:
    """The first half along dim times the sigmoid of the second.

    >>> import monograph as mg
    >>> mg.nn.functional.glu(mg.tensor([3.0, 0.0])).tolist()
    [1.5]
    """
    if x.ndim == 0:
        raise ValueError("glu does not take a tensor without axes")
    k = axis_of(x, dim)
    if x.shape[k] % 2:
        raise ValueError(f"the size {x.shape[k]} of axis {k} must be even")
    half = tuple([n // 2 if j == k else n for j, n in enumerate(x.shape)])
    where: list[Any] = list(coordinates(half))
    first = build.reindex(x, half, where)
    where[k] = where[k] + half[k]
    return first * sigmoid(build.reindex(x, half, where))


@operator(to=("", "nn.functional"))
def prelu(x: Tensor, weight: Tensor) -> Any:
    """x, or weight · x below zero; one weight, or one a channel (axis 1).

    >>> import monograph as mg
    >>> mg.prelu(mg.tensor([-2.0, 2.0]), mg.tensor([0.5])).tolist()
    [-1.0, 2.0]
    """
    if weight.ndim > 1:
        raise ValueError(f"the weight must have at most one axis, got {list(weight.shape)}")
    if weight.dtype is not x.dtype:
        raise ValueError(f"input and weight differ: {x.dtype.name} and {weight.dtype.name}")
    if weight.size != 1:
        channels = x.shape[1] if x.ndim > 1 else 1
        if x.ndim == 0 or weight.size != channels:
            raise ValueError(
                f"{weight.size} weights do not fit the {channels} channels of {list(x.shape)}"
            )
        weight = build.reshape(weight, (channels, *[1] * (x.ndim - 2)))
    else:
        weight = build.reshape(weight, ())
    return build.select(x > 0, x, x * weight)


@function(to=("", "nn.functional"), inplace=True)
def rrelu(
    input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False,
    inplace: bool = False,
) -> Tensor:  # fmt: skip
    """x, or below zero x times a slope: drawn from [lower, upper] in training, else their mean.

    >>> import monograph as mg
    >>> mg.rrelu(mg.tensor([-1.0, 1.0]), 0.25, 0.75).tolist()
    [-0.5, 1.0]
    """
    if lower > upper:
        raise OperandError(f"rrelu: lower {lower} must not be greater than upper {upper}")
    if training:
        made = drawn_slope(input, lower, upper, *default_generator.draw())
    else:
        made = leaky_relu(input, (lower + upper) / 2)
    return over(input, made, "rrelu") if inplace else made  # type: ignore[no-any-return]


@operator(to=None, method=False, name="rrelu")
def drawn_slope(x: Tensor, lower: Scalar, upper: Scalar, seed: Scalar, offset: Scalar) -> Any:
    """rrelu whose slopes are named by (seed, offset)."""
    slope = unit(x.shape, seed, offset, dtypes.float32) * (upper - lower) + lower
    return build.select(x > 0, x, x * build.cast(slope, x.dtype))
