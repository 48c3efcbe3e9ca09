"""Corners of PyTorch that libraries look into before they decide what to do.

Each is a dictionary of names; `monograph/torch/names.py` says where it is shown.
"""

from __future__ import annotations

import contextlib
import types
from typing import Any

from ...display import get_printoptions
from ...ir import dtypes
from ...nn import Module
from ...ops.define import members
from ...ops.sparse_rules import of_dtype
from ...overriding import DisableTorchFunctionSubclass
from ...tensor import Tensor
from .absent import refusal
from .private import _parse_to
from .profiler import record_function


def _reply(answer: Any) -> Any:
    return lambda *args, **options: answer


class Library:
    """A set of operators that a program registers; functions are called directly instead."""

    def __init__(self, *args: Any, **options: Any) -> None:
        self.names: list[str] = []

    def define(self, schema: str, *args: Any, **options: Any) -> str:
        """Note the name of an operator."""
        self.names.append(schema.partition("(")[0])
        return self.names[-1]

    def impl(self, *args: Any, **options: Any) -> Any:
        """The function itself."""
        return lambda function: function


def _as_plain_tensors(func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    """A `__torch_function__` that lets results be plain tensors."""
    with DisableTorchFunctionSubclass():
        return func(*args, **(kwargs or {}))


class Packet:
    """An operator under its inner name; its overloads, such as `aten.add.Tensor`, are itself."""

    def __init__(self, name: str, function: Any) -> None:
        self.__name__, self.function = name, function
        self.default = self.Tensor = self.Scalar = self.int = self.dim = self.stable = self

    def __call__(self, *args: Any, **options: Any) -> Any:
        return self.function(*args, **options)


def _enter(name: str, args: Any = None) -> record_function:
    return record_function(name).__enter__()


def _exit(block: record_function) -> None:
    block.__exit__()


PROFILER_OPS = {
    "_record_function_enter": _enter, "_record_function_enter_new": _enter,
    "_record_function_exit": _exit,
}  # fmt: skip
LIBRARY = {"Library": Library}
_INNER = ("_convolution", "_pin_memory", "_sparse_addmm", "_sparse_mm_reduce_impl", "_to_copy",
          "alias", "convolution", "index", "slice")  # fmt: skip
ATEN = {
    **{name: Packet(name, refusal(f"ops.aten.{name}", "use its name in torch")) for name in _INNER},
    **{name: Packet(name, function) for name, function in members("").items()},
    "detach": Packet("detach", Tensor.detach),
}
FX = {
    "GraphModule": type("GraphModule", (Module,), {"__doc__": "A module made of a traced graph."}),
    "Proxy": type("Proxy", (), {"__doc__": "A value of a function that is being traced."}),
    "Tracer": type("Tracer", (), {"__doc__": "Traces a function."}),
    "Node": type("Node", (), {"__doc__": "A node of a traced graph."}),
    "Graph": type("Graph", (), {"__doc__": "A traced graph."}), "wrap": lambda function: function,
}  # fmt: skip
NATIVE = {
    "_has_cuda": False, "_cuda_getDeviceCount": _reply(0), "_get_tracing_state": _reply(None),
    "_are_functorch_transforms_active": _reply(False), "_is_tracing": _reply(False),
    "_log_api_usage_once": _reply(None),
    "_cuda_isInBadFork": False, "_functorch": types.SimpleNamespace(), "TensorBase": Tensor,
    "_TensorBase": Tensor, "_TensorMeta": type(Tensor),
    "_get_privateuse1_backend_name": _reply("privateuseone"),
    "_nn": types.SimpleNamespace(**members("nn.functional"), _parse_to=_parse_to),
    "has_mkldnn": True,
    **{name: type(name, (), {"__doc__": "A part of a traced program; there is none."})
       for name in ("Graph", "Node", "Value")},
    "DisableTorchFunctionSubclass": DisableTorchFunctionSubclass,
    "DisableTorchFunction": DisableTorchFunctionSubclass,
    "_disabled_torch_function_impl": _as_plain_tensors,
}  # fmt: skip
TEXT = {
    "_str": lambda x, **_: repr(x), "_str_intern": lambda x, **_: repr(x),
    "_tensor_str": lambda x, indent=0: repr(x).removeprefix("tensor(").removesuffix(")"),
    "_add_suffixes": lambda text, suffixes, *_, **__: "".join([text, *suffixes, ")"]),
    "PRINT_OPTS": types.SimpleNamespace(**get_printoptions()),
}  # fmt: skip
RPC = {"is_available": _reply(False), "_is_current_rpc_agent_set": _reply(False)}
FAKE = {"is_fake": _reply(False), "unset_fake_temporarily": contextlib.nullcontext}
PROXIES = {"get_proxy_mode": _reply(None)}
TRACING = {"TransformGetItemToIndex": contextlib.nullcontext}  # indexing is recorded as it is
ONNX = {"is_in_onnx_export": _reply(False), "_globals": types.SimpleNamespace()}
_OLD = {"Float": dtypes.float32, "Double": dtypes.float64, "Long": dtypes.int64}
SPARSE = {
    "is_available": _reply(False),
    **{f"{name}Tensor": of_dtype(dtype) for name, dtype in _OLD.items()},
}
CPP_EXTENSION = {"CUDA_HOME": None, "ROCM_HOME": None, "IS_WINDOWS": False}
DLPACK = {"to_dlpack": lambda x: x.__dlpack__()}
