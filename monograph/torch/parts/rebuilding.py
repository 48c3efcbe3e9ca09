"""What plain pickles of PyTorch's tensors name: `pickle.load` calls these itself."""

from __future__ import annotations

import io
from typing import Any

from ..loading import SAFE, load


def _load_from_bytes(b: bytes) -> Any:
    """A storage from a file within the pickle, which may hold nothing but that."""
    return load(io.BytesIO(b), weights_only=True)


_OURS = {name: made for (home, name), made in SAFE.items() if home == "torch._utils"}
globals().update(_OURS)
__all__ = ["_load_from_bytes", *_OURS]
