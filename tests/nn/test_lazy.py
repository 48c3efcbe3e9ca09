"""Layers that find their sizes at the first call, against PyTorch's."""

import copy

import numpy as np
import pytest
import torch

import monograph as mg
import monograph.torch as mt
from monograph import nn

CASES = [
    ("LazyLinear", (4,), {}, (2, 3)),
    ("LazyLinear", (4, False), {}, (2, 3)),
    ("LazyConv1d", (4, 3, 2), {"padding": 1}, (2, 6, 9)),
    ("LazyConv2d", (4, 3, 1, 1, 1, 2), {}, (2, 6, 5, 5)),
    ("LazyConv2d", (4, 3, 1, 1, 1, 2, False), {}, (6, 5, 5)),
    ("LazyConv3d", (4, 2), {}, (2, 3, 4, 4, 4)),
    ("LazyConvTranspose1d", (4, 3), {"bias": False}, (2, 6, 9)),
    ("LazyConvTranspose2d", (4, 3), {"groups": 2}, (2, 6, 5, 5)),
    ("LazyBatchNorm1d", (), {}, (4, 3)),
    ("LazyBatchNorm2d", (), {"affine": False}, (4, 3, 2, 2)),
    ("LazyInstanceNorm1d", (), {"track_running_stats": False}, (4, 3, 5)),
]


@pytest.mark.parametrize("name, args, options, shape", CASES)
def test_first_call(name, args, options, shape):
    layers = [getattr(module, name)(*args, **options) for module in (nn, torch.nn)]
    ours, theirs = layers
    assert repr(ours) == repr(theirs)
    array = np.random.default_rng(0).standard_normal(shape).astype("float32")
    first = ours(mg.tensor(array)), theirs(torch.tensor(array))
    assert first[0].shape == first[1].shape
    assert repr(ours) == repr(theirs)
    assert type(ours) is getattr(nn, name.removeprefix("Lazy"))
    theirs.load_state_dict({k: torch.tensor(v.numpy()) for k, v in ours.state_dict().items()})
    made, expected = ours(mg.tensor(array)), theirs(torch.tensor(array))
    np.testing.assert_allclose(made.detach().numpy(), expected.detach().numpy(), atol=1e-5)


def test_training_from_the_first_step():
    model = nn.Sequential(nn.LazyLinear(4), nn.LazyBatchNorm1d(), nn.ReLU(), nn.LazyLinear(1))
    x = mg.ones(3, 2) * mg.arange(3)[:, None]
    model(x)
    optimizer = mg.optim.SGD(model.parameters(), 0.1)
    before = model[0].weight.clone()
    model(x).sum().backward()
    optimizer.step()
    assert model[0].weight.shape == (4, 2) and not mg.equal(before, model[0].weight)


def test_an_optimizer_made_before_the_first_call():
    model = nn.LazyLinear(2, bias=False)
    optimizer = mg.optim.Adam(model.parameters(), 0.1)
    weight = model.weight
    model(mg.ones(1, 3)).sum().backward()
    before = weight.detach().clone()
    optimizer.step()
    assert weight is model.weight and weight.shape == (2, 3)
    np.testing.assert_allclose((before - weight).detach().numpy(), 0.1, atol=1e-4)


def test_loading_gives_shapes():
    source, target = nn.Linear(3, 2), nn.LazyLinear(2)
    target.load_state_dict(source.state_dict())
    x = mg.ones(1, 3)
    assert mg.equal(source(x), target(x))
    with pytest.raises(RuntimeError, match="shape of an uninitialized"):
        source.load_state_dict(nn.LazyLinear(2).state_dict())
    nn.LazyLinear(2).load_state_dict(nn.LazyLinear(2).state_dict())


def test_what_has_no_shape_is_refused():
    layer = nn.LazyLinear(2)
    assert layer.has_uninitialized_params() and repr(layer.weight) == "<UninitializedParameter>"
    for use in (lambda w: w + 1, lambda w: w.numel(), lambda w: mg.exp(w)):
        with pytest.raises(ValueError, match="uninitialized parameter"):
            use(layer.weight)
    with pytest.raises(RuntimeError, match="Can't access the shape"):
        _ = layer.weight.shape


def test_dtype_device_and_copies():
    layer = nn.LazyLinear(2).double()
    twin = copy.deepcopy(layer)
    assert twin(mg.ones(1, 3, dtype=mg.float64)).dtype is mg.float64
    assert layer.has_uninitialized_params()
    layer.zero_grad()
    layer.requires_grad_(False)
    assert not layer(mg.ones(1, 3, dtype=mg.float64)).requires_grad


def test_a_lazy_layer_of_a_users():
    class Scale(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(mg.ones(1))

        def forward(self, x):
            return x * self.weight

    class LazyScale(mt.nn.modules.lazy.LazyModuleMixin, Scale):
        cls_to_become = Scale

        def __init__(self):
            super().__init__()
            self.weight = mt.nn.UninitializedParameter()

        def initialize_parameters(self, x):
            self.weight.materialize(x.shape[-1:])
            nn.init.constant_(self.weight, 2.0)

    layer = LazyScale()
    assert layer(mg.ones(3)).tolist() == [2.0, 2.0, 2.0] and type(layer) is Scale


def test_what_is_written_before_the_first_call_is_lost():
    """As by d2l's LinearRegression: net.weight.data.normal_(0, 0.01) of a LazyLinear."""
    for lib in (mt, torch):
        layer = lib.nn.LazyLinear(2)
        assert layer.weight.data.normal_(0, 0.01).shape == (0,)
        assert layer.bias.data.fill_(0).dtype == lib.float32
        assert layer.weight.requires_grad and lib.nn.parameter.is_lazy(layer.weight)
        assert layer(lib.ones(4, 3)).shape == (4, 2)
