"""Attention: softmax(query · keyᵀ) · value, and its multi-headed form with projections."""

from __future__ import annotations

import math
from typing import Any

from ..errors import LengthError, OperandError
from ..ir import build
from ..ir.dtypes import Kind, bool_
from ..tensor import Tensor
from .comparison import logical_or
from .creation import zeros
from .define import Scalar, function, operator
from .dropout import dropout
from .math import masked_fill
from .matmul import linear, matmul
from .random import default_generator, drop
from .shape import cat
from .softmax import masked_softmax, softmax


@operator(to=None, method=False)
def attention(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None, causal: bool = False,
    scale: Scalar = 1.0, dropout: Scalar = None, seed: Scalar = 0, offset: Scalar = 0,
    grouped: bool = False,
) -> Any:  # fmt: skip
    """softmax(query · keyᵀ · scale + mask) · value over the last two axes."""
    shape = (*query.shape[:-1], value.shape[-1])
    if grouped:
        query, key, value = _grouped(query, key, value)
    order = [*range(key.ndim - 2), key.ndim - 1, key.ndim - 2]
    scores = matmul(query, build.permute(key, order)) * scale
    if grouped:
        scores = build.reshape(scores, (*shape[:-1], key.shape[-2]))
    if mask is not None and mask.dtype.name == "bool":
        scores = build.select(mask, scores, float("-inf"))
    elif mask is not None:
        scores = build.cast(scores + mask, scores.dtype)
    if causal:
        rank = scores.ndim
        seen = build.coordinate(scores.shape, rank - 1) <= build.coordinate(scores.shape, rank - 2)
        scores = build.select(seen, scores, float("-inf"))
    weights = softmax(scores, -1) if mask is None else masked_softmax(scores, -1)
    if dropout is not None:
        weights = drop(weights, dropout, seed, offset)
    if grouped:
        weights = build.reshape(weights, (*query.shape[:-1], key.shape[-2]))
        return build.reshape(matmul(weights, value), shape)
    return matmul(weights, value)


attention.operator.saves = {"*": ("query", "key", "value", "mask", "result")}


def _grouped(query: Any, key: Any, value: Any) -> Any:
    """Heads of the query by the head of key and value that they share."""
    heads, shared = query.shape[-3], key.shape[-3]
    if shared == 0 or heads % shared or value.shape[-3] != shared:
        raise ValueError(f"{heads} heads of the query do not share {shared} of key and value")
    query = build.reshape(query, (*query.shape[:-3], shared, heads // shared, *query.shape[-2:]))
    return query, *[build.expand_dims(x, [x.ndim - 2]) for x in (key, value)]


def _require_attention(query: Tensor, key: Tensor, value: Tensor, mask: Any, causal: bool) -> None:
    if min(query.ndim, key.ndim, value.ndim) < 2:
        raise OperandError(
            "scaled_dot_product_attention: query, key and value need at least 2 axes, got "
            f"{list(query.shape)}, {list(key.shape)}, {list(value.shape)}"
        )
    if not query.dtype is key.dtype is value.dtype:
        raise OperandError(
            "scaled_dot_product_attention: query, key and value differ in dtype: "
            f"{query.dtype.name}, {key.dtype.name}, {value.dtype.name}"
        )
    if mask is None:
        return
    if causal:
        raise OperandError("scaled_dot_product_attention: give attn_mask or is_causal, not both")
    if mask.dtype is not bool_ and mask.dtype.kind is not Kind.FLOAT:
        raise OperandError(
            f"scaled_dot_product_attention: attn_mask must be bool or float, got {mask.dtype.name}"
        )


@function(to="nn.functional")
def scaled_dot_product_attention(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None,
    dropout_p: float = 0.0, is_causal: bool = False, scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:  # fmt: skip
    """softmax(query · keyᵀ · scale + attn_mask) · value.

    A bool mask says what may be seen, a float one is added. With `enable_gqa` several heads of the
    query share one of key and value.

    >>> import monograph as mg
    >>> x = mg.ones(1, 2, 4)
    >>> mg.nn.functional.scaled_dot_product_attention(x, x, x).sum().item()
    8.0
    """
    _require_attention(query, key, value, attn_mask, is_causal)
    factor = 1.0 / math.sqrt(query._sizes[-1] or 1) if scale is None else float(scale)
    grouped = enable_gqa and query.ndim > 2 and query._sizes[-3] != key._sizes[-3]
    if dropout_p > 0:
        seed, offset = default_generator.draw()
        return attention(  # type: ignore[no-any-return]
            query, key, value, attn_mask, is_causal, factor, float(dropout_p), seed, offset,
            grouped,
        )  # fmt: skip
    return attention(  # type: ignore[no-any-return]
        query, key, value, attn_mask, is_causal, factor, grouped=grouped
    )


# --- several heads ------------------------------------------------------------------------------


def _added_mask(mask: Any, like: Tensor) -> Any:
    """A mask that is added: -infinity where a bool one says that nothing is seen."""
    if mask is None or mask.dtype is not bool_:
        return mask
    return masked_fill(zeros(*mask.shape, dtype=like.dtype), mask, float("-inf"))  # type: ignore


def _both_masks(attn_mask: Any, key_padding_mask: Any, like: Tensor, heads: int) -> Any:
    """One mask [N, heads, L, S] or less, which is added; None if there is none.

    `attn_mask` is [L, S] or [N · heads, L, S], `key_padding_mask` [N, S].
    """
    if attn_mask is not None and attn_mask.ndim == 3:
        attn_mask = attn_mask.reshape(-1, heads, *attn_mask.shape[1:])
    if key_padding_mask is not None:
        key_padding_mask = key_padding_mask.unsqueeze(1).unsqueeze(1)
    given = [m for m in (attn_mask, key_padding_mask) if m is not None]
    if len(given) == 2 and given[0].dtype is bool_ and given[1].dtype is bool_:
        given = [logical_or(*given)]
    added = [_added_mask(m, like) for m in given]
    return None if not added else added[0] if len(added) == 1 else added[0] + added[1]


def _projected(
    query: Tensor, key: Tensor, value: Tensor, weight: Tensor, bias: Tensor | None
) -> Any:
    """query, key and value, each by its third of one weight; by one product where they are one."""
    if query is key and key is value:
        return linear(query, weight, bias).chunk(3, -1)
    weights: Any = weight.chunk(3)  # type: ignore[attr-defined]
    biases: Any = [None] * 3 if bias is None else bias.chunk(3)  # type: ignore[attr-defined]
    given = zip((query, key, value), weights, biases, strict=True)
    return [linear(x, w, b) for x, w, b in given]


def _projected_apart(inputs: Any, weights: Any, bias: Tensor | None) -> Any:
    biases: Any = [None] * 3 if bias is None else bias.chunk(3)  # type: ignore[attr-defined]
    return [linear(x, w, b) for x, w, b in zip(inputs, weights, biases, strict=True)]


def _by_head(x: Any, heads: int) -> Any:
    """[L, N, E] as [N, heads, L, E / heads]."""
    rows, samples, width = x._sizes
    return x.reshape(rows, samples, heads, width // heads).permute(1, 2, 0, 3)


def _one_more(mask: Any) -> Any:
    """A mask with one more key, which is seen."""
    if mask is None:
        return None
    return cat([mask, zeros(*mask.shape[:-1], 1, dtype=mask.dtype)], -1)


def _require_heads(query: Tensor, key: Tensor, value: Tensor, embed_dim: int, heads: int) -> None:
    if query.ndim not in (2, 3) or key.ndim != query.ndim or value.ndim != query.ndim:
        raise OperandError(
            "multi_head_attention_forward: query, key and value must have 2 or 3 axes alike, "
            f"got {list(query.shape)}, {list(key.shape)}, {list(value.shape)}"
        )
    if query._sizes[-1] != embed_dim or embed_dim % heads:
        raise LengthError(
            f"multi_head_attention_forward: the embedding {query.shape[-1]} must be {embed_dim} "
            f"and divisible by the {heads} heads"
        )
    if key._sizes[:-1] != value._sizes[:-1]:
        raise OperandError(
            f"multi_head_attention_forward: key {list(key.shape)} and value {list(value.shape)} "
            "must agree in length and batch"
        )


@function(to="nn.functional")
def multi_head_attention_forward(
    query: Tensor, key: Tensor, value: Tensor, embed_dim_to_check: int, num_heads: int,
    in_proj_weight: Tensor | None, in_proj_bias: Tensor | None, bias_k: Tensor | None,
    bias_v: Tensor | None, add_zero_attn: bool, dropout_p: float, out_proj_weight: Tensor,
    out_proj_bias: Tensor | None, training: bool = True, key_padding_mask: Tensor | None = None,
    need_weights: bool = True, attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False, q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None, v_proj_weight: Tensor | None = None,
    static_k: Tensor | None = None, static_v: Tensor | None = None,
    average_attn_weights: bool = True, is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:  # fmt: skip
    """(attention of several heads [L, N, E], its weights [N, L, S]): nn.MultiheadAttention.

    >>> import monograph as mg
    >>> x, w = mg.zeros(3, 1, 4), mg.zeros(12, 4)
    >>> made, shares = mg.nn.functional.multi_head_attention_forward(
    ...     x, x, x, 4, 2, w, None, None, None, False, 0.0, mg.zeros(4, 4), None
    ... )
    >>> made.shape, shares.shape
    (Size([3, 1, 4]), Size([1, 3, 3]))
    """
    _require_heads(query, key, value, embed_dim_to_check, num_heads)
    if is_causal and attn_mask is None:
        raise OperandError("multi_head_attention_forward: is_causal needs an attn_mask")
    alone = query.ndim == 2
    if alone:  # one sample without a batch axis
        same = query is key, key is value
        query = query.unsqueeze(1)  # type: ignore[attr-defined]
        key = query if same[0] else key.unsqueeze(1)  # type: ignore[attr-defined]
        value = key if same[1] else value.unsqueeze(1)  # type: ignore[attr-defined]
        if key_padding_mask is not None:
            key_padding_mask = key_padding_mask.unsqueeze(0)  # type: ignore[attr-defined]
    causal = is_causal and key_padding_mask is None and not need_weights
    if causal:
        attn_mask = None
    apart = (q_proj_weight, k_proj_weight, v_proj_weight) if use_separate_proj_weight else None
    q, k, v = _query_key_value((query, key, value), apart, in_proj_weight, in_proj_bias)
    attn_mask, key_padding_mask = _checked(attn_mask, key_padding_mask, query, key, num_heads)
    if bias_k is not None and bias_v is not None:
        k = cat([k, bias_k.expand(1, k.shape[1], -1)])  # type: ignore[attr-defined]
        v = cat([v, bias_v.expand(1, v.shape[1], -1)])  # type: ignore[attr-defined]
        attn_mask, key_padding_mask = _one_more(attn_mask), _one_more(key_padding_mask)
    q = _by_head(q, num_heads)
    k, v = _given_or(static_k, k, num_heads), _given_or(static_v, v, num_heads)
    if add_zero_attn:
        nothing = zeros(*k.shape[:2], 1, k.shape[3], dtype=k.dtype)
        k, v = cat([k, nothing], 2), cat([v, nothing], 2)
        attn_mask, key_padding_mask = _one_more(attn_mask), _one_more(key_padding_mask)
    mask = _both_masks(attn_mask, key_padding_mask, q, num_heads)
    share = dropout_p if training else 0.0
    shares = None
    if need_weights:
        made, shares = _with_weights(q, k, v, mask, share)
        shares = shares.mean(1) if average_attn_weights else shares
    else:
        made = scaled_dot_product_attention(q, k, v, mask, share, causal)
    joined = made.permute(2, 0, 1, 3).reshape(*query._sizes[:2], -1)  # type: ignore
    result = linear(joined, out_proj_weight, out_proj_bias)
    if alone:
        result = result.squeeze(1)
        shares = None if shares is None else shares.squeeze(0)
    return result, shares


def _query_key_value(given: Any, apart: Any, weight: Tensor | None, bias: Tensor | None) -> Any:
    """The three projections, by a weight each or by one weight for all."""
    if apart is not None:
        return _projected_apart(given, apart, bias)
    assert weight is not None
    return _projected(*given, weight, bias)


def _given_or(static: Any, own: Any, heads: int) -> Any:
    """Keys or values by head: those given as [N · heads, S, D], or the projected ones."""
    if static is None:
        return _by_head(own, heads)
    return static.reshape(-1, heads, *static.shape[1:])


def _with_weights(q: Any, k: Any, v: Any, mask: Any, share: float) -> tuple[Any, Any]:
    """(attention, its weights): where they are asked for, they are stored."""
    scores = matmul(q * (1.0 / math.sqrt(q.shape[-1])), k.transpose(-2, -1))
    weights = softmax(scores if mask is None else scores + mask, -1)
    if share > 0:
        weights = dropout(weights, share)
    return matmul(weights, v), weights


def _checked(
    attn_mask: Any, key_padding_mask: Any, query: Tensor, key: Tensor, heads: int
) -> tuple[Any, Any]:
    """Both masks, whose shapes fit query [L, N, E] and key [S, N, E]."""
    target, samples, source = *query._sizes[:2], key._sizes[0]
    if attn_mask is not None:
        shapes = [(target, source), (samples * heads, target, source)]
        if tuple(attn_mask.shape) not in shapes:
            raise OperandError(
                f"multi_head_attention_forward: attn_mask must be {list(shapes[0])} or "
                f"{list(shapes[1])}, got {list(attn_mask.shape)}"
            )
    if key_padding_mask is not None and tuple(key_padding_mask.shape) != (samples, source):
        raise LengthError(
            f"multi_head_attention_forward: key_padding_mask must be {[samples, source]}, "
            f"got {list(key_padding_mask.shape)}"
        )
    return attn_mask, key_padding_mask
