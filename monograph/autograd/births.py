"""Views that must not be written to where derivatives are recorded, and what to say then.

PyTorch forbids such writes into the results of `split` or `unbind`, whose gradient is one step for
all of them, and into views made within `no_grad`, of which it is not clear what is meant. Views of
such views are forbidden as well. Within `no_grad` all of them may be written to. Once their base is
written to, such views may be read and detached, but nothing that needs derivatives can use them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import errors, record
from ..storage import Value
from ..tensor import Tensor
from ..view import NO_GRAD
from .graph import Node, PythonNode, node_of


def several(name: str, pieces: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """The pieces, noted as the results of one step with that name."""
    for number, piece in enumerate(pieces):
        view = piece._view if isinstance(piece, Tensor) else None
        if view is not None and view.birth is not NO_GRAD:
            view.birth = (name, number)
    return tuple(pieces)


def refuse(written: Tensor) -> None:
    """Raise, as PyTorch does, that this view must not be written to."""
    assert written._view is not None
    raise errors.GradientError(_message(written._view.birth, "is being"))


class Refused(PythonNode):
    """In place of the derivative of such a view, once its base was written to."""

    def __init__(self, seen: Value, birth: Any) -> None:
        super().__init__([seen.viewed])
        self.birth = birth
        self.output(seen, 0)
        record.watch_uses(_refuse_uses)

    def pull(self, gradients: list[Any]) -> Sequence[Any]:
        """Raise: what the gradient would be is not defined."""
        raise self.refusal()

    def refusal(self) -> Exception:
        """What to raise where the derivative is asked for."""
        changed = "its base or another view of its base has been"
        return errors.GradientError(_message(self.birth, changed))


def node_shown(value: Value) -> Node | None:
    """The node that made a value, as users see it; None for leaves."""
    if isinstance(value.tape, Refused):
        raise value.tape.refusal()
    return node_of(value)


def _refuse_uses(inputs: Sequence[Any]) -> None:
    for value in inputs:
        if isinstance(value, Value) and isinstance(value.tape, Refused):
            raise value.tape.refusal()


def _message(birth: Any, changed: str) -> str:
    if birth is NO_GRAD:
        return (
            f"A view was created in no_grad mode and {changed} modified inplace with grad mode "
            "enabled. Given that this use case is ambiguous and error-prone, it is forbidden. You "
            "can clarify your code by moving both the view and the inplace either both inside the "
            "no_grad block (if you don't want the inplace to be tracked) or both outside (if you "
            "want the inplace to be tracked)."
        )
    name, number = birth
    return (
        f"Output {number} of {name} is a view and {changed} modified inplace. This view is the "
        "output of a function that returns multiple views. Such functions do not allow the output "
        "views to be modified inplace. You should replace the inplace operation by an "
        "out-of-place one."
    )
