"""Order, ranks, search and counts against PyTorch."""

import numpy as np
import pytest
import torch

import monograph as mg

from .compare import agree, close, numbers

NAN, INF = float("nan"), float("inf")


@pytest.fixture(params=("reference", "cpu"), autouse=True)
def backend(request):
    with mg.config.override(backend=request.param):
        yield request.param


def normal(*size, seed=0, dtype="float64"):
    return np.asarray(np.random.default_rng(seed).normal(size=size)).astype(dtype)


def whole(*size, seed=0, dtype="int64"):
    return np.random.default_rng(seed).integers(0, 6, size=size).astype(dtype)


SHAPES = [((7,), 0), ((3, 4), 0), ((3, 4), -1), ((2, 3, 4), 1), ((), 0), ((0,), 0), ((2, 0), 1),
          ((1, 5), 1)]  # fmt: skip


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize(("size", "dim"), SHAPES)
def test_sort(size, dim, descending):
    order = 0 if 0 in size else 2
    agree(mg.sort, torch.sort, normal(*size), dim, descending, order=order)
    agree(mg.argsort, torch.argsort, normal(*size), dim, descending, order=0)


@pytest.mark.parametrize("dtype", ["float32", "float16", "int64", "int32", "uint8", "bool"])
@pytest.mark.parametrize("descending", [False, True])
def test_sort_keeps_the_order_of_equal_values(dtype, descending):
    data = whole(4, 40).astype(dtype)
    facts = {"stable": True, "dim": 1, "descending": descending, "order": 0}
    agree(mg.sort, torch.sort, data, **facts)


@pytest.mark.parametrize("descending", [False, True])
def test_sort_puts_nan_where_the_greatest_goes(descending):
    data = np.array([2.0, NAN, -INF, 1.0, NAN, INF, 0.0, -0.0])
    agree(mg.sort, torch.sort, data, descending=descending, stable=True, order=0)


def test_names_of_results():
    result = mg.tensor([2.0, 1.0]).sort()
    assert result.values.tolist() == [1.0, 2.0] and result.indices.tolist() == [1, 0]
    assert type(result).__name__ == "sort" and result._fields == ("values", "indices")
    values = mg.zeros(2)
    places = mg.zeros(2, dtype=mg.int64)
    mg.sort(mg.tensor([2.0, 1.0]), out=(values, places))
    assert values.tolist() == [1.0, 2.0] and places.tolist() == [1, 0]


def test_msort_and_views():
    agree(mg.msort, torch.msort, normal(4, 3))
    agree(lambda a: mg.sort(a.T[::2], 0), lambda a: torch.sort(a.T[::2], 0), normal(4, 6))


@pytest.mark.parametrize(("largest", "k"), [(True, 2), (False, 3), (True, 0), (True, 4)])
def test_topk(largest, k):
    agree(mg.topk, torch.topk, normal(3, 4), k, largest=largest, order=2 if k else 0)
    agree(mg.topk, torch.topk, normal(4, 3), k, 0, largest, order=2 if k else 0)


@pytest.mark.parametrize("largest", [True, False])
def test_topk_of_many(largest):
    """Few of many are not found by sorting, but they come in order, NaN first or not at all."""
    data = np.round(normal(3, 500), 1)
    data[1, [3, 7, 400]] = NAN
    made = mg.topk(mg.tensor(data), 20, largest=largest)
    close(made.values, torch.topk(torch.tensor(data), 20, largest=largest).values, 0)
    places = numbers(made.indices)
    np.testing.assert_array_equal(np.take_along_axis(data, places, 1), numbers(made.values))
    assert all(len(set(row)) == 20 for row in places)
    agree(mg.topk, torch.topk, normal(2, 60), 3, largest=largest)


def test_topk_of_too_many():
    for k in (-1, 4):
        with pytest.raises(RuntimeError, match="out of range"):
            mg.topk(mg.zeros(3), k)
    with pytest.raises(IndexError):
        mg.topk(mg.zeros(3), 1, 1)
    agree(mg.topk, torch.topk, np.array(3.0), 1)


def test_kthvalue():
    for k in (1, 3, 4):
        agree(mg.kthvalue, torch.kthvalue, normal(3, 4), k)
        agree(mg.kthvalue, torch.kthvalue, normal(4, 3), k, 0, True)
    agree(mg.kthvalue, torch.kthvalue, np.array(3.0), 1)
    for k in (0, 5):
        with pytest.raises(RuntimeError, match="out of range"):
            mg.kthvalue(mg.zeros(4), k)


@pytest.mark.parametrize("name", ["median", "nanmedian"])
def test_medians(name):
    ours, theirs = getattr(mg, name), getattr(torch, name)
    for size in ((5,), (6,), (3, 4), ()):
        agree(ours, theirs, normal(*size))
    agree(ours, theirs, normal(3, 4), 1)
    agree(ours, theirs, normal(3, 4), 0, True)
    agree(ours, theirs, np.array([[3, 1, 2], [9, 7, 8]]), 1, order=0)
    holes = np.array([[1.0, NAN, 3.0, 2.0], [5.0, 4.0, 7.0, 6.0], [NAN, NAN, 1.0, NAN]])
    agree(ours, theirs, holes, 1, order=0)
    agree(ours, theirs, holes, order=0)
    agree(ours, theirs, normal(0), order=0)
    with pytest.raises(IndexError):
        ours(mg.zeros(2, 0), 1)


def test_a_median_of_only_nan():
    made = mg.nanmedian(mg.tensor([[NAN, NAN]]), 1)
    expected = torch.nanmedian(torch.tensor([[NAN, NAN]]), 1)
    close(made.values, expected.values, 0)
    close(made.indices, expected.indices, 0)


def test_mode():
    agree(mg.mode, torch.mode, np.array([[1, 2, 2, 3, 3], [5, 5, 1, 1, 0]]), order=0)
    agree(mg.mode, torch.mode, whole(6, 5).astype("float64"), 0, order=1)
    agree(mg.mode, torch.mode, whole(3, 9), 1, True, order=0)
    agree(mg.mode, torch.mode, np.array(2.0), order=0)


INTERPOLATIONS = ("linear", "lower", "higher", "midpoint", "nearest")


@pytest.mark.parametrize("interpolation", INTERPOLATIONS)
@pytest.mark.parametrize("name", ["quantile", "nanquantile"])
def test_quantiles(name, interpolation):
    ours, theirs = getattr(mg, name), getattr(torch, name)
    facts = {"interpolation": interpolation}
    for q in (0.0, 0.3, 0.5, 1.0):
        agree(ours, theirs, normal(3, 5), q, order=1, **facts)
        agree(ours, theirs, normal(3, 5), q, 1, order=1, **facts)
        agree(ours, theirs, normal(3, 5), q, 0, True, order=1, **facts)
    several = np.array([0.1, 0.5, 0.9])
    holes = normal(3, 5)
    holes[1, 2] = holes[2] = NAN
    for library_order, data in ((1, normal(3, 5)), (0, holes)):

        def call(function):
            return lambda x, q, *rest: function(x, q.detach(), *rest, **facts)

        agree(call(ours), call(theirs), data, several, order=library_order)
        agree(call(ours), call(theirs), data, several, 1, order=library_order)
        agree(call(ours), call(theirs), data, several, 0, True, order=library_order)
        agree(call(ours), call(theirs), data, several, None, True, order=library_order)


def test_quantiles_refuse():
    for bad in (-0.1, 1.5):
        with pytest.raises(RuntimeError, match=r"\[0, 1\]"):
            mg.quantile(mg.zeros(3), bad)
    with pytest.raises(RuntimeError, match="dtype"):
        mg.quantile(mg.zeros(3, dtype=mg.int64), 0.5)
    with pytest.raises(RuntimeError, match="non-empty"):
        mg.quantile(mg.zeros(0), 0.5)
    with pytest.raises(RuntimeError, match="interpolation"):
        mg.quantile(mg.zeros(3), 0.5, interpolation="cubic")
    agree(mg.quantile, torch.quantile, np.array(3.0), 0.5, order=1)


@pytest.mark.parametrize("facts", [{}, {"right": True}, {"side": "right"}, {"out_int32": True}])
def test_searchsorted(facts):
    bounds = np.sort(whole(7).astype("float64"))
    rows = np.sort(whole(3, 5), axis=1)
    agree(mg.searchsorted, torch.searchsorted, bounds, normal(3, 4) * 4, order=0, **facts)
    agree(mg.searchsorted, torch.searchsorted, bounds, bounds, order=0, **facts)
    agree(mg.searchsorted, torch.searchsorted, rows, whole(3, 4, seed=1), order=0, **facts)
    agree(mg.searchsorted, torch.searchsorted, bounds, 2.5, order=0, **facts)


def test_searchsorted_by_a_sorter():
    data = normal(6)
    made = mg.searchsorted(
        mg.tensor(data), mg.tensor(normal(3, seed=1)), sorter=mg.tensor(np.argsort(data))
    )
    expected = torch.searchsorted(
        torch.tensor(data), torch.tensor(normal(3, seed=1)), sorter=torch.tensor(np.argsort(data))
    )
    close(made, expected, 0)


def test_searchsorted_refuses():
    with pytest.raises(RuntimeError, match="same dtype"):
        mg.searchsorted(mg.zeros(3), mg.zeros(3, dtype=mg.float64))
    with pytest.raises(RuntimeError, match="opposites"):
        mg.searchsorted(mg.zeros(3), mg.zeros(3), side="left", right=True)
    with pytest.raises(RuntimeError, match="boundaries tensor"):
        mg.searchsorted(mg.zeros(2, 3), mg.zeros(3))


def test_bucketize():
    bounds = np.array([-1.0, 0.0, 0.5, 2.0])
    for right in (False, True):
        agree(mg.bucketize, torch.bucketize, normal(3, 4), bounds, right=right, order=0)
    assert mg.bucketize(2.0, mg.tensor(bounds)).item() == 3


def test_histc():
    data = normal(100, dtype="float32")
    agree(mg.histc, torch.histc, data, 10, -2, 2, order=0)
    agree(mg.histc, torch.histc, data, 7, order=0)
    agree(mg.histc, torch.histc, np.full(4, 2.0), 4, order=0)
    agree(mg.histc, torch.histc, np.array([0.0, 1.0, 2.0, 3.0, NAN]), 3, 0, 3, order=0)
    with pytest.raises(RuntimeError, match="bins must be"):
        mg.histc(mg.zeros(3), 0)
    with pytest.raises(RuntimeError, match="larger"):
        mg.histc(mg.zeros(3), 4, 2, 1)


def test_bincount():
    agree(mg.bincount, torch.bincount, whole(20), order=0)
    agree(mg.bincount, torch.bincount, whole(20), minlength=9, order=0)
    agree(mg.bincount, torch.bincount, whole(20), normal(20), order=0)
    agree(mg.bincount, torch.bincount, whole(20), normal(20, dtype="float32"), order=0)
    agree(mg.bincount, torch.bincount, np.zeros(0, "int64"), order=0)
    with pytest.raises(RuntimeError, match="non-negative"):
        mg.bincount(mg.tensor([1, -1]))


@pytest.mark.parametrize("dim", [None, 0, 1])
def test_unique(dim):
    for data in (whole(6, 3) % 2, (whole(4, 5) % 2).astype("float32")):
        for name in ("unique", "unique_consecutive"):
            facts = {"return_inverse": True, "return_counts": True, "dim": dim, "order": 0}
            agree(getattr(mg, name), getattr(torch, name), data, **facts)
            agree(getattr(mg, name), getattr(torch, name), data, dim=dim, order=0)


def test_unique_of_nothing_and_of_nan():
    agree(mg.unique, torch.unique, np.zeros(0), order=0)
    agree(mg.unique, torch.unique, np.array([NAN, 1.0, NAN]), return_counts=True, order=0)
    agree(mg.unique_consecutive, torch.unique_consecutive, np.zeros(0), order=0)
    agree(mg.unique_consecutive, torch.unique_consecutive, np.array([1, 1, 2]), order=0)


def test_sorting_inside_a_larger_program():
    """Kernels before and after, and a derivative through both."""

    def loss(library):
        return lambda x: (library.sort(library.exp(x) * 2, 0).values.sum(1) ** 2).mean()

    agree(loss(mg), loss(torch), normal(5, 4))
    x = mg.tensor(normal(64, 32, dtype="float32"))
    assert numbers(x.sort(1).values).tolist() == np.sort(numbers(x), 1).tolist()
