"""Matrix products of our own: float64, and float32 where there is no library."""

import numpy as np
import pytest

import monograph as mg
from monograph.runtime import openmp


@pytest.fixture(autouse=True)
def compiled():
    with mg.config.override(tier0_limit=0, disk_cache=False):
        yield


def draw(dtype, *shape):
    return np.random.default_rng(shape).standard_normal(shape).astype(dtype)


CASES = {
    "plain": ((70, 33), (33, 50), lambda a, b: a @ b),
    "several": ((4, 3, 70, 33), (4, 3, 33, 50), lambda a, b: a @ b),
    "one for all": ((70, 33), (5, 33, 50), lambda a, b: a @ b),
    "right side turned": ((2, 70, 33), (2, 50, 33), lambda a, b: a @ b.swapaxes(-1, -2)),
    "left side turned": ((33, 70), (33, 50), lambda a, b: a.swapaxes(0, 1) @ b),
    "both turned": ((40, 200), (90, 40), lambda a, b: a.swapaxes(0, 1) @ b.swapaxes(0, 1)),
    "with itself": ((60, 60), (1, 1), lambda a, b: a @ a),
    "long sums": ((20, 700), (700, 30), lambda a, b: a @ b),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("case", list(CASES))
def test_products(case, dtype):
    left, right, multiply = CASES[case]
    a, b = draw(dtype, *left), draw(dtype, *right)
    with mg.config.override(onednn=False):
        made = []
        report = mg.explain(lambda: made.append(multiply(mg.tensor(a), mg.tensor(b))))
        assert [kernel.name.split("_")[0] for kernel in report.kernels] == ["product"]
        tolerance = 1e-4 if dtype is np.float32 else 1e-11
        np.testing.assert_allclose(made[0].numpy(), multiply(a, b), tolerance, tolerance)


def test_the_same_bits_for_any_number_of_threads():
    a, b = mg.tensor(draw(np.float64, 300, 130)), mg.tensor(draw(np.float64, 130, 200))
    found = []
    for threads in (1, 2, 3):
        with mg.config.override(threads=threads):
            found.append((a @ b).numpy().tobytes())
    openmp.set_threads(mg.config.threads)
    assert len(set(found)) == 1


def test_sizes_that_vary():
    mg.stats.reset()
    for many in (20, 70, 300, 33):
        a, b = draw(np.float64, many, 40), draw(np.float64, 40, 50)
        made = mg.tensor(a) @ mg.tensor(b)
        np.testing.assert_allclose(made.numpy(), a @ b, 1e-11, 1e-11)
    assert mg.stats().compilations <= 2


def test_equal_products_share_their_code():
    a, b = mg.tensor(draw(np.float64, 64, 64)), mg.tensor(draw(np.float64, 64, 64))
    report = mg.explain(lambda: (a @ b) @ (b @ a))
    assert len(report.kernels) == 3 and len({kernel.name for kernel in report.kernels}) == 1


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_results_that_are_added_to_or_left_zero_are_no_products(dtype):
    """A transposed convolution adds several products at one place; with a stride, some get none."""
    data, weights = draw(dtype, 4, 9), draw(dtype, 4, 6, 3)
    with mg.config.override(onednn=False):
        for stride in (1, 2, 4):
            made = mg.conv_transpose1d(mg.tensor(data), mg.tensor(weights), stride=stride)
            expected = np.zeros((6, 8 * stride + 3), dtype)
            for n in range(9):
                expected[:, n * stride : n * stride + 3] += np.einsum(
                    "i,iok->ok", data[:, n], weights
                )
            np.testing.assert_allclose(made.numpy(), expected, rtol=1e-4, atol=1e-5)
