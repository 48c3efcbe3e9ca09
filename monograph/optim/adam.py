"""Adam, and AdamW whose weight decay does not pass through the gradient."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..ir.dtypes import float32
from ..nn.parameter import replace_contents, values_of
from ..ops.update import adam_update
from ..record import call_on
from ..tensor import Tensor
from .optimizer import Group, Optimizer, number, zeros_of


class Adam(Optimizer):
    """Steps scaled by running means of the gradient and of its square.

    The parameters that have taken equally many steps share one `step` tensor, so that one operator
    updates them all.
    """

    decoupled = False
    live_settings = (("lr",), ("betas", 0), ("betas", 1), ("eps",), ("weight_decay",))

    def __init__(
        self, params: Any, lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8, weight_decay: float = 0, amsgrad: bool = False, *,
        maximize: bool = False, foreach: bool | None = None, capturable: bool = False,
        differentiable: bool = False, fused: bool | None = None,
    ) -> None:  # fmt: skip
        number(lr, "learning rate")
        number(eps, "epsilon value")
        number(weight_decay, "weight_decay value")
        for n, beta in enumerate(betas):
            if not 0.0 <= beta < 1.0:
                raise ValueError(f"Invalid beta parameter at index {n}: {beta}")
        if amsgrad or differentiable:
            raise NotImplementedError("amsgrad and differentiable are not supported")
        defaults = {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "amsgrad": amsgrad,
            "maximize": maximize,
        }  # fmt: skip
        super().__init__(params, defaults)

    def _new_state(self, p: Tensor, group: Group) -> dict[str, Any]:
        step = next(
            (self._reserved[q]["step"] for q in group["params"] if q in self._reserved), None
        )
        return {
            "step": zeros_of(p, (), float32) if step is None else step,
            "exp_avg": zeros_of(p),
            "exp_avg_sq": zeros_of(p),
        }

    def _load_param(self, p: Tensor, group: Group, saved: Mapping[str, Any]) -> None:
        self._state_of(p, group)["step"] = zeros_of(p, (), float32)  # no longer shared
        super()._load_param(p, group, saved)

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        super().load_state_dict(state_dict)
        for group in self.param_groups:
            shared: dict[float, Tensor] = {}
            for p in group["params"]:
                if p in self.state:
                    step = self.state[p]["step"]
                    self.state[p]["step"] = shared.setdefault(float(step.item()), step)

    def _update(self, group: Group, params: list[Tensor]) -> None:
        for cohort in self._cohorts(group, params):
            self._record(group, cohort)

    def _cohorts(self, group: Group, params: list[Tensor]) -> list[list[Tensor]]:
        """The parameters by the step tensor that they share."""
        cohorts: dict[int, list[Tensor]] = {}
        for p in params:
            held = self.state[p] or self._state_of(p, group)
            together = cohorts.get(id(held["step"]))
            if together is None:
                cohorts[id(held["step"])] = [p]
            else:
                together.append(p)
        if len(params) < len(group["params"]):
            self._part_from_absent(group, params, cohorts)
        return list(cohorts.values())

    def _part_from_absent(
        self, group: Group, params: list[Tensor], cohorts: dict[int, list[Tensor]]
    ) -> None:
        """Parameters that step now stop sharing with those that have no gradient this time."""
        present = {id(p) for p in params}
        for p in group["params"]:
            held = self.state.get(p) or self._reserved.get(p)
            if id(p) in present or not held or id(held["step"]) not in cohorts:
                continue
            together = cohorts.pop(id(held["step"]))
            step: Any = held["step"].clone()  # type: ignore[attr-defined]
            cohorts[id(step)] = together
            for q in together:
                self.state[q]["step"] = step

    def _record(self, group: Group, params: list[Tensor]) -> None:
        states = [self.state[p] for p in params]
        means = [held["exp_avg"] for held in states]
        squares = [held["exp_avg_sq"] for held in states]
        step = states[0]["step"]
        count = len(params)
        gradients = [p._grad for p in params]
        results = call_on(
            adam_update.operator,
            values_of([*params, *gradients, *means, *squares, step]),
            self._numbers(group),
            (count, count, count, count, self.decoupled, bool(group["maximize"])),
        )
        replace_contents([*params, *means, *squares, step], results)


class AdamW(Adam):
    """Adam with decoupled weight decay: p ← p · (1 - lr · weight_decay) before each step.

    >>> import monograph as mg
    >>> layer = mg.nn.Linear(2, 2)
    >>> optimizer = mg.optim.AdamW(layer.parameters(), lr=0.1)
    >>> layer(mg.ones(1, 2)).sum().backward()
    >>> optimizer.step()
    >>> optimizer.state[layer.weight]["step"].item()
    1.0
    """

    decoupled = True

    def __init__(
        self, params: Any, lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8, weight_decay: float = 1e-2, amsgrad: bool = False, **settings: Any,
    ) -> None:  # fmt: skip
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, **settings)
