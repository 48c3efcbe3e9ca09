"""`torch.backends`: the switches of PyTorch's libraries.

They can be read and set, as programs do, and change nothing: they choose between ways of computing
the same on devices that are not here.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any


def _reply(answer: Any) -> Any:
    return lambda *args, **options: answer


@contextlib.contextmanager
def flags(*args: Any, **options: Any) -> Iterator[None]:
    """Other switches within the block."""
    yield


CUDNN = {
    "enabled": True, "benchmark": False, "deterministic": False, "allow_tf32": True,
    "benchmark_limit": 10, "fp32_precision": "none", "is_available": _reply(False),
    "version": _reply(None), "is_acceptable": _reply(False), "flags": flags,
    "set_flags": _reply(None), "CUDNN_TENSOR_DTYPES": frozenset(),
}  # fmt: skip
CUDA = {
    "is_built": _reply(False), "flash_sdp_enabled": _reply(True), "math_sdp_enabled": _reply(True),
    "mem_efficient_sdp_enabled": _reply(True), "cudnn_sdp_enabled": _reply(True),
    "enable_flash_sdp": _reply(None), "enable_math_sdp": _reply(None),
    "enable_mem_efficient_sdp": _reply(None), "enable_cudnn_sdp": _reply(None),
    "sdp_kernel": flags, "preferred_linalg_library": _reply(None),
}  # fmt: skip
MATMUL = {
    "allow_tf32": False, "allow_fp16_reduced_precision_reduction": True,
    "allow_bf16_reduced_precision_reduction": True, "fp32_precision": "none",
}  # fmt: skip
HERE = {
    "is_available": _reply(True), "enabled": True, "flags": flags, "verbose": flags,
    "VERBOSE_OFF": 0, "VERBOSE_ON": 1, "deterministic": False, "allow_tf32": True,
    "get_cpu_capability": _reply("DEFAULT"), "set_flags": _reply(None),
}  # fmt: skip
ABSENT = {"is_available": _reply(False), "is_built": _reply(False), "enabled": False}
