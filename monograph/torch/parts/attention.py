"""`torch.nn.attention`: the choice between ways of computing attention; all give the same."""

from __future__ import annotations

import contextlib
import enum
from collections.abc import Iterator
from typing import Any


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


FLEX = {"BlockMask": BlockMask, "_DEFAULT_SPARSE_BLOCK_SIZE": 128}

__all__ = ["SDPBackend", "sdpa_kernel"]
