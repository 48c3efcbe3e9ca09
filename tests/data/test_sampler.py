"""The order in which samples are drawn."""

from itertools import islice

import numpy as np
import pytest

import monograph as mg
from monograph.data.sampler import (
    BatchSampler,
    RandomSampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)


def test_random_sampler_is_repeatable_and_differs_by_epoch():
    sampler, twin = RandomSampler(range(50), generator=3), RandomSampler(range(50), generator=3)
    first, second = list(sampler), list(sampler)
    assert sorted(first) == list(range(50)) and first != second
    assert [first, second] == [list(twin), list(twin)]


def test_random_sampler_shares_the_global_sequence():
    sampler = RandomSampler(range(50))
    mg.manual_seed(5)
    state = mg.get_rng_state()
    first, second = list(sampler), list(sampler)
    assert first != second
    mg.set_rng_state(state)
    assert [list(sampler), list(sampler)] == [first, second]
    mg.manual_seed(5)
    mg.rand(1)  # other draws move the order on, and the order moves them on
    assert list(sampler) != first
    mg.manual_seed(5)
    drawn = mg.rand(3).tolist()
    mg.manual_seed(5)
    list(sampler)
    assert mg.rand(3).tolist() != drawn


def test_a_tensor_generator_is_where_it_stands():
    generator = mg.Generator().manual_seed(11)
    one, other = (RandomSampler(range(50), generator=generator) for _ in range(2))
    first = list(one)
    assert first != list(other)  # they take turns
    generator.manual_seed(11)
    assert list(other) == first
    state = generator.get_state()
    second = list(one)
    generator.set_state(state)
    assert list(one) == second


def test_random_sampler_num_samples():
    assert len(list(RandomSampler(range(4), num_samples=10, generator=0))) == 10
    assert set(RandomSampler(range(4), num_samples=8, generator=0)) == set(range(4))
    drawn = list(RandomSampler(range(4), replacement=True, num_samples=100, generator=0))
    assert len(drawn) == 100 and set(drawn) == set(range(4))
    assert RandomSampler(range(4)).num_samples == 4


def test_samples_without_end_are_drawn_as_they_are_taken():
    sampler = RandomSampler(range(4), replacement=True, num_samples=10**10, generator=0)
    first, second = (list(islice(sampler, 5000)) for _ in range(2))
    assert len(sampler) == 10**10 and set(first) == set(range(4))
    assert first != second
    again = RandomSampler(range(4), replacement=True, num_samples=10**10, generator=0)
    assert list(islice(again, 5000)) == first


def test_subset_and_weighted():
    assert sorted(SubsetRandomSampler([4, 2, 7], generator=0)) == [2, 4, 7]
    drawn = list(WeightedRandomSampler([1, 3], num_samples=4000, generator=0))
    assert np.mean(drawn) == pytest.approx(0.75, abs=0.05)
    assert set(SubsetRandomSampler(["a", "b"])) == {"a", "b"}
    assert WeightedRandomSampler([1, 3], 2).weights.tolist() == [1.0, 3.0]


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda data: data.WeightedRandomSampler([0.5, -1.0], 1), RuntimeError),
        (lambda data: data.WeightedRandomSampler([0.5, 0.5], 3, replacement=False), RuntimeError),
        (lambda data: data.WeightedRandomSampler([[0.5, 0.5]], 1), ValueError),
        (lambda data: data.WeightedRandomSampler([0.5, 0.5], 0), ValueError),
        (lambda data: data.RandomSampler([]), ValueError),
        (lambda data: data.DataLoader([], shuffle=True), ValueError),
        (lambda data: data.RandomSampler([1], replacement=1), TypeError),
        (lambda data: data.BatchSampler([1], 1, drop_last=1), ValueError),
    ],
)
def test_what_samplers_refuse(make, error):
    import torch

    for data in (mg.data, torch.utils.data):
        with pytest.raises(error):
            list(make(data))


@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize("count", [0, 5, 6])
def test_batch_sampler_length_agrees(count, drop_last):
    sampler = BatchSampler(SequentialSampler(range(count)), 3, drop_last)
    batches = list(sampler)
    assert len(batches) == len(sampler)
    assert sum(map(len, batches)) == (count // 3 * 3 if drop_last else count)


@pytest.mark.parametrize("size", [0, -1, 2.0, True])
def test_batch_sampler_refuses_wrong_sizes(size):
    with pytest.raises(ValueError, match="batch_size must be a positive whole number"):
        BatchSampler(range(3), size)


@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize("count", [1, 7, 8, 10])
def test_distributed_sampler(count, drop_last):
    import torch

    from monograph.data.sampler import DistributedSampler

    settings = {"num_replicas": 4, "shuffle": False, "drop_last": drop_last}
    for rank in range(4):
        ours = DistributedSampler(range(count), rank=rank, **settings)
        theirs = torch.utils.data.DistributedSampler(range(count), rank=rank, **settings)
        assert list(ours) == list(theirs) and len(ours) == len(theirs)
    parts = [DistributedSampler(range(8), 2, rank, seed=3) for rank in (0, 1)]
    first = [list(part) for part in parts]
    assert sorted(sum(first, [])) == list(range(8))
    for part in parts:
        part.set_epoch(1)
    assert [list(part) for part in parts] != first
    with pytest.raises(ValueError):
        DistributedSampler(range(3), 2, 2)
    with pytest.raises(RuntimeError):
        DistributedSampler(range(3))
