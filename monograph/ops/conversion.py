"""The same elements in another dtype or on another device."""

from __future__ import annotations

from typing import Any

from .. import errors
from ..ir import dtypes
from ..ir.dtypes import DType
from ..tensor import Tensor
from . import math
from .define import function


def converted(x: Tensor, dtype: DType) -> Tensor:
    """x in that dtype; x itself if it has it."""
    return x if x.dtype is dtype else math.cast(x, dtype)


@function(to=None, method=True)
def to(x: Tensor, *args: Any, dtype: DType | None = None, device: Any = None, **_: Any) -> Tensor:
    """x in another dtype (devices: only "cpu" so far)."""
    for arg in args:
        if isinstance(arg, DType):
            dtype = arg
        elif isinstance(arg, Tensor):
            dtype = arg.dtype
        elif str(arg) != "cpu":
            raise errors.OperandError(f"to: this build has the device 'cpu' only, not {arg!r}")
    return x if dtype is None else converted(x, dtype)


def _attach() -> None:
    shorthand = {
        "float": dtypes.float32, "double": dtypes.float64, "half": dtypes.float16,
        "long": dtypes.int64, "int": dtypes.int32, "short": dtypes.int16, "char": dtypes.int8,
        "byte": dtypes.uint8, "bool": dtypes.bool_, "bfloat16": dtypes.bfloat16,
        "cfloat": dtypes.complex64, "cdouble": dtypes.complex128,
    }  # fmt: skip
    for name, dtype in shorthand.items():
        setattr(Tensor, name, lambda x, dtype=dtype: converted(x, dtype))
    Tensor.cpu = lambda x: x  # type: ignore[attr-defined]


_attach()
