"""Layers that PyTorch names besides those of `monograph.nn`, and names that libraries import."""

from __future__ import annotations

import collections
import copy
from collections.abc import Callable
from itertools import repeat
from typing import Any

from ... import nn
from ...nn import (
    BatchNorm1d,
    BatchNorm2d,
    BatchNorm3d,
    Linear,
    Module,
    ModuleList,
    NLLLoss,
    Parameter,
    Sequential,
    Transformer,
)
from ...nn.batch_norm import _BatchNorm, _InstanceNorm, _RunningNorm
from ...nn.conv import _Conv, _ConvTranspose, _Layer
from ...nn.dropout import _Dropout
from ...nn.lazy import LazyModuleMixin
from ...nn.loss import _Loss, _WeightedLoss
from ...nn.padding import _CircularPad, _ConstantPad, _ReflectionPad, _ReplicationPad
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
from ...tensor import Tensor
from .parallel import DataParallel

_ConvNd, _ConvTransposeNd, _NormBase, _DropoutNd = _Layer, _ConvTranspose, _RunningNorm, _Dropout
_AdaptiveAvgPoolNd, _AdaptiveMaxPoolNd, _AvgPoolNd = _AdaptiveAvgPool, _AdaptiveMaxPool, _AvgPool
_LPPoolNd, _MaxPoolNd, _MaxUnpoolNd = _LPPool, _MaxPool, _MaxUnpool
_LAZY = [name for name in dir(nn) if name.startswith("Lazy")]
globals().update({name: getattr(nn, name) for name in _LAZY})
_CircularPadNd, _ConstantPadNd = _CircularPad, _ConstantPad
_ReflectionPadNd, _ReplicationPadNd = _ReflectionPad, _ReplicationPad
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


def _list_with_default(out_size: list[Any], defaults: list[int]) -> list[int]:
    """The sizes, where a None stands for that of the last default ones."""
    if len(defaults) <= len(out_size):
        raise ValueError(f"Input dimension should be at least {len(out_size) + 1}")
    last = defaults[-len(out_size) :]
    return [d if v is None else v for v, d in zip(out_size, last, strict=True)]


def _get_clones(module: Module, N: int) -> ModuleList:  # noqa: N803 - PyTorch's name
    """Copies of a module."""
    return ModuleList([copy.deepcopy(module) for _ in range(N)])


def _generate_square_subsequent_mask(sz: int, device: Any = None, dtype: Any = None) -> Tensor:
    """A mask that is -inf where a place must not look ahead."""
    made: Tensor = Transformer.generate_square_subsequent_mask(sz, device=device, dtype=dtype)
    return made


def _get_seq_len(src: Tensor, batch_first: bool) -> int | None:
    """The length of the sequences, of a batch or of one alone."""
    if src.ndim == 2:
        return int(src.shape[0])
    return int(src.shape[1 if batch_first else 0]) if src.ndim == 3 else None


def _apply_permutation(tensor: Tensor, permutation: Tensor, dim: int = 1) -> Tensor:
    """The entries along an axis in another order."""
    made: Tensor = tensor.index_select(dim, permutation)
    return made


def _addindent(s_: str, numSpaces: int) -> str:  # noqa: N803 - PyTorch's name
    """The lines after the first, moved to the right."""
    return s_.replace("\n", "\n" + " " * numSpaces)


class NonDynamicallyQuantizableLinear(Linear):
    """A linear layer; copies of PyTorch's attention name it."""


class _ConvTransposeMixin(_ConvTranspose):
    """The old name of a base of transposed convolutions; libraries ask whether a layer has it."""


_EXTRA_STATE_KEY_SUFFIX = "_extra_state"  # of a module's own state, in a state dictionary

__all__ = [
    "_EXTRA_STATE_KEY_SUFFIX",
    "NonDynamicallyQuantizableLinear", "_CircularPadNd", "_ConstantPadNd", "_ReflectionPadNd",
    "_ReplicationPadNd", "_addindent", "_apply_permutation", "_generate_square_subsequent_mask",
    "_get_clones", "_get_seq_len", "_list_with_default", *_LAZY,
    "BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "Container", "DataParallel", "Module",
    "NLLLoss2d", "Parameter", "SyncBatchNorm", "_AdaptiveAvgPoolNd",
    "_AdaptiveMaxPoolNd", "_AvgPoolNd", "_BatchNorm", "_Conv", "_ConvNd", "_ConvTransposeMixin",
    "_ConvTransposeNd",
    "_DropoutNd", "_InstanceNorm", "_LPPoolNd", "_Loss", "_MaxPoolNd", "_MaxUnpoolNd", "_NormBase",
    "_IncompatibleKeys", "_WeightedLoss", "_get_activation_fn", "_ntuple", "_pair", "_quadruple",
    "_reverse_repeat_tuple", "_single", "_triple", "LazyModuleMixin", "UninitializedBuffer",
    "UninitializedParameter", "is_lazy",
]  # fmt: skip
