"""Small graphs as Python functions of NumPy calls.

`Closure` writes a graph out once as text, a line for each node, and compiles it. Calling it takes
about as long as the NumPy calls: what `reference.py` works out about a node each time (strides of
views, places that are read, what a sum starts from) is a constant of the text. Nodes without a
line of their own are what the reference says that they are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from . import build, by_numpy, index, reference, scalar
from .convert import converted, widened
from .dtypes import DType, accumulator
from .node import (
    Buffer,
    Const,
    Contract,
    Coordinate,
    Loop,
    LoopResult,
    Map,
    Node,
    Random,
    Reduce,
    Reindex,
    Shape,
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
            if spread_of(node) is None:  # else it is written where it is read
                self._names[node.id] = self._write(node)
        arguments = ", ".join(f"a{number}" for number in self.inputs)
        results = ", ".join([self._name(node) for node in outputs])
        body = "".join(f"    {line}\n" for line in self._lines)
        text = f"def closure({arguments}):\n{body}    return [{results}]\n"
        exec(compile(text, "<closure>", "exec"), self._constants)
        self.call: Callable[..., list[Any]] = self._constants["closure"]

    def _name(self, node: Node) -> str:
        """The name of a node's value, of its own shape."""
        if node.id not in self._names:
            self._names[node.id] = self._write(node)
        return self._names[node.id]

    def _write(self, node: Node) -> str:
        """The line of a node; the name of its value."""
        if isinstance(node, Buffer):
            return f"a{node.attributes[0]}"
        if isinstance(node, (Loop, LoopResult)):
            raise NoClosure
        if isinstance(node, Const):
            return self._constant(np.asarray(node.attributes[0], node.dtype.numpy))
        if isinstance(node, Coordinate) and node.size <= LARGEST:
            return self._constant(reference.MEANING[Coordinate](node))
        if isinstance(node, Map) and node.function not in _SAME:
            return self._map(node)
        operands = [self._name(source) for source in node.inputs]
        if isinstance(node, Map):
            return operands[0]
        if isinstance(node, Slot):
            made = self._slot(node)
        elif isinstance(node, Reindex):
            if isinstance(node.inputs[0], Const) and len(node.inputs) == 1 and node.size <= LARGEST:
                value = reference.MEANING[Const](node.inputs[0])
                return self._constant(np.array(reference.MEANING[Reindex](node, value)))
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

    def _typed(self, expression: str, node: Node, made: Any) -> str:
        """The value of an expression, which has the dtype `made`, in the dtype of a node."""
        name = self._let(expression)
        if made == node.dtype.numpy:
            return name
        return self._let(f"converted({name}, {self._constant(node.dtype)})")

    def _map(self, node: Map) -> str:
        if node.function == "bitcast":
            kind = self._constant(node.dtype.numpy)
            return self._let(f"{self._name(node.inputs[0])}.view({kind})")
        function = scalar.loud(scalar.TABLE[node.function], node.inputs[-1].dtype)
        operands = self._operands(node)
        wide = [
            f"widened({name})" if source.dtype.is_half else name
            for name, source in zip(operands, node.inputs, strict=True)
        ]
        made = _dtype_of(function, *[source.dtype for source in node.inputs])
        return self._typed(f"{self._constant(function)}({', '.join(wide)})", node, made)

    def _operands(self, node: Map) -> list[str]:
        """What a function is applied to: NumPy itself repeats what is to be broadcast."""
        spread = [spread_of(source) for source in node.inputs]
        if None not in spread and node.shape:
            spread[0] = None  # one has the shape of the result
        found = []
        for source, shape in zip(node.inputs, spread, strict=True):
            if shape is None or source.id in self._names:
                found.append(self._name(source))
                continue
            (before,) = source.inputs
            name = self._name(before)
            ones = len(before.shape) - len(shape)
            fits = ones >= 0 and before.shape == (1,) * ones + shape
            found.append(name if fits else f"{name}.reshape({shape})")
        return found

    def _reduce(self, node: Reduce, operand: str) -> str:
        combine, axes = node.attributes
        work = accumulator(node.dtype).numpy
        if combine == "add" and work == np.float32 and node.inputs[0].size > MANY * node.size:
            work = np.dtype(np.float64)  # NumPy adds up along outer axes one by one
        reduce = self._constant(reference.COMBINE[combine].reduce)
        start = self._constant(build.IDENTITY[combine](node.dtype))
        wide = f"widened({operand})" if node.inputs[0].dtype.is_half else operand
        kind = self._constant(work)
        total = f"{reduce}({wide}, {tuple(axes)}, {kind}, None, False, {start})"
        return self._typed(total, node, work)

    def _reindex(self, node: Reindex, operands: list[str]) -> str:
        where, guard, fill = node.attributes
        source = node.inputs[0]
        if 0 in node.shape or source.size == 0:
            return self._by_reference(node, operands)
        if len(operands) > 1:
            return self._gather(node, operands) or self._by_reference(node, operands)
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

    def _gather(self, node: Reindex, operands: list[str]) -> str | None:
        """Elements at places that arrays of integers name, of which each is read at its own point.

        A place outside is one inside here: whoever reads there checks it first.
        """
        source = node.inputs[0]
        where, guard, _ = node.attributes
        if guard or node.size > LARGEST:
            return None
        begin, terms = index.split(index.flatten(where, index.contiguous_strides(source.shape)))
        axes = {axis: k for k, axis in enumerate(coordinates(node.shape))}
        places = [index.num(begin)]
        parts = []
        for atom, step in terms.items():
            if not isinstance(atom, index.Read):
                places.append(index.scale(atom, step))
                continue
            shape = _spread(atom, axes, node.shape)
            if shape is None or math.prod(shape) != node.inputs[1 + atom.source].size:
                return None
            part = f"{operands[1 + atom.source]}.reshape({shape})"
            parts.append(part if step == 1 else f"{part} * {step}")
        fixed = np.asarray(reference._Points(node.shape, ()).evaluate(index.total(places)))
        if fixed.any() or not parts:
            parts.append(self._constant(fixed))
        taken = f"{operands[0]}.reshape(-1).take({' + '.join(parts)}, None, None, 'clip')"
        return f"{self._constant(np.broadcast_to)}({taken}, {tuple(node.shape)})"

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


@lru_cache(maxsize=1 << 12)
def _dtype_of(function: Callable[..., Any], *dtypes: DType) -> np.dtype[Any]:
    """The dtype that NumPy gives a function of arrays of these."""
    samples = [widened(np.ones(1, dtype.numpy)) for dtype in dtypes]
    with np.errstate(all="ignore"):
        return np.asarray(function(*samples)).dtype


def _spread(read: index.Read, axes: dict[Any, int], shape: Shape) -> tuple[int, ...] | None:
    """How to reshape an array that is read at point (i, j) into one with all axes of the points.

    None if it is read at other places than those that are called like the point's.
    """
    numbers = [axes.get(place, -1) for place in read.index if place != index.ZERO]
    if -1 in numbers or numbers != sorted(set(numbers)):
        return None
    return tuple([extent if k in numbers else 1 for k, extent in enumerate(shape)])


def spread_of(node: Node) -> Shape | None:
    """The shape in which a node's operand is to be given so that NumPy broadcasts it to the node.

    None of a node that is no broadcast. Axes stay in their order, and others of one place between.
    """
    if not isinstance(node, Reindex) or len(node.inputs) > 1 or node.guard or 0 in node.shape:
        return None
    source = node.inputs[0]
    if source.size == 0 or source.size == node.size:
        return None
    axes: dict[Any, int] = {axis: k for k, axis in enumerate(coordinates(node.shape))}
    shape = [1] * len(node.shape)
    last = -1
    for place, extent in zip(node.index, source.shape, strict=True):
        if extent == 1 and place == index.ZERO:
            continue
        k = axes.get(place, -1)
        if k <= last or node.shape[k] != extent:
            return None
        shape[k], last = extent, k
    first = next((k for k, extent in enumerate(shape) if extent > 1), len(shape))
    return tuple(shape[min(first, len(shape)) :])
