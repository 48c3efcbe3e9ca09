"""`torch` and `torchvision` under their own names, for programs that import them.

>>> with supplied():
...     import torch.nn.functional as F
>>> F.relu.__module__
'monograph.ops.activation'
"""

from __future__ import annotations

import importlib.metadata
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..belonging import hide, show
from ..ir import dtypes
from ..tensor import Parameter, Tensor
from .names import TORCH, VISION
from .parts import methods
from .parts.version import VISION_VERSION, __version__
from .tree import TreeFinder

# Classes by whose module libraries tell what they were given.
_SHOWN = {Tensor: "torch", Parameter: "torch.nn.parameter"}
VERSIONS = {"torch": str(__version__), "torchvision": VISION_VERSION}


class _Distribution(importlib.metadata.Distribution):
    """What `importlib.metadata` says of a package that is supplied."""

    def __init__(self, name: str) -> None:
        self._text = f"Metadata-Version: 2.1\nName: {name}\nVersion: {VERSIONS[name]}\n"

    def read_text(self, filename: str) -> str | None:
        """The text of a file of the package's description."""
        return self._text if filename == "METADATA" else None

    def locate_file(self, path: Any) -> Any:
        """Where a file would lie; there are none."""
        raise FileNotFoundError(path)


class SuppliedFinder(TreeFinder):
    """A finder that knows the package's version too."""

    def find_distributions(self, context: Any = None) -> Iterator[Any]:
        """The description of the package, if it is asked for."""
        name = getattr(context, "name", None)
        if name is None or name.lower() == self.root:
            yield _Distribution(self.root)


@contextmanager
def supplied() -> Iterator[None]:
    """Within, `import torch` and `import torchvision` give the trees of this package.

    What is printed says torch as well. Modules of these names that were imported before come back
    afterwards.
    """
    hidden = {
        name: sys.modules.pop(name) for name in list(sys.modules) if name.split(".")[0] in VERSIONS
    }
    methods.attach()
    finders = [SuppliedFinder("torch", TORCH), SuppliedFinder("torchvision", VISION)]
    for finder in finders:
        finder.install()
    before = dtypes.show_as("torch")
    for kind, home in _SHOWN.items():
        show(kind, home)
    try:
        yield
    finally:
        dtypes.show_as(before)
        for kind in _SHOWN:
            hide(kind)
        for finder in finders:
            finder.remove()
        sys.modules.update(hidden)
