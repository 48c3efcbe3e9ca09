"""Measurements that need a process of their own: imports, first uses, compile time, peak memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]


def python(*arguments: str, cache: str | None = None, timeout: float = 900) -> Any:
    """Run Python on the arguments; the last line that it prints, as JSON."""
    environment = dict(os.environ)
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed package has its bytecode
    if cache is not None:
        environment["MONOGRAPH_CACHE_DIR"] = cache
    done = subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, env=environment, capture_output=True, text=True,
        timeout=timeout, check=False,
    )  # fmt: skip
    if done.returncode != 0:
        reason = done.stderr.strip().splitlines() or ["no message"]
        raise RuntimeError(f"{' '.join(arguments)[:60]}: {reason[-1]}")
    return json.loads(done.stdout.strip().splitlines()[-1])
