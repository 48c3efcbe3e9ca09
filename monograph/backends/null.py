"""The backend that runs nothing: it compiles for a GPU that need not be there.

Kernels become machine code for the named compute capability, memory is a counter, launches are
counted. So everything up to the launch is tested on any machine.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..codegen.kernel import Kernel
from ..codegen.triton import TritonKernel, emit
from .cuda.compile import HOPPER, CompiledKernel, compile_kernel

_ALIGNMENT = 256


@dataclass(frozen=True)
class NullExecutable:
    """A kernel as text and as machine code, with what combines its partials after it."""

    text: TritonKernel
    compiled: tuple[CompiledKernel, ...]


class NullBackend:
    """Compile and plan, but do not run."""

    def __init__(self, capability: int = HOPPER) -> None:
        self.capability = capability
        self.allocated = 0
        self.launches = 0

    def compile(self, kernel: Kernel) -> NullExecutable:
        text = emit(kernel)
        functions = (text, *text.combine)
        return NullExecutable(text, tuple(compile_kernel(f, self.capability) for f in functions))

    def allocate(self, nbytes: int) -> int:
        """An address that nothing lies at."""
        address = _ALIGNMENT + self.allocated
        self.allocated += -(-nbytes // _ALIGNMENT) * _ALIGNMENT
        return address

    def launch(self, executable: NullExecutable) -> None:
        self.launches += len(executable.compiled)
