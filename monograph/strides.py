"""Strides of dense tensors: of contiguous ones, and of results that lie as their operands do.

PyTorch gives the result of an elementwise operator the order of axes that its operands have in
memory: the first operand that tells two axes apart decides, and a broadcast axis tells nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

Shape = tuple[int, ...]
Strides = tuple[int, ...]


def contiguous(shape: Shape) -> Strides:
    """The strides of a tensor whose last axis lies innermost.

    >>> contiguous((2, 3, 4))
    (12, 4, 1)
    """
    strides = []
    step = 1
    for extent in reversed(shape):
        strides.append(step)
        step *= max(extent, 1)
    return tuple(reversed(strides))


def follow(order: Sequence[int], shape: Shape, strides: Strides) -> bool:
    """Whether elements follow each other without gaps, axes in that order, outermost first."""
    expected = 1
    for k in reversed(order):
        if shape[k] != 1:
            if strides[k] != expected:
                return False
            expected *= shape[k]
    return True


def are_contiguous(shape: Shape, strides: Strides) -> bool:
    """Whether these strides are those of `contiguous`, where an axis has more than one place."""
    return 0 in shape or follow(range(len(shape)), shape, strides)


def in_order(order: Sequence[int], shape: Shape) -> Strides:
    """The strides of a dense tensor whose axes lie in that order, outermost first.

    >>> in_order((0, 2, 1), (2, 3, 4))
    (12, 1, 3)
    """
    strides, step = [0] * len(shape), 1
    for k in reversed(order):
        strides[k] = step
        step *= max(shape[k], 1)
    return tuple(strides)


def dense_like(shape: Shape, operands: Sequence[tuple[Shape, Strides]]) -> Strides:
    """The strides of an elementwise result of that shape.

    >>> dense_like((2, 3), [((2, 3), (1, 2))])
    (1, 2)
    >>> dense_like((2, 3), [((3,), (1,)), ((2, 3), (1, 20))])
    (1, 2)
    """
    if 0 in shape:
        return contiguous(shape)
    if all(own == shape for own, _ in operands):
        if all(are_contiguous(*each) for each in operands):
            return contiguous(shape)
        first = operands[0][1]
        if all(strides == first for _, strides in operands) and is_dense(shape, first):
            return first
    steps = [_broadcast(own, strides, shape) for own, strides in operands]
    return in_order(tuple(reversed(_innermost_first(shape, steps))), shape)


def is_dense(shape: Shape, strides: Strides) -> bool:
    """Whether the elements fill their memory, each place once, in whatever order of axes."""
    order = sorted(range(len(shape)), key=lambda k: (-strides[k], -shape[k]))
    return follow(order, shape, strides)


def suggest_channels_last(shape: Shape, strides: Strides) -> bool:
    """Whether images or volumes lie with axis 1 innermost; not if that is only one reading."""
    rank = len(shape)
    if rank not in (4, 5) or strides[1] == 0 or 0 in shape:
        return False
    least = 0
    for k in (1, *reversed(range(2, rank)), 0):
        if strides[k] < least or (k == 0 and least == strides[1]):
            return False
        least = strides[k] * max(shape[k], 1)
    return True


def channels_last(shape: Shape) -> Strides:
    """The dense strides with axis 1 innermost."""
    return in_order((0, *range(2, len(shape)), 1), shape)


def _broadcast(own: Shape, strides: Strides, shape: Shape) -> Strides:
    """The strides of an operand along the axes of the result: 0 where it is repeated."""
    lead = len(shape) - len(own)
    kept = [
        0 if n == 1 and shape[lead + k] != 1 else s
        for k, (n, s) in enumerate(zip(own, strides, strict=True))
    ]
    return (*[0] * lead, *kept)


def _innermost_first(shape: Shape, operands: Sequence[Strides]) -> list[int]:
    """The axes in the order in which memory is walked over: an insertion sort that knows ties."""
    order = list(reversed(range(len(shape))))
    for start in range(1, len(order)):
        here = start
        for before in reversed(range(start)):
            comparison = _compare(order[before], order[here], shape, operands)
            if comparison > 0:
                order[before], order[here] = order[here], order[before]
                here = before
            elif comparison < 0:
                break
    return order


def _compare(a: int, b: int, shape: Shape, operands: Sequence[Strides]) -> int:
    """1 if axis a lies outside of axis b, -1 if inside, 0 if no operand tells."""
    for strides in operands:
        if strides[a] == 0 or strides[b] == 0:
            continue
        if strides[a] != strides[b]:
            return 1 if strides[a] > strides[b] else -1
        if shape[a] > shape[b]:
            return 1
    return 0
