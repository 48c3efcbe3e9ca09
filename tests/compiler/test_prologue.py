"""Single numbers that a kernel computes before it starts."""

import numpy as np
import pytest

import monograph as mg
from monograph import nn


@pytest.fixture(autouse=True)
def _compile_at_first_sight():
    with mg.config.override(tier0_limit=0, disk_cache=False):
        yield


@pytest.mark.parametrize("name", ["Adam", "AdamW", "NAdam", "RAdam", "Adamax"])
def test_an_optimiser_counts_in_the_kernel_of_its_update(name):
    def trained(backend):
        mg.manual_seed(0)
        model = nn.Sequential(nn.Linear(5, 7), nn.Linear(7, 3))
        optimizer = getattr(mg.optim, name)(model.parameters(), lr=0.1)
        reports = []
        with mg.config.override(backend=backend):
            for n in range(1, 4):
                for p in model.parameters():
                    p.grad = p.detach() * n + 1
                mg.synchronize()
                reports.append(mg.explain(optimizer.step) if backend == "cpu" else None)
                if backend != "cpu":
                    optimizer.step()
            state = optimizer.state[model[0].weight]
            counted = state["step"].item()
            return [p.detach().numpy() for p in model.parameters()], counted, reports

    found, counted, reports = trained("cpu")
    wanted, _, _ = trained("reference")
    assert counted == 3
    for mine, other in zip(found, wanted):
        np.testing.assert_allclose(mine, other, rtol=2e-6, atol=1e-7)
    for report in reports:
        assert [k.name.partition("_")[0] for k in report.kernels] == ["update"]


def test_numbers_that_follow_from_numbers():
    x, a = mg.randn(100), mg.tensor(2.0)
    mg.synchronize()

    def step():
        b = a * 3
        c = b + 1
        return b, c, mg.relu(x * c + b)

    report = mg.explain(step)
    assert len(report.kernels) == 1
    b, c, y = step()
    assert (b.item(), c.item()) == (6.0, 7.0)
    np.testing.assert_allclose(y.numpy(), np.maximum(x.numpy() * 7 + 6, 0), atol=1e-5)


def test_the_old_number_may_be_read_beside_the_new_one():
    x, count = mg.arange(10000.0), mg.tensor(5.0)
    mg.synchronize()
    before = count + 1
    y = x * count + before
    count.copy_(before)
    mg.synchronize()
    assert count.item() == 6
    np.testing.assert_array_equal(y.numpy(), np.arange(10000, dtype=np.float32) * 5 + 6)


def test_a_number_that_two_kernels_read_is_there_for_both():
    x, a = mg.randn(64, 64), mg.tensor(2.0)
    mg.synchronize()
    b = a + 1
    total = (x * b).sum()
    y = (x @ x) * b + total
    assert b.item() == 3
    wanted = (x.numpy() @ x.numpy()) * 3 + (x.numpy() * 3).sum()
    np.testing.assert_allclose(y.numpy(), wanted, rtol=1e-3, atol=1e-3)


def test_wrong_data_leaves_the_count_alone():
    count, table = mg.tensor(1.0), mg.zeros(4, 3)
    index = mg.tensor([0, 9])
    mg.synchronize()
    more = count + 1
    y = table[index] * more
    count.copy_(more)
    with pytest.raises(IndexError):
        y.numpy()
    assert count.item() == 1


def test_bounds_are_compared_in_a_prologue_too():
    with mg.config.override(bounds_checks=True):
        x, a = mg.arange(100.0), mg.tensor(2.0)
        mg.synchronize()
        b = a + 1
        y = x * b
        assert b.item() == 3
        np.testing.assert_array_equal(y.numpy(), np.arange(100, dtype=np.float32) * 3)
