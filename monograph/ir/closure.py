"""Small graphs as Python functions of NumPy calls.

`Closure` writes a graph out once as text, a line for each node, and compiles it. Calling it takes
about as long as the NumPy calls: what `reference.py` works out about a node each time (strides of
views, places that are read, what a sum starts from) is a constant of the text. Nodes without a
line of their own are what the reference says that they are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from . import build, by_numpy, index, reference, scalar
from .convert import converted, widened
from .dtypes import accumulator
from .node import (
    Buffer,
    Const,
    Contract,
    Loop,
    LoopResult,
    Map,
    Node,
    Random,
    Reduce,
    Reindex,
    Slot,
    ancestors,
    coordinates,
)

LARGEST = 1 << 12  # elements of a table of places
MANY = 1 << 8  # numbers of a sum for which the digits of float32 are too few
_SAME = frozenset({"mark", "detach"})


class NoClosure(Exception):
    """The graph has a node that has no meaning by itself: a loop."""


class Closure:
    """A graph as a function: `closure(*given)` is the list of its outputs' values.

    `given` are the values of those inputs that are named in `inputs`, in this order: the numbers of
    Buffers (arrays) and Slots (Python numbers), which are numbered together. NumPy's warnings are
    to be off while it runs.
    """

    def __init__(self, outputs: Sequence[Node]) -> None:
        self._names: dict[int, str] = {}  # of nodes, by id
        self._constants: dict[str, Any] = {
            "converted": converted,
            "widened": widened,
            "ndarray": np.ndarray,
        }
        self._lines: list[str] = []
        self.inputs: tuple[int, ...] = ()
        order = ancestors(outputs)
        numbers = {n.attributes[0] for n in order if isinstance(n, (Buffer, Slot))}
        self.inputs = tuple(sorted(numbers))
        for node in order:
            self._names[node.id] = self._write(node)
        arguments = ", ".join(f"a{number}" for number in self.inputs)
        results = ", ".join(self._names[node.id] for node in outputs)
        body = "".join(f"    {line}\n" for line in self._lines)
        text = f"def closure({arguments}):\n{body}    return [{results}]\n"
        exec(compile(text, "<closure>", "exec"), self._constants)
        self.call: Callable[..., list[Any]] = self._constants["closure"]

    def _write(self, node: Node) -> str:
        """The line of a node; the name of its value."""
        if isinstance(node, Buffer):
            return f"a{node.attributes[0]}"
        if isinstance(node, (Loop, LoopResult)):
            raise NoClosure
        operands = [self._names[source.id] for source in node.inputs]
        if isinstance(node, Slot):
            made = self._slot(node)
        elif isinstance(node, Const):
            return self._constant(np.asarray(node.attributes[0], node.dtype.numpy))
        elif isinstance(node, Map):
            if node.function in _SAME:
                return operands[0]
            return self._map(node, operands)
        elif isinstance(node, Reindex):
            made = self._reindex(node, operands)
        elif isinstance(node, Reduce) and node.combine in reference.COMBINE:
            return self._reduce(node, operands[0])
        else:
            made = self._by_numpy(node, operands) or self._by_reference(node, operands)
        return self._let(made)

    def _let(self, expression: str) -> str:
        name = f"v{len(self._lines)}"
        self._lines.append(f"{name} = {expression}")
        return name

    def _constant(self, value: Any) -> str:
        name = f"c{len(self._constants)}"
        self._constants[name] = value
        return name

    def _slot(self, node: Slot) -> str:
        kind = self._constant(node.dtype.numpy)
        array = self._constant(np.asarray)
        return f"{array}(a{node.attributes[0]}, {kind})"

    def _typed(self, expression: str, node: Node) -> str:
        """The value of an expression in the dtype of a node."""
        name = self._let(expression)
        numpy, dtype = self._constant(node.dtype.numpy), self._constant(node.dtype)
        self._lines.append(f"if {name}.dtype != {numpy}: {name} = converted({name}, {dtype})")
        return name

    def _map(self, node: Map, operands: list[str]) -> str:
        if node.function == "bitcast":
            kind = self._constant(node.dtype.numpy)
            return self._let(f"{operands[0]}.view({kind})")
        function = self._constant(scalar.TABLE[node.function].numpy)
        wide = [
            f"widened({name})" if source.dtype.is_half else name
            for name, source in zip(operands, node.inputs, strict=True)
        ]
        return self._typed(f"{function}({', '.join(wide)})", node)

    def _reduce(self, node: Reduce, operand: str) -> str:
        combine, axes = node.attributes
        work = accumulator(node.dtype).numpy
        if combine == "add" and work == np.float32 and node.inputs[0].size > MANY * node.size:
            work = np.dtype(np.float64)  # NumPy adds up along outer axes one by one
        reduce = self._constant(reference.COMBINE[combine].reduce)
        start = self._constant(build.IDENTITY[combine](node.dtype))
        wide = f"widened({operand})" if node.inputs[0].dtype.is_half else operand
        kind = self._constant(work)
        return self._typed(f"{reduce}({wide}, {tuple(axes)}, {kind}, None, False, {start})", node)

    def _reindex(self, node: Reindex, operands: list[str]) -> str:
        where, guard, fill = node.attributes
        source = node.inputs[0]
        if len(operands) > 1 or 0 in node.shape or source.size == 0:
            return self._by_reference(node, operands)
        affine = all(map(index.is_affine, where))
        if affine and not guard and all(map(reference._inside, where, source.shape)):
            return self._view(node, operands[0])
        if node.size > LARGEST:
            return self._by_reference(node, operands)
        points = reference._Points(node.shape, ())
        flat: Any = 0
        for e, extent in zip(where, source.shape, strict=True):
            flat = flat * extent + np.clip(points.evaluate(e), 0, extent - 1)
        places = self._constant(np.array(np.broadcast_to(flat, node.shape), np.intp))
        contiguous = self._constant(np.ascontiguousarray)
        taken = f"{contiguous}({operands[0]}).reshape(-1)[{places}]"
        if not guard:
            return taken
        allowed = self._constant(np.array(np.broadcast_to(points.allowed(guard), node.shape)))
        choose, other = self._constant(np.where), self._constant(source.dtype.numpy.type(fill))
        return f"{choose}({allowed}, {taken}, {other})"

    def _view(self, node: Reindex, operand: str) -> str:
        """A view of an array that lies in one piece."""
        source = node.inputs[0]
        size = source.dtype.itemsize
        steps = [size * math.prod(source.shape[k + 1 :]) for k in range(len(source.shape))]
        where = node.attributes[0]
        begin = sum(index.split(e)[0] * step for e, step in zip(where, steps, strict=True))
        strides = tuple(
            sum((index.coefficient(e, v) or 0) * step for e, step in zip(where, steps, strict=True))
            for v in coordinates(node.shape)
        )
        contiguous = self._constant(np.ascontiguousarray)
        whole = operand if not source.shape else f"{contiguous}({operand})"
        kind = self._constant(node.dtype.numpy)
        return f"ndarray({tuple(node.shape)}, {kind}, {whole}, {begin}, {strides})"

    def _by_numpy(self, node: Node, operands: list[str]) -> str | None:
        """A product of matrices or a draw, where NumPy does it in a few calls."""
        function: Callable[..., Any] | None = None
        if isinstance(node, Contract):
            function = by_numpy.product_of(node)
        elif isinstance(node, Random):
            function = by_numpy.bits_of(node)
        return None if function is None else f"{self._constant(function)}({', '.join(operands)})"

    def _by_reference(self, node: Node, operands: list[str]) -> str:
        meaning, itself = self._constant(reference.MEANING[type(node)]), self._constant(node)
        array = self._constant(np.asarray)
        given = "".join([f", {array}({name})" for name in operands])
        return f"{meaning}({itself}{given})"
