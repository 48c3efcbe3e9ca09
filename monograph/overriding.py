"""Classes of the user's that take part in calls: `__torch_function__`.

A subclass of Tensor keeps its class through operators. One that defines `__torch_function__`, and
any other class that does, is asked instead: with the function, the classes, and the arguments. It
may do what it likes, and call `super().__torch_function__` for what would have been done.

Nothing is asked before the first such class is there. Then each recorded operator is, so a public
function that is made of several shows itself by its operators. A `TorchFunctionMode` is asked about
the operators of all tensors while it is entered; those that take no tensor pass it by.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from . import record
from .belonging import home_of, is_package
from .ir.operator import Operator
from .usual import handles

_here = threading.local()
_classes: set[type] = set()  # subclasses of Tensor whose results are of their class
functions: dict[Operator, Callable[..., Any]] = {}  # what users call, by operator


class DisableTorchFunctionSubclass:
    """Within it, subclasses of Tensor are plain tensors to all functions."""

    def __enter__(self) -> None:
        _here.depth = getattr(_here, "depth", 0) + 1

    def __exit__(self, *problem: Any) -> None:
        _here.depth -= 1


_plain: set[type] = set()  # the classes whose calls are usual, while a mode takes them all
_entered: list[TorchFunctionMode] = []  # of all threads


class TorchFunctionMode:
    """Within it, its `__torch_function__` is asked about the calls of all tensors.

    >>> import monograph as mg
    >>> class Doubling(TorchFunctionMode):
    ...     def __torch_function__(self, func, types, args=(), kwargs=None):
    ...         return func(*args, **(kwargs or {})) * 2
    >>> with Doubling():
    ...     y = mg.exp(mg.zeros(2))
    >>> y
    tensor([2., 2.])
    """

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise NotImplementedError

    def __enter__(self) -> TorchFunctionMode:
        _modes().append(self)
        _entered.append(self)
        if handles:
            _plain.update(handles)
            handles.clear()  # no call is usual
            record.override(_taken)
        return self

    def __exit__(self, *problem: Any) -> None:
        _modes().pop()
        _entered.remove(self)
        if not _entered:
            handles.update(_plain)


def _modes() -> list[TorchFunctionMode]:
    """The modes that this thread has entered, the innermost last."""
    found: list[TorchFunctionMode] = vars(_here).setdefault("modes", [])
    return found


def note_class(cls: type) -> None:
    """A subclass of Tensor was defined: ask for it from now on, unless parameters are made so."""
    own = any("__torch_function__" in vars(base) for base in cls.__mro__ if _is_users(base))
    parameter = any(base.__name__ in ("Parameter", "Buffer") for base in cls.__mro__)
    if _is_users(cls) and (own or not parameter):
        _classes.add(cls)
        record.override(_taken)


def _is_users(cls: type) -> bool:
    home = home_of(cls)
    return not is_package(home) and home != "builtins"


def _taken(operator: Operator, inputs: Sequence[Any], attributes: Any) -> tuple[Any] | None:
    """(the result,) of a call that a class of the user's takes over, or None."""
    kinds = [kind for given in inputs if (kind := given.__class__) in _classes]
    if _entered and _modes():
        return (_ask_mode(kinds, operator, inputs, attributes),)
    if not kinds or vars(_here).get("depth"):
        return None
    return (ask(kinds, operator, inputs, attributes),)


def ask(kinds: list[type], operator: Operator, inputs: Sequence[Any], attributes: Any) -> Any:
    """What the most derived of these classes makes of a call."""
    types = tuple(dict.fromkeys(kinds))
    chosen: Any = next(k for k in types if not any(issubclass(o, k) and o is not k for o in types))
    args, kwargs = _spelled(operator, inputs, attributes)
    result = chosen.__torch_function__(functions[operator], types, args, kwargs)
    if result is NotImplemented:
        raise TypeError(
            f"no implementation found for {operator.name!r} on types that implement "
            f"__torch_function__: {[kind.__name__ for kind in types]}"
        )
    return result


def _ask_mode(kinds: list[type], operator: Operator, inputs: Sequence[Any], attributes: Any) -> Any:
    """What the innermost mode makes of a call, outside of itself."""
    modes = _modes()
    asked = modes.pop()
    args, kwargs = _spelled(operator, inputs, attributes)
    try:
        types = tuple(dict.fromkeys(kinds))
        return asked.__torch_function__(functions[operator], types, args, kwargs)
    finally:
        modes.append(asked)


def _spelled(
    operator: Operator, inputs: Sequence[Any], attributes: Any
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of a call, by position and by name."""
    args, kwargs = [], {}
    given = operator.arguments(inputs, attributes)
    for parameter, value in zip(operator.parameters, given, strict=True):
        if parameter.by_keyword:
            kwargs[parameter.name] = value
        else:
            args.append(value)
    return tuple(args), kwargs


def as_class(result: Any, cls: type) -> Any:
    """The tensors of a result, as tensors of a subclass."""
    from .tensor import Tensor

    if isinstance(result, (tuple, list)):
        parts = [as_class(part, cls) for part in result]
        return type(result)(*parts) if hasattr(result, "_fields") else type(result)(parts)
    if isinstance(result, Tensor) and not isinstance(result, cls):
        return result.as_subclass(cls)
    return result


record.register_asking(ask)
