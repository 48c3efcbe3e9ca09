"""cuBLASLt through ctypes: matrix products as launches.

The library is looked for by name, then in the `nvidia` packages that pip installs. float32 is
computed in float32, never in TF32.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from functools import cache
from math import gcd
from pathlib import Path
from typing import Any

from .matmul import Matrix, Product

NAMES = ("libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so")
WORKSPACE = 32 << 20

# Numbers from cublasLt.h, cublas_api.h and library_types.h.
_REAL = {"float32": 0, "float64": 1}  # CUDA_R_32F, CUDA_R_64F
_COMPUTE = {"float32": 68, "float64": 70}  # CUBLAS_COMPUTE_32F, CUBLAS_COMPUTE_64F
_TRANSPOSE_A, _TRANSPOSE_B = 3, 4  # CUBLASLT_MATMUL_DESC_TRANSA, …TRANSB
_BATCH_COUNT, _BATCH_OFFSET = 5, 6  # CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, …STRIDED_BATCH_OFFSET
_MAX_WORKSPACE = 1  # CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES
_MIN_ALIGNMENT = (5, 6, 7, 8)  # CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, …B, …C, …D

_NUMBERS = {"float32": ctypes.c_float, "float64": ctypes.c_double}


class CublasError(RuntimeError):
    """cuBLASLt refused a call."""


class _Heuristic(ctypes.Structure):
    """cublasLtMatmulHeuristicResult_t."""

    _fields_ = [
        ("algorithm", ctypes.c_uint64 * 8),
        ("workspace", ctypes.c_size_t),
        ("status", ctypes.c_int),
        ("waves", ctypes.c_float),
        ("reserved", ctypes.c_int * 4),
    ]


@cache
def load() -> ctypes.CDLL | None:
    """The library, or None where there is none."""
    for candidate in candidates():
        try:
            return ctypes.CDLL(candidate)
        except OSError:
            continue
    return None


def candidates() -> list[str]:
    """Where the library may be: names for the dynamic linker, then files in site-packages."""
    found = list(NAMES)
    for entry in sys.path:
        for name in NAMES:
            found += [str(path) for path in Path(entry or ".").glob(f"nvidia/*/lib/{name}")]
    return found


def find(device: Any) -> CublasLt | None:
    """The library on this device, or None where it is not installed."""
    library = load()
    return None if library is None else CublasLt(library, device)


class CublasLt:
    """A handle of the library, its workspace, and the plans made so far."""

    def __init__(self, library: ctypes.CDLL, device: Any) -> None:
        self._library = library
        self._device = device
        self._handle = ctypes.c_void_p()
        self._call("Create", ctypes.byref(self._handle))
        self._workspace = device.allocate(WORKSPACE)
        self._plans: dict[tuple[Product, int], _Plan] = {}

    def prepare(self, product: Product, a: int, b: int, d: int) -> Callable[..., None]:
        """A launch of d = a · b at these addresses."""
        alignment = gcd(256, a, b, d)
        plan = self._plans.get((product, alignment))
        if plan is None:
            plan = self._plans[product, alignment] = self._plan(product, alignment)

        def launch(stream: Any = None) -> None:
            to = (stream or self._device.stream).__cuda_stream__()[1]
            self._call(
                "Matmul", self._handle, plan.operation, plan.one, _pointer(a), plan.a,
                _pointer(b), plan.b, plan.zero, _pointer(d), plan.d, _pointer(d), plan.d,
                ctypes.byref(plan.heuristic.algorithm), _pointer(self._workspace.address),
                ctypes.c_size_t(WORKSPACE), _pointer(to),
            )  # fmt: skip

        return launch

    def _plan(self, product: Product, alignment: int) -> _Plan:
        real = _REAL[product.dtype]
        operation = ctypes.c_void_p()
        self._call("MatmulDescCreate", ctypes.byref(operation), _COMPUTE[product.dtype], real)
        for attribute, matrix in ((_TRANSPOSE_A, product.a), (_TRANSPOSE_B, product.b)):
            flag = ctypes.c_int32(int(matrix.transposed))
            self._set("MatmulDescSetAttribute", operation, attribute, flag)
        a, b, d = (self._layout(m, product) for m in (product.a, product.b, product.d))
        preference = ctypes.c_void_p()
        self._call("MatmulPreferenceCreate", ctypes.byref(preference))
        self._set(
            "MatmulPreferenceSetAttribute", preference, _MAX_WORKSPACE, ctypes.c_uint64(WORKSPACE)
        )
        for attribute in _MIN_ALIGNMENT:
            least = ctypes.c_uint32(alignment)
            self._set("MatmulPreferenceSetAttribute", preference, attribute, least)
        heuristic, found = _Heuristic(), ctypes.c_int()
        self._call(
            "MatmulAlgoGetHeuristic", self._handle, operation, a, b, d, d, preference, 1,
            ctypes.byref(heuristic), ctypes.byref(found),
        )  # fmt: skip
        self._call("MatmulPreferenceDestroy", preference)
        if found.value == 0:
            raise CublasError(f"cuBLASLt has no algorithm for {product}")
        return _Plan(operation, a, b, d, heuristic, product.dtype)

    def _layout(self, matrix: Matrix, product: Product) -> ctypes.c_void_p:
        layout = ctypes.c_void_p()
        self._call(
            "MatrixLayoutCreate", ctypes.byref(layout), _REAL[product.dtype],
            ctypes.c_uint64(matrix.rows), ctypes.c_uint64(matrix.columns),
            ctypes.c_int64(matrix.leading),
        )  # fmt: skip
        if product.batch > 1:
            count, stride = ctypes.c_int32(product.batch), ctypes.c_int64(matrix.batch_stride)
            self._set("MatrixLayoutSetAttribute", layout, _BATCH_COUNT, count)
            self._set("MatrixLayoutSetAttribute", layout, _BATCH_OFFSET, stride)
        return layout

    def _set(self, function: str, target: ctypes.c_void_p, attribute: int, value: Any) -> None:
        size = ctypes.c_size_t(ctypes.sizeof(value))
        self._call(function, target, attribute, ctypes.byref(value), size)

    def _call(self, function: str, *arguments: Any) -> None:
        status = getattr(self._library, "cublasLt" + function)(*arguments)
        if status != 0:
            raise CublasError(f"cublasLt{function} answered status {status}")


class _Plan:
    """Descriptors and the algorithm of one kind of product."""

    def __init__(
        self, operation: ctypes.c_void_p, a: ctypes.c_void_p, b: ctypes.c_void_p,
        d: ctypes.c_void_p, heuristic: _Heuristic, dtype: str,
    ) -> None:  # fmt: skip
        self.operation = operation
        self.a, self.b, self.d = a, b, d
        self.heuristic = heuristic
        number = _NUMBERS[dtype]
        self._kept = number(1.0), number(0.0)
        self.one, self.zero = (ctypes.byref(each) for each in self._kept)


def _pointer(address: int) -> ctypes.c_void_p:
    return ctypes.c_void_p(int(address))
