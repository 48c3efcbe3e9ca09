"""Hooks on every module: before and after calls, in backward passes, and as members are registered.

They come before the hooks of a module itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..guards import changes
from .hooks import RemovableHandle

# number → (when, the hook, whether it takes kwargs or, of backward passes, is a pre-hook)
Entries = dict[int, tuple[str, Callable[..., Any], bool]]
calls: Entries = {}  # empty most of the time: one look for all
_members: Entries = {}


def _add(entries: Entries, when: str, hook: Callable[..., Any], flag: bool) -> RemovableHandle:
    changes.count += 1
    handle = RemovableHandle(entries)
    entries[handle.id] = (when, hook, flag)
    return handle


def of_all(when: str) -> list[tuple[Callable[..., Any], bool]]:
    """Hooks on calls: "before", "after" (among them "always", also if one fails), "backward"."""
    kinds = ("after", "always") if when == "after" else (when,)
    return [entry[1:] for entry in calls.values() if entry[0] in kinds]


def registered(kind: str, module: Any, name: str, member: Any) -> Any:
    """What is to be registered, after the hooks have seen it."""
    for at, hook, _ in list(_members.values()):
        made = hook(module, name, member) if at == kind else None
        if made is not None:
            member = made
    return member


def register_module_forward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call hook(module, args) before each forward of every module; a result replaces the args."""
    return _add(calls, "before", hook, False)


def register_module_forward_hook(
    hook: Callable[..., Any], *, with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    """Call hook(module, args, output) after each forward of every module.

    >>> import monograph as mg
    >>> seen = []
    >>> with register_module_forward_hook(lambda module, args, output: seen.append(type(module))):
    ...     _ = mg.nn.Sequential(mg.nn.ReLU())(mg.ones(2))
    >>> [kind.__name__ for kind in seen]
    ['ReLU', 'Sequential']
    """
    return _add(calls, "always" if always_call else "after", hook, with_kwargs)


def register_module_full_backward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call hook(module, grad_output) in a backward pass through any module."""
    return _add(calls, "backward", hook, True)


def register_module_full_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call hook(module, grad_input, grad_output) in a backward pass through any module."""
    return _add(calls, "backward", hook, False)


def register_module_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """The older name of `register_module_full_backward_hook`."""
    return register_module_full_backward_hook(hook)


def register_module_parameter_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call hook(module, name, parameter) as one is registered; a result takes its place."""
    return _add(_members, "parameter", hook, False)


def register_module_buffer_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call hook(module, name, buffer) as one is registered; a result takes its place."""
    return _add(_members, "buffer", hook, False)


def register_module_module_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call hook(module, name, submodule) as one is registered; a result takes its place."""
    return _add(_members, "module", hook, False)
