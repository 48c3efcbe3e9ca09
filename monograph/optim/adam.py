"""Adam and its family: steps scaled by running means of the gradient and of its size."""

from __future__ import annotations

from typing import Any

from ..ops.update import adam_update, adamax_update, nadam_update, radam_update
from ..tensor import Tensor
from .cohorts import Cohorts, restart
from .optimizer import Group, check_betas, number, options

_MOMENTS = ("exp_avg", "exp_avg_sq")
_NUMBERS = (("lr",), ("betas", 0), ("betas", 1), ("eps",), ("weight_decay",))


class Adam(Cohorts):
    """Steps scaled by running means of the gradient and of its square.

    >>> import monograph as mg
    >>> p = mg.nn.Parameter([1.0])
    >>> optimizer = mg.optim.Adam([p], lr=0.1)
    >>> (p * p).sum().backward()
    >>> optimizer.step()
    >>> round(p.item(), 4)
    0.9
    """

    operator = adam_update
    fields = (*_MOMENTS, "max_exp_avg_sq")
    flags = ("decoupled_weight_decay", "maximize")
    live_settings = _NUMBERS

    def __init__(
        self, params: Any, lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8, weight_decay: float = 0, amsgrad: bool = False, *,
        decoupled_weight_decay: bool = False, **others: Any,
    ) -> None:  # fmt: skip
        number(lr, "learning rate")
        number(eps, "epsilon value")
        number(weight_decay, "weight_decay value")
        check_betas(betas)
        defaults = {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "amsgrad": amsgrad,
            "decoupled_weight_decay": decoupled_weight_decay, **options(others, fused=True),
        }  # fmt: skip
        super().__init__(params, defaults)

    def _used(self, group: Group) -> tuple[str, ...]:
        return self.fields if group["amsgrad"] else _MOMENTS


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

    def __init__(
        self, params: Any, lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8, weight_decay: float = 1e-2, amsgrad: bool = False, **others: Any,
    ) -> None:  # fmt: skip
        others["decoupled_weight_decay"] = True
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, **others)


class Adamax(Cohorts):
    """Adam with the largest gradient so far, fading, in place of the mean square.

    >>> import monograph as mg
    >>> p = mg.nn.Parameter([1.0])
    >>> optimizer = mg.optim.Adamax([p], lr=0.1)
    >>> (p * p).sum().backward()
    >>> optimizer.step()
    >>> round(p.item(), 4)
    0.9
    """

    operator = adamax_update
    fields = ("exp_avg", "exp_inf")
    live_settings = _NUMBERS

    def __init__(
        self, params: Any, lr: float = 2e-3, betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8, weight_decay: float = 0, foreach: bool | None = None, **others: Any,
    ) -> None:  # fmt: skip
        number(lr, "learning rate")
        number(eps, "epsilon value")
        number(weight_decay, "weight_decay value")
        check_betas(betas)
        defaults = {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay,
            **options({**others, "foreach": foreach}),
        }  # fmt: skip
        super().__init__(params, defaults)


class NAdam(Cohorts):
    """Adam with Nesterov's momentum: the step is taken from where momentum will lead.

    >>> import monograph as mg
    >>> p = mg.nn.Parameter([1.0])
    >>> optimizer = mg.optim.NAdam([p], lr=0.1)
    >>> (p * p).sum().backward()
    >>> optimizer.step()
    >>> round(p.item(), 4)
    0.8944
    """

    operator = nadam_update
    fields = _MOMENTS
    shared = ("step", "mu_product")
    flags = ("decoupled_weight_decay", "maximize")
    live_settings = (*_NUMBERS, ("momentum_decay",))

    def __init__(
        self, params: Any, lr: float = 2e-3, betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8, weight_decay: float = 0, momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False, **others: Any,
    ) -> None:  # fmt: skip
        number(lr, "learning rate")
        number(eps, "epsilon value")
        number(weight_decay, "weight_decay value")
        number(momentum_decay, "momentum_decay value")
        check_betas(betas)
        defaults = {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay,
            "momentum_decay": momentum_decay, "decoupled_weight_decay": decoupled_weight_decay,
            **options(others),
        }  # fmt: skip
        super().__init__(params, defaults)

    def _fresh(self, name: str, p: Tensor) -> Tensor:
        made = super()._fresh(name, p)
        if name == "mu_product":
            restart({name: made}, name, 1.0)
        return made


class RAdam(Cohorts):
    """Adam that leaves the scaling out until the mean square is known well enough.

    >>> import monograph as mg
    >>> p = mg.nn.Parameter([1.0])
    >>> optimizer = mg.optim.RAdam([p], lr=0.1)
    >>> (p * p).sum().backward()
    >>> optimizer.step()
    >>> round(p.item(), 4)
    0.8
    """

    operator = radam_update
    fields = _MOMENTS
    flags = ("decoupled_weight_decay", "maximize")
    live_settings = _NUMBERS

    def __init__(
        self, params: Any, lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8, weight_decay: float = 0, decoupled_weight_decay: bool = False,
        **others: Any,
    ) -> None:  # fmt: skip
        number(lr, "learning rate")
        number(eps, "epsilon value")
        number(weight_decay, "weight_decay value")
        check_betas(betas)
        defaults = {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay,
            "decoupled_weight_decay": decoupled_weight_decay, **options(others),
        }  # fmt: skip
        super().__init__(params, defaults)
