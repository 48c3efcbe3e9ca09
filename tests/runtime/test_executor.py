"""The executor thread: queueing, threads, fork, exit and interruption."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
import weakref
from pathlib import Path

import numpy as np
import pytest

from monograph.runtime.executor import EXECUTOR, QUEUE
from monograph.runtime.instructions import Address, Instruction, Leaf
from monograph.runtime.program import Program

from .kernels import address

ROOT = Path(__file__).parents[2]

PROLOGUE = """
import os, signal, sys, threading, time
import numpy as np
signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
from monograph.runtime.executor import EXECUTOR
from monograph.runtime.instructions import Address, Instruction, Leaf
from monograph.runtime.program import Program, counters
from tests.runtime.kernels import address

count = np.array([1000], np.int64)
pause = np.array([300_000], np.int64)
data = np.zeros(1000, np.float32)
increment = Instruction(address("increment"), (Leaf(0), Address(count.ctypes.data)), "increment")
sleep = Instruction(address("sleep"), (Address(pause.ctypes.data),), "sleep")

def launch(program):
    frame = EXECUTOR.frame(program)
    frame.fill((data.ctypes.data,))
    return EXECUTOR.submit(frame)
"""


def run(body: str) -> subprocess.CompletedProcess[str]:
    """Run a script in a fresh process."""
    return subprocess.run(
        [sys.executable, "-c", PROLOGUE + textwrap.dedent(body)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
    )


class Kept:
    """Something whose end can be observed."""


def sleeper(microseconds: int) -> Program:
    time_cell = np.array([microseconds], np.int64)
    operands = (Address(time_cell.ctypes.data),)
    return Program([Instruction(address("sleep"), operands, "sleep")], 0, keep=time_cell)


def test_submit_returns_before_the_work_is_done() -> None:
    ticket = EXECUTOR.submit(EXECUTOR.frame(sleeper(100_000)))
    assert EXECUTOR.completed < ticket
    EXECUTOR.wait(ticket)
    assert EXECUTOR.completed >= ticket


def test_memory_is_kept_until_completion() -> None:
    kept = Kept()
    alive = weakref.ref(kept)
    EXECUTOR.submit(EXECUTOR.frame(sleeper(50_000)), keep=kept)
    del kept
    gc.collect()
    assert alive() is not None
    EXECUTOR.synchronize()
    assert alive() is None


def test_more_programs_than_the_queue_holds() -> None:
    programs = [sleeper(100) for _ in range(QUEUE + 20)]
    first = EXECUTOR.completed
    for program in programs:
        EXECUTOR.submit(EXECUTOR.frame(program))
    EXECUTOR.synchronize()
    assert EXECUTOR.completed - first == len(programs)


def test_many_threads_may_submit() -> None:
    data = np.zeros(1, np.float32)
    one = np.array([1], np.int64)
    operands = (Leaf(0), Address(one.ctypes.data))
    program = Program([Instruction(address("increment"), operands, "increment")], 1)

    def work() -> None:
        for _ in range(200):
            frame = EXECUTOR.frame(program)
            frame.fill((data.ctypes.data,))
            EXECUTOR.submit(frame)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    EXECUTOR.synchronize()
    assert data[0] == 800.0


def test_waiting_lets_other_threads_run() -> None:
    turns: list[float] = []

    def work() -> None:
        for _ in range(5):
            turns.append(time.monotonic())
            time.sleep(0.001)

    thread = threading.Thread(target=work)
    ticket = EXECUTOR.submit(EXECUTOR.frame(sleeper(200_000)))
    thread.start()
    EXECUTOR.wait(ticket)
    end = time.monotonic()
    thread.join()
    assert max(turns) < end


def test_an_idle_executor_uses_no_processor() -> None:
    EXECUTOR.wait(EXECUTOR.submit(EXECUTOR.frame(sleeper(1))))
    time.sleep(0.05)
    before = time.process_time()
    time.sleep(0.3)
    assert time.process_time() - before < 0.1


def test_an_unknown_ticket_is_refused() -> None:
    EXECUTOR.wait(EXECUTOR.submit(EXECUTOR.frame(sleeper(1))))
    with pytest.raises(ValueError, match="never submitted"):
        EXECUTOR.wait(EXECUTOR.completed + 1000)


def test_a_forked_child_runs_serially() -> None:
    result = run("""
        program = Program([sleep, increment], 1)
        launch(program)
        child = os.fork()
        if child == 0:
            assert data[0] == 1.0, "the parent's work was not finished before the fork"
            before = counters().parallel_regions
            for _ in range(3):
                EXECUTOR.wait(launch(program))
            assert counters().parallel_regions == before
            assert data.tolist() == [4.0] * 1000
            os._exit(0)
        for _ in range(500):
            done, status = os.waitpid(child, os.WNOHANG)
            if done:
                break
            time.sleep(0.02)
        else:
            os.kill(child, signal.SIGKILL)
        assert done == child and status == 0, status
        EXECUTOR.wait(launch(program))
        assert data.tolist() == [2.0] * 1000
    """)
    assert result.returncode == 0, result.stderr


def test_a_child_of_a_child_exits_cleanly() -> None:
    result = run("""
        program = Program([increment], 1)
        EXECUTOR.wait(launch(program))
        if os.fork() == 0:
            launch(program)
            sys.exit(0)
        _, status = os.wait()
        assert status == 0
    """)
    assert result.returncode == 0, result.stderr


def test_exit_with_work_in_flight() -> None:
    result = run("""
        program = Program([sleep, increment], 1)
        for _ in range(2):
            launch(program)
        del program
        print("leaving")
    """)
    assert result.returncode == 0, result.stderr
    assert result.stdout == "leaving\n"
    assert result.stderr == ""


def test_exit_by_an_exception_with_work_in_flight() -> None:
    result = run("""
        launch(Program([sleep, increment], 1))
        raise RuntimeError("the user's own")
    """)
    assert result.returncode == 1
    assert result.stderr.count("Traceback") == 1


def test_exit_while_a_daemon_thread_launches() -> None:
    result = run("""
        program = Program([increment], 1)
        def work():
            while True:
                launch(program)
        threading.Thread(target=work, daemon=True).start()
        time.sleep(0.1)
    """)
    assert result.returncode == 0, result.stderr


def test_interrupt_leaves_the_executor_usable() -> None:
    result = run("""
        pause[0] = 900_000
        timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
        program = Program([sleep, increment], 1)
        ticket = launch(program)
        timer.start()
        begin = time.monotonic()
        try:
            EXECUTOR.wait(ticket)
        except KeyboardInterrupt:
            assert time.monotonic() - begin < 0.6
        else:
            raise AssertionError("not interrupted")
        pause[0] = 1
        EXECUTOR.wait(launch(program))
        assert data.tolist() == [2.0] * 1000
    """)
    assert result.returncode == 0, result.stderr


def test_interrupt_at_exit_leaves_at_once() -> None:
    script = PROLOGUE + "pause[0] = 20_000_000\nlaunch(Program([sleep], 1))\nprint(1, flush=True)\n"
    process = subprocess.Popen([sys.executable, "-c", script], cwd=ROOT, stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    time.sleep(0.3)
    os.kill(process.pid, signal.SIGINT)
    assert process.wait(timeout=5) != 0
    process.stdout.close()


def test_loops_are_serial_without_openmp() -> None:
    script = PROLOGUE.replace(
        "from tests", 'from monograph.runtime import openmp\nopenmp.LIBRARY = "absent"\nfrom tests'
    )
    check = "EXECUTOR.wait(launch(Program([increment], 1)))\nassert data.tolist() == [1.0] * 1000\n"
    report = "assert openmp.threads() == 1 and counters().parallel_regions == 0\n"
    subprocess.run([sys.executable, "-c", script + check + report], cwd=ROOT, check=True)


PLACES = """
def places():
    "Where each thread of this process may run, apart from this one's."
    tasks = [int(each) for each in os.listdir("/proc/self/task") if int(each) != os.getpid()]
    return [os.sched_getaffinity(each) for each in tasks]

data = np.zeros(1 << 20, np.float32)
count[0] = data.size
program = Program([increment], 1)
"""


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one processor")
def test_two_threads_on_two_processors_have_one_each() -> None:
    begin = "both = set(sorted(os.sched_getaffinity(0))[:2])\nos.sched_setaffinity(0, both)\n"
    result = run(
        begin
        + PLACES
        + """
from monograph.runtime import openmp
EXECUTOR.wait(launch(program))
assert all([{each} in places() for each in both]), places()
assert os.sched_getaffinity(0) == both

openmp.set_threads(1)
EXECUTOR.wait(launch(program))
assert both in places(), places()
openmp.set_threads(0)
EXECUTOR.wait(launch(program))
assert all([{each} in places() for each in both]), places()
assert data.tolist() == [3.0] * data.size
"""
    )
    assert result.returncode == 0, result.stderr


def test_users_place_threads_themselves() -> None:
    check = (
        PLACES
        + """
EXECUTOR.wait(launch(program))
assert all([each == os.sched_getaffinity(0) for each in places()])
"""
    )
    environment = {**os.environ, "OMP_PROC_BIND": "false"}
    script = [sys.executable, "-c", PROLOGUE + check]
    subprocess.run(script, cwd=ROOT, check=True, env=environment)


def test_a_team_smaller_than_asked_for_does_all_the_work() -> None:
    script = PROLOGUE.replace(
        "import os,", "import os; os.environ['OMP_THREAD_LIMIT'] = '1'\nimport", 1
    )
    check = "EXECUTOR.wait(launch(Program([increment], 1)))\nassert data.tolist() == [1.0] * 1000\n"
    subprocess.run([sys.executable, "-c", script + check], cwd=ROOT, check=True)


def test_light_programs_run_in_the_thread_that_launches_them():
    import monograph as mg

    with mg.config.override(backend="cpu", tier0_limit=0):
        small, large = mg.ones(8), mg.ones(1 << 20)
        (small * 2).tolist(), mg.eval(large * 2)
        mg.synchronize()
        before = EXECUTOR._native.submitted.value
        assert (small * 2).tolist() == [2.0] * 8
        assert EXECUTOR._native.submitted.value == before
        mg.eval(large * 2)
        assert EXECUTOR._native.submitted.value == before + 1
        total = (small * 3).sum()  # behind one that is on its way
        assert total.item() == 24.0


def test_brief_programs_do_not_wake_the_other_thread():
    import monograph as mg

    with mg.config.override(backend="cpu", tier0_limit=0):
        brief, longer = mg.ones(8), mg.ones(1 << 15)
        mg.eval(brief * 2), mg.eval(longer * 2)
        mg.synchronize()
        native, limit = EXECUTOR._native, time.monotonic() + 30
        while not native.asleep.value and time.monotonic() < limit:
            time.sleep(0.001)
        before = native.submitted.value
        made = brief * 2
        mg.eval(made)  # nobody waits for it
        assert native.submitted.value == before
        mg.eval(longer * 2)
        assert native.submitted.value == before + 1
        assert made.tolist() == [2.0] * 8


SMALL_PRODUCTS = """
import os
import monograph as mg
mg.config.threads, mg.config.tier0_limit, mg.config.backend = 2, 0, "cpu"
from monograph.runtime.executor import EXECUTOR
threads = lambda: len(os.listdir("/proc/self/task"))
small, image = mg.rand(16, 16), mg.rand(1, 8, 6, 6)
weights = mg.rand(8, 8, 3, 3)
(small + 1).tolist()  # starts what there is to start
alone, launched = threads(), EXECUTOR._native.submitted.value
for _ in range(3):
    product, convolved = small @ small, mg.nn.functional.conv2d(image, weights)
    assert abs(product.sum().item() - (small.numpy() @ small.numpy()).sum()) < 1e-2
    convolved.sum().item()
assert threads() == alone, (threads(), alone)  # nobody was called for help
assert EXECUTOR._native.submitted.value == launched
large = mg.rand(512, 512)
mg.eval(large)
assert abs((large @ large)[0, 0].item() - (large.numpy() @ large.numpy())[0, 0]) < 1e-2
assert threads() == alone + 1, (threads(), alone)
both = lambda: ((small @ small).sum() + (large @ large).sum()).item()
both()
child = os.fork()
if not child:  # serial, behind a small product too
    both()
    os._exit(threads() - 1)
assert os.waitpid(child, 0)[1] == 0
"""


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one processor")
def test_small_products_are_done_by_the_thread_that_launches_them():
    subprocess.run([sys.executable, "-c", SMALL_PRODUCTS], cwd=ROOT, check=True)
