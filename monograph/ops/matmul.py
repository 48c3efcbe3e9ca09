"""Contractions without windows: matmul in all its forms, linear, einsum-like products."""

from __future__ import annotations

from typing import Any

from ..ir import build
from ..ir.extent import agree
from ..tensor import Tensor
from .define import operator

_BATCH = "abcdefgh"


def _letters(rank: int, batch: int, tail: str) -> str:
    own = rank - len(tail)
    return _BATCH[batch - own : batch] + tail


@operator(aliases=("mm", "bmm"), widen=False)
def matmul(x: Tensor, other: Tensor) -> Any:
    """The matrix product; leading axes broadcast, vectors are rows or columns as needed."""
    if x.ndim == 0 or other.ndim == 0:
        raise ValueError("both operands of matmul need at least one axis")
    common = build.common_dtype([x, other])
    a, b = build.cast(x, common), build.cast(other, common)
    left = "mk" if a.ndim > 1 else "k"
    right = "kn" if b.ndim > 1 else "k"
    if not agree(a.shape[-1], b.shape[-2 if b.ndim > 1 else 0]):
        raise ValueError(f"inner sizes of {list(x.shape)} and {list(other.shape)} differ")
    lead = build.broadcast_shapes(a.shape[: -len(left)], b.shape[: -len(right)])
    batch = len(lead)
    out = _BATCH[:batch] + left[:-1] + right[1:]
    a, letters_a = _drop_broadcast(a, _letters(a.ndim, batch, left), lead)
    b, letters_b = _drop_broadcast(b, _letters(b.ndim, batch, right), lead)
    missing = [c for c in _BATCH[:batch] if c not in letters_a + letters_b]
    if missing:
        kept = "".join(c for c in out if c not in missing)
        result = build.einsum(letters_a, letters_b, kept, a, b)
        positions = [k for k, c in enumerate(out) if c in missing]
        return build.expand_dims(result, positions)
    return build.einsum(letters_a, letters_b, out, a, b)


def _drop_broadcast(x: Any, letters: str, lead: tuple[int, ...]) -> tuple[Any, str]:
    """Batch axes of size 1 leave the operand: the contraction repeats it without copying."""
    gone = [k for k, c in enumerate(letters) if c in _BATCH and x.shape[k] == 1]
    kept = "".join(c for k, c in enumerate(letters) if k not in gone)
    shape = tuple([e for k, e in enumerate(x.shape) if k not in gone])
    return build.reshape(x, shape), kept


@operator(to="nn.functional", method=False, widen=False)
def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Any:
    """x · weightᵀ + bias."""
    if x.shape[-1:] != weight.shape[-1:]:
        raise ValueError(
            f"the input's last size {list(x.shape)} must equal the weight's {list(weight.shape)}"
        )
    rows = 1
    for extent in x.shape[:-1]:
        rows *= extent
    flat = build.reshape(x, (rows, x.shape[-1]))
    out = build.einsum("mk", "nk", "mn", flat, weight)
    out = build.reshape(out, (*x.shape[:-1], weight.shape[0]))
    return out if bias is None else out + bias
