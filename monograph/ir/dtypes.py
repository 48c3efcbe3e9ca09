"""The element types, and the rules by which two of them become one.

A `DType` is a name, a kind ("bool", "int", "float", "complex") and its NumPy twin. Promotion
follows PyTorch: kinds are ordered, a tensor beats a Python number of the same kind, and a number
only raises the kind. Everything that asks "which dtype comes out?" asks here.

NumPy has no bfloat16: its twin comes from `ml_dtypes`, imported when it is first asked for.
"""

from __future__ import annotations

import enum
import reprlib
from functools import cached_property

import numpy as np


class Kind(enum.IntEnum):
    """The ordered families of types: a higher kind absorbs a lower one."""

    BOOL = 0
    INT = 1
    FLOAT = 2
    COMPLEX = 3


class DType:
    """One element type. Compared by identity: there is exactly one object per type.

    It is no dataclass, as libraries take those apart into their fields.
    """

    def __init__(self, name: str, kind: Kind, itemsize: int, signed: bool = True) -> None:
        self.name = name
        self.kind = kind
        self.itemsize = itemsize
        self.signed = signed

    def __repr__(self) -> str:
        return f"{_package}.{self.name}"

    def __reduce__(self) -> tuple[object, ...]:
        return _by_name, (self.name,)

    @cached_property
    def numpy(self) -> np.dtype:
        """The NumPy dtype of the same elements."""
        if self.name == "bfloat16":
            import ml_dtypes

            twin: np.dtype = np.dtype(ml_dtypes.bfloat16)
            return twin
        return np.dtype(self.name)

    @cached_property
    def is_floating_point(self) -> bool:
        return self.kind is Kind.FLOAT

    @cached_property
    def is_complex(self) -> bool:
        return self.kind is Kind.COMPLEX

    @cached_property
    def is_signed(self) -> bool:
        return self.signed

    @cached_property
    def is_smooth(self) -> bool:
        """Whether derivatives can be taken by values of this dtype."""
        return self.kind >= Kind.FLOAT

    @cached_property
    def is_half(self) -> bool:
        """Whether values have 16 bits in memory and are computed with in float32."""
        return self.kind is Kind.FLOAT and self.itemsize == 2

    def to_real(self) -> DType:
        """The dtype of the parts of a complex number; other dtypes are their own.

        >>> complex64.to_real()
        monograph.float32
        """
        return _PARTS.get(self, self)

    def to_complex(self) -> DType:
        """The complex dtype whose parts are at least as precise.

        >>> float64.to_complex()
        monograph.complex128
        """
        return complex128 if self in (float64, complex128) else complex64


_package = "monograph"  # stands before the names of dtypes and others when they are printed


def show_as(package: str) -> str:
    """Print names as those of another package, as `monograph run` does; the one before."""
    global _package
    before, _package = _package, package
    return before


def shown(name: str) -> str:
    """A public name with its package, as users read it."""
    return f"{_package}.{name}"


def _by_name(name: str) -> DType:
    return BY_NAME[name]


bool_ = DType("bool", Kind.BOOL, 1, False)
uint8 = DType("uint8", Kind.INT, 1, False)
int8 = DType("int8", Kind.INT, 1)
int16 = DType("int16", Kind.INT, 2)
int32 = DType("int32", Kind.INT, 4)
int64 = DType("int64", Kind.INT, 8)
uint16 = DType("uint16", Kind.INT, 2, False)
uint32 = DType("uint32", Kind.INT, 4, False)
uint64 = DType("uint64", Kind.INT, 8, False)
float16 = DType("float16", Kind.FLOAT, 2)
bfloat16 = DType("bfloat16", Kind.FLOAT, 2)
float32 = DType("float32", Kind.FLOAT, 4)
float64 = DType("float64", Kind.FLOAT, 8)
complex64 = DType("complex64", Kind.COMPLEX, 8)
complex128 = DType("complex128", Kind.COMPLEX, 16)

ALL: tuple[DType, ...] = (
    bool_,
    uint8,
    int8,
    int16,
    int32,
    int64,
    uint16,
    uint32,
    uint64,
    float16,
    bfloat16,
    float32,
    float64,
    complex64,
    complex128,
)
BY_NAME: dict[str, DType] = {d.name: d for d in ALL}
# PyTorch's other names for some of them.
ALIASES: dict[str, DType] = {
    "bool": bool_, "short": int16, "int": int32, "long": int64, "half": float16, "float": float32,
    "double": float64, "cfloat": complex64, "cdouble": complex128,
}  # fmt: skip
# What Python's own types mean where a dtype is expected.
_BY_TYPE: dict[type, DType] = {bool: bool_, int: int64, float: float64, complex: complex128}
_PARTS = {complex64: float32, complex128: float64}
COMPLEX = frozenset(_PARTS)
_BY_NUMPY: dict[np.dtype, DType] = {}
_SIGNED_BY_SIZE = {1: int8, 2: int16, 4: int32, 8: int64}


def from_numpy(dtype: object) -> DType:
    """The DType of a NumPy dtype.

    >>> from_numpy("float32")
    monograph.float32
    """
    twin = np.dtype(dtype)  # type: ignore[call-overload]
    found = _BY_NUMPY.get(twin) or BY_NAME.get(twin.name)
    if found is None:
        names = ", ".join(d.name for d in ALL)
        raise TypeError(f"monograph has no dtype for NumPy's {twin}; it has {names}")
    _BY_NUMPY[twin] = found
    return found


def named(given: object) -> DType:
    """The dtype that a Python type stands for where a dtype is expected, as in PyTorch.

    >>> named(float)
    monograph.float64
    """
    found = _BY_TYPE.get(given) if isinstance(given, type) else None
    if found is None:
        shown = given.__name__ if isinstance(given, type) else reprlib.repr(given)
        raise TypeError(f"argument 'dtype' must be a dtype that tensors can have, not {shown}")
    return found


def accumulator(dtype: DType) -> DType:
    """The dtype in which many values of `dtype` are added up: float32 for the 16-bit floats."""
    return float32 if dtype.is_half else dtype


# --- promotion ------------------------------------------------------------------------------------


def _promote_ints(a: DType, b: DType) -> DType:
    if a.signed == b.signed:
        return a if a.itemsize >= b.itemsize else b
    signed, unsigned = (a, b) if a.signed else (b, a)
    if signed.itemsize > unsigned.itemsize:
        return signed
    return _SIGNED_BY_SIZE[min(8, 2 * unsigned.itemsize)]


def promote(a: DType, b: DType) -> DType:
    """The dtype of an operation on tensors of dtypes a and b, as PyTorch defines it.

    >>> promote(int64, float32)
    monograph.float32
    >>> promote(float16, bfloat16)
    monograph.float32
    """
    if a is b:
        return a
    if a.kind is not b.kind:
        higher, lower = (a, b) if a.kind > b.kind else (b, a)
        return raised(higher, lower) if higher.is_complex else higher
    if a.kind is Kind.INT:
        return _promote_ints(a, b)
    if a.itemsize == b.itemsize:  # the two floats of 16 bits
        return float32
    return a if a.itemsize > b.itemsize else b


def raised(higher: DType, lower: DType) -> DType:
    """A complex dtype that also holds the parts of a lower kind."""
    return complex128 if lower is float64 else higher


_NUMBER_KIND = {bool: Kind.BOOL, int: Kind.INT, float: Kind.FLOAT, complex: Kind.COMPLEX}


def promote_number(a: DType, number: type) -> DType:
    """The dtype of an operation on a tensor of dtype a and a Python number of type `number`.

    >>> promote_number(int64, float)
    monograph.float32
    >>> promote_number(float64, complex)
    monograph.complex128
    """
    return promote_weak(a, of_number(number))


def promote_weak(a: DType, weak: DType) -> DType:
    """The dtype of arrays of dtype a with something that only raises the kind.

    That is a Python number, or a tensor without axes among tensors with axes.
    """
    if weak.kind <= a.kind:
        return a
    if a.is_floating_point:
        return a.to_complex()
    return promote(a, weak)


_default = float32


def get_default_dtype() -> DType:
    """The dtype of Python's floats: float32 unless `set_default_dtype` changed it."""
    return _default


def use_default_dtype(dtype: DType) -> None:
    """Change the dtype of Python's floats, for definitions expanded from now on."""
    global _default
    _default = dtype


def of_number(number: type) -> DType:
    """The dtype that a lone Python number has: bool, int64, or the default float or complex."""
    kind = _NUMBER_KIND.get(number)
    if kind is None:
        raise TypeError(f"expected a tensor or a number, got {number.__name__}")
    return (bool_, int64, _default, _default.to_complex())[kind]
