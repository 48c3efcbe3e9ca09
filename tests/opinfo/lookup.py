"""From an entry of PyTorch's operator database to the callable of ours that should do the same.

Most entries are found by name: torch.X is mg.X, nn.functional.X is mg.nn.functional.X, a method is
a method. Some entries are small lambdas around PyTorch's functions; such a lambda is run as it
stands, with the name `torch` bound to this package. What is not there is `None`: absent.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.testing._internal.common_methods_invocations import op_db

import monograph as mg
from monograph.ir import dtypes

# Results are drawn at random or not written at all: only shape and dtype can be compared.
UNCOMPARABLE = {
    "bernoulli", "cauchy", "empty", "empty_like", "empty_permuted", "empty_strided", "exponential",
    "geometric", "log_normal", "multinomial", "new_empty", "new_empty_strided", "normal",
    "normal.in_place", "normal.number_mean", "rand_like", "randint", "randint_like", "randn",
    "randn_like", "uniform", "nn.functional.alpha_dropout", "nn.functional.dropout",
    "nn.functional.dropout2d", "nn.functional.dropout3d", "pca_lowrank", "svd_lowrank",
    "nn.functional.multi_head_attention_forward", "nn.functional.feature_alpha_dropout.with_train",
    "nn.functional.fractional_max_pool2d",
    "nn.functional.fractional_max_pool3d", "nn.functional.rrelu", "resize_", "resize_as_",
}  # fmt: skip

# PyTorch's test suite rewrites these so that the arguments suit its own machinery.
_FROM_TESTS = "torch.testing._internal."


@functools.cache
def entries() -> dict[str, Any]:
    """Every entry of the database, by its full name, in alphabetical order."""
    return {op.full_name: op for op in sorted(op_db, key=lambda op: op.full_name)}


@functools.cache
def find(entry: str) -> Callable[..., Any] | None:
    """Our callable with the signature of the entry's `op`, or None."""
    op = entries()[entry]
    if isinstance(op.op, types.FunctionType) and op.op.__module__.startswith(_FROM_TESTS):
        return None if next(_missing(op.op), None) else rebound(op.op)
    return by_name(op.name)


def by_name(name: str) -> Callable[..., Any] | None:
    """`linalg.det`, `add`, `__getitem__`: a function of the package, or else a method."""
    name = name.removeprefix("torch.")
    found = _walk(mg, name)
    if not callable(found) and not callable(_walk(torch, name)):  # torch.cfloat is a dtype
        found = getattr(mg.Tensor, name, None)
    return found if callable(found) else None


def why_absent(entry: str) -> str:
    """What would have to be there."""
    op = entries()[entry]
    if isinstance(op.op, types.FunctionType) and op.op.__module__.startswith(_FROM_TESTS):
        return f"no {next(_missing(op.op), op.name)}"
    only = " (only the method)" if hasattr(mg.Tensor, op.name) else ""
    return f"no mg.{op.name}{only}"


def _walk(root: Any, name: str) -> Any:
    """root.a.b.c, or None where a step is missing."""
    for part in name.split("."):
        root = getattr(root, part, None)
    return root


# --- lambdas ------------------------------------------------------------------------------------


class _Torch:
    """What the name `torch` means to a lambda that is run with our tensors."""

    def __getattr__(self, name: str) -> Any:
        if name in dtypes.BY_NAME:
            return dtypes.BY_NAME[name]
        return getattr(mg, name)


def _without_seed(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    return function(*args, **kwargs)


def rebound(function: Any) -> Any:
    """The same Python code with `torch` and `F` meaning this package.

    >>> rebound(lambda x: torch.exp(x))(mg.tensor(0.0)).item()
    1.0
    """
    if not isinstance(function, types.FunctionType):
        return function
    names = {**function.__globals__, "torch": _Torch(), "wrapper_set_seed": _without_seed}
    names["F"] = mg.nn.functional
    made = types.FunctionType(
        function.__code__, names, function.__name__, function.__defaults__, function.__closure__
    )
    made.__kwdefaults__ = function.__kwdefaults__
    return made


def _missing(function: types.FunctionType) -> Iterator[str]:
    """Names that the code uses and that this package does not have anywhere."""
    places = [mg, mg.nn, mg.nn.functional, mg.Tensor, dtypes.BY_NAME]
    places += [getattr(mg, part) for part in ("linalg", "special", "fft") if hasattr(mg, part)]
    for name in _names(function.__code__):
        known = name in function.__globals__ or name in __builtins__
        if not known or name in ("linalg", "special", "fft", "ops"):
            if not any(hasattr(place, name) for place in places):
                yield name


def _names(code: types.CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names(constant)
