"""Batches of modules: the same code with workers, without, and with workers that die."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from monograph.runtime import native
from monograph.runtime.batch import WORKERS, Batch

ROOT = Path(__file__).parents[2]
TEXTS = [f"define i64 @f{n}() {{ ret i64 {n} }}" for n in range(40)]


@pytest.fixture(autouse=True)
def no_worker_stays():
    yield
    WORKERS.end()


def compiled(helpers, texts=TEXTS):
    with Batch(helpers) as batch:
        for text in texts:
            batch.submit(text)
        return batch.collect()


def wait_until(condition):
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)


def waiting_for_help(texts=TEXTS):
    """A batch of which the one worker has started."""
    batch = Batch(1)
    worker = WORKERS._started[0]
    wait_until(lambda: worker._started)
    for text in texts:
        batch.submit(text)
    return batch, worker


def test_workers_change_nothing():
    alone = compiled(0)
    assert compiled(2) == alone
    assert compiled(2) == alone
    batch, _ = waiting_for_help()
    with batch:
        assert batch.collect() == alone


def test_a_worker_does_the_work():
    batch, _ = waiting_for_help(TEXTS[:1])
    with batch:
        wait_until(lambda: batch._codes)
        assert batch._codes == {0: native.compile_to_object(TEXTS[0])}


def test_a_worker_that_dies_costs_only_its_help():
    compiled(1)
    batch, worker = waiting_for_help()
    os.kill(worker._process.pid, signal.SIGKILL)
    with batch:
        assert batch.collect() == compiled(0)
    assert compiled(1) == compiled(0)  # with a new one


def test_errors_are_those_of_this_process():
    batch, _ = waiting_for_help(["define nonsense", *TEXTS[:3]])
    with pytest.raises(native.NativeError, match="rejected"), batch:
        batch.collect()
    assert compiled(1) == compiled(0)


def test_one_batch_has_the_workers_at_a_time():
    with Batch(1) as first, Batch(1) as second:
        assert first._threads and not second._threads
        second.submit(TEXTS[0])
        assert second.collect() == [native.compile_to_object(TEXTS[0])]


def test_workers_do_not_run_the_users_script(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "print('once')\n"
        "from monograph.runtime.batch import Batch\n"
        "with Batch(1) as batch:\n"
        "    batch.submit('define void @f() { ret void }')\n"
        "    while not batch._codes: pass\n"
    )
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, timeout=60, env=environment
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "once\n", "")
