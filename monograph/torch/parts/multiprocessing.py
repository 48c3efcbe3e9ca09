"""`torch.multiprocessing`: Python's own module; tensors are sent as arrays."""

from __future__ import annotations

import multiprocessing as _python

_OWN = {
    name: getattr(_python, name)
    for name in dir(_python)
    if not name.startswith("_") and name != "spawn"
}
globals().update(_OWN)


def get_all_sharing_strategies() -> set[str]:
    """The ways in which processes share tensors: none."""
    return {"file_descriptor"}


def get_sharing_strategy() -> str:
    """The way that is in use."""
    return "file_descriptor"


__all__ = ["get_all_sharing_strategies", "get_sharing_strategy", *_OWN]
