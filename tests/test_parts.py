"""A slice of known data is a leaf of its own: writing over the whole must wait for its readers."""

import numpy as np
import pytest

import monograph as mg
from monograph.config import config


@pytest.mark.parametrize("limit", [0, 100], ids=["compiled", "interpreted"])
def test_a_part_is_read_before_the_whole_is_written_over(monkeypatch, limit):
    monkeypatch.setattr(config, "tier0_limit", limit)
    data = np.random.default_rng(0).random((64, 64), np.float32)
    x = mg.tensor(data)
    mg.synchronize()
    doubled = x[8:24] * 2
    x.mul_(0.5)
    total = doubled + (x @ x).sum()  # a kernel after the write, which reads the part
    del doubled
    halved = data * np.float32(0.5)
    np.testing.assert_allclose(total.numpy(), data[8:24] * 2 + (halved @ halved).sum(), rtol=1e-5)
    np.testing.assert_array_equal(x.numpy(), halved)
