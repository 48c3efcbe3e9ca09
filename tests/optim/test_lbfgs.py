"""L-BFGS against PyTorch's, with and without a line search."""

import copy

import numpy as np
import pytest
import torch

import monograph as mg
from monograph import nn, optim

CASES = [
    {},
    {"lr": 0.1, "history_size": 3},
    {"line_search_fn": "strong_wolfe"},
    {"line_search_fn": "strong_wolfe", "history_size": 2, "max_iter": 7},
    {"line_search_fn": "strong_wolfe", "lr": 30.0, "max_iter": 4},
    {"lr": 0.5, "max_iter": 4, "max_eval": 3},
]


def rosenbrock(x, y):
    a, b = x[:-1], x[1:]
    return (100.0 * (b - a * a) ** 2 + (1.0 - a) ** 2).sum() + ((y - 2.0) ** 4).sum()


def bowl(x, y):
    return (x * x * x * x).sum() + (x * x).sum() * 0.5 + ((y - 2.0) ** 2).sum() * 3.0


def start(function, settings):
    arrays = [np.array([-1.2, 1.0, 0.5, -0.3]), np.array([[0.1, 0.7]])]
    sides = []
    for tensors, made in (
        ([nn.Parameter(a) for a in arrays], optim.LBFGS),
        ([torch.nn.Parameter(torch.from_numpy(a.copy())) for a in arrays], torch.optim.LBFGS),
    ):
        optimizer = made(tensors, **settings)

        def closure(optimizer=optimizer, tensors=tensors):
            optimizer.zero_grad()
            loss = function(*tensors)
            loss.backward()
            return loss

        sides.append((tensors, optimizer, closure))
    return sides


@pytest.mark.parametrize("function", [bowl, rosenbrock])
@pytest.mark.parametrize("settings", CASES, ids=str)
def test_against_pytorch(function, settings):
    if function is rosenbrock and "line_search_fn" not in settings:
        settings = {**settings, "lr": 1e-3}
    (ours, own, closure), (theirs, their, twin) = start(function, settings)
    for _ in range(3):
        assert abs(own.step(closure).item() - their.step(twin).item()) < 1e-7
        for p, q in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(p.detach().numpy(), q.detach().numpy(), rtol=1e-6, atol=1e-8)
        mine, given = own.state[ours[0]], their.state[theirs[0]]
        for name in ("func_evals", "n_iter"):
            assert mine[name] == given[name], name
        assert len(mine["old_dirs"]) == len(given["old_dirs"])


def test_state_continues():
    (ours, own, closure), (theirs, their, twin) = start(bowl, {"max_iter": 3})
    own.step(closure), their.step(twin)
    fresh = optim.LBFGS(ours)
    fresh.load_state_dict(copy.deepcopy(own.state_dict()))

    def again():
        fresh.zero_grad()
        loss = bowl(*ours)
        loss.backward()
        return loss

    fresh.step(again), their.step(twin)
    np.testing.assert_allclose(ours[0].tolist(), theirs[0].tolist(), rtol=1e-9)


def test_an_unknown_line_search():
    p = nn.Parameter([1.0])
    made = optim.LBFGS([p], line_search_fn="armijo")

    def closure():
        made.zero_grad()
        loss = (p * p).sum()
        loss.backward()
        return loss

    with pytest.raises(RuntimeError, match="strong_wolfe"):
        made.step(closure)


def test_nothing_to_do_at_the_minimum():
    p = nn.Parameter([0.0])
    made = optim.LBFGS([p])

    def closure():
        loss = (p * p).sum()
        loss.backward()
        return loss

    assert made.step(closure).item() == 0.0
    assert p.tolist() == [0.0]
    assert mg.stats().pending == 0
