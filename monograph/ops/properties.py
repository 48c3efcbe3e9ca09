"""What a tensor is: questions about size, dtype and place, as functions and methods."""

from __future__ import annotations

from typing import Any

from .. import errors
from ..tensor import Tensor
from .define import function


@function
def is_tensor(obj: Any) -> bool:
    """Whether something is a tensor.

    >>> import monograph as mg
    >>> mg.is_tensor(mg.zeros(1)), mg.is_tensor([0.0])
    (True, False)
    """
    return isinstance(obj, Tensor)


@function
def numel(input: Tensor) -> int:
    """The number of elements.

    >>> import monograph as mg
    >>> mg.numel(mg.zeros(2, 3))
    6
    """
    return input.numel()


@function(method=True)
def is_nonzero(input: Tensor) -> bool:
    """Whether the one number in a tensor is not zero.

    >>> import monograph as mg
    >>> mg.is_nonzero(mg.tensor([2.0]))
    True
    """
    return bool(input)


@function(method=True)
def is_same_size(input: Tensor, other: Tensor) -> bool:
    """Whether two tensors have the same shape.

    >>> import monograph as mg
    >>> mg.is_same_size(mg.zeros(2), mg.zeros(3))
    False
    """
    return tuple(input.shape) == tuple(other.shape)


@function(method=True)
def is_signed(input: Tensor) -> bool:
    """Whether the dtype has negative numbers.

    >>> import monograph as mg
    >>> mg.is_signed(mg.zeros(1)), mg.is_signed(mg.zeros(1, dtype=mg.uint8))
    (True, False)
    """
    return input.dtype.signed


@function
def is_storage(obj: Any) -> bool:
    """Whether something is a storage that users hold: those of `monograph.torch`."""
    return any(kind.__name__ in ("TypedStorage", "UntypedStorage") for kind in type(obj).__mro__)


def _contains(x: Tensor, element: Any) -> bool:
    """Whether some element equals a number or a tensor: `3 in x`."""
    if not isinstance(element, (Tensor, int, float, complex)):
        raise errors.OperandError(
            "Tensor.__contains__ only supports Tensor or scalar, but you passed in a "
            f"{type(element)}."
        )
    return bool((x == element).any().item())


def _ndimension(x: Tensor) -> int:
    """How many axes there are."""
    return x.ndim


def _nelement(x: Tensor) -> int:
    """How many elements there are."""
    return x.numel()


def _get_device(x: Tensor) -> int:
    """The number of the GPU that it lies on, for programs that ask: always -1, the CPU."""
    return -1


def _is_pinned(x: Tensor) -> bool:
    """Whether its memory is pinned for copies to a GPU; it never is."""
    return False


def _is_cpu(x: Tensor) -> bool:
    """Whether it has contents, for programs that ask; those of a GPU backend count too."""
    return not x.is_meta


def _attach() -> None:
    facts: dict[str, Any] = {
        "ndimension": _ndimension,
        "nelement": _nelement,
        "get_device": _get_device,
        "is_pinned": _is_pinned,
        "__contains__": _contains,
    }
    for name, fact in facts.items():
        setattr(Tensor, name, fact)
    for name in ("is_cuda", "is_sparse", "is_quantized", "is_mkldnn", "is_mps"):
        setattr(Tensor, name, False)
    Tensor.is_cpu = property(_is_cpu)  # type: ignore[attr-defined]


_attach()
