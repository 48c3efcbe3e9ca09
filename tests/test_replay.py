"""Replays read and write what is there at each call: arrays of NumPy's, views, values, results."""

from collections import namedtuple

import numpy as np
import pytest

import monograph as mg


@pytest.fixture(params=["reference", "cpu"], autouse=True)
def backend(request):
    with mg.config.override(backend=request.param):
        yield


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
        array[...] = n
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
    assert double(mg.ones(1)).tolist() == [2.0]
    assert double.reasons[1] == "traced again: a is now float32[1], was a NumPy array"


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


@pytest.mark.parametrize("transform", [mg.vmap, mg.jit, lambda f: mg.vmap(mg.vmap(f))])
def test_what_is_seen_inside_of_a_transform_is_no_constant(transform):
    number, array = mg.tensor(2.0), np.ones((), np.float32)
    by_value = mg.jit(lambda x: transform(lambda row: row * number.item())(x))
    by_array = mg.jit(lambda x: transform(lambda row: row * mg.tensor(array))(x))
    x = mg.ones(2, 3)
    for n in (2.0, 5.0):
        number.fill_(n)
        array[...] = n
        assert by_value(x).tolist() == by_array(x).tolist() == [[n] * 3] * 2


def test_what_is_replayed_is_compiled_at_once():
    """A small program is interpreted when it is met first: a replay would keep it so for good."""
    x = mg.arange(4.0)
    mg.synchronize()
    with mg.config.override(backend="cpu", disk_cache=False, tier0_limit=64):
        double = mg.jit(lambda x: (x * 2.5 + 7.25).sum())
        mg.stats.reset()
        assert [double(x).item() for _ in range(3)] == [44.0] * 3
        assert mg.stats().interpreted == 0
