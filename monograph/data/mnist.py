"""MNIST: the reader of its IDX files, the subset that ships with the package, and a data set.

An IDX file is a header (two zero bytes, the element type, the number of dimensions, the sizes as
big-endian 32-bit numbers) followed by the elements. Files may be compressed with gzip.
"""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import numpy as np

from monograph.data.dataset import Dataset

Split = Literal["train", "test"]

DIGITS = Path(__file__).parent / "digits"
FILE_PREFIX = {"train": "train", "test": "t10k"}
ELEMENT_TYPES = {0x08: "u1", 0x09: "i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}


def read_idx(path: str | Path) -> np.ndarray:
    """Read an IDX file, compressed or not, into an array.

    >>> read_idx(DIGITS / "t10k-images-idx3-ubyte.gz").shape
    (2000, 28, 28)
    """
    raw = Path(path).read_bytes()
    if raw[:2] == b"\x1f\x8b":
        raw = gzip.decompress(raw)
    if len(raw) < 4 or raw[:2] != b"\0\0" or raw[2] not in ELEMENT_TYPES:
        raise ValueError(f"{path} is not an IDX file")
    dtype = np.dtype(ELEMENT_TYPES[raw[2]])
    rank = raw[3]
    start = 4 + 4 * rank
    shape = tuple(int(size) for size in np.frombuffer(raw[4:start], dtype=">u4"))
    wanted = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    if len(raw) - start != wanted:
        raise ValueError(
            f"{path} is damaged: its header promises {wanted} bytes, it has {len(raw) - start}"
        )
    elements = np.frombuffer(raw, dtype=dtype, offset=start).reshape(shape)
    return elements.astype(dtype.newbyteorder("="))  # a copy that may be written to


def read_mnist(
    root: str | Path, split: Split, folder: str = "MNIST"
) -> tuple[np.ndarray, np.ndarray]:
    """Images and labels of one split of the MNIST files in a folder, or in its `MNIST/raw`."""
    if split not in FILE_PREFIX:
        raise ValueError(f"split must be 'train' or 'test', got {split!r}")
    images = read_idx(_find(Path(root), f"{FILE_PREFIX[split]}-images-idx3-ubyte", folder))
    labels = read_idx(_find(Path(root), f"{FILE_PREFIX[split]}-labels-idx1-ubyte", folder))
    if len(images) != len(labels):
        raise ValueError(f"{root} holds {len(images)} {split} images but {len(labels)} labels")
    return images, labels


def load_digits(split: Split) -> tuple[np.ndarray, np.ndarray]:
    """The handwritten digits that ship with the package: images and labels, both uint8.

    >>> images, labels = load_digits("train")  # 1,200 images of each digit
    >>> images.shape, labels.shape
    ((12000, 28, 28), (12000,))
    """
    return read_mnist(DIGITS, split)


class MNIST(Dataset):
    """MNIST from a folder with its four files; sample `i` is an image (28×28, uint8) and its label.

    >>> image, label = MNIST(DIGITS, train=False)[0]
    >>> image.shape, label
    ((28, 28), 7)
    """

    folder = "MNIST"

    def __init__(
        self,
        root: str | Path = DIGITS,
        train: bool = True,
        transform: Callable[[np.ndarray], Any] | None = None,
        target_transform: Callable[[int], Any] | None = None,
    ) -> None:
        split: Split = "train" if train else "test"
        self.data, self.targets = read_mnist(root, split, self.folder)
        self.transform = transform
        self.target_transform = target_transform

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        image: Any = self.data[index]
        label: Any = int(self.targets[index])
        if self.transform is not None:
            image = self.transform(image)
        if self.target_transform is not None:
            label = self.target_transform(label)
        return image, label

    def __len__(self) -> int:
        return len(self.data)


class FashionMNIST(MNIST):
    """Articles of clothing, in files like MNIST's: in the folder or its `FashionMNIST/raw`."""

    folder = "FashionMNIST"

    def __init__(self, root: str | Path, *args: Any, **kwargs: Any) -> None:
        super().__init__(root, *args, **kwargs)


class KMNIST(FashionMNIST):
    """Cursive Japanese characters, in files like MNIST's: in the folder or its `KMNIST/raw`."""

    folder = "KMNIST"


def _find(root: Path, name: str, inner: str) -> Path:
    for folder in (root, root / inner / "raw", root / "raw"):
        # Some distributions write a dot before idx.
        for spelling in (name, name.replace("-idx", ".idx")):
            for path in (folder / spelling, folder / f"{spelling}.gz"):
                if path.is_file():
                    return path
    raise FileNotFoundError(f"no {name} or {name}.gz in {root} or its {inner}/raw")
