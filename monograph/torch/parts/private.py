"""Private names of PyTorch that libraries import; most do here what they do there."""

from __future__ import annotations

import contextlib
import enum
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ...ops.define import members
from ...placement import contiguous_format, place_of
from ...tensor import Tensor, tensor
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


def _take_tensors(tensors: Iterable[Tensor], size_limit: int) -> Iterator[list[Tensor]]:
    """Tensors in groups of one dtype, each of up to so many bytes, or of a single tensor."""
    groups: dict[Any, list[Tensor]] = {}
    bytes_in: dict[Any, int] = {}
    for x in tensors:
        if groups.get(x.dtype) and bytes_in[x.dtype] + x.nbytes > size_limit:
            yield groups.pop(x.dtype)
            bytes_in[x.dtype] = 0
        groups.setdefault(x.dtype, []).append(x)
        bytes_in[x.dtype] = bytes_in.get(x.dtype, 0) + x.nbytes
    yield from groups.values()


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


class OperatorExportTypes(enum.Enum):
    """How operators would be written to ONNX files."""

    ONNX, ONNX_ATEN, ONNX_ATEN_FALLBACK, ONNX_FALLTHROUGH = range(4)


class TrainingMode(enum.Enum):
    """In which mode a module would be written to ONNX files."""

    EVAL, PRESERVE, TRAINING = range(3)


class ONNXProgram:
    """A program in ONNX; there is none."""


class Graph:
    """A function in PyTorch's own language, which annotations of `symbolic` name; none is made."""


class Value:
    """What a node of such a graph gives."""


class Node:
    """One step of such a graph."""


def _shape_as_tensor(input: Tensor) -> Tensor:  # noqa: A002
    """The sizes as integers of a tensor."""
    made: Tensor = tensor(list(input.shape))
    return made


def _softmax_backward_data(
    grad_output: Tensor, output: Tensor, dim: int, input_dtype: Any
) -> Tensor:
    """The derivative of a softmax by its input, from its output."""
    product = grad_output * output
    made: Tensor = product - output * product.sum(dim, keepdim=True)
    return made.to(input_dtype)


def _make_subclass(cls: type, data: Tensor, require_grad: bool = False) -> Tensor:
    """The same storage as a tensor of a class of the user's, cut off from derivatives."""
    made: Tensor = data.detach().as_subclass(cls)
    return made.requires_grad_(require_grad)


def collate_tensor_fn(batch: Sequence[Tensor], *, collate_fn_map: Any = None) -> Tensor:
    """Tensors of one shape, stacked."""
    made: Tensor = members("")["stack"](list(batch))
    return made


ROOT = {
    "legacy_contiguous_format": contiguous_format,
    "_shape_as_tensor": _shape_as_tensor,
    "_softmax_backward_data": _softmax_backward_data,
    "ScriptModule": ScriptModule,
    "ScriptFunction": ScriptFunction,
    "JITException": Error,
}
NATIVE = {
    "ScriptModule": ScriptModule, "ScriptFunction": ScriptFunction, "JITException": Error,
    "Graph": Graph, "Value": Value, "Node": Node,
}  # fmt: skip
UTILS = {
    "_element_size": _element_size, "_flatten_dense_tensors": _flatten_dense_tensors,
    "_unflatten_dense_tensors": _unflatten_dense_tensors, "_take_tensors": _take_tensors,
}  # fmt: skip
OPTIMIZER = {
    "_default_to_fused_or_foreach": _default_to_fused_or_foreach,
    "_get_capturable_supported_devices": _get_capturable_supported_devices,
    "_use_grad_for_differentiable": lambda step: step,
}
HOOKS = {"warn_if_has_hooks": warn_if_has_hooks, "unserializable_hook": lambda hook: hook}
ONNX = {
    "OperatorExportTypes": OperatorExportTypes, "TrainingMode": TrainingMode,
    "ONNXProgram": ONNXProgram,
}  # fmt: skip
PROFILER = {"_profiler_enabled": lambda: False, "kineto_available": lambda: False}
HUB = {"_get_torch_home": lambda: os.path.dirname(get_dir())}
COLLATE = {
    "collate_tensor_fn": collate_tensor_fn,
    "np_str_obj_array_pattern": re.compile(r"[SaUO]"),
}
DETERMINISTIC = {"fill_uninitialized_memory": True}
TRITON = {"has_triton": lambda: False, "has_triton_package": lambda: False}
BACKENDS = {"__allow_nonbracketed_mutation": contextlib.nullcontext}
