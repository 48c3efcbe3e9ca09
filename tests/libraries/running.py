"""Runs a program of `programs/` under PyTorch to keep its numbers, and under the runner to check.

Both are processes of their own: a library that has been imported holds on to the `torch` it found.
"""

import importlib.metadata
import importlib.util
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROGRAMS = Path(__file__).parent / "programs"


def wanted(library):
    """Marks for tests that need a library in the version that pyproject.toml names."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    pinned = dict(line.split("==") for line in extras["optional-dependencies"]["libraries"])
    try:
        found = importlib.metadata.version(library)
    except importlib.metadata.PackageNotFoundError:
        found = "none"
    reason = f"needs {library} {pinned[library]}, found {found}: pip install 'monograph[libraries]'"
    return [pytest.mark.skipif(found != pinned[library], reason=reason)]


def run(*command):
    """Run Python; what it printed is in the failure."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "HF_HUB_OFFLINE": "1"}
    for name in ("MONOGRAPH_TIER0_LIMIT", "MONOGRAPH_VERIFY"):
        environment.pop(name, None)  # as users run it
    words = [sys.executable, *map(str, command)]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr[-6000:]}"
    return done.stdout


# Runs a program as if torchvision were not installed: the registry's may not fit a PyTorch for the
# CPU, and then PyTorch cannot import what would import it.
WITHOUT_TORCHVISION = """
import runpy, sys
sys.modules["torchvision"] = None
del sys.argv[0]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def saved(program, tmp_path_factory):
    """A folder with what PyTorch makes of every model of a program."""
    if importlib.util.find_spec("torchvision") is None:
        pytest.skip("needs torchvision: pip install 'monograph[libraries]'")
    folder = tmp_path_factory.mktemp(program.removesuffix(".py"))
    run(PROGRAMS / program, "save", folder)
    return folder


def check(program, folder, model, dtype):
    """Fail unless the runner gives the numbers in the folder."""
    words = ["-m", "monograph.cli.main", "run", "--quiet", PROGRAMS / program]
    assert run(*words, "check", folder, model, dtype).strip(), "nothing was compared"
