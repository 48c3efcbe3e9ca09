"""Older spellings of functions, and private names that libraries import."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from ...nn import init, utils
from ...optim.lr_scheduler import LRScheduler
from ...optim.optimizer import Optimizer
from ...overriding import TorchFunctionMode
from ...tensor import Tensor
from . import reduction_names


def _renamed(function: Callable[..., Any], old: str, new: str) -> Callable[..., Any]:
    """A function under its older name, which warns as PyTorch does."""

    def call(*args: Any, **options: Any) -> Any:
        warnings.warn(
            f"`{old}` is now deprecated in favor of `{new}`.", FutureWarning, stacklevel=2
        )
        return function(*args, **options)

    call.__name__, call.__doc__ = old.rpartition(".")[2], function.__doc__
    return call


INIT = {
    name: _renamed(getattr(init, f"{name}_"), f"nn.init.{name}", f"nn.init.{name}_")
    for name in (
        "constant", "dirac", "eye", "kaiming_normal", "kaiming_uniform", "normal", "orthogonal",
        "sparse", "uniform", "xavier_normal", "xavier_uniform",
    )
}  # fmt: skip


def _no_grad_trunc_normal_(
    tensor: Tensor, mean: float, std: float, a: float, b: float, generator: Any = None
) -> Tensor:
    return init.trunc_normal_(tensor, mean, std, a, b, generator)


INIT |= {
    "_calculate_correct_fan": init._calculate_correct_fan,
    "_no_grad_trunc_normal_": _no_grad_trunc_normal_,
    "_no_grad_uniform_": init.uniform_,
    "_no_grad_normal_": init.normal_,
    "_no_grad_fill_": init.constant_,
    "_no_grad_zero_": init.zeros_,
}
CLIP = {
    "clip_grad_norm": _renamed(
        utils.clip_grad_norm_, "nn.utils.clip_grad_norm", "nn.utils.clip_grad_norm_"
    ),
}


class _RequiredParameter:
    """Stands where an optimiser's setting has no default."""

    def __repr__(self) -> str:
        return "<required parameter>"


SCHEDULES = {"_LRScheduler": LRScheduler, "EPOCH_DEPRECATION_WARNING": ""}
OPTIMIZER = {
    "required": _RequiredParameter(),
    "Optimizer": Optimizer,
    "params_t": Any,
    "ParamsT": Any,
}


def _takes_over(given: Any) -> bool:
    """Whether an argument's class has a `__torch_function__` of its own."""
    method = getattr(type(given), "__torch_function__", None)
    return method is not None and getattr(method, "__func__", None) is not _OF_TENSORS


_OF_TENSORS = vars(Tensor)["__torch_function__"].__func__


def has_torch_function(relevant: Any) -> bool:
    """Whether any of the arguments takes over calls."""
    return any(_takes_over(given) for given in relevant)


def handle_torch_function(
    function: Callable[..., Any], relevant: Any, *args: Any, **kw: Any
) -> Any:
    """Let the first of the arguments that does take over a call."""
    types = tuple(dict.fromkeys(type(given) for given in relevant if _takes_over(given)))
    for kind in types:
        result = kind.__torch_function__(function, types, args, kw)
        if result is not NotImplemented:
            return result
    raise TypeError(f"no implementation found for {function!r} on types {list(types)}")


class BaseTorchFunctionMode(TorchFunctionMode):
    """A mode that calls the function."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


OVERRIDES: dict[str, Any] = {
    "has_torch_function": has_torch_function, "has_torch_function_unary": _takes_over,
    "has_torch_function_variadic": lambda *given: has_torch_function(given),
    "handle_torch_function": handle_torch_function,
    "TorchFunctionMode": TorchFunctionMode, "BaseTorchFunctionMode": BaseTorchFunctionMode,
    "is_tensor_like": lambda x: isinstance(x, Tensor) or hasattr(x, "__torch_function__"),
}  # fmt: skip
FUNCTIONAL = {
    **{name: value for name, value in OVERRIDES.items() if not isinstance(value, type)},
    "GRID_SAMPLE_INTERPOLATION_MODES": {"bilinear": 0, "nearest": 1, "bicubic": 2},
    "GRID_SAMPLE_PADDING_MODES": {"zeros": 0, "border": 1, "reflection": 2},
    "_Reduction": reduction_names,
}  # fmt: skip
