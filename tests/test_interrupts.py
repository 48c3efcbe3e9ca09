"""Ctrl-C at any time: a step is done once or not at all, and the library stays usable."""

import contextlib
import copy
import itertools
import subprocess
import sys
import threading

import numpy as np
import pytest

import monograph as mg
import monograph.nn.functional as F
from monograph import record
from monograph.config import config
from monograph.programs import Programs
from monograph.replay import Replay
from tests.test_semantics import batches, network


@pytest.mark.parametrize("where", ["find", "make", "run"])
def test_an_interrupted_flush_leaves_state_unchanged(where, monkeypatch):
    model = network()
    optimizer = mg.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    x, y = batches(1)[0]
    mg.synchronize()
    before = [p.detach().numpy().copy() for p in model.parameters()]
    mg.synchronize()

    def interrupted(*args):
        raise KeyboardInterrupt

    def step():
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()

    fresh = Programs()
    monkeypatch.setattr(record, "programs", fresh)
    with monkeypatch.context() as patch:
        if where == "run":
            made = fresh.make

            def make(*args):
                executable = made(*args)
                patch.setattr(type(executable), "run", interrupted)
                return executable

            patch.setattr(fresh, "make", make)
            patch.setattr(fresh, "find", lambda *args: None)
        else:
            patch.setattr(fresh, "find", lambda *args: None)
            patch.setattr(fresh, where, interrupted)
        with pytest.raises(KeyboardInterrupt):
            step()
    for p, old in zip(model.parameters(), before, strict=True):
        np.testing.assert_array_equal(p.detach().numpy(), old)
    step()
    changed = [p.detach().numpy() for p in model.parameters()]
    assert not any(np.array_equal(a, b) for a, b in zip(changed, before, strict=True))


class Interrupt:
    """Raises KeyboardInterrupt at the n-th call or return within a flush, or another function."""

    def __init__(self, when, within=record.flush):
        self.left = when
        self.code = within.__code__
        self.raised = False
        self.depth = 0

    def __call__(self, frame, event, argument):
        if frame.f_code is self.code and event in ("call", "return"):
            self.depth += 1 if event == "call" else -1
        if self.depth <= 0 or getattr(argument, "__name__", "") == "__exit__":
            return  # a signal never comes between the end of a `with` and its exit
        if "llvmlite" in frame.f_code.co_filename:
            return  # its lock, once taken, would stay so: other threads could not compile again
        self.left -= 1
        if self.left < 0:
            sys.setprofile(None)
            self.raised = True
            raise KeyboardInterrupt


def state(model, optimizer):
    tensors = [p.detach() for p in model.parameters()]
    tensors += [t for held in optimizer.state.values() for t in held.values()]
    return [t.numpy().copy() for t in tensors if isinstance(t, mg.Tensor)]


@pytest.mark.compiled
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # half-made blocks
@pytest.mark.parametrize("limit", [0, 100_000], ids=["compiled", "interpreted"])
@pytest.mark.parametrize("network_of", ["plain", "watched", "replayed"])
def test_ctrl_c_within_a_flush_does_a_step_once_or_not_at_all(limit, network_of, monkeypatch):
    """At whatever call it strikes: parameters and state are those before the step, or after."""
    monkeypatch.setattr(config, "tier0_limit", limit)
    table = mg.nn.Linear(4, 4) if network_of == "plain" else mg.nn.Embedding(5, 4)
    model = mg.nn.Sequential(table, mg.nn.Linear(4, 3))
    optimizer = mg.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    x = mg.rand(3, 4) if network_of == "plain" else mg.tensor([0, 3, 4])

    def step():
        optimizer.zero_grad()
        model(x).square().sum().backward()
        optimizer.step()

    within = record.flush
    if network_of == "replayed":
        step, within = mg.jit(step), Replay.run
    for _ in range(3):
        step()
        mg.synchronize()
    begin = copy.deepcopy((model.state_dict(), optimizer.state_dict()))
    path = [state(model, optimizer)]
    for _ in range(2):
        step()
        path.append(state(model, optimizer))
    done = 0
    for when in itertools.count():
        model.load_state_dict(begin[0])
        optimizer.load_state_dict(begin[1])
        mg.synchronize()
        interrupt = Interrupt(when, within)
        with contextlib.suppress(KeyboardInterrupt):
            sys.setprofile(interrupt)
            step()
        sys.setprofile(None)
        made = state(model, optimizer)
        place = [equal(made, expected) for expected in path[:2]].index(True)
        done += place
        step()
        assert equal(state(model, optimizer), path[place + 1]), when
        if not interrupt.raised:
            break
    assert when > 10
    assert 0 < done < when + 1  # it was met on both sides
    assert_other_threads_compile()


def assert_other_threads_compile():
    """No lock that the main thread may enter again was left locked for the others."""
    found = []
    numbers = mg.rand(7, next(fresh_sizes))
    thread = threading.Thread(target=lambda: found.append((numbers * 3.0).sum().item()))
    thread.daemon = True
    thread.start()
    thread.join(60)
    assert found


fresh_sizes = itertools.count(4091)


def equal(made, expected):
    return all(np.allclose(a, b, rtol=1e-5, atol=1e-6) for a, b in zip(made, expected, strict=True))


INTERRUPTED = """
import os, signal, threading
import monograph as mg
signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
x = mg.ones(400, 400) * 0.001
for _ in range(3):
    try:
        threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()
        while True:
            y = x @ x + x
            y.sum().item()
    except KeyboardInterrupt:
        pass
    assert abs((mg.ones(3) * 2.0).sum().item() - 6.0) < 1e-6
    assert abs(float(x.sum()) - 160.0) < 0.1
print("done")
"""


def test_ctrl_c_at_any_time_leaves_the_library_usable():
    made = subprocess.run(
        [sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, timeout=120
    )
    assert made.stdout == "done\n", made.stderr
