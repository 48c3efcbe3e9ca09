"""Which PyTorch the tree stands for: its names and behaviour are those of this version."""

from __future__ import annotations

import re
from typing import Any


class TorchVersion(str):
    """A version that compares by its numbers, with text or tuples.

    >>> TorchVersion("2.13.0") >= "2.9", TorchVersion("2.13.0") >= (2, 13)
    (True, True)
    """

    def _numbers(self) -> tuple[int, ...]:
        return _numbers(str(self))

    def __lt__(self, other: Any) -> bool:
        return self._numbers() < _numbers(other)

    def __le__(self, other: Any) -> bool:
        return self._numbers() <= _numbers(other)

    def __gt__(self, other: Any) -> bool:
        return self._numbers() > _numbers(other)

    def __ge__(self, other: Any) -> bool:
        return self._numbers() >= _numbers(other)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, str):
            return str.__eq__(self, other)
        return isinstance(other, tuple) and self._numbers()[: len(other)] == other

    __hash__ = str.__hash__


def _numbers(given: Any) -> tuple[int, ...]:
    """The numbers of a release, without zeros at the end; a development version counts as it."""
    if isinstance(given, tuple):
        parts = [int(part) for part in given if isinstance(part, int)]
    else:
        release = re.match(r"v?(\d+(?:\.\d+)*)", str(given))
        parts = [int(part) for part in release.group(1).split(".")] if release else []
    while parts and parts[-1] == 0:
        parts.pop()
    return tuple(parts)


__version__ = TorchVersion("2.13.0")
VISION_VERSION = "0.28.0"
cuda = cudnn = hip = rocm = xpu = None
debug = False
git_version = "monograph"
_BUILD = "PyTorch's names by monograph: BLAS=oneDNN, USE_CUDA=OFF, USE_MKL=OFF, USE_OPENMP=ON"
CONFIG = {"show": lambda: _BUILD, "parallel_info": lambda: "one pool of OpenMP threads"}

__all__ = ["TorchVersion", "__version__", "cuda", "cudnn", "debug", "git_version", "hip", "xpu"]
