"""`torch.jit`: functions and modules are compiled as they are, so scripting gives them back."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final

from ...nn import Module
from .futures import Future

ScriptFunction, Attribute = Callable, Any


class ScriptModule(Module):
    """A module in PyTorch's own language; none is, but for those of a class made from this."""


def script(obj: Any = None, *args: Any, **options: Any) -> Any:
    """The function or module itself.

    >>> script(len) is len
    True
    """
    return obj if obj is not None else script


def trace(func: Any, example_inputs: Any = None, *args: Any, **options: Any) -> Any:
    """The function or module itself; it is not fixed to the example's path."""
    return func


def trace_module(mod: Any, inputs: Any, *args: Any, **options: Any) -> Any:
    """The module itself."""
    return mod


def _mark(function: Any = None, *args: Any, **options: Any) -> Any:
    """A decorator that PyTorch's compiler reads; there is nothing to leave out here."""
    return function if callable(function) else _mark


ignore = unused = export = interface = script_method = script_if_tracing = freeze = _mark
optimize_for_inference = _mark
_overload = _overload_method = _mark
_script_if_tracing = _mark


def is_scripting() -> bool:
    """Whether the code runs in PyTorch's own language."""
    return False


def is_tracing() -> bool:
    """Whether the code is being traced by PyTorch."""
    return False


def annotate(the_type: Any, the_value: Any) -> Any:
    """The value."""
    return the_value


def isinstance(obj: Any, target_type: Any) -> bool:  # noqa: A001
    """Whether an object is of a type, which may have parameters."""
    import builtins

    return builtins.isinstance(obj, getattr(target_type, "__origin__", target_type))


class Error(RuntimeError):
    """What PyTorch's own language raises."""


def onednn_fusion_enabled() -> bool:
    """Whether a library's fusion is chosen; fusion is always on."""
    return True


class strict_fusion:  # noqa: N801
    """A block in which all must be fused; what is, is up to the compiler."""

    def __enter__(self) -> None:
        """Nothing to do."""

    def __exit__(self, *problem: Any) -> None:
        """Nothing to do."""


class TracerWarning(Warning):
    """What tracing says of values that it takes for constant; nothing is traced here."""


def fork(func: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """A call that `wait` takes the result of."""
    return functools.partial(func, *args, **options)


def wait(future: Any) -> Any:
    """The result of a `fork`."""
    return future()


__all__ = [
    "Attribute", "Error", "Final", "Future", "ScriptFunction", "ScriptModule", "TracerWarning",
    "_overload", "_overload_method", "_script_if_tracing", "annotate", "export", "fork",
    "freeze", "ignore", "interface", "is_scripting", "is_tracing", "isinstance",
    "onednn_fusion_enabled", "optimize_for_inference", "script", "script_if_tracing",
    "script_method", "strict_fusion", "trace", "trace_module", "unused", "wait",
]  # fmt: skip
