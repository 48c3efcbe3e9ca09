"""Hand-built kernels of the kinds that matter most, each with inputs and the answer by NumPy.

Every function returns a `Sample`. Large inputs repeat a smaller block of rows, so that the answer
is computed for that block only; `Sample.error` knows how to compare. Backends are measured and
tested with these before, and independently of, the compiler that emits such kernels.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from monograph.codegen.kernel import (
    Apply,
    BufferUse,
    Constant,
    Kernel,
    Load,
    Privatised,
    Reduction,
    Result,
    Schedule,
    Stage,
    Store,
    Value,
)
from monograph.ir.dtypes import DType, float32
from monograph.ir.index import Var, num

BLOCK_ROWS = 512  # rows that differ from each other


@dataclass
class Sample:
    """A kernel with its buffers by number; in a kernel with segments those are lists of arrays.

    expected: for each output the block of values that repeats all through it; moved: the bytes
    that must be read and written at least.
    """

    kernel: Kernel
    buffers: dict[int, np.ndarray | list[np.ndarray]]
    expected: dict[int, np.ndarray | list[np.ndarray]]
    moved: int

    def error(self, number: int, actual: np.ndarray | list[np.ndarray]) -> float:
        """The largest error of an output, relative to the largest expected value."""
        expected = self.expected[number]
        if isinstance(expected, list):
            return max(_error(e, a) for e, a in zip(expected, actual))
        return _error(expected, actual)


def _error(expected: np.ndarray, actual: np.ndarray) -> float:
    scale = float(np.abs(expected).max())
    worst = 0.0
    for block in actual.reshape(-1, expected.size):
        difference = np.abs(block - expected.reshape(-1)).max()
        worst = max(worst, float(difference) / scale) if difference == difference else np.inf
    return worst


def apply(function: str, *operands: Value | float) -> Apply:
    """A scalar function of values; numbers are float32 constants."""
    values = tuple(o if isinstance(o, Value) else Constant(float32, float(o)) for o in operands)
    return Apply(values[-1].dtype, function, values)


def use(role: str, *shape: int, dtype: DType = float32, shared: bool = False) -> BufferUse:
    return BufferUse(dtype, prod(shape), role, shared)


def repeated(rng: np.random.Generator, rows: int, columns: int) -> tuple[np.ndarray, np.ndarray]:
    """(array [rows, columns], the block of rows that it repeats)."""
    distinct = min(rows, BLOCK_ROWS)
    if rows % distinct:
        distinct = rows
    block = rng.standard_normal((distinct, columns), dtype=np.float32)
    return np.tile(block, (rows // distinct, 1)), block


def softmax(rows: int, columns: int) -> Sample:
    i, c = Var("i", rows), Var("c", columns)
    x = Load(float32, 0, i * columns + c)
    e = apply("exp", apply("sub", x, Result(float32, 0)))
    y = apply("div", e, Result(float32, 1))
    stages = (
        Stage((c,), (Reduction(0, "max", x),)),
        Stage((c,), (Reduction(1, "add", e),)),
        Stage((c,), stores=(Store(1, i * columns + c, y),)),
    )
    uses = (use("in", rows, columns), use("out", rows, columns))
    kernel = Kernel(f"softmax_{rows}_{columns}", (i,), stages, uses, Schedule(vector=c))
    array, block = repeated(np.random.default_rng(0), rows, columns)
    shifted = np.exp(block - block.max(1, keepdims=True))
    expected = shifted / shifted.sum(1, keepdims=True)
    return Sample(kernel, {0: array}, {1: expected}, 2 * array.nbytes)


def layer_norm(rows: int, columns: int, epsilon: float = 1e-5) -> Sample:
    i, c = Var("i", rows), Var("c", columns)
    here = i * columns + c
    x = Load(float32, 0, here)
    mean = apply("mul", Result(float32, 0), 1 / columns)
    centred = apply("sub", x, mean)
    variance = apply("mul", Result(float32, 1), 1 / columns)
    rstd = apply("div", 1.0, apply("sqrt", apply("add", variance, epsilon)))
    normal = apply("mul", centred, rstd)
    y = apply("add", apply("mul", normal, Load(float32, 1, c)), Load(float32, 2, c))
    stages = (
        Stage((c,), (Reduction(0, "add", x),)),
        Stage((c,), (Reduction(1, "add", apply("mul", centred, centred)),)),
        Stage((c,), stores=(Store(3, here, y),)),
        Stage((), stores=(Store(4, i, mean), Store(5, i, rstd))),
    )
    uses = (
        use("in", rows, columns), use("in", columns), use("in", columns),
        use("out", rows, columns), use("out", rows), use("out", rows),
    )  # fmt: skip
    kernel = Kernel(f"layer_norm_{rows}_{columns}", (i,), stages, uses, Schedule(vector=c))
    rng = np.random.default_rng(1)
    array, block = repeated(rng, rows, columns)
    weight, bias = (rng.standard_normal(columns, dtype=np.float32) for _ in range(2))
    centre = block.mean(1, dtype=np.float64)
    scale = 1 / np.sqrt(block.var(1, dtype=np.float64) + epsilon)
    answer = (block - centre[:, None]) * scale[:, None] * weight + bias
    expected = {3: answer, 4: centre, 5: scale}
    moved = 2 * array.nbytes + 2 * 4 * rows
    return Sample(kernel, {0: array, 1: weight, 2: bias}, expected, moved)


def layer_norm_backward(rows: int, columns: int, chunks: int = 64) -> Sample:
    """dx, and dw and db summed over the rows."""
    i, c = Var("i", rows), Var("c", columns)
    here = i * columns + c
    dy, x, w = Load(float32, 0, here), Load(float32, 1, here), Load(float32, 2, c)
    mean, rstd = Load(float32, 3, i), Load(float32, 4, i)
    normal = apply("mul", apply("sub", x, mean), rstd)
    g = apply("mul", dy, w)
    along = apply("mul", Result(float32, 0), 1 / columns)
    level = apply("mul", Result(float32, 1), 1 / columns)
    dx = apply("mul", apply("sub", apply("sub", g, level), apply("mul", normal, along)), rstd)
    stages = (
        Stage((c,), (Reduction(0, "add", apply("mul", g, normal)), Reduction(1, "add", g))),
        Stage(
            (c,),
            stores=(Store(5, here, dx),),
            privatised=(
                Privatised(6, 8, columns, "add", c, apply("mul", dy, normal)),
                Privatised(7, 9, columns, "add", c, dy),
            ),
        ),
    )
    uses = (
        use("in", rows, columns), use("in", rows, columns), use("in", columns), use("in", rows),
        use("in", rows), use("out", rows, columns), use("out", columns), use("out", columns),
        use("partials", chunks, columns), use("partials", chunks, columns),
    )  # fmt: skip
    schedule = Schedule(vector=c, chunks=chunks)
    kernel = Kernel(f"layer_norm_backward_{rows}_{columns}", (i,), stages, uses, schedule)
    rng = np.random.default_rng(2)
    inputs, block = repeated(rng, rows, columns)
    cotangents, dblock = repeated(rng, rows, columns)
    weight = rng.standard_normal(columns, dtype=np.float32)
    centre = block.mean(1, keepdims=True, dtype=np.float64)
    scale = 1 / np.sqrt(block.var(1, keepdims=True, dtype=np.float64) + 1e-5)
    hat = (block - centre) * scale
    gw = dblock * weight
    back = (gw - gw.mean(1, keepdims=True) - hat * (gw * hat).mean(1, keepdims=True)) * scale
    times = rows // len(block)
    expected = {5: back, 6: (dblock * hat).sum(0) * times, 7: dblock.sum(0, dtype=float) * times}
    buffers = {
        0: cotangents, 1: inputs, 2: weight,
        3: np.tile(centre[:, 0].astype(np.float32), times),
        4: np.tile(scale[:, 0].astype(np.float32), times),
    }  # fmt: skip
    moved = 3 * inputs.nbytes + 2 * 4 * rows
    return Sample(kernel, buffers, expected, moved)


def bias_gelu(rows: int, columns: int) -> Sample:
    """gelu(x + bias) by tanh."""
    i, c = Var("i", rows), Var("c", columns)
    here = i * columns + c
    x = apply("add", Load(float32, 0, here), Load(float32, 1, c))
    cube = apply("mul", apply("mul", x, x), x)
    inner = apply("mul", apply("add", x, apply("mul", cube, 0.044715)), float(np.sqrt(2 / np.pi)))
    y = apply("mul", apply("mul", x, 0.5), apply("add", apply("tanh", inner), 1.0))
    stages = (Stage((), stores=(Store(2, here, y),)),)
    uses = (use("in", rows, columns), use("in", columns), use("out", rows, columns))
    kernel = Kernel(f"bias_gelu_{rows}_{columns}", (i, c), stages, uses, Schedule(vector=c))
    rng = np.random.default_rng(3)
    array, block = repeated(rng, rows, columns)
    bias = rng.standard_normal(columns, dtype=np.float32)
    z = block + bias
    expected = 0.5 * z * (1 + np.tanh(np.sqrt(2 / np.pi) * (z + 0.044715 * z**3)))
    return Sample(kernel, {0: array, 1: bias}, {2: expected}, 2 * array.nbytes)


# beta1, beta2, epsilon and weight decay of the sample below.
BETA1, BETA2, EPSILON, DECAY = 0.9, 0.95, 1e-8, 0.1


def adamw(sizes: tuple[int, ...]) -> Sample:
    """One step over many tensors: buffers p, g, m, v, and shared [lr, 1/(1-b1ᵗ), 1/(1-b2ᵗ)]."""
    i = Var("i", max(sizes))
    p, g, m, v = (Load(float32, n, i) for n in range(4))
    lr, correct1, correct2 = (Load(float32, 4, num(n)) for n in range(3))
    m2 = apply("add", apply("mul", m, BETA1), apply("mul", g, 1 - BETA1))
    v2 = apply("add", apply("mul", v, BETA2), apply("mul", apply("mul", g, g), 1 - BETA2))
    root = apply("add", apply("sqrt", apply("mul", v2, correct2)), EPSILON)
    update = apply("div", apply("mul", m2, correct1), root)
    p2 = apply("sub", p, apply("mul", lr, apply("add", update, apply("mul", p, DECAY))))
    stages = (Stage((), stores=(Store(0, i, p2), Store(2, i, m2), Store(3, i, v2))),)
    roles = ("inout", "in", "inout", "inout")
    uses = (*(use(role, max(sizes)) for role in roles), use("in", 3, shared=True))
    schedule = Schedule(vector=i)
    kernel = Kernel(f"adamw_{len(sizes)}_{sum(sizes)}", (i,), stages, uses, schedule, sizes)
    rng = np.random.default_rng(4)
    pattern = [rng.standard_normal(1 << 16, dtype=np.float32) for _ in range(4)]
    pattern[3] = np.square(pattern[3])
    arrays = [[np.resize(each, size) for size in sizes] for each in pattern]
    step = 10
    hyper = np.array([1e-2, 1 / (1 - BETA1**step), 1 / (1 - BETA2**step)], np.float32)
    expected: dict[int, np.ndarray | list[np.ndarray]] = {0: [], 2: [], 3: []}
    for param, grad, first, second in zip(*arrays):
        first = BETA1 * first + (1 - BETA1) * grad
        second = BETA2 * second + (1 - BETA2) * grad * grad
        change = first * hyper[1] / (np.sqrt(second * hyper[2]) + EPSILON)
        expected[0].append(param - hyper[0] * (change + DECAY * param))
        expected[2].append(first)
        expected[3].append(second)
    buffers = {**dict(enumerate(arrays)), 4: hyper}
    return Sample(kernel, buffers, expected, 7 * 4 * sum(sizes))


def gpt2_sizes(layers: int = 12, width: int = 768) -> tuple[int, ...]:
    """The sizes of GPT-2's parameters (124 million in 148 tensors by default)."""
    block = (
        width, width, 3 * width * width, 3 * width, width * width, width,
        width, width, 4 * width * width, 4 * width, 4 * width * width, width,
    )  # fmt: skip
    return (50257 * width, 1024 * width, *(block * layers), width, width)
