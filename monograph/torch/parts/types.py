"""Names that programs use in annotations."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import IO, Any, TypeVar

from ... import DType, Generator, Tensor, device
from ...tensor import Size

Number = int | float | bool
Device = device | str | int | None
FileLike = str | os.PathLike[str] | IO[bytes]
_dtype, _device, _size, _int, _float, _bool = DType, device, Sequence[int], int, float, bool
TensorType = Tensor
_TensorOrTensors = Tensor | Sequence[Tensor]
SymInt, SymFloat, SymBool = int, float, bool
_T = TypeVar("_T")
_scalar_or_tuple_any_t = Any
for _name in ("any", "1", "2", "3", "4", "5", "6"):
    globals()[f"_size_{_name}_t"] = globals()[f"_ratio_{_name}_t"] = int | tuple[int, ...]
    globals()[f"_size_{_name}_opt_t"] = int | tuple[int | None, ...]

__all__ = [
    "Device", "FileLike", "Number", "SymBool", "SymFloat", "SymInt", "TensorType",
    "_TensorOrTensors", "_bool", "_device", "_dtype", "_float", "_int", "_size",
    "Generator", "Size", "Tensor",
    *[name for name in globals() if name.startswith(("_size_", "_ratio_"))],
]  # fmt: skip
