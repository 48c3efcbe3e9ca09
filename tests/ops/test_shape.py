"""Views of every kind: values, strides, what shares a storage; and what changes a view in place."""

import numpy as np
import pytest
import torch

import monograph as mg

VIEWS = {
    "view": lambda t: t.view(8, 15),
    "view_as": lambda t: t.view_as(t.new_zeros(5, 24)),
    "unflatten": lambda t: t.unflatten(1, (2, -1)),
    "flatten": lambda t: t.flatten(1),
    "squeeze": lambda t: t[:, :1].squeeze(1),
    "squeeze several": lambda t: t[:1, :1].squeeze((0, 1)),
    "unsqueeze": lambda t: t.unsqueeze(-1),
    "transpose": lambda t: t.transpose(0, 2),
    "swapaxes": lambda t: t.swapaxes(1, -1),
    "movedim": lambda t: t.movedim((0, 1), (1, 2)),
    "T": lambda t: t[0].T,
    "mT": lambda t: t.mT,
    "narrow": lambda t: t.narrow(1, -4, 2),
    "select": lambda t: t.select(1, -2),
    "split": lambda t: t.split((1, 3, 2), 1)[1],
    "chunk": lambda t: t.chunk(4, 1)[1],
    "tensor_split": lambda t: t.tensor_split((1, 4), 1)[1],
    "hsplit": lambda t: t.hsplit(3)[2],
    "unbind": lambda t: t.unbind(2)[3],
    "diagonal": lambda t: t.diagonal(1, 0, 2),
    "diagonal below": lambda t: t.diagonal(-2, 1, 2),
    "unfold": lambda t: t.unfold(1, 2, 2),
    "permute": lambda t: t.permute(dims=(1, 2, 0)),
    "as_strided": lambda t: t.as_strided((2, 3), (7, 2), 4),
}
OVERLAPPING = {
    "expand": lambda t: t[:, :1].expand(-1, 7, 5),
    "broadcast_to": lambda t: t[:1].broadcast_to((4, 6, 5)),
    "unfold with overlap": lambda t: t.unfold(2, 3, 1),
}


def pair():
    array = np.arange(120, dtype=np.float32).reshape(4, 6, 5)
    return mg.tensor(array), torch.tensor(array)


@pytest.mark.parametrize("name", VIEWS | OVERLAPPING)
def test_strides(name):
    ours, theirs = ((VIEWS | OVERLAPPING)[name](t) for t in pair())
    assert ours.tolist() == theirs.tolist()
    assert (ours.stride(), ours.storage_offset()) == (theirs.stride(), theirs.storage_offset())
    assert ours.is_contiguous() == theirs.is_contiguous()


@pytest.mark.parametrize("name", VIEWS | OVERLAPPING)
def test_a_write_to_the_base_is_seen(name):
    (a, b) = pair()
    ours, theirs = ((VIEWS | OVERLAPPING)[name](t) for t in (a, b))
    for t in (a, b):
        t.mul_(-1)
    assert ours.tolist() == theirs.tolist()


@pytest.mark.parametrize("name", VIEWS)
def test_a_write_to_the_view_is_seen(name):
    (a, b) = pair()
    for t in (a, b):
        VIEWS[name](t).add_(1000)
    assert a.tolist() == b.tolist()


@pytest.mark.parametrize("name", OVERLAPPING)
def test_a_write_where_elements_overlap_is_refused(name):
    with pytest.raises(RuntimeError, match="single memory location"):
        OVERLAPPING[name](pair()[0]).add_(1)


@pytest.mark.parametrize(
    "copy",
    [
        lambda t: t.repeat(1, 1, 1),
        lambda t: t.roll(0),
        lambda t: t.flip(0),
        lambda t: t.rot90(4),
        lambda t: t.clone(),
        lambda t: t.narrow_copy(0, 0, 4),
        lambda t: t.diagonal_scatter(t.diagonal() + 1),
    ],
)
def test_copies_share_nothing(copy):
    (a, b) = pair()
    ours, theirs = copy(a), copy(b)
    for t in (a, b):
        t.zero_()
    assert ours.tolist() == theirs.tolist() != a.tolist()


CHANGES = {
    "t_": lambda t: t[0].t_(),
    "transpose_": lambda t: t[1:].transpose_(0, 2),
    "swapaxes_": lambda t: t[1:].swapaxes_(0, 1),
    "squeeze_": lambda t: t[:1].squeeze_(0),
    "unsqueeze_": lambda t: t[1].unsqueeze_(1),
    "as_strided_": lambda t: t[1].as_strided_((2, 2), (1, 5)),
    "resize_": lambda t: t[1].resize_(2, 4),
}


@pytest.mark.parametrize("name", CHANGES)
def test_views_changed_in_place(name):
    (a, b) = pair()
    ours, theirs = CHANGES[name](a), CHANGES[name](b)
    assert ours.tolist() == theirs.tolist()
    assert ours.stride() == theirs.stride()
    ours.mul_(-1)
    theirs.mul_(-1)
    assert a.tolist() == b.tolist()


def test_a_leaf_is_not_changed_in_place():
    for m in (mg, torch):
        with pytest.raises(RuntimeError):
            m.ones(2, 3, requires_grad=True).t_()
        with pytest.raises(RuntimeError, match="require grad"):
            m.ones(2, 3, requires_grad=True).resize_(2)


def test_resizing_to_more_elements():
    x = mg.arange(4).resize_(2, 3)
    assert x.shape == (2, 3) and x.flatten()[:4].tolist() == [0, 1, 2, 3]
    out = mg.empty(0)
    y = mg.add(mg.ones(3), 1, out=out)
    assert y is out and out.tolist() == [2, 2, 2]


def test_set():
    x, y = mg.zeros(2), mg.arange(6.0)
    x.set_(y, 1, (2, 2), (2, 1))
    assert x.tolist() == [[1, 2], [3, 4]]
    x.fill_(9)
    assert y.tolist() == [0, 9, 9, 9, 9, 5]
    assert x.set_().shape == (0,)


def test_memory_seen_as_another_dtype():
    for m in (mg, torch):
        x = m.tensor([[1.0, 2.0]])
        assert x.view(m.int32).tolist() == [[0x3F800000, 0x40000000]]
        assert x.view(m.uint8).shape == (1, 8)
        x.view(m.int32)[0, 0] = 0
        assert x.tolist() == [[0.0, 2.0]]
        with pytest.raises(RuntimeError):
            m.ones(1).view(m.float64)


def test_derivatives_through_a_leaf_that_is_a_view():
    for m in (mg, torch):
        x = m.arange(6.0)[::2].requires_grad_()
        x.as_strided((3,), (1,), 1).sum().backward()
        assert x.grad.tolist() == [0, 1, 0]


# --- memory formats -----------------------------------------------------------------------------


def test_channels_last():
    for m in (mg, torch):
        x = m.arange(24.0).reshape(1, 2, 3, 4).contiguous(memory_format=m.channels_last)
        assert x.stride() == (24, 1, 8, 2)
        assert x.is_contiguous(memory_format=m.channels_last) and not x.is_contiguous()
        assert x.flatten().tolist() == list(range(24))
        assert x.clone().stride() == x.stride() == x.double().stride()
        assert x.clone(memory_format=m.contiguous_format).stride() == (24, 12, 4, 1)
        assert x.permute(0, 2, 3, 1).is_contiguous()
        assert x.permute(0, 2, 3, 1).reshape(-1)[:4].tolist() == [0, 12, 1, 13]
        x[0, 1] = 0
        assert x.sum().item() == 66
        with pytest.raises(RuntimeError):
            m.ones(2).contiguous(memory_format=m.channels_last)
    assert mg.empty(1, 2, 3, 4, memory_format=mg.channels_last).stride() == (24, 1, 8, 2)


def test_a_clone_of_a_transpose_lies_as_it_does():
    for m in (mg, torch):
        x = m.arange(6).reshape(2, 3).t()
        assert x.clone().stride() == (1, 3)
        assert x.contiguous().stride() == (2, 1)
        assert x.clone().tolist() == [[0, 3], [1, 4], [2, 5]]


# --- errors -------------------------------------------------------------------------------------

WRONG = [
    lambda m: m.ones(6).view(4, 2),
    lambda m: m.ones(6).view(-1, -1),
    lambda m: m.ones(2, 3).permute(0, 0),
    lambda m: m.ones(2, 3).expand(2, 4),
    lambda m: m.ones(2).expand(-1, 2),
    lambda m: m.ones(2, 3).squeeze(2),
    lambda m: m.ones(2, 3).movedim((0, 0), (0, 1)),
    lambda m: m.ones(2, 3).split([1, 2]),
    lambda m: m.ones(2, 3).chunk(0),
    lambda m: m.ones(2, 3).select(0, 2),
    lambda m: m.ones(2, 3).narrow(0, 1, 2),
    lambda m: m.ones(2, 3).unfold(0, 3, 1),
    lambda m: m.ones(2, 3).diagonal(0, 1, 1),
    lambda m: m.ones(2, 3).repeat(2),
    lambda m: m.cat([m.ones(2), m.ones(2, 2)]),
    lambda m: m.cat([]),
    lambda m: m.stack([m.ones(2), m.ones(3)]),
    lambda m: m.ones(3).hsplit(2),
    lambda m: m.ones(2, 3, 4).t(),
    lambda m: m.nn.functional.pad(m.ones(1, 3), (3, 0), mode="reflect"),
    lambda m: m.nn.functional.fold(m.ones(1, 3, 4), (2, 2), (2, 2)),
    lambda m: m.ones(2).reshape(1.0, 2),
]


@pytest.mark.parametrize("number", range(len(WRONG)))
def test_errors_are_of_the_same_class(number):
    with pytest.raises((RuntimeError, IndexError, TypeError, ValueError)) as theirs:
        WRONG[number](torch)
    with pytest.raises(theirs.type):
        WRONG[number](mg)


@pytest.mark.parametrize("shape", [(3, 3), (7, 3), (3, 5), (2, 2, 2)])
@pytest.mark.parametrize("wrap", [True, False])
def test_diagonals_are_filled_in_place(shape, wrap):
    ours, theirs = (lib.zeros(*shape) for lib in (mg, torch))
    assert ours.fill_diagonal_(3, wrap) is ours
    assert ours.tolist() == theirs.fill_diagonal_(3, wrap).tolist()


def test_diagonals_that_cannot_be_filled():
    for library in (mg, torch):
        for shape in ((3,), (2, 3, 2)):
            with pytest.raises(RuntimeError):
                library.zeros(*shape).fill_diagonal_(1)
