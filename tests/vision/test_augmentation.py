"""Changes of tones against their definitions, and the policies that choose among changes."""

import numpy as np
import pytest

import monograph as mg
from monograph.vision import transforms
from monograph.vision.transforms import functional as F

RANDOM = np.random.default_rng(0)
PICTURE = RANDOM.integers(0, 256, (12, 16, 3), np.uint8)
FLOATS = mg.tensor(PICTURE.transpose(2, 0, 1).astype(np.float32) / 255)


def test_bits():
    assert np.array_equal(F.posterize(PICTURE, 3), PICTURE // 32 * 32)
    assert np.array_equal(F.posterize(PICTURE, 8), PICTURE)
    assert not F.posterize(PICTURE, 0).any()
    with pytest.raises(TypeError):
        F.posterize(FLOATS, 3)
    with pytest.raises(ValueError):
        F.posterize(PICTURE, 9)


def test_negatives_of_what_is_bright():
    expected = np.where(PICTURE >= 100, 255 - PICTURE, PICTURE)
    assert np.array_equal(F.solarize(PICTURE, 100), expected)
    found = F.solarize(FLOATS, 0.5).numpy()
    assert np.allclose(found, np.where(FLOATS.numpy() >= 0.5, 1 - FLOATS.numpy(), FLOATS.numpy()))
    with pytest.raises(TypeError):
        F.solarize(FLOATS, 2.0)


def test_the_full_range():
    dull = (PICTURE // 4 + 50).astype(np.uint8)
    made = F.autocontrast(dull)
    assert made.min((0, 1)).tolist() == [0, 0, 0] and made.max((0, 1)).tolist() == [255] * 3
    order = np.argsort(dull[..., 0], axis=None, kind="stable")
    assert (np.diff(made[..., 0].reshape(-1)[order].astype(int)) >= 0).all()
    flat = np.full((4, 4), 7, np.uint8)
    assert np.array_equal(F.autocontrast(flat), flat)


def test_tones_spread_evenly():
    dark = (RANDOM.random((64, 64)) ** 4 * 255).astype(np.uint8)
    made = F.equalize(dark)
    shares = np.histogram(made, bins=4, range=(0, 256))[0] / made.size
    before = np.histogram(dark, bins=4, range=(0, 256))[0] / dark.size
    assert np.ptp(shares) < np.ptp(before) / 2
    order = np.argsort(dark, axis=None, kind="stable")
    assert (np.diff(made.reshape(-1)[order].astype(int)) >= 0).all()
    flat = np.full((4, 4), 7, np.uint8)
    assert np.array_equal(F.equalize(flat), flat)
    with pytest.raises(TypeError):
        F.equalize(FLOATS)


def test_sharpness():
    kernel = mg.tensor([[1.0, 1.0, 1.0], [1.0, 5.0, 1.0], [1.0, 1.0, 1.0]]) / 13
    blurred = mg.nn.functional.conv2d(FLOATS[:, None], kernel[None, None])[:, 0]
    found = F.adjust_sharpness(FLOATS, 0.0)
    assert np.allclose(found[:, 1:-1, 1:-1].numpy(), blurred.numpy(), atol=1e-6)
    assert np.array_equal(found[:, 0].numpy(), FLOATS[:, 0].numpy())
    assert np.array_equal(F.adjust_sharpness(PICTURE, 1.0), PICTURE)
    sharper = F.adjust_sharpness(FLOATS, 1.5)[:, 1:-1, 1:-1].numpy()
    middle = FLOATS[:, 1:-1, 1:-1].numpy()
    assert np.allclose(sharper, np.clip(1.5 * middle - 0.5 * blurred.numpy(), 0, 1), atol=1e-6)
    with pytest.raises(ValueError):
        F.adjust_sharpness(PICTURE, -1.0)


def test_gamma():
    assert np.allclose(F.adjust_gamma(FLOATS, 2.2).numpy(), FLOATS.numpy() ** 2.2, atol=1e-6)
    assert np.array_equal(F.adjust_gamma(PICTURE, 1.0), PICTURE)
    with pytest.raises(ValueError):
        F.adjust_gamma(PICTURE, -1.0)


SOMETIMES = {
    "RandomPosterize": (lambda p: transforms.RandomPosterize(3, p), lambda x: F.posterize(x, 3)),
    "RandomSolarize": (lambda p: transforms.RandomSolarize(100, p), lambda x: F.solarize(x, 100)),
    "RandomAdjustSharpness": (
        lambda p: transforms.RandomAdjustSharpness(2.0, p), lambda x: F.adjust_sharpness(x, 2.0)
    ),
    "RandomAutocontrast": (lambda p: transforms.RandomAutocontrast(p), F.autocontrast),
    "RandomEqualize": (lambda p: transforms.RandomEqualize(p), F.equalize),
}  # fmt: skip


@pytest.mark.parametrize("name", SOMETIMES)
def test_changes_that_are_made_sometimes(name):
    made, change = SOMETIMES[name]
    assert np.array_equal(made(1.0)(PICTURE), change(PICTURE))
    assert np.array_equal(made(0.0)(PICTURE), PICTURE)


@pytest.mark.parametrize("name", ["RandAugment", "TrivialAugmentWide"])
def test_policies(name):
    mg.manual_seed(0)
    policy = getattr(transforms, name)()
    results = [policy(PICTURE) for _ in range(60)]
    assert all(x.shape == PICTURE.shape and x.dtype == np.uint8 for x in results)
    changed = sum(not np.array_equal(x, PICTURE) for x in results)
    assert changed > 30  # one of fourteen changes is none
    as_tensor = policy(mg.tensor(PICTURE.transpose(2, 0, 1).copy()))
    assert tuple(as_tensor.shape) == (3, 12, 16) and as_tensor.dtype is mg.uint8


def test_strengths():
    space = transforms.RandAugment(magnitude=9)._space(331, 662, 255.0)
    assert space["TranslateX"][0][-1] == 300.0 and space["TranslateY"][0][-1] == 150.0
    assert space["Rotate"][0][15] == 15.0 and space["Rotate"][1]
    assert space["Posterize"][0][[0, 9, 30]].tolist() == [8.0, 7.0, 4.0]
    assert space["Solarize"][0][[0, 30]].tolist() == [255.0, 0.0] and not space["Solarize"][1]
    wide = transforms.TrivialAugmentWide()._space(10, 10, 1.0)
    assert wide["Posterize"][0][-1] == 2.0 and wide["ShearX"][0][-1] == 0.99
