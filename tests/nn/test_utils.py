"""nn.utils against PyTorch's: parametrizations, norms of weights, vectors, fused layers."""

import copy
import pickle

import numpy as np
import pytest
import torch

import monograph as mg
from monograph import nn
from monograph.nn import utils
from monograph.nn.utils import parametrizations, parametrize

U = torch.nn.utils


def same(ours, theirs, rtol=1e-5):
    np.testing.assert_allclose(ours.detach().numpy(), theirs.detach().numpy(), rtol=rtol, atol=1e-6)


def pair(name, *sizes):
    theirs = getattr(torch.nn, name)(*sizes)
    ours = getattr(nn, name)(*sizes)
    ours.load_state_dict({k: v.detach().numpy() for k, v in theirs.state_dict().items()})
    return ours, theirs


def test_vectors():
    ours, theirs = pair("Linear", 2, 3)
    same(utils.parameters_to_vector(ours.parameters()), U.parameters_to_vector(theirs.parameters()))
    weight = ours.weight
    utils.vector_to_parameters(mg.arange(9).float(), ours.parameters())
    assert ours.weight is weight and weight.requires_grad
    assert ours.bias.tolist() == [6.0, 7.0, 8.0]
    with pytest.raises(TypeError):
        utils.vector_to_parameters([1.0], ours.parameters())


@pytest.mark.parametrize("norm_type", [1.0, 2.0, float("inf")])
def test_total_norm(norm_type):
    arrays = [np.arange(4.0, dtype=np.float32), np.array([-7.0], np.float32)]
    same(
        utils.get_total_norm([mg.tensor(a) for a in arrays], norm_type),
        U.get_total_norm([torch.tensor(a) for a in arrays], norm_type),
    )


@pytest.mark.parametrize("dim", [0, 1, None])
@pytest.mark.parametrize("older", [True, False], ids=["hook", "parametrization"])
def test_weight_norm(older, dim):
    ours, theirs = pair("Linear", 3, 2)
    if older:
        utils.weight_norm(ours, dim=dim), U.weight_norm(theirs, dim=dim)
    else:
        parametrizations.weight_norm(ours, dim=dim)
        U.parametrizations.weight_norm(theirs, dim=dim)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    for name, t in theirs.state_dict().items():
        same(ours.state_dict()[name], t)
    x = np.ones((1, 3), np.float32)
    same(ours(mg.tensor(x)), theirs(torch.tensor(x)))
    (ours(mg.tensor(x)) ** 2).sum().backward(), (theirs(torch.tensor(x)) ** 2).sum().backward()
    for (name, p), q in zip(ours.named_parameters(), theirs.parameters(), strict=True):
        assert p.grad is not None, name
        same(p.grad, q.grad, rtol=1e-4)
    if older:
        for layer in (ours, theirs):  # the weight was computed
            with pytest.raises(RuntimeError, match="deepcopy"):
                copy.deepcopy(layer)
        with pytest.raises(RuntimeError):
            utils.weight_norm(ours)
        utils.remove_weight_norm(ours)
        assert [n for n, _ in ours.named_parameters()] == ["bias", "weight"]
        with pytest.raises(ValueError):
            utils.remove_weight_norm(ours)
    else:
        same(copy.deepcopy(ours)(mg.tensor(x)), theirs(torch.tensor(x)))
        parametrize.remove_parametrizations(ours, "weight")
        assert type(ours) is nn.Linear
    same(ours(mg.tensor(x)), theirs(torch.tensor(x)))


def test_older_names_of_weight_norm_are_loaded():
    old, new = utils.weight_norm(nn.Linear(2, 2)), parametrizations.weight_norm(nn.Linear(2, 2))
    new.load_state_dict(old.state_dict())
    x = mg.ones(1, 2)
    np.testing.assert_allclose(new(x).tolist(), old(x).tolist(), rtol=1e-6)


@pytest.mark.parametrize("older", [True, False], ids=["hook", "parametrization"])
@pytest.mark.parametrize("kind", [("Linear", 5, 4), ("Conv2d", 2, 3, 2)], ids=lambda k: k[0])
def test_spectral_norm(kind, older):
    ours, theirs = pair(*kind)
    if older:
        utils.spectral_norm(ours), U.spectral_norm(theirs)
    else:
        parametrizations.spectral_norm(ours), U.parametrizations.spectral_norm(theirs)
    assert sorted(ours.state_dict()) == sorted(theirs.state_dict())
    ours.load_state_dict({k: v.detach().numpy() for k, v in theirs.state_dict().items()})
    x = np.random.default_rng(0).normal(size=(2, 5) if kind[0] == "Linear" else (2, 2, 4, 4))
    x = x.astype(np.float32)
    for _ in range(2):
        same(ours(mg.tensor(x)), theirs(torch.tensor(x)), rtol=1e-4)
    (ours(mg.tensor(x)) ** 2).sum().backward(), (theirs(torch.tensor(x)) ** 2).sum().backward()
    gradients = {n: p.grad for n, p in ours.named_parameters()}
    for name, q in theirs.named_parameters():
        same(gradients[name], q.grad, rtol=1e-3)
    ours.eval(), theirs.eval()
    same(ours(mg.tensor(x)), theirs(torch.tensor(x)), rtol=1e-4)
    before = ours(mg.tensor(x)).detach().numpy()
    if older:
        utils.remove_spectral_norm(ours)
    else:
        parametrize.remove_parametrizations(ours, "weight")
    np.testing.assert_allclose(ours(mg.tensor(x)).detach().numpy(), before, rtol=1e-4, atol=1e-6)


def symmetric(nn):
    class Symmetric(nn.Module):
        calls = 0

        def forward(self, x):
            type(self).calls += 1
            return x.triu() + x.triu(1).transpose(-1, -2)

        def right_inverse(self, x):
            return x.triu()

    return Symmetric()


def test_parametrize():
    ours, theirs = pair("Linear", 3, 3)
    weight = ours.weight
    parametrize.register_parametrization(ours, "weight", symmetric(nn))
    torch.nn.utils.parametrize.register_parametrization(theirs, "weight", symmetric(torch.nn))
    assert list(ours.state_dict()) == list(theirs.state_dict())
    assert repr(ours) == repr(theirs)
    assert ours.parametrizations.weight.original is weight
    assert parametrize.is_parametrized(ours) and parametrize.is_parametrized(ours, "weight")
    assert not parametrize.is_parametrized(ours, "bias")
    assert parametrize.type_before_parametrizations(ours) is nn.Linear
    same(ours.weight, theirs.weight)
    ours.weight, theirs.weight = mg.ones(3, 3), torch.ones(3, 3)
    same(ours.weight, theirs.weight)
    same(ours.parametrizations.weight.original, theirs.parametrizations.weight.original)
    optimizer = mg.optim.SGD(ours.parameters(), lr=0.1)
    ours(mg.ones(1, 3)).sum().backward()
    optimizer.step()
    np.testing.assert_array_equal(ours.weight.detach().numpy(), ours.weight.detach().numpy().T)
    with pytest.raises(RuntimeError, match="state_dict"):
        pickle.dumps(ours)
    parametrize.remove_parametrizations(ours, "weight", leave_parametrized=False)
    assert ours.weight is weight and ours.weight.tolist()[1][0] == 0.0


def test_values_are_cached():
    layer = nn.Linear(2, 2)
    rule = symmetric(nn)
    parametrize.register_parametrization(layer, "weight", rule)
    before = type(rule).calls
    with parametrize.cached():
        assert layer.weight is layer.weight
    assert type(rule).calls == before + 1
    assert layer.weight is not layer.weight


def test_errors_of_parametrize():
    layer = nn.Linear(2, 3)

    class Smaller(nn.Module):
        def forward(self, x):
            return x[:1]

    with pytest.raises(ValueError, match="shape"):
        parametrize.register_parametrization(layer, "weight", Smaller())
    with pytest.raises(ValueError, match="does not have a parameter"):
        parametrize.register_parametrization(layer, "nothing", Smaller())
    with pytest.raises(ValueError, match="does not have a parametrization"):
        parametrize.remove_parametrizations(layer, "weight")


def test_fused_layers():
    conv, norm = nn.Conv2d(2, 3, 2).eval(), nn.BatchNorm2d(3)
    norm(mg.rand(8, 3, 4, 4) * 3)
    norm.eval()
    fused = utils.fuse_conv_bn_eval(conv, norm)
    x = mg.rand(2, 2, 5, 5)
    np.testing.assert_allclose(
        fused(x).detach().numpy(), norm(conv(x)).detach().numpy(), rtol=1e-4, atol=1e-5
    )
    with pytest.raises(AssertionError):
        utils.fuse_conv_bn_eval(conv.train(), norm)
    linear, norm = nn.Linear(2, 3, bias=False).eval(), nn.BatchNorm1d(3)
    norm(mg.rand(8, 3) * 3)
    norm.eval()
    x = mg.rand(4, 2)
    np.testing.assert_allclose(
        utils.fuse_linear_bn_eval(linear, norm)(x).detach().numpy(),
        norm(linear(x)).detach().numpy(), rtol=1e-4, atol=1e-5,
    )  # fmt: skip
