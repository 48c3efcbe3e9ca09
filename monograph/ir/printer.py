"""Graphs as text: one line per node, in an order in which each line uses only lines above it.

`describe(node)` is that line without its inputs' lines, and is what `repr` shows; `format_graph`
lists all that the outputs need. A line reads `%12 float32[8, 16] = Map add(%3, %11)`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .index import Expr, Guard, show
from .node import (
    Buffer,
    Call,
    Const,
    Contract,
    Coordinate,
    Loop,
    LoopResult,
    Map,
    Move,
    Node,
    Reduce,
    Reindex,
    Scatter,
    Slot,
    ancestors,
)


def describe(node: Node) -> str:
    """One line that says what the node is.

    >>> from monograph.ir import build, dtypes
    >>> describe(build.buffer(0, (2, 3), dtypes.float32)).split(" ", 1)[1]
    'float32[2, 3] = Buffer 0'
    """
    body = BODY.get(type(node), _plain)(node)
    return f"%{node.id} {node.dtype.name}{_brackets(node.shape)} = {node.kind} {body}".rstrip()


def format_graph(outputs: Sequence[Node]) -> str:
    """Every node that the outputs need, and a last line that names the outputs.

    The body of a loop stands indented below it.
    """
    lines = []
    for node in ancestors(outputs):
        lines.append(describe(node))
        if isinstance(node, Loop):
            inner = format_graph(node.body.outputs).splitlines()
            lines += [f"    {line}" for line in inner]
    return "\n".join([*lines, f"return {_names(outputs)}"])


def _name(node: Node) -> str:
    return f"%{node.id}"


def _names(nodes: Sequence[Node]) -> str:
    return ", ".join(map(_name, nodes))


def _brackets(parts: Sequence[object]) -> str:
    return f"[{', '.join(map(str, parts))}]"


def _places(where: Sequence[Expr]) -> str:
    return f"[{', '.join(map(show, where))}]"


def _guarded(guard: Guard) -> str:
    return f" where {' and '.join(map(repr, guard))}" if guard else ""


def _reading(node: Node) -> str:
    """Which node each `read0`, `read1` … in an index refers to."""
    reads = [f"read{n} = {_name(source)}" for n, source in enumerate(node.inputs[1:])]
    return f" with {', '.join(reads)}" if reads else ""


def _plain(node: Node) -> str:
    return ", ".join([*map(_name, node.inputs), *map(str, node.attributes)])


def _slot(node: Node) -> str:
    number, number_type = node.attributes
    return f"{number} {number_type.__name__}"


def _coordinate(node: Node) -> str:
    return f"i{node.attributes[0]}"


def _map(node: Node) -> str:
    return f"{node.attributes[0]}({_names(node.inputs)})"


def _reindex(node: Node) -> str:
    where, guard, fill = node.attributes
    otherwise = f" else {fill}" if guard else ""
    source = _name(node.inputs[0])
    return f"{source}{_places(where)}{_guarded(guard)}{otherwise}{_reading(node)}"


def _reduce(node: Node) -> str:
    combine, axes = node.attributes
    return f"{combine} {_name(node.inputs[0])} over {_brackets(axes)}"


def _scatter(node: Node) -> str:
    combine, where, guard = node.attributes
    source = _name(node.inputs[0])
    return f"out{_places(where)} {combine}= {source}{_guarded(guard)}{_reading(node)}"


def _contract(node: Node) -> str:
    domain, fo, fa, fb = node.attributes
    a, b = node.inputs
    product = f"{_name(a)}{_places(fa)} * {_name(b)}{_places(fb)}"
    return f"out{_places(fo)} += {product} over {_brackets(domain)}"


def _call(node: Node) -> str:
    function, options = node.attributes
    return f"{function}({', '.join([*map(_name, node.inputs), *map(repr, options)])})"


def _loop(node: Node) -> str:
    assert isinstance(node, Loop)
    body = node.body
    count = len(body.carries)
    sequences = node.inputs[count : count + body.sequences]
    shared = node.inputs[count + body.sequences :]
    order = " backwards" if node.reverse else ""
    return (
        f"{node.trips} times{order}, carrying {_names(node.inputs[:count])} over "
        f"{_names(sequences)} with {_names(shared)}, as {_names(body.parameters)}"
    )


def _loop_result(node: Node) -> str:
    return f"{node.attributes[0]} of {_name(node.inputs[0])}"


def _move(node: Node) -> str:
    return f"{_name(node.inputs[0])} to {node.attributes[0]}"


BODY: dict[type[Node], Callable[[Node], str]] = {
    Buffer: _plain,
    Const: _plain,
    Slot: _slot,
    Coordinate: _coordinate,
    Map: _map,
    Reindex: _reindex,
    Reduce: _reduce,
    Scatter: _scatter,
    Contract: _contract,
    Call: _call,
    Loop: _loop,
    LoopResult: _loop_result,
    Move: _move,
}
