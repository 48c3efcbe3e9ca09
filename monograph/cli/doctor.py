"""`monograph doctor`: what is installed, what is missing, and what to do about it.

Each check is a function that returns findings; `CHECKS` lists them. The command prints them and
fails only if something is missing without which nothing runs.
"""

from __future__ import annotations

import argparse
import ctypes
import ctypes.util
import os
import platform
import sys
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, Literal

from monograph.config import config, unknown_variables

State = Literal["ok", "absent", "missing"]  # absent: works without it; missing: does not
MARKS = {"ok": "✓", "absent": "–", "missing": "✗"}
VECTOR_FEATURES = {
    "avx2": "AVX2",
    "fma": "FMA",
    "avx512f": "AVX-512",
    "avx512_bf16": "AVX-512 BF16",
    "avx512_vnni": "AVX-512 VNNI",
    "amx_bf16": "AMX BF16",
}


@dataclass(frozen=True)
class Finding:
    """One line of the report: a thing, its state, a detail, and what to do if it is not there."""

    name: str
    state: State
    detail: str
    remedy: str = ""


def check_python() -> Iterable[Finding]:
    version = platform.python_version()
    good = sys.version_info >= (3, 11)
    yield Finding("Python", "ok" if good else "missing", version, "use Python 3.11 or newer")
    yield Finding("system", "ok", f"{platform.system()} {platform.release()} {platform.machine()}")


def check_packages() -> Iterable[Finding]:
    yield package("monograph", needed=False, remedy="install it: pip install -e .")
    yield package("numpy", needed=True, remedy="pip install 'numpy>=2'")
    yield package("llvmlite", needed=True, remedy="pip install llvmlite")
    yield package("ml_dtypes", needed=True, remedy="pip install ml_dtypes")


def check_cpu() -> Iterable[Finding]:
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    model, features = read_cpuinfo()
    names = ", ".join(features) or "no vector extension known to Monograph"
    yield Finding("CPU", "ok", f"{model}: {usable} usable cores, {names}")


def check_onednn() -> Iterable[Finding]:
    try:
        from monograph.backends.cpu.onednn import find_library

        library: Any = find_library()
    except Exception as error:  # a broken part must not keep the doctor from reporting the rest
        yield Finding("oneDNN", "absent", f"cannot be looked up: {error}")
        return
    if library.found:
        yield Finding("oneDNN", "ok", f"{library.version}, {library.path}")
    else:
        detail = f"{library.problem}; contractions run on generated loops"
        yield Finding("oneDNN", "absent", detail, library.remedy)


def check_openmp() -> Iterable[Finding]:
    name = ctypes.util.find_library("gomp") or "libgomp.so.1"
    try:
        ctypes.CDLL(name)
    except OSError as error:
        remedy = "install it, for example: apt install libgomp1"
        yield Finding("libgomp", "absent", f"oneDNN cannot load without it ({error})", remedy)
    else:
        yield Finding("libgomp", "ok", name)


def check_gpu() -> Iterable[Finding]:
    yield package("triton", needed=False, remedy="only for GPUs: pip install 'monograph[cuda]'")
    yield package("cuda-core", needed=False, remedy="only for GPUs: pip install 'monograph[cuda]'")
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        yield Finding(
            "CUDA driver", "absent", "not found", "only for GPUs: install NVIDIA's driver"
        )
        return
    version, count = ctypes.c_int(0), ctypes.c_int(0)
    driver.cuDriverGetVersion(ctypes.byref(version))
    if driver.cuInit(0) == 0:
        driver.cuDeviceGetCount(ctypes.byref(count))
    release = f"{version.value // 1000}.{version.value % 1000 // 10}"
    yield Finding("CUDA driver", "ok", f"CUDA {release}, {count.value} devices")


def check_cache() -> Iterable[Finding]:
    folder = config.cache_dir
    if not config.disk_cache:
        yield Finding("cache", "absent", "turned off by the setting disk_cache")
        return
    try:  # asking for permissions is not enough: root may write anywhere, but not everywhere
        tempfile.TemporaryFile(dir=existing_parent(folder)).close()
    except OSError as error:
        detail = f"{folder} cannot be written ({error.strerror}); every process compiles anew"
        remedy = "set MONOGRAPH_CACHE_DIR to a folder that can be written"
        yield Finding("cache", "absent", detail, remedy)
    else:
        size, count = folder_size(folder)
        yield Finding("cache", "ok", f"{folder}: {count} files, {size / 1e6:.1f} MB")


def check_settings() -> Iterable[Finding]:
    for name in unknown_variables():
        yield Finding(name, "absent", "is no setting of Monograph", "is it misspelt?")


CHECKS: list[Callable[[], Iterable[Finding]]] = [
    check_python,
    check_packages,
    check_cpu,
    check_onednn,
    check_openmp,
    check_gpu,
    check_cache,
    check_settings,
]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The doctor needs no arguments."""


def run(arguments: argparse.Namespace) -> int:
    """Print the report; the exit code is 0 unless something essential is missing."""
    findings = [finding for check in CHECKS for finding in check()]
    width = max(len(finding.name) for finding in findings)
    for finding in findings:
        print(f"{MARKS[finding.state]} {finding.name:<{width}}  {finding.detail}")
        if finding.state != "ok" and finding.remedy:
            print(f"  {'':<{width}}  → {finding.remedy}")
    print("\nSettings (change by mg.config or by the environment variable)")
    rows = config.rows()
    name_width = max(len(row.name) for row in rows)
    value_width = max(len(str(row.value)) for row in rows)
    for row in rows:
        print(f"  {row.name:<{name_width}}  {row.value!s:<{value_width}}  {row.variable}")
    missing = [finding.name for finding in findings if finding.state == "missing"]
    if missing:
        print(f"\nMonograph cannot run: {', '.join(missing)} missing.")
    return 1 if missing else 0


def package(name: str, *, needed: bool, remedy: str) -> Finding:
    """Whether a distribution is installed, without importing it."""
    try:
        return Finding(name, "ok", metadata.version(name))
    except metadata.PackageNotFoundError:
        return Finding(name, "missing" if needed else "absent", "not installed", remedy)


def read_cpuinfo(path: Path = Path("/proc/cpuinfo")) -> tuple[str, list[str]]:
    """The CPU's name and its vector extensions, as far as the system tells."""
    try:
        lines = path.read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine(), []
    facts: dict[str, str] = {}
    for line in lines:
        key, _, value = line.partition(":")
        facts.setdefault(key.strip(), value.strip())
    flags = facts.get("flags", "").split()
    model = facts.get("model name") or platform.machine()
    return model, [name for flag, name in VECTOR_FEATURES.items() if flag in flags]


def existing_parent(folder: Path) -> Path:
    """The folder itself or the nearest one above it that exists."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return folder


def folder_size(folder: Path) -> tuple[int, int]:
    """Bytes and number of files below a folder; files may vanish while we look."""
    size = count = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            try:
                size += os.path.getsize(os.path.join(parent, name))
                count += 1
            except OSError:
                continue
    return size, count
