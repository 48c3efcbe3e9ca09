"""Host calls: what no kernel computes runs through the reference interpreter, inside the program.

A Call is one by nature. So is every node of an element type for which the backend has no kernels,
or that reads one: the backend says so by `supports(dtype)`. Such nodes that only feed one another
are evaluated together; what others use, or what several use, is kept in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ..ir import build
from ..ir.dtypes import DType, Kind
from ..ir.extent import Extent
from ..ir.native import TABLE
from ..ir.node import (
    Buffer,
    Call,
    Const,
    Coordinate,
    Loop,
    LoopResult,
    Node,
    Slot,
    ancestors,
    make,
)

Supports = Callable[[DType], bool]


def everything(dtype: DType) -> bool:
    """What a backend supports that does not say."""
    return True


def real_numbers(dtype: DType) -> bool:
    """The element types for which kernels are generated."""
    return dtype.kind <= Kind.FLOAT


def runs_on_host(node: Node, supports: Supports) -> bool:
    """Whether the node is left to the reference interpreter."""
    if isinstance(node, Call):
        return True
    if isinstance(node, (Buffer, Slot, Loop, LoopResult)):
        return False
    return not all(supports(dtype) for dtype in {node.dtype, *(n.dtype for n in node.inputs)})


@dataclass(frozen=True)
class HostCall:
    """One value: `graph` computes `node` from buffers that are the `operands`, in order."""

    node: Node
    operands: tuple[Node, ...]
    graph: Node

    @property
    def may_fail(self) -> bool:
        """Whether some data has no answer."""
        calls = [n for n in ancestors([self.graph]) if isinstance(n, Call)]
        return any(TABLE[call.function].fails is not None for call in calls)

    @property
    def has_fixed_sizes(self) -> bool:
        """Whether no size that is left open is among those of the call: it needs numbers."""
        for node in ancestors([self.graph]):
            if not isinstance(node, (Call, Buffer, Const, Slot)):
                return False  # index maps may hold sizes too
            if any([_is_open(item) for item in (*node.shape, *node.attributes)]):
                return False
        return True

    @property
    def label(self) -> str:
        """A word for what is computed."""
        what: str = getattr(self.node, "function", self.node.kind)
        return f"host {what}"


def _is_open(value: Any) -> bool:
    """Whether a size that is left open is in a value of an attribute."""
    if isinstance(value, tuple):
        return any([_is_open(item) for item in value])
    return isinstance(value, Extent)


def host_call(node: Node, in_memory: Callable[[Node], bool]) -> HostCall:
    """The call that computes `node`, down to what is in memory."""
    inner: dict[int, Node] = {}
    operands: dict[int, Node] = {}
    stack = [node]
    while stack:
        here = stack.pop()
        if here.id in inner or here.id in operands:
            continue
        if here is not node and in_memory(here):
            operands[here.id] = here
        else:
            inner[here.id] = here
            stack.extend(here.inputs)
    made: dict[int, Node] = {}
    for number, source in enumerate(operands.values()):
        made[source.id] = make(Buffer, (), source.shape, source.dtype, number)
    for key in sorted(inner):
        here = inner[key]
        inputs = tuple([made[source.id] for source in here.inputs])
        made[key] = make(type(here), inputs, here.shape, here.dtype, *here.attributes)
    return HostCall(node, tuple(operands.values()), made[node.id])


def kept_for_host(nodes: Sequence[Node], outputs: Iterable[Node], host: set[int]) -> set[int]:
    """ids that must be in memory because of host calls: their results, and what they read."""
    asked = {node.id for node in outputs}
    users: dict[int, list[Node]] = {node.id: [] for node in nodes}
    kept: set[int] = set()
    for node in nodes:
        for source in set(node.inputs):
            users[source.id].append(node)
            if node.id in host and source.id not in host and not _is_known(source):
                kept.add(source.id)
    for node in nodes:
        if node.id not in host or (_is_known(node) and node.id not in asked):
            continue
        mine = users[node.id]
        alone = len(mine) == 1 and mine[0].id in host and not isinstance(node, Call)
        if node.id in asked or not alone:
            kept.add(node.id)
    return kept


def _is_known(node: Node) -> bool:
    """Numbers and coordinates are made anew wherever they are used."""
    return isinstance(node, (Const, Coordinate)) or build.constant_value(node) is not None
