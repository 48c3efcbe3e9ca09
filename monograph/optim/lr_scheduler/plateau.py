"""The schedule that looks at results: the rate falls when a number stops improving."""

from __future__ import annotations

import math
from typing import Any

from ..optimizer import Optimizer
from .base import LRScheduler, set_rate


class ReduceLROnPlateau(LRScheduler):
    """The rate times `factor` when `patience` steps have brought nothing better.

    >>> import monograph as mg
    >>> optimizer = mg.optim.SGD([mg.nn.Parameter([0.0])], lr=1.0)
    >>> schedule = mg.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=1)
    >>> for loss in [3.0, 2.0, 2.0, 2.0]:
    ...     schedule.step(loss)
    >>> schedule.get_last_lr()
    [0.5]
    """

    def __init__(
        self, optimizer: Optimizer, mode: str = "min", factor: float = 0.1, patience: int = 10,
        threshold: float = 1e-4, threshold_mode: str = "rel", cooldown: int = 0, min_lr: Any = 0,
        eps: float = 1e-8,
    ) -> None:  # fmt: skip
        if factor >= 1.0:
            raise ValueError("Factor should be < 1.0.")
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
        if mode not in ("min", "max"):
            raise ValueError(f"mode {mode} is unknown!")
        if threshold_mode not in ("rel", "abs"):
            raise ValueError(f"threshold mode {threshold_mode} is unknown!")
        groups = len(optimizer.param_groups)
        listed = list(min_lr) if isinstance(min_lr, (list, tuple)) else [min_lr] * groups
        if len(listed) != groups:
            raise ValueError(f"expected {groups} min_lrs, got {len(listed)}")
        self.optimizer = optimizer
        self.mode, self.factor, self.patience = mode, factor, patience
        self.threshold, self.threshold_mode = threshold, threshold_mode
        self.cooldown, self.eps = cooldown, eps
        self.default_min_lr = None if isinstance(min_lr, (list, tuple)) else min_lr
        self.min_lrs = listed
        self.last_epoch = 0
        self._last_lr = self._rates()
        self._reset()

    def _reset(self) -> None:
        self.best = math.inf if self.mode == "min" else -math.inf
        self.cooldown_counter = 0
        self.num_bad_epochs = 0

    def step(self, metrics: Any, epoch: int | None = None) -> None:  # type: ignore[override]
        """Take note of a result, and lower the rate if it is time."""
        current = float(metrics)
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        if self._is_better(current, self.best):
            self.best = current
            self.num_bad_epochs = 0
        else:
            self.num_bad_epochs += 1
        if self.in_cooldown:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._reduce()
            self.cooldown_counter = self.cooldown
            self.num_bad_epochs = 0
        self._last_lr = self._rates()

    def _reduce(self) -> None:
        groups = len(self.optimizer.param_groups)
        if len(self.min_lrs) != groups:
            if self.default_min_lr is None:
                raise RuntimeError(
                    f"the optimizer has {groups} parameter groups and the schedule was made for "
                    f"{len(self.min_lrs)}: set `min_lrs` to one rate per group"
                )
            self.min_lrs = [self.default_min_lr] * groups
        for n, group in self._groups():
            before = float(group["lr"])
            after = max(before * self.factor, self.min_lrs[n])
            if before - after > self.eps:
                set_rate(group, after)

    @property
    def in_cooldown(self) -> bool:
        """Whether results are ignored, shortly after the rate fell."""
        return self.cooldown_counter > 0

    def _is_better(self, found: float, best: float) -> bool:
        sign = -1.0 if self.mode == "min" else 1.0
        if self.threshold_mode == "rel":
            bound = best * (1.0 + sign * self.threshold)
        else:
            bound = best + sign * self.threshold
        return found < bound if self.mode == "min" else found > bound
