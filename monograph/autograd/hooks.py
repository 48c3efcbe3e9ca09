"""Hooks on tensors: Python code that a backward pass runs when a gradient is known.

Hooks on a leaf belong to the tensor. Hooks on a result belong to its value: after an in-place
write they still see the gradient of what was there before, as in PyTorch. `in_use` tells the
engine whether it has to look for any.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary, ref

from .. import errors
from ..guards import changes
from ..storage import Value

if TYPE_CHECKING:
    from ..tensor import Tensor

Hook = Callable[..., Any]


class InUse:
    """Whether this process ever asked for something that a plain backward pass does not do."""

    python = False  # hooks, custom functions, nodes made in Python


in_use = InUse()


class RemovableHandle:
    """What registering a hook returns; also a context manager that removes it at the end."""

    _next = 0

    def __init__(self, hooks: dict[int, Any]) -> None:
        self.hooks = hooks
        self.id = RemovableHandle._next
        RemovableHandle._next += 1

    def remove(self) -> None:
        """Take the hook away; it is not called again."""
        changes.count += 1
        self.hooks.pop(self.id, None)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()


def register(hooks: dict[int, Any], hook: Any) -> RemovableHandle:
    """Add a hook at the end."""
    in_use.python = True
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    return handle


class ValueHooks:
    """Hooks on one result, and the tensor that keeps its gradient."""

    def __init__(self) -> None:
        self.before: dict[int, Hook] = {}
        self.keeper: ref[Tensor] | None = None


_of_values: WeakKeyDictionary[Value, ValueHooks] = WeakKeyDictionary()


def hooks_of(value: Value) -> ValueHooks | None:
    """The hooks on a result, if it has any."""
    return _of_values.get(value)


def results_have_hooks() -> bool:
    """Whether there are hooks on any result that is still alive."""
    return len(_of_values) > 0


def _made_for(value: Value) -> ValueHooks:
    found = _of_values.get(value)
    if found is None:
        found = _of_values[value] = ValueHooks()
    in_use.python = True
    return found


def register_hook(tensor: Tensor, hook: Hook) -> RemovableHandle:
    """Call hook(grad) whenever this tensor's gradient is known; what it returns replaces it."""
    value = tensor._value()
    if not value.requires_grad:
        raise errors.GradientError(
            "cannot register a hook on a tensor that doesn't require gradient"
        )
    if value.tape is not None:
        return register(_made_for(value).before, hook)
    if tensor._hooks is None:
        tensor._hooks = {}
    return register(tensor._hooks, hook)


def register_post_accumulate_grad_hook(tensor: Tensor, hook: Hook) -> RemovableHandle:
    """Call hook(tensor) after a backward pass has added to this leaf's `.grad`."""
    value = tensor._value()
    if not value.requires_grad:
        raise errors.GradientError(
            "cannot register a hook on a tensor that doesn't require gradient"
        )
    if value.tape is not None:
        raise errors.GradientError(
            "post accumulate grad hooks cannot be registered on non-leaf tensors"
        )
    if tensor._post_hooks is None:
        tensor._post_hooks = {}
    return register(tensor._post_hooks, hook)


def retain_grad(tensor: Tensor) -> None:
    """Keep the gradient of this result in `.grad`."""
    value = tensor._value()
    if not value.requires_grad:
        raise errors.GradientError("can't retain_grad on Tensor that has requires_grad=False")
    if value.tape is not None:
        _made_for(value).keeper = ref(tensor)


def retains_grad(tensor: Tensor) -> bool:
    """Whether `retain_grad` was called on this result."""
    found = _of_values.get(tensor._value()) if in_use.python else None
    return found is not None and found.keeper is not None


def follow_write(old: Value, new: Value) -> None:
    """After an in-place write it is the new value's gradient that is kept."""
    found = _of_values.get(old)
    if found is not None and found.keeper is not None and new.tape is not None:
        _made_for(new).keeper, found.keeper = found.keeper, None


def run_hooks(hooks: dict[int, Hook] | None, gradient: Tensor) -> Tensor:
    """The gradient after every hook in turn."""
    for hook in list(hooks.values()) if hooks else ():
        made = hook(gradient)
        if made is not None:
            _check(hook, gradient, made)
            gradient = made
    return gradient


def _check(hook: Hook, given: Tensor, made: Any) -> None:
    """A hook must return a gradient of the same shape and dtype."""
    from ..tensor import Tensor

    name = getattr(hook, "__name__", type(hook).__name__)
    if not isinstance(made, Tensor):
        raise TypeError(f"expected Variable, but hook returned {type(made).__name__!r}")
    if made.dtype is not given.dtype:
        raise errors.GradientError(
            f"hook {name!r} has changed the type of value "
            f"(was {given.dtype.name} got {made.dtype.name})"
        )
    if tuple(made.shape) != tuple(given.shape):
        raise errors.GradientError(f"hook {name!r} has changed the size of value")
