"""`torch.utils`: small things that libraries look for."""

from __future__ import annotations

import functools
import importlib.util
import types
from collections.abc import Callable
from typing import Any


def get_pretty_env_info() -> str:
    """What is installed, as text."""
    from ...cli import doctor

    return "\n".join(str(line) for line in getattr(doctor, "report", list)())


def deprecated(*args: Any, **options: Any) -> Callable[[Any], Any]:
    """A decorator for names that will go."""
    return lambda function: function


def is_available(name: str) -> bool:
    """Whether a module could be imported."""
    return importlib.util.find_spec(name) is not None


cached_property = functools.cached_property
backend_registration = types.SimpleNamespace()

__all__ = ["backend_registration", "deprecated", "get_pretty_env_info"]
