"""`torch.cuda` where there is no GPU, as a CPU build of PyTorch has it.

Questions are answered with no, seeds are taken, and whatever needs a device raises what PyTorch
raises. Tensors live on the CPU; the backend `cuda` runs programs and is chosen by a setting.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from .legacy import CUDA_TYPES, NO_CUDA

__all__ = [
    "CUDAGraph", "CudaError", "DeferredCudaCallError", "Event", "ExternalStream", "MemPool",
    "OutOfMemoryError", "Stream", "StreamContext", "check_error", "device", "device_of", "graph",
    "graph_pool_handle", "make_graphed_callables", "set_device", "set_stream", "stream",
]  # fmt: skip


class OutOfMemoryError(RuntimeError):
    """What PyTorch raises when a device is full."""


class CudaError(RuntimeError):
    """What PyTorch raises when a call of CUDA's fails."""


class DeferredCudaCallError(Exception):
    """What PyTorch raises when a call that waited for CUDA fails."""


def _needs(name: str, error: type[Exception], message: str) -> Any:
    """A function that raises, since there is no such device."""

    def refuse(*args: Any, **options: Any) -> Any:
        raise error(message)

    refuse.__name__, refuse.__doc__ = name, "Raises: there is no such device."
    return refuse


def _answers(name: str, answer: Any) -> Any:
    def reply(*args: Any, **options: Any) -> Any:
        return answer() if callable(answer) else answer

    reply.__name__, reply.__doc__ = name, "The answer where there is no such device."
    return reply


REFUSED = (
    "current_device", "synchronize", "mem_get_info", "get_device_name", "get_device_capability",
    "get_device_properties", "initial_seed", "init", "get_rng_state",
    "current_stream", "default_stream", "ipc_collect", "memory_summary",
    "can_device_access_peer", "set_per_process_memory_fraction", "reset_peak_memory_stats",
    "reset_max_memory_allocated", "caching_allocator_alloc", "caching_allocator_delete",
    "change_current_allocator", "cudart", "current_blas_handle", "current_solver_handle",
    "get_allocator_backend", "get_per_process_memory_fraction", "get_stream_from_external",
    "get_sync_debug_mode", "memory_snapshot", "reset_accumulated_host_memory_stats",
    "reset_accumulated_memory_stats", "reset_max_memory_cached", "reset_peak_host_memory_stats",
    "set_sync_debug_mode",
)  # fmt: skip
# What NVIDIA's library of measurements says.
MEASURED = (
    "clock_rate", "device_memory_used", "memory_usage", "power_draw", "temperature", "utilization"
)  # fmt: skip
_NO_MEASURES = "nvidia-ml-py does not seem to be installed or it can't be imported."
ANSWERS = {
    "is_available": False, "is_initialized": False, "is_bf16_supported": False,
    "is_current_stream_capturing": False, "device_count": 0, "memory_allocated": 0,
    "max_memory_allocated": 0, "memory_reserved": 0, "max_memory_reserved": 0, "memory_cached": 0,
    "max_memory_cached": 0, "memory_stats": OrderedDict, "get_arch_list": list,
    "get_rng_state_all": list, "set_rng_state_all": None, "empty_cache": None, "manual_seed": None,
    "manual_seed_all": None, "seed": None, "seed_all": None, "set_rng_state": None,
    "caching_allocator_enable": None, "get_gencode_flags": "", "is_tf32_supported": False,
    "host_memory_stats": OrderedDict, "host_memory_stats_as_nested_dict": dict,
    "memory_stats_as_nested_dict": dict,
    "list_gpu_processes": "pynvml module not found, please install nvidia-ml-py",
}  # fmt: skip
NAMES = {
    **{name: _needs(name, AssertionError, NO_CUDA) for name in REFUSED},
    **{name: _needs(name, ModuleNotFoundError, _NO_MEASURES) for name in MEASURED},
    **{name: _answers(name, answer) for name, answer in ANSWERS.items()},
    **CUDA_TYPES, "has_half": False, "has_magma": False, "_initialized": False,
    "default_generators": (),
}  # fmt: skip


class _OnDevice:
    """Something that exists on a device only."""

    def __init__(self, *args: Any, **options: Any) -> None:
        raise RuntimeError(f"Tried to instantiate dummy base class {type(self).__name__}")


class Stream(_OnDevice):
    """A queue of work on a GPU."""

    def __init__(self, *args: Any, **options: Any) -> None:
        raise RuntimeError("torch.cuda.Stream requires CUDA support")


class ExternalStream(Stream):
    """A queue that another library made."""


class MemPool(_OnDevice):
    """Memory of a GPU that is handed out by itself."""


class graph_pool_handle(_OnDevice):  # noqa: N801 - PyTorch's spelling
    """The memory that recorded work shares."""


class Event(_OnDevice):
    """A mark in such a queue."""


class CUDAGraph(_OnDevice):
    """A sequence of work on a GPU, recorded."""


class graph(Stream):  # noqa: N801
    """Record work of a GPU within a block."""


def make_graphed_callables(callables: Any, sample_args: Any, *args: Any, **options: Any) -> Any:
    """Functions whose work on a GPU is recorded once."""
    return CUDAGraph()


class StreamContext:
    """Work on a stream within the block; None stands for the one there is."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        if self.stream is not None:
            raise AssertionError(NO_CUDA)

    def __exit__(self, *exception: Any) -> None:
        """Nothing was changed."""


def stream(stream: Any) -> StreamContext:
    """Work on a stream within the block."""
    return StreamContext(stream)


def set_stream(stream: Any) -> None:
    """Work on a stream from now on; None changes nothing."""
    StreamContext(stream).__enter__()


def set_device(device: Any) -> None:
    """Work on a device from now on; a negative number changes nothing.

    >>> set_device(-1)
    """
    if not isinstance(device, int) or device >= 0:
        raise AssertionError(NO_CUDA)


def check_error(res: int) -> None:
    """Raise if a call of CUDA's failed."""
    raise AssertionError(NO_CUDA)


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
