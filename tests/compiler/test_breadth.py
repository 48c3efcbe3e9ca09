"""Kernels stay small, and their number too, however many turns a Python loop made."""

import numpy as np

import monograph as mg
from monograph import nn
from monograph.compiler.breadth import MOST_TOUCHED


def generated(report):
    return [each for each in report.kernels if each.kind == "generated"]


def buffers(kernel):
    return [line for line in kernel.source.splitlines() if line.startswith("  b")]


def narrow_cell(turns):
    """The gradient of a cell whose products are so thin that loops compute them."""
    cell = nn.LSTMCell(16, 16)
    xs = mg.zeros(8, turns, 16)
    mg.synchronize()

    def step():
        h = c = mg.zeros(8, 16)
        for n in range(turns):
            h, c = cell(xs[:, n], (h, c))
        h.sum().backward()

    return mg.explain(step)


def test_what_is_carried_backwards_is_kept_between_thin_products():
    with mg.config.override(backend="cpu", disk_cache=False, tier0_limit=0):
        few, many = generated(narrow_cell(4)), generated(narrow_cell(7))
    assert len({each.name for each in few}) == len({each.name for each in many})


def test_a_sum_of_many_arrays_is_made_of_partial_sums():
    values = np.random.default_rng(0).standard_normal((150, 70))
    parts = [mg.tensor(row) for row in values]
    mg.synchronize()

    def total():
        result = parts[0] + parts[1]
        for part in parts[2:]:
            result = result + part
        return result

    with mg.config.override(backend="cpu", disk_cache=False, tier0_limit=0):
        report = mg.explain(total)
        found = total().numpy()
    np.testing.assert_allclose(found, values.sum(0))
    kernels = generated(report)
    assert max(len(buffers(each)) for each in kernels) <= MOST_TOUCHED
    assert len({each.name for each in kernels}) <= 3  # the first, those like it, the rest


def test_many_reductions_of_one_array_are_several_kernels():
    x = mg.tensor(np.random.default_rng(0).standard_normal((6, 80)))
    rows = [mg.tensor(np.full((6, 80), float(n))) for n in range(100)]
    mg.synchronize()

    def sums():
        return [(x * row).sum(0) for row in rows]

    with mg.config.override(backend="cpu", disk_cache=False, tier0_limit=0):
        report = mg.explain(sums)
        found = [each.numpy() for each in sums()]
    for n, each in enumerate(found):
        np.testing.assert_allclose(each, n * x.numpy().sum(0))
    assert max(len(buffers(each)) for each in generated(report)) <= 2 * MOST_TOUCHED
