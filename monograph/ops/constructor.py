"""The constructors of PyTorch's early days: `Tensor(2, 3)`, `Tensor([1, 2])` and `x.new(2, 3)`.

Numbers are sizes, and a sequence is data. They give a fixed dtype, whatever the data is.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ir import dtypes
from ..ir.dtypes import DType
from ..placement import CPU, require_here
from ..tensor import Size, Tensor, as_array, tensor
from .creation import empty
from .define import function


def construct(cls: type[Tensor], dtype: DType | None, args: tuple[Any, ...]) -> Tensor:
    """A tensor of sizes, of data, or on another tensor's storage.

    >>> construct(Tensor, None, (2, 3)).shape
    Size([2, 3])
    >>> construct(Tensor, dtypes.int64, ([1.5, 2.5],)).tolist()
    [1, 2]
    """
    chosen = dtype or dtypes.get_default_dtype()
    if len(args) == 1 and not isinstance(args[0], (int, np.integer)):
        made = _of_data(args[0], dtype, chosen)
    elif all(isinstance(size, (int, np.integer)) for size in args):
        made = empty(args if args else (0,), dtype=chosen, device=CPU)
    else:
        kinds = ", ".join(type(arg).__name__ for arg in args)
        raise TypeError(f"Tensor() takes sizes, or one sequence of data, but got ({kinds})")
    return made if cls is Tensor else made.as_subclass(cls)  # type: ignore[no-any-return]


def _of_data(data: Any, dtype: DType | None, chosen: DType) -> Tensor:
    if isinstance(data, Size):
        return empty(tuple(data), dtype=chosen, device=CPU)  # type: ignore[no-any-return]
    if isinstance(data, Tensor):
        if dtype is not None and data.dtype is not dtype:
            raise TypeError(f"expected a tensor of {dtype.name}, got one of {data.dtype.name}")
        return data.detach()
    if isinstance(data, (float, complex)) or not hasattr(data, "__iter__"):
        raise TypeError(f"new(): data must be a sequence (got {type(data).__name__})")
    listed = data if isinstance(data, np.ndarray) else list(data)
    if not isinstance(listed, np.ndarray) and any(isinstance(item, Tensor) for item in listed):
        listed = [item.tolist() if isinstance(item, Tensor) else item for item in listed]
    return tensor(as_array(np.asarray(listed), chosen), device=CPU)


@function(to=None, method=True)
def new(x: Tensor, *args: Any, device: Any = None) -> Tensor:
    """A tensor of x's dtype, of sizes or of data; `new_zeros` and `new_tensor` say which.

    >>> import monograph as mg
    >>> mg.ones(1, dtype=mg.int64).new(2, 3).shape
    Size([2, 3])
    """
    require_here(device)
    return construct(Tensor, x.dtype, args)


@function(to=None, method=True)
def as_subclass(x: Tensor, cls: type[Tensor]) -> Tensor:
    """The same storage as a tensor of a class of the user's."""
    if not (isinstance(cls, type) and issubclass(cls, Tensor)):
        raise TypeError(f"as_subclass takes a subclass of Tensor, got {cls!r}")
    made = object.__new__(cls)
    made._storage, made._view = x._storage, x._view
    made.__dict__.update(x.__dict__)
    return made
