"""Index expressions: the small integer algebra in which nodes and kernels say where they read.

An expression is a canonical sum: a constant plus integer multiples of atoms. Atoms are loop
coordinates (`Var`), `FloorDiv`, `Mod`, `Min`, `Max`, products of atoms, and `Read`, the value of an
integer tensor at a place. Every expression knows its range. Equal
expressions compare and hash equal, so rewriting is: build again with `+ * // %`, and let the
constructors simplify. `Condition` says `expr >= 0` or `expr == 0`; a guard is a tuple of them.

In a program for many sizes an `Extent` may stand wherever an int does: as a coefficient, as a
constant, as a bound. Only what is proven for all sizes simplifies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Union

from .extent import Extent, common_factor, divided, hint, proven

UNBOUNDED = 1 << 62

Index = Union["Expr", int]


class Expr:
    """Base of all index expressions. Instances are immutable; build them with operators."""

    __slots__ = ("lo", "hi", "key", "_hash")
    lo: int
    hi: int
    key: tuple[object, ...]

    def _finish(self, key: tuple[object, ...], lo: int, hi: int) -> None:
        self.key = key
        self._hash = hash(key)
        self.lo = lo if isinstance(lo, Extent) else max(lo, -UNBOUNDED)
        self.hi = hi if isinstance(hi, Extent) else min(hi, UNBOUNDED)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if isinstance(other, (int, Extent)):
            return isinstance(self, Sum) and not self.terms and self.const == other
        return isinstance(other, Expr) and self._hash == other._hash and self.key == other.key

    def __add__(self, other: Index) -> Expr:
        return add(self, other)

    __radd__ = __add__

    def __neg__(self) -> Expr:
        return scale(self, -1)

    def __sub__(self, other: Index) -> Expr:
        return add(self, scale(wrap(other), -1))

    def __rsub__(self, other: Index) -> Expr:
        return add(wrap(other), scale(self, -1))

    def __mul__(self, other: Index) -> Expr:
        return multiply(self, wrap(other))

    __rmul__ = __mul__

    def __floordiv__(self, other: Index) -> Expr:
        return floordiv(self, wrap(other))

    def __mod__(self, other: Index) -> Expr:
        return mod(self, wrap(other))

    def __repr__(self) -> str:
        return show(self)


class Var(Expr):
    """A loop coordinate: 0 <= var < extent. Identity is (name, extent)."""

    __slots__ = ("name", "extent")

    def __init__(self, name: str, extent: int) -> None:
        self.name = name
        self.extent = extent
        self._finish(("var", name, extent), 0, _last(extent))


class Sum(Expr):
    """const + Σ coefficient · atom: the canonical form of everything that is not one atom."""

    __slots__ = ("const", "terms")

    def __init__(self, const: int, terms: tuple[tuple[Expr, int], ...]) -> None:
        self.const = const
        self.terms = terms
        lo = hi = const
        known = True
        for atom, coefficient in terms:
            ascends = coefficient >= 0 if coefficient.__class__ is int else proven(coefficient, 0)
            if ascends:
                lo += atom.lo * coefficient
                hi += atom.hi * coefficient
            else:
                lo += atom.hi * coefficient
                hi += atom.lo * coefficient
                known = known and proven(0, coefficient)
        if not known:
            lo, hi = -UNBOUNDED, UNBOUNDED
        self._finish(("sum", const, terms), lo, hi)


class FloorDiv(Expr):
    """floor(a / n) where neither simplifies away."""

    __slots__ = ("a", "n")

    def __init__(self, a: Expr, n: Expr) -> None:
        self.a, self.n = a, n
        if _has_extents(a, n):
            positive = proven(a.lo, 0)
            lo, hi = (0, a.hi // n.lo) if positive else (-UNBOUNDED, UNBOUNDED)
            self._finish(("div", a, n), lo, hi)
            return
        divisors = (max(n.lo, 1), max(n.hi, 1))
        ends = [end // d for end in (a.lo, a.hi) for d in divisors]
        self._finish(("div", a, n), min(ends), max(ends))


class Mod(Expr):
    """a mod n, in [0, n)."""

    __slots__ = ("a", "n")

    def __init__(self, a: Expr, n: Expr) -> None:
        self.a, self.n = a, n
        hi = n.hi - 1
        if proven(a.lo, 0) and proven(hi, a.hi):
            hi = a.hi
        self._finish(("mod", a, n), 0, hi)


class Extreme(Expr):
    """min(a, b) or max(a, b)."""

    __slots__ = ("name", "a", "b")

    def __init__(self, name: str, a: Expr, b: Expr) -> None:
        self.name, self.a, self.b = name, a, b
        if _has_extents(a, b):
            self._finish((name, a, b), *_ends(name == "min", a, b))
            return
        pick = min if name == "min" else max
        self._finish((name, a, b), pick(a.lo, b.lo), pick(a.hi, b.hi))


def _ends(least: bool, a: Expr, b: Expr) -> tuple[int, int]:
    """The range of min(a, b) or max(a, b) where sizes vary: as narrow as can be proven."""
    if least:
        lo = a.lo if proven(b.lo, a.lo) else b.lo if proven(a.lo, b.lo) else -UNBOUNDED
        return lo, b.hi if proven(a.hi, b.hi) else a.hi
    hi = a.hi if proven(a.hi, b.hi) else b.hi if proven(b.hi, a.hi) else UNBOUNDED
    return b.lo if proven(b.lo, a.lo) else a.lo, hi


class Product(Expr):
    """a · b of two atoms."""

    __slots__ = ("a", "b")

    def __init__(self, a: Expr, b: Expr) -> None:
        if show(b) < show(a):
            a, b = b, a
        self.a, self.b = a, b
        ends = [x * y for x in (a.lo, a.hi) for y in (b.lo, b.hi)]
        self._finish(("product", a, b), min(ends), max(ends))


class Read(Expr):
    """The value of integer tensor number `source` at `index`, promised to lie in [0, extent).

    In a node, `source` counts the node's integer inputs; in a kernel it is a buffer number.
    """

    __slots__ = ("source", "index", "extent")

    def __init__(self, source: int, index: tuple[Expr, ...], extent: int) -> None:
        self.source, self.index, self.extent = source, index, extent
        self._finish(("read", source, index, extent), 0, _last(extent))


def _last(extent: int) -> int:
    """The largest coordinate below an extent."""
    return extent - 1 if isinstance(extent, Extent) else max(extent - 1, 0)


def _has_extents(a: Expr, b: Expr) -> bool:
    return any(isinstance(end, Extent) for end in (a.lo, a.hi, b.lo, b.hi))


class Condition:
    """`expr >= 0` (equal=False) or `expr == 0` (equal=True)."""

    __slots__ = ("expr", "equal", "_hash")

    def __init__(self, expr: Expr, equal: bool = False) -> None:
        self.expr = expr
        self.equal = equal
        self._hash = hash((expr, equal))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Condition) and self.equal == other.equal and self.expr == other.expr
        )

    def __repr__(self) -> str:
        return f"{self.expr} {'==' if self.equal else '>='} 0"

    @property
    def always(self) -> bool:
        """True when ranges alone prove it."""
        if self.equal:
            return self.expr.lo == 0 == self.expr.hi
        return proven(self.expr.lo, 0)

    @property
    def never(self) -> bool:
        """True when ranges alone refute it."""
        if self.equal:
            return proven(self.expr.lo, 1) or proven(-1, self.expr.hi)
        return proven(-1, self.expr.hi)


Guard = tuple[Condition, ...]


def num(value: int) -> Expr:
    """The constant `value`."""
    return Sum(value, ())


def wrap(value: Index) -> Expr:
    """An Expr from an Expr or an int."""
    if isinstance(value, Expr):
        return value
    return Sum(value if isinstance(value, Extent) else int(value), ())


ZERO = Sum(0, ())


def constant(e: Index) -> int | None:
    """The integer that e is, or None when it varies."""
    if isinstance(e, (int, Extent)):
        return e
    if isinstance(e, Sum) and not e.terms:
        return e.const
    return None


def split(e: Expr) -> tuple[int, dict[Expr, int]]:
    """(constant, {atom: coefficient}) of any expression."""
    if isinstance(e, Sum):
        return e.const, dict(e.terms)
    return 0, {e: 1}


def _rebuild(const: int, terms: dict[Expr, int]) -> Expr:
    items = [(a, c) for a, c in terms.items() if c != 0]
    if const == 0 and len(items) == 1 and items[0][1] == 1:
        return items[0][0]
    items.sort(key=_term_order)
    return Sum(const, tuple(items))


def _term_order(item: tuple[Expr, int]) -> str:
    # By text, not by hash: the order must be the same in every process, for cache keys.
    atom = item[0]
    return atom.name if isinstance(atom, Var) else "~" + show(atom)


def _merge_digits(terms: dict[Expr, int]) -> dict[Expr, int] | None:
    """One step of c·(x mod n) + c·n·(x div n) → c·x, or None when nothing applies."""
    for atom, c in terms.items():
        if not isinstance(atom, Mod):
            continue
        n = constant(atom.n)
        if n is None:
            continue
        quotient = floordiv(atom.a, atom.n)
        high_const, high_terms = split(quotient)
        if len(high_terms) == 1 and high_const == 0:
            ((high, factor),) = high_terms.items()
            if factor == 1 and terms.get(high) == c * n:
                return _replace(terms, (atom, high), atom.a, c)
        for other, c2 in terms.items():
            if c2 == c * n and isinstance(other, Mod) and other.a == quotient:
                m = constant(other.n)
                if m is not None:
                    return _replace(terms, (atom, other), mod(atom.a, num(n * m)), c)
    return None


def _replace(
    terms: dict[Expr, int], gone: tuple[Expr, ...], new: Expr, coefficient: int
) -> dict[Expr, int]:
    kept = {a: c for a, c in terms.items() if a not in gone}
    const, extra = split(new)
    for atom, c in extra.items():
        kept[atom] = kept.get(atom, 0) + c * coefficient
    if const:
        kept[ZERO] = kept.get(ZERO, 0) + const * coefficient
    return kept


def _canonical(const: int, terms: dict[Expr, int]) -> Expr:
    while True:
        if any(isinstance(a, Mod) for a in terms) and len(terms) > 1:
            merged = _merge_digits(terms)
            if merged is not None:
                const += merged.pop(ZERO, 0)
                terms = {a: c for a, c in merged.items() if c != 0}
                continue
        return _rebuild(const, terms)


def add(a: Index, b: Index) -> Expr:
    """a + b."""
    a, b = wrap(a), wrap(b)
    const, terms = split(a)
    other_const, other = split(b)
    if not other:
        return _rebuild(const + other_const, terms)
    for atom, c in other.items():
        terms[atom] = terms.get(atom, 0) + c
    return _canonical(const + other_const, {x: c for x, c in terms.items() if c != 0})


def total(parts: Iterable[Index]) -> Expr:
    """The sum of many expressions."""
    result: Expr = ZERO
    for part in parts:
        result = add(result, part)
    return result


def scale(e: Expr, factor: int) -> Expr:
    """factor · e."""
    if factor == 0:
        return ZERO
    const, terms = split(e)
    return _rebuild(const * factor, {a: c * factor for a, c in terms.items()})


def multiply(a: Expr, b: Expr) -> Expr:
    """a · b; products of two non-constants distribute into Product atoms."""
    for left, right in ((a, b), (b, a)):
        known = constant(right)
        if known is not None:
            return scale(left, known)
    const_a, terms_a = split(a)
    const_b, terms_b = split(b)
    result = num(const_a * const_b)
    for atom, c in terms_a.items():
        result = add(result, scale(atom, c * const_b))
    for atom, c in terms_b.items():
        result = add(result, scale(atom, c * const_a))
    for x, cx in terms_a.items():
        for y, cy in terms_b.items():
            result = add(result, scale(Product(x, y), cx * cy))
    return result


def _split_by(e: Expr, n: int) -> tuple[Expr, Expr]:
    """e = n·q + r with every term of q whole: (q, r)."""
    const, terms = split(e)
    high: dict[Expr, int] = {}
    low: dict[Expr, int] = {}
    for atom, c in terms.items():
        whole = divided(c, n)
        if whole is None:
            low[atom] = c
        else:
            high[atom] = whole
    whole_const, rest = _split_constant(const, n)
    return _rebuild(whole_const, high), _rebuild(rest, low)


def _split_constant(const: int, n: int) -> tuple[int, int]:
    """const = n·q + r: (q, r), with what is plainly divisible in q."""
    if not isinstance(const, Extent) and not isinstance(n, Extent):
        return const // n, const % n
    whole = divided(const, n)
    if whole is not None:
        return whole, 0
    if isinstance(n, Extent):
        return 0, const
    whole = const // n
    return whole, const - whole * n


def _low_digits(e: Expr, n: int) -> tuple[int, Expr, Expr] | None:
    """(g, q, s) with e = g·q + s, 0 <= s < g, g a divisor of n above 1; the largest such g."""
    _, terms = split(e)
    candidates = {common_factor(c, n) for c in terms.values()} - {1}
    for g in sorted(candidates, key=hint, reverse=True):
        q, s = _split_by(e, g)
        if proven(s.lo, 0) and proven(g - 1, s.hi):
            return g, q, s
    return None


def floordiv(a: Expr, n: Expr) -> Expr:
    """floor(a / n) for positive n."""
    divisor = constant(n)
    if divisor is None:
        return _symbolic_floordiv(a, n)
    if divisor == 1:
        return a
    q, r = _split_by(a, divisor)
    if proven(r.lo, 0) and proven(divisor - 1, r.hi):
        return q
    if constant(q) != 0:
        return add(q, floordiv(r, n))
    digits = _low_digits(r, divisor)
    if digits is not None:
        g, high, _ = digits
        return floordiv(high, num(divisor // g))
    if isinstance(r, FloorDiv) and constant(r.n) is not None:
        return floordiv(r.a, multiply(r.n, n))
    if isinstance(r, Mod):
        inner = constant(r.n)
        whole = None if inner is None else divided(inner, divisor)
        if whole is not None:
            return mod(floordiv(r.a, n), num(whole))
    return FloorDiv(r, n)


def _symbolic_floordiv(a: Expr, n: Expr) -> Expr:
    if proven(a.lo, 0) and proven(n.lo - 1, a.hi):
        return ZERO
    if a == n:
        return num(1)
    return FloorDiv(a, n)


def mod(a: Expr, n: Expr) -> Expr:
    """a mod n, in [0, n), for positive n."""
    divisor = constant(n)
    if divisor is None:
        inside = proven(a.lo, 0) and proven(n.lo - 1, a.hi)
        return a if inside else (ZERO if a == n else Mod(a, n))
    if divisor == 1:
        return ZERO
    _, r = _split_by(a, divisor)
    if proven(r.lo, 0) and proven(divisor - 1, r.hi):
        return r
    digits = _low_digits(r, divisor)
    if digits is not None:
        g, high, low = digits
        return add(scale(mod(high, num(divisor // g)), g), low)
    if isinstance(r, Mod):
        inner = constant(r.n)
        if inner is not None and divided(inner, divisor) is not None:
            return mod(r.a, n)
    return Mod(r, n)


def minimum(a: Index, b: Index) -> Expr:
    """min(a, b)."""
    a, b = wrap(a), wrap(b)
    if proven(b.lo, a.hi):
        return a
    return b if proven(a.lo, b.hi) else Extreme("min", a, b)


def maximum(a: Index, b: Index) -> Expr:
    """max(a, b)."""
    a, b = wrap(a), wrap(b)
    if proven(a.lo, b.hi):
        return a
    return b if proven(b.lo, a.hi) else Extreme("max", a, b)


def within(e: Expr, extent: Index) -> Guard:
    """The conditions for 0 <= e < extent that ranges do not already prove."""
    return reduce_guard((Condition(e), Condition(wrap(extent) - 1 - e)))


def reduce_guard(conditions: Iterable[Condition]) -> Guard:
    """The conjunction without what is proven and without repeats."""
    kept: dict[Condition, None] = {}
    for condition in conditions:
        if not condition.always:
            kept[condition] = None
    return tuple(kept)


def substitute(e: Expr, mapping: Mapping[Expr, Expr]) -> Expr:
    """e with atoms replaced, simplified again."""
    found = mapping.get(e)
    if found is not None:
        return found
    if isinstance(e, Sum):
        parts = [scale(substitute(atom, mapping), c) for atom, c in e.terms]
        return total([e.const, *parts])
    if isinstance(e, Var):
        return e
    return rebuild_atom(e, lambda part: substitute(part, mapping))


def rebuild_atom(e: Expr, change: Callable[[Expr], Expr]) -> Expr:
    """The same kind of atom with each operand changed."""
    if isinstance(e, FloorDiv):
        return floordiv(change(e.a), change(e.n))
    if isinstance(e, Mod):
        return mod(change(e.a), change(e.n))
    if isinstance(e, Extreme):
        return (minimum if e.name == "min" else maximum)(change(e.a), change(e.b))
    if isinstance(e, Product):
        return multiply(change(e.a), change(e.b))
    if isinstance(e, Read):
        return Read(e.source, tuple(change(i) for i in e.index), e.extent)
    return e


def renumber_reads(e: Expr, change: Callable[[int], int]) -> Expr:
    """e with the source number of every Read changed."""
    if isinstance(e, Sum):
        return total([e.const, *(scale(renumber_reads(a, change), c) for a, c in e.terms)])
    if isinstance(e, Read):
        inner = tuple(renumber_reads(i, change) for i in e.index)
        return Read(change(e.source), inner, e.extent)
    return rebuild_atom(e, lambda part: renumber_reads(part, change))


def substitute_guard(guard: Guard, mapping: Mapping[Expr, Expr]) -> Guard:
    """The guard with atoms replaced and what is then proven dropped."""
    return reduce_guard(Condition(substitute(c.expr, mapping), c.equal) for c in guard)


def atoms(e: Expr) -> set[Expr]:
    """All atoms inside e, at any depth."""
    found: set[Expr] = set()
    stack = [e]
    while stack:
        here = stack.pop()
        if isinstance(here, Sum):
            stack.extend(a for a, _ in here.terms)
            continue
        found.add(here)
        stack.extend(operands(here))
    return found


def operands(e: Expr) -> tuple[Expr, ...]:
    """The expressions directly inside an atom."""
    if isinstance(e, (FloorDiv, Mod)):
        return (e.a, e.n)
    if isinstance(e, (Extreme, Product)):
        return (e.a, e.b)
    if isinstance(e, Read):
        return e.index
    return ()


def variables(e: Expr) -> set[Var]:
    """The loop coordinates that e depends on."""
    return {a for a in atoms(e) if isinstance(a, Var)}


def is_affine(e: Expr) -> bool:
    """True when e is a constant plus multiples of loop coordinates."""
    return all(isinstance(a, Var) for a in split(e)[1])


def coefficient(e: Expr, var: Var) -> int | None:
    """How much e grows per step of var; None when that is not one constant."""
    _, terms = split(e)
    result = 0
    for atom, c in terms.items():
        if atom == var:
            result = c
        elif var in variables(atom):
            return None
    return result


def evaluate(
    e: Expr, values: Mapping[Expr, int], read: Callable[[int, tuple[int, ...]], int]
) -> int:
    """The integer value of e for given coordinates; also works elementwise on NumPy arrays."""
    if isinstance(e, Sum):
        result = e.const
        for atom, c in e.terms:
            result = result + evaluate(atom, values, read) * c
        return result
    if isinstance(e, Var):
        return values[e]
    if isinstance(e, Read):
        return read(e.source, tuple(evaluate(i, values, read) for i in e.index))
    a, b = (evaluate(part, values, read) for part in operands(e))
    if isinstance(e, FloorDiv):
        return a // b
    if isinstance(e, Mod):
        return a % b
    if isinstance(e, Product):
        return a * b
    assert isinstance(e, Extreme)
    smaller = a < b
    pick_a = smaller if e.name == "min" else ~smaller if hasattr(smaller, "dtype") else not smaller
    return b + (a - b) * pick_a


def flatten(index: Iterable[Index], strides: Iterable[Index], offset: Index = 0) -> Expr:
    """offset + Σ index · stride."""
    products = [multiply(wrap(i), wrap(s)) for i, s in zip(index, strides, strict=True)]
    return total([offset, *products])


def unflatten(flat: Expr, shape: tuple[int, ...]) -> tuple[Expr, ...]:
    """The coordinates in `shape` of the flat row-major position."""
    index: list[Expr] = []
    for extent in reversed(shape[1:]):
        index.append(mod(flat, num(extent)) if extent > 0 else ZERO)
        flat = floordiv(flat, num(max(extent, 1)))
    if shape:
        index.append(flat)
    return tuple(reversed(index))


def contiguous_strides(shape: Iterable[int]) -> tuple[int, ...]:
    """Row-major strides, in elements."""
    strides: list[int] = []
    step = 1
    for extent in reversed(tuple(shape)):
        strides.append(step)
        step *= max(extent, 1)
    return tuple(reversed(strides))


def show(e: Expr) -> str:
    """Readable text, for example `4*i0 + i1//3`."""
    if isinstance(e, Sum):
        parts = [_show_term(a, c) for a, c in e.terms]
        if e.const != 0 or not parts:
            parts.append(str(e.const))
        return " + ".join(parts).replace("+ -", "- ")
    if isinstance(e, Var):
        return e.name
    if isinstance(e, FloorDiv):
        return f"{_enclose(e.a)}//{_enclose(e.n)}"
    if isinstance(e, Mod):
        return f"{_enclose(e.a)}%{_enclose(e.n)}"
    if isinstance(e, Extreme):
        return f"{e.name}({e.a}, {e.b})"
    if isinstance(e, Product):
        return f"{_enclose(e.a)}*{_enclose(e.b)}"
    assert isinstance(e, Read)
    return f"read{e.source}[{', '.join(map(show, e.index))}]"


def _show_term(atom: Expr, c: int) -> str:
    if c == 1:
        return show(atom)
    return f"-{_enclose(atom)}" if c == -1 else f"{c}*{_enclose(atom)}"


def _enclose(e: Expr) -> str:
    simple = isinstance(e, (Var, Read, Extreme)) or constant(e) is not None
    return show(e) if simple else f"({show(e)})"
