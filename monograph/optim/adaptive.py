"""Optimisers that scale each element of the gradient by its past: RMSprop, Adagrad, Adadelta."""

from __future__ import annotations

from typing import Any

from ..ops.update import adadelta_update, adagrad_update, rmsprop_update
from ..tensor import Tensor
from .cohorts import Cohorts, restart
from .optimizer import Group, number, options


class RMSprop(Cohorts):
    """Steps scaled by the root of a running mean of squares; `centered` takes out the mean.

    >>> import monograph as mg
    >>> p = mg.nn.Parameter([1.0])
    >>> optimizer = mg.optim.RMSprop([p], lr=0.01)
    >>> (p * p).sum().backward()
    >>> optimizer.step()
    >>> round(p.item(), 4)
    0.9
    """

    operator = rmsprop_update
    fields = ("square_avg", "momentum_buffer", "grad_avg")
    live_settings = (("lr",), ("alpha",), ("eps",), ("weight_decay",), ("momentum",))
    switches = ("momentum",)

    def __init__(
        self, params: Any, lr: float = 1e-2, alpha: float = 0.99, eps: float = 1e-8,
        weight_decay: float = 0, momentum: float = 0, centered: bool = False,
        capturable: bool = False, foreach: bool | None = None, maximize: bool = False,
        differentiable: bool = False,
    ) -> None:  # fmt: skip
        for value, name in (
            (lr, "learning rate"), (eps, "epsilon value"), (momentum, "momentum value"),
            (weight_decay, "weight_decay value"), (alpha, "alpha value"),
        ):  # fmt: skip
            number(value, name)
        others = {"capturable": capturable, "maximize": maximize, "differentiable": differentiable}
        defaults = {
            "lr": lr, "momentum": momentum, "alpha": alpha, "eps": eps, "centered": centered,
            "weight_decay": weight_decay, **options({**others, "foreach": foreach}),
        }  # fmt: skip
        super().__init__(params, defaults)

    def _used(self, group: Group) -> tuple[str, ...]:
        moving = ("momentum_buffer",) if group["momentum"] > 0 else ()
        return ("square_avg", *moving, *(("grad_avg",) if group["centered"] else ()))


class Adagrad(Cohorts):
    """Steps scaled by the root of the sum of all squares; its state exists from the start.

    >>> import monograph as mg
    >>> p = mg.nn.Parameter([1.0])
    >>> optimizer = mg.optim.Adagrad([p], lr=0.1)
    >>> (p * p).sum().backward()
    >>> optimizer.step()
    >>> round(p.item(), 4)
    0.9
    """

    operator = adagrad_update
    fields = ("sum",)
    live_settings = (("lr",), ("lr_decay",), ("eps",), ("weight_decay",))

    def __init__(
        self, params: Any, lr: float = 1e-2, lr_decay: float = 0, weight_decay: float = 0,
        initial_accumulator_value: float = 0, eps: float = 1e-10, foreach: bool | None = None,
        **others: Any,
    ) -> None:  # fmt: skip
        for value, name in (
            (lr, "learning rate"), (lr_decay, "lr_decay value"), (eps, "epsilon value"),
            (weight_decay, "weight_decay value"),
            (initial_accumulator_value, "initial_accumulator_value value"),
        ):  # fmt: skip
            number(value, name)
        defaults = {
            "lr": lr, "lr_decay": lr_decay, "eps": eps, "weight_decay": weight_decay,
            "initial_accumulator_value": initial_accumulator_value,
            **options({**others, "foreach": foreach}, fused=True, capturable=False),
        }  # fmt: skip
        super().__init__(params, defaults)

    def add_param_group(self, param_group: Group) -> None:
        super().add_param_group(param_group)
        for p in param_group["params"]:
            self._state_of(p, param_group)

    def _new_state(self, p: Tensor, group: Group) -> dict[str, Any]:
        state = super()._new_state(p, group)
        if group["initial_accumulator_value"]:
            restart(state, "sum", group["initial_accumulator_value"])
        return state


class Adadelta(Cohorts):
    """Steps of the size of past changes, so that no learning rate is needed.

    >>> import monograph as mg
    >>> p = mg.nn.Parameter([1.0])
    >>> optimizer = mg.optim.Adadelta([p], lr=0.1)
    >>> (p * p).sum().backward()
    >>> optimizer.step()
    >>> round(p.item(), 4)
    0.9997
    """

    operator = adadelta_update
    fields = ("square_avg", "acc_delta")
    live_settings = (("lr",), ("rho",), ("eps",), ("weight_decay",))

    def __init__(
        self, params: Any, lr: float = 1.0, rho: float = 0.9, eps: float = 1e-6,
        weight_decay: float = 0, foreach: bool | None = None, **others: Any,
    ) -> None:  # fmt: skip
        number(lr, "learning rate")
        number(eps, "epsilon value")
        number(weight_decay, "weight_decay value")
        if not 0.0 <= rho <= 1.0:
            raise ValueError(f"Invalid rho value: {rho}")
        defaults = {
            "lr": lr, "rho": rho, "eps": eps, "weight_decay": weight_decay,
            **options({**others, "foreach": foreach}),
        }  # fmt: skip
        super().__init__(params, defaults)
