"""`Size`: the shape of a tensor, as users see it."""

from __future__ import annotations

from typing import Any, SupportsIndex, overload

from .ir import dtypes


class Size(tuple[int, ...]):
    """A shape: a tuple that also counts its elements. Parts of it, and sums, are shapes too.

    >>> import monograph as mg
    >>> mg.zeros(2, 3, 4).shape[1:].numel()
    12
    """

    __slots__ = ()

    def numel(self) -> int:
        """The product of the extents."""
        result = 1
        for extent in self:
            result *= extent
        return result

    @overload
    def __getitem__(self, index: SupportsIndex) -> int: ...
    @overload
    def __getitem__(self, index: slice) -> Size: ...
    def __getitem__(self, index: Any, _item: Any = tuple.__getitem__) -> Any:
        found = _item(self, index)
        return Size(found) if found.__class__ is tuple else found

    def __add__(self, other: tuple[int, ...]) -> Size:  # type: ignore[override]
        return Size(tuple.__add__(self, other))

    def __radd__(self, other: tuple[int, ...]) -> Size:
        return Size(tuple.__add__(other, self))

    def __mul__(self, times: SupportsIndex) -> Size:
        return Size(tuple.__mul__(self, times))

    __rmul__ = __mul__

    def __repr__(self) -> str:
        return dtypes.shown(f"Size({list(self)})").removeprefix("monograph.")
