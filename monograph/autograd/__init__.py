"""Derivatives for users: backward, grad, and the modes that switch recording off."""

from .engine import backward, grad
from .modes import enable_grad, inference_mode, is_grad_enabled, no_grad, set_grad_enabled

__all__ = [
    "backward", "enable_grad", "grad", "inference_mode", "is_grad_enabled", "no_grad",
    "set_grad_enabled",
]  # fmt: skip
