"""Data: sets of samples, the order in which they are drawn, and the loader that batches them.

The names are PyTorch's (`torch.utils.data`). Samples and batches are NumPy arrays until the loader
hands them out as tensors. A small subset of MNIST ships with the package; see `load_digits`.
"""

from monograph.data.collate import default_collate, default_convert
from monograph.data.dataset import (
    ChainDataset,
    ConcatDataset,
    Dataset,
    IterableDataset,
    StackDataset,
    Subset,
    TensorDataset,
    random_split,
)
from monograph.data.loader import DataLoader, get_worker_info
from monograph.data.mnist import KMNIST, MNIST, FashionMNIST, load_digits, read_idx
from monograph.data.sampler import (
    BatchSampler,
    DistributedSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)

__all__ = [
    "KMNIST",
    "MNIST",
    "BatchSampler",
    "ChainDataset",
    "ConcatDataset",
    "DataLoader",
    "Dataset",
    "DistributedSampler",
    "FashionMNIST",
    "IterableDataset",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "StackDataset",
    "Subset",
    "SubsetRandomSampler",
    "TensorDataset",
    "WeightedRandomSampler",
    "default_collate",
    "default_convert",
    "get_worker_info",
    "load_digits",
    "random_split",
    "read_idx",
]
