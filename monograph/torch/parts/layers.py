"""Layers that PyTorch names besides those of `monograph.nn`, and names that libraries import."""

from __future__ import annotations

import collections
from collections.abc import Callable
from itertools import repeat
from typing import Any

from ...nn import BatchNorm1d, BatchNorm2d, BatchNorm3d, Module, NLLLoss, Parameter, Sequential
from ...nn.batch_norm import _BatchNorm, _InstanceNorm, _RunningNorm
from ...nn.conv import _Conv, _ConvTranspose, _Layer
from ...nn.dropout import _Dropout
from ...nn.lazy import LazyModuleMixin
from ...nn.loss import _Loss, _WeightedLoss
from ...nn.pooling import (
    _AdaptiveAvgPool,
    _AdaptiveMaxPool,
    _AvgPool,
    _LPPool,
    _MaxPool,
    _MaxUnpool,
)
from ...nn.state import IncompatibleKeys
from ...nn.uninitialized import UninitializedBuffer, UninitializedParameter, is_lazy
from ...ops.define import members
from .parallel import DataParallel

_ConvNd, _ConvTransposeNd, _NormBase, _DropoutNd = _Layer, _ConvTranspose, _RunningNorm, _Dropout
_AdaptiveAvgPoolNd, _AdaptiveMaxPoolNd, _AvgPoolNd = _AdaptiveAvgPool, _AdaptiveMaxPool, _AvgPool
_LPPoolNd, _MaxPoolNd, _MaxUnpoolNd = _LPPool, _MaxPool, _MaxUnpool
NLLLoss2d, Container, _IncompatibleKeys = NLLLoss, Sequential, IncompatibleKeys


class SyncBatchNorm(_BatchNorm):
    """Batch norm over the batches of all processes, of which there is one."""

    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1,
        affine: bool = True, track_running_stats: bool = True, process_group: Any = None,
        device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype)
        self.process_group = process_group

    def _check_rank(self, rank: int) -> None:
        if rank < 2:
            raise ValueError(f"expected at least 2D input (got {rank}D input)")

    @classmethod
    def convert_sync_batchnorm(cls, module: Module, process_group: Any = None) -> Module:
        """The module itself: its batches are all there are."""
        return module


def _ntuple(n: int, name: str = "parse") -> Callable[[Any], tuple[Any, ...]]:
    """A function from a number to n of them; sequences stay what they are.

    >>> _ntuple(2)(3)
    (3, 3)
    """

    def parse(x: Any) -> tuple[Any, ...]:
        return tuple(x) if isinstance(x, collections.abc.Iterable) else tuple(repeat(x, n))

    parse.__name__ = name
    return parse


_single, _pair, _triple, _quadruple = (_ntuple(n) for n in (1, 2, 3, 4))


def _get_activation_fn(activation: str) -> Callable[..., Any]:
    """The function that a transformer layer's `activation="..."` names."""
    if activation not in ("relu", "gelu"):
        raise RuntimeError(f"activation should be relu/gelu, not {activation}")
    found: Callable[..., Any] = members("nn.functional")[activation]
    return found


def _reverse_repeat_tuple(t: tuple[Any, ...], n: int) -> tuple[Any, ...]:
    """Each entry n times, the last one first."""
    return tuple(x for x in reversed(t) for _ in range(n))


__all__ = [
    "BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "Container", "DataParallel", "Module",
    "NLLLoss2d", "Parameter", "SyncBatchNorm", "_AdaptiveAvgPoolNd",
    "_AdaptiveMaxPoolNd", "_AvgPoolNd", "_BatchNorm", "_Conv", "_ConvNd", "_ConvTransposeNd",
    "_DropoutNd", "_InstanceNorm", "_LPPoolNd", "_Loss", "_MaxPoolNd", "_MaxUnpoolNd", "_NormBase",
    "_IncompatibleKeys", "_WeightedLoss", "_get_activation_fn", "_ntuple", "_pair", "_quadruple",
    "_reverse_repeat_tuple", "_single", "_triple", "LazyModuleMixin", "UninitializedBuffer",
    "UninitializedParameter", "is_lazy",
]  # fmt: skip
