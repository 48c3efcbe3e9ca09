"""Private names of PyTorch that libraries import; most do here what they do there."""

from __future__ import annotations

import enum
import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ...data import DataLoader
from ...data.loader import Batches
from ...ops.define import members
from ...placement import place_of
from ...tensor import Tensor
from .hub import get_dir
from .jit import Error, ScriptFunction, ScriptModule


def _element_size(dtype: Any) -> int:
    """The bytes of one element."""
    return int(dtype.itemsize)


def _flatten_dense_tensors(tensors: Iterable[Tensor]) -> Tensor:
    """The elements of several tensors in one row."""
    joined: Tensor = members("")["cat"]([x.reshape(-1) for x in tensors])
    return joined


def _unflatten_dense_tensors(flat: Tensor, tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """A row of elements, divided into tensors of the shapes of others."""
    pieces = flat.split([x.numel() for x in tensors])
    return tuple([piece.view(x.shape) for piece, x in zip(pieces, tensors, strict=True)])


def _parse_to(*args: Any, **options: Any) -> tuple[Any, Any, bool, Any]:
    """The arguments of `to`: (device, dtype, non_blocking, memory_format)."""
    device, dtype = options.get("device"), options.get("dtype")
    switches = [given for given in args if isinstance(given, bool)]
    for given in args:
        if isinstance(given, Tensor):
            device, dtype = given.device, given.dtype
        elif isinstance(given, (str, int)) and not isinstance(given, bool):
            device = given
        elif hasattr(given, "itemsize"):
            dtype = given
        elif hasattr(given, "index"):
            device = given
    place = None if device is None else place_of(device)
    blocking = bool(options.get("non_blocking", switches[0] if switches else False))
    return place, dtype, blocking, options.get("memory_format")


def _default_to_fused_or_foreach(
    params: Any, differentiable: bool, use_fused: bool = False
) -> tuple[bool, bool]:
    """Whether an optimiser takes its fused form, or that over lists of tensors."""
    return False, not differentiable


def _get_capturable_supported_devices(supports_xla: bool = True) -> list[str]:
    """Devices whose launches can be captured."""
    return ["cuda", "xpu", "hpu", "privateuseone", *["xla"] * supports_xla]


def warn_if_has_hooks(tensor: Tensor) -> None:
    """Warn that hooks are not saved; none are."""


class _DatasetKind:
    """Whether a data set is read by index."""

    Map, Iterable = 0, 1


def _items(loader: Any) -> Iterator[Any]:
    """What a library's own loader, which has the attributes that PyTorch reads, iterates over."""
    for item in loader.dataset:
        yield loader.collate_fn(item)


class _SingleProcessDataLoaderIter(Batches):
    """The batches of one epoch."""

    def __new__(cls, loader: Any) -> Any:
        return super().__new__(cls) if isinstance(loader, DataLoader) else _items(loader)


class _MultiProcessingDataLoaderIter(_SingleProcessDataLoaderIter):
    """The batches of one epoch; a library's own loader runs in this process."""


class OperatorExportTypes(enum.Enum):
    """How operators would be written to ONNX files."""

    ONNX, ONNX_ATEN, ONNX_ATEN_FALLBACK, ONNX_FALLTHROUGH = range(4)


class TrainingMode(enum.Enum):
    """In which mode a module would be written to ONNX files."""

    EVAL, PRESERVE, TRAINING = range(3)


class ONNXProgram:
    """A program in ONNX; there is none."""


ROOT = {"ScriptModule": ScriptModule, "ScriptFunction": ScriptFunction, "JITException": Error}
NATIVE = {"ScriptModule": ScriptModule, "ScriptFunction": ScriptFunction, "JITException": Error}
UTILS = {
    "_element_size": _element_size, "_flatten_dense_tensors": _flatten_dense_tensors,
    "_unflatten_dense_tensors": _unflatten_dense_tensors,
}  # fmt: skip
OPTIMIZER = {
    "_default_to_fused_or_foreach": _default_to_fused_or_foreach,
    "_get_capturable_supported_devices": _get_capturable_supported_devices,
    "_use_grad_for_differentiable": lambda step: step,
}
HOOKS = {"warn_if_has_hooks": warn_if_has_hooks, "unserializable_hook": lambda hook: hook}
LOADER = {
    "_DatasetKind": _DatasetKind, "_BaseDataLoaderIter": Batches,
    "_SingleProcessDataLoaderIter": _SingleProcessDataLoaderIter,
    "_MultiProcessingDataLoaderIter": _MultiProcessingDataLoaderIter,
}  # fmt: skip
ONNX = {
    "OperatorExportTypes": OperatorExportTypes, "TrainingMode": TrainingMode,
    "ONNXProgram": ONNXProgram,
}  # fmt: skip
PROFILER = {"_profiler_enabled": lambda: False, "kineto_available": lambda: False}
HUB = {"_get_torch_home": lambda: os.path.dirname(get_dir())}
