"""Vision transformers: an image as a sequence of patches."""

from __future__ import annotations

import math
from collections import OrderedDict
from functools import partial
from typing import Any, NamedTuple

import monograph as mg
import monograph.nn.functional as F

from ... import nn
from ...tensor import Tensor
from ..ops import MLP, Conv2dNormActivation
from .weights import made

_NORM = partial(nn.LayerNorm, eps=1e-6)


class ConvStemConfig(NamedTuple):
    """A convolution of the stem that may stand in for the cutting into patches."""

    out_channels: int
    kernel_size: int
    stride: int
    norm_layer: Any = nn.BatchNorm2d
    activation_layer: Any = nn.ReLU


class MLPBlock(MLP):
    """Two linear layers; weights under the names that they had at first are taken too."""

    _version = 2

    def __init__(self, in_dim: int, mlp_dim: int, dropout: float) -> None:
        super().__init__(in_dim, [mlp_dim, in_dim], activation_layer=nn.GELU, dropout=dropout)
        for m in self.modules():
            if isinstance(m, nn.Linear):
                nn.init.xavier_uniform_(m.weight)
                nn.init.normal_(m.bias, std=1e-6)

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *rest: Any) -> None:
        for n in range(2):
            for kind in ("weight", "bias"):
                old = f"{prefix}linear_{n + 1}.{kind}"
                if old in state_dict:
                    state_dict[f"{prefix}{3 * n}.{kind}"] = state_dict.pop(old)
        super()._load_from_state_dict(state_dict, prefix, *rest)


class EncoderBlock(nn.Module):
    """Attention, then two linear layers, each after a norm and beside a shortcut."""

    def __init__(
        self, num_heads: int, hidden_dim: int, mlp_dim: int, dropout: float,
        attention_dropout: float, norm_layer: Any = _NORM,
    ) -> None:  # fmt: skip
        super().__init__()
        self.num_heads = num_heads
        self.ln_1 = norm_layer(hidden_dim)
        self.self_attention = nn.MultiheadAttention(
            hidden_dim, num_heads, dropout=attention_dropout, batch_first=True
        )
        self.dropout = nn.Dropout(dropout)
        self.ln_2 = norm_layer(hidden_dim)
        self.mlp = MLPBlock(hidden_dim, mlp_dim, dropout)

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002
        """The sequence after both."""
        x = self.ln_1(input)
        x = self.dropout(self.self_attention(x, x, x, need_weights=False)[0]) + input
        return x + self.mlp(self.ln_2(x))


class Encoder(nn.Module):
    """What is known of the places of patches, then a chain of blocks."""

    def __init__(
        self, seq_length: int, num_layers: int, num_heads: int, hidden_dim: int, mlp_dim: int,
        dropout: float, attention_dropout: float,
        norm_layer: Any = _NORM,
    ) -> None:  # fmt: skip
        super().__init__()
        self.pos_embedding = nn.Parameter(mg.empty(1, seq_length, hidden_dim).normal_(std=0.02))
        self.dropout = nn.Dropout(dropout)
        sizes = (num_heads, hidden_dim, mlp_dim, dropout, attention_dropout, norm_layer)
        self.layers = nn.Sequential(
            OrderedDict((f"encoder_layer_{n}", EncoderBlock(*sizes)) for n in range(num_layers))
        )
        self.ln = norm_layer(hidden_dim)

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002
        """The sequence [N, patches, features] after all blocks."""
        return self.ln(self.layers(self.dropout(input + self.pos_embedding)))


class VisionTransformer(nn.Module):
    """Patches, a token for the class, an encoder, and a linear layer of what became of the token.

    >>> sizes = {"num_layers": 1, "num_heads": 2, "hidden_dim": 8, "mlp_dim": 16}
    >>> VisionTransformer(8, 4, num_classes=3, **sizes)(mg.zeros(2, 3, 8, 8)).shape
    Size([2, 3])
    """

    def __init__(
        self, image_size: int, patch_size: int, num_layers: int, num_heads: int, hidden_dim: int,
        mlp_dim: int, dropout: float = 0.0, attention_dropout: float = 0.0,
        num_classes: int = 1000, representation_size: int | None = None,
        norm_layer: Any = _NORM,
        conv_stem_configs: list[ConvStemConfig] | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        if image_size % patch_size:
            raise ValueError("Input shape indivisible by patch size!")
        self.image_size, self.patch_size, self.hidden_dim = image_size, patch_size, hidden_dim
        self.mlp_dim, self.num_classes = mlp_dim, num_classes
        self.attention_dropout, self.dropout = attention_dropout, dropout
        self.representation_size, self.norm_layer = representation_size, norm_layer
        self.conv_proj = _projection(hidden_dim, patch_size, conv_stem_configs)
        self.class_token = nn.Parameter(mg.zeros(1, 1, hidden_dim))
        self.seq_length = (image_size // patch_size) ** 2 + 1
        self.encoder = Encoder(
            self.seq_length, num_layers, num_heads, hidden_dim, mlp_dim, dropout,
            attention_dropout, norm_layer,
        )  # fmt: skip
        layers: OrderedDict[str, nn.Module] = OrderedDict()
        width = hidden_dim
        if representation_size is not None:
            layers["pre_logits"] = nn.Linear(hidden_dim, representation_size)
            layers["act"] = nn.Tanh()
            width = representation_size
        layers["head"] = nn.Linear(width, num_classes)
        self.heads = nn.Sequential(layers)
        self._initialise()

    def _initialise(self) -> None:
        whole = self.conv_proj
        if isinstance(whole, nn.Conv2d):
            fan = whole.in_channels * whole.kernel_size[0] * whole.kernel_size[1]
            nn.init.trunc_normal_(whole.weight, std=math.sqrt(1 / fan))
            last = whole
        else:
            last = whole.conv_last
            nn.init.normal_(last.weight, 0.0, math.sqrt(2.0 / last.out_channels))
        if last.bias is not None:
            nn.init.zeros_(last.bias)
        if self.representation_size is not None:
            before = self.heads.pre_logits
            nn.init.trunc_normal_(before.weight, std=math.sqrt(1 / before.in_features))
            nn.init.zeros_(before.bias)
        nn.init.zeros_(self.heads.head.weight)
        nn.init.zeros_(self.heads.head.bias)

    def _process_input(self, x: Tensor) -> Tensor:
        """The patches of images, in rows: [N, patches, features]."""
        for found, axis in ((x.shape[2], "height"), (x.shape[3], "width")):
            if found != self.image_size:
                raise AssertionError(
                    f"Wrong image {axis}! Expected {self.image_size} but got {found}!"
                )
        return self.conv_proj(x).flatten(2).permute(0, 2, 1)

    def forward(self, x: Tensor) -> Tensor:
        """Scores of classes for images."""
        x = self._process_input(x)
        x = mg.cat([self.class_token.expand(x.shape[0], -1, -1), x], 1)
        return self.heads(self.encoder(x)[:, 0])


def _projection(
    hidden_dim: int, patch_size: int, configs: list[ConvStemConfig] | None
) -> nn.Module:
    """Patches to features: one convolution, or a stem of some."""
    if configs is None:
        return nn.Conv2d(3, hidden_dim, patch_size, patch_size)
    stem = nn.Sequential()
    inner = 3
    for n, cnf in enumerate(configs):
        layer = Conv2dNormActivation(
            inner, cnf.out_channels, cnf.kernel_size, cnf.stride, norm_layer=cnf.norm_layer,
            activation_layer=cnf.activation_layer,
        )  # fmt: skip
        stem.add_module(f"conv_bn_relu_{n}", layer)
        inner = cnf.out_channels
    stem.add_module("conv_last", nn.Conv2d(inner, hidden_dim, 1))
    return stem


def interpolate_embeddings(
    image_size: int, patch_size: int, model_state: Any, interpolation_mode: str = "bicubic",
    reset_heads: bool = False,
) -> Any:  # fmt: skip
    """Weights that fit images of another size: what is known of places is resampled.

    >>> state = {"encoder.pos_embedding": mg.zeros(1, 5, 8)}
    >>> interpolate_embeddings(16, 4, state)["encoder.pos_embedding"].shape
    Size([1, 17, 8])
    """
    name = "encoder.pos_embedding"
    known = model_state[name]
    count, seq_length, features = known.shape
    if count != 1:
        raise ValueError(f"Unexpected position embedding shape: {known.shape}")
    wanted = image_size // patch_size
    if wanted**2 + 1 == seq_length:
        return model_state
    old = math.isqrt(seq_length - 1)
    if old * old != seq_length - 1:
        raise ValueError("seq_length is not a perfect square!")
    places = known[:, 1:].permute(0, 2, 1).reshape(1, features, old, old)
    made = F.interpolate(places, size=wanted, mode=interpolation_mode, align_corners=True)
    model_state[name] = mg.cat([known[:, :1], made.flatten(2).permute(0, 2, 1)], 1)
    if not reset_heads:
        return model_state
    return OrderedDict((k, v) for k, v in model_state.items() if not k.startswith("heads"))


# Patch, layers, heads, features, features between the linear layers.
_SIZES = {
    "b_16": (16, 12, 12, 768, 3072), "b_32": (32, 12, 12, 768, 3072),
    "l_16": (16, 24, 16, 1024, 4096), "l_32": (32, 24, 16, 1024, 4096),
    "h_14": (14, 32, 16, 1280, 5120),
}  # fmt: skip


def _transformer(size: str, image_size: int = 224, **options: Any) -> VisionTransformer:
    return VisionTransformer(image_size, *_SIZES[size], **options)


MODELS = {f"vit_{size}": made(f"vit_{size}", _transformer, size) for size in _SIZES}
