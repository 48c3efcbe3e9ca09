"""Data sets and ways to combine them."""

import numpy as np
import pytest

from monograph.data.dataset import ConcatDataset, Dataset, Subset, TensorDataset, random_split


class Squares(Dataset):
    def __getitem__(self, index):
        return index * index

    def __len__(self):
        return 10


def test_tensor_dataset_reads_rows_and_batches():
    dataset = TensorDataset(np.arange(12).reshape(4, 3), np.arange(4))
    row, label = dataset[2]
    assert row.tolist() == [6, 7, 8] and label == 2
    rows, labels = dataset.read_batch([3, 0])
    assert rows.tolist() == [[9, 10, 11], [0, 1, 2]] and labels.tolist() == [3, 0]


def test_tensor_dataset_refuses_different_lengths():
    with pytest.raises(AssertionError, match=r"lengths \[2, 3\]"):
        TensorDataset(np.zeros(2), np.zeros(3))


def test_subset_reads_through():
    assert [Subset(Squares(), [3, 1])[i] for i in range(2)] == [9, 1]
    assert not hasattr(Subset(Squares(), [0]), "read_batch")
    part = Subset(Subset(TensorDataset(np.arange(10)), range(5, 10)), [4, 0])
    assert part.read_batch([0, 1])[0].tolist() == [9, 5]


def test_concat_finds_the_part():
    both = Squares() + Squares()
    assert isinstance(both, ConcatDataset)
    assert [both[i] for i in (0, 9, 10, 19, -1)] == [0, 81, 0, 81, 81]
    with pytest.raises(IndexError):
        both[20]
    with pytest.raises(ValueError):
        both[-21]


@pytest.mark.parametrize("lengths", [[7, 3], [0.7, 0.3], [0.33, 0.33, 0.34]])
def test_random_split_is_a_partition(lengths):
    parts = random_split(Squares(), lengths, generator=1)
    assert sorted(i for part in parts for i in part.indices) == list(range(10))
    again = random_split(Squares(), lengths, generator=1)
    assert [part.indices for part in parts] == [part.indices for part in again]


def test_random_split_refuses_wrong_lengths():
    with pytest.raises(ValueError, match="do not sum to the data set's 10 samples"):
        random_split(Squares(), [5, 4])


def test_datasets_side_by_side():
    from monograph.data.dataset import StackDataset

    pair = StackDataset([1, 2, 3], "abc")
    assert pair[1] == (2, "b") and len(pair) == 3
    assert pair.__getitems__([0, 2]) == [(1, "a"), (3, "c")]
    assert StackDataset(x=[1, 2], y=[3, 4])[0] == {"x": 1, "y": 3}
    for wrong in (
        lambda: StackDataset([1], [1, 2]),
        StackDataset,
        lambda: StackDataset([1], x=[1]),
    ):
        with pytest.raises(ValueError):
            wrong()


def test_iterable_datasets_one_after_the_other():
    from monograph.data.dataset import ChainDataset, ConcatDataset, IterableDataset

    class Count(IterableDataset):
        def __iter__(self):
            return iter(range(2))

        def __len__(self):
            return 2

    both = Count() + Count()
    assert list(both) == [0, 1, 0, 1] and len(both) == 4
    with pytest.raises(AssertionError):
        list(ChainDataset([[1, 2]]))
    with pytest.raises(AssertionError):
        ConcatDataset([Count()])
    assert ConcatDataset([[1, 2], [3]]).cumulative_sizes == [2, 3]
