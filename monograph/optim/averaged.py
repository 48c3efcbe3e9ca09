"""Averaged stochastic descent (ASGD), and Rprop, which looks at the signs of gradients only."""

from __future__ import annotations

from typing import Any

from ..ops.update import asgd_update, rprop_update
from ..tensor import Tensor
from .cohorts import Cohorts, restart
from .optimizer import Group, number, options


class ASGD(Cohorts):
    """Descent with a falling rate, and in `ax` the average of the parameters after t0 steps.

    >>> import monograph as mg
    >>> p = mg.nn.Parameter([1.0])
    >>> optimizer = mg.optim.ASGD([p], lr=0.1)
    >>> (p * p).sum().backward()
    >>> optimizer.step()
    >>> round(p.item(), 4)
    0.8
    """

    operator = asgd_update
    fields = ("ax",)
    shared = ("step", "eta", "mu")
    live_settings = (("lr",), ("lambd",), ("alpha",), ("t0",), ("weight_decay",))

    def __init__(
        self, params: Any, lr: float = 1e-2, lambd: float = 1e-4, alpha: float = 0.75,
        t0: float = 1e6, weight_decay: float = 0, foreach: bool | None = None,
        maximize: bool = False, differentiable: bool = False, capturable: bool = False,
    ) -> None:  # fmt: skip
        number(lr, "learning rate")
        number(weight_decay, "weight_decay value")
        others = {"capturable": capturable, "maximize": maximize, "differentiable": differentiable}
        defaults = {
            "lr": lr, "lambd": lambd, "alpha": alpha, "t0": t0, "weight_decay": weight_decay,
            **options({**others, "foreach": foreach}),
        }  # fmt: skip
        super().__init__(params, defaults)

    def _state_of(self, p: Tensor, group: Group) -> dict[str, Any]:
        starts = not self.state[p]
        held = super()._state_of(p, group)
        if starts:
            restart(held, "eta", float(group["lr"]))
            restart(held, "mu", 1.0)
        return held


class Rprop(Cohorts):
    """Steps whose sizes grow while the gradient keeps its sign, and shrink when it turns.

    >>> import monograph as mg
    >>> p = mg.nn.Parameter([1.0])
    >>> optimizer = mg.optim.Rprop([p], lr=0.1)
    >>> (p * p).sum().backward()
    >>> optimizer.step()
    >>> round(p.item(), 4)
    0.9
    """

    operator = rprop_update
    fields = ("prev", "step_size")
    live_settings = (("etas", 0), ("etas", 1), ("step_sizes", 0), ("step_sizes", 1))

    def __init__(
        self, params: Any, lr: float = 1e-2, etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50), **others: Any,
    ) -> None:  # fmt: skip
        number(lr, "learning rate")
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueError(f"Invalid eta values: {etas[0]}, {etas[1]}")
        defaults = {"lr": lr, "etas": etas, "step_sizes": step_sizes, **options(others)}
        super().__init__(params, defaults)

    def _state_of(self, p: Tensor, group: Group) -> dict[str, Any]:
        starts = not self.state[p]
        held = super()._state_of(p, group)
        if starts:
            restart(held, "step_size", float(group["lr"]))
        return held
