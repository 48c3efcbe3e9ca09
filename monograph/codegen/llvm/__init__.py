"""Kernels to LLVM IR text; see `emitter.py`."""

from .emitter import Module, emit, regions_of
from .machine import Machine

__all__ = ["Machine", "Module", "emit", "regions_of"]
