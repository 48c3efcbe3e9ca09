"""Steps of a program that run Python: beside kernels, from disk, replayed, failing, in threads."""

import gc
import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import monograph as mg
import monograph.nn.functional as F
from monograph import linalg, record
from monograph.backends.cpu import backend as cpu
from monograph.compiler.digest import digest_of
from monograph.compiler.plan import HostStep
from monograph.errors import LinAlgError
from monograph.ir import build, dtypes, native
from monograph.ops.define import operator
from monograph.ops.linalg.spectral import svd_factors
from monograph.ops.linalg.systems import inverted
from monograph.runtime.host import _functions, _raised
from monograph.tensor import Tensor
from monograph.tracing import kind, trace

ROOT = Path(__file__).parents[2]


def normal(*size, seed=0, dtype="float32"):
    return np.random.default_rng(seed).normal(size=size).astype(dtype)


@pytest.fixture(autouse=True)
def compiled():
    with mg.config.override(backend="cpu", tier0_limit=0):
        yield
    assert not _raised  # every error was raised somewhere


@pytest.fixture
def declining(monkeypatch):
    """A backend without kernels for some element types; programs of it are not kept."""

    def decline(*names):
        monkeypatch.setattr(cpu, "supports", lambda dtype: dtype.name not in names)

    monkeypatch.setattr(record, "programs", type(record.programs)())
    with mg.config.override(disk_cache=False):
        yield decline


# --- beside kernels -----------------------------------------------------------------------------


def test_kernels_before_and_after():
    x = normal(6, 40)
    bounds = np.sort(normal(50, seed=1))
    made = (mg.searchsorted(mg.tensor(bounds), mg.tensor(x) * 2) + 1).sum(0)
    wanted = (np.searchsorted(bounds, x * 2) + 1).sum(0)
    np.testing.assert_array_equal(made.numpy(), wanted)
    report = mg.explain(lambda: mg.searchsorted(mg.tensor(bounds), mg.tensor(x) * 2) + 1)
    assert [k.on_host for k in report.kernels] == [False, True, False]
    assert "1 calls on the host" in str(report)


def test_one_call_serves_all_its_results():
    x = mg.tensor(normal(8, 4))
    report = mg.explain(lambda: svd_factors(x + 1, False))
    assert [k.on_host for k in report.kernels].count(True) == 1


def test_a_result_of_a_call_overwrites_nothing_that_is_still_read():
    x = mg.tensor([3.0, 1.0, 2.0])
    y = x.sort().values
    x.cumsum_(0)
    assert x.tolist() == [3.0, 4.0, 6.0] and y.tolist() == [1.0, 2.0, 3.0]


def test_arrays_that_lie_channels_last():
    x, w = normal(2, 3, 8, 8), normal(6, 3, 3, 3, seed=1)

    def run():
        return mg.cumsum(F.conv2d(mg.tensor(x), mg.tensor(w), padding=1).relu(), 2).sum(1).numpy()

    made = run()
    with mg.config.override(backend="reference"):
        np.testing.assert_allclose(made, run(), rtol=1e-4, atol=1e-4)


def test_nothing_to_compute():
    assert mg.cumsum(mg.zeros(0, 3) * 2, 1).shape == (0, 3)
    assert linalg.det(mg.zeros(2, 0, 0)).tolist() == [1.0, 1.0]
    assert mg.cumsum(mg.zeros(2, 0), 1).sum().item() == 0.0


def test_numbers_reach_the_host_as_slots(declining):
    declining("float32")
    x = mg.tensor([1.0, 2.0])
    for factor in (2.0, 3.0):
        assert (x * factor).tolist() == [factor, 2 * factor]
    assert mg.stats().compilations >= 1


# --- element types without kernels --------------------------------------------------------------


def network(x, w, v):
    y = F.conv2d(x, w).relu()
    y = mg.softmax(y.reshape(x.shape[0], -1), 1)
    y = (mg.log(y + 1) @ v).to(x.dtype)
    return (y * mg.tensor(np.arange(5), dtype=x.dtype)).sum(), y.double().mean(0)


@pytest.mark.parametrize(
    "names", [("float32",), ("float64",), ("int64",), ("bool",), ("float32", "bool")]
)
def test_what_has_no_kernels_runs_on_the_host(declining, names):
    arrays = normal(4, 3, 6, 6), normal(2, 3, 3, 3, seed=1), normal(32, 5, seed=2)

    def run():
        leaves = [mg.tensor(a, requires_grad=True) for a in arrays]
        loss, rows = network(*leaves)
        loss.backward()
        return [t.detach().numpy() for t in (loss, rows, *[x.grad for x in leaves])]

    with mg.config.override(backend="reference"):
        expected = run()
    declining(*names)
    for a, b in zip(run(), expected, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-5)


def test_declined_products_stay_products(declining):
    """Not a table of all products and a sum over it: NumPy multiplies matrices."""
    declining("float32")
    x = mg.tensor(normal(64, 48))
    report = mg.explain(lambda: x @ x.T)
    assert [k.name for k in report.kernels] == ["host Contract"]


def test_nodes_that_only_feed_one_another_are_one_step(declining):
    declining("float32")
    x = mg.tensor(normal(64))
    report = mg.explain(lambda: mg.exp(mg.sin(x) * 2) + 1)
    assert [k.on_host for k in report.kernels] == [True]
    both = mg.explain(lambda: (mg.exp(x).sum().double() * 2, mg.exp(x).double() + 1))
    assert sorted(k.on_host for k in both.kernels) == [False] * 2 + [True] * 3


def test_in_place_updates_of_a_type_without_kernels(declining):
    declining("float32")
    x = mg.tensor([1.0, 2.0])
    for _ in range(3):
        x.mul_(2.0).add_(1.0)
        mg.synchronize()
    assert x.tolist() == [15.0, 23.0]


# --- from disk, interpreted, replayed -----------------------------------------------------------

PROGRAM = """
import json
import numpy as np
import monograph as mg
x = mg.tensor(np.linspace(-1, 1, 60, dtype="float32").reshape(6, 10))
y = mg.searchsorted(mg.sort(mg.sin(x * 7), 1).values, x).sum(0)
z = mg.inverse(mg.tensor([[2.0, 1.0], [0.0, 4.0]]) * 2)
values = [y.tolist(), z.tolist()]
stats = mg.stats()
print(json.dumps([stats.compilations, stats.programs_from_disk, values]))
"""


def run_program(folder):
    settings = {"MONOGRAPH_CACHE_DIR": str(folder), "MONOGRAPH_TIER0_LIMIT": "0",
                "PYTHONPATH": str(ROOT), "MONOGRAPH_BACKEND": "cpu"}  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=os.environ | settings, capture_output=True, text=True,
        timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_programs_on_disk(tmp_path):
    compiled_, found, values = run_program(tmp_path)
    assert compiled_ > 0 and found == 0
    assert run_program(tmp_path) == [0, compiled_, values]


def test_a_changed_function_is_another_program(monkeypatch):
    @operator(to=None, method=False)
    def own(x: Tensor):
        return build.call("test_own", x)

    def digest(function):
        monkeypatch.setitem(native.TABLE, "test_own", native.Native("test_own", function, like))
        recording, _ = trace(own, kind(3))
        return digest_of(recording, "here")

    like = native.like
    functions = [lambda x: x + 1, lambda x: x + 2, lambda x: x + 1]
    first, second, third = map(digest, functions)
    assert first is not None and first != second and first == third


def test_tier_0_interprets_calls():
    mg.stats.reset()
    with mg.config.override(tier0_limit=64):
        made = mg.cumsum(mg.tensor([1.0, 2.0, 4.0]) * 3.0, 0)
        assert made.tolist() == [3.0, 9.0, 21.0]
        with pytest.raises(LinAlgError):
            linalg.inv(mg.zeros(2, 2))
    assert mg.stats().interpreted > 0


def test_replayed_and_two_in_flight():
    @mg.jit
    def step(x):
        return mg.searchsorted(mg.sort(x * 2, 0).values, x * 3) + 1

    inputs = [mg.tensor(normal(50, seed=n)) for n in range(20)]
    made = [step(x) for x in inputs]  # nothing is read until all are launched
    for x, y in zip(inputs, made, strict=True):
        wanted = np.searchsorted(np.sort(x.numpy() * 2), x.numpy() * 3) + 1
        np.testing.assert_array_equal(y.numpy(), wanted)
    assert step.reasons == []


def test_linalg_is_replayed_and_fails_at_the_next_read():
    @mg.jit
    def step(x):
        return linalg.inv(x) * 2

    good = mg.tensor([[2.0, 0.0], [0.0, 4.0]])
    for _ in range(3):
        assert step(good).tolist() == [[1.0, 0.0], [0.0, 0.5]]
    assert step.reasons == []
    bad = step(mg.zeros(2, 2))
    with pytest.raises(LinAlgError, match="singular"):
        bad.numpy()
    assert step(good).tolist() == [[1.0, 0.0], [0.0, 0.5]]


def test_a_failure_leaves_state_untouched():
    state = mg.ones(2)

    @mg.jit
    def step(x):
        state.mul_(2.0)
        return linalg.inv(x)

    for _ in range(2):
        step(mg.ones(1, 1))
    assert state.tolist() == [4.0, 4.0]
    bad = step(mg.zeros(1, 1))
    with pytest.raises(LinAlgError):
        mg.synchronize()
    assert state.tolist() == [4.0, 4.0]
    step(mg.ones(1, 1))
    assert state.tolist() == [8.0, 8.0]
    del bad


def test_training_through_a_call():
    w = mg.tensor(normal(4, 4) + 4 * np.eye(4, dtype="float32"), requires_grad=True)
    step = mg.optim.SGD([w], lr=0.05)
    losses = []
    for _ in range(10):
        loss = mg.cumsum(w, 0).square().mean() + (linalg.inv(w) - 1).square().mean()
        step.zero_grad()
        loss.backward()
        step.step()
        losses.append(loss)
    values = [loss.item() for loss in losses]
    assert values == sorted(values, reverse=True)


# --- errors -------------------------------------------------------------------------------------


def test_an_error_is_raised_once_and_the_rest_still_works():
    bad = inverted(mg.zeros(2, 2))  # not at the call: the operator itself
    other = mg.ones(3) * 2
    with pytest.raises(LinAlgError):
        mg.synchronize()
    assert other.tolist() == [2.0, 2.0, 2.0]
    del bad
    assert inverted(mg.tensor([[4.0]])).tolist() == [[0.25]]


def test_steps_after_a_failed_one_are_not_run():
    ran = []

    @operator(to=None, method=False)
    def note(x: Tensor):
        return build.call("test_note", x)

    native.TABLE["test_note"] = native.Native(
        "test_note", lambda x: ran.append(1) or x, native.like
    )
    try:
        bad = note(inverted(mg.zeros(2, 2)))
        with pytest.raises(LinAlgError):
            mg.synchronize()
        assert ran == []
        good = note(inverted(mg.ones(1, 1)))
        assert good.tolist() == [[1.0]] and ran == [1]
        del bad
    finally:
        del native.TABLE["test_note"]


def test_any_exception_reaches_the_user():
    @operator(to=None, method=False)
    def broken(x: Tensor):
        return build.call("test_broken", x)

    def fail(x):
        raise KeyError("what went wrong")

    native.TABLE["test_broken"] = native.Native("test_broken", fail, native.like)
    try:
        with pytest.raises(KeyError, match="what went wrong"):
            broken(mg.ones(2)).numpy()
    finally:
        del native.TABLE["test_broken"]


def test_errors_are_raised_in_the_thread_that_launched():
    caught = []

    def work():
        with mg.config.override(backend="cpu", tier0_limit=0):
            bad = inverted(mg.zeros(2, 2))
            record.flush("test")
            launched.set()
            read.wait(30)
            try:
                bad.numpy()
            except LinAlgError as problem:
                caught.append(problem)

    launched, read = threading.Event(), threading.Event()
    thread = threading.Thread(target=work)
    thread.start()
    assert launched.wait(60)
    assert (mg.ones(2) + 1).tolist() == [2.0, 2.0]  # waits for all, and is not to blame
    read.set()
    thread.join(60)
    assert len(caught) == 1


# --- threads, processes, memory -----------------------------------------------------------------


def test_many_threads():
    wrong = []

    def work(seed):
        for n in range(10):
            x = normal(30 + n, seed=seed)
            made = mg.searchsorted(mg.tensor(np.sort(x)), mg.tensor(x) * 2)
            if not np.array_equal(made.numpy(), np.searchsorted(np.sort(x), x * 2)):
                wrong.append((seed, n))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not wrong and not any(thread.is_alive() for thread in threads)


def test_in_a_forked_child():
    expected = mg.mode(mg.ones(4) * 2, 0).values.tolist()
    child = os.fork()
    if child == 0:
        same = mg.mode(mg.ones(4) * 2, 0).values.tolist() == expected
        os._exit(0 if same else 1)
    _, status = os.waitpid(child, 0)
    assert status == 0


def test_functions_go_with_their_program(monkeypatch):
    gc.collect()
    before = len(_functions)
    with monkeypatch.context() as patch:
        patch.setattr(record, "programs", type(record.programs)())
        with record.programs.observed() as seen:
            mg.mode(mg.ones(4) * 5, 0).values.numpy()
    assert len(_functions) == before + 1
    assert any(isinstance(s, HostStep) for made in seen for s in made.plan.steps)
    del seen
    gc.collect()
    assert len(_functions) == before


def test_a_gpu_refuses_and_says_what():
    refused = pytest.raises(NotImplementedError, match="scan_add does not run on a GPU")
    with mg.config.override(backend="null"), refused:
        mg.cumsum(mg.ones(3), 0).numpy()


def test_the_hook_covers_what_the_emitters_know():
    known = [d for d in dtypes.ALL if d.kind <= dtypes.Kind.FLOAT]
    assert known and all(cpu.supports(dtype) for dtype in known)
