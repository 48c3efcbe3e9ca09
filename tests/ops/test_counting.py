"""Histograms against PyTorch; counts and different values are in test_sort."""

import numpy as np
import pytest
import torch

import monograph as mg

from .compare import numbers

X = np.random.default_rng(0).normal(size=(20, 2))


@pytest.fixture(params=("reference", "cpu"), autouse=True)
def backend(request):
    with mg.config.override(backend=request.param):
        yield request.param


def same(ours, theirs):
    np.testing.assert_allclose(numbers(ours.hist), theirs.hist.numpy(), rtol=1e-12)
    mine, expected = ours.bin_edges, theirs.bin_edges
    if isinstance(mine, mg.Tensor):
        mine, expected = [mine], [expected]
    for a, b in zip(mine, expected, strict=True):
        np.testing.assert_allclose(numbers(a), b.numpy(), rtol=1e-12)


@pytest.mark.parametrize("limits", [None, (-1.0, 1.5)])
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("density", [True, False])
def test_histograms(limits, weighted, density):
    weight = np.abs(X[:, 0]) if weighted else None
    both = []
    for library in (mg, torch):
        given = None if weight is None else library.tensor(weight)
        options = {"weight": given, "density": density}
        line = library.histogram(library.tensor(X[:, 1]), 6, range=limits, **options)
        area = None if limits is None else [*limits, *limits]
        grid = library.histogramdd(library.tensor(X), [3, 4], range=area, **options)
        both.append((line, grid))
    for ours, theirs in zip(*both, strict=True):
        same(ours, theirs)


def test_edges_belong_to_the_bin_on_their_right_and_the_last_to_both():
    points = [0.0, 1.0, 1.0, 2.0, 3.0, -1.0, float("nan")]
    for library in (mg, torch):
        edges = library.tensor([0.0, 1.0, 2.0])
        assert library.histogram(library.tensor(points), edges).hist.tolist() == [1.0, 3.0]


def test_equal_numbers_and_none():
    for data in ([1.0, 1.0], []):
        same(*(lib.histogram(lib.tensor(data, dtype=lib.float64), 4) for lib in (mg, torch)))


def test_wrong_arguments():
    for library in (mg, torch):
        x = library.ones(3, 2)
        for call in (
            lambda lib=library, x=x: lib.histogramdd(x, [2]),
            lambda lib=library, x=x: lib.histogram(x, 0),
            lambda lib=library, x=x: lib.histogram(x, 2, range=(2.0, 1.0)),
            lambda lib=library, x=x: lib.histogram(x, 2, weight=lib.ones(2)),
            lambda lib=library, x=x: lib.histogram(x * float("nan"), 2),
        ):
            with pytest.raises(RuntimeError):
                call()
