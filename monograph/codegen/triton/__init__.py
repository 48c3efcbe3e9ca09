"""Triton text from kernels: what the CUDA backend compiles.

`emit(kernel)` returns a `TritonKernel`: the text of one `@triton.jit` function, the pointers it
takes and how many programs to launch. `tiling` chooses the blocks, `index` writes index
arithmetic, `values` and `stages` write the body, and `function` its frame. Some kernels become two
launches: `combine` finishes a privatised reduction, `scatter` clears before it combines, and
`prologue` computes what all programs share. Nothing here imports Triton: the text can be read,
compared and cached on a machine that has none.
"""

from .function import Argument, SegmentTable, TritonKernel, emit
from .tiling import Tuning, UnsupportedKernel

__all__ = ["Argument", "SegmentTable", "TritonKernel", "Tuning", "UnsupportedKernel", "emit"]
