"""Data sets of pictures that lie in a folder, named as in `torchvision.datasets`.

Nothing is downloaded: with `download=True` the files must be there already, and the error says
which are missing. A sample is a picture, Pillow's where it is installed, and a label.
"""

from __future__ import annotations

import io
import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from ..data import mnist
from ..data.dataset import Dataset
from ..tensor import adopt, from_numpy
from .pictures import picture_of, read_picture

EXTENSIONS = (".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp")


class VisionDataset(Dataset):
    """A data set with transforms of pictures and of labels."""

    def __init__(
        self, root: Any = None, transforms: Any = None, transform: Any = None,
        target_transform: Any = None,
    ) -> None:  # fmt: skip
        self.root = os.path.expanduser(root) if isinstance(root, str) else root
        self.transform, self.target_transform, self.transforms = (
            transform, target_transform, transforms,
        )  # fmt: skip

    def _given(self, picture: Any, label: Any) -> tuple[Any, Any]:
        """A sample as the user wants it."""
        if self.transforms is not None:
            return self.transforms(picture, label)  # type: ignore[no-any-return]
        if self.transform is not None:
            picture = self.transform(picture)
        if self.target_transform is not None:
            label = self.target_transform(label)
        return picture, label


def _missing(name: str, root: Any, problem: Exception) -> RuntimeError:
    return RuntimeError(
        f"{name}: dataset not found in {root} ({problem}), and nothing is downloaded here; put the "
        "files there"
    )


class MNIST(VisionDataset):
    """Handwritten digits: pictures of 28 × 28, from MNIST's four files."""

    classes = [
        "0 - zero", "1 - one", "2 - two", "3 - three", "4 - four", "5 - five", "6 - six",
        "7 - seven", "8 - eight", "9 - nine",
    ]  # fmt: skip

    def __init__(
        self, root: Any, train: bool = True, transform: Any = None, target_transform: Any = None,
        download: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(root, None, transform, target_transform)
        self.train = train
        try:
            images, labels = mnist.read_mnist(
                self.root, "train" if train else "test", type(self).__name__
            )
        except FileNotFoundError as problem:
            raise _missing(type(self).__name__, root, problem) from None
        self._images = images
        self.data, self.targets = from_numpy(images), adopt(labels.astype(np.int64))
        self._labels = labels.tolist()

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        return self._given(picture_of(self._images[index]), self._labels[index])

    def __len__(self) -> int:
        return len(self._labels)


class FashionMNIST(MNIST):
    """Articles of clothing, in files like MNIST's."""

    classes = ["T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker",
               "Bag", "Ankle boot"]  # fmt: skip


class KMNIST(MNIST):
    """Cursive Japanese characters, in files like MNIST's."""

    classes = ["o", "ki", "su", "tsu", "na", "ha", "ma", "ya", "re", "wo"]


class _ArraysOnly(pickle.Unpickler):
    """Reads a pickle that may hold arrays and plain values only."""

    def find_class(self, module: str, name: str) -> Any:
        """The few names that arrays are made of."""
        if module.split(".")[0] == "numpy" and name in ("_reconstruct", "ndarray", "dtype"):
            return super().find_class(module, name)
        if (module, name) == ("_codecs", "encode"):
            return super().find_class(module, name)
        raise pickle.UnpicklingError(f"the file names {module}.{name}, which is no array")


def _unpickled(path: Path) -> Any:
    return _ArraysOnly(io.BytesIO(path.read_bytes()), encoding="latin1").load()


class CIFAR10(VisionDataset):
    """Pictures of 32 × 32 in colour, from the Python files of CIFAR-10."""

    base_folder = "cifar-10-batches-py"
    train_list = [f"data_batch_{n}" for n in range(1, 6)]
    test_list = ["test_batch"]
    meta = ("batches.meta", "label_names", "labels")

    def __init__(
        self, root: Any, train: bool = True, transform: Any = None, target_transform: Any = None,
        download: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(root, None, transform, target_transform)
        self.train = train
        folder, parts = Path(self.root) / self.base_folder, []
        self.targets: list[int] = []
        try:
            for name in self.train_list if train else self.test_list:
                entry = _unpickled(folder / name)
                parts.append(entry["data"])
                self.targets += [int(label) for label in entry[self.meta[2]]]
            self.classes = list(_unpickled(folder / self.meta[0])[self.meta[1]])
        except FileNotFoundError as problem:
            raise _missing(type(self).__name__, root, problem) from None
        stacked = np.vstack(parts).reshape(-1, 3, 32, 32)
        self.data = np.ascontiguousarray(stacked.transpose(0, 2, 3, 1))
        self.class_to_idx = {name: n for n, name in enumerate(self.classes)}

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        return self._given(picture_of(self.data[index]), self.targets[index])

    def __len__(self) -> int:
        return len(self.data)


class CIFAR100(CIFAR10):
    """The same with a hundred classes."""

    base_folder = "cifar-100-python"
    train_list = ["train"]
    test_list = ["test"]
    meta = ("meta", "fine_label_names", "fine_labels")


class DatasetFolder(VisionDataset):
    """Files in one folder for each class."""

    def __init__(
        self, root: Any, loader: Callable[[str], Any], extensions: Any = None,
        transform: Any = None, target_transform: Any = None, is_valid_file: Any = None,
        allow_empty: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(root, None, transform, target_transform)
        self.loader = loader
        names = sorted(entry.name for entry in os.scandir(self.root) if entry.is_dir())
        if not names:
            raise FileNotFoundError(f"Couldn't find any class folder in {root}.")
        self.classes, self.class_to_idx = names, {name: n for n, name in enumerate(names)}
        fits = is_valid_file or (lambda path: path.lower().endswith(tuple(extensions)))
        self.samples = [
            (os.path.join(folder, file), n)
            for n, name in enumerate(names)
            for folder, _, files in sorted(os.walk(os.path.join(self.root, name)))
            for file in sorted(files)
            if fits(os.path.join(folder, file))
        ]
        if not self.samples and not allow_empty:
            raise FileNotFoundError(f"Found no valid file in {root}")
        self.targets = [n for _, n in self.samples]

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        path, label = self.samples[index]
        return self._given(self.loader(path), label)

    def __len__(self) -> int:
        return len(self.samples)


class ImageFolder(DatasetFolder):
    """Pictures in one folder for each class."""

    def __init__(
        self, root: Any, transform: Any = None, target_transform: Any = None,
        loader: Callable[[str], Any] = read_picture, is_valid_file: Any = None,
        allow_empty: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(
            root, loader, (*EXTENSIONS, ".npy"), transform, target_transform, is_valid_file,
            allow_empty,
        )  # fmt: skip
        self.imgs = self.samples


class FakeData(VisionDataset):
    """Random pictures and labels, the same each time."""

    def __init__(
        self, size: int = 1000, image_size: tuple[int, int, int] = (3, 224, 224),
        num_classes: int = 10, transform: Any = None, target_transform: Any = None,
        random_offset: int = 0,
    ) -> None:  # fmt: skip
        super().__init__(None, None, transform, target_transform)
        self.size, self.num_classes = size, num_classes
        self.image_size, self.random_offset = image_size, random_offset

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        if index >= len(self):
            raise IndexError(f"{type(self).__name__} index out of range")
        random = np.random.default_rng(index + self.random_offset)
        channels, height, width = self.image_size
        array = random.integers(0, 256, (height, width, channels), np.uint8)
        picture = picture_of(array[:, :, 0] if channels == 1 else array)
        return self._given(picture, int(random.integers(self.num_classes)))

    def __len__(self) -> int:
        return self.size


def _refused(name: str) -> type:
    def refuse(self: Any, *args: Any, **options: Any) -> None:
        raise NotImplementedError(f"{name} is not read yet; ImageFolder reads folders of pictures")

    return type(name, (VisionDataset,), {"__init__": refuse, "__doc__": "Refused."})


LSUN, SVHN, STL10, CelebA, ImageNet, VOCDetection, CocoDetection, Omniglot = map(
    _refused,
    ("LSUN", "SVHN", "STL10", "CelebA", "ImageNet", "VOCDetection", "CocoDetection", "Omniglot"),
)
__all__ = [
    "CIFAR10", "CIFAR100", "KMNIST", "LSUN", "MNIST", "STL10", "SVHN", "CelebA", "CocoDetection",
    "DatasetFolder", "FakeData", "FashionMNIST", "ImageFolder", "ImageNet", "Omniglot",
    "VOCDetection", "VisionDataset",
]  # fmt: skip
