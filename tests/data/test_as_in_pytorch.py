"""Loaders beside PyTorch's: what collating keeps, what workers see, what a run can repeat."""

import copy
import pickle
from collections import OrderedDict, UserDict, defaultdict, namedtuple

import numpy as np
import pytest
import torch

import monograph as mg
import monograph.torch

BOTH = pytest.mark.parametrize("lib", [monograph.torch, torch], ids=["monograph", "torch"])
Pair = namedtuple("Pair", "left right")


class Samples:
    """A data set that is a function of the index."""

    def __init__(self, count, sample):
        self.count, self.sample = count, sample

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        if not 0 <= index < self.count:
            raise IndexError(index)
        return self.sample(index)


class Named(dict):
    pass


def plain(batch):
    """A batch with its classes, and arrays told from tensors."""
    if isinstance(batch, mg.Tensor | torch.Tensor):
        return ("tensor", str(batch.dtype).split(".")[-1], batch.requires_grad, batch.tolist())
    if isinstance(batch, np.ndarray):
        return ("array", str(batch.dtype), batch.tolist())
    if isinstance(batch, dict | UserDict):
        return (type(batch).__name__, {key: plain(value) for key, value in batch.items()})
    if isinstance(batch, tuple | list):
        return (type(batch).__name__, [plain(value) for value in batch])
    return batch


SAMPLES = {
    "dictionary of a class": lambda i: Named(a=i),
    "ordered": lambda i: OrderedDict(a=i, b=np.float32(2)),
    "default": lambda i: defaultdict(list, a=i),
    "user dictionary": lambda i: UserDict(a=i),
    "named tuple": lambda i: Pair(i, [np.float64(i), "x"]),
    "whole, then not": lambda i: i if i % 2 == 0 else i + 0.5,
    "not whole, then": lambda i: i if i % 2 else i + 0.5,
    "range": lambda i: range(3),
    "arrays of two dtypes": lambda i: np.ones(2, "f4") if i % 2 else np.ones(2, "i8"),
    "texts": lambda i: (b"a", "b", ["c", i]),
}


@pytest.mark.parametrize("kind", SAMPLES)
def test_collating_keeps_classes(kind):
    ours, theirs = (
        plain(list(data.DataLoader(Samples(4, SAMPLES[kind]), batch_size=2)))
        for data in (mg.data, torch.utils.data)
    )
    assert ours == theirs


COLLATES = {
    "array": np.stack,
    "dictionary": lambda batch: Named(x=np.stack(batch), n=[1]),
    "user dictionary": lambda batch: UserDict(x=np.stack(batch)),
    "as they are": lambda batch: batch,
}


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("kind", COLLATES)
def test_what_a_collate_function_returns_is_what_comes(kind, workers):
    settings = {"batch_size": 2, "collate_fn": COLLATES[kind], "num_workers": workers}
    samples = Samples(4, lambda i: np.full(2, i))
    found = plain(list(mg.data.DataLoader(samples, **settings)))
    settings["num_workers"] = 0
    assert found == plain(list(torch.utils.data.DataLoader(samples, **settings)))


@BOTH
def test_samples_one_by_one_are_converted(lib):
    samples = Samples(1, lambda i: (np.full(2, i), i, "a", np.float32(2)))
    (sample,) = lib.utils.data.DataLoader(samples, batch_size=None)
    assert type(sample) is list and sample[1:3] == [0, "a"]
    assert all(isinstance(sample[n], lib.Tensor) for n in (0, 3))


@BOTH
def test_derivatives_go_through_batches(lib):
    codes = lib.nn.Parameter(lib.arange(4.0).reshape(2, 2))
    for data in (Samples(2, lambda i: codes[i]), lib.utils.data.TensorDataset(codes)):
        codes.grad = None
        (batch,) = lib.utils.data.DataLoader(data, batch_size=2)
        (batch if isinstance(batch, lib.Tensor) else batch[0]).pow(2).sum().backward()
        assert codes.grad.tolist() == [[0.0, 2.0], [4.0, 6.0]]


@BOTH
def test_collating_by_a_table(lib):
    table = lib.utils.data._utils.collate
    assert (
        table.collate([1, 2], collate_fn_map={int: lambda batch, collate_fn_map=None: "I"}) == "I"
    )
    with pytest.raises(TypeError):
        table.collate([1.5], collate_fn_map={str: len})
    table.default_collate_fn_map[set] = lambda batch, collate_fn_map=None: sorted(set.union(*batch))
    try:
        assert list(lib.utils.data.DataLoader([{1}, {2}], batch_size=2)) == [[1, 2]]
    finally:
        del table.default_collate_fn_map[set]


@BOTH
def test_a_subclass_says_what_its_samples_are(lib):
    class Tenfold(lib.utils.data.TensorDataset):
        def __getitem__(self, index):
            return super().__getitem__(index)[0] * 10, index

    (batch,) = lib.utils.data.DataLoader(Tenfold(lib.arange(2)), batch_size=2)
    assert [part.tolist() for part in batch] == [[0, 10], [0, 1]]


@BOTH
def test_parts_follow_what_they_are_of(lib):
    data = lib.utils.data

    def rows(dataset):
        return [batch[0].tolist() for batch in data.DataLoader(dataset, batch_size=2)]

    part = data.Subset(data.TensorDataset(lib.arange(6)), [1, 2, 3])
    assert part[[0, 2]][0].tolist() == [1, 3]
    assert rows(pickle.loads(pickle.dumps(part))) == [[1, 2], [3]]
    twin = copy.deepcopy(part)
    twin.dataset.tensors[0].mul_(5)
    assert (rows(part), rows(twin)) == ([[1, 2], [3]], [[5, 10], [15]])
    part.indices = [5, 4]
    assert rows(part) == [[5, 4]]
    part.dataset.tensors = (lib.arange(6) * 2,)
    assert rows(part) == [[10, 8]]
    part.dataset = data.TensorDataset(lib.arange(6) * 10)
    assert rows(part) == [[50, 40]]


# PyTorch's workers take seconds to start, and give what it gives without them.
@pytest.mark.parametrize("lib, workers", [(monograph.torch, 0), (monograph.torch, 2), (torch, 0)])
def test_an_error_costs_one_batch(lib, workers):
    def sample(index):
        if index == 2:
            raise ValueError("two")
        return index

    batches = iter(lib.utils.data.DataLoader(Samples(5, sample), num_workers=workers))
    found = []
    while True:
        try:
            found.append(next(batches).item())
        except ValueError:
            found.append("error")
        except StopIteration:
            break
    assert found == [0, 1, "error", 3, 4] and len(batches) == 5


@BOTH
def test_the_order_of_an_epoch_can_be_repeated(lib):
    def order():
        return [batch.tolist() for batch in loader]

    loader = lib.utils.data.DataLoader(range(50), batch_size=10, shuffle=True)
    lib.manual_seed(0)
    state = lib.get_rng_state()
    first, second = order(), order()
    lib.set_rng_state(state)
    assert first != second and order() == first
    with lib.random.fork_rng():
        assert order() == second
    assert order() == second
    generator = lib.Generator()
    loader = lib.utils.data.DataLoader(range(50), batch_size=50, shuffle=True, generator=generator)
    generator.manual_seed(5)
    one, other = order(), order()
    lib.manual_seed(9)
    generator.manual_seed(5)
    assert one != other and order() == one


@BOTH
def test_a_generator_is_shared_by_what_it_is_given_to(lib):
    generator = lib.Generator().manual_seed(1)
    split = [lib.utils.data.random_split(range(50), [50], generator)[0].indices for _ in range(2)]
    generator.manual_seed(1)
    again = lib.utils.data.random_split(range(50), [1.0], generator)[0].indices
    assert list(split[0]) != list(split[1]) and list(split[0]) == list(again)


def test_workers_change_nothing_but_the_time():
    def epoch(workers):
        mg.manual_seed(4)
        loader = mg.data.DataLoader(range(20), batch_size=5, shuffle=True, num_workers=workers)
        return [batch.tolist() for batch in loader]

    assert epoch(0) == epoch(2)


def seed_numpy(worker):
    np.random.seed(mg.initial_seed() % 2**32)


@pytest.mark.parametrize(
    "draw",
    [lambda i: mg.rand(()).item(), lambda i: np.random.rand(), lambda i: mg.initial_seed()],
    ids=["tensors", "numpy", "seed"],
)
def test_workers_draw_numbers_of_their_own(draw):
    loader = mg.data.DataLoader(Samples(2, draw), num_workers=2, worker_init_fn=seed_numpy)

    def epoch():
        return [batch.item() for batch in loader]

    mg.manual_seed(3)
    first, second = epoch(), epoch()
    assert len({*first, *second}) == 4
    mg.manual_seed(3)
    assert epoch() == first


class Counted:
    def __init__(self):
        self.read = 0

    def __len__(self):
        return 4

    def __getitem__(self, index):
        self.read += 1
        return self.read


def test_workers_that_stay_remember():
    begun = []
    loader = mg.data.DataLoader(
        Counted(), num_workers=1, persistent_workers=True, worker_init_fn=begun.append
    )
    assert [[batch.item() for batch in loader] for _ in range(2)] == [[1, 2, 3, 4], [5, 6, 7, 8]]
    assert next(iter(loader)).item() == 9  # an epoch that is left early
    assert [batch.item() for batch in loader][0] > 9 and begun == []
    again = mg.data.DataLoader(Counted(), num_workers=1)
    assert [[batch.item() for batch in again] for _ in range(2)] == [[1, 2, 3, 4]] * 2


def test_an_order_without_end_and_without_length():
    class Round(mg.data.Sampler):
        def __iter__(self):
            while True:
                yield from range(5)

    loader = mg.data.DataLoader(range(5), sampler=Round(), batch_size=2, num_workers=2)
    batches = iter(loader)
    found = [next(batches).tolist() for _ in range(6)]
    assert found == [[0, 1], [2, 3], [4, 0], [1, 2], [3, 4], [0, 1]]


@BOTH
@pytest.mark.parametrize("size", [None, 2])
def test_data_and_orders_that_are_their_own_iterators(lib, size):
    class Count:
        def __iter__(self):
            self.begun = getattr(self, "begun", 0) + 1
            self.at = 0
            return self

        def __next__(self):
            self.at += 1
            if self.at > 4:
                raise StopIteration
            return self.at

    class Stream(Count, lib.utils.data.IterableDataset):
        pass

    order = Count()
    loaders = [lib.utils.data.DataLoader(Stream(), batch_size=size)]
    if lib is not torch or size is None:  # it starts such an order anew for each batch
        loaders.append(lib.utils.data.DataLoader(range(5), batch_size=size, sampler=order))
    for loader in loaders:
        found = [batch if size is None else batch.tolist() for batch in loader]
        assert found == ([1, 2, 3, 4] if size is None else [[1, 2], [3, 4]])
    if size is None:
        assert order.begun == 1


@BOTH
def test_what_a_loader_shows(lib):
    data = lib.utils.data
    loader = data.DataLoader(range(6), batch_size=4)
    assert loader.collate_fn is data.default_collate and len(iter(loader)) == 2
    loader = data.DataLoader(range(6), batch_sampler=[[0]])
    assert isinstance(loader.sampler, data.SequentialSampler)
    assert data.DataLoader(range(6), num_workers=1).prefetch_factor == 2
    for kind in (data.Dataset, data.Sampler, data.DataLoader):
        assert issubclass(type("Own", kind[int].__mro_entries__(()), {}), kind)


@BOTH
def test_numbers_that_are_read_through_a_conjugate(lib):
    data = lib.utils.data.TensorDataset(lib.tensor([1 + 1j, 2 + 2j]).conj())
    ((batch,),) = lib.utils.data.DataLoader(data, batch_size=2)
    assert batch.tolist() == [1 - 1j, 2 - 2j]


@BOTH
def test_a_part_without_samples_is_told(lib):
    with pytest.warns(UserWarning, match="Length of split at index 1 is 0"):
        lib.utils.data.random_split(range(3), [0.9, 0.1])
    with pytest.raises(AssertionError):
        lib.utils.data.ConcatDataset([])


def test_an_epoch_keeps_the_data_that_it_began_with():
    for library in (torch.utils.data, mg.data):
        loader = library.DataLoader(list(range(6)), batch_size=2)
        batches = iter(loader)
        assert next(batches).tolist() == [0, 1]
        object.__setattr__(loader, "dataset", [10 * n for n in range(6)])
        assert [each.tolist() for each in batches] == [[2, 3], [4, 5]]
        assert next(iter(loader)).tolist() == [0, 10]
