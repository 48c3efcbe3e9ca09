"""Reading images and volumes at places that a tensor names: grid_sample and affine_grid."""

from __future__ import annotations

import itertools
from typing import Any

from ..ir import build
from ..ir.dtypes import int64
from ..ir.index import Read
from ..ir.node import axis, coordinates
from ..tensor import Tensor
from .define import function, operator
from .resample import CUBIC, _far, _near

f = build.functions
_MODES = ("bilinear", "nearest", "bicubic")
_PADDINGS = ("zeros", "border", "reflection")


def _unnormalised(x: Any, size: int, aligned: bool) -> Any:
    """Places from numbers between -1 and 1: middles of the outermost elements, or their edges."""
    if aligned:
        return (x + 1.0) * ((size - 1) / 2)
    return ((x + 1.0) * size - 1.0) * 0.5


def _reflected(x: Any, size: int, aligned: bool) -> Any:
    """Places thrown back at both ends, as often as it takes."""
    low, span = (0.0, size - 1) if aligned else (-0.5, size)
    if span <= 0:
        return x * 0.0
    far = f.abs(x - low)
    turns = f.floor(far / span)
    rest = far - turns * span
    even = f.eq(turns - f.floor(turns * 0.5) * 2.0, 0.0)
    return build.select(even, rest + low, span - rest + low)


def _bounded(x: Any, size: int, padding: str, aligned: bool) -> Any:
    """Places brought into the array, unless what lies outside is zero."""
    if padding == "reflection":
        x = _reflected(x, size, aligned)
    if padding == "zeros":
        return x
    last = size - 1  # on the border itself no derivative passes, as in PyTorch
    return build.select(x <= 0.0, 0.0, build.select(x >= last, last, x))


def _weights(x: Any, mode: str) -> tuple[Any, list[Any]]:
    """(the first of the neighbours of x, the weight of each)."""
    if mode == "nearest":
        return f.round(x), [build.full(x.shape, 1.0, x.dtype)]
    base = f.floor(x)
    t = x - base
    if mode == "bilinear":
        return base, [1.0 - t, t]
    weights = [_far(t + 1.0, CUBIC), _near(t, CUBIC), _near(1.0 - t, CUBIC)]
    return base - 1.0, [*weights, _far(2.0 - t, CUBIC)]


@operator(to=None, method=False, name="grid_sample")
def sampled(x: Tensor, grid: Tensor, mode: str, padding: str, aligned: bool) -> Any:
    """x [N, C, …] at the places grid [N, out…, coordinates], the last axis of x named first."""
    rank = x.ndim - 2
    _check(x, grid, rank, mode)
    places = grid.shape[:-1]
    shape = (places[0], x.shape[1], *places[1:])
    at = (axis(0, places[0]), *[axis(2 + k, e) for k, e in enumerate(places[1:])])
    axes: list[list[tuple[Any, Any, Any]]] = []  # for each axis its taps: place, weight, inside
    for k in range(rank):
        size = x.shape[2 + k]
        given = build.reindex(grid, places, (*coordinates(places), rank - 1 - k))
        source = _unnormalised(given, size, aligned)
        if mode != "bicubic":
            source = _bounded(source, size, padding, aligned)
        base, weights = _weights(source, mode)
        taps = []
        for t, weight in enumerate(weights):
            here = base + float(t)
            if mode == "bicubic":
                here = _bounded(here, size, padding, aligned)
            inside = getattr(f, "and")(here >= 0.0, here <= size - 1)
            kept = f.minimum(f.maximum(here, 0.0), size - 1)
            taps.append((build.cast(kept, int64), weight, inside))
        axes.append(taps)
    total: Any = None
    for corner in itertools.product(*axes):
        reads = tuple([tap[0] for tap in corner])
        place = [Read(k, at, x.shape[2 + k]) for k in range(rank)]
        value = build.reindex(x, shape, (axis(0, shape[0]), axis(1, shape[1]), *place), reads=reads)
        weight = corner[0][1]
        for tap in corner[1:]:
            weight = weight * tap[1]
        if padding == "zeros":
            for tap in corner:
                weight = build.select(tap[2], weight, 0.0)
        part = value * build.expand_dims(weight, [1])
        total = part if total is None else total + part
    return total


def _check(x: Any, grid: Any, rank: int, mode: str) -> None:
    if rank not in (2, 3) or grid.ndim != x.ndim or grid.shape[-1] != rank:
        raise ValueError(
            f"an input {list(x.shape)} and a grid {list(grid.shape)} do not fit: expected "
            "[N, C, H, W] and [N, …, 2], or [N, C, D, H, W] and [N, …, 3]"
        )
    if grid.shape[0] != x.shape[0]:
        raise ValueError(f"batches differ: input {x.shape[0]}, grid {grid.shape[0]}")
    if grid.dtype is not x.dtype or not x.dtype.is_floating_point:
        raise ValueError(f"expected floats of one dtype, got {x.dtype.name} and {grid.dtype.name}")
    if 0 in x.shape[2:]:
        raise ValueError(f"the input {list(x.shape)} has an empty spatial axis")
    if mode == "bicubic" and rank != 2:
        raise ValueError("bicubic is for inputs [N, C, H, W]")


@function(to="nn.functional")
def grid_sample(
    input: Tensor, grid: Tensor, mode: str = "bilinear", padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Tensor:  # fmt: skip
    """x read at the places of grid, whose numbers from -1 to 1 span each axis.

    >>> import monograph as mg
    >>> x = mg.tensor([[[[1.0, 3.0]]]])
    >>> mg.nn.functional.grid_sample(x, mg.tensor([[[[0.0, 0.0]]]])).tolist()
    [[[[2.0]]]]
    """
    if mode not in _MODES:
        raise ValueError(f"grid_sample: mode must be one of {', '.join(_MODES)}, got {mode!r}")
    if padding_mode not in _PADDINGS:
        raise ValueError(
            f"grid_sample: padding_mode must be one of {', '.join(_PADDINGS)}, got {padding_mode!r}"
        )
    result: Tensor = sampled(input, grid, mode, padding_mode, bool(align_corners))
    return result


@function(aliases=("grid_sampler_2d", "grid_sampler_3d"))
def grid_sampler(
    input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Tensor:
    """grid_sample with its modes as numbers: bilinear, nearest, bicubic; zeros, border, reflection.

    >>> import monograph as mg
    >>> mg.grid_sampler(mg.ones(1, 1, 2, 2), mg.zeros(1, 1, 1, 2), 0, 0, False).tolist()
    [[[[1.0]]]]
    """
    result: Tensor = sampled(
        input, grid, _MODES[interpolation_mode], _PADDINGS[padding_mode], bool(align_corners)
    )
    return result


def _line(shape: tuple[int, ...], along: int, steps: int, aligned: bool, dtype: Any) -> Any:
    """Even numbers from -1 to 1: of the elements' middles, or of those within the edges."""
    if steps <= 1:
        return build.full(shape, 0.0, dtype)
    number = build.cast(build.coordinate(shape, along), dtype)
    line = number * (2.0 / (steps - 1)) - 1.0
    return line if aligned else line * ((steps - 1) / steps)


@operator(to=None, method=False, name="affine_grid")
def grid_of(theta: Tensor, sizes: Any, aligned: bool) -> Any:
    """Places [N, …, coordinates] that the matrices theta make of an even grid."""
    n, rank = theta.shape[0], theta.shape[1]
    shape = (n, *sizes, rank)
    i = coordinates(shape)
    result: Any = None
    for k in range(rank + 1):
        part = build.reindex(theta, shape, (i[0], i[-1], k))
        if k < rank:  # the last axis comes first
            where = rank - k
            part = part * _line(shape, where, shape[where], aligned, theta.dtype)
        result = part if result is None else result + part
    return result


@function(to="nn.functional")
def affine_grid(theta: Tensor, size: Any, align_corners: bool | None = None) -> Tensor:
    """The grid for grid_sample that an affine map theta [N, 2, 3] or [N, 3, 4] makes.

    >>> import monograph as mg
    >>> theta = mg.tensor([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]])
    >>> mg.nn.functional.affine_grid(theta, (1, 1, 1, 2)).tolist()
    [[[[-0.5, 0.0], [0.5, 0.0]]]]
    """
    if not theta.is_floating_point():
        raise ValueError(f"affine_grid: theta must be floats, got {theta.dtype.name}")
    if len(size) not in (4, 5):
        raise NotImplementedError(f"affine_grid: size must have 4 or 5 numbers, got {list(size)}")
    rank = len(size) - 2
    if tuple(theta.shape) != (size[0], rank, rank + 1):
        raise ValueError(
            f"affine_grid: size {list(size)} needs theta [{size[0]}, {rank}, {rank + 1}], "
            f"got {list(theta.shape)}"
        )
    if min(size) <= 0:
        raise ValueError(f"affine_grid: sizes must be greater than zero, got {list(size)}")
    result: Tensor = grid_of(theta, tuple(size[2:]), bool(align_corners))
    return result


@function(to="")
def affine_grid_generator(theta: Tensor, size: Any, align_corners: bool) -> Tensor:
    """affine_grid under its other name.

    >>> import monograph as mg
    >>> mg.affine_grid_generator(mg.zeros(1, 2, 3), (1, 1, 2, 2), False).shape
    Size([1, 2, 2, 2])
    """
    return affine_grid(theta, size, align_corners)  # type: ignore[no-any-return]
