"""Pieces of one array that lie in even steps are one view of it.

`x[:, 0]`, `x[:, 1]`, `x[:, 2]`, … read the same array at places that differ by a constant. One
behind the other they are a Reindex of that array with one more axis, and nothing needs to be
copied: the steps of a sequence, and what a loop has stacked. Small vectors from outside, such as a
constant that each turn of a loop makes anew, are cheap enough to be copied.
"""

from __future__ import annotations

from collections.abc import Sequence

from . import build, index
from .extent import Extent
from .index import Expr
from .node import Buffer, Node, Reindex, Shape, axis, coordinates

SMALL = 1 << 10  # elements of a vector that is copied to lie beside others
MOST = 1 << 8  # such vectors: the copy looks at all of them for each


def in_steps(pieces: Sequence[Node]) -> Node | None:
    """The pieces along a new first axis, as a view of what they are pieces of; None if not."""
    first = pieces[0]
    if len(pieces) < 2 or 0 in first.shape:
        return None
    if not all(_is_piece(piece, first) for piece in pieces):
        return None
    count = len(pieces)
    up: dict[Expr, Expr] = {axis(k, n): axis(k + 1, n) for k, n in enumerate(first.shape)}
    where: list[Expr] = []
    for k in range(len(first.inputs[0].shape)):
        places = [index.split(piece.index[k]) for piece in pieces if isinstance(piece, Reindex)]
        start, terms = places[0]
        if any(isinstance(here, Extent) for here, _ in places):
            return None
        step = places[1][0] - start
        for n, (here, varying) in enumerate(places):
            if here != start + n * step or varying != terms:
                return None
        moved = index.substitute(pieces[0].index[k], up)  # type: ignore[attr-defined]
        where.append(moved + axis(0, count) * step)
    return build.reindex(first.inputs[0], (count, *first.shape), where)


def joined(pieces: Sequence[Node]) -> Node | None:
    """Vectors from outside along a new first axis, as a copy; None if they are not small and alike.

    Matrices are left where they are: most are the weights of layers.
    """
    first = pieces[0]
    if any(isinstance(n, Extent) for n in first.shape) or first.size > SMALL:
        return None
    if len(pieces) > MOST or first.size > max(first.shape, default=1):
        return None
    for piece in pieces:
        if not isinstance(piece, Buffer) or piece.shape != first.shape:
            return None
        if piece.dtype is not first.dtype:
            return None
    return _joined(pieces, 0, (len(pieces), *first.shape))


def _joined(pieces: Sequence[Node], start: int, shape: Shape) -> Node:
    """An array that has the pieces from place `start` on."""
    if len(pieces) == 1:
        return build.reindex(pieces[0], shape, list(coordinates(shape))[1:])
    half = len(pieces) // 2
    before = build.coordinate(shape, 0) < start + half
    left = _joined(pieces[:half], start, shape)
    return build.select(before, left, _joined(pieces[half:], start + half, shape))


def are_apart(steps: Node) -> bool:
    """Whether no two of the pieces that `in_steps` joined have an element in common."""
    if not isinstance(steps, Reindex):
        return True  # the pieces of all of an array, in order
    turn = axis(0, steps.shape[0])
    return any(list(index.split(place)[1]) == [turn] for place in steps.index)


def beside(pieces: Sequence[Node], along: int) -> Node | None:
    """The pieces one after the other along an axis, as such a view."""
    steps = in_steps(pieces)
    if steps is None:
        return None
    shape = list(pieces[0].shape)
    extent = shape[along]
    shape[along] *= len(pieces)
    where: list[Expr] = list(coordinates(shape))
    piece, where[along] = where[along] // extent, where[along] % extent
    return build.reindex(steps, tuple(shape), [piece, *where])


def _is_piece(piece: Node, first: Node) -> bool:
    if not isinstance(piece, Reindex) or piece.guard or len(piece.inputs) != 1:
        return False
    return piece.shape == first.shape and piece.inputs[0] is first.inputs[0]
