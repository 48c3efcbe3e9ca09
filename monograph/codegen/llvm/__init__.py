"""Kernels to LLVM IR text; see `emitter.py`."""

from .emitter import emit
from .machine import Machine

__all__ = ["Machine", "emit"]
