"""Memory-bound kernels on a GPU, against a copy of the same bytes in the same run.

    python bench/h200.py [name ...] [--quick] [--sweep]

Every kernel is checked against NumPy, then repeated in a CUDA graph over buffers much larger than
the L2 cache. The ceiling is a device copy that reads and writes as many bytes. `--sweep` also
tries other tile sizes. Needs Triton, cuda-core and a GPU.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np

from bench import sample_kernels as samples
from bench.sample_kernels import Sample
from monograph.backends.cuda.device import CudaDevice, Memory
from monograph.backends.cuda.launch import capture, prepare
from monograph.codegen.triton import TritonKernel, Tuning, emit
from monograph.config import config

REPEATS = 5  # of the kernel in a graph
ROUNDS = 7  # of the graph
TOLERANCE = 2e-4

# name -> sample at full size (about half a gigabyte per activation) and at a size for checking.
CASES: dict[str, tuple[Callable[[], Sample], Callable[[], Sample]]] = {
    "softmax 1024": (lambda: samples.softmax(1 << 17, 1024), lambda: samples.softmax(1000, 1024)),
    "softmax 4096": (lambda: samples.softmax(1 << 15, 4096), lambda: samples.softmax(300, 4096)),
    "layer norm": (
        lambda: samples.layer_norm(180224, 768),
        lambda: samples.layer_norm(1000, 768),
    ),
    "layer norm backward": (
        lambda: samples.layer_norm_backward(180224, 768),
        lambda: samples.layer_norm_backward(1000, 768),
    ),
    "bias gelu": (lambda: samples.bias_gelu(45056, 3072), lambda: samples.bias_gelu(333, 3072)),
    "adamw": (
        lambda: samples.adamw(samples.gpt2_sizes()),
        lambda: samples.adamw((1000, 768 * 768, 17, 4096)),
    ),
}  # fmt: skip

SWEEP = {
    "block 512": Tuning(block=512),
    "block 2048": Tuning(block=2048),
    "block 4096": Tuning(block=4096),
    "warps 2": Tuning(warps=2),
    "warps 8": Tuning(warps=8),
    "programs 264": Tuning(programs=2 * 132),
    "programs 528": Tuning(programs=4 * 132),
    "programs 1024": Tuning(programs=1024),
    "programs 528, stages 3": Tuning(programs=4 * 132, stages=3),
    "stages 2": Tuning(stages=2),
}


class Loaded:
    """A sample with its buffers on the device."""

    def __init__(self, device: CudaDevice, sample: Sample) -> None:
        self.device = device
        self.sample = sample
        self.memory: dict[int, Memory | list[Memory]] = {}
        for number, data in sample.buffers.items():
            many = isinstance(data, list)
            self.memory[number] = [device.upload(a) for a in data] if many else device.upload(data)

    def launches(self, kernel: TritonKernel) -> list[Any]:
        """The kernel's launches; buffers that it lacks are allocated."""
        for function in (kernel, *kernel.combine):
            for argument in function.arguments:
                if argument.buffer < 0:
                    continue
                itemsize = self.sample.kernel.buffers[argument.buffer].dtype.itemsize
                nbytes = argument.elements * itemsize
                have = self.memory.get(argument.buffer)
                if have is None or (isinstance(have, Memory) and have.nbytes < nbytes):
                    self.memory[argument.buffer] = self.device.allocate(nbytes)
        addresses = {
            n: [each.address for each in m] if isinstance(m, list) else m.address
            for n, m in self.memory.items()
        }
        return prepare(self.device, kernel, addresses)

    def errors(self) -> dict[int, float]:
        """The error of each output."""
        found: dict[int, float] = {}
        for number, expected in self.sample.expected.items():
            memory = self.memory[number]
            if isinstance(memory, list):
                assert isinstance(expected, list)
                actual = [
                    self.device.read(m.address, np.empty(e.size, np.float32))
                    for m, e in zip(memory, expected)
                ]
                found[number] = self.sample.error(number, actual)
            else:
                whole = np.empty(self.sample.kernel.buffers[number].elements, np.float32)
                found[number] = self.sample.error(number, self.device.read(memory.address, whole))
        return found


def check(device: CudaDevice, sample: Sample, tuning: Tuning | None = None) -> float:
    """The largest error of one run."""
    loaded = Loaded(device, sample)
    for launch in loaded.launches(emit(sample.kernel, tuning)):
        launch()
    return max(loaded.errors().values())


def milliseconds(device: CudaDevice, launches: list[Any]) -> tuple[float, float]:
    """(median, spread) of one execution of the launches, from graphs of several."""
    graph = capture(device, launches * REPEATS)
    graph()
    times = []
    for _ in range(ROUNDS):
        start = device.event()
        graph()
        end = device.event()
        end.sync()
        times.append((end - start) / REPEATS)
    return statistics.median(times), max(times) - min(times)


def copy_milliseconds(device: CudaDevice, moved: int) -> float:
    """A device copy that reads and writes `moved` bytes together."""
    source, target = (device.allocate(moved // 2) for _ in range(2))
    return milliseconds(device, [lambda stream: device.copy(target, source, stream)])[0]


def report(name: str, sample: Sample, time_ms: float, spread: float, copy_ms: float) -> None:
    rate, ceiling = (sample.moved / t / 1e9 for t in (time_ms, copy_ms))
    print(
        f"{name:28} {time_ms:8.3f} ms ± {spread:.3f}  {rate:6.2f} TB/s   copy {ceiling:5.2f} TB/s"
        f"   {100 * copy_ms / time_ms:5.1f} % of copy",
        flush=True,
    )


def run(device: CudaDevice, name: str, quick: bool, sweep: bool) -> None:
    full, small = CASES[name]
    error = check(device, small())
    print(f"{name:28} small: error {error:.1e} {_verdict(error)}", flush=True)
    if quick:
        return
    started = time.perf_counter()
    sample = full()
    loaded = Loaded(device, sample)
    launches = loaded.launches(emit(sample.kernel))
    for launch in launches:
        launch()
    error = max(loaded.errors().values())
    seconds = time.perf_counter() - started
    print(f"{name:28} large: error {error:.1e} {_verdict(error)}, {seconds:.0f} s", flush=True)
    copy_ms = copy_milliseconds(device, sample.moved)
    report(name, sample, *milliseconds(device, launches), copy_ms)
    parts = len(launches)
    if parts > 1:
        alone = [milliseconds(device, [each])[0] for each in launches]
        print(f"{'':28} launches: " + ", ".join(f"{t:.3f} ms" for t in alone), flush=True)
    if not sweep:
        return
    seen = {_identity(emit(sample.kernel))}
    for label, tuning in SWEEP.items():
        text = emit(sample.kernel, tuning)
        if _identity(text) in seen:
            continue
        seen.add(_identity(text))
        try:
            variant = loaded.launches(text)
            report(f"  {label}", sample, *milliseconds(device, variant), copy_ms)
        except Exception:
            traceback.print_exc()


def _identity(text: TritonKernel) -> tuple[str, int]:
    return text.body, text.num_warps


def _verdict(error: float) -> str:
    return "ok" if error <= TOLERANCE else "WRONG"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help=f"any of {', '.join(CASES)}; all by default")
    parser.add_argument("--quick", action="store_true", help="only check small inputs")
    parser.add_argument("--sweep", action="store_true", help="also try other tile sizes")
    options = parser.parse_args()
    device = CudaDevice()
    print(f"{device.name}, compute capability {device.capability / 10}", flush=True)
    with tempfile.TemporaryDirectory() as folder, config.override(cache_dir=folder):
        for name in options.names or CASES:
            try:
                run(device, name, options.quick, options.sweep)
            except Exception:
                traceback.print_exc()


if __name__ == "__main__":
    main()
