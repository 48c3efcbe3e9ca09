"""`torch.compiler` and `torch._dynamo`: every program is compiled here, so there is no choice."""

from __future__ import annotations

import types
from typing import Any


def _mark(function: Any = None, *args: Any, **options: Any) -> Any:
    """A decorator that says how to compile; what is called is the function itself."""
    return function if callable(function) else _mark


disable = allow_in_graph = forbid_in_graph = substitute_in_graph = assume_constant_result = _mark
optimize = disallow_in_graph = _mark


def is_compiling() -> bool:
    """Whether PyTorch's compiler is looking at the code."""
    return False


is_dynamo_compiling = is_exporting = is_compiling


def reset() -> None:
    """Forget what PyTorch's compiler has made."""


cudagraph_mark_step_begin = graph_break = reset


def list_backends(*args: Any) -> list[str]:
    """The compilers to choose from."""
    return ["monograph"]


def mark_dynamic(*args: Any, **options: Any) -> None:
    """Say that a size changes, which is found out anyway."""


mark_static = mark_static_address = maybe_mark_dynamic = mark_dynamic
config = types.SimpleNamespace(
    suppress_errors=False, cache_size_limit=8, verbose=False, recompile_limit=8,
    optimize_ddp=True, capture_scalar_outputs=False, dynamic_shapes=True,
)  # fmt: skip

__all__ = [
    "allow_in_graph", "assume_constant_result", "config", "cudagraph_mark_step_begin", "disable",
    "disallow_in_graph", "forbid_in_graph", "graph_break", "is_compiling", "is_dynamo_compiling",
    "is_exporting", "list_backends", "mark_dynamic", "mark_static", "mark_static_address",
    "maybe_mark_dynamic", "optimize", "reset", "substitute_in_graph",
]  # fmt: skip
