"""Rules of arithmetic: dtypes that come out, what is refused, borders. PyTorch is asked.

Each expression is evaluated with both libraries, `t`, `i`, `b`, … standing for tensors of each.
They must give the same dtype and values, or raise the same class of exception.
"""

import numpy as np
import pytest
import torch

import monograph as mg

FLOATS = [1.0, -2.5, 0.0, 3.0]
INTEGERS = [7, -3, 1, 2]
SMALL = [200, 3, 255, 1]
TRUTH = [True, False, True, True]

EXPRESSIONS = """
b + b
b * b
b - b
b - 1
1 - b
b - 1.5
i - True
-b
+b
+t
~t
~b
abs(b)
L.sign(b)
L.square(b)
L.sqrt(b)
b | b
b & i
b ^ 1
t & t
u + u
u * 2
u - 201
-u
u // 7
u % 7
h + t
h + d0
h * 2.5
i + 1.5
i * True
i / 2
i // 2
i // -2
i % -4
i % 2.5
t // 0.7
t % 0.7
t // i
7 // i
7 % i
7 / i
2 ** i0
2 ** b
i ** 2
i ** 2.0
i ** -1
u ** 3
t ** 2
t ** 3
t ** 0.5
t ** -1
t ** i
b ** 2
b ** b
L.pow(i, t)
L.pow(2, 3)
L.float_power(i, 2)
L.float_power(h, 2)
L.float_power(2, 3)
L.add(t, i, alpha=2)
L.add(i, i, alpha=1.5)
L.add(t, t, alpha=True)
L.add(b, b, alpha=True)
L.add(i, t, alpha=0.5)
L.sub(i, i, alpha=2)
L.sub(i, b)
L.rsub(i, 2, alpha=3)
L.rsub(b, b)
L.div(i, 2, rounding_mode='floor')
L.div(i, -2, rounding_mode='trunc')
L.div(t, 0.7, rounding_mode='floor')
L.div(t, 0.7, rounding_mode='trunc')
L.div(i, 2, rounding_mode='up')
L.div(b, b)
L.div(b, b, rounding_mode='floor')
L.floor_divide(b, b)
L.remainder(b, b)
L.remainder(2, 3)
L.fmod(t, 0.7)
L.fmod(i, -2)
L.fmod(2, t)
L.fmod(b, b)
i << 2
i >> 1
i << 70
i << -1
(-i) >> 70
(-i) >> -2
u << 9
u >> 9
t << 2
b << 1
b << b
2 << i0
L.gcd(i, i)
L.gcd(i, 4)
L.gcd(b, b)
L.gcd(t, t)
L.lcm(i, u)
L.maximum(t, 2)
L.maximum(b, b)
L.maximum(i, t)
L.fmax(i, t)
L.fmin(t, 2)
L.clamp(i, 0.5)
L.clamp(i, 0, 2)
L.clamp(t)
L.clamp(i, min=d0)
L.clamp_min(i, 0.5)
L.clamp_max(2, i)
L.eq(2, t)
L.eq(t, 1)
L.lt(i, 2.5)
L.logical_and(t, 2)
L.logical_xor(t, i)
L.lerp(t, t, i)
L.lerp(t, d, 0.5)
L.lerp(t, t * 2, 0.75)
L.addcmul(t, i, i)
L.addcmul(i, i, i, value=0.5)
L.addcmul(h, t, t)
L.addcdiv(i, i, i)
L.addcdiv(t, t, i, value=2)
L.masked_fill(t, i, 1)
L.masked_fill(t, b, t)
L.masked_fill(i, b, 1.5)
L.masked_fill(t, b, 1j)
L.fill(t, 2)
L.fill(i, 2.5)
L.fill(t, t)
L.copysign(i, i)
L.copysign(b, t)
L.copysign(2, t)
L.hypot(i, i)
L.hypot(t, i)
L.nextafter(t, i)
L.nextafter(i, i)
L.heaviside(t, t)
L.heaviside(t, i)
L.ldexp(i, i)
L.ldexp(t, 2)
L.frexp(t)
L.frexp(i)
L.round(t, decimals=1)
L.round(i, decimals=1)
L.ceil(b)
L.trunc(i)
L.frac(i)
L.frac(t)
L.logaddexp(i, i)
L.logaddexp(t, d)
L.xlogy(2, t)
L.xlogy(i, i)
L.xlogy(2, 3)
L.atan2(t, 2)
L.atan2(i, i)
L.deg2rad(i)
L.nan_to_num(i)
L.isclose(t, i)
L.isclose(t, t, rtol=-1.0)
L.isclose(b, b)
L.isin(t, 3)
L.isin(1, t)
L.isin(t, i)
L.isin(1, 2)
L.isin(i, i, invert=True)
L.equal(t, i)
L.equal(t, t[:2])
L.allclose(t, d)
L.polygamma(-1, t)
L.mvlgamma(t + 5, 0)
t.add_(1.5)
i.add_(1.5)
b.add_(1)
i.div_(2)
i.div_(2, rounding_mode='floor')
i.mul_(t)
t.eq_(1)
i.lt_(2)
t.logical_not_()
i.exp_()
t.fill_(3)
t.zero_()
L.zero_(t)
i.pow_(2)
t.clip_(0, 1)
t.subtract_(1)
t.multiply_(2)
i.bitwise_left_shift_(1)
t.__rdiv__(2)
t.__rpow__(2)
i.__rfloordiv__(7)
t.clone(memory_format=None)
t == None
t != 'x'
""".strip().splitlines()


def operands(library):
    make = library.tensor
    return {
        "L": library,
        "t": make(FLOATS),
        "i": make(INTEGERS),
        "i0": make([0, 1, 2, 3]),
        "b": make(TRUTH),
        "u": make(SMALL, dtype=library.uint8),
        "h": make(FLOATS, dtype=library.float16),
        "d": make(FLOATS, dtype=library.float64),
        "d0": make(1.5, dtype=library.float64),
    }


def outcome(expression, library):
    """The values and dtypes that an expression gives, or the exception that it raises."""
    try:
        made = eval(expression, operands(library))
    except Exception as problem:
        return problem
    parts = made if isinstance(made, tuple) else (made,)
    return [
        (str(p.dtype).split(".")[-1], np.asarray(p.numpy())) if hasattr(p, "dtype") else p
        for p in parts
    ]


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_as_pytorch(expression):
    expected = outcome(expression, torch)
    found = outcome(expression, mg)
    if isinstance(expected, Exception):
        kind = next(k for k in type(expected).__mro__ if k.__module__ == "builtins")
        assert isinstance(found, kind), f"{found!r}, PyTorch raises {kind.__name__}: {expected}"
        return
    assert not isinstance(found, Exception), repr(found)
    assert len(found) == len(expected)
    for ours, theirs in zip(found, expected):
        if not isinstance(theirs, tuple):
            assert ours is theirs or ours == theirs
            continue
        assert ours[0] == theirs[0]
        np.testing.assert_allclose(
            ours[1].astype(np.float64), theirs[1].astype(np.float64), rtol=2e-6
        )


FLOOR = [(5.0, np.inf), (-5.0, np.inf), (-0.0, 2.0), (0.3, 0.1), (7.0, 0.0), (-7.0, 0.0)]


@pytest.mark.parametrize("backend", ["reference", "cpu"])
def test_floor_division_of_floats(backend):
    """As Python's //, also where the quotient rounds up to an integer, and at infinities."""
    a, b = [np.array(part) for part in zip(*FLOOR)]
    wanted = torch.floor_divide(torch.tensor(a), torch.tensor(b)).numpy()
    with mg.config.override(backend=backend):
        found = mg.floor_divide(mg.tensor(a), mg.tensor(b)).numpy()
    np.testing.assert_array_equal(found, wanted)
    np.testing.assert_array_equal(np.signbit(found), np.signbit(wanted))


@pytest.mark.parametrize("exponent", [2, 0.5, -1, 2.0])
def test_common_powers_are_computed_as_what_they_are(exponent):
    x = mg.tensor([1.5, 2.0, 4.0], requires_grad=True)
    y = x**exponent
    np.testing.assert_allclose(y.tolist(), [v**exponent for v in (1.5, 2.0, 4.0)], rtol=1e-7)
    (gradient,) = mg.autograd.grad(y.sum(), x)
    slope = [exponent * v ** (exponent - 1) for v in (1.5, 2.0, 4.0)]
    np.testing.assert_allclose(gradient.numpy(), slope, rtol=1e-6)


class Scale:
    """What knows how to be multiplied with a tensor, and nothing else."""

    def __rmul__(self, other):
        return other * 2 + 1

    def __radd__(self, other):
        return "added"


@pytest.mark.parametrize(
    "expression",
    [
        "'ab' * t", "t * 'ab'", "'ab' + t", "[1] * t", "t + [1, 2]", "[1] + t", "None * t",
        "t - None", "{} / t", "t @ 'a'", "t ** 'a'", "'a' ** t", "t // 'a'", "i & 'a'", "i << 'a'",
        "{1} | i", "object() * t", "'ab' * i0", "(1, 2) * i0", "b'x' * i0", "t * Scale()",
        "t + Scale()", "t - Scale()", "t.__mul__('a')", "t.__imul__('a')", "t.__radd__(None)",
    ],
)  # fmt: skip
def test_what_is_no_operand_is_asked_by_python(expression):
    found = []
    for library in (mg, torch):
        names = {"t": library.tensor(FLOATS), "i": library.tensor(INTEGERS),
                 "i0": library.tensor(3), "Scale": Scale}  # fmt: skip
        try:
            made = eval(expression, names)
        except Exception as problem:
            made = isinstance(problem, TypeError)
        found.append(made.tolist() if hasattr(made, "tolist") else made)
    assert found[0] == found[1]


QUOTIENTS = {
    "//": lambda m, x, y: x // y,
    "by a number": lambda m, x, y: x // 2,
    "of a number": lambda m, x, y: 7 // x,
    "in place": lambda m, x, y: (x * 1).floor_divide_(y),
    "within more": lambda m, x, y: (x // y) * x,
    "not on the way": lambda m, x, y: ((x // y).detach() + x) * y,
    "div": lambda m, x, y: m.div(x, y, rounding_mode="floor") * y,
    "remainder": lambda m, x, y: m.remainder(x, y),
    "%": lambda m, x, y: x % 2,
    "fmod": lambda m, x, y: m.fmod(x, y),
}


@pytest.mark.parametrize("name", QUOTIENTS)
def test_derivatives_of_quotients_without_a_rest(name):
    """`//` has none, which a backward pass that comes by says; the others have PyTorch's."""
    found = []
    for library in (mg, torch):
        x = library.tensor([5.5, -5.5, 3.0, 7.0], requires_grad=True)
        y = library.tensor([2.0, 2.0, -1.5, 3.5], requires_grad=True)
        made = QUOTIENTS[name](library, x, y)
        assert made.requires_grad
        try:
            made.sum().backward()
            found.append([made.tolist(), x.grad.tolist(), y.grad and y.grad.tolist()])
        except RuntimeError as problem:
            found.append("is not implemented" in str(problem))
    assert found[0] == found[1]
