"""What a record is, and how samples are drawn."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

NAN, INF = float("nan"), float("inf")


@dataclass
class Sample:
    """Arguments of one call. `order` is the highest derivative that is compared there."""

    args: tuple[Any, ...]
    order: int = 2
    floats_only: bool = False  # holds NaN or infinity, which no integer is
    kwargs: dict[str, Any] = field(default_factory=dict)


@dataclass
class Record:
    """One operator: how both libraries call it, on which samples, for which dtypes."""

    name: str
    ours: Callable[..., Any]
    theirs: Callable[..., Any]
    samples: Callable[[], Iterable[Sample]]
    order: int = 2
    dtypes: str = "f"  # f: float32 and float64, i: int64, b: bool
    tolerance: float = 1.0  # a factor on the tolerances


RECORDS: list[Record] = []


def record(name: str, ours: Any, theirs: Any, samples: Any, **facts: Any) -> None:
    """Add a record; `samples` is a function without arguments, or a list of samples."""
    made = samples if callable(samples) else lambda: samples
    RECORDS.append(Record(name, ours, theirs, made, **facts))


def call(*args: Any, order: int = 2, floats_only: bool = False, **kwargs: Any) -> Sample:
    """A sample that calls with these arguments."""
    return Sample(args, order, floats_only, kwargs)


generator = np.random.default_rng(20240607)


def normal(*size: int, scale: float = 1.0) -> np.ndarray:
    """Normally distributed float64 numbers."""
    return np.asarray(generator.normal(size=size) * scale)


def positive(*size: int) -> np.ndarray:
    """Numbers from 0.5 to 2."""
    return np.asarray(generator.uniform(0.5, 2.0, size=size))


def whole(low: int, high: int, *size: int) -> np.ndarray:
    """int64 numbers in [low, high)."""
    return np.asarray(generator.integers(low, high, size=size), np.int64)


def mask(*size: int) -> np.ndarray:
    """Booleans."""
    return np.asarray(generator.uniform(size=size) > 0.4)


def numbers(*values: float) -> np.ndarray:
    """These numbers as float64."""
    return np.asarray(values, np.float64)


SPECIAL = numbers(NAN, INF, -INF, 0.0, -0.0, 1.0, -1.0)
