"""Operators with a mask against PyTorch."""

import numpy as np
import pytest
import torch

import monograph as mg

from .compare import agree

X = np.random.default_rng(0).normal(size=(3, 4))
MASKS = {
    "some": np.random.default_rng(1).random((3, 4)) > 0.4,
    "one row for all": np.array([True, False, True, True]),
    "a row of nothing": np.array([[True], [False], [True]]),
    "none": None,
}

REDUCTIONS = ["sum", "prod", "amax", "amin", "mean", "var", "std", "norm", "logsumexp", "median"]


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("keepdim", [True, False])
def test_reductions(name, mask, keepdim):
    def call(library):
        given = MASKS[mask]
        made = None if given is None else library.tensor(given)
        return lambda x: getattr(library.masked, name)(x, dim=1, keepdim=keepdim, mask=made)

    agree(call(mg), call(torch), X, order=0 if mask == "a row of nothing" else 1)


@pytest.mark.parametrize("name", ["cumsum", "cumprod", "softmax", "log_softmax", "softmin"])
@pytest.mark.parametrize("mask", ["some", "one row for all", "none"])
def test_along_an_axis(name, mask):
    def call(library):
        given = MASKS[mask]
        made = None if given is None else library.tensor(given)
        return lambda x: getattr(library.masked, name)(x, 1, mask=made)

    agree(call(mg), call(torch), X, order=1)


def test_places_in_the_dtype_of_the_input():
    mask = [[True, False, True, True]] * 3
    for name in ("argmax", "argmin"):
        ours = getattr(mg.masked, name)(mg.tensor(X), 1, mask=mg.tensor(mask))
        theirs = getattr(torch.masked, name)(torch.tensor(X), 1, mask=torch.tensor(mask))
        assert ours.tolist() == theirs.tolist() and ours.dtype is mg.float64


def test_wrong_masks():
    for library in (mg, torch):
        with pytest.raises(IndexError):
            library.masked.sum(library.ones(3), mask=library.ones(2, 3))
        with pytest.raises(ValueError):
            library.masked.mean(library.ones(3, dtype=library.int64))
        with pytest.raises(ValueError):
            library.masked.median(library.tensor([1, 2]), mask=library.tensor([False, False]))
