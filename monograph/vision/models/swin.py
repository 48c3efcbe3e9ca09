"""Swin transformers, V1 and V2: attention within windows that are shifted from layer to layer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

import monograph as mg
import monograph.nn.functional as F

from ... import nn
from ...tensor import Tensor, adopt
from ..ops import MLP, Permute, StochasticDepth
from .weights import made


def _quarters(x: Tensor) -> Tensor:
    """Four neighbours side by side: [..., H, W, C] as [..., H/2, W/2, 4C]; odd sides are padded."""
    height, width = x.shape[-3:-1]
    x = F.pad(x, (0, 0, 0, width % 2, 0, height % 2))
    parts = [x[..., row::2, column::2, :] for column in (0, 1) for row in (0, 1)]
    return mg.cat(parts, -1)


class PatchMerging(nn.Module):
    """Half as high and wide, with twice the features."""

    def __init__(self, dim: int, norm_layer: Any = nn.LayerNorm) -> None:
        super().__init__()
        self.dim = dim
        self.reduction = nn.Linear(4 * dim, 2 * dim, bias=False)
        self.norm = norm_layer(4 * dim)

    def forward(self, x: Tensor) -> Tensor:
        """[..., H, W, C] as [..., H/2, W/2, 2C]."""
        return self.reduction(self.norm(_quarters(x)))


class PatchMergingV2(nn.Module):
    """The same, with the norm after the linear layer."""

    def __init__(self, dim: int, norm_layer: Any = nn.LayerNorm) -> None:
        super().__init__()
        self.dim = dim
        self.reduction = nn.Linear(4 * dim, 2 * dim, bias=False)
        self.norm = norm_layer(2 * dim)

    def forward(self, x: Tensor) -> Tensor:
        """[..., H, W, C] as [..., H/2, W/2, 2C]."""
        return self.norm(self.reduction(_quarters(x)))


def _offsets(window: Sequence[int]) -> np.ndarray:
    """For each pair of places of a window, how far they are apart, from 0: [n, n, 2]."""
    places = np.stack(np.meshgrid(*[np.arange(n) for n in window], indexing="ij"), -1)
    places = places.reshape(-1, 2)
    return places[:, None] - places[None] + (np.array(window) - 1)


def _windows(x: Tensor, size: Sequence[int]) -> Tensor:
    """[B, H, W, C] as [B · windows, places, C]."""
    batch, height, width, channels = x.shape
    x = x.view(batch, height // size[0], size[0], width // size[1], size[1], channels)
    return x.permute(0, 1, 3, 2, 4, 5).reshape(-1, size[0] * size[1], channels)


def _joined(x: Tensor, size: Sequence[int], batch: int, height: int, width: int) -> Tensor:
    """What `_windows` took apart."""
    x = x.view(batch, height // size[0], width // size[1], size[0], size[1], -1)
    return x.permute(0, 1, 3, 2, 4, 5).reshape(batch, height, width, -1)


def _hidden(height: int, width: int, size: Sequence[int], shift: Sequence[int]) -> Tensor:
    """-100 where two places of a window came together only by the shift: [windows, n, n]."""
    regions = np.zeros((height, width), np.float32)
    for extent, length, way, k in ((height, size[0], shift[0], 0), (width, size[1], shift[1], 1)):
        place = np.arange(extent)
        part = (place >= extent - length).astype(np.float32) + (place >= extent - way)
        regions = regions * 3 + (part[:, None] if k == 0 else part[None])
    tiled = regions.reshape(height // size[0], size[0], width // size[1], size[1])
    flat = tiled.transpose(0, 2, 1, 3).reshape(-1, size[0] * size[1])
    return adopt(np.where(flat[:, None] != flat[:, :, None], np.float32(-100.0), np.float32(0.0)))


class ShiftedWindowAttention(nn.Module):
    """Attention among the places of each window, with a bias for how far they are apart."""

    def __init__(
        self, dim: int, window_size: Sequence[int], shift_size: Sequence[int], num_heads: int,
        qkv_bias: bool = True, proj_bias: bool = True, attention_dropout: float = 0.0,
        dropout: float = 0.0,
    ) -> None:  # fmt: skip
        super().__init__()
        if len(window_size) != 2 or len(shift_size) != 2:
            raise ValueError("window_size and shift_size must be of length 2")
        self.window_size, self.shift_size = list(window_size), list(shift_size)
        self.num_heads, self.dropout = num_heads, dropout
        self.attention_dropout = attention_dropout
        self.qkv = nn.Linear(dim, dim * 3, bias=qkv_bias)
        self.proj = nn.Linear(dim, dim, bias=proj_bias)
        self._define_bias()

    def _define_bias(self) -> None:
        high, wide = self.window_size
        table = mg.zeros((2 * high - 1) * (2 * wide - 1), self.num_heads)
        self.relative_position_bias_table = nn.Parameter(table)
        nn.init.trunc_normal_(self.relative_position_bias_table, std=0.02)
        self._define_index()

    def _define_index(self) -> None:
        apart = _offsets(self.window_size)
        number = apart[..., 0] * (2 * self.window_size[1] - 1) + apart[..., 1]
        self.register_buffer("relative_position_index", adopt(number.reshape(-1)))

    def _bias(self, table: Tensor) -> Tensor:
        """A row of a table for each pair of places: [1, heads, n, n]."""
        count = self.window_size[0] * self.window_size[1]
        rows = table[self.relative_position_index].view(count, count, -1)
        return rows.permute(2, 0, 1).unsqueeze(0)

    def get_relative_position_bias(self) -> Tensor:
        """What is added to the scores of a window: [1, heads, n, n]."""
        return self._bias(self.relative_position_bias_table)

    def _project(self, x: Tensor) -> Tensor:
        return self.qkv(x)

    def _scores(self, query: Tensor, key: Tensor) -> Tensor:
        return (query * query.shape[-1] ** -0.5) @ key.transpose(-2, -1)

    def forward(self, x: Tensor) -> Tensor:
        """[B, H, W, C] after attention."""
        batch, height, width, channels = x.shape
        size = self.window_size
        below, right = -height % size[0], -width % size[1]
        x = F.pad(x, (0, 0, 0, right, 0, below))
        high, wide = x.shape[1:3]
        # A window that holds all of an axis has nowhere to go.
        shift = [
            0 if n >= all_ else s
            for n, all_, s in zip(size, (high, wide), self.shift_size, strict=True)
        ]
        if any(shift):
            x = x.roll((-shift[0], -shift[1]), (1, 2))
        x = self._attend(_windows(x, size), high, wide, shift)
        x = _joined(x, size, batch, high, wide)
        if any(shift):
            x = x.roll(tuple(shift), (1, 2))
        return x[:, :height, :width]

    def _attend(self, x: Tensor, high: int, wide: int, shift: list[int]) -> Tensor:
        """Windows [B · windows, n, C] after attention within each."""
        count, places, channels = x.shape
        parts = self._project(x).reshape(count, places, 3, self.num_heads, -1)
        query, key, value = parts.permute(2, 0, 3, 1, 4).unbind(0)
        scores = self._scores(query, key) + self.get_relative_position_bias()
        if any(shift):
            hidden = _hidden(high, wide, self.window_size, shift).to(x.device)[:, None]
            grouped = scores.view(-1, len(hidden), self.num_heads, places, places)
            scores = (grouped + hidden).view(-1, self.num_heads, places, places)
        share = F.dropout(scores.softmax(-1), self.attention_dropout, self.training)
        made = (share @ value).transpose(1, 2).reshape(count, places, channels)
        return F.dropout(self.proj(made), self.dropout, self.training)


class ShiftedWindowAttentionV2(ShiftedWindowAttention):
    """The same with scores that are cosines, and a bias that small layers make of the distance."""

    def __init__(
        self, dim: int, window_size: Sequence[int], shift_size: Sequence[int], num_heads: int,
        qkv_bias: bool = True, proj_bias: bool = True, attention_dropout: float = 0.0,
        dropout: float = 0.0,
    ) -> None:  # fmt: skip
        super().__init__(
            dim, window_size, shift_size, num_heads, qkv_bias, proj_bias, attention_dropout,
            dropout,
        )  # fmt: skip
        self.logit_scale = nn.Parameter(mg.log(10 * mg.ones(num_heads, 1, 1)))
        self.cpb_mlp = nn.Sequential(
            nn.Linear(2, 512), nn.ReLU(inplace=True), nn.Linear(512, num_heads, bias=False)
        )
        if self.qkv.bias is not None:
            with mg.no_grad():  # a bias of keys changes nothing
                self.qkv.bias[dim : 2 * dim].zero_()

    def _define_bias(self) -> None:
        sides = [np.arange(-(n - 1), n, dtype=np.float32) / (n - 1) * 8 for n in self.window_size]
        table = np.stack(np.meshgrid(*sides, indexing="ij"), -1)[None]
        table = np.sign(table) * np.log2(np.abs(table) + 1.0) / np.float32(3.0)
        self.register_buffer("relative_coords_table", adopt(table.astype(np.float32)))
        self._define_index()

    def get_relative_position_bias(self) -> Tensor:
        """What is added to the scores of a window: [1, heads, n, n]."""
        table = self.cpb_mlp(self.relative_coords_table).view(-1, self.num_heads)
        return 16 * self._bias(table).sigmoid()

    def _project(self, x: Tensor) -> Tensor:
        if self.qkv.bias is None:
            return self.qkv(x)
        width = self.qkv.in_features
        query, _, value = self.qkv.bias.split(width)
        return F.linear(x, self.qkv.weight, mg.cat([query, mg.zeros_like(query), value]))

    def _scores(self, query: Tensor, key: Tensor) -> Tensor:
        cosines = F.normalize(query, dim=-1) @ F.normalize(key, dim=-1).transpose(-2, -1)
        return cosines * self.logit_scale.clamp(max=math.log(100.0)).exp()


class SwinTransformerBlock(nn.Module):
    """Attention, then two linear layers, each after a norm and beside a shortcut."""

    def __init__(
        self, dim: int, num_heads: int, window_size: Sequence[int], shift_size: Sequence[int],
        mlp_ratio: float = 4.0, dropout: float = 0.0, attention_dropout: float = 0.0,
        stochastic_depth_prob: float = 0.0, norm_layer: Any = nn.LayerNorm,
        attn_layer: Any = ShiftedWindowAttention,
    ) -> None:  # fmt: skip
        super().__init__()
        self.norm1 = norm_layer(dim)
        self.attn = attn_layer(
            dim, window_size, shift_size, num_heads, attention_dropout=attention_dropout,
            dropout=dropout,
        )  # fmt: skip
        self.stochastic_depth = StochasticDepth(stochastic_depth_prob, "row")
        self.norm2 = norm_layer(dim)
        self.mlp = MLP(
            dim, [int(dim * mlp_ratio), dim], activation_layer=nn.GELU, inplace=None,
            dropout=dropout,
        )  # fmt: skip
        for m in self.mlp.modules():
            if isinstance(m, nn.Linear):
                nn.init.xavier_uniform_(m.weight)
                nn.init.normal_(m.bias, std=1e-6)

    def forward(self, x: Tensor) -> Tensor:
        """[B, H, W, C] after both."""
        x = x + self.stochastic_depth(self.attn(self.norm1(x)))
        return x + self.stochastic_depth(self.mlp(self.norm2(x)))


class SwinTransformerBlockV2(SwinTransformerBlock):
    """The same with norms after the layers."""

    def __init__(
        self, dim: int, num_heads: int, window_size: Sequence[int], shift_size: Sequence[int],
        mlp_ratio: float = 4.0, dropout: float = 0.0, attention_dropout: float = 0.0,
        stochastic_depth_prob: float = 0.0, norm_layer: Any = nn.LayerNorm,
        attn_layer: Any = ShiftedWindowAttentionV2,
    ) -> None:  # fmt: skip
        super().__init__(
            dim, num_heads, window_size, shift_size, mlp_ratio, dropout, attention_dropout,
            stochastic_depth_prob, norm_layer, attn_layer,
        )  # fmt: skip

    def forward(self, x: Tensor) -> Tensor:
        """[B, H, W, C] after both."""
        x = x + self.stochastic_depth(self.norm1(self.attn(x)))
        return x + self.stochastic_depth(self.norm2(self.mlp(x)))


class SwinTransformer(nn.Module):
    """Stages of blocks whose windows are shifted in turn, with fewer places from stage to stage.

    >>> sizes = ([2, 2], 8, [2, 1], [2, 2], [2, 2])
    >>> SwinTransformer(*sizes, num_classes=3)(mg.zeros(2, 3, 16, 16)).shape
    Size([2, 3])
    """

    def __init__(
        self, patch_size: Sequence[int], embed_dim: int, depths: Sequence[int],
        num_heads: Sequence[int], window_size: Sequence[int], mlp_ratio: float = 4.0,
        dropout: float = 0.0, attention_dropout: float = 0.0, stochastic_depth_prob: float = 0.1,
        num_classes: int = 1000, norm_layer: Any = None, block: Any = None,
        downsample_layer: Any = PatchMerging,
    ) -> None:  # fmt: skip
        super().__init__()
        self.num_classes = num_classes
        norm, block = norm_layer or partial(nn.LayerNorm, eps=1e-5), block or SwinTransformerBlock
        patches = nn.Conv2d(3, embed_dim, tuple(patch_size), tuple(patch_size))
        layers = [nn.Sequential(patches, Permute([0, 2, 3, 1]), norm(embed_dim))]
        last = sum(depths) - 1
        number, dim = 0, embed_dim
        for stage, (depth, heads) in enumerate(zip(depths, num_heads, strict=True)):
            dim = embed_dim * 2**stage
            blocks = []
            for n in range(depth):
                shift = [w // 2 if n % 2 else 0 for w in window_size]
                chance = stochastic_depth_prob * number / last
                blocks.append(
                    block(dim, heads, window_size, shift, mlp_ratio, dropout, attention_dropout,
                          chance, norm)
                )  # fmt: skip
                number += 1
            layers.append(nn.Sequential(*blocks))
            if stage < len(depths) - 1:
                layers.append(downsample_layer(dim, norm))
        self.features = nn.Sequential(*layers)
        self.norm = norm(dim)
        self.permute = Permute([0, 3, 1, 2])
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.flatten = nn.Flatten(1)
        self.head = nn.Linear(dim, num_classes)
        for m in self.modules():
            if isinstance(m, nn.Linear):
                nn.init.trunc_normal_(m.weight, std=0.02)
                if m.bias is not None:
                    nn.init.zeros_(m.bias)

    def forward(self, x: Tensor) -> Tensor:
        """Scores of classes for images."""
        x = self.permute(self.norm(self.features(x)))
        return self.head(self.flatten(self.avgpool(x)))


# Features, depths, heads, the chance to leave out the last block.
_SIZES = {
    "t": (96, [2, 2, 6, 2], [3, 6, 12, 24], 0.2), "s": (96, [2, 2, 18, 2], [3, 6, 12, 24], 0.3),
    "b": (128, [2, 2, 18, 2], [4, 8, 16, 32], 0.5),
}  # fmt: skip
_SECOND = {"block": SwinTransformerBlockV2, "downsample_layer": PatchMergingV2}


def _swin(version: int, size: str, **options: Any) -> SwinTransformer:
    features, depths, heads, chance = _SIZES[size]
    window = [7, 7] if version == 1 else [8, 8]
    if version == 2:
        options = {**_SECOND, **options}
    options.setdefault("stochastic_depth_prob", chance)
    return SwinTransformer([4, 4], features, depths, heads, window, **options)


MODELS = {
    **{f"swin_{size}": made(f"swin_{size}", _swin, 1, size) for size in _SIZES},
    **{f"swin_v2_{size}": made(f"swin_v2_{size}", _swin, 2, size) for size in _SIZES},
}
