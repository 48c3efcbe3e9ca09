"""Whatever happens to a process or to its cache, results stay right and the next call works.

Elsewhere: two processes that compile the same program, a writer that is killed and damaged files
(`compiler/test_disk.py`), a fork after a parallel region and interrupts at given places
(`test_semantics.py`), a compile worker that dies (`runtime/test_batch.py`).
"""

import errno
import os
import random
import shutil
import signal
import subprocess
import sys
import time

import pytest

from .compiler.test_disk import TRAINING, environment, programs, run, start


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """A folder that one process has filled, and what that process computed."""
    folder = tmp_path_factory.mktemp("cache")
    return folder, run(folder)[0]


@pytest.fixture
def folder(filled, tmp_path):
    """A copy of it that may be spoilt."""
    shutil.copytree(filled[0], tmp_path / "cache")
    return tmp_path / "cache"


# --- kill -9 --------------------------------------------------------------------------------------

# Says when it compiles, and which worker processes there are, before it goes on.
TELLING = """
import sys
from monograph.backends.cpu import backend
from monograph.runtime.batch import WORKERS, Batch
backend.KERNELS_WORTH_HELP = 1
backend.MODULE_CHARACTERS = 1
collect = Batch.collect
def telling(batch):
    print("compiling", *[worker._process.pid for worker in WORKERS._started], flush=True)
    return collect(batch)
Batch.collect = telling
"""


def is_gone(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] == "Z"  # ended, not yet collected
    except FileNotFoundError:
        return True


@pytest.mark.parametrize("after", [0.0, 0.02, 0.1])
def test_kill_9_during_compilation(filled, tmp_path, after):
    _, (compiled, _, losses) = filled
    process = start(tmp_path, TELLING + TRAINING, threads=2)
    said = process.stdout.readline().split()
    assert said[0] == "compiling"
    time.sleep(after)
    process.kill()
    process.communicate(timeout=60)
    workers = [int(pid) for pid in said[1:]]
    assert workers
    limit = time.monotonic() + 30
    while not all(map(is_gone, workers)) and time.monotonic() < limit:
        time.sleep(0.05)
    assert all(map(is_gone, workers))  # they end with the process that they compiled for
    answer, _ = run(tmp_path)
    assert answer[0] + answer[1] == compiled and answer[2] == losses
    assert run(tmp_path)[0] == [0, compiled, losses]


# --- folders --------------------------------------------------------------------------------------

READ_ONLY = f"""
import os, pathlib, tempfile
def refuse(*args, **kwargs):
    raise OSError({errno.EROFS}, "Read-only file system")
tempfile.mkstemp = os.utime = os.replace = os.unlink = os.mkdir = pathlib.Path.mkdir = refuse
"""

FULL = """
import os, tempfile
make = tempfile.mkstemp
def onto_a_full_disk(*args, **kwargs):
    handle, name = make(*args, **kwargs)
    os.close(handle)
    return os.open("/dev/full", os.O_WRONLY), name  # every write: no space left on device
tempfile.mkstemp = onto_a_full_disk
"""


def test_a_read_only_folder_that_is_filled_serves(filled, folder):
    _, (compiled, _, losses) = filled
    before = sorted(folder.rglob("*"))
    assert run(folder, READ_ONLY + TRAINING)[0] == [0, compiled, losses]
    assert sorted(folder.rglob("*")) == before


def test_a_read_only_folder_that_is_empty_is_no_error(filled, tmp_path):
    _, (compiled, _, losses) = filled
    answer, err = run(tmp_path, READ_ONLY + TRAINING, verbosity=1)
    assert answer == [compiled, 0, losses]
    assert err.count("cannot be kept") == 1 and "Read-only" in err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_permission_to_write(filled, tmp_path):
    _, (compiled, _, losses) = filled
    tmp_path.chmod(0o500)
    assert run(tmp_path)[0] == [compiled, 0, losses]
    tmp_path.chmod(0o700)


def test_a_disk_that_is_full_while_a_program_is_written(filled, tmp_path):
    _, (compiled, _, losses) = filled
    answer, err = run(tmp_path, FULL + TRAINING, verbosity=1)
    assert answer == [compiled, 0, losses]
    assert "No space left" in err
    assert not any(path.is_file() for path in tmp_path.rglob("*"))  # nothing half-written stays
    assert run(tmp_path)[0] == [compiled, 0, losses]  # there is space again


def empty(path):
    path.write_bytes(b"")


def noise(path):
    path.write_bytes(random.Random(0).randbytes(5000))


def cut(path):
    path.write_bytes(path.read_bytes()[:-1])


def one_bit(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("spoil", [empty, noise, cut, one_bit])
def test_a_folder_filled_with_garbage(filled, folder, spoil):
    _, (compiled, _, losses) = filled
    for path in [p for p in folder.rglob("*") if p.is_file()]:
        spoil(path)
    assert run(folder)[0] == [compiled, 0, losses]
    assert run(folder)[0] == [0, compiled, losses]  # it was repaired


def test_folders_where_files_should_be(filled, folder):
    _, (compiled, _, losses) = filled
    for path in [p for p in folder.rglob("*") if p.is_file()]:
        path.unlink()
        (path / "inside").mkdir(parents=True)
    assert run(folder)[0] == [compiled, 0, losses]
    assert run(folder)[0] == [compiled, 0, losses]


# --- another processor ----------------------------------------------------------------------------

LESSER = """
from monograph.runtime import native
found = native.host_features()
wide = ("avx512",)
lesser = ",".join(f for f in found.split(",") if not f.lstrip("+-").startswith(wide))
native.host_features = lambda: lesser + ",-avx512f"
native.host_cpu = lambda: "x86-64-v2"
"""


def test_a_cache_made_on_another_processor(filled, folder):
    _, (compiled, _, losses) = filled
    answer, _ = run(folder, LESSER + TRAINING)
    assert answer[:2] == [compiled, 0]
    assert answer[2] == pytest.approx(losses, rel=1e-5)
    assert len(programs(folder)) == 2 * compiled
    assert run(folder, LESSER + TRAINING)[0] == [0, compiled, answer[2]]  # each finds its own
    assert run(folder)[0] == [0, compiled, losses]


# --- Ctrl-C ---------------------------------------------------------------------------------------

INTERRUPTED = """
import os, random, signal, threading, time
import numpy as np
import monograph as mg
import monograph.nn.functional as F
from monograph import nn, optim, record
from monograph.programs import Programs

signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
x = mg.tensor(np.linspace(-1, 1, 128, dtype="float32").reshape(8, 16))
y = mg.tensor(np.arange(8) % 4)
mg.manual_seed(0)
model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
optimizer = optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

def step():
    loss = F.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    mg.synchronize()

def state():
    kept = [p.detach().numpy().copy() for p in model.parameters()]
    return kept + [optimizer.state[p]["momentum_buffer"].numpy().copy() for p in model.parameters()]

def equal(a, b):
    return all(np.array_equal(p, q) for p, q in zip(a, b, strict=True))

step()
saved = {name: value.numpy().copy() for name, value in model.state_dict().items()}
rest = optimizer.state_dict()
before = state()
started = time.perf_counter()
record.programs = Programs()
step()
took = time.perf_counter() - started
after = state()
assert not equal(before, after)
draw = random.Random(SEED)
hit = 0
for _ in range(12):
    model.load_state_dict({name: mg.tensor(value) for name, value in saved.items()})
    optimizer.load_state_dict(rest)
    for p, value in zip(model.parameters(), before[4:], strict=True):
        optimizer.state[p]["momentum_buffer"].copy_(mg.tensor(value))
    mg.synchronize()
    assert equal(state(), before)
    record.programs = Programs()  # so that the flush compiles
    timer = threading.Timer(draw.uniform(0, 1.2) * took, os.kill, (os.getpid(), signal.SIGINT))
    try:
        timer.start()
        step()
        time.sleep(took)
    except KeyboardInterrupt:
        hit += 1
    timer.join()
    try:
        time.sleep(0.01)  # one that came late
    except KeyboardInterrupt:
        pass
    found = state()
    assert equal(found, before) or equal(found, after), "half of a step was taken"
    if equal(found, before):
        step()
        assert equal(state(), after), "the next call does not work"
print(hit)
"""


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.long)])
def test_ctrl_c_takes_a_whole_step_or_none(tmp_path, seed):
    program = INTERRUPTED.replace("SEED", str(seed))
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=300,
        env=environment(tmp_path, disk_cache=0),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 3


def test_ctrl_c_at_the_prompt_of_a_shell_ends_the_process(tmp_path):
    """Workers ignore it, and so nothing is left running behind a script that it ended."""
    process = start(
        tmp_path,
        "import signal\n"
        + TELLING
        + """
signal.signal(signal.SIGINT, signal.default_int_handler)
"""
        + TRAINING,
        threads=2,
    )
    said = process.stdout.readline().split()
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode != 0 and "KeyboardInterrupt" in err
    limit = time.monotonic() + 30
    while not all(is_gone(int(pid)) for pid in said[1:]) and time.monotonic() < limit:
        time.sleep(0.05)
    assert all(is_gone(int(pid)) for pid in said[1:])
