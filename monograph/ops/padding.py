"""Padding in every mode, and windows of images as columns: unfold and fold."""

from __future__ import annotations

from typing import Any

from .. import errors
from ..ir import build, index
from ..ir.index import Condition
from ..ir.node import axis, coordinates
from ..tensor import Tensor
from ..transform.derivative import vjp
from . import math, shape
from .define import function, operator
from .views import integer, sizes_of


@operator(to=None, method=False)
def pad_constant(x: Tensor, pads: tuple[int, ...], value: float = 0.0) -> Any:
    """x with `value` around it; pads are (before, after) pairs from the last axis on."""
    if len(pads) % 2 or len(pads) // 2 > x.ndim:
        raise ValueError(f"padding {list(pads)} needs a pair for at most {x.ndim} axes")
    sizes = list(x.shape)
    where: list[Any] = []
    before = [0] * x.ndim
    for n in range(len(pads) // 2):
        k = x.ndim - 1 - n
        before[k] = pads[2 * n]
        sizes[k] += pads[2 * n] + pads[2 * n + 1]
        if sizes[k] < 0:
            raise ValueError(f"padding {list(pads)} leaves axis {k} with a negative size")
    guard: tuple[Any, ...] = ()
    for k, extent in enumerate(sizes):
        where.append(axis(k, extent) - before[k])
        guard += index.within(where[k], x.shape[k])
    fill = build.exact(value, x.dtype)
    return build.reindex(x, tuple(sizes), where, guard, fill)


@function
def constant_pad_nd(input: Tensor, pad: Any, value: float = 0) -> Tensor:
    """x with a number around it; pad has (before, after) pairs from the last axis on.

    >>> import monograph as mg
    >>> mg.constant_pad_nd(mg.tensor([1, 2]), (1, 0), 9).tolist()
    [9, 1, 2]
    """
    return pad_constant(input, sizes_of((pad,)), value)


# --- what lies around is taken from x itself ----------------------------------------------------


@operator(to=None, method=False)
def pad_axis(x: Tensor, dim: int, before: int, after: int, mode: str) -> Any:
    """x with places of its own before and after it along an axis."""
    k, n = dim, x.shape[dim]
    out = (*x.shape[:k], n + before + after, *x.shape[k + 1 :])
    where: list[Any] = list(coordinates(out))
    place = where[k] - before
    if mode == "circular":
        place = (place + n) % n
    elif mode == "replicate":
        place = index.minimum(index.maximum(place, 0), n - 1)
    else:
        beyond = index.maximum(place, index.wrap(0) - place)
        place = index.minimum(beyond, index.wrap(2 * (n - 1)) - beyond)
        place = index.minimum(index.maximum(place, 0), n - 1)  # which it is: this shows it
    where[k] = place
    return build.reindex(x, out, where)


pad_axis.operator.saves = lambda kinds, attributes: (
    {"x": ("x",)} if attributes[-1] in ("reflect", "replicate") else {"x": ()}
)


@pad_axis.derivative
def _(g: Any, y: Any, x: Any, dim: int, before: int, after: int, mode: str) -> Any:
    """Each place collects where it was copied to: three reads, where inverting would scatter."""
    k, n = dim, x.shape[dim]
    here = axis(k, n)

    def read(rows: Any, place: Any, *guard: Condition) -> Any:
        where: list[Any] = list(coordinates(x.shape))
        where[k] = place
        return build.reindex(rows, x.shape, where, guard)

    if mode == "replicate":
        length = n + before + after
        below = min(max(before + 1, 0), length)  # how many places show the first element
        above = min(max(n - 1 + before, 0), length)  # from where on they show the last one
        inside = (Condition(here - 1), Condition(n - 2 - here))
        total = read(g, here + before, *inside, *index.within(here + before, length))
        ends = ((0, below, 0), (above, length, n - 1)) if n > 1 else ((0, length, 0),)
        for start, end, at in ends:
            edge = build.reduce("add", shape.narrow(g, k, start, end - start), (k,), True)
            total = total + read(edge, 0, Condition(here - at, True))
        return (total,)
    total = read(g, here + before)
    if mode == "circular":
        ends = ((here - (n - before), here - (n - before)), (here + before + n, after - 1 - here))
        for place, inside in ends:
            total = total + read(g, place, Condition(index.wrap(inside)))
        return (total,)
    first, last = before - here, before + 2 * (n - 1) - here
    left = (Condition(here - 1), Condition(index.wrap(first)))
    right = (Condition(here - (n - 1 - after)), Condition(n - 2 - here))
    return (total + read(g, first, *left) + read(g, last, *right),)


def _pad_around(x: Tensor, pads: tuple[int, ...], mode: str) -> Tensor:
    axes = len(pads) // 2
    if len(pads) % 2 or not 1 <= axes <= 3 or x.ndim not in (axes + 1, axes + 2):
        raise NotImplementedError(
            f"pad: mode {mode!r} takes 1 to 3 pairs for a tensor with one or two axes more; got "
            f"{len(pads)} numbers for {x.ndim} axes"
        )
    if 0 in x.shape[x.ndim - axes - 1 :]:
        raise errors.OperandError(f"pad: axes of size 0 in {list(x.shape)} cannot be padded")
    fresh = False
    for n in range(axes):
        k, (before, after) = x.ndim - 1 - n, pads[2 * n : 2 * n + 2]
        extent = x.shape[k]
        if extent + before + after <= 0:
            raise errors.OperandError(f"pad: axis {k} of size {extent} would have no place left")
        most = {"reflect": extent - 1, "circular": extent}.get(mode)
        if most is not None and max(before, after) > most:
            raise errors.OperandError(
                f"pad: mode {mode!r} takes at most {most} places for axis {k} of size {extent}"
            )
        if mode != "replicate" and (before < 0 or after < 0):
            first, beyond = max(-before, 0), max(-after, 0)
            x = shape.narrow(x, k, first, extent - first - beyond)
            before, after = max(before, 0), max(after, 0)
            fresh = False
        if before or after:
            x, fresh = pad_axis(x, k, before, after, mode), True
    return x if fresh else math.clone(x)  # nobody shares what is returned


@function(to="nn.functional")
def pad(input: Tensor, pad: Any, mode: str = "constant", value: float | None = None) -> Tensor:
    """x with something around it; pad has (before, after) pairs from the last axis on.

    >>> import monograph as mg
    >>> mg.nn.functional.pad(mg.tensor([[1, 2, 3]]), (2, 1), mode="reflect").tolist()
    [[3, 2, 1, 2, 3, 2]]
    """
    pads = sizes_of((pad,))
    if mode == "constant":
        return pad_constant(input, pads, 0.0 if value is None else value)
    if mode not in ("reflect", "replicate", "circular"):
        raise NotImplementedError(f"pad: there is no mode {mode!r}")
    if value not in (None, 0):
        raise errors.OperandError(f"pad: mode {mode!r} takes no value")
    return _pad_around(input, pads, mode)


# --- windows of images as columns ---------------------------------------------------------------

Pair = tuple[int, int]


def _pair(value: Any) -> Pair:
    if isinstance(value, (tuple, list)):
        first, last = (integer(v) for v in (value if len(value) == 2 else value * 2))
        return first, last
    return integer(value), integer(value)


@operator(to=None, method=False)
def columns(x: Tensor, size: Pair, dilation: Pair, padding: Pair, stride: Pair) -> Any:
    """out[n, c·kh·kw, places] of an image x[n, c, h, w]."""
    n, channels = x.shape[:2]
    counts = [
        (extent + 2 * p - d * (s - 1) - 1) // step + 1
        for extent, s, d, p, step in zip(x.shape[2:], size, dilation, padding, stride, strict=True)
    ]
    if min(counts) < 1:
        raise ValueError(f"the window {list(size)} is larger than the image {list(x.shape[2:])}")
    out = (n, channels, *size, *counts)
    at = coordinates(out)
    places = [at[4 + k] * stride[k] + at[2 + k] * dilation[k] - padding[k] for k in (0, 1)]
    guard = index.within(places[0], x.shape[2]) + index.within(places[1], x.shape[3])
    made = build.reindex(x, out, [at[0], at[1], *places], guard)
    return build.reshape(made, (n, channels * size[0] * size[1], counts[0] * counts[1]))


@operator(to=None, method=False)
def images(x: Tensor, output: Pair, size: Pair, dilation: Pair, padding: Pair, stride: Pair) -> Any:
    """The transpose of `columns`: every element is added at the place that it came from."""
    channels = x.shape[1] // (size[0] * size[1])
    image = build.buffer(-1, (x.shape[0], channels, *output), x.dtype)
    taken = columns(image, size, dilation, padding, stride)
    if taken.shape != x.shape:
        raise ValueError(
            f"for an image of {list(output)} the columns are {list(taken.shape[1:])}, "
            f"not {list(x.shape[1:])}"
        )
    (made,) = vjp([taken], [x], [image])
    return build.full(image.shape, 0, x.dtype) if made is None else made


def _check_windows(name: str, **given: Pair) -> None:
    for what, pair in given.items():
        least = 0 if what == "padding" else 1
        if min(pair) < least:
            raise errors.OperandError(f"{name}: {what} must be at least {least}, got {list(pair)}")


@function(to="nn.functional")
def unfold(
    input: Tensor, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
) -> Tensor:
    """The windows of images as columns: (n, c·kh·kw, number of windows).

    >>> import monograph as mg
    >>> mg.nn.functional.unfold(mg.arange(4.0).reshape(1, 1, 2, 2), (1, 2)).tolist()
    [[[0.0, 2.0], [1.0, 3.0]]]
    """
    size, apart, around, step = _pair(kernel_size), _pair(dilation), _pair(padding), _pair(stride)
    _check_windows("unfold", kernel_size=size, dilation=apart, padding=around, stride=step)
    if input.ndim not in (3, 4):
        raise errors.OperandError(f"unfold: expected a 3D or 4D image, got {input.ndim}D")
    if 0 in input.shape[input.ndim - 3 :]:
        raise errors.OperandError(f"unfold: an image of shape {list(input.shape)} has no elements")
    batch = input if input.ndim == 4 else shape.unsqueeze(input, 0)
    made: Tensor = columns(batch, size, apart, around, step)
    return made if input.ndim == 4 else shape.squeeze(made, 0)


@function(to="nn.functional")
def fold(
    input: Tensor, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0,
    stride: Any = 1,
) -> Tensor:  # fmt: skip
    """Images from columns: every element is added at the place of its window.

    >>> import monograph as mg
    >>> mg.nn.functional.fold(mg.ones(1, 2, 2), (1, 3), (1, 2)).tolist()
    [[[[1.0, 2.0, 1.0]]]]
    """
    size, apart, around, step = _pair(kernel_size), _pair(dilation), _pair(padding), _pair(stride)
    output = _pair(output_size)
    _check_windows(
        "fold", output_size=output, kernel_size=size, dilation=apart, padding=around, stride=step
    )
    if input.ndim not in (2, 3) or 0 in input.shape[input.ndim - 2 :]:
        raise errors.OperandError(f"fold: expected 2D or 3D columns, got {list(input.shape)}")
    if input.shape[-2] % (size[0] * size[1]):
        raise errors.OperandError(
            f"fold: {input.shape[-2]} rows are no multiple of the window's {size[0] * size[1]}"
        )
    batch = input if input.ndim == 3 else shape.unsqueeze(input, 0)
    made: Tensor = images(batch, output, size, apart, around, step)
    return made if input.ndim == 3 else shape.squeeze(made, 0)
