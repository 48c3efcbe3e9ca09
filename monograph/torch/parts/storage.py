"""Storages as users see them: the memory behind a tensor, shared by its views."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...ir import dtypes
from ...ir.dtypes import DType
from ...tensor import Tensor


class UntypedStorage:
    """The bytes that a tensor and its views share."""

    device = Tensor.device
    is_cuda = False

    def __init__(self, owner: Tensor) -> None:
        whole = object.__new__(Tensor)
        whole._storage = owner._storage
        self._whole = whole

    def nbytes(self) -> int:
        """How many bytes there are."""
        return self._whole.nbytes

    size = __len__ = nbytes

    def data_ptr(self) -> int:
        """The address of the first byte."""
        return self._whole.data_ptr()

    @property
    def _cdata(self) -> int:
        return id(self._whole._storage)

    def tolist(self) -> list[int]:
        """The bytes."""
        return self._whole._array().reshape(-1).view(np.uint8).tolist()

    def is_pinned(self) -> bool:
        """Whether the memory is pinned for a device; it never is."""
        return False

    is_shared = is_pinned


class TypedStorage(UntypedStorage):
    """The elements that a tensor and its views share."""

    @property
    def dtype(self) -> DType:
        return self._whole.dtype

    def size(self) -> int:
        """How many elements there are."""
        return self._whole.numel()

    __len__ = size

    def element_size(self) -> int:
        """Bytes of an element."""
        return self._whole.element_size()

    def tolist(self) -> list[Any]:
        """The elements."""
        return self._whole._array().reshape(-1).tolist()

    def __getitem__(self, place: Any) -> Any:
        return self.tolist()[place]

    def untyped(self) -> UntypedStorage:
        """The same memory as bytes."""
        return UntypedStorage(self._whole)


STORAGES = {
    "DoubleStorage": dtypes.float64, "FloatStorage": dtypes.float32, "HalfStorage": dtypes.float16,
    "BFloat16Storage": dtypes.bfloat16, "LongStorage": dtypes.int64, "IntStorage": dtypes.int32,
    "ShortStorage": dtypes.int16, "CharStorage": dtypes.int8, "ByteStorage": dtypes.uint8,
    "BoolStorage": dtypes.bool_, "ComplexDoubleStorage": dtypes.complex128,
    "ComplexFloatStorage": dtypes.complex64,
}  # fmt: skip
"""The names of storages by dtype, as files of tensors spell them."""
CLASSES = {
    name: type(name, (TypedStorage,), {"__doc__": f"Elements of {dtype.name}."})
    for name, dtype in STORAGES.items()
}
__all__ = ["TypedStorage", "UntypedStorage", *CLASSES]
globals().update(CLASSES)
