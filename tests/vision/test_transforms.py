"""Transforms against PyTorch's resampling and against what can be said of their results."""

import numpy as np
import pytest
import torch as pytorch

import monograph as mg
import monograph.torch as torch
from monograph import nn
from monograph.vision import transforms
from monograph.vision.transforms import functional as F

RANDOM = np.random.default_rng(0)
PICTURE = RANDOM.integers(0, 256, (20, 30, 3), np.uint8)
GREY = RANDOM.integers(0, 256, (20, 30), np.uint8)


def test_pictures_become_tensors():
    x = transforms.ToTensor()(PICTURE)
    assert x.shape == (3, 20, 30) and x.dtype is mg.float32
    assert np.array_equal(x.numpy(), PICTURE.transpose(2, 0, 1).astype(np.float32) / 255)
    assert transforms.ToTensor()(GREY).shape == (1, 20, 30)
    assert transforms.PILToTensor()(PICTURE).dtype is mg.uint8
    assert np.array_equal(F.to_pil_image(x), PICTURE)


def test_normalising():
    chain = transforms.Compose(
        [transforms.ToTensor(), transforms.Normalize((0.5, 0.4, 0.3), (0.1, 0.2, 0.3))]
    )
    expected = (PICTURE / 255.0 - (0.5, 0.4, 0.3)) / (0.1, 0.2, 0.3)
    assert np.allclose(chain(PICTURE).numpy(), expected.transpose(2, 0, 1), atol=1e-5)
    x = mg.rand(3, 4, 4, requires_grad=True)
    F.normalize(x, (0.5,) * 3, (0.25,) * 3).sum().backward()
    assert x.grad.tolist() == mg.full((3, 4, 4), 4.0).tolist()
    with pytest.raises(ValueError, match="division by zero"):
        F.normalize(mg.rand(3, 4, 4), (0.5,) * 3, (0.0,) * 3)
    with pytest.raises(RuntimeError, match="1 channels"):  # three means for a grey picture
        F.normalize(mg.rand(1, 4, 4), (0.5,) * 3, (0.5,) * 3)
    assert F.normalize(mg.ones(2, 1, 1), [0.5], [0.5]).flatten().tolist() == [1.0, 1.0]


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
@pytest.mark.parametrize("size", [(10, 12), (33, 45), (20, 7)])
def test_resizing_is_that_of_pytorch(mode, size):
    x = RANDOM.random((3, 20, 30), np.float32)
    expected = pytorch.nn.functional.interpolate(
        pytorch.tensor(x)[None], size, mode=mode, antialias=True, align_corners=False
    )[0]
    found = F.resize(mg.tensor(x), size, transforms.InterpolationMode(mode))
    assert np.allclose(found.numpy(), expected.numpy(), atol=1e-5)


def test_one_number_is_the_shorter_side():
    assert F.resize(PICTURE, 10).shape == (10, 15, 3)
    assert F.resize(mg.zeros(3, 30, 20), 10).shape == (3, 15, 10)
    assert F.resize(PICTURE, 10, max_size=12).shape == (8, 12, 3)


def test_cropping_padding_and_flipping():
    assert np.array_equal(F.center_crop(PICTURE, 10), PICTURE[5:15, 10:20])
    assert np.array_equal(F.crop(PICTURE, 1, 2, 3, 4), PICTURE[1:4, 2:6])
    assert F.center_crop(PICTURE, (25, 35)).shape == (25, 35, 3)
    assert np.array_equal(F.pad(GREY, (1, 2, 3, 4)), np.pad(GREY, ((2, 4), (1, 3))))
    assert F.pad(PICTURE, 1, fill=7)[0, 0].tolist() == [7, 7, 7]
    assert np.array_equal(F.hflip(PICTURE), PICTURE[:, ::-1])
    assert np.array_equal(F.vflip(mg.tensor(GREY)[None]).numpy()[0], GREY[::-1])


def test_turning():
    assert np.array_equal(F.rotate(PICTURE, 90, expand=True), np.rot90(PICTURE))
    assert np.array_equal(F.rotate(PICTURE, 180), PICTURE[::-1, ::-1])
    assert np.array_equal(F.affine(PICTURE, 0, (2, 3), 1.0, 0)[3:, 2:], PICTURE[:-3, :-2])


def test_colours():
    assert F.adjust_brightness(PICTURE, 0.0).max() == 0
    assert np.array_equal(F.adjust_contrast(PICTURE, 1.0), PICTURE)
    grey = F.adjust_saturation(PICTURE, 0.0)
    assert np.ptp(grey, axis=2).max() == 0
    assert np.abs(F.adjust_hue(F.adjust_hue(PICTURE, 0.25), -0.25).astype(int) - PICTURE).max() <= 3
    assert F.rgb_to_grayscale(PICTURE).shape == (20, 30)
    assert np.array_equal(F.invert(F.invert(PICTURE)), PICTURE)
    assert np.allclose(F.gaussian_blur(np.full((9, 9), 77, np.uint8), 5), 77)


def test_random_transforms_follow_the_seed():
    chain = transforms.Compose(
        [
            transforms.RandomResizedCrop(16), transforms.RandomHorizontalFlip(),
            transforms.ColorJitter(0.4, 0.4, 0.4, 0.1), transforms.RandomRotation(20),
            transforms.RandomAffine(10, (0.1, 0.1), (0.9, 1.1), 5),
            transforms.RandomGrayscale(0.5), transforms.GaussianBlur(3), transforms.ToTensor(),
            transforms.RandomErasing(0.5),
        ]
    )  # fmt: skip
    torch.manual_seed(3)
    first = [chain(PICTURE).numpy() for _ in range(4)]
    torch.manual_seed(3)
    second = [chain(PICTURE).numpy() for _ in range(4)]
    assert all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))
    assert not np.array_equal(first[0], first[1])
    assert all(a.shape == (3, 16, 16) for a in first)


def test_random_crops_stay_inside():
    crop = transforms.RandomCrop(8, padding=2)
    assert all(crop(PICTURE).shape == (8, 8, 3) for _ in range(20))
    with pytest.raises(ValueError, match="larger than input"):
        transforms.RandomCrop(40)(PICTURE)
    five = transforms.FiveCrop(5)(PICTURE)
    assert len(five) == 5 and np.array_equal(five[3], PICTURE[-5:, -5:])


def test_conversions_keep_the_range():
    x = mg.tensor(PICTURE.transpose(2, 0, 1).copy())
    assert F.convert_image_dtype(x, mg.float32).max().item() <= 1.0
    back = F.convert_image_dtype(F.convert_image_dtype(x, mg.float32), mg.uint8)
    assert np.abs(back.numpy().astype(int) - x.numpy()).max() <= 1


def test_one_angle_of_shear_in_a_list_is_for_both_axes():
    image = mg.arange(16.0).view(1, 4, 4)
    both = F.affine(image, 0.0, [0, 0], 1.0, [20.0, 20.0])
    assert F.affine(image, 0.0, [0, 0], 1.0, [20.0]).tolist() == both.tolist()
    with pytest.raises(ValueError, match="shear"):
        F.affine(image, 0.0, [0, 0], 1.0, [1.0, 2.0, 3.0])


def test_transforms_are_modules():
    class Twice(transforms.Grayscale):
        def forward(self, img):
            return super().forward(img) * 2

    flip = transforms.RandomHorizontalFlip(1.0)
    chain = nn.Sequential(transforms.RandomApply(nn.ModuleList([flip]), p=1.0), Twice())
    x = mg.arange(12.0).reshape(3, 2, 2)
    assert mg.allclose(chain(x), transforms.Grayscale()(x.flip(-1)) * 2)
    assert repr(flip) == "RandomHorizontalFlip(p=1.0)"
