"""Order among equal elements, which PyTorch leaves open where no stable order is asked for.

Which of several equal elements comes first, and so which index is named and which of them the
derivative goes to, follows from no documentation. There our indices count if they are good ones:
each names an element of the row, none twice, and the elements there are PyTorch's values. Then
PyTorch's result is read again at our indices, and everything is compared with that.
"""

from __future__ import annotations

from typing import Any

import torch

from .convert import theirs

# Where the axis stands among the arguments after the first; -1 is the last axis if none is given.
_AXIS = {"sort": 0, "argsort": 0, "msort": None, "topk": 1, "kthvalue": 1, "mode": 0}
_KEPT = {"kthvalue": 2, "mode": 1}  # where keepdim stands: these give one element a row


def settled(entry: str, sample: Any, made: Any, expected: Any) -> Any:
    """What PyTorch's result would be with our order among equal elements."""
    if entry not in _AXIS or sample.kwargs.get("stable"):
        return expected
    if entry == "msort":
        return torch.sort(sample.input, dim=0, stable=True).values
    ours = made if entry == "argsort" else made[1]
    indices = theirs(ours)
    rows = sample.input if sample.input.ndim else sample.input.reshape(1)
    dim = _argument(sample, _AXIS[entry], "dim", -1) % rows.ndim
    kept = entry not in _KEPT or _argument(sample, _KEPT[entry], "keepdim", False)
    wide = indices if kept and indices.ndim else indices.unsqueeze(dim)
    if wide.dtype is not torch.int64 or not _names_elements(rows, wide, dim):
        return expected
    values = rows.gather(dim, wide).reshape(indices.shape)
    if entry == "argsort":
        wanted = rows.gather(dim, expected.reshape(wide.shape)).reshape(indices.shape)
        return indices if _equal(values, wanted) else expected
    if not _equal(values, expected[0]):
        return expected
    return type(expected)((values, indices))


def _argument(sample: Any, place: int, name: str, default: Any) -> Any:
    given = sample.args[place] if place < len(sample.args) else default
    return sample.kwargs.get(name, given)


def _names_elements(rows: torch.Tensor, indices: torch.Tensor, dim: int) -> bool:
    """Whether the indices lie within the row, and none occurs twice in it."""
    shape = [n for k, n in enumerate(rows.shape) if k != dim]
    if indices.ndim != rows.ndim or [n for k, n in enumerate(indices.shape) if k != dim] != shape:
        return False
    ordered = indices.sort(dim).values
    inside = bool(((indices >= 0) & (indices < rows.shape[dim])).all())
    return inside and not bool((ordered.diff(dim=dim) == 0).any())


def _equal(a: torch.Tensor, b: torch.Tensor) -> bool:
    return bool(torch.isclose(a, b, 0.0, 0.0, equal_nan=a.is_floating_point()).all())
