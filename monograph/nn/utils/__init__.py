"""PyTorch's name for what is done to the gradients of a whole model."""

from ..clip import clip_grad_norm_, clip_grad_value_

__all__ = ["clip_grad_norm_", "clip_grad_value_"]
