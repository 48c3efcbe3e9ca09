"""Keys of every kind, read and assigned, with derivatives, against PyTorch."""

import ctypes

import numpy as np
import pytest
import torch

import monograph as mg
from monograph.backends import calls
from monograph.recorder import current

A = np.random.default_rng(0).normal(size=(4, 5, 6)).astype("f")


class T:
    """An index tensor in a key."""

    def __init__(self, data):
        self.data = np.asarray(data)


EMPTY = T(np.zeros(0, np.int64))
KEYS = {
    "list of slices": [slice(None), slice(0, 1)], "list with None": [None, 1],
    "list of lists": [[0, 1], [1, 2]], "list of lists and integers": [[0, 1], 1],
    "integer": 0, "from the end": -1, "slice": slice(1, 3), "None": None, "ellipsis": ...,
    "integers": (0, 1, 2), "last": (..., 0), "new axes": (None, ..., None),
    "tensor": T([0, 2]), "matrix": T([[0, 2], [1, -1]]), "two tensors": (T([0, 1]), T([2, 3])),
    "second axis": (slice(None), T([1, 2])), "apart": (T([0, 1]), slice(None), T([2, 3])),
    "integer and tensor": (0, T([1, 2]), slice(1, 4)),
    "steps, tensor, integer": (slice(None, None, 2), T([1, 2]), 0),
    "mask of rows": T(A[:, 0, 0] > 0), "mask": T(A > 0),
    "mask of the second axis": (slice(None), T(A[0, :, 0] > 0)),
    "mask and number": (T(A[:, :, 0] > 0), T(2)), "True": True,
    "True and slice": (True, slice(0, 2)),
    "list": [0, 2], "list of booleans": [True, False, True, False], "number": T(1),
    "numbers": (T(1), T(2)), "number on the second axis": (slice(None), T(2)),
    "NumPy integer": np.int64(2), "apart by None": (T([0, 1]), None, T([2, 3])),
    "None and tensor": (None, T([0, 1])), "empty slice": slice(2, 2), "empty tensor": EMPTY,
    "last axis": (..., T([0, 5])),
}  # fmt: skip


def convert(key, library):
    if isinstance(key, T):
        return library.tensor(key.data)
    if isinstance(key, tuple):
        return tuple(convert(part, library) for part in key)
    return key


@pytest.mark.parametrize("backend", ["reference", "cpu"])
@pytest.mark.parametrize("name", KEYS)
def test_key(name, backend):
    new = np.random.default_rng(1).normal(size=A[:0].shape)
    results = []
    for library in (mg, torch):
        with mg.config.override(backend=backend):
            key = convert(KEYS[name], library)
            x = library.tensor(A)
            read = x[key]
            new = np.random.default_rng(1).normal(size=tuple(read.shape)).astype("f")
            filled = library.tensor(A)
            filled[key] = 7.0
            filled[key] = filled[key] * 2
            p = library.tensor(A, requires_grad=True)
            w = library.tensor(new, requires_grad=True)
            (p[key] ** 2).sum().backward()
            q = p * 2
            q[key] = w
            (q**3).sum().backward()
            results.append([t.detach().numpy() for t in (read, filled, p.grad, w.grad)])
    for ours, theirs in zip(*results, strict=True):
        assert ours.shape == theirs.shape
        np.testing.assert_allclose(ours, theirs, rtol=1e-5)


@pytest.mark.parametrize(
    "key, error",
    [
        ((0, 0, 0, 0), IndexError), (9, IndexError), (slice(None, None, -1), ValueError),
        (T([0.5]), IndexError), (T([True, False]), IndexError), ("a", TypeError),
        (T(np.ones((4, 4), bool)), IndexError),
    ],
)  # fmt: skip
def test_wrong_keys(key, error):
    for library in (mg, torch):
        x = library.tensor(A)
        with pytest.raises(error):
            x[convert(key, library)]


def test_last_of_equal_places_stays():
    x = mg.zeros(3)
    x[mg.tensor([1, 1, 1])] = mg.tensor([1.0, 2.0, 3.0])
    assert x.tolist() == [0, 3, 0]


@pytest.mark.parametrize("name", ["gather", "index_select", "take", "masked_select"])
def test_out_lies_apart_and_has_the_dtype(name):
    def call(library, out):
        x = library.arange(6.0)
        places = library.tensor([4, 2, 0])
        mask = x > 2
        rest = {"gather": (0, places), "index_select": (0, places), "take": (places,),
                "masked_select": (mask,)}[name]  # fmt: skip
        target = out(library, x)
        getattr(library, name)(x, *rest, out=target)
        return target

    fine = [call(library, lambda lib, x: lib.zeros(3)) for library in (mg, torch)]
    assert fine[0].tolist() == fine[1].tolist()
    for wrong in (
        lambda lib, x: x[:3],
        lambda lib, x: lib.zeros(3, dtype=lib.float64),
        lambda lib, x: lib.zeros(1).expand(3),
    ):
        for library in (mg, torch):
            with pytest.raises(RuntimeError):
                call(library, wrong)


def test_scatter_writes_into_out():
    out = mg.zeros(3)
    made = mg.scatter(mg.ones(3), 0, mg.tensor([1]), mg.tensor([5.0]), out=out)
    assert made is out and out.tolist() == [1, 5, 1]


@pytest.mark.parametrize("zeros", [0, 1, 2, 3])
@pytest.mark.parametrize("include_self", [True, False])
def test_second_derivative_of_products_with_zeros(zeros, include_self):
    """Against the product written out, which has no special case."""
    x = np.array([2.0, 3.0])
    src = np.array([1.5, -2.0, 0.5, 4.0])
    src[1 : zeros + 1] = 0.0
    x[0] = 0.0 if zeros == 1 else 2.0
    results = []
    for written_out in (False, True):
        p, q = mg.tensor(x, requires_grad=True), mg.tensor(src, requires_grad=True)
        if written_out:
            product = q[0] * q[1] * q[2] * q[3]
            y = mg.stack([product * p[0] if include_self else product, p[1]])
        else:
            where = mg.zeros(4, dtype=mg.int64)
            y = p.scatter_reduce(0, where, q, "prod", include_self=include_self)
        first = mg.autograd.grad((y * mg.tensor([1.0, 2.0])).sum(), (p, q), create_graph=True)
        weights = mg.tensor([0.3, 0.7, -1.0, 2.0])
        total = (first[1] * weights).sum() + (first[0] * weights[:2]).sum()
        second = mg.autograd.grad(total, (p, q), allow_unused=True)
        parts = [g.detach().numpy() for g in first]
        parts += [np.zeros(2) if second[0] is None else second[0].numpy(), second[1].numpy()]
        results.append(parts)
    for ours, plain in zip(*results, strict=True):
        np.testing.assert_allclose(ours, plain, rtol=1e-9, atol=1e-12)


def test_a_mask_is_looked_at_again_when_it_has_changed():
    x = mg.arange(6.0)
    mask = x > 3
    assert x[mask].tolist() == (x + 0)[mask].tolist() == [4.0, 5.0]
    mask[0] = True
    assert x[mask].tolist() == [0.0, 4.0, 5.0]
    mask.logical_not_()
    assert x[mask].tolist() == [1.0, 2.0, 3.0]
    part = mask[:]
    assert x[part].tolist() == [1.0, 2.0, 3.0]
    mask.fill_(True)
    assert x[part].tolist() == x.tolist()
    array = mask.numpy()
    array[2:] = False
    assert x[mask].tolist() == [0.0, 1.0]
    array[1:] = False
    assert x[mask].tolist() == x[part].tolist() == [0.0]


@pytest.mark.parametrize("exposed", ["numpy", "dlpack", "address"])
def test_a_mask_that_was_changed_from_outside_is_read_again(exposed):
    mask, x = mg.tensor([True, False, True]), mg.arange(3.0)
    assert x[mask].tolist() == [0.0, 2.0]
    if exposed == "address":
        ctypes.memset(mask.data_ptr(), 1, 3)
    else:
        array = mask.numpy() if exposed == "numpy" else np.from_dlpack(mask)
        array[1] = True
        del array  # the memory is the tensor's alone again
    assert (mask | mask).all()
    assert x[mask].tolist() == [0.0, 1.0, 2.0]


def test_a_mask_that_was_used_in_inference_mode_is_used_again():
    mask, x = mg.tensor([True, False, True]), mg.ones(3, requires_grad=True)
    with mg.inference_mode():
        assert x[mask].tolist() == [1.0, 1.0]
    (x[mask] ** 2).sum().backward()
    assert x.grad.tolist() == [2.0, 0.0, 2.0]


@pytest.mark.parametrize("key, checked", [("mask", 0), ("places", 1)])
def test_only_places_that_the_user_gave_are_checked(key, checked):
    x = mg.rand(6, 2)
    x.tolist()
    given = {"mask": mg.tensor([True, False] * 3), "places": mg.tensor([0, 2, 4])}[key]
    given.tolist()
    picked = x[given]
    signature = current.recorder.records[-1].signature
    call = calls.call_of(signature.operator, signature.attributes, signature.inputs)
    assert call.groups == checked
    assert picked.tolist() == x.tolist()[::2]
