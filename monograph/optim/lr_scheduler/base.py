"""What all schedules have in common: at each `step` they set the `lr` of an optimiser's groups.

A schedule says how one step leads from the current rate to the next (`following`), so that several
may act on one optimiser, and what the rate is after a number of steps from the start
(`closed_form`), so that one may start in the middle. Formulas and names are PyTorch's.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ...autograd.modes import no_grad
from ...lines import warn
from ...tensor import Tensor
from ..optimizer import Group, Optimizer


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
                group.setdefault("initial_lr", own(group["lr"]))
            elif "initial_lr" not in group:
                raise KeyError(
                    f"param 'initial_lr' is not specified in param_groups[{n}]: to resume a "
                    "schedule, load the optimizer's state first"
                )
        self.base_lrs: list[float] = [own(group["initial_lr"]) for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        self._initial_step()

    _is_initial = False

    def _initial_step(self) -> None:
        """The step to the first rate; a schedule of one's own may take part by its `step`."""
        self._step_count = 0
        self._is_initial = True
        try:
            self.step()
        finally:
            del self._is_initial

    def _groups(self) -> Iterable[tuple[int, Group]]:
        return enumerate(self.optimizer.param_groups)

    def _assign(self, rates: Sequence[float]) -> None:
        for group, rate in zip(self.optimizer.param_groups, rates, strict=True):
            set_rate(group, rate)
        self._last_lr = self._rates()

    def _rates(self) -> list[float]:
        """The rates as they are now, which stay these."""
        return [own(group["lr"]) for _, group in self._groups()]

    # --- what a schedule defines ---

    def initial(self, lr: float, n: int) -> float:
        """The rate of group n as the schedule starts."""
        return lr

    def following(self, lr: float, n: int) -> float:
        """The rate of group n at step `last_epoch`, from the rate of the step before."""
        raise NotImplementedError

    def closed_form(self, n: int) -> float:
        """The rate of group n at step `last_epoch`, from the base rate."""
        return self.get_lr()[n]

    def get_lr(self) -> list[float]:
        """The rates that the next step sets; a schedule of one's own may define this instead."""
        rule = self.initial if self._is_initial else self.following
        try:
            return [rule(group["lr"], n) for n, group in self._groups()]
        except IndexError:
            if len(self.base_lrs) == len(self.optimizer.param_groups):
                raise
            raise ValueError(
                f"the optimizer has {len(self.optimizer.param_groups)} parameter groups and the "
                f"schedule was made for {len(self.base_lrs)}: make it anew after add_param_group"
            ) from None

    # --- what users call ---

    def step(self, epoch: int | None = None) -> None:
        """Go to the next step, or to the one given."""
        if self._step_count == 1 and not getattr(self.optimizer, "_opt_called", True):
            warn(
                "lr_scheduler.step() was called before optimizer.step(): the first rate of the "
                "schedule is skipped. Call optimizer.step() first"
            )
        self._step_count += 1
        self._update_lr(epoch)

    def _update_lr(self, epoch: int | None = None) -> None:
        if epoch is None:
            self.last_epoch += 1
            self._assign(self.get_lr())
            return
        self.last_epoch = epoch
        users: Any = getattr(self, "_get_closed_form_lr", None)  # PyTorch's name for all groups
        self._assign(users() if users else [self.closed_form(n) for n, _ in self._groups()])

    def get_last_lr(self) -> list[float]:
        """The rates that the last step set, one per group."""
        return self._last_lr

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimiser."""
        return {name: value for name, value in self.__dict__.items() if name != "optimizer"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continue where `state_dict` was called."""
        self.__dict__.update(state_dict)


def own(rate: Any) -> Any:
    """A rate that nobody changes: a copy where it is a tensor."""
    return rate.detach().clone() if isinstance(rate, Tensor) else rate


def set_rate(group: Group, rate: Any) -> None:
    """Set a group's rate; one that is a tensor stays that tensor."""
    held = group["lr"]
    if isinstance(held, Tensor):
        with no_grad():
            held.fill_(rate)
    else:
        group["lr"] = rate


def per_group(name: str, optimizer: Optimizer, given: Any) -> list[float]:
    """One number for each parameter group."""
    groups = len(optimizer.param_groups)
    if not isinstance(given, (list, tuple)):
        return [given] * groups
    if len(given) != groups:
        raise ValueError(f"{name} must have the same length as the {groups} parameter groups")
    return list(given)


def set_momentum(group: Group, value: float) -> None:
    """Set a group's momentum, or the first of its betas."""
    if "betas" in group:
        group["betas"] = (value, *group["betas"][1:])
    else:
        group["momentum"] = value


def check_momentum(optimizer: Optimizer) -> None:
    """Refuse an optimiser that has no momentum to cycle."""
    if "momentum" not in optimizer.defaults and "betas" not in optimizer.defaults:
        raise ValueError(
            "optimizer must support momentum or beta1 with `cycle_momentum` option enabled"
        )
