"""What a traced function took for granted is noticed when it changes."""

import numpy as np
import pytest

import monograph as mg
from monograph import nn


@pytest.fixture(params=["reference", "cpu"], autouse=True)
def backend(request):
    with mg.config.override(backend=request.param):
        yield


FACTOR = 2.0


def by_factor(x):
    return x * FACTOR


class Settings:
    shift = 1.0

    def __init__(self):
        self.scale = 3.0

    def apply(self, x):
        return x * self.scale + self.shift


def test_a_closure_is_guarded():
    by = 2.0

    def scaled(x):
        return x * by

    scaled = mg.jit(scaled)
    x = mg.ones(2)
    assert [scaled(x).tolist()[0] for _ in range(2)] == [2.0, 2.0]
    by = 7.0
    assert [scaled(x).tolist()[0] for _ in range(2)] == [7.0, 7.0]
    assert scaled.reasons == ["traced again: by is now 7.0, was 2.0"]
    by = 2.0
    assert scaled(x).tolist() == [2.0, 2.0]
    assert len(scaled.reasons) == 1  # the first trace serves again


def test_a_global_of_a_function_that_is_called_is_guarded(monkeypatch):
    twice = mg.jit(lambda x: by_factor(x) + 1)
    x = mg.ones(2)
    assert twice(x).tolist() == twice(x).tolist() == [3.0, 3.0]
    monkeypatch.setitem(globals(), "FACTOR", 10.0)
    assert twice(x).tolist() == [11.0, 11.0]
    assert twice.reasons == ["traced again: FACTOR is now 10.0, was 2.0"]


def test_attributes_of_objects_are_guarded():
    settings = Settings()
    applied = mg.jit(lambda x: settings.apply(x))
    x = mg.ones(2)
    assert applied(x).tolist() == applied(x).tolist() == [4.0, 4.0]
    settings.scale = 4.0
    assert applied(x).tolist() == [5.0, 5.0]
    assert applied.reasons == ["traced again: self.scale is now 4.0, was 3.0"]


def test_attributes_of_an_argument_are_guarded():
    class Shifted:
        def __init__(self):
            self.by = 1.0

        @mg.jit
        def __call__(self, x):
            return x + self.by

    shifted, x = Shifted(), mg.ones(2)
    assert shifted(x).tolist() == shifted(x).tolist() == [2.0, 2.0]
    shifted.by = 5.0
    assert shifted(x).tolist() == [6.0, 6.0]


def test_attributes_of_modules_are_guarded():
    layer = nn.Dropout(0.0)
    model = nn.Sequential(nn.Identity(), layer)
    drop = mg.jit(lambda x: model(x) * 1)
    x = mg.ones(1000)
    assert [(drop(x).numpy() == 1).all() for _ in range(2)] == [True, True]
    layer.p = 0.9
    assert (drop(x).detach().numpy() == 0).mean() > 0.5
    assert "Dropout.p is now 0.9, was 0.0" in drop.reasons[-1]
    layer.other = "something that nobody reads, noticed all the same"
    model.register_forward_hook(lambda module, args, output: output * 0)
    assert (drop(x).numpy() == 0).all()


def test_another_parameter_and_another_tensor_are_noticed():
    layer = nn.Linear(2, 2, bias=False)
    offset = mg.zeros(2)

    def run(x):
        return (layer(x) + offset).detach()

    run = mg.jit(run)
    x = mg.ones(1, 2)
    run(x)
    layer.weight = nn.Parameter(mg.ones(2, 2))
    assert run(x).tolist() == [[2.0, 2.0]]
    offset = mg.ones(2)
    assert run(x).tolist() == run(x).tolist() == [[3.0, 3.0]]
    assert "offset is now another Tensor" in run.reasons[-1]


def test_constants_of_any_kind_in_the_code():
    run = mg.jit(lambda x: x.sum(()) + x.reshape((2, 1)).sum((0, 1)) + len(()) + len("".join([])))
    assert [run(mg.ones(2)).item() for _ in range(2)] == [4.0, 4.0]


def test_contents_of_lists_are_guarded():
    widths = [1.0, 2.0]
    total = mg.jit(lambda x: sum(x * w for w in widths))
    x = mg.ones(2)
    assert total(x).tolist() == total(x).tolist() == [3.0, 3.0]
    widths.append(4.0)
    assert total(x).tolist() == [7.0, 7.0]


def test_training_and_evaluation_may_alternate():
    layer = nn.Dropout(0.9)
    calls = []

    def run(x):
        calls.append(1)
        return layer(x)

    drop = mg.jit(run)
    x = mg.ones(1000)
    for _ in range(12):
        layer.train()
        assert (drop(x).detach().numpy() == 0).mean() > 0.5
        layer.eval()
        assert (drop(x).detach().numpy() == 1).all()
    assert len(drop.reasons) <= 3


def test_what_changes_at_every_call_is_not_replayed():
    count = 0.0

    def run(x):
        return x * count

    run = mg.jit(run)
    x = mg.ones(2)
    for n in range(20):
        count = float(n)
        assert run(x).tolist() == [n, n]
    assert "calls in a row" in run.reasons[-1]


def test_effects_on_python_happen_when_a_call_is_traced():
    count, seen = 0, []

    def run(x):
        nonlocal count
        count += 1
        seen.append(count)
        return x * 2

    run = mg.jit(run)
    for _ in range(5):
        assert run(mg.ones(2)).tolist() == [2.0, 2.0]
    run(mg.ones(3))
    run(mg.ones(2))
    assert (count, seen) == (2, [1, 2])


def test_modes_are_noticed():
    w = mg.tensor([3.0], requires_grad=True)
    run = mg.jit(lambda x: (w * x).detach())
    x = mg.ones(1)
    run(x)
    with mg.no_grad():
        assert run(x).tolist() == [3.0]
    assert run.reasons[-1] == "traced again: grad mode is now False, was True"
    with mg.eager():
        assert run(x).tolist() == [3.0]


def test_reasons_name_the_argument():
    run = mg.jit(lambda x, by: x * by)
    run(mg.ones(2), 2.0)
    run(mg.ones(3), 2.0)
    run(mg.ones(3), 4.0)
    run(mg.ones(3).double(), 4.0)
    assert run.reasons == [
        "traced again: x is now float32[3], was float32[2]",
        "traced again: by is now 4.0, was 2.0",
        "traced again: x is now float64[3], was float32[3]",
    ]
    assert "<lambda> was traced again: x is now float64[3]" in mg.explain_last()


def test_other_objects_in_the_same_place_are_told_apart():
    class Unhashable(dict):
        __hash__ = None

        def __init__(self, number):
            super().__init__()
            self.number = number

    scaled = mg.jit(lambda x, box: x * box.items.number)

    class Box:
        __hash__ = None

        def __init__(self, number):
            self.items = Unhashable(number)

    assert [scaled(mg.ones(1), Box(n)).item() for n in (2.0, 3.0, 4.0)] == [2.0, 3.0, 4.0]


def test_an_attribute_of_an_object_hides_that_of_its_class():
    class Settings:
        rate = 2.0

    settings = Settings()
    scaled = mg.jit(lambda x: x * settings.rate)
    assert scaled(mg.ones(1)).item() == 2.0
    assert scaled(mg.ones(1)).item() == 2.0
    settings.rate = 5.0
    assert scaled(mg.ones(1)).item() == 5.0
    del settings.rate
    assert scaled(mg.ones(1)).item() == 2.0


@pytest.mark.parametrize(
    "held",
    [
        lambda: {"a": {"rate": 2.0}},
        lambda: [0, {"b": [{"rate": 2.0}]}],
        lambda: (0, [{"rate": 2.0}]),
    ],
)
def test_changes_deep_inside_of_containers_are_noticed(held):
    def innermost(tree):
        while not (isinstance(tree, dict) and "rate" in tree):
            tree = [*tree.values()][-1] if isinstance(tree, dict) else tree[-1]
        return tree

    settings = held()
    scaled = mg.jit(lambda x: x * innermost(settings)["rate"])
    assert [scaled(mg.ones(1)).item() for _ in range(2)] == [2.0, 2.0]
    assert scaled.reasons == []
    innermost(settings)["rate"] = 3.0
    assert scaled(mg.ones(1)).item() == 3.0


class Counting(mg.optim.Optimizer):
    """An optimiser of a user's, that makes its state at the first step and counts in Python."""

    def __init__(self, params, lr=0.1):
        super().__init__(params, {"lr": lr})

    @mg.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                state = self.state[p]
                if not state:
                    state["count"], state["mean"] = 0, mg.zeros_like(p)
                state["count"] += 1
                state["mean"].mul_(0.5).add_(p.grad)
                p.sub_(group["lr"] * state["mean"] / state["count"])


def _trained(make, between, jitted, steps=8):
    """The weights after each step, some of which are preceded by a change of the optimiser."""
    weights = [mg.tensor([1.0, 2.0], requires_grad=True), mg.tensor([3.0], requires_grad=True)]
    optimizer = make(weights)

    def step(x):
        optimizer.zero_grad()
        ((weights[0] * x).sum() * weights[1]).sum().backward()
        optimizer.step()
        return weights[0].detach() * 1

    run = mg.jit(step) if jitted else step
    seen = []
    for n in range(steps):
        if n == 3:
            between(optimizer, weights)
        elif n == 4:
            weights[1].requires_grad_(True)
        seen.append([*run(mg.tensor([n + 1.0, 0.5])).tolist(), weights[1].item()])
    return seen


def _clear(optimizer, weights):
    optimizer.state.clear()


def _reload(optimizer, weights):
    state = optimizer.state_dict()
    for held in state["state"].values():
        held["step"] = mg.tensor(0.0)
        held["exp_avg"] = held["exp_avg"] * 0
    optimizer.load_state_dict(state)


def _freeze(optimizer, weights):
    weights[1].requires_grad_(False)


def _ascend(optimizer, weights):
    optimizer.param_groups[0]["maximize"] = True


def _move(optimizer, weights):
    optimizer.param_groups[0]["momentum"] = 0.9


def _extend(optimizer, weights):
    optimizer.add_param_group({"params": [weights[1]], "lr": 0.5})


@pytest.mark.parametrize("between", [_clear, _reload, _freeze, _ascend])
def test_state_and_settings_of_an_optimizer_are_guarded(between):
    def make(weights):
        return mg.optim.Adam(weights, 0.1)

    expected = _trained(make, between, jitted=False)
    for got, want in zip(_trained(make, between, jitted=True), expected, strict=True):
        assert got == pytest.approx(want, abs=1e-5)


def test_groups_of_an_optimizer_are_guarded():
    for make, between in (
        (lambda weights: mg.optim.SGD(weights[:1], 0.1), _extend),
        (lambda weights: mg.optim.SGD(weights, 0.1), _move),
    ):
        expected = _trained(make, between, jitted=False)
        for got, want in zip(_trained(make, between, jitted=True), expected, strict=True):
            assert got == pytest.approx(want, rel=1e-5)


def test_an_optimizer_that_counts_in_python_is_not_frozen():
    def slower(optimizer, weights):
        optimizer.param_groups[0]["lr"] = 0.01

    expected = _trained(Counting, slower, jitted=False)
    for got, want in zip(_trained(Counting, slower, jitted=True), expected, strict=True):
        assert got == pytest.approx(want, rel=1e-5)


def test_a_schedule_of_the_rate_needs_no_trace():
    weight = mg.tensor([1.0], requires_grad=True)
    optimizer = mg.optim.Adam([weight], 0.1)

    @mg.jit
    def step():
        optimizer.zero_grad()
        (weight * 2).sum().backward()
        optimizer.step()

    for n in range(4):
        optimizer.param_groups[0]["lr"] = 0.1 / (n + 1)
        step()
    assert weight.item() == pytest.approx(1 - 0.1 * (1 + 1 / 2 + 1 / 3 + 1 / 4), abs=1e-5)
    assert step.reasons == []


class Smoothed(nn.Module):
    """Carries a tensor from call to call, in an attribute that begins as None."""

    def __init__(self):
        super().__init__()
        self.mean = None

    def forward(self, x):
        self.mean = x if self.mean is None else 0.5 * self.mean + x
        return self.mean * 2


def test_a_tensor_that_is_carried_in_an_attribute():
    module = Smoothed()
    run = mg.jit(lambda x: module(x * 1))
    assert [run(mg.tensor(1.0)).item() for _ in range(4)] == [2.0, 3.0, 3.5, 3.75]
    assert "another in its place" in run.reasons[-1]


@pytest.mark.parametrize("kept", [True, False])
def test_a_tensor_that_is_carried_in_a_container(kept):
    first = mg.tensor(0.0)
    state = {"sum": first}
    if not kept:
        del first

    def add(x):
        state["sum"] = state["sum"] + x
        return state["sum"] * 1

    run = mg.jit(add)
    assert [run(mg.tensor(1.0)).item() for _ in range(4)] == [1.0, 2.0, 3.0, 4.0]
    assert "another in its place" in run.reasons[-1]


def test_gradients_that_the_call_before_left():
    weight = mg.tensor([1.0], requires_grad=True)
    optimizer = mg.optim.SGD([weight], 1.0)
    (weight * 1).sum().backward()

    @mg.jit
    def step(x):
        optimizer.step()
        optimizer.zero_grad()
        (weight * x).sum().backward()
        return weight * 1

    seen = [step(mg.tensor([float(n)])).item() for n in range(4)]
    assert seen == [0.0, 0.0, -1.0, -3.0]


def test_an_attribute_that_is_set_anew_before_it_is_read_may_be_replayed():
    class Cached(nn.Module):
        def forward(self, x):
            self.seen = x * 2
            return self.seen + 1

    module = Cached()
    run = mg.jit(lambda x: module(x))
    assert [run(mg.tensor(float(n))).item() for n in range(4)] == [1.0, 3.0, 5.0, 7.0]
    assert not any("not replayed" in reason for reason in run.reasons)


@pytest.mark.parametrize("own", [False, True])
def test_state_of_an_optimiser_that_was_exchanged_is_noticed(own):
    """Changes are counted, but for those of dictionaries that the user put there."""
    layer = mg.nn.Linear(2, 2)
    optimizer = mg.optim.SGD(layer.parameters(), lr=0.5, momentum=0.5)
    layer(mg.ones(2)).sum().backward()
    optimizer.step()
    p = layer.weight
    held = optimizer.state[p]
    if own:
        held = optimizer.state[p] = dict(held)

    @mg.jit
    def step():
        optimizer.step()

    for _ in range(3):
        step()
    before = p.tolist()
    held["momentum_buffer"] = mg.full((2, 2), 4.0)
    step()
    moved = 0.5 * (0.5 * 4.0 + 1.0)
    expected = [[each - moved for each in row] for row in before]
    np.testing.assert_allclose(p.tolist(), expected, rtol=1e-6)
