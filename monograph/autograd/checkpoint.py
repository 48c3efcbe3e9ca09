"""checkpoint: compute a part of a model again in the backward pass instead of keeping its results.

The function runs as usual. Then its results are put on the tape with a node of their own, which
knows where gradients must go: to the arguments and to whatever else the function used. A backward
pass runs the function once more, with the same random numbers, and differentiates that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..compiler.recording import BACKWARD
from ..recorder import current
from ..storage import Value
from ..tensor import Tensor
from . import saved
from .graph import PythonNode
from .modes import enable_grad


class Checkpoint(PythonNode):
    """A call that is made again when it is differentiated."""

    def __init__(
        self, function: Callable[[], Any], borders: Sequence[Value], randomness: Any, count: int
    ) -> None:
        super().__init__(borders)
        self.function = function
        self.randomness = randomness
        self.count = count
        self.autocast = current.recorder.autocast

    def pull(self, gradients: list[Any]) -> Sequence[Any]:
        """Run the function again, and differentiate what it does."""
        from .stepwise import gradients_of

        borders = [value for value in self.inputs if value is not None]
        for value in borders:
            saved.check_unwritten(value)
        recorder = current.recorder
        create, before, recorder.autocast = recorder.grad, recorder.autocast, self.autocast
        try:
            with enable_grad():
                made = _tensors(_with_randomness(self.randomness, self.function))
        finally:
            recorder.autocast = before
        pairs = [
            (tensor._value(), given)
            for tensor, given in zip(made, gradients, strict=True)
            if given is not None and tensor.requires_grad
        ]
        roots, cotangents = [root for root, _ in pairs], [given for _, given in pairs]
        return gradients_of(roots, cotangents, create, create, borders)


def checkpoint(
    function: Callable[..., Any], *args: Any, use_reentrant: bool | None = None,
    preserve_rng_state: bool = True, **kwargs: Any,
) -> Any:  # fmt: skip
    """function(*args, **kwargs), computed again in the backward pass.

    >>> import monograph as mg
    >>> x = mg.tensor(2.0, requires_grad=True)
    >>> mg.autograd.checkpoint(lambda x: (x * x).exp(), x).backward()
    >>> round(x.grad.item(), 3)
    218.393
    """
    from ..ops.random import default_generator

    recorder = current.recorder
    if not recorder.grad:
        return function(*args, **kwargs)
    randomness = default_generator.position if preserve_rng_state else None
    epoch, start, first = recorder.epoch, len(recorder.results), len(recorder.records)
    result = function(*args, **kwargs)
    new = recorder.records[first:]
    if recorder.epoch != epoch or any(r.signature.operator is BACKWARD for r in new):
        return result  # it read a value: all is known by now, and nothing would be gained
    tensors = _tensors(result)
    inside = [t for t in tensors if _is_inside(t._value(), epoch, start)]
    borders = _borders([t._value() for t in inside], epoch, start)
    if not borders:
        return result
    node = Checkpoint(lambda: function(*args, **kwargs), borders, randomness, len(tensors))
    for number, tensor in enumerate(tensors):
        if any(tensor is t for t in inside):
            node.output(tensor._value(), number)
    return result


def _is_inside(value: Value, epoch: int, start: int) -> bool:
    """Whether the function made this value."""
    return value.tape is not None and value.epoch == epoch and value.position >= start


def _borders(roots: Sequence[Value], epoch: int, start: int) -> list[Value]:
    """The values from outside that gradients must go to."""
    found: list[Value] = []
    seen: set[int] = set()
    stack = list(roots)
    while stack:
        value = stack.pop()
        if id(value) in seen or not value.requires_grad:
            continue
        seen.add(id(value))
        if _is_inside(value, epoch, start):
            stack.extend([v for v in value.tape.inputs if v.__class__ is Value])
        else:
            found.append(value)
    return found


def _tensors(tree: Any) -> list[Tensor]:
    """The tensors in a result: one, or those in a tuple, list or dict."""
    if isinstance(tree, Tensor):
        return [tree]
    if isinstance(tree, dict):
        tree = list(tree.values())
    return [t for item in tree for t in _tensors(item)] if isinstance(tree, (tuple, list)) else []


def _with_randomness(state: Any, function: Callable[[], Any]) -> Any:
    """Call a function with random numbers as they were."""
    from ..ops.random import default_generator

    if state is None:
        return function()
    before = default_generator.position
    default_generator.position = state
    try:
        return function()
    finally:
        default_generator.position = before
