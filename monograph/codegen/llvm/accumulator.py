"""Accumulators while loops run: stack memory that LLVM turns into registers.

`make` reserves one and sets it to the identity in a given scope, `fetch` and `keep` read and write
it at the current place, and `join` merges several in pairs.
"""

from __future__ import annotations

from ...ir.dtypes import DType
from . import combine
from .combine import Accumulator
from .place import Place
from .scope import Ref, Scope
from .types import register
from .vector import Builder

Names = tuple[str, ...]  # the memory of an accumulator: of its value, and of its position
Kinds = tuple[DType, ...]  # what that memory holds


class Accumulators:
    """Writes accumulators. `storage` collects the reservations, which open the function."""

    def __init__(self, builder: Builder, place: Place) -> None:
        self.builder = builder
        self.place = place
        self.storage: list[str] = []

    @property
    def lanes(self) -> int:
        """The lanes of an accumulator at the current place."""
        return self.place.lanes if self.place.is_vector else 0

    def make(self, name: str, kinds: Kinds, scope: Scope) -> Names:
        """A new accumulator of combine `name`, which starts as the identity in `scope`."""
        names = tuple(self.builder.name("acc") for _ in kinds)
        start = combine.start(self.builder, name, kinds[0], kinds[-1], self.lanes)
        for memory, dtype, value in zip(names, kinds, start):
            kind = register(dtype, self.lanes)
            self.storage.append(f"  {memory} = alloca {kind}")
            scope.section.append(f"  store {kind} {value.text}, ptr {memory}")
        return names

    def fetch(self, names: Names, kinds: Kinds, lanes: int) -> Accumulator:
        """The current value."""
        scope = self.place.scope
        found: list[Ref] = []
        for memory, dtype in zip(names, kinds):
            name = self.builder.name()
            scope.section.append(f"  {name} = load {register(dtype, lanes)}, ptr {memory}")
            found.append(Ref(name, dtype, lanes, scope))
        return tuple(found)

    def keep(self, names: Names, accumulator: Accumulator) -> None:
        """Change the current value."""
        for memory, ref in zip(names, accumulator):
            kind = register(ref.dtype, ref.lanes)
            self.place.scope.section.append(f"  store {kind} {ref.text}, ptr {memory}")

    def join(self, name: str, parts: list[Accumulator]) -> Accumulator:
        """Several accumulators merged in pairs."""
        while len(parts) > 1:
            pairs = [parts[i : i + 2] for i in range(0, len(parts), 2)]
            parts = [
                pair[0] if len(pair) == 1 else combine.merge(self.builder, name, pair[1], pair[0])
                for pair in pairs
            ]
        return parts[0]
