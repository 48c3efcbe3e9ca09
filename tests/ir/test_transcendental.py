"""Bases 2 and 10, angles, hyperbolas, erfc: half a unit in the last place, exact special cases."""

import mpmath
import numpy as np
import pytest

import monograph as mg
from monograph.ir import transcendental
from monograph.ir.scalar import TABLE

from .numpy_handler import evaluate
from .test_elementary import SPECIAL, assert_same, every_exponent, reference, ulps, usual

# The largest error in ulp that the docstrings promise, and the operations it takes.
ERROR = {
    "exp2": 0.80, "log2": 0.51, "log10": 0.51, "tan": 0.62, "asin": 0.51, "acos": 0.51,
    "atan": 0.51, "sinh": 0.54, "cosh": 0.54, "asinh": 0.51, "acosh": 0.51, "atanh": 0.51,
}  # fmt: skip
OPERATIONS = {
    "exp2": 19, "log2": 30, "log10": 30, "tan": 26, "asin": 21, "acos": 25, "atan": 26,
    "sinh": 29, "cosh": 20, "asinh": 40, "acosh": 36, "atanh": 42, "erfc": 41,
}  # fmt: skip
FUNCTIONS = sorted(ERROR)


def inputs(name):
    """Numbers of every size, and more of them where the function changes."""
    x = np.concatenate([every_exponent(), usual()])
    if name == "tan":
        return x[np.abs(x) < 1e13]
    near_one = (1 - np.abs(every_exponent(seed=3))[:40_000]).astype(np.float32)
    return np.concatenate([x, usual(seed=2) / 100, near_one, 2 - near_one])


@pytest.mark.parametrize("name", FUNCTIONS)
def test_error_is_small(name):
    x = inputs(name)
    value, operations = evaluate(getattr(transcendental, name), x)
    error = ulps(value, reference(name, x))
    worst = error.argmax()
    assert error[worst] <= ERROR[name], f"{name}({x[worst]!r}) = {value[worst]!r}"
    assert operations <= OPERATIONS[name]


def test_error_of_erfc_is_small():
    x = np.concatenate([usual(size=4000), np.linspace(-4, 10.2, 3000)]).astype(np.float32)
    value, operations = evaluate(transcendental.erfc, x)
    exact = np.array([float(mpmath.erfc(float(v))) for v in x])
    assert ulps(value, exact).max() <= 0.53
    assert operations <= OPERATIONS["erfc"]


@pytest.mark.parametrize("name", [*FUNCTIONS, "erfc", "lgamma"])
def test_special_values(name):
    numbers = np.concatenate([SPECIAL, np.array([2.0, -2.0, 1e30, -1e30], np.float32)])
    if name == "tan":
        numbers = numbers[~(np.abs(numbers) > 1e13) | ~np.isfinite(numbers)]
    value, _ = evaluate(getattr(transcendental, name), numbers)
    expected = reference(name, numbers).astype(np.float32)
    exact = (numbers == 0) | ~np.isfinite(numbers) | ~np.isfinite(expected)
    assert_same(value[exact], expected[exact])
    np.testing.assert_array_equal(np.signbit(value[~exact]), np.signbit(expected[~exact]))


@pytest.mark.parametrize("name", ["tan", "asin", "atan", "sinh", "asinh", "atanh"])
def test_zeros_keep_their_sign_and_tiny_numbers_their_value(name):
    x = np.array([0.0, -0.0, 1e-45, -1e-45, 3e-41, -3e-41, 1e-38, -1e-30], np.float32)
    value, _ = evaluate(getattr(transcendental, name), x)
    assert_same(value, x)


def test_hypot():
    a, b = every_exponent(seed=8, each=80), every_exponent(seed=9, each=80)
    b = np.random.default_rng(1).permutation(b)
    value, _ = evaluate(transcendental.hypot, a, b)
    exact = reference("hypot", a, b)
    assert ulps(value, exact).max() <= 0.51


def test_lgamma_is_left_to_the_library():
    x = np.array([0.3, 2.5])
    value, operations = evaluate(transcendental.lgamma, x)
    assert operations == 1
    np.testing.assert_array_equal(value, TABLE["lgamma"].numpy(x))


@pytest.mark.compiled
def test_exp2_by_the_instructions_of_the_machine():
    x = inputs("exp2")
    numbers = np.array([*SPECIAL, 1e10, -1e10, 3e38, -3e38, 128, -149, -151], np.float32)
    with mg.config.override(backend="cpu"):
        value = mg.exp2(mg.tensor(x)).numpy()
        special = mg.exp2(mg.tensor(numbers.repeat(4))).numpy()[::4]
    assert ulps(value, reference("exp2", x)).max() <= 0.88
    with np.errstate(over="ignore"):
        assert_same(special, reference("exp2", numbers).astype(np.float32))
    whole = np.arange(-149, 128, dtype=np.float32)
    assert_same(mg.exp2(mg.tensor(whole)).numpy(), np.ldexp(np.float32(1), whole.astype(int)))
