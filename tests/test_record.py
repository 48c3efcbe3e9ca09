"""Recording: what is computed, when, and how often it is compiled."""

import _thread
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import monograph as mg
from monograph import pending
from monograph.recorder import current
from monograph.storage import Value, address_of, promises


@pytest.fixture(autouse=True, params=["reference", "cpu"])
def backend(request):
    with mg.config.override(backend=request.param):
        with mg.eager():  # what other tests left pending is done with
            pass
        mg.stats.reset()
        yield


def compilations(program):
    """How many programs are new during `program`, the tier that interprets included."""
    before = mg.stats()
    program()
    after = mg.stats()
    return after.compilations + after.interpreted - before.compilations - before.interpreted


# --- laziness -----------------------------------------------------------------------------------


def test_nothing_is_computed_before_a_read():
    x = mg.ones(3)
    y = (x * 2 + 1).sum()
    assert mg.stats().flushes == 0
    assert mg.stats().pending == 4
    assert y.item() == 9.0
    assert mg.stats().flushes == 1
    assert mg.stats().pending == 0


def test_shapes_and_dtypes_are_known_without_computing():
    y = (mg.ones(2, 3) @ mg.ones(3, 4)).sum(0) > 1
    assert y.shape == (4,) and y.dtype is mg.bool_ and y.numel() == 4 and len(y) == 4
    assert mg.stats().flushes == 0


def test_reading_twice_computes_once():
    y = mg.ones(3) * 2
    y.tolist()
    y.tolist()
    assert mg.stats().flushes == 1


def test_one_read_computes_all_that_is_alive():
    x = mg.ones(3)
    y, z = x * 2, x * 3
    y.tolist()
    assert z.tolist() == [3.0] * 3
    assert mg.stats().flushes == 1


def test_dead_results_are_not_computed(monkeypatch):
    seen = []
    original = pending.live
    monkeypatch.setattr(
        pending, "live", lambda recorder: seen.append(original(recorder)) or seen[-1]
    )
    x = mg.ones(3)
    y = x * 2
    for _ in range(5):
        y = y + 1
    kept = x - 1
    del x
    y.tolist()
    (wanted, _), *_ = seen
    assert len(wanted) == 2
    assert kept.tolist() == [0.0] * 3


def test_what_nobody_holds_is_dropped():
    mg.ones(3) * 2
    y = mg.tensor([1.0])
    y.tolist()
    assert mg.stats().launches == 0


def test_eager_computes_at_once():
    with mg.eager():
        y = mg.ones(3) * 2
        assert mg.stats().pending == 0
        assert mg.stats().flushes >= 2
    assert y.tolist() == [2.0] * 3
    mg.ones(3) * 2
    assert mg.stats().pending == 2


# --- the cache of programs ----------------------------------------------------------------------


def step(w, x, lr):
    loss = ((x @ w - 1.0) ** 2).mean()
    loss.backward()
    with mg.no_grad():
        w -= lr * w.grad
    w.grad = None
    return loss


def test_a_loop_body_compiles_a_bounded_number_of_times():
    w = mg.ones(4, 1, requires_grad=True)
    x = mg.tensor(np.linspace(0, 1, 12, dtype=np.float32).reshape(3, 4))

    def steps(count):
        for _ in range(count):
            step(w, x, 0.1).item()

    steps(4)
    assert compilations(lambda: steps(10)) == 0


def test_changing_numbers_do_not_recompile():
    x = mg.tensor([1.0, 2.0])

    def once(scale, shift):
        return (x * scale + shift).clamp(-shift, scale).tolist()

    once(1.0, 2.0)
    once(3.0, 2.5)
    assert compilations(lambda: [once(float(n), n / 7) for n in range(1, 20)]) == 0


def test_a_schedule_does_not_recompile():
    w = mg.ones(4, 1, requires_grad=True)
    x = mg.ones(3, 4)
    x.tolist()

    def steps(first, last):
        for n in range(first, last):
            step(w, x, 0.1 / (1 + n)).item()

    steps(0, 4)
    assert compilations(lambda: steps(4, 104)) == 0


def test_numbers_of_other_types_are_other_programs():
    x = mg.tensor([3, 4])
    assert (x * 2).dtype is mg.int64
    assert (x * 2.0).dtype is mg.float32
    assert (x * True).tolist() == [3, 4]


def test_a_zero_and_a_one_are_no_constants():
    x = mg.tensor([1.0, float("inf")])
    results = [(x * n).tolist() for n in (2.0, 1.0, 0.0, -1.0)]
    assert results[1] == [1.0, float("inf")]
    assert results[2][0] == 0.0 and np.isnan(results[2][1])
    assert results[3] == [-1.0, float("-inf")]


def test_results_kept_in_a_list_keep_their_values():
    w = mg.zeros(4, 1, requires_grad=True)
    x = mg.ones(3, 4)
    losses, weights = [], []
    for _ in range(6):
        losses.append(step(w, x, 0.05).detach())
        weights.append(w.detach().clone())
    values = [loss.item() for loss in losses]
    expected, weight = [], 0.0
    for _ in range(6):
        error = 4 * weight - 1
        expected.append(error**2)
        weight -= 0.05 * 2 * error
    np.testing.assert_allclose(values, expected, rtol=1e-5)
    assert len({v.tolist()[0][0] for v in weights}) == 6


def test_losses_read_late_are_those_of_their_step():
    w = mg.zeros(2, requires_grad=True)
    kept = []
    for n in range(5):
        y = (w + n).sum()
        kept.append(y.detach())
        y.backward()
        with mg.no_grad():
            w.sub_(w.grad)
        w.grad = None
        w.tolist()
    assert [k.item() for k in kept] == [0.0, 0.0, 0.0, 0.0, 0.0]


# --- threads ------------------------------------------------------------------------------------


def test_each_thread_records_for_itself():
    x = mg.ones(3) * 2
    seen = {}

    def work():
        seen["pending before"] = mg.stats().pending
        with mg.no_grad():
            y = mg.full((3,), 5.0) + 1
            seen["grad"] = mg.is_grad_enabled()
            seen["value"] = y.tolist()

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == {"pending before": 0, "grad": False, "value": [6.0] * 3}
    assert mg.is_grad_enabled()
    assert mg.stats().pending == 2
    assert x.tolist() == [2.0] * 3


def test_threads_compute_side_by_side():
    wrong = []

    def work(seed):
        generator = np.random.default_rng(seed)
        for _ in range(15):
            a = generator.normal(size=(3, 4))
            x = mg.tensor(a, requires_grad=True)
            y = (x.tanh() * seed).sum()
            y.backward()
            if not np.allclose(x.grad.detach().numpy(), seed * (1 - np.tanh(a) ** 2)):
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


# --- flushes and derivatives --------------------------------------------------------------------


def gradients(flush_after):
    """The gradients of a small program that is flushed after the steps listed."""
    x = mg.tensor([[0.5, -1.0], [2.0, 0.3]], dtype=mg.float64, requires_grad=True)
    w = mg.tensor([[1.0, 2.0], [-0.5, 0.7]], dtype=mg.float64, requires_grad=True)
    h = (x @ w).tanh()
    if 0 in flush_after:
        h.tolist()
    y = h * x + w.sum()
    if 1 in flush_after:
        y.tolist()
    y[0].mul_(2.0)
    if 2 in flush_after:
        y.tolist()
    loss = (y * y).sum()
    if 3 in flush_after:
        loss.item()
    loss.backward()
    return x.grad.detach().numpy(), w.grad.detach().numpy()


@pytest.mark.parametrize("flush_after", [{0}, {1}, {2}, {3}, {0, 3}, {0, 1, 2, 3}])
def test_a_flush_between_forward_and_backward_changes_nothing(flush_after):
    for made, expected in zip(gradients(flush_after), gradients(set()), strict=True):
        np.testing.assert_allclose(made, expected, rtol=1e-12)


def test_backward_twice_accumulates_into_the_same_object():
    x = mg.tensor([1.0, 2.0], requires_grad=True)
    (x * x).sum().backward()
    first = x.grad
    (x * 3).sum().backward()
    assert x.grad is first
    assert first.tolist() == [5.0, 7.0]
    (x * 3).sum().backward()
    assert first.tolist() == [8.0, 10.0]


def test_the_same_graph_twice():
    x = mg.tensor([1.0, 2.0], requires_grad=True)
    y = (x * x).sum()
    y.backward(retain_graph=True)
    x.grad.tolist()
    y.backward()
    assert x.grad.tolist() == [4.0, 8.0]


def test_an_old_value_that_is_no_longer_there_is_reported():
    x = mg.tensor([1.0, 2.0], requires_grad=True)
    scale = mg.tensor([3.0, 4.0])
    y = (x * scale).sum()
    y.item()
    scale.add_(1)
    scale.tolist()
    try:
        y.backward()
    except RuntimeError:
        return
    assert x.grad.tolist() == [3.0, 4.0]


def test_no_grad_cuts():
    x = mg.tensor([1.0, 2.0], requires_grad=True)
    with mg.no_grad():
        constant = x * x
    (constant * x).sum().backward()
    assert x.grad.tolist() == [1.0, 4.0]


def test_detach_cuts():
    x = mg.tensor([1.0, 2.0], requires_grad=True)
    y = x * x
    (y.detach() * x).sum().backward()
    assert x.grad.tolist() == [1.0, 4.0]


def test_equal_computations_are_different_values_to_a_derivative():
    x = mg.tensor([1.0, 2.0], requires_grad=True)
    y, z = x.exp(), x.exp()
    (part,) = mg.autograd.grad((y * z).sum(), y)
    np.testing.assert_allclose(part.detach().numpy(), np.exp([1.0, 2.0]), rtol=1e-6)


def test_equal_leaves_are_different_leaves():
    x = mg.tensor([1.0, 2.0])
    a, b = x.detach().requires_grad_(), x.detach().requires_grad_()
    (a * 2 + b * 5).sum().backward()
    assert a.grad.tolist() == [2.0, 2.0]
    assert b.grad.tolist() == [5.0, 5.0]


def test_equal_copies_are_different_leaves():
    x = mg.tensor([1.0, 2.0])
    a, b = x.clone().requires_grad_(), x.clone().requires_grad_()
    (a * 2 + b * 5).sum().backward()
    assert a.grad.tolist() == [2.0, 2.0]
    assert b.grad.tolist() == [5.0, 5.0]


def test_a_record_knows_the_line_of_the_user():
    x = mg.tensor([1.0, -1.0])
    layer = mg.nn.ReLU()
    kept = [x + 1, x.reshape(2, 1), mg.softmax(x, 0), layer(x)]
    lines = {r.line for r in current.recorder.records[-4:]}
    (line,) = lines
    name, _, number = line.rpartition(":")
    assert name == __file__
    text = Path(__file__).read_text(encoding="utf-8").splitlines()
    assert "kept = [x + 1" in text[int(number) - 1]
    del kept


@pytest.mark.parametrize("kind", ["SGD", "AdamW"])
def test_backward_and_a_step_know_the_line_of_the_user(kind, monkeypatch):
    p = mg.nn.Parameter(mg.tensor([1.0, -1.0]))
    optimizer = getattr(mg.optim, kind)([p], lr=0.1)
    monkeypatch.setattr(current.recorder, "hold", 1)
    (p * p).sum().backward(), optimizer.step()  # on one line
    lines = {r.line.rpartition(":")[2] for r in current.recorder.records[-3:]}
    (number,) = lines
    text = Path(__file__).read_text(encoding="utf-8").splitlines()
    assert "# on one line" in text[int(number) - 1]


def test_a_thread_may_run_nothing_but_an_operator(monkeypatch):
    problems, threads = [], _thread._count()
    monkeypatch.setattr(sys, "unraisablehook", problems.append)
    _thread.start_new_thread(mg.relu, (mg.ones(2),))  # no frame of a user's is below it
    while _thread._count() > threads:
        time.sleep(0.001)
    assert not problems


def test_promises_are_made_as_values_are():
    kind = mg.ones(2)._storage.value.meta
    (promise,) = promises((kind,), "record", 7, 3)
    value = Value(kind, "record", 0, 7, 3)
    fields = [name for name in Value.__slots__ if name != "__weakref__"]
    assert [getattr(promise, name) for name in fields] == [getattr(value, name) for name in fields]


@pytest.mark.parametrize(
    "array",
    [
        np.ones(3, np.float32), np.ones(()), np.zeros((0, 3)), np.arange(10)[3:],
        np.ones(2, mg.bfloat16.numpy), np.frombuffer(b"abcdefgh", np.int64), np.ones(4, complex),
    ],
    ids=["floats", "alone", "empty", "behind", "of 16 bits", "only to read", "complex"],
)  # fmt: skip
def test_the_address_of_any_array(array):
    assert address_of(array) == array.ctypes.data
