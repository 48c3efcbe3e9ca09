"""`torch.distributions.utils`: what libraries of distributions build on."""

from __future__ import annotations

from typing import Any

import monograph as mg

from ...distributions.distribution import derived
from ...distributions.multivariate import _factor_of_inverse, _squared_distance
from ...tensor import Tensor

euler_constant = 0.57721566490153286060
lazy_property = derived


def _standard_normal(shape: Any, dtype: Any, device: Any = None) -> Tensor:
    made: Tensor = mg.randn(tuple(shape), dtype=dtype, device=device)
    return made


def _sum_rightmost(value: Tensor, dim: int) -> Tensor:
    return value if dim == 0 else value.flatten(-dim).sum(-1)


def _batch_mv(bmat: Tensor, bvec: Tensor) -> Tensor:
    """The products of matrices and vectors, whose leading axes broadcast."""
    made: Tensor = (bmat @ bvec.unsqueeze(-1)).squeeze(-1)
    return made


def tril_matrix_to_vec(mat: Tensor, diag: int = 0) -> Tensor:
    """The elements of a lower triangle, row after row.

    >>> tril_matrix_to_vec(mg.tensor([[1, 0], [2, 3]])).tolist()
    [1, 2, 3]
    """
    count = mat.shape[-1]
    if not -count <= diag < count:
        raise ValueError(f"diag ({diag}) provided is outside [{-count}, {count - 1}].")
    row, column = mg.tril_indices(count, count, diag)
    picked: Tensor = mat[..., row, column]
    return picked


def vec_to_tril_matrix(vec: Tensor, diag: int = 0) -> Tensor:
    """The lower triangle with these elements.

    >>> vec_to_tril_matrix(mg.tensor([1.0, 2.0, 3.0])).tolist()
    [[1.0, 0.0], [2.0, 3.0]]
    """
    size = vec.shape[-1]
    count = next(n for n in range(size + 2 + abs(diag)) if _held(n, diag) >= size and n > 0)
    if _held(count, diag) != size:
        raise ValueError(
            f"The size of last dimension is {size} which cannot be expressed as the lower "
            "triangular part of a square D x D matrix."
        )
    row, column = mg.tril_indices(count, count, diag)
    made: Tensor = vec.new_zeros((*vec.shape[:-1], count, count))
    made[..., row, column] = vec
    return made


def _held(count: int, diag: int) -> int:
    return sum([min(max(row + 1 + diag, 0), count) for row in range(count)])


MULTIVARIATE = {
    "_batch_mv": _batch_mv, "_batch_mahalanobis": _squared_distance,
    "_precision_to_scale_tril": _factor_of_inverse,
}  # fmt: skip
__all__ = [
    "_standard_normal", "_sum_rightmost", "euler_constant", "lazy_property", "tril_matrix_to_vec",
    "vec_to_tril_matrix",
]  # fmt: skip
