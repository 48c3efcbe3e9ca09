"""LLVM's names for our dtypes and numbers, in registers and in memory.

In registers a bool is i1, and the 16-bit floats are computed as float; in memory they are i8, half
and, for bfloat16, the 16 bits themselves: no instruction of the machine is asked for that it may
announce and not have. Complex numbers never come here: they are pairs of floats by then.
"""

from __future__ import annotations

import functools
import math
import struct

import numpy as np

from ...ir import dtypes
from ...ir.dtypes import DType, Kind


def _register_type(dtype: DType) -> str:
    if dtype.kind is Kind.FLOAT:
        return "double" if dtype is dtypes.float64 else "float"
    return "i1" if dtype is dtypes.bool_ else f"i{8 * dtype.itemsize}"


REGISTER = {dtype: _register_type(dtype) for dtype in dtypes.ALL if not dtype.is_complex}
MEMORY = {**REGISTER, dtypes.bool_: "i8", dtypes.float16: "half", dtypes.bfloat16: "i16"}
# How the names of intrinsics spell a type.
SUFFIX = {"float": "f32", "double": "f64", "half": "f16"}


@functools.cache
def vector(element: str, lanes: int) -> str:
    """The type of `lanes` elements; 0 lanes is the element itself."""
    return f"<{lanes} x {element}>" if lanes else element


def register(dtype: DType, lanes: int) -> str:
    """The type of a value in registers."""
    return vector(REGISTER[dtype], lanes)


def memory(dtype: DType, lanes: int) -> str:
    """The type of a value in memory."""
    return vector(MEMORY[dtype], lanes)


@functools.cache
def mangled(element: str, lanes: int) -> str:
    """The ending of an intrinsic's name for a type, such as v16f32."""
    name = SUFFIX.get(element, element)
    return f"v{lanes}{name}" if lanes else name


def _integer(value: float, dtype: DType) -> int:
    """`value` as an integer of dtype: infinities and large numbers saturate, NaN is 0."""
    if isinstance(value, int):
        return value & ((1 << 8 * dtype.itemsize) - 1)
    if math.isnan(value):
        return 0
    info = np.iinfo(dtype.numpy)
    bounded = min(max(value, float(info.min)), float(info.max))
    return min(max(int(bounded), int(info.min)), int(info.max))


def literal(value: bool | int | float, dtype: DType, in_memory: bool = False) -> str:
    """The text of a number.

    >>> literal(1.0, dtypes.float32)
    '0x3FF0000000000000'
    """
    if dtype is dtypes.bool_:
        return ("1" if value else "0") if in_memory else ("true" if value else "false")
    if dtype.kind is Kind.INT:
        return str(_integer(value, dtype))
    if dtype is dtypes.float16 and in_memory:
        with np.errstate(over="ignore"):
            bits = int(np.float16(value).view(np.uint16))
        return f"0xH{bits:04X}"
    if dtype is dtypes.bfloat16 and in_memory:
        return str(int(np.asarray(value, dtype.numpy).view(np.uint16)))
    if dtype is not dtypes.float64:
        with np.errstate(over="ignore"):
            value = float(np.float32(value))
    return "0x" + struct.pack(">d", float(value)).hex().upper()


def splat(text: str, element: str, lanes: int) -> str:
    """A constant repeated in all lanes; 0 lanes leaves it alone."""
    return f"splat ({element} {text})" if lanes else text
