"""Adafactor and Muon against PyTorch's: parameters, state and errors."""

import numpy as np
import pytest
import torch

import monograph as mg

SETTINGS = {
    "Adafactor": [
        {}, {"lr": 0.5, "weight_decay": 0.1}, {"beta2_decay": -0.5, "eps": (1e-4, 0.1), "d": 2.0},
        {"maximize": True},
    ],
    "Muon": [
        {}, {"lr": 0.1, "nesterov": False}, {"adjust_lr_fn": "match_rms_adamw", "momentum": 0.5},
        {"weight_decay": 0.0, "ns_steps": 2},
    ],
}  # fmt: skip
CASES = [(name, n) for name, listed in SETTINGS.items() for n in range(len(listed))]


def train(m, name, options, double):
    rng = np.random.default_rng(0)
    shapes = [(3, 4), (5, 2)] if name == "Muon" else [(3, 4), (5,), (2, 3, 4), ()]
    dtype = m.float64 if double else m.float32
    params = [m.nn.Parameter(m.tensor(rng.normal(size=s), dtype=dtype)) for s in shapes]
    optimizer = getattr(m.optim, name)(params, **options)
    schedule = m.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)
    for _ in range(4):
        optimizer.zero_grad()
        sum((p**4).sum() + (p.sum() - 1) ** 2 for p in params).backward()
        optimizer.step()
        schedule.step()
    states = [
        {key: np.asarray(value.tolist()) for key, value in optimizer.state[p].items()}
        for p in params
    ]
    return [np.asarray(p.tolist()) for p in params], states


@pytest.mark.parametrize("name, n", CASES)
def test_steps(name, n):
    double = name == "Adafactor"
    options = SETTINGS[name][n]
    (ours, states), (theirs, expected) = (train(m, name, options, double) for m in (mg, torch))
    close = 1e-7 if double else 2e-2  # Muon's iteration is done in bfloat16
    for mine, other in zip(ours, theirs, strict=True):
        assert np.allclose(mine, other, rtol=close, atol=close)
    for mine, other in zip(states, expected, strict=True):
        assert mine.keys() == other.keys()
        for key in mine:
            assert np.allclose(mine[key], other[key], rtol=close, atol=close), key


WRONG = [
    ("Adafactor", {"lr": -1}), ("Adafactor", {"beta2_decay": 0.5}), ("Adafactor", {"d": 0.5}),
    ("Adafactor", {"eps": (-1.0, 1e-3)}), ("Muon", {"lr": -1}), ("Muon", {"adjust_lr_fn": "x"}),
    ("Muon", {"momentum": -1}),
]  # fmt: skip


@pytest.mark.parametrize("name, options", WRONG)
def test_wrong_settings(name, options):
    for m in (mg, torch):
        with pytest.raises(ValueError):
            getattr(m.optim, name)([m.nn.Parameter(m.ones(2, 2))], **options)


def test_muon_takes_matrices_only():
    for m in (mg, torch):
        with pytest.raises(ValueError, match="2D"):
            m.optim.Muon([m.nn.Parameter(m.ones(2))])


def test_under_jit_the_rate_may_change():
    p = mg.nn.Parameter(mg.ones(2, 3))
    optimizer = mg.optim.Adafactor([p], lr=0.1)

    @mg.jit
    def step():
        optimizer.zero_grad()
        (p * p).sum().backward()
        optimizer.step()

    for _ in range(3):
        step()
    before = p.tolist()
    optimizer.param_groups[0]["lr"] = 0.0
    step()
    assert p.tolist() == before
