"""`torch.hub`: where downloaded files would lie, and the bar that scripts borrow from there.

Nothing is downloaded; what would fetch something is refused (see `absent.py`).
"""

from __future__ import annotations

import importlib
import os
import re
import sys
from typing import Any
from urllib.parse import urlparse

HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")
__all__ = ["HASH_REGEX", "get_dir", "set_dir", "tqdm", "urlparse"]  # noqa: F822
_chosen: dict[str, str] = {}


def get_dir() -> str:
    """The folder for files that were downloaded."""
    cache = os.environ.get("XDG_CACHE_HOME", os.path.expanduser("~/.cache"))
    home = os.environ.get("TORCH_HOME", os.path.join(cache, "torch"))
    return _chosen.get("folder", os.path.join(home, "hub"))


def set_dir(d: str) -> None:
    """Choose another folder."""
    _chosen["folder"] = d


class Progress:
    """Counts what was done, where the package tqdm is not installed."""

    def __init__(
        self, total: Any = None, disable: bool = False, unit: Any = None, *args: Any, **options: Any
    ) -> None:
        self.total, self.disable, self.n = total, disable, 0

    def update(self, n: float) -> None:
        """Show that n more were done."""
        if self.disable:
            return
        self.n += n  # type: ignore[assignment]
        share = f"{100 * self.n / float(self.total):.1f}%" if self.total else f"{self.n:.1f} bytes"
        print(f"\r{share}", end="", file=sys.stderr, flush=True)

    def set_description(self, *args: Any, **options: Any) -> None:
        """Take a title, which is not shown."""

    def write(self, text: str) -> None:
        """Print a line."""
        print(text, file=sys.stderr)

    def close(self) -> None:
        """Show nothing more."""
        self.disable = True

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *problem: Any) -> None:
        if not self.disable:
            print(file=sys.stderr)


def __getattr__(name: str) -> Any:
    """The bar of the package tqdm if it is installed; it is imported when it is asked for."""
    if name != "tqdm":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return importlib.import_module("tqdm").tqdm
    except ImportError:
        return Progress
