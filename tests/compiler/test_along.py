"""Functions along an axis inside programs: kernels where there are, NumPy elsewhere."""

import numpy as np
import pytest

import monograph as mg
import monograph.nn.functional as F


@pytest.fixture(autouse=True)
def _compile_at_first_sight():
    with mg.config.override(backend="cpu", tier0_limit=0, disk_cache=False):
        yield


def normal(*shape, seed=0):
    return mg.tensor(np.random.default_rng(seed).standard_normal(shape).astype(np.float32))


FUNCTIONS = {
    "sort": lambda x: mg.sort(x, 0).values,
    "argsort": lambda x: mg.argsort(x, 1, descending=True),
    "topk": lambda x: mg.topk(x, 3).values,
    "kthvalue": lambda x: mg.kthvalue(x, 2).values,
    "median": lambda x: mg.median(x, 1).values,
    "cumsum": lambda x: mg.cumsum(x, 0),
    "cumprod": lambda x: mg.cumprod(x, 1),
    "logcumsumexp": lambda x: mg.logcumsumexp(x, 0),
    "cummax": lambda x: mg.cummax(x, 0).values,
    "cummin": lambda x: mg.cummin(x, 1).indices,
    "half": lambda x: mg.cumsum(x.bfloat16(), 1).float(),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_nothing_runs_on_the_host(name):
    x, run = normal(40, 70), FUNCTIONS[name]
    mg.synchronize()
    report = mg.explain(lambda: run(x * 2) + 1)
    assert report.kernels and not any(k.on_host for k in report.kernels)
    made = run(x * 2).numpy()
    with mg.config.override(backend="reference"):
        np.testing.assert_allclose(made, run(x * 2).numpy(), rtol=1e-5, atol=1e-5)


def test_a_running_sum_along_any_axis_moves_each_element_once():
    x = normal(64, 32, 48)
    mg.synchronize()
    for dim in range(3):
        report = mg.explain(lambda: mg.cumsum(x, dim))  # noqa: B023
        assert len(report.kernels) == 1
        assert report.bytes <= 1.1 * report.least_bytes


def test_the_values_of_running_extremes_are_not_gathered():
    x, line = normal(30, 200), normal(1, 300)
    mg.synchronize()
    for way in (lambda: mg.cummax(x, 1), lambda: mg.cummax(line, 1)):
        report = mg.explain(way)
        assert sorted(k.name.partition("_")[0] for k in report.kernels) == ["argmax", "max"]
    leaf = x.detach().clone().requires_grad_()
    mg.cummin(leaf, 0).values.sum().backward()
    wanted = np.zeros((30, 200), np.float32)
    places = mg.cummin(x, 0).indices.numpy()
    np.add.at(wanted, (places, np.arange(200)[None, :].repeat(30, 0)), 1)
    np.testing.assert_array_equal(leaf.grad.numpy(), wanted)


@pytest.mark.parametrize("dim", [0, 1])
def test_the_derivative_of_a_running_product_is_a_recurrence(dim):
    x = normal(50, 60).requires_grad_()
    mg.synchronize()
    report = mg.explain(lambda: mg.autograd.grad(mg.cumprod(x, dim).square().sum(), x))
    # The product, what is asked of it, the factors one place on, the recurrence, the result.
    assert len(report.kernels) <= 5 and not any(k.on_host for k in report.kernels)


def test_a_running_sum_backwards_moves_each_element_once():
    x, g = normal(64, 48).requires_grad_(), normal(64, 48, seed=1)
    mg.synchronize()
    for dim in (0, 1):
        report = mg.explain(lambda: mg.autograd.grad(mg.cumsum(x, dim), x, g))  # noqa: B023
        assert len(report.kernels) == 1
        assert report.bytes <= 1.1 * report.least_bytes


def test_arrays_that_lie_channels_last_are_left_to_numpy():
    x, w = normal(2, 8, 8, 8), normal(16, 8, 3, 3, seed=1)
    v = normal(4, 16, 1, 1, seed=2)
    mg.synchronize()

    def run():
        y = F.conv2d(x, w, padding=1)
        return mg.cumsum(y, 2).sum(1), F.conv2d(y, v)

    with mg.no_grad():
        found = [t.numpy() for t in run()]
        with mg.config.override(backend="reference"):
            wanted = [t.numpy() for t in run()]
    for mine, other in zip(found, wanted):
        np.testing.assert_allclose(mine, other, rtol=1e-4, atol=1e-4)


def test_inside_a_loop():
    def turn(h, x):
        h = mg.sort(h + x, 0).values
        return h, mg.cumsum(h, 0)

    xs, h = normal(5, 9), normal(9, seed=1)
    last, stacked = mg.scan(turn, h, xs)
    wanted, rows = h.numpy(), []
    for x in xs.numpy():
        wanted = np.sort(wanted + x)
        rows.append(np.cumsum(wanted))
    np.testing.assert_allclose(last.numpy(), wanted, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(stacked.numpy(), np.stack(rows), rtol=1e-5, atol=1e-5)


def test_single_precision_adds_up_in_double():
    x = np.full(200_000, 0.1, np.float32)
    found = mg.cumsum(mg.tensor(x), 0).numpy()
    np.testing.assert_array_equal(found, np.cumsum(x, dtype=np.float64).astype(np.float32))


def test_the_same_bits_for_any_number_of_threads():
    x = normal(3, 5000)
    mg.synchronize()
    found = []
    for threads in (1, 2):
        with mg.config.override(threads=threads):
            found.append((mg.argsort(x, 1).numpy(), mg.cumsum(x, 1).numpy()))
    for a, b in zip(*found):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("backend", ["cpu", "reference"])
def test_nan_of_a_16_bit_float_comes_last(backend):
    with mg.config.override(backend=backend):
        x = mg.tensor([2.0, float("nan"), -1.0, float("nan"), 0.5] * 8).bfloat16()
        assert mg.argsort(x)[-16:].tolist() == [n for n in range(40) if n % 5 in (1, 3)]
        assert mg.topk(x, 3).values.isnan().all().item()


# --- sizes that vary ------------------------------------------------------------------------------

SHAPES = [(4, 70), (9, 101), (13, 33), (30, 260), (5, 4), (3, 1000)]
OPEN = {
    **FUNCTIONS,
    "many": lambda x: mg.topk(x, 1 + x.shape[1] // 2, largest=False).indices,
    "wide": lambda x: mg.sort(x.double(), 1).indices,
    "integers": lambda x: mg.cumsum((x * 10).long(), 0),
    "bytes": lambda x: mg.sort((x * 10).to(mg.int8), 1, descending=True).values,
    "extremes": lambda x: mg.cummax(x, 1).values,
    "ties": lambda x: mg.argsort(x.round(), 1, stable=True),
}


def agrees(run, shape, seed):
    """Run on the CPU and by the reference; the compilations that the CPU needed."""
    x = np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
    mg.stats.reset()
    found = run(mg.tensor(x) * 2).numpy()
    compilations = mg.stats().compilations
    with mg.config.override(backend="reference"):
        np.testing.assert_allclose(found, run(mg.tensor(x) * 2).numpy(), rtol=1e-4, atol=1e-5)
    return compilations


@pytest.mark.parametrize("name", OPEN)
def test_one_program_for_many_sizes(name):
    """The first sizes are constants; from the second on there is one program for all."""
    made = [agrees(OPEN[name], shape, n) for n, shape in enumerate(SHAPES)]
    assert made == [1, 1, 0, 0, 0, 0]


def test_derivatives_for_many_sizes():
    def run(x):
        x = x.detach().requires_grad_()
        ordered = mg.cumsum(mg.sort(x, 1).values, 0) * mg.cummax(x / 4, 1).values
        ordered = ordered + mg.cumprod(x, 0) - mg.cumprod(x / 2, 1)
        (ordered.sum() + mg.topk(x, 2).values.prod(1).sum()).backward()
        return x.grad

    made = [agrees(run, shape, n) for n, shape in enumerate(SHAPES)]
    assert made == [1, 1, 0, 0, 0, 0]


def test_logarithms_of_totals_compile_once_for_many_sizes():
    mg.stats.reset()
    for n in range(20, 26):
        x = normal(n, 30 + n, seed=n).requires_grad_()
        made = mg.logcumsumexp(x, 1)
        made[:, -1].sum().backward()  # a softmax
        wanted = np.logaddexp.accumulate(x.detach().numpy(), 1)
        np.testing.assert_allclose(made.detach().numpy(), wanted, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(x.grad.numpy().sum(1), np.ones(n), rtol=1e-5)
    assert mg.stats().compilations <= 3
