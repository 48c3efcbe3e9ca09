"""Constructors of models, and their weights: those of a file, or new ones.

torchvision downloads trained weights. Nothing is downloaded here, so a constructor that is asked
for them says where to put the file, and loads it from there if it is.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any


class Weights:
    """The trained weights of a model, by the names that torchvision gives them."""

    def __init__(self, model: str, name: str) -> None:
        self.model, self.name = model, name

    def __repr__(self) -> str:
        return f"{self.model}.{self.name}"


class WeightsOf:
    """`ResNet18_Weights` and others: any name of an attribute is a set of weights."""

    def __init__(self, model: str) -> None:
        self._model = model

    def __getattr__(self, name: str) -> Weights:
        if name.startswith("_"):
            raise AttributeError(name)
        return Weights(self._model, name)


def folder() -> Path:
    """Where files of weights are looked for: PyTorch's own cache."""
    home = os.environ.get("TORCH_HOME", os.path.join("~", ".cache", "torch"))
    return Path(home).expanduser() / "hub" / "checkpoints"


def load_into(model: Any, name: str, file: str | None = None) -> None:
    """Fill a model with trained weights from a file, or say what is missing.

    `file` is the beginning of the file's name where that is not the name of the model.
    """
    starts = [start for start in (name, file) if start is not None]
    found = [path for start in starts for path in sorted(folder().glob(f"{start}-*.pth"))]
    if not found:
        raise RuntimeError(
            f"{name} was asked for with trained weights, and nothing is downloaded here: put its "
            f"file {name}-….pth into {folder()}, or leave out pretrained and weights"
        )
    from ...torch.loading import load

    model.load_state_dict(load(found[0]))


def made(
    name: str, build: Callable[..., Any], *args: Any, file: str | None = None, **settings: Any
) -> Callable[..., Any]:  # fmt: skip
    """The constructor of a model under its name."""

    def constructor(
        pretrained: Any = False, progress: bool = True, *, weights: Any = None, **options: Any
    ) -> Any:
        model = build(*args, **{**settings, **options})
        if pretrained or weights is not None:
            load_into(model, name, file)
        return model

    constructor.__name__ = constructor.__qualname__ = name
    constructor.__doc__ = f"A new {name}."
    return constructor
