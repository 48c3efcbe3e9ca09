"""Graphs as plain data, so that a program on disk may hold one.

`encode` turns nodes into nested lists of numbers and text that JSON can write; `decode` builds the
nodes again. Index expressions travel by their keys, and are rebuilt as they were, not simplified.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from . import index, node
from .dtypes import BY_NAME
from .index import Condition, Expr
from .node import Node, ancestors, make

_KINDS: dict[str, type[Node]] = {
    kind.__name__: kind for kind in vars(node).values()
    if isinstance(kind, type) and issubclass(kind, Node) and kind is not Node
}  # fmt: skip
_TYPES: dict[str, type] = {kind.__name__: kind for kind in (bool, int, float)}
_EXPRESSIONS: dict[str, Any] = {
    "var": index.Var, "sum": index.Sum, "div": index.FloorDiv,
    "mod": index.Mod, "product": index.Product, "read": index.Read,
    "min": lambda a, b: index.Extreme("min", a, b),
    "max": lambda a, b: index.Extreme("max", a, b),
}  # fmt: skip


def encode(outputs: Sequence[Node]) -> list[Any]:
    """[lines, positions of the outputs]: one line per node, inputs before their users.

    >>> from monograph.ir import build, dtypes
    >>> encode([build.buffer(0, (2,), dtypes.float32)])
    [[['Buffer', [], [2], 'float32', [0]]], [0]]
    """
    lines: list[Any] = []
    place: dict[int, int] = {}
    for each in ancestors(outputs):
        place[each.id] = len(lines)
        inputs = [place[source.id] for source in each.inputs]
        facts = [_encode(value) for value in each.attributes]
        lines.append([each.kind, inputs, list(each.shape), each.dtype.name, facts])
    return [lines, [place[each.id] for each in outputs]]


def decode(stored: Sequence[Any]) -> list[Node]:
    """The nodes that `encode` was given."""
    lines, outputs = stored
    made: list[Node] = []
    for kind, inputs, shape, dtype, facts in lines:
        made.append(
            make(
                _KINDS[kind], tuple([made[n] for n in inputs]), tuple(shape), BY_NAME[dtype],
                *[_decode(value) for value in facts],
            )
        )  # fmt: skip
    return [made[n] for n in outputs]


def _encode(value: Any) -> Any:
    if isinstance(value, Expr):
        return {"expr": [_encode(part) for part in value.key]}
    if isinstance(value, Condition):
        return {"condition": [_encode(value.expr), value.equal]}
    if isinstance(value, tuple):
        return [_encode(part) for part in value]
    if isinstance(value, complex):
        return {"complex": [_encode(value.real), _encode(value.imag)]}
    if isinstance(value, float):  # JSON has neither infinity nor NaN
        return {"float": value.hex()}
    if isinstance(value, type):
        return {"type": value.__name__}
    return value


def _decode(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return tuple([_decode(part) for part in value])
    if not isinstance(value, dict):
        return value
    ((kind, content),) = value.items()
    if kind == "float":
        return float.fromhex(content)
    if kind == "type":
        return _TYPES[content]
    parts = [_decode(part) for part in content]
    if kind == "condition":
        return Condition(*parts)
    if kind == "complex":
        return complex(*parts)
    return _EXPRESSIONS[parts[0]](*parts[1:])
