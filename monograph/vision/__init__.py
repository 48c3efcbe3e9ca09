"""Images: transforms, data sets, classic models and drawing, named as in torchvision."""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.28.0"


def __getattr__(name: str) -> Any:
    """Parts that are loaded when they are first used: `mg.vision.transforms`."""
    if name in ("datasets", "models", "ops", "transforms", "utils"):
        return importlib.import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def set_image_backend(backend: str) -> None:
    """Choose what reads images; Pillow does, where it is installed."""
    if backend not in ("PIL", "accimage"):
        raise ValueError(f"Invalid backend '{backend}'. Options are 'PIL' and 'accimage'")


def get_image_backend() -> str:
    """What reads images."""
    return "PIL"
