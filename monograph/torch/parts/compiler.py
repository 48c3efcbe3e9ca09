"""`torch.compiler` and `torch._dynamo`: every program is compiled here, so there is no choice."""

from __future__ import annotations

import contextlib
import functools
import types
from typing import Any

from ...nn.module import Module


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


def set_stance(stance: str = "default", **options: Any) -> Any:
    """Say how eagerly to compile; it is a context and a decorator that changes nothing."""
    return _Stance()


class _Stance(contextlib.ContextDecorator):
    def __enter__(self) -> None:
        """Nothing to do."""

    def __exit__(self, *problem: Any) -> None:
        """Nothing to do."""


def compile(model: Any = None, **options: Any) -> Any:  # noqa: A001
    """The model itself: what it does is compiled anyway."""
    return model if model is not None else lambda made: made


def wrap_numpy(fn: Any) -> Any:
    """A function of arrays as one of tensors."""
    import numpy as np

    from ...tensor import Tensor, from_numpy

    @functools.wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        plain = lambda x: x.numpy() if isinstance(x, Tensor) else x  # noqa: E731
        made = fn(*map(plain, args), **{name: plain(x) for name, x in kwargs.items()})
        return from_numpy(np.asarray(made)) if isinstance(made, (np.ndarray, np.generic)) else made

    return call


class OptimizedModule(Module):
    """What PyTorch's compiler makes of a module; here that is the module itself."""


def is_dynamo_supported() -> bool:
    """Whether programs are compiled."""
    return True


def mark_dynamic(*args: Any, **options: Any) -> None:
    """Say that a size changes, which is found out anyway."""


mark_static = mark_static_address = maybe_mark_dynamic = mark_dynamic
config = types.SimpleNamespace(
    suppress_errors=False, cache_size_limit=8, verbose=False, recompile_limit=8,
    optimize_ddp=True, capture_scalar_outputs=False, dynamic_shapes=True,
)  # fmt: skip

__all__ = [
    "OptimizedModule", "allow_in_graph", "assume_constant_result", "compile", "config",
    "cudagraph_mark_step_begin", "disable", "disallow_in_graph", "forbid_in_graph",
    "graph_break", "is_compiling", "is_dynamo_compiling", "is_dynamo_supported",
    "is_exporting", "list_backends",
    "mark_dynamic", "mark_static", "mark_static_address", "maybe_mark_dynamic", "optimize",
    "reset", "set_stance", "substitute_in_graph", "wrap_numpy",
]  # fmt: skip
