"""Every scalar function in LLVM against NumPy: special values, all dtypes, vectors and scalars."""

import numpy as np
import pytest

from monograph.codegen.kernel import Stage, Store
from monograph.ir import dtypes
from monograph.ir.build import result_dtype
from monograph.ir.index import Var
from monograph.ir.scalar import TABLE

from .kernels import Kernel, Schedule, apply, check, const, load, use

ALL = [d for d in dtypes.ALL if not d.is_complex]  # kernels see the parts of those
INTEGERS = [d for d in ALL if d.kind is dtypes.Kind.INT]
FLOATS = [d for d in ALL if d.is_floating_point]
CONVERSIONS = ("cast", "bitcast")
PARTS = ("real", "imag", "conj", "complex")  # gone before kernels are emitted
# What NumPy does not define on bools, and what no integer has.
NOT_BOOL = {"sub", "neg", "div", "floordiv", "remainder", "sign", "shl", "shr", "abs"}
NOT_BOOL |= {"floor", "ceil", "trunc", "round", "maximum", "minimum"}
NOT_BOOL |= {"fmod", "gcd"}
BITS = {"and", "or", "xor", "not", "shl", "shr", "gcd"}
ELEMENTARY = {name for name, scalar in TABLE.items() if scalar.definition} | {"sqrt", "copysign"}
ELEMENTARY -= BITS


def samples(dtype):
    """Values at which functions go wrong, and some ordinary ones."""
    rng = np.random.default_rng(0)
    if dtype is dtypes.bool_:
        return np.array([False, True, True, False, True])
    if dtype.is_floating_point:
        special = [0.0, -0.0, 1.0, -1.0, 0.5, 2.5, -2.5, np.inf, -np.inf, np.nan, 3e4, 1e-7]
        return np.concatenate([special, rng.normal(0, 3, 29)]).astype(dtype.numpy)
    info = np.iinfo(dtype.numpy)
    special = np.array([info.min, info.max, 0, 1, 2, 7], dtype.numpy)
    low = max(int(info.min), -1000)
    ordinary = rng.integers(low, min(int(info.max), 1000), 25).astype(dtype.numpy)
    minus = np.array([-1], np.int64).astype(dtype.numpy)
    return np.concatenate([special, minus, ordinary])


def run(function, arrays, vector, dtype=None, rtol=0.0):
    """out[a, b] = function(x[a], y[b]) for all pairs (of one operand: for all values)."""
    uses = tuple(use(dtypes.from_numpy(x.dtype), len(x)) for x in arrays)
    axes = tuple(Var(f"v{n}", len(x)) for n, x in enumerate(arrays))
    operands = [load(n, axis, one.dtype) for n, (axis, one) in enumerate(zip(axes, uses))]
    value = apply(function, *operands, dtype=dtype or result_of(function, operands))
    flat = axes[0]
    for axis in axes[1:]:
        flat = flat * axis.extent + axis
    size = int(np.prod([len(x) for x in arrays]))
    stage = Stage((), stores=(Store(len(arrays), flat, value),))
    out = use(value.dtype, size, "out")
    schedule = Schedule(axes[-1] if vector else None)
    kernel = Kernel("scalar", axes, (stage,), (*uses, out), schedule)
    given = [*arrays, np.zeros(size, value.dtype.numpy)]
    return check(kernel, given, rtol=rtol, atol=0.0)[-1]


def result_of(function, operands):
    return result_dtype(TABLE[function], operands[-1].dtype)


def cases():
    for name, scalar in TABLE.items():
        if name in CONVERSIONS or name in PARTS or scalar.arity > 2:
            continue
        for dtype in ALL:
            if dtype is dtypes.bool_ and name in NOT_BOOL | ELEMENTARY:
                continue
            if not dtype.is_floating_point and name in ELEMENTARY:
                continue
            if dtype.is_floating_point and name in BITS:
                continue
            if name == "round" and dtype.kind is dtypes.Kind.INT and dtype.itemsize == 8:
                continue  # NumPy goes through float64
            yield pytest.param(name, dtype, id=f"{name}-{dtype.name}")


@pytest.mark.parametrize("vector", [True, False], ids=["vector", "scalar"])
@pytest.mark.parametrize("name, dtype", list(cases()))
def test_function(name, dtype, vector):
    rtol = 0.0
    if dtype.is_floating_point and (name in ELEMENTARY or name in ("div", "remainder")):
        rtol = {2: 2e-3, 4: 1e-6, 8: 1e-14}[dtype.itemsize]
        rtol = 1e-2 if dtype is dtypes.bfloat16 else rtol
        rtol = max(rtol, 1e-13) if name == "lgamma" else rtol  # Python's differs near its zeros
    arrays = [samples(dtype)] * TABLE[name].arity
    if name in ("sin", "cos", "tan") and dtype.is_half:
        arrays = [a[np.abs(a.astype(np.float32)) < 100] for a in arrays]
    run(name, arrays, vector, rtol=rtol)


@pytest.mark.parametrize("vector", [True, False], ids=["vector", "scalar"])
@pytest.mark.parametrize("dtype", INTEGERS, ids=lambda d: d.name)
def test_the_longest_ways_to_a_common_divisor(dtype, vector):
    """Neighbours in Fibonacci's sequence need the most steps."""
    numbers = [1, 1]
    while numbers[-1] + numbers[-2] <= np.iinfo(dtype.numpy).max:
        numbers.append(numbers[-1] + numbers[-2])
    run("gcd", [np.array(numbers[-19:], dtype.numpy)] * 2, vector)


@pytest.mark.parametrize("vector", [True, False], ids=["vector", "scalar"])
@pytest.mark.parametrize("target", ALL, ids=lambda d: d.name)
@pytest.mark.parametrize("source", ALL, ids=lambda d: d.name)
def test_cast(source, target, vector):
    values = samples(source)
    if source.is_floating_point:
        large = np.array([1e20, -1e20, 127.9, 128.0, 255.9, 256.0, -129.0, 2.0**31, 2.0**63])
        with np.errstate(over="ignore"):
            values = np.concatenate([values, large.astype(source.numpy)])
    run("cast", [values], vector, target)


NUMBERS = [dtype for dtype in ALL if dtype is not dtypes.bool_]
SAME_SIZE = [(a, b) for a in NUMBERS for b in NUMBERS if a.itemsize == b.itemsize]


@pytest.mark.parametrize(("source", "target"), SAME_SIZE, ids=lambda d: d.name)
def test_bitcast(source, target):
    values = samples(source)
    values = values[values == values]
    if target.is_floating_point:
        values = values[~np.isnan(values.view(target.numpy))]
    run("bitcast", [values], True, target)


@pytest.mark.parametrize("dtype", ALL, ids=lambda d: d.name)
def test_select(dtype):
    n = Var("n", len(samples(dtype)))
    value = apply("select", load(1, n, dtypes.bool_), load(0, n, dtype), const(1, dtype))
    uses = (use(dtype, n.extent), use(dtypes.bool_, n.extent), use(dtype, n.extent, "out"))
    stage = Stage((), stores=(Store(2, n, value),))
    values = samples(dtype)
    check(
        Kernel("choose", (n,), (stage,), uses, Schedule(n)),
        [values, np.arange(len(values)) % 3 == 0, np.zeros_like(values)],
    )
