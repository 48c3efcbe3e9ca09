"""Kernels to LLVM IR text; see `emitter.py`."""

from .emitter import Module, emit
from .machine import Machine

__all__ = ["Machine", "Module", "emit"]
