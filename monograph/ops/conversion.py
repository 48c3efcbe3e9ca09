"""The same elements in another dtype, on another device, or lying otherwise in memory."""

from __future__ import annotations

from typing import Any

from .. import errors, placement
from ..ir import dtypes
from ..ir.dtypes import DType
from ..placement import contiguous_format, preserve_format
from ..strides import contiguous, in_order
from ..tensor import Tensor, lay_out, without_data
from . import math
from .define import function


def converted(x: Tensor, dtype: DType) -> Tensor:
    """x in that dtype; x itself if it has it."""
    return x if x.dtype is dtype else math.cast(x, dtype)


# --- memory formats -----------------------------------------------------------------------------


def laid(made: Tensor, form: Any) -> Tensor:
    """A new tensor, made to lie as a memory format says; elementwise results lie as they should."""
    if form is None or form is preserve_format:
        return made
    order = placement.order_of(form, made.ndim)
    shape = made._sizes
    return lay_out(made, contiguous(shape) if order is None else in_order(order, shape))


@function(name="clone", method=True)
def clone(input: Tensor, *, memory_format: Any = preserve_format) -> Tensor:
    """A copy on a storage of its own.

    >>> import monograph as mg
    >>> mg.ones(2, 3, 4, 4).clone(memory_format=mg.channels_last).stride()
    (48, 1, 12, 3)
    """
    return laid(math.clone(input), memory_format)


clone.operator = math.clone.operator


@function(to=None, name="contiguous", method=True)
def contiguous_tensor(input: Tensor, memory_format: Any = contiguous_format) -> Tensor:
    """x itself if its elements follow each other in memory, else a copy where they do."""
    if memory_format is preserve_format:
        raise RuntimeError("preserve memory format is unsupported by the contiguous operator")
    if input.is_contiguous(memory_format):
        return input
    return laid(math.clone(input), memory_format)


# --- dtype and device ---------------------------------------------------------------------------


def _target(args: tuple[Any, ...]) -> tuple[Any, Any, list[Any]]:
    """(device, dtype, the rest) of the positional arguments of `to`."""
    rest = list(args)
    if rest and isinstance(rest[0], Tensor):
        return rest[0].device, rest.pop(0).dtype, rest
    device = dtype = None
    if rest and isinstance(rest[0], type):
        rest[0] = dtypes.named(rest[0])
    if rest and not isinstance(rest[0], (DType, bool)):
        device = rest.pop(0)
    if rest and (isinstance(rest[0], DType) or rest[0] is None):
        dtype = rest.pop(0)
    return device, dtype, rest


@function(to=None, method=True)
def to(
    x: Tensor, *args: Any, device: Any = None, dtype: DType | None = None, other: Any = None,
    non_blocking: bool = False, copy: bool = False, memory_format: Any = preserve_format,
) -> Tensor:  # fmt: skip
    """x in another dtype, on another device, lying otherwise in memory; itself if nothing changes.

    >>> import monograph as mg
    >>> mg.ones(2).to(mg.int64).dtype
    monograph.int64
    """
    if args:
        given_device, given_dtype, rest = _target(args if other is None else (other, *args))
        device, dtype = given_device or device, given_dtype or dtype
        copy = copy or (len(rest) > 1 and bool(rest[1]))
    elif other is not None:
        device, dtype = other.device, other.dtype
    if device is not None and placement.place_of(device) is not x.device:
        return _moved(x, dtype)
    kept = memory_format is preserve_format or x.is_contiguous(memory_format)
    if dtype is not None and dtype is not x.dtype:
        return laid(math.cast(x, dtype), memory_format)
    return x if kept and not copy else clone(x, memory_format=memory_format)


def _moved(x: Tensor, dtype: DType | None) -> Tensor:
    """x from one device to the other: its contents can be dropped, not found."""
    if x.is_meta:
        raise errors.NoDataError()
    return without_data(x if dtype is None else math.cast(x, dtype))


@function(to=None, method=True)
def cpu(x: Tensor, memory_format: Any = preserve_format) -> Tensor:
    """x on the CPU, where it is."""
    return to(x, placement.CPU, memory_format=memory_format)


@function(to=None, method=True)
def cuda(x: Tensor, device: Any = None, non_blocking: bool = False, **_: Any) -> Tensor:
    """Refused: this build has tensors on the CPU only."""
    return to(x, "cuda" if device is None else device)


def _in_dtype(name: str, dtype: DType) -> Any:
    def convert(x: Tensor, memory_format: Any = preserve_format) -> Tensor:
        return to(x, dtype, memory_format=memory_format)

    convert.__name__ = name
    convert.__doc__ = f"x in {dtype.name}."
    return convert


def _attach() -> None:
    shorthand = {
        "float": dtypes.float32, "double": dtypes.float64, "half": dtypes.float16,
        "long": dtypes.int64, "int": dtypes.int32, "short": dtypes.int16, "char": dtypes.int8,
        "byte": dtypes.uint8, "bool": dtypes.bool_, "bfloat16": dtypes.bfloat16,
        "cfloat": dtypes.complex64, "cdouble": dtypes.complex128,
    }  # fmt: skip
    for name, dtype in shorthand.items():
        setattr(Tensor, name, _in_dtype(name, dtype))


_attach()
