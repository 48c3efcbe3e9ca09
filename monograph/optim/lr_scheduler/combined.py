"""Schedules made of others: one after the other, or all at once."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from ..optimizer import Optimizer
from .base import LRScheduler, set_rate
from .plateau import ReduceLROnPlateau


class _Combined(LRScheduler):
    """A schedule that holds others."""

    _schedulers: Sequence[LRScheduler]

    def _check(self, schedulers: Sequence[LRScheduler]) -> None:
        """Refuse what cannot be stepped without a result."""
        for n, scheduler in enumerate(schedulers):
            if isinstance(scheduler, ReduceLROnPlateau):
                raise ValueError(
                    f"{type(self).__name__} does not support `ReduceLROnPlateau` scheduler as it "
                    "requires additional kwargs to be specified when calling `step`, but got one "
                    f"at index {n} in the given schedulers sequence."
                )

    def _undo(self) -> None:
        """Take back the step that constructing a schedule makes."""
        for scheduler in self._schedulers:
            if isinstance(scheduler, _Combined):
                scheduler._undo()
            else:
                scheduler.last_epoch -= 1

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


class SequentialLR(_Combined):
    """Schedules one after the other, changing at the milestones.

    >>> import monograph as mg
    >>> optimizer = mg.optim.SGD([mg.nn.Parameter([0.0])], lr=1.0)
    >>> first = mg.optim.lr_scheduler.ConstantLR(optimizer, factor=0.5, total_iters=2)
    >>> second = mg.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
    >>> schedule = mg.optim.lr_scheduler.SequentialLR(optimizer, [first, second], milestones=[2])
    >>> rates = []
    >>> for _ in range(4):
    ...     rates += schedule.get_last_lr()
    ...     optimizer.step()
    ...     schedule.step()
    >>> rates
    [0.5, 0.5, 1.0, 0.5]
    """

    def __init__(
        self, optimizer: Optimizer, schedulers: list[LRScheduler], milestones: list[int],
        last_epoch: int = -1,
    ) -> None:  # fmt: skip
        if not schedulers:
            raise ValueError("SequentialLR expects at least one scheduler")
        self._check(schedulers)
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
            set_rate(group, group["initial_lr"])
        self._undo()
        first = schedulers[bisect_right(milestones, 0)]
        first._initial_step()
        self._last_lr = first.get_last_lr()

    def step(self) -> None:  # type: ignore[override]
        """Go to the next step, in the schedule whose turn it is."""
        self.last_epoch += 1
        turn = bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[turn]
        if turn > 0 and self._milestones[turn - 1] == self.last_epoch:
            scheduler._update_lr(0)
        else:
            scheduler.step()
        self._last_lr = scheduler.get_last_lr()


class ChainedScheduler(_Combined):
    """Schedules that all step at each step, each from the rate that the one before leaves.

    >>> import monograph as mg
    >>> optimizer = mg.optim.SGD([mg.nn.Parameter([0.0])], lr=1.0)
    >>> first = mg.optim.lr_scheduler.ConstantLR(optimizer, factor=0.5, total_iters=2)
    >>> second = mg.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
    >>> schedule = mg.optim.lr_scheduler.ChainedScheduler([first, second])
    >>> rates = []
    >>> for _ in range(4):
    ...     rates += schedule.get_last_lr()
    ...     optimizer.step()
    ...     schedule.step()
    >>> rates
    [0.5, 0.25, 0.25, 0.125]
    """

    def __init__(
        self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None
    ) -> None:
        if not schedulers:
            raise ValueError(
                "ChainedScheduler expects at least one scheduler to be chained, but got no "
                "scheduler."
            )
        self.optimizer = optimizer or schedulers[0].optimizer
        self._check(schedulers)
        for scheduler in schedulers:
            if scheduler.optimizer is not self.optimizer:
                raise ValueError(
                    "ChainedScheduler expects all schedulers to belong to the same optimizer"
                )
        self._schedulers = schedulers
        self._last_lr = self._rates()

    def step(self) -> None:  # type: ignore[override]
        """Step each schedule."""
        for scheduler in self._schedulers:
            scheduler.step()
        self._last_lr = self._rates()
