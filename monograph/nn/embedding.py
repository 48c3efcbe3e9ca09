"""Embedding: a table whose rows are looked up by number, one by one or a bag at a time."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ir.dtypes import DType
from ..tensor import Parameter, Tensor
from . import functional as F
from . import init
from .module import Module
from .parameter import fill_from_array, zeros


class _Table(Module):
    """A table of rows, of which one may be padding."""

    weight: Parameter

    def _make(
        self, size: tuple[int, int], padding_idx: int | None, given: Any, device: Any,
        dtype: DType | None, freeze: bool = False,
    ) -> None:  # fmt: skip
        rows = size[0]
        if padding_idx is not None and not -rows <= padding_idx < rows:
            raise AssertionError(f"padding_idx must be within num_embeddings: the {rows} rows")
        self.num_embeddings, self.embedding_dim = size
        self.padding_idx = None if padding_idx is None else padding_idx % rows
        if given is None:
            made = zeros(*size, dtype=dtype, device=device)
            self.weight = Parameter(made, requires_grad=not freeze)
            self.reset_parameters()
            return
        if tuple(given.shape) != size:
            raise AssertionError(
                f"the table {list(given.shape)} does not match num_embeddings and embedding_dim"
            )
        self.weight = Parameter(given, requires_grad=not freeze)

    def reset_parameters(self) -> None:
        """Draw new rows; the padding row is zero."""
        init.normal_(self.weight)
        if self.padding_idx is not None and not self.weight.is_meta:
            rows = self.weight._array().copy()
            rows[self.padding_idx] = 0
            fill_from_array(self.weight, rows)


def _table(embeddings: Any) -> Any:
    table = embeddings if isinstance(embeddings, Tensor) else np.asarray(embeddings)
    if table.ndim != 2:
        raise AssertionError("an embedding's table is expected to have 2 axes")
    return table


class Embedding(_Table):
    """Rows of `weight` [num_embeddings, embedding_dim] at integer indices.

    >>> import monograph as mg
    >>> mg.nn.Embedding(10, 4)(mg.tensor([1, 2])).shape
    Size([2, 4])
    """

    def __init__(
        self, num_embeddings: int, embedding_dim: int, padding_idx: int | None = None,
        max_norm: float | None = None, norm_type: float = 2.0, scale_grad_by_freq: bool = False,
        sparse: bool = False, _weight: Any = None, _freeze: bool = False, device: Any = None,
        dtype: DType | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.sparse = sparse
        size = (num_embeddings, embedding_dim)
        self._make(size, padding_idx, _weight, device, dtype, _freeze)

    @classmethod
    def from_pretrained(
        cls, embeddings: Any, freeze: bool = True, padding_idx: int | None = None,
        max_norm: float | None = None, norm_type: float = 2.0, scale_grad_by_freq: bool = False,
        sparse: bool = False,
    ) -> Embedding:  # fmt: skip
        """An embedding whose rows are given.

        >>> import monograph as mg
        >>> table = mg.tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> mg.nn.Embedding.from_pretrained(table)(mg.tensor([1])).tolist()
        [[3.0, 4.0]]
        """
        table = _table(embeddings)
        return cls(
            table.shape[0], table.shape[1], padding_idx, max_norm, norm_type, scale_grad_by_freq,
            sparse, table, freeze,
        )  # fmt: skip

    def forward(self, input: Tensor) -> Tensor:
        result: Tensor = F.embedding(
            input, self.weight, self.padding_idx, self.max_norm, self.norm_type,
            self.scale_grad_by_freq, self.sparse,
        )  # fmt: skip
        return result

    def extra_repr(self) -> str:
        parts = [f"{self.num_embeddings}", f"{self.embedding_dim}"]
        for name, usual in (
            ("padding_idx", None), ("max_norm", None), ("norm_type", 2),
            ("scale_grad_by_freq", False),
        ):  # fmt: skip
            value = getattr(self, name)
            if value != usual:
                parts.append(f"{name}={value}")
        return ", ".join(parts + ["sparse=True"] if self.sparse else parts)


class EmbeddingBag(_Table):
    """The sum, mean or largest of the rows in each bag of indices.

    >>> import monograph as mg
    >>> mg.nn.EmbeddingBag(10, 4)(mg.tensor([[1, 2], [3, 4]])).shape
    Size([2, 4])
    """

    def __init__(
        self, num_embeddings: int, embedding_dim: int, max_norm: float | None = None,
        norm_type: float = 2.0, scale_grad_by_freq: bool = False, mode: str = "mean",
        sparse: bool = False, _weight: Any = None, include_last_offset: bool = False,
        padding_idx: int | None = None, device: Any = None, dtype: DType | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.mode = mode
        self.sparse = sparse
        self.include_last_offset = include_last_offset
        self._make((num_embeddings, embedding_dim), padding_idx, _weight, device, dtype)

    @classmethod
    def from_pretrained(
        cls, embeddings: Any, freeze: bool = True, max_norm: float | None = None,
        norm_type: float = 2.0, scale_grad_by_freq: bool = False, mode: str = "mean",
        sparse: bool = False, include_last_offset: bool = False, padding_idx: int | None = None,
    ) -> EmbeddingBag:  # fmt: skip
        """Bags of rows that are given."""
        table = _table(embeddings)
        made = cls(
            table.shape[0], table.shape[1], max_norm, norm_type, scale_grad_by_freq, mode, sparse,
            table, include_last_offset, padding_idx,
        )  # fmt: skip
        made.weight.requires_grad_(not freeze)
        return made

    def forward(
        self, input: Tensor, offsets: Tensor | None = None,
        per_sample_weights: Tensor | None = None,
    ) -> Tensor:  # fmt: skip
        result: Tensor = F.embedding_bag(
            input, self.weight, offsets, self.max_norm, self.norm_type, self.scale_grad_by_freq,
            self.mode, self.sparse, per_sample_weights, self.include_last_offset, self.padding_idx,
        )  # fmt: skip
        return result

    def extra_repr(self) -> str:
        parts = [f"{self.num_embeddings}", f"{self.embedding_dim}"]
        for name, usual in (
            ("max_norm", None), ("norm_type", 2), ("scale_grad_by_freq", False),
        ):  # fmt: skip
            value = getattr(self, name)
            if value != usual:
                parts.append(f"{name}={value}")
        parts.append(f"mode={self.mode!r}")
        if self.padding_idx is not None:
            parts.append(f"padding_idx={self.padding_idx}")
        return ", ".join(parts)
