"""`DataParallel` where there is one device: the module is called as it is.

>>> import monograph as mg
>>> DataParallel(mg.nn.Linear(2, 1)).state_dict().keys()
odict_keys(['module.weight', 'module.bias'])
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...nn import Module


class DataParallel(Module):
    """A module spread over devices; without GPUs PyTorch calls the module itself, and so do we."""

    def __init__(
        self, module: Module, device_ids: Sequence[Any] | None = None, output_device: Any = None,
        dim: int = 0,
    ) -> None:  # fmt: skip
        super().__init__()
        self.module = module
        self.dim = dim
        self.device_ids: list[Any] = []
        self.output_device = output_device

    def forward(self, *inputs: Any, **options: Any) -> Any:
        """What the module gives."""
        return self.module(*inputs, **options)


def data_parallel(
    module: Module, inputs: Any, device_ids: Any = None, output_device: Any = None, dim: int = 0,
    module_kwargs: Any = None,
) -> Any:  # fmt: skip
    """What the module gives."""
    given = inputs if isinstance(inputs, tuple) else (inputs,)
    return module(*given, **(module_kwargs or {}))


__all__ = ["DataParallel", "data_parallel"]
