"""Settings of how exactly to compute. CPU programs are deterministic whatever is chosen."""

from __future__ import annotations

from typing import Any

__all__ = [
    "are_deterministic_algorithms_enabled", "get_deterministic_debug_mode",
    "get_float32_matmul_precision", "is_deterministic_algorithms_warn_only_enabled",
    "set_deterministic_debug_mode", "set_float32_matmul_precision", "use_deterministic_algorithms",
]  # fmt: skip

_MODES = ("default", "warn", "error")
_PRECISIONS = ("highest", "high", "medium")
_chosen: dict[str, Any] = {"mode": 0, "precision": "highest"}


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Ask for the same bits in every run, which is so anyway."""
    _chosen["mode"] = 0 if not mode else 1 if warn_only else 2


def are_deterministic_algorithms_enabled() -> bool:
    """Whether the same bits were asked for.

    >>> use_deterministic_algorithms(True)
    >>> are_deterministic_algorithms_enabled()
    True
    >>> use_deterministic_algorithms(False)
    """
    return bool(_chosen["mode"])


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Whether other algorithms would only bring a warning."""
    return bool(_chosen["mode"] == 1)


def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """The same choice by number or name."""
    names = {name: n for n, name in enumerate(_MODES)}
    number = names.get(debug_mode) if isinstance(debug_mode, str) else debug_mode
    if number not in names.values():
        raise RuntimeError(f"invalid value of debug_mode: {debug_mode!r}, there are 0, 1, 2")
    _chosen["mode"] = number


def get_deterministic_debug_mode() -> int:
    """The choice as a number."""
    return int(_chosen["mode"])


def set_float32_matmul_precision(precision: str) -> None:
    """Allow products of float32 to be computed with fewer digits; here they never are."""
    if precision not in _PRECISIONS:
        raise RuntimeError(f"invalid matmul precision {precision!r}, there are {_PRECISIONS}")
    _chosen["precision"] = precision


def get_float32_matmul_precision() -> str:
    """What was allowed."""
    return str(_chosen["precision"])
