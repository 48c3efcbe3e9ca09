"""The other kinds of device that PyTorch has a module for; the CPU is the only one here."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from ...placement import CPU, device
from .cuda import _answers, _needs


class AcceleratorError(RuntimeError):
    """What PyTorch raises when a device fails."""


_NO_EVENTS = "cpu backend doesn't support events."


def _here(given: Any) -> Any:
    """The device of a stream or event, which must be the CPU."""
    found = CPU if given is None else device(given)
    if found.type != "cpu":
        raise RuntimeError(f"PyTorch is not linked with support for {found.type} devices")
    return found


class Stream:
    """`torch.Stream`: a queue of work; that of the CPU has always been worked off.

    >>> Stream().query()
    True
    """

    stream_id = 0

    def __init__(self, device: Any = None, *, priority: int = 0, **_: Any) -> None:
        self.device = _here(device)

    def query(self) -> bool:
        """Whether nothing waits."""
        return True

    def synchronize(self) -> None:
        """Wait until nothing waits."""

    def record_event(self, event: Any = None) -> Any:
        """Raises: the CPU has no events."""
        raise RuntimeError(_NO_EVENTS)

    def wait_event(self, event: Any) -> None:
        """Raises: the CPU has no events."""
        raise RuntimeError(_NO_EVENTS)

    wait_stream = wait_event

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *exception: Any) -> None:
        """Nothing was changed."""


class Event:
    """`torch.Event`: a mark in a queue, which the CPU cannot set.

    >>> Event().query()
    True
    """

    event_id = 0

    def __init__(
        self, device: Any = None, *, enable_timing: bool = False, blocking: bool = False,
        interprocess: bool = False,
    ) -> None:  # fmt: skip
        self.device, self.enable_timing = _here(device), enable_timing

    def record(self, stream: Any = None) -> None:
        """Raises: the CPU has no events."""
        raise RuntimeError(_NO_EVENTS)

    def query(self) -> bool:
        """Whether it was reached."""
        return True

    def wait(self, stream: Any = None) -> None:
        """Wait until it is reached."""

    synchronize = wait

    def elapsed_time(self, end_event: Any) -> float:
        """Raises: the CPU has no events."""
        if not (self.enable_timing and end_event.enable_timing):
            raise ValueError("Both events must be created with argument 'enable_timing=True'.")
        raise RuntimeError(_NO_EVENTS)


class _CPUStream:
    """`torch.cpu.Stream`, for programs that do not ask which device they are on."""

    def wait_stream(self, stream: Any) -> None:
        """Nothing to wait for."""

    record_event = wait_event = lambda self, event=None: None

    def __enter__(self) -> _CPUStream:
        return self

    def __exit__(self, *exception: Any) -> None:
        """Nothing was changed."""


class _CPUEvent:
    """`torch.cpu.Event`."""

    def query(self) -> bool:
        """Whether it was reached."""
        return True

    record = wait = lambda self, stream=None: None

    def synchronize(self) -> None:
        """Nothing to wait for."""


_NO_ACCELERATOR = "Cannot access accelerator device when none is available."
_NO_XPU = "Torch not compiled with XPU enabled"


class device_index:  # noqa: N801 - PyTorch's spelling
    """A device as the one in use within a block; None leaves it as it is."""

    def __init__(self, device: Any, /) -> None:
        self.index = device

    def __enter__(self) -> None:
        if self.index is not None:
            raise RuntimeError(_NO_ACCELERATOR)

    def __exit__(self, *exception: Any) -> None:
        """Nothing was changed."""


def _all(names: str, error: type[Exception], message: str) -> dict[str, Any]:
    return {name: _needs(name, error, message) for name in names.split()}


def _answered(answers: dict[str, Any]) -> dict[str, Any]:
    return {name: _answers(name, answer) for name, answer in answers.items()}


_NONE = {
    "is_available": False, "device_count": 0, "manual_seed": None, "manual_seed_all": None,
    "is_initialized": False, "is_bf16_supported": False,
}  # fmt: skip
# By their names in PyTorch what the devices of Apple cannot do without one.
_APPLE = {
    "current_allocated_memory": "getCurrentAllocatedMemory", "seed": "getDefaultGenerator",
    "driver_allocated_memory": "getDriverAllocatedMemory", "synchronize": "deviceSynchronize",
    "recommended_max_memory": "getRecommendedMaxMemory", "empty_cache": "emptyCache",
    "get_rng_state": "getDefaultGenerator", "set_rng_state": "getDefaultGenerator",
    "set_per_process_memory_fraction": "setMemoryFraction", "Event": "acquireEvent",
}  # fmt: skip
MPS = {
    **_answered({"is_available": False, "device_count": 0, "manual_seed": None}),
    **{name: _needs(name, RuntimeError, f"Cannot execute {inner}() without MPS backend.")
       for name, inner in _APPLE.items()},
}  # fmt: skip
OTHER = {
    **_answered({**_NONE, "empty_cache": None, "memory_allocated": 0, "max_memory_allocated": 0,
                 "memory_reserved": 0, "max_memory_reserved": 0, "seed": None, "seed_all": None,
                 "get_rng_state_all": list, "memory_stats": OrderedDict, "get_arch_list": list,
                 "is_tf32_supported": False}),
    **_all("synchronize current_device current_stream get_device_name get_device_capability "
           "get_device_properties init mem_get_info set_device get_rng_state set_rng_state "
           "reset_peak_memory_stats", AssertionError, _NO_XPU),
    **_all("Event Stream", RuntimeError, "Tried to instantiate dummy base class"),
}  # fmt: skip
ACCELERATOR = {
    **_answered({"is_available": False, "device_count": 0, "current_accelerator": None}),
    **_all("synchronize current_device_index current_device_idx current_stream empty_cache "
           "empty_host_cache get_memory_info max_memory_allocated max_memory_reserved "
           "memory_allocated memory_reserved memory_stats reset_accumulated_memory_stats "
           "reset_peak_memory_stats get_device_capability set_device_index set_device_idx "
           "set_stream Graph", RuntimeError, _NO_ACCELERATOR),
    "device_index": device_index,
}  # fmt: skip
HERE = {
    **_answered({"is_available": True, "device_count": 1, "current_device": "cpu",
                 "synchronize": None, "is_initialized": True, "set_device": None,
                 "current_stream": _CPUStream, "get_capabilities": dict}),
    "Stream": _CPUStream, "Event": _CPUEvent, "device": CPU,
    "stream": lambda stream: stream or _CPUStream(),
    "StreamContext": lambda stream: stream or _CPUStream(),
}  # fmt: skip
ROOT = {"Event": Event, "Stream": Stream, "AcceleratorError": AcceleratorError}
