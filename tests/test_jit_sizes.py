"""`mg.jit` and sizes that vary: two traces serve any batch unless Python looks at the size."""

import numpy as np
import pytest

import monograph as mg
import monograph.nn.functional as F
from monograph import record
from monograph.programs import Programs
from tests.test_jit import training


@pytest.fixture(params=["reference", "cpu"], autouse=True)
def backend(request):
    with mg.config.override(backend=request.param):
        yield


def test_ten_batch_sizes_compile_three_times_at_most(backend, monkeypatch, tmp_path):
    monkeypatch.setattr(record, "programs", Programs())
    model, _, step = training()
    other, _, plain = training()
    step = mg.jit(step)
    rng = np.random.default_rng(0)
    sizes = (32, 48, 7, 16, 20, 64, 33, 50, 12, 9)
    with mg.config.override(disk_cache=False):
        before = mg.stats().compilations
        pairs = []
        for n in sizes:
            for _ in range(2):
                x = rng.standard_normal((n, 4)).astype("f")
                y = rng.integers(0, 2, n)
                pairs.append((x, y, step(mg.tensor(x), mg.tensor(y)).item()))
        if mg.config.backend == "cpu":
            assert mg.stats().compilations - before <= 3
        reasons = len(step.reasons)
        for n in sizes:
            step(mg.ones(n, 4), mg.zeros(n, dtype=mg.int64))
        assert len(step.reasons) == reasons < len(sizes)  # nothing was traced again
    for x, y, loss in pairs:
        assert plain(mg.tensor(x), mg.tensor(y)).item() == pytest.approx(loss, rel=1e-4)


def _at_sizes(function, sizes, make):
    """(how often Python ran, results of replay, results of plain calls) over calls of each size."""
    calls = 0

    def counted(*args):
        nonlocal calls
        calls += 1
        return function(*args)

    run = mg.jit(counted)
    pairs = []
    with mg.config.override(backend="cpu", disk_cache=False, tier0_limit=0):
        for n in sizes:
            given = make(n)
            pairs.append((run(*given), function(*given)))
    return calls, run, pairs


SIZES = (32, 48, 7, 16, 20, 64, 33, 50, 12, 9)


def test_sizes_that_python_never_sees_are_traced_twice(monkeypatch):
    monkeypatch.setattr(record, "programs", Programs())
    weight = mg.tensor(np.linspace(-1, 1, 20, dtype="f").reshape(4, 5), requires_grad=True)

    def step(x, y):
        scores = (x @ weight).relu().flatten(1)
        loss = F.cross_entropy(scores, y)
        (gradient,) = mg.autograd.grad(loss, [weight])
        return {"loss": loss.detach(), "gradient": gradient, "rows": scores.detach()[:, -1]}

    calls, run, pairs = _at_sizes(
        step, SIZES, lambda n: (mg.rand(n, 4), mg.tensor(np.arange(n) % 5))
    )
    assert calls == 2 and len(run.reasons) == 1
    for n, (mine, plain) in zip(SIZES, pairs, strict=True):
        assert mine["rows"].shape == (n,) and mine["gradient"].shape == (4, 5)
        for name, value in mine.items():
            np.testing.assert_allclose(value.numpy(), plain[name].numpy(), rtol=1e-5, atol=1e-6)


def test_arguments_written_and_differentiated_at_sizes_that_were_not_traced(monkeypatch):
    monkeypatch.setattr(record, "programs", Programs())

    def step(x, state):
        (x * x).sum().backward()
        state += 1
        return state * 2

    def make(n):
        return mg.arange(n, dtype=mg.float32).requires_grad_(), mg.zeros(n)

    run = mg.jit(step)
    with mg.config.override(backend="cpu", disk_cache=False, tier0_limit=0):
        for n in SIZES:
            x, state = make(n)
            made = run(x, state)
            np.testing.assert_array_equal(x.grad.numpy(), 2 * np.arange(n))
            np.testing.assert_array_equal(state.numpy(), np.ones(n))
            np.testing.assert_array_equal(made.numpy(), np.full(n, 2))
    assert len(run.reasons) == 1


@pytest.mark.parametrize(
    "ask",
    [
        lambda x: x.shape[0],
        lambda x: x.size(0),
        len,
        lambda x: x.numel() // 4,
        lambda x: x[-1:].storage_offset() // 4,
        lambda x: x.T.stride(1) * x.nbytes // 64,
    ],
)
def test_sizes_that_python_sees_are_traced_each(monkeypatch, ask):
    """Python may do anything with a size: here it is a number, and a branch."""
    monkeypatch.setattr(record, "programs", Programs())

    def scaled(x):
        n = ask(x)
        return x * n if n > 20 else x - n

    calls, run, pairs = _at_sizes(scaled, SIZES, lambda n: (mg.rand(n, 4),))
    assert calls == len(SIZES)
    assert "Python asks for the shape of" in run.reasons[-1]
    for mine, plain in pairs:
        np.testing.assert_array_equal(mine.numpy(), plain.numpy())


def test_numbers_made_of_sizes_are_not_taken_for_others(monkeypatch):
    """The factor of attention is made of a size by code of the package, which no trace notes."""
    monkeypatch.setattr(record, "programs", Programs())

    def attend(x):
        return F.scaled_dot_product_attention(x, x, x)

    _, run, pairs = _at_sizes(attend, SIZES, lambda n: (mg.rand(2, 3, n),))
    assert "numbers that it computes with depend on sizes" in run.reasons[-1]
    for mine, plain in pairs:
        np.testing.assert_allclose(mine.numpy(), plain.numpy(), rtol=1e-5)


# What is done depends on the size: an error, other pieces, another formula.
BY_SIZE = {
    "one of ten": lambda x: x[10] * 1,
    "first ten": lambda x: x[:10] * 1,
    "but the last": lambda x: x[3:-2] * 1,
    "pieces": lambda x: mg.cat([piece.sum(0) for piece in x.chunk(3)]),
    "distances": lambda x: mg.cdist(x, x + 1),
    "gates": lambda x: F.glu(x, 0),
}


@pytest.mark.parametrize("name", list(BY_SIZE))
def test_what_depends_on_sizes_is_as_in_plain_calls(monkeypatch, name):
    monkeypatch.setattr(record, "programs", Programs())
    function = BY_SIZE[name]
    run = mg.jit(function)

    def outcome(call, array):
        try:
            return call(mg.tensor(array)).numpy()
        except (IndexError, RuntimeError) as problem:
            return type(problem)

    with mg.config.override(backend="cpu", disk_cache=False, tier0_limit=0):
        for n in (20, 30, 24, 5, 12, 2, 33):
            array = np.random.default_rng(n).standard_normal((n, 4)).astype("f")
            mine, plain = outcome(run, array), outcome(function, array)
            if isinstance(plain, type):
                assert mine is plain
            else:
                np.testing.assert_allclose(mine, plain, rtol=1e-4, atol=1e-5)


def test_sizes_of_captured_tensors_may_be_seen(monkeypatch):
    monkeypatch.setattr(record, "programs", Programs())
    weight = mg.ones(4, 6)
    calls, _, pairs = _at_sizes(
        lambda x: x @ weight / weight.shape[1], SIZES, lambda n: (mg.rand(n, 4),)
    )
    assert calls == 2
    for mine, plain in pairs:
        np.testing.assert_allclose(mine.numpy(), plain.numpy(), rtol=1e-6)


def test_draws_of_sizes_that_vary_are_those_of_plain_calls(monkeypatch):
    monkeypatch.setattr(record, "programs", Programs())
    run = mg.jit(lambda x: F.dropout(x, 0.5))
    with mg.config.override(backend="cpu", disk_cache=False, tier0_limit=0):
        mg.manual_seed(1)
        mine = [run(mg.ones(n, 4)).numpy() for n in SIZES]
        mg.manual_seed(1)
        plain = [F.dropout(mg.ones(n, 4), 0.5).numpy() for n in SIZES]
    for a, b in zip(mine, plain, strict=True):
        np.testing.assert_array_equal(a, b)


def test_sizes_that_do_not_go_together_are_refused_as_ever(monkeypatch):
    monkeypatch.setattr(record, "programs", Programs())
    run = mg.jit(lambda a, b: a + b)
    with mg.config.override(backend="cpu", disk_cache=False, tier0_limit=0):
        for n in (5, 6, 7):
            assert run(mg.ones(n), mg.ones(n)).sum().item() == 2 * n
        with pytest.raises(RuntimeError):
            run(mg.ones(8), mg.ones(9))
        assert run(mg.ones(8), mg.ones(1)).sum().item() == 16


def test_an_axis_of_one_place_is_traced_by_itself(monkeypatch):
    monkeypatch.setattr(record, "programs", Programs())

    @mg.jit
    def function(x):
        return x.squeeze() * 2

    for n in (5, 8, 9, 1, 7, 1):
        made = function(mg.ones(n, 3))
        assert made.shape == ((n, 3) if n > 1 else (3,)) and made.sum().item() == 6 * n
