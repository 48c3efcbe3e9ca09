"""Where contractions run: every kind of convolution and product, and no unfolded copies."""

import numpy as np
import pytest

import monograph as mg
import monograph.nn.functional as F
from monograph.backends.cpu import library
from monograph.compiler import contractions

needs_library = pytest.mark.skipif(not library.available(), reason="oneDNN is absent")

LIBRARY, LOOPS = "library", "loops"


def array(*shape, dtype=np.float32):
    made = np.random.default_rng(0).standard_normal(shape) * 4
    return mg.tensor(made.astype(dtype))


def convolutions():
    """(name, function, input, weights, options, where it runs: forward, by data, by weights)."""
    everywhere = (LIBRARY,) * 3
    for rank in (1, 2, 3):
        conv, turned = getattr(F, f"conv{rank}d"), getattr(F, f"conv_transpose{rank}d")
        x, window = (2, 16, *(9,) * rank), (3,) * rank
        # oneDNN has code for depthwise convolutions of images alone; its other is slower than loops
        depthwise = everywhere if rank == 2 else (LOOPS,) * 3
        cases = [
            ("plain", conv, (32, 16, *window), {"padding": 1}, everywhere),
            ("strided", conv, (32, 16, *window), {"stride": 2, "padding": 1}, everywhere),
            ("dilated", conv, (32, 16, *window), {"dilation": 2, "padding": 2}, everywhere),
            ("grouped", conv, (32, 4, *window), {"groups": 4, "padding": 1}, everywhere),
            ("pointwise", conv, (32, 16, *(1,) * rank), {}, everywhere),
            ("depthwise", conv, (16, 1, *window), {"groups": 16, "padding": 1}, depthwise),
            ("multiplied", conv, (32, 1, *window), {"groups": 16}, (LOOPS,) * 3),
            ("transposed", turned, (16, 32, *window), {"padding": 1}, everywhere),
            ("transposed strided", turned, (16, 32, *window), {"stride": 2}, everywhere),
            ("transposed grouped", turned, (16, 8, *window), {"groups": 4}, everywhere),
            ("transposed dilated", turned, (16, 32, *window), {"dilation": 2}, everywhere),
        ]
        for name, function, weights, options, where in cases:
            yield pytest.param(function, x, weights, options, where, id=f"{rank}-D {name}")


def place_of(report):
    """Where the contraction runs, once it is seen that nothing is unfolded for it."""
    calls = [k for k in report.kernels if k.kind == "library"]
    assert len(calls) <= 1
    return LIBRARY if calls else LOOPS


@needs_library
@pytest.mark.parametrize(("function", "x", "weights", "options", "where"), [*convolutions()])
def test_every_convolution_has_its_place(function, x, weights, options, where):
    image, kernel = array(*x).requires_grad_(), array(*weights).requires_grad_()
    fixed, still = image.detach(), kernel.detach()
    y = function(fixed, still, **options)
    dy = array(*y.shape)
    programs = (
        lambda: function(fixed, still, **options),
        lambda: mg.autograd.grad(function(image, still, **options), image, dy),
        lambda: mg.autograd.grad(function(fixed, kernel, **options), kernel, dy),
    )
    bytes_of_all = 4 * (fixed.numel() + still.numel() + y.numel())
    for program, expected in zip(programs, where):
        report = mg.explain(program)
        assert place_of(report) == expected
        # Operands and results are at most copied to another order; windows would be 3^rank times.
        copies = [k for k in report.kernels if k.kind == "generated"]
        assert all(k.bytes <= 2 * bytes_of_all for k in copies)


PRODUCTS = {
    "matrices": ("ij,jk->ik", (32, 64), (64, 48)),
    "transposed": ("ji,kj->ik", (64, 32), (48, 64)),
    "batched": ("bij,bjk->bik", (4, 32, 64), (4, 64, 48)),
    "broadcast": ("bij,jk->bik", (4, 32, 64), (64, 48)),
    "heads": ("bthd,bshd->bhts", (2, 32, 4, 16), (2, 32, 4, 16)),
    "several sums": ("iab,abk->ik", (32, 8, 16), (8, 16, 48)),
}


@needs_library
@pytest.mark.parametrize("name", PRODUCTS)
def test_products_of_floats_go_to_the_library(name):
    equation, a, b = PRODUCTS[name]
    left, right = array(*a), array(*b)
    assert place_of(mg.explain(lambda: mg.einsum(equation, left, right))) == LIBRARY


@pytest.mark.parametrize("dtype", [np.float64, np.int64, np.int32])
@pytest.mark.parametrize("name", PRODUCTS)
def test_other_products_are_loops_without_copies(name, dtype):
    equation, a, b = PRODUCTS[name]
    left, right = array(*a, dtype=dtype), array(*b, dtype=dtype)
    report = mg.explain(lambda: mg.einsum(equation, left, right))
    assert place_of(report) == LOOPS
    assert len(report.kernels) == 1
    assert report.bytes <= 1.1 * report.least_bytes
    with mg.config.override(tier0_limit=0):
        found = mg.einsum(equation, left, right).numpy()
    expected = np.einsum(equation, left.numpy(), right.numpy())
    np.testing.assert_allclose(found, expected, rtol=1e-10)


@needs_library
def test_a_product_with_a_vector_is_loops():
    matrix, vector = array(64, 64), array(64)
    assert place_of(mg.explain(lambda: matrix @ vector)) == LOOPS


THIN = {  # of few rows: loops where they run along neighbours
    "rows": ("mk,kn->mn", (4, 256), (256, 256), LOOPS),
    "rows, transposed": ("mk,nk->mn", (4, 256), (256, 256), LOOPS),
    "columns, transposed": ("mk,nk->mn", (256, 256), (4, 256), LOOPS),
    "columns": ("mk,kn->mn", (256, 256), (256, 4), LIBRARY),
    "sums": ("km,kn->mn", (4, 256), (4, 256), LOOPS),
    "more rows": ("mk,kn->mn", (8, 256), (256, 256), LIBRARY),
}


@needs_library
@pytest.mark.parametrize("name", THIN)
def test_thin_products(name):
    equation, a, b, where = THIN[name]
    left, right = array(*a), array(*b)
    assert place_of(mg.explain(lambda: mg.einsum(equation, left, right))) == where
    with mg.config.override(tier0_limit=0):
        found = mg.einsum(equation, left, right).numpy()
    expected = np.einsum(equation, left.numpy(), right.numpy())
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-3)


@needs_library
@pytest.mark.parametrize("channels", [3, 16])
def test_gradients_that_are_one_array_lie_plain_both(channels):
    x, y = (array(2, channels, 6, 5).requires_grad_() for _ in range(2))
    with mg.config.override(tier0_limit=0):
        mg.square(F.conv2d(x + y, array(8, channels, 3, 3))).sum().backward()
        mg.synchronize()
        z = (x + y).detach().requires_grad_()
        mg.square(F.conv2d(z, array(8, channels, 3, 3))).sum().backward()
        for gradient in (x.grad, y.grad):
            np.testing.assert_allclose(gradient.numpy(), z.grad.numpy(), rtol=1e-4, atol=1e-2)


def test_contractions_behind_each_other_are_exchanged_at_once(monkeypatch):
    """A pass over the graph for each of a chain's contractions took minutes for deep networks."""
    calls = []

    def counted(graph, replaced):
        calls.append(len(replaced))
        return exchange(graph, replaced)

    exchange = contractions._replace
    monkeypatch.setattr(contractions, "_replace", counted)
    weights = [array(4, 4, 3, dtype=np.float64) / 40 for _ in range(10)]
    x = image = array(2, 4, 9, dtype=np.float64)
    x.requires_grad_()
    for w in weights:
        x = F.relu(F.conv1d(x, w, padding=1)) + x
    gradient = mg.autograd.grad(x.sum(), image)[0].numpy()
    assert sum(calls) >= 20 and len(calls) <= 4

    with mg.config.override(backend="reference"):
        y = again = mg.tensor(image.detach().numpy()).requires_grad_()
        for w in weights:
            y = F.relu(F.conv1d(y, w, padding=1)) + y
        expected = mg.autograd.grad(y.sum(), again)[0].numpy()
    np.testing.assert_allclose(gradient, expected, rtol=1e-12)
