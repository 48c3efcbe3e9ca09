"""`torch.distributed` where there is one process: questions are answered, the rest is refused."""

from __future__ import annotations

import enum
from typing import Any


def is_available() -> bool:
    """Whether processes can talk to each other."""
    return False


is_initialized = is_torchelastic_launched = is_nccl_available = is_available
is_gloo_available = is_mpi_available = is_available


class ReduceOp(enum.Enum):
    """How values of several processes would be put together."""

    SUM = 0
    AVG = 1
    PRODUCT = 2
    MIN = 3
    MAX = 4


ProcessGroup: Any = type("ProcessGroup", (), {"__doc__": "A set of processes."})


def record(fn: Any, error_handler: Any = None) -> Any:
    """A main function as it is: there is no launcher to report its errors to."""
    return fn


ERRORS = {"record": record}

__all__ = [
    "ProcessGroup", "ReduceOp", "is_available", "is_gloo_available", "is_initialized",
    "is_mpi_available", "is_nccl_available", "is_torchelastic_launched",
]  # fmt: skip
