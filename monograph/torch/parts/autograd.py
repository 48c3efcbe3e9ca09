"""`torch.autograd`'s older names: `Variable` and the context of a custom function."""

from __future__ import annotations

from typing import Any

from ...autograd.function import Function
from ...tensor import Tensor


class _VariableType(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor)

    def __call__(cls, data: Any, requires_grad: bool = False, volatile: bool = False) -> Any:
        made = data.detach() if isinstance(data, Tensor) else cls._refuse(data)
        return made.requires_grad_() if requires_grad else made

    def _refuse(cls, data: Any) -> Any:
        raise TypeError(f"Variable data has to be a tensor, but got {type(data).__name__}")


class Variable(metaclass=_VariableType):
    """A tensor, which is what it has been since PyTorch 0.4.

    >>> import monograph as mg
    >>> Variable(mg.ones(2), requires_grad=True).requires_grad
    True
    """


class FunctionCtx:
    """The base of the first argument of a custom function's `forward` and `backward`."""


def once_differentiable(function: Any) -> Any:
    """Mark a backward function whose own derivative is not wanted."""
    return function


class InplaceFunction(Function):
    """A custom function under the name of those that could write over their inputs."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace


def set_multithreading_enabled(mode: bool) -> Any:
    """Whether a backward pass may use several threads: one program does what it does."""
    import contextlib

    return contextlib.nullcontext()


FUNCTION = {"InplaceFunction": InplaceFunction}
__all__ = ["FunctionCtx", "Variable", "once_differentiable", "set_multithreading_enabled"]
