"""Policies that choose several changes, and mixtures of batches."""

import numpy as np
import pytest

import monograph as mg
from monograph.vision import transforms
from monograph.vision.transforms import batches, functional, policies

PICTURE = np.random.default_rng(0).integers(0, 256, (12, 16, 3), np.uint8)


@pytest.fixture(autouse=True)
def uncompiled():
    with mg.config.override(backend="reference"):
        yield


@pytest.mark.parametrize("policy", list(transforms.AutoAugmentPolicy))
def test_searched_policies(policy):
    mg.manual_seed(0)
    augment = transforms.AutoAugment(policy)
    assert len(augment.policies) == 25 and all(len(pair) == 2 for pair in augment.policies)
    names = {name for pair in augment.policies for name, _, _ in pair}
    assert names <= set(augment._facts(PICTURE))
    made = [augment(PICTURE) for _ in range(20)]
    assert all(x.shape == PICTURE.shape and x.dtype == np.uint8 for x in made)
    assert len({x.tobytes() for x in made}) > 3


def test_strengths_and_chances():
    augment = transforms.AutoAugment()
    augment.policies = [[("Posterize", 1.0, 8), ("Invert", 0.0, 0)]]
    expected = functional.posterize(PICTURE, 4)
    # A change of chance 0 is left out, unless 0 itself is drawn.
    assert np.array_equal(augment(PICTURE), expected)
    assert policies._pairs("Rotate 0.5 3, Invert 1")[0] == [("Rotate", 0.5, 3), ("Invert", 1.0, 0)]
    with pytest.raises(ValueError, match="not recognized"):
        transforms.AutoAugment("imagenet")


def test_mixtures_of_chains():
    mg.manual_seed(0)
    grey = np.full((8, 8, 3), 100, np.uint8)
    plain = transforms.AugMix(severity=1, all_ops=False, chain_depth=1)
    left = {"ShearX", "ShearY", "TranslateX", "TranslateY", "Rotate", "Posterize", "Solarize",
            "AutoContrast", "Equalize"}  # fmt: skip
    assert set(plain._facts(grey)) == left
    assert len(transforms.AugMix()._facts(grey)) == 13
    made = [transforms.AugMix()(PICTURE) for _ in range(10)]
    assert all(x.shape == PICTURE.shape and x.dtype == np.uint8 for x in made)
    assert len({x.tobytes() for x in made}) > 3
    with pytest.raises(ValueError, match="severity must be between"):
        transforms.AugMix(severity=11)


def test_batches_and_their_labels():
    mg.manual_seed(0)
    ones = mg.arange(1.0, 4.0).reshape(3, 1, 1, 1).expand(3, 1, 6, 8).clone()
    labels = mg.tensor([0, 1, 2])
    mixed, scores = batches.MixUp(num_classes=3)(ones, labels)
    share = scores[1, 1].item()
    assert mixed[1].mean().item() == pytest.approx(2 * share + 1 * (1 - share), abs=1e-4)
    assert scores[1, 0].item() == pytest.approx(1 - share)
    cut, scores = batches.CutMix(num_classes=3)(ones, labels)
    assert set(cut[1].flatten().tolist()) <= {1.0, 2.0}
    kept = (cut[1] == 2).float().mean().item()
    assert scores[1].tolist() == pytest.approx([1 - kept, kept, 0.0])
    with pytest.raises(ValueError, match="num_classes must be passed"):
        batches.MixUp()(ones, labels)


def test_small_ones():
    mg.manual_seed(0)
    grey = mg.full((1, 4, 4), 0.5)
    assert mg.equal(batches.RGB()(grey), grey.expand(3, 4, 4))
    noisy = batches.GaussianNoise(sigma=1.0)(grey)
    assert 0 <= noisy.min().item() < noisy.max().item() <= 1
    with pytest.raises(ValueError, match="float dtype"):
        batches.GaussianNoise()(grey.long())
    assert batches.RandomResize(5, 6)(grey).shape == (1, 5, 5)
    three = mg.arange(3.0).reshape(3, 1, 1)
    assert sorted(batches.RandomChannelPermutation()(three).flatten().tolist()) == [0.0, 1.0, 2.0]
