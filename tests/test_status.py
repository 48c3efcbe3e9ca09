"""Errors that only the data shows: raised at the next read, with the line, and without a trace."""

import copy
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
import torch

import monograph as mg
import monograph.nn.functional as F
from monograph import launches, nn, record
from monograph.compiler.plan import CheckStep, KernelStep
from monograph.compiler.recording import Expansion
from monograph.ir.node import interning
from monograph.recorder import current
from monograph.runtime import status
from monograph.tracing import kind, trace

ROOT = Path(__file__).parents[1]
CLASSES = 5


@pytest.fixture(autouse=True, params=["reference", "cpu", "first sight"])
def backend(request):
    """The interpreter, compiled programs, and programs that are interpreted when first met."""
    name = "reference" if request.param == "reference" else "cpu"
    limit = 1000 if request.param == "first sight" else 0
    with mg.config.override(backend=name, tier0_limit=limit, disk_cache=False):
        mg.synchronize()
        yield request.param
        mg.synchronize()  # nothing stays pending for other tests
    assert not status.current().held


def here():
    """The line of the caller, as errors show it."""
    frame = sys._getframe(1)
    return f"{Path(__file__).name}:{frame.f_lineno}"


class Training:
    """A model with parameters, buffers and an optimiser, and a step on tokens and labels."""

    def __init__(self, optimizer="sgd"):
        mg.manual_seed(0)
        self.table = nn.Embedding(8, 6)
        self.norm = nn.BatchNorm1d(6)
        self.head = nn.Linear(6, CLASSES)
        self.parts = nn.ModuleList([self.table, self.norm, self.head])
        self.parameters = list(self.parts.parameters())
        if optimizer == "sgd":
            self.optimizer = mg.optim.SGD(self.parameters, lr=0.1, momentum=0.9)
        else:
            self.optimizer = mg.optim.AdamW(self.parameters, lr=0.1)

    def step(self, tokens, labels):
        self.optimizer.zero_grad()
        loss = F.cross_entropy(self.head(self.norm(self.table(tokens).mean(1))), labels)
        loss.backward()
        self.optimizer.step()
        return loss

    def state(self):
        """Copies of everything that a step changes; the tensors themselves stay as they are."""
        tensors = [*self.parameters, *self.parts.buffers()]
        for held in self.optimizer.state.values():
            tensors += [t for t in held.values() if isinstance(t, mg.Tensor)]
        return [t.detach().clone().numpy().copy() for t in tensors]


def batch(seed=0):
    generator = np.random.default_rng(seed)
    tokens = generator.integers(0, 8, (4, 3))
    return mg.tensor(tokens), mg.tensor(generator.integers(0, CLASSES, 4))


def spoilt(what):
    tokens, labels = (t.numpy().copy() for t in batch(9))
    if what == "token":
        tokens[2, 1] = 8
    elif what == "negative token":
        tokens[2, 1] = -1
    else:
        labels[3] = CLASSES
    return mg.tensor(tokens), mg.tensor(labels)


def assert_same(left, right):
    for a, b in zip(left, right, strict=True):
        np.testing.assert_array_equal(a, b)


def assert_twins(left, right, backend):
    """The state of two trainings is the same; one may have been interpreted, the other not."""
    if backend != "first sight":
        assert_same(left, right)
        return
    for a, b in zip(left, right, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-3)


def assert_steps_agree(training, twin, seed, backend):
    assert_twins([training(*batch(seed)).item()], [twin(*batch(seed)).item()], backend)


WRONG = [
    ("token", "embedding: index 8 is out of range for axis 0 of size 8"),
    ("negative token", "embedding: index -1 is out of range for axis 0 of size 8"),
    ("label", "cross_entropy: target 5 is out of range for 5 classes"),
]


@pytest.mark.parametrize("optimizer", ["sgd", "adamw"])
@pytest.mark.parametrize(("what", "message"), WRONG)
def test_a_wrong_value_leaves_all_state_untouched(what, message, optimizer, backend):
    training, twin = Training(optimizer), Training(optimizer)
    for seed in (1, 2):
        training.step(*batch(seed)).item()
        twin.step(*batch(seed)).item()
    before = training.state()
    wrong = spoilt(what)
    loss = training.step(*wrong)
    with pytest.raises(IndexError, match=message):
        loss.item()
    assert_same(training.state(), before)
    for seed in (3, 4):
        assert_steps_agree(training.step, twin.step, seed, backend)
    assert_twins(training.state(), twin.state(), backend)


def test_the_first_step_may_be_the_wrong_one(backend):
    training, twin = Training(), Training()
    with pytest.raises(IndexError):
        training.step(*spoilt("token")).item()
    assert_steps_agree(training.step, twin.step, 1, backend)
    assert_twins(training.state(), twin.state(), backend)


def test_the_message_names_the_call():
    weight, where = mg.ones(4, 3), mg.tensor([[0, 9]])
    rows, line = F.embedding(where, weight), here()
    with pytest.raises(mg.errors.IndexOutOfRange) as caught:
        (rows * 2).sum().item()
    message = str(caught.value)
    assert message.startswith("embedding: index 9 is out of range for axis 0 of size 4 ")
    assert "(inputs: float32[4, 3], int64[1, 2])" in message
    assert message.endswith(line)


def test_the_same_program_names_the_line_of_each_recording():
    weight = mg.ones(4, 3)
    lines = []
    for _ in range(2):
        first, line_one = F.embedding(mg.tensor([5]), weight), here()
        with pytest.raises(IndexError) as one:
            first.tolist()
        second, line_two = F.embedding(mg.tensor([6]), weight), here()
        with pytest.raises(IndexError) as two:
            second.tolist()
        lines.append((str(one.value).endswith(line_one), str(two.value).endswith(line_two)))
        assert "index 5" in str(one.value) and "index 6" in str(two.value)
    assert lines == [(True, True)] * 2


X = np.arange(12.0, dtype=np.float32).reshape(3, 4)


def integers(*values):
    return mg.tensor(np.array(values))


CALLS = {
    "gather": lambda x: x.gather(1, integers([0, 4], [1, 1])),
    "gather, negative": lambda x: x.gather(0, integers([0, -1, 1, 1])),
    "index_select": lambda x: x.index_select(1, integers(0, 4)),
    "index_select, negative": lambda x: x.index_select(0, integers(-1)),
    "take": lambda x: x[integers(0, 3)],
    "take, two axes": lambda x: x[integers(0, 2), integers(1, 4)],
    "take, negative": lambda x: x[integers(0, -4)],
    "take, one line": lambda x: mg.take(x, integers(0, 12)),
    "scatter": lambda x: x.scatter(1, integers([4]), mg.ones(1, 1)),
    "scatter, negative": lambda x: x.scatter(1, integers([-1]), 2.0),
    "scatter_add": lambda x: x.scatter_add(0, integers([3]), mg.ones(1, 1)),
    "index_add": lambda x: x.index_add(0, integers(3), mg.ones(1, 4)),
    "index_put": lambda x: mg.index_put(x, (integers(3),), mg.ones(1, 4)),
    "embedding, int32": lambda x: F.embedding(integers(0, 3).to(mg.int32), x),
    "nll_loss": lambda x: F.nll_loss(x, integers(0, 1, 4)),
    "weighted cross_entropy": lambda x: F.cross_entropy(x, integers(0, 1, 4), mg.ones(4)),
    "cross_entropy, negative": lambda x: F.cross_entropy(x, integers(0, -1, 2)),
    "smoothed cross_entropy": lambda x: F.cross_entropy(
        x, integers(0, 1, 4), label_smoothing=0.1
    ),
    "derivative": lambda x: mg.autograd.grad(x[integers(0, 3)].sum(), x)[0],
    "an index that was computed": lambda x: x[x.argmax(1) + 3],
    "the largest integer": lambda x: x[integers(2**63 - 1)],
    "the smallest integer": lambda x: x.index_select(0, integers(-(2**63))),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_indexing_operators_raise(name):
    result = CALLS[name](mg.tensor(X).requires_grad_())
    with pytest.raises(mg.errors.IndexOutOfRange, match=r"\d"):
        result.detach().numpy()


def test_one_hot_raises_what_pytorch_raises():
    hot = F.one_hot(integers(0, 5), 5)
    with pytest.raises(RuntimeError, match="one_hot: class value 5 must be from 0 to 4"):
        hot.numpy()


FINE = {
    "take, negative": (lambda x: x[integers(-3, 2)], X[[-3, 2]]),
    "ignored targets": (
        lambda x: F.cross_entropy(x, integers(0, -100, 2), reduction="none")[1], 0.0
    ),
    "ignored label of nll": (
        lambda x: F.nll_loss(x, integers(0, 77, 2), ignore_index=77, reduction="none")[1], 0.0
    ),
    "no indices": (lambda x: x[mg.tensor(np.zeros(0, np.int64))], np.zeros((0, 4), np.float32)),
}  # fmt: skip


@pytest.mark.parametrize("name", FINE)
def test_what_is_allowed_is_not_reported(name):
    function, expected = FINE[name]
    np.testing.assert_array_equal(function(mg.tensor(X)).numpy(), expected)


# --- when it is raised --------------------------------------------------------------------------


def test_reading_a_failed_result_again_raises_again():
    x = mg.tensor(X)
    rows, other = x[integers(7)], x * 2
    for _ in range(3):
        with pytest.raises(IndexError, match="index 7"):
            rows.tolist()
    with pytest.raises(IndexError, match="index 7"):
        (rows + 1).tolist()
    np.testing.assert_array_equal(other.numpy(), X * 2)  # this was not at fault


def test_synchronize_raises_once():
    rows = mg.tensor(X)[integers(7)]
    with pytest.raises(IndexError, match="index 7"):
        mg.synchronize()
    mg.synchronize()
    with pytest.raises(IndexError, match="index 7"):
        rows.tolist()


def test_a_loop_that_reads_nothing_stops_changing_state(backend):
    training, twin = Training(), Training()
    training.step(*batch(1))
    twin.step(*batch(1))
    losses = [training.step(*spoilt("token"))]
    losses += [training.step(*batch(seed)) for seed in range(2, 7)]
    with pytest.raises(IndexError, match="index 8"):
        losses[-1].item()
    for loss in losses:
        with pytest.raises(IndexError, match="index 8"):
            loss.item()
    assert_twins(training.state(), twin.state(), backend)
    assert_steps_agree(training.step, twin.step, 7, backend)


def test_a_very_long_loop_is_told_before_it_ends():
    x = mg.tensor(X)
    with pytest.raises(IndexError, match="index 7"):
        kept = []
        for _ in range(300):
            kept.append(x[integers(7)])
            mg.eval()
    mg.synchronize()
    with pytest.raises(IndexError, match="index 7"):
        kept[0].tolist()


def test_what_is_pending_and_sound_survives():
    x = mg.tensor(X)
    failed = x[integers(7)]
    mg.eval(failed)
    pending = x * 3
    with pytest.raises(IndexError):
        failed.tolist()
    np.testing.assert_array_equal(pending.numpy(), X * 3)


def test_what_is_pending_on_a_failed_result_fails_and_writes_nothing():
    x, total = mg.tensor(X), mg.zeros(4)
    mg.synchronize()
    failed = x[integers(7)]
    total.add_(failed[0])
    mg.eval(failed)
    total.add_(failed[0])
    with pytest.raises(IndexError):
        failed.tolist()
    np.testing.assert_array_equal(total.numpy(), np.zeros(4))


def test_a_view_of_a_failed_result_fails():
    rows = mg.tensor(X)[integers(7, 1)]
    mg.eval()
    part = rows[1]
    with pytest.raises(IndexError, match="index 7"):
        (part * 2).tolist()
    for again in (part, part * 2, rows[:1]):
        with pytest.raises(IndexError, match="index 7"):
            again.tolist()


def test_gradients_of_a_failed_step_are_not_there():
    training = Training()
    loss = training.step(*spoilt("label"))
    with pytest.raises(IndexError):
        loss.item()
    assert all(p.grad is None for p in training.parameters)


def test_eager_raises_at_the_call():
    x = mg.tensor(X)
    with mg.eager():
        with pytest.raises(IndexError, match="index 7"):
            x[integers(7)]
        assert (x[integers(1)] * 2).sum().item() == 2 * X[1].sum()


def test_an_array_that_the_user_holds_is_not_changed():
    training = Training()
    held = training.head.weight.detach().numpy()  # shares the memory
    before = held.copy()
    with pytest.raises(IndexError):
        training.step(*spoilt("token")).item()
    np.testing.assert_array_equal(held, before)
    training.step(*batch(1)).item()
    assert not np.array_equal(held, before)


# --- replay -------------------------------------------------------------------------------------


@pytest.mark.parametrize("wrong_at", [0, 1, 3])
def test_inside_jit(wrong_at, backend):
    training, twin = Training(), Training()
    step, right = mg.jit(training.step), mg.jit(twin.step)
    for n in range(6):
        if n == wrong_at:
            loss = step(*spoilt("token"))
            with pytest.raises(IndexError, match=rf"index 8 .*{Path(__file__).name}:\d+$"):
                loss.item()
            with pytest.raises(IndexError, match="index 8"):
                loss.item()
        else:
            assert_steps_agree(step, right, n, backend)
            assert_twins(training.state(), twin.state(), backend)
    assert step.reasons == []


def test_replays_behind_a_failed_one_do_not_run(backend):
    training, twin = Training(), Training()
    step, right = mg.jit(training.step), mg.jit(twin.step)
    for n in range(3):
        step(*batch(n))
        right(*batch(n))
    losses = [step(*spoilt("label")), step(*batch(4)), step(*batch(5))]
    with pytest.raises(IndexError, match="target 5"):
        mg.synchronize()
    for loss in losses:
        with pytest.raises(IndexError, match="target 5"):
            loss.item()
    assert_twins(training.state(), twin.state(), backend)
    assert_steps_agree(step, right, 6, backend)


# --- threads ------------------------------------------------------------------------------------


def test_an_error_belongs_to_the_thread_that_launched():
    x = mg.tensor(X)
    mg.synchronize()
    raised, launched, read = [], threading.Event(), threading.Event()
    results = {}

    def launch():
        results["failed"] = x[integers(7)]
        mg.eval()
        launched.set()
        read.wait(10)
        try:
            mg.synchronize()
        except IndexError as problem:
            raised.append(problem)
        results["after"] = (x * 2).tolist()

    thread = threading.Thread(target=launch)
    thread.start()
    launched.wait(10)
    mg.synchronize()  # not ours
    np.testing.assert_array_equal((x + 1).numpy(), X + 1)  # and we go on
    with pytest.raises(IndexError, match="index 7"):
        results["failed"].tolist()
    read.set()
    thread.join(10)
    assert len(raised) == 1
    np.testing.assert_array_equal(results["after"], X * 2)


def test_threads_train_beside_one_that_fails(backend):
    losses, problems = {}, []

    def train(name, wrong):
        training = trainings[name]
        found = []
        for n in range(8):
            try:
                found.append(training.step(*(wrong if wrong and n == 3 else batch(n))).item())
            except IndexError as problem:
                problems.append((name, problem))
        losses[name] = found

    trainings = {name: Training() for name in ("good", "bad", "alone")}
    wrong = spoilt("token")
    threads = [
        threading.Thread(target=train, args=("good", None)),
        threading.Thread(target=train, args=("bad", wrong)),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    train("alone", None)
    assert_twins([losses["good"]], [losses["alone"]], backend)
    assert len(losses["bad"]) == 7 and [name for name, _ in problems] == ["bad"]


def test_a_thread_that_is_gone_leaves_nothing_behind():
    x = mg.tensor(X)
    mg.synchronize()
    kept = {}

    def launch(name, index):
        kept[name] = x[integers(index)] * 2
        mg.eval()

    for name, index in (("right", 1), ("wrong", 7)):
        thread = threading.Thread(target=launch, args=(name, index))
        thread.start()
        thread.join(10)
    np.testing.assert_array_equal(kept["right"].numpy(), X[[1]] * 2)
    with pytest.raises(IndexError, match="index 7"):
        kept["wrong"].numpy()
    (x + 1).tolist()
    assert not launches.in_flight()


# --- what is compiled ---------------------------------------------------------------------------


def checks(function, *kinds):
    recording, _ = trace(function, *kinds)
    with interning():
        expansion = Expansion(recording)
        expansion.run()
    return [note.message.partition(":")[0] for note in expansion.notes]


INDEX = kind(3, dtype=mg.int64)


def test_what_cannot_go_wrong_is_not_checked():
    assert checks(lambda x: x.gather(1, x.argmax(1, keepdim=True)), kind(3, 4)) == []
    assert checks(lambda x, i: x[i], kind(3, 4), INDEX) == ["index"]


def test_what_nobody_wants_is_not_checked():
    def dropped(x, i):
        x[i]
        return x * 2

    assert checks(dropped, kind(3, 4), INDEX) == []


def test_equal_calls_are_checked_once():
    assert checks(lambda x, i: x[i] + x[i] * 2, kind(3, 4), INDEX) == ["index"]


def test_state_is_written_behind_all_checks(backend):
    training = Training()
    training.step(*batch(1)).item()
    with record.programs.observed() as seen:
        training.step(*batch(2))
    plan = seen[-1].plan
    if backend == "reference":
        assert plan is None
        return
    last = max(n for n, step in enumerate(plan.steps) if isinstance(step, CheckStep))
    assert plan.in_place
    for n, step in enumerate(plan.steps):
        if isinstance(step, KernelStep):
            written = {number for kind, number, _ in step.arguments if kind == "result"}
            assert n > last or not written & set(plan.in_place)


def test_an_index_that_is_state_itself():
    x, place = mg.tensor(X), integers(1)
    mg.synchronize()
    for expected in (2, 3):
        place.add_(1)
        row = x[place]
        if expected == 2:
            np.testing.assert_array_equal(row.numpy(), X[[2]])
        else:
            with pytest.raises(IndexError, match="index 3"):
                row.numpy()
    assert place.tolist() == [2]


def test_more_checks_than_fit_one_number():
    x = mg.tensor(X)
    rows = [x[integers(n % 3)] for n in range(150)]
    bad = copy.copy(rows)
    assert mg.stack(rows).sum().item() == pytest.approx(50 * X.sum())
    line = 0
    for n, value in ((149, 10), (70, 11), (3, 12)):
        bad = [x[integers(value if k == n else k % 3)] for k in range(150)]
        line = here()
        with pytest.raises(IndexError, match=f"index {value} ") as caught:
            mg.stack(bad).sum().item()
        wanted = int(line.rpartition(":")[2]) - 1
        assert str(caught.value).endswith(f":{wanted}")


def test_a_program_from_disk_checks_too(backend, tmp_path):
    if backend != "cpu":
        pytest.skip("only compiled programs are kept on disk")
    script = tmp_path / "script.py"
    script.write_text(
        "import sys, monograph as mg\n"
        "x = mg.tensor([[1.0, 2.0], [3.0, 4.0]])\n"
        "for n in (0, 1, int(sys.argv[1])):\n"
        "    try:\n"
        "        print(x[mg.tensor([n])].sum().item())\n"
        "    except IndexError as problem:\n"
        "        print(problem)\n"
        "print(mg.stats().programs_from_disk)\n"
    )
    for value, restored in ((5, "0"), (6, "1")):
        done = subprocess.run(
            [sys.executable, str(script), str(value)],
            capture_output=True, text=True, check=True, cwd=ROOT,
            env={"MONOGRAPH_CACHE_DIR": str(tmp_path), "MONOGRAPH_TIER0_LIMIT": "0",
                 "MONOGRAPH_DISK_CACHE": "1", "PYTHONPATH": str(ROOT), "PATH": "/usr/bin"},
        )  # fmt: skip
        first, second, message, count = done.stdout.splitlines()
        assert (first, second) == ("3.0", "7.0")
        assert f"index {value} is out of range" in message and "script.py:5" in message
        assert count == restored


def test_the_pending_recording_has_no_leftovers():
    with pytest.raises(IndexError):
        mg.tensor(X)[integers(7)].tolist()
    assert not current.recorder.records
    assert not status.current().launches


DIVISIONS = {
    "//": lambda a, b: a // b,
    "%": lambda a, b: a % b,
    "floor": lambda a, b: a.div(b, rounding_mode="floor"),
    "trunc": lambda a, b: a.div(b, rounding_mode="trunc"),
    "fmod": lambda a, b: a.fmod(b),
    "in place": lambda a, b: a.floor_divide_(b),
}


@pytest.mark.parametrize("name", DIVISIONS)
@pytest.mark.parametrize("dtype", ["int64", "int32", "uint8", "float32"])
def test_integer_division_by_zero(name, dtype):
    """PyTorch raises for integers; floats become infinite or NaN."""
    found = []
    for library in (mg, torch):
        a = library.tensor([7, 9], dtype=getattr(library, dtype))
        for divisor in (library.tensor([2, 0], dtype=a.dtype), 0, 2):
            try:
                made = DIVISIONS[name](a.clone(), divisor).tolist()
            except RuntimeError as problem:
                assert "ZeroDivisionError" in str(problem)
                made = "raises"
            found.append(repr(made))
    assert found[:3] == found[3:]
