"""Backends: what runs programs. Each states what it can do, compiles, allocates and launches.

A backend is a module with three functions: `accepts(kind, operands, options)` says whether its
library takes a contraction, `workspace(kind, operands, options)` how many bytes that needs, and
`build(compilation)` makes an executable of a planned program. Two more let programs be kept on
disk: `identity()` names all of machine and libraries that a program depends on, and
`restore(image)` makes an executable of a program that was kept.
"""

from __future__ import annotations

import importlib
from typing import Any

MODULES = {
    "cpu": "monograph.backends.cpu.backend",
    "null": "monograph.backends.null",
    "cuda": "monograph.backends.cuda.backend",
}


def load(name: str) -> Any:
    """The backend of this name, imported when it is first needed."""
    return importlib.import_module(MODULES[name])
