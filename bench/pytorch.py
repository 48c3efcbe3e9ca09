"""PyTorch as a contestant: with our number of threads, eager and compiled, where it is there."""

from __future__ import annotations

import os
import shutil
import warnings
from collections.abc import Callable
from typing import Any

from monograph.config import config

try:
    import torch
except ImportError:  # the benchmarks then measure Monograph alone
    torch = None  # type: ignore[assignment]

# One process compiles: workers would stay alive beside what is timed.
os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")

if torch is not None:
    torch.set_num_threads(config.threads)


def can_compile() -> bool:
    """torch.compile needs a C++ compiler on the CPU."""
    return torch is not None and bool(shutil.which("g++") or shutil.which("clang++"))


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function by torch.compile, with the shapes of its first call fixed."""
    warnings.filterwarnings("ignore", module="torch")
    return torch.compile(function, dynamic=False)  # type: ignore[no-any-return]


def works(call: Callable[[], object], notes: list[str], name: str) -> bool:
    """Call once, which compiles; a contestant that cannot run is left out with a note."""
    try:
        call()
    except Exception as problem:
        reason = str(problem).strip().splitlines() or [""]
        notes.append(f"{name} left out: {type(problem).__name__}: {reason[0][:160]}")
        return False
    return True
