"""The element types, and the rules by which two of them become one.

A `DType` is a name, its NumPy twin and a kind ("bool", "int", "float"). Promotion follows PyTorch:
kinds are ordered, a tensor beats a Python number of the same kind, and a number only raises the
kind. Everything that asks "which dtype comes out?" asks here.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

import numpy as np


class Kind(enum.IntEnum):
    """The ordered families of types: a higher kind absorbs a lower one."""

    BOOL = 0
    INT = 1
    FLOAT = 2


@dataclass(frozen=True, eq=False)
class DType:
    """One element type. Compared by identity: there is exactly one object per type."""

    name: str
    kind: Kind
    numpy: np.dtype
    itemsize: int
    signed: bool = True

    def __repr__(self) -> str:
        return f"monograph.{self.name}"

    def __reduce__(self) -> str:
        return self.name

    @property
    def is_floating_point(self) -> bool:
        return self.kind is Kind.FLOAT


def _make(name: str, kind: Kind, signed: bool = True) -> DType:
    twin = np.dtype(name)
    return DType(name, kind, twin, twin.itemsize, signed)


bool_ = DType("bool", Kind.BOOL, np.dtype(np.bool_), 1, False)
uint8 = _make("uint8", Kind.INT, signed=False)
int8 = _make("int8", Kind.INT)
int16 = _make("int16", Kind.INT)
int32 = _make("int32", Kind.INT)
int64 = _make("int64", Kind.INT)
uint32 = _make("uint32", Kind.INT, signed=False)
uint64 = _make("uint64", Kind.INT, signed=False)
float16 = _make("float16", Kind.FLOAT)
float32 = _make("float32", Kind.FLOAT)
float64 = _make("float64", Kind.FLOAT)

ALL: tuple[DType, ...] = (
    bool_,
    uint8,
    int8,
    int16,
    int32,
    int64,
    uint32,
    uint64,
    float16,
    float32,
    float64,
)
BY_NAME: dict[str, DType] = {d.name: d for d in ALL}
_BY_NUMPY: dict[np.dtype, DType] = {d.numpy: d for d in ALL}
_SIGNED_BY_SIZE = {1: int8, 2: int16, 4: int32, 8: int64}


def from_numpy(dtype: object) -> DType:
    """The DType of a NumPy dtype.

    >>> from_numpy("float32")
    monograph.float32
    """
    twin = np.dtype(dtype)  # type: ignore[call-overload]
    found = _BY_NUMPY.get(twin.newbyteorder("="))
    if found is None:
        names = ", ".join(d.name for d in ALL)
        raise TypeError(f"monograph has no dtype for NumPy's {twin}; it has {names}")
    return found


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
    """
    if a is b:
        return a
    if a.kind is not b.kind:
        return a if a.kind > b.kind else b
    if a.kind is Kind.INT:
        return _promote_ints(a, b)
    return a if a.itemsize >= b.itemsize else b


_NUMBER_KIND = {bool: Kind.BOOL, int: Kind.INT, float: Kind.FLOAT}


def promote_number(a: DType, number: type) -> DType:
    """The dtype of an operation on a tensor of dtype a and a Python number of type `number`.

    >>> promote_number(int64, float)
    monograph.float32
    """
    kind = _kind_of(number)
    if kind <= a.kind:
        return a
    return of_number(number)


def of_number(number: type) -> DType:
    """The dtype that a lone Python number has: bool, int64, or float32."""
    return (bool_, int64, float32)[_kind_of(number)]


def _kind_of(number: type) -> Kind:
    found = _NUMBER_KIND.get(number)
    if found is None:
        raise TypeError(f"expected a tensor or a number, got {number.__name__}")
    return found
