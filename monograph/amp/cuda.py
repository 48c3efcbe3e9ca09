"""`torch.cuda.amp` where there is no GPU: both are switched off, with a warning, as in PyTorch."""

from __future__ import annotations

from typing import Any

from ..ir import dtypes
from ..ir.dtypes import DType
from . import autocast_mode, grad_scaler
from .autocast_mode import custom_bwd, custom_fwd


class autocast(autocast_mode.autocast):  # noqa: N801
    """`autocast` for a GPU."""

    def __init__(
        self, enabled: bool = True, dtype: DType = dtypes.float16, cache_enabled: bool = True
    ) -> None:
        super().__init__("cuda", dtype, enabled, cache_enabled)


class GradScaler(grad_scaler.GradScaler):
    """`GradScaler` for a GPU."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__("cuda", *args, **options)


__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd"]
