"""Histograms: how many numbers fall between neighbouring edges."""

from __future__ import annotations

from typing import Any

from .. import errors
from ..tensor import Tensor
from . import return_types
from .creation import linspace, ones_like, zeros
from .define import function
from .sort import bucketize


@function(method=True)
def histogram(
    input: Tensor, bins: Any, *, range: Any = None, weight: Tensor | None = None,  # noqa: A002
    density: bool = False,
) -> Any:  # fmt: skip
    """(counts, edges): how much weight falls into each bin; the last one has its upper edge too.

    >>> import monograph as mg
    >>> counts, edges = mg.histogram(mg.tensor([1.0, 2.0, 1.0]), bins=4, range=(0.0, 3.0))
    >>> counts.tolist()
    [0.0, 2.0, 1.0, 0.0]
    """
    if not input.is_floating_point():
        raise errors.OperandError(f"histogram needs floating point numbers, got {input.dtype.name}")
    line = input.detach().reshape(-1)
    edges = _edges(line, bins, range)
    count = edges.shape[0] - 1
    share = ones_like(line) if weight is None else weight.reshape(-1)
    place = bucketize(line, edges, right=True) - 1
    place = place - (line == edges[-1]).to(place.dtype)  # the last edge belongs to the last bin
    inside = (place >= 0) & (place < count)
    made = zeros(count, dtype=input.dtype).index_add(
        0, place.clamp(0, count - 1), share * inside.to(share.dtype)
    )
    if density:
        made = made / made.sum() / (edges[1:] - edges[:-1])
    return return_types.histogram(made, edges)


def _edges(line: Tensor, bins: Any, span: Any) -> Tensor:
    if isinstance(bins, Tensor):
        if span is not None:
            raise errors.OperandError("histogram takes a range only with a number of bins")
        return bins
    if bins <= 0:
        raise errors.OperandError(f"histogram: bins must be > 0, but got {bins}")
    if span is None:
        low, high = (line.min().item(), line.max().item()) if line.numel() else (0.0, 1.0)
    else:
        low, high = span
    if low == high:
        low, high = low - 0.5, high + 0.5
    return linspace(low, high, bins + 1, dtype=line.dtype)
