"""The IDX reader, the shipped digits, and the MNIST data set."""

import gzip
import shutil
import struct

import numpy as np
import pytest

from monograph.data.mnist import DIGITS, MNIST, load_digits, read_idx


@pytest.mark.parametrize(("split", "each"), [("train", 1200), ("test", 200)])
def test_shipped_digits_are_balanced(split, each):
    images, labels = load_digits(split)
    assert images.shape == (10 * each, 28, 28)
    assert images.dtype == labels.dtype == np.uint8
    assert np.bincount(labels).tolist() == [each] * 10
    assert images.max() == 255 and 30 < images.mean() < 36


def test_shipped_digits_are_small():
    assert sum(path.stat().st_size for path in DIGITS.iterdir()) < 3_000_000


def test_unknown_split():
    with pytest.raises(ValueError, match="'train' or 'test', got 'valid'"):
        load_digits("valid")


def write_idx(path, code, array, compress):
    header = bytes([0, 0, code, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape)
    raw = header + array.tobytes()
    path.write_bytes(gzip.compress(raw) if compress else raw)


@pytest.mark.parametrize("compress", [False, True])
@pytest.mark.parametrize(
    ("code", "dtype"), [(8, "u1"), (9, "i1"), (11, ">i2"), (12, ">i4"), (13, ">f4"), (14, ">f8")]
)
def test_read_idx_reads_every_element_type(tmp_path, code, dtype, compress):
    array = np.arange(-6, 6).astype(dtype).reshape(3, 4)
    write_idx(tmp_path / "file", code, array, compress)
    result = read_idx(tmp_path / "file")
    assert result.dtype.isnative and result.flags.writeable
    np.testing.assert_array_equal(result, array)


def test_read_idx_refuses_other_and_damaged_files(tmp_path):
    (tmp_path / "text").write_text("not an IDX file")
    with pytest.raises(ValueError, match="is not an IDX file"):
        read_idx(tmp_path / "text")
    (tmp_path / "short").write_bytes(bytes([0, 0, 8, 1, 0, 0, 0, 9, 1, 2]))
    with pytest.raises(ValueError, match="promises 9 bytes, it has 2"):
        read_idx(tmp_path / "short")


def test_dataset_reads_torchvision_layout_and_transforms(tmp_path):
    raw = tmp_path / "MNIST" / "raw"
    raw.mkdir(parents=True)
    for path in DIGITS.glob("t10k*"):
        shutil.copy(path, raw)
    dataset = MNIST(
        tmp_path, train=False, transform=lambda x: x / 255, target_transform=lambda y: -y
    )
    image, label = dataset[0]
    assert len(dataset) == 2000
    assert image.max() <= 1 and label == -7


def test_dataset_names_the_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError, match="train-images-idx3-ubyte"):
        MNIST(tmp_path)


@pytest.mark.parametrize("name", ["FashionMNIST", "KMNIST"])
def test_relatives_lie_in_folders_of_their_own(tmp_path, name):
    import shutil

    from monograph.data import mnist

    folder = tmp_path / name / "raw"
    folder.mkdir(parents=True)
    for path in mnist.DIGITS.glob("t10k*"):
        shutil.copy(path, folder)
    made = getattr(mnist, name)(tmp_path, train=False)
    assert len(made) == 2000
    with pytest.raises(FileNotFoundError, match=f"{name}/raw"):
        getattr(mnist, name)(tmp_path, train=True)
