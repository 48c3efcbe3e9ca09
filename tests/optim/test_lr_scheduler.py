"""Every schedule against PyTorch's over thirty steps."""

import copy
import warnings

import numpy as np
import pytest
import torch

import monograph as mg
from monograph import nn, optim

STEPS = 30


def warmup(step):
    return min(1.0, (step + 1) / 10)


def in_sequence(s, optimizer):
    first = s.LinearLR(optimizer, 0.1, total_iters=6)
    second = s.CosineAnnealingLR(optimizer, 12, eta_min=0.01)
    third = s.StepLR(optimizer, 3, gamma=0.5)
    return s.SequentialLR(optimizer, [first, second, third], milestones=[6, 18])


# How to make each, given the module of schedules and an optimiser.
SCHEDULES = {
    "LambdaLR": lambda s, o: s.LambdaLR(o, warmup),
    "LambdaLR-each": lambda s, o: s.LambdaLR(o, [warmup, lambda step: 0.9**step]),
    "StepLR": lambda s, o: s.StepLR(o, 7, gamma=0.3),
    "MultiStepLR": lambda s, o: s.MultiStepLR(o, [4, 9, 9, 20], gamma=0.5),
    "ExponentialLR": lambda s, o: s.ExponentialLR(o, 0.95),
    "CosineAnnealingLR": lambda s, o: s.CosineAnnealingLR(o, 10, eta_min=0.02),
    "LinearLR": lambda s, o: s.LinearLR(o, 0.25, 0.75, total_iters=8),
    "MultiplicativeLR": lambda s, o: s.MultiplicativeLR(o, lambda step: 0.95),
    "ConstantLR": lambda s, o: s.ConstantLR(o, 0.25, total_iters=8),
    "PolynomialLR": lambda s, o: s.PolynomialLR(o, total_iters=12, power=1.7),
    "CyclicLR": lambda s, o: s.CyclicLR(o, 0.01, [0.2, 0.3], step_size_up=5, step_size_down=3),
    "CyclicLR-triangular2": lambda s, o: s.CyclicLR(
        o, [0.01, 0.02], 0.2, 4, mode="triangular2", base_momentum=0.7, max_momentum=0.8
    ),
    "CyclicLR-exp-range": lambda s, o: s.CyclicLR(
        o, 0.01, 0.2, 4, mode="exp_range", gamma=0.97, cycle_momentum=False
    ),
    "CyclicLR-own": lambda s, o: s.CyclicLR(
        o, 0.01, 0.2, 4, scale_fn=lambda x: 1 / (1 + x), scale_mode="iterations"
    ),
    "WarmRestarts": lambda s, o: s.CosineAnnealingWarmRestarts(o, 5, eta_min=0.01),
    "WarmRestarts-longer": lambda s, o: s.CosineAnnealingWarmRestarts(o, 3, T_mult=2),
    "ChainedScheduler": lambda s, o: s.ChainedScheduler(
        [s.ConstantLR(o, 0.1, total_iters=4), s.ExponentialLR(o, 0.9)]
    ),
    "OneCycleLR": lambda s, o: s.OneCycleLR(o, [0.5, 0.2], total_steps=31),
    "OneCycleLR-linear": lambda s, o: s.OneCycleLR(
        o, 0.5, epochs=4, steps_per_epoch=8, anneal_strategy="linear", three_phase=True
    ),
    "OneCycleLR-rate-only": lambda s, o: s.OneCycleLR(o, 0.5, 40, cycle_momentum=False),
    "SequentialLR": in_sequence,
    "SequentialLR-restarts": lambda s, o: s.SequentialLR(
        o, [s.LinearLR(o, 0.1), s.CosineAnnealingWarmRestarts(o, 4, 2)], milestones=[5]
    ),
    "SequentialLR-chained": lambda s, o: s.SequentialLR(
        o, [s.ChainedScheduler([s.ConstantLR(o), s.StepLR(o, 2)]), s.StepLR(o, 3)], milestones=[4]
    ),
    "SequentialLR-one-cycle": lambda s, o: s.SequentialLR(
        o, [s.ExponentialLR(o, 0.9), s.ExponentialLR(o, 0.5)], milestones=[10]
    ),
}


def optimizers(kind="SGD"):
    """(ours, PyTorch's) with two groups of different rates."""
    made = []
    for module, parameter in ((optim, nn.Parameter), (torch.optim, torch.nn.Parameter)):
        params = [parameter(torch.zeros(1) if module is torch.optim else [0.0]) for _ in range(2)]
        groups = [{"params": params[:1]}, {"params": params[1:], "lr": 0.3}]
        settings = {"momentum": 0.9} if kind == "SGD" else {}
        made.append(getattr(module, kind)(groups, lr=0.1, **settings))
    return made


def settings_of(optimizer):
    return [
        (group["lr"], group.get("momentum", 0.0), *group.get("betas", ()))
        for group in optimizer.param_groups
    ]


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch warns about steps without optimizer.step()
        yield


@pytest.mark.parametrize("kind", ["SGD", "Adam"])
@pytest.mark.parametrize("name", SCHEDULES)
def test_schedule(name, kind):
    own, their = optimizers(kind)
    ours = SCHEDULES[name](optim.lr_scheduler, own)
    theirs = SCHEDULES[name](torch.optim.lr_scheduler, their)
    for step in range(STEPS):
        np.testing.assert_allclose(
            settings_of(own), settings_of(their), rtol=1e-12, err_msg=f"step {step}"
        )
        np.testing.assert_allclose(ours.get_last_lr(), theirs.get_last_lr(), rtol=1e-12)
        ours.step(), theirs.step()


@pytest.mark.parametrize("name", SCHEDULES)
def test_state_continues(name):
    own, _ = optimizers()
    schedule = SCHEDULES[name](optim.lr_scheduler, own)
    other, _ = optimizers()
    resumed = SCHEDULES[name](optim.lr_scheduler, other)
    for _ in range(11):
        schedule.step()
    resumed.load_state_dict(copy.deepcopy(schedule.state_dict()))
    other.load_state_dict(copy.deepcopy(own.state_dict()))
    for _ in range(STEPS - 11):
        schedule.step(), resumed.step()
        assert settings_of(own) == settings_of(other)


def test_two_schedules_on_one_optimizer():
    both = optimizers()
    for optimizer, s in zip(both, (optim.lr_scheduler, torch.optim.lr_scheduler), strict=True):
        pair = [s.ExponentialLR(optimizer, 0.9), s.CosineAnnealingLR(optimizer, 10)]
        for _ in range(7):
            for schedule in pair:
                schedule.step()
    np.testing.assert_allclose(settings_of(both[0]), settings_of(both[1]), rtol=1e-12)


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (lambda s, o: s.StepLR(1.0, 2), TypeError),
        (lambda s, o: s.StepLR(o, 2, last_epoch=5), KeyError),
        (lambda s, o: s.LambdaLR(o, [warmup]), ValueError),
        (lambda s, o: s.LinearLR(o, 0.0), ValueError),
        (lambda s, o: s.LinearLR(o, 0.5, 2.0), ValueError),
        (lambda s, o: s.OneCycleLR(o, 0.1), ValueError),
        (lambda s, o: s.OneCycleLR(o, 0.1, 10, pct_start=2.0), ValueError),
        (lambda s, o: s.OneCycleLR(o, 0.1, 10, anneal_strategy="sine"), ValueError),
        (lambda s, o: s.OneCycleLR(o, [0.1], 10), ValueError),
        (lambda s, o: s.SequentialLR(o, [], []), ValueError),
        (lambda s, o: s.ChainedScheduler([]), ValueError),
        (lambda s, o: s.ChainedScheduler([s.ReduceLROnPlateau(o)]), ValueError),
        (lambda s, o: s.ReduceLROnPlateau(o, factor=1.5), ValueError),
        (lambda s, o: s.ReduceLROnPlateau(o, mode="best"), ValueError),
        (lambda s, o: s.ReduceLROnPlateau(o, min_lr=[0.1]), ValueError),
        (lambda s, o: s.CosineAnnealingWarmRestarts(o, 0), ValueError),
        (lambda s, o: s.CyclicLR(o, 0.1, 0.2, mode="round"), ValueError),
        (lambda s, o: s.ConstantLR(o, 2.0), ValueError),
        (lambda s, o: s.CyclicLR(optim.Adagrad([nn.Parameter([0.0])]), 0.1, 0.2), ValueError),
        (lambda s, o: s.SequentialLR(o, [s.StepLR(o, 2)], [3]), ValueError),
    ],
)
def test_errors(make, kind):
    own, _ = optimizers()
    with pytest.raises(kind):
        make(optim.lr_scheduler, own)


def test_one_cycle_ends():
    own, _ = optimizers()
    schedule = optim.lr_scheduler.OneCycleLR(own, 0.1, total_steps=3)
    for _ in range(3):
        schedule.step()
    with pytest.raises(ValueError, match="total steps"):
        schedule.step()


PLATEAUS = [
    {},
    {"mode": "max", "factor": 0.5, "patience": 2},
    {"patience": 1, "threshold": 0.1, "threshold_mode": "abs", "cooldown": 2},
    {"mode": "max", "patience": 0, "threshold": 0.05, "threshold_mode": "abs"},
    {"factor": 0.3, "patience": 1, "min_lr": [0.01, 0.05]},
]


@pytest.mark.parametrize("settings", PLATEAUS, ids=str)
def test_reduce_on_plateau(settings):
    results = np.random.default_rng(0).normal(size=STEPS) + np.linspace(3, 1, STEPS)
    own, their = optimizers()
    ours = optim.lr_scheduler.ReduceLROnPlateau(own, **settings)
    theirs = torch.optim.lr_scheduler.ReduceLROnPlateau(their, **settings)
    for result in results:
        ours.step(result), theirs.step(result)
        assert settings_of(own) == settings_of(their)
        assert ours.get_last_lr() == theirs.get_last_lr()
    assert ours.state_dict()["best"] == theirs.state_dict()["best"]


def test_epochs_may_be_given():
    for make in (
        lambda s, o: s.CosineAnnealingWarmRestarts(o, 3, T_mult=2),
        lambda s, o: s.CosineAnnealingWarmRestarts(o, 4),
        lambda s, o: s.PolynomialLR(o, 12, 2.0),
        lambda s, o: s.ConstantLR(o),
    ):
        own, their = optimizers()
        ours = make(optim.lr_scheduler, own)
        theirs = make(torch.optim.lr_scheduler, their)
        for epoch in (2, 5, 11, 3):
            ours.step(epoch), theirs.step(epoch)
            np.testing.assert_allclose(settings_of(own), settings_of(their), rtol=1e-12)
        ours.step(), theirs.step()
        np.testing.assert_allclose(settings_of(own), settings_of(their), rtol=1e-12)


def test_a_schedule_of_ones_own():
    class Halving(optim.lr_scheduler.LRScheduler):
        def get_lr(self):
            return [base * 0.5**self.last_epoch for base in self.base_lrs]

    own, _ = optimizers()
    schedule = Halving(own)
    schedule.step(), schedule.step()
    assert schedule.get_last_lr() == [0.025, 0.075]


# --- beside PyTorch, one by one ---

BOTH = pytest.mark.parametrize(
    ("tensor", "nn_of", "optim_of"),
    [(mg.tensor, nn, optim), (torch.tensor, torch.nn, torch.optim)],
    ids=["monograph", "torch"],
)


@BOTH
@pytest.mark.parametrize(
    "name", ["StepLR", "CosineAnnealingLR", "WarmRestarts", "OneCycleLR-linear"]
)
def test_a_rate_that_is_a_tensor_stays_one(name, tensor, nn_of, optim_of):
    rate = tensor(0.5)
    optimizer = optim_of.SGD([nn_of.Parameter(tensor([1.0]))], lr=rate, momentum=0.9)
    other = optim_of.SGD([nn_of.Parameter(tensor([1.0]))], lr=0.5, momentum=0.9)
    first, second = (SCHEDULES[name](optim_of.lr_scheduler, o) for o in (optimizer, other))
    seen = []
    for _ in range(9):
        optimizer.step(), other.step()
        first.step(), second.step()
        seen.append(first.get_last_lr()[0])
    assert optimizer.param_groups[0]["lr"] is rate
    assert rate.item() == pytest.approx(other.param_groups[0]["lr"], rel=1e-5)
    assert len({float(value) for value in seen}) > 1  # what was seen stays


@BOTH
def test_a_step_of_ones_own_makes_the_first_one(tensor, nn_of, optim_of):
    class Falling(optim_of.lr_scheduler.LRScheduler):
        def __init__(self, optimizer):
            self.turns = -1
            super().__init__(optimizer)

        def get_lr(self):
            return [base / (1 + self.turns) for base in self.base_lrs]

        def step(self, epoch=None):
            self.turns += 1
            super().step(epoch)

        def _get_closed_form_lr(self):
            return [base * 0.5**self.last_epoch for base in self.base_lrs]

    optimizer = optim_of.SGD([nn_of.Parameter(tensor([1.0]))], lr=1.0)
    schedule = Falling(optimizer)
    rates = schedule.get_last_lr()
    for _ in range(2):
        optimizer.step()
        schedule.step()
        rates = rates + schedule.get_last_lr()
    assert rates == pytest.approx([1.0, 1 / 2, 1 / 3])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        schedule.step(3)
    assert schedule.get_last_lr() == [0.125]


@BOTH
def test_groups_that_are_added_later(tensor, nn_of, optim_of):
    optimizer = optim_of.SGD([nn_of.Parameter(tensor([1.0]))], lr=1.0)
    s = optim_of.lr_scheduler
    follows, refuses = s.CosineAnnealingLR(optimizer, 4), s.LambdaLR(optimizer, warmup)
    optimizer.step()
    follows.step()
    optimizer.add_param_group({"params": [nn_of.Parameter(tensor([1.0]))], "lr": 0.5})
    follows.step()
    assert len(follows.get_last_lr()) == 2
    with pytest.raises(ValueError):
        refuses.step()


@BOTH
def test_what_sequences_refuse(tensor, nn_of, optim_of):
    optimizer = optim_of.SGD([nn_of.Parameter(tensor([1.0]))], lr=1.0)
    s = optim_of.lr_scheduler
    with pytest.raises(ValueError, match="does not support `ReduceLROnPlateau`"):
        s.SequentialLR(optimizer, [s.StepLR(optimizer, 2), s.ReduceLROnPlateau(optimizer)], [2])
    inner = s.SequentialLR(optimizer, [s.StepLR(optimizer, 2), s.StepLR(optimizer, 3)], [2])
    outer = s.SequentialLR(optimizer, [s.StepLR(optimizer, 2), inner], [1])
    optimizer.step()
    with pytest.raises(NotImplementedError):
        outer.step()
    with pytest.raises(TypeError):
        outer.step(3)
