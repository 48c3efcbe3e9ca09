"""Pictures seen from aside and on rubber: against `grid_sample`, and what stays where it is."""

import numpy as np
import pytest

import monograph as mg
import monograph.nn.functional as F
from monograph.vision import transforms
from monograph.vision.transforms import warps

X = np.random.default_rng(0).random((3, 9, 12)).astype(np.float32)
CORNERS = [[0, 0], [11, 0], [11, 8], [0, 8]]


@pytest.fixture(autouse=True)
def uncompiled():
    with mg.config.override(backend="reference"):
        yield


def test_points_are_moved_to_points():
    moved = [[1, 2], [10, 0], [9, 7], [2, 8]]
    a, b, c, d, e, f, g, h = warps._coefficients(CORNERS, moved)
    for (x, y), (u, v) in zip(moved, CORNERS, strict=True):
        depth = g * x + h * y + 1
        assert (a * x + b * y + c) / depth == pytest.approx(u, abs=1e-6)
        assert (d * x + e * y + f) / depth == pytest.approx(v, abs=1e-6)
    assert np.allclose(warps.perspective(mg.tensor(X), CORNERS, CORNERS).numpy(), X, atol=1e-5)
    shifted = [[x + 2, y] for x, y in CORNERS]
    found = warps.perspective(mg.tensor(X), CORNERS, shifted).numpy()
    assert np.allclose(found[:, :, 2:], X[:, :, :-2], atol=1e-5)
    assert not found[:, :, :2].any()


@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
def test_displacements(mode):
    away = (np.random.default_rng(1).random((1, 9, 12, 2)) - 0.5).astype(np.float32) * 0.3
    grid = F.affine_grid(mg.eye(2, 3)[None], (1, 3, 9, 12), align_corners=False)
    expected = F.grid_sample(mg.tensor(X[None]), grid + mg.tensor(away), mode, align_corners=False)
    found = warps.elastic_transform(mg.tensor(X), mg.tensor(away), mode)
    assert np.allclose(found.numpy(), expected[0].numpy(), atol=1e-4)
    with pytest.raises(ValueError, match="displacement should be"):
        warps.elastic_transform(mg.tensor(X), away[:, :2])


def test_drawn_at_random():
    mg.manual_seed(0)
    picture = (X.transpose(1, 2, 0) * 255).astype(np.uint8)
    for transform in (transforms.RandomPerspective(p=1.0), transforms.ElasticTransform(20.0, 2.0)):
        made = transform(picture)
        assert made.shape == picture.shape and made.dtype == np.uint8
        assert not np.array_equal(made, picture)
    start, end = transforms.RandomPerspective.get_params(12, 9, 0.5)
    assert start == CORNERS
    assert (np.abs(np.subtract(start, end)) <= [3, 2]).all()


def test_whitening():
    matrix, mean = mg.rand(4, 4), mg.rand(4)
    x = mg.rand(2, 1, 2)
    found = transforms.LinearTransformation(matrix, mean)(x)
    assert mg.allclose(found.flatten(), (x.flatten() - mean) @ matrix, atol=1e-5)
    with pytest.raises(ValueError, match="should be square"):
        transforms.LinearTransformation(mg.ones(2, 3), mean)
    with pytest.raises(ValueError, match="incompatible shape"):
        transforms.LinearTransformation(matrix, mean)(mg.ones(1, 3))
