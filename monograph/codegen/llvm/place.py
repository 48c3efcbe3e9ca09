"""Where in the loop nest code is being written: the coordinates and what copies exist of a point.

One iteration evaluates the body at several points: `jam` copies along one outer axis, and `blocks`
of `lanes` points along the vector axis. A `Copy` (jam, block) names one of them. The coordinate of
the vector axis in `coordinates` is that of lane 0 of block 0; the mask of a block, if any, says
which of its lanes exist.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from ...ir.index import Expr, Guard, Var, variables
from .scope import Pointer, Ref, Scope


class Copy(NamedTuple):
    """One of the points (or vectors of points) that an iteration evaluates."""

    jam: int
    block: int


@dataclass
class Place:
    """The current position in the nest; the emitter changes it as it opens and closes loops."""

    lanes: int
    vector: Var | None
    jam: Var | None
    scope: Scope  # the innermost open scope
    stage: Scope  # the innermost scope that all of the current stage is inside of
    pointers: dict[int, Pointer]
    coordinates: dict[Var, Ref] = field(default_factory=dict)
    masks: list[Ref | None] = field(default_factory=lambda: [None])
    jams: int = 1
    _variables: dict[Expr, frozenset[Var]] = field(default_factory=dict)

    @property
    def is_vector(self) -> bool:
        """Whether the vector axis is open here."""
        return self.lanes > 0 and self.vector in self.coordinates

    @property
    def copies(self) -> list[Copy]:
        """All copies of the current point."""
        blocks = len(self.masks) if self.vector in self.coordinates else 1
        return [Copy(jam, block) for jam in range(self.jams) for block in range(blocks)]

    def variables(self, e: Expr) -> frozenset[Var]:
        """The coordinates that e depends on."""
        found = self._variables.get(e)
        if found is None:
            found = self._variables[e] = frozenset(variables(e))
        return found

    def guard_variables(self, guard: Guard) -> frozenset[Var]:
        """The coordinates that a guard depends on."""
        found: frozenset[Var] = frozenset()
        for condition in guard:
            found |= self.variables(condition.expr)
        return found

    def varies(self, e: Expr) -> bool:
        """Whether e differs between lanes."""
        return self.is_vector and self.vector in self.variables(e)
