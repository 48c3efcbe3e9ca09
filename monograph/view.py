"""How a tensor is seen in its storage."""

from __future__ import annotations

from typing import Any

from .storage import Meta, Value

Origin = tuple[Meta, tuple[int, ...] | None, tuple[Any, ...]]
STEPS = 2  # views of an origin, after which a later view becomes the origin
CUTS = ("detach", "data")  # views that derivatives do not pass through
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
        return steps_of(self.links)

    def cut(self) -> tuple[Any, tuple[Any, ...]] | None:
        """The links up to the last `detach` or `data`, and the steps behind it; None without."""
        links: Any = self.links
        steps: list[Any] = []
        while links is not None:
            before, operator, attributes = links
            if operator.name in CUTS:
                return links, tuple(reversed(steps))
            steps.append((operator, attributes))
            links = before
        return None


def steps_of(links: Any) -> tuple[Any, ...]:
    """(operator, attributes) of every step of the links of a view."""
    steps: list[Any] = []
    while links is not None:
        links, operator, attributes = links
        steps.append((operator, attributes))
    return tuple(reversed(steps))
