"""How reductions combine numbers: what they start from."""

from __future__ import annotations

import math

import numpy as np

from ..ir import dtypes
from ..ir.dtypes import DType, Kind


def identity(combine: str, dtype: DType) -> bool | int | float:
    """The number that changes nothing when combined."""
    if combine in ("add", "or"):
        return 0
    if combine == "mul":
        return 1
    if combine == "and":
        ones = -1 if dtype.signed else (1 << 8 * dtype.itemsize) - 1
        return True if dtype is dtypes.bool_ else ones
    highest = combine in ("min", "argmin")
    if dtype.kind is Kind.FLOAT:
        return math.inf if highest else -math.inf
    if dtype is dtypes.bool_:
        return highest
    info = np.iinfo(dtype.numpy)
    return int(info.max if highest else info.min)
