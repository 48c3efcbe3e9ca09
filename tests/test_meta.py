"""Tensors on the device `meta`: shapes and dtypes without contents, as in PyTorch."""

import copy
import pickle

import numpy as np
import pytest
import torch

import monograph as mg
import monograph.torch as mt
from monograph import nn


def absent(*shape, **options):
    return mg.ones(*shape, device="meta", **options)


def test_operators_give_shapes_and_record_nothing():
    mg.synchronize()
    before = mg.stats().pending
    x = absent(4, 3)
    made = mg.softmax(x @ absent(3, 5) + 1, 1).t().sum(0, keepdim=True)
    assert made.shape == (1, 4) and made.is_meta and made.device == mg.device("meta")
    assert mg.stats().pending <= before + 2  # the two constructors


def test_layouts_are_those_of_contents():
    for make in (lambda m: m.ones(2, 3, 4, 5), lambda m: m.ones(2, 3, 4, 5, device="meta")):
        x, y = make(mg), make(torch)
        assert x.permute(0, 2, 3, 1).stride() == y.permute(0, 2, 3, 1).stride()
        assert (x.permute(0, 2, 3, 1) * 2).stride() == (y.permute(0, 2, 3, 1) * 2).stride()


def test_gradients_have_shapes():
    x = absent(2, 3, requires_grad=True)
    (x.exp() * 2).sum().backward()
    assert x.grad.is_meta and x.grad.shape == (2, 3)
    loss = (x * x).sum()
    assert mg.autograd.grad([loss, loss], x)[0].is_meta


@pytest.mark.parametrize("read", ["item", "tolist", "numpy", "cpu", "__bool__"])
def test_contents_cannot_be_read(read):
    wanted = pytest.raises((NotImplementedError, RuntimeError, TypeError))
    with wanted as expected:
        getattr(torch.ones((), device="meta"), read)()
    with pytest.raises(expected.type, match=str(expected.value).split(".")[0]):
        getattr(absent(()), read)()


def test_devices_do_not_mix():
    with pytest.raises(RuntimeError, match="same device"):
        absent(2) + mg.ones(2)
    assert (absent(2) + mg.ones(())).is_meta
    assert absent(3)[mg.tensor([0, 1])].shape == (2,)
    with pytest.raises(NotImplementedError, match="no data"):
        mg.ones(2).copy_(absent(2))
    assert absent(2).copy_(mg.ones(2)).is_meta


def test_writes_do_nothing():
    x = absent(2)
    x.mul_(2).zero_()
    x[0] = 1
    assert x.is_meta


def test_text():
    for make in (mg, torch):
        x = make.ones(2, 3, device="meta", dtype=make.float64, requires_grad=True)
        assert repr(x).replace("torch", "monograph") == repr(absent(2, 3, dtype=mg.float64)
            .requires_grad_())  # fmt: skip


def test_default_device():
    with mt.device("meta"):
        made = [mg.zeros(2), mg.arange(3), mg.tensor([1.0]), mg.randn(2), nn.Linear(2, 3).bias]
        here = [mg.zeros(2, device="cpu"), mg.from_numpy(np.ones(2)), mg.Tensor(2)]
        here += [mg.zeros_like(here[0]), mg.rand_like(here[0]), here[0].new_ones(1)]
    assert all(x.is_meta for x in made) and not any(x.is_meta for x in here)
    assert mt.device("meta")(lambda: mg.ones(1))().is_meta
    mt.set_default_device("meta")
    assert mg.ones(1).is_meta and mt.get_default_device() == mt.device("meta")
    mt.set_default_device(None)
    assert not mg.ones(1).is_meta


LAYERS = [
    lambda n: n.Linear(2, 3, device="meta"), lambda n: n.Conv2d(1, 2, 3, device="meta"),
    lambda n: n.BatchNorm1d(4, device="meta"), lambda n: n.LSTM(2, 3, device="meta"),
    lambda n: n.Embedding(5, 2, 0, device="meta"), lambda n: n.GRUCell(2, 3, device="meta"),
    lambda n: n.TransformerEncoderLayer(8, 2, device="meta"),
    lambda n: n.LayerNorm(4, device="meta"),
]  # fmt: skip


@pytest.mark.parametrize("layer", LAYERS)
def test_layers(layer):
    ours, theirs = layer(nn), layer(torch.nn)
    assert all(x.is_meta for x in (*ours.parameters(), *ours.buffers()))
    found = {name: tuple(x.shape) for name, x in ours.state_dict().items()}
    assert found == {name: tuple(x.shape) for name, x in theirs.state_dict().items()}
    assert not any(x.is_meta for x in ours.to_empty(device="cpu").state_dict().values())


def test_a_module_that_loads_by_assignment():
    source, target = nn.Linear(2, 3), nn.Linear(2, 3, device="meta")
    with pytest.warns(UserWarning, match="which is a no-op"):
        target.load_state_dict(source.state_dict())
    assert target.weight.is_meta
    target.load_state_dict(source.state_dict(), assign=True)
    assert isinstance(target.weight, nn.Parameter) and target.weight.requires_grad
    x = mg.ones(1, 2)
    assert mg.equal(source(x), target(x))


def test_modules_move():
    model = nn.Linear(2, 3)
    assert model.to("meta").double().weight.dtype is mg.float64
    with pytest.raises(NotImplementedError, match="to_empty"):
        model.to("cpu")
    assert model(absent(4, 2, dtype=mg.float64)).shape == (4, 3)


def test_copies():
    model = nn.Linear(2, 3, device="meta")
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert other.weight.is_meta and other.weight.requires_grad
        assert other.weight is not model.weight


def test_loading_without_contents(tmp_path):
    torch.save({"a": torch.ones(3, 2).t(), "b": torch.ones(4, dtype=torch.int64)}, tmp_path / "x")
    state = mt.load(tmp_path / "x", map_location="meta")
    assert state["a"].is_meta and state["a"].shape == (2, 3) and state["a"].stride() == (1, 2)
    assert state["b"].dtype is mg.int64


def test_attributes_of_a_parameter_are_the_users():
    weight = nn.Parameter(mg.ones(2))
    assert vars(weight) == {}
    weight.kind = "embedding"
    assert vars(weight) == {"kind": "embedding"}


def test_recurrent_layers_follow_the_default_dtype():
    mg.set_default_dtype(mg.float64)
    try:
        assert nn.LSTM(2, 3).weight_ih_l0.dtype is mg.float64
        assert nn.LSTMCell(2, 3).weight_ih.dtype is mg.float64
    finally:
        mg.set_default_dtype(mg.float32)
