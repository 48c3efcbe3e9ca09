"""Data sets read local files; nothing is downloaded, and the error says so."""

import pickle

import numpy as np
import pytest

import monograph as mg
from monograph.data import DataLoader
from monograph.data.mnist import DIGITS
from monograph.vision import datasets, transforms
from monograph.vision.pictures import write_png


def test_mnist_reads_the_digits_that_ship():
    found = datasets.MNIST(DIGITS, train=False, download=True, transform=transforms.ToTensor())
    image, label = found[0]
    assert image.shape == (1, 28, 28) and label == 7 and len(found) == 2000
    assert found.data.shape == (2000, 28, 28) and found.targets.dtype is mg.int64


@pytest.mark.parametrize("kind", [datasets.MNIST, datasets.FashionMNIST, datasets.CIFAR10])
def test_missing_files_are_named(kind, tmp_path):
    with pytest.raises(RuntimeError, match="nothing is downloaded"):
        kind(str(tmp_path), download=True)


def test_cifar_reads_its_pickles(tmp_path):
    folder = tmp_path / "cifar-10-batches-py"
    folder.mkdir()
    data = np.arange(2 * 3072, dtype=np.int64).astype(np.uint8).reshape(2, 3072)
    for n in range(1, 6):
        (folder / f"data_batch_{n}").write_bytes(pickle.dumps({"data": data, "labels": [n, 0]}))
    (folder / "batches.meta").write_bytes(
        pickle.dumps({"label_names": [str(n) for n in range(10)]})
    )
    found = datasets.CIFAR10(str(tmp_path))
    assert len(found) == 10 and found.targets[2] == 2 and found.classes[3] == "3"
    assert np.array_equal(np.asarray(found[0][0]), data[0].reshape(3, 32, 32).transpose(1, 2, 0))
    (folder / "batches.meta").write_bytes(pickle.dumps(print))
    with pytest.raises(pickle.UnpicklingError, match="which is no array"):
        datasets.CIFAR10(str(tmp_path))


def test_folders_are_classes(tmp_path):
    for name, colour in (("cat", 10), ("dog", 200)):
        (tmp_path / name).mkdir()
        for n in range(3):
            picture = np.full((8, 6, 3), colour + n, np.uint8)
            write_png(tmp_path / name / f"{n}.png", picture)
    found = datasets.ImageFolder(str(tmp_path), transform=transforms.PILToTensor())
    assert found.classes == ["cat", "dog"] and found.targets == [0, 0, 0, 1, 1, 1]
    loader = DataLoader(found, batch_size=4, num_workers=2)
    images = [batch for batch, _ in loader]
    assert images[0].shape == (4, 3, 8, 6)
    assert images[0][:, 0, 0, 0].tolist() == [10, 11, 12, 200]
    with pytest.raises(FileNotFoundError):
        datasets.ImageFolder(str(tmp_path / "cat"))


def test_fake_data_is_the_same_each_time():
    found = datasets.FakeData(4, (3, 8, 8), 5, transforms.ToTensor())
    assert len(found) == 4 and found[1][0].shape == (3, 8, 8)
    assert np.array_equal(found[2][0].numpy(), found[2][0].numpy())
    with pytest.raises(IndexError):
        found[4]
