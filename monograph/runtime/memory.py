"""Aligned memory that stays warm.

A `Pool` lends `Block`s: addresses aligned to 64 bytes, to pages when big, to huge pages when very
big. A block goes back to its pool when its last Python reference dies, and the pool keeps it for
the next request of that size class, because writing fresh pages costs three times as much as
writing warm ones. Classes are an eighth of a power of two apart, so at most 12.5 % is wasted.
`trim` returns what is idle to the system.
"""

from __future__ import annotations

import ctypes
import functools
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

ALIGNMENT = 64
PAGE = 4096
HUGE_PAGE = 2 << 20

# Blocks below this size are cut from slabs; the others are mapped, and unmapped, one by one.
MAPPED_BYTES = 64 << 10
SLAB_BYTES = 1 << 20

_PROT_READ_WRITE = 0x1 | 0x2
_MAP_PRIVATE_ANONYMOUS = 0x02 | 0x20
_MADV_HUGEPAGE = 14
_MAP_FAILED = ctypes.c_void_p(-1).value


@functools.lru_cache(maxsize=4096)
def class_bytes(nbytes: int) -> int:
    """The size class that serves `nbytes`: a multiple of an eighth of a power of two.

    >>> class_bytes(1), class_bytes(1000), class_bytes(1025)
    (64, 1024, 1152)
    """
    eighth = 1 << max(0, (nbytes - 1).bit_length() - 4)
    step = max(eighth, PAGE if nbytes > MAPPED_BYTES else ALIGNMENT)
    return max(1, -(-nbytes // step)) * step


class Block:
    """Memory lent by a pool, given back when this object is collected."""

    __slots__ = ("_idle", "address", "nbytes")

    def __init__(self, address: int, nbytes: int, idle: list[int]) -> None:
        self.address = address
        self.nbytes = nbytes
        self._idle = idle

    def __del__(self) -> None:
        self._idle.append(self.address)

    def __repr__(self) -> str:
        return f"Block(address={self.address:#x}, nbytes={self.nbytes})"

    def numpy(
        self,
        dtype: np.dtype[Any] | type | str,
        shape: tuple[int, ...],
        strides: tuple[int, ...] | None = None,
        offset: int = 0,
    ) -> np.ndarray[Any, Any]:
        """A NumPy array over this memory that keeps the block alive; strides are in bytes."""
        import numpy as np

        dtype = np.dtype(dtype)
        _check_extent(self.nbytes, dtype.itemsize, shape, strides, offset)
        window = _Window(self, self.address + offset, dtype.str, shape, strides)
        array = np.asarray(window)
        return array if dtype.isbuiltin == 1 else array.view(dtype)


class _Window:
    """What NumPy asks for to lay an array over a block; the array keeps this, this the block."""

    __slots__ = ("__array_interface__", "block")

    def __init__(
        self,
        block: Block,
        address: int,
        typestr: str,
        shape: tuple[int, ...],
        strides: tuple[int, ...] | None,
    ) -> None:
        self.block = block
        self.__array_interface__ = {
            "version": 3,
            "data": (address, False),
            "typestr": typestr,
            "shape": shape,
            "strides": strides,
        }


class Pool:
    """Lends aligned blocks and keeps returned ones for reuse.

    >>> pool = Pool()
    >>> block = pool.allocate(1000)
    >>> block.nbytes, block.address % 64, pool.bytes_in_use
    (1000, 0, 1024)
    >>> del block
    >>> pool.bytes_in_use, pool.bytes_held >= 1024
    (0, True)
    """

    def __init__(self) -> None:
        # Returning a block only appends to a list, so it is safe in any thread and at any moment.
        self._idle: dict[int, list[int]] = {}
        self._blocks: dict[int, int] = {}  # blocks that exist, idle or lent, by class
        self._slab_begin = 0
        self._slab_end = 0
        self._held = 0
        self._lock = threading.RLock()

    @property
    def bytes_held(self) -> int:
        """Bytes obtained from the system and not given back, lent or idle."""
        return self._held

    @property
    def bytes_in_use(self) -> int:
        """Bytes of the size classes of all blocks that are lent."""
        with self._lock:
            classes = list(self._blocks.items())
            return sum((count - len(self._idle[size])) * size for size, count in classes)

    def allocate(self, nbytes: int) -> Block:
        """Lend a block of at least `nbytes`; its content is whatever was there before."""
        size = class_bytes(nbytes)
        idle = self._idle.get(size)
        if idle is None:
            idle = self._idle.setdefault(size, [])
        try:
            address = idle.pop()
        except IndexError:
            address = self._create(size)
        return Block(address, nbytes, idle)

    def trim(self) -> int:
        """Give idle mapped blocks back to the system; returns the number of bytes given back."""
        freed = 0
        with self._lock:
            for size, idle in list(self._idle.items()):
                if size > MAPPED_BYTES:
                    freed += self._release(size, idle)
        return freed

    def _release(self, size: int, idle: list[int]) -> int:
        freed = 0
        while idle:
            _unmap(idle.pop(), size)
            self._blocks[size] -= 1
            self._held -= size
            freed += size
        return freed

    def _create(self, size: int) -> int:
        """The address of a block of this class that never existed before."""
        with self._lock:
            address = self._map(size) if size > MAPPED_BYTES else self._cut(size)
            self._blocks[size] = self._blocks.get(size, 0) + 1
            return address

    def _map(self, size: int) -> int:
        address = _map_huge(size) if size >= HUGE_PAGE else _map(size)
        self._held += size
        return address

    def _cut(self, size: int) -> int:
        """Cut a small block from the current slab; the rest of a full slab is left unused."""
        if self._slab_begin + size > self._slab_end:
            self._slab_begin = _map(SLAB_BYTES)
            self._slab_end = self._slab_begin + SLAB_BYTES
            self._held += SLAB_BYTES
        address = self._slab_begin
        self._slab_begin += size
        return address


def _check_extent(
    nbytes: int,
    itemsize: int,
    shape: tuple[int, ...],
    strides: tuple[int, ...] | None,
    offset: int,
) -> None:
    """Refuse a view that would reach outside its block."""
    if 0 in shape:
        return
    low = offset
    high = offset + itemsize
    if strides is None:
        for extent in shape:
            itemsize *= extent
        high = offset + itemsize
    else:
        for extent, stride in zip(shape, strides, strict=True):
            low += min(0, (extent - 1) * stride)
            high += max(0, (extent - 1) * stride)
    if low < 0 or high > nbytes:
        raise ValueError(f"a view of bytes {low} to {high} does not fit a block of {nbytes} bytes")


@functools.cache
def _libc() -> ctypes.CDLL:
    libc = ctypes.CDLL(None, use_errno=True)
    size, pointer, number = ctypes.c_size_t, ctypes.c_void_p, ctypes.c_int
    libc.mmap.restype = pointer
    libc.mmap.argtypes = [pointer, size, number, number, number, ctypes.c_int64]
    libc.munmap.argtypes = [pointer, size]
    libc.madvise.argtypes = [pointer, size, number]
    return libc


def _map(size: int) -> int:
    address = _libc().mmap(None, size, _PROT_READ_WRITE, _MAP_PRIVATE_ANONYMOUS, -1, 0)
    if address is None or address == _MAP_FAILED:
        raise MemoryError(f"the system has no {size} bytes of memory left to map")
    return int(address)


def _unmap(address: int, size: int) -> None:
    _libc().munmap(address, size)


def _map_huge(size: int) -> int:
    """Map memory that begins at a huge page, and ask the kernel to use such pages."""
    raw = _map(size + HUGE_PAGE)
    address = -(-raw // HUGE_PAGE) * HUGE_PAGE
    head = address - raw
    tail = HUGE_PAGE - head
    if head:
        _unmap(raw, head)
    if tail:
        _unmap(address + size, tail)
    _libc().madvise(address, size, _MADV_HUGEPAGE)
    return address
