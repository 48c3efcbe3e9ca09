"""`torch.cuda` where there is no GPU, as a CPU build of PyTorch has it.

Questions are answered with no, seeds are taken, and whatever needs a device raises what PyTorch
raises. Tensors live on the CPU; the backend `cuda` runs programs and is chosen by a setting.
"""

from __future__ import annotations

import contextlib
from collections import OrderedDict
from collections.abc import Iterator
from typing import Any

from .legacy import CUDA_TYPES, NO_CUDA

__all__ = ["CUDAGraph", "Event", "OutOfMemoryError", "Stream", "device", "device_of", "stream"]


class OutOfMemoryError(RuntimeError):
    """What PyTorch raises when a device is full."""


def _needs_device(name: str) -> Any:
    def refuse(*args: Any, **options: Any) -> Any:
        raise AssertionError(NO_CUDA)

    refuse.__name__, refuse.__doc__ = name, "Raises: there is no such device."
    return refuse


def _answers(name: str, answer: Any) -> Any:
    def reply(*args: Any, **options: Any) -> Any:
        return answer() if callable(answer) else answer

    reply.__name__, reply.__doc__ = name, "The answer where there is no such device."
    return reply


REFUSED = (
    "current_device", "synchronize", "mem_get_info", "get_device_name", "get_device_capability",
    "get_device_properties", "initial_seed", "init", "get_rng_state", "set_rng_state",
    "current_stream", "default_stream", "ipc_collect", "set_device", "memory_summary",
    "can_device_access_peer", "set_per_process_memory_fraction", "reset_peak_memory_stats",
    "reset_max_memory_allocated",
)  # fmt: skip
ANSWERS = {
    "is_available": False, "is_initialized": False, "is_bf16_supported": False,
    "is_current_stream_capturing": False, "device_count": 0, "memory_allocated": 0,
    "max_memory_allocated": 0, "memory_reserved": 0, "max_memory_reserved": 0, "memory_cached": 0,
    "max_memory_cached": 0, "memory_stats": OrderedDict, "get_arch_list": list,
    "get_rng_state_all": list, "set_rng_state_all": None, "empty_cache": None, "manual_seed": None,
    "manual_seed_all": None, "seed": None, "seed_all": None,
}  # fmt: skip
NAMES = {
    **{name: _needs_device(name) for name in REFUSED},
    **{name: _answers(name, answer) for name, answer in ANSWERS.items()},
    **CUDA_TYPES, "has_half": False, "has_magma": False, "_initialized": False,
}  # fmt: skip


class _OnDevice:
    """Something that exists on a device only."""

    def __init__(self, *args: Any, **options: Any) -> None:
        raise RuntimeError(f"torch.cuda.{type(self).__name__} requires CUDA support")


class Stream(_OnDevice):
    """A queue of work on a GPU."""


class Event(_OnDevice):
    """A mark in such a queue."""


class CUDAGraph(_OnDevice):
    """A sequence of work on a GPU, recorded."""


@contextlib.contextmanager
def stream(stream: Any) -> Iterator[None]:
    """Work on a stream within the block; None stands for the one there is."""
    if stream is not None:
        raise AssertionError(NO_CUDA)
    yield


class device:  # noqa: N801 - PyTorch's spelling
    """A device as the one in use within a block."""

    def __init__(self, device: Any) -> None:
        self.given = device

    def __enter__(self) -> None:
        if self.given not in (None, -1):
            raise RuntimeError("PyTorch was compiled without CUDA support")

    def __exit__(self, *exception: Any) -> None:
        """Nothing was changed."""


class device_of(device):  # noqa: N801
    """The device of a tensor, which is the CPU."""

    def __init__(self, obj: Any) -> None:
        super().__init__(None)
