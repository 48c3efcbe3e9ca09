"""Layers that find out how many features come in when they are first called.

`LazyLinear(8)` is a `Linear` whose weight has no shape yet. The first call gives it one, fills it
and turns the layer into a plain `Linear`. So does loading a state dictionary.
"""

from __future__ import annotations

from inspect import signature
from typing import Any

from ..ir.dtypes import DType
from ..tensor import Tensor, tensor
from .batch_norm import (
    BatchNorm1d,
    BatchNorm2d,
    BatchNorm3d,
    InstanceNorm1d,
    InstanceNorm2d,
    InstanceNorm3d,
)
from .conv import Conv1d, Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from .linear import Linear
from .module import Module
from .uninitialized import UninitializedBuffer, UninitializedParameter, is_lazy


class LazyModuleMixin(Module):
    """Base, before a layer's class, of one that makes its parameters at the first call.

    `initialize_parameters(*args)` is given the arguments of that call. `cls_to_become` is the
    class that the layer has afterwards.
    """

    cls_to_become: type[Module] | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._load_hook = self.register_load_state_dict_pre_hook(_take_shapes)
        self._initialize_hook = self.register_forward_pre_hook(_infer, with_kwargs=True)

    def initialize_parameters(self, *args: Any, **kwargs: Any) -> None:
        """Give parameters their shapes, from the arguments of the first call."""
        raise NotImplementedError(
            f"initialize_parameters is not implemented for {type(self).__name__}"
        )

    def has_uninitialized_params(self) -> bool:
        """Whether a parameter or buffer has no shape yet."""
        members = (*self._parameters.values(), *self._buffers.values())
        return any(is_lazy(member) for member in members)

    def reset_parameters(self) -> None:
        """Draw new weights, once there are any."""
        if not self.has_uninitialized_params():
            super().reset_parameters()  # type: ignore[misc]


def _infer(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Before the first call: find the shapes, and become a plain layer."""
    module.initialize_parameters(*args, **kwargs)
    if module.has_uninitialized_params():
        raise RuntimeError(
            f"module {type(module).__name__} has not been fully initialized after its first call"
        )
    _become_plain(module)


def _become_plain(module: Any) -> None:
    module._initialize_hook.remove()
    module._load_hook.remove()
    del module._initialize_hook, module._load_hook
    if module.cls_to_become is not None:
        module.__class__ = module.cls_to_become


def _take_shapes(module: Any, state: dict[str, Any], prefix: str, *_: Any) -> None:
    """Before a load: the shapes are those of the tensors that are loaded."""
    for held in (module._parameters, module._buffers):
        for name, member in held.items():
            given = state.get(prefix + name)
            if is_lazy(member) and given is not None and not is_lazy(given):
                member.materialize(tuple(given.shape))


class LazyLinear(LazyModuleMixin, Linear):
    """`Linear`, whose in_features are those of its first input.

    >>> import monograph as mg
    >>> layer = LazyLinear(2)
    >>> layer(mg.ones(5, 3)).shape, layer.weight.shape
    (Size([5, 2]), Size([2, 3]))
    """

    cls_to_become = Linear

    def __init__(
        self, out_features: int, bias: bool = True, device: Any = None, dtype: DType | None = None
    ) -> None:
        super().__init__(0, 0, False, device, dtype)
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        self.out_features = out_features
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def initialize_parameters(self, input: Tensor) -> None:  # noqa: A002
        """Take in_features from the last axis."""
        self.in_features = input.shape[-1]
        if self.has_uninitialized_params():
            self.weight.materialize((self.out_features, self.in_features))  # type: ignore[attr-defined]
            if self.bias is not None:
                self.bias.materialize((self.out_features,))  # type: ignore[attr-defined]
            self.reset_parameters()


class _LazyConv(LazyModuleMixin):
    """What the lazy convolutions do besides their layer."""

    def __init__(self, out_channels: int, kernel_size: Any, *args: Any, **options: Any) -> None:
        assert self.cls_to_become is not None
        given = signature(self.cls_to_become).bind(0, 0, kernel_size, *args, **options).arguments
        super().__init__(**{**given, "bias": False})
        kind: dict[str, Any] = {name: given.get(name) for name in ("device", "dtype")}
        self.weight = UninitializedParameter(**kind)
        self.out_channels = out_channels
        if given.get("bias", True):
            self.bias = UninitializedParameter(**kind)

    def initialize_parameters(self: Any, input: Tensor, *args: Any, **options: Any) -> None:  # noqa: A002
        """Take in_channels from the axis before the spatial ones."""
        self.in_channels = self._incoming(input)
        if not self.has_uninitialized_params():
            return
        if self.in_channels % self.groups:
            raise ValueError("in_channels must be divisible by groups")
        ends = (self.in_channels, self.out_channels)
        first, second = ends if self.transposed else reversed(ends)
        self.weight.materialize((first, second // self.groups, *self.kernel_size))
        if self.bias is not None:
            self.bias.materialize((self.out_channels,))
        self.reset_parameters()

    def _incoming(self: Any, input: Tensor) -> int:  # noqa: A002
        single = self.rank + 1
        if input.ndim not in (single, single + 1):
            raise RuntimeError(
                f"Expected {single}D (unbatched) or {single + 1}D (batched) input to "
                f"{type(self).__name__}, but got input of size: {tuple(input.shape)}"
            )
        return int(input.shape[-single])


class _LazyNorm(LazyModuleMixin):
    """What the lazy norms do besides their layer."""

    def __init__(
        self, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = True,
        track_running_stats: bool = True, device: Any = None, dtype: DType | None = None, *,
        bias: bool = True,
    ) -> None:  # fmt: skip
        super().__init__(0, eps, momentum, False, False, device, dtype)
        self.affine, self.track_running_stats = affine, track_running_stats
        if affine:
            self.weight = UninitializedParameter(device=device, dtype=dtype)
            if bias:
                self.bias = UninitializedParameter(device=device, dtype=dtype)
        if track_running_stats:
            self.running_mean = UninitializedBuffer(device=device, dtype=dtype)
            self.running_var = UninitializedBuffer(device=device, dtype=dtype)
            self.num_batches_tracked = tensor(0, device=device)

    def initialize_parameters(self: Any, input: Tensor) -> None:  # noqa: A002
        """Take num_features from the second axis."""
        self.num_features = input.shape[1]
        if self.has_uninitialized_params():
            for member in (self.weight, self.bias, self.running_mean, self.running_var):
                if member is not None:
                    member.materialize((self.num_features,))
            self.reset_parameters()


def _lazy(kind: type, layer: type[Module]) -> Any:
    """The lazy form of a layer."""
    text = f"`{layer.__name__}`, whose size is found at the first call."
    members = {"cls_to_become": layer, "__doc__": text, "__module__": __name__}
    return type(f"Lazy{layer.__name__}", (kind, layer), members)


LazyConv1d, LazyConv2d, LazyConv3d = (_lazy(_LazyConv, x) for x in (Conv1d, Conv2d, Conv3d))
LazyConvTranspose1d, LazyConvTranspose2d, LazyConvTranspose3d = (
    _lazy(_LazyConv, x) for x in (ConvTranspose1d, ConvTranspose2d, ConvTranspose3d)
)
LazyBatchNorm1d, LazyBatchNorm2d, LazyBatchNorm3d = (
    _lazy(_LazyNorm, x) for x in (BatchNorm1d, BatchNorm2d, BatchNorm3d)
)
LazyInstanceNorm1d, LazyInstanceNorm2d, LazyInstanceNorm3d = (
    _lazy(_LazyNorm, x) for x in (InstanceNorm1d, InstanceNorm2d, InstanceNorm3d)
)
