"""Names, scopes and index arithmetic of the generated text.

Every line of a kernel is an assignment to a fresh name, kept in the outermost `Scope` in which
its coordinates exist; the same text is written once. So a row that two stages load is loaded
once, and what does not depend on the row is computed outside the loop over rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ...ir.extent import Extent
from ...ir.index import Expr, Extreme, FloorDiv, Mod, Product, Read, Sum, Var
from ...ir.index import constant as known
from .tiling import UnsupportedKernel

NOWHERE: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Term:
    """A name or a literal, and the names of the coordinates that it varies with."""

    text: str
    dims: frozenset[str] = NOWHERE

    @property
    def is_literal(self) -> bool:
        """True when it is not a name."""
        return not self.text.isidentifier()


@dataclass
class Scope:
    """A block of lines in which the coordinates `dims` exist."""

    dims: frozenset[str]
    lines: list[str] = field(default_factory=list)
    known: dict[str, Term] = field(default_factory=dict)

    def indented(self) -> list[str]:
        return ["    " + line for line in self.lines]


class Text:
    """The lines under construction: a stack of scopes, and index expressions as text."""

    def __init__(self) -> None:
        self.scopes: list[Scope] = []
        self.count = 0

    @property
    def scope(self) -> Scope:
        return self.scopes[-1]

    def line(self, text: str) -> None:
        """A line in the innermost scope."""
        self.scope.lines.append(text)

    def home(self, dims: frozenset[str]) -> Scope:
        """The outermost scope in which all these coordinates exist."""
        for scope in self.scopes:
            if dims <= scope.dims:
                return scope
        raise AssertionError(f"no scope has all of {sorted(dims)}")

    def name(self, text: str, dims: frozenset[str], key: str = "", prefix: str = "t") -> Term:
        """The term for `text`, assigned once; `key` tells apart equal texts of other meaning."""
        scope = self.home(dims)
        found = scope.known.get(text + key)
        if found is None:
            found = Term(f"{prefix}{self.count}", dims)
            self.count += 1
            scope.lines.append(f"{found.text} = {text}")
            scope.known[text + key] = found
        return found

    # --- index expressions -----------------------------------------------------------------------

    def index(self, e: Expr, masks: tuple[Term, ...] = ()) -> Term:
        """e as text that may be used as an operand of `+`; `masks` protect what it reads."""
        if not isinstance(e, Sum):
            return self.atom(e, masks)
        if any(isinstance(number, Extent) for number in (e.const, *(c for _, c in e.terms))):
            raise UnsupportedKernel(f"the index {e} has a symbolic size, which kernels do not take")
        terms = [(self.atom(atom, masks), c) for atom, c in e.terms]
        # What lanes share comes first: a pointer plus that is one number per program or row.
        terms.sort(key=lambda item: any(name != "row" for name in item[0].dims))
        parts = [term.text if c == 1 else f"{c} * {term.text}" for term, c in terms]
        if e.const or not parts:
            parts.append(str(e.const))
        return Term(" + ".join(parts), NOWHERE.union(*(term.dims for term, _ in terms)))

    def atom(self, e: Expr, masks: tuple[Term, ...]) -> Term:
        if isinstance(e, Var):
            return Term(e.name, frozenset((e.name,)))
        if isinstance(e, Sum):
            term = self.index(e, masks)
            return Term(f"({term.text})", term.dims)
        if isinstance(e, (FloorDiv, Mod)):
            return self._quotient(e, masks)
        if isinstance(e, (Extreme, Product)):
            a, b = self.index(e.a, masks), self.index(e.b, masks)
            if isinstance(e, Product):
                return self.name(f"({a.text}) * ({b.text})", a.dims | b.dims, prefix="k")
            return self.name(f"tl.{e.name}imum({a.text}, {b.text})", a.dims | b.dims, prefix="k")
        if isinstance(e, Read):
            return self.read(e, masks)
        raise UnsupportedKernel(f"there is no code for the index {e}")

    def _quotient(self, e: FloorDiv | Mod, masks: tuple[Term, ...]) -> Term:
        divisor = known(e.n)
        if divisor is None:
            raise UnsupportedKernel(f"the index {e} divides by what is not a number")
        # Triton rounds to zero, the algebra down: shift the dividend to be non-negative.
        shift = max(0, -(e.a.lo // divisor))
        a = self.index(e.a + shift * divisor, masks)
        dividend = f"({a.text})" if a.is_literal else a.text
        if isinstance(e, Mod):
            return self.name(f"{dividend} % {divisor}", a.dims, prefix="k")
        back = f" - {shift}" if shift else ""
        return self.name(f"{dividend} // {divisor}{back}", a.dims, prefix="k")

    def read(self, e: Read, masks: tuple[Term, ...]) -> Term:
        """The value of an integer buffer, as part of an index."""
        raise NotImplementedError
