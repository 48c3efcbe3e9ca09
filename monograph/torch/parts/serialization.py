"""`torch.serialization`: saving and loading, and what files may name."""

from __future__ import annotations

from typing import Any

from ..loading import add_safe_globals, clear_safe_globals, get_safe_globals, load, safe_globals
from ..saving import save


class LoadEndianness:
    """The order of bytes in files; that of this machine."""

    NATIVE, LITTLE, BIG = 1, 2, 3


DEFAULT_PROTOCOL = 2
MAP_LOCATION: Any = Any  # what annotations call the argument of `load`


def set_default_mmap_options(flags: Any) -> None:
    """How files are mapped; they are read."""


__all__ = [
    "DEFAULT_PROTOCOL", "LoadEndianness", "MAP_LOCATION", "add_safe_globals",
    "clear_safe_globals",
    "get_safe_globals", "load", "safe_globals", "save", "set_default_mmap_options",
]  # fmt: skip
