"""`torch.cpu.amp`: the older names of autocast and GradScaler on the CPU."""

from __future__ import annotations

from typing import Any

from ..ir import dtypes
from ..ir.dtypes import DType
from . import autocast_mode, grad_scaler


class autocast(autocast_mode.autocast):  # noqa: N801
    """`autocast` for the CPU."""

    def __init__(
        self, enabled: bool = True, dtype: DType = dtypes.bfloat16, cache_enabled: bool = True
    ) -> None:
        super().__init__("cpu", dtype, enabled, cache_enabled)


class GradScaler(grad_scaler.GradScaler):
    """`GradScaler` for the CPU."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__("cpu", *args, **options)


__all__ = ["GradScaler", "autocast"]
