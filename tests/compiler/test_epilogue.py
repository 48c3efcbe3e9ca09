"""What a library call does to its result before it stores it: vectors along channels, ReLU."""

import numpy as np
import pytest

import monograph as mg
import monograph.nn.functional as F
from monograph import nn
from monograph.backends.cpu import library

pytestmark = pytest.mark.skipif(not library.available(), reason="oneDNN is absent")


@pytest.fixture(autouse=True)
def _compile_at_first_sight():
    with mg.config.override(tier0_limit=0, disk_cache=False):
        yield


def array(*shape, seed=0):
    return mg.tensor(np.random.default_rng(seed).standard_normal(shape).astype(np.float32))


def kinds(report):
    return [k.kind for k in report.kernels]


def names(report):
    return [k.name for k in report.kernels if k.kind == "library"]


def test_a_network_of_linear_layers_is_library_calls_alone():
    model = nn.Sequential(nn.Linear(64, 96), nn.ReLU(), nn.Linear(96, 48), nn.ReLU(),
                          nn.Linear(48, 10))  # fmt: skip
    x = array(32, 64)
    with mg.no_grad():
        report = mg.explain(lambda: model(x))
        found = model(x).numpy()
        with mg.config.override(backend="reference"):
            wanted = model(x).numpy()
    assert kinds(report) == ["library"] * 3
    assert report.bytes <= sum(k.least_bytes for k in report.kernels)
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


def test_training_needs_no_pass_for_bias_and_relu():
    x, target = array(32, 64), array(32, 8, seed=1)
    model = nn.Sequential(nn.Linear(64, 96), nn.ReLU(), nn.Linear(96, 8))

    def step():
        loss = F.mse_loss(model(x), target)
        return [loss, *mg.autograd.grad(loss, list(model.parameters()))]

    assert names(mg.explain(step))[0].endswith("add relu")
    found = [g.detach().numpy() for g in step()]
    with mg.config.override(backend="reference"):
        wanted = [g.detach().numpy() for g in step()]
    for mine, other in zip(found, wanted):
        np.testing.assert_allclose(mine, other, rtol=1e-4, atol=1e-6)


def test_what_is_read_before_the_relu_is_stored():
    x, w, v = array(32, 64), array(64, 48, seed=1), array(48, 16, seed=2)
    y = x @ w
    z = F.relu(y) @ v
    mg.eval(y, z)
    np.testing.assert_allclose(y.numpy(), x.numpy() @ w.numpy(), rtol=1e-4, atol=1e-4)
    wanted = np.maximum(x.numpy() @ w.numpy(), 0) @ v.numpy()
    np.testing.assert_allclose(z.numpy(), wanted, rtol=1e-4, atol=1e-3)


def test_the_order_of_vectors_is_kept():
    x, w, v = array(16, 32), array(32, 24, seed=1), array(24, 16, seed=5)
    a, b, c, d = (array(24, seed=s) + 3 for s in (2, 3, 4, 6))
    mg.synchronize()

    def step():
        return F.relu(((x @ w - a) * b + c) / d) @ v

    report = mg.explain(step)
    assert names(report)[0].endswith("sub mul add div relu")
    assert kinds(report) == ["library", "library"]
    a, b, c, d = (t.numpy() for t in (a, b, c, d))
    wanted = np.maximum(((x.numpy() @ w.numpy() - a) * b + c) / d, 0) @ v.numpy()
    np.testing.assert_allclose(step().numpy(), wanted, rtol=1e-4, atol=1e-4)


def test_a_vector_along_rows_or_on_the_left_of_a_difference_is_no_epilogue():
    x, w, v = array(16, 32), array(32, 16, seed=1), array(16, 8, seed=5)
    a = array(16, seed=2)
    mg.synchronize()
    for step in (lambda: (x @ w + a[:, None]) @ v, lambda: (a - x @ w) @ v):
        assert names(mg.explain(step))[0].count(" ") == 3
    wanted = (a.numpy() - x.numpy() @ w.numpy()) @ v.numpy()
    np.testing.assert_allclose(((a - x @ w) @ v).numpy(), wanted, rtol=1e-4, atol=1e-4)


SPECIAL = np.array([np.nan, np.inf, 0.0, 1e-40, -1e-40, -5.0, 7.0, -3e38, 3e38, -1e-38], np.float32)


def test_relu_of_special_values_after_a_product():
    x, w = np.zeros((40, 32), np.float32), np.zeros((32, 64), np.float32)
    x[:10, 0], w[0] = SPECIAL, 1
    x, w, v = mg.tensor(x), mg.tensor(w), mg.tensor(np.eye(64, dtype=np.float32))
    mg.synchronize()
    y = F.relu(x @ w)
    z = y @ v  # so that the result is an operand
    mg.eval(y, z)
    assert names(mg.explain(lambda: F.relu(x @ w) @ v))[0].endswith("relu")
    wanted = np.where(SPECIAL < 0, np.float32(0), SPECIAL)
    assert y.numpy()[:10, 3].tobytes() == wanted.tobytes()


@pytest.mark.parametrize("channels, size, stride, groups", [
    (64, 1, 1, 1), (64, 3, 1, 1), (64, 3, 2, 1), (64, 1, 2, 1), (32, 3, 1, 32), (19, 1, 1, 1),
])  # fmt: skip
def test_relu_of_special_values_after_a_convolution(channels, size, stride, groups):
    x = np.zeros((2, channels, 6, 32 * stride), np.float32)
    w = np.zeros((channels, channels // groups, size, size), np.float32)
    places = [3 * n + 1 for n in range(10)]
    x[:, : (None if groups > 1 else 1), 2 * stride, [p * stride for p in places]] = SPECIAL
    w[:, 0, size // 2, size // 2] = 1
    x, w, v = mg.tensor(x), mg.tensor(w), mg.ones(8, channels, 1, 1)
    mg.synchronize()

    def step():
        y = F.relu(F.conv2d(x, w, stride=stride, padding=size // 2, groups=groups))
        return y, F.conv2d(y, v)

    with mg.no_grad():
        report = mg.explain(lambda: step()[1])
        y = step()[0].numpy()
    assert names(report)[0].endswith("relu")
    wanted = np.where(SPECIAL < 0, np.float32(0), SPECIAL)
    for channel in (0, channels - 1):
        assert y[1, channel, 2, places].tobytes() == wanted.tobytes()
