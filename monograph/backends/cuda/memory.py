"""Device memory of tensors: blocks from a pool, and the device copies of arrays on the host.

A freed block serves the next request of its size, so that a training loop sees the same addresses
again and its recorded graphs stay valid. One stream runs everything, so a block may be reused as
soon as nobody holds it, though the device may still be at work on it.
"""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

_GRAIN = 512


class DeviceBlock:
    """Device memory of one array; it goes back to the pool when nobody holds the object."""

    def __init__(self, pool: DevicePool, memory: Any) -> None:
        self.pool = pool
        self.memory = memory
        self.address: int = memory.address

    def numpy(self, dtype: Any, shape: tuple[int, ...]) -> np.ndarray:
        """The contents, copied to the host after all work launched so far."""
        return self.pool.device.read(self.address, np.empty(shape, dtype))  # type: ignore[no-any-return]

    def __del__(self) -> None:
        self.pool.free.setdefault(self.memory.nbytes, []).append(self.memory)


class DevicePool:
    """Blocks by size, and which values of the host have a copy on the device."""

    def __init__(self, device: Any) -> None:
        self.device = device
        self.free: dict[int, list[Any]] = {}
        self.copies: WeakKeyDictionary[Any, DeviceBlock] = WeakKeyDictionary()

    def allocate(self, nbytes: int) -> DeviceBlock:
        """A block of at least so many bytes, with any contents."""
        size = max(-(-nbytes // _GRAIN), 1) * _GRAIN
        ready = self.free.get(size)
        if ready:
            return DeviceBlock(self, ready.pop())
        try:
            memory = self.device.allocate(size)
        except Exception:  # no memory left: give back what lies idle, and ask once more
            self.free.clear()
            memory = self.device.allocate(size)
        return DeviceBlock(self, memory)

    def block_of(self, value: Any) -> DeviceBlock:
        """Where a known `storage.Value` lies on the device; it is copied there if need be.

        An array that the user also holds may have changed since, so it is copied every time.
        """
        if isinstance(value.block, DeviceBlock) and value.memory.address == 0:
            return value.block
        found = None if value.exposed else self.copies.get(value)
        if found is None:
            array = value.array()
            found = self.allocate(array.nbytes)
            self.device.write(found.address, array)
            if not value.exposed:
                self.copies[value] = found
        return found

    def forget(self, value: Any) -> None:
        """The device copy of a value was overwritten: it is the value's no longer."""
        self.copies.pop(value, None)
