"""Resampling: arrays read between their places, one axis at a time.

Result i of an axis is a sum of a few neighbours, its *taps*: those at base(i), base(i) + 1, … with
weights that depend on i alone. Its transpose asks, for place j, the few results around j·o/n
whether they read j. Both are gathers, and each is the other's derivative.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..ir import build, dtypes, index
from ..ir.dtypes import DType, int64
from ..ir.index import Read
from ..ir.node import axis
from ..tensor import Tensor
from . import adaptive
from .define import function, operator

CUBIC = -0.75  # how deep the cubic kernel dips; smoothing uses the common -0.5


class _Arrays:
    """The functions that taps are written with, on arrays."""

    floor = staticmethod(np.floor)
    maximum = staticmethod(np.maximum)
    minimum = staticmethod(np.minimum)
    select = staticmethod(np.where)
    abs = staticmethod(np.abs)


@dataclass(frozen=True)
class Rule:
    """How an axis of n places becomes one of o: the kind of taps, and their scale."""

    kind: str  # "nearest", "nearest-exact", "linear", "cubic"
    n: int
    o: int
    aligned: bool = False
    factor: float | None = None  # the scale that the user gave
    smooth: bool = False  # against aliasing: taps as wide as the places that a result covers
    bits: int = 0  # of the fractions that weights are rounded to; 0 for none

    @property
    def scale(self) -> float:
        """Places of the input for one of the result."""
        if self.aligned:
            return (self.n - 1) / (self.o - 1) if self.o > 1 else 0.0
        return 1.0 / self.factor if self.factor else self.n / self.o

    def taps(self, i: Any, f: Any) -> tuple[Any, list[Any] | None]:
        """(base(i), weights of base, base + 1, …), for floats i; None for one weight of 1."""
        base, weights = self._exact_taps(i, f)
        if weights is None or not self.bits:
            return base, weights
        levels = 2.0**self.bits
        joined = self._joined(base, weights, f)
        rounded = [f.floor(f.abs(w) * levels + 0.5) / levels for w in joined]
        return base, [f.select(w < 0, 0 - r, r) for w, r in zip(joined, rounded, strict=True)]

    def _joined(self, base: Any, weights: list[Any], f: Any) -> list[Any]:
        """Weights of taps that meet at the border as one weight, of the first of them."""
        at = [f.minimum(f.maximum(base + t, 0.0), self.n - 1.0) for t in range(len(weights))]
        result = []
        for t, weight in enumerate(weights):
            total = weight
            for s in range(t + 1, len(weights)):
                total = total + f.select(f.abs(at[s] - at[t]) < 0.5, weights[s], weight * 0)
            if t:
                total = f.select(f.abs(at[t] - at[t - 1]) < 0.5, weight * 0, total)
            result.append(total)
        return result

    def in_fractions(self) -> Rule:
        """The same with weights as PyTorch has them for bytes: 16-bit fractions."""
        _, weights = self._exact_taps(np.arange(self.o, dtype=np.float64), _Arrays)
        largest = max(float(np.max(w)) for w in weights or [np.ones(1)])
        bits = 0
        while bits < 22 and int(0.5 + largest * 2 ** (bits + 1)) < 2**15:
            bits += 1
        return replace(self, bits=bits)

    def _exact_taps(self, i: Any, f: Any) -> tuple[Any, list[Any] | None]:
        scale = i * 0 + self.scale
        if self.kind.startswith("nearest"):
            place = i if self.kind == "nearest" else i + 0.5
            return f.minimum(f.floor(place * scale), self.n - 1.0), None
        if self.smooth:
            return self._smooth_taps(i, scale, f)
        source = i * scale if self.aligned else (i + 0.5) * scale - 0.5
        if self.kind == "linear":
            source = f.maximum(source, 0.0)
            base = f.minimum(f.floor(source), self.n - 1.0)
            share = f.minimum(f.maximum(source - base, 0.0), 1.0)
            return base, [1.0 - share, share]
        base = f.floor(source)
        t = source - base
        weights = [_far(t + 1.0, CUBIC), _near(t, CUBIC), _near(1.0 - t, CUBIC)]
        return base - 1.0, [*weights, _far(2.0 - t, CUBIC)]

    @property
    def reach(self) -> float:
        """How far a smooth tap may be from the middle of what a result covers."""
        width = 1.0 if self.kind == "linear" else 2.0
        return width * max(self.scale, 1.0)

    def _smooth_taps(self, i: Any, scale: Any, f: Any) -> tuple[Any, list[Any]]:
        center = (i + 0.5) * scale
        first = f.maximum(f.floor(center - self.reach + 0.5), 0.0)
        end = f.minimum(f.floor(center + self.reach + 0.5), float(self.n))
        shrink = 1.0 / max(self.scale, 1.0)
        weights, total = [], i * 0
        for t in range(int(np.ceil(self.reach)) * 2 + 1):
            x = f.abs((first + t - center + 0.5) * shrink)
            if self.kind == "linear":
                w = f.maximum(1.0 - x, 0.0)
            else:
                near, far = _near(x, -0.5), _far(x, -0.5)
                w = f.select(x < 1.0, near, f.select(x < 2.0, far, x * 0))
            w = f.select(first + t < end, w, x * 0)
            weights.append(w)
            total = total + w
        return first, [w / total for w in weights]


def _near(x: Any, a: float) -> Any:
    """The cubic kernel within one place."""
    return (x * (a + 2.0) - (a + 3.0)) * x * x + 1.0


def _far(x: Any, a: float) -> Any:
    """The cubic kernel between one place and two."""
    return ((x * a - 5.0 * a) * x + 8.0 * a) * x - 4.0 * a


@functools.lru_cache(maxsize=1024)
def _span(rule: Rule, precision: str) -> tuple[int, int]:
    """(before, count): at most count results, from j·o//n − before on, read place j."""
    base, weights = rule.taps(np.arange(rule.o).astype(precision), _Arrays)
    taps = 1 if weights is None else len(weights)
    read = np.clip(base.astype(np.int64)[:, None] + np.arange(taps), 0, rule.n - 1)
    guess = read * rule.o // rule.n
    distance = np.arange(rule.o)[:, None] - guess
    before = -int(distance.min())
    return before, int(distance.max()) + before + 1


def _position(number: Any, rule: Rule, dtype: DType) -> Any:
    """Result numbers as the floats that taps are computed from: nearest always in float32."""
    return build.cast(number, dtypes.float32 if rule.kind.startswith("nearest") else dtype)


@operator(to=None, method=False)
def read_taps(x: Tensor, dim: int, rule: Any) -> Any:
    """x resampled along an axis."""
    shape = (*x.shape[:dim], rule.o, *x.shape[dim + 1 :])
    base, weights = rule.taps(
        _position(build.coordinate((rule.o,), 0), rule, x.dtype), build.functions
    )
    result: Any = None
    for t, weight in enumerate([None] if weights is None else weights):
        at = build.functions.minimum(
            build.functions.maximum(build.cast(base, int64) + t, 0), rule.n - 1
        )
        place: list[Any] = [axis(k, e) for k, e in enumerate(shape)]
        place[dim] = Read(0, (axis(dim, rule.o),), rule.n)
        part = build.reindex(x, shape, place, reads=(at,))
        if weight is not None:
            part = part * _along(weight, dim, x.ndim)
        result = part if result is None else result + part
    return result


@read_taps.derivative
def _(g: Any, y: Any, x: Any, dim: int, rule: Any) -> Any:
    return (spread_taps(g, dim, rule),)


def _along(weight: Any, dim: int, rank: int) -> Any:
    return build.reshape(weight, (*weight.shape, *[1] * (rank - 1 - dim)))


@operator(to=None, method=False)
def spread_taps(g: Tensor, dim: int, rule: Any) -> Any:
    """The transpose of read_taps: each place collects from the results that read it."""
    before, count = _span(rule, "float32" if rule.kind.startswith("nearest") else g.dtype.name)
    pairs = (rule.n, count)
    here = build.coordinate(pairs, 0)
    number = build.functions.floordiv(here * rule.o, rule.n) - before + build.coordinate(pairs, 1)
    # Numbers of no result meet zeros below; within the range their weights are finite too.
    number = build.functions.minimum(build.functions.maximum(number, 0), rule.o - 1)
    base, weights = rule.taps(_position(number, rule, g.dtype), build.functions)
    share: Any = None
    for t, weight in enumerate([build.const(1.0, g.dtype)] if weights is None else weights):
        at = build.functions.minimum(
            build.functions.maximum(build.cast(base, int64) + t, 0), rule.n - 1
        )
        part = build.select(build.functions.eq(at, here), weight, build.const(0.0, g.dtype))
        share = part if share is None else share + part
    shape = (*g.shape[:dim], rule.n, *g.shape[dim + 1 :], count)
    place: list[Any] = [axis(k, e) for k, e in enumerate(shape[:-1])]
    place[dim] = axis(dim, rule.n) * rule.o // rule.n - before + axis(g.ndim, count)
    seen = build.reindex(g, shape, place, index.within(place[dim], rule.o))
    between = [1] * (g.ndim - 1 - dim)
    share = build.reshape(share, (rule.n, *between, count))
    return build.reduce("add", seen * share, [g.ndim])


@spread_taps.derivative
def _(c: Any, y: Any, g: Any, dim: int, rule: Any) -> Any:
    return (read_taps(c, dim, rule),)


def _nearest(x: Any, dim: int, rule: Rule) -> Any:
    """Repeated or skipped places are plain views; others are read."""
    base, _ = rule.taps(np.arange(rule.o, dtype=np.float32), _Arrays)
    if rule.kind == "nearest" and rule.o == 2 * rule.n:
        base = np.arange(rule.o) // 2
    shape = (*x.shape[:dim], rule.o, *x.shape[dim + 1 :])
    place: list[Any] = [axis(k, e) for k, e in enumerate(shape)]
    i = axis(dim, rule.o)
    numbers = np.arange(rule.o)
    repeat, skip = max(rule.o // rule.n, 1), max(rule.n // rule.o, 1)
    first = int(base[0])
    for expression, values in (
        (i // repeat, numbers // repeat),
        (i * skip + first, numbers * skip + first),
    ):
        if np.array_equal(values, base) and (rule.o % rule.n == 0 or rule.n % rule.o == 0):
            place[dim] = expression
            return build.reindex(x, shape, place)
    return read_taps(x, dim, rule)


@operator(to=None, method=False, name="interpolate")
def resampled(x: Tensor, rules: Any) -> Any:
    """x [N, C, …] resampled along its spatial axes."""
    between = not rules[0].kind.startswith("nearest")
    if between and not (x.dtype.is_floating_point or x.dtype.name == "uint8"):
        raise TypeError(f"{rules[0].kind} resampling is for floats and uint8, got {x.dtype.name}")
    for k in reversed(range(len(rules))):
        rule = rules[k]
        if rule.kind.startswith("nearest"):
            x = x if rule.n == rule.o else _nearest(x, 2 + k, rule)
        elif x.dtype.is_floating_point:
            x = read_taps(x, 2 + k, rule)
        else:  # bytes are rounded after each axis
            wide = build.cast(x, dtypes.float64)
            x = _rounded(read_taps(wide, 2 + k, rule.in_fractions()), x.dtype)
    return x


def _rounded(y: Any, dtype: DType) -> Any:
    f = build.functions
    low, high = float(build.lowest(dtype)), float(build.highest(dtype))
    return build.cast(f.minimum(f.maximum(f.floor(y + 0.5), low), high), dtype)


resampled.operator.saves = {"x": ()}
resampled.operator.lies = "images"

_RANKS = {"linear": 1, "bilinear": 2, "trilinear": 3, "bicubic": 2}
_MODES = ("nearest", "nearest-exact", "area", *_RANKS)


def _listed(given: Any, rank: int, what: str) -> list[Any]:
    if not isinstance(given, (tuple, list)):
        return [given] * rank
    if len(given) != rank:
        raise ValueError(f"interpolate: {what} {list(given)} does not fit {rank} spatial axes")
    return list(given)


def _target(
    x: Tensor, size: Any, scale_factor: Any, again: bool | None, area: bool
) -> tuple[list[int], list[float | None]]:
    """(spatial sizes of the result, scale factors that the taps use)."""
    rank = x.ndim - 2
    if (size is None) == (scale_factor is None):
        raise ValueError("interpolate: give either size or scale_factor")
    if size is not None:
        if again:
            raise ValueError("interpolate: recompute_scale_factor is for a scale_factor")
        return [int(s) for s in _listed(size, rank, "size")], [None] * rank
    factors = [float(s) for s in _listed(scale_factor, rank, "scale_factor")]
    sizes = [int(x.shape[2 + k] * factors[k]) for k in range(rank)]
    return sizes, [None if again or area else s for s in factors]


@function(to="nn.functional")
def interpolate(
    input: Tensor, size: Any = None, scale_factor: Any = None, mode: str = "nearest",
    align_corners: bool | None = None, recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:  # fmt: skip
    """x [N, C, …] with other spatial sizes, given as they are or as factors.

    >>> import monograph as mg
    >>> mg.nn.functional.interpolate(mg.tensor([[[1.0, 2.0]]]), scale_factor=2).tolist()
    [[[1.0, 1.0, 2.0, 2.0]]]
    >>> mg.nn.functional.interpolate(mg.tensor([[[0.0, 2.0]]]), 3, mode="linear").tolist()
    [[[0.0, 1.0, 2.0]]]
    """
    rank = input.ndim - 2
    if mode not in _MODES or rank not in (1, 2, 3) or _RANKS.get(mode, rank) != rank:
        raise NotImplementedError(
            f"interpolate: mode {mode!r} does not take an input {list(input.shape)}; modes are "
            f"{', '.join(_MODES)}, the linear ones for one, two and three spatial axes"
        )
    if align_corners is not None and mode not in _RANKS:
        raise ValueError("interpolate: align_corners is for the linear and cubic modes")
    if antialias and mode not in ("bilinear", "bicubic"):
        raise ValueError("interpolate: antialias is for bilinear and bicubic")
    sizes, factors = _target(input, size, scale_factor, recompute_scale_factor, mode == "area")
    if min(sizes) <= 0 or 0 in input.shape[1:]:
        raise RuntimeError(
            f"interpolate: sizes must be greater than zero, input {list(input.shape)} to {sizes}"
        )
    if mode == "area":
        pools: Any = adaptive
        pooled: Tensor = getattr(pools, f"adaptive_avg_pool{rank}d")(input, tuple(sizes))
        return pooled
    kind = "cubic" if mode == "bicubic" else "linear" if mode in _RANKS else mode
    rules = [
        Rule(kind, input.shape[2 + k], sizes[k], bool(align_corners), factors[k], antialias)
        for k in range(rank)
    ]
    result: Tensor = resampled(input, tuple(rules))
    return result


@function(to="nn.functional")
def upsample(
    input: Tensor, size: Any = None, scale_factor: Any = None, mode: str = "nearest",
    align_corners: bool | None = None,
) -> Tensor:  # fmt: skip
    """An older name of interpolate.

    >>> import monograph as mg
    >>> mg.nn.functional.upsample(mg.zeros(1, 1, 2, 2), scale_factor=3).shape
    Size([1, 1, 6, 6])
    """
    return interpolate(input, size, scale_factor, mode, align_corners)  # type: ignore[no-any-return]


@function(to="nn.functional")
def upsample_nearest(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """interpolate to the nearest place.

    >>> import monograph as mg
    >>> mg.nn.functional.upsample_nearest(mg.tensor([[[1.0, 2.0]]]), 4).tolist()
    [[[1.0, 1.0, 2.0, 2.0]]]
    """
    return interpolate(input, size, scale_factor, mode="nearest")  # type: ignore[no-any-return]


@function(to="nn.functional")
def upsample_bilinear(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """interpolate linearly in two axes, from corner to corner.

    >>> import monograph as mg
    >>> mg.nn.functional.upsample_bilinear(mg.tensor([[[[0.0, 2.0]]]]), (1, 3)).tolist()
    [[[[0.0, 1.0, 2.0]]]]
    """
    return interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)  # type: ignore[no-any-return]
