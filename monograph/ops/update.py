"""Parameter updates: a whole group of an optimiser's parameters in one operator.

What is the same for all parameters (rates, corrections) is worked out in float64, as PyTorch does
in Python, and then rounded to each parameter's dtype: 1 - 0.999 has only 4 digits in float32.
"""

from __future__ import annotations

from typing import Any

from ..ir import build
from ..ir.dtypes import float32, float64
from ..tensor import Tensor
from .define import Scalar, Tensors, operator

f = build.functions


def _exact(function: str, *operands: Any) -> Any:
    """A scalar function in float64."""
    return build.elementwise(function, *operands, dtype=float64)


def _decayed(p: Any, g: Any, keep: Any, weight_decay: Any, decoupled: bool) -> tuple[Any, Any]:
    """Parameter and gradient with the decay: in the parameter if it is decoupled."""
    if decoupled:
        return p * build.cast(keep, p.dtype), g
    return p, g + p * weight_decay


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


def _bias(beta: Any, step: Any) -> Any:
    """What a running mean that began at zero lacks: 1 - beta ** step."""
    return _exact("sub", 1.0, _exact("pow", beta, step))


def _gradient(p: Any, g: Any, weight_decay: Any, maximize: bool) -> Any:
    """The gradient to go down, with the penalty's."""
    return (-g if maximize else g) + p * weight_decay


def _moments(
    mean: Any, square: Any, g: Any, betas: tuple[Any, Any], shares: tuple[Any, Any]
) -> tuple[Any, Any]:
    """Running means of the gradient and of its square."""
    share1, share2 = [build.cast(share, g.dtype) for share in shares]
    return mean * betas[0] + g * share1, square * betas[1] + g * g * share2


def _adam_steps(
    parameters: Any, gradients: Any, means: Any, squares: Any, lr: Any, betas: tuple[Any, Any],
    weight_decay: Any, decoupled: bool, maximize: bool,
) -> list[tuple[Any, Any, Any, Any]]:  # fmt: skip
    """(parameter, gradient, mean, square) of each: decayed, and the running means brought on."""
    shares = _exact("sub", 1.0, betas[0]), _exact("sub", 1.0, betas[1])
    keep = _exact("sub", 1.0, _exact("mul", lr, weight_decay))
    steps = []
    for n, p in enumerate(parameters):
        g = -gradients[n] if maximize else gradients[n]
        p, g = _decayed(p, g, keep, weight_decay, decoupled)
        steps.append((p, g, *_moments(means[n], squares[n], g, betas, shares)))
    return steps


@operator(to=None, method=False, smooth=False)
def adam_update(
    parameters: Tensors, gradients: Tensors, means: Tensors, squares: Tensors, largest: Tensors,
    step: Tensor, lr: Scalar, beta1: Scalar, beta2: Scalar, eps: Scalar, weight_decay: Scalar,
    decoupled: bool = False, maximize: bool = False,
) -> Any:  # fmt: skip
    """(parameters…, means…, squares…, largest…, step) after one step of Adam.

    AdamW if decoupled; with the `largest` squares so far, AMSGrad.
    """
    step = step + 1.0
    steps = _adam_steps(
        parameters, gradients, means, squares, lr, (beta1, beta2), weight_decay, decoupled, maximize
    )
    correction2 = _exact("sqrt", _bias(beta2, step))
    rate = _exact("div", lr, _bias(beta1, step))
    updated, first, second, third = [], [], [], []
    for n, (p, _, mean, square) in enumerate(steps):
        first.append(mean)
        second.append(square)
        if largest:
            square = f.maximum(largest[n], square)
            third.append(square)
        spread = f.sqrt(square) / build.cast(correction2, p.dtype) + eps
        updated.append(p - mean * build.cast(rate, p.dtype) / spread)
    return (*updated, *first, *second, *third, step)


@operator(to=None, method=False, smooth=False)
def adamax_update(
    parameters: Tensors, gradients: Tensors, means: Tensors, bounds: Tensors, step: Tensor,
    lr: Scalar, beta1: Scalar, beta2: Scalar, eps: Scalar, weight_decay: Scalar,
    maximize: bool = False,
) -> Any:  # fmt: skip
    """(parameters…, means…, bounds…, step): Adam with the largest gradient in place of squares."""
    step = step + 1.0
    share = _exact("sub", 1.0, beta1)
    rate = _exact("div", lr, _bias(beta1, step))
    updated, first, second = [], [], []
    for n, p in enumerate(parameters):
        g = _gradient(p, gradients[n], weight_decay, maximize)
        mean = means[n] * beta1 + g * build.cast(share, p.dtype)
        bound = f.maximum(bounds[n] * beta2, f.abs(g) + eps)
        first.append(mean)
        second.append(bound)
        updated.append(p - mean / bound * build.cast(rate, p.dtype))
    return (*updated, *first, *second, step)


@operator(to=None, method=False, smooth=False)
def nadam_update(
    parameters: Tensors, gradients: Tensors, means: Tensors, squares: Tensors, step: Tensor,
    product: Tensor, lr: Scalar, beta1: Scalar, beta2: Scalar, eps: Scalar, weight_decay: Scalar,
    momentum_decay: Scalar, decoupled: bool = False, maximize: bool = False,
) -> Any:  # fmt: skip
    """(parameters…, means…, squares…, step, product): Adam with Nesterov's momentum.

    `product` is that of the momenta of all steps so far.
    """
    step = step + 1.0
    momentum, following = (
        _momentum(beta1, step, momentum_decay),
        _momentum(beta1, step + 1.0, momentum_decay),
    )
    product = product * build.cast(momentum, float32)
    now = _exact("sub", 1.0, _exact("mul", product, 1.0))
    after = _exact("sub", 1.0, _exact("mul", product, following))
    own = _exact("div", _exact("mul", lr, _exact("sub", 1.0, momentum)), now)
    carried = _exact("div", _exact("mul", lr, following), after)
    correction = _bias(beta2, step)
    steps = _adam_steps(
        parameters, gradients, means, squares, lr, (beta1, beta2), weight_decay, decoupled, maximize
    )
    updated, first, second = [], [], []
    for p, g, mean, square in steps:
        first.append(mean)
        second.append(square)
        spread = f.sqrt(square / build.cast(correction, p.dtype)) + eps
        p = p - g * build.cast(own, p.dtype) / spread
        updated.append(p - mean * build.cast(carried, p.dtype) / spread)
    return (*updated, *first, *second, step, product)


def _momentum(beta: Any, step: Any, decay: Any) -> Any:
    """NAdam's momentum at a step: it grows from half of beta to beta."""
    power = _exact("pow", 0.96, _exact("mul", step, decay))
    return _exact("mul", beta, _exact("sub", 1.0, _exact("mul", 0.5, power)))


@operator(to=None, method=False, smooth=False)
def radam_update(
    parameters: Tensors, gradients: Tensors, means: Tensors, squares: Tensors, step: Tensor,
    lr: Scalar, beta1: Scalar, beta2: Scalar, eps: Scalar, weight_decay: Scalar,
    decoupled: bool = False, maximize: bool = False,
) -> Any:  # fmt: skip
    """(parameters…, means…, squares…, step): Adam once the variance of its squares is known."""
    step = step + 1.0
    correction1, correction2 = _bias(beta1, step), _bias(beta2, step)
    known, rectified = _rectified(beta2, step, correction2)
    steps = _adam_steps(
        parameters, gradients, means, squares, lr, (beta1, beta2), weight_decay, decoupled, maximize
    )
    updated, first, second = [], [], []
    for p, _, mean, square in steps:
        first.append(mean)
        second.append(square)
        change = mean / build.cast(correction1, p.dtype) * lr
        scaled = change * build.cast(rectified, p.dtype) / (f.sqrt(square) + eps)
        updated.append(p - f.select(known, scaled, change))
    return (*updated, *first, *second, step)


def _rectified(beta2: Any, step: Any, correction2: Any) -> tuple[Any, Any]:
    """Whether the average is long enough to have a variance; √correction2 times its factor."""
    longest = _exact("sub", _exact("div", 2.0, _exact("sub", 1.0, beta2)), 1.0)
    gone = _exact("mul", _exact("mul", 2.0, step), _exact("pow", beta2, step))
    length = _exact("sub", longest, _exact("div", gone, correction2))
    known = f.lt(5.0, length)
    over = _exact("mul", _exact("mul", _exact("sub", length, 4.0), _exact("sub", length, 2.0)),
                  longest)  # fmt: skip
    under = _exact("mul", _exact("mul", _exact("sub", longest, 4.0), _exact("sub", longest, 2.0)),
                   length)  # fmt: skip
    factor = _exact("sqrt", _exact("abs", _exact("div", over, under)))  # not used where negative
    return known, _exact("mul", _exact("sqrt", correction2), factor)


@operator(to=None, method=False, smooth=False)
def rmsprop_update(
    parameters: Tensors, gradients: Tensors, squares: Tensors, buffers: Tensors, means: Tensors,
    step: Tensor, lr: Scalar, alpha: Scalar, eps: Scalar, weight_decay: Scalar, momentum: Scalar,
    maximize: bool = False,
) -> Any:  # fmt: skip
    """(parameters…, squares…, momentum buffers…, means…, step) after one step of RMSprop.

    With `means`, gradients are divided by their standard deviation.
    """
    share = _exact("sub", 1.0, alpha)
    updated, second, moved, first = [], [], [], []
    for n, p in enumerate(parameters):
        g = _gradient(p, gradients[n], weight_decay, maximize)
        rest = build.cast(share, p.dtype)
        square = squares[n] * alpha + g * g * rest
        second.append(square)
        if means:
            mean = means[n] + (g - means[n]) * rest
            first.append(mean)
            square = square - mean * mean
        change = g / (f.sqrt(square) + eps)
        if buffers:
            change = buffers[n] * momentum + change
            moved.append(change)
        updated.append(p - change * lr)
    return (*updated, *second, *moved, *first, step + 1.0)


@operator(to=None, method=False, smooth=False)
def adagrad_update(
    parameters: Tensors, gradients: Tensors, sums: Tensors, step: Tensor, lr: Scalar,
    lr_decay: Scalar, eps: Scalar, weight_decay: Scalar, maximize: bool = False,
) -> Any:  # fmt: skip
    """(parameters…, sums…, step): steps scaled by the sum of all squares so far."""
    slower = _exact("add", 1.0, _exact("mul", step, lr_decay))
    rate = _exact("div", lr, slower)
    updated, total = [], []
    for n, p in enumerate(parameters):
        g = _gradient(p, gradients[n], weight_decay, maximize)
        total.append(sums[n] + g * g)
        updated.append(p - g * build.cast(rate, p.dtype) / (f.sqrt(total[-1]) + eps))
    return (*updated, *total, step + 1.0)


@operator(to=None, method=False, smooth=False)
def adadelta_update(
    parameters: Tensors, gradients: Tensors, squares: Tensors, changes: Tensors, step: Tensor,
    lr: Scalar, rho: Scalar, eps: Scalar, weight_decay: Scalar, maximize: bool = False,
) -> Any:  # fmt: skip
    """(parameters…, squares…, changes…, step): steps as large as the last changes were."""
    share = _exact("sub", 1.0, rho)
    updated, second, moved = [], [], []
    for n, p in enumerate(parameters):
        g = _gradient(p, gradients[n], weight_decay, maximize)
        rest = build.cast(share, p.dtype)
        square = squares[n] * rho + g * g * rest
        change = f.sqrt(changes[n] + eps) / f.sqrt(square + eps) * g
        second.append(square)
        moved.append(changes[n] * rho + change * change * rest)
        updated.append(p - change * lr)
    return (*updated, *second, *moved, step + 1.0)


@operator(to=None, method=False, smooth=False)
def rprop_update(
    parameters: Tensors, gradients: Tensors, before: Tensors, sizes: Tensors, step: Tensor,
    shrink: Scalar, grow: Scalar, least: Scalar, most: Scalar, maximize: bool = False,
) -> Any:  # fmt: skip
    """(parameters…, gradients…, sizes…, step): sizes grow while the gradient keeps its sign."""
    updated, last, sized = [], [], []
    for n, p in enumerate(parameters):
        g = -gradients[n] if maximize else gradients[n]
        kept = g * before[n]
        turned = f.lt(kept, 0.0)
        factor = f.select(f.lt(0.0, kept), sizes[n] * grow, sizes[n])
        size = f.select(turned, sizes[n] * shrink, factor)
        size = f.minimum(f.maximum(size, least), most)
        g = f.select(turned, g * 0.0, g)
        last.append(g)
        sized.append(size)
        updated.append(p - f.sign(g) * size)
    return (*updated, *last, *sized, step + 1.0)


@operator(to=None, method=False, smooth=False)
def asgd_update(
    parameters: Tensors, gradients: Tensors, averages: Tensors, step: Tensor, eta: Tensor,
    mu: Tensor, lr: Scalar, lambd: Scalar, alpha: Scalar, t0: Scalar, weight_decay: Scalar,
    maximize: bool = False,
) -> Any:  # fmt: skip
    """(parameters…, averages…, step, eta, mu): descent whose iterates are averaged after t0."""
    step = step + 1.0
    keep = _exact("sub", 1.0, _exact("mul", lambd, eta))
    updated, averaged = [], []
    for n, p in enumerate(parameters):
        g = _gradient(p, gradients[n], weight_decay, maximize)
        p = p * build.cast(keep, p.dtype) - g * build.cast(eta, p.dtype)
        moved = averages[n] + (p - averages[n]) * build.cast(mu, p.dtype)
        averaged.append(f.select(f.eq(mu, 1.0), p, moved))
        updated.append(p)
    slower = _exact("add", 1.0, _exact("mul", _exact("mul", lambd, lr), step))
    eta = _exact("div", lr, _exact("pow", slower, alpha))
    mu = _exact("div", 1.0, _exact("maximum", _exact("sub", step, t0), 1.0))
    return (*updated, *averaged, step, build.cast(eta, float32), build.cast(mu, float32))
