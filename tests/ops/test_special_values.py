"""Elementwise operators at ±0, subnormal, huge and infinite numbers, and at NaN, as PyTorch.

Where PyTorch's own float32 code gives up early (cosh overflows at 89, where the result still fits),
its float64 code decides; where that does too, mpmath or NumPy. Zeros are compared with their sign.
Integers divided by zero raise, floats cast out of range saturate: nothing traps, and both backends
agree.
"""

import warnings

import mpmath
import numpy as np
import pytest
import torch
import torch.nn.functional as TF

import monograph as mg
import monograph.nn.functional as F

from .elementwise import ELEMENTWISE

INF, NAN = float("inf"), float("nan")

UNARY = [
    *ELEMENTWISE, "celu", "hardshrink", "isfinite", "isinf", "isnan", "isneginf", "isposinf",
    "isreal", "logical_not", "selu", "signbit",
]  # fmt: skip
ACTIVATIONS = [
    "elu", "gelu", "hardsigmoid", "hardswish", "hardtanh", "leaky_relu", "logsigmoid", "mish",
    "relu6", "silu", "softplus", "softshrink", "softsign", "tanhshrink", "threshold",
]  # fmt: skip
SPECIAL = [
    "bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1", "entr", "erfcx", "i0e", "i1", "i1e",
    "log_ndtr", "ndtr", "ndtri",
]  # fmt: skip
BINARY = [
    "add", "atan2", "copysign", "div", "eq", "float_power", "floor_divide", "fmax", "fmin", "fmod",
    "ge", "gt", "heaviside", "hypot", "le", "logaddexp", "logaddexp2", "logical_and", "logical_or",
    "logical_xor", "lt", "maximum", "minimum", "mul", "ne", "nextafter", "pow", "remainder", "rsub",
    "sub", "true_divide", "xlogy",
]  # fmt: skip
ARGUMENTS = {"threshold": (0.5, 0.25)}

# What decides where PyTorch's code is known to lose digits, or to answer NaN at infinity.
EXACT = {
    "ndtr": mpmath.ncdf,
    "erfcx": lambda x: mpmath.exp(x * x) * mpmath.erfc(x),
    "bessel_j0": lambda x: mpmath.besselj(0, x),
    "bessel_j1": lambda x: mpmath.besselj(1, x),
    "bessel_y0": lambda x: mpmath.bessely(0, x),
    "bessel_y1": lambda x: mpmath.bessely(1, x),
}


def values(dtype):
    facts = np.finfo(dtype)
    least = facts.smallest_subnormal
    sizes = [
        0.0, least, 3 * least, facts.tiny / 2, facts.tiny, 1e-20, facts.eps, 1e-5, 0.1, 0.25, 0.5,
        0.75, 1, 1.5, 2, 2.5, 3, 10, 20.5, 50, 88.5, 89, 104, 170.7, 700, 1000, 1e5, 12345678, 1e10,
        1e20, facts.max / 2, facts.max, INF,
    ]  # fmt: skip
    return np.array([sign * size for size in sizes for sign in (1, -1)] + [NAN], dtype)


def call(library, functional, name, *arrays):
    if name in ACTIVATIONS:
        return getattr(functional, name)(*arrays, *ARGUMENTS.get(name, ()))
    if name in SPECIAL:
        return getattr(library.special, name)(*arrays)
    return getattr(library, name)(*arrays)


def theirs(name, *arrays):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return call(torch, TF, name, *[torch.from_numpy(a) for a in arrays]).numpy()


def ours(name, *arrays):
    return call(mg, F, name, *[mg.tensor(a) for a in arrays]).numpy()


def alike(found, wanted, rtol):
    """Per element: the same number, zeros with the same sign, NaN for NaN."""
    if found.dtype.kind == "b":
        return found == wanted
    least = float(np.finfo(found.dtype).smallest_subnormal)
    with np.errstate(all="ignore"):
        wide = wanted.astype(np.float64)
        near = np.abs(found.astype(np.float64) - wide) <= rtol * np.abs(wide) + 2 * least
    finite = np.isfinite(found) & np.isfinite(wanted)
    signs = (found != 0) | (wanted != 0) | (np.signbit(found) == np.signbit(wanted))
    return (np.isnan(found) & np.isnan(wanted)) | (found == wanted) & signs | finite & near & signs


def described(bad, *arrays):
    rows = list(zip(*[a[bad] for a in arrays], strict=True))
    return f"{len(rows)} differ, such as {[tuple(map(float, row)) for row in rows[:6]]}"


@pytest.mark.parametrize("backend", ["cpu", "reference"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", [*UNARY, *ACTIVATIONS, *SPECIAL])
def test_unary(name, dtype, backend):
    x = values(dtype)
    rtol = 2e-6 if dtype is np.float32 else 1e-12
    with mg.config.override(backend=backend):
        found = ours(name, x)
    wanted = theirs(name, x)
    assert found.dtype == wanted.dtype
    bad = ~alike(found, wanted, rtol)
    if bad.any() and dtype is np.float32:
        with np.errstate(over="ignore"):
            wider = theirs(name, x.astype(np.float64)).astype(np.float32)
        bad &= ~alike(found, wider, rtol)
    if bad.any() and name in EXACT:
        bad &= ~_exactly(name, x, found, rtol)
    assert not bad.any(), described(bad, x, found, wanted)


def _exactly(name, x, found, rtol):
    """Where the true value, or the limit at infinity, is what was found."""
    wanted = np.full(len(x), NAN)
    for n, number in enumerate(x.tolist()):
        if number in (INF, -INF):
            wanted[n] = 0.0 if "bessel" in name and (number > 0 or "_j" in name) else NAN
        elif abs(number) < 1e6:  # beyond, the phase of a wave has no digits left
            with mpmath.workdps(40):
                wanted[n] = float(mpmath.re(EXACT[name](mpmath.mpf(number))))
        else:
            wanted[n] = found[n] if abs(found[n]) < 1e-3 else NAN
    waves = 1e-6 if found.dtype == np.float32 else 1e-12
    with np.errstate(invalid="ignore", over="ignore"):
        wanted = wanted.astype(found.dtype)
        return alike(np.abs(found), np.abs(wanted), rtol) | (np.abs(found - wanted) < waves)


@pytest.mark.parametrize("backend", ["cpu", "reference"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", BINARY)
def test_binary(name, dtype, backend):
    x = values(dtype)
    a, b = np.repeat(x, len(x)), np.tile(x, len(x))
    rtol = 2e-6 if dtype is np.float32 else 1e-12
    with mg.config.override(backend=backend):
        found = ours(name, a, b)
    wanted = theirs(name, a, b)
    assert found.dtype == wanted.dtype
    bad = ~alike(found, wanted, rtol)
    if name in ("fmod", "remainder"):  # PyTorch: NaN where a / b is beyond its range
        with np.errstate(all="ignore"):
            exact = getattr(np, name)(a, b)
        bad &= ~(np.isnan(wanted) & alike(np.abs(found), np.abs(exact), 0.0))
    if name.startswith("logaddexp"):  # which crosses zero
        with np.errstate(invalid="ignore"):
            bad &= ~(np.abs(found - wanted) < 4 * np.finfo(dtype).eps)
    assert not bad.any(), described(bad, a, b, found, wanted)


# --- integers -------------------------------------------------------------------------------------

INTEGERS = [
    mg.int8, mg.int16, mg.int32, mg.int64, mg.uint8, mg.uint16, mg.uint32, mg.uint64,
]  # fmt: skip
DIVISIONS = {
    "floor_divide": mg.floor_divide,
    "remainder": mg.remainder,
    "fmod": mg.fmod,
    "floor": lambda a, b: mg.div(a, b, rounding_mode="floor"),
    "trunc": lambda a, b: mg.div(a, b, rounding_mode="trunc"),
}


@pytest.mark.parametrize("name", DIVISIONS)
@pytest.mark.parametrize("dtype", INTEGERS, ids=lambda dtype: dtype.name)
def test_integer_division_never_traps(name, dtype):
    facts = np.iinfo(dtype.numpy)
    edges = [facts.min, facts.min + 1, 0, 1, 2, 7, facts.max - 1, facts.max]
    edges += [-1, -2, -7] if facts.min < 0 else []
    a = np.repeat(np.array(edges, dtype.numpy), len(edges))
    b = np.tile(np.array(edges, dtype.numpy), len(edges))
    whole = b != 0
    found = {}
    for backend in ("cpu", "reference"):
        with mg.config.override(backend=backend):
            with pytest.raises(RuntimeError, match="ZeroDivisionError"):
                DIVISIONS[name](mg.tensor(a), mg.tensor(b)).numpy()
            made = DIVISIONS[name](mg.tensor(a[whole]), mg.tensor(b[whole]))
            assert made.dtype is dtype
            found[backend] = made.numpy()
    np.testing.assert_array_equal(found["cpu"], found["reference"])
    a, b = a[whole], b[whole]
    # PyTorch and NumPy have no answer for the smallest by -1.
    plain = ~((a == facts.min) & (b.astype(np.int64) == -1))
    if dtype.name in ("int8", "int16", "int32", "int64", "uint8"):
        torch_name = name if name not in ("floor", "trunc") else "div"
        mode = {"rounding_mode": name} if torch_name == "div" else {}
        x, y = torch.from_numpy(a[plain]), torch.from_numpy(b[plain])
        wanted = getattr(torch, torch_name)(x, y, **mode).numpy()
        np.testing.assert_array_equal(found["cpu"][plain], wanted)


@pytest.mark.parametrize("dtype", INTEGERS, ids=lambda dtype: dtype.name)
@pytest.mark.parametrize("source", [np.float32, np.float64])
def test_casts_out_of_range_never_trap(dtype, source):
    x = np.concatenate([values(source), np.array([2.0**k for k in range(6, 66)], source)])
    x = np.concatenate([x, -x])
    found = {}
    for backend in ("cpu", "reference"):
        with mg.config.override(backend=backend):
            found[backend] = mg.tensor(x).to(dtype).numpy()
    np.testing.assert_array_equal(found["cpu"], found["reference"])
    facts = np.iinfo(dtype.numpy)
    inside = (x > facts.min - 1.0) & (x < facts.max)
    np.testing.assert_array_equal(found["cpu"][inside], np.trunc(x[inside]).astype(dtype.numpy))
    assert (found["cpu"][x == INF] == facts.max).all()
    assert (found["cpu"][x == -INF] == facts.min).all()


@pytest.mark.parametrize("dtype", INTEGERS[:4], ids=lambda dtype: dtype.name)
def test_shifts_and_powers_of_any_size_never_trap(dtype):
    facts = np.iinfo(dtype.numpy)
    a = np.array([facts.min, -1, 0, 1, 2, facts.max], dtype.numpy)
    by = np.array([0, 1, 7, facts.bits - 1, facts.bits, 100], dtype.numpy)
    a, by = np.repeat(a, len(by)), np.tile(by, len(a))
    found = {}
    for backend in ("cpu", "reference"):
        with mg.config.override(backend=backend):
            x, n = mg.tensor(a), mg.tensor(by)
            results = [x << n, x >> n, x**n, mg.abs(x), -x]
            found[backend] = [result.numpy() for result in results]
    for one, other in zip(found["cpu"], found["reference"], strict=True):
        np.testing.assert_array_equal(one, other)
