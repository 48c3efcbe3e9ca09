"""What linear algebra requires of its operands, and when it runs.

What may fail (a singular matrix, an iteration that does not converge) runs when it is called, since
programs catch the error and try again: all that is pending is flushed, then the call itself, and
`LinAlgError` is raised there. While `mg.jit` traces or replays, it is raised at the next read.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ... import errors, record
from ...ir import build, dtypes
from ...ir.dtypes import Kind
from ...ir.node import Node
from ...recorder import current
from ...tensor import Tensor


def at_call(made: Callable[..., Any]) -> Callable[..., Any]:
    """Run the function's program before returning, so that it fails here or not at all."""

    @functools.wraps(made)
    def call(*args: Any, **kwargs: Any) -> Any:
        if current.recorder.hold or any(isinstance(a, Node) for a in args):
            return made(*args, **kwargs)
        record.flush("linalg")
        result = made(*args, **kwargs)
        record.flush("linalg")
        record.wait()
        return result

    return call


def check_matrix(a: Any, name: str, square: bool = False, letter: str = "A") -> None:
    """a is a matrix, or a batch, of numbers that LAPACK knows; `square` if that is asked for."""
    if a.ndim < 2:
        raise errors.OperandError(
            f"{name}: The input tensor {letter} must have at least 2 dimensions."
        )
    if a.dtype.kind < Kind.FLOAT:
        raise errors.OperandError(
            f"{name}: Expected a floating point or complex tensor as input. Got {a.dtype.name}"
        )
    if a.dtype is dtypes.float16:
        raise errors.OperandError(f"{name}: Low precision dtypes not supported. Got {a.dtype.name}")
    m, n = a.shape[-2:]
    if square and m != n:
        raise errors.OperandError(
            f"{name}: {letter} must be batches of square matrices, but they are {m} by {n} matrices"
        )


def check_square(a: Any, name: str) -> None:
    """a is a square matrix, or a batch, of any numbers."""
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise errors.OperandError(
            f"{name}: A must be batches of square matrices, but it has shape {list(a.shape)}"
        )


def same_dtype(a: Any, b: Any, name: str) -> None:
    """Both sides of a system have one dtype."""
    if a.dtype is not b.dtype:
        raise errors.OperandError(
            f"{name}: Expected A and B to have the same dtype, but found A of type {a.dtype.name} "
            f"and B of type {b.dtype.name} instead"
        )


def check_sides(a: Any, b: Any, left: bool, name: str) -> None:
    """The sizes of a system fit: of A · X = B, or of X · A = B."""
    if b.shape[-2 if left else -1] != a.shape[-1]:
        raise errors.OperandError(
            f"{name}: Incompatible shapes of A and B for the equation "
            f"{'AX = B' if left else 'XA = B'} ({a.shape[-2]}x{a.shape[-1]} and "
            f"{b.shape[-2]}x{b.shape[-1]})"
        )


def is_vector(a: Any, b: Any) -> bool:
    """PyTorch's rule: b is one vector, or one per matrix of the batch."""
    return b.ndim == 1 or (a.ndim - 1 == b.ndim and tuple(b.shape) == tuple(a.shape[:-1]))


def batched(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """Both matrices with the same leading axes."""
    lead = build.broadcast_shapes(tuple(a.shape[:-2]), tuple(b.shape[:-2]))
    return a.expand(*lead, *a.shape[-2:]), b.expand(*lead, *b.shape[-2:])
