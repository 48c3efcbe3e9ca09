"""`mg.jit` replays what a call recorded, notices what changed, and says what it cannot do."""

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
    assert any("requires_grad" in reason for reason in step.reasons)


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
