"""Windows: what convolution and pooling have in common.

A window moves over the spatial axes of x [N, C, …], or [C, …] for one example. Sizes, strides,
padding and dilation are one number for all spatial axes or one for each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..ir import build, index
from ..ir.node import axis


def spread(value: Any, rank: int, what: str = "a size") -> tuple[Any, ...]:
    """One number for every spatial axis, or one each."""
    if not isinstance(value, (tuple, list)):
        return (value,) * rank
    if len(value) == 1:
        return (value[0],) * rank
    if len(value) != rank:
        raise ValueError(f"{what} must be one number or {rank}, got {list(value)}")
    return tuple(value)


def strides_of(stride: Any, kernel: tuple[int, ...]) -> tuple[int, ...]:
    """The strides of a pooling: those given, or the window's own size."""
    return kernel if stride is None or stride == () else spread(stride, len(kernel), "stride")


def window_count(size: int, kernel: int, stride: int, pad: int, dilation: int, up: bool) -> int:
    """How many windows an axis has; with `up` the last may reach beyond the padding."""
    span = size + 2 * pad - dilation * (kernel - 1) - 1
    result = (-(-span // stride) if up else span // stride) + 1
    if up and (result - 1) * stride >= size + pad:
        result -= 1  # a window must start inside the input or its left padding
    if result <= 0:
        raise ValueError(f"a window of {kernel} does not fit an axis of {size} padded by {pad}")
    return result


def require_positive(values: Sequence[int], what: str) -> None:
    """ValueError unless all are greater than zero."""
    if min(values, default=1) <= 0:
        raise ValueError(f"{what} must be greater than zero, got {list(values)}")


def check_pooling(
    x: Any, kernel: Sequence[int], strides: Sequence[int], pads: Sequence[int],
    dilations: Sequence[int],
) -> None:  # fmt: skip
    """What every pooling requires of its input and of its windows."""
    rank = len(kernel)
    require_rank(x, rank)
    if 0 in x.shape[-rank - 1 :]:
        raise ValueError(f"only the batch may be empty, got an input {list(x.shape)}")
    for values, what in ((kernel, "kernel_size"), (strides, "stride"), (dilations, "dilation")):
        require_positive(values, what)
    for k, pad in enumerate(pads):
        reach = dilations[k] * (kernel[k] - 1) + 1
        if pad < 0 or 2 * pad > reach:
            raise ValueError(
                f"padding must be non-negative and at most half of the window of {reach}, got {pad}"
            )


def require_rank(x: Any, rank: int) -> None:
    """ValueError unless x is [C, …] or [N, C, …] with that many spatial axes."""
    if x.ndim not in (rank + 1, rank + 2):
        raise ValueError(f"expected an input of {rank + 1} or {rank + 2} axes, got {list(x.shape)}")


def batched(x: Any, rank: int) -> tuple[Any, Callable[[Any], Any]]:
    """(x with a batch axis, what takes that axis from a result again)."""
    if x.ndim == rank + 2:
        return x, lambda y: y
    return build.reshape(x, (1, *x.shape)), lambda y: build.reshape(y, y.shape[1:])


def windows(
    x: Any, kernel: Sequence[int], strides: Sequence[int], pads: Sequence[int],
    dilations: Sequence[int], fill: Any, up: bool = False,
) -> Any:  # fmt: skip
    """[N, C, out…, kernel…]: every window of x, `fill` where it reaches into the padding."""
    rank = len(kernel)
    sizes = [
        window_count(x.shape[2 + k], kernel[k], strides[k], pads[k], dilations[k], up)
        for k in range(rank)
    ]
    shape = (*x.shape[:2], *sizes, *kernel)
    i = [axis(k, e) for k, e in enumerate(shape)]
    reads = [i[2 + k] * strides[k] + i[2 + rank + k] * dilations[k] - pads[k] for k in range(rank)]
    guard = tuple(c for k in range(rank) for c in index.within(reads[k], x.shape[2 + k]))
    return build.reindex(x, shape, (i[0], i[1], *reads), guard, fill)
