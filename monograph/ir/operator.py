"""Operator objects: what a recorded node points to.

An operator is a name and a definition, a Python function from nodes to nodes. Its parameters are
either inputs (tensors, or numbers that are filled in at each run) or attributes (axes, flags,
sizes: part of the structure). `derivative`, where given, is a better one than follows from the
definition; it is written with nodes too and so can be differentiated again.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import Any

from .node import Node


@dataclass(frozen=True)
class Parameter:
    """One parameter: role "input", "inputs" (a sequence of tensors) or "attribute"."""

    name: str
    role: str
    default: Any


@dataclass(eq=False)
class Operator:
    """An operator, written once."""

    name: str
    definition: Callable[..., Any]
    parameters: tuple[Parameter, ...]
    derivative: Callable[..., Sequence[Node | None]] | None = None
    view: bool = False  # the result shares the first input's storage
    smooth: bool = True  # derivatives pass through it

    def expand(self, inputs: Sequence[Any], attributes: Sequence[Any]) -> tuple[Node, ...]:
        """The nodes that this operator means for these input nodes and attributes."""
        result = self.definition(*self.arguments(inputs, attributes))
        return result if isinstance(result, tuple) else (result,)

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

    @cached_property
    def digest(self) -> str:
        """Changes when the definition's text does: part of the key of what is kept on disk."""
        functions = [self.definition] + ([self.derivative] if self.derivative else [])
        try:
            text = "".join(inspect.getsource(f) for f in functions)
        except OSError:
            text = repr([f.__code__.co_code for f in functions])
        return blake2b(text.encode(), digest_size=8).hexdigest()

    def __repr__(self) -> str:
        return f"<operator {self.name}>"
