"""Products of matrices and random bits in a few NumPy calls, for closures.

`reference.py` defines what a contraction and a draw mean, and works out how at each call. Programs
that are interpreted make thousands of small ones. Here that is worked out once per node, and what
is left is a function of the operands.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from .index import Expr, Var
from .node import Node, Shape
from .philox import KEY_STEPS, MULTIPLIERS, ROUNDS, WORD

Function = Callable[..., Any]

# --- products -----------------------------------------------------------------------------------


def product_of(node: Node) -> Function | None:
    """A Contract as one `matmul`; None if it is none, or not of floats that NumPy has."""
    domain, fo, fa, fb = node.attributes
    a, b = node.inputs
    if node.dtype.is_half or not node.dtype.is_floating_point or 0 in domain:
        return None
    out, left, right = (
        _axes_of(*pair) for pair in ((fo, node.shape), (fa, a.shape), (fb, b.shape))
    )
    if out is None or left is None or right is None:
        return None
    batch = [v for v in out if v in left and v in right]
    rows = [v for v in out if v in left and v not in right]
    columns = [v for v in out if v in right and v not in left]
    summed = [v for v in left if v in right and v not in out]
    used = {*batch, *rows, *columns, *summed}
    if used != {*out, *left, *right} or math.prod([v.extent for v in used]) != math.prod(domain):
        return None  # an operand is summed by itself, or a coordinate is in no map
    turn_a = _turned(left, batch, rows, summed)
    turn_b = _turned(right, batch, summed, columns)
    made = [*batch, *rows, *columns]
    middle = tuple([v.extent for v in made])
    order = tuple([made.index(v) for v in out])
    in_order = order == tuple(range(len(order)))
    shape, matmul = node.shape, np.matmul

    def product(x: Any, y: Any) -> Any:
        found = matmul(turn_a(x), turn_b(y)).reshape(middle)
        return (found if in_order else found.transpose(order)).reshape(shape)

    return product


def _axes_of(where: Sequence[Expr], shape: Shape) -> list[Var] | None:
    """The coordinate of each axis that has more than one place; None if one is no coordinate."""
    found: list[Var] = []
    for e, extent in zip(where, shape, strict=True):
        if extent == 1 and e.lo == 0 and e.hi == 0:
            continue
        if not isinstance(e, Var) or e.extent != extent or e in found:
            return None
        found.append(e)
    return found


def _turned(axes: list[Var], batch: list[Var], first: list[Var], second: list[Var]) -> Function:
    """An operand as matrices of first × second, one for each place of the batch."""
    order = tuple([axes.index(v) for v in (*batch, *first, *second)])
    plain = tuple([v.extent for v in axes])
    shape = tuple([v.extent for v in batch])
    shape += tuple([math.prod([v.extent for v in part]) for part in (first, second)])
    if order == tuple(range(len(order))):
        return lambda x: x.reshape(shape)
    return lambda x: x.reshape(plain).transpose(order).reshape(shape)


# --- random bits ----------------------------------------------------------------------------------

_FACTORS = np.array(MULTIPLIERS, np.uint64).reshape(2, 1)
_STEPS = np.arange(ROUNDS, dtype=np.uint64).reshape(ROUNDS, 1, 1) * np.array(
    KEY_STEPS, np.uint64
).reshape(2, 1)
_WORD, _HALF = np.uint64(WORD), np.uint64(32)


def bits_of(node: Node) -> Function:
    """A Random as a function of seed and offset.

    Philox works on four words; here the first and third are two rows of one array, and so are the
    others, so that a round is five calls.
    """
    size, shape = node.size, node.shape
    blocks = -(-size // 64)
    counter = np.arange(blocks * 16, dtype=np.uint64)

    def bits(seed: Any, offset: Any) -> Any:
        at = int(offset) & 0xFFFFFFFFFFFFFFFF
        words = np.empty((2, len(counter)), np.uint64)
        others = np.empty((2, len(counter)), np.uint64)
        words[0], words[1] = counter & _WORD, at & WORD
        others[0], others[1] = counter >> _HALF, at >> 32
        for key in _keys(int(seed) & 0xFFFFFFFFFFFFFFFF):
            product = words * _FACTORS
            words = (product >> _HALF)[::-1] ^ others ^ key
            others = (product & _WORD)[::-1]
        made = np.stack((words[0], others[0], words[1], others[1]))
        turned = made.reshape(4, blocks, 16).transpose(1, 0, 2).reshape(-1)
        return turned[:size].astype(np.uint32).reshape(shape)

    return bits


@lru_cache(maxsize=64)
def _keys(seed: int) -> Any:
    """The two words of the key in each round."""
    key = np.array([seed & WORD, seed >> 32], np.uint64).reshape(2, 1)
    return (_STEPS + key) & _WORD
