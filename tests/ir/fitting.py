"""The tools that fit polynomials, as modules: they lie outside the package."""

import importlib.util
import sys
from pathlib import Path

TOOLS = Path(__file__).parents[2] / "tools"


def tool(name):
    spec = importlib.util.spec_from_file_location(name, TOOLS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module
