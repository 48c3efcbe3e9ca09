"""Extents: sizes that vary from run to run, as polynomials over symbols.

Where a program serves many sizes, a dimension is an `Extent` in place of an int. Arithmetic gives
extents again, or plain ints where the symbols cancel. An extent equals another only if the two are
the same polynomial, and it never equals an int (`is_one` asks in earnest); its hash is that of the
polynomial, so that tables keep sizes that are equal by chance apart. An order is decided by proof
if there is one. Otherwise the `hint`, the value at which the program is being compiled, decides,
and the decision becomes a fact of the program: whoever runs it at other sizes checks the facts
first.

An Extent is no int. What needs the number itself (`range`, NumPy, a loop) raises TypeError, and
the program is compiled for one size instead: a size can not slip through as a constant.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

# An int, or an Extent in its place. Signatures elsewhere say int: most programs know nothing else.
Size = Any
Values = Mapping[str, int]  # the numbers that symbols stand for in one run


class Assigned(dict[str, int]):
    """Values that remember what was computed from them: programs ask for few sizes, often."""

    def __init__(self, values: Values) -> None:
        super().__init__(values)
        self.known: dict[Extent, int] = {}


class Atom:
    """A symbol, or a whole-number function of extents that is no polynomial."""

    __slots__ = ("name", "low", "hint", "_function", "operands", "_hash")

    def __init__(
        self, name: str, low: int, hint: int, function: Callable[..., int] | None = None,
        operands: tuple[Size, ...] = (),
    ) -> None:  # fmt: skip
        self.name = name
        self.low = low  # never less than this
        self.hint = hint
        self._function = function
        self.operands = operands
        self._hash = hash(name)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Atom) and self.name == other.name

    def at(self, values: Values) -> int:
        """The number in a run."""
        if self._function is None:
            return values[self.name]
        return self._function(*[value_at(part, values) for part in self.operands])


Monomial = tuple[Atom, ...]
Terms = dict[Monomial, int]


def _from_terms(terms: Terms) -> Size:
    kept = {m: c for m, c in terms.items() if c}
    if not kept:
        return 0
    if len(kept) == 1 and () in kept:
        return kept[()]
    return Extent(kept)


def _name(atom: Atom) -> str:
    return atom.name


class Extent:
    """A polynomial over atoms with whole coefficients, and at least one atom."""

    __slots__ = ("terms", "key", "_hash", "_hint", "_low")

    def __init__(self, terms: Terms) -> None:
        self.terms = terms
        self.key = frozenset(terms.items())
        self._hash = hash(self.key)
        self._hint: int | None = None
        self._low: int | None | str = "unknown"

    # --- identity ---

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Extent) and self.key == other.key)

    def __repr__(self) -> str:
        parts = []
        for monomial, c in sorted(self.terms.items(), key=lambda t: [a.name for a in t[0]]):
            names = [atom.name for atom in monomial]
            parts.append("*".join(names if c == 1 and names else [str(c), *names]))
        return f"({' + '.join(parts)})"

    @property
    def hint(self) -> int:
        """The value at the sizes that the program is compiled at."""
        if self._hint is None:
            total = 0
            for monomial, c in self.terms.items():
                total += c * math.prod([atom.hint for atom in monomial])
            self._hint = total
        return self._hint

    def at(self, values: Values) -> int:
        """The value in a run."""
        known = values.known if isinstance(values, Assigned) else {}
        total = known.get(self)
        if total is None:
            total = 0
            for monomial, c in self.terms.items():
                total += c * math.prod([atom.at(values) for atom in monomial])
            known[self] = total
        return total

    def mentions(self, other: Extent) -> bool:
        """Whether an atom of the other occurs in this."""
        found = {atom for monomial in other.terms for atom in monomial}
        return not found.isdisjoint(_atoms(self))

    # --- arithmetic ---

    def __add__(self, other: Any) -> Any:
        if isinstance(other, float):
            return Real("add", (self, other))
        if not isinstance(other, (int, Extent)):
            return NotImplemented
        return _sum(self.terms, _terms(other))

    __radd__ = __add__

    def __neg__(self) -> Size:
        return _from_terms({m: -c for m, c in self.terms.items()})

    def __sub__(self, other: Any) -> Any:
        if isinstance(other, float):
            return Real("sub", (self, other))
        if not isinstance(other, (int, Extent)):
            return NotImplemented
        return self + -other

    def __rsub__(self, other: Any) -> Any:
        if isinstance(other, float):
            return Real("sub", (other, self))
        if not isinstance(other, int):
            return NotImplemented
        return -self + other

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, float):
            return Real("mul", (self, other))
        if not isinstance(other, (int, Extent)):
            return NotImplemented
        return _product(self, other)

    __rmul__ = __mul__

    def __floordiv__(self, other: Any) -> Any:
        if not isinstance(other, (int, Extent)):
            return NotImplemented
        return _floordiv(self, other)

    def __rfloordiv__(self, other: Any) -> Any:
        return _floordiv(other, self) if isinstance(other, int) else NotImplemented

    def __mod__(self, other: Any) -> Any:
        if not isinstance(other, (int, Extent)):
            return NotImplemented
        return self - _floordiv(self, other) * other

    def __rmod__(self, other: Any) -> Any:
        return other - _floordiv(other, self) * self if isinstance(other, int) else NotImplemented

    def __truediv__(self, other: Any) -> Any:
        known = isinstance(other, (int, float, Extent, Real))
        return Real("div", (self, other)) if known else NotImplemented

    def __rtruediv__(self, other: Any) -> Any:
        return Real("div", (other, self)) if isinstance(other, (int, float)) else NotImplemented

    def __abs__(self) -> Size:
        return self if self >= 0 else -self

    # --- order: by proof, or by the hint and then a fact ---

    @property
    def low(self) -> int | None:
        """The least value that can be proven, or None."""
        if self._low == "unknown":
            self._low = _least(self.terms)
        return self._low  # type: ignore[return-value]

    def __ge__(self, other: Any) -> bool:
        return _order(self, other) if isinstance(other, (int, Extent)) else NotImplemented

    def __le__(self, other: Any) -> bool:
        return _order(other, self) if isinstance(other, (int, Extent)) else NotImplemented

    def __gt__(self, other: Any) -> bool:
        return not _order(other, self) if isinstance(other, (int, Extent)) else NotImplemented

    def __lt__(self, other: Any) -> bool:
        return not _order(self, other) if isinstance(other, (int, Extent)) else NotImplemented

    def __bool__(self) -> bool:
        return self >= 1 or self < 0


def _atoms(size: Size) -> set[Atom]:
    """All atoms of a size, and those inside of them."""
    if not isinstance(size, Extent):
        return set()
    found = {atom for monomial in size.terms for atom in monomial}
    for atom in list(found):
        for part in atom.operands:
            found |= _atoms(part)
    return found


def _terms(value: Size) -> Terms:
    return value.terms if isinstance(value, Extent) else {(): value}


def _sum(a: Terms, b: Terms) -> Size:
    total = dict(a)
    for monomial, c in b.items():
        total[monomial] = total.get(monomial, 0) + c
    return _from_terms(total)


@lru_cache(maxsize=65536)
def _product(a: Extent, b: Size) -> Size:
    total: Terms = {}
    for x, cx in a.terms.items():
        for y, cy in _terms(b).items():
            monomial = tuple(sorted(x + y, key=_name))
            total[monomial] = total.get(monomial, 0) + cx * cy
    return _from_terms(total)


# --- proofs -------------------------------------------------------------------------------------


def _least(terms: Terms) -> int | None:
    """The constant that is left when every atom is its least value plus something: a lower bound,
    if all other coefficients are then at least 0."""
    shifted: dict[Monomial, int] = {}
    for monomial, c in terms.items():
        partial: dict[Monomial, int] = {(): c}
        for atom in monomial:
            grown: dict[Monomial, int] = {}
            for part, factor in partial.items():
                longer = (*part, atom)
                grown[longer] = grown.get(longer, 0) + factor
                if atom.low:
                    grown[part] = grown.get(part, 0) + factor * atom.low
            partial = grown
        for part, factor in partial.items():
            shifted[part] = shifted.get(part, 0) + factor
    constant = shifted.pop((), 0)
    return constant if all(c >= 0 for c in shifted.values()) else None


def proven(a: Size, b: Size) -> bool:
    """Whether a >= b for all sizes, by proof alone: False says that it is not known."""
    if a.__class__ is int and b.__class__ is int:
        return bool(a >= b)
    difference = a - b
    if isinstance(difference, int):
        return difference >= 0
    low = difference.low
    return low is not None and low >= 0


@lru_cache(maxsize=65536)
def _proof(a: Size, b: Size) -> tuple[bool | None, Extent | None]:
    """Whether a >= b, None where it is open; and then what a - b is."""
    difference = a - b
    if isinstance(difference, int):
        return difference >= 0, None
    if difference.low is not None and difference.low >= 0:
        return True, None
    opposite = -difference
    assert isinstance(opposite, Extent)
    if opposite.low is not None and opposite.low >= 1:
        return False, None
    return None, difference


def _order(a: Size, b: Size) -> bool:
    """a >= b: proven, refuted, or decided by the hint."""
    answer, difference = _proof(a, b)
    if answer is not None:
        return answer
    assert difference is not None
    holds = difference.hint >= 0
    decisions = _scope.decisions
    if decisions is not None:
        fact = difference if holds else -difference - 1
        decisions.facts[fact] = None
    return holds


def agree(a: Size, b: Size) -> bool:
    """Whether two sizes are the same. If only the hint says so, it is a fact from here on."""
    if a == b:
        return True
    if hint(a) != hint(b) or not (isinstance(a, Extent) or isinstance(b, Extent)):
        return False
    return bool(a >= b) and bool(b >= a)


# --- division -----------------------------------------------------------------------------------


def divided(a: Size, b: Size) -> Size | None:
    """a / b where that is whole for all sizes, else None."""
    if isinstance(a, int) and isinstance(b, int):
        return a // b if b and a % b == 0 else None
    return _divided(a, b)


@lru_cache(maxsize=65536)
def _divided(a: Size, b: Size) -> Size | None:
    rest, divisor = dict(_terms(a)), _terms(b)
    lead = max(divisor, key=_weight, default=None)
    quotient: Terms = {}
    while rest and lead is not None:
        top = max(rest, key=_weight)
        factor = _without(top, lead)
        if factor is None or rest[top] % divisor[lead]:
            return None
        c = rest[top] // divisor[lead]
        quotient[factor] = quotient.get(factor, 0) + c
        for monomial, part in divisor.items():
            whole = tuple(sorted(factor + monomial, key=_name))
            rest[whole] = rest.get(whole, 0) - c * part
            if rest[whole] == 0:
                del rest[whole]
    return _from_terms(quotient) if lead is not None else None


def _weight(monomial: Monomial) -> tuple[int, list[str]]:
    return len(monomial), [atom.name for atom in monomial]


def _without(monomial: Monomial, factor: Monomial) -> Monomial | None:
    rest = list(monomial)
    for atom in factor:
        if atom not in rest:
            return None
        rest.remove(atom)
    return tuple(rest)


def _floordiv(a: Size, b: Size) -> Size:
    whole = divided(a, b)
    if whole is not None:
        return whole
    if proven(a, 0) and proven(b - 1, a):
        return 0
    if isinstance(b, int):  # what is divisible comes out: (8 s + t) // 8 = s + t // 8
        terms = _terms(a)
        out = {m: c // b for m, c in terms.items()}
        left = _from_terms({m: c % b for m, c in terms.items()})
        if any(out.values()):
            return _from_terms(out) + _quotient(left, b)
    return _quotient(a, b)


def _quotient(a: Size, b: Size) -> Size:
    if isinstance(a, int) and isinstance(b, int):
        return a // b
    low = 0 if proven(a, 0) and proven(b, 1) else -(1 << 40)
    value = hint(a) // max(hint(b), 1)
    return _atom(Atom(f"[{a}//{b}]", low, value, _whole_quotient, (a, b)))


def _whole_quotient(a: int, b: int) -> int:
    return a // b


def _atom(atom: Atom) -> Extent:
    return Extent({(atom,): 1})


def symbol(name: str, value: int, low: int = 2) -> Extent:
    """A size that varies: at least `low`, and `value` while the program is compiled."""
    return _atom(Atom(name, low, value))


def smaller(a: Size, b: Size) -> Size:
    """The smaller of two sizes that are not negative."""
    if isinstance(a, int) and isinstance(b, int):
        return min(a, b)
    return _atom(Atom(f"[{a} or {b}]", 0, min(hint(a), hint(b)), min, (a, b)))


def is_one(size: Size) -> bool:
    """Whether a size is 1, for those to whom that means something: where it varies, it is not, and
    the program does not serve 1."""
    return size == 1 if isinstance(size, int) else not size > 1


def covering(sizes: Sequence[Size]) -> Size:
    """A size that none of these exceeds: the largest, or the sum of those without a known order.

    Nothing becomes a fact: which of two sequences is longer changes from batch to batch.
    """
    found = sizes[0]
    for size in sizes[1:]:
        if proven(size, found):
            found = size
        elif not proven(found, size):
            found += size
    return found


def part_of(name: str, whole: Size) -> Extent:
    """A size that varies within a run: at least 1, and at most `whole`, which facts reckon with."""
    return _atom(Atom(f"[{name} of {whole}]", 1, hint(whole), min, (whole, whole)))


def clamped(a: Size, low: int, high: int) -> Size:
    """a, but at least `low` and at most `high`."""
    if isinstance(a, int):
        return max(low, min(high, a))
    value = max(low, min(high, a.hint))
    return _atom(Atom(f"[{a} in {low}..{high}]", low, value, _whole_clamped, (a, low, high)))


def _whole_clamped(a: int, low: int, high: int) -> int:
    return max(low, min(high, a))


def common_factor(a: Size, b: Size) -> Size:
    """A divisor of both, as large as is plain to see."""
    if isinstance(a, int) and isinstance(b, int):
        return math.gcd(a, b)
    for x, y in ((a, b), (b, a)):
        if divided(x, y) is not None:
            return y
    number = math.gcd(*_terms(a).values(), *_terms(b).values())
    shared = [*next(iter(_terms(a)))]
    for monomial in [*_terms(a), *_terms(b)]:
        rest = list(monomial)
        kept = []
        for atom in shared:
            if atom in rest:
                rest.remove(atom)
                kept.append(atom)
        shared = kept
    return _from_terms({tuple(shared): number})


# --- numbers and hints --------------------------------------------------------------------------


def hint(size: Size) -> int:
    """The size, or its value at compile time: for choices of speed, never of meaning."""
    return size if isinstance(size, int) else size.hint


def value_at(size: Any, values: Values) -> int:
    """The size in a run."""
    found: int = size.at(values) if isinstance(size, Extent) else size
    return found


_REAL: dict[str, Callable[[float, float], float]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
}


class Real:
    """A Python float that depends on sizes: the 1 / n of a mean."""

    __slots__ = ("function", "operands")

    def __init__(self, function: str, operands: tuple[Any, ...]) -> None:
        self.function = function
        self.operands = operands

    def at(self, values: Values) -> float:
        """The number in a run."""
        parts = [p.at(values) if isinstance(p, (Real, Extent)) else p for p in self.operands]
        return float(_REAL[self.function](parts[0], parts[1]))

    def __hash__(self) -> int:
        return hash((self.function, self.operands))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Real) and (
            (self.function, self.operands) == (other.function, other.operands)
        )

    def _with(self, function: str, other: Any, turned: bool = False) -> Any:
        if not isinstance(other, (int, float, Extent, Real)):
            return NotImplemented
        return Real(function, (other, self) if turned else (self, other))

    def __add__(self, other: Any) -> Any:
        return self._with("add", other)

    def __radd__(self, other: Any) -> Any:
        return self._with("add", other, True)

    def __sub__(self, other: Any) -> Any:
        return self._with("sub", other)

    def __rsub__(self, other: Any) -> Any:
        return self._with("sub", other, True)

    def __mul__(self, other: Any) -> Any:
        return self._with("mul", other)

    def __rmul__(self, other: Any) -> Any:
        return self._with("mul", other, True)

    def __truediv__(self, other: Any) -> Any:
        return self._with("div", other)

    def __rtruediv__(self, other: Any) -> Any:
        return self._with("div", other, True)

    def __neg__(self) -> Real:
        return Real("mul", (-1.0, self))


def real(size: Any) -> Any:
    """A size as a float: to divide by."""
    return Real("mul", (size, 1.0)) if isinstance(size, (Extent, Real)) else float(size)


# --- decisions ----------------------------------------------------------------------------------


class Decisions:
    """What a program for many sizes assumes, and the numbers that it computes from sizes.

    Each of `facts` must be at least 0. `numbers` are filled into slots from `first_slot` on.
    """

    def __init__(self, first_slot: int = 0) -> None:
        self.facts: dict[Extent, None] = {}
        self.first_slot = first_slot
        self.numbers: dict[Any, int] = {}  # Extent or Real → slot

    def slot(self, number: Extent | Real) -> int:
        """The slot of a number that depends on sizes."""
        return self.numbers.setdefault(number, self.first_slot + len(self.numbers))

    def hold(self, values: Values) -> bool:
        """Whether all facts are true of these sizes."""
        return all(fact.at(values) >= 0 for fact in self.facts)

    def slots(self, values: Values) -> Sequence[int | float]:
        """The numbers of a run, in the order of their slots."""
        return [number.at(values) for number in self.numbers]


class _Scope(threading.local):
    decisions: Decisions | None = None


_scope = _Scope()


@contextmanager
def deciding(decisions: Decisions | None) -> Iterator[None]:
    """While within, what the hint decides becomes a fact of `decisions`; None forgets it."""
    before, _scope.decisions = _scope.decisions, decisions
    try:
        yield
    finally:
        _scope.decisions = before


def decisions() -> Decisions:
    """Those of the program that is being compiled."""
    if _scope.decisions is None:
        raise TypeError("a size that varies is used outside a compilation")
    return _scope.decisions
