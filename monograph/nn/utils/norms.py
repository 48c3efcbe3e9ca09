"""Weights divided by a norm: weight norm, which learns the length apart from the direction, and
spectral norm, which divides by the largest singular value.

Each comes as a parametrization (`parametrizations.weight_norm`) and in PyTorch's older form, a hook
that computes the weight before each forward, with the older names of parameters.
"""

from __future__ import annotations

from typing import Any

from ...autograd.modes import no_grad
from ...tensor import Parameter
from ..module import Module
from ..parameter import take


def norm_except_dim(v: Any, dim: int | None) -> Any:
    """The lengths of the slices along dim, with axes of size 1; of the whole without one."""
    if dim is None or dim == -1:
        return (v * v).sum().sqrt()
    axes = [k for k in range(v.ndim) if k != dim % v.ndim]
    return (v * v).sum(axes, keepdim=True).sqrt() if axes else v.abs()


def normed(v: Any, g: Any, dim: int | None) -> Any:
    """v with the lengths g."""
    return v * (g / norm_except_dim(v, dim))


def _unit(x: Any, eps: float) -> Any:
    return x / (x * x).sum().sqrt().clamp(min=eps)


class _WeightNorm(Module):
    """weight = g · v / |v|: the parametrization."""

    def __init__(self, dim: int | None = 0) -> None:
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g: Any, weight_v: Any) -> Any:
        return normed(weight_v, weight_g, self.dim)

    def right_inverse(self, weight: Any) -> Any:
        """The lengths and the directions of a weight."""
        return norm_except_dim(weight, self.dim), weight


class _SpectralNorm(Module):
    """weight / σ, with σ from a power iteration at each forward in training."""

    def __init__(
        self, weight: Any, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12
    ) -> None:
        super().__init__()
        if not -weight.ndim <= dim < weight.ndim:
            raise IndexError(
                f"Dimension out of range (expected to be in range of [-{weight.ndim}, "
                f"{weight.ndim - 1}] but got {dim})"
            )
        if n_power_iterations <= 0:
            raise ValueError(
                "Expected n_power_iterations to be positive, but got "
                f"n_power_iterations={n_power_iterations}"
            )
        self.dim, self.eps = dim % weight.ndim, eps
        self.n_power_iterations = n_power_iterations
        self.left_first = True
        if weight.ndim > 1:
            from ...ops.draws import randn

            matrix = self.matrix(weight.detach())
            for name, extent in zip(("_u", "_v"), matrix.shape, strict=True):
                self.register_buffer(name, _unit(randn(extent, dtype=weight.dtype), eps))
            self.iterate(matrix, 15)

    def matrix(self, weight: Any) -> Any:
        """The weight as [size of dim, the rest]."""
        order = (self.dim, *[k for k in range(weight.ndim) if k != self.dim])
        return weight.permute(*order).flatten(1)

    def iterate(self, matrix: Any, times: int) -> None:
        """Turn u and v towards the first singular vectors, in place."""
        with no_grad():
            for _ in range(times):
                if self.left_first:
                    take(self._u, _unit(matrix @ self._v, self.eps))
                take(self._v, _unit(matrix.T @ self._u, self.eps))
                if not self.left_first:
                    take(self._u, _unit(matrix @ self._v, self.eps))

    def forward(self, weight: Any) -> Any:
        if weight.ndim == 1:
            return _unit(weight, self.eps)
        matrix = self.matrix(weight)
        if self.training:
            self.iterate(matrix.detach(), self.n_power_iterations)
        u, v = self._u.clone(), self._v.clone()
        return weight / (u * (matrix @ v)).sum()

    def right_inverse(self, value: Any) -> Any:
        """The value itself: a weight of spectral norm one is its own."""
        return value


def weight_norm(module: Any, name: str = "weight", dim: int | None = 0) -> Any:
    """Replace a parameter by its lengths `name_g` and its directions `name_v` (older form).

    >>> import monograph as mg
    >>> [n for n, _ in mg.nn.utils.weight_norm(mg.nn.Linear(2, 3)).named_parameters()]
    ['bias', 'weight_g', 'weight_v']
    """
    if name in _hooked(module, "weight_norm"):
        raise RuntimeError(f"Cannot register two weight_norm hooks on the same parameter {name}")
    weight = getattr(module, name)
    del module._parameters[name]
    module.register_parameter(f"{name}_g", Parameter(norm_except_dim(weight.detach(), dim)))
    module.register_parameter(f"{name}_v", Parameter(weight.detach()))

    def compute(owner: Any, args: Any) -> None:
        g, v = getattr(owner, f"{name}_g"), getattr(owner, f"{name}_v")
        object.__setattr__(owner, name, normed(v, g, dim))

    compute(module, None)
    _hooked(module, "weight_norm")[name] = module.register_forward_pre_hook(compute)
    return module


def remove_weight_norm(module: Any, name: str = "weight") -> Any:
    """Make the weight a plain parameter again."""
    held = _hooked(module, "weight_norm")
    if name not in held:
        raise ValueError(f"weight_norm of '{name}' not found in {module}")
    held.pop(name).remove()
    value = getattr(module, name).detach().clone()
    for part in (f"{name}_g", f"{name}_v"):
        del module._parameters[part]
    delattr(module, name)
    setattr(module, name, Parameter(value))
    return module


def _hooked(module: Any, kind: str) -> dict[str, Any]:
    """The handles of the hooks that compute weights, by the name of the weight."""
    found: dict[str, Any] = module.__dict__.setdefault(f"_{kind}_hooks", {})
    return found


def spectral_norm(
    module: Any, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12,
    dim: int | None = None,
) -> Any:  # fmt: skip
    """Divide a parameter by its largest singular value before each forward (older form)."""
    if name in _hooked(module, "spectral_norm"):
        raise RuntimeError(f"Cannot register two spectral_norm hooks on the same parameter {name}")
    axis = (1 if "Transpose" in type(module).__name__ else 0) if dim is None else dim
    weight = module._parameters[name]
    rule = _SpectralNorm(weight, n_power_iterations, axis, eps)
    rule.left_first = False  # the older form turns v first
    del module._parameters[name]
    module.register_parameter(f"{name}_orig", weight)
    module.register_buffer(f"{name}_u", rule._u)
    module.register_buffer(f"{name}_v", rule._v)

    def compute(owner: Any, args: Any) -> None:
        rule._buffers["_u"] = getattr(owner, f"{name}_u")
        rule._buffers["_v"] = getattr(owner, f"{name}_v")
        rule.training = owner.training
        object.__setattr__(owner, name, rule(getattr(owner, f"{name}_orig")))

    object.__setattr__(module, name, weight.detach())
    _hooked(module, "spectral_norm")[name] = module.register_forward_pre_hook(compute)
    return module


def remove_spectral_norm(module: Any, name: str = "weight") -> Any:
    """Make the divided weight a plain parameter again."""
    held = _hooked(module, "spectral_norm")
    if name not in held:
        raise ValueError(f"spectral_norm of '{name}' not found in {module}")
    training = module.training
    handle = held.pop(name)
    compute = module._forward_pre_hooks[handle.id]
    module.training = False
    compute(module, None)
    module.training = training
    handle.remove()
    value = getattr(module, name).detach().clone()
    del module._parameters[f"{name}_orig"]
    for part in (f"{name}_u", f"{name}_v"):
        del module._buffers[part]
    delattr(module, name)
    setattr(module, name, Parameter(value))
    return module
