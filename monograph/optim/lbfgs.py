"""L-BFGS: steps that follow the curvature learnt from the last gradients.

Each iteration needs values to decide how to go on, so the gradient is read, and the algebra of the
history, a few passes over vectors, is done with NumPy. What is compiled is the closure.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import record
from ..autograd.modes import enable_grad
from ..nn.parameter import fill_from_array, known
from ..nn.state import array_of
from ..recorder import current
from ..tensor import Tensor
from .line_search import Point, StrongWolfe, dot
from .optimizer import Group, Optimizer, number


class LBFGS(Optimizer):
    """Minimise a closure's loss; each `step` makes up to `max_iter` iterations.

    >>> import monograph as mg
    >>> x = mg.nn.Parameter([3.0, -2.0])
    >>> optimizer = mg.optim.LBFGS([x], line_search_fn="strong_wolfe")
    >>> def closure():
    ...     optimizer.zero_grad()
    ...     loss = ((x - 1.0) ** 2).sum()
    ...     loss.backward()
    ...     return loss
    >>> _ = optimizer.step(closure)
    >>> [round(v, 4) for v in x.tolist()]
    [1.0, 1.0]
    """

    def __init__(
        self, params: Any, lr: float = 1, max_iter: int = 20, max_eval: int | None = None,
        tolerance_grad: float = 1e-7, tolerance_change: float = 1e-9, history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:  # fmt: skip
        number(lr, "learning rate")
        defaults = {
            "lr": lr, "max_iter": max_iter,
            "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
            "tolerance_grad": tolerance_grad, "tolerance_change": tolerance_change,
            "history_size": history_size, "line_search_fn": line_search_fn,
        }  # fmt: skip
        super().__init__(params, defaults)
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Minimise; the closure clears gradients, computes the loss, and calls backward."""
        if closure is None:
            raise TypeError("LBFGS needs a closure: it evaluates the loss several times a step")
        search = _Minimisation(self.param_groups[0], self._memory(), closure)
        first = search.run()
        self._keep(search.memory)
        if not current.recorder.hold:
            record.flush("optimizer step")
        return first

    # State is PyTorch's: of the first parameter, in tensors and numbers.

    def _memory(self) -> dict[str, Any]:
        held = self.state[self.param_groups[0]["params"][0]]
        memory: dict[str, Any] = {"func_evals": 0, "n_iter": 0}
        for name, value in held.items():
            if isinstance(value, list):
                memory[name] = [_plain(entry) for entry in value]
            else:
                memory[name] = _plain(value)
        return memory

    def _keep(self, memory: dict[str, Any]) -> None:
        held = self.state[self.param_groups[0]["params"][0]]
        for name, value in memory.items():
            if isinstance(value, list):
                held[name] = [_stored(entry) for entry in value]
            else:
                held[name] = _stored(value)

    def _load_param(self, p: Tensor, group: Group, saved: Any) -> None:
        self.state[p] = {
            name: [_stored(_plain(v)) for v in value] if isinstance(value, list) else value
            for name, value in saved.items()
        }


def _plain(value: Any) -> Any:
    if not hasattr(value, "shape"):
        return value
    array = array_of(value)  # not a copy: nothing here is written into
    return float(array) if array.ndim == 0 else array


def _stored(value: Any) -> Any:
    return known(value) if isinstance(value, np.ndarray) else value


class _Minimisation:
    """One step of the optimiser: several iterations from where the parameters are."""

    def __init__(self, group: Group, memory: dict[str, Any], closure: Callable[[], Any]) -> None:
        self.group = group
        self.params: list[Tensor] = group["params"]
        self.memory = memory
        self.closure = closure
        self.value = 0.0
        self.gradient: np.ndarray = np.zeros(0)

    def _evaluate(self) -> Any:
        with enable_grad():
            loss = self.closure()
        self.value = float(loss)
        self.gradient = np.concatenate([
            np.zeros(p.numel(), p.dtype.numpy) if p._grad is None else p._grad._array().reshape(-1)
            for p in self.params
        ])  # fmt: skip
        return loss

    def _position(self) -> np.ndarray:
        return np.concatenate([p._array().reshape(-1) for p in self.params])

    def _move_to(self, position: np.ndarray) -> None:
        start = 0
        for p in self.params:
            part = position[start : start + p.numel()]
            fill_from_array(p, part.reshape(tuple(p.shape)))
            start += p.numel()

    def run(self) -> Any:
        """Iterate until done; the loss at the start is returned."""
        first = self._evaluate()
        self.memory["func_evals"] += 1
        evaluations, iterations = 1, 0
        if np.abs(self.gradient).max() <= self.group["tolerance_grad"]:
            return first
        while iterations < self.group["max_iter"]:
            iterations += 1
            self.memory["n_iter"] += 1
            direction = self._direction()
            before = self.value
            self.memory.update(d=direction, prev_flat_grad=self.gradient, prev_loss=before)
            length = float(self.group["lr"])
            if self.memory["n_iter"] == 1:
                length *= min(1.0, 1.0 / float(np.abs(self.gradient).sum()))
            slope = dot(self.gradient, direction)
            if slope > -self.group["tolerance_change"]:
                self.memory["t"] = length
                break
            last = iterations == self.group["max_iter"]
            length, tried = self._go(direction, length, slope, evaluations, last)
            self.memory["t"] = length
            evaluations += tried
            self.memory["func_evals"] += tried
            if last or self._is_done(evaluations, direction * length, before):
                break
        return first

    def _is_done(self, evaluations: int, change: np.ndarray, before: float) -> bool:
        return bool(
            evaluations >= self.group["max_eval"]
            or np.abs(self.gradient).max() <= self.group["tolerance_grad"]
            or np.abs(change).max() <= self.group["tolerance_change"]
            or abs(self.value - before) < self.group["tolerance_change"]
        )

    def _direction(self) -> np.ndarray:
        """The gradient, turned by the inverse Hessian that the history implies."""
        memory = self.memory
        if memory["n_iter"] == 1:
            memory.update(old_dirs=[], old_stps=[], ro=[], H_diag=1.0)
            return -self.gradient
        self._remember()
        history = list(zip(memory["old_dirs"], memory["old_stps"], memory["ro"], strict=True))
        direction = -self.gradient
        scalar, part = direction.dtype.type, np.empty_like(direction)
        shares = []
        for y, s, ro in reversed(history):
            shares.append(dot(s, direction) * ro)
            direction -= np.multiply(y, scalar(shares[-1]), out=part)
        direction *= scalar(memory["H_diag"])
        for y, s, ro in history:
            rest = shares.pop() - dot(y, direction) * ro
            direction += np.multiply(s, scalar(rest), out=part)
        return direction

    def _remember(self) -> None:
        """Add the last step and the change of the gradient, if they show positive curvature."""
        memory = self.memory
        y = self.gradient - memory["prev_flat_grad"]
        s = memory["d"] * memory["d"].dtype.type(memory["t"])
        curvature = dot(y, s)
        if curvature <= 1e-10:
            return
        if len(memory["old_dirs"]) == self.group["history_size"]:
            for name in ("old_dirs", "old_stps", "ro"):
                memory[name].pop(0)
        memory["old_dirs"].append(y)
        memory["old_stps"].append(s)
        memory["ro"].append(1.0 / curvature)
        memory["H_diag"] = curvature / dot(y, y)

    def _go(
        self, direction: np.ndarray, length: float, slope: float, evaluations: int, last: bool
    ) -> tuple[float, int]:
        """Move along the direction: (how far, evaluations on the way)."""
        position = self._position()
        if self.group["line_search_fn"] is None:
            self._move_to(position + direction * direction.dtype.type(length))
            if not last:
                self._evaluate()
            return length, 0 if last else 1
        if self.group["line_search_fn"] != "strong_wolfe":
            raise RuntimeError("only 'strong_wolfe' is supported")

        def objective(length: float) -> tuple[float, np.ndarray]:
            self._move_to(position + direction * direction.dtype.type(length))
            self._evaluate()
            return self.value, self.gradient

        start = Point(0.0, self.value, self.gradient, slope)
        most = self.group["max_eval"] - evaluations
        found, tried = StrongWolfe(objective, direction, start, most).run(length)
        self.value, self.gradient = found.value, found.gradient
        self._move_to(position + direction * direction.dtype.type(found.length))
        return found.length, tried
