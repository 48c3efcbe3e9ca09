"""`GradScaler`: losses are scaled up, so that small gradients in float16 are not lost.

A step is left out when some gradient is infinite or NaN, and the scale becomes smaller; after many
steps without that it grows again.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from enum import Enum
from typing import Any

from ..autograd.modes import no_grad
from ..ops.joining import stack
from ..tensor import Tensor


class OptState(Enum):
    """What was done for an optimiser since the last update of the scale."""

    READY = 0
    UNSCALED = 1
    STEPPED = 2


class GradScaler:
    """Scales losses, undoes it in gradients, and leaves out steps that would spoil the weights.

    >>> scaler = GradScaler("cpu", init_scale=8.0)
    >>> import monograph as mg
    >>> scaler.scale(mg.tensor(2.0)).item()
    16.0
    """

    def __init__(
        self, device: str = "cuda", init_scale: float = 2.0**16, growth_factor: float = 2.0,
        backoff_factor: float = 0.5, growth_interval: int = 2000, enabled: bool = True,
    ) -> None:  # fmt: skip
        self._device = device
        if enabled and device != "cpu":
            warnings.warn(
                "torch.cuda.amp.GradScaler is enabled, but CUDA is not available.  Disabling.",
                stacklevel=2,
            )
            enabled = False
        if growth_factor <= 1.0:
            raise AssertionError("The growth factor must be > 1.0.")
        if backoff_factor >= 1.0:
            raise AssertionError("The backoff factor must be < 1.0.")
        self._enabled = enabled
        self._scale = init_scale
        self._growth_factor, self._backoff_factor = growth_factor, backoff_factor
        self._growth_interval = growth_interval
        self._growth_tracker = 0
        self._begun = False  # whether anything was scaled
        self._done: dict[int, OptState] = {}  # by the id of an optimiser
        self._spoilt: dict[int, bool | None] = {}

    def is_enabled(self) -> bool:
        """Whether anything is scaled."""
        return self._enabled

    def scale(self, outputs: Any) -> Any:
        """A loss, or several, times the scale."""
        if not self._enabled:
            return outputs
        self._begun = True
        if isinstance(outputs, Tensor):
            return outputs * self._scale
        if isinstance(outputs, Iterable):
            made = [self.scale(output) for output in outputs]
            return made if isinstance(outputs, list) else tuple(made)
        raise ValueError("outputs must be a Tensor or an iterable of Tensors")

    def unscale_(self, optimizer: Any) -> None:
        """Divide the gradients by the scale, and see whether they are finite."""
        if not self._enabled:
            return
        state = self._done.get(id(optimizer), OptState.READY)
        if state is OptState.UNSCALED:
            raise RuntimeError(
                "unscale_() has already been called on this optimizer since the last update()."
            )
        if state is OptState.STEPPED:
            raise RuntimeError("unscale_() is being called after step().")
        self._check_begun("unscale_")
        self._spoilt[id(optimizer)] = self._unscale(optimizer)
        self._done[id(optimizer)] = OptState.UNSCALED

    def _check_begun(self, what: str) -> None:
        if not self._begun:
            raise AssertionError(
                f"Attempted {what} but nothing was scaled: call scaler.scale(loss or outputs) "
                "earlier in the iteration."
            )

    def _unscale(self, optimizer: Any) -> bool | None:
        """Whether some gradient is infinite or NaN; None where there is no gradient."""
        params = [p for group in optimizer.param_groups for p in group["params"]]
        gradients = [p.grad for p in params if p.grad is not None]
        if not gradients:
            return None
        with no_grad():
            finite = [gradient.isfinite().all() for gradient in gradients]
            for gradient in gradients:
                gradient.mul_(1.0 / self._scale)
            return not stack(finite).all().item()

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """The optimiser's step, unless some gradient is infinite or NaN."""
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        self._check_begun("step")
        state = self._done.get(id(optimizer), OptState.READY)
        if state is OptState.STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        if state is OptState.READY:
            self.unscale_(optimizer)
        if self._spoilt[id(optimizer)] is None:
            raise AssertionError("No inf checks were recorded for this optimizer.")
        self._done[id(optimizer)] = OptState.STEPPED
        return None if self._spoilt[id(optimizer)] else optimizer.step(*args, **kwargs)

    def update(self, new_scale: Any = None) -> None:
        """Change the scale for the next step by what was found in this one."""
        if not self._enabled:
            return
        self._check_begun("update")
        if new_scale is not None:
            self._scale = float(new_scale)
        elif all(found is None for found in self._spoilt.values()):
            raise AssertionError("No inf checks were recorded prior to update.")
        elif any(self._spoilt.values()):
            self._scale *= self._backoff_factor
            self._growth_tracker = 0
        else:
            self._growth_tracker += 1
            if self._growth_tracker == self._growth_interval:
                self._scale *= self._growth_factor
                self._growth_tracker = 0
        self._done.clear()
        self._spoilt.clear()

    def get_scale(self) -> float:
        """The scale, or 1 where nothing is scaled."""
        return self._scale if self._enabled else 1.0

    def get_growth_factor(self) -> float:
        """By what the scale grows."""
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        """Choose by what the scale grows."""
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        """By what the scale shrinks."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        """Choose by what the scale shrinks."""
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        """After how many good steps the scale grows."""
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        """Choose after how many good steps the scale grows."""
        self._growth_interval = new_interval

    def state_dict(self) -> dict[str, Any]:
        """Scale and settings, as PyTorch names them; empty where nothing is scaled."""
        if not self._enabled:
            return {}
        return {
            "scale": self._scale, "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor, "growth_interval": self._growth_interval,
            "_growth_tracker": self._growth_tracker,
        }  # fmt: skip

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take back what `state_dict` returned."""
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError(
                "The source state dict is empty, possibly because it was saved from a disabled "
                "instance of GradScaler."
            )
        for name in ("scale", "growth_factor", "backoff_factor", "growth_interval"):
            setattr(self, f"_{name}", state_dict[name])
        self._growth_tracker = state_dict["_growth_tracker"]
