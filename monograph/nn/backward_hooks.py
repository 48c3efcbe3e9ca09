"""Hooks on the backward pass of a module.

A call of a module with such hooks passes its arguments and its results through gates: steps of the
tape that hand gradients on unchanged, but for what hooks make of them. The gate of the results is
met first and knows the gradients of the outputs; the gate of the arguments knows those of the
inputs, and calls the hooks with both.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .. import errors
from ..autograd.graph import PythonNode
from ..autograd.modes import no_grad
from ..recorder import current
from ..tensor import Tensor

Gradients = tuple[Any, ...]


class Gate(PythonNode):
    """Values handed on; their gradients go through `action` on the way back."""

    def __init__(self, tensors: Sequence[Tensor], action: Callable[[Gradients], Gradients]) -> None:
        super().__init__([t._value() for t in tensors])
        self.action = action
        self.count = len(tensors)

    def name(self) -> str:
        """PyTorch's name for it."""
        return "BackwardHookFunctionBackward"

    def pull(self, gradients: list[Any]) -> Sequence[Any]:
        """The gradients that the action makes."""
        return self.action(tuple(gradients))


def _gate(items: Sequence[Any], action: Callable[[Gradients], Gradients]) -> tuple[Any, ...]:
    """The items with those that require gradients passed through a gate.

    The action gets and returns one gradient per item, None for those that do not.
    """
    places = [n for n, t in enumerate(items) if isinstance(t, Tensor) and t.requires_grad]

    def chosen(gradients: Gradients) -> Gradients:
        spread: list[Any] = [None] * len(items)
        for place, gradient in zip(places, gradients, strict=True):
            spread[place] = gradient
        made = action(tuple(spread))
        return tuple([made[place] for place in places])

    if not places:
        return tuple(items)
    node = Gate([items[n] for n in places], chosen)
    made = list(items)
    with no_grad():
        for number, place in enumerate(places):
            made[place] = items[place].clone()
            node.output(made[place]._value(), number)
    return tuple(made)


class BackwardCall:
    """One call of a module that has hooks on its backward pass.

    With each hook comes whether it is a pre-hook, called with the gradients of the outputs only.
    """

    def __init__(self, module: Any, hooks: Sequence[tuple[Callable[..., Any], bool]]) -> None:
        self.module = module
        self.before = [hook for hook, is_pre in hooks if is_pre]
        self.after = [hook for hook, is_pre in hooks if not is_pre]
        self.outputs: Gradients | None = None  # since a pass met the results
        self.inputs = 0
        self.gated = False

    def enter(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments, through their gate."""
        self.inputs = len(args)
        if not self.after or not current.recorder.grad:
            return args
        self.gated = any(isinstance(t, Tensor) and t.requires_grad for t in args)
        return _gate(args, self._input_gradients)

    def leave(self, result: Any) -> Any:
        """The results, through theirs: a tensor or a tuple of them."""
        if not current.recorder.grad or not isinstance(result, (Tensor, tuple)):
            return result
        if isinstance(result, Tensor):
            return _gate((result,), self._output_gradients)[0]
        return _gate(result, self._output_gradients)

    def _output_gradients(self, gradients: Gradients) -> Gradients:
        for hook in self.before:
            made = hook(self.module, gradients)
            if made is not None:
                gradients = _fitting(made, gradients)
        self.outputs = gradients
        if not self.gated:
            self._input_gradients((None,) * self.inputs)
        return gradients

    def _input_gradients(self, gradients: Gradients) -> Gradients:
        outputs, self.outputs = self.outputs, None
        if outputs is None:
            # The pass came from inside, as that over a derivative does, and not by the results.
            return gradients
        for hook in self.after:
            made = hook(self.module, gradients, outputs)
            if made is not None:
                gradients = _fitting(made, gradients)
        return gradients


def _fitting(made: Any, given: Gradients) -> Gradients:
    listed = made if isinstance(made, tuple) else (made,)
    if len(listed) != len(given):
        raise errors.GradientError(
            f"Backward hook returned an invalid number of grad_input, got {len(listed)}, "
            f"but expected {len(given)}"
        )
    return listed
