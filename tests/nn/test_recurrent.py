"""Recurrent layers and cells against PyTorch's: outputs, states, gradients; packed sequences."""

import copy
import pickle

import numpy as np
import pytest
import torch

import monograph as mg
from monograph import nn
from monograph.nn.utils import rnn as packing

LAYERS = [
    ("RNN", {}),
    ("RNN", {"nonlinearity": "relu", "bias": False}),
    ("LSTM", {"num_layers": 2, "batch_first": True}),
    ("LSTM", {"bidirectional": True, "proj_size": 2}),
    ("GRU", {}),
    ("GRU", {"bidirectional": True}),
]
STEPS, BATCH, WIDTH, HIDDEN = 2, 2, 3, 4


def title(case):
    return "-".join([case[0], *[f"{k}={v}" for k, v in case[1].items()]])


def pair(name, settings, *sizes):
    """(ours, PyTorch's) with the same weights, in float64."""
    theirs = getattr(torch.nn, name)(*sizes, **settings).double()
    ours = getattr(nn, name)(*sizes, **settings).double()
    ours.load_state_dict({k: v.detach().numpy() for k, v in theirs.state_dict().items()})
    return ours, theirs


def array(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


def leaves(result):
    """The tensors of nested tuples."""
    if isinstance(result, (tuple, list)):
        return [leaf for part in result for leaf in leaves(part)]
    return [] if result is None else [result]


def same(ours, theirs, rtol=1e-9):
    found, wanted = leaves(ours), leaves(theirs)
    assert len(found) == len(wanted)
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=rtol, atol=1e-10)


def same_gradients(ours, theirs, results, inputs):
    """Compare the gradients of a weighted sum of all results."""
    for result in results:
        total = 0
        for leaf in leaves(result):
            if leaf.is_floating_point():
                weights = np.cos(np.arange(leaf.numel())).reshape(tuple(leaf.shape))
                made = mg.tensor(weights) if isinstance(leaf, mg.Tensor) else torch.tensor(weights)
                total = total + (leaf * made).sum()
        total.backward()
    for (name, p), q in zip(ours.named_parameters(), theirs.parameters(), strict=True):
        np.testing.assert_allclose(
            p.grad.numpy(), q.grad.numpy(), rtol=1e-8, atol=1e-10, err_msg=name
        )
    for x, y in inputs:
        np.testing.assert_allclose(x.grad.numpy(), y.grad.numpy(), rtol=1e-8, atol=1e-10)


def both(values):
    return mg.tensor(values, requires_grad=True), torch.tensor(values, requires_grad=True)


def starts(name, settings, batch=BATCH):
    """A state for (ours, theirs), and its leaves."""
    layers = settings.get("num_layers", 1) * (2 if settings.get("bidirectional") else 1)
    hidden = both(array(layers, batch, settings.get("proj_size") or HIDDEN, seed=2))
    if name != "LSTM":
        return hidden, [hidden]
    cell = both(array(layers, batch, HIDDEN, seed=3))
    return tuple(zip(hidden, cell, strict=True)), [hidden, cell]


@pytest.mark.parametrize("case", LAYERS, ids=title)
def test_layer(case):
    name, settings = case
    ours, theirs = pair(name, settings, WIDTH, HIDDEN)
    assert repr(ours) == repr(theirs)
    first = settings.get("batch_first")
    x, y = both(array(BATCH, STEPS, WIDTH) if first else array(STEPS, BATCH, WIDTH))
    (own, given), state = starts(name, settings)
    results = ours(x, own), theirs(y, given)
    same(*results)
    same_gradients(ours, theirs, results, [(x, y), *state])
    same(ours(x), theirs(y))


@pytest.mark.parametrize("name", ["RNN", "LSTM", "GRU"])
def test_one_sequence_without_a_batch(name):
    ours, theirs = pair(name, {}, WIDTH, HIDDEN)
    x = array(STEPS, WIDTH)
    same(ours(mg.tensor(x)), theirs(torch.tensor(x)))
    hidden = array(1, HIDDEN, seed=4)
    own, given = mg.tensor(hidden), torch.tensor(hidden)
    if name == "LSTM":
        own, given = (own, own), (given, given)
    same(ours(mg.tensor(x), own), theirs(torch.tensor(x), given))


@pytest.mark.parametrize(
    ("case", "enforce"),
    [(("RNN", {}), True), (("LSTM", {"bidirectional": True}), False), (("GRU", {}), False)],
    ids=["RNN", "LSTM", "GRU"],
)
def test_packed_sequences(case, enforce):
    name, settings = case
    ours, theirs = pair(name, settings, WIDTH, HIDDEN)
    x, y = both(array(STEPS, BATCH, WIDTH))
    lengths = [2, 1] if enforce else [1, 2]
    own = packing.pack_padded_sequence(x, lengths, enforce_sorted=enforce)
    given = torch.nn.utils.rnn.pack_padded_sequence(y, lengths, enforce_sorted=enforce)
    same(own, given)
    (hidden, other), state = starts(name, settings)
    results = ours(own, hidden), theirs(given, other)
    same(*results)
    padded = packing.pad_packed_sequence(results[0][0], batch_first=True, padding_value=-1.0)
    wanted = torch.nn.utils.rnn.pad_packed_sequence(results[1][0], True, -1.0)
    same(padded, wanted)
    parts = [(padded[0], results[0][1]), (wanted[0], results[1][1])]
    same_gradients(ours, theirs, parts, [(x, y), *state])
    same(ours(own), theirs(given))


@pytest.mark.parametrize("settings", [{}, {"bias": False}], ids=str)
@pytest.mark.parametrize("name", ["RNNCell", "LSTMCell", "GRUCell"])
def test_cell(name, settings):
    ours, theirs = pair(name, settings, WIDTH, HIDDEN)
    assert repr(ours) == repr(theirs)
    x, y = both(array(BATCH, WIDTH))
    same(ours(x), theirs(y))
    hidden, cell = both(array(BATCH, HIDDEN, seed=1)), both(array(BATCH, HIDDEN, seed=2))
    own, given = zip(hidden, cell, strict=True) if name == "LSTMCell" else hidden
    results = ours(x, own), theirs(y, given)
    same(*results)
    same_gradients(ours, theirs, results, [(x, y), hidden])
    single = array(WIDTH)
    same(ours(mg.tensor(single)), theirs(torch.tensor(single)))


def test_relu_cell():
    ours, theirs = pair("RNNCell", {"nonlinearity": "relu"}, 2, 3)
    assert repr(ours) == repr(theirs)
    x = array(4, 2)
    same(ours(mg.tensor(x)), theirs(torch.tensor(x)))


def test_initial_weights():
    layer = nn.LSTM(10, 100)
    bound = 0.1
    for p in layer.parameters():
        values = p.detach().numpy()
        assert -bound <= values.min() < -0.08 and 0.08 < values.max() <= bound


def test_dropout_between_layers():
    layer = nn.GRU(3, 8, num_layers=2, dropout=0.5)
    x = mg.ones(4, 2, 3)
    assert not np.allclose(layer(x)[0].detach().numpy(), layer(x)[0].detach().numpy())
    layer.eval()
    np.testing.assert_array_equal(layer(x)[0].detach().numpy(), layer(x)[0].detach().numpy())
    with pytest.warns(UserWarning, match="num_layers greater than 1"):
        nn.GRU(3, 8, dropout=0.5)


def test_a_layer_is_one_loop():
    """What is recorded does not depend on the number of turns."""
    layer = nn.LSTM(3, 4)

    def recorded(steps):
        x = mg.rand(steps, 2, 3)
        mg.synchronize()
        mg.stats.reset()
        output, _ = layer(x)
        count = mg.stats().recorded
        del output
        return count

    assert recorded(12) == recorded(6) < 15


def test_copies_and_pickles():
    layer = nn.LSTM(2, 3)
    x = mg.rand(4, 1, 2)
    for twin in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        same(twin(x), layer(x))


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (lambda: nn.GRU(2, 3, proj_size=1), ValueError),
        (lambda: nn.RNN(2, 3, nonlinearity="gelu"), ValueError),
        (lambda: nn.LSTM(2, 3, proj_size=3), ValueError),
        (lambda: nn.LSTM(0, 3), ValueError),
        (lambda: nn.LSTM(2.5, 3), TypeError),
        (lambda: nn.LSTM(2, 3, dropout=2.0), ValueError),
        (lambda: nn.LSTM(2, 3)(mg.zeros(4)), ValueError),
        (lambda: nn.LSTM(2, 3)(mg.zeros(4, 1, 5)), RuntimeError),
        (lambda: nn.LSTM(2, 3)(mg.zeros(4, 1, 2).double()), ValueError),
        (lambda: nn.GRU(2, 3)(mg.zeros(4, 1, 2), mg.zeros(1, 2, 3)), RuntimeError),
        (lambda: nn.GRU(2, 3)(mg.zeros(4, 1, 2), mg.zeros(1, 3)), RuntimeError),
        (lambda: nn.GRUCell(2, 3)(mg.zeros(1, 1, 2)), ValueError),
        (lambda: nn.RNNCell(2, 3, nonlinearity="x")(mg.zeros(1, 2)), RuntimeError),
    ],
)
def test_errors(make, kind):
    with pytest.raises(kind):
        make()


def test_pad_sequence():
    arrays = [array(n, 2, seed=n) for n in (3, 1, 4)]
    for settings in ({}, {"batch_first": True, "padding_value": 2.5}, {"padding_side": "left"}):
        ours = packing.pad_sequence([mg.tensor(a) for a in arrays], **settings)
        theirs = torch.nn.utils.rnn.pad_sequence([torch.tensor(a) for a in arrays], **settings)
        same(ours, theirs)
    whole = packing.pad_sequence([mg.tensor([1, 2]), mg.tensor([3])])
    assert whole.dtype is mg.int64
    lengths = [3, 1, 4]
    padded = packing.pad_sequence([mg.tensor(a) for a in arrays])
    for found, wanted in zip(packing.unpad_sequence(padded, lengths), arrays, strict=True):
        np.testing.assert_array_equal(found.numpy(), wanted)


@pytest.mark.parametrize("dtype", ["int64", "uint8", "bool", "float64"])
def test_padding_keeps_the_dtype(dtype):
    made = []
    for library in (mg, torch):
        kind = getattr(library, dtype)
        parts = [library.tensor([1, 0, 1]).to(kind), library.tensor([1]).to(kind)]
        rnn = library.nn.utils.rnn
        padded, _ = rnn.pad_packed_sequence(rnn.pack_sequence(parts), padding_value=1.0)
        made.append((str(padded.dtype).split(".")[-1], padded.tolist()))
    assert made[0] == made[1]


def test_pack_sequence_and_back():
    arrays = [array(n, 2, seed=n) for n in (2, 4, 1)]
    own = packing.pack_sequence([mg.tensor(a) for a in arrays], enforce_sorted=False)
    given = torch.nn.utils.rnn.pack_sequence([torch.tensor(a) for a in arrays], False)
    same(own, given)
    for found, wanted in zip(packing.unpack_sequence(own), arrays, strict=True):
        np.testing.assert_array_equal(found.numpy(), wanted)
    same(
        packing.pad_packed_sequence(own, total_length=6),
        torch.nn.utils.rnn.pad_packed_sequence(given, total_length=6),
    )
    assert own.float().data.dtype is mg.float32 and own.to(mg.float64) is own


@pytest.mark.parametrize("lengths", [[1, 2], [2, 0], [2]])
def test_errors_of_packing(lengths):
    for module, tensor in ((packing, mg.zeros), (torch.nn.utils.rnn, torch.zeros)):
        with pytest.raises(RuntimeError):
            module.pack_padded_sequence(tensor(2, 2, 1), lengths)
    with pytest.raises(RuntimeError, match="padded length"):
        packing.pack_padded_sequence(mg.zeros(2, 2, 1), [3, 1])
    packed = packing.pack_sequence([mg.zeros(3, 1)])
    with pytest.raises(ValueError, match="total_length"):
        packing.pad_packed_sequence(packed, total_length=2)


def test_weights_that_lie_in_tensors_of_the_user_are_trained():
    """They are views, which the first step writes over: the loop must find them as leaves."""
    losses = []
    for layer in pair("GRU", {"batch_first": True}, 3, 4):
        library = mg if isinstance(layer, nn.Module) else torch
        held = [p.data.clone() for p in layer.parameters()]
        for p, own in zip(layer.parameters(), held, strict=True):
            p.data = own
        optimizer = library.optim.SGD(layer.parameters(), 0.1)
        losses.append([])
        for step in range(4):
            loss = layer(library.tensor(array(3, 4, 3, seed=step)))[0].pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses[-1].append(loss.item())
        assert all((p == own).all() for p, own in zip(layer.parameters(), held, strict=True))
    np.testing.assert_allclose(*losses, rtol=1e-12)


@pytest.mark.parametrize("case", LAYERS, ids=title)
def test_names_of_weights(case):
    name, settings = case
    ours, theirs = getattr(nn, name)(3, 4, **settings), getattr(torch.nn, name)(3, 4, **settings)
    assert ours.mode == theirs.mode
    assert ours._all_weights == theirs._all_weights
    assert ours._flat_weights_names == theirs._flat_weights_names
    for weight, name in zip(ours._flat_weights, ours._flat_weights_names, strict=True):
        assert weight is getattr(ours, name)
    assert [len(each) for each in ours.all_weights] == [len(each) for each in theirs.all_weights]


def test_dropped_weights_are_used():
    ours = nn.LSTM(3, 4)
    x = mg.ones(2, 1, 3)
    before = ours(x)[0].tolist()
    kept = ours.weight_hh_l0
    del ours._parameters["weight_hh_l0"]
    ours.weight_hh_l0 = kept.detach() * 0
    dropped = ours(x)[0].tolist()
    assert dropped != before
    ours._flat_weights = [kept if n == "weight_hh_l0" else getattr(ours, n)
                          for n in ours._flat_weights_names]  # fmt: skip
    assert ours(x)[0].tolist() == before
