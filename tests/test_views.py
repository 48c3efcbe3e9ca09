"""Views, strides and shared memory: what shares a storage, what is refused, what is seen where."""

import numpy as np
import pytest
import torch

import monograph as mg
from monograph import geometry
from monograph.ops.define import all_operators
from monograph.storage import meta_of
from monograph.strides import contiguous

CHAINS = {
    "whole": lambda t: t,
    "permute": lambda t: t.permute(2, 0, 1),
    "row": lambda t: t[1],
    "steps": lambda t: t[:, 2:6:2],
    "slices of a transpose": lambda t: t.transpose(0, 2)[1:3].unsqueeze(1),
    "new axis": lambda t: t[:, None],
    "row of a reshape": lambda t: t.reshape(24, 5)[3],
    "reshape over steps": lambda t: t[:, ::2].reshape(12, 5),
    "expanded number": lambda t: t[0, 0, 0].expand(2, 3),
    "expanded axis": lambda t: t[:, :1].expand(4, 7, 5),
    "split, turned and joined": lambda t: (
        t.reshape(2, 2, 6, 5).permute(2, 3, 0, 1).reshape(6, 5, 4)
    ),
    "flattened transpose": lambda t: t.transpose(0, 1).flatten(1),
    "squeezed": lambda t: t[:1].squeeze(),
    "as_strided": lambda t: t.as_strided((3, 2), (2, 7), 5),
    "as_strided of a view": lambda t: t[1:].as_strided((3, 2), (2, 7)),
    "empty": lambda t: t[2:2],
}


def pair():
    array = np.arange(120, dtype=np.float32).reshape(4, 6, 5)
    return mg.tensor(array), torch.tensor(array)


@pytest.mark.parametrize("name", CHAINS)
def test_strides_and_offset(name):
    ours, theirs = (CHAINS[name](t) for t in pair())
    assert ours.tolist() == theirs.tolist()
    assert ours.is_contiguous() == theirs.is_contiguous()
    if theirs.numel():
        assert ours.stride() == theirs.stride()
        assert ours.storage_offset() == theirs.storage_offset()


@pytest.mark.parametrize("name", CHAINS)
def test_sharing(name):
    """A write to the base is seen in the result exactly where PyTorch shares the storage."""
    (a, b) = pair()
    ours, theirs = CHAINS[name](a), CHAINS[name](b)
    a.mul_(-1)
    b.mul_(-1)
    assert ours.tolist() == theirs.tolist()
    if name not in ("expanded number", "expanded axis"):
        ours.add_(1000)
        theirs.add_(1000)
        assert a.tolist() == b.tolist()


@pytest.mark.parametrize("name", CHAINS)
def test_view_refuses_as_pytorch(name):
    (a, b) = pair()
    ours, theirs = CHAINS[name](a), CHAINS[name](b)
    try:
        expected = theirs.view(-1)
    except RuntimeError:
        with pytest.raises(RuntimeError, match="reshape"):
            ours.view(-1)
    else:
        assert ours.view(-1).tolist() == expected.tolist()


@pytest.mark.parametrize("name", ["expanded number", "expanded axis"])
def test_writing_to_an_expanded_tensor(name):
    for t in pair():
        with pytest.raises(RuntimeError, match="single memory location"):
            CHAINS[name](t).add_(1)


@pytest.mark.parametrize("name", [n for n in CHAINS if n != "flattened transpose"])
def test_numpy_shares_memory_both_ways(name):
    (a, b) = pair()
    ours, theirs = CHAINS[name](a), CHAINS[name](b)
    x, y = ours.numpy(), theirs.numpy()
    assert x.strides == y.strides or not x.size
    a.add_(1)
    b.add_(1)
    np.testing.assert_array_equal(x, y)
    if x.size:
        x[(0,) * x.ndim] = y[(0,) * y.ndim] = -5
    assert a.tolist() == b.tolist()
    assert (a * 2).tolist() == (b * 2).tolist()


@pytest.mark.parametrize("make", [lambda a: a, lambda a: a.T, lambda a: a[::2, 1:], lambda a: a[1]])
def test_from_numpy_shares_memory(make):
    arrays = [np.arange(24.0).reshape(4, 6) for _ in range(2)]
    parts = [make(a) for a in arrays]
    ours, theirs = mg.from_numpy(parts[0]), torch.from_numpy(parts[1])
    before, expected = ours * 2, theirs * 2
    for part in parts:
        part += 100
    assert before.tolist() == expected.tolist()  # recorded before the change
    assert ours.tolist() == theirs.tolist()
    ours.mul_(3)
    theirs.mul_(3)
    np.testing.assert_array_equal(*arrays)
    assert ours.stride() == theirs.stride()


def test_large_arrays_are_used_at_the_call():
    array = np.ones(2_000_000, np.float32)
    x = mg.from_numpy(array)
    y = x * 2
    array[:] = 7
    assert y[0].item() == 2.0
    assert x[0].item() == 7.0


def test_exposure_ends_with_the_array():
    x = mg.ones(3)
    array = x.numpy()
    flushes = mg.stats().flushes
    x.add_(1)
    assert mg.stats().flushes == flushes + 1  # the array must see it
    np.testing.assert_array_equal(array, [2, 2, 2])
    del array
    x.add_(1)
    assert mg.stats().flushes == flushes + 1  # nobody looks any more
    assert x.tolist() == [3, 3, 3]


def test_gradients_of_a_tensor_that_numpy_sees():
    x = mg.ones(3).requires_grad_()
    with mg.no_grad():
        array = x.detach().numpy()
    y = x * x
    array[:] = 5
    y.sum().backward()
    # The product was taken at the call; the derivative of x·x reads x as it is now, as in PyTorch.
    assert y.tolist() == [1, 1, 1]


def test_dlpack():
    x = mg.arange(6).reshape(2, 3)
    array = np.from_dlpack(x)
    torch.from_dlpack(x)[0, 0] = 9
    assert array[0, 0] == 9 and x[0, 0].item() == 9
    y = mg.from_dlpack(torch.arange(4.0))
    assert y.tolist() == [0, 1, 2, 3]


def test_slices_of_data_are_leaves():
    """Where a slice begins is no part of the program."""
    data = mg.tensor(np.random.default_rng(0).normal(size=(64, 8)).astype("f"))
    weight = mg.tensor(np.ones((8, 8), "f"))
    mg.synchronize()
    made = mg.stats().compilations
    totals = [(data[k : k + 4] @ weight).sum().item() for k in range(0, 60, 4)]
    assert mg.stats().compilations == made + 1
    rows = data.detach().numpy()
    np.testing.assert_allclose(
        totals, [rows[k : k + 4].sum() * 8 for k in range(0, 60, 4)], rtol=1e-3
    )


def test_a_part_that_was_read_is_not_overwritten():
    data = mg.tensor(np.arange(8.0))
    early = data[2:4] * 10
    data.add_(1)
    late = data[2:4] * 10
    assert early.tolist() == [20, 30]
    assert late.tolist() == [30, 40]
    assert data.tolist() == list(np.arange(8.0) + 1)


def test_numpy_of_a_tensor_that_requires_grad():
    with pytest.raises(RuntimeError, match="detach"):
        mg.ones(2, requires_grad=True).numpy()


def test_the_geometry_of_many_views_is_that_of_the_last():
    ours, theirs = mg.arange(24).reshape(2, 3, 4), torch.arange(24).reshape(2, 3, 4)
    steps = [
        lambda x: x.transpose(0, 2),
        lambda x: x.unsqueeze(1),
        lambda x: x[:, :, ::2],
        lambda x: x.permute(2, 3, 0, 1),
        lambda x: x[:, 1:],
        lambda x: x.squeeze(3),
        lambda x: x[..., 1:3],
        lambda x: x.expand(2, *x.shape),
        lambda x: x[1],
        lambda x: x.flatten(),
        lambda x: x.reshape(2, -1),
        lambda x: x.t(),
    ]
    for step in steps:
        ours, theirs = step(ours), step(theirs)
        longer = [k for k, extent in enumerate(theirs.shape) if extent > 1]
        assert [ours.stride(k) for k in longer] == [theirs.stride(k) for k in longer]
        assert ours.storage_offset() == theirs.storage_offset()
        assert ours.is_contiguous() == theirs.is_contiguous()
        assert ours.tolist() == theirs.tolist()


def test_plain_steps_lie_as_their_index_maps_say():
    kind = meta_of((4, 1, 5, 3), mg.float32)
    operators = {op.name: op for op in all_operators() if op.view}
    whole = (None, None, None)
    for start in (((operators["permute"], ((2, 0, 3, 1),)),), ()):
        for name, attributes in [
            ("index", ((1,),)), ("index", ((-1, None, whole),)), ("index", (((1, 3, None), 0),)),
            ("index", ((whole, whole, (0, None, 2), None, -1),)), ("index", (((2, 2, None),),)),
            ("index", ((whole, (-1, None, 1)),)), ("select", (-2, 0)), ("select", (0, -1)),
            ("unsqueeze", (-1,)), ("unsqueeze", (0,)), ("index", ((whole,),)),
        ]:  # fmt: skip
            step = (operators[name], attributes)
            for chain in ((*start, step), (*start, step, (operators["index"], ((None, whole),)))):
                slow = geometry._work_out(kind, contiguous(kind.shape), chain)
                assert geometry.geometry_of(kind, None, chain) == slow, chain


def test_pieces_at_ever_new_places_are_not_remembered():
    data = mg.arange(1000.0).reshape(500, 2)
    mg.synchronize()
    data[0]
    before = len(geometry._known)
    assert [data[n].tolist()[0] for n in range(500)] == [2.0 * n for n in range(500)]
    assert len(geometry._known) - before < 5


@pytest.mark.parametrize("write", ["fill_", "zero_"])
def test_a_number_is_written_into_what_shows_a_place_many_times(write):
    found = []
    for library in (mg, torch):
        x = library.arange(6.0).reshape(2, 1, 3)
        y = (x[:, :, 1:] * 1).expand(3, 2, 4, 2)
        z = library.zeros(0, 3).expand(2, 0, 3)
        for t in (y, z):
            getattr(t, write)(*([5.0] if write == "fill_" else []))
        y[0].tolist()
        with pytest.raises(RuntimeError, match="single memory location"):
            y.add_(1)
        found.append((x.tolist(), y.tolist(), list(z.shape)))
    assert found[0] == found[1]


def test_pieces_of_memory_shared_with_numpy_are_no_part_of_the_program():
    data = mg.tensor(np.arange(40.0, dtype=np.float32).reshape(10, 4))
    held = data[0].numpy()
    for n in range(1, 10):
        assert (data[n] * 2).sum().item() == 2 * (16 * n + 6)
        if n == 2:  # interpreted, then compiled
            mg.stats.reset()
    assert mg.stats().compilations == mg.stats().instantiations == mg.stats().interpreted == 0
    assert held.tolist() == [0.0, 1.0, 2.0, 3.0]


def test_a_piece_shows_what_numpy_writes_later():
    data = mg.zeros(4, 2)
    mg.synchronize()
    array = data.numpy()
    piece = data[1]
    array[1] = 5.0
    before = piece + 0
    array[1] = 6.0
    assert before.tolist() == [5.0, 5.0]
    assert (piece + 0).tolist() == [6.0, 6.0]
    piece.add_(1)
    assert array[1].tolist() == data[1].tolist() == [7.0, 7.0]


@pytest.mark.parametrize("key", [(1,), (-1, 2), (0, -1, 3), (1, 2, slice(None)), (slice(None), 0)])
def test_rows_of_data_lie_where_their_geometry_says(key):
    x = mg.arange(24).reshape(2, 3, 4).clone()
    wanted = x.numpy().copy()
    row = x[key]
    assert row.tolist() == wanted[key].tolist()
    assert (row.storage_offset(), row.stride()) == _placed(wanted, key)
    x.add_(1)
    assert row.tolist() == (wanted + 1)[key].tolist()
    with pytest.raises(IndexError):
        x[(*key[:-1], 9)]


def _placed(array, key):
    part = array[key]
    first = np.arange(array.size).reshape(array.shape)[key].reshape(-1)[0]
    return first, tuple(step // array.itemsize for step in getattr(part, "strides", ()))


def test_a_number_of_data_is_read_as_it_is_now():
    x = mg.tensor([1.0, 2.0, 3.0])
    mg.synchronize()
    second = x[1]
    assert second.item() == 2.0
    x.mul_(2)
    assert second.item() == 4.0
    x[1] = 7.0
    assert second.item() == 7.0
    x.numpy()[1] = 8.0
    assert second.item() == 8.0
