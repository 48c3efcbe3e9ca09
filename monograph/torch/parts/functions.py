"""Functions that PyTorch shows at further places, or only there. Each table is one such place."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

from ...autograd.modes import no_grad
from ...control import cond
from ...nn import Module
from ...nn.clip import scale_to_norm, take
from ...nn.utils.convert import fuse_conv_bn_weights
from ...nn.utils.norms import norm_except_dim as _norm_except_dim
from ...ops.define import members
from ...placement import channels_last, channels_last_3d, order_of
from ...tensor import Tensor

_F = members("nn.functional")
_REDUCTIONS = ("none", "mean", "sum")  # by the numbers that PyTorch's own functions take


def _by_number(function: Callable[..., Any]) -> Callable[..., Any]:
    """A loss whose reduction may be a number, as `torch.kl_div` takes it."""

    @functools.wraps(function)
    def call(*args: Any, reduction: Any = 1, **options: Any) -> Any:
        chosen = _REDUCTIONS[reduction] if isinstance(reduction, int) else reduction
        return function(*args, reduction=chosen, **options)

    return call


def frobenius_norm(input: Tensor, dim: Any = None, keepdim: bool = False) -> Any:
    """The root of the sum of squares of matrices.

    >>> import monograph as mg
    >>> frobenius_norm(mg.tensor([[3.0, 4.0]])).item()
    5.0
    """
    return members("linalg")["vector_norm"](input, 2, dim, keepdim)


def nuclear_norm(input: Tensor, dim: Any = None, keepdim: bool = False) -> Any:
    """The sum of the singular values of matrices.

    >>> import monograph as mg
    >>> round(nuclear_norm(mg.eye(3)).item(), 4)
    3.0
    """
    return members("linalg")["matrix_norm"](input, "nuc", (-2, -1) if dim is None else dim, keepdim)


def native_dropout(input: Tensor, p: float, train: bool | None) -> tuple[Tensor, Tensor]:
    """Dropout, and the mask of what it kept."""
    if train is False or p == 0:
        return input.clone(), members("")["ones_like"](input).bool()
    kept = members("")["rand_like"](input) >= p
    scale = 1.0 / (1.0 - p) if p < 1 else 0.0
    return input * kept * scale, kept


def norm_except_dim(v: Tensor, pow: int = 2, dim: int = 0) -> Any:
    """The lengths of a weight's slices along an axis, for `weight_norm`."""
    if pow != 2:
        raise NotImplementedError("norm_except_dim is there for pow=2")
    return _norm_except_dim(v, dim)


def instance_norm(
    input: Tensor, weight: Any, bias: Any, running_mean: Any, running_var: Any,
    use_input_stats: bool, momentum: float, eps: float, cudnn_enabled: bool = True,
) -> Any:  # fmt: skip
    """nn.functional.instance_norm in another order of arguments."""
    return _F["instance_norm"](
        input, running_mean, running_var, weight, bias, use_input_stats, momentum, eps
    )


def get_device(input: Tensor) -> int:
    """The number of the device that a tensor is on: -1, the CPU."""
    return -1


ROOT: dict[str, Any] = {
    "binary_cross_entropy_with_logits": _by_number(_F["binary_cross_entropy_with_logits"]),
    "cond": cond, "frobenius_norm": frobenius_norm, "get_device": get_device,
    "instance_norm": instance_norm, "kl_div": _by_number(_F["kl_div"]),
    "native_dropout": native_dropout, "norm_except_dim": norm_except_dim,
    "nuclear_norm": nuclear_norm, "pdist": _F["pdist"], "to_dlpack": lambda x: x.__dlpack__(),
}  # fmt: skip


def _with_indices(name: str) -> Callable[..., Any]:
    def call(*args: Any, return_indices: bool = False, **options: Any) -> Any:
        return _F[name](*args, return_indices=True, **options)

    call.__name__ = f"{name}_with_indices"
    call.__doc__ = f"`{name}` with the places of what it took."
    return call


_POOLINGS = ("adaptive_max_pool1d", "adaptive_max_pool2d", "adaptive_max_pool3d",
             "fractional_max_pool2d", "fractional_max_pool3d")  # fmt: skip
WITH_INDICES = {f"{name}_with_indices": _with_indices(name) for name in _POOLINGS}


@no_grad()
def clip_grads_with_norm_(
    parameters: Tensor | Iterable[Tensor], max_norm: float, total_norm: Tensor,
    foreach: bool | None = None,
) -> None:  # fmt: skip
    """Scale gradients in place so that a norm of all together, known already, is at most max_norm.

    >>> import monograph as mg
    >>> p = mg.nn.Parameter([3.0, 4.0])
    >>> (p * p / 2).sum().backward()
    >>> clip_grads_with_norm_([p], 1.0, mg.tensor(5.0))
    >>> [round(g, 3) for g in p.grad.tolist()]
    [0.6, 0.8]
    """
    listed = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    gradients = [p.grad for p in listed if p.grad is not None]
    if not gradients:
        return
    scaled = scale_to_norm(gradients, total_norm, float(max_norm))
    for old, new in zip(gradients, scaled if len(gradients) > 1 else (scaled,), strict=True):
        take(old, new)


def _laid_out(form: Any, rank: int) -> Callable[..., Module]:
    def convert(module: Module, memory_format: Any = form) -> Module:
        order_of(memory_format, rank)  # says what is no memory format
        for inner in module.modules():
            weight = getattr(inner, "weight", None)
            if isinstance(weight, Tensor) and weight.ndim == rank:
                with no_grad():
                    weight.data = weight.detach().to(memory_format=memory_format)
        return module

    convert.__name__ = f"convert_conv{rank - 2}d_weight_memory_format"
    convert.__doc__ = "Let the weights of convolutions lie in a memory format."
    return convert


def fuse_linear_bn_weights(
    linear_w: Any, linear_b: Any, bn_rm: Any, bn_rv: Any, bn_eps: float, bn_w: Any, bn_b: Any
) -> Any:
    """Weight and bias of a linear layer that does what it and a batch norm in evaluation do."""
    return fuse_conv_bn_weights(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b)


UTILS = {
    "clip_grads_with_norm_": clip_grads_with_norm_,
    "convert_conv2d_weight_memory_format": _laid_out(channels_last, 4),
    "convert_conv3d_weight_memory_format": _laid_out(channels_last_3d, 5),
    "fuse_linear_bn_weights": fuse_linear_bn_weights,
}


def functionalize(func: Callable[..., Any], *, remove: str = "mutations") -> Callable[..., Any]:
    """The function itself: writes in place are functional updates in what is recorded."""
    return func


def replace_all_batch_norm_modules_(root: Module) -> Module:
    """Let no batch norm of a module keep running statistics, in place.

    >>> import monograph as mg
    >>> replace_all_batch_norm_modules_(mg.nn.BatchNorm1d(2)).running_mean is None
    True
    """
    for module in root.modules():
        if hasattr(module, "track_running_stats") and hasattr(module, "running_mean"):
            module.running_mean = module.running_var = None
            module.num_batches_tracked = None
            module.track_running_stats = False
    return root


FUNC = {
    "functionalize": functionalize,
    "replace_all_batch_norm_modules_": replace_all_batch_norm_modules_,
}
