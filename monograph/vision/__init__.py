"""Images: transforms, data sets, classic models and drawing, named as in torchvision."""

from __future__ import annotations

__version__ = "0.28.0"


def set_image_backend(backend: str) -> None:
    """Choose what reads images; Pillow does, where it is installed."""
    if backend not in ("PIL", "accimage"):
        raise ValueError(f"Invalid backend '{backend}'. Options are 'PIL' and 'accimage'")


def get_image_backend() -> str:
    """What reads images."""
    return "PIL"
