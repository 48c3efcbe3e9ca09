"""MultiheadAttention: projections, attention of several heads, and a projection of the result."""

from __future__ import annotations

from typing import Any

from ..ir.dtypes import DType
from ..tensor import Parameter, Tensor
from . import functional as F
from . import init
from .linear import Linear
from .module import Module
from .parameter import zeros


class NonDynamicallyQuantizableLinear(Linear):
    """A Linear under the name that PyTorch gives it here."""


class MultiheadAttention(Module):
    """Attention of several heads over query [L, N, E], key [S, N, kdim] and value [S, N, vdim].

    With `batch_first` they are [N, L, E], and so on. Returns the result and, unless
    `need_weights=False`, the weights [N, L, S].

    >>> import monograph as mg
    >>> x = mg.randn(5, 2, 4)
    >>> result, weights = mg.nn.MultiheadAttention(4, 2)(x, x, x)
    >>> result.shape, weights.shape
    (Size([5, 2, 4]), Size([2, 5, 5]))
    """

    out_proj: Linear
    in_proj_weight: Parameter | None
    in_proj_bias: Parameter | None
    q_proj_weight: Parameter | None
    k_proj_weight: Parameter | None
    v_proj_weight: Parameter | None
    bias_k: Parameter | None
    bias_v: Parameter | None

    def __init__(
        self, embed_dim: int, num_heads: int, dropout: float = 0.0, bias: bool = True,
        add_bias_kv: bool = False, add_zero_attn: bool = False, kdim: int | None = None,
        vdim: int | None = None, batch_first: bool = False, device: Any = None,
        dtype: DType | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(
                f"embed_dim and num_heads must be greater than 0, got {embed_dim} and {num_heads}"
            )
        if embed_dim % num_heads:
            raise AssertionError("embed_dim must be divisible by num_heads")
        self.embed_dim = embed_dim
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        self._qkv_same_embed_dim = self.kdim == embed_dim and self.vdim == embed_dim
        self.num_heads = num_heads
        self.dropout = dropout
        self.batch_first = batch_first
        self.head_dim = embed_dim // num_heads
        self.add_zero_attn = add_zero_attn
        sizes = self._sizes(bias, add_bias_kv)
        for name in ("q_proj_weight", "k_proj_weight", "v_proj_weight", "in_proj_weight",
                     "in_proj_bias"):  # fmt: skip
            self._declare(name, sizes, dtype, device)
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias, device, dtype)
        for name in ("bias_k", "bias_v"):
            self._declare(name, sizes, dtype, device)
        self._reset_parameters()

    def _sizes(self, bias: bool, add_bias_kv: bool) -> dict[str, tuple[int, ...]]:
        """The parameters that there are, by name."""
        width = self.embed_dim
        sizes: dict[str, tuple[int, ...]] = {}
        if self._qkv_same_embed_dim:
            sizes["in_proj_weight"] = (3 * width, width)
        else:
            sizes["q_proj_weight"] = (width, width)
            sizes["k_proj_weight"] = (width, self.kdim)
            sizes["v_proj_weight"] = (width, self.vdim)
        if bias:
            sizes["in_proj_bias"] = (3 * width,)
        if add_bias_kv:
            sizes["bias_k"] = sizes["bias_v"] = (1, 1, width)
        return sizes

    def _declare(
        self, name: str, sizes: dict[str, tuple[int, ...]], dtype: DType | None, device: Any
    ) -> None:
        made = None
        if name in sizes:
            made = Parameter(zeros(*sizes[name], dtype=dtype, device=device))
        self.register_parameter(name, made)

    def _reset_parameters(self) -> None:
        for weight in (self.in_proj_weight, self.q_proj_weight, self.k_proj_weight,
                       self.v_proj_weight):  # fmt: skip
            if weight is not None:
                init.xavier_uniform_(weight)
        if self.in_proj_bias is not None:
            init.zeros_(self.in_proj_bias)
            init.zeros_(self.out_proj.bias)  # type: ignore[arg-type]
        for row in (self.bias_k, self.bias_v):
            if row is not None:
                init.xavier_normal_(row)

    def forward(
        self, query: Any, key: Any, value: Any, key_padding_mask: Tensor | None = None,
        need_weights: bool = True, attn_mask: Tensor | None = None,
        average_attn_weights: bool = True, is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:  # fmt: skip
        turned = self.batch_first and query.ndim == 3
        if turned:  # what is one tensor stays one, so that it is projected at once
            same = query is key, key is value
            query = query.transpose(0, 1)
            key = query if same[0] else key.transpose(0, 1)
            value = key if same[1] else value.transpose(0, 1)
        result, weights = F.multi_head_attention_forward(
            query, key, value, self.embed_dim, self.num_heads, self.in_proj_weight,
            self.in_proj_bias, self.bias_k, self.bias_v, self.add_zero_attn, self.dropout,
            self.out_proj.weight, self.out_proj.bias, self.training, key_padding_mask,
            need_weights, attn_mask, not self._qkv_same_embed_dim, self.q_proj_weight,
            self.k_proj_weight, self.v_proj_weight, average_attn_weights=average_attn_weights,
            is_causal=is_causal,
        )  # fmt: skip
        return (result.transpose(0, 1) if turned else result), weights
