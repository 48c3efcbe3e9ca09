"""Layers whose parameters are not filled."""

from __future__ import annotations

import inspect
from typing import Any

from ..module import Module


def skip_init(module_cls: type[Module], *args: Any, **kwargs: Any) -> Module:
    """A layer without the time to draw its weights; here they are zeros.

    >>> import monograph as mg
    >>> skip_init(mg.nn.Linear, 2, 1).weight.tolist()
    [[0.0, 0.0]]
    """
    if not issubclass(module_cls, Module):
        raise RuntimeError(f"Expected a Module; got {module_cls}")
    if "device" not in inspect.signature(module_cls).parameters:
        raise RuntimeError("Module must support a 'device' arg to skip initialization")
    where = kwargs.pop("device", "cpu")
    return module_cls(*args, **{**kwargs, "device": "meta"}).to_empty(device=where)
