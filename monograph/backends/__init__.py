"""Backends: what runs programs. Each states what it can do, compiles, allocates and launches.

A backend is a module. One that runs kernels has three functions: `accepts(kind, operands, options)`
says whether its library takes a contraction, `workspace(kind, operands, options)` how many bytes
that needs, and `build(compilation)` makes an executable once kernels and memory are planned. One
that does without kernels has `compile(compilation)` instead, from the expanded graph to an
executable. `identity()` and `restore(image)` are for backends whose programs are kept on disk.
`supports(dtype)`, where there is one, says for which element types kernels can be made: nodes of
others are left to the reference interpreter, as steps of the program. One that says `MANY_SIZES`
builds programs for many sizes: where `compilation.decisions` is set, `build` returns a function
from the values of symbols to an executable. One that says `LOOPS` runs loops; for others they are
unrolled. `packs(kind, operands, options)` says whether its library has a layout of its own for the
weights of a product in a loop, which a step "pack" then makes once.
"""

from __future__ import annotations

import importlib
from typing import Any

from ..config import BACKENDS


def load(name: str) -> Any:
    """The backend of this name, imported when it is first needed."""
    return importlib.import_module(BACKENDS[name])
