"""In-place variants and `out=`: a result written into a tensor that exists."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from .. import errors
from ..geometry import Geometry
from ..tensor import Tensor


def in_place(
    function: Callable[..., Tensor], name: str, anywhere: bool = False
) -> Callable[..., Tensor]:
    """The method `x.name_(…)`: the function's result takes the place of x's contents."""
    anyhow = name in _PRODUCTS

    def method(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        if not anyhow and (args or kwargs):
            refuse_partial(x, (*args, *kwargs.values()) if kwargs else args)
        return over(x, function(x, *args, **kwargs), name, anywhere)

    method.__name__ = f"{name}_"
    method.__doc__ = f"`{name}` in place."
    return method


# PyTorch looks at operands of elementwise operators only. Products are computed as if apart.
_PRODUCTS = ("addbmm", "addmm", "addmv", "baddbmm", "matmul", "sspaddmm")


def refuse_partial(written: Tensor, read: Sequence[Any]) -> None:
    """Raise where PyTorch does: an operand shares some places with what is written, not all.

    It looks at operands that fill a stretch of memory, and lets others pass.
    """
    for other in read:
        if other is not written and isinstance(other, Tensor):
            # Sparse tensors have no storage of their own.
            if other._storage is written._storage and not written.is_sparse:
                if _partly(written._geometry(), other._geometry()):
                    raise errors.OperandError(_SHARED)


def _partly(a: Geometry, b: Geometry) -> bool:
    if not (a.size and b.size and a.is_dense and b.is_dense):
        return False
    starts = [x.offset * x.dtype.itemsize for x in (a, b)]
    ends = [start + x.size * x.dtype.itemsize for start, x in zip(starts, (a, b), strict=True)]
    if starts[0] == starts[1] and ends[0] == ends[1]:
        return a.strides != b.strides
    return starts[0] < ends[1] and starts[1] < ends[0]


_SHARED = (
    "unsupported operation: some elements of the input tensor and the written-to tensor refer to a "
    "single memory location. Please clone() the tensor before performing the operation."
)


def over(x: Tensor, new: Tensor, name: str, anywhere: bool = False) -> Tensor:
    """x with the result of the operator `name` in the place of its contents.

    With `anywhere`, elements of x may share places: see `overlapping.py`.
    """
    if new._sizes != x._sizes:
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
    if anywhere and x._view is not None and x._geometry().overlaps:
        from .overlapping import write

        return write(x, kept)
    return x._write(kept, fresh=kept is not x)


def into(out: Any, result: Any, apart: Any = (), exact: bool = False) -> Any:
    """Write a result, or each of several, into the tensors given as `out`; they are returned.

    They must lie `apart` from these inputs. With `exact` they must have the result's dtype.
    """
    if isinstance(result, tuple):
        pairs = zip(out, result, strict=True)
        written = [into(target, part, apart, exact) for target, part in pairs]
        return type(result)(*written) if hasattr(result, "_fields") else tuple(written)
    if result.dtype is not out.dtype and (exact or result.dtype.kind > out.dtype.kind):
        raise errors.OperandError(
            f"out: a result of dtype {result.dtype.name} cannot be written into {out.dtype.name}"
        )
    _require_own_places(out, apart)
    if tuple(out.shape) != tuple(result.shape):
        out.resize_(*result.shape)
        _require_own_places(out, apart)
    kept = result if result.dtype is out.dtype else result.to(out.dtype)
    return out._write(kept, fresh=True)


def _require_own_places(out: Tensor, apart: Any) -> None:
    """No element of `out` may share its place with another one, or with these inputs."""
    if out._view is not None and out._geometry().overlaps:
        raise errors.OperandError(
            "unsupported operation: more than one element of the written-to tensor refers to a "
            "single memory location. Please clone() the tensor before performing the operation."
        )
    if any(_share(out, x) for x in apart if isinstance(x, Tensor)):
        raise errors.OperandError(_SHARED)


def _share(a: Tensor, b: Tensor) -> bool:
    """Whether two tensors have places of one storage in common, by where they begin and end."""
    if a._storage is not b._storage or not a.numel() or not b.numel():
        return False
    ends = []
    for x in (a, b):
        places = x._geometry()
        last = [stride * (n - 1) for stride, n in zip(places.strides, places.shape, strict=True)]
        ends.append((places.offset, places.offset + sum(last)))
    return ends[0][0] <= ends[1][1] and ends[1][0] <= ends[0][1]


def with_out(function: Callable[..., Any] | None = None, *, apart: bool = False) -> Any:
    """The function with one more keyword: `out`, which takes the result.

    With `apart`, it must have the result's dtype and share no memory with the arguments.
    """
    if function is None:
        return functools.partial(with_out, apart=apart)

    @functools.wraps(function)
    def call(*args: Any, out: Any = None, **kwargs: Any) -> Any:
        result = function(*args, **kwargs)
        return result if out is None else into(out, result, args if apart else (), apart)

    own = inspect.signature(function)
    extra = inspect.Parameter("out", inspect.Parameter.KEYWORD_ONLY, default=None)
    call.__signature__ = own.replace(parameters=[*own.parameters.values(), extra])  # type: ignore[attr-defined]
    del call.__wrapped__  # type: ignore[attr-defined]
    return call
