"""Hooks on several tensors at once: called when all their gradients are known, or the first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from .hooks import RemovableHandle
from .stepwise import Pass, running

if TYPE_CHECKING:
    from ..tensor import Tensor


class MultiHandle(RemovableHandle):
    """What registering such a hook returns."""

    def __init__(self, handles: Sequence[RemovableHandle]) -> None:
        super().__init__({})
        self.handles = tuple(handles)

    def remove(self) -> None:
        """Take the hook away; it is not called again."""
        for handle in self.handles:
            handle.remove()


def register_multi_grad_hook(
    tensors: Sequence[Tensor], fn: Callable[..., Any], *, mode: str = "all"
) -> MultiHandle:
    """Call fn(gradients) once in a backward pass, when those of all tensors are known.

    A tensor that the pass does not reach has None. In mode "any" it is fn(gradient), called with
    the first that is known.

    >>> import monograph as mg
    >>> a, b, c = [mg.ones(1, requires_grad=True) for _ in range(3)]
    >>> seen = lambda grads: print([g is not None for g in grads])
    >>> handle = mg.autograd.graph.register_multi_grad_hook((a, b, c), seen)
    >>> (a * b).backward()
    [True, True, False]
    """
    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    listed = list(tensors)
    key = object()  # names this hook among the notes of a pass

    def first(gradient: Tensor) -> None:
        if running.passes[-1].notes.setdefault(key, gradient) is gradient:
            fn(gradient)

    def each(number: int) -> Callable[[Tensor], None]:
        def note(gradient: Tensor) -> None:
            now = running.passes[-1]
            nothing: list[Any] = [None] * len(listed)
            found, left = now.notes.get(key) or (nothing, _reached(now, listed))
            found[number] = gradient
            now.notes[key] = (found, left - 1)
            if left == 1:
                fn(found)

        return note

    if mode == "any":
        return MultiHandle([t.register_hook(first) for t in listed if t.requires_grad])
    return MultiHandle([t.register_hook(each(n)) for n, t in enumerate(listed)])


def _reached(now: Pass, tensors: Sequence[Tensor]) -> int:
    """Of how many tensors a pass finds the gradient."""
    survey = now.survey
    leaves = {id(end.leaf()) for end in survey.ends if end.leaf is not None}
    return sum([id(t) in leaves or id(t._value()) in survey.goals for t in tensors])
