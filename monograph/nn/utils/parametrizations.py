"""Ready-made parametrizations."""

from __future__ import annotations

from typing import Any

from .norms import _SpectralNorm, _WeightNorm
from .orthogonal import orthogonal
from .parametrize import register_parametrization

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]


def weight_norm(module: Any, name: str = "weight", dim: int | None = 0) -> Any:
    """Learn the lengths of a weight apart from its directions.

    >>> import monograph as mg
    >>> layer = weight_norm(mg.nn.Linear(2, 3))
    >>> list(layer.state_dict())
    ['bias', 'parametrizations.weight.original0', 'parametrizations.weight.original1']
    """
    register_parametrization(module, name, _WeightNorm(dim), unsafe=True)

    def from_older_names(module: Any, state: Any, prefix: str, *others: Any) -> None:
        older = f"{prefix}{name}_g", f"{prefix}{name}_v"
        if all(key in state for key in older):
            for n, key in enumerate(older):
                state[f"{prefix}parametrizations.{name}.original{n}"] = state.pop(key)

    module.register_load_state_dict_pre_hook(from_older_names)
    return module


def spectral_norm(
    module: Any, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12,
    dim: int | None = None,
) -> Any:  # fmt: skip
    """Divide a weight by its largest singular value."""
    weight = getattr(module, name)
    axis = (1 if "Transpose" in type(module).__name__ else 0) if dim is None else dim
    rule = _SpectralNorm(weight, n_power_iterations, axis, eps)
    return register_parametrization(module, name, rule)
