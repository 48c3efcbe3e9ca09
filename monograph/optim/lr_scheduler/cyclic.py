"""Schedules that rise and fall: the 1cycle policy, cycles between two rates, warm restarts."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ..optimizer import Optimizer
from .base import LRScheduler, check_momentum, per_group, set_momentum, set_rate


def _cosine(start: float, end: float, part: float) -> float:
    return end + (start - end) / 2.0 * (math.cos(math.pi * part) + 1)


def _linear(start: float, end: float, part: float) -> float:
    return (end - start) * part + start


# The ends of a phase, by name: (start rate, end rate, start momentum, end momentum).
_RISE = ("initial_lr", "max_lr", "max_momentum", "base_momentum")
_FALL = ("max_lr", "min_lr", "base_momentum", "max_momentum")
_FALL_BACK = ("max_lr", "initial_lr", "base_momentum", "max_momentum")
_FADE = ("initial_lr", "min_lr", "max_momentum", "max_momentum")


class OneCycleLR(LRScheduler):
    """The 1cycle policy: up to max_lr and down far below, momentum the other way.

    >>> import monograph as mg
    >>> optimizer = mg.optim.SGD([mg.nn.Parameter([0.0])], lr=1.0)
    >>> schedule = mg.optim.lr_scheduler.OneCycleLR(optimizer, 1.0, total_steps=4)
    >>> rates = []
    >>> for _ in range(4):
    ...     rates += schedule.get_last_lr()
    ...     optimizer.step()
    ...     schedule.step()
    >>> [round(rate, 4) for rate in rates]
    [0.04, 0.8117, 0.2831, 0.0]
    """

    def __init__(
        self, optimizer: Optimizer, max_lr: Any, total_steps: int | None = None,
        epochs: int | None = None, steps_per_epoch: int | None = None, pct_start: float = 0.3,
        anneal_strategy: str = "cos", cycle_momentum: bool = True, base_momentum: Any = 0.85,
        max_momentum: Any = 0.95, div_factor: float = 25.0, final_div_factor: float = 1e4,
        three_phase: bool = False, last_epoch: int = -1,
    ) -> None:  # fmt: skip
        if total_steps is None:
            if epochs is None or steps_per_epoch is None:
                raise ValueError("give either total_steps, or epochs and steps_per_epoch")
            total_steps = epochs * steps_per_epoch
        if total_steps <= 0:
            raise ValueError(f"Expected positive integer total_steps, but got {total_steps}")
        if not 0 <= pct_start <= 1:
            raise ValueError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be 'cos' or 'linear', got {anneal_strategy!r}")
        self.total_steps = total_steps
        self.anneal_strategy = anneal_strategy
        self.cycle_momentum = cycle_momentum
        rise_end = pct_start * total_steps - 1
        last = total_steps - 1
        self._phases: list[tuple[float, tuple[str, str, str, str]]] = (
            [(rise_end, _RISE), (2 * pct_start * total_steps - 2, _FALL_BACK), (last, _FADE)]
            if three_phase
            else [(rise_end, _RISE), (last, _FALL)]
        )
        if last_epoch == -1:
            highest = per_group("max_lr", optimizer, max_lr)
            for group, peak in zip(optimizer.param_groups, highest, strict=True):
                group["initial_lr"] = peak / div_factor
                group["max_lr"] = peak
                group["min_lr"] = group["initial_lr"] / final_div_factor
        if cycle_momentum:
            self._prepare_momentum(optimizer, base_momentum, max_momentum, last_epoch)
        super().__init__(optimizer, last_epoch)

    def _prepare_momentum(
        self, optimizer: Optimizer, base_momentum: Any, max_momentum: Any, last_epoch: int
    ) -> None:
        check_momentum(optimizer)
        lowest = per_group("base_momentum", optimizer, base_momentum)
        highest = per_group("max_momentum", optimizer, max_momentum)
        if last_epoch == -1:
            for n, group in enumerate(optimizer.param_groups):
                group["max_momentum"], group["base_momentum"] = highest[n], lowest[n]
                set_momentum(group, highest[n])

    def _phase(self) -> tuple[float, tuple[str, str, str, str]]:
        """How far the current phase has come, from 0 to 1, and its ends."""
        start = 0.0
        for end, names in self._phases[:-1]:
            if self.last_epoch <= end:
                return (self.last_epoch - start) / (end - start), names
            start = end
        end, names = self._phases[-1]
        return (self.last_epoch - start) / (end - start), names

    def initial(self, lr: float, n: int) -> float:
        return self.following(lr, n)

    def following(self, lr: float, n: int) -> float:
        if self.last_epoch > self.total_steps:
            raise ValueError(
                f"Tried to step {self.last_epoch} times. "
                f"The specified number of total steps is {self.total_steps}"
            )
        group = self.optimizer.param_groups[n]
        part, (start, end, start_momentum, end_momentum) = self._phase()
        anneal = _cosine if self.anneal_strategy == "cos" else _linear
        if self.cycle_momentum:
            momentum = anneal(group[start_momentum], group[end_momentum], part)
            set_momentum(group, momentum)
        return anneal(group[start], group[end], part)


class CyclicLR(LRScheduler):
    """Up from base_lr to max_lr and down again, momentum the other way, over and over.

    The height stays ("triangular"), halves every cycle ("triangular2"), shrinks by gamma every step
    ("exp_range"), or is scaled by `scale_fn` of the cycle or of the step.

    >>> import monograph as mg
    >>> optimizer = mg.optim.SGD([mg.nn.Parameter([0.0])], lr=1.0)
    >>> schedule = mg.optim.lr_scheduler.CyclicLR(optimizer, 0.0, 1.0, step_size_up=2)
    >>> rates = []
    >>> for _ in range(5):
    ...     rates += schedule.get_last_lr()
    ...     optimizer.step()
    ...     schedule.step()
    >>> [round(rate, 4) for rate in rates]
    [0.0, 0.5, 1.0, 0.5, 0.0]
    """

    def __init__(
        self, optimizer: Optimizer, base_lr: Any, max_lr: Any, step_size_up: int = 2000,
        step_size_down: int | None = None, mode: str = "triangular", gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None, scale_mode: str = "cycle",
        cycle_momentum: bool = True, base_momentum: Any = 0.8, max_momentum: Any = 0.9,
        last_epoch: int = -1,
    ) -> None:  # fmt: skip
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ValueError("mode is invalid and scale_fn is None")
        lowest = per_group("base_lr", optimizer, base_lr)
        self.max_lrs = per_group("max_lr", optimizer, max_lr)
        self.total_size = float(step_size_up) + float(
            step_size_up if step_size_down is None else step_size_down
        )
        self.step_ratio = step_size_up / self.total_size
        self.mode = mode
        self.gamma = gamma
        self._scale_fn_custom = scale_fn
        self.scale_mode = scale_mode
        if scale_fn is None:
            self.scale_mode = "iterations" if mode == "exp_range" else "cycle"
        self.cycle_momentum = cycle_momentum
        if last_epoch == -1:
            for rate, group in zip(lowest, optimizer.param_groups, strict=True):
                set_rate(group, rate)
        if cycle_momentum:
            self._prepare_momentum(optimizer, base_momentum, max_momentum, last_epoch)
        super().__init__(optimizer, last_epoch)
        self.base_lrs = lowest

    def _prepare_momentum(
        self, optimizer: Optimizer, base_momentum: Any, max_momentum: Any, last_epoch: int
    ) -> None:
        check_momentum(optimizer)
        self.base_momentums = per_group("base_momentum", optimizer, base_momentum)
        self.max_momentums = per_group("max_momentum", optimizer, max_momentum)
        if last_epoch == -1:
            for n, group in enumerate(optimizer.param_groups):
                set_momentum(group, self.max_momentums[n])
                group["max_momentum"] = self.max_momentums[n]
                group["base_momentum"] = self.base_momentums[n]

    def scale_fn(self, x: float) -> float:
        """How high the cycle x, or the step x, goes."""
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(x)
        if self.mode == "triangular":
            return 1.0
        return 1 / (2.0 ** (x - 1)) if self.mode == "triangular2" else self.gamma**x

    def _height(self) -> float:
        """Where between the lowest rate, 0, and the highest, 1, the step is."""
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        part = 1.0 + self.last_epoch / self.total_size - cycle
        rises = part <= self.step_ratio
        height = part / self.step_ratio if rises else (part - 1) / (self.step_ratio - 1)
        return height * self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)

    def initial(self, lr: float, n: int) -> float:
        return self.following(lr, n)

    def following(self, lr: float, n: int) -> float:
        height = self._height()
        if self.cycle_momentum:
            highest = self.max_momentums[n]
            low = highest - (highest - self.base_momentums[n]) * height
            set_momentum(self.optimizer.param_groups[n], low)
        return self.base_lrs[n] + (self.max_lrs[n] - self.base_lrs[n]) * height

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimiser and a plain function, which is code."""
        found = super().state_dict()
        function = found.pop("_scale_fn_custom")
        plain = function is None or hasattr(function, "__code__")
        found["_scale_fn_custom"] = None if plain else dict(function.__dict__)
        return found

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        saved = dict(state_dict)
        function = saved.pop("_scale_fn_custom", None)
        super().load_state_dict(saved)
        if function is not None and self._scale_fn_custom is not None:
            self._scale_fn_custom.__dict__.update(function)


class CosineAnnealingWarmRestarts(LRScheduler):
    """Half a cosine down to eta_min in T_0 steps, then from the top again, T_mult times as long.

    >>> import monograph as mg
    >>> optimizer = mg.optim.SGD([mg.nn.Parameter([0.0])], lr=1.0)
    >>> schedule = mg.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, T_0=2)
    >>> rates = []
    >>> for _ in range(4):
    ...     rates += schedule.get_last_lr()
    ...     optimizer.step()
    ...     schedule.step()
    >>> [round(rate, 4) for rate in rates]
    [1.0, 0.5, 1.0, 0.5]
    """

    def __init__(
        self, optimizer: Optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0.0,
        last_epoch: int = -1,
    ) -> None:  # fmt: skip
        if T_0 <= 0 or not isinstance(T_0, int):
            raise ValueError(f"Expected positive integer T_0, but got {T_0}")
        if T_mult < 1 or not isinstance(T_mult, int):
            raise ValueError(f"Expected integer T_mult >= 1, but got {T_mult}")
        self.T_0 = T_0
        self.T_i = T_0
        self.T_mult = T_mult
        self.eta_min = eta_min
        self.T_cur: float = last_epoch
        super().__init__(optimizer, last_epoch)

    def initial(self, lr: float, n: int) -> float:
        return self.following(lr, n)

    def following(self, lr: float, n: int) -> float:
        height = (1 + math.cos(math.pi * self.T_cur / self.T_i)) / 2
        return self.eta_min + (self.base_lrs[n] - self.eta_min) * height

    def step(self, epoch: float | None = None) -> None:
        """Go to the next step, or to the one given, which may be a fraction."""
        if epoch is None and self.last_epoch < 0:
            epoch = 0
        if epoch is None:
            self.last_epoch += 1
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur %= self.T_i
                self.T_i *= self.T_mult
        else:
            if epoch < 0:
                raise ValueError(f"Expected non-negative epoch, but got {epoch}")
            self.T_cur, self.T_i = self._place(epoch)
            self.last_epoch = math.floor(epoch)
        self._assign(self.get_lr())

    def _place(self, epoch: float) -> tuple[float, int]:
        """How far the cosine of an epoch has come, and how long it is."""
        if epoch < self.T_0:
            return epoch, self.T_0
        if self.T_mult == 1:
            return epoch % self.T_0, self.T_i
        restarts = int(math.log(epoch / self.T_0 * (self.T_mult - 1) + 1, self.T_mult))
        begun = self.T_0 * (self.T_mult**restarts - 1) / (self.T_mult - 1)
        return epoch - begun, self.T_0 * self.T_mult**restarts
