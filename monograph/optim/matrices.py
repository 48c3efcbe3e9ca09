"""Optimisers that look at weights as matrices: Adafactor and Muon.

Their updates are written with operators: the numbers in them are tensors or settings that are read
again at every run, so a step reads nothing.
"""

from __future__ import annotations

import math
from typing import Any

from ..ir.dtypes import bfloat16, float32
from ..ir.limits import finfo
from ..ops.creation import zeros, zeros_like
from ..ops.shape import full_of
from ..tensor import Tensor
from .optimizer import Group, Optimizer, number


class Adafactor(Optimizer):
    """Steps scaled by squares of gradients, of which a matrix keeps the means of rows and columns.

    >>> import monograph as mg
    >>> p = mg.nn.Parameter([[1.0, 2.0]])
    >>> optimizer = mg.optim.Adafactor([p], lr=0.1)
    >>> (p * p).sum().backward()
    >>> optimizer.step()
    >>> sorted(optimizer.state[p])
    ['col_var', 'row_var', 'step']
    """

    live_settings = (("lr",), ("weight_decay",))

    def __init__(
        self, params: Any, lr: float = 1e-2, beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3), d: float = 1.0, weight_decay: float = 0.0,
        *, foreach: bool | None = None, maximize: bool = False,
    ) -> None:  # fmt: skip
        number(lr, "learning rate")
        if not beta2_decay <= 0:
            raise ValueError(f"beta2_decay should be <= 0 but is: {beta2_decay}")
        if eps[0] is not None and not eps[0] >= 0:
            raise ValueError(f"epsilon1 should be >= 0 but is: {eps[0]}")
        number(eps[1], "epsilon2")
        if not d >= 1:
            raise ValueError(f"Clipping threshold d should be >= 1 but is: {d}")
        number(weight_decay, "weight_decay value")
        defaults = {
            "lr": lr, "beta2_decay": beta2_decay, "eps": eps, "d": d,
            "weight_decay": weight_decay, "foreach": foreach, "maximize": maximize,
        }  # fmt: skip
        super().__init__(params, defaults)

    def _new_state(self, p: Tensor, group: Group) -> dict[str, Any]:
        shape = tuple(p.shape)
        state: dict[str, Any] = {"step": zeros((), dtype=float32)}
        if p.ndim > 1:
            state["row_var"] = zeros(*shape[:-1], 1, dtype=p.dtype)
            state["col_var"] = zeros(*shape[:-2], 1, shape[-1], dtype=p.dtype)
        else:
            state["variance"] = zeros(shape, dtype=p.dtype)
        return state

    def _update(self, group: Group, params: list[Tensor]) -> None:
        for p in params:
            self._step_of(p, group, self._state_of(p, group))

    def _step_of(self, p: Any, group: Group, state: dict[str, Any]) -> None:
        lr, decay = [full_of((), setting, p.dtype) for setting in self._numbers(group)]
        grad = -p.grad if group["maximize"] else p.grad
        least, eps = group["eps"]
        least = finfo(p.dtype).eps if least is None else least
        step = state["step"].add_(1).to(p.dtype)
        share = step ** group["beta2_decay"]
        rate = lr.minimum(step.rsqrt())
        alpha = (p.norm() / math.sqrt(p.numel())).clamp(min=eps) * rate
        if group["weight_decay"] != 0:
            p.mul_(1 - lr * decay)
        estimate = _estimate(grad, share, least, state)
        update = estimate.clamp(min=least * least).rsqrt() * grad
        size = update.norm() / (math.sqrt(update.numel()) * group["d"])
        p.sub_(update * (alpha / size.clamp(min=1.0)))


def _estimate(grad: Any, share: Any, least: float, state: dict[str, Any]) -> Any:
    """The running means of the squares: of a matrix, made of those of its rows and columns."""
    if grad.ndim == 1 or grad.ndim == 0:
        return state["variance"].lerp_(grad * grad, share)
    rows, columns = state["row_var"], state["col_var"]
    rows.lerp_(grad.square().mean(-1, keepdim=True), share)
    columns.lerp_(grad.square().mean(-2, keepdim=True), share)
    return rows @ columns / rows.mean(-2, keepdim=True).clamp(min=least)


class Muon(Optimizer):
    """Momentum whose matrix is made nearly orthogonal before each step; for matrices only.

    >>> import monograph as mg
    >>> p = mg.nn.Parameter(mg.eye(2))
    >>> optimizer = mg.optim.Muon([p], lr=0.1)
    >>> (p * p).sum().backward()
    >>> optimizer.step()
    >>> bool(p[0, 0] < 1)
    True
    """

    live_settings = (("lr",), ("weight_decay",), ("momentum",))

    def __init__(
        self, params: Any, lr: float = 1e-3, weight_decay: float = 0.1, momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (3.4445, -4.775, 2.0315), eps: float = 1e-7,
        ns_steps: int = 5, adjust_lr_fn: str | None = None,
    ) -> None:  # fmt: skip
        number(lr, "learning rate")
        number(momentum, "momentum value")
        number(weight_decay, "weight_decay value")
        if adjust_lr_fn not in (None, "original", "match_rms_adamw"):
            raise ValueError(f"Adjust learning rate function {adjust_lr_fn} is not supported")
        if ns_steps >= 100:
            raise ValueError("Number of steps must be less than 100 for computational efficiency")
        if len(ns_coefficients) != 3:
            raise ValueError("Coefficients must be a tuple of exactly 3 values")
        defaults = {
            "lr": lr, "weight_decay": weight_decay, "momentum": momentum, "nesterov": nesterov,
            "ns_coefficients": ns_coefficients, "eps": eps, "ns_steps": ns_steps,
            "adjust_lr_fn": adjust_lr_fn,
        }  # fmt: skip
        super().__init__(params, defaults)
        for group in self.param_groups:
            for p in group["params"]:
                if p.ndim != 2:
                    raise ValueError(
                        "Muon only supports 2D parameters whereas we found a parameter with size: "
                        f"{p.size()}"
                    )

    def _new_state(self, p: Tensor, group: Group) -> dict[str, Any]:
        return {"momentum_buffer": zeros_like(p)}

    def _update(self, group: Group, params: list[Tensor]) -> None:
        for p in params:
            self._step_of(p, group, self._state_of(p, group)["momentum_buffer"])

    def _step_of(self, p: Any, group: Group, held: Any) -> None:
        numbers = [full_of((), setting, p.dtype) for setting in self._numbers(group)]
        lr, decay, momentum = numbers
        held.lerp_(p.grad, 1 - momentum)
        update = p.grad.lerp(held, momentum) if group["nesterov"] else held
        update = _orthogonal(update, group["ns_coefficients"], group["ns_steps"], group["eps"])
        rows, columns = p.shape
        scale = math.sqrt(max(1, rows / columns))
        if group["adjust_lr_fn"] == "match_rms_adamw":
            scale = 0.2 * math.sqrt(max(rows, columns))
        p.mul_(1 - lr * decay)
        p.sub_(update.to(p.dtype) * (lr * scale))


def _orthogonal(x: Any, coefficients: tuple[float, float, float], steps: int, eps: float) -> Any:
    """A matrix with its singular values near 1, by Newton's and Schulz's iteration in bfloat16."""
    a, b, c = coefficients
    tall = x.shape[0] > x.shape[1]
    made = x.to(bfloat16)
    made = made.mT if tall else made
    made = made / made.norm().clamp(min=eps)
    for _ in range(steps):
        gram = made @ made.mT
        made = made.addmm(gram.addmm(gram, gram, beta=b, alpha=c), made, beta=a)
    return made.mT if tall else made
