"""Rules about recording and flushing that users rely on without knowing them: one test for each."""

import copy
import os
import pickle
import subprocess
import sys
import threading

import numpy as np
import pytest

import monograph as mg
import monograph.nn.functional as F
from monograph import nn, record, retention, statistics
from monograph.config import config
from monograph.data import DataLoader, TensorDataset
from monograph.programs import Programs
from monograph.recorder import current
from monograph.runtime import openmp


def network(seed=0):
    mg.manual_seed(seed)
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))


def batches(count, seed=0):
    generator = np.random.default_rng(seed)
    x = generator.normal(size=(count, 5, 4)).astype(np.float32)
    y = generator.integers(0, 3, size=(count, 5))
    return [(mg.tensor(a), mg.tensor(b)) for a, b in zip(x, y, strict=True)]


def train(model, steps, schedule=lambda n: 0.1, keep=None, momentum=0.9):
    optimizer = mg.optim.SGD(model.parameters(), lr=0.1, momentum=momentum)
    for n, (x, y) in enumerate(batches(steps)):
        optimizer.param_groups[0]["lr"] = schedule(n)
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        if keep is not None:
            keep.append(loss)
    return optimizer


@pytest.fixture
def fresh_programs(monkeypatch, tmp_path):
    """No program is known yet, neither in memory nor on disk."""
    monkeypatch.setattr(record, "programs", Programs())
    mg.synchronize()
    with mg.config.override(cache_dir=tmp_path):
        mg.stats.reset()
        yield


# --- compilations ------------------------------------------------------------------------------


def test_a_schedule_over_a_hundred_steps_compiles_three_times_at_most(fresh_programs):
    train(network(), 100, schedule=lambda n: 0.1 / (n + 1))
    mg.synchronize()
    assert 1 <= mg.stats().compilations <= 3


def test_what_happens_to_be_alive_does_not_recompile(fresh_programs):
    x = mg.tensor(np.arange(6.0, dtype=np.float32))
    kept = []

    def step(n):
        a = x * 2.0
        b = a.tanh()
        c = b.sum()
        if n == 0 or n % 3 == 1:  # a metric that somebody looks at now and then
            kept.append((a, b))
        return c

    for n in range(12):
        made = step(n)
        if n % 3 != 1 and n:
            del kept[1:]
        made.item()
    assert mg.stats().compilations <= 2
    np.testing.assert_allclose(kept[0][0].numpy(), np.arange(6) * 2.0)


# --- values that are kept ------------------------------------------------------------------------


def test_kept_losses_are_those_of_their_steps():
    kept = []
    train(network(), 20, keep=kept)
    with mg.eager():
        at_once = []
        train(network(), 20, keep=at_once)
    np.testing.assert_allclose(
        [loss.item() for loss in kept], [loss.item() for loss in at_once], rtol=1e-5
    )
    assert len({loss.item() for loss in kept}) == 20


def test_numpy_arrays_alias_both_ways_between_recorded_writes():
    x = mg.zeros(3)
    array = x.numpy()
    x.add_(1.0)
    assert array.tolist() == [1.0, 1.0, 1.0]
    y = x * 2.0  # of what is there now
    array[0] = 5.0
    assert x.tolist() == [5.0, 1.0, 1.0]
    assert y.tolist() == [2.0, 2.0, 2.0]
    source = np.ones(2, np.float32)
    shared = mg.from_numpy(source)
    doubled = shared * 2.0
    source[:] = 9.0
    assert doubled.tolist() == [2.0, 2.0]
    shared.mul_(2.0)
    assert source.tolist() == [18.0, 18.0]


def test_a_gradient_is_one_object_until_it_is_none():
    w = mg.ones(2, requires_grad=True)
    unused = mg.ones(2, requires_grad=True)
    assert w.grad is None
    (w * 2.0).sum().backward()
    first = w.grad
    (w * 3.0).sum().backward()
    assert w.grad is first and first.tolist() == [5.0, 5.0]
    assert unused.grad is None
    optimizer = mg.optim.SGD([w, unused], lr=0.1)
    optimizer.step()
    assert unused.grad is None and unused.tolist() == [1.0, 1.0]
    optimizer.zero_grad(set_to_none=False)
    assert w.grad is first and first.tolist() == [0.0, 0.0]
    optimizer.zero_grad()
    assert w.grad is None


# --- the user's own code -------------------------------------------------------------------------


@pytest.mark.parametrize("early", [False, True])
def test_the_users_code_runs_exactly_once_and_inside_the_call(early):
    ran = []

    class Double(mg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ran.append("forward")
            return x * 2.0

        @staticmethod
        def backward(ctx, g):
            ran.append("backward")
            return g * 2.0

    for _ in range(3):  # recorded, perhaps interpreted, compiled, found again
        ran.clear()
        x = mg.ones(3, requires_grad=True)
        y = Double.apply(x)
        assert ran == ["forward"]
        y.register_hook(lambda g: ran.append("hook"))
        if early:
            y.tolist()
        y.sum().backward()
        assert ran == ["forward", "hook", "backward"]
        assert x.grad.tolist() == [2.0, 2.0, 2.0]
        mg.synchronize()
        assert ran == ["forward", "hook", "backward"]


# --- when work is done ---------------------------------------------------------------------------


def reasons(program):
    """Why the program was flushed, the first reason first."""
    mg.synchronize()
    statistics.recent.clear()
    kept = program()
    found = [reason for reason, _ in statistics.recent]
    del kept
    mg.synchronize()
    return found


def test_a_loop_that_reads_nothing_keeps_pending_work_bounded(monkeypatch):
    monkeypatch.setattr(record, "PENDING_LIMIT", 50)
    mg.synchronize()
    mg.stats.reset()
    x = mg.zeros(2)
    for _ in range(500):
        x = x + 1.0
    assert mg.stats().pending <= 50
    assert x.tolist() == [500.0, 500.0]
    assert mg.stats().peak_pending_nodes <= 51


@pytest.mark.parametrize("views", [False, True])
def test_a_loop_that_brings_data_keeps_little_of_it(monkeypatch, fresh_programs, views):
    """Wherever it is cut, pieces have the same program."""
    monkeypatch.setattr(retention, "RETAINED", 10 * 4000)
    total = mg.zeros(())
    most = 0
    for n in range(400):
        x = mg.tensor(np.full((10, 100), n, np.float32))
        part = (x[1:-1] * 2.0).sum() if views else (x * 2.0).sum()
        total = total + part
        most = max(most, sum(leaf.meta.size for leaf in current.recorder.leaves))
    assert most <= 20 * 1000
    assert mg.stats().flushes >= 10 and mg.stats().peak_pending_nodes <= 80
    assert mg.stats().compilations <= 3
    assert total.item() == (8 if views else 10) * 100 * 2 * sum(range(400))
    assert "memory of pending work" in [reason for reason, _ in statistics.recent]


def test_one_large_array_does_not_cut_what_uses_it(monkeypatch):
    monkeypatch.setattr(retention, "RETAINED", 4000)
    mg.synchronize()
    mg.stats.reset()
    h = mg.tensor(np.ones(4000, np.float32))
    kept = [mg.tensor(np.full(4000, n, np.float32)) for n in range(20)]
    for n in range(200):
        h = h * 0.5 + kept[n % 20]
    assert mg.stats().flushes == 0 and mg.stats().pending == 400


def test_too_much_data_is_less_urgent_than_memory_that_numpy_shares(monkeypatch):
    monkeypatch.setattr(retention, "RETAINED", 1000)
    mg.synchronize()
    kept = [mg.tensor(np.ones(500, np.float32)) for _ in range(3)]
    array = np.ones(3 << 20, np.float32)  # too large to be copied at the call
    y = mg.from_numpy(array) * 2
    array[0] = 100.0
    assert y[0].item() == 2.0 and len(kept) == 3


def test_an_evaluation_loop_keeps_pending_work_bounded():
    model = network().eval()
    loader = DataLoader(TensorDataset(np.zeros((64, 4), np.float32)), batch_size=2)
    mg.synchronize()
    mg.stats.reset()
    outputs = []
    with mg.no_grad():
        for (x,) in loader:
            outputs.append(model(x))
    assert mg.stats().pending == 0
    assert mg.stats().peak_pending_nodes <= 5
    assert mg.stats().flushes == 32
    assert np.stack([y.numpy() for y in outputs]).shape == (32, 2, 3)


def test_a_loop_over_batches_without_modules_keeps_pending_work_bounded():
    loader = DataLoader(TensorDataset(np.ones((64, 4), np.float32)), batch_size=2)
    mg.synchronize()
    mg.stats.reset()
    total = mg.zeros(())
    for (x,) in loader:
        total = total + (x * 2.0).sum()
    assert mg.stats().peak_pending_nodes <= 6
    assert total.item() == 64 * 4 * 2


def test_training_with_a_loader_compiles_as_often_as_without(fresh_programs):
    def run(source):
        model = network()
        optimizer = mg.optim.SGD(model.parameters(), lr=0.1)
        mg.synchronize()
        mg.stats.reset()
        for x, y in source:
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
        mg.synchronize()
        return mg.stats()

    x, y = np.ones((40, 4), np.float32), np.zeros(40, np.int64)
    first = run([(mg.tensor(x[:5]), mg.tensor(y[:5])) for _ in range(8)])
    with_loader = run(DataLoader(TensorDataset(x, y), batch_size=5))
    assert first.compilations >= 1 and with_loader.compilations == 0  # the same programs
    assert with_loader.flushes == first.flushes


def test_reasons_of_flushes():
    model = network()
    x = mg.ones(5, 4)
    optimizer = mg.optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(TensorDataset(np.ones((4, 4), np.float32)), batch_size=2)

    def step():
        model(x).sum().backward()
        optimizer.step()

    def evaluate():
        with mg.no_grad():
            return model(x)

    def accumulate():
        total = mg.zeros(())
        for (batch,) in loader:
            total = total + batch.sum()
        return total

    def at_once():
        with mg.eager():
            return x + 1.0

    assert reasons(step) == ["optimizer step"]
    assert reasons(evaluate) == ["module"]
    assert reasons(accumulate) == ["next batch"] * 3
    assert reasons(lambda: (x + 1.0).tolist()) == ["read"]
    assert reasons(lambda: mg.eval(x + 1.0)) == ["eval"]
    assert reasons(at_once)[0] == "eager"
    assert reasons(lambda: model(x)) == []  # a backward pass may follow


def test_a_module_within_a_module_does_not_flush():
    class Frozen(nn.Module):
        def __init__(self):
            super().__init__()
            self.body, self.head = nn.Linear(4, 4), nn.Linear(4, 2)

        def forward(self, x):
            with mg.no_grad():
                x = self.body(x)
            return self.head(x)

    model = Frozen()
    assert reasons(lambda: model(mg.ones(2, 4))) == []
    with mg.no_grad():
        assert reasons(lambda: model(mg.ones(2, 4))) == ["module"]


def test_a_network_of_targets_is_a_part_of_the_step():
    policy, target = network(), network()
    optimizer = mg.optim.SGD(policy.parameters(), lr=0.1)
    x = mg.ones(2, 4)

    def step():
        scores = policy(x)
        with mg.no_grad():
            wanted = target(x)
        loss = ((scores - wanted) ** 2).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    step()
    assert reasons(step) == ["optimizer step"]


def test_held_recordings_do_not_flush_at_modules_and_batches():
    model = network()
    loader = DataLoader(TensorDataset(np.ones((4, 4), np.float32)), batch_size=2)

    @mg.jit
    def scores(x):
        with mg.no_grad():
            return model(x) + 1.0

    @mg.jit
    def totals(x):
        for (batch,) in loader:
            x = x + batch.sum()
        return x

    x = mg.ones(3, 4)
    assert "module" not in reasons(lambda: scores(x))
    assert "next batch" not in reasons(lambda: totals(x))
    np.testing.assert_allclose(scores(x).numpy(), (model(x) + 1.0).detach().numpy(), rtol=1e-6)
    with mg.no_grad():
        assert "module" not in reasons(lambda: mg.vmap(model)(mg.ones(2, 4)))


def test_a_module_that_raises_leaves_no_trace():
    model = network()
    with mg.no_grad():
        with pytest.raises(RuntimeError):
            model(mg.ones(2, 7))
        assert reasons(lambda: model(mg.ones(2, 4))) == ["module"]


def test_eval_starts_and_synchronize_finishes():
    x = mg.ones(3) + 1.0
    mg.eval(x)
    assert mg.stats().pending == 0
    assert x._storage.value.ready
    y = x * 2.0
    assert mg.stats().pending == 1
    mg.synchronize()
    assert mg.stats().pending == 0 and y.tolist() == [4.0, 4.0, 4.0]


# --- random numbers ------------------------------------------------------------------------------


def test_draws_do_not_depend_on_flushing():
    def draw(read=False):
        a = mg.rand(5)
        if read:
            a.tolist()
        b = F.dropout(mg.ones(64), 0.5)
        return a, b, mg.randn(3) + a.sum()

    def twice(function):
        mg.manual_seed(7)
        return [x.numpy() for x in (*function(), *function())]

    lazily = twice(draw)
    assert not np.array_equal(lazily[0], lazily[3])
    with mg.eager():
        eagerly = twice(draw)
    jitted = mg.jit(draw)
    for found in (eagerly, twice(lambda: draw(read=True)), twice(jitted), twice(jitted)):
        for a, b in zip(lazily, found, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-6)


@pytest.mark.compiled
def test_bits_do_not_depend_on_the_number_of_threads():
    """Sums of rows, of columns and of everything, and their derivatives, by generated kernels."""

    def run(threads):
        openmp.set_threads(threads)
        x = mg.tensor(data, requires_grad=True)
        y = F.layer_norm(x.softmax(1) * 3, (x.shape[1],)).tanh()
        loss = (y * y).sum() + x.sum(0).square().mean()
        loss.backward()
        return [t.detach().numpy() for t in (loss, y, x.grad, x.detach().mean(0))]

    data = np.random.default_rng(0).standard_normal((600, 700), np.float32)
    for _ in range(3):  # compiling sets the number of threads anew
        alone = run(1)
    try:
        for threads in (2, 3):
            regions = openmp.regions()
            for a, b in zip(alone, run(threads), strict=True):
                np.testing.assert_array_equal(a, b)
            assert openmp.regions() > regions or openmp.library() is None
    finally:
        openmp.set_threads(mg.config.threads)


# --- copies --------------------------------------------------------------------------------------


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_copies_of_tensors_modules_and_optimisers_go_on_alike(duplicate):
    x = mg.ones(3) * 2.0  # pending
    assert duplicate(x).tolist() == [2.0, 2.0, 2.0]
    model = network()
    optimizer = train(model, 3)
    other, other_optimizer = duplicate((model, optimizer))
    assert other_optimizer.param_groups[0]["params"][0] is next(iter(other.parameters()))
    for a, b in ((model, optimizer), (other, other_optimizer)):
        for features, labels in batches(3, seed=1):
            b.zero_grad()
            F.cross_entropy(a(features), labels).backward()
            b.step()
    for p, q in zip(model.parameters(), other.parameters(), strict=True):
        assert p is not q
        np.testing.assert_allclose(p.detach().numpy(), q.detach().numpy(), rtol=1e-6)


# --- threads and processes -----------------------------------------------------------------------


def test_threads_train_models_of_their_own():
    alone = []
    models = [network(seed) for seed in range(3)]
    for model in copy.deepcopy(models):
        train(model, 10)
        alone.append([p.detach().numpy() for p in model.parameters()])
    threads = [threading.Thread(target=train, args=(model, 10)) for model in models]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for model, expected in zip(models, alone, strict=True):
        for p, q in zip(model.parameters(), expected, strict=True):
            np.testing.assert_allclose(p.detach().numpy(), q, rtol=1e-5, atol=1e-6)


def test_gradients_are_off_in_one_thread_only():
    seen = []
    with mg.no_grad():
        thread = threading.Thread(target=lambda: seen.append(mg.is_grad_enabled()))
        thread.start()
        thread.join()
        assert seen == [True] and not mg.is_grad_enabled()


FORKED = """
import os, signal
import numpy as np
import monograph as mg
x = mg.tensor(np.arange(300000, dtype=np.float32))
expected = float((x * 2.0).sum())  # in parallel, on the executor
pending = x + 1.0
child = os.fork()
if child == 0:
    signal.alarm(30)  # a child that hangs is killed
    y = mg.tensor([1.0, 2.0]) + 1.0
    fine = y.tolist() == [2.0, 3.0] and float((x * 2.0).sum()) == expected
    fine = fine and pending[:2].tolist() == [1.0, 2.0]
    os._exit(0 if fine else 1)
_, status = os.waitpid(child, 0)
assert status == 0, status
assert pending[:2].tolist() == [1.0, 2.0] and float((x * 2.0).sum()) == expected
"""


@pytest.mark.parametrize("threads", ["1", "2"])
def test_a_forked_child_computes_after_a_parallel_region(threads):
    environment = {**os.environ, "MONOGRAPH_THREADS": threads}
    subprocess.run([sys.executable, "-c", FORKED], check=True, timeout=120, env=environment)


# --- loops settle --------------------------------------------------------------------------------


def habits(name, model, x, y, averages, kept):
    """What a user does beside training: before the backward pass, and after the step."""
    loss = F.cross_entropy(out := model(x), y)
    if name == "loss read before backward":
        loss.item()
    if name == "accuracy read before backward":
        out.argmax(1).tolist()
    yield loss
    if name == "losses kept":
        kept.append(loss)
    if name == "losses added up":
        kept[:] = [loss + kept[0] if kept else loss]
    if name == "averages":
        with mg.no_grad():
            for average, p in zip(averages, model.parameters(), strict=True):
                average.mul_(0.9).add_(p, alpha=0.1)
    if name == "evaluation":
        model.eval()
        with mg.no_grad():
            F.cross_entropy(model(x), y).item()
        model.train()
    yield None


@pytest.mark.parametrize(
    "name",
    ["loss read before backward", "accuracy read before backward", "losses kept",
     "losses added up", "averages", "evaluation"],
)  # fmt: skip
def test_no_new_program_after_the_third_step(name, monkeypatch):
    monkeypatch.setattr(config, "tier0_limit", 0)
    monkeypatch.setattr(record, "programs", Programs())  # sizes of other tests are not ours
    monkeypatch.setattr(config, "disk_cache", False)
    mg.manual_seed(0)
    layers = [nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.2), nn.Linear(8, 3)]
    model = nn.Sequential(*layers)
    optimizer = mg.optim.AdamW(model.parameters(), lr=1e-3)
    averages = [p.detach().clone() for p in model.parameters()]
    kept = []
    for n, (x, y) in enumerate(batches(53)):
        if n == 3:
            mg.stats.reset()
        parts = habits(name, model, x, y, averages, kept)
        loss = next(parts)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        next(parts)
    made = mg.stats()
    assert (made.compilations, made.interpreted, made.programs_from_disk) == (0, 0, 0)
