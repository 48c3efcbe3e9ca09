"""Settings and state of optimisers that change between steps, beside PyTorch."""

from copy import deepcopy

import pytest
import torch

import monograph as mg

BOTH = pytest.mark.parametrize("lib", [mg, torch], ids=["monograph", "torch"])
OPTIMISERS = {
    "SGD": {"lr": 0.1, "momentum": 0.9},
    "Adam": {"lr": 0.1},
    "NAdam": {"lr": 0.1},
    "RMSprop": {"lr": 0.1, "momentum": 0.5},
    "Adafactor": {"lr": 0.1},
}


def steps(lib, weights, optimizer, count):
    losses = []
    for _ in range(count):
        optimizer.zero_grad()
        loss = sum((w * w * w).sum() for w in weights)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def made(lib, name, **settings):
    weights = [lib.nn.Parameter(lib.tensor([[1.0, 2.0]])), lib.nn.Parameter(lib.tensor([3.0]))]
    return weights, getattr(lib.optim, name)(weights, **settings)


def rate_changed_in_place(lib, name, settings):
    weights, optimizer = made(lib, name, **{**settings, "lr": lib.tensor(0.1)})
    before = steps(lib, weights, optimizer, 2)
    optimizer.zero_grad()
    sum((w * w).sum() for w in weights).backward()
    optimizer.param_groups[0]["lr"].mul_(0.5)  # still to be computed when the step is recorded
    optimizer.step()
    return before + steps(lib, weights, optimizer, 2)


@pytest.mark.parametrize("name", OPTIMISERS)
def test_a_rate_that_is_a_pending_tensor(name):
    found = rate_changed_in_place(mg, name, OPTIMISERS[name])
    assert found == pytest.approx(rate_changed_in_place(torch, name, OPTIMISERS[name]), rel=1e-4)


@pytest.mark.parametrize("name", OPTIMISERS)
def test_loading_the_state_of_the_beginning_forgets_the_steps(name):
    weights, optimizer = made(mg, name, **OPTIMISERS[name])
    contents = [w.detach().clone() for w in weights]
    beginning = deepcopy(optimizer.state_dict())
    first = steps(mg, weights, optimizer, 3)
    optimizer.load_state_dict(beginning)
    assert not any(optimizer.state.values())
    with mg.no_grad():
        for w, content in zip(weights, contents, strict=True):
            w.copy_(content)
    assert steps(mg, weights, optimizer, 3) == pytest.approx(first, rel=1e-6)


def test_loading_drops_state_that_is_not_in_the_file():
    weights, optimizer = made(mg, "Adam", lr=0.1)
    steps(mg, weights, optimizer, 2)
    saved = deepcopy(optimizer.state_dict())
    del saved["state"][0], saved["state"][1]["exp_avg"]
    optimizer.load_state_dict(saved)
    assert sorted(optimizer.state_dict()["state"]) == [1]
    held = optimizer.state[weights[1]]
    assert held["exp_avg"].tolist() == [0.0] and held["step"].item() == 2


def test_loaded_settings_are_copies():
    weights, optimizer = made(mg, "SGD", lr=mg.tensor(0.5))
    other = mg.optim.SGD(weights, lr=0.1)
    other.load_state_dict(optimizer.state_dict())
    optimizer.param_groups[0]["lr"].zero_()
    assert float(other.param_groups[0]["lr"]) == 0.5


@BOTH
def test_names_of_parameters_are_kept(lib):
    layer = lib.nn.Linear(2, 1)
    optimizer = lib.optim.SGD(layer.named_parameters(), lr=0.1)
    assert optimizer.param_groups[0]["param_names"] == ["weight", "bias"]
    assert optimizer.state_dict()["param_groups"][0]["param_names"] == ["weight", "bias"]
    with pytest.raises(ValueError, match="with"):
        optimizer.add_param_group({"params": [lib.nn.Parameter(lib.ones(1))]})


@BOTH
def test_hooks_see_the_optimiser_among_the_arguments(lib):
    _, optimizer = made(lib, "SGD", lr=0.1)
    seen = []
    handle = optimizer.register_step_pre_hook(lambda o, args, kwargs: seen.append((args, kwargs)))
    optimizer.step()
    optimizer.step(closure=None)
    assert seen == [((optimizer,), {}), ((optimizer,), {"closure": None})]
    handle.remove()
    optimizer.register_step_pre_hook(lambda o, args, kwargs: 1)
    with pytest.raises(RuntimeError):
        optimizer.step()


@BOTH
def test_refusals(lib):
    weights, _ = made(lib, "SGD", lr=0.1)
    with pytest.raises(TypeError, match="ordered collections"):
        lib.optim.SGD([{"params": set(weights)}], lr=0.1)
    with pytest.raises(RuntimeError, match="cannot be `True` together"):
        lib.optim.Adam(weights, foreach=True, fused=True)


@pytest.mark.parametrize("norm_type", [0, -float("inf"), float("inf"), 0.5, 3])
def test_norms_that_gradients_are_clipped_to(norm_type):
    def clipped(lib):
        weights, _ = made(lib, "SGD", lr=0.1)
        ((weights[0] * lib.tensor([2.0, 0.0])).sum() + 3 * weights[1].sum()).backward()
        norm = lib.nn.utils.clip_grad_norm_(weights, 0.5, norm_type=norm_type)
        return [norm.item(), *weights[0].grad.tolist()[0], weights[1].grad.item()]

    assert clipped(mg) == pytest.approx(clipped(torch), rel=1e-5)


@pytest.mark.parametrize("name", ["Adam", "RMSprop", "Adamax", "Rprop", "Adagrad"])
def test_parts_of_complex_parameters_are_updated_each_by_itself(name):
    def trained(lib):
        weight = lib.nn.Parameter(lib.tensor([1 + 2j, 3 - 1j]))
        settings = {"initial_accumulator_value": 0.5} if name == "Adagrad" else {}
        optimizer = getattr(lib.optim, name)([weight], lr=0.1, **settings)
        for _ in range(3):
            optimizer.zero_grad()
            (weight.abs() ** 2).sum().backward()
            optimizer.step()
        state = [lib.view_as_real(x) for x in optimizer.state[weight].values() if x.is_complex()]
        found = [lib.view_as_real(weight.detach()), *state]
        return [number for x in found for number in x.reshape(-1).tolist()]

    assert trained(mg) == pytest.approx(trained(torch), rel=1e-4)


@BOTH
def test_what_a_user_adds_as_state_is_set(lib):
    class Own(lib.optim.SGD):
        def __setstate__(self, state):
            super().__setstate__(state)
            for group in self.param_groups:
                group.setdefault("extra", 1)

    weights, optimizer = made(lib, "SGD", lr=0.2, momentum=0.5)
    steps(lib, weights, optimizer, 1)
    other = Own(weights, lr=0.1)
    other.load_state_dict(optimizer.state_dict())
    twin = deepcopy(other)
    del other.param_groups[0]["extra"]
    other.__setstate__({"state": optimizer.state, "param_groups": other.param_groups})
    for each in (other, twin):
        group = each.param_groups[0]
        assert (group["lr"], group["extra"]) == (0.2, 1) and len(each.state) == 2
    steps(lib, weights, other, 1)
    steps(lib, twin.param_groups[0]["params"], twin, 1)
    assert twin.param_groups[0]["params"][1].item() == pytest.approx(weights[1].item())
