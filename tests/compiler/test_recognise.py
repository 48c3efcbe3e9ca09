"""Sums of products written by hand: they become contractions where that pays, and nowhere else."""

import numpy as np
import pytest

import monograph as mg
from monograph.compiler.recognise import recognise
from monograph.ir import build, dtypes, reference
from monograph.ir.node import Contract, ancestors, axis, interning


def array(*shape, seed=0):
    return mg.tensor(np.random.default_rng(seed).standard_normal(shape).astype(np.float32))


def kinds(function):
    return [kernel.kind for kernel in mg.explain(function).kernels]


def close(a, b):
    np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-4, atol=1e-4)


X, W = array(32, 48), array(48, 40, seed=1)


def test_a_product_summed_by_hand_is_a_matrix_product():
    hand = lambda: (X[:, :, None] * W[None]).sum(1)  # noqa: E731
    assert kinds(hand) == ["library"]
    close(hand(), X @ W)


def test_so_is_its_derivative():
    x, w = X.clone().requires_grad_(), W.clone().requires_grad_()
    g = array(32, 40, seed=2)

    def hand():
        return mg.autograd.grad((x[:, :, None] * w[None]).sum(1), (x, w), g)

    assert kinds(hand) == ["library"] * 2
    for a, b in zip(hand(), (g @ W.T, X.T @ g), strict=True):
        close(a, b)


def test_a_batch_of_them():
    q, k = array(2, 3, 16, 24), array(2, 3, 20, 24, seed=1)
    hand = lambda: (q[:, :, :, None] * k[:, :, None]).sum(-1)  # noqa: E731
    assert kinds(hand) == ["library"]
    close(hand(), q @ k.transpose(-1, -2))


def test_a_factor_is_computed_before_it_is_repeated():
    hand = lambda: (X[:, :, None].expand(32, 48, 40).exp() * W[None]).sum(1)  # noqa: E731
    report = mg.explain(hand)
    assert [k.kind for k in report.kernels] == ["generated", "library"]
    assert report.bytes < 32 * 48 * 40 * 4  # never over the whole domain
    close(hand(), X.exp() @ W)


def test_a_product_without_gradients_before_a_backward_pass():
    x = X.clone().requires_grad_()

    def step():
        with mg.no_grad():
            target = (X[:, :, None] * W[None]).sum(1)
        return mg.autograd.grad(((x @ W - target) ** 2).sum(), x)

    assert kinds(step).count("library") == 3


def test_complex_numbers():
    x = mg.complex(X, X)
    close(
        mg.view_as_real((x[:, :, None] * W[None]).sum(1)), mg.view_as_real(x @ mg.complex(W, W * 0))
    )


@pytest.mark.parametrize(
    "function",
    [
        lambda: (X * X).sum(1),  # no reuse
        lambda: (X * W[:, 0]).sum(1),  # a matrix and a vector
        lambda: (array(8, 32, 16) * array(8, 32)[:, :, None]).sum(1),  # as large as the product
        lambda: mg.var(X, 1),
        lambda: (X[:, :, None] + W[None]).sum(1),  # no product
        lambda: (X[:, :, None] * W[None]).amax(1),  # no sum
        lambda: (mg.ones(48, 40) * W[:1]).sum(0),
    ],
    ids=["squares", "vector", "mask", "variance", "sum", "maximum", "repeated"],
)
def test_what_stays_a_loop(function):
    assert set(kinds(function)) == {"generated"}


def test_a_product_that_others_need_is_not_computed_twice():
    def both():
        product = X[:, :, None] * W[None]
        return product, product.sum(1)

    assert kinds(both) == ["generated"]


# --- windows ------------------------------------------------------------------------------------


def windows(padded):
    """Σ over channels and places of windows of a [2, 3, 8, 8] image, times weights [4, 3, 3, 3]."""
    image = build.buffer(0, (2, 3, 8, 8), dtypes.float32)
    weight = build.buffer(1, (4, 3, 3, 3), dtypes.float32)
    places = 8 if padded else 6
    domain = (2, 4, 3, places, places, 3, 3)
    n, o, c, i, j, h, w = [axis(k, extent) for k, extent in enumerate(domain)]
    where = [n, c, i + h - int(padded), j + w - int(padded)]
    guard = build.index.reduce_guard(
        [each for e, size in zip(where, image.shape, strict=True)
         for each in build.index.within(build.index.wrap(e), size)]
    )  # fmt: skip
    taken = build.reindex(image, domain, where, guard)
    product = taken * build.reindex(weight, domain, [o, c, h, w])
    return build.reduce("add", product, (2, 5, 6))


@pytest.mark.parametrize("padded", [False, True])
def test_a_sum_over_windows_is_a_convolution(padded):
    random = np.random.default_rng(0)
    data = [random.standard_normal(s).astype(np.float32) for s in ((2, 3, 8, 8), (4, 3, 3, 3))]
    with interning():
        plain = windows(padded)
        (lifted,) = recognise([plain])
        assert isinstance(lifted, Contract)
        assert lifted.inputs[0].shape == (2, 3, 8, 8)  # read in place, not as windows
        a, b = reference.run([plain, lifted], data)
    np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def test_nothing_to_recognise_leaves_the_graph_alone():
    with interning():
        x = build.buffer(0, (4, 5), dtypes.float32)
        outputs = [build.reduce("add", x * x, (1,)), x + 1.0]
        assert all(a is b for a, b in zip(recognise(outputs), outputs, strict=True))
        assert not any(isinstance(node, Contract) for node in ancestors(recognise(outputs)))


def test_other_sizes_are_no_new_programs():
    with mg.config.override(tier0_limit=0, disk_cache=False):
        before = mg.stats().compilations
        for n in (40, 64, 7, 100, 33):
            x = array(n, 48)
            close((x[:, :, None] * W[None]).sum(1), x.detach() @ W)
        assert mg.stats().compilations - before <= 4  # two of either product
