"""`mg.jit` replays what a call recorded, notices what changed, and says what it cannot do."""

import numpy as np
import pytest

import monograph as mg
import monograph.nn.functional as F
from monograph import nn


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
    assert double.reasons == []


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
