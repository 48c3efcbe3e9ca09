"""Special functions against mpmath: few units in the last place over their whole range."""

import math

import mpmath
import numpy as np
import pytest
import torch

import monograph as mg

INFINITY = float("inf")


def line(low, high, count=60):
    """Numbers from low to high that are no round ones."""
    return np.linspace(low, high, count) + 1e-3 * math.pi


WHOLE = np.concatenate([line(-8, 8), line(-0.01, 0.01, 9)])
POSITIVE = np.concatenate([line(0.01, 12), line(20, 300, 9)])
UNIT = np.concatenate([line(0.001, 0.99), np.array([1e-12, 1e-30, 1 - 1e-9])])

# name, mpmath's function, places, the largest relative error in float64
CASES = [
    ("erfc", mpmath.erfc, np.concatenate([WHOLE, line(8, 26, 20)]), 1e-14),
    ("special.erfcx", lambda x: mpmath.exp(x * x) * mpmath.erfc(x), WHOLE, 2e-14),
    ("erfinv", mpmath.erfinv, np.concatenate([UNIT[:-1], -UNIT[:-1]]), 1e-14),
    ("special.ndtr", mpmath.ncdf, np.concatenate([WHOLE, line(-35, -8, 20)]), 2e-13),
    ("special.log_ndtr", lambda x: mpmath.log(mpmath.ncdf(x)), line(-30, 6), 1e-13),
    ("lgamma", lambda x: mpmath.log(abs(mpmath.gamma(x))), line(3, 150), 1e-14),
    ("lgamma", lambda x: mpmath.log(abs(mpmath.gamma(x))), line(-5.9, -5.1, 9), 1e-12),
    ("digamma", mpmath.digamma, np.concatenate([line(2, 50), line(-9, -0.05, 31)]), 5e-13),
    ("i0", lambda x: mpmath.besseli(0, x), np.concatenate([WHOLE, POSITIVE]), 1e-13),
    ("special.i1", lambda x: mpmath.besseli(1, x), np.concatenate([WHOLE, POSITIVE]), 1e-13),
    ("special.i0e", lambda x: mpmath.besseli(0, x) * mpmath.exp(-abs(x)), WHOLE * 90, 1e-14),
    ("special.i1e", lambda x: mpmath.besseli(1, x) * mpmath.exp(-abs(x)), WHOLE * 90, 1e-14),
    ("special.modified_bessel_k0", lambda x: mpmath.besselk(0, x), POSITIVE, 1e-13),
    ("special.modified_bessel_k1", lambda x: mpmath.besselk(1, x), POSITIVE, 1e-13),
    ("special.airy_ai", mpmath.airyai, np.concatenate([line(-30, 15), line(15, 40, 9)]), 1e-11),
]  # fmt: skip
# These cross zero, so the error counts against their size around it.
WAVES = [
    ("special.bessel_j0", lambda x: mpmath.besselj(0, x), np.concatenate([WHOLE * 3, POSITIVE])),
    ("special.bessel_j1", lambda x: mpmath.besselj(1, x), np.concatenate([WHOLE * 3, POSITIVE])),
    ("special.bessel_y0", lambda x: mpmath.bessely(0, x), POSITIVE),
    ("special.bessel_y1", lambda x: mpmath.bessely(1, x), POSITIVE),
]


def found(name, x, backend, dtype):
    function = mg
    for part in name.split("."):
        function = getattr(function, part)
    with mg.config.override(backend=backend):
        return function(mg.tensor(x, dtype=dtype)).numpy()


def exact(function, x):
    with mpmath.workdps(60):
        return np.array([float(function(mpmath.mpf(float(v)))) for v in x])


@pytest.mark.parametrize("backend", ["reference", "cpu"])
@pytest.mark.parametrize(("name", "function", "x", "error"), CASES)
def test_accuracy(name, function, x, error, backend):
    wanted = exact(function, x)
    np.testing.assert_allclose(found(name, x, backend, mg.float64), wanted, rtol=error)
    single = x.astype(np.float32)
    wanted = exact(function, single)
    # A float32 result is a float64 one that is rounded.
    normal = (np.abs(wanted) > 1.2e-38) & (np.abs(wanted) < 3.4e38)
    value = found(name, single, backend, mg.float32)
    np.testing.assert_allclose(value[normal], wanted[normal], rtol=1.2e-7)


@pytest.mark.parametrize(("name", "function", "x"), WAVES)
def test_accuracy_of_waves(name, function, x):
    wanted = exact(function, x)
    np.testing.assert_allclose(found(name, x, "reference", mg.float64), wanted, atol=3e-13)


def test_ndtri_of_tiny_probabilities():
    p = np.array([1e-300, 1e-100, 1e-20, 1e-3, 0.5, 0.9])
    x = mg.special.ndtri(mg.tensor(p, dtype=mg.float64))
    np.testing.assert_allclose(exact(mpmath.ncdf, x.numpy()), p, rtol=1e-12)


def incomplete(a, x):
    """The lower incomplete gamma function by its series, with many digits."""
    with mpmath.workdps(60):
        a, x = mpmath.mpf(a), mpmath.mpf(x)
        term = total = 1 / a
        n = 0
        while term > total * mpmath.mpf(10) ** -55:
            n += 1
            term *= x / (a + n)
            total += term
        share = total * mpmath.exp(a * mpmath.log(x) - x - mpmath.loggamma(a))
        return float(share), float(1 - share)


def test_incomplete_gamma():
    random = np.random.default_rng(0)
    a = np.concatenate([random.uniform(0.001, 20, 60), 10 ** random.uniform(-3, 3, 60)])
    x = np.concatenate([random.uniform(0.001, 30, 60), a[60:] * random.uniform(0.5, 1.6, 60)])
    wanted = np.array([incomplete(*pair) for pair in zip(a, x)])
    ta, tx = mg.tensor(a, dtype=mg.float64), mg.tensor(x, dtype=mg.float64)
    for function, share in ((mg.igamma, wanted[:, 0]), (mg.igammac, wanted[:, 1])):
        value = function(ta, tx).numpy()
        plain = share > 1e-30  # below, the reference has lost its digits
        np.testing.assert_allclose(value[plain], share[plain], rtol=2e-12)


def test_incomplete_gamma_at_the_borders():
    numbers = [0.0, 1.0, INFINITY, -1.0]
    a, x = [part.ravel() for part in np.meshgrid(numbers, numbers)]
    for name in ("igamma", "igammac"):
        value = getattr(mg, name)(mg.tensor(a), mg.tensor(x)).numpy()
        wanted = getattr(torch, name)(torch.tensor(a), torch.tensor(x)).numpy()
        np.testing.assert_allclose(value, wanted.astype(value.dtype), rtol=1e-13)


def test_derivative_of_igamma_by_its_order():
    """PyTorch has none; a difference of values is the measure."""
    a = mg.tensor([0.5, 3.0, 20.0], dtype=mg.float64, requires_grad=True)
    x = mg.tensor([0.7, 2.0, 25.0], dtype=mg.float64)
    (slope,) = mg.autograd.grad(mg.igamma(a, x).sum(), a)
    step = 1e-5
    higher, lower = mg.igamma(a.detach() + step, x), mg.igamma(a.detach() - step, x)
    np.testing.assert_allclose(
        slope.numpy(), ((higher - lower) / (2 * step)).numpy(), rtol=1e-7
    )  # fmt: skip


@pytest.mark.parametrize("n", [1, 2, 5])
def test_polygamma_on_both_sides_of_zero(n):
    x = np.concatenate([line(0.1, 30, 20), line(-4.9, -0.1, 20)])
    value = mg.polygamma(n, mg.tensor(x, dtype=mg.float64)).numpy()
    np.testing.assert_allclose(value, exact(lambda v: mpmath.polygamma(n, v), x), rtol=1e-11)


def test_zeta():
    s, q = [part.ravel() for part in np.meshgrid([1.5, 2.0, 3.0, 9.5], [0.25, 1.0, 7.5, 300.0])]
    value = mg.special.zeta(mg.tensor(s, dtype=mg.float64), mg.tensor(q, dtype=mg.float64))
    with mpmath.workdps(40):
        wanted = [float(mpmath.zeta(a, b)) for a, b in zip(s, q)]
    np.testing.assert_allclose(value.numpy(), wanted, rtol=1e-13)


def test_special_has_the_names_of_pytorch():
    theirs = {name for name in torch.special.__all__}
    assert theirs <= set(dir(mg.special)), theirs - set(dir(mg.special))
