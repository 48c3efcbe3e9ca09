"""Operators and methods whose Python signature needs more than a definition.

Flexible arguments (`x.reshape(2, -1)` and `x.reshape((2, -1))`), indexing, arithmetic operators,
in-place variants (derived from the functional ones) and conversion.
"""

from __future__ import annotations

import builtins
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import errors
from ..ir import dtypes
from ..ir.dtypes import DType
from ..tensor import Tensor, tensor
from . import index, math, matmul, reduce, shape


def _listed(args: tuple[Any, ...]) -> tuple[int, ...]:
    first = args[0] if len(args) == 1 and isinstance(args[0], (tuple, list)) else args
    return tuple([int(a) for a in first])


def reshape(x: Tensor, *shape_: Any) -> Tensor:
    """The same elements in another shape; one extent may be -1."""
    return shape.reshape_to(x, _listed(shape_))


def permute(x: Tensor, *dims: Any) -> Tensor:
    """Axes in another order."""
    return shape.permute_to(x, _listed(dims))


def expand(x: Tensor, *sizes: Any) -> Tensor:
    """Axes of size 1 repeated; -1 keeps an extent."""
    return shape.expand_to(x, _listed(sizes))


def flip(x: Tensor, *dims: Any) -> Tensor:
    """The order of elements along dims reversed."""
    return shape.flip_axes(x, _listed(dims))


def split(x: Tensor, size: int | list[int], dim: int = 0) -> tuple[Tensor, ...]:
    """Consecutive pieces along dim: of one size, or of the sizes listed."""
    extent = x.shape[dim]
    if isinstance(size, int):
        sizes = [builtins.min(size, extent - start) for start in range(0, extent, size)] or [0]
    else:
        sizes = list(size)
        if sum(sizes) != extent:
            raise errors.OperandError(f"split: sizes {sizes} do not add up to {extent}")
    starts = [sum(sizes[:n]) for n in range(len(sizes))]
    return tuple([shape.narrow(x, dim, s, n) for s, n in zip(starts, sizes, strict=True)])


def chunk(x: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """At most `chunks` pieces along dim, of equal size but for the last."""
    return split(x, builtins.max(-(-x.shape[dim] // chunks), 1), dim)


def unbind(x: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    """The slices along dim."""
    pieces = split(x, 1, dim) if x.shape[dim] else ()
    return tuple([shape.squeeze(piece, dim) for piece in pieces])


def stack(tensors: Any, dim: int = 0) -> Tensor:
    """Tensors joined along a new axis."""
    return shape.cat([shape.unsqueeze(t, dim) for t in tensors], dim)


def pad(x: Tensor, pads: Any, mode: str = "constant", value: float = 0.0) -> Tensor:
    """x with `value` around it; pads are (before, after) pairs from the last axis on."""
    if mode != "constant":
        raise errors.OperandError(f"pad: only mode 'constant' is supported, got {mode!r}")
    return shape.pad_constant(x, tuple(pads), float(value or 0.0))


def max(x: Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
    """The largest element, or (values, indices) along dim."""
    return reduce.amax(x) if dim is None else reduce.max_with_index(x, dim, keepdim)


def min(x: Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
    """The smallest element, or (values, indices) along dim."""
    return reduce.amin(x) if dim is None else reduce.min_with_index(x, dim, keepdim)


def norm(x: Tensor) -> Tensor:
    """The 2-norm of all elements."""
    return reduce.global_norm([x])


def _converted(x: Tensor, dtype: DType) -> Tensor:
    return x if x.dtype is dtype else math.cast(x, dtype)


def to(x: Tensor, *args: Any, dtype: DType | None = None, device: Any = None, **_: Any) -> Tensor:
    """x in another dtype (devices: only "cpu" so far)."""
    for arg in args:
        if isinstance(arg, DType):
            dtype = arg
        elif isinstance(arg, Tensor):
            dtype = arg.dtype
        elif str(arg) != "cpu":
            raise errors.OperandError(f"to: this build has the device 'cpu' only, not {arg!r}")
    return x if dtype is None else _converted(x, dtype)


# --- indexing -----------------------------------------------------------------------------------


def _places(x: Tensor, key: Any) -> tuple[Any, ...]:
    """The key as integers, None and (start, stop, step) triples; … worked out."""
    parts = list(key) if isinstance(key, tuple) else [key]
    for n, part in enumerate(parts):
        if part is Ellipsis:
            used = len([p for p in parts if p is not None and p is not Ellipsis])
            parts[n : n + 1] = [slice(None)] * (x.ndim - used)
            break
    used = len([p for p in parts if p is not None])
    if used > x.ndim:
        raise IndexError(f"too many indices ({used}) for a tensor of {x.ndim} dimensions")
    return tuple([_place(p) for p in parts])


def _place(part: Any) -> Any:
    if part is None:
        return None
    if isinstance(part, slice):
        if part.step is not None and int(part.step) <= 0:
            raise errors.OperandError("a slice's step must be positive")
        ends = [None if v is None else int(v) for v in (part.start, part.stop, part.step)]
        return tuple(ends)
    if isinstance(part, Tensor) and part.ndim:
        raise TypeError("indexing by a tensor together with slices is not supported yet")
    if isinstance(part, bool):
        raise TypeError("indexing by True or False is not supported")
    return operator.index(part)


def getitem(x: Tensor, key: Any) -> Tensor:
    """x[key]."""
    listed = [_as_tensor(part) for part in (key if isinstance(key, tuple) else (key,))]
    if any(isinstance(part, Tensor) and part.ndim for part in listed):
        if not all(isinstance(part, Tensor) for part in listed):
            raise TypeError("indexing mixes tensors and other keys; use integer tensors only")
        return index.take(x, listed)
    return shape.basic_index(x, _places(x, key))


def _as_tensor(part: Any) -> Any:
    return tensor(part) if isinstance(part, (list, np.ndarray)) else part


def setitem(x: Tensor, key: Any, new: Any) -> None:
    """x[key] = new."""
    place = getitem(x, key)
    if place._view is None:
        raise TypeError("assignment needs integers and slices")
    filled = new if isinstance(new, Tensor) else full_like(place, new)
    place._write(expand(_converted(filled, x.dtype), *place.shape))


# --- creation -----------------------------------------------------------------------------------


def full_like(x: Tensor, value: float, dtype: DType | None = None) -> Tensor:
    """`value` everywhere, in the shape of x."""
    return full(tuple(x.shape), value, dtype=dtype or x.dtype)


def full(
    size: Any, value: float, dtype: DType | None = None, requires_grad: bool = False
) -> Tensor:
    """`value` everywhere.

    >>> import monograph as mg
    >>> mg.full((2,), 7).tolist()
    [7, 7]
    """
    sizes = (size,) if isinstance(size, int) else tuple(size)
    made: Tensor = shape.full_of(sizes, value, dtype or dtypes.of_number(type(value)))
    return made.requires_grad_() if requires_grad else made


def zeros(*size: Any, dtype: DType = dtypes.float32, requires_grad: bool = False) -> Tensor:
    """Zeros of that size."""
    return full(_listed(size), 0.0, dtype, requires_grad)


def ones(*size: Any, dtype: DType = dtypes.float32, requires_grad: bool = False) -> Tensor:
    """Ones of that size."""
    return full(_listed(size), 1.0, dtype, requires_grad)


def zeros_like(x: Tensor, dtype: DType | None = None) -> Tensor:
    """Zeros in the shape of x."""
    return full_like(x, 0, dtype)


def ones_like(x: Tensor, dtype: DType | None = None) -> Tensor:
    """Ones in the shape of x."""
    return full_like(x, 1, dtype)


def arange(start: float, end: float | None = None, step: float = 1, dtype: Any = None) -> Tensor:
    """start, start + step, … below end.

    >>> import monograph as mg
    >>> mg.arange(3).tolist()
    [0, 1, 2]
    """
    if end is None:
        start, end = 0, start
    kind = float if any(isinstance(v, float) for v in (start, end, step)) else int
    length = -int((start - end) // step) if step else 0
    if step == 0:
        raise errors.OperandError("arange: step must not be zero")
    result: Tensor = shape.arange_of(
        length if length > 0 else 0, kind(start), kind(step), dtype or dtypes.of_number(kind)
    )
    return result


# --- attaching ----------------------------------------------------------------------------------


def _in_place(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def method(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        new = function(x, *args, **kwargs)
        if tuple(new.shape) != tuple(x.shape):
            raise RuntimeError(
                f"{function.__name__}_: the result {list(new.shape)} does not fit "
                f"the tensor {list(x.shape)} in place"
            )
        if new.dtype.kind > x.dtype.kind:
            raise RuntimeError(
                f"{function.__name__}_: a result of dtype {new.dtype.name} cannot be written "
                f"into a tensor of dtype {x.dtype.name}"
            )
        return x._write(_converted(new, x.dtype), fresh=new is not x)

    method.__name__ = f"{function.__name__}_"
    method.__doc__ = f"`{function.__name__}` in place."
    return method


def _copy(x: Tensor, source: Tensor) -> Tensor:
    return math.clone(expand(_converted(source, x.dtype), *x.shape))


def _filled(x: Tensor, value: float) -> Tensor:
    return full_like(x, value)


def _alpha(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(x: Any, other: Any, *, alpha: float = 1) -> Any:
        return function(x, other if alpha == 1 else math.mul(other, alpha))

    call.__name__, call.__doc__ = function.__name__, function.__doc__
    return call


def _addcmul(x: Tensor, a: Tensor, b: Tensor, value: float = 1.0) -> Tensor:
    return math.add(x, math.mul(math.mul(a, b), value))


def _addcdiv(x: Tensor, a: Tensor, b: Tensor, value: float = 1.0) -> Tensor:
    return math.add(x, math.mul(math.div(a, b), value))


def _lerp(x: Tensor, end: Tensor, weight: float) -> Tensor:
    return math.add(x, math.mul(math.sub(end, x), weight))


_OPERANDS = (Tensor, int, float, np.generic)


def _compare(function: Callable[..., Any]) -> Callable[..., Any]:
    def compare(x: Tensor, other: Any) -> Any:
        # Anything else (None, a string) is not equal and has no order, as Python has it.
        return function(x, other) if isinstance(other, _OPERANDS) else NotImplemented

    return compare


def _attach() -> None:
    methods: dict[str, Any] = {
        "reshape": reshape, "view": reshape, "permute": permute, "expand": expand, "flip": flip,
        "split": split, "chunk": chunk, "unbind": unbind, "max": max, "min": min, "norm": norm,
        "to": to, "type": to, "__getitem__": getitem, "__setitem__": setitem,
        "contiguous": lambda x: x, "addcmul": _addcmul, "addcdiv": _addcdiv, "lerp": _lerp,
        "view_as": lambda x, other: reshape(x, *other.shape),
        "expand_as": lambda x, other: expand(x, *other.shape),
        "float": lambda x: _converted(x, dtypes.float32),
        "double": lambda x: _converted(x, dtypes.float64),
        "long": lambda x: _converted(x, dtypes.int64),
        "int": lambda x: _converted(x, dtypes.int32),
        "bool": lambda x: _converted(x, dtypes.bool_),
        "half": lambda x: _converted(x, dtypes.float16),
        "cpu": lambda x: x, "add": _alpha(math.add), "sub": _alpha(math.sub),
        "mm": matmul.matmul, "bmm": matmul.matmul, "t": lambda x: shape.transpose(x, 0, -1),
    }  # fmt: skip
    for name, method in methods.items():
        setattr(Tensor, name, method)
    Tensor.T = property(lambda x: permute(x, *reversed(range(x.ndim))))  # type: ignore[attr-defined]
    Tensor.mT = property(lambda x: shape.transpose(x, -1, -2))  # type: ignore[attr-defined]
    functional = {"copy": _copy, "fill": _filled, "zero": lambda x: full_like(x, 0)}
    for name in ("add", "sub", "mul", "div", "pow", "neg", "exp", "clamp", "masked_fill",
                 "addcmul", "addcdiv", "lerp", "sqrt", "relu", "tanh", "sigmoid"):  # fmt: skip
        function = methods.get(name) or getattr(Tensor, name, None)
        if function is not None:
            functional[name] = function
    for name, function in functional.items():
        function.__name__ = name
        setattr(Tensor, f"{name}_", _in_place(function))
    arithmetic = {
        "add": math.add, "sub": math.sub, "mul": math.mul, "truediv": math.div,
        "floordiv": math.floor_divide, "mod": math.remainder, "pow": math.pow,
        "matmul": matmul.matmul, "and": math.bitwise_and, "or": math.bitwise_or,
        "xor": math.bitwise_xor,
    }  # fmt: skip
    for name, function in arithmetic.items():
        setattr(Tensor, f"__{name}__", function)
        setattr(Tensor, f"__r{name}__", lambda a, b, call=function: call(b, a))
        written = _in_place(function)
        setattr(Tensor, f"__i{name}__", lambda a, b, call=written: call(a, b))
    for name in ("lt", "le", "gt", "ge", "eq", "ne"):
        setattr(Tensor, f"__{name}__", _compare(getattr(math, name)))
    Tensor.__neg__ = lambda x: math.neg(x)  # type: ignore[attr-defined]
    Tensor.__abs__ = lambda x: math.abs(x)  # type: ignore[attr-defined]
    Tensor.__invert__ = lambda x: math.bitwise_not(x)  # type: ignore[attr-defined]


_attach()
