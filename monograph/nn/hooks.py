"""Handles of registered hooks: keep one to remove its hook again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Hooks = dict[int, tuple[Callable[..., Any], bool]]  # number → (hook, whether it takes kwargs)


class RemovableHandle:
    """What registering a hook returns; also a context manager that removes it at the end."""

    _next = 0

    def __init__(self, hooks: Hooks) -> None:
        self.hooks = hooks
        self.id = RemovableHandle._next
        RemovableHandle._next += 1

    def remove(self) -> None:
        """Take the hook away; it is not called again."""
        self.hooks.pop(self.id, None)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()


def register(hooks: Hooks, hook: Callable[..., Any], prepend: bool, kwargs: bool) -> Any:
    """Add a hook at the end, or before all others."""
    handle = RemovableHandle(hooks)
    others = list(hooks.items()) if prepend else []
    hooks[handle.id] = (hook, kwargs)
    for number, entry in others:
        del hooks[number]
        hooks[number] = entry
    return handle
