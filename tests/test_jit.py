"""`mg.jit` replays what a call recorded, notices what changed, and says what it cannot do."""

from collections import namedtuple

import numpy as np
import pytest

import monograph as mg
import monograph.nn.functional as F
from monograph import amp, nn


@pytest.fixture(params=["reference", "cpu"], autouse=True)
def backend(request):
    with mg.config.override(backend=request.param):
        yield


def training(dropout=0.0):
    mg.manual_seed(3)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(dropout), nn.Linear(8, 2))
    optimizer = mg.optim.Adam(model.parameters(), lr=0.01)

    def step(x, y):
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    return model, optimizer, step


def batches(count):
    rng = np.random.default_rng(0)
    for _ in range(count):
        yield mg.tensor(rng.standard_normal((6, 4)).astype("f")), mg.tensor(rng.integers(0, 2, 6))


def losses(wrap, dropout):
    _, _, step = training(dropout)
    step = wrap(step)
    return [loss.item() for loss in [step(x, y) for x, y in batches(8)]]


@pytest.mark.parametrize("dropout", [0.0, 0.4])
def test_replays_train_as_calls_do(dropout):
    np.testing.assert_allclose(
        losses(mg.jit, dropout), losses(lambda f: f, dropout), rtol=1e-5, atol=1e-6
    )


def test_gradients_and_returned_values_are_new_each_time():
    model, _, step = training()
    step = mg.jit(step)
    seen = []
    for x, y in batches(4):
        loss = step(x, y)
        seen.append((loss, model[0].weight.grad))
    values = [loss.item() for loss, _ in seen]
    assert len(set(values)) == 4
    grads = [grad.detach().numpy().sum() for _, grad in seen]
    assert len(set(grads)) == 4


def test_the_learning_rate_is_read_again():
    model, optimizer, step = training()
    step = mg.jit(step)
    data = list(batches(3))
    step(*data[0])
    step(*data[1])
    optimizer.param_groups[0]["lr"] = 0.0
    before = model[0].weight.detach().numpy().copy()
    step(*data[2])
    np.testing.assert_array_equal(model[0].weight.detach().numpy(), before)


def test_another_shape_is_traced_too():
    double = mg.jit(lambda x: x * 2)
    assert double(mg.ones(2)).tolist() == [2.0, 2.0]
    assert double(mg.ones(3)).tolist() == [2.0, 2.0, 2.0]
    assert double(mg.ones(2) * 3).tolist() == [6.0, 6.0]
    assert double.reasons == ["traced again: x is now float32[3], was float32[2]"]


def test_numbers_are_part_of_the_signature():
    scale = mg.jit(lambda x, by: x * by)
    x = mg.ones(2)
    assert [scale(x, n).tolist()[0] for n in (2.0, 3.0, 2.0)] == [2.0, 3.0, 2.0]
    assert scale(x, by=5.0).tolist() == [5.0, 5.0]


def test_evaluation_mode_is_noticed():
    layer = nn.Dropout(0.9)
    drop = mg.jit(lambda x: layer(x))
    x = mg.ones(1000)
    assert (drop(x).detach().numpy() == 0).mean() > 0.5
    layer.eval()
    assert (drop(x).detach().numpy() == 1).all()
    assert "training" in drop.reasons[0]


def test_a_function_that_reads_a_value_runs_as_usual():
    @mg.jit
    def positive(x):
        return x if x.sum().item() > 0 else -x

    assert positive(mg.tensor([1.0])).item() == 1.0
    assert positive(mg.tensor([-2.0])).item() == 2.0
    assert "values in between" in positive.reasons[0]


def test_after_a_read_a_function_goes_on_as_usual():
    def run(x):
        y = x * 2 - 4
        with mg.no_grad():
            x.fill_(0.25)
        assert y.detach().abs().sum().item() == 4.0
        (y * y).sum().backward()
        return x.grad + 0

    for function in (run, mg.jit(run)):
        x = mg.tensor([3.0, 1.0], requires_grad=True)
        assert function(x).tolist() == [8.0, -8.0]  # by what x was


def test_what_is_differentiated_later_is_not_replayed():
    square = mg.jit(lambda x: (x * x).sum())
    for _ in range(2):
        x = mg.tensor([3.0], requires_grad=True)
        square(x).backward()
        assert x.grad.tolist() == [6.0]
    assert "differentiate later" in square.reasons[0]


def test_methods_can_be_jitted():
    class Counter:
        def __init__(self):
            self.total = mg.zeros(2)

        @mg.jit
        def add(self, x):
            self.total.add_(x)
            return self.total * 1

    counter = Counter()
    results = [counter.add(mg.ones(2)).tolist() for _ in range(3)]
    assert results == [[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]]
    assert counter.total.tolist() == [3.0, 3.0]


# --- gradients ------------------------------------------------------------------------------------


def test_gradients_accumulate_as_they_do_without():
    w = mg.tensor([1.0, 2.0], requires_grad=True)

    @mg.jit
    def add(x):
        loss = (w * x).sum()
        loss.backward()
        return loss.detach()

    found = []
    for _ in range(4):
        add(mg.ones(2))
        found.append(w.grad.tolist())
    assert found == [[n, n] for n in (1.0, 2.0, 3.0, 4.0)]
    assert add.reasons == ["traced again: a gradient is there now"]
    w.grad = None
    add(mg.ones(2))
    assert w.grad.tolist() == [1.0, 1.0]
    held = w.grad
    add(mg.ones(2))
    add(mg.ones(2))
    assert w.grad.tolist() == [3.0, 3.0]
    del held


def test_a_step_whose_gradients_come_from_outside():
    model, optimizer, _ = training()
    other, plain, _ = training()
    update = mg.jit(lambda: optimizer.step())
    calls = mg.stats().recorded
    for x, y in batches(5):
        for m, o, step in ((model, optimizer, update), (other, plain, plain.step)):
            o.zero_grad()
            F.cross_entropy(m(x), y).backward()
            step()
    assert update.reasons == []
    for p, q in zip(model.parameters(), other.parameters(), strict=True):
        np.testing.assert_allclose(p.detach().numpy(), q.detach().numpy(), rtol=1e-5, atol=1e-7)
    assert mg.stats().recorded > calls


def test_freezing_a_parameter_is_noticed():
    model, _, step = training()
    step = mg.jit(step)
    data = list(batches(4))
    step(*data[0])
    step(*data[1])
    model[0].weight.requires_grad_(False)
    model[0].weight.grad = None
    before = model[0].weight.detach().numpy().copy()
    step(*data[2])
    step(*data[3])
    np.testing.assert_array_equal(model[0].weight.detach().numpy(), before)
    assert "requires_grad" in step.reasons[-1]


# --- nesting --------------------------------------------------------------------------------------


def test_jit_inside_jit():
    traced = []

    @mg.jit
    def inner(x):
        traced.append("inner")
        return x * 2 + 1

    @mg.jit
    def outer(x):
        traced.append("outer")
        return inner(x).sin() + inner(x)

    for n in range(4):
        x = mg.ones(3) * n
        np.testing.assert_allclose(outer(x).numpy(), np.sin(2 * n + 1) + 2 * n + np.ones(3), 1e-6)
        assert inner(x).tolist() == [2.0 * n + 1] * 3
    assert traced == ["outer", "inner", "inner", "inner"]
    assert (outer.reasons, inner.reasons) == ([], [])


def test_a_jitted_loss_inside_a_jitted_step_trains():
    model, optimizer, _ = training()
    other, plain, step = training()

    @mg.jit
    def loss_of(x, y):
        return F.cross_entropy(model(x), y)

    @mg.jit
    def nested(x, y):
        loss = loss_of(x, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    for x, y in batches(6):
        assert nested(x, y).item() == pytest.approx(step(x, y).item(), rel=1e-5)
    assert nested.reasons == []


def test_what_an_inner_function_reads_is_guarded():
    scale = [2.0]
    inner = mg.jit(lambda x: x * scale[0])
    outer = mg.jit(lambda x: inner(x) + 1)
    x = mg.ones(2)
    assert outer(x).tolist() == outer(x).tolist() == [3.0, 3.0]
    scale[0] = 5.0
    assert outer(x).tolist() == [6.0, 6.0]


# --- guards ---------------------------------------------------------------------------------------

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


# --- arguments ------------------------------------------------------------------------------------


def test_arguments_that_are_one_tensor():
    run = mg.jit(lambda a, b: a * 10 + b)
    a, b = mg.tensor([1.0]), mg.tensor([2.0])
    for _ in range(2):
        found = [run(x, y).item() for x, y in ((a, a), (a, b), (b, a), (b, b))]
        assert found == [11.0, 12.0, 21.0, 22.0]


def test_writes_go_into_the_argument_of_each_call():
    @mg.jit
    def count(x):
        x.add_(1)
        return x * 2

    first, second = mg.zeros(2), mg.zeros(2)
    for n in range(1, 4):
        assert count(first).tolist() == [2.0 * n, 2.0 * n]
        assert (first.tolist(), second.tolist()) == ([n, n], [n - 1, n - 1])
        assert count(second).tolist() == [2.0 * n, 2.0 * n]
    assert count.reasons == []


def test_a_view_that_is_written_into_is_not_replayed():
    @mg.jit
    def double(x):
        x.mul_(2)
        return x.sum()

    base = mg.tensor(np.arange(6, dtype=np.float32))
    assert [double(base[:3]).item(), double(base[3:]).item()] == [6.0, 24.0]
    assert base.tolist() == [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]
    assert "an argument that is a view" in double.reasons[-1]


def test_what_was_there_before_is_returned_as_itself():
    total = mg.zeros(2)

    @mg.jit
    def add(x):
        total.add_(x)
        return total, x, x + 1

    for n in range(1, 4):
        x = mg.tensor([float(n), 1.0])
        found, same, more = add(x)
        assert found is total and same is x
        assert total.tolist() == [n * (n + 1) / 2, n] and more.tolist() == [n + 1.0, 2.0]


def test_gradients_of_arguments():
    @mg.jit
    def square(x):
        (x * x).sum().backward()
        return x.detach() + 1

    leaves = [mg.tensor([float(n)], requires_grad=True) for n in range(1, 5)]
    for leaf in leaves:
        square(leaf)
    assert [leaf.grad.item() for leaf in leaves] == [2.0, 4.0, 6.0, 8.0]
    assert square.reasons == []
    square(leaves[0])
    square(leaves[1])
    assert [leaf.grad.item() for leaf in leaves] == [4.0, 8.0, 6.0, 8.0]


def test_an_argument_that_the_function_knows_by_itself():
    total = mg.zeros(2)

    @mg.jit
    def add(x):
        total.add_(x)
        return total * 1

    x = mg.ones(2)
    assert [add(t).tolist()[0] for t in (x, x, total, x, total)] == [1.0, 2.0, 4.0, 5.0, 10.0]
    assert any("captured tensor" in reason for reason in add.reasons)


def test_autocast_is_a_mode():
    layer = nn.Linear(4, 4)
    run = mg.jit(lambda x: layer(x).detach())
    x = mg.ones(2, 4)
    assert run(x).dtype is mg.float32
    with amp.autocast("cpu", dtype=mg.bfloat16):
        assert run(x).dtype is mg.bfloat16
    assert run(x).dtype is mg.float32
    assert run.reasons == ["traced again: autocast is now monograph.bfloat16, was None"]


def test_data_that_is_replaced():
    layer = nn.Linear(3, 2, bias=False)
    other = mg.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    x = mg.ones(1, 3)
    call = mg.jit(lambda x: layer(x))
    with mg.no_grad():
        for _ in range(3):
            call(x)
        layer.weight.data = other
        for factor in (1.0, 2.0, 3.0):  # traced anew once, and replayed on what is there
            other.copy_(other / other[0, 0] * factor)
            assert call(x).tolist() == [[6.0 * factor, 15.0 * factor]]
    assert layer.weight.data_ptr() == other.data_ptr()


# --- arguments that lie on memory of others ---


@mg.jit
def twice(x):
    return x * 2


def test_arrays_of_numpy_are_read_at_each_call():
    first, second = np.arange(4, dtype=np.float32), np.ones(4, np.float32)
    x = mg.from_numpy(first)
    assert twice(x).tolist() == [0.0, 2.0, 4.0, 6.0]
    first[0] = 5.0
    assert twice(x).tolist() == [10.0, 2.0, 4.0, 6.0]
    assert twice(mg.from_numpy(second)).tolist() == [2.0] * 4


def test_a_large_array_of_numpy_does_not_hinder_a_replay():
    double = mg.jit(lambda x: x * 2)
    array = np.ones((1 << 20) + 1, np.float32)  # more than is copied at the call
    for n in range(3):
        array[:] = n
        assert double(mg.from_numpy(array))[-1].item() == 2.0 * n
    assert double.reasons == []


def test_an_array_that_shares_a_captured_tensor_is_read_at_each_call():
    array = np.ones(2, np.float32)
    weight = mg.from_numpy(array)
    scaled = mg.jit(lambda x: x * weight)
    assert scaled(mg.ones(2)).tolist() == [1.0, 1.0]
    array[1] = 4.0
    assert scaled(mg.ones(2)).tolist() == [1.0, 4.0]
    weight.add_(1)
    assert scaled(mg.ones(2)).tolist() == [2.0, 5.0]
    assert scaled.reasons == []


def test_an_array_on_a_parameter_sees_each_step():
    layer = mg.nn.Linear(2, 1)
    seen = layer.weight.detach().numpy()
    optimizer = mg.optim.SGD(layer.parameters(), 0.1)

    @mg.jit
    def step(x):
        optimizer.zero_grad()
        loss = layer(x).square().sum()
        loss.backward()
        optimizer.step()
        return loss

    for _ in range(3):
        before = seen.copy()
        step(mg.ones(3, 2))
        assert not np.array_equal(seen, before)
        np.testing.assert_array_equal(seen, layer.weight.tolist())
    assert step.reasons == []


def test_views_of_one_storage_are_told_apart():
    x = mg.arange(8.0).reshape(4, 2)
    double = mg.jit(lambda x: x * 2)
    assert double(x[::2]).tolist() == [[0.0, 2.0], [8.0, 10.0]]
    assert double(x[1::2]).tolist() == [[4.0, 6.0], [12.0, 14.0]]
    x += 1
    assert double(x[1::2]).tolist() == [[6.0, 8.0], [14.0, 16.0]]
    assert double((x * 3)[::2]).tolist() == [[6.0, 12.0], [30.0, 36.0]]
    assert double.reasons == []


def test_one_view_twice_is_not_two_views():
    x = mg.arange(8.0)
    less = mg.jit(lambda a, b: a - b)
    view = x[::2]
    assert less(view, view).tolist() == [0.0] * 4
    assert less(view, x[1::2]).tolist() == [-1.0] * 4
    assert less(x[1::2], view).tolist() == [1.0] * 4


def test_what_is_behind_a_view_is_noticed():
    x = mg.arange(8.0)
    behind = mg.jit(lambda v: v.as_strided((2,), (1,)) + v.sum())
    assert behind(x[::2]).tolist() == [12.0, 13.0]
    assert behind(x[1::2]).tolist() == [17.0, 18.0]


def test_gradients_of_views_of_a_parameter():
    weight = mg.nn.Parameter(mg.arange(8.0))

    @mg.jit
    def step(view):
        (view * view).sum().backward()

    for _ in range(2):
        for start in (0, 1):
            weight.grad = None
            step(weight[start::2])
            expected = [2.0 * n * (n % 2 == start) for n in range(8)]
            assert weight.grad.tolist() == expected


def test_an_array_of_numpy_as_an_argument_is_no_constant():
    double = mg.jit(lambda a: mg.tensor(a) * 2)
    array = np.ones(2, np.float32)
    assert double(array).tolist() == [2.0, 2.0]
    array[0] = 4.0
    assert double(array).tolist() == [8.0, 2.0]
    assert "give it a tensor" in double.reasons[0]


@pytest.mark.parametrize(
    "use",
    [
        lambda x, a: x + a,
        lambda x, a: x + mg.tensor(a),
        lambda x, a: x + mg.from_numpy(a),
        lambda x, a: x + mg.as_tensor(a),
        lambda x, a: x[a.astype(np.int64)],
    ],
)
def test_an_array_that_a_function_finds_is_no_constant(use):
    array = np.zeros(2, np.float32)
    function = mg.jit(lambda x: use(x, array))
    for _ in range(2):
        x = mg.tensor([10.0, 20.0])
        assert function(x).tolist() == use(x, array).tolist()
        array[0] = 1.0
    assert "NumPy array" in function.reasons[0]


def test_lists_are_constants():
    picked = mg.jit(lambda x: x[[1, 0]] + mg.tensor([1.0, 2.0]))
    assert [picked(mg.tensor([n, 5.0])).tolist() for n in (1.0, 2.0)] == [[6.0, 3.0], [6.0, 4.0]]
    assert picked.reasons == []


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


def test_named_tuples_stay_what_they_are():
    pair = namedtuple("pair", "left right")
    moved = mg.jit(lambda p: pair(p.left + 1, p.right * 2))
    for n in (1.0, 2.0):
        made = moved(pair(mg.tensor(n), mg.tensor(n)))
        assert isinstance(made, pair)
        assert (made.left.item(), made.right.item()) == (n + 1, n * 2)


def test_a_result_that_hides_tensors_is_made_anew():
    class Output:
        def __init__(self, value):
            self.value = value

    wrapped = mg.jit(lambda x: Output(x * 2))
    assert [wrapped(mg.tensor(n)).value.item() for n in (1.0, 2.0, 3.0)] == [2.0, 4.0, 6.0]
    assert "returns a Output" in wrapped.reasons[0]


def test_what_is_returned_besides_tensors():
    function = mg.jit(lambda x: {"a": x + 1, "n": x.shape[0], "t": (None, x.dtype, [x * 2, "s"])})
    for n in (1.0, 2.0):
        made = function(mg.tensor([n]))
        assert made["a"].tolist() == [n + 1]
        assert made["n"] == 1
        assert made["t"][:2] == (None, mg.float32)
        assert made["t"][2][0].tolist() == [2 * n] and made["t"][2][1] == "s"
    assert function.reasons == []


@pytest.mark.parametrize(
    "look",
    [
        lambda n: n.item(),
        lambda n: float(n),
        lambda n: n.tolist(),
        lambda n: float(n.numpy()),
        lambda n: len(repr(n)),
        lambda n: n[None][0].item(),
    ],
)
def test_a_value_that_python_sees_is_no_constant(look):
    scaled = mg.jit(lambda x, n: x * look(n))
    for n in (1.0, -1.0, 1.5):
        number = mg.tensor(n)
        assert scaled(mg.ones(2), number).tolist() == (mg.ones(2) * look(number)).tolist()
    assert "reads a value" in scaled.reasons[0]


def test_a_captured_value_that_python_sees_is_no_constant():
    number = mg.tensor(2.0)
    scaled = mg.jit(lambda x: x * number.item())
    assert scaled(mg.ones(1)).item() == 2.0
    number.fill_(5.0)
    assert scaled(mg.ones(1)).item() == 5.0


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
