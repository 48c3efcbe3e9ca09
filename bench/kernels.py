"""Generated CPU kernels against a copy of the same bytes.

Run `python -m bench.kernels [names]`. Each kernel of `bench.sample_kernels` runs on about 256 MB in
alternation with a copy, split over the same threads, that reads and writes as many bytes in warm
memory. Printed are the kernel's share of the copy's speed (with the quartiles of the rounds), its
bandwidth, its error, and what it cost to emit and to compile.
"""

from __future__ import annotations

import ctypes
import dataclasses
import statistics
import sys
import time
from collections.abc import Callable

import numpy as np

from bench import sample_kernels
from bench.sample_kernels import Sample
from monograph.codegen.kernel import Kernel, Load, Result, Store
from monograph.codegen.llvm import Machine, emit
from monograph.ir.dtypes import float32
from monograph.runtime import native, openmp

ROUNDS = 25
ROWS = 32768  # of 1024 float32: 128 MiB read, 128 MiB written


def softmax_kept(rows: int, columns: int) -> Sample:
    """Softmax whose exponentials wait in a row of scratch instead of being computed again."""
    sample = sample_kernels.softmax(rows, columns)
    kernel = sample.kernel
    first, second, third = kernel.stages
    (c,) = second.axes
    e = second.reductions[0].value
    scratch = len(kernel.buffers)
    kept = sample_kernels.apply("div", Load(float32, scratch, c), Result(float32, 1))
    stages = (
        first,
        dataclasses.replace(second, stores=(Store(scratch, c, e),)),
        dataclasses.replace(third, stores=(Store(1, third.stores[0].index, kept),)),
    )
    buffers = (*kernel.buffers, sample_kernels.use("row", columns))
    sample.kernel = dataclasses.replace(
        kernel, name=f"{kernel.name}_kept", stages=stages, buffers=buffers
    )
    return sample


SAMPLES: dict[str, Callable[[], Sample]] = {
    "softmax_kept": lambda: softmax_kept(ROWS, 1024),
    "softmax": lambda: sample_kernels.softmax(ROWS, 1024),
    "layer_norm": lambda: sample_kernels.layer_norm(ROWS, 1024),
    "layer_norm_backward": lambda: sample_kernels.layer_norm_backward(ROWS, 1024),
    "bias_gelu": lambda: sample_kernels.bias_gelu(ROWS, 1024),
    "adamw": lambda: sample_kernels.adamw(sample_kernels.gpt2_sizes(3, 512)),
}

_COPY = """
declare void @mg_parallel(ptr, ptr, i64, i64)
declare ptr @memcpy(ptr, ptr, i64)
define internal void @body(ptr %args, i64 %begin, i64 %end) {
  %from.at = getelementptr ptr, ptr %args, i64 1
  %to = load ptr, ptr %args
  %from = load ptr, ptr %from.at
  %to.here = getelementptr i8, ptr %to, i64 %begin
  %from.here = getelementptr i8, ptr %from, i64 %begin
  %count = sub i64 %end, %begin
  call ptr @memcpy(ptr %to.here, ptr %from.here, i64 %count)
  ret void
}
define void @copy(ptr %args, i64 %bytes) {
  call void @mg_parallel(ptr @body, ptr %args, i64 %bytes, i64 4096)
  ret void
}
"""


def aligned(elements: int, dtype: np.dtype) -> np.ndarray:
    """Memory on a cache line, touched, as the arena gives it."""
    room = np.ones(elements * dtype.itemsize + 64, np.uint8)
    start = -room.ctypes.data % 64
    return room[start : start + elements * dtype.itemsize].view(dtype)


def arguments(sample: Sample) -> list[np.ndarray]:
    """The arrays of a kernel in the order of its arguments."""
    found: list[np.ndarray] = []
    for number, use in enumerate(sample.kernel.buffers):
        if use.role == "row":
            continue
        given = sample.buffers.get(number)
        for array in given if isinstance(given, list) else [given]:
            count = use.elements if array is None else array.size
            made = aligned(count, use.dtype.numpy)
            if array is not None:
                made[:] = array.reshape(-1)
            found.append(made)
    return found


def pointers(arrays: list[np.ndarray]) -> ctypes.Array:
    return (ctypes.c_void_p * len(arrays))(*[array.ctypes.data for array in arrays])


def prepare(kernel: Kernel) -> tuple[native.Module, float, float]:
    """(compiled kernel, seconds to emit it, seconds to compile it)."""
    machine = Machine(native.vector_bits())
    emit(kernel, machine)
    begin = time.perf_counter()
    text = emit(kernel, machine)
    emitted = time.perf_counter()
    module = native.compile_ir(text)
    return module, emitted - begin, time.perf_counter() - emitted


def copy_of(moved: int) -> Callable[[], None]:
    """A call that copies moved / 2 bytes, so that it moves `moved`."""
    module = native.compile_ir(_COPY)
    copy = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)(module.address("copy"))
    arrays = [aligned(moved // 2, np.dtype(np.uint8)) for _ in range(2)]
    table = pointers(arrays)

    def call() -> None:
        copy(ctypes.addressof(table), moved // 2)

    call.keep = (module, arrays)  # type: ignore[attr-defined]
    return call


def timed(call: Callable[[], None]) -> float:
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def error_of(sample: Sample, arrays: list[np.ndarray]) -> float:
    """The largest relative error of all outputs after one run."""
    worst, position = 0.0, 0
    for number, use in enumerate(sample.kernel.buffers):
        if use.role == "row":
            continue
        count = len(sample.kernel.segments) if sample.kernel.segments and not use.shared else 1
        if number in sample.expected:
            own = arrays[position : position + count]
            worst = max(worst, sample.error(number, own if sample.kernel.segments else own[0]))
        position += count
    return worst


def measure(name: str, sample: Sample) -> None:
    """Print one line about a kernel."""
    module, emitting, compiling = prepare(sample.kernel)
    arrays = arguments(sample)
    table = pointers(arrays)
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(module.address(sample.kernel.name))

    def run() -> None:
        function(ctypes.addressof(table))

    run()
    error = error_of(sample, arrays)
    copy = copy_of(sample.moved)
    copy()
    ratios, times, copies = [], [], []
    for _ in range(ROUNDS):
        before, own, after = timed(copy), timed(run), timed(copy)
        times.append(own)
        copies += [before, after]
        ratios.append((before + after) / 2 / own)
    low, middle, high = statistics.quantiles(ratios, n=4)
    best = min(copies) / min(times)
    print(
        f"{name:20} {middle:5.0%} of copy ({low:.0%} .. {high:.0%}; best {best:.0%})"
        f" {sample.moved / min(times) / 1e9:5.1f} of {sample.moved / min(copies) / 1e9:.1f} GB/s"
        f"  error {error:.1e}  emit {emitting * 1e3:.1f} ms  compile {compiling * 1e3:.1f} ms"
    )


def main(names: list[str]) -> None:
    openmp_module = openmp.module()
    ctypes.CFUNCTYPE(None)(openmp_module.address("mg_admit"))()
    for name in names or SAMPLES:
        measure(name, SAMPLES[name]())


if __name__ == "__main__":
    main(sys.argv[1:])
