"""How a tensor is seen in its storage."""

from __future__ import annotations

from typing import Any

from .storage import Meta, Value

Origin = tuple[Meta, tuple[int, ...] | None, tuple[Any, ...]]
STEPS = 2  # views of an origin, after which a later view becomes the origin
NO_GRAD = ("a view made within no_grad", 0)  # the birth of one


class View:
    """How a tensor is seen in its storage: the view operators that lead from there to it.

    They are linked, (operators before, operator, attributes), so that a view of a view is made in
    the same time however many came before it. `origin` serves its geometry in the same way: kind
    and strides of an earlier view that begins where the storage does, and the steps from there.
    `birth` says what forbids a write that derivatives pass through: see `autograd/births.py`.
    """

    __slots__ = ("links", "version", "value", "origin", "birth")

    def __init__(
        self,
        links: tuple[Any, ...],
        version: int,
        value: Value,
        origin: Origin | None = None,
        birth: Any = None,
    ) -> None:
        self.links = links
        self.version = version
        self.value = value
        self.origin = origin
        self.birth = birth

    def chain(self) -> tuple[Any, ...]:
        """(operator, attributes) of every step, from the storage on."""
        steps: list[Any] = []
        links: Any = self.links
        while links is not None:
            links, operator, attributes = links
            steps.append((operator, attributes))
        return tuple(reversed(steps))
