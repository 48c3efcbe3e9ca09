"""grid_sample and affine_grid against PyTorch."""

import numpy as np
import pytest
import torch

import monograph as mg
import monograph.nn.functional as F

from .test_resample import assert_same

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("aligned", [False, True])
@pytest.mark.parametrize("size", [(2, 3, 4, 5), (2, 1, 1, 3), (2, 3, 2, 4, 5)])
def test_affine_grid(size, aligned):
    rank = len(size) - 2
    theta = RNG.normal(size=(2, rank, rank + 1))
    assert_same(lambda f, theta: f.affine_grid(theta, size, align_corners=aligned), theta)


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
def test_places_far_outside(mode, padding):
    x, grid = RNG.normal(size=(2, 3, 4, 5)), RNG.normal(size=(2, 6, 3, 2)) * 4

    def function(f, x, grid):
        return f.grid_sample(x, grid, mode=mode, padding_mode=padding, align_corners=False)

    assert_same(function, x, grid)


@pytest.mark.parametrize(
    "shapes, arguments",
    [
        (((1, 1, 4, 4), (1, 2, 2, 3)), {}),
        (((1, 1, 4, 4), (2, 2, 2, 2)), {}),
        (((1, 4, 4), (1, 2, 2)), {}),
        (((1, 1, 4, 4), (1, 2, 2, 2)), {"mode": "cubic"}),
        (((1, 1, 4, 4), (1, 2, 2, 2)), {"padding_mode": "wrap"}),
        (((1, 1, 2, 4, 4), (1, 2, 2, 2, 3)), {"mode": "bicubic"}),
    ],
)
def test_errors(shapes, arguments):
    theirs, ours = [torch.zeros(s) for s in shapes], [mg.zeros(*s) for s in shapes]
    with pytest.raises((RuntimeError, ValueError)):
        torch.nn.functional.grid_sample(*theirs, align_corners=False, **arguments)
    with pytest.raises((RuntimeError, ValueError)):
        F.grid_sample(*ours, align_corners=False, **arguments)
