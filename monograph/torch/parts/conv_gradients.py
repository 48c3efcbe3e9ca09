"""`torch.nn.grad`: the derivatives of convolutions as functions of their own."""

from __future__ import annotations

from typing import Any

from ...autograd import enable_grad, grad
from ...nn import functional as F  # noqa: N812
from ...tensor import Tensor


def _gradient(conv: Any, options: tuple[Any, ...], of: int, operands: list[Any], g: Tensor) -> Any:
    """The derivative of a convolution for one of its operands, given as its shape."""
    operands[of] = g.new_zeros(tuple(operands[of])).requires_grad_()
    with enable_grad():
        y = conv(*operands, None, *options)
        return grad(y, operands[of], g)[0]


def _functions(name: str) -> tuple[Any, Any]:
    conv = getattr(F, name)

    def for_input(
        input_size: Any, weight: Tensor, grad_output: Tensor, stride: Any = 1, padding: Any = 0,
        dilation: Any = 1, groups: int = 1,
    ) -> Tensor:  # fmt: skip
        options = (stride, padding, dilation, groups)
        return _gradient(conv, options, 0, [input_size, weight.detach()], grad_output)  # type: ignore[no-any-return]

    def for_weight(
        input: Tensor, weight_size: Any, grad_output: Tensor, stride: Any = 1, padding: Any = 0,
        dilation: Any = 1, groups: int = 1,
    ) -> Tensor:  # fmt: skip
        options = (stride, padding, dilation, groups)
        return _gradient(conv, options, 1, [input.detach(), weight_size], grad_output)  # type: ignore[no-any-return]

    for_input.__doc__ = f"The gradient of {name} for its input, of which the shape is given."
    for_weight.__doc__ = f"The gradient of {name} for its weight, of which the shape is given."
    return for_input, for_weight


conv1d_input, conv1d_weight = _functions("conv1d")
conv2d_input, conv2d_weight = _functions("conv2d")
conv3d_input, conv3d_weight = _functions("conv3d")
