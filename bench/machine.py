"""The machine that measured, in words: no result is worth anything without it."""

from __future__ import annotations

import os
import platform
from importlib import metadata
from pathlib import Path

PACKAGES = ("monograph", "numpy", "llvmlite", "onednn-cpu-gomp", "torch", "jax")


def cpu_model() -> str:
    """The processor's name as the system knows it."""
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text("utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def memory_bytes() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def versions() -> str:
    """Python and the packages that matter, those that are installed."""
    found = [f"Python {platform.python_version()}"]
    for name in PACKAGES:
        try:
            found.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            continue
    return ", ".join(found)


def describe() -> list[str]:
    """Lines about processor, memory, system and versions."""
    from monograph.runtime import native, openmp

    cores = len(os.sched_getaffinity(0))
    return [
        f"processor: {cpu_model()} ({native.host_cpu()}, {native.vector_bits()}-bit vectors), "
        f"{cores} cores, {openmp.default_threads()} threads",
        f"memory: {memory_bytes() / 2**30:.0f} GiB; load before the run: {os.getloadavg()[0]:.2f}",
        f"system: {platform.system()} {platform.release()}",
        f"versions: {versions()}",
    ]


if __name__ == "__main__":
    print("\n".join(describe()))
