"""The other kinds of device that PyTorch has a module for; the CPU is the only one here."""

from __future__ import annotations

from typing import Any

from ...placement import CPU
from .cuda import stream
from .determinism import _chosen


def _absent(what: str) -> Any:
    def refuse(*args: Any, **options: Any) -> Any:
        raise RuntimeError(f"Cannot access {what} device when none is available.")

    return refuse


def _reply(answer: Any) -> Any:
    return lambda *args, **options: answer


OTHER = {
    "is_available": _reply(False), "device_count": _reply(0), "empty_cache": _reply(None),
    "manual_seed": _reply(None), "manual_seed_all": _reply(None), "is_initialized": _reply(False),
    "is_bf16_supported": _reply(False), "current_allocated_memory": _reply(0),
    "driver_allocated_memory": _reply(0), "synchronize": _absent("accelerator"),
    "current_device": _absent("accelerator"), "get_device_name": _absent("accelerator"),
    "get_rng_state": _absent("accelerator"), "set_rng_state": _absent("accelerator"),
}  # fmt: skip
ACCELERATOR = {
    "is_available": _reply(False), "device_count": _reply(0), "current_accelerator": _reply(None),
    "synchronize": _absent("accelerator"), "current_device_index": _absent("accelerator"),
}  # fmt: skip
HERE = {
    "is_available": _reply(True), "device_count": _reply(1), "current_device": _reply("cpu"),
    "synchronize": _reply(None), "is_initialized": _reply(True), "stream": stream,
    "set_device": _reply(None), "current_stream": _reply(None), "device": CPU,
}  # fmt: skip
PRECISION = _chosen
