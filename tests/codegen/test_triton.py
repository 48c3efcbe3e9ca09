"""Triton text: what it computes, by Triton's interpreter, and that it compiles without a GPU.

Triton decides at import whether it interprets, so all cases run in one subprocess, which is this
file run as a program; it prints the error of each case. libdevice does not exist there, so its
functions are replaced by NumPy's.
"""

import json
import math
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("triton")

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from bench import sample_kernels as samples  # noqa: E402
from bench.sample_kernels import apply  # noqa: E402
from monograph.backends.cuda.compile import compile_kernel  # noqa: E402
from monograph.backends.cuda.launch import prepare  # noqa: E402
from monograph.codegen.interpret import convert, run  # noqa: E402
from monograph.codegen.kernel import (  # noqa: E402
    Apply,
    BufferUse,
    Constant,
    Holds,
    IndexValue,
    Kernel,
    Load,
    Privatised,
    Reduction,
    Result,
    Schedule,
    Stage,
    Store,
)
from monograph.codegen.triton import Tuning, UnsupportedKernel, emit  # noqa: E402
from monograph.config import config  # noqa: E402
from monograph.ir.dtypes import (  # noqa: E402
    BY_NAME,
    bfloat16,
    bool_,
    float16,
    float32,
    float64,
    int8,
    int32,
    int64,
)
from monograph.ir.extent import symbol  # noqa: E402
from monograph.ir.index import Condition, Read, Var, within  # noqa: E402

F = float32
RNG = np.random.default_rng(0)
CASES = {}


def case(function):
    """Register a case: returns (kernel, tuning, inputs by number, answers by number)."""
    CASES[function.__name__] = function
    return function


def uses(*arguments):
    """Buffers from (role, elements) or (role, elements, dtype)."""
    return tuple(
        BufferUse(a[2] if len(a) > 2 else F, math.prod(np.atleast_1d(a[1])), a[0])
        for a in arguments
    )  # fmt: skip


def normal(*shape):
    return RNG.standard_normal(shape, dtype=np.float32)


def of_sample(sample, tuning=None):
    return sample.kernel, tuning, sample.buffers, sample.expected


# --- the cases ----------------------------------------------------------------------------------


@case
def softmax_one_row_a_program():
    return of_sample(samples.softmax(3, 1000))


@case
def softmax_several_rows_a_program():
    return of_sample(samples.softmax(21, 40), Tuning(block=256))


@case
def softmax_of_rows_longer_than_a_block():
    return of_sample(samples.softmax(3, 150), Tuning(resident=64, looped=32))


@case
def layer_norm():
    return of_sample(samples.layer_norm(5, 100), Tuning(block=128))


@case
def layer_norm_backward():
    return of_sample(samples.layer_norm_backward(11, 100), Tuning(block=128, programs=3))


@case
def layer_norm_backward_in_tiles():
    return of_sample(samples.layer_norm_backward(37, 12), Tuning(block=128, programs=2))


@case
def bias_gelu():
    return of_sample(samples.bias_gelu(5, 96), Tuning(block=128))


@case
def bias_gelu_with_a_tail():
    return of_sample(samples.bias_gelu(3, 33), Tuning(block=64))


@case
def adamw():
    return of_sample(samples.adamw((64, 1, 130, 17)), Tuning(block=64))


@case
def adamw_of_aligned_sizes():
    return of_sample(samples.adamw((64, 16, 144)), Tuning(block=64))


@case
def sum_of_everything():
    i = Var("i", 1000)
    x = Load(F, 0, i)
    total = Privatised(1, 2, 1, "add", i * 0, apply("mul", x, x))
    stages = (Stage((), privatised=(total,)),)
    kernel = Kernel("squares", (i,), stages, uses(("in", 1000), ("out", 1), ("partials", 4)))
    data = normal(1000)
    return kernel, Tuning(block=64, programs=3), {0: data}, {1: np.sum(data * data)[None]}


@case
def sum_of_everything_with_lanes():
    i, c = Var("i", 13), Var("c", 70)
    total = Privatised(1, 2, 1, "max", i * 0, Load(F, 0, i * 70 + c))
    stages = (Stage((c,), privatised=(total,)),)
    kernel = Kernel("largest", (i,), stages, uses(("in", 910), ("out", 1), ("partials", 4)))
    data = normal(13, 70)
    return kernel, Tuning(block=32, programs=6), {0: data}, {1: data.max()[None]}


@case
def sum_per_channel():
    n, c, s = Var("n", 5), Var("c", 3), Var("s", 14)
    x = Load(F, 0, n * 42 + c * 14 + s)
    sums = Privatised(1, 2, 3, "add", c, x)
    stages = (Stage((c, s), privatised=(sums,)),)
    kernel = Kernel("channels", (n,), stages, uses(("in", 210), ("out", 3), ("partials", 15)))
    data = normal(5, 3, 14)
    return kernel, Tuning(block=16, programs=6), {0: data}, {1: data.sum((0, 2))}


@case
def softmax_down_the_columns():
    r, c = Var("r", 19), Var("c", 50)
    x = Load(F, 0, r * 50 + c)
    e = apply("exp", apply("sub", x, Result(F, 0)))
    stages = (
        Stage((r,), (Reduction(0, "max", x),)),
        Stage((r,), (Reduction(1, "add", e),)),
        Stage((r,), stores=(Store(1, r * 50 + c, apply("div", e, Result(F, 1))),)),
    )
    kernel = Kernel("columns", (c,), stages, uses(("in", 950), ("out", 950)), Schedule(vector=c))
    data = normal(19, 50)
    answer = np.exp(data - data.max(0))
    return kernel, None, {0: data}, {1: answer / answer.sum(0)}


@case
def max_pool_with_its_place():
    """3x3 windows with stride 2 and padding 1: guards, several axes, the place of the maximum."""
    n, y, x = Var("n", 2), Var("y", 4), Var("x", 5)
    ky, kx = Var("ky", 3), Var("kx", 3)
    iy, ix = y * 2 + ky - 1, x * 2 + kx - 1
    guard = within(iy, 7) + within(ix, 9)
    load = Load(F, 0, n * 63 + iy * 9 + ix, guard, float("-inf"))
    place = iy * 9 + ix
    out = n * 20 + y * 5 + x
    stages = (
        Stage((ky, kx), (Reduction(0, "max", load), Reduction(1, "argmax", load, place))),
        Stage((), stores=(Store(1, out, Result(F, 0)), Store(2, out, Result(int64, 1)))),
    )
    buffers = uses(("in", 126), ("out", 40), ("out", 40, int64))
    kernel = Kernel("pool", (n, y, x), stages, buffers, Schedule(vector=x))
    data = normal(2, 7, 9)
    padded = np.full((2, 9, 11), -np.inf, np.float32)
    padded[:, 1:8, 1:10] = data
    where = np.full((9, 11), -1)
    where[1:8, 1:10] = np.arange(63).reshape(7, 9)
    best, at = np.zeros((2, 4, 5), np.float32), np.zeros((2, 4, 5), np.int64)
    for b, j, k in np.ndindex(2, 4, 5):
        window = padded[b, 2 * j : 2 * j + 3, 2 * k : 2 * k + 3]
        best[b, j, k] = window.max()
        at[b, j, k] = where[2 * j : 2 * j + 3, 2 * k : 2 * k + 3].flat[window.argmax()]
    return kernel, Tuning(block=64), {0: data}, {1: best, 2: at}


@case
def extremes_with_nan_and_ties():
    i, c = Var("i", 4), Var("c", 70)
    x = Load(F, 0, i * 70 + c)
    stages = (
        Stage((c,), (
            Reduction(0, "argmax", x, c), Reduction(1, "argmin", x, c),
            Reduction(2, "max", x), Reduction(3, "min", x),
        )),
        Stage((), stores=(
            Store(1, i, Result(int64, 0)), Store(2, i, Result(int64, 1)),
            Store(3, i, Result(F, 2)), Store(4, i, Result(F, 3)),
        )),
    )  # fmt: skip
    buffers = uses(("in", 280), *([("out", 4, int64)] * 2), *([("out", 4)] * 2))
    kernel = Kernel("extremes", (i,), stages, buffers, Schedule(vector=c))
    data = np.round(normal(4, 70))
    data[1, [13, 40]] = np.nan
    data[2] = -np.inf
    answers = {1: data.argmax(1), 2: data.argmin(1), 3: data.max(1), 4: data.min(1)}
    return kernel, Tuning(block=32, resident=32, looped=16), {0: data}, answers


@case
def gather_and_pad():
    """Rows of a table by index, shifted by one: the guard protects the read of the index too."""
    i, c = Var("i", 9), Var("c", 20)
    row = Read(1, (i - 1,), 6)
    load = Load(F, 0, row * 20 + c, (Condition(i - 1),), 7.0)
    stages = (Stage((c,), stores=(Store(2, i * 20 + c, load),)),)
    buffers = uses(("in", 120), ("in", 8, int64), ("out", 180))
    kernel = Kernel("gather", (i,), stages, buffers, Schedule(vector=c))
    table, index = normal(6, 20), RNG.integers(0, 6, 8)
    answer = np.concatenate([np.full((1, 20), 7, np.float32), table[index]])
    return kernel, Tuning(block=64), {0: table, 1: index}, {2: answer}


@case
def integers_and_logic():
    i = Var("i", 100)
    a, b = Load(int32, 0, i), Load(int32, 1, i)
    whole = [Apply(int32, name, (a, b)) for name in ("div", "floordiv", "remainder", "maximum")]
    less = Apply(bool_, "lt", (a, b))
    inner = Holds(bool_, (Condition(i - 10), Condition(i % 3, equal=True)))
    flag = Apply(bool_, "and", (Apply(bool_, "not", (less,)), inner))
    place = Apply(int64, "add", (IndexValue(int64, (i - 50) // 7), Constant(int64, 2**40)))
    stores = [Store(2 + n, i, value) for n, value in enumerate(whole)]
    stores += [Store(6, i, flag), Store(7, i, place), Store(8, i, Apply(int32, "sign", (a,)))]
    stores += [Store(9, i, Apply(int8, "cast", (a,)))]
    kinds = [int32] * 4 + [bool_, int64, int32, int8]
    buffers = uses(*([("in", 100, int32)] * 2), *(("out", 100, kind) for kind in kinds))
    kernel = Kernel("integers", (i,), (Stage((), stores=tuple(stores)),), buffers)
    x, y = (RNG.integers(-9, 9, 100).astype(np.int32) for _ in range(2))
    safe, zero = np.where(y == 0, 1, y), y == 0
    at = np.arange(100)
    answers = {
        2: np.where(zero, 0, np.trunc(x / safe)), 3: np.where(zero, 0, x // safe),
        4: np.where(zero, 0, x % safe), 5: np.maximum(x, y),
        6: ~(x < y) & (at >= 10) & (at % 3 == 0), 7: (at - 50) // 7 + 2**40, 8: np.sign(x), 9: x,
    }  # fmt: skip
    return kernel, Tuning(block=64), {0: x, 1: y}, answers


@case
def reductions_of_other_kinds():
    i, c = Var("i", 6), Var("c", 11)
    x, flag = Load(F, 0, i * 11 + c), Load(bool_, 1, i * 11 + c)
    whole = Apply(int64, "cast", (flag,))
    stages = (
        Stage((c,), (
            Reduction(0, "mul", x), Reduction(1, "and", flag), Reduction(2, "or", flag),
            Reduction(3, "add", whole), Reduction(4, "max", whole),
        )),
        Stage((), stores=(
            Store(2, i, Result(F, 0)), Store(3, i, Result(bool_, 1)),
            Store(4, i, Result(bool_, 2)), Store(5, i, Result(int64, 3)),
            Store(6, i, Result(int64, 4)),
        )),
    )  # fmt: skip
    kinds = [F, bool_, bool_, int64, int64]
    buffers = uses(("in", 66), ("in", 66, bool_), *(("out", 6, kind) for kind in kinds))
    kernel = Kernel("kinds", (i,), stages, buffers, Schedule(vector=c))
    data, flags = normal(6, 11), RNG.random((6, 11)) < 0.7
    flags[0], flags[1] = True, False
    answers = {2: data.prod(1), 3: flags.all(1), 4: flags.any(1), 5: flags.sum(1), 6: flags.max(1)}
    return kernel, Tuning(block=64), {0: data, 1: flags}, answers


@case
def floats_to_integers():
    i = Var("i", 16)
    x = Load(F, 0, i)
    kinds = ["int8", "uint8", "int32", "int64", "uint32", "bool"]
    stores = [Store(n + 1, i, Apply(BY_NAME[k], "cast", (x,))) for n, k in enumerate(kinds)]
    buffers = uses(("in", 16), *(("out", 16, BY_NAME[kind]) for kind in kinds))
    kernel = Kernel("casts", (i,), (Stage((), stores=tuple(stores)),), buffers)
    data = np.array([0, -0.5, 1.9, -1.9, 127.5, 128, -129, 255.9, 256, 3e9, -3e9, 5e9, 1e10, -1e10,
                     np.nan, 77], np.float32)  # fmt: skip
    answers = {n + 1: convert(data, BY_NAME[kind]) for n, kind in enumerate(kinds)}
    return kernel, None, {0: data}, answers


@case
def rounding():
    i = Var("i", 40)
    x, three = Load(F, 0, i), Constant(F, 3.0)
    values = [apply("floor", x), apply("round", x), apply("floordiv", x, three)]
    values += [apply("remainder", x, three), apply("tanh", x)]
    stores = tuple(Store(n + 1, i, value) for n, value in enumerate(values))
    kernel = Kernel(
        "rounding", (i,), (Stage((), stores=stores),), uses(("in", 40), *[("out", 40)] * 5)
    )
    data = 5 * normal(40)
    answers = [
        np.floor(data),
        np.rint(data),
        np.floor(data / 3),
        np.remainder(data, 3),
        np.tanh(data),
    ]
    return kernel, None, {0: data}, dict(enumerate(answers, start=1))


def _halves_through_a_row(dtype):
    """16-bit floats in and out, the row kept between stages in a scratch row."""
    i, c = Var("i", 5), Var("c", 70)
    x = Load(dtype, 0, i * 70 + c)
    squared = Apply(dtype, "mul", (x, x))
    kept = Apply(F, "cast", (Load(dtype, 2, c),))
    stages = (
        Stage((c,), (Reduction(0, "add", Apply(F, "cast", (x,))),), (Store(2, c, squared),)),
        Stage((c,), stores=(Store(1, i * 70 + c, apply("sub", kept, Result(F, 0))),)),
    )
    buffers = uses(("in", 350, dtype), ("out", 350, dtype), ("row", 70, dtype))
    kernel = Kernel("halves", (i,), stages, buffers, Schedule(vector=c))
    data = normal(5, 70).astype(dtype.numpy)
    wide = data.astype(np.float32)
    squares = (wide * wide).astype(dtype.numpy).astype(np.float32)
    return kernel, {0: data}, {1: (squares - wide.sum(1, keepdims=True)).astype(dtype.numpy)}


@case
def halves_with_the_row_in_registers():
    kernel, inputs, answers = _halves_through_a_row(float16)
    return kernel, Tuning(block=256), inputs, answers


@case
def bfloat16_with_the_row_in_registers():
    kernel, inputs, answers = _halves_through_a_row(bfloat16)
    return kernel, Tuning(block=256), inputs, answers


@case
def halves_with_the_row_in_memory():
    kernel, inputs, answers = _halves_through_a_row(float16)
    return kernel, Tuning(block=32, resident=32, looped=32), inputs, answers


@case
def flat_copy_of_a_transpose():
    """Outer axes in an order of their own: lanes run along the vector axis."""
    i, j = Var("i", 12), Var("j", 20)
    load = Load(F, 0, j * 12 + i)
    stages = (Stage((), stores=(Store(1, i * 20 + j, load),)),)
    kernel = Kernel("transpose", (i, j), stages, uses(("in", 240), ("out", 240)), Schedule(i))
    data = normal(20, 12)
    return kernel, Tuning(block=64), {0: data}, {1: data.T}


# --- the interpreter ----------------------------------------------------------------------------


def interpret(name, folder):
    """The largest error of a case over all outputs, relative to the largest answer."""
    import torch

    from monograph.backends.cuda.compile import load_function

    kernel, tuning, inputs, answers = CASES[name]()
    text = emit(kernel, tuning)
    tensors = {n: _tensors(data) for n, data in inputs.items()}
    for function in (text, *text.combine):
        arguments = []
        for a in function.arguments:
            if a.buffer >= 0 and a.buffer not in tensors:
                kind = _memory(kernel.buffers[a.buffer].dtype)
                tensors[a.buffer] = torch.zeros(a.elements, dtype=getattr(torch, kind))
            if a.buffer >= 0:
                arguments.append(tensors[a.buffer])
        if function.segments is not None:
            rows = [[t.data_ptr() for t in tensors[n]] for n in function.segments.buffers]
            arguments += [torch.tensor(rows), torch.from_numpy(function.segments.tiles)]
        run = load_function(function, Path(folder) / f"{function.name}_{name}.py")
        run[(function.grid,)](*arguments)
    return max(_error(answer, tensors[n]) for n, answer in answers.items())


def _memory(dtype):
    return "int8" if dtype is bool_ else dtype.name


def _tensors(data):
    import torch

    if isinstance(data, list):
        return [_tensors(each) for each in data]
    array = np.ascontiguousarray(data)
    if array.dtype == bfloat16.numpy:
        return torch.from_numpy(array.view(np.int16).copy()).view(torch.bfloat16).flatten()
    return torch.from_numpy(array.view(np.int8) if array.dtype == bool else array.copy()).flatten()


def _error(answer, actual):
    if isinstance(answer, list):
        return max(_error(a, b) for a, b in zip(answer, actual))
    wanted = np.asarray(answer, np.float64).reshape(-1)
    if not isinstance(actual, np.ndarray):  # PyTorch's bfloat16 is no array
        actual = actual.double().numpy()
    got = np.asarray(actual, np.float64)[: wanted.size]
    if not np.array_equal(np.isfinite(wanted), np.isfinite(got)):
        return float("inf")
    finite = np.isfinite(wanted)
    if not np.array_equal(wanted[~finite], got[~finite], equal_nan=True):
        return float("inf")
    scale = np.abs(wanted[finite]).max(initial=1e-30)
    return float(np.abs(wanted[finite] - got[finite]).max(initial=0) / scale)


def _numpy_for_libdevice():
    import triton.language as tl
    from triton.language.extra import libdevice
    from triton.runtime.interpreter import TensorHandle

    def by_numpy(function):
        def call(x):
            return tl.core.tensor(TensorHandle(function(x.handle.data), x.handle.dtype), x.type)

        return call

    for name in ("tanh", "floor", "rint"):
        setattr(libdevice, name, by_numpy(getattr(np, name)))


def main(folder):
    _numpy_for_libdevice()
    errors = {}
    for name in CASES:
        try:
            errors[name] = interpret(name, folder)
        except Exception as exception:
            errors[name] = f"{type(exception).__name__}: {exception}"
    print(json.dumps(errors))


@pytest.fixture(scope="module")
def errors(tmp_path_factory):
    pytest.importorskip("torch")
    folder = tmp_path_factory.mktemp("text")
    environment = {**os.environ, "TRITON_INTERPRET": "1"}
    command = [sys.executable, __file__, str(folder)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


TOLERANCE = {
    "halves_with_the_row_in_registers": 1e-3,
    "halves_with_the_row_in_memory": 1e-3,
    "bfloat16_with_the_row_in_registers": 8e-3,
}


@pytest.mark.parametrize("name", CASES)
def test_the_text_computes_what_numpy_does(errors, name):
    error = errors[name]
    assert isinstance(error, float), error
    assert error <= TOLERANCE.get(name, 1e-5)


@pytest.mark.parametrize("name", CASES)
def test_the_answers_are_what_a_kernel_means(name):
    kernel, _, inputs, answers = CASES[name]()
    arguments = []
    outputs = {}
    for number, use in enumerate(kernel.buffers):
        if use.role == "row":
            continue
        given = inputs.get(number, np.zeros(use.elements, use.dtype.numpy))
        parts = [
            np.array(part).reshape(-1) for part in (given if isinstance(given, list) else [given])
        ]
        outputs[number] = parts if isinstance(given, list) else parts[0]
        arguments += parts
    run(kernel, arguments)
    errors = {n: _error(answer, outputs[n]) for n, answer in answers.items()}
    assert max(errors.values()) <= TOLERANCE.get(name, 1e-5), errors


# --- machine code -------------------------------------------------------------------------------


@pytest.fixture
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "triton"))
    with config.override(cache_dir=tmp_path):
        yield


def machine_code(kernel):
    text = emit(kernel)
    return [compile_kernel(function) for function in (text, *text.combine)]


COMPILED = {
    "row in registers": lambda: samples.softmax(64, 1024).kernel,
    "row looped": lambda: samples.softmax(8, 50257).kernel,
    "privatised": lambda: samples.layer_norm_backward(2048, 768).kernel,
    "segments": lambda: samples.adamw((768, 1024, 50)).kernel,
    "pointwise": lambda: samples.bias_gelu(64, 3072).kernel,
    "pool": lambda: CASES["max_pool_with_its_place"]()[0],
    "integers": lambda: CASES["integers_and_logic"]()[0],
    "casts": lambda: CASES["floats_to_integers"]()[0],
    "kinds": lambda: CASES["reductions_of_other_kinds"]()[0],
    "gather": lambda: CASES["gather_and_pad"]()[0],
    "halves": lambda: _halves_through_a_row(float16)[0],
    "bfloat16": lambda: _halves_through_a_row(bfloat16)[0],
}


@pytest.mark.parametrize("name", COMPILED)
def test_compiles_for_hopper_without_a_gpu(own_cache, name):
    for compiled in machine_code(COMPILED[name]()):
        assert compiled.cubin.startswith(b"\x7fELF")
        assert compiled.scratch == 2
        assert compiled.shared < 48 * 1024


def test_compiled_code_is_found_on_disk(own_cache, monkeypatch):
    kernel = samples.softmax(4, 64).kernel
    first = machine_code(kernel)
    monkeypatch.setattr("monograph.backends.cuda.compile._compile", None)
    assert machine_code(kernel) == first


class RecordingDevice:
    """Stands in for a GPU: remembers what would be launched."""

    capability = 90
    stream = "stream"

    def __init__(self):
        self.uploaded = []
        self.launched = []

    def load(self, compiled):
        return compiled.name

    def configuration(self, grid, compiled):
        return grid, compiled.num_warps

    def upload(self, array):
        self.uploaded.append(array)
        return SimpleNamespace(address=1000 + len(self.uploaded))

    def launch(self, configuration, kernel, arguments, to):
        self.launched.append((kernel, configuration, arguments, to))


def test_launches_pass_addresses_and_empty_scratch(own_cache):
    device = RecordingDevice()
    text = emit(samples.layer_norm_backward(2048, 768).kernel)
    for launch in prepare(device, text, {n: 100 + n for n in range(10)}):
        launch()
    main, combine = device.launched
    assert main[1:] == ((text.grid, 4), (*range(100, 110), 0, 0), "stream")
    assert combine[2] == (108, 106, 109, 107, 0, 0)


def test_segments_are_launched_with_their_tables(own_cache):
    device = RecordingDevice()
    text = emit(samples.adamw((768, 2048)).kernel)
    addresses = {0: [1, 2], 1: [3, 4], 2: [5, 6], 3: [7, 8], 4: 9}
    (launch,) = prepare(device, text, addresses)
    launch("graph")
    pointers, tiles = device.uploaded
    assert pointers.tolist() == [[1, 2], [3, 4], [5, 6], [7, 8]]
    assert tiles.tolist() == [[0, 0, 768], [1, 0, 2048], [1, 1, 2048]]
    assert device.launched[0][1:] == ((3, 4), (9, 1001, 1002, 0, 0), "graph")


# --- the text -----------------------------------------------------------------------------------


def test_a_row_is_loaded_once_for_all_stages():
    body = emit(samples.softmax(64, 1024).kernel).body
    assert body.count("tl.load(") == 1
    assert body.count("tl.exp(") == 1


def test_what_rows_share_is_loaded_before_the_loop_over_rows():
    body = emit(samples.layer_norm_backward(2048, 768).kernel).body
    before, after = body.split("for start_row")
    assert "tl.load(p2 + lane0" in before
    assert "p2" not in after


def test_partials_have_as_many_rows_as_programs():
    text = emit(samples.layer_norm_backward(2048, 768).kernel, Tuning(programs=100))
    assert text.grid == 100
    assert text.partials_elements[8] == 100 * 768
    assert [argument.buffer for argument in text.combine[0].arguments] == [8, 6, 9, 7]


def test_large_tensors_are_indexed_with_64_bits():
    small, large = (emit(_copy(n)).body for n in (2**20, 2**32))
    assert "int64" not in small
    assert "pid = tl.program_id(0).to(tl.int64)" in large


def test_symbolic_sizes_are_refused():
    i = Var("i", 8)
    stages = (Stage((), stores=(Store(1, i, Load(F, 0, i + symbol("n", 5))),)),)
    with pytest.raises(UnsupportedKernel, match="symbolic"):
        emit(Kernel("symbolic", (i,), stages, uses(("in", 64), ("out", 8))))


def test_dear_numbers_get_a_launch_of_their_own():
    i = Var("i", 1 << 20)
    rate = Apply(float64, "exp", (Load(float64, 1, i * 0),))
    scaled = apply("mul", Load(F, 0, i), Apply(F, "cast", (rate,)))
    stages = (Stage((), stores=(Store(2, i, scaled),)),)
    buffers = uses(("in", 1 << 20), ("in", 1, float64), ("out", 1 << 20))
    kernel = Kernel("scaled", (i,), stages, buffers)
    first = emit(kernel)
    (rest,) = first.combine
    assert "tl.exp" in first.body and "tl.exp" not in rest.body
    assert [a.buffer for a in first.arguments] == [1, 3]
    assert [a.buffer for a in rest.arguments] == [0, 1, 2, 3]
    assert [a.nbytes for a in rest.arguments if a.scratch] == [4]
    assert emit(kernel, Tuning(hoist=1 << 30)).combine == ()


def test_a_scatter_clears_and_then_combines_by_atomics():
    c, lane, v, j = Var("c", 2), Var("l", 8), Var("v", 5), Var("j", 30)
    column = c * 8 + lane
    place = Read(1, (j,), 5) * 16 + column
    held = Load(F, 2, place)
    added = apply("add", held, Load(F, 0, j * 16 + column))
    stages = (
        Stage((v, lane), stores=(Store(2, v * 16 + column, Constant(F, 0.0)),)),
        Stage((j, lane), stores=(Store(2, place, added),)),
    )
    buffers = uses(("in", 480), ("in", 30, int64), ("inout", 80))
    clear = emit(Kernel("scatter", (c,), stages, buffers))
    (combine,) = clear.combine
    assert "tl.store(p2 + row, 0.0" in clear.body
    assert "tl.atomic_add(p2 +" in combine.body and "tl.store" not in combine.body


def _copy(n):
    i = Var("i", n)
    stages = (Stage((), stores=(Store(1, i, Load(F, 0, i)),)),)
    return Kernel("copy", (i,), stages, uses(("in", n), ("out", n)))


if __name__ == "__main__":
    main(sys.argv[1])
