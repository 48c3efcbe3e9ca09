"""Every optimiser against PyTorch's over twenty steps: parameters, state and its dictionary."""

import copy

import numpy as np
import pytest
import torch

import monograph as mg
from monograph import nn, optim

SHAPES = [(3, 4), (5,), ()]
SETTINGS = [
    ("SGD", {"lr": 0.1}),
    ("SGD", {"lr": 0.1, "momentum": 0.9}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.01}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.5}),
    ("SGD", {"lr": 0.1, "momentum": 0.5, "maximize": True, "weight_decay": 0.1}),
    ("Adam", {"lr": 0.01}),
    ("Adam", {"lr": 0.01, "betas": (0.5, 0.9), "eps": 1e-3, "weight_decay": 0.1}),
    ("Adam", {"lr": 0.01, "maximize": True}),
    ("AdamW", {"lr": 0.01}),
    ("AdamW", {"lr": 0.01, "weight_decay": 0.5, "betas": (0.8, 0.99)}),
    ("Adam", {"lr": 0.01, "amsgrad": True, "foreach": False, "fused": False}),
    ("AdamW", {"lr": 0.01, "amsgrad": True, "maximize": True}),
    ("Adam", {"lr": 0.01, "weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("Adamax", {"lr": 0.02}),
    ("Adamax", {"betas": (0.8, 0.9), "weight_decay": 0.1, "eps": 1e-4, "maximize": True}),
    ("NAdam", {"lr": 0.02}),
    ("NAdam", {"betas": (0.8, 0.9), "weight_decay": 0.1, "momentum_decay": 0.1, "maximize": True}),
    ("NAdam", {"lr": 0.02, "weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("RAdam", {"lr": 0.02}),
    ("RAdam", {"lr": 0.02, "betas": (0.8, 0.9), "weight_decay": 0.1, "maximize": True}),
    ("RAdam", {"lr": 0.02, "weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("RMSprop", {"lr": 0.01}),
    ("RMSprop", {"lr": 0.01, "alpha": 0.9, "momentum": 0.9, "weight_decay": 0.1}),
    ("RMSprop", {"lr": 0.01, "centered": True, "maximize": True}),
    ("RMSprop", {"lr": 0.01, "centered": True, "momentum": 0.5}),
    ("Adagrad", {"lr": 0.1}),
    ("Adagrad", {"lr": 0.1, "lr_decay": 0.1, "weight_decay": 0.1, "maximize": True}),
    ("Adagrad", {"initial_accumulator_value": 0.5, "eps": 1e-3}),
    ("Adadelta", {}),
    ("Adadelta", {"lr": 0.5, "rho": 0.8, "weight_decay": 0.1, "eps": 1e-3, "maximize": True}),
    ("Rprop", {"lr": 0.01}),
    ("Rprop", {"etas": (0.3, 1.5), "step_sizes": (1e-3, 0.02), "maximize": True}),
    ("ASGD", {"lr": 0.1}),
    ("ASGD", {"lambd": 0.1, "alpha": 0.5, "t0": 5, "weight_decay": 0.1, "maximize": True}),
]


def title(case):
    return "-".join([case[0], *[f"{k}={v}" for k, v in case[1].items()]])


def parameters(dtype="float64", seed=0):
    """The same parameters for (ours, PyTorch's)."""
    rng = np.random.default_rng(seed)
    arrays = [np.array(rng.normal(size=shape), dtype) for shape in SHAPES]
    theirs = [torch.nn.Parameter(torch.from_numpy(a.copy())) for a in arrays]
    return [nn.Parameter(a) for a in arrays], theirs


def pair(name, settings, ours, theirs):
    """(our optimiser, PyTorch's)."""
    own, their = getattr(optim, name), getattr(torch.optim, name)
    return own(ours, **settings), their(theirs, **settings)


def set_gradients(ours, theirs, step, without=()):
    rng = np.random.default_rng(100 + step)
    for n, (p, q) in enumerate(zip(ours, theirs, strict=True)):
        g = np.array(rng.normal(size=tuple(p.shape)), p.dtype.name)
        p.grad = None if n in without else mg.tensor(g)
        q.grad = None if n in without else torch.from_numpy(g.copy())


def same(ours, theirs, rtol=1e-10):
    for p, q in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(p.detach().numpy(), q.detach().numpy(), rtol=rtol, atol=1e-12)


def same_state(ours, theirs):
    found, wanted = ours.state_dict(), theirs.state_dict()
    assert sorted(found["state"]) == sorted(wanted["state"])
    for n, held in wanted["state"].items():
        assert set(found["state"][n]) == set(held)
        for name, value in held.items():
            mine = found["state"][n][name]
            assert mine.dtype.name == str(value.dtype).removeprefix("torch.")
            np.testing.assert_allclose(
                mine.detach().numpy(), value.detach().numpy(), rtol=1e-10, err_msg=name
            )
    for own, given in zip(found["param_groups"], wanted["param_groups"], strict=True):
        assert own["params"] == given["params"]
        assert all(own[name] == given[name] for name in own)


@pytest.mark.parametrize("case", SETTINGS, ids=title)
def test_twenty_steps(case):
    name, settings = case
    ours, theirs = parameters()
    own, their = pair(name, settings, ours, theirs)
    same_state(own, their)
    for step in range(20):
        set_gradients(ours, theirs, step)
        own.step(), their.step()
        same(ours, theirs)
    same_state(own, their)
    assert all(p.requires_grad and p.is_leaf for p in ours)


@pytest.mark.parametrize("case", SETTINGS, ids=title)
def test_float32(case):
    name, settings = case
    ours, theirs = parameters("float32")
    own, their = pair(name, settings, ours, theirs)
    for step in range(10):
        set_gradients(ours, theirs, step)
        own.step(), their.step()
    same(ours, theirs, rtol=2e-5)


@pytest.mark.parametrize("case", SETTINGS, ids=title)
def test_parameters_without_gradients_wait(case):
    name, settings = case
    ours, theirs = parameters()
    own, their = pair(name, settings, ours, theirs)
    for step, without in enumerate([(1,), (1, 2), (), (0,), (), (0, 1, 2), ()]):
        set_gradients(ours, theirs, step, without)
        own.step(), their.step()
        same(ours, theirs)
    same_state(own, their)


@pytest.mark.parametrize("case", SETTINGS, ids=title)
def test_state_continues_in_a_new_optimizer(case):
    name, settings = case
    ours, theirs = parameters()
    own, their = pair(name, settings, ours, theirs)
    for step in range(3):
        set_gradients(ours, theirs, step, without=(0,) if step == 0 else ())
        own.step(), their.step()
    saved = copy.deepcopy(own.state_dict())
    fresh = getattr(optim, name)(ours, lr=77.0)
    fresh.load_state_dict(saved)
    for step in range(3, 6):
        set_gradients(ours, theirs, step)
        fresh.step(), their.step()
    same(ours, theirs)
    same_state(fresh, their)


@pytest.mark.parametrize("case", SETTINGS, ids=title)
def test_pytorchs_state_is_taken(case):
    name, settings = case
    ours, theirs = parameters()
    own, their = pair(name, settings, ours, theirs)
    for step in range(3):
        set_gradients(ours, theirs, step)
        their.step()
    own.load_state_dict(their.state_dict())
    for p, q in zip(ours, theirs, strict=True):
        nn.parameter.fill_from_array(p, q.detach().numpy())
    for step in range(3, 6):
        set_gradients(ours, theirs, step)
        own.step(), their.step()
    same(ours, theirs)


def test_groups_have_settings_of_their_own():
    ours, theirs = parameters()
    both = []
    for module, params in ((optim, ours), (torch.optim, theirs)):
        groups = [{"params": params[:1], "lr": 0.5}, {"params": params[1:2]}]
        made = module.SGD(groups, lr=0.1, momentum=0.9)
        made.add_param_group({"params": params[2], "momentum": 0.0})
        both.append(made)
    for step in range(4):
        set_gradients(ours, theirs, step)
        for made in both:
            made.step()
            made.param_groups[1]["lr"] *= 0.5
    same(ours, theirs)
    same_state(*both)


def test_a_step_is_one_operator_and_one_flush():
    ours, theirs = parameters()
    for name in dict(SETTINGS):
        made = getattr(optim, name)(ours, lr=0.1)
        set_gradients(ours, theirs, 0)
        mg.stats.reset()
        made.step()
        assert mg.stats().recorded == 1 and mg.stats().flushes == 1


def test_a_changing_rate_does_not_compile_again():
    ours, theirs = parameters()
    made = optim.Adam(ours, lr=0.1)
    for step in range(6):
        if step == 3:
            mg.stats.reset()
        set_gradients(ours, theirs, step)
        made.param_groups[0]["lr"] = 0.1 / (step + 1)
        made.param_groups[0]["betas"] = (0.9 - 0.01 * step, 0.999)
        made.step()
    assert mg.stats().compilations == 0


def test_state_has_its_memory_from_construction():
    ours, theirs = parameters()
    made = optim.Adam(ours)
    reserved = made._reserved[ours[0]]["exp_avg"]
    address = reserved.detach().numpy().ctypes.data
    set_gradients(ours, theirs, 0)
    assert ours[0] not in made.state
    made.step()
    assert made.state[ours[0]]["exp_avg"] is reserved
    assert reserved.detach().numpy().ctypes.data == address


def test_zero_grad_and_closure():
    (p, *_), _ = parameters()
    made = optim.SGD([p], lr=0.1)

    def closure():
        made.zero_grad()
        loss = (p * p).sum()
        loss.backward()
        return loss

    before = (p.detach().numpy() ** 2).sum()
    with mg.no_grad():
        assert abs(made.step(closure).item() - before) < 1e-12
    np.testing.assert_allclose((p.detach().numpy() ** 2).sum(), 0.64 * before)
    made.zero_grad(set_to_none=False)
    assert p.grad.detach().numpy().sum() == 0
    made.zero_grad()
    assert p.grad is None
    made.step()  # nothing to do


def test_repr_shows_the_groups():
    shown = repr(optim.SGD([nn.Parameter([1.0])], lr=0.25))
    assert "SGD" in shown and "Parameter Group 0" in shown and "lr: 0.25" in shown


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (lambda p: optim.SGD([], lr=0.1), ValueError),
        (lambda p: optim.SGD(p, lr=0.1), TypeError),
        (lambda p: optim.SGD([1.0], lr=0.1), TypeError),
        (lambda p: optim.SGD([p * 2], lr=0.1), ValueError),
        (lambda p: optim.SGD([{"params": [p]}, {"params": [p]}], lr=0.1), ValueError),
        (lambda p: optim.SGD([p], lr=-1.0), ValueError),
        (lambda p: optim.SGD([p], lr=0.1, momentum=-0.5), ValueError),
        (lambda p: optim.SGD([p], lr=0.1, nesterov=True), ValueError),
        (lambda p: optim.Adam([p], betas=(1.0, 0.9)), ValueError),
        (lambda p: optim.Adam([p], eps=-1e-8), ValueError),
        (lambda p: optim.AdamW([p], weight_decay=-1.0), ValueError),
        (lambda p: optim.Adam([p], differentiable=True), NotImplementedError),
        (lambda p: optim.Adam([p], amsgrd=True), TypeError),
        (lambda p: optim.Rprop([p], etas=(1.5, 1.2)), ValueError),
        (lambda p: optim.Adadelta([p], rho=2.0), ValueError),
        (lambda p: optim.RMSprop([p], alpha=-1.0), ValueError),
        (lambda p: optim.NAdam([p], momentum_decay=-1.0), ValueError),
        (lambda p: optim.LBFGS([{"params": [p]}, {"params": [nn.Parameter([1.0])]}]), ValueError),
        (lambda p: optim.LBFGS([p]).step(), TypeError),
    ],
)
def test_errors(make, kind):
    with pytest.raises(kind):
        make(nn.Parameter([1.0, 2.0]))


def test_errors_of_load_state_dict():
    ours, _ = parameters()
    whole, part = optim.Adam(ours), optim.Adam(ours[:1])
    with pytest.raises(ValueError, match="size"):
        part.load_state_dict(whole.state_dict())
    two = optim.Adam([{"params": ours[:1]}, {"params": ours[1:]}])
    with pytest.raises(ValueError, match="number of parameter groups"):
        part.load_state_dict(two.state_dict())


@pytest.mark.compiled
@pytest.mark.parametrize("name", list(dict(SETTINGS)))
def test_the_update_is_one_kernel(name):
    ours, theirs = parameters("float32")
    made = getattr(optim, name)(ours, lr=0.1)
    set_gradients(ours, theirs, 0)
    made.step()  # state that depends on the rate is filled in
    set_gradients(ours, theirs, 1)
    report = mg.explain(made.step)
    assert len([k for k in report.kernels if k.name.startswith("update")]) == 1


def test_settings_that_change_the_state_may_change_later():
    ours, theirs = parameters()
    own = optim.RMSprop(ours, lr=0.1)
    for step in range(4):
        if step == 2:
            own.param_groups[0].update(centered=True, momentum=0.5)
        set_gradients(ours, theirs, step)
        own.step()
    assert set(own.state[ours[0]]) == {"step", "square_avg", "grad_avg", "momentum_buffer"}


def test_step_hooks():
    seen = []
    made = optim.SGD([nn.Parameter([1.0])], lr=0.1)
    first = made.register_step_pre_hook(lambda o, args, kwargs: seen.append("before"))
    made.register_step_post_hook(lambda o, args, kwargs: seen.append("after"))
    made.step()
    first.remove()
    made.step()
    assert seen == ["before", "after", "after"]


def test_hooks_reach_steps_that_subclasses_write():
    class Plain(optim.Optimizer):
        def __init__(self, params, lr):
            super().__init__(params, {"lr": lr})

        def step(self, closure=None):
            with mg.no_grad():
                for group in self.param_groups:
                    for p in group["params"]:
                        p -= group["lr"] * p.grad

    p = nn.Parameter([1.0])
    made, seen = Plain([p], lr=0.5), []
    made.register_step_post_hook(lambda *_: seen.append(1))
    (p * p).sum().backward()
    made.step()
    assert p.tolist() == [0.0] and seen == [1]


def test_state_dict_hooks():
    made, seen = optim.Adam([nn.Parameter([1.0])]), []
    made.register_state_dict_pre_hook(lambda o: seen.append("before saving"))
    made.register_state_dict_post_hook(lambda o, state: {**state, "more": 1})
    made.register_load_state_dict_pre_hook(lambda o, state: seen.append(state["more"]))
    made.register_load_state_dict_post_hook(lambda o: seen.append("after loading"))
    made.load_state_dict(made.state_dict())
    assert seen == ["before saving", 1, "after loading"]


def test_copies_and_pickles():
    import pickle

    ours, theirs = parameters()
    made = optim.AdamW(ours, lr=0.1)
    set_gradients(ours, theirs, 0)
    made.step()
    for twin in (copy.deepcopy(made), pickle.loads(pickle.dumps(made))):
        assert repr(twin) == repr(made)
        held = twin.param_groups[0]["params"]
        set_gradients(held, theirs, 1)
        twin.step()
        assert twin.state[held[0]]["step"].item() == 2.0
    assert made.state[ours[0]]["step"].item() == 1.0


def test_a_learning_rate_that_is_a_tensor():
    p = nn.Parameter([1.0])
    made = optim.SGD([p], lr=mg.tensor(0.5))
    p.grad = mg.tensor([1.0])
    made.step()
    assert p.tolist() == [0.5]


@pytest.mark.parametrize("kind", [optim.SGD, optim.Adam, optim.RMSprop])
def test_weights_that_lie_channels_last_are_trained(kind):
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(16, 2))
    twin = copy.deepcopy(model)
    model.to(memory_format=mg.channels_last)
    x = mg.sin(mg.arange(96.0)).reshape(2, 3, 4, 4)
    for each in (model, twin):
        step = kind(each.parameters(), 0.1)
        for _ in range(3):
            step.zero_grad()
            each(x.contiguous(memory_format=mg.channels_last)).pow(2).sum().backward()
            step.step()
    assert model[0].weight.stride() == (27, 1, 9, 3)
    for p, q in zip(model.parameters(), twin.parameters(), strict=True):
        np.testing.assert_allclose(p.tolist(), q.tolist(), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", ["SGD", "Adam", "Adagrad"])
def test_a_parameter_that_is_given_twice_is_updated_twice(name):
    found = []
    for library in (torch, mg):
        a = library.tensor([1.0, 2.0], requires_grad=True)
        b = library.tensor([3.0], requires_grad=True)
        with pytest.warns(UserWarning, match="duplicate parameters"):
            optimizer = getattr(library.optim, name)([a, b, a], 0.1)
        for _ in range(3):
            optimizer.zero_grad()
            (a.sum() * b).sum().backward()
            optimizer.step()
        found.append([*a.tolist(), *b.tolist()])
    assert found[1] == pytest.approx(found[0], rel=1e-5)
