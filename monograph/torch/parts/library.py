"""`torch.library`: operators that programs register, and call by `torch.ops.space.name`.

Such an operator is its Python function. Where a derivative is registered, that is what a backward
pass calls; without one there is none, whatever the function is made of, as in PyTorch. Functions
that infer shapes are not needed: the operator itself says what comes out.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable
from typing import Any

from ...autograd.function import Function

NAMESPACES: dict[str, types.SimpleNamespace] = {}  # what `torch.ops` has besides its own
OPERATORS: dict[str, CustomOpDef] = {}


class CustomOpDef:
    """An operator that a program registered.

    >>> import monograph as mg
    >>> @custom_op("shop::double", mutates_args=())
    ... def double(x: mg.Tensor) -> mg.Tensor:
    ...     return x + x
    >>> double.register_autograd(lambda ctx, grad: grad + grad)
    >>> x = mg.tensor(3.0, requires_grad=True)
    >>> NAMESPACES["shop"].double(x).backward()
    >>> x.grad.item()
    2.0
    """

    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        self._qualname, self._function = name, function
        self._signature = inspect.signature(function)
        self._backward: Callable[..., Any] | None = None
        self._setup: Callable[..., Any] | None = None
        self.default = self  # its only overload
        self.__name__ = name.partition("::")[2]
        self.__doc__ = function.__doc__

    def __repr__(self) -> str:
        return f"<CustomOpDef({self._qualname})>"

    def __call__(self, *args: Any, **options: Any) -> Any:
        bound = self._signature.bind(*args, **options)
        bound.apply_defaults()
        return self._with(bound.kwargs).apply(*bound.args)

    def register_autograd(
        self, backward: Callable[..., Any], /, *, setup_context: Callable[..., Any] | None = None
    ) -> None:
        """Say what the derivative is, and what the call keeps for it."""
        self._backward, self._setup = backward, setup_context

    def register_kernel(self, device_types: Any, fn: Any = None, /) -> Any:
        """A function for another device: none but the CPU's is called."""
        named = [device_types] if isinstance(device_types, str) else device_types

        def register(function: Callable[..., Any]) -> Callable[..., Any]:
            if named is None or "cpu" in named:
                self._function = function
            return function

        return register if fn is None else register(fn)

    def register_fake(self, fn: Any, /) -> Any:
        """A function that infers shapes, which is not needed."""
        return fn

    def _with(self, options: dict[str, Any]) -> type[Function]:
        """The custom function of a call with these arguments that are given by name only."""
        operator = self

        class Operator(Function):
            @staticmethod
            def forward(*args: Any) -> Any:
                return operator._function(*args, **options)

            @staticmethod
            def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
                if operator._setup is None:
                    return
                named = {"keyword_only_inputs": options} if options else {}
                operator._setup(ctx, inputs=inputs, output=output, **named)

            @staticmethod
            def backward(ctx: Any, *gradients: Any) -> Any:
                if operator._backward is None:
                    raise RuntimeError(
                        f"Trying to backward through {operator._qualname}.default but no autograd "
                        "formula was registered. Please use register_autograd to add one."
                    )
                return operator._backward(ctx, *gradients)

        return Operator


def custom_op(
    name: str, fn: Any = None, /, *, mutates_args: Any, device_types: Any = None,
    schema: str | None = None, tags: Any = None,
) -> Any:  # fmt: skip
    """Register a function as an operator; its types follow from the tensors of each call."""
    space, separator, last = name.partition("::")
    if not separator:
        raise ValueError(f"an operator is named namespace::name, not {name!r}")

    def register(function: Callable[..., Any]) -> CustomOpDef:
        made = OPERATORS[name] = CustomOpDef(name, function)
        setattr(NAMESPACES.setdefault(space, types.SimpleNamespace()), last, made)
        return made

    return register if fn is None else register(fn)


def triton_op(
    name: str, fn: Any = None, /, *, mutates_args: Any, schema: str | None = None
) -> Any:  # fmt: skip
    """Register a function that launches Triton kernels; on the CPU it takes its other way."""
    return custom_op(name, fn, mutates_args=mutates_args, schema=schema)


def wrap_triton(triton_kernel: Any, /) -> Any:
    """The kernel itself."""
    return triton_kernel


def register_autograd(
    op: Any, backward: Callable[..., Any], /, *, setup_context: Any = None, lib: Any = None
) -> None:
    """Say what the derivative of an operator is."""
    _operator(op).register_autograd(backward, setup_context=setup_context)


def register_kernel(op: Any, device_types: Any, func: Any = None, /, *, lib: Any = None) -> Any:
    """A function for another device."""
    return _operator(op).register_kernel(device_types, func)


def register_fake(op: Any, func: Any = None, /, **options: Any) -> Any:
    """A function that infers shapes, which is not needed."""
    return func if func is not None else lambda function: function


def _operator(op: Any) -> CustomOpDef:
    found = op if isinstance(op, CustomOpDef) else OPERATORS.get(op)
    if found is None:
        raise RuntimeError(f"there is no operator {op!r}; torch.library.custom_op registers one")
    return found


__all__ = ["CustomOpDef", "custom_op", "register_autograd", "register_fake", "register_kernel",
    "triton_op", "wrap_triton"]  # fmt: skip
