"""Recordings that run call by call give what the whole graph gives."""

import numpy as np
import pytest

import monograph as mg
import monograph.nn.functional as F
from monograph import backends, record
from monograph.backends import calls, piecewise
from monograph.backends.rows import FEWEST, Together
from monograph.compiler.pipeline import compile_recording
from monograph.programs import Programs
from monograph.runtime import status
from monograph.storage import concrete
from monograph.tracing import kind, trace


def results(executable, arrays, numbers):
    leaves = [concrete(a.copy(), kind(*a.shape, dtype=mg.from_numpy(a).dtype)) for a in arrays]
    return [
        np.asarray(o.array() if hasattr(o, "array") else o.data)
        for o in executable.run(leaves, numbers)
    ]


def agree(function, *arrays):
    """Run a function's recording in all ways: by NumPy, calls compiled one by one, as a whole."""
    kinds = [kind(*a.shape, dtype=mg.from_numpy(a).dtype) for a in arrays]
    recording, numbers = trace(function, *kinds)
    made = piecewise.interpreted(recording)
    assert made is not None
    wanted = results(compile_recording(recording, backends.load("reference")), arrays, numbers)
    assert wanted
    for way in (made, compiled(recording)):
        for a, b in zip(results(way, arrays, numbers), wanted, strict=True):
            assert (a.shape, a.dtype) == (b.shape, b.dtype)
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    return made


def compiled(recording):
    """The recording with every call compiled that can be."""
    with pytest.MonkeyPatch.context() as patch:
        for known in ("_calls", "_pulls"):  # what is compiled here stays so
            patch.setattr(calls, known, {})
        made = piecewise.interpreted(recording, CPU)
    for each, *_ in made._steps:
        if each.recording is not None:
            each.compile(CPU)
    return made


def CPU(recording):  # noqa: N802
    return compile_recording(recording, backends.load("cpu"))


draws = np.random.default_rng(0)
X = draws.standard_normal((5, 4)).astype(np.float32)
W = draws.standard_normal((4, 3)).astype(np.float32)


def test_a_training_step():
    def step(x, w, labels, state):  # leaves in the order of their use
        w.requires_grad_()
        loss = F.cross_entropy(F.layer_norm(x @ w, (3,)), labels)
        (gradient,) = mg.autograd.grad(loss, w)
        state.mul_(0.9).add_(gradient)
        return loss, gradient

    agree(step, X, W, np.array([0, 2, 1, 1, 0]), np.zeros_like(W))


def test_a_value_that_is_used_twice_and_one_that_is_cut_off():
    def step(x, w):
        w.requires_grad_()
        hidden = mg.tanh(x @ w)
        loss = (hidden * hidden.detach() + hidden.exp()).sum() + w.sum()
        return mg.autograd.grad(loss, w)

    agree(step, X, W)


def test_a_convolutional_network():
    def step(x, kernel, scale, w):
        for parameter in (kernel, scale, w):
            parameter.requires_grad_()
        y = F.conv2d(x, kernel, padding=1)
        y = F.batch_norm(y, None, None, scale, None, training=True)
        y = F.max_pool2d(F.relu(y), 2)
        loss = F.softplus(y.flatten(1) @ w).mean()
        return loss, *mg.autograd.grad(loss, (kernel, scale, w))

    shapes = [(2, 3, 8, 8), (4, 3, 3, 3), (4,), (64, 2)]
    agree(step, *[draws.standard_normal(shape).astype(np.float32) for shape in shapes])


def test_a_program_is_given_all_that_it_reads():
    def step(x):
        x.requires_grad_()
        return mg.autograd.grad(x.amax(1).sum(), x)  # NumPy does without the result here

    agree(step, X[:, :1].copy())


def test_long_sums_keep_their_digits():
    def step(x):
        return x.sum(0)

    made = agree(step, draws.random((1 << 12, 3)).astype(np.float32))
    x = np.full((1 << 18, 1), 0.1, np.float32)
    recording, numbers = trace(step, kind(*x.shape))
    (total,) = results(piecewise.interpreted(recording), [x], numbers)
    assert made is not None and abs(total[0] / (0.1 * len(x)) - 1) < 1e-6


def test_ends_inside_the_graph():
    def step(x, w):
        w.requires_grad_()
        hidden = x @ w
        return mg.autograd.grad((hidden.relu() * 3).sum(), (hidden, w))

    agree(step, X, W)


def test_joined_pieces_of_many_turns():
    def step(x, w):
        w.requires_grad_()
        parts = [-(row * n) for n, row in enumerate((x @ w).unbind(0))]
        loss = mg.stack(parts).sum() + mg.cat(parts).max()
        return loss, *mg.autograd.grad(loss, w)

    agree(step, X, W)


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_joints_of_all_kinds(dim):
    def step(x, y):
        y.requires_grad_()
        parts = [x, y, y * 2, x[:, :0] if dim else x[:0], y]  # twice the same, without gradient
        whole = mg.cat(parts, dim)
        loss = (whole * mg.arange(whole.numel()).view(whole.shape)).sum()
        return whole, *mg.autograd.grad(loss, y)

    agree(step, X, X[::-1].copy())


def test_what_is_cast_or_left_out_is_no_plain_joint():
    def step(x, y):
        return mg.cat([x, y.int()]), mg.cat([x, x.new_empty(0)])

    agree(step, X, X * 3)


def test_dear_calls_are_made_once_for_their_kind():
    def step(n):
        def run(x, w):
            for _ in range(n):
                x = mg.tanh(x @ w @ w.T)
            return x

        return run

    agree(step(2), X, W)
    before = len(calls._calls)
    agree(step(7), X, W)
    assert len(calls._calls) == before


def test_second_derivatives_are_for_the_whole_graph():
    def step(x):
        x.requires_grad_()
        (first,) = mg.autograd.grad((x**3).sum(), x, create_graph=True)
        return mg.autograd.grad(first.sum(), x)

    recording, _ = trace(step, kind(4))
    assert piecewise.interpreted(recording) is None


def test_wrong_data_is_named_and_nothing_is_written():
    with mg.config.override(backend="cpu", tier0_limit=32, disk_cache=False):
        table, total = mg.tensor([1.0, 2.0]), mg.zeros(1)
        mg.synchronize()
        total.add_(table[mg.tensor([1, 4])].sum())
        with pytest.raises(IndexError, match="index 4 is out of range.*test_piecewise.py"):
            total.item()
        assert total.item() == 0.0
        assert not status.current().held


def test_what_flushes_kept_is_not_computed_again():
    with mg.config.override(backend="cpu", tier0_limit=32, disk_cache=False):
        w = mg.tensor(W, requires_grad=True)
        hidden = mg.tensor(X) @ w
        assert hidden.sum().item() == pytest.approx(float((X @ W).sum()), rel=1e-4)
        (hidden * hidden).sum().backward()
        np.testing.assert_allclose(w.grad.numpy(), 2 * X.T @ (X @ W), rtol=1e-4)


def test_calls_that_are_dear_become_programs_of_their_own(monkeypatch):
    """Where NumPy takes long, and nothing about the data is to be checked."""

    def step(x, w, places):
        return mg.tanh(x @ w), x[places]

    arrays = X, W, np.array([0, 2])
    recording, numbers = trace(
        step, *[kind(*a.shape, dtype=mg.from_numpy(a).dtype) for a in arrays]
    )
    for known in ("_calls", "_pulls"):
        monkeypatch.setattr(calls, known, {})
    made = piecewise.interpreted(recording, CPU)
    monkeypatch.setattr(piecewise, "LAUNCH", 0.0)
    first = results(made, arrays, numbers)
    assert not any(kind.compiled for kind, *_ in made._steps)
    monkeypatch.setattr(piecewise, "DEAR", 0.0)
    again = results(made, arrays, numbers)
    assert [kind.compiled for kind, *_ in made._steps] == [True, True, False]
    for a, b in zip(first, again, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5)


def test_what_nobody_reads_any_more_is_let_go():
    def step(x, w):
        for _ in range(5):
            x = mg.tanh(x @ w @ w.T)
        return x

    recording, _ = trace(step, kind(5, 4), kind(4, 3))
    made = piecewise.interpreted(recording)
    freed = [cell for *_, free in made._steps for cell in free]
    assert len(freed) == len(set(freed)) and not set(freed) & set(made._wanted)
    assert set(freed) | set(made._wanted) >= {
        cell for _, _, filled, _ in made._steps for cell in filled
    }


@pytest.mark.parametrize("compiles", [False, True])
def test_data_is_checked_where_only_a_derivative_is_wanted(monkeypatch, compiles):
    monkeypatch.setattr(piecewise, "LAUNCH", 0.0)
    monkeypatch.setattr(piecewise, "DEAR", -1.0 if compiles else float("inf"))
    monkeypatch.setattr(record, "programs", Programs())
    with mg.config.override(backend="cpu", tier0_limit=32, disk_cache=False):
        x = mg.ones(4, 3, requires_grad=True)
        (gradient,) = mg.autograd.grad(x[mg.tensor([0, 7])].sum(), x)
        with pytest.raises(IndexError, match="index 7 is out of range.*test_piecewise.py"):
            gradient.tolist()


def losses(m, values, returns, rate):
    """What an episode ends with: a loss for each turn, stacked and summed."""
    made, half = [], rate * 0.5  # leaves in the order of their use
    for value, wanted in zip(values, returns, strict=True):
        gap = wanted - value
        made.append(-(value * gap) - half + F.smooth_l1_loss(value, wanted))
    return m.stack(made).sum()


@pytest.mark.parametrize("turns", [3, 4, 16])
@pytest.mark.parametrize("shape", [(), (1,), (3,)])
def test_turns_that_do_the_same_are_done_at_once(turns, shape):
    def step(rate, *given):
        values, returns = given[:turns], given[turns:]
        ends = [values[0], values[-1], rate]
        for each in ends:
            each.requires_grad_()
        loss = losses(mg, values, returns, rate)
        return [loss, *mg.autograd.grad(loss, ends)]

    arrays = [draws.standard_normal((1, *shape)).astype(np.float32) for _ in range(2 * turns)]
    made = agree(step, np.array(0.3, np.float32), *[a.reshape(shape) for a in arrays])
    few = sum([isinstance(each, Together) for each, *_ in made._steps])
    assert bool(few) == (turns >= FEWEST)
    if turns == 16:
        assert len(made._steps) < 80  # of 250


def test_turns_that_follow_one_another_stay_as_they_are():
    def step(*given):
        total, made = given[0], []
        for each in given[1:]:
            total = total * 0.5 + each
            made.append(total)
        return [mg.stack(made)]

    made = agree(step, *draws.standard_normal((9, 2)).astype(np.float32))
    products = [each for each, *_ in made._steps if isinstance(each, Together)]
    assert not products


def test_turns_that_read_one_value_or_numbers_of_their_own():
    def step(x, *given):
        made = [each * x + float(n) for n, each in enumerate(given)]
        return [
            *made,
            mg.stack([each < 1.0 for each in made]),
            mg.stack([x * 2.0 - n for n in made]),
        ]

    agree(step, *draws.standard_normal((7, 2)).astype(np.float32))


def test_checks_stay_those_of_their_calls():
    def step(x, *places):
        return [mg.stack([x[place] for place in places]).sum()]

    agree(step, X[0], *[np.array(n % 4) for n in range(6)])
