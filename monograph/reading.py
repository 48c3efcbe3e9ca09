"""Contents of a tensor as NumPy arrays and Python numbers.

`Readable` is the base of Tensor that holds these methods. Each of them reads, and so computes what
is pending. Arrays lie on the storage's own memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from . import errors, record
from .geometry import memory_seen

# What a view puts off until it is read: PyTorch's name for it, and the call that does it.
_PUT_OFF = {"conj": ("conjugate", "resolve_conj"), "neg": ("negative", "resolve_neg")}


class Readable:
    """What has contents that can be read."""

    __slots__ = ()

    if TYPE_CHECKING:  # what Tensor has

        def __getattr__(self, name: str) -> Any: ...

    def _array(self) -> np.ndarray:
        """The contents, on the storage's own memory; not to be given to users."""
        base = record.read(self._storage)
        if self._view is None:
            return base
        found = memory_seen(self._storage.value.meta, self._view.chain())
        if found is None:
            copy: np.ndarray = self.clone()._array().view()
            copy.flags.writeable = False  # a write would not be seen
            return copy
        line = base.reshape(-1).view(found.dtype.numpy)[found.offset :]
        if found.is_contiguous:
            return line[: found.size].reshape(found.shape)
        steps = [s * line.itemsize for s in found.strides]
        return np.lib.stride_tricks.as_strided(line, found.shape, steps)

    def numpy(self, *, force: bool = False) -> np.ndarray:
        """The contents as a NumPy array on the same memory: a change of one is seen in the other.

        >>> import monograph as mg
        >>> x = mg.zeros(2)
        >>> x.numpy()[0] = 7.0
        >>> x
        tensor([7., 0.])
        """
        if self.requires_grad and record.current.recorder.grad and not force:
            raise errors.GradientError(
                "can't call numpy() on a tensor that requires grad; use detach().numpy()"
            )
        if self.is_meta:
            raise TypeError(
                "can't convert meta device type tensor to numpy. Use Tensor.cpu() to copy the "
                "tensor to host memory first."
            )
        reads = self._reads()
        if reads and not force:
            bit, call = _PUT_OFF[reads]
            raise errors.OperandError(
                f"Can't call numpy() on Tensor that has {bit} bit set. Use tensor.{call}().numpy() "
                "instead."
            )
        array = self._array()
        record.expose(self._storage.value)
        return array.view()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if copy is False:
            return self.numpy()
        return np.array(self.numpy(), dtype=dtype, copy=copy if copy else None)

    def __dlpack__(self, **options: Any) -> Any:
        if self.requires_grad:
            raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
        reads = self._reads()
        if reads:
            raise BufferError(f"Can't export tensors with the {_PUT_OFF[reads][0]} bit set")
        return self.numpy().__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)  # DLPack's number for the CPU

    def item(self) -> Any:
        """The number in a tensor of one element."""
        if self._value().meta.size != 1:
            raise errors.OperandError(
                f"a Tensor with {self.numel()} elements cannot be converted to Scalar: item() "
                "needs a tensor of one element"
            )
        if self.is_meta:
            raise errors.NoDataError("Tensor.item() cannot be called on meta tensors")
        return self._only()

    def _only(self) -> Any:
        """The only element, as a Python number."""
        storage, view = self._storage, self._view
        if view is None:
            return record.settled(storage).number()
        if view.version == storage.version and view.value.memory is not None:
            recorder = record.current.recorder
            recorder.note_read()
            record.settle(recorder)
            return view.value.number()
        found = memory_seen(storage.value.meta, view.chain())
        if found is None:
            return self._array().item()
        whole = record.settled(storage)
        if found.dtype is whole.meta.dtype:
            return whole.number(found.offset)
        return whole.array().reshape(-1).view(found.dtype.numpy)[found.offset].item()

    def tolist(self) -> Any:
        """Nested lists of numbers."""
        return self._array().tolist()

    def _number(self) -> Any:
        if self._value().meta.size != 1:
            raise ValueError("only one element tensors can be converted to Python scalars")
        if self.is_meta:
            raise errors.NoDataError("Tensor.item() cannot be called on meta tensors")
        return self._only()

    def __float__(self) -> float:
        return float(self._number())

    def __complex__(self) -> complex:
        return complex(self._number())

    def __int__(self) -> int:
        return int(self._number())

    def __bool__(self) -> bool:
        if self._value().meta.size != 1:
            how_many = "more than one value" if self.numel() else "no values"
            raise errors.OperandError(f"Boolean value of Tensor with {how_many} is ambiguous")
        return bool(self.item())

    def __index__(self) -> int:
        if self.dtype.is_smooth:
            raise TypeError("only integer tensors can be converted to an index")
        if self._value().meta.size != 1:
            shown = list(self.shape)
            raise TypeError(
                f"only tensors of one integer can be an index, this is of shape {shown}"
            )
        return int(self.item())
