"""Memory-bound programs on a GPU, against a copy of the same bytes in the same run.

    python -m bench.h200 [name ...] [--quick] [--sweep]

Each case is a function of the public API, traced without data and compiled for CUDA. First a
small instance is compared with the reference; then the large one runs on data that repeats the
small one's, so that its answer is known too, and is timed in a CUDA graph over buffers much larger
than the L2 cache. The bytes are the least possible: every input read once, every result written
once; the ceiling is a device copy of as many. `--sweep` also tries other tile sizes. Needs Triton,
cuda-core and a GPU.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from bench.sample_kernels import gpt2_sizes
from monograph.autograd import grad
from monograph.backends import load
from monograph.backends.cuda.backend import CudaExecutable, Runtime, runtime
from monograph.backends.cuda.launch import capture
from monograph.backends.cuda.memory import DeviceBlock
from monograph.codegen.triton import Tuning
from monograph.compiler.pipeline import compile_recording
from monograph.config import config
from monograph.ir.dtypes import BY_NAME
from monograph.nn import functional as F
from monograph.nn.parameter import take
from monograph.ops.update import adam_update
from monograph.storage import Memory, Meta, Value, concrete
from monograph.tracing import kind, trace

REPEATS = 5  # of the program in a graph
ROUNDS = 7  # of the graph
TOLERANCE = 2e-4
BLOCK = 512  # rows that differ from each other
PERIOD = 1 << 16  # elements that differ in a tensor of the update


@dataclass(frozen=True)
class Case:
    """A function with the kinds of its arguments: large, and the small part that repeats.

    `repeats`: how often the small rows come again, by which sums over rows grow.
    """

    function: Callable[..., Any]
    large: list[Meta]
    small: list[Meta]
    repeats: int = 1


def by_rows(function: Callable[..., Any], columns: int, rows: int, *long: bool) -> Case:
    """Arguments are [rows, columns] where `long` says so, else [columns]."""
    rows -= rows % BLOCK
    large, small = (
        [kind(n, columns) if each else kind(columns) for each in long] for n in (rows, BLOCK)
    )
    return Case(function, large, small, rows // BLOCK)


def layer_norm(x: Any, w: Any, b: Any) -> Any:
    return F.layer_norm(x, (x.shape[-1],), w, b)


def layer_norm_both_ways(x: Any, w: Any, b: Any, dy: Any) -> Any:
    """y, dx, dw, db."""
    leaves = [each.requires_grad_() for each in (x, w, b)]
    y = layer_norm(*leaves)
    return y.detach(), *grad(y, leaves, dy)


def adamw(*tensors: Any) -> Any:
    """One step in place: tensors are parameters, gradients, means, squares, and the step."""
    *rest, step = tensors
    count = len(rest) // 4
    p, g, m, v = (rest[n * count : (n + 1) * count] for n in range(4))
    results = adam_update(p, g, m, v, [], step, 1e-2, 0.9, 0.95, 1e-8, 0.1, True, False)
    for target, new in zip([*p, *m, *v, step], results, strict=True):
        take(target, new)
    return tensors


def update() -> Case:
    sizes = gpt2_sizes()
    large = [kind(size) for _ in range(4) for size in sizes]
    small = [kind(min(size, PERIOD)) for _ in range(4) for size in sizes]
    return Case(adamw, [*large, kind()], [*small, kind()])


CASES: dict[str, Callable[[], Case]] = {
    "softmax 1024": lambda: by_rows(lambda x: F.softmax(x, dim=-1), 1024, 1 << 18, True),
    "softmax 4096": lambda: by_rows(lambda x: F.softmax(x, dim=-1), 4096, 1 << 16, True),
    "layer norm": lambda: by_rows(layer_norm, 768, 300_000, True, False, False),
    "layer norm both ways": lambda: by_rows(
        layer_norm_both_ways, 768, 200_000, True, False, False, True
    ),
    "bias gelu": lambda: by_rows(
        lambda x, b: F.gelu(x + b, approximate="tanh"), 3072, 80_000, True, False
    ),
    "adamw": update,
}

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


# --- data -----------------------------------------------------------------------------------------


def patterns(case: Case) -> list[np.ndarray]:
    """The contents of the small arguments; none negative among the squares of the update."""
    rng = np.random.default_rng(0)
    made = [rng.standard_normal(meta.shape, dtype=np.float32) for meta in case.small]
    if case.function is adamw:
        start = 3 * (len(made) // 4)
        for n in range(start, len(made) - 1):
            made[n] = np.square(made[n])
        made[-1] = np.array(9.0, np.float32)
    return made


def on_device(on: Runtime, meta: Meta, pattern: np.ndarray) -> Value:
    """A value of this kind whose contents repeat the pattern."""
    value = Value(meta)
    block = on.pool.allocate(meta.size * meta.dtype.itemsize)
    on.device.repeat(block.memory, pattern)
    value.memory = Memory(block=block)
    return value


def largest_error(
    outcomes: Sequence[Any], shapes: Sequence[Any], wanted: Sequence[np.ndarray], repeats: int
) -> float:
    """Of the first and the last period of every result, relative to the largest value wanted."""
    worst = 0.0
    for outcome, shape, answer in zip(outcomes, shapes, wanted, strict=True):
        block = outcome.block
        size, period = prod(shape), answer.size
        expected = answer.reshape(-1).astype(np.float64)
        if size == period:
            expected = expected * (repeats if _is_sum(answer, repeats) else 1)
        starts = {0, size - period if size % period == 0 else 0}
        for start in starts:
            found = _read(block, start, min(period, size))
            difference = np.abs(found - expected[: len(found)]).max()
            scale = max(float(np.abs(expected).max()), 1e-30)
            worst = max(worst, float(difference) / scale) if difference == difference else np.inf
    return worst


def _is_sum(answer: np.ndarray, repeats: int) -> bool:
    """Results that have no rows are sums over them."""
    return repeats > 1 and answer.ndim == 1


def _read(block: DeviceBlock, start: int, count: int) -> np.ndarray:
    return block.pool.device.read(block.address + 4 * start, np.empty(count, np.float32))


# --- running --------------------------------------------------------------------------------------


def compiled(case: Case, kinds: list[Meta]) -> tuple[CudaExecutable, tuple[Any, ...]]:
    """The program, and the numbers for its slots."""
    recording, numbers = trace(case.function, *kinds)
    made = compile_recording(recording, load("cuda"))
    assert isinstance(made, CudaExecutable)
    return made, numbers


def answers(case: Case, inputs: list[np.ndarray]) -> list[np.ndarray]:
    """What the reference computes on the small arguments."""
    recording, numbers = trace(case.function, *case.small)
    program = compile_recording(recording, load("reference"))
    leaves = [concrete(a.copy(), meta) for a, meta in zip(inputs, case.small, strict=True)]
    outcomes = program.run(leaves, numbers)
    return [np.array(o.array() if isinstance(o, Value) else o.data) for o in outcomes]


def check(
    program: CudaExecutable, leaves: list[Value], numbers: tuple[Any, ...],
    wanted: list[np.ndarray], repeats: int,
) -> float:  # fmt: skip
    """The largest error of one run."""
    outcomes = program.run(leaves, numbers)
    shapes = [node.shape for node in program.compilation.graph]
    return largest_error(outcomes, shapes, wanted, repeats)


def loaded(on: Runtime, kinds: list[Meta], inputs: list[np.ndarray]) -> list[Value]:
    return [on_device(on, meta, array) for meta, array in zip(kinds, inputs, strict=True)]


def moved(program: CudaExecutable) -> int:
    """Bytes of all arguments and all results."""
    plan = program.calls.plan
    leaves = program.compilation.recording.leaves
    read = sum(meta.size * meta.dtype.itemsize for meta in leaves)
    return read + sum(prod(shape) * BY_NAME[name].itemsize for shape, name in plan.results)


def milliseconds(device: Any, launches: list[Any]) -> tuple[float, float]:
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


def copy_milliseconds(on: Runtime, nbytes: int) -> float:
    """The faster of two copies that read and write `nbytes`: the driver's, and a kernel's."""
    source, target = (on.device.allocate(nbytes // 2) for _ in range(2))
    launch = lambda stream: on.device.copy(target, source, stream)  # noqa: E731
    by_driver = milliseconds(on.device, [launch])[0]
    whole = kind(nbytes // 8)
    program, numbers = compiled(Case(lambda x: x.clone(), [whole], [whole]), [whole])
    held = program.run([on_device(on, whole, np.zeros(PERIOD, np.float32))], numbers)
    assert program.bound is not None
    by_kernel = milliseconds(on.device, program.bound.launches)[0]
    del held
    return min(by_driver, by_kernel)


def report(name: str, nbytes: int, time_ms: float, spread: float, copy_ms: float) -> None:
    rate, ceiling = (nbytes / t / 1e9 for t in (time_ms, copy_ms))
    print(
        f"{name:28} {time_ms:8.3f} ms ± {spread:.3f}  {rate:6.2f} TB/s   copy {ceiling:5.2f} TB/s"
        f"   {100 * copy_ms / time_ms:5.1f} % of copy",
        flush=True,
    )


def run(on: Runtime, name: str, quick: bool, sweep: bool) -> None:
    """Check the small instance, then check and time the large one."""
    started = time.perf_counter()
    case = CASES[name]()
    inputs = patterns(case)
    wanted = answers(case, inputs)
    program, numbers = compiled(case, case.small)
    leaves = loaded(on, case.small, inputs)
    error = check(program, leaves, numbers, wanted, 1)
    print(f"{name:28} small: error {error:.1e} {_verdict(error)}", flush=True)
    if quick:
        return
    program, numbers = compiled(case, case.large)
    leaves = loaded(on, case.large, inputs)
    error = check(program, leaves, numbers, wanted, case.repeats)
    nbytes, seconds = moved(program), time.perf_counter() - started
    print(
        f"{name:28} large: error {error:.1e} {_verdict(error)}, {nbytes / 1e9:.2f} GB, "
        f"{program.calls.launches} launches, {seconds:.0f} s",
        flush=True,
    )
    copy_ms = copy_milliseconds(on, nbytes)
    assert program.bound is not None
    report(name, nbytes, *milliseconds(on.device, program.bound.launches), copy_ms)
    parts = program.bound.launches
    if 1 < len(parts) < 10:
        alone = [milliseconds(on.device, [each])[0] for each in parts]
        print(f"{'':28} launches: " + ", ".join(f"{t:.3f} ms" for t in alone), flush=True)
    if sweep:
        try_tunings(on, program, leaves, numbers, nbytes, copy_ms)


def try_tunings(
    on: Runtime, program: CudaExecutable, leaves: list[Value], numbers: tuple[Any, ...],
    nbytes: int, copy_ms: float,
) -> None:  # fmt: skip
    """Time the same program cut in other ways."""
    seen = {_identity(program)}
    for label, tuning in SWEEP.items():
        try:
            variant = CudaExecutable(program.compilation, on, tuning)
            if _identity(variant) in seen:
                continue
            seen.add(_identity(variant))
            held = variant.run(leaves, numbers)
            assert variant.bound is not None
            report(f"  {label}", nbytes, *milliseconds(on.device, variant.bound.launches), copy_ms)
            del held
        except Exception:
            traceback.print_exc()


def _identity(program: CudaExecutable) -> tuple[Any, ...]:
    return tuple((text.body, text.num_warps) for text in program.calls.texts.values())


def _verdict(error: float) -> str:
    return "ok" if error <= TOLERANCE else "WRONG"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help=f"any of {', '.join(CASES)}; all by default")
    parser.add_argument("--quick", action="store_true", help="only check small inputs")
    parser.add_argument("--sweep", action="store_true", help="also try other tile sizes")
    options = parser.parse_args()
    on = runtime()
    library = "with" if on.library is not None else "without"
    print(f"{on.device.name}, compute capability {on.device.capability / 10}, {library} cuBLASLt")
    with tempfile.TemporaryDirectory() as folder, config.override(cache_dir=folder):
        for name in options.names or CASES:
            try:
                run(on, name, options.quick, options.sweep)
            except Exception:
                traceback.print_exc()


if __name__ == "__main__":
    main()
