"""How long the runtime takes beyond its kernels: compile, hand-over, launch, frames, blocks.

Run `python -m bench.runtime`. Each line prints a median and the 10th and 90th percentiles.
"""

from __future__ import annotations

import functools
import itertools
import statistics
import time
from collections.abc import Callable

from monograph.runtime import native, openmp
from monograph.runtime.executor import EXECUTOR
from monograph.runtime.memory import Pool
from monograph.runtime.program import Instruction, Leaf, Program

_KERNELS = """
declare void @mg_parallel(ptr, ptr, i64, i64)
define internal void @body(ptr %args, i64 %begin, i64 %end) { ret void }
define void @empty(ptr %args) { ret void }
define void @split(ptr %args) {
  call void @mg_parallel(ptr @body, ptr %args, i64 1024, i64 1)
  ret void
}
"""


def spread(name: str, action: Callable[[], object], repeats: int = 3000) -> None:
    """Time an action many times and print its median and spread."""
    times = []
    for _ in range(repeats):
        begin = time.perf_counter_ns()
        action()
        times.append((time.perf_counter_ns() - begin) / 1e3)
    tenths = statistics.quantiles(times, n=10)
    print(f"{name:44} {statistics.median(times):9.2f} us  ({tenths[0]:.2f} .. {tenths[-1]:.2f})")


def vector_kernel(steps: int) -> str:
    """A loop over vectors of 16 floats that evaluates a polynomial."""
    lines = [
        f"  %p{i + 1} = call <16 x float> @llvm.fma.v16f32(<16 x float> %p{i},"
        f" <16 x float> %x, <16 x float> splat (float {i}.5))"
        for i in range(steps)
    ]
    polynomial = "\n".join(lines)
    return f"""
declare <16 x float> @llvm.fma.v16f32(<16 x float>, <16 x float>, <16 x float>)
define void @kernel(ptr %args) #0 {{
entry:
  %data = load ptr, ptr %args
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %at = getelementptr float, ptr %data, i64 %i
  %x = load <16 x float>, ptr %at, align 4
  %p0 = fmul <16 x float> %x, %x
{polynomial}
  store <16 x float> %p{steps}, ptr %at, align 4
  %next = add i64 %i, 16
  %more = icmp ult i64 %next, 4096
  br i1 %more, label %loop, label %done
done:
  ret void
}}
attributes #0 = {{ nounwind "prefer-vector-width"="512" }}
"""


def bench_compile() -> None:
    text = vector_kernel(20)
    for opt in (1, 2, 3):
        action = functools.partial(native.compile_to_object, text, opt)
        spread(f"compile a vector kernel, opt {opt}", action, 50)
    code = native.compile_to_object(text)
    spread("load its object code", lambda: native.load_object(code).address("kernel"), 50)


def bench_launch() -> None:
    openmp.module()
    module = native.compile_ir(_KERNELS)
    empty = module.address("empty")
    buffers = tuple(range(4096, 4096 + 100 * 64, 64))
    others = tuple(reversed(buffers))
    nothing = Program([], 0)
    hundred = Program([Instruction(empty, (Leaf(i), Leaf(i)), "") for i in range(100)], 100)
    split = Program([Instruction(module.address("split"), (), "")], 0, keep=module)

    def launch(program: Program, leaves: tuple[int, ...]) -> int:
        frame = EXECUTOR.frame(program)
        frame.fill(leaves)
        return EXECUTOR.submit(frame)

    def hand_over(program: Program, leaves: tuple[int, ...] = ()) -> None:
        EXECUTOR.wait(launch(program, leaves))

    def hand_over_asleep() -> None:
        time.sleep(0.002)
        begin = time.perf_counter_ns()
        hand_over(nothing)
        asleep.append((time.perf_counter_ns() - begin) / 1e3)

    spread("hand-over of an empty program", lambda: hand_over(nothing))
    asleep: list[float] = []
    for _ in range(300):
        hand_over_asleep()
    print(f"{'hand-over to a sleeping executor':44} {statistics.median(asleep):9.2f} us")
    spread("launch without waiting", lambda: launch(nothing, ()))
    spread("hand-over of 100 kernels, 100 leaves", lambda: hand_over(hundred, buffers))
    spread("hand-over of one parallel region", lambda: hand_over(split))
    frame = EXECUTOR.frame(hundred)
    spread("fill 100 leaves, unchanged", lambda: frame.fill(buffers))
    leaves = itertools.cycle((others, buffers))
    spread("fill 100 leaves, changed", lambda: frame.fill(next(leaves)))


def bench_memory() -> None:
    pool = Pool()
    block = pool.allocate(1 << 20)
    spread("allocate and free a block", lambda: pool.allocate(5000))
    spread("NumPy view of a block", lambda: block.numpy("f4", (256, 256)))


if __name__ == "__main__":
    print(f"{native.host_cpu()}, {native.vector_bits()}-bit vectors, {openmp.threads()} threads")
    bench_compile()
    bench_launch()
    bench_memory()
