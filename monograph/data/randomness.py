"""Where shuffling gets its random numbers.

Samplers draw on the host, with NumPy, so that the order of samples never waits for a device. Each
epoch takes one draw of a tensor generator, the default one where none is given, and that is where
its order comes from. So `manual_seed`, `get_rng_state` and `set_rng_state` mean for the order of
samples what they mean for other random numbers, and a run that is resumed goes on as it would have.
"""

from __future__ import annotations

import threading
from typing import Any, cast

import numpy as np

from monograph.ops.random import Generator, default_generator

Seedable = int | np.random.Generator | Generator | None
Source = np.random.Generator | Generator | None

_STREAM = 0x9E3779B97F4A7C15  # of the second word of the key: these are no numbers of tensors
_BUFFER = 4  # where the numbers that Philox has made ahead are used up


def source_of(generator: Seedable) -> Source:
    """What to draw from, again and again: a seed starts a sequence of its own."""
    if isinstance(generator, int | np.integer):
        return np.random.default_rng(int(generator) % 2**64)
    return generator


def _next_place(generator: Generator) -> tuple[list[int], list[int]]:
    """Key and counter of the next draw of a tensor generator, which it takes."""
    seed, offset = generator.position
    generator.position = (seed, offset + 1)
    return [seed, _STREAM], [0, offset, 0, 0]


def numpy_generator(source: Seedable) -> np.random.Generator:
    """A NumPy generator for one draw of the source: a seed, a generator, or nothing.

    >>> int(numpy_generator(0).integers(100)) == int(numpy_generator(0).integers(100))
    True
    """
    known = source_of(source)
    if isinstance(known, np.random.Generator):
        return known
    key, counter = _next_place(default_generator if known is None else known)
    bits = np.random.Philox(
        key=np.array(key, np.uint64),
        counter=np.array(counter, np.uint64),  # type: ignore[arg-type]
    )
    return np.random.Generator(bits)


class _Passing(threading.local):
    """One NumPy generator per thread that is moved instead of made."""

    def __init__(self) -> None:
        self.bits = np.random.Philox(0)
        self.state = cast(dict[str, Any], self.bits.state)
        self.state.update(buffer_pos=_BUFFER, has_uint32=0, uinteger=0)
        self.random = np.random.Generator(self.bits)


_passing = _Passing()


def passing_generator() -> np.random.Generator:
    """`numpy_generator(None)` for a draw that is made at once, at a tenth of the time.

    >>> 0 <= passing_generator().random() < 1
    True
    """
    key, counter = _next_place(default_generator)
    held = _passing.state["state"]
    held["key"], held["counter"] = np.array(key, np.uint64), np.array(counter, np.uint64)
    _passing.bits.state = _passing.state  # type: ignore[assignment]
    return _passing.random
