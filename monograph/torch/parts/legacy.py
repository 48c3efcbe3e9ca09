"""The tensor types of PyTorch's early days: `torch.FloatTensor(2, 3)` and others.

A name stands for a dtype. Calling it makes a tensor, and `isinstance` compares the dtype.
"""

from __future__ import annotations

from typing import Any

from ...ir.dtypes import DType
from ...ops.constructor import construct
from ...ops.promotion import _LEGACY
from ...tensor import Tensor

NO_CUDA = "Torch not compiled with CUDA enabled"


class TensorType(type):
    """The class of these names."""

    dtype: DType
    on_gpu: bool

    def __call__(cls, *args: Any, device: Any = None) -> Any:
        if cls.on_gpu:
            raise TypeError(f"type torch.cuda.{cls.__name__} not available. {NO_CUDA}.")
        return construct(Tensor, cls.dtype, args)

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor) and instance.dtype is cls.dtype and not cls.on_gpu

    def __repr__(cls) -> str:
        return f"<class '{cls.__module__}.{cls.__name__}'>"


def _tensor_type(name: str, dtype: DType, on_gpu: bool) -> TensorType:
    where = "torch.cuda" if on_gpu else "torch"
    return TensorType(name, (), {"dtype": dtype, "on_gpu": on_gpu, "__module__": where})


TYPES = {name: _tensor_type(name, dtype, False) for name, dtype in _LEGACY.items()}
CUDA_TYPES = {name: _tensor_type(name, dtype, True) for name, dtype in _LEGACY.items()}


def by_name(given: Any) -> TensorType:
    """The type that a name such as "torch.FloatTensor" means; types are themselves."""
    if isinstance(given, TensorType):
        found: TensorType | None = given
    else:
        _, _, last = str(given).rpartition(".")
        table = CUDA_TYPES if ".cuda." in str(given) else TYPES
        found = table.get(last)
    if found is None:
        raise TypeError(f"invalid type: {given!r}; there are {', '.join(TYPES)}")
    if found.on_gpu:
        raise TypeError(f"type torch.cuda.{found.__name__} not available. {NO_CUDA}.")
    return found
