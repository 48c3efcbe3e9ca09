"""Embedding: a table whose rows are looked up by number."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ir.dtypes import DType, float32
from ..tensor import Parameter, Tensor
from . import functional as F
from . import init
from .module import Module, zeros
from .parameter import fill_from_array


class Embedding(Module):
    """Rows of `weight` [num_embeddings, embedding_dim] at integer indices.

    >>> import monograph as mg
    >>> mg.nn.Embedding(10, 4)(mg.tensor([1, 2])).shape
    Size([2, 4])
    """

    weight: Parameter

    def __init__(
        self, num_embeddings: int, embedding_dim: int, padding_idx: int | None = None,
        dtype: DType = float32,
    ) -> None:  # fmt: skip
        super().__init__()
        if padding_idx is not None and not -num_embeddings <= padding_idx < num_embeddings:
            raise ValueError(f"padding_idx must be within the {num_embeddings} embeddings")
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.padding_idx = None if padding_idx is None else padding_idx % num_embeddings
        self.weight = Parameter(zeros(num_embeddings, embedding_dim, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new rows; the padding row is zero."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            rows = self.weight._array().copy()
            rows[self.padding_idx] = 0
            fill_from_array(self.weight, rows)

    @classmethod
    def from_pretrained(
        cls, embeddings: Any, freeze: bool = True, padding_idx: int | None = None
    ) -> Embedding:
        """An embedding whose rows are given."""
        table = np.asarray(embeddings)
        made = cls(table.shape[0], table.shape[1], padding_idx)
        made.weight = Parameter(table, requires_grad=not freeze)
        return made

    def forward(self, where: Tensor) -> Tensor:
        return F.embedding(where, self.weight, self.padding_idx)

    def extra_repr(self) -> str:
        text = f"{self.num_embeddings}, {self.embedding_dim}"
        return text if self.padding_idx is None else f"{text}, padding_idx={self.padding_idx}"
