"""The loader, with and without workers. Batches are compared as the arrays the tensors hold."""

import os
from collections import namedtuple
from itertools import islice

import numpy as np
import pytest

from monograph.data import collate, loader, sampler
from monograph.data.collate import collate_arrays
from monograph.data.dataset import Dataset, IterableDataset, TensorDataset, as_array
from monograph.data.loader import DataLoader, get_worker_info

Pair = namedtuple("Pair", "left right")


class Numbers(Dataset):
    def __init__(self, count=10, action=None):
        self.count = count
        self.action = action

    def __getitem__(self, index):
        if self.action is not None:
            self.action(index)
        return np.float32(index), index * 10

    def __len__(self):
        return self.count


@pytest.fixture(autouse=True)
def arrays_instead_of_tensors(monkeypatch):
    """Batches stay arrays here; `test_batches_are_tensors` looks at the last step."""
    monkeypatch.setattr(loader, "to_tensors", lambda batch: batch)


def labels_of(batches):
    return [as_array(labels).tolist() for _, labels in batches]


@pytest.mark.parametrize("workers", [0, 1, 3])
def test_batches_come_in_order(workers):
    batches = DataLoader(Numbers(), batch_size=4, num_workers=workers)
    assert labels_of(batches) == [[0, 10, 20, 30], [40, 50, 60, 70], [80, 90]]
    assert len(batches) == 3


@pytest.mark.parametrize("workers", [0, 2])
def test_shuffling_is_repeatable_and_differs_by_epoch(workers):
    def epochs():
        batches = DataLoader(Numbers(), 3, shuffle=True, generator=0, num_workers=workers)
        return [labels_of(batches), labels_of(batches)]

    first, second = epochs()
    assert first != second
    assert sorted(sum(first, [])) == list(range(0, 100, 10))
    assert epochs() == [first, second]


@pytest.mark.parametrize("workers", [0, 2])
def test_an_epoch_without_end(workers):
    def begun():
        endless = sampler.RandomSampler(Numbers(), True, 10**10, generator=0)
        batches = DataLoader(Numbers(), 4, sampler=endless, num_workers=workers)
        return [labels_of(islice(batches, 3)), labels_of(islice(batches, 3))]

    first, second = begun()
    assert first != second and begun() == [first, second]
    assert [len(batch) for batch in first] == [4, 4, 4]


def test_drop_last():
    batches = DataLoader(Numbers(), 4, drop_last=True)
    assert len(batches) == len(list(batches)) == 2


def test_tensor_dataset_is_read_a_batch_at_a_time(monkeypatch):
    dataset = TensorDataset(np.arange(6).reshape(3, 2), np.arange(3))
    monkeypatch.setattr(TensorDataset, "__getitem__", None)
    rows, labels = next(iter(DataLoader(dataset, 2)))
    assert rows.tolist() == [[0, 1], [2, 3]] and labels.tolist() == [0, 1]


def test_getitems_means_what_it_means_in_pytorch():
    class Rows(Numbers):
        def __getitems__(self, indices):
            return [(np.float32(-1), index) for index in indices]

    assert labels_of(DataLoader(Rows(4), 2)) == [[0, 1], [2, 3]]


def test_without_batch_size_samples_come_one_by_one():
    assert [label for _, label in DataLoader(Numbers(3), batch_size=None)] == [0, 10, 20]


def test_batch_sampler_and_collate_fn():
    batches = DataLoader(Numbers(), batch_sampler=[[1, 2], [7]], collate_fn=len)
    assert list(batches) == [2, 1] and len(batches) == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"shuffle": True, "sampler": [0]}, "either shuffle=True or a sampler"),
        ({"batch_size": 2, "batch_sampler": [[0]]}, "batch_sampler already decides"),
        ({"batch_size": None, "drop_last": True}, "drop_last needs a batch_size"),
        ({"num_workers": -1}, "num_workers must be 0 or more"),
        ({"timeout": -1}, "timeout option should be non-negative"),
        ({"prefetch_factor": 2}, "prefetch_factor option could only"),
        ({"num_workers": 1, "prefetch_factor": -1}, "should be non-negative"),
        ({"persistent_workers": True}, "persistent_workers option needs num_workers"),
    ],
)
def test_contradicting_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        DataLoader(Numbers(), **arguments)


class Stream(IterableDataset):
    def __iter__(self):
        info = get_worker_info()
        share = slice(None) if info is None else slice(info.id, None, info.num_workers)
        return iter([(np.float32(0), index) for index in range(7)[share]])


@pytest.mark.parametrize(
    ("workers", "expected"),
    [(0, [[0, 1], [2, 3], [4, 5], [6]]), (2, [[0, 2], [1, 3], [4, 6], [5]])],
)
def test_iterable_dataset(workers, expected):
    assert labels_of(DataLoader(Stream(), 2, num_workers=workers)) == expected


def test_iterable_dataset_refuses_shuffle():
    with pytest.raises(ValueError, match="fixes its own order"):
        DataLoader(Stream(), 2, shuffle=True)


def fail_at_five(index):
    if index == 5:
        raise KeyError("five")


class Picky(Exception):
    def __init__(self, first, second):
        super().__init__(f"{first} and {second}")


def fail_oddly(index):
    raise Picky(1, 2)


def test_worker_error_is_raised_again_with_its_traceback():
    batches = iter(DataLoader(Numbers(action=fail_at_five), 2, num_workers=2))
    next(batches), next(batches)
    with pytest.raises(KeyError, match="five") as caught:
        next(batches)
    assert "in data worker 0" in caught.value.__notes__[0]
    assert "fail_at_five" in caught.value.__notes__[0]


def test_worker_error_that_cannot_be_pickled():
    with pytest.raises(RuntimeError, match="Picky: 1 and 2"):
        list(DataLoader(Numbers(action=fail_oddly), 2, num_workers=1))


def test_worker_death_is_reported():
    with pytest.raises(RuntimeError, match="data worker 0 died with exit code 9"):
        list(DataLoader(Numbers(action=lambda index: os._exit(9)), 2, num_workers=1))


def test_leaving_early_ends_the_workers():
    import multiprocessing

    before = set(multiprocessing.active_children())
    batches = iter(DataLoader(Numbers(1000), 1, num_workers=2))
    next(batches)
    batches.close()
    assert set(multiprocessing.active_children()) <= before


def test_workers_have_their_own_seeds_and_init():
    class Random(Numbers):
        def __getitem__(self, index):
            return np.random.rand(), get_worker_info().seed

    batches = DataLoader(Random(4), 1, num_workers=2, generator=0, worker_init_fn=print)
    values = [float(value[0]) for value, _ in batches]
    assert len(set(values)) == 4
    assert get_worker_info() is None


def test_collate_keeps_structure():
    batch = collate_arrays(
        [
            {"image": np.zeros((2, 2)), "name": "a", "pair": Pair(1, 2.5)},
            {"image": np.ones((2, 2)), "name": "b", "pair": Pair(3, 4.5)},
        ]
    )
    assert batch["image"].shape == (2, 2, 2)
    assert collate_arrays([(1, "a"), (2, "b")])[1] == ("a", "b")  # as PyTorch has it
    assert collate.default_collate(batch=[1, 2]).tolist() == [1, 2]
    assert list(sampler.SequentialSampler(data_source="ab").data_source) == ["a", "b"]
    assert sorted(sampler.RandomSampler(data_source="ab")) == [0, 1]
    assert batch["name"] == ["a", "b"]
    assert isinstance(batch["pair"], Pair)
    assert batch["pair"].left.dtype == np.int64 and batch["pair"].right.dtype == np.float64


@pytest.mark.parametrize(
    ("samples", "error", "message"),
    [
        ([np.zeros(2), np.zeros(3)], ValueError, r"different shapes \[\(2,\), \(3,\)\]"),
        ([(1, 2), (1,)], RuntimeError, r"different numbers of fields \[1, 2\]"),
        ([object()], TypeError, "samples of type object"),
    ],
)
def test_collate_errors_say_what_to_do(samples, error, message):
    with pytest.raises(error, match=message):
        collate_arrays(samples)


def test_batches_are_tensors():
    mg = pytest.importorskip("monograph")
    if not hasattr(mg, "from_numpy"):
        pytest.skip("tensors are not built yet")
    batch = collate.default_collate([(np.float32(1), 2), (np.float32(3), 4)])
    assert all(isinstance(part, mg.Tensor) for part in batch)
    assert batch[1].detach().numpy().tolist() == [2, 4]


def test_pytorchs_arguments_are_taken():
    batches = DataLoader(
        Numbers(4), 2, False, None, None, 1, None, True, False, 30.0, None, "fork", 0,
        prefetch_factor=2, persistent_workers=True, pin_memory_device="", in_order=True,
    )  # fmt: skip
    assert labels_of(batches) == labels_of(batches) == [[0, 10], [20, 30]]


def test_a_batch_that_takes_too_long():
    import time

    batches = DataLoader(Numbers(action=lambda index: time.sleep(30)), num_workers=1, timeout=0.2)
    with pytest.raises(RuntimeError, match="timed out after 0.2"):
        next(iter(batches))


def test_workers_after_a_parallel_region(monkeypatch):
    import monograph as mg

    monkeypatch.undo()
    x = mg.rand(512, 512)
    before = (x @ x).sum().item()
    batches = DataLoader(Numbers(8), 2, num_workers=2)
    assert [part[1].tolist()[0] for part in batches] == [0, 20, 40, 60]
    assert (x @ x).sum().item() == before


def test_default_convert():
    import torch

    mg = pytest.importorskip("monograph")
    sample = {"x": np.ones(2), "n": 3, "name": "a", "pair": (np.float32(1), [np.zeros(1)])}
    ours, theirs = collate.default_convert(sample), torch.utils.data.default_convert(sample)
    assert isinstance(ours["x"], mg.Tensor) and ours["n"] == theirs["n"] == 3
    assert ours["name"] == "a" and isinstance(ours["pair"][1][0], mg.Tensor)
    assert ours["pair"][0].dtype is mg.float32 and ours["pair"][0].shape == ()


@pytest.mark.parametrize("name", ["batch_size", "sampler", "dataset", "drop_last"])
def test_what_the_order_was_made_of_cannot_be_changed(name):
    loader = DataLoader([1, 2, 3], batch_size=2)
    with pytest.raises(ValueError, match=f"{name} of a DataLoader"):
        setattr(loader, name, 1)
    loader.num_workers = 0
    assert [len(batch) for batch in loader] == [2, 1]
