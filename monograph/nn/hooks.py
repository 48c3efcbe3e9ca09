"""Hooks on the forward pass of a module."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..autograd.hooks import RemovableHandle
from ..guards import changes

__all__ = ["Hooks", "RemovableHandle", "marked", "register"]

Hooks = dict[int, Callable[..., Any]]  # by number; programs look for theirs among them


def register(hooks: Hooks, hook: Callable[..., Any], prepend: bool) -> RemovableHandle:
    """Add a hook at the end, or before all others."""
    changes.count += 1
    handle = RemovableHandle(hooks)
    others = list(hooks.items()) if prepend else []
    hooks[handle.id] = hook
    for number, entry in others:
        del hooks[number]
        hooks[number] = entry
    return handle


def marked(hooks: Hooks, marks: dict[int, bool]) -> list[tuple[Callable[..., Any], bool]]:
    """Each hook, and whether it is among those with a mark."""
    return [(hook, number in marks) for number, hook in hooks.items()]
