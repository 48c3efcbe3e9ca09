"""The transpose of a Reindex: for every input element, the sum of the outputs that read it.

out[i] = a[g(i)] has the transpose d[k] = Σ c[i] over all i with g(i) = k. Where g is affine in
mixed-radix digits of i it can be solved for i, so the sum is a Reduce over few free coordinates of
a gather of c: no scatter. A stride becomes a `mod` guard, a broadcast a free coordinate, a
reshape a change of digits. Where g reads tensors or cannot be solved, a Scatter remains.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ..ir import build, index
from ..ir.extent import divided, hint, proven
from ..ir.index import Condition, Expr, FloorDiv, Guard, Mod, Var
from ..ir.node import Node, Reindex, Shape, axis, coordinates


class NotInvertible(Exception):
    """The map has no solution in this algebra; the caller falls back to Scatter."""


def transpose(node: Node, cotangent: Node) -> Node:
    """The cotangent of a Reindex's first input."""
    assert isinstance(node, Reindex)
    source = node.inputs[0]
    if cotangent.size == 0 or source.size == 0:
        return build.full(source.shape, 0, cotangent.dtype)
    if _is_reshape(node):
        return build.reshape(cotangent, source.shape)
    return transpose_map(cotangent, node.index, node.guard, source.shape, node.inputs[1:])


def transpose_map(
    values: Node, where: Sequence[Expr], guard: Guard, shape: Shape, reads: Sequence[Node] = ()
) -> Node:
    """out[where(i)] += values[i] where guard(i): in gather form if the map can be solved."""
    try:
        return _gathered(values, tuple(where), guard, shape)
    except NotInvertible:
        return build.scatter("add", values, shape, where, guard, reads)


def _is_reshape(node: Reindex) -> bool:
    source = node.inputs[0]
    if node.guard or node.size != source.size:
        return False
    read = index.flatten(node.index, index.contiguous_strides(source.shape))
    return read == index.flatten(coordinates(node.shape), index.contiguous_strides(node.shape))


def _gathered(cotangent: Node, where: tuple[Expr, ...], guard: Guard, shape: Shape) -> Node:
    digits = _digits(cotangent.shape, where, guard)
    solution = Solution([index.substitute(e, digits) for e in where], shape)
    solution.solve([v for e in digits.values() for v in sorted(index.variables(e), key=str)])
    found = solution.values
    summed_over = [Var(f"f{n}", var.extent) for n, var in enumerate(solution.free)]
    free: dict[Expr, Expr] = dict(zip(solution.free, summed_over, strict=True))
    places: dict[Expr, Expr] = {var: index.substitute(e, free) for var, e in found.items()} | free
    reads = [
        index.substitute(index.substitute(coordinate, digits), places)
        for coordinate in coordinates(cotangent.shape)
    ]
    conditions = [*solution.conditions, *(index.substitute_guard(guard, digits))]
    moved = index.reduce_guard(
        Condition(index.substitute(c.expr, places), c.equal) for c in conditions
    )
    real = [
        v for v in coordinates(shape) if v.extent not in (0, 1)
    ]  # axes of size 1 come back at the end
    order = _walk_order([*real, *summed_over], reads)
    domain = tuple(var.extent for var in order)
    rename: dict[Expr, Expr] = {v: index.ZERO for v in coordinates(shape) if v.extent == 1}
    rename |= {var: axis(n, var.extent) for n, var in enumerate(order)}
    gathered = build.reindex(
        cotangent, domain, [index.substitute(e, rename) for e in reads],
        index.substitute_guard(moved, rename),
    )  # fmt: skip
    summed = build.reduce("add", gathered, [n for n, v in enumerate(order) if v in summed_over])
    kept = [v for v in order if v not in summed_over]
    return build.reshape(build.permute(summed, [kept.index(v) for v in real]), shape)


def _walk_order(variables: list[Var], reads: list[Expr]) -> list[Var]:
    """The coordinates in the order in which the gathered array has them: rows stay rows."""
    place: dict[Var, int] = {}
    for n, expr in enumerate(reads):
        if isinstance(expr, Var):
            place[expr] = n
    for n, expr in enumerate(reads):
        for var in index.variables(expr):
            place.setdefault(var, n)
    return sorted(variables, key=lambda v: place.get(v, -1))


def _digits(shape: Shape, where: tuple[Expr, ...], guard: Guard) -> dict[Expr, Expr]:
    """Each coordinate written in the digits that make its divisions whole, under fresh names."""
    cuts: dict[Var, set[int]] = {}
    for expr in [*where, *(c.expr for c in guard)]:
        for atom in index.atoms(expr):
            if isinstance(atom, index.Read):
                raise NotInvertible
            if isinstance(atom, (FloorDiv, Mod)):
                _note_cut(atom, cuts)
    mapping: dict[Expr, Expr] = {}
    for k, coordinate in enumerate(coordinates(shape)):
        cut = cuts.get(coordinate, set())
        mapping[coordinate] = _in_radix(f"d{k}_", coordinate.extent, cut)
    return mapping


def _note_cut(atom: FloorDiv | Mod, cuts: dict[Var, set[int]]) -> None:
    n = index.constant(atom.n)
    inner, below = atom.a, 1
    if isinstance(inner, FloorDiv):
        step = index.constant(inner.n)
        if step is None:
            raise NotInvertible
        inner, below = inner.a, step
    if n is None or not isinstance(inner, Var):
        raise NotInvertible
    cuts.setdefault(inner, set()).update({below, below * n} - {1})


def _in_radix(prefix: str, extent: int, cuts: set[int]) -> Expr:
    # A digit of a size that varies may have one value only: then it is 0.
    inside = [c for c in cuts if c != extent and c <= extent]
    bounds = [1, *sorted(inside, key=hint), extent]
    value: Expr = index.ZERO
    for low, high in zip(bounds, bounds[1:], strict=False):
        radix = divided(high, low)
        if radix is None:
            raise NotInvertible
        value = value + Var(f"{prefix}{low}", radix) * low
    return value


@dataclass
class Solution:
    """Solves where(v) = k for the coordinates v; what stays free is summed over."""

    where: list[Expr]
    shape: Shape
    values: dict[Expr, Expr] = field(default_factory=dict)  # solved coordinate → expression of k
    conditions: list[Condition] = field(default_factory=list)
    free: list[Var] = field(default_factory=list)

    def solve(self, unknown: list[Var]) -> None:
        for k, expr in enumerate(self.where):
            if not index.is_affine(expr):
                raise NotInvertible
            self._solve_axis(expr, axis(k, self.shape[k]))
        for var in unknown:
            if var not in self.values and var not in self.free:
                self.free.append(var)

    def _solve_axis(self, expr: Expr, target: Var) -> None:
        const, terms = index.split(expr)
        rest: Expr = index.num(const)
        open_terms: list[tuple[int, Var]] = []
        for var, factor in terms.items():
            assert isinstance(var, Var)
            if var in self.values:
                rest = rest + self.values[var] * factor
            elif var in self.free:
                rest = rest + var * factor
            else:
                open_terms.append((factor, var))
        remaining = target - rest
        if not open_terms:
            self.conditions.append(Condition(remaining, equal=True))
        elif _is_mixed_radix(open_terms):
            self._solve_digits(remaining, _by_place(open_terms)[::-1])
        else:
            self._solve_one(remaining, open_terms)

    def _solve_one(self, remaining: Expr, open_terms: list[tuple[int, Var]]) -> None:
        """Solve for the longest coordinate; the others are summed over."""
        factor, var = max(open_terms, key=lambda t: hint(t[1].extent))
        for other_factor, other in open_terms:
            if other is not var:
                self.free.append(other)
                remaining = remaining - other * other_factor
        if factor < 0:
            remaining, factor = -remaining, -factor
        self._take(var, remaining, factor)

    def _solve_digits(self, remaining: Expr, open_terms: list[tuple[int, Var]]) -> None:
        for factor, var in open_terms[:-1]:
            self._bound(var, remaining // factor)
            remaining = remaining % factor
        factor, var = open_terms[-1]
        self._take(var, remaining, factor)

    def _take(self, var: Var, remaining: Expr, factor: int) -> None:
        if factor > 1:
            self.conditions.append(Condition(remaining % factor, equal=True))
        self._bound(var, remaining // factor)

    def _bound(self, var: Var, value: Expr) -> None:
        self.values[var] = value
        self.conditions.extend(index.within(value, var.extent))


def _by_place(terms: list[tuple[int, Var]]) -> list[tuple[int, Var]]:
    """Digits from the lowest place on; of two with one place value, that of extent 1 is lower."""
    return sorted(terms, key=lambda t: (hint(t[0]), hint(t[1].extent)))


def _is_mixed_radix(terms: list[tuple[int, Var]]) -> bool:
    """True when the coefficients are place values: a sum determines every digit."""
    ordered = _by_place(terms)
    if not proven(ordered[0][0], 1):
        return False
    for (low, var), (high, _) in zip(ordered, ordered[1:], strict=False):
        if divided(high, low) is None or not proven(high, low * var.extent):
            return False
    return True
