"""Running totals and order as native code, against NumPy."""

import numpy as np
import pytest

from monograph.codegen.along import INSERTED, SHORT, SHORT_WIDE, format_along, make_along
from monograph.codegen.llvm import Machine
from monograph.ir import dtypes

from .kernels import arguments, check, compiled

FLOATS = [dtypes.float32, dtypes.float64]
WHOLE = [dtypes.int8, dtypes.uint8, dtypes.int16, dtypes.int32, dtypes.int64]
HALVES = [dtypes.float16, dtypes.bfloat16]
SPECIAL = [np.nan, np.inf, -np.inf, -0.0, 0.0, 1.0, -1.0, -np.nan]


def run(function, options, shape, dtype, threads=2, x=None, **settings):
    kernel = make_along(function, options, shape, dtype, threads)
    assert kernel is not None
    arrays = arguments(kernel)
    if x is not None:
        arrays[0] = np.ascontiguousarray(x, dtype.numpy).reshape(-1)
    check(kernel, arrays, **settings)
    return kernel


def specials(shape, dtype, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(shape)
    chosen = rng.random(shape) < 0.2
    return np.where(chosen, rng.choice(SPECIAL, shape), x).astype(dtype.numpy)


@pytest.mark.parametrize("dtype", FLOATS + WHOLE + HALVES + [dtypes.bool_], ids=str)
@pytest.mark.parametrize("length", [1, 7, SHORT + 1, 300])
def test_orders(dtype, length):
    x = specials((3, length), dtype) if dtype.kind is dtypes.Kind.FLOAT else None
    for descending in (False, True):
        run("argsort", (descending,), (3, length), dtype, x=x)
    run("top_positions", (max(1, length // 9), True), (3, length), dtype, x=x)


@pytest.mark.parametrize("dtype", [dtypes.float32, dtypes.int64], ids=str)
@pytest.mark.parametrize("length, first, method", [
    (SHORT, 5, "count"), (SHORT_WIDE, SHORT_WIDE, None), (1000, INSERTED, "insert"),
    (1000, INSERTED + 1, "digits"), (5000, 300, "digits"), (20000, 300, "digits"),
    (1000, 900, "digits"),
])  # fmt: skip
def test_ways_to_the_first_few(dtype, length, first, method):
    x = np.random.default_rng(1).permutation(length) - 300
    for descending in (False, True):
        kernel = run("top_positions", (first, descending), (2, length), dtype,
                     x=np.stack([x, x[::-1] // 3]))  # fmt: skip
        assert method in (None, kernel.method)
        assert kernel.method in format_along(kernel)


def test_a_sample_that_misleads_is_no_harm():
    """All that is wanted stands where no sample is taken."""
    x = np.zeros(16384, np.float32)
    x[1::64] = np.arange(256) + 1
    run("top_positions", (200, True), (1, 16384), dtypes.float32, x=x)


@pytest.mark.parametrize("dtype", FLOATS + WHOLE, ids=str)
@pytest.mark.parametrize("shape, axis", [
    ((1,), -1), ((5,), -1), ((3, 130), -1), ((130, 3), -2), ((2, 9, 70), -2), ((2, 64, 128), -2),
])  # fmt: skip
def test_totals(dtype, shape, axis):
    for function in ("scan_add", "scan_mul"):
        run(function, (axis,), shape, dtype)


@pytest.mark.parametrize("dtype", FLOATS + WHOLE + [dtypes.bool_], ids=str)
@pytest.mark.parametrize("shape, axis", [
    ((1,), -1), ((3, 130), -1), ((130, 3), -2), ((2, 9, 70), -2),
])  # fmt: skip
def test_extremes(dtype, shape, axis):
    x = specials(shape, dtype) if dtype.kind is dtypes.Kind.FLOAT else None
    for function in ("scan_argmax", "scan_argmin", "scan_max", "scan_min"):
        run(function, (axis,), shape, dtype, x=x)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("shape, axis", [
    ((1,), -1), ((3, 130), -1), ((130, 3), -2), ((2, 9, 70), -2), ((4, 1, 5), -2),
])  # fmt: skip
def test_recurrences(dtype, shape, axis):
    run("scan_linear", (axis,), shape, dtype)
    kernel = run("scan_linear", (axis, True), shape, dtype)
    assert "from the last on" in format_along(kernel)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("shape, axis", [((1,), -1), ((3, 130), -1), ((130, 3), -2)])
def test_logarithms_of_totals(dtype, shape, axis):
    x = 30 * np.random.default_rng(0).standard_normal(shape)
    run("scan_logaddexp", (axis,), shape, dtype, x=x, rtol=1e-6 if dtype.itemsize == 4 else 1e-14)
    run("scan_logaddexp", (axis,), shape, dtype, x=specials(shape, dtype))


@pytest.mark.parametrize("dtype", [*FLOATS, dtypes.int64, dtypes.int8], ids=str)
@pytest.mark.parametrize("shape, axis", [((1,), -1), ((3, 130), -1), ((3, 64), -1), ((130, 3), -2)])
def test_totals_from_the_last_on(dtype, shape, axis):
    run("scan_add", (axis, True), shape, dtype)


def test_the_first_factor_of_a_recurrence_is_not_used():
    kernel = make_along("scan_linear", (-1,), (3,), dtypes.float64, 1)
    arrays = [np.array([2.0, 1.0, 0.0]), np.array([np.inf, 3.0, -1.0]), np.empty(3)]
    compiled(kernel)(arrays)
    assert arrays[2].tolist() == [2.0, 7.0, -7.0]


def test_totals_of_special_values():
    x = np.array([-0.0, -0.0, np.inf, 1.0, np.nan, 2.0, -np.inf] * 3, np.float32)
    kernel = run("scan_add", (-1,), (21,), dtypes.float32, x=x)
    arrays = [x, np.empty(21, np.float32)]
    compiled(kernel)(arrays)
    assert np.signbit(arrays[1][:2]).all()


def test_narrow_vectors():
    machine = Machine(256)
    run("scan_add", (-1,), (3, 45), dtypes.float32, machine=machine)
    run("scan_logaddexp", (-1,), (3, 45), dtypes.float32, machine=machine)
    run("argsort", (True,), (3, 450), dtypes.float64, machine=machine)


def test_what_there_is_no_kernel_for():
    assert make_along("mode_position", (), (3,), dtypes.float32, 1) is None
    assert make_along("scan_logaddexp", (-1,), (3,), dtypes.int64, 1) is None
    assert make_along("argsort", (False,), (3,), dtypes.complex64, 1) is None
    assert make_along("argsort", (False,), (0, 3), dtypes.float32, 1) is None
    assert make_along("scan_add", (-1,), (3,), dtypes.bfloat16, 1) is None
    assert make_along("scan_linear", (-1,), (3,), dtypes.int64, 1) is None
