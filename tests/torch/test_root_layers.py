"""`torch.lstm` and others: the results of PyTorch for the same weights."""

import numpy as np
import pytest
import torch as pytorch

import monograph.torch as torch
from monograph import config

KINDS = {"lstm": ("LSTM", {}), "gru": ("GRU", {}), "rnn_tanh": ("RNN", {}),
         "rnn_relu": ("RNN", {"nonlinearity": "relu"})}  # fmt: skip


@pytest.fixture(autouse=True)
def uncompiled():
    with config.override(backend="reference"):
        yield


def moved(x):
    if isinstance(x, (list, tuple)):
        return type(x)(moved(part) for part in x)
    return torch.tensor(x.detach().numpy()) if isinstance(x, pytorch.Tensor) else x


def assert_same(name, *args):
    expected = getattr(pytorch, name)(*args)
    found = getattr(torch, name)(*moved(args))
    if isinstance(found, torch.Tensor):
        found, expected = (found,), (expected,)
    for ours, theirs in zip(found, expected, strict=True):
        assert np.allclose(ours.numpy(), theirs.detach().numpy(), atol=1e-5)


@pytest.mark.parametrize("name", KINDS)
def test_recurrent_layers(name):
    kind, options = KINDS[name]
    pytorch.manual_seed(0)
    layer = getattr(pytorch.nn, kind)(3, 4, 2, bidirectional=True, **options)
    weights = [w for group in layer.all_weights for w in group]
    x, start = pytorch.randn(5, 2, 3), pytorch.randn(4, 2, 4)
    state = [start, pytorch.randn(4, 2, 4)] if name == "lstm" else start
    assert_same(name, x, state, weights, True, 2, 0.0, False, True, False)
    sizes = pytorch.tensor([2, 2, 1])
    assert_same(name, x.reshape(10, 3)[:5], sizes, state, weights, True, 2, 0.0, False, True)


def test_projections_and_errors():
    layer = pytorch.nn.LSTM(3, 4, proj_size=2, bias=False, batch_first=True)
    weights = list(layer.parameters())
    state = [pytorch.randn(1, 2, 2), pytorch.randn(1, 2, 4)]
    x = pytorch.randn(2, 5, 3)
    assert_same("lstm", x, state, weights, False, 1, 0.0, False, False, True)
    with pytest.raises(RuntimeError, match="weights were expected"):
        torch.lstm(*moved((x, state, weights[:2])), True, 1, 0.0, False, False, True)


@pytest.mark.parametrize("name", ["lstm_cell", "gru_cell", "rnn_tanh_cell", "rnn_relu_cell"])
def test_cells(name):
    gates = {"lstm_cell": 4, "gru_cell": 3}.get(name, 1)
    draw = pytorch.randn
    hx = (draw(2, 4), draw(2, 4)) if name == "lstm_cell" else draw(2, 4)
    weights = (draw(4 * gates, 3), draw(4 * gates, 4), draw(4 * gates), draw(4 * gates))
    assert_same(name, draw(2, 3), hx, *weights)
    assert_same(name, draw(2, 3), hx, *weights[:2])


@pytest.mark.parametrize("mode", [0, 1, 2])
def test_bags(mode):
    weight, indices = pytorch.randn(6, 3), pytorch.tensor([0, 5, 2, 2, 1])
    for offsets, last in ((pytorch.tensor([0, 2, 2]), False), (pytorch.tensor([0, 3, 5]), True)):
        args = (weight, indices, offsets, False, mode, False, None, last)
        expected, of, sizes, _ = pytorch.embedding_bag(*args)
        found = torch.embedding_bag(*moved(args))
        assert np.allclose(found[0].numpy(), expected.numpy(), atol=1e-6)
        if mode == 1:
            assert (found[1].tolist(), found[2].tolist()) == (of.tolist(), sizes.tolist())


def test_convolutions_and_losses():
    x, w, b = pytorch.randn(1, 4, 7), pytorch.randn(6, 2, 3), pytorch.randn(6)
    assert_same("convolution", x, w, b, [2], [1], [1], False, [0], 2)
    assert_same("convolution", x, pytorch.randn(4, 2, 3), None, [2], [1], [1], True, [1], 2)
    assert_same("poisson_nll_loss", x, x.abs(), True, True, 1e-8, 1)
