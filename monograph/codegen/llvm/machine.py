"""What the LLVM emitter must know about the processor: how wide its vectors are."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Machine:
    """A processor. `vector_bits` is 512, 256 or 128; a store larger than `cache_bytes` may bypass
    the caches, and rows of an array larger than `near_bytes` are asked for ahead. With `bounds`,
    every access is compared with its buffer; see `bounds.py`."""

    vector_bits: int = 512
    cache_bytes: int = 32 << 20
    near_bytes: int = 4 << 20
    bounds: bool = False
