"""Initialisers: the distributions that PyTorch's have."""

import math

import numpy as np
import pytest
import torch

import monograph as mg
from monograph import nn
from monograph.torch.nn import init

SHAPE = (200, 30, 3, 3)


def moments(name, *args, **kwargs):
    """(mean, spread, lowest, highest) of a large tensor filled by both frameworks."""
    torch.manual_seed(0)
    mg.manual_seed(0)
    theirs = getattr(torch.nn.init, name)(torch.empty(*SHAPE), *args, **kwargs).detach().numpy()
    made = nn.Parameter(np.zeros(SHAPE, np.float32))
    filled = getattr(nn.init, name)(made, *args, **kwargs)
    assert filled is made and made.requires_grad and made.is_leaf
    return [(a.mean(), a.std(), a.min(), a.max()) for a in (made.detach().numpy(), theirs)]


@pytest.mark.parametrize(
    ("name", "args", "kwargs"),
    [
        ("uniform_", (-2.0, 3.0), {}),
        ("normal_", (1.0, 0.5), {}),
        ("trunc_normal_", (0.0, 1.0, -1.0, 2.0), {}),
        ("constant_", (0.3,), {}),
        ("zeros_", (), {}),
        ("ones_", (), {}),
        ("xavier_uniform_", (), {"gain": 2.0}),
        ("xavier_normal_", (), {}),
        ("kaiming_uniform_", (), {"a": math.sqrt(5)}),
        ("kaiming_uniform_", (), {"mode": "fan_out", "nonlinearity": "relu"}),
        ("kaiming_normal_", (), {}),
        ("kaiming_normal_", (), {"mode": "fan_out", "nonlinearity": "tanh"}),
    ],
)
def test_distribution(name, args, kwargs):
    found, wanted = moments(name, *args, **kwargs)
    scale = max(abs(wanted[1]), 1e-6)
    assert abs(found[0] - wanted[0]) < 0.03 * scale
    assert abs(found[1] - wanted[1]) < 0.03 * scale
    if "normal" not in name or name == "trunc_normal_":
        np.testing.assert_allclose(found[2:], wanted[2:], rtol=1e-2)


@pytest.mark.parametrize("gain", [1.0, 2.0])
@pytest.mark.parametrize("shape", [(4, 9), (9, 4), (5, 2, 3)])
def test_orthogonal(shape, gain):
    w = (
        nn.init.orthogonal_(nn.Parameter(np.zeros(shape)), gain)
        .detach()
        .numpy()
        .reshape(shape[0], -1)
    )
    product = w @ w.T if w.shape[0] <= w.shape[1] else w.T @ w
    np.testing.assert_allclose(product, gain**2 * np.eye(len(product)), atol=1e-10)


def test_eye():
    assert nn.init.eye_(nn.Parameter(np.zeros((2, 3)))).tolist() == [[1, 0, 0], [0, 1, 0]]


@pytest.mark.parametrize("name", ["linear", "conv2d", "sigmoid", "tanh", "relu", "selu"])
def test_gains(name):
    assert nn.init.calculate_gain(name) == torch.nn.init.calculate_gain(name)


def test_gain_of_leaky_relu():
    for slope in (None, 0.3):
        wanted = torch.nn.init.calculate_gain("leaky_relu", slope)
        assert nn.init.calculate_gain("leaky_relu", slope) == wanted


def test_errors():
    with pytest.raises(ValueError, match="nonlinearity"):
        nn.init.calculate_gain("step")
    with pytest.raises(ValueError, match="fan"):
        nn.init.xavier_uniform_(nn.Parameter([1.0]))
    with pytest.raises(ValueError, match="mode"):
        nn.init.kaiming_uniform_(nn.Parameter(np.zeros((2, 2))), mode="fan")


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("Linear", (300, 200)),
        ("Conv2d", (20, 40, 3)),
        ("Embedding", (300, 40)),
        ("BatchNorm2d", (9,)),
    ],
)
def test_defaults_of_layers(name, args):
    torch.manual_seed(0)
    mg.manual_seed(0)
    theirs, ours = getattr(torch.nn, name)(*args), getattr(nn, name)(*args)
    for (key, found), (_, wanted) in zip(
        ours.state_dict().items(), theirs.state_dict().items(), strict=True
    ):
        a, b = found.detach().numpy(), wanted.detach().numpy()
        assert a.dtype == b.dtype
        assert abs(a.mean() - b.mean()) < 0.2 * max(b.std(), 1e-6), key
        assert abs(a.std() - b.std()) < 0.15 * max(b.std(), 1e-6), key
        if name != "Embedding":
            np.testing.assert_allclose([a.min(), a.max()], [b.min(), b.max()], rtol=0.1)


def test_seeds_decide():
    def weights(seed):
        mg.manual_seed(seed)
        return nn.Linear(4, 4).weight.detach().numpy()

    np.testing.assert_array_equal(weights(3), weights(3))
    assert (weights(3) != weights(4)).any()


@pytest.mark.parametrize("shape", [(4, 3, 3), (4, 2, 3, 4), (6, 4, 1, 2, 3)])
@pytest.mark.parametrize("groups", [1, 2])
def test_dirac(shape, groups):
    import torch

    ours = nn.init.dirac_(mg.ones(*shape), groups)
    np.testing.assert_array_equal(
        ours.numpy(), torch.nn.init.dirac_(torch.ones(*shape), groups).numpy()
    )


def test_sparse():
    values = nn.init.sparse_(mg.ones(10, 50), 0.25, std=2.0).numpy()
    assert ((values == 0).sum(0) == 3).all()
    assert 1.5 < values[values != 0].std() < 2.5
    assert len({tuple(column) for column in (values == 0).T}) > 5


def test_generators_make_values_repeat():
    for fill in (nn.init.trunc_normal_, nn.init.orthogonal_, lambda t, generator: nn.init.sparse_(
        t, 0.5, generator=generator)):  # fmt: skip
        first, second = [
            fill(mg.zeros(3, 4), generator=mg.Generator().manual_seed(3)).tolist() for _ in range(2)
        ]
        assert first == second


def test_errors_and_warnings_of_initialisers():
    for wrong in (
        lambda: nn.init.dirac_(mg.zeros(2, 2)),
        lambda: nn.init.dirac_(mg.zeros(3, 2, 2), 2),
        lambda: nn.init.sparse_(mg.zeros(2), 0.1),
        lambda: nn.init.calculate_gain("leaky_relu", True),
        lambda: nn.init.calculate_gain("softmax"),
    ):
        with pytest.raises(ValueError):
            wrong()
    with pytest.warns(UserWarning, match="2 std"):
        nn.init.trunc_normal_(mg.zeros(1), mean=1.0, std=0.1, a=0.0, b=0.79)
    assert nn.init.calculate_gain("conv_transpose2d") == 1


def test_private_names_that_libraries_import():
    fan = init._calculate_correct_fan
    assert fan(mg.zeros(2, 3), "FAN_OUT") == torch.nn.init._calculate_correct_fan(
        torch.zeros(2, 3), "FAN_OUT"
    )
    assert init._no_grad_fill_(mg.zeros(2), 3.0).tolist() == [3.0, 3.0]
