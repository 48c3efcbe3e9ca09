"""`mg.profile()`: every kernel that ran is timed, and belongs to a line of the user."""

import json
import threading
import time

import numpy as np
import pytest

import monograph as mg
import monograph.nn.functional as F
from monograph import nn, record, statistics
from monograph.profiler import EXECUTOR_TRACK
from monograph.programs import Programs
from monograph.runtime.executor import EXECUTOR
from monograph.runtime.program import counters

pytestmark = pytest.mark.compiled


def array(*shape):
    return mg.tensor(np.random.default_rng(0).standard_normal(shape).astype(np.float32))


def training():
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 36, 4))
    optimizer = mg.optim.Adam(model.parameters())
    images, labels = array(8, 3, 8, 8), mg.tensor(np.arange(8) % 4)

    def step():
        loss = F.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()  # the update
        return loss

    return step


def line_of(function, text):
    lines, first = _source(function)
    return f"test_profiler.py:{first + next(n for n, s in enumerate(lines) if text in s)}"


def _source(function):
    import inspect

    return inspect.getsourcelines(function)


def test_every_kernel_is_timed():
    step = training()
    step()
    mg.synchronize()
    before = counters().kernels
    with mg.profile() as run:
        for _ in range(4):
            step()
    assert sum(kernel.calls for kernel in run.kernels) == counters().kernels - before
    assert all(kernel.calls == 4 and kernel.seconds > 0 for kernel in run.kernels)
    assert 0 < run.kernel_seconds < run.seconds
    assert run.kernels == sorted(run.kernels, key=lambda each: -each.seconds)


def test_kernels_belong_to_the_lines_of_the_user():
    step = training()
    with mg.profile() as run:
        step()
    assert {k.line.rpartition("/")[2] for k in run.kernels} == {
        line_of(step, "cross_entropy"), line_of(step, "the update"),
    }  # fmt: skip
    (update,) = [k for k in run.kernels if k.name.startswith("update")]
    assert update.line.endswith(line_of(step, "the update"))


def test_lines_are_those_of_each_recording():
    def first(x):
        return (x.sin() + 1).tanh()

    def second(x):
        return (x.sin() + 1).tanh()

    x = array(40, 50)
    lines = []
    for function in (first, second, mg.jit(first), mg.jit(second)):
        mg.eval(function(x))
        with mg.profile() as run:
            kept = function(x)
        (kernel,) = run.kernels
        lines.append(kernel.line.rpartition("/")[2])
        del kept
    assert lines == [line_of(first, "sin"), line_of(second, "sin")] * 2


def test_a_program_from_disk_is_known_as_well(tmp_path, monkeypatch):
    x = array(64, 48)

    def run(w):
        return F.softmax(x @ w, 1)

    found = []
    with mg.config.override(cache_dir=tmp_path):
        for _ in range(2):
            monkeypatch.setattr(record, "programs", Programs())
            w = array(48, 32)
            with mg.profile() as profile:
                kept = run(w)
            found.append([(k.name, k.kind, k.bytes, k.flops, k.line) for k in profile.kernels])
            del kept
    assert sorted(found[0]) == sorted(found[1])
    assert {kind for _, kind, *_ in found[0]} == {"generated", "library"}
    assert all(nbytes > 0 and flops > 0 for _, _, nbytes, flops, _ in found[0])


def test_sizes_that_vary():
    with mg.config.override(disk_cache=False):
        for n in (30, 40, 50):
            x = array(n, 20)
            with mg.profile() as run:
                kept = (x.tan() * 3 - x).exp()
            (kernel,) = run.kernels
            assert kernel.bytes == 2 * n * 20 * 4 + 8
            del kept


def test_speeds():
    x = array(1 << 18)
    with mg.profile() as run:
        kept = x * x + x
    (kernel,) = run.kernels
    assert kernel.bytes == 2 * 4 * x.numel() and kernel.flops == 2 * x.numel()
    assert kernel.gigabytes_per_second == pytest.approx(kernel.bytes / kernel.seconds / 1e9)
    assert kernel.gigaflops_per_second == pytest.approx(kernel.flops / kernel.seconds / 1e9)
    del kept


def test_the_table():
    step = training()
    with mg.profile() as run:
        step()
    text = str(run)
    assert "GB/s" in text and "GFLOP/s" in text and "test_profiler.py:" in text
    assert len(text.splitlines()) == 2 + len(run.kernels)


def test_the_trace(tmp_path, monkeypatch):
    monkeypatch.setattr(record, "programs", Programs())
    step = training()
    with mg.config.override(disk_cache=False), mg.profile() as run:
        step().item()
        step()
    run.save(tmp_path / "trace.json")
    trace = json.loads((tmp_path / "trace.json").read_text())
    events = trace["traceEvents"]
    tracks = {e["tid"]: e["args"]["name"] for e in events if e["ph"] == "M"}
    assert tracks[EXECUTOR_TRACK] == "kernels" and tracks[1].startswith("Python")
    spans = [e for e in events if e["ph"] == "X"]
    assert {"python", "flush", "compile", "generated", "library"} <= {e["cat"] for e in spans}
    assert all(e["ts"] >= 0 and e["dur"] >= 0 for e in spans)
    kernels = [e for e in spans if e["tid"] == EXECUTOR_TRACK]
    ends = [e["ts"] + e["dur"] for e in kernels]
    assert all(later["ts"] >= end - 1e-3 for end, later in zip(ends, kernels[1:]))
    assert all(e["args"]["lines"] and e["args"]["bytes"] > 0 for e in kernels)
    # Kernels run after the flush that launched them has begun, and what compiled within one.
    flush = next(e for e in spans if e["cat"] == "flush")
    assert kernels[0]["ts"] > flush["ts"]
    fuse = next(e for e in spans if e["name"] == "fuse")
    assert flush["ts"] < fuse["ts"] and fuse["ts"] + fuse["dur"] < flush["ts"] + flush["dur"]


def test_it_is_off_afterwards():
    x = array(100, 10)
    with mg.profile() as run:
        kept = x.exp()
    assert EXECUTOR.watch is None and record.observer is None and statistics.spans is None
    count = len(run.spans)
    kept = x.exp()
    mg.eval(kept)
    mg.synchronize()
    assert len(run.spans) == count
    with pytest.raises(ZeroDivisionError), mg.profile():
        raise ZeroDivisionError
    assert EXECUTOR.watch is None and record.observer is None


def test_profiles_are_not_nested():
    with mg.profile(), pytest.raises(mg.errors.ProfileError, match="not nested"), mg.profile():
        pass


def test_other_threads_are_seen_too():
    x = array(64, 64)

    def work():
        mg.eval(x.cos() * 5)

    with mg.profile() as run:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        mg.eval(x.sin() * 5)
    assert sum(kernel.calls for kernel in run.kernels) == 2
    assert len({span.track for span in run.spans if span.kind == "flush"}) == 2


def test_a_wrong_index_is_raised_and_what_ran_is_there():
    table, wrong = array(5, 3), mg.tensor([1, 7])
    with pytest.raises(IndexError), mg.profile() as run:
        table[wrong].sum().item()
    assert all(kernel.seconds >= 0 for kernel in run.kernels)


def test_a_profile_of_waiting_has_the_time_of_waiting():
    with mg.profile() as run:
        time.sleep(0.02)
    assert run.seconds >= 0.02 and run.kernels == []
    assert "in kernels" in str(run)


def test_flushes_that_were_interpreted_are_mentioned(monkeypatch):
    monkeypatch.setattr(record, "programs", Programs())
    x = mg.tensor([1.0, 2.0])
    found = []
    with mg.config.override(tier0_limit=100, disk_cache=False):
        for _ in range(2):
            with mg.profile() as run:
                mg.eval((x * 3).cosh())
            found.append((run.interpreted, len(run.kernels), "ran in NumPy" in str(run)))
    assert found == [(1, 0, True), (0, 1, False)]


def test_the_turns_of_a_loop_are_timed_together():
    layer, x = nn.LSTM(6, 8), array(5, 2, 6)
    mg.eval(layer(x)[0])
    mg.synchronize()
    with mg.profile() as run:
        kept = layer(x)[0]
    assert run.kernels and all(kernel.seconds > 0 for kernel in run.kernels)
    assert all("test_profiler.py" in kernel.line for kernel in run.kernels)
    del kept
