"""Schedules that follow a formula of the step: steps, powers, lines, half a cosine."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from ..optimizer import Optimizer
from .base import LRScheduler


class MultiplicativeLR(LRScheduler):
    """The rate times a function of the step, every step.

    >>> import monograph as mg
    >>> optimizer = mg.optim.SGD([mg.nn.Parameter([0.0])], lr=1.0)
    >>> schedule = mg.optim.lr_scheduler.MultiplicativeLR(optimizer, lambda epoch: 0.5)
    >>> rates = []
    >>> for _ in range(4):
    ...     rates += schedule.get_last_lr()
    ...     optimizer.step()
    ...     schedule.step()
    >>> rates
    [1.0, 0.5, 0.25, 0.125]
    """

    def __init__(
        self, optimizer: Optimizer, lr_lambda: Callable[[int], float] | list[Any],
        last_epoch: int = -1,
    ) -> None:  # fmt: skip
        groups = len(optimizer.param_groups)
        listed = list(lr_lambda) if isinstance(lr_lambda, (list, tuple)) else [lr_lambda] * groups
        if len(listed) != groups:
            raise ValueError(f"Expected {groups} lr_lambdas, but got {len(listed)}")
        self.lr_lambdas = listed
        super().__init__(optimizer, last_epoch)

    def following(self, lr: float, n: int) -> float:
        return lr * self.lr_lambdas[n](self.last_epoch)

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimiser and plain functions, which are code."""
        found = super().state_dict()
        found["lr_lambdas"] = [
            dict(f.__dict__) if not hasattr(f, "__code__") else None for f in self.lr_lambdas
        ]
        return found

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        others = {name: value for name, value in state_dict.items() if name != "lr_lambdas"}
        self.__dict__.update(others)
        for function, saved in zip(self.lr_lambdas, state_dict["lr_lambdas"], strict=True):
            if saved is not None:
                function.__dict__.update(saved)


class LambdaLR(MultiplicativeLR):
    """The base rate times a function of the step.

    >>> import monograph as mg
    >>> optimizer = mg.optim.SGD([mg.nn.Parameter([0.0])], lr=1.0)
    >>> schedule = mg.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 1 / (1 + epoch))
    >>> rates = []
    >>> for _ in range(3):
    ...     rates += schedule.get_last_lr()
    ...     optimizer.step()
    ...     schedule.step()
    >>> [round(rate, 4) for rate in rates]
    [1.0, 0.5, 0.3333]
    """

    def closed_form(self, n: int) -> float:
        return self.base_lrs[n] * self.lr_lambdas[n](self.last_epoch)

    def initial(self, lr: float, n: int) -> float:
        return self.closed_form(n)

    def following(self, lr: float, n: int) -> float:
        return self.closed_form(n)


class StepLR(LRScheduler):
    """The rate times gamma every step_size steps.

    >>> import monograph as mg
    >>> optimizer = mg.optim.SGD([mg.nn.Parameter([0.0])], lr=1.0)
    >>> schedule = mg.optim.lr_scheduler.StepLR(optimizer, 2, gamma=0.5)
    >>> rates = []
    >>> for _ in range(4):
    ...     rates += schedule.get_last_lr()
    ...     optimizer.step()
    ...     schedule.step()
    >>> rates
    [1.0, 1.0, 0.5, 0.5]
    """

    def __init__(
        self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.step_size = step_size
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def following(self, lr: float, n: int) -> float:
        return lr * self.gamma if self.last_epoch and self.last_epoch % self.step_size == 0 else lr

    def closed_form(self, n: int) -> float:
        return self.base_lrs[n] * self.gamma ** (self.last_epoch // self.step_size)


class MultiStepLR(LRScheduler):
    """The rate times gamma at each milestone.

    >>> import monograph as mg
    >>> optimizer = mg.optim.SGD([mg.nn.Parameter([0.0])], lr=1.0)
    >>> schedule = mg.optim.lr_scheduler.MultiStepLR(optimizer, [1, 3], gamma=0.5)
    >>> rates = []
    >>> for _ in range(4):
    ...     rates += schedule.get_last_lr()
    ...     optimizer.step()
    ...     schedule.step()
    >>> rates
    [1.0, 0.5, 0.5, 0.25]
    """

    def __init__(
        self, optimizer: Optimizer, milestones: Iterable[int], gamma: float = 0.1,
        last_epoch: int = -1,
    ) -> None:  # fmt: skip
        self.milestones = Counter(milestones)
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def following(self, lr: float, n: int) -> float:
        return lr * self.gamma ** self.milestones[self.last_epoch]

    def closed_form(self, n: int) -> float:
        passed = bisect_right(sorted(self.milestones.elements()), self.last_epoch)
        return self.base_lrs[n] * self.gamma**passed


class ExponentialLR(LRScheduler):
    """The rate times gamma every step.

    >>> import monograph as mg
    >>> optimizer = mg.optim.SGD([mg.nn.Parameter([0.0])], lr=1.0)
    >>> schedule = mg.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
    >>> rates = []
    >>> for _ in range(4):
    ...     rates += schedule.get_last_lr()
    ...     optimizer.step()
    ...     schedule.step()
    >>> rates
    [1.0, 0.5, 0.25, 0.125]
    """

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def following(self, lr: float, n: int) -> float:
        return lr * self.gamma

    def closed_form(self, n: int) -> float:
        return self.base_lrs[n] * self.gamma**self.last_epoch


class ConstantLR(LRScheduler):
    """The rate times a factor for the first total_iters steps.

    >>> import monograph as mg
    >>> optimizer = mg.optim.SGD([mg.nn.Parameter([0.0])], lr=1.0)
    >>> schedule = mg.optim.lr_scheduler.ConstantLR(optimizer, factor=0.5, total_iters=2)
    >>> rates = []
    >>> for _ in range(4):
    ...     rates += schedule.get_last_lr()
    ...     optimizer.step()
    ...     schedule.step()
    >>> rates
    [0.5, 0.5, 1.0, 1.0]
    """

    def __init__(
        self, optimizer: Optimizer, factor: float = 1.0 / 3, total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:  # fmt: skip
        if not 0 <= factor <= 1.0:
            raise ValueError("Constant multiplicative factor expected to be between 0 and 1.")
        self.factor = factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def initial(self, lr: float, n: int) -> float:
        return self.following(lr, n)

    def following(self, lr: float, n: int) -> float:
        if self.last_epoch == 0:
            return lr * self.factor
        return lr * (1.0 / self.factor) if self.last_epoch == self.total_iters else lr

    def closed_form(self, n: int) -> float:
        over = self.last_epoch >= self.total_iters
        return self.base_lrs[n] * (1.0 if over else self.factor)


class LinearLR(LRScheduler):
    """The base rate times a factor that goes from start_factor to end_factor in total_iters.

    >>> import monograph as mg
    >>> optimizer = mg.optim.SGD([mg.nn.Parameter([0.0])], lr=1.0)
    >>> schedule = mg.optim.lr_scheduler.LinearLR(optimizer, start_factor=0.25, total_iters=3)
    >>> rates = []
    >>> for _ in range(4):
    ...     rates += schedule.get_last_lr()
    ...     optimizer.step()
    ...     schedule.step()
    >>> [round(rate, 4) for rate in rates]
    [0.25, 0.5, 0.75, 1.0]
    """

    def __init__(
        self, optimizer: Optimizer, start_factor: float = 1.0 / 3, end_factor: float = 1.0,
        total_iters: int = 5, last_epoch: int = -1,
    ) -> None:  # fmt: skip
        if not 0.0 < start_factor <= 1.0:
            raise ValueError(f"start_factor must be above 0 and at most 1, got {start_factor}")
        if not 0.0 <= end_factor <= 1.0:
            raise ValueError(f"end_factor must be between 0 and 1, got {end_factor}")
        self.start_factor = start_factor
        self.end_factor = end_factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def initial(self, lr: float, n: int) -> float:
        return lr * self.start_factor if self.last_epoch == 0 else lr

    def following(self, lr: float, n: int) -> float:
        if self.last_epoch > self.total_iters:
            return lr
        rise = self.end_factor - self.start_factor
        before = self.total_iters * self.start_factor + (self.last_epoch - 1) * rise
        return lr * (1.0 + rise / before)

    def closed_form(self, n: int) -> float:
        rise = self.end_factor - self.start_factor
        part = min(self.total_iters, self.last_epoch) / self.total_iters
        return self.base_lrs[n] * (self.start_factor + rise * part)


class PolynomialLR(LRScheduler):
    """The base rate times (1 - step / total_iters) ** power.

    >>> import monograph as mg
    >>> optimizer = mg.optim.SGD([mg.nn.Parameter([0.0])], lr=1.0)
    >>> schedule = mg.optim.lr_scheduler.PolynomialLR(optimizer, total_iters=4)
    >>> rates = []
    >>> for _ in range(4):
    ...     rates += schedule.get_last_lr()
    ...     optimizer.step()
    ...     schedule.step()
    >>> [round(rate, 4) for rate in rates]
    [1.0, 0.75, 0.5, 0.25]
    """

    def __init__(
        self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1
    ) -> None:
        self.total_iters = total_iters
        self.power = power
        super().__init__(optimizer, last_epoch)

    def following(self, lr: float, n: int) -> float:
        if self.last_epoch > self.total_iters:
            return lr
        left = 1.0 - self.last_epoch / self.total_iters
        before = 1.0 - (self.last_epoch - 1) / self.total_iters
        return lr * (left / before) ** self.power

    def closed_form(self, n: int) -> float:
        left = 1.0 - min(self.total_iters, self.last_epoch) / self.total_iters
        return float(self.base_lrs[n] * left**self.power)


class CosineAnnealingLR(LRScheduler):
    """Half a cosine from the base rate to eta_min in T_max steps, and back.

    >>> import monograph as mg
    >>> optimizer = mg.optim.SGD([mg.nn.Parameter([0.0])], lr=1.0)
    >>> schedule = mg.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=2)
    >>> rates = []
    >>> for _ in range(3):
    ...     rates += schedule.get_last_lr()
    ...     optimizer.step()
    ...     schedule.step()
    >>> [round(rate, 4) for rate in rates]
    [1.0, 0.5, 0.0]
    """

    def __init__(
        self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        self.T_max = T_max
        self.eta_min = eta_min
        super().__init__(optimizer, last_epoch)

    def _height(self, epoch: int) -> float:
        return 1 + math.cos(math.pi * epoch / self.T_max)

    def following(self, lr: float, n: int) -> float:
        if (self.last_epoch - 1 - self.T_max) % (2 * self.T_max) == 0:  # the step before was lowest
            span = self.base_lrs[n] - self.eta_min
            return lr + span * (1 - math.cos(math.pi / self.T_max)) / 2
        ratio = self._height(self.last_epoch) / self._height(self.last_epoch - 1)
        return ratio * (lr - self.eta_min) + self.eta_min

    def closed_form(self, n: int) -> float:
        span = self.base_lrs[n] - self.eta_min
        return self.eta_min + span * self._height(self.last_epoch) / 2
