"""Stochastic gradient descent, with momentum."""

from __future__ import annotations

from typing import Any

from ..nn.parameter import replace_contents, values_of
from ..ops.update import sgd_update
from ..record import call_on
from ..recorder import Live
from ..tensor import Tensor
from .optimizer import Group, Optimizer, number, options, zeros_of


class _FirstStep:
    """A group's dampening as the first step sees it: none, since momentum starts undampened."""

    def __init__(self, group: Group) -> None:
        self.group = group
        self.over = False

    def __getitem__(self, name: str) -> Any:
        return self.group[name] if self.over else 0.0


class SGD(Optimizer):
    """p ← p - lr · velocity, where velocity ← momentum · velocity + (1 - dampening) · gradient.

    >>> import monograph as mg
    >>> p = mg.nn.Parameter([1.0])
    >>> optimizer = mg.optim.SGD([p], lr=0.5)
    >>> (p * p).sum().backward()
    >>> optimizer.step()
    >>> p.tolist()
    [0.0]
    """

    live_settings = (("lr",), ("momentum",), ("dampening",), ("weight_decay",))
    switches = ("momentum", "dampening")

    def __init__(
        self, params: Any, lr: float = 1e-3, momentum: float = 0, dampening: float = 0,
        weight_decay: float = 0, nesterov: bool = False, *, maximize: bool = False,
        foreach: bool | None = None, differentiable: bool = False, fused: bool | None = None,
    ) -> None:  # fmt: skip
        number(lr, "learning rate")
        number(momentum, "momentum value")
        number(weight_decay, "weight_decay value")
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        others = {
            "maximize": maximize, "foreach": foreach, "differentiable": differentiable,
            "fused": fused,
        }  # fmt: skip
        defaults = {
            "lr": lr, "momentum": momentum, "dampening": dampening, "weight_decay": weight_decay,
            "nesterov": nesterov, **options(others, fused=True, capturable=False),
        }  # fmt: skip
        super().__init__(params, defaults)

    def _new_state(self, p: Tensor, group: Group) -> dict[str, Any]:
        return {"momentum_buffer": zeros_of(p)} if group["momentum"] else {}

    def _update(self, group: Group, params: list[Tensor]) -> None:
        if not group["momentum"]:
            self._record(group, params, self._numbers(group))
            return
        fresh = [p for p in params if not self.state.get(p)] if group["dampening"] else []
        going = [p for p in params if not any(p is q for q in fresh)] if fresh else params
        if going:
            self._record(group, going, self._numbers(group))
        if fresh:
            first = _FirstStep(group)
            lr, momentum, _, weight_decay = self._numbers(group)
            numbers = (lr, momentum, Live(first, "dampening"), weight_decay)
            self._record(group, fresh, numbers)
            first.over = True

    def _record(self, group: Group, params: list[Tensor], numbers: tuple[Live, ...]) -> None:
        moving = group["momentum"] != 0
        buffers = [self._state_of(p, group)["momentum_buffer"] for p in params] if moving else []
        results = call_on(
            sgd_update.operator,
            values_of([*params, *[p._grad for p in params], *buffers]),
            numbers,
            (len(params), len(params), len(buffers), bool(group["nesterov"]),
             bool(group["maximize"])),
        )  # fmt: skip
        replace_contents([*params, *buffers], results)
