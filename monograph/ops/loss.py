"""Losses that compare tensors element by element.

`size_average` and `reduce` are PyTorch's old way to say `reduction`; they win where they are given.
"""

from __future__ import annotations

import math
from typing import Any

from ..errors import OperandError
from ..ir import build
from ..ir.check import check
from ..ir.extent import real
from ..lines import warn
from ..tensor import Tensor
from .activation import sigmoid, softplus
from .define import Scalar, function, operator
from .math import floating
from .promotion import require_floats
from .reduce import axes_of

f = build.functions
_REDUCTIONS = ("none", "mean", "sum")


def reduction_of(reduction: str, size_average: Any = None, reduce: Any = None) -> str:
    """The reduction that is meant, also in the old spelling."""
    if size_average is not None or reduce is not None:
        if reduce is not None and not reduce:
            return "none"
        return "sum" if size_average is not None and not size_average else "mean"
    if reduction not in _REDUCTIONS:
        raise ValueError(f"reduction must be 'none', 'mean' or 'sum', got {reduction!r}")
    return reduction


def reduced(x: Any, reduction: str, size_average: Any = None, reduce: Any = None) -> Any:
    """The loss per element, its sum, or its mean."""
    chosen = reduction_of(reduction, size_average, reduce)
    if chosen == "none":
        return x
    total = build.reduce("add", x, axes_of(x, None))
    if chosen == "sum":
        return total
    return total / real(x.size) if x.size else build.full((), float("nan"), x.dtype)


def _weighed(losses: Any, weight: Any, reduction: str, size_average: Any, reduce: Any) -> Any:
    """Losses times their weights; the mean is then by the weights."""
    if weight is None:
        return reduced(losses, reduction, size_average, reduce)
    chosen = reduction_of(reduction, size_average, reduce)
    if weight.shape != losses.shape:
        raise ValueError(f"the weight {list(weight.shape)} must be as large as {losses.shape}")
    losses = losses * weight
    if chosen != "mean":
        return reduced(losses, chosen)
    total = build.reduce("add", losses, axes_of(losses, None))
    return total / build.reduce("add", weight, axes_of(weight, None))


def _expect_same_size(name: str, input: Any, target: Any) -> None:
    """Warn of a target that is broadcast: mostly a mistake, [N, 1] beside [N]."""
    if isinstance(input, Tensor) and isinstance(target, Tensor) and input._sizes != target._sizes:
        warn(
            f"{name}: the target size {target.size()} is different from the input size "
            f"{input.size()}: they are broadcast, which is likely to lead to wrong results"
        )


@function(to="nn.functional")
def mse_loss(
    input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None,
    reduction: str = "mean", weight: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """The squared difference.

    >>> import monograph as mg
    >>> mg.nn.functional.mse_loss(mg.tensor([1.0, 3.0]), mg.zeros(2)).item()
    5.0
    """
    _expect_same_size("mse_loss", input, target)
    chosen = reduction_of(reduction, size_average, reduce)
    return squared(input, target, chosen, weight)  # type: ignore[no-any-return]


@operator(to=None, method=False, name="mse_loss")
def squared(x: Tensor, target: Tensor, reduction: str, weight: Tensor | None) -> Any:
    """mse_loss in the reductions that all losses have."""
    difference = x - target
    require_floats(difference)
    return _weighed(difference * difference, weight, reduction, None, None)


@function(to="nn.functional")
def l1_loss(
    input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None,
    reduction: str = "mean", weight: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """The absolute difference.

    >>> import monograph as mg
    >>> mg.nn.functional.l1_loss(mg.tensor([1.0, -3.0]), mg.zeros(2)).item()
    2.0
    """
    _expect_same_size("l1_loss", input, target)
    chosen = reduction_of(reduction, size_average, reduce)
    return absolute(input, target, chosen, weight)  # type: ignore[no-any-return]


@operator(to=None, method=False, name="l1_loss")
def absolute(x: Tensor, target: Tensor, reduction: str, weight: Tensor | None) -> Any:
    """l1_loss in the reductions that all losses have."""
    return _weighed(f.abs(x - target), weight, reduction, None, None)


absolute.operator.saves = {"*": ("difference",)}  # which nobody sees


@function(to="nn.functional")
def smooth_l1_loss(
    input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None,
    reduction: str = "mean", beta: float = 1.0,
) -> Tensor:  # fmt: skip
    """The absolute difference less beta / 2, and a parabola where it is below beta.

    >>> import monograph as mg
    >>> mg.nn.functional.smooth_l1_loss(mg.tensor([1.0, 3.0]), mg.zeros(2)).item()
    1.5
    """
    if beta < 0:
        raise OperandError(f"smooth_l1_loss: beta must not be negative, got {beta}")
    if beta:
        _expect_same_size("smooth_l1_loss", input, target)
    chosen = reduction_of(reduction, size_average, reduce)
    if beta == 0:
        return l1_loss(input, target, reduction=chosen)  # type: ignore[no-any-return]
    return smooth_l1(input, target, chosen, beta)  # type: ignore[no-any-return]


@operator(to=None, method=False, name="smooth_l1_loss")
def smooth_l1(x: Tensor, target: Tensor, reduction: str, beta: Scalar) -> Any:
    """smooth_l1_loss with beta above 0."""
    difference = x - target
    beta = build.as_node(beta, difference.dtype)
    size = f.abs(difference)
    near = difference * difference * 0.5 / beta
    return reduced(build.select(size < beta, near, size - beta * 0.5), reduction)


@function(to="nn.functional")
def huber_loss(
    input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0,
    weight: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """Half the squared difference, and beyond delta a line.

    >>> import monograph as mg
    >>> mg.nn.functional.huber_loss(mg.tensor([1.0, 3.0]), mg.zeros(2)).item()
    1.5
    """
    if delta <= 0:
        raise OperandError(f"huber_loss: delta must be positive, got {delta}")
    _expect_same_size("huber_loss", input, target)
    return huber(input, target, reduction, delta, weight)  # type: ignore[no-any-return]


@operator(to=None, method=False, name="huber_loss")
def huber(
    x: Tensor, target: Tensor, reduction: str, delta: Scalar, weight: Tensor | None = None
) -> Any:
    """huber_loss with delta above 0."""
    difference = x - target
    delta = build.as_node(delta, difference.dtype)
    size = f.abs(difference)
    near = difference * difference * 0.5
    losses = build.select(size <= delta, near, (size - delta * 0.5) * delta)
    losses = build.cast(losses, x.dtype) if x.dtype.is_smooth else losses
    return _weighed(losses, weight, reduction, None, None)


@operator(to="nn.functional", method=False)
def binary_cross_entropy(
    x: Tensor, target: Tensor, weight: Tensor | None = None, size_average: bool | None = None,
    reduce: bool | None = None, reduction: str = "mean",
) -> Any:  # fmt: skip
    """-log of the probability x of the target, which is 1 or 0 or between.

    >>> import monograph as mg
    >>> F = mg.nn.functional
    >>> round(F.binary_cross_entropy(mg.tensor([0.5]), mg.tensor([1.0])).item(), 4)
    0.6931
    """
    if x.shape != target.shape:
        raise ValueError(f"input {list(x.shape)} and target {list(target.shape)} differ in size")
    if target.dtype is not x.dtype:
        raise ValueError(f"the target must be {x.dtype.name} as the input, got {target.dtype.name}")
    require_floats(x)
    outside = build.elementwise("not", build.elementwise("and", x >= 0, x <= 1))
    check(outside, outside, "all elements of the input must be between 0 and 1", "ValueOutOfRange")
    losses = bounded_entropy(x, target)
    if weight is not None:
        losses = build.cast(losses * weight, x.dtype)
    return reduced(losses, reduction, size_average, reduce)


@operator(to=None, method=False)
def bounded_entropy(x: Tensor, target: Tensor) -> Any:
    """-(t log x + (1 - t) log(1 - x)), where no logarithm is below -100."""
    yes, no = f.maximum(f.log(x), -100.0), f.maximum(f.log1p(-x), -100.0)
    return (target - 1.0) * no - target * yes


@bounded_entropy.derivative
def _(g: Any, y: Any, x: Any, target: Any) -> Any:
    # As PyTorch: finite at 0 and 1, where the logarithms are cut off.
    slope = g * (x - target) / f.maximum((1.0 - x) * x, 1e-12)
    by_target = g * (f.maximum(f.log1p(-x), -100.0) - f.maximum(f.log(x), -100.0))
    return (slope, by_target)


@operator(to="nn.functional", method=False)
def binary_cross_entropy_with_logits(
    x: Tensor, target: Tensor, weight: Tensor | None = None, size_average: bool | None = None,
    reduce: bool | None = None, reduction: str = "mean", pos_weight: Tensor | None = None,
) -> Any:  # fmt: skip
    """binary_cross_entropy of sigmoid(x), exact for all x.

    >>> import monograph as mg
    >>> F = mg.nn.functional
    >>> round(F.binary_cross_entropy_with_logits(mg.zeros(1), mg.ones(1)).item(), 4)
    0.6931
    """
    if x.shape != target.shape:
        raise ValueError(f"input {list(x.shape)} and target {list(target.shape)} differ in size")
    if not target.dtype.is_smooth:
        raise ValueError(f"the target must be floating point, it is {target.dtype.name}")
    # (1 - t) x + (1 + (p - 1) t) log(1 + exp(-x))
    losses = (1.0 - target) * x + _entropy_weight(target, pos_weight) * _log_term(x)
    if weight is not None:
        losses = losses * weight
    return reduced(losses, reduction, size_average, reduce)


def _entropy_weight(target: Any, pos_weight: Any) -> Any:
    return 1.0 if pos_weight is None else (pos_weight - 1.0) * target + 1.0


@operator(to=None, method=False)
def minus_log_sigmoid(x: Tensor) -> Any:
    """log(1 + exp(-x))."""
    return f.maximum(-x, 0.0) + f.log1p(f.exp(-f.abs(x)))


@minus_log_sigmoid.derivative
def _(g: Any, y: Any, x: Any) -> Any:
    return (-g * sigmoid(-x),)  # smooth at 0


_log_term = minus_log_sigmoid


@function(to="nn.functional")
def kl_div(
    input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None,
    reduction: str = "mean", log_target: bool = False,
) -> Tensor:  # fmt: skip
    """target · (log target - x): how far log-probabilities x are from the target's.

    >>> import monograph as mg
    >>> mg.nn.functional.kl_div(mg.zeros(2), mg.ones(2), reduction="batchmean").item()
    0.0
    """
    if reduction == "batchmean" and size_average is None and reduce is None:
        total = divergence(input, target, "sum", log_target)
        return total / input.shape[0] if input.ndim else total  # type: ignore[no-any-return]
    chosen = reduction_of(reduction, size_average, reduce)
    return divergence(input, target, chosen, log_target)  # type: ignore[no-any-return]


@operator(to=None, method=False, name="kl_div")
def divergence(x: Tensor, target: Tensor, reduction: str, log_target: bool) -> Any:
    """kl_div in the reductions that all losses have."""
    if log_target:
        return reduced(f.exp(target) * (target - x), reduction)
    return reduced(times_log(target, target) - target * x, reduction)


@operator(to=None, method=False)
def times_log(x: Tensor, other: Tensor) -> Any:
    """x · log(other), and 0 where x is 0."""
    return build.select(f.eq(x, 0.0), 0.0, x * f.log(build.select(f.eq(x, 0.0), 1.0, other)))


@operator(to="nn.functional", method=False)
def poisson_nll_loss(
    x: Tensor, target: Tensor, log_input: bool = True, full: bool = False,
    size_average: bool | None = None, eps: Scalar = 1e-8, reduce: bool | None = None,
    reduction: str = "mean",
) -> Any:  # fmt: skip
    """-log of the probability of a count under a Poisson distribution of rate x, or exp(x).

    >>> import monograph as mg
    >>> mg.nn.functional.poisson_nll_loss(mg.zeros(2), mg.ones(2)).item()
    1.0
    """
    if log_input:
        losses = f.exp(floating(x)) - target * x
    else:
        losses = x - target * f.log(x + eps)
    if full:  # Stirling's formula for log(target!)
        above = target > 1
        safe = floating(build.select(above, target, 1))
        term = safe * f.log(safe) - safe + f.log(safe * (2.0 * math.pi)) * 0.5
        losses = losses + build.select(above, term, 0.0)
    return reduced(losses, reduction, size_average, reduce)


@function(to="nn.functional")
def gaussian_nll_loss(
    input: Tensor, target: Tensor, var: Any, full: bool = False, eps: float = 1e-6,
    reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """-log of the density of the target under a normal distribution of mean x and variance var.

    >>> import monograph as mg
    >>> mg.nn.functional.gaussian_nll_loss(mg.zeros(2), mg.ones(2), mg.ones(2)).item()
    0.5
    """
    if not isinstance(var, Tensor):
        if var < 0:
            raise ValueError(f"gaussian_nll_loss: the variance must not be negative, got {var}")
    elif tuple(var.shape) != tuple(input.shape):
        if tuple(input.shape[:-1]) == tuple(var.shape):
            var = var.unsqueeze(-1)  # type: ignore[attr-defined]
        elif input.ndim != var.ndim or sum(
            [a != b for a, b in zip(input.shape, var.shape, strict=True)]
        ) != 1 or 1 not in var.shape:  # fmt: skip
            raise ValueError(
                f"gaussian_nll_loss: the variance {list(var.shape)} does not fit "
                f"the input {list(input.shape)}"
            )
    if reduction not in _REDUCTIONS:
        raise ValueError(f"{reduction} is not valid: reduction is 'none', 'mean' or 'sum'")
    return gaussian(input, target, var, full, eps, reduction)  # type: ignore[no-any-return]


@operator(to=None, method=False, name="gaussian_nll_loss")
def gaussian(
    x: Tensor, target: Tensor, var: Tensor | Scalar, full: bool, eps: Scalar, reduction: str
) -> Any:
    """gaussian_nll_loss of a variance that broadcasts."""
    var = build.as_node(var, x.dtype)
    low = var < 0
    check(low, low, "the variance has a negative element", "ValueOutOfRange")
    # The variance is held above eps, and its derivative is as if it were not.
    spread = var + build.apply("detach", build.select(var < eps, build.as_node(eps, x.dtype) - var,
                                                      build.const(0, x.dtype)))  # fmt: skip
    difference = x - target
    losses = (f.log(spread) + difference * difference / spread) * 0.5
    if full:
        losses = losses + 0.5 * math.log(2 * math.pi)
    return reduced(losses, reduction)


@operator(to=("", "nn.functional"), method=False)
def hinge_embedding_loss(
    x: Tensor, target: Tensor, margin: Scalar = 1.0, size_average: bool | None = None,
    reduce: bool | None = None, reduction: str = "mean",
) -> Any:  # fmt: skip
    """x where the target is 1, max(0, margin - x) where it is -1.

    >>> import monograph as mg
    >>> F = mg.nn.functional
    >>> F.hinge_embedding_loss(mg.tensor([2.0, 0.5]), mg.tensor([1.0, -1.0])).item()
    1.25
    """
    zero = build.const(0, x.dtype)
    apart = build.select(x < margin, margin - x, zero)
    losses = build.select(f.ne(target, 1), apart, zero) + build.select(f.ne(target, -1), x, zero)
    return reduced(losses, reduction, size_average, reduce)


@operator(to=("", "nn.functional"), method=False)
def margin_ranking_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: Scalar = 0.0,
    size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean",
) -> Any:  # fmt: skip
    """max(0, -target · (input1 - input2) + margin): target says which is to be larger.

    >>> import monograph as mg
    >>> F = mg.nn.functional
    >>> F.margin_ranking_loss(mg.tensor([1.0]), mg.tensor([3.0]), mg.tensor([1.0])).item()
    2.0
    """
    if not input1.ndim == input2.ndim == target.ndim:
        raise ValueError(
            f"all tensors need as many axes: {list(input1.shape)}, {list(input2.shape)}, "
            f"{list(target.shape)}"
        )
    gap = -target * (input1 - input2) + margin
    losses = build.select(gap < 0, build.const(0, gap.dtype), gap)
    return reduced(losses, reduction, size_average, reduce)


@operator(to="nn.functional", method=False)
def soft_margin_loss(
    x: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None,
    reduction: str = "mean",
) -> Any:  # fmt: skip
    """log(1 + exp(-target · x)) for targets of 1 and -1.

    >>> import monograph as mg
    >>> round(mg.nn.functional.soft_margin_loss(mg.zeros(1), mg.ones(1)).item(), 4)
    0.6931
    """
    require_floats(x)
    return reduced(softplus(-target * x, 1.0, 40.0), reduction, size_average, reduce)
