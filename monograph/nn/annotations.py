"""The annotations of layers as types, for libraries that ask for them.

A subclass of the user's has those of `Module`, and a library evaluates them where the subclass
stands, where our names mean nothing. So they are types and not text.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

from ..tensor import Tensor
from .module import Module
from .parameter import Parameter

_KNOWN = {"Tensor": Tensor, "Parameter": Parameter, "Module": Module, "Any": Any}


def settle(classes: Iterable[type]) -> None:
    """Evaluate the annotations of classes; what is known to type checkers only becomes Any.

    >>> Module.__annotations__["_parameters"]
    dict[str, monograph.tensor.Parameter | None]
    """
    for cls in classes:
        own = vars(cls).get("__annotations__", {})
        for name, text in own.items():
            if isinstance(text, str):
                own[name] = _evaluated(text, vars(sys.modules[cls.__module__]))


def _evaluated(text: str, names: dict[str, Any]) -> Any:
    try:
        return eval(text, dict(names), _KNOWN)  # noqa: S307 - the text is our own
    except NameError:
        return Any
