"""Some elements of sparse tensors, and sparse tensors without any: as in PyTorch."""

import pytest
import torch

import monograph as mg

TAKEN = {
    "row": lambda m, x: x[0],
    "last row": lambda m, x: x[-1],
    "column": lambda m, x: x[:, 1],
    "element": lambda m, x: x[2, 1],
    "element that is not kept": lambda m, x: x[0, 2],
    "new axis": lambda m, x: x[None],
    "new axis between": lambda m, x: x[:, None],
    "select": lambda m, x: x.select(1, 2),
    "function": lambda m, x: m.select(x, 0, 1),
    "rows": lambda m, x: x.index_select(0, m.tensor([2, 0, 2])),
    "columns": lambda m, x: m.index_select(x, 1, m.tensor([1])),
    "one by one": lambda m, x: m.stack([r.to_dense() if r.is_sparse else r for r in x]),
    "like": lambda m, x: m.zeros_like(x),
    "unsqueezed": lambda m, x: x.unsqueeze(-1),
}


def of_values(lib):
    values = lib.tensor([1.0, 2.0, 3.0, 5.0])
    return values, lib.sparse_coo_tensor([[0, 2, 2, 0], [0, 1, 2, 0]], values, (3, 3))


def of_rows(lib):
    values = lib.tensor([[1.0, 2.0, 4.0], [3.0, 4.0, 5.0]])
    return values, lib.sparse_coo_tensor([[0, 2]], values, (3, 3))


@pytest.fixture(autouse=True)
def uncompiled():
    with mg.config.override(backend="reference"):
        yield


@pytest.mark.parametrize("made", [of_values, of_rows])
@pytest.mark.parametrize("name", TAKEN)
def test_elements(name, made):
    found = []
    for lib in (torch, mg):
        if lib is torch and made is of_rows and name == "one by one":
            found.append((False, made(lib)[1].to_dense().tolist()))  # its rows are dense
            continue
        taken = TAKEN[name](lib, made(lib)[1])
        found.append((taken.is_sparse, (taken.to_dense() if taken.is_sparse else taken).tolist()))
    assert found[0] == found[1]


@pytest.mark.parametrize("made", [of_values, of_rows])
@pytest.mark.parametrize("name", sorted(set(TAKEN) - {"like", "one by one"}))
def test_gradients(name, made):
    slopes = []
    for sparse in (True, False):
        values, x = made(mg)
        values.requires_grad_()
        taken = TAKEN[name](mg, x if sparse else x.to_dense())
        dense = taken.to_dense() if taken.is_sparse else taken
        (dense * dense).sum().backward()
        slopes.append(values.grad.tolist())
    assert slopes[0] == slopes[1]


def test_none_kept():
    for lib in (torch, mg):
        x = lib.zeros(2, 3, layout=lib.sparse_coo)
        assert x.is_sparse and x._nnz() == 0 and x.shape == (2, 3)
        assert x.to_dense().tolist() == [[0.0] * 3] * 2
        assert lib.empty((2,), layout=lib.sparse_coo, dtype=lib.int64).dtype == lib.int64
        with pytest.raises(RuntimeError):
            lib.ones(2, layout=lib.sparse_coo)


def test_what_is_refused():
    for lib in (torch, mg):
        x = lib.eye(3).to_sparse()
        with pytest.raises(IndexError, match="out of bounds for dimension 0 with size 3"):
            x[5]
        with pytest.raises(IndexError, match="Dimension out of range"):
            x.select(2, 0)
        with pytest.raises(TypeError, match="Cannot assign to a sparse tensor"):
            x[0] = 1.0
        with pytest.raises(NotImplementedError):
            x[0:2]
        with pytest.raises(NotImplementedError):
            x[lib.tensor([0, 1])]
        with pytest.raises((IndexError, RuntimeError)):
            x.index_select(0, lib.tensor([3]))
