"""The strides of results: elementwise operators lie as their operands do, as in PyTorch."""

import copy
import itertools
import pickle

import numpy as np
import pytest
import torch
import torch.nn.functional as TF
from hypothesis import given, settings
from hypothesis import strategies as st

import monograph as mg
import monograph.nn.functional as F
from monograph.strides import dense_like

OPERANDS = {
    "permuted": lambda t: t[..., :5].clone().permute(2, 0, 1),
    "permuted with gaps": lambda t: t[:, :, ::2].permute(2, 0, 1),
    "with gaps": lambda t: t[:, :, ::2],
    "transposed": lambda t: t[0, :, :5].clone().t(),
    "expanded": lambda t: t[:1, :1, :5].clone().permute(2, 1, 0).expand(5, 6, 4),
    "a column": lambda t: t[:, :1, :1].clone().permute(2, 0, 1),
    "images": lambda t: t[..., :8].clone().reshape(4, 6, 4, 2).permute(0, 2, 3, 1),
}

# name → function of (the package, its functional module, a tensor)
RESULTS = {
    "relu": lambda m, f, x: f.relu(x),
    "times two": lambda m, f, x: x * 2,
    "compared": lambda m, f, x: x > 0,
    "cast": lambda m, f, x: x.to(m.float64),
    "clone": lambda m, f, x: x.clone(),
    "contiguous clone": lambda m, f, x: x.clone(memory_format=m.contiguous_format),
    "contiguous": lambda m, f, x: x.contiguous(),
    "where": lambda m, f, x: m.where(x > 0, x, 0.0),
    "masked_fill": lambda m, f, x: x.masked_fill(x > 0, 1.0),
    "with a contiguous one": lambda m, f, x: x + m.zeros(x.shape),
    "a contiguous one with it": lambda m, f, x: m.zeros(x.shape) + x,
    "with a row": lambda m, f, x: x + m.zeros(x.shape[-1]),
    "a row with it": lambda m, f, x: m.zeros(x.shape[-1]) - x,
    "with a column": lambda m, f, x: x * m.ones(x.shape[-2], 1),
    "zeros_like": lambda m, f, x: m.zeros_like(x),
    "randn_like": lambda m, f, x: m.randn_like(x),
    "flip": lambda m, f, x: x.flip(0),
    "sort": lambda m, f, x: x.sort(0)[0],
    "softmax": lambda m, f, x: x.softmax(0),
    "cumsum": lambda m, f, x: x.cumsum(0),
    "sum": lambda m, f, x: x.sum(1, keepdim=True),
    "dropout": lambda m, f, x: f.dropout(x, 0.5),
    "gelu": lambda m, f, x: f.gelu(x),
    "normalised": lambda m, f, x: f.normalize(x, dim=0),
    "diff": lambda m, f, x: x.diff(dim=0),
    "repeated": lambda m, f, x: x.repeat(*[1] * x.ndim),
    "repeated more": lambda m, f, x: x.repeat(2, *[1] * (x.ndim - 1)),
    "tiled": lambda m, f, x: x.tile(1, 1),
    "each repeated": lambda m, f, x: x.repeat_interleave(1, 0),
    "rolled": lambda m, f, x: x.roll(0, 0),
    "bernoulli": lambda m, f, x: m.bernoulli(x.clamp(0, 1)),
    "turned": lambda m, f, x: x.mT + 1,
    "in place": lambda m, f, x: x.clone().mul_(2),
    "copied into": lambda m, f, x: x.clone().copy_(m.zeros(x.shape)),
    "a write through a view": lambda m, f, x: written_through(x.clone()),
}


def written_through(x):
    x[0].fill_(1.0)
    return x


def operands(name):
    array = np.random.default_rng(0).standard_normal((4, 6, 10), np.float32)
    return OPERANDS[name](mg.tensor(array)), OPERANDS[name](torch.tensor(array))


def seen(t):
    """Strides of axes with more than one place, and what follows from them."""
    return [s for s, n in zip(t.stride(), t.shape, strict=True) if n > 1], t.is_contiguous()


@pytest.mark.parametrize("operand", OPERANDS)
@pytest.mark.parametrize("result", RESULTS)
def test_results(operand, result):
    ours, theirs = operands(operand)
    a = RESULTS[result](mg, F, ours)
    b = RESULTS[result](torch, TF, theirs)
    assert seen(a) == seen(b)
    assert refuses(lambda: a.view(-1)) == refuses(lambda: b.view(-1))
    assert shares(a) == shares(b)
    if result not in ("randn_like", "dropout", "bernoulli"):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-5, atol=1e-6)
    a.sum().item()
    assert seen(a) == seen(b)  # also once it is computed


def refuses(action):
    try:
        action()
    except RuntimeError:
        return True
    return False


def shares(t):
    """Whether a write to the flattened tensor is a write to the tensor."""
    if t.dtype in (mg.bool, torch.bool):
        return None
    line = t.reshape(-1)
    before = t * 1
    t.fill_(77.0)
    found = [n == 77.0 for n in line.tolist()]
    t.copy_(before)
    return found


IMAGES = {
    "conv2d": lambda m, f, x: f.conv2d(x, m.ones(5, 3, 2, 2)),
    "conv_transpose2d": lambda m, f, x: f.conv_transpose2d(x, m.ones(3, 5, 2, 2)),
    "max_pool2d": lambda m, f, x: f.max_pool2d(x, 2),
    "avg_pool2d": lambda m, f, x: f.avg_pool2d(x, 2),
    "adaptive_avg_pool2d": lambda m, f, x: f.adaptive_avg_pool2d(x, 2),
    "batch_norm": lambda m, f, x: f.batch_norm(x, None, None, training=True),
    "batch_norm in use": lambda m, f, x: f.batch_norm(x, m.zeros(3), m.ones(3)),
    "group_norm": lambda m, f, x: f.group_norm(x, 1),
    "interpolate": lambda m, f, x: f.interpolate(x, scale_factor=2),
}


@pytest.mark.parametrize("name", IMAGES)
@pytest.mark.parametrize("last", [True, False])
def test_images_keep_their_channels_last(name, last):
    array = np.random.default_rng(1).standard_normal((2, 4, 6, 3), np.float32)
    ours, theirs = (t.permute(0, 3, 1, 2) for t in (mg.tensor(array), torch.tensor(array)))
    if not last:
        ours, theirs = ours.contiguous(), theirs.contiguous()
    a, b = IMAGES[name](mg, F, ours), IMAGES[name](torch, TF, theirs)
    assert seen(a) == seen(b)


def test_gradients_lie_as_their_leaves():
    (ours, theirs) = (t.detach().requires_grad_() for t in operands("permuted"))
    (ours * ours).sum().backward()
    (theirs * theirs).sum().backward()
    assert ours.grad.stride() == theirs.grad.stride()


def test_copies_lie_as_what_they_copy():
    x = mg.ones(2, 3).t() * 2
    for made in (copy.deepcopy(x), pickle.loads(pickle.dumps(x)), mg.nn.Parameter(x)):
        assert made.stride() == (1, 3) and made.tolist() == x.tolist()


def test_saved_and_loaded(tmp_path):
    x = mg.arange(6.0).reshape(2, 3).t() * 2
    mg.save({"whole": x, "row": x[1], "turned": x.t()}, tmp_path / "file")
    found = mg.load(tmp_path / "file")
    assert found["whole"].stride() == (1, 3) and found["whole"].tolist() == x.tolist()
    assert found["row"].tolist() == x[1].tolist()
    found["row"].zero_()
    assert found["whole"][1].tolist() == found["turned"][:, 1].tolist() == [0.0, 0.0]


def test_an_array_that_shares_no_memory_cannot_be_written():
    y = (mg.ones(2, 3).t() * 2).t().view(-1)
    array = y.numpy()
    assert array.tolist() == [2.0] * 6
    with pytest.raises(ValueError, match="read-only"):
        array[0] = 1.0


def test_views_that_no_strides_show_of_memory_that_numpy_holds():
    y = mg.arange(6.0).reshape(2, 3).t() * 2
    line = y.t().view(-1)
    array = y.numpy()
    before = line * 2
    array[0, 0] = 50.0
    assert before.tolist() == [0.0, 4.0, 8.0, 12.0, 16.0, 20.0]
    assert (line * 2).tolist()[0] == 100.0 and line.detach().tolist()[:2] == [50.0, 2.0]


def test_a_layout_costs_no_second_signature_when_contiguous():
    x = mg.ones(2, 3)
    assert (x * 2)._storage.value.meta is x._storage.value.meta
    assert (x.t() * 2).t()._value().meta is x._storage.value.meta


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_the_rule_against_pytorch(data):
    """Random operands of up to four axes: orders, gaps, repeated axes."""
    rank = data.draw(st.integers(1, 4))
    shape = tuple(data.draw(st.lists(st.sampled_from([1, 2, 3]), min_size=rank, max_size=rank)))
    given_ones = []
    for _ in range(data.draw(st.integers(1, 3))):
        lead = data.draw(st.integers(0, rank))
        own = tuple([1 if data.draw(st.booleans()) else n for n in shape[lead:]])
        order = data.draw(st.sampled_from(list(itertools.permutations(range(len(own))))))
        strides, step = [0] * len(own), data.draw(st.sampled_from([1, 1, 2]))
        for k in order:
            strides[k] = step
            step *= own[k] * data.draw(st.sampled_from([1, 1, 2]))
            if data.draw(st.integers(0, 5)) == 0:
                strides[k] = 0
        given_ones.append((own, tuple(strides)))
    tensors = [torch.empty(500).as_strided(own, strides) for own, strides in given_ones]
    functions = {1: torch.neg, 2: torch.add, 3: torch.addcmul}
    expected = functions[len(tensors)](*tensors)
    found = dense_like(tuple(expected.shape), given_ones)
    places = [k for k, n in enumerate(expected.shape) if n > 1]
    assert [found[k] for k in places] == [expected.stride(k) for k in places]
