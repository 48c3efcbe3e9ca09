"""Complex numbers against PyTorch: values, first and second derivatives, views and writes."""

import numpy as np
import pytest
import torch

import monograph as mg


@pytest.fixture(autouse=True, params=["reference", "cpu"])
def backend(request):
    with mg.config.override(backend=request.param):
        yield


def normal(seed, *shape, dtype=np.complex64):
    rng = np.random.default_rng(seed)
    values = rng.normal(size=shape)
    if np.dtype(dtype).kind == "c":
        values = values + 1j * rng.normal(size=shape)
    return values.astype(dtype)


def as_numpy(x):
    return x.detach().resolve_conj().numpy()


def by_torch(library, x):
    """The 2-norm squared of anything."""
    return (library.abs(x) ** 2).sum()


def check(program, *arrays, rtol=1e-5, second=True):
    """Values, derivatives and derivatives of those agree with PyTorch's."""
    found, expected = [], []
    for library, results in ((mg, found), (torch, expected)):
        leaves = [library.tensor(a).requires_grad_() for a in arrays]
        y = program(library, *leaves)
        complex_out = y.is_complex()
        g = normal(99, *y.shape, dtype=np.complex128 if complex_out else np.float64)
        cotangent = library.tensor(g).to(y.dtype)
        first = library.autograd.grad(y, leaves, cotangent, create_graph=True)
        results += [y, *first]
        if second:
            total = sum(by_torch(library, part) for part in first)
            if total.requires_grad:
                grads = library.autograd.grad(total, leaves, allow_unused=True)
                zeros = [library.zeros_like(leaf) for leaf in leaves]
                pairs = zip(grads, zeros, strict=True)
                results += [z if part is None else part for part, z in pairs]
    for n, (mine, theirs) in enumerate(zip(found, expected, strict=True)):
        assert mine.dtype.name == str(theirs.dtype).removeprefix("torch.")
        loose = rtol * (1 if n == 0 else 20)
        np.testing.assert_allclose(as_numpy(mine), as_numpy(theirs), rtol=loose, atol=loose)


UNARY = ["exp", "expm1", "log", "log1p", "sqrt", "rsqrt", "sin", "cos", "tanh", "abs", "angle"]
UNARY += ["sgn", "conj", "conj_physical", "reciprocal", "square", "neg", "real", "imag"]
UNARY += ["view_as_real", "clone", "sigmoid"]


@pytest.mark.parametrize("name", UNARY)
def test_functions(name):
    check(lambda m, x: getattr(m, name)(x), normal(0, 3, 5))


@pytest.mark.parametrize("name", ["exp", "log", "sqrt", "tanh", "abs"])
def test_functions_in_complex128(name):
    check(lambda m, x: getattr(m, name)(x), normal(0, 11, dtype=np.complex128), rtol=1e-12)


@pytest.mark.parametrize("name", ["add", "sub", "mul", "div", "pow"])
def test_of_two(name):
    check(lambda m, x, y: getattr(m, name)(x, y), normal(1, 4, 3), normal(2, 4, 3))
    check(lambda m, x, y: getattr(m, name)(x, y), normal(1, 4, 1), normal(2, 3))


PROGRAMS = {
    "numbers": lambda m, x: x * (2 + 3j) + 1.5 - (1j - x) / 2,
    "power of a number": lambda m, x: x**3 + 2.0 ** (x * 0.1),
    "sum": lambda m, x: x.sum(1),
    "mean": lambda m, x: x.mean(0),
    "prod": lambda m, x: x.prod(1),
    "var": lambda m, x: x.var(1),
    "views": lambda m, x: x.T[1:3] * x.T[2:4],
    "parts": lambda m, x: x.real * x.imag + x.conj().imag,
    "where": lambda m, x: m.where(x.real > 0, x, x * 2j),
    "cat": lambda m, x: m.cat([x, x * 1j], 0),
    "gather": lambda m, x: x[m.tensor([2, 0, 0])],
    "matmul": lambda m, x: x @ x.mH if m is torch else x @ mg.conj(x.T),
    "pairs": lambda m, x: m.view_as_complex(m.view_as_real(x) * 2.0),
    "cumsum": lambda m, x: m.cumsum(x * 1j, 1) * x,
    "to real": lambda m, x: x.abs().log() + x.angle(),
    "softplus of abs": lambda m, x: m.log(1 + m.exp(x.abs())),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name):
    check(PROGRAMS[name], normal(3, 4, 6), rtol=3e-5)


def test_real_and_complex_mix():
    real = normal(0, 4, 3, dtype=np.float32)
    check(lambda m, x, y: x * y + x, real, normal(1, 4, 3))
    check(lambda m, x, y: m.matmul(x.T + 0j, y), real, normal(1, 4, 3))
    check(lambda m, x: x * 1j, real)
    check(lambda m, x, y: m.complex(x, y), real, normal(2, 4, 3, dtype=np.float32))
    check(lambda m, x, y: m.polar(x, y), np.abs(real), normal(2, 4, 3, dtype=np.float32))


def test_matmul_batched_and_large():
    check(lambda m, x, y: x @ y, normal(0, 2, 33, 20), normal(1, 20, 17), rtol=1e-4, second=False)
    a, b = normal(0, 70, 64, dtype=np.complex128), normal(1, 64, 65, dtype=np.complex128)
    check(lambda m, x, y: x @ y, a, b, rtol=1e-11, second=False)


def test_special_values_do_not_spread():
    parts = [0.0, -0.0, 1.0, -2.5, 1e-30, 3e38, np.inf, -np.inf]
    z = np.array([complex(a, b) for a in parts for b in parts], np.complex64)
    for name in ("abs", "sqrt", "angle", "isnan"):
        mine = getattr(mg, name)(mg.tensor(z)).numpy()
        theirs = getattr(torch, name)(torch.tensor(z)).numpy()
        np.testing.assert_allclose(mine, theirs, rtol=2e-6, err_msg=name)
    finite = z[np.isfinite(z) & (np.abs(z) < 1e30)]
    for name in ("exp", "log", "tanh"):
        mine = getattr(mg, name)(mg.tensor(finite)).numpy()
        theirs = getattr(torch, name)(torch.tensor(finite)).numpy()
        np.testing.assert_allclose(mine, theirs, rtol=2e-6, atol=1e-7, err_msg=name)


def test_division_does_not_overflow():
    a, b = normal(0, 50) * 1e30, normal(1, 50) * 1e30
    np.testing.assert_allclose((mg.tensor(a) / mg.tensor(b)).numpy(), a / b, rtol=1e-5)


def test_comparison():
    z = mg.tensor([1 + 2j, 1 - 2j])
    assert (z == z.conj()).tolist() == [False, False]
    assert (z != 1 + 2j).tolist() == [False, True]
    assert z.bool().tolist() == [True, True]
    assert mg.isreal(mg.tensor([1j, 1 + 0j])).tolist() == [False, True]
    for compare in (lambda: z < z, lambda: z.max(), lambda: mg.sign(z), lambda: mg.floor(z)):
        with pytest.raises(NotImplementedError):
            compare()
    with pytest.raises(RuntimeError):
        mg.imag(mg.tensor([1.0]))
    with pytest.raises(RuntimeError):
        mg.complex(mg.tensor([1.0]), mg.tensor([1.0], dtype=mg.float64))


def test_writing_through_the_parts():
    for library in (mg, torch):
        z = library.tensor([1 + 2j, 3 + 4j, 5 + 6j])
        z.real[1] = 10.0
        z.imag.mul_(2.0)
        library.view_as_real(z)[2, 0] = -1.0
        z[:2] += 1j
        assert z.tolist() == [1 + 5j, 10 + 9j, -1 + 12j]
    pairs = mg.tensor([[1.0, 2.0], [3.0, 4.0]])
    mg.view_as_complex(pairs)[0] = 7 + 8j
    assert pairs.tolist() == [[7.0, 8.0], [3.0, 4.0]]


def test_parts_lie_where_those_of_torch_lie():
    for library in (mg, torch):
        z = library.tensor(normal(0, 3, 4))
        assert z.real.stride() == (8, 2) and z.imag.storage_offset() == 1
        assert z.T[1:].imag.stride() == (2, 8) and z.T[1:].imag.storage_offset() == 3
        assert library.view_as_real(z).stride() == (8, 2, 1)
        pairs = library.zeros(3, 2, 2)
        assert library.view_as_complex(pairs[1:]).storage_offset() == 2
        with pytest.raises(RuntimeError):
            library.view_as_complex(pairs.transpose(0, 2))
    z = mg.tensor([1 + 2j, 3 + 4j])
    z.imag.numpy()[:] = 7.0
    assert z.tolist() == [1 + 7j, 3 + 7j]


def test_reading():
    z = mg.tensor([1.5 + 2j])
    assert z.dtype is mg.complex64 and z.item() == 1.5 + 2j and complex(z) == 1.5 + 2j
    assert repr(z) == "tensor([1.5000+2.j])"
    assert repr(z.cdouble()) == "tensor([1.5000+2.j], dtype=monograph.complex128)"
    assert z.is_complex() and mg.is_complex(z) and z.dtype.is_complex
    assert z.type() == "monograph.ComplexFloatTensor"
    assert z.type_as(mg.tensor([1.0])).tolist() == [1.5]
    assert mg.zeros(2, dtype=mg.complex64).tolist() == [0j, 0j]
    assert mg.full((1,), 2j).dtype is mg.complex64


def test_numbers_are_slots():
    """Another complex number runs the same program."""
    x = mg.tensor([1.0, 2.0])
    mg.synchronize()
    for number in (1j, 2 + 1j):
        assert (x * number).tolist() == [number, 2 * number]
    before = mg.stats().compilations
    assert (x * (3 - 1j)).tolist() == [3 - 1j, 6 - 2j]
    assert mg.stats().compilations == before


def test_gradients_need_a_real_root():
    z = mg.tensor([1 + 2j], requires_grad=True)
    with pytest.raises(RuntimeError, match="real"):
        (z * z).sum().backward()
    (z * z).abs().sum().backward()
    theirs = torch.tensor([1 + 2j], requires_grad=True)
    (theirs * theirs).abs().sum().backward()
    np.testing.assert_allclose(z.grad.numpy(), theirs.grad.numpy(), rtol=1e-5)


def test_training_complex_weights():
    """Gradient descent on a complex matrix, as PyTorch does it."""
    a, b = normal(0, 8, 4), normal(1, 8, 3)
    losses = {}
    for library in (mg, torch):
        w = library.tensor(normal(2, 4, 3)).requires_grad_()
        for _ in range(5):
            loss = ((library.tensor(a) @ w - library.tensor(b)).abs() ** 2).mean()
            (g,) = library.autograd.grad(loss, [w])
            w = (w - 0.1 * g).detach().requires_grad_()
        losses[library.__name__] = loss.item()
    assert losses["monograph"] == pytest.approx(losses["torch"], rel=1e-5)


def test_random_numbers():
    mg.manual_seed(0)
    u, n = mg.rand(4000, dtype=mg.complex64), mg.randn(4000, dtype=mg.complex64)
    assert u.dtype is mg.complex64 and n.dtype is mg.complex64
    for part in (u.real, u.imag):
        assert part.min().item() >= 0 and abs(part.mean().item() - 0.5) < 0.02
    for part in (n.real, n.imag):
        assert abs(part.mean().item()) < 0.05 and abs(part.std().item() - 0.5**0.5) < 0.03
    assert abs((n.real * n.imag).mean().item()) < 0.05


def test_logsumexp():
    check(lambda m, x: m.logsumexp(x, 1), normal(5, 4, 6), rtol=3e-5)
