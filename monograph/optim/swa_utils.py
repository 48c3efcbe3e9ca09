"""Averages of a model's weights over training: stochastic weight averaging, moving averages."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from typing import Any

from ..autograd.modes import no_grad
from ..ir.dtypes import float64
from ..nn.module import Module
from ..tensor import Tensor, tensor
from .lr_scheduler.base import LRScheduler, per_group
from .optimizer import Optimizer

Average = Callable[[Tensor, Tensor, Any], Tensor]
Averages = Callable[[Sequence[Tensor], Sequence[Tensor], Any], None]


def get_ema_avg_fn(decay: float = 0.999) -> Average:
    """average ← decay · average + (1 - decay) · current, for one tensor."""
    _check_decay(decay)

    def ema_update(averaged: Tensor, current: Tensor, num_averaged: Any) -> Tensor:
        return decay * averaged + (1 - decay) * current  # type: ignore[no-any-return]

    return ema_update


def get_swa_avg_fn() -> Average:
    """The mean of all tensors so far, as a running mean, for one tensor."""

    def swa_update(averaged: Tensor, current: Tensor, num_averaged: Any) -> Tensor:
        return averaged + (current - averaged) / (num_averaged + 1)  # type: ignore[no-any-return]

    return swa_update


def get_ema_multi_avg_fn(decay: float = 0.999) -> Averages:
    """The moving average for many tensors, in place."""
    return _drawn(get_ema_avg_fn(decay), lambda number: 1 - decay)


def get_swa_multi_avg_fn() -> Averages:
    """The mean of all so far for many tensors, in place."""
    return _drawn(get_swa_avg_fn(), lambda number: 1 / (number + 1))


def _check_decay(decay: float) -> None:
    if not 0.0 <= decay <= 1.0:
        raise ValueError(f"Invalid decay value {decay} provided. Please provide a value in [0,1].")


def _for_all(average: Average) -> Averages:
    def update(averaged: Sequence[Tensor], current: Sequence[Tensor], num_averaged: Any) -> None:
        with no_grad():
            for mean, new in zip(averaged, current, strict=True):
                mean.copy_(average(mean, new, num_averaged))

    return update


def _drawn(average: Average, share: Callable[[Any], Any]) -> Averages:
    """Draw floats towards what is new by a share of the way; other numbers become `average`."""
    one_by_one = _for_all(average)

    def update(averaged: Sequence[Tensor], current: Sequence[Tensor], num_averaged: Any) -> None:
        shares: dict[Any, Any] = {}  # by dtype: the number of averages may be a tensor
        with no_grad():
            for mean, new in zip(averaged, current, strict=True):
                kind = mean.dtype
                if not kind.is_floating_point or new.dtype is not kind:
                    one_by_one([mean], [new], num_averaged)
                    continue
                if kind not in shares:
                    pending = isinstance(num_averaged, Tensor)
                    found = share(num_averaged.to(float64) if pending else num_averaged)
                    shares[kind] = found.to(kind) if isinstance(found, Tensor) else found
                mean.lerp_(new, shares[kind])

    return update


class AveragedModel(Module):
    """A copy of a model whose parameters are averages of the model's over time.

    >>> import monograph as mg
    >>> model = mg.nn.Linear(1, 1)
    >>> averaged = mg.optim.swa_utils.AveragedModel(model)
    >>> averaged.update_parameters(model)
    >>> averaged.n_averaged.item()
    1
    """

    n_averaged: Tensor
    _counted = (0, 0)  # which tensor counted the last call, and its version then

    def __init__(
        self, model: Module, device: Any = None, avg_fn: Average | None = None,
        multi_avg_fn: Averages | None = None, use_buffers: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided")
        self.module = deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", tensor(0))
        self.avg_fn = avg_fn
        self.multi_avg_fn = multi_avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.module(*args, **kwargs)

    def update_parameters(self, model: Module) -> None:
        """Take the model's present parameters into the averages."""
        count = self.n_averaged
        with no_grad():
            own, given = self._averaged(self.module), self._averaged(model)
            # Where nothing but the last call wrote to it, it is not zero and need not be read.
            if self._counted != (id(count), count._storage.version) and int(count) == 0:
                for mean, new in zip(own, given, strict=True):
                    mean.copy_(new)
            elif self.avg_fn is not None:
                _for_all(self.avg_fn)(own, given, self.n_averaged)
            else:
                (self.multi_avg_fn or get_swa_multi_avg_fn())(own, given, self.n_averaged)
            if not self.use_buffers:
                for mine, theirs in zip(self.module.buffers(), model.buffers(), strict=True):
                    mine.copy_(theirs)
            count.add_(1)
            self._counted = id(count), count._storage.version

    def _averaged(self, model: Module) -> list[Any]:
        held = [*model.parameters(), *(model.buffers() if self.use_buffers else ())]
        is_own = self.avg_fn is None and self.multi_avg_fn is None
        return held if is_own else [t.detach() for t in held]  # as functions of users expect


def update_bn(loader: Iterable[Any], model: Module, device: Any = None) -> None:
    """Compute the running statistics of all batch norms anew, in one pass over the data.

    >>> import monograph as mg
    >>> model = mg.nn.Sequential(mg.nn.BatchNorm1d(2))
    >>> mg.optim.swa_utils.update_bn([mg.full((4, 2), 3.0)], model)
    >>> model[0].running_mean.tolist()
    [3.0, 3.0]
    """
    from ..nn.batch_norm import _BatchNorm

    momenta = {m: m.momentum for m in model.modules() if isinstance(m, _BatchNorm)}
    if not momenta:
        return
    was_training = model.training
    model.train()
    for layer in momenta:
        layer.reset_running_stats()
        layer.momentum = None  # type: ignore[assignment]
    with no_grad():
        for batch in loader:
            given = batch[0] if isinstance(batch, (list, tuple)) else batch
            model(given if device is None else given.to(device))
    for layer, momentum in momenta.items():
        layer.momentum = momentum
    model.train(was_training)


class SWALR(LRScheduler):
    """From the present rate to `swa_lr` in `anneal_epochs` steps, and constant from there."""

    def __init__(
        self, optimizer: Optimizer, swa_lr: Any, anneal_epochs: int = 10,
        anneal_strategy: str = "cos", last_epoch: int = -1,
    ) -> None:  # fmt: skip
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(
                f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}"
            )
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        for rate, group in zip(
            per_group("swa_lr", optimizer, swa_lr), optimizer.param_groups, strict=True
        ):
            group["swa_lr"] = rate
        self._anneal_strategy = anneal_strategy
        self.anneal_epochs = anneal_epochs
        super().__init__(optimizer, last_epoch)

    def anneal_func(self, part: float) -> float:
        """How much of the change is made after a part of the time."""
        return part if self._anneal_strategy == "linear" else (1 - math.cos(math.pi * part)) / 2

    def initial(self, lr: float, n: int) -> float:
        return self.following(lr, n)

    def following(self, lr: float, n: int) -> float:
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        last = self.optimizer.param_groups[n]["swa_lr"]
        length = max(1, self.anneal_epochs)
        before = self.anneal_func(max(0, min(1, (step - 1) / length)))
        start = last if before == 1 else (lr - before * last) / (1 - before)
        now = self.anneal_func(max(0, min(1, step / length)))
        return float(last * now + start * (1 - now))
