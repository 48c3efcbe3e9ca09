"""`torch.nn.attention`: the choice between ways of computing attention; all give the same."""

from __future__ import annotations

import contextlib
import enum
from collections.abc import Iterator
from typing import Any

import monograph as mg

from ...tensor import Tensor


class SDPBackend(enum.IntEnum):
    """Ways of computing attention."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4


@contextlib.contextmanager
def sdpa_kernel(backends: Any = None, set_priority: bool = False) -> Iterator[None]:
    """Choose a way within the block; the compiler's own is used."""
    yield


class BlockMask:
    """The blocks of an attention matrix that are computed; libraries ask whether they have one."""


class CausalVariant(enum.IntEnum):
    """Which corner of the attention matrix its diagonal starts from."""

    UPPER_LEFT = 1
    LOWER_RIGHT = 2


def causal_upper_left(*size: int) -> Tensor:
    """The mask of attention to what is not later: query i sees the keys up to i.

    >>> causal_upper_left(2, 3).int().tolist()
    [[1, 0, 0], [1, 1, 0]]
    """
    return mg.ones(size, dtype=mg.bool).tril()


def causal_lower_right(*size: int) -> Tensor:
    """The same where the last query sees all keys.

    >>> causal_lower_right(2, 3).int().tolist()
    [[1, 1, 0], [1, 1, 1]]
    """
    return mg.ones(size, dtype=mg.bool).tril(size[1] - size[0])


BIAS = {
    "CausalVariant": CausalVariant, "causal_lower_right": causal_lower_right,
    "causal_upper_left": causal_upper_left,
}  # fmt: skip
FLEX = {"BlockMask": BlockMask, "_DEFAULT_SPARSE_BLOCK_SIZE": 128}

__all__ = ["SDPBackend", "sdpa_kernel"]
