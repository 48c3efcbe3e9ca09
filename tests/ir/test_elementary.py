"""The elementary functions: small errors everywhere, exact special cases, few operations."""

import math

import mpmath
import numpy as np
import pytest

from monograph.ir import elementary, transcendental
from monograph.ir.scalar import TABLE

from . import fitting
from .numpy_handler import evaluate

# The largest error in ulp that the docstrings promise, and the operations it takes.
ERROR = {
    "exp": 0.92,
    "expm1": 1.23,
    "log": 1.06,
    "log1p": 1.82,
    "sin": 1.55,
    "cos": 1.55,
    "tanh": 1.54,
    "erf": 1.94,
}
OPERATIONS = {
    "exp": 20,
    "expm1": 23,
    "log": 26,
    "log1p": 29,
    "sin": 28,
    "cos": 28,
    "tanh": 21,
    "erf": 26,
}
POW_ERROR = 0.54
FUNCTIONS = sorted(ERROR)

SPECIAL = np.array(
    [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 1e-45, -1e-45, 1e-39, -1e-39], np.float32
)


def every_exponent(seed=0, each=256):
    """Random mantissas for every sign and exponent: subnormal, normal and huge numbers."""
    random = np.random.default_rng(seed)
    mantissas = random.integers(0, 1 << 23, (512, each), dtype=np.uint32)
    exponents = np.arange(512, dtype=np.uint32)[:, None] << np.uint32(23)
    return (mantissas | exponents).view(np.float32).ravel()


def usual(seed=1, size=200_000):
    """Numbers around those that functions change at."""
    random = np.random.default_rng(seed)
    widths = np.array([0.5, 2.0, 10.0, 100.0])
    return (random.uniform(-1, 1, size) * random.choice(widths, size)).astype(np.float32)


def ulps(value, exact):
    """The distance of float32 results from float64 ones, in units in the last place of these."""
    assert value.dtype == np.float32
    _, exponent = np.frexp(exact)
    unit = np.ldexp(1.0, np.clip(exponent, -125, 128) - 24)
    limit = float(np.finfo(np.float32).max)
    with np.errstate(all="ignore"):
        rounded = exact.astype(np.float32)
        # One step beyond the largest number is infinity.
        finite = np.where(np.isinf(value), np.copysign(limit * (1 + 2.0**-24), value), value)
        distance = np.abs(finite - np.clip(exact, -limit, limit)) / unit
    same = (value == rounded) | (np.isnan(value) & np.isnan(exact))
    error = np.where(same & ~np.isfinite(rounded), 0.0, distance)
    return np.where(np.isnan(error), np.inf, error)


def reference(name, *operands):
    with np.errstate(all="ignore"):
        return TABLE[name].numpy(*(x.astype(np.float64) for x in operands))


def assert_same(value, expected):
    """Equal numbers, NaN where NaN is expected, zeros of the same sign."""
    np.testing.assert_array_equal(value, expected)
    known = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(value[known]), np.signbit(expected[known]))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_error_is_small(name):
    x = np.concatenate([every_exponent(), usual()])
    value, _ = evaluate(getattr(elementary, name), x)
    error = ulps(value, reference(name, x))
    worst = error.argmax()
    assert error[worst] <= ERROR[name], f"{name}({x[worst]!r}) = {value[worst]!r}"


@pytest.mark.parametrize("name", FUNCTIONS)
def test_special_values(name):
    value, _ = evaluate(getattr(elementary, name), SPECIAL)
    expected = reference(name, SPECIAL).astype(np.float32)
    exact = (SPECIAL == 0) | ~np.isfinite(SPECIAL) | ~np.isfinite(expected)
    assert_same(value[exact], expected[exact])
    np.testing.assert_array_equal(np.signbit(value[~exact]), np.signbit(expected[~exact]))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_few_operations(name):
    _, operations = evaluate(getattr(elementary, name), SPECIAL)
    assert operations <= OPERATIONS[name]


def test_exp_at_the_ends_of_its_range():
    x = np.array([88.72283, 88.72284, 1e30, -87.4, -103.0, -103.97, -103.98, -1e30], np.float32)
    value, _ = evaluate(elementary.exp, x)
    exact = reference("exp", x)
    with np.errstate(all="ignore"):
        expected = exact.astype(np.float32)
    infinite_or_zero = np.isinf(expected) | (expected == 0)
    assert_same(value[infinite_or_zero], expected[infinite_or_zero])
    assert np.isfinite(value[0]) and value[5] == np.float32(1e-45)
    assert ulps(value, exact).max() <= ERROR["exp"]


@pytest.mark.parametrize(("name", "from_here"), [("tanh", 9.02), ("erf", 3.93)])
def test_saturation(name, from_here):
    x = np.linspace(from_here, 40, 1000, dtype=np.float32)
    value, _ = evaluate(getattr(elementary, name), np.concatenate([x, -x]))
    assert_same(value, np.sign(np.concatenate([x, -x])))


@pytest.mark.parametrize("name", ["tanh", "erf", "sin", "cos"])
def test_results_are_within_one(name):
    x = np.concatenate([every_exponent(seed=2), usual(seed=3), usual(seed=4) * np.float32(1e-4)])
    value, _ = evaluate(getattr(elementary, name), x)
    finite = np.isfinite(x)
    assert (np.abs(value[finite]) <= 1).all()


@pytest.mark.parametrize("name", ["tanh", "erf", "expm1", "log1p", "sin"])
def test_zeros_keep_their_sign_and_tiny_numbers_their_value(name):
    x = np.array([0.0, -0.0, 1e-45, -1e-45, 3e-41, -3e-41, 1e-38, -1e-30], np.float32)
    value, _ = evaluate(getattr(elementary, name), x)
    slope = 2 / math.sqrt(math.pi) if name == "erf" else 1.0
    expected = (x.astype(np.float64) * slope).astype(np.float32)
    np.testing.assert_array_equal(np.signbit(value), np.signbit(x))
    np.testing.assert_allclose(value, expected, rtol=3e-7, atol=2e-45 if name == "erf" else 0)


@pytest.mark.parametrize("name", ["sin", "cos"])
def test_near_the_zeros_of_sin_and_cos(name):
    """Where the reduced argument is tiny, the long reduction has to keep its digits."""
    multiples = np.arange(1, 200_000, 7) * (math.pi / 2)
    large = np.array([16367173 * 2.0**72 % 1e9, 205887.4, 1e9, 123456792.0, 6.3e11])
    x = np.concatenate([multiples, large]).astype(np.float32)
    value, _ = evaluate(getattr(elementary, name), x)
    assert ulps(value, reference(name, x)).max() <= ERROR[name]
    function = getattr(mpmath, name)
    exact = [float(function(mpmath.mpf(float(v)))) for v in x[-100:]]
    assert ulps(value[-100:], np.array(exact)).max() <= ERROR[name]


def test_cos_of_zero_is_one():
    value, _ = evaluate(elementary.cos, np.array([0.0, -0.0, 1e-10, 1e-5], np.float32))
    np.testing.assert_array_equal(value, np.ones(4, np.float32))


def pairs():
    random = np.random.default_rng(5)
    size = 40_000
    anything = every_exponent(seed=6, each=80)[:size]
    other = random.permutation(every_exponent(seed=7, each=80))[:size]
    positive = random.uniform(0.01, 50, size)
    yield "anything", anything, other
    yield "small powers", anything, random.uniform(-3, 3, size)
    yield "near one", 1 + random.normal(size=size) * 1e-4, random.uniform(-1e6, 1e6, size)
    yield "integer powers", random.uniform(-100, 100, size), random.integers(-20, 20, size)
    yield "whole range", positive, random.uniform(-150, 128, size) / np.log2(positive)


@pytest.mark.parametrize(("a", "b"), [pytest.param(a, b, id=name) for name, a, b in pairs()])
def test_pow_error_is_small(a, b):
    a, b = a.astype(np.float32), b.astype(np.float32)
    value, operations = evaluate(elementary.pow, a, b)
    exact = reference("pow", a, b)
    error = ulps(value, exact)
    worst = error.argmax()
    assert error[worst] <= POW_ERROR, f"{a[worst]!r} ** {b[worst]!r} = {value[worst]!r}"
    known = ~np.isnan(exact)
    np.testing.assert_array_equal(np.signbit(value[known]), np.signbit(exact[known]))
    assert operations <= 63


def test_pow_special_values():
    numbers = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 5.0, 2.0**24 - 1, 2.0**24, 1e10, 1e-10, np.inf, 1e-45]
    values = np.array(numbers + [-v for v in numbers] + [np.nan], np.float32)
    a, b = (grid.ravel() for grid in np.meshgrid(values, values))
    value, _ = evaluate(elementary.pow, a, b)
    with np.errstate(all="ignore"):
        expected = reference("pow", a, b).astype(np.float32)
    exact = (expected == 0) | (expected == 1) | ~np.isfinite(expected)
    assert_same(value[exact], expected[exact])
    np.testing.assert_array_equal(np.signbit(value[~exact]), np.signbit(expected[~exact]))
    np.testing.assert_allclose(value[~exact], expected[~exact], rtol=2.0**-23, atol=0)


def test_pow_of_small_integers_is_exact():
    bases, powers = np.meshgrid(np.arange(-12, 13), np.arange(0, 7))
    value, _ = evaluate(elementary.pow, bases.astype(np.float32), powers.astype(np.float32))
    np.testing.assert_array_equal(value, (bases**powers).astype(np.float32))


@pytest.mark.parametrize("name", [*FUNCTIONS, "pow"])
def test_float16_is_computed_in_float32(name):
    operands = [np.linspace(0.1, 2.0, 50).astype(np.float16)] * TABLE[name].arity
    value, _ = evaluate(getattr(elementary, name), *operands)
    wide, _ = evaluate(getattr(elementary, name), *(x.astype(np.float32) for x in operands))
    assert value.dtype == np.float16
    np.testing.assert_array_equal(value, wide.astype(np.float16))


def test_coefficients_are_those_of_the_fitting_tool():
    tool = fitting.tool("fit_polynomials")
    for problem in tool.FITS:
        name = f"_{problem.name}"
        module = elementary if hasattr(elementary, name) else transcendental
        table = np.array(getattr(module, name), problem.dtype)
        _, error = tool.fit(problem)
        assert len(table) == problem.degree + 1, problem.name
        assert tool.largest_error(problem, table.tolist()) <= 1.1 * error, problem.name
