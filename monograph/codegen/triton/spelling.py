"""How types, numbers and functions are spelt in Triton, and small functions that it lacks.

Extremes keep NaN, as NumPy and PyTorch do. Integer division rounds as the scalar functions of
`ir.scalar` say and yields 0 on division by 0; floats become integers without overflow and NaN
becomes 0. Of `FUNCTIONS`, only those that a kernel uses are written into its text.
"""

from __future__ import annotations

import numpy as np

from ...ir.dtypes import BY_NAME, DType

FUNCTIONS = {
    "maximum": """
def maximum(a, b):
    return tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)
""",
    "minimum": """
def minimum(a, b):
    return tl.minimum(a, b, propagate_nan=tl.PropagateNan.ALL)
""",
    "multiply": """
def multiply(a, b):
    return a * b
""",
    "both": """
def both(a, b):
    return a & b
""",
    "either": """
def either(a, b):
    return a | b
""",
    "argmax": """
def argmax(a, i, b, j):
    nan_a = a != a
    nan_b = b != b
    same = (a == b) | (nan_a & nan_b)
    first = (a > b) | (nan_a & (b == b)) | (same & (i < j))
    return tl.where(first, a, b), tl.where(first, i, j)
""",
    "argmin": """
def argmin(a, i, b, j):
    nan_a = a != a
    nan_b = b != b
    same = (a == b) | (nan_a & nan_b)
    first = (a < b) | (nan_a & (b == b)) | (same & (i < j))
    return tl.where(first, a, b), tl.where(first, i, j)
""",
    "divide": """
def divide(a, b):
    safe = tl.where(b == 0, 1, b).to(b.dtype)
    return tl.where(b == 0, 0, a // safe).to(a.dtype)
""",
    "floor_divide": """
def floor_divide(a, b):
    safe = tl.where(b == 0, 1, b).to(b.dtype)
    quotient = a // safe
    inexact = (quotient * safe != a) & ((a < 0) != (safe < 0))
    return tl.where(b == 0, 0, quotient - inexact.to(a.dtype)).to(a.dtype)
""",
    "saturate": """
def saturate(x, low, high, above: tl.constexpr):
    inside = (x >= low.to(x.dtype)) & (x < above)
    whole = tl.where(inside, x, 0.0).to(low.dtype)
    limit = tl.where(x >= above, high, tl.where(x < 0, low, whole))
    return tl.where(inside, whole, limit)
""",
    "rest": """
def rest(a, b):
    safe = tl.where(b == 0, 1, b).to(b.dtype)
    return tl.where(b == 0, 0, a - (a // safe) * safe).to(a.dtype)
""",
    "gcd": """
def gcd(a, b):
    a = tl.abs(a)
    b = tl.abs(b)
    for _ in range(92):
        safe = tl.where(b == 0, 1, b).to(b.dtype)
        rest = tl.where(b == 0, 0, a - (a // safe) * safe).to(a.dtype)
        a = tl.where(b == 0, a, b).to(a.dtype)
        b = rest
    return tl.abs(a)
""",
    "remainder": """
def remainder(a, b):
    safe = tl.where(b == 0, 1, b).to(b.dtype)
    rest = a - (a // safe) * safe
    rest = tl.where((rest != 0) & ((rest < 0) != (safe < 0)), rest + safe, rest)
    return tl.where(b == 0, 0, rest).to(a.dtype)
""",
}

# The helper that combines two accumulators; "add" is Triton's own sum.
COMBINE = {
    "mul": "multiply",
    "max": "maximum",
    "min": "minimum",
    "and": "both",
    "or": "either",
    "argmax": "argmax",
    "argmin": "argmin",
}

INTEGER_FUNCTIONS = {
    "div": "divide({0}, {1})",
    "floordiv": "floor_divide({0}, {1})",
    "remainder": "remainder({0}, {1})",
    "fmod": "rest({0}, {1})",
    "gcd": "gcd({0}, {1})",
    "sign": "({0} > 0).to({0}.dtype) - ({0} < 0).to({0}.dtype)",
    "floor": "{0}",
    "ceil": "{0}",
    "trunc": "{0}",
    "round": "{0}",
}

POINTERS = {
    "bool": "*i8",
    "uint8": "*u8",
    "int8": "*i8",
    "int16": "*i16",
    "int32": "*i32",
    "int64": "*i64",
    "uint32": "*u32",
    "uint64": "*u64",
    "uint16": "*u16",
    "float16": "*fp16",
    "bfloat16": "*bf16",
    "float32": "*fp32",
    "float64": "*fp64",
}

ITEM_SIZES = {pointer: BY_NAME[name].itemsize for name, pointer in POINTERS.items()}

_ELEMENTS = {"bool": "int8"}
_REGISTERS = {"bool": "int1", "float16": "float32", "bfloat16": "float32"}


def element(dtype: DType) -> str:
    """The Triton type of an element in memory."""
    return "tl." + _ELEMENTS.get(dtype.name, dtype.name)


def register(dtype: DType) -> str:
    """The Triton type in which values of this dtype are computed."""
    return "tl." + _REGISTERS.get(dtype.name, dtype.name)


def literal(value: bool | int | float) -> str:
    """A number as Python text."""
    if isinstance(value, float) and not np.isfinite(value):
        return f'float("{value}")'
    return f"({value!r})" if value < 0 else repr(value)
