"""Turns of a loop that Python ran share their kernels."""

import numpy as np
import pytest

import monograph as mg
from monograph import nn


def turns(count):
    """A loop over the steps of a sequence, with its gradient; the report and what it computed."""
    mg.manual_seed(0)
    cell = nn.LSTMCell(1, 64)
    data = np.random.default_rng(1).standard_normal((16, count, 1)).astype(np.float32)
    xs = mg.tensor(data)
    found = []

    def step():
        h = c = mg.zeros(16, 64)
        for n in range(count):
            h, c = cell(xs[:, n], (h, c))
        h.sum().backward()
        found[:] = [h, *[p.grad for p in cell.parameters()]]
        return found

    report = mg.explain(step)
    return report, [each.detach().numpy().copy() for each in found]


def test_more_turns_are_no_more_kernels():
    with mg.config.override(backend="cpu", disk_cache=False, tier0_limit=0):
        distinct = [
            len({k.name for k in turns(count)[0].kernels if k.kind == "generated"})
            for count in (5, 8)
        ]
    assert distinct[0] == distinct[1]


@pytest.mark.parametrize("bounds_checks", [False, True])
def test_results_are_those_of_the_reference(bounds_checks):
    with mg.config.override(backend="reference"):
        expected = turns(5)[1]
    with mg.config.override(backend="cpu", tier0_limit=0, bounds_checks=bounds_checks):
        for one, other in zip(turns(5)[1], expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def test_what_is_written_over_lies_where_it_is_read():
    """Plans are made with the places as they were: no result takes the memory of another place."""
    with mg.config.override(backend="cpu", tier0_limit=0):
        x = mg.arange(12.0)
        mg.synchronize()
        x[:6] = x[6:] * 2 + x[3:9]
        expected = np.arange(12.0)
        expected[:6] = expected[6:] * 2 + expected[3:9]
        assert x.tolist() == expected.tolist()
        parts = [(x[n : n + 4] * 3).sum() + x[n + 1] for n in range(0, 8, 2)]
        wanted = [(expected[n : n + 4] * 3).sum() + expected[n + 1] for n in range(0, 8, 2)]
        assert mg.stack(parts).tolist() == wanted
