"""`torch.backends`: the switches of PyTorch's libraries.

They can be read and set, as programs do, and change nothing: they choose between ways of computing
the same on devices that are not here.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from .legacy import NO_CUDA


def _reply(answer: Any) -> Any:
    return lambda *args, **options: answer


@contextlib.contextmanager
def flags(*args: Any, **options: Any) -> Iterator[None]:
    """Other switches within the block."""
    yield


class PlanCache:
    """Plans of Fourier transforms on a GPU; without one it cannot be asked."""

    def _ask(self, *values: Any) -> Any:
        raise AssertionError(NO_CUDA)

    size, max_size, clear = property(_ask), property(_ask, _ask), _ask

    def __getitem__(self, device: Any) -> Any:
        raise RuntimeError("cufft_plan_cache: there are no CUDA devices")


CUDNN = {
    "enabled": True, "benchmark": False, "deterministic": False, "allow_tf32": True,
    "benchmark_limit": None, "fp32_precision": "none", "is_available": _reply(False),
    "version": _reply(None), "is_acceptable": _reply(False), "flags": flags,
    "set_flags": _reply(None), "CUDNN_TENSOR_DTYPES": frozenset(),
}  # fmt: skip
CUDA = {
    "is_built": _reply(False), "flash_sdp_enabled": _reply(True), "math_sdp_enabled": _reply(True),
    "mem_efficient_sdp_enabled": _reply(True), "cudnn_sdp_enabled": _reply(True),
    "enable_flash_sdp": _reply(None), "enable_math_sdp": _reply(None),
    "enable_mem_efficient_sdp": _reply(None), "enable_cudnn_sdp": _reply(None),
    "sdp_kernel": flags, "preferred_linalg_library": _reply(None),
    "preferred_blas_library": _reply(None), "preferred_rocm_fa_library": _reply(None),
    "allow_fp16_bf16_reduction_math_sdp": _reply(None), "is_ck_sdpa_available": _reply(False),
    "fp16_bf16_reduction_math_sdp_allowed": _reply(False), "cufft_plan_cache": PlanCache(),
    "is_flash_attention_available": _reply(False), "can_use_flash_attention": _reply(False),
    "can_use_efficient_attention": _reply(False), "can_use_cudnn_attention": _reply(False),
}  # fmt: skip
MATMUL = {
    "allow_tf32": False, "allow_fp16_reduced_precision_reduction": True,
    "allow_bf16_reduced_precision_reduction": True, "fp32_precision": "none",
    "allow_fp16_accumulation": False,
}  # fmt: skip
HERE = {
    "is_available": _reply(True), "enabled": True, "flags": flags, "verbose": flags,
    "VERBOSE_OFF": 0, "VERBOSE_ON": 1, "deterministic": False, "allow_tf32": True,
    "get_cpu_capability": _reply("DEFAULT"), "set_flags": _reply(None),
}  # fmt: skip
ABSENT = {"is_available": _reply(False), "is_built": _reply(False), "enabled": False}
EINSUM = {
    "is_available": _reply(False), "enabled": False, "strategy": None,
    "get_opt_einsum": _reply(None),
}  # fmt: skip
QUANTIZED = {"engine": "none", "supported_engines": []}  # there are no quantised tensors
NNPACK = {"is_available": _reply(False), "flags": flags, "set_flags": _reply(None)}
CUSPARSELT = {"is_available": _reply(False), "version": _reply(None)}


def _no_mps(*version: int) -> bool:
    raise RuntimeError("Cannot execute isOnMacOSorNewer() without MPS backend.")


MPS = {**ABSENT, "is_macos13_or_newer": _no_mps, "is_macos_or_newer": _no_mps}
