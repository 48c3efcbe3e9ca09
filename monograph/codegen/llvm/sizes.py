"""Sizes that vary: a kernel reads them from a table that is its last argument.

Whatever number of a kernel depends on such sizes (an extent, a stride, how many units of work there
are) is one entry of the table. Emitters ask for entries as they go; who launches the kernel fills
the table in the same order, once for each set of sizes.
"""

from __future__ import annotations

from ...ir.extent import Extent


class Sizes:
    """The table of one kernel. `argument` is the place of its pointer among the arguments."""

    def __init__(self, argument: int) -> None:
        self.argument = argument
        self.entries: dict[Extent, int] = {}

    def place(self, size: Extent) -> int:
        """The number of an entry, a new one if need be."""
        return self.entries.setdefault(size, len(self.entries))

    def load(self, size: int, name: str) -> tuple[list[str], str]:
        """Instructions that fetch a size, and the operand that they leave it in."""
        if not isinstance(size, Extent):
            return [], str(size)
        lines = [
            f"  %{name}.at = getelementptr ptr, ptr %args, i64 {self.argument}",
            f"  %{name}.table = load ptr, ptr %{name}.at",
            f"  %{name}.entry = getelementptr i64, ptr %{name}.table, i64 {self.place(size)}",
            f"  %{name} = load i64, ptr %{name}.entry",
        ]
        return lines, f"%{name}"
