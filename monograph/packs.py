"""Packs: weights once more, in the order that a library multiplies by fastest.

A pack is derived from the contents of one value. It is kept as long as the value lives and has
these contents, and programs that want the same order share it. A write gives a storage a new
value, so packs of the old one go with it. Contents change under the same value in a few ways only,
and each of them calls `forget`: an array of the user's lies on them, elements are written at the
call, a replay writes over them, a launch is taken back. Memory whose address the user has asked for
may change at any time, and is never packed. What else follows from contents, such as the places of
a mask, is kept by the same rules: as long as the value has the shelf that it had.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from functools import partial
from typing import Any, Protocol
from weakref import WeakSet, ref


class Reader(Protocol):
    """What reads packs, and is told when one of them is gone."""

    def lose(self, pack: Pack) -> None: ...


class Pack:
    """The contents of a value in a layout; `readers` are told when it is dropped."""

    __slots__ = ("layout", "block", "readers")

    def __init__(self, layout: Hashable, block: Any) -> None:
        self.layout = layout
        self.block = block
        self.readers: WeakSet[Any] = WeakSet()


Shelf = list[Pack]
_kept: dict[int, tuple[ref[Any], Shelf]] = {}  # by the id of a value that is alive


def shelf(value: Any) -> Shelf:
    """The packs of a value. Packs that are put there are kept as long as it is the value's."""
    key = id(value)
    found = _kept.get(key)
    if found is None:
        found = _kept[key] = ref(value, partial(_dropped, key)), []
    return found[1]


def is_shelf(shelf: Shelf, value: Any) -> bool:
    """Whether this is still the shelf of a value: its contents have not changed since."""
    found = _kept.get(id(value))
    return found is not None and found[1] is shelf


def forget(value: Any) -> None:
    """The contents of a value have changed, or may from now on."""
    if _kept:
        _drop(id(value))


def forget_contents(storages: Iterable[Any]) -> None:
    """The contents of these storages were written over, and their values stay."""
    if _kept:
        for storage in storages:
            _drop(id(storage.value))


def lend(value: Any) -> int:
    """The address of contents, for the user, who may write there without telling anybody."""
    address: int = value.locate()
    value.memory.lent = True
    forget(value)
    return address


def is_watched(value: Any) -> bool:
    """Whether nobody changes the contents of a value without saying so."""
    memory = value.memory
    return memory is None or not (
        memory.exposed or memory.part_of is not None or getattr(memory, "lent", False)
    )


def held_bytes() -> int:
    """The memory of all packs."""
    return sum([pack.block.nbytes for _, shelf in _kept.copy().values() for pack in shelf])


def _dropped(key: int, reference: ref[Any]) -> None:
    """A value is gone."""
    if key in _kept and _kept[key][0] is reference:
        _drop(key)


def _drop(key: int) -> None:
    for pack in _kept.pop(key, (None, ()))[1]:
        for reader in list(pack.readers):
            reader.lose(pack)
