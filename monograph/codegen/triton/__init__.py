"""Triton text from kernels: what the CUDA backend compiles.

`emit(kernel)` returns a `TritonKernel`: the text of one `@triton.jit` function, the pointers it
takes and how many programs to launch. `tiling` chooses the blocks, `index` writes index
arithmetic, `values` and `stages` write the body, `function` its frame, and `combine` builds the
kernel that finishes a privatised reduction. Nothing here imports Triton: the text can be read,
compared and cached on a machine that has none.
"""

from .function import Argument, SegmentTable, TritonKernel, emit
from .tiling import Tuning, UnsupportedKernel

__all__ = ["Argument", "SegmentTable", "TritonKernel", "Tuning", "UnsupportedKernel", "emit"]
