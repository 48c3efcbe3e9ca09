"""Pooling whose windows, or whose results, are placed by data: max_unpool, fractional_max_pool."""

from __future__ import annotations

from typing import Any

from .. import errors
from ..ir import build
from ..ir.dtypes import DType, int64
from ..ir.extent import is_one
from ..ir.index import Read, contiguous_strides
from ..ir.node import axis
from ..tensor import Tensor
from .define import function, operator
from .places import along
from .random import default_generator, uniform
from .window import batched, require_rank, spread, strides_of

f = build.functions


def _planes(x: Any) -> Any:
    """[N, C, …] as [N, C, places]."""
    count = 1
    for extent in x.shape[2:]:
        count *= extent
    return build.reshape(x, (*x.shape[:2], count))


@operator(to=None, method=False, name="max_unpool")
def _unpool(x: Tensor, indices: Tensor, sizes: Any) -> Any:
    """Zeros of that size, with each element of x at its flat place in its plane."""
    if indices.dtype is not int64:
        raise ValueError(f"the indices must be int64, got {indices.dtype.name}")
    if indices.shape != x.shape:
        raise ValueError(f"indices {list(indices.shape)} do not fit the input {list(x.shape)}")
    require_rank(x, len(sizes))
    if 0 in x.shape[-len(sizes) :]:
        raise ValueError(f"only the batch and channels may be empty, got {list(x.shape)}")
    x, restored = batched(x, len(sizes))
    indices, _ = batched(indices, len(sizes))
    target = build.full((*x.shape[:2], *sizes), 0, x.dtype)
    rows = _planes(target)
    written = along(rows, 2, _planes(indices)).write(rows, _planes(x))
    return restored(build.reshape(written, target.shape))


@_unpool.derivative
def _(g: Any, y: Any, x: Any, indices: Any, sizes: Any) -> Any:
    """Every element reads the place that it names, as in PyTorch also where two name the same."""
    rank = len(sizes)
    g, _ = batched(g, rank)
    where, _ = batched(indices, rank)
    read = along(_planes(g), 2, _planes(where)).read(_planes(g))
    return build.reshape(read, x.shape), None


def _unpooled(
    rank: int, x: Tensor, indices: Tensor, kernel_size: Any, stride: Any, padding: Any,
    output_size: Any,
) -> Tensor:  # fmt: skip
    kernel = spread(kernel_size, rank, "kernel_size")
    strides, pads = strides_of(stride, kernel), spread(padding, rank, "padding")
    inside = x.shape[-rank:]
    usual = [(inside[k] - 1) * strides[k] + kernel[k] - 2 * pads[k] for k in range(rank)]
    sizes = usual
    if output_size is not None:
        sizes = list(output_size)
        sizes = sizes[2:] if len(sizes) == rank + 2 else sizes
        if len(sizes) != rank:
            raise ValueError(f"max_unpool{rank}d: output_size needs {rank} or {rank + 2} numbers")
        for k in range(rank):
            if not usual[k] - strides[k] < sizes[k] < usual[k] + strides[k]:
                raise ValueError(
                    f"max_unpool{rank}d: output_size {sizes[k]} of axis {k} must be between "
                    f"{usual[k] - strides[k]} and {usual[k] + strides[k]}, both excluded"
                )
    if min(sizes) < 0:
        raise ValueError(f"max_unpool{rank}d: the result would have the size {sizes}")
    result: Tensor = _unpool(x, indices, tuple(sizes))
    return result


def _publish(rank: int) -> Any:
    """Declare max_unpool1d, max_unpool2d or max_unpool3d."""

    def max_unpool(
        input: Tensor, indices: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0,
        output_size: Any = None,
    ) -> Tensor:  # fmt: skip
        return _unpooled(rank, input, indices, kernel_size, stride, padding, output_size)

    max_unpool.__name__ = max_unpool.__qualname__ = name = f"max_unpool{rank}d"
    max_unpool.__doc__ = f"""The elements that max_pool{rank}d kept, back at their places; else 0.

    >>> import monograph as mg
    >>> import monograph.nn.functional as F
    >>> y, where = F.max_pool{rank}d(mg.ones(1, 1, *[4] * {rank}), 2, return_indices=True)
    >>> F.{name}(y, where, 2).sum().item()
    {2.0**rank}
    """
    return function(max_unpool, to="nn.functional")


max_unpool1d, max_unpool2d, max_unpool3d = map(_publish, (1, 2, 3))


# --- fractional max pooling ---------------------------------------------------------------------


def _starts(sample: Any, inside: int, size: int, kernel: int, dtype: DType) -> Any:
    """[N, C, size]: where each window begins, spread by one random number for each plane."""
    shape = (*sample.shape, size)
    last = inside - kernel
    if is_one(size):
        return build.full(shape, last, int64)
    step = build.const(last / (size - 1), dtype)
    u = build.broadcast_to(build.expand_dims(build.cast(sample, dtype), [2]), shape)
    number = build.coordinate(shape, 2)
    start = build.cast((build.cast(number, dtype) + u) * step, int64) - build.cast(u * step, int64)
    start = f.minimum(f.maximum(start, 0), last)
    return build.select(f.eq(number, size - 1), build.const(last, int64), start)


@operator(to=None, method=False, name="fractional_max_pool")
def _fractional(x: Tensor, samples: Tensor, kernel: Any, sizes: Any, return_indices: bool) -> Any:
    """The largest element of windows that begin at random, evenly spread places."""
    rank = len(kernel)
    require_rank(x, rank)
    for k in range(rank):
        inside = x.shape[k - rank]
        if kernel[k] < 1 or sizes[k] < 1 or sizes[k] + kernel[k] - 1 > inside:
            raise ValueError(f"{sizes[k]} windows of {kernel[k]} do not fit an axis of {inside}")
    x, restored = batched(x, rank)
    if samples.shape != (*x.shape[:2], rank):
        raise ValueError(f"expected samples {[*x.shape[:2], rank]}, got {list(samples.shape)}")
    starts = []
    for k in range(rank):
        drawn = rank - 1 - k if rank == 2 else k  # in two axes the columns' sample comes first
        sample = build.reindex(
            samples, x.shape[:2], (axis(0, x.shape[0]), axis(1, x.shape[1]), drawn)
        )
        starts.append(_starts(sample, x.shape[2 + k], sizes[k], kernel[k], x.dtype))
    shape = (*x.shape[:2], *sizes, *kernel)
    i = [axis(k, e) for k, e in enumerate(shape)]
    place = [
        Read(k, (i[0], i[1], i[2 + k]), x.shape[2 + k] - kernel[k] + 1) + i[2 + rank + k]
        for k in range(rank)
    ]
    seen = build.reindex(x, shape, (i[0], i[1], *place), reads=tuple(starts))
    axes = range(2 + rank, 2 + 2 * rank)
    values = restored(build.reduce("max", seen, axes))
    if not return_indices:
        return values
    first = build.reduce("argmax", seen, axes)
    flat: Any = None
    for k, below in enumerate(contiguous_strides(kernel)):
        digit = f.remainder(f.floordiv(first, below), kernel[k])
        gone = [j for j in range(2, 2 + rank) if j != 2 + k]
        at = build.broadcast_to(build.expand_dims(starts[k], gone), first.shape) + digit
        part = at * contiguous_strides(x.shape[2:])[k]
        flat = part if flat is None else flat + part
    return values, restored(flat)


def _fractional_pool(
    rank: int, x: Tensor, kernel_size: Any, output_size: Any, output_ratio: Any,
    return_indices: bool, samples: Any,
) -> Any:  # fmt: skip
    name = f"fractional_max_pool{rank}d"
    if (output_size is None) == (output_ratio is None):
        raise ValueError(f"{name} needs output_size or output_ratio")
    require_rank(x, rank)
    if output_size is None:
        ratios = spread(output_ratio, rank, "output_ratio")
        output_size = [int(x.shape[k - rank] * ratios[k]) for k in range(rank)]
    sizes = spread(output_size, rank, "output_size")
    if not x.dtype.is_floating_point:
        raise errors.OperandError(f"{name} is for floats, got {x.dtype.name}")
    if samples is None:
        batch = x.shape[0] if x.ndim == rank + 2 else 1
        shape = (batch, x.shape[-rank - 1], rank)
        samples = uniform(shape, x.dtype, *default_generator.draw(), 0.0, 1.0)
    kernel = spread(kernel_size, rank, "kernel_size")
    return _fractional(x, samples, kernel, sizes, return_indices)


def _publish_fractional(rank: int) -> Any:
    """Declare fractional_max_pool2d or fractional_max_pool3d."""

    def fractional_max_pool(
        input: Tensor, kernel_size: Any, output_size: Any = None, output_ratio: Any = None,
        return_indices: bool = False, _random_samples: Any = None,
    ) -> Any:  # fmt: skip
        return _fractional_pool(
            rank, input, kernel_size, output_size, output_ratio, return_indices, _random_samples
        )

    name = f"fractional_max_pool{rank}d"
    fractional_max_pool.__name__ = fractional_max_pool.__qualname__ = name
    fractional_max_pool.__doc__ = f"""The largest element of windows over {rank} axes of x.

    They begin at random, evenly spread places.

    >>> import monograph as mg
    >>> mg.nn.functional.{name}(mg.zeros(1, 2, *[7] * {rank}), 2, output_size=4).shape
    Size({[1, 2] + [4] * rank})
    """
    return function(fractional_max_pool, to="nn.functional")


fractional_max_pool2d, fractional_max_pool3d = map(_publish_fractional, (2, 3))
