"""Seeds and the state of the random sequence: `mg.random.fork_rng()` and others."""

from __future__ import annotations

from .ops.define import members
from .ops.random import Generator, default_generator

globals().update(members("random"))
__all__ = ["Generator", "default_generator", *members("random")]
