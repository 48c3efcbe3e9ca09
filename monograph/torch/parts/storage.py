"""Storages as users see them: the memory behind a tensor, shared by its views."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...ir import dtypes
from ...ir.dtypes import DType
from ...tensor import Tensor, adopt


class UntypedStorage:
    """The bytes that a tensor and its views share."""

    is_cuda = False

    def __init__(self, owner: Tensor) -> None:
        whole = object.__new__(Tensor)
        whole._storage, whole._view = owner._storage, None
        self._whole = whole

    @classmethod
    def from_file(cls, filename: Any, shared: bool = False, nbytes: int = 0) -> UntypedStorage:
        """The first bytes of a file; changes stay in memory."""
        if shared:
            raise NotImplementedError("a storage that writes into its file is not supported")
        return UntypedStorage(adopt(np.fromfile(filename, np.uint8, nbytes)))

    @property
    def device(self) -> Any:
        return self._whole.device

    def untyped(self) -> UntypedStorage:
        """The same memory as bytes."""
        return UntypedStorage(self._whole)

    def __getitem__(self, place: Any) -> Any:
        """One byte; or a storage with a copy of a range of them, which has PyTorch's values."""
        found = self._bytes()[place]
        return UntypedStorage(adopt(found.copy())) if isinstance(place, slice) else int(found)

    def _bytes(self) -> np.ndarray:
        return self._whole._array().reshape(-1).view(np.uint8)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return self._bytes().astype(dtype or np.uint8)

    def nbytes(self) -> int:
        """How many bytes there are."""
        return self._whole.nbytes

    size = __len__ = nbytes

    def __sizeof__(self) -> int:
        return int(super().__sizeof__()) + self.nbytes()

    def data_ptr(self) -> int:
        """The address of the first byte."""
        return self._whole.data_ptr()

    @property
    def _cdata(self) -> int:
        return id(self._whole._storage)

    def tolist(self) -> list[int]:
        """The bytes."""
        return self._bytes().tolist()

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
