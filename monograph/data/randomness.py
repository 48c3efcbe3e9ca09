"""Where shuffling gets its random numbers.

Samplers draw on the host, with NumPy, so that the order of samples never waits for a device. Where
no generator is given, they share one that `seed_shuffling` restarts; `manual_seed` calls it.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np


class SeededGenerator(Protocol):
    """A tensor generator: anything that tells the seed it was started with."""

    def initial_seed(self) -> int: ...


Seedable = int | np.random.Generator | SeededGenerator | None

_shared = np.random.default_rng()


def seed_shuffling(seed: int) -> None:
    """Restart the generator used by samplers that were given none."""
    global _shared
    _shared = np.random.default_rng(seed % 2**64)


def numpy_generator(generator: Seedable) -> np.random.Generator:
    """The NumPy generator for what the user gave: a seed, a generator, or nothing.

    >>> int(numpy_generator(0).integers(100)) == int(numpy_generator(0).integers(100))
    True
    """
    if generator is None:
        return _shared
    if isinstance(generator, np.random.Generator):
        return generator
    seed = generator if isinstance(generator, int) else generator.initial_seed()
    return np.random.default_rng(seed % 2**64)
