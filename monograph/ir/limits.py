"""The limits of dtypes: `finfo` of floats and complex numbers, `iinfo` of integers."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np

from .dtypes import DType, Kind, bfloat16, get_default_dtype, named

# Floats of eight bits, which have names and limits but no tensors, and the step after 1.
EIGHT_BITS = {
    "float8_e4m3fn": 0.125, "float8_e4m3fnuz": 0.125, "float8_e5m2": 0.25,
    "float8_e5m2fnuz": 0.125,  # a quarter in truth; this is what PyTorch says
    "float8_e8m0fnu": 1.0,
}  # fmt: skip


@dataclass(frozen=True, init=False)
class finfo:
    """What floats of a dtype can hold; of a complex dtype, what its parts can.

    >>> from monograph.ir import dtypes
    >>> finfo(dtypes.bfloat16).eps
    0.0078125
    """

    dtype: str
    bits: int
    eps: float
    max: float
    min: float
    tiny: float
    smallest_normal: float
    resolution: float

    def __init__(self, dtype: DType | None = None) -> None:
        chosen = get_default_dtype() if dtype is None else dtype
        if getattr(chosen, "name", None) in EIGHT_BITS:
            self.__dict__.update(_facts_of_eight_bits(chosen.name))
            return
        chosen = chosen if isinstance(chosen, DType) else named(chosen)
        if not chosen.is_smooth:
            raise TypeError(f"finfo needs a floating point dtype, got {chosen.name}; see iinfo")
        self.__dict__.update(_facts(chosen.to_real()))

    def __repr__(self) -> str:
        names = ("resolution", "min", "max", "eps", "smallest_normal", "tiny")
        facts = [f"{name}={getattr(self, name):.6g}" for name in names]
        return f"finfo({', '.join(facts)}, dtype={self.dtype})"


@functools.cache
def _facts(part: DType) -> dict[str, Any]:
    found = _float_limits(part)
    facts: dict[str, Any] = {"dtype": part.name, "bits": 8 * part.itemsize}
    for name in ("eps", "max", "min", "tiny", "smallest_normal", "resolution"):
        facts[name] = float(getattr(found, name))
    facts["resolution"] = float(f"{facts['resolution']:.1g}")
    return facts


@functools.cache
def _facts_of_eight_bits(name: str) -> dict[str, Any]:
    import ml_dtypes

    found = ml_dtypes.finfo(getattr(ml_dtypes, name))  # type: ignore[no-untyped-call]
    facts: dict[str, Any] = {"dtype": name, "bits": 8, "eps": EIGHT_BITS[name], "resolution": 1.0}
    for limit in ("max", "min", "tiny", "smallest_normal"):
        facts[limit] = float(getattr(found, limit))
    return facts


def _float_limits(dtype: DType) -> Any:
    if dtype is bfloat16:
        import ml_dtypes

        return ml_dtypes.finfo(dtype.numpy)  # type: ignore[no-untyped-call]
    return np.finfo(dtype.numpy)


@dataclass(frozen=True, init=False)
class iinfo:
    """What integers of a dtype can hold.

    >>> from monograph.ir import dtypes
    >>> iinfo(dtypes.int8).max
    127
    """

    dtype: str
    bits: int
    max: int
    min: int

    def __init__(self, dtype: DType) -> None:
        if dtype.kind is not Kind.INT:
            raise TypeError(f"iinfo needs an integer dtype, got {dtype.name}; see finfo")
        found = np.iinfo(dtype.numpy)
        facts = {
            "dtype": dtype.name, "bits": 8 * dtype.itemsize, "max": int(found.max),
            "min": int(found.min),
        }  # fmt: skip
        for name, value in facts.items():
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype})"
