"""Dual numbers: tensors that carry a tangent within a block, as in `torch.autograd.forward_ad`.

Nothing is carried along. A dual tensor is a copy that requires gradients, and the level remembers
its tangent. The tangent of a result is found when it is asked for, from the recording, as `jvp`
does: the transpose of the pull. So it goes where gradients go: `detach` and `no_grad` end it.
Results of a custom function that has `jvp` and no `backward` are dual tensors anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from .. import errors
from ..recorder import current
from ..tensor import Tensor
from .engine import grad as gradients
from .modes import enable_grad
from .transforms import _internal, _reaches_outside, _zeros
from .vmap import reached

__all__ = [
    "UnpackedDualTensor", "dual_level", "enter_dual_level", "exit_dual_level", "make_dual",
    "unpack_dual",
]  # fmt: skip


class UnpackedDualTensor(NamedTuple):
    """A tensor and its tangent, which is None if it has none."""

    primal: Tensor
    tangent: Tensor | None


class _Level:
    """The dual tensors of a level: what they were made of, and their tangents."""

    def __init__(self) -> None:
        self.outer_grad = current.recorder.grad
        self.sources: list[Tensor] = []
        self.tangents: list[Tensor] = []
        self.given: list[tuple[Any, Tensor]] = []  # values handed out, and tangents as given

    def depends(self, tensor: Tensor) -> bool:
        """Whether a tensor was computed from one of the duals."""
        own = {id(source._value()) for source in self.sources}
        return any(id(value) in own for value in reached([tensor._value()]))

    def handed_out(self, tensor: Tensor) -> Tensor:
        """A tensor without its tangent."""
        outside = self.outer_grad and _reaches_outside([tensor])
        return tensor if outside else tensor.detach()

    def tangent(self, tensor: Tensor) -> Tensor:
        """The very tangent of a dual tensor as it was made; of others J t."""
        value = tensor._value()
        for made, tangent in self.given:
            if made is value:
                return tangent
        return self.handed_out(self.pushed(tensor))

    def pushed(self, tensor: Tensor) -> Tensor:
        """J t, as the transpose of u ↦ Jᵀ u."""
        probe = _zeros(tensor).requires_grad_()  # any number would do
        _internal(probe._value())
        with enable_grad():
            pulled = gradients(
                [tensor], self.sources, [probe],
                retain_graph=True, create_graph=True, allow_unused=True,
            )  # fmt: skip
            pairs = [(g, t) for g, t in zip(pulled, self.tangents, strict=True) if g is not None]
            (found,) = gradients(
                [g for g, _ in pairs], [probe], [t.to(g.dtype) for g, t in pairs],
                retain_graph=True, create_graph=True, allow_unused=True,
            )  # fmt: skip
        return _zeros(tensor) if found is None else found


_levels: list[_Level] = []  # at most one, as in PyTorch


def enter_dual_level() -> int:
    """Begin a level, in which tensors may carry tangents; the number of the level.

    >>> enter_dual_level()
    0
    >>> exit_dual_level()
    """
    if _levels:
        raise errors.TransformError("Nested forward mode AD is not supported at the moment")
    _levels.append(_Level())
    current.recorder.grad = True  # tangents are found by way of gradients, within no_grad as well
    return 0


def exit_dual_level(*, level: int | None = None) -> None:
    """End the level; its tensors have no tangents from then on."""
    if not _levels:
        raise errors.TransformError("Dual level must be a positive number.")
    if level not in (None, len(_levels) - 1):
        raise errors.TransformError(
            "Trying to exit a forward AD level that was not the last one that was created. "
            "This is not supported."
        )
    ended = _levels.pop()
    current.recorder.grad = ended.outer_grad


def tangents_of(values: Sequence[Any]) -> list[Tensor | None]:
    """The tangent of each value that has one."""
    return [
        unpack_dual(value).tangent if _levels and isinstance(value, Tensor) else None
        for value in values
    ]


class dual_level:  # noqa: N801 - PyTorch's spelling
    """A level within a block.

    >>> import monograph as mg
    >>> x, t = mg.tensor([1.0, 2.0]), mg.tensor([1.0, 0.0])
    >>> with dual_level():
    ...     y = make_dual(x, t) ** 2
    ...     unpack_dual(y).tangent.tolist()
    [2.0, 0.0]
    """

    def __enter__(self) -> int:
        return enter_dual_level()

    def __exit__(self, *exception: Any) -> None:
        exit_dual_level()


def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor:
    """A copy of a tensor that carries a tangent through what is computed from it."""
    if not _levels:
        raise errors.TransformError(
            "Trying to create a dual Tensor for forward AD but no level exists, make sure to "
            "enter_dual_level() first."
        )
    for given, name in ((tensor, "primal"), (tangent, "tangent")):
        if not (given.is_floating_point() or given.is_complex()):
            raise ValueError(
                f"Expected {name} to be floating point or complex, but got: {given.dtype}"
            )
    if tuple(tensor.shape) != tuple(tangent.shape):
        raise errors.TransformError(
            "Trying to set a forward gradient that has a different size than that of the original "
            f"Tensor, this is not supported. Tensor is of size {list(tensor.shape)} while the "
            f"given forward gradient is of size {list(tangent.shape)}."
        )
    found = _levels[-1]
    if found.depends(tensor):
        raise errors.TransformError(
            "Making a dual Tensor based on a Tensor that already has a forward gradient at the "
            "same level 0 is not supported."
        )
    with enable_grad():
        source: Any = tensor.clone()
        source = source if source.requires_grad else source.requires_grad_()
        _internal(source._value())  # what depends on nothing else is handed out without gradients
        found.sources.append(source)
        found.tangents.append(tangent)
        made: Tensor = source.clone()  # no leaf, so that it can be written to
    if tangent.stride() == tensor.stride():  # PyTorch copies a tangent that lies differently
        found.given.append((made._value(), tangent))
    return made


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """(the tensor without its tangent, the tangent).

    >>> import monograph as mg
    >>> unpack_dual(mg.ones(1)).tangent is None
    True
    """
    if not isinstance(tensor, Tensor):
        raise TypeError(
            "_unpack_dual(): argument 'dual' (position 1) must be Tensor, "
            f"not {type(tensor).__name__}"
        )
    if not _levels or not tensor.requires_grad or not _levels[-1].depends(tensor):
        return UnpackedDualTensor(tensor, None)
    found = _levels[-1]
    return UnpackedDualTensor(found.handed_out(tensor), found.tangent(tensor))
