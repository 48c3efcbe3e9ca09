"""`torch._foreach_*`: one operator over lists of tensors, as optimisers of libraries are written.

The calls are recorded one by one, and the compiler makes few kernels of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...tensor import Tensor

_UNARY = (
    "abs", "acos", "asin", "atan", "ceil", "cos", "cosh", "erf", "erfc", "exp", "expm1", "floor",
    "frac", "lgamma", "log", "log10", "log1p", "log2", "neg", "reciprocal", "round", "rsqrt",
    "sigmoid", "sign", "sin", "sinh", "sqrt", "tan", "tanh", "trunc",
)  # fmt: skip
_BINARY = ("add", "sub", "mul", "div", "pow", "lerp", "clamp_min", "clamp_max")
_WITH_VALUE = ("addcmul", "addcdiv")  # their number is given by place or by name
# The same with numbers as with tensors.
_METHODS = {"maximum": "clamp_min", "minimum": "clamp_max"}


def _each(argument: Any, place: int) -> Any:
    return argument[place] if isinstance(argument, (list, tuple)) else argument


def _over_lists(name: str) -> Callable[..., Any]:
    """The function that calls a tensor's method for each element of its first argument."""
    changes = name.endswith("_")
    plain = name.removesuffix("_")
    method = _METHODS.get(plain, plain) + ("_" if changes else "")

    def call(self: Any, *args: Any, **options: Any) -> Any:
        if plain in _WITH_VALUE and len(args) == 3:
            *args, value = args  # type: ignore[assignment]
            options = {"value": value}
        made = []
        for place, x in enumerate(self):
            given = {key: _each(value, place) for key, value in options.items()}
            rest = [_each(argument, place) for argument in args]
            made.append(getattr(x, method)(*rest, **given))
        return None if changes else tuple(made)

    call.__name__ = call.__qualname__ = f"_foreach_{name}"
    call.__doc__ = f"`Tensor.{method}` for each tensor of a list."
    return call


def _norms(self: Any, ord: Any = 2, dtype: Any = None) -> tuple[Tensor, ...]:  # noqa: A002
    """The norm of each tensor of a list."""
    return tuple(x.norm(ord, dtype=dtype) for x in self)


FOREACH = {
    f"_foreach_{name}{end}": _over_lists(f"{name}{end}")
    for name in (*_UNARY, *_BINARY, *_WITH_VALUE, *_METHODS)
    for end in ("", "_")
}
FOREACH |= {f"_foreach_{name}": _over_lists(name) for name in ("zero_", "copy_")}
FOREACH["_foreach_norm"] = _norms
