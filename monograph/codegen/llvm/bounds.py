"""Bounds: every load and store compared with the memory of its buffer, on request.

With `Machine(bounds=True)` a kernel has one argument more, the address of a status word. An access
outside of its buffer sets the word to `OUTSIDE` plus the buffer's number, and touches harmless
memory instead: lanes are masked out, a single address is replaced. That is slow, and finds errors
of the compiler; wrong indices of the user are found by checks, see `ir/check.py`.
"""

from __future__ import annotations

from ...ir import dtypes
from .place import Place
from .scope import Pointer, Ref, Scope, deepest
from .types import register
from .vector import Builder

OUTSIDE = 1 << 32
NOTHING = "@mg_nothing"  # zero bytes to read from when a guard does not hold
SINK = "%sink"  # bytes to write to when a guard does not hold
HARMLESS_BYTES = 256  # a vector fits


class Bounds:
    """Writes the comparisons of a kernel's accesses."""

    def __init__(self, builder: Builder, place: Place) -> None:
        self.builder = builder
        self.place = place
        self.status = ""  # the address of the status word
        self._limits: dict[int, tuple[Ref, Ref]] = {}

    def open(self, buffer: int, start: Pointer, nbytes: Ref) -> None:
        """From now on the buffer is these bytes."""
        first = self._address(start)
        self._limits[buffer] = first, self.builder.add(first, nbytes)

    def one(
        self, buffer: int, pointer: Pointer, nbytes: int, scope: Scope, otherwise: str,
        when: Ref | None = None,
    ) -> Pointer:  # fmt: skip
        """The address of an access of so many bytes in `scope`, or else a harmless one."""
        inside = self._inside(buffer, self._address(pointer), nbytes)
        self._tell(buffer, inside, when, scope)
        at = deepest([pointer.scope, inside.scope])
        text = f"select i1 {inside.text}, ptr {pointer.text}, ptr {otherwise}"
        return Pointer(self.builder.emit(at, text), at)

    def some(self, buffer: int, first: Pointer, itemsize: int, mask: Ref, scope: Scope) -> Ref:
        """The lanes of the mask whose elements, one after the other, lie in the buffer."""
        steps = self.builder.lane_numbers(itemsize, dtypes.int64, mask.lanes)
        addresses = self.builder.add(self._address(first), steps)
        return self._masked(buffer, addresses, itemsize, mask, scope)

    def apart(self, buffer: int, pointers: Pointer, itemsize: int, mask: Ref, scope: Scope) -> Ref:
        """The lanes of the mask whose elements, each at its own address, lie in the buffer."""
        kind = f"<{mask.lanes} x ptr>"
        text = f"ptrtoint {kind} {pointers.text} to {register(dtypes.int64, mask.lanes)}"
        addresses = Ref(
            self.builder.emit(pointers.scope, text), dtypes.int64, mask.lanes, pointers.scope
        )
        return self._masked(buffer, addresses, itemsize, mask, scope)

    def whole(self, buffer: int, start: Pointer, nbytes: int, scope: Scope) -> Ref:
        """`nbytes`, or 0 if so many bytes from `start` on do not lie in the buffer."""
        inside = self._inside(buffer, self._address(start), nbytes)
        self._tell(buffer, inside, None, scope)
        zero, all_of_it = (self.builder.const(n, dtypes.int64) for n in (0, nbytes))
        return self.builder.select(inside, all_of_it, zero)

    def _masked(self, buffer: int, addresses: Ref, itemsize: int, mask: Ref, scope: Scope) -> Ref:
        inside = self._inside(buffer, addresses, itemsize)
        outside = self.builder.and_(mask, self.builder.not_(inside))
        self._tell(buffer, self.builder.not_(self.builder.any_lane(outside)), None, scope)
        return self.builder.and_(mask, inside)

    def _address(self, pointer: Pointer) -> Ref:
        text = f"ptrtoint ptr {pointer.text} to i64"
        return Ref(self.builder.emit(pointer.scope, text), dtypes.int64, 0, pointer.scope)

    def _inside(self, buffer: int, address: Ref, nbytes: int) -> Ref:
        first, end = self._limits[buffer]
        after = self.builder.add(address, self.builder.const(nbytes, dtypes.int64))
        return self.builder.and_(self.builder.ge(address, first), self.builder.le(after, end))

    def _tell(self, buffer: int, inside: Ref, when: Ref | None, scope: Scope) -> None:
        """Set the status word where an access that takes place is not inside."""
        fine = inside if when is None else self.builder.or_(inside, self.builder.not_(when))
        at = deepest([scope, fine.scope])
        place = self.builder.emit(at, f"select i1 {fine.text}, ptr {SINK}, ptr {self.status}")
        at.section.append(f"  store atomic i64 {OUTSIDE + buffer}, ptr {place} monotonic, align 8")
