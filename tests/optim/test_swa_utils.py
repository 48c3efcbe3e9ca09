"""Averages of weights, and their schedule, against PyTorch's."""

import numpy as np
import pytest
import torch

import monograph as mg
from monograph import nn, optim

from .test_lr_scheduler import optimizers, settings_of


def models():
    arrays = [np.random.default_rng(0).normal(size=s).astype(np.float32) for s in ((3, 2), (3,))]
    ours = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
    theirs = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3))
    set_weights(ours, theirs, arrays)
    return ours, theirs, arrays


def set_weights(ours, theirs, arrays):
    with mg.no_grad(), torch.no_grad():
        for p, q, a in zip(ours[0].parameters(), theirs[0].parameters(), arrays, strict=True):
            p.copy_(mg.tensor(a)), q.copy_(torch.from_numpy(a))


def same(ours, theirs):
    for name, t in theirs.state_dict().items():
        np.testing.assert_allclose(
            ours.state_dict()[name].detach().numpy(), t.detach().numpy(), rtol=1e-5, err_msg=name
        )


FUNCTIONS = {
    "mean": lambda s: {},
    "ema": lambda s: {"avg_fn": s.get_ema_avg_fn(0.9)},
    "ema of many": lambda s: {"multi_avg_fn": s.get_ema_multi_avg_fn(0.9)},
    "mean of many": lambda s: {"multi_avg_fn": s.get_swa_multi_avg_fn()},
    "buffers": lambda s: {"avg_fn": s.get_ema_avg_fn(0.5), "use_buffers": True},
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_averaged_model(name):
    ours, theirs, arrays = models()
    own = optim.swa_utils.AveragedModel(ours, **FUNCTIONS[name](optim.swa_utils))
    their = torch.optim.swa_utils.AveragedModel(theirs, **FUNCTIONS[name](torch.optim.swa_utils))
    x = np.random.default_rng(1).normal(size=(4, 2)).astype(np.float32)
    for step in range(4):
        set_weights(ours, theirs, [a * (step + 1) for a in arrays])
        ours(mg.tensor(x)), theirs(torch.from_numpy(x))
        own.update_parameters(ours), their.update_parameters(theirs)
        same(own, their)
    own.eval(), their.eval()
    np.testing.assert_allclose(
        own(mg.tensor(x)).detach().numpy(), their(torch.from_numpy(x)).detach().numpy(), rtol=1e-4
    )


def test_the_first_average_is_a_copy_again_behind_a_reset():
    ours, theirs, arrays = models()
    own, their = (
        s.AveragedModel(m) for s, m in ((optim.swa_utils, ours), (torch.optim.swa_utils, theirs))
    )
    for step, reset in enumerate((False, False, True, False, False)):
        set_weights(ours, theirs, [a * (step + 1) for a in arrays])
        if reset:
            own.n_averaged.zero_(), their.n_averaged.zero_()
        own.update_parameters(ours), their.update_parameters(theirs)
        same(own, their)


def test_averages_are_as_precise_as_what_they_are_of():
    own, their = nn.Linear(2, 2).double(), torch.nn.Linear(2, 2).double()
    means = optim.swa_utils.AveragedModel(own), torch.optim.swa_utils.AveragedModel(their)
    for step in range(4):
        with mg.no_grad(), torch.no_grad():
            for p, q in zip(own.parameters(), their.parameters(), strict=True):
                p.fill_(1 / (step + 3)), q.fill_(1 / (step + 3))
        means[0].update_parameters(own), means[1].update_parameters(their)
    for p, q in zip(means[0].parameters(), means[1].parameters(), strict=True):
        np.testing.assert_allclose(p.detach().numpy(), q.detach().numpy(), rtol=1e-14)


def test_update_bn():
    ours, theirs, _ = models()
    batches = np.random.default_rng(1).normal(size=(3, 8, 2)).astype(np.float32)
    optim.swa_utils.update_bn([(mg.tensor(b), 0) for b in batches], ours)
    torch.optim.swa_utils.update_bn([(torch.from_numpy(b), 0) for b in batches], theirs)
    same(ours, theirs)
    assert ours[1].momentum == 0.1


@pytest.mark.parametrize(
    "settings", [{}, {"anneal_epochs": 3, "anneal_strategy": "linear"}, {"anneal_epochs": 0}]
)
def test_schedule(settings):
    own, their = optimizers()
    ours = optim.swa_utils.SWALR(own, 0.05, **settings)
    theirs = torch.optim.swa_utils.SWALR(their, 0.05, **settings)
    for _ in range(15):
        np.testing.assert_allclose(settings_of(own), settings_of(their), rtol=1e-10)
        ours.step(), theirs.step()


def test_errors():
    with pytest.raises(ValueError, match="decay"):
        optim.swa_utils.get_ema_avg_fn(2.0)
    with pytest.raises(AssertionError):
        optim.swa_utils.AveragedModel(
            nn.Linear(1, 1), avg_fn=optim.swa_utils.get_swa_avg_fn(),
            multi_avg_fn=optim.swa_utils.get_swa_multi_avg_fn(),
        )  # fmt: skip
    own, _ = optimizers()
    with pytest.raises(ValueError, match="anneal_strategy"):
        optim.swa_utils.SWALR(own, 0.1, anneal_strategy="sine")
