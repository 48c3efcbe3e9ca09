"""Which dtype comes out: promotion, casting rules, limits and the default dtype, for users."""

from __future__ import annotations

from typing import Any

from .. import errors, record
from ..ir import build, dtypes
from ..ir.dtypes import DType, Kind
from ..ir.limits import finfo, iinfo
from ..tensor import Tensor
from .define import function


def require_floats(x: Any) -> None:
    """Inside a definition: refuse integers and booleans."""
    if x.dtype.kind < Kind.FLOAT:
        raise errors.DtypeError(f"a floating point dtype is needed, got {x.dtype.name}")


function(finfo)
function(iinfo)


@function
def promote_types(type1: DType, type2: DType) -> DType:
    """The dtype of an operation on tensors of these dtypes.

    >>> import monograph as mg
    >>> mg.promote_types(mg.bfloat16, mg.complex64)
    monograph.complex64
    """
    first, second = (t if isinstance(t, DType) else dtypes.named(t) for t in (type1, type2))
    return dtypes.promote(first, second)


@function
def result_type(tensor1: Any, tensor2: Any) -> DType:
    """The dtype of an operation on these tensors or numbers.

    >>> import monograph as mg
    >>> mg.result_type(mg.tensor([1, 2]), 1.0)
    monograph.float32
    """
    operands = [
        build.buffer(n, tuple(x.shape), x.dtype) if isinstance(x, Tensor) else x
        for n, x in enumerate((tensor1, tensor2))
    ]
    return build.common_dtype(operands)


@function
def can_cast(from_: DType, to: DType) -> bool:
    """Whether numbers of a dtype may be written into another: the kind must not fall.

    >>> import monograph as mg
    >>> mg.can_cast(mg.float64, mg.float32), mg.can_cast(mg.float32, mg.int64)
    (True, False)
    """
    return from_.kind <= to.kind


@function
def get_default_dtype() -> DType:
    """The dtype of Python's floats and of new tensors.

    >>> import monograph as mg
    >>> mg.get_default_dtype()
    monograph.float32
    """
    return dtypes.get_default_dtype()


@function
def set_default_dtype(d: DType) -> None:
    """Let Python's floats and new tensors have this dtype: float32 unless it is changed."""
    if not isinstance(d, DType) or not d.is_floating_point:
        raise TypeError(f"the default dtype must be a floating point dtype, got {d}")
    record.use_default_dtype(d)


@function
def is_complex(input: Tensor) -> bool:
    """Whether the dtype is complex.

    >>> import monograph as mg
    >>> mg.is_complex(mg.tensor([1j]))
    True
    """
    return input.is_complex()


@function
def is_floating_point(input: Tensor) -> bool:
    """Whether the dtype is a float.

    >>> import monograph as mg
    >>> mg.is_floating_point(mg.zeros(1)), mg.is_floating_point(mg.arange(1))
    (True, False)
    """
    return input.is_floating_point()


@function(to=None, method=True)
def type_as(x: Tensor, other: Tensor) -> Tensor:
    """x in the dtype of the other tensor."""
    return x.to(other.dtype)  # type: ignore[no-any-return]


_LEGACY = {
    "FloatTensor": dtypes.float32, "DoubleTensor": dtypes.float64, "HalfTensor": dtypes.float16,
    "BFloat16Tensor": dtypes.bfloat16, "ByteTensor": dtypes.uint8, "CharTensor": dtypes.int8,
    "ShortTensor": dtypes.int16, "IntTensor": dtypes.int32, "LongTensor": dtypes.int64,
    "BoolTensor": dtypes.bool_, "ComplexFloatTensor": dtypes.complex64,
    "ComplexDoubleTensor": dtypes.complex128,
}  # fmt: skip


@function(name="type", to=None, method=True)
def type_of(x: Tensor, dtype: DType | str | None = None) -> Any:
    """The name of the tensor's type; with a dtype, or such a name, x in that dtype.

    >>> import monograph as mg
    >>> mg.tensor([1.0]).type()
    'monograph.FloatTensor'
    """
    if dtype is None:
        names = {d: name for name, d in _LEGACY.items()}
        return dtypes.shown(names.get(x.dtype, x.dtype.name))
    if dtype is Tensor:
        dtype = dtypes.get_default_dtype()
    dtype = getattr(dtype, "dtype", dtype)  # of a class such as torch.FloatTensor
    if isinstance(dtype, str):
        word = dtype.rsplit(".", 1)[-1]
        found = _LEGACY.get(word) or dtypes.BY_NAME.get(word)
        if found is None:
            raise ValueError(f"there is no tensor type {dtype!r}; there are {', '.join(_LEGACY)}")
        dtype = found
    return x.to(dtype)
