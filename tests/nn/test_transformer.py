"""Transformers against PyTorch's, from the same weights."""

import warnings

import numpy as np
import pytest
import torch

import monograph as mg
from monograph import nn

SETTINGS = {"d_model": 4, "nhead": 2, "dim_feedforward": 6, "dropout": 0.0}


def pair(name, *args, **settings):
    theirs = getattr(torch.nn, name)(*args, **settings).double()
    ours = getattr(nn, name)(*args, **settings).double()
    ours.load_state_dict({k: v.detach().numpy() for k, v in theirs.state_dict().items()})
    return ours, theirs


def both(*shape, seed=0):
    values = np.random.default_rng(seed).normal(size=shape)
    return mg.tensor(values, requires_grad=True), torch.tensor(values, requires_grad=True)


def same(ours, theirs):
    np.testing.assert_allclose(
        ours.detach().numpy(), theirs.detach().numpy(), rtol=1e-8, atol=1e-10
    )


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch's about nested tensors
        yield


@pytest.mark.parametrize(
    "more",
    [{}, {"norm_first": True, "activation": "gelu", "batch_first": True, "bias": False}],
    ids=str,
)
def test_encoder_layer(more):
    ours, theirs = pair("TransformerEncoderLayer", **SETTINGS, **more)
    assert [n for n, _ in ours.named_parameters()] == [n for n, _ in theirs.named_parameters()]
    x, y = both(2, 3, 4)
    batch = 2 if more else 3
    length = 3 if more else 2
    mask = np.triu(np.ones((length, length), bool), 1)
    padding = np.zeros((batch, length), bool)
    padding[0, -1] = True
    own = ours(x, mg.tensor(mask), mg.tensor(padding))
    given = theirs(y, torch.tensor(mask), torch.tensor(padding))
    same(own, given)
    (own * own).sum().backward(), (given * given).sum().backward()
    same(x.grad, y.grad)
    for p, q in zip(ours.parameters(), theirs.parameters(), strict=True):
        same(p.grad, q.grad)
    ours.eval(), theirs.eval()
    same(ours(x), theirs(y))


def test_whole():
    ours, theirs = pair("Transformer", 4, 2, 1, 2, 6, 0.0)
    assert [n for n, _ in ours.named_parameters()] == [n for n, _ in theirs.named_parameters()]
    (x, y), (s, t) = both(3, 2, 4), both(2, 2, 4, seed=1)
    own = nn.Transformer.generate_square_subsequent_mask(2, dtype=mg.float64)
    given = torch.nn.Transformer.generate_square_subsequent_mask(2, dtype=torch.float64)
    same(own, given)
    found, wanted = ours(x, s, tgt_mask=own), theirs(y, t, tgt_mask=given)
    same(found, wanted)
    found.sum().backward(), wanted.sum().backward()
    same(x.grad, y.grad), same(s.grad, t.grad)


def test_masks_of_the_decoder():
    ours, theirs = pair("TransformerDecoderLayer", **SETTINGS, batch_first=True)
    stack = nn.TransformerDecoder(ours, 2, nn.LayerNorm(4).double())
    twin = torch.nn.TransformerDecoder(theirs, 2, torch.nn.LayerNorm(4).double())
    (x, y), (m, n) = both(2, 3, 4), both(2, 2, 4, seed=1)
    padding = np.array([[False, True], [False, False]])
    mask = np.zeros((3, 2))
    mask[0, 1] = -1.5
    same(
        stack(x, m, memory_mask=mg.tensor(mask)),
        twin(y, n, memory_mask=torch.tensor(mask)),
    )
    same(
        stack(x, m, memory_key_padding_mask=mg.tensor(padding)),
        twin(y, n, memory_key_padding_mask=torch.tensor(padding)),
    )


def test_layers_are_copies():
    stack = nn.TransformerEncoder(nn.TransformerEncoderLayer(**SETTINGS), 3)
    assert len(list(stack.parameters())) == 3 * 12
    same(stack.layers[0].linear1.weight, stack.layers[2].linear1.weight)
    assert stack.layers[0].linear1.weight is not stack.layers[2].linear1.weight


def test_errors():
    with pytest.raises(RuntimeError, match="activation"):
        nn.TransformerEncoderLayer(**SETTINGS, activation="tanh")
    model = nn.Transformer(4, 2, 1, 1, 6)
    with pytest.raises(RuntimeError, match="batch number"):
        model(mg.zeros(3, 2, 4), mg.zeros(3, 1, 4))
    with pytest.raises(RuntimeError, match="feature number"):
        model(mg.zeros(3, 2, 5), mg.zeros(3, 2, 5))


@pytest.mark.parametrize("changed", [{}, {"norm_first": True}, {"nhead": 1}, {"bias": False}])
@pytest.mark.parametrize("first_masked", [3, 1])
def test_padded_places_are_zero_where_pytorch_leaves_them_out(changed, first_masked):
    """It does so without gradients, if all padding is at the ends and the layers allow it."""
    settings = {**SETTINGS, "batch_first": True, **changed}
    layer, their_layer = pair("TransformerEncoderLayer", **settings)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = torch.nn.TransformerEncoder(their_layer, 2, torch.nn.LayerNorm(4).double())
    ours = nn.TransformerEncoder(layer, 2, nn.LayerNorm(4).double())
    state = {name: t.detach().numpy() + 0.1 for name, t in theirs.state_dict().items()}
    ours.load_state_dict(state)
    theirs.load_state_dict({name: torch.tensor(t) for name, t in state.items()})
    x, their_x = both(2, 5, 4)
    padding = np.zeros((2, 5), bool)
    padding[1, first_masked:] = True
    padding[0, 4] = first_masked == 3
    if first_masked == 1:
        padding[1, 4] = False  # not at the end
    for training in (True, False):
        ours.train(training), theirs.train(training)
        for enabled in (True, False):
            with mg.set_grad_enabled(enabled), torch.set_grad_enabled(enabled):
                same(
                    ours(x, src_key_padding_mask=mg.tensor(padding)),
                    theirs(their_x, src_key_padding_mask=torch.tensor(padding)),
                )
