"""Logarithms of running totals of exponentials, as vectors of float64.

A total is two numbers: the largest exponent m so far, and t, so that it is e**m (1 + t). Two totals
are combined with one exponential, and the logarithm is only taken of what is stored.
"""

from __future__ import annotations

from ...ir import dtypes, elementary
from .scope import Ref, Scope
from .types import mangled, vector
from .vector import Builder


def combining(lanes: int) -> str:
    """What to call with two totals, each of two vectors: it gives both vectors of the sum."""
    return f"@mg.logaddexp.{mangled('double', lanes)}"


def ending(lanes: int) -> str:
    """What to call with a total: it gives the logarithm."""
    return f"{combining(lanes)}.end"


def functions(lanes: int) -> set[str]:
    """Their text, and what that calls."""
    kind = vector("double", lanes)
    both = f"{{ {kind}, {kind} }}"
    h, (m, t) = _begun("mt", lanes)
    result = h.add(m, elementary.log1p(h, t))
    end = [f"define internal {kind} {ending(lanes)}({kind} %m, {kind} %t) alwaysinline #0 {{"]
    end += [*h.root.lines(), f"  ret {kind} {result.text}", "}"]

    more, (m, t, n, u) = _begun("mtnu", lanes)
    largest, rest = _sum(more, m, t, n, u)
    given = ", ".join(f"{kind} %{name}" for name in "mtnu")
    add = [f"define internal {both} {combining(lanes)}({given}) alwaysinline #0 {{"]
    add += more.root.lines()
    add += [f"  %first = insertvalue {both} poison, {kind} {largest.text}, 0"]
    add += [f"  %whole = insertvalue {both} %first, {kind} {rest.text}, 1"]
    add += [f"  ret {both} %whole", "}"]
    return {"\n".join(end), "\n".join(add), *h.declarations, *more.declarations}


def _begun(names: str, lanes: int) -> tuple[Builder, list[Ref]]:
    """A function's builder, and its parameters."""
    root = Scope(None)
    return Builder(root), [Ref(f"%{name}", dtypes.float64, lanes, root) for name in names]


def _sum(h: Builder, m: Ref, t: Ref, n: Ref, u: Ref) -> tuple[Ref, Ref]:
    """e**m (1 + t) + e**n (1 + u): the smaller is multiplied by a power that is at most 1."""
    above = h.gt(m, n)
    largest = h.select(above, m, n)
    of_larger, of_smaller = h.select(above, t, u), h.select(above, u, t)
    # Equal infinities have no difference.
    apart = h.select(h.eq(m, n), h.const(0.0, m.dtype), h.neg(h.abs(h.sub(m, n))))
    share = elementary.exp(h, apart)
    return largest, h.add(of_larger, h.fma(of_smaller, share, share))
