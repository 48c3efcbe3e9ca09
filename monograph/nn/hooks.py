"""Hooks on the forward pass of a module."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..autograd.hooks import RemovableHandle
from ..guards import changes

__all__ = ["Hooks", "RemovableHandle", "register"]

Hooks = dict[int, tuple[Callable[..., Any], bool]]  # number → (hook, whether it takes kwargs)


def register(hooks: Hooks, hook: Callable[..., Any], prepend: bool, kwargs: bool) -> Any:
    """Add a hook at the end, or before all others."""
    changes.count += 1
    handle = RemovableHandle(hooks)
    others = list(hooks.items()) if prepend else []
    hooks[handle.id] = (hook, kwargs)
    for number, entry in others:
        del hooks[number]
        hooks[number] = entry
    return handle
