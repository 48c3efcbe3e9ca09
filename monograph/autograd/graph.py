"""The graph that users see: `grad_fn` and what it leads to.

The tape itself is made of records (`record.py`), one per operator call. A `Node` is how a user
looks at one. Nodes whose derivative is Python code, custom functions for instance, stand on the
tape themselves: a backward pass is split there, and their code runs once, inside the call.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakValueDictionary

from ..recorder import Record, current
from ..storage import Value
from .hooks import RemovableHandle, in_use, register


class NodeHooks:
    """Hooks on a node: before its derivative is taken, and after."""

    def __init__(self) -> None:
        self.before: dict[int, Callable[..., Any]] = {}
        self.after: dict[int, Callable[..., Any]] = {}


class Node:
    """A step that a backward pass takes.

    >>> import monograph as mg
    >>> x = mg.tensor(3.0, requires_grad=True)
    >>> (x * 2).grad_fn.name()
    'MulBackward0'
    """

    hooks: NodeHooks | None = None

    def name(self) -> str:
        """The name of the derivative."""
        return type(self).__name__

    @property
    def next_functions(self) -> tuple[tuple[Node | None, int], ...]:
        """The nodes that gradients go on to: (node, number of its output) per input."""
        return ()

    @property
    def metadata(self) -> dict[str, Any]:
        return self.__dict__.setdefault("_metadata", {})

    def _node_hooks(self) -> NodeHooks:
        if self.hooks is None:
            self.hooks = NodeHooks()
        return self.hooks

    def register_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call hook(grad_inputs, grad_outputs) after this step; it may replace grad_inputs."""
        return register(self._node_hooks().after, hook)

    def register_prehook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call hook(grad_outputs) before this step; it may replace them."""
        return register(self._node_hooks().before, hook)

    def __repr__(self) -> str:
        return f"<{self.name()} object at {id(self):#x}>"


def backward_name(operator_name: str) -> str:
    """The name of an operator's derivative: log_softmax → LogSoftmaxBackward0."""
    return "".join(part.capitalize() for part in operator_name.split("_")) + "Backward0"


class RecordNode(Node):
    """A recorded operator, seen from its results."""

    def __init__(self, made: Record) -> None:
        self.record = made

    def name(self) -> str:
        """The name of the derivative."""
        return backward_name(self.record.signature.operator.name)

    @property
    def next_functions(self) -> tuple[tuple[Node | None, int], ...]:
        return edges(self.record.inputs)

    def _node_hooks(self) -> NodeHooks:
        if self.record.hooks is None:
            self.record.hooks = NodeHooks()
        hooks: NodeHooks = self.record.hooks
        return hooks


class AccumulateGrad(Node):
    """The end of the graph: the gradient is added to a leaf's `.grad`."""

    def __init__(self, variable: Any) -> None:
        self.variable = variable

    def _node_hooks(self) -> NodeHooks:
        raise NotImplementedError(
            "use register_hook or register_post_accumulate_grad_hook of the tensor"
        )


class PythonNode(Node):
    """A step on the tape whose derivative is Python code.

    It has what a record has: `inputs`, the values that gradients go to, `walk` and `marked`.
    `order` is its place among all that was recorded.
    """

    walk = marked = 0

    def __init__(self, inputs: Sequence[Value | None]) -> None:
        in_use.python = True
        recorder = current.recorder
        self.inputs = list(inputs)
        self.order = (recorder.epoch, len(recorder.results))
        self.count = 1  # of results
        self.numbers: dict[int, int] = {}  # id of a result's value → its number

    def output(self, value: Value, number: int) -> None:
        """Make this value the result of that number."""
        self.numbers[id(value)] = number
        value.requires_grad, value.tape = True, self

    @property
    def next_functions(self) -> tuple[tuple[Node | None, int], ...]:
        return edges(self.inputs)

    def pull(self, gradients: list[Any]) -> Sequence[Any]:
        """From one gradient (or None) per output to one per input."""
        raise NotImplementedError

    def release(self) -> None:
        """Forget what the derivative needs."""


class Untracked(PythonNode):
    """New contents that derivatives do not know of: written within no_grad, or by way of detach().

    The tensor goes on standing where it stood, as in PyTorch: its gradient is that of the contents
    before.
    """

    def __init__(self, old: Value, new: Value) -> None:
        super().__init__([old])
        self.output(new, 0)

    def name(self) -> str:
        """The name of the derivative of what was there before."""
        (old,) = self.inputs
        node = node_of(old) if old is not None else None
        return node.name() if node is not None else "UntrackedBackward0"

    def pull(self, gradients: list[Any]) -> Sequence[Any]:
        """The same gradient."""
        return gradients


_nodes: WeakValueDictionary[int, Node] = WeakValueDictionary()


def node_of(value: Value) -> Node | None:
    """The node that made a value; None for leaves."""
    tape = value.tape
    if tape is None or isinstance(tape, Node):
        return tape
    found = _nodes.get(id(tape))
    if not isinstance(found, RecordNode) or found.record is not tape:
        found = _nodes[id(tape)] = RecordNode(tape)
    return found


def output_number(value: Value) -> int:
    """Which output of its node a value is."""
    if isinstance(value.tape, PythonNode):
        return value.tape.numbers[id(value)]
    return value.index if value.tape is not None else 0


def edges(inputs: Sequence[Any]) -> tuple[tuple[Node | None, int], ...]:
    """(node, number of its output) for every input that is a tensor or could be one."""
    found: list[tuple[Node | None, int]] = []
    for value in inputs:
        if not isinstance(value, Value) or not value.requires_grad:
            found.append((None, 0))
        elif value.tape is not None:
            found.append((node_of(value), output_number(value)))
        else:
            leaf = value.leaf() if value.leaf is not None else None
            found.append((_accumulator(leaf), 0))
    return tuple(found)


def _accumulator(leaf: Any) -> Node | None:
    if leaf is None:
        return None
    found = _nodes.get(id(leaf))
    if not isinstance(found, AccumulateGrad) or found.variable is not leaf:
        found = _nodes[id(leaf)] = AccumulateGrad(leaf)
    return found


# What PyTorch has here too, and the file that holds it.
_ELSEWHERE = {
    "disable_saved_tensors_hooks": "saved_hooks", "save_on_cpu": "saved_hooks",
    "saved_tensors_hooks": "saved_hooks", "register_multi_grad_hook": "multi_hooks",
}  # fmt: skip
__all__ = ["Node", *_ELSEWHERE]


def __getattr__(name: str) -> Any:
    """Hooks on saved tensors and on several tensors, which lie in files of their own."""
    if name in _ELSEWHERE:
        return getattr(importlib.import_module(f".{_ELSEWHERE[name]}", __package__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
