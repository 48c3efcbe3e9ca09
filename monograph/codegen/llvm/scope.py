"""Scopes: where an instruction is written, and the text they become.

A `Scope` is one level of the loop nest: the function, a row, a loop body. Every value knows the
scope that defines it, and an instruction is written into the deepest scope of its operands. So
what does not change inside a loop stands before the loop without any analysis, and within a scope
the same text is never computed twice. A scope is a list of sections; opening an inner scope ends
a section only when the inner one is closed, so that hoisted code lands just before it.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...ir.dtypes import DType


class Scope:
    """One level of the nest; see the module's text."""

    __slots__ = ("parent", "depth", "items", "section", "known")
    depth: int

    def __init__(self, parent: Scope | None) -> None:
        self.parent = parent
        self.depth = 0 if parent is None else parent.depth + 1
        self.section: list[str] = []
        self.items: list[list[str] | Scope] = [self.section]
        self.known: dict[str, str] = {}

    def close_child(self, child: Scope) -> None:
        """Place a finished inner scope after what is written so far."""
        self.section = []
        self.items += [child, self.section]

    def lines(self) -> list[str]:
        """All text, inner scopes in their places."""
        result: list[str] = []
        for item in self.items:
            result += item.lines() if isinstance(item, Scope) else item
        return result


@dataclass(frozen=True, slots=True)
class Ref:
    """A value in registers: its text as an operand, dtype, lanes (0 for a scalar), and scope."""

    text: str
    dtype: DType
    lanes: int
    scope: Scope


@dataclass(frozen=True, slots=True)
class Pointer:
    """The address of an element of a buffer."""

    text: str
    scope: Scope


def deepest(scopes: list[Scope]) -> Scope:
    """The innermost of nested scopes."""
    best = scopes[0]
    for scope in scopes:
        if scope.depth > best.depth:
            best = scope
    return best
