"""What a traced function took for granted is noticed when it changes."""

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
