"""Adaptive pooling: windows that share an axis of n places among o results.

Result i sees the places from ⌊i·n/o⌋ up to, not including, ⌈(i+1)·n/o⌉. The relation is symmetric:
place j is seen by the results that j would see if n and o changed places. So the transpose of
taking these windows is taking such windows again, and derivatives never scatter.
"""

from __future__ import annotations

import math
from typing import Any

from ..ir import build
from ..ir.dtypes import int64
from ..ir.index import Condition, contiguous_strides
from ..ir.node import axis
from ..tensor import Tensor
from .define import function, operator
from .window import batched, require_rank

f = build.functions


def _sizes(x: Any, output_size: Any, rank: int) -> tuple[int, ...]:
    """The spatial sizes of the result; None keeps an extent."""
    given = output_size if isinstance(output_size, (tuple, list)) else (output_size,) * rank
    if len(given) != rank:
        raise ValueError(f"output_size must be one number or {rank}, got {list(given)}")
    kept = x.shape[-rank:]
    sizes = tuple([int(kept[k]) if size is None else int(size) for k, size in enumerate(given)])
    if min(sizes) < 0:
        raise ValueError(f"output_size must not be negative, got {list(sizes)}")
    require_rank(x, rank)
    if 0 in x.shape[-rank:]:
        raise ValueError(f"an axis to pool is empty: {list(x.shape)}")
    return sizes


def _longest(n: int, o: int) -> int:
    """The longest window."""
    if n % o == 0:
        return n // o
    period = o // math.gcd(n, o)
    return max(-(-(i + 1) * n // o) - i * n // o for i in range(period))


def shared_windows(x: Any, sizes: tuple[int, ...], fill: Any) -> Any:
    """[N, C, out…, window…]: what each result sees of x, `fill` beyond the end of its window."""
    rank = len(sizes)
    inside = x.shape[2:]
    longest = [_longest(n, max(o, 1)) for n, o in zip(inside, sizes, strict=True)]
    shape = (*x.shape[:2], *sizes, *longest)
    i = [axis(k, e) for k, e in enumerate(shape)]
    place, guard = [], []
    for k, (n, o) in enumerate(zip(inside, sizes, strict=True)):
        start = i[2 + k] * n // max(o, 1)
        place.append(start + i[2 + rank + k])
        if n % max(o, 1):
            end = (i[2 + k] * n + n + o - 1) // o
            guard.append(Condition(end - 1 - place[k], False))
    return build.reindex(x, shape, (i[0], i[1], *place), tuple(guard), fill)


def _window_axes(rank: int) -> range:
    return range(2 + rank, 2 + 2 * rank)


@operator(to=None, method=False)
def shared_sum(x: Tensor, sizes: Any) -> Any:
    """The sum of what each result sees of x [N, C, …]."""
    return build.reduce("add", shared_windows(x, sizes, 0), _window_axes(len(sizes)))


@shared_sum.derivative
def _(g: Any, y: Any, x: Any, sizes: Any) -> Any:
    return (shared_sum(g, x.shape[2:]),)


def _mean(rank: int, x: Any, output_size: Any) -> Any:
    sizes = _sizes(x, output_size, rank)
    x, restored = batched(x, rank)
    total = shared_sum(x, sizes)
    number: Any = build.const(1, int64)
    for k, (n, o) in enumerate(zip(x.shape[2:], sizes, strict=True)):
        if o == 0 or n % o == 0:
            number = number * (n // max(o, 1))
        else:
            i = build.coordinate(total.shape, 2 + k)
            number = number * (f.floordiv(i * n + (n + o - 1), o) - f.floordiv(i * n, o))
    return restored(total / build.cast(number, x.dtype))


def _chosen(x: Any, sizes: tuple[int, ...]) -> Any:
    """Flat places of the largest element that each result sees."""
    rank = len(sizes)
    seen = shared_windows(x, sizes, build.lowest(x.dtype))
    first = build.reduce("argmax", seen, _window_axes(rank))
    flat: Any = None
    for k, below in enumerate(contiguous_strides(seen.shape[2 + rank :])):
        n, o = x.shape[2 + k], max(sizes[k], 1)
        digit = f.remainder(f.floordiv(first, below), max(seen.shape[2 + rank + k], 1))
        at = f.floordiv(build.coordinate(first.shape, 2 + k) * n, o) + digit
        part = at * contiguous_strides(x.shape[2:])[k]
        flat = part if flat is None else flat + part
    return flat


@operator(to=None, method=False)
def shared_max(x: Tensor, sizes: Any) -> Any:
    """The largest element that each result sees of x [N, C, …]."""
    seen = shared_windows(x, sizes, build.lowest(x.dtype))
    return build.reduce("max", seen, _window_axes(len(sizes)))


@shared_max.derivative
def _(g: Any, y: Any, x: Any, sizes: Any) -> Any:
    """Each place asks the results that see it whether it is the one that they chose."""
    inside = x.shape[2:]
    came = shared_windows(g, inside, 0)
    chosen = shared_windows(_chosen(x, sizes), inside, -1)
    here: Any = None
    for k, step in enumerate(contiguous_strides(inside)):
        part = build.coordinate(came.shape, 2 + k) * step
        here = part if here is None else here + part
    return (
        build.reduce("add", build.select(f.eq(chosen, here), came, 0.0), _window_axes(y.ndim - 2)),
    )


def _largest(rank: int, x: Any, output_size: Any, return_indices: bool) -> Any:
    sizes = _sizes(x, output_size, rank)
    x, restored = batched(x, rank)
    values = restored(shared_max(x, sizes))
    return (values, restored(_chosen(x, sizes))) if return_indices else values


# --- for each number of spatial axes ------------------------------------------------------------

_AXES = {1: "L", 2: "H, W", 3: "D, H, W"}


def _publish_mean(rank: int) -> Any:
    """Declare adaptive_avg_pool1d, adaptive_avg_pool2d or adaptive_avg_pool3d."""

    def adaptive_avg_pool(x: Tensor, output_size: Any) -> Any:
        return _mean(rank, x, output_size)

    adaptive_avg_pool.__name__ = name = f"adaptive_avg_pool{rank}d"
    adaptive_avg_pool.__doc__ = f"""The mean over windows of x [N, C, {_AXES[rank]}].

    There are as many windows as output_size says; None keeps a size.

    >>> import monograph as mg
    >>> mg.nn.functional.{name}(mg.ones(1, 2, *[5] * {rank}), 2).shape
    Size({[1, 2] + [2] * rank})
    """
    to = ("", "nn.functional") if rank == 1 else "nn.functional"
    return operator(adaptive_avg_pool, to=to, method=False)


def _publish_max(rank: int) -> Any:
    """Declare adaptive_max_pool1d, adaptive_max_pool2d or adaptive_max_pool3d."""

    def adaptive_max_pool(x: Tensor, output_size: Any, return_indices: bool = False) -> Any:
        return _largest(rank, x, output_size, return_indices)

    adaptive_max_pool.__name__ = name = f"adaptive_max_pool{rank}d"
    adaptive_max_pool.__doc__ = f"""The largest element of windows of x [N, C, {_AXES[rank]}].

    There are as many windows as output_size says; None keeps a size.

    >>> import monograph as mg
    >>> mg.nn.functional.{name}(mg.ones(1, 2, *[5] * {rank}), 2).shape
    Size({[1, 2] + [2] * rank})
    """
    return operator(adaptive_max_pool, to="nn.functional", method=False)


adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d = map(_publish_mean, (1, 2, 3))
adaptive_max_pool1d, adaptive_max_pool2d, adaptive_max_pool3d = map(_publish_max, (1, 2, 3))


def _saved(kinds: Any, attributes: Any) -> Any:
    """PyTorch takes a single window for a mean, which saves nothing."""
    sizes = attributes[0] if isinstance(attributes[0], tuple) else (attributes[0],)
    return {"x": ()} if all(size == 1 for size in sizes) else {"x": ("x",)}


for _made in (adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d):
    _made.operator.saves = _saved


for _made in (adaptive_max_pool1d, adaptive_max_pool2d, adaptive_max_pool3d):
    _made.operator.saves = {"x": ("x",)}
for _made in (adaptive_avg_pool2d, adaptive_avg_pool3d, adaptive_max_pool2d, adaptive_max_pool3d):
    _made.operator.lies = "images"


@function(name="adaptive_max_pool1d")
def _adaptive_max_pool1d(input: Tensor, output_size: Any) -> Any:
    """Adaptive max pooling with its indices."""
    return adaptive_max_pool1d(input, output_size, True)
