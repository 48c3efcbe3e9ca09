"""Recurrences of shifted reads: neither compile time nor arithmetic may explode."""

import numpy as np
import pytest

import monograph as mg
from monograph.codegen.kernel import Apply, postorder, stage_values
from monograph.compiler import fuse
from monograph.recorder import current


def neighbours(x):
    return (x[1:] + x[:-1]) * 0.5


def dear(x):
    return mg.exp(-(x[1:] * x[:-1]))


def turned(x):
    return (mg.roll(x, 1) + x.reshape(16, 16).t().reshape(-1)) * 0.5


def stencil(x):
    z = x.reshape(16, 16)
    rolled = [mg.roll(z, shift, axis) for shift in (1, -1) for axis in (0, 1)]
    return (sum(rolled) * 0.25).reshape(-1)


def operations(step, count):
    """Scalar operations of all kernels of `count` steps."""
    found = []
    active = current.recorder
    active.capture = lambda _, executable, *rest: found.append(executable)
    x = mg.tensor(np.linspace(0, 1, 256, dtype=np.float32))
    with mg.config.override(disk_cache=False, tier0_limit=0):
        for _ in range(count):
            x = step(x)
        try:
            mg.eval(x)
        finally:
            active.capture = None
    (executable,) = found
    total = 0
    for lowered in executable.compilation.lowered.values():
        for stage in lowered.kernel.stages:
            total += sum(isinstance(v, Apply) for v in postorder(stage_values(stage)))
    return total


@pytest.mark.parametrize("step", [neighbours, dear, turned, stencil])
def test_work_grows_with_the_number_of_steps(step):
    short, long = operations(step, 10), operations(step, 30)
    assert long <= 4 * short
    assert long <= 30 * 60


@pytest.mark.parametrize("step", [neighbours, dear, turned, stencil])
def test_values_and_gradients(step):
    given = np.random.default_rng(0).standard_normal(256).astype(np.float32)
    results = []
    for device in ("cpu", "reference"):
        with mg.config.override(tier0_limit=0, backend=device):
            leaf = mg.tensor(given, requires_grad=True)
            y = leaf
            for _ in range(12):
                y = step(y)
            y.sum().backward()
            results.append((y.detach().numpy(), leaf.grad.numpy()))
    for found, expected in zip(*results):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_plain_programs_are_left_alone(monkeypatch):
    kept = []
    found = fuse.repeated

    def watch(nodes, is_boundary):
        kept.append(found(nodes, is_boundary))
        return kept[-1]

    monkeypatch.setattr(fuse, "repeated", watch)
    x = mg.tensor(np.ones((64, 64), np.float32))
    mg.explain(lambda: mg.softmax(x @ x, 1)[1:] + mg.nn.functional.layer_norm(x, (64,))[:-1])
    assert kept == [set()]


def test_what_two_passes_compute_is_the_same_number():
    rows = np.random.default_rng(0).standard_normal((4, 64, 65)).astype(np.float32)
    with mg.config.override(tier0_limit=0):
        a, b, c, d = map(mg.tensor, rows)
        product = a * b
        total = product + c * d
        largest = total == total.amax(1, keepdim=True)
        others = product.exp().sum(0)  # another pass, which needs the product itself
        mg.eval(largest, others)
        assert largest.sum(1).tolist() == [1] * 64


@pytest.mark.parametrize("checks", [False, True])
def test_a_scatter_waits_for_a_constant_that_is_a_result(checks):
    """The gradient of the number is 1, which the scatters of the others read where it is stored."""
    kept = []  # so that results lie in memory that nothing was written to before
    for _ in range(2):
        rows, number = mg.ones(5, 6, requires_grad=True), mg.ones((), requires_grad=True)
        places = mg.tensor([0, 2, 4]), mg.tensor([1, 3, 5])
        mg.synchronize()
        with mg.config.override(backend="cpu", tier0_limit=0, bounds_checks=checks):
            changed = rows.clone()
            changed[places] *= 0.5
            (
                number + rows[places].sum() + (changed * 2)[places].sum() + changed.tanh().sum()
            ).backward()
            found = rows.grad.numpy()
        kept += [rows.grad, number.grad, changed]
        expected = np.full((5, 6), 1 / np.cosh(1.0) ** 2)
        expected[[0, 2, 4], [1, 3, 5]] = 2 + 0.5 / np.cosh(0.5) ** 2
        np.testing.assert_allclose(found, expected, rtol=1e-5)
        assert number.grad.item() == 1
