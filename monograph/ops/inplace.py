"""In-place variants and `out=`: a result written into a tensor that exists."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from .. import errors
from ..tensor import Tensor


def in_place(function: Callable[..., Tensor], name: str) -> Callable[..., Tensor]:
    """The method `x.name_(…)`: the function's result takes the place of x's contents."""

    def method(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        return over(x, function(x, *args, **kwargs), name)

    method.__name__ = f"{name}_"
    method.__doc__ = f"`{name}` in place."
    return method


def over(x: Tensor, new: Tensor, name: str) -> Tensor:
    """x with the result of the operator `name` in the place of its contents."""
    if tuple(new.shape) != tuple(x.shape):
        raise errors.OperandError(
            f"{name}_: the result {list(new.shape)} does not fit "
            f"the tensor {list(x.shape)} in place"
        )
    if new.dtype.kind > x.dtype.kind:
        raise errors.OperandError(
            f"{name}_: a result of dtype {new.dtype.name} cannot be written "
            f"into a tensor of dtype {x.dtype.name}"
        )
    kept = new if new.dtype is x.dtype else new.to(x.dtype)
    return x._write(kept, fresh=kept is not x)


def into(out: Any, result: Any) -> Any:
    """Write a result, or each of several, into the tensors given as `out`; they are returned."""
    if isinstance(result, tuple):
        written = [into(target, part) for target, part in zip(out, result, strict=True)]
        return type(result)(*written) if hasattr(result, "_fields") else tuple(written)
    if result.dtype.kind > out.dtype.kind:
        raise errors.OperandError(
            f"out: a result of dtype {result.dtype.name} cannot be written into {out.dtype.name}"
        )
    if tuple(out.shape) != tuple(result.shape):
        out.resize_(*result.shape)
    kept = result if result.dtype is out.dtype else result.to(out.dtype)
    return out._write(kept, fresh=True)


def with_out(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with one more keyword: `out`, which takes the result."""

    @functools.wraps(function)
    def call(*args: Any, out: Any = None, **kwargs: Any) -> Any:
        result = function(*args, **kwargs)
        return result if out is None else into(out, result)

    own = inspect.signature(function)
    extra = inspect.Parameter("out", inspect.Parameter.KEYWORD_ONLY, default=None)
    call.__signature__ = own.replace(parameters=[*own.parameters.values(), extra])  # type: ignore[attr-defined]
    del call.__wrapped__  # type: ignore[attr-defined]
    return call
