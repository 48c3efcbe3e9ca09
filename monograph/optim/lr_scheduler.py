"""Learning-rate schedules: they set the `lr` of an optimiser's groups each time they `step`.

A schedule says how one step leads from the current rate to the next (`following`), so that several
may act on one optimiser, and what the rate is after a number of steps from the start
(`closed_form`), so that one may start in the middle. Formulas and names are PyTorch's.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from .optimizer import Group, Optimizer


class LRScheduler:
    """Base of all schedules; constructing one sets the rate of the first step.

    >>> import monograph as mg
    >>> optimizer = mg.optim.SGD([mg.nn.Parameter([0.0])], lr=1.0)
    >>> schedule = mg.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.1)
    >>> for _ in range(2):
    ...     optimizer.step()
    ...     schedule.step()
    >>> schedule.get_last_lr()
    [0.1]
    """

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
        self.optimizer = optimizer
        for n, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", group["lr"])
            elif "initial_lr" not in group:
                raise KeyError(
                    f"param 'initial_lr' is not specified in param_groups[{n}]: to resume a "
                    "schedule, load the optimizer's state first"
                )
        self.base_lrs: list[float] = [group["initial_lr"] for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        self._initial_step()

    def _initial_step(self) -> None:
        self._step_count = 1
        self.last_epoch += 1
        self._assign([self.initial(group["lr"], n) for n, group in self._groups()])

    def _groups(self) -> Iterable[tuple[int, Group]]:
        return enumerate(self.optimizer.param_groups)

    def _assign(self, rates: Sequence[float]) -> None:
        for group, rate in zip(self.optimizer.param_groups, rates, strict=True):
            group["lr"] = rate
        self._last_lr = list(rates)

    # --- what a schedule defines ---

    def initial(self, lr: float, n: int) -> float:
        """The rate of group n as the schedule starts."""
        return lr

    def following(self, lr: float, n: int) -> float:
        """The rate of group n at step `last_epoch`, from the rate of the step before."""
        raise NotImplementedError

    def closed_form(self, n: int) -> float:
        """The rate of group n at step `last_epoch`, from the base rate."""
        return self.following(self.optimizer.param_groups[n]["lr"], n)

    # --- what users call ---

    def step(self, epoch: int | None = None) -> None:
        """Go to the next step, or to the one given."""
        self._step_count += 1
        if epoch is None:
            self.last_epoch += 1
            self._assign([self.following(group["lr"], n) for n, group in self._groups()])
        else:
            self.last_epoch = epoch
            self._assign([self.closed_form(n) for n, _ in self._groups()])

    def get_last_lr(self) -> list[float]:
        """The rates that the last step set, one per group."""
        return self._last_lr

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimiser."""
        return {name: value for name, value in self.__dict__.items() if name != "optimizer"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continue where `state_dict` was called."""
        self.__dict__.update(state_dict)


class LambdaLR(LRScheduler):
    """The base rate times a function of the step."""

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

    def closed_form(self, n: int) -> float:
        return self.base_lrs[n] * self.lr_lambdas[n](self.last_epoch)

    def initial(self, lr: float, n: int) -> float:
        return self.closed_form(n)

    def following(self, lr: float, n: int) -> float:
        return self.closed_form(n)

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


class StepLR(LRScheduler):
    """The rate times gamma every step_size steps."""

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
    """The rate times gamma at each milestone."""

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
    """The rate times gamma every step."""

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def following(self, lr: float, n: int) -> float:
        return lr * self.gamma

    def closed_form(self, n: int) -> float:
        return self.base_lrs[n] * self.gamma**self.last_epoch


class LinearLR(LRScheduler):
    """The base rate times a factor that goes from start_factor to end_factor in total_iters."""

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


class CosineAnnealingLR(LRScheduler):
    """Half a cosine from the base rate to eta_min in T_max steps, and back."""

    def __init__(
        self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        self.T_max = T_max
        self.eta_min = eta_min
        super().__init__(optimizer, last_epoch)

    def _height(self, epoch: int) -> float:
        return 1 + math.cos(math.pi * epoch / self.T_max)

    def following(self, lr: float, n: int) -> float:
        span = self.base_lrs[n] - self.eta_min
        if (self.last_epoch - 1 - self.T_max) % (2 * self.T_max) == 0:  # the step before was lowest
            return lr + span * (1 - math.cos(math.pi / self.T_max)) / 2
        ratio = self._height(self.last_epoch) / self._height(self.last_epoch - 1)
        return ratio * (lr - self.eta_min) + self.eta_min

    def closed_form(self, n: int) -> float:
        span = self.base_lrs[n] - self.eta_min
        return self.eta_min + span * self._height(self.last_epoch) / 2


def _per_group(name: str, optimizer: Optimizer, given: Any) -> list[float]:
    groups = len(optimizer.param_groups)
    if not isinstance(given, (list, tuple)):
        return [given] * groups
    if len(given) != groups:
        raise ValueError(f"{name} must have the same length as the {groups} parameter groups")
    return list(given)


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
    """The 1cycle policy: up to max_lr and down far below, momentum the other way."""

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
            highest = _per_group("max_lr", optimizer, max_lr)
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
        if "momentum" not in optimizer.defaults and "betas" not in optimizer.defaults:
            raise ValueError("cycle_momentum needs an optimizer with momentum or betas")
        lowest = _per_group("base_momentum", optimizer, base_momentum)
        highest = _per_group("max_momentum", optimizer, max_momentum)
        if last_epoch == -1:
            for n, group in enumerate(optimizer.param_groups):
                group["max_momentum"], group["base_momentum"] = highest[n], lowest[n]
                self._set_momentum(group, highest[n])

    @staticmethod
    def _set_momentum(group: Group, value: float) -> None:
        if "betas" in group:
            group["betas"] = (value, *group["betas"][1:])
        else:
            group["momentum"] = value

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
            self._set_momentum(group, momentum)
        return anneal(group[start], group[end], part)


class SequentialLR(LRScheduler):
    """Schedules one after the other, changing at the milestones."""

    def __init__(
        self, optimizer: Optimizer, schedulers: list[LRScheduler], milestones: list[int],
        last_epoch: int = -1,
    ) -> None:  # fmt: skip
        if not schedulers:
            raise ValueError("SequentialLR expects at least one scheduler")
        if any(scheduler.optimizer is not optimizer for scheduler in schedulers):
            raise ValueError("SequentialLR expects all schedulers to belong to the same optimizer")
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(
                f"SequentialLR expects one milestone less than schedulers, got {len(milestones)} "
                f"milestones for {len(schedulers)} schedulers"
            )
        self.optimizer = optimizer
        self._schedulers = schedulers
        self._milestones = milestones
        self.last_epoch = last_epoch + 1
        for group in optimizer.param_groups:
            group["lr"] = group["initial_lr"]
        self._undo()
        first = schedulers[bisect_right(milestones, 0)]
        first._initial_step()
        self._last_lr = first.get_last_lr()

    def _undo(self) -> None:
        """Take back the step that constructing a schedule makes."""
        for scheduler in self._schedulers:
            if isinstance(scheduler, SequentialLR):
                scheduler._undo()
            else:
                scheduler.last_epoch -= 1

    def step(self, epoch: int | None = None) -> None:
        """Go to the next step, in the schedule whose turn it is."""
        self.last_epoch += 1
        turn = bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[turn]
        starts = turn > 0 and self._milestones[turn - 1] == self.last_epoch
        scheduler.step(0 if starts else None)
        self._last_lr = scheduler.get_last_lr()

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimiser, the schedules as their own dictionaries."""
        found = super().state_dict()
        found["_schedulers"] = [scheduler.state_dict() for scheduler in self._schedulers]
        return found

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        others = {name: value for name, value in state_dict.items() if name != "_schedulers"}
        self.__dict__.update(others)
        for scheduler, saved in zip(self._schedulers, state_dict["_schedulers"], strict=True):
            scheduler.load_state_dict(saved)
