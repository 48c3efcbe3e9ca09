"""Transformers: encoder and decoder layers, stacks of them, and both together.

Names of parameters, defaults and masks are PyTorch's. A mask of booleans says where attention may
not go; a mask of numbers is added to the scores.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np

from ..autograd.modes import is_grad_enabled
from ..ir.dtypes import DType, float32
from ..ir.dtypes import bool_ as boolean
from ..tensor import Tensor, adopt
from . import functional as F
from . import init
from .activation import GELU, ReLU
from .attention import MultiheadAttention
from .containers import ModuleList
from .dropout import Dropout
from .linear import Linear
from .module import Module
from .norm import LayerNorm

Activation = str | Callable[[Any], Any]


def _activation(given: Activation) -> Callable[[Any], Any]:
    if not isinstance(given, str):
        return given
    if given not in ("relu", "gelu"):
        raise RuntimeError(f"activation should be relu/gelu, not {given}")
    chosen: Callable[[Any], Any] = F.relu if given == "relu" else F.gelu
    return chosen


class _Layer(Module):
    """What encoder and decoder layers share: self-attention, two linear layers, norms."""

    norms: int

    def __init__(
        self, d_model: int, nhead: int, dim_feedforward: int = 2048, dropout: float = 0.1,
        activation: Activation = "relu", layer_norm_eps: float = 1e-5, batch_first: bool = False,
        norm_first: bool = False, bias: bool = True, device: Any = None,
        dtype: DType | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        kind = {"device": device, "dtype": dtype}
        for name in ("self_attn", "multihead_attn")[: self.norms - 1]:
            attention = MultiheadAttention(
                d_model, nhead, dropout, bias, batch_first=batch_first, **kind
            )
            setattr(self, name, attention)
        self.linear1 = Linear(d_model, dim_feedforward, bias, **kind)  # type: ignore[arg-type]
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias, **kind)  # type: ignore[arg-type]
        self.norm_first = norm_first
        for n in range(self.norms):
            setattr(self, f"norm{n + 1}", LayerNorm(d_model, layer_norm_eps, bias=bias, **kind))
        for n in range(self.norms):
            setattr(self, f"dropout{n + 1}", Dropout(dropout))
        self.activation = _activation(activation)

    def _added(self, number: int, x: Any, block: Callable[[Any], Any]) -> Any:
        """x and what a block makes of it, normalised before or after; `number` counts blocks."""
        norm = getattr(self, f"norm{number}")
        if self.norm_first:
            return x + block(norm(x))
        return norm(x + block(x))

    # The blocks have PyTorch's names: classes of users call and replace them.

    def _sa_block(
        self, x: Any, attn_mask: Any, key_padding_mask: Any, is_causal: bool = False
    ) -> Any:
        """Self-attention, with dropout."""
        found = self.self_attn(
            x, x, x, attn_mask=attn_mask, key_padding_mask=key_padding_mask, need_weights=False,
            is_causal=is_causal,
        )[0]  # fmt: skip
        return self.dropout1(found)

    def _ff_block(self, x: Any) -> Any:
        """The two linear layers, with dropout."""
        found = self.linear2(self.dropout(self.activation(self.linear1(x))))
        return getattr(self, f"dropout{self.norms}")(found)


class TransformerEncoderLayer(_Layer):
    """Self-attention and two linear layers, each added to its input and normalised.

    >>> import monograph as mg
    >>> layer = mg.nn.TransformerEncoderLayer(8, 2, dim_feedforward=16, batch_first=True)
    >>> layer(mg.randn(3, 5, 8)).shape
    Size([3, 5, 8])
    """

    norms = 2

    def forward(
        self, src: Any, src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None, is_causal: bool = False,
    ) -> Any:  # fmt: skip
        def attend(x: Any) -> Any:
            return self._sa_block(x, src_mask, src_key_padding_mask, is_causal=is_causal)

        return self._added(2, self._added(1, src, attend), self._ff_block)


class TransformerDecoderLayer(_Layer):
    """Self-attention, attention to the encoder's result, and two linear layers.

    >>> import monograph as mg
    >>> layer = mg.nn.TransformerDecoderLayer(8, 2, 16, batch_first=True)
    >>> layer(mg.zeros(1, 3, 8), mg.zeros(1, 5, 8)).shape
    Size([1, 3, 8])
    """

    norms = 3

    def forward(
        self, tgt: Any, memory: Any, tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None, tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None, tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Any:  # fmt: skip
        def attend(x: Any) -> Any:
            return self._sa_block(x, tgt_mask, tgt_key_padding_mask, tgt_is_causal)

        def attend_to_memory(x: Any) -> Any:
            return self._mha_block(
                x, memory, memory_mask, memory_key_padding_mask, memory_is_causal
            )

        x = self._added(2, self._added(1, tgt, attend), attend_to_memory)
        return self._added(3, x, self._ff_block)

    def _mha_block(
        self, x: Any, mem: Any, attn_mask: Any, key_padding_mask: Any, is_causal: bool = False
    ) -> Any:
        """Attention to the encoder's result, with dropout."""
        found = self.multihead_attn(
            x, mem, mem, attn_mask=attn_mask, key_padding_mask=key_padding_mask,
            need_weights=False, is_causal=is_causal,
        )[0]  # fmt: skip
        return self.dropout2(found)


def _copies(layer: Module, count: int) -> ModuleList:
    return ModuleList([copy.deepcopy(layer) for _ in range(count)])


def _leaves_padding_out(layer: Module) -> bool:
    """Whether PyTorch evaluates a stack of such layers at unpadded places only."""
    return (
        isinstance(layer, TransformerEncoderLayer)
        and not layer.norm_first
        and layer.self_attn.batch_first
        and layer.self_attn.in_proj_bias is not None
        and layer.self_attn.num_heads % 2 == 0
        and layer.norm1.eps == layer.norm2.eps
        and (layer.activation in (F.relu, F.gelu) or isinstance(layer.activation, (ReLU, GELU)))
    )


def _without_padding(x: Any, padding: Any) -> Any:
    """x with zeros where there is padding, if all of it is at the ends of the rows."""
    padded = padding if padding.dtype is boolean else padding != 0
    aligned = (padded[:, 1:] | ~padded[:, :-1]).all()
    return x.masked_fill((padded & aligned)[..., None], 0.0)


class TransformerEncoder(Module):
    """A stack of copies of an encoder layer; masks that are causal need no hint.

    >>> import monograph as mg
    >>> layer = mg.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    >>> mg.nn.TransformerEncoder(layer, 2)(mg.zeros(1, 3, 8)).shape
    Size([1, 3, 8])
    """

    def __init__(
        self, encoder_layer: Module, num_layers: int, norm: Module | None = None,
        enable_nested_tensor: bool = True, mask_check: bool = True,
    ) -> None:  # fmt: skip
        super().__init__()
        self.layers = _copies(encoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm
        self.enable_nested_tensor = enable_nested_tensor
        self.use_nested_tensor = enable_nested_tensor and _leaves_padding_out(encoder_layer)
        self.mask_check = mask_check

    def forward(
        self, src: Any, mask: Tensor | None = None, src_key_padding_mask: Tensor | None = None,
        is_causal: bool | None = None,
    ) -> Any:  # fmt: skip
        padding = src_key_padding_mask
        result = src
        for layer in self.layers:
            result = layer(result, mask, padding, bool(is_causal))
        if padding is not None and mask is None and self._leaves_out(src):
            result = _without_padding(result, padding)
        return result if self.norm is None else self.norm(result)

    def _leaves_out(self, src: Any) -> bool:
        """Whether PyTorch computes nothing at padded places, which are zero then."""
        if not getattr(self, "use_nested_tensor", False) or src.ndim != 3:
            return False
        first = self.layers[0]
        if first.training:
            return False
        read = [src, *first.parameters()]
        return not (is_grad_enabled() and any(t.requires_grad for t in read))


class TransformerDecoder(Module):
    """A stack of copies of a decoder layer.

    >>> import monograph as mg
    >>> layer = mg.nn.TransformerDecoderLayer(8, 2, 16, batch_first=True)
    >>> mg.nn.TransformerDecoder(layer, 2)(mg.zeros(1, 3, 8), mg.zeros(1, 5, 8)).shape
    Size([1, 3, 8])
    """

    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None) -> None:
        super().__init__()
        self.layers = _copies(decoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm

    def forward(
        self, tgt: Any, memory: Any, tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None, tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None, tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Any:  # fmt: skip
        for layer in self.layers:
            tgt = layer(
                tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask,
                bool(tgt_is_causal), memory_is_causal,
            )  # fmt: skip
        return tgt if self.norm is None else self.norm(tgt)


class Transformer(Module):
    """An encoder, and a decoder that attends to what it makes of the source.

    >>> import monograph as mg
    >>> model = mg.nn.Transformer(8, 2, 1, 1, dim_feedforward=16)
    >>> model(mg.randn(5, 3, 8), mg.randn(4, 3, 8)).shape
    Size([4, 3, 8])
    """

    def __init__(
        self, d_model: int = 512, nhead: int = 8, num_encoder_layers: int = 6,
        num_decoder_layers: int = 6, dim_feedforward: int = 2048, dropout: float = 0.1,
        activation: Activation = "relu", custom_encoder: Any = None, custom_decoder: Any = None,
        layer_norm_eps: float = 1e-5, batch_first: bool = False, norm_first: bool = False,
        bias: bool = True, device: Any = None, dtype: DType | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        given = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first,
                 norm_first, bias, device, dtype)  # fmt: skip
        kind: dict[str, Any] = {"bias": bias, "device": device, "dtype": dtype}
        if custom_encoder is None:
            norm = LayerNorm(d_model, layer_norm_eps, **kind)
            layer = TransformerEncoderLayer(*given)  # type: ignore[arg-type]
            custom_encoder = TransformerEncoder(layer, num_encoder_layers, norm)
        if custom_decoder is None:
            norm = LayerNorm(d_model, layer_norm_eps, **kind)
            last = TransformerDecoderLayer(*given)  # type: ignore[arg-type]
            custom_decoder = TransformerDecoder(last, num_decoder_layers, norm)
        self.encoder, self.decoder = custom_encoder, custom_decoder
        self.d_model, self.nhead, self.batch_first = d_model, nhead, batch_first
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        for parameter in self.parameters():
            if parameter.ndim > 1:
                init.xavier_uniform_(parameter)

    def forward(
        self, src: Any, tgt: Any, src_mask: Tensor | None = None, tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None, src_key_padding_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None, memory_key_padding_mask: Tensor | None = None,
        src_is_causal: bool | None = None, tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Any:  # fmt: skip
        batch = 0 if self.batch_first else 1
        if src.ndim == 3 and src.shape[batch] != tgt.shape[batch]:
            raise RuntimeError("the batch number of src and tgt must be equal")
        if src.shape[-1] != self.d_model or tgt.shape[-1] != self.d_model:
            raise RuntimeError("the feature number of src and tgt must be equal to d_model")
        memory = self.encoder(
            src, mask=src_mask, src_key_padding_mask=src_key_padding_mask, is_causal=src_is_causal
        )
        return self.decoder(
            tgt, memory, tgt_mask=tgt_mask, memory_mask=memory_mask,
            tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask, tgt_is_causal=tgt_is_causal,
            memory_is_causal=memory_is_causal,
        )  # fmt: skip

    @staticmethod
    def generate_square_subsequent_mask(
        sz: int, device: Any = None, dtype: DType | None = None
    ) -> Tensor:
        """The mask that lets a position see itself and those before it.

        >>> Transformer.generate_square_subsequent_mask(2).tolist()
        [[0.0, -inf], [0.0, 0.0]]
        """
        return adopt(np.triu(np.full((sz, sz), -np.inf), 1).astype((dtype or float32).numpy))
