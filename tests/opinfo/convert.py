"""Sample inputs of PyTorch as ours, and our results as tensors of PyTorch.

Values, dtype, `requires_grad` and the way a tensor lies in memory are kept: a transposed, strided
or expanded tensor becomes the same view of one of ours. One tensor that appears twice stays one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

import monograph as mg
from monograph.ir import dtypes


class Unconvertible(Exception):
    """An argument of a kind that this package does not have: a sparse tensor, another device."""


def dtype_name(dtype: torch.dtype) -> str:
    """`float32` of torch.float32."""
    return str(dtype).partition(".")[2]


def has_dtype(dtype: torch.dtype) -> bool:
    """Whether there is such a dtype here."""
    return dtype_name(dtype) in dtypes.BY_NAME


class Ours:
    """Converts the arguments of one call and remembers which tensor became which."""

    def __init__(self) -> None:
        self.pairs: dict[int, tuple[torch.Tensor, Any]] = {}
        self.storages: dict[Any, Any] = {}

    def leaves(self) -> list[tuple[torch.Tensor, Any]]:
        """(theirs, ours) of the tensors that require gradients."""
        return [pair for pair in self.pairs.values() if pair[0].requires_grad]

    def __call__(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            if id(value) not in self.pairs:
                self.pairs[id(value)] = (value, self._tensor(value))
            return self.pairs[id(value)][1]
        if isinstance(value, torch.dtype):
            return _dtype(value)
        if isinstance(value, torch.Size):
            return tuple(value)
        if isinstance(value, (tuple, list)):
            return type(value)(map(self, value))
        if isinstance(value, dict):
            return {name: self(part) for name, part in value.items()}
        if isinstance(value, slice):
            return slice(self(value.start), self(value.stop), self(value.step))
        return _constant(value)

    def _tensor(self, value: torch.Tensor) -> Any:
        """Tensors on one storage stay on one; a tensor that requires gradients is made by itself.

        That is for tensors that are contiguous: others become views of storages of their own.
        """
        if not _is_plain(value):
            return _tensor(value)
        key = (value.dtype, value.untyped_storage().data_ptr())
        if key in self.storages:
            return _part(self.storages[key], value)
        fills = value.untyped_storage().nbytes() <= value.nbytes
        made = self.storages[key] = _dense(value if fills else _whole(value))
        return made if fills else _part(made, value)


def _constant(value: Any) -> Any:
    if isinstance(value, torch.device):
        if value.type != "cpu":
            raise Unconvertible(f"device {value}")
        return "cpu"
    if isinstance(value, (torch.memory_format, torch.layout)):
        name = str(value).partition(".")[2]
        if not hasattr(mg, name):
            raise Unconvertible(f"no mg.{name}")
        return getattr(mg, name)
    if isinstance(value, torch.Generator):
        return mg.Generator()
    if type(value) is torch.nn.PairwiseDistance:  # a function among the arguments
        return mg.nn.PairwiseDistance(value.norm, value.eps, value.keepdim)
    return value


def _dtype(dtype: torch.dtype) -> Any:
    if not has_dtype(dtype):
        raise Unconvertible(f"no dtype {dtype_name(dtype)}")
    return dtypes.BY_NAME[dtype_name(dtype)]


def _is_plain(theirs: torch.Tensor) -> bool:
    plain = theirs.layout is torch.strided and theirs.device.type == "cpu"
    plain &= theirs.is_contiguous() and not (theirs.requires_grad or theirs.is_quantized)
    return plain and theirs.numel() > 0 and theirs.ndim <= 64 and has_dtype(theirs.dtype)


def _tensor(theirs: torch.Tensor) -> Any:
    if theirs.layout is not torch.strided:
        raise Unconvertible(f"layout {theirs.layout}")
    if theirs.device.type != "cpu":
        raise Unconvertible(f"device {theirs.device}")
    if theirs.is_quantized:
        raise Unconvertible("quantized")
    if theirs.ndim > 64:
        raise Unconvertible("more axes than NumPy has")
    _dtype(theirs.dtype)
    data = theirs.detach().resolve_conj().resolve_neg()
    if data.is_contiguous():
        fills = data.untyped_storage().nbytes() <= data.nbytes
        ours = _dense(data) if fills else _part(_dense(_whole(data)), data)
    else:
        ours = _view(data)
    if theirs.requires_grad:
        ours.requires_grad_()
    return ours


def _dense(data: torch.Tensor) -> Any:
    """A contiguous tensor of the same values; NumPy has no bfloat16, so that goes via float32."""
    if data.dtype is torch.bfloat16:
        return mg.tensor(data.float().numpy()).to(_dtype(data.dtype))
    return mg.tensor(data.numpy())


def _whole(data: torch.Tensor) -> torch.Tensor:
    """All that lies in the storage, in one line."""
    return torch.empty(0, dtype=data.dtype).set_(data.untyped_storage())


def _part(whole: Any, data: torch.Tensor) -> Any:
    """The same part of the same storage: what lies beside it may be seen too."""
    return whole.as_strided(data.shape, data.stride(), data.storage_offset())


def _view(data: torch.Tensor) -> Any:
    """The same view of a dense tensor: expanded, transposed, every k-th along the last axis."""
    shape = data.shape
    repeated = [d for d in range(data.ndim) if data.stride(d) == 0 and shape[d] > 1]
    for d in repeated:
        data = data.narrow(d, 0, 1)
    order = sorted(range(data.ndim), key=lambda d: -data.stride(d))
    inner = data.permute(order)
    step = min(inner.stride(-1), 4) if inner.ndim else 1
    if step > 1 and inner.shape[-1]:
        wide = _gaps(inner, step)
        ours = _dense(wide)[..., step - 1 :: step]
    else:
        ours = _dense(inner.contiguous())
    ours = ours.permute(*[order.index(d) for d in range(data.ndim)])
    return ours.expand(*shape) if repeated else ours


def _gaps(inner: torch.Tensor, step: int) -> torch.Tensor:
    """A longer last axis whose every k-th element is the tensor's; NaN or 12 between."""
    filler = float("nan") if inner.dtype.is_floating_point or inner.dtype.is_complex else 12
    wide = torch.full((*inner.shape[:-1], inner.shape[-1] * step), filler, dtype=inner.dtype)
    wide[..., step - 1 :: step] = inner
    return wide


def theirs(ours: Any) -> Any:
    """A result of ours as a tensor of PyTorch; what is not a tensor stays what it is."""
    if not isinstance(ours, mg.Tensor):
        return ours
    name = ours.dtype.name
    if name == "bfloat16":
        array = ours.detach().to(dtypes.float32).numpy()
        return torch.from_numpy(np.array(array)).to(torch.bfloat16)
    return torch.from_numpy(np.array(ours.detach().resolve_conj().resolve_neg().numpy()))
