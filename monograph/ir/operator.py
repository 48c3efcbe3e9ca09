"""Operator objects: what a recorded node points to.

An operator is a name and a definition, a Python function from nodes to nodes. Its parameters are
either inputs (tensors, or numbers that are filled in at each run) or attributes (axes, flags,
sizes: part of the structure). `derivative`, where given, is a better one than follows from the
definition; it is written with nodes too and so can be differentiated again. It holds wherever the
operator is expanded, also inside the definition of another one.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from . import build
from .dtypes import float32
from .node import Node, Slot

# A derivative of one expansion: its input nodes, and from a cotangent to theirs.
Rule = tuple[tuple[Node, ...], Callable[[Node], tuple[Node | None, ...]]]
_noted = threading.local()


def _is_half(x: Any) -> bool:
    return isinstance(x, Node) and x.dtype.is_half


def _leads_to(node: Node, targets: Sequence[Node]) -> bool:
    """Whether a node is one of the targets, or one that they were made of.

    A definition may give back what its inputs are views of: the largest of one number is that
    number. It has the derivative of what made it.
    """
    stack = [x for x in targets if x.id >= node.id]
    seen: set[int] = set()
    while stack:
        here = stack.pop()
        if here is node:
            return True
        if here.id not in seen:
            seen.add(here.id)
            stack += [x for x in here.inputs if x.id >= node.id]
    return False


@contextmanager
def noting(rules: dict[int, Rule]) -> Iterator[None]:
    """While within, expansions note the derivatives that operators bring, by their output's id."""
    before = getattr(_noted, "rules", None)
    _noted.rules = rules
    try:
        yield
    finally:
        _noted.rules = before


def noted() -> dict[int, Rule] | None:
    """The table that expansions note derivatives in now, if any."""
    return getattr(_noted, "rules", None)


REQUIRED: Any = object()  # stands where a parameter has no default


@dataclass(frozen=True)
class Parameter:
    """One parameter: role "input", "inputs" (a sequence of tensors) or "attribute"."""

    name: str
    role: str
    default: Any
    by_keyword: bool = False


@dataclass(eq=False)
class Operator:
    """An operator, written once."""

    name: str
    definition: Callable[..., Any]
    parameters: tuple[Parameter, ...]
    derivative: Callable[..., Sequence[Node | None]] | None = None
    view: bool = False  # the result shares the first input's storage
    smooth: bool = True  # derivatives pass through it
    selects: bool = False  # its derivative reads values only to choose by them
    widen: bool = True  # 16-bit floats are computed with in float32, and the results rounded
    # In which order the axes of results lie, for users: "" elementwise results as their operands;
    # "contiguous"; "operand", as the first input; "images", channels last if they come so.
    lies: str = ""
    # What PyTorch's derivative reads, where this one's reads something else: by the name of each
    # input the names of the inputs it reads, and "result" (the first) or "results". May be a
    # function of the inputs' kinds and the attributes.
    saves: Any = None
    # Of calls in which each takes the result of the one before as its first input: all at once,
    # from the first input of the first, the second inputs one behind the other, and the attributes
    # of each. None where that cannot be said.
    series: Callable[[Node, Node, Sequence[Any]], Node | None] | None = None
    # Of the inputs' kinds and the attributes: the axis along which the inputs, all of one dtype,
    # lie one behind the other in the result; None where the result is something else.
    joins: Callable[[Sequence[Any], Sequence[Any]], int | None] | None = None
    precision: str | None = None  # what autocast does to its inputs; see `amp/autocast_mode.py`

    def expand(self, inputs: Sequence[Any], attributes: Sequence[Any]) -> tuple[Node, ...]:
        """The nodes that this operator means for these input nodes and attributes."""
        if self.widen and not self.view and any(_is_half(x) for x in inputs):
            return self._expand_wide(inputs, attributes)
        arguments = self.arguments(inputs, attributes)
        result = self._define(arguments)
        if isinstance(result, tuple):
            return result
        rules = getattr(_noted, "rules", None)
        if self.derivative is not None and rules is not None:
            self._note(rules, result, inputs, arguments)
        return (result,)

    def _define(self, arguments: list[Any]) -> Any:
        named = {p.name: a for p, a in zip(self.parameters, arguments, strict=True) if p.by_keyword}
        return self.definition(*arguments[: len(arguments) - len(named)], **named)

    def _expand_wide(self, inputs: Sequence[Any], attributes: Sequence[Any]) -> tuple[Node, ...]:
        """The definition on float32, its results in the dtypes that it has for 16-bit floats."""
        plain = self._define(self.arguments(inputs, attributes))
        wanted = plain if isinstance(plain, tuple) else (plain,)
        wide = [build.cast(x, float32) if _is_half(x) else x for x in inputs]
        made = self.expand(wide, attributes)
        return tuple([build.cast(y, p.dtype) for y, p in zip(made, wanted, strict=True)])

    def _note(
        self, rules: dict[int, Rule], output: Node, inputs: Sequence[Any], arguments: list[Any]
    ) -> None:
        tensors = tuple([x for x in inputs if isinstance(x, Node) and not isinstance(x, Slot)])
        if _leads_to(output, tensors):
            return
        rule = self.derivative
        assert rule is not None
        rules[output.id] = (tensors, lambda g: tuple(rule(g, output, *arguments)))

    def arguments(self, inputs: Sequence[Any], attributes: Sequence[Any]) -> list[Any]:
        """Inputs and attributes in the order of the parameters."""
        given, fixed = iter(inputs), iter(attributes)
        arguments: list[Any] = []
        for parameter in self.parameters:
            if parameter.role == "attribute":
                arguments.append(next(fixed))
            elif parameter.role == "inputs":
                arguments.append([next(given) for _ in range(next(fixed))])
            else:
                arguments.append(next(given))
        return arguments

    def __repr__(self) -> str:
        return f"<operator {self.name}>"
