"""`torch._check` and its kin, by which libraries say what they require of their arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...tensor import Tensor

_Message = Callable[[], Any] | None


def _check_with(error_type: type[Exception], cond: Any, message: _Message = None) -> None:
    """Raise an error of a class unless a condition holds; only then is the message made."""
    if isinstance(cond, Tensor):
        raise TypeError(
            "cond must be a bool, but got a Tensor. For tensor conditions, use "
            "torch._check_tensor_all() to assert that all elements are true."
        )
    if not isinstance(cond, bool):
        raise TypeError(f"cond must be a bool, but got {type(cond)}")
    if cond:
        return
    if message is not None and not callable(message):
        raise TypeError("message must be a callable")
    raise error_type("Expected cond to be True, but got False." if message is None else message())


def _check(cond: Any, message: _Message = None) -> None:
    """Raise RuntimeError unless a condition holds.

    >>> _check(False, lambda: "too few")
    Traceback (most recent call last):
    RuntimeError: too few
    """
    _check_with(RuntimeError, cond, message)


def _check_index(cond: Any, message: _Message = None) -> None:
    """Raise IndexError unless a condition holds."""
    _check_with(IndexError, cond, message)


def _check_value(cond: Any, message: _Message = None) -> None:
    """Raise ValueError unless a condition holds."""
    _check_with(ValueError, cond, message)


def _check_type(cond: Any, message: _Message = None) -> None:
    """Raise TypeError unless a condition holds."""
    _check_with(TypeError, cond, message)


def _check_not_implemented(cond: Any, message: _Message = None) -> None:
    """Raise NotImplementedError unless a condition holds."""
    _check_with(NotImplementedError, cond, message)


def _check_is_size(i: int, message: _Message = None, *, max: Any = None) -> None:  # noqa: A002
    """Raise RuntimeError unless a number can be a size, up to a largest one."""
    _check(i >= 0 and (max is None or i <= max), message)


def _check_tensor_all_with(
    error_type: type[Exception], cond: Any, message: _Message = None
) -> None:  # fmt: skip
    """Raise an error of a class unless all elements are True."""
    if not isinstance(cond, Tensor):
        raise TypeError(f"cond must be a tensor, but got {type(cond)}")
    if cond.dtype.name != "bool":
        raise TypeError(f"cond tensor must have dtype torch.bool, but got {cond.dtype}")
    _check_with(error_type, bool(cond.all().item()), message)


def _check_tensor_all(cond: Any, message: _Message = None) -> None:
    """Raise RuntimeError unless all elements are True."""
    _check_tensor_all_with(RuntimeError, cond, message)


__all__ = [
    "_check", "_check_index", "_check_is_size", "_check_not_implemented", "_check_tensor_all",
    "_check_tensor_all_with", "_check_type", "_check_value", "_check_with",
]  # fmt: skip
