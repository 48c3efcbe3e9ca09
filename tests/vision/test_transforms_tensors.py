"""Transforms of tensors: batches are their images one by one, derivatives pass, bytes round."""

import numpy as np
import pytest

import monograph as mg
from monograph.vision import transforms
from monograph.vision.transforms import InterpolationMode, warps
from monograph.vision.transforms import functional as F

LINEAR = InterpolationMode.BILINEAR
SQUARE, ASIDE = [[0, 0], [7, 0], [7, 7], [0, 7]], [[1, 0], [7, 1], [6, 7], [0, 6]]
PULL = mg.tensor(np.random.default_rng(1).random((1, 8, 8, 2)).astype(np.float32) * 0.2)
# By name: the change, and the sum of its result for IMAGES, each pixel times row times column, that
# torchvision 0.28 gives; None for changes that were not asked of it.
CHANGES = {
    "hflip": (F.hflip, 2397.716),
    "vflip": (F.vflip, 2329.476),
    "gaussian_blur": (lambda x: F.gaussian_blur(x, [3, 3], [1.5, 1.5]), 2319.050),
    "invert": (F.invert, 2409.562),
    "solarize": (lambda x: F.solarize(x, 0.5), 1146.551),
    "sharpness": (lambda x: F.adjust_sharpness(x, 2.0), 2303.252),
    "autocontrast": (F.autocontrast, 2295.543),
    "center_crop": (lambda x: F.center_crop(x, [4, 4]), 116.877),
    "resize": (lambda x: F.resize(x, [5, 5]), 292.881),
    "resize nearest": (lambda x: F.resize(x, [5, 5], InterpolationMode.NEAREST), 311.486),
    "resize cubic": (lambda x: F.resize(x, [12, 12], InterpolationMode.BICUBIC), 12761.753),
    "resize plain": (lambda x: F.resize(x, [5, 6], antialias=False), None),
    "crop": (lambda x: F.crop(x, 1, 2, 4, 4), 122.296),
    "crop beyond": (lambda x: F.crop(x, -2, 5, 6, 7), None),
    "resized_crop": (lambda x: F.resized_crop(x, 1, 2, 4, 4, [6, 6]), 754.177),
    "brightness": (lambda x: F.adjust_brightness(x, 0.5), 1147.219),
    "contrast": (lambda x: F.adjust_contrast(x, 0.5), 2316.195),
    "saturation": (lambda x: F.adjust_saturation(x, 0.5), 2314.165),
    "hue": (lambda x: F.adjust_hue(x, 0.2), 2239.058),
    "gamma": (lambda x: F.adjust_gamma(x, 0.5), 3088.241),
    "grey": (F.rgb_to_grayscale, 777.964),
    "rotate": (lambda x: F.rotate(x, 20), 2093.321),
    "rotate filled": (lambda x: F.rotate(x, 20, LINEAR, fill=[0.5]), 2315.412),
    "rotate whole": (lambda x: F.rotate(x, 30, LINEAR, expand=True), None),
    "affine": (lambda x: F.affine(x, 10, [1, 1], 0.9, [3, 2]), 2289.308),
    "perspective": (lambda x: warps.perspective(x, SQUARE, ASIDE), 1677.420),
    "elastic": (lambda x: warps.elastic_transform(x, PULL), None),
    "pad": (lambda x: F.pad(x, [1, 2]), 4668.052),
    "pad reflected": (lambda x: F.pad(x, [1, 2], padding_mode="reflect"), 8667.777),
    "pad symmetric": (lambda x: F.pad(x, [1, 2, 3, 0], padding_mode="symmetric"), None),
    "pad in colours": (lambda x: F.pad(x, 1, fill=[0.1, 0.2, 0.3]), None),
    "erase": (lambda x: F.erase(x, 1, 1, 3, 3, mg.zeros(3, 1, 1)), 2177.477),
    "normalize": (lambda x: F.normalize(x, [0.5] * 3, [0.2] * 3), -287.813),
    "ten_crop": (lambda x: F.ten_crop(x, [4, 4])[7], 118.832),
}  # fmt: skip
IMAGES = np.random.RandomState(0).rand(2, 3, 8, 8).astype(np.float32)
BYTES = np.random.RandomState(2).randint(0, 256, (3, 4, 4)).astype(np.uint8)


@pytest.fixture(autouse=True)
def uncompiled():
    with mg.config.override(backend="reference"):
        yield


def checksum(x):
    rows, columns = np.arange(x.shape[-2])[:, None], np.arange(x.shape[-1])
    return float((x.detach().numpy() * rows * columns).sum(dtype=np.float64))


@pytest.mark.parametrize("name", CHANGES)
def test_a_batch_is_its_images_one_by_one(name):
    change, expected = CHANGES[name]
    batch = change(mg.tensor(IMAGES))
    ones = np.stack([change(mg.tensor(image)).numpy() for image in IMAGES])
    assert np.allclose(batch.numpy(), ones, atol=1e-6)
    more = change(mg.tensor(IMAGES[None]).repeat(3, 1, 1, 1, 1))
    assert np.allclose(more.numpy(), np.stack([ones] * 3), atol=1e-6)
    if expected is not None:
        assert checksum(batch) == pytest.approx(expected, abs=2e-3)


@pytest.mark.parametrize("name", CHANGES)
def test_derivatives_pass(name):
    """Along one direction, against what a small step that way changes."""
    change, _ = CHANGES[name]
    random = np.random.default_rng(3)
    way = random.random(IMAGES.shape) - 0.5
    x = mg.tensor(IMAGES.astype(np.float64), requires_grad=True)
    made = change(x)
    assert made.grad_fn is not None
    assert np.allclose(made.detach().numpy(), change(x.detach()).numpy(), atol=1e-6)
    share = random.random(tuple(made.shape))
    (made * mg.tensor(share)).sum().backward()
    step = 1e-4 if name == "hue" else 1e-6  # hues are worked out in float32
    ends = [change(x.detach() + mg.tensor(sign * step * way)).numpy() for sign in (1, -1)]
    found = ((ends[0].astype(np.float64) - ends[1]) * share).sum() / (2 * step)
    assert float((x.grad.numpy() * way).sum()) == pytest.approx(found, rel=1e-2, abs=1e-3)


# The sum of byte times its number, from 1, that torchvision 0.28 gives for BYTES.
ROUNDED = {
    "grey": (F.rgb_to_grayscale, 14204),
    "brightness": (lambda x: F.adjust_brightness(x, 0.7), 95233),
    "contrast": (lambda x: F.adjust_contrast(x, 0.6), 132224),
    "saturation": (lambda x: F.adjust_saturation(x, 0.3), 128145),
    "hue": (lambda x: F.adjust_hue(x, 0.2), 129252),
    "gamma": (lambda x: F.adjust_gamma(x, 0.5), 192111),
    "sharpness": (lambda x: F.adjust_sharpness(x, 0.5), 138981),
    "blur": (lambda x: F.gaussian_blur(x, 3), 129521),
    "autocontrast": (F.autocontrast, 131279),
    "resize": (lambda x: F.resize(x, [3, 5]), 122131),
    "rotate": (lambda x: F.rotate(x, 20, LINEAR, fill=[9.0]), 106288),
}  # fmt: skip


@pytest.mark.parametrize("name", ROUNDED)
def test_bytes_are_rounded_as_torchvision_does(name):
    change, expected = ROUNDED[name]
    made = change(mg.tensor(BYTES))
    assert made.dtype is mg.uint8
    values = made.numpy().reshape(-1).astype(np.int64)
    assert int((values * np.arange(1, len(values) + 1)).sum()) == expected
    pair = change(mg.tensor(np.stack([BYTES, BYTES[:, ::-1]])))
    assert np.array_equal(pair[0].numpy(), made.numpy())


def test_bytes_of_batches():
    pair = np.random.RandomState(5).randint(0, 64, (2, 3, 40, 40)).astype(np.uint8)
    assert np.array_equal(F.posterize(mg.tensor(pair), 3).numpy(), pair // 32 * 32)
    even = F.equalize(mg.tensor(pair)).numpy()
    pictures = [F.equalize(image.transpose(1, 2, 0)).transpose(2, 0, 1) for image in pair]
    assert np.array_equal(even, np.stack(pictures))
    flat = mg.full((2, 1, 3, 3), 7, dtype=mg.uint8)
    assert mg.equal(F.equalize(flat), flat) and mg.equal(F.autocontrast(flat), flat)


def test_a_batch_has_one_draw():
    x = mg.tensor(IMAGES)
    for transform in (
        transforms.ColorJitter(0.8, 0.8, 0.8, 0.2), transforms.RandomGrayscale(p=0.5),
        transforms.GaussianBlur((3, 5)), transforms.RandomResizedCrop(6),
        transforms.RandomRotation(30, LINEAR), transforms.RandomAffine(10, (0.1, 0.1), (0.8, 1.2)),
        transforms.RandomPerspective(p=1.0), transforms.RandomErasing(p=1.0, value="random"),
        transforms.RandomCrop(6, padding=2), transforms.ElasticTransform(5.0, 2.0),
    ):  # fmt: skip
        made = []
        for images in (x, x[0], x[1]):
            mg.manual_seed(1)
            made.append(transform(images).numpy())
        assert np.allclose(made[0], np.stack(made[1:]), atol=1e-6), transform


def test_policies_take_batches():
    mg.manual_seed(0)
    x = (mg.tensor(IMAGES) * 255).to(mg.uint8)
    for policy in (transforms.AugMix(), transforms.RandAugment(), transforms.AutoAugment()):
        made = [policy(x) for _ in range(5)]
        assert all(m.shape == x.shape and m.dtype is mg.uint8 for m in made)


def test_fills_count_by_how_much_of_a_pixel_is_outside():
    """After half a pixel to the right: half of a half of the first column, and half of the fill."""
    x = mg.full((1, 1, 4), 0.8)
    made = F.affine(x, 0.0, [0.5, 0.0], 1.0, [0.0], LINEAR, fill=0.2)
    assert np.allclose(made.numpy(), [[[0.8 * 0.25 + 0.2 * 0.5, 0.8, 0.8, 0.8]]])
    with pytest.raises(ValueError, match="cannot broadcast"):
        F.rotate(mg.ones(3, 4, 4), 10, fill=[1.0, 2.0])


def test_kernels_are_across_and_down():
    point = np.zeros((1, 9, 9), np.float32)
    point[0, 4, 4] = 1.0
    wide = F.gaussian_blur(mg.tensor(point), [5, 1], [1.0, 1.0]).numpy()[0]
    assert (wide[4, 2:7] > 0).all() and wide[[3, 5]].max() == 0
    assert np.allclose(F.gaussian_blur(point[0], [5, 1], [1.0, 1.0]), wide, atol=1e-6)


def test_whole_numbers_of_other_lengths():
    x = mg.tensor([0, 1, 128, 255], dtype=mg.uint8)
    assert F.convert_image_dtype(x, mg.int16).tolist() == [0, 128, 16384, 32640]
    long = mg.tensor([0, 300, 32767], dtype=mg.int16)
    assert F.convert_image_dtype(long, mg.uint8).tolist() == [0, 2, 255]
    with pytest.raises(RuntimeError, match="cannot be performed safely"):
        F.convert_image_dtype(mg.ones(2), mg.int32)


def test_parts_of_a_batch():
    x = mg.tensor(IMAGES)
    five = F.five_crop(x, (3, 2))
    assert mg.equal(five[3], x[..., 5:, 6:]) and mg.equal(five[4], F.center_crop(x, (3, 2)))
    ten = transforms.TenCrop(3, vertical_flip=True)(x)
    assert mg.equal(ten[5], x.flip(-2)[..., :3, :3])
    with pytest.raises(ValueError, match="bigger than"):
        F.five_crop(x, 9)


def test_a_copy_is_written_to_alone():
    x = mg.ones(1, 2, 2)
    for change in (F.hflip, lambda y: F.crop(y, 0, 0, 2, 2), lambda y: F.erase(y, 0, 0, 1, 1, 0.0)):
        change(x).zero_()
    assert x.tolist() == [[[1.0, 1.0], [1.0, 1.0]]]
    assert F.erase(x, 0, 0, 1, 2, 0.0, inplace=True) is x
    assert x.tolist() == [[[0.0, 0.0], [1.0, 1.0]]]


@pytest.mark.parametrize("name", ["hflip", "pad", "hue", "rotate filled", "resize", "erase"])
def test_within_a_traced_function(name):
    change, _ = CHANGES[name]
    traced = mg.jit(lambda x: change(x * 0.5))
    expected = change(mg.tensor(IMAGES) * 0.5).numpy()
    for _ in range(2):
        assert np.allclose(traced(mg.tensor(IMAGES)).numpy(), expected, atol=1e-6)


def test_what_cannot_be():
    x = mg.ones(3, 4, 4)
    for change in (F.adjust_brightness, F.adjust_contrast, F.adjust_saturation):
        with pytest.raises(ValueError, match="not non-negative"):
            change(x, -0.5)
    with pytest.raises(ValueError, match="Padding mode"):
        F.pad(x, 1, padding_mode="circular")
    with pytest.raises(ValueError, match="odd and positive"):
        F.gaussian_blur(x, 4)
    with pytest.raises(TypeError, match="permitted channel values"):
        F.rgb_to_grayscale(mg.ones(4, 2, 2))
