"""Programs on disk: found by the next process, never wrong, and never in the way."""

import errno
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import monograph as mg
from monograph import programs as process_programs
from monograph import record
from monograph.backends.cpu import backend, library
from monograph.compiler import digest, image
from monograph.compiler.disk import Shelf
from monograph.compiler.plan import LibraryStep, Plan
from monograph.compiler.recording import Entry, Recording
from monograph.runtime import native
from monograph.runtime.checked_file import TEMPORARY_PREFIX, read_checked, write_checked

ROOT = Path(__file__).parents[2]

TRAINING = """
import json
import numpy as np
import monograph as mg
import monograph.nn.functional as F
from monograph import nn, optim
mg.manual_seed(0)
model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
step = optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
x = mg.tensor(np.linspace(-1, 1, 128, dtype="float32").reshape(8, 16))
y = mg.tensor(np.arange(8) % 4)
losses = []
for _ in range(4):
    loss = F.cross_entropy(model(x), y)
    step.zero_grad()
    loss.backward()
    step.step()
    losses.append(loss.item())
stats = mg.stats()
print(json.dumps([stats.compilations, stats.programs_from_disk, losses]))
"""


def environment(folder, **settings):
    changed = {f"MONOGRAPH_{name.upper()}": str(value) for name, value in settings.items()}
    own = {"MONOGRAPH_CACHE_DIR": str(folder), "MONOGRAPH_BACKEND": "cpu", "PYTHONPATH": str(ROOT)}
    # Small flushes may be interpreted, which says nothing about the disk.
    return os.environ | own | {"MONOGRAPH_TIER0_LIMIT": "0"} | changed


def start(folder, program=TRAINING, **settings):
    return subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=environment(folder, **settings),
    )  # fmt: skip


def run(folder, program=TRAINING, **settings):
    """(compilations, programs from disk, results), and what was written to stderr."""
    process = start(folder, program, **settings)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    return json.loads(out), err


def programs(folder):
    return [p for p in folder.glob("programs/??/*") if not p.name.startswith(TEMPORARY_PREFIX)]


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """A folder that one process has filled, and what that process computed."""
    folder = tmp_path_factory.mktemp("cache")
    return folder, run(folder)[0]


# --- from one process to the next ---------------------------------------------------------------


def test_a_second_process_compiles_nothing(filled):
    folder, (compiled, found, losses) = filled
    assert compiled > 0 and found == 0
    assert len(programs(folder)) == compiled
    assert run(folder)[0] == [0, compiled, losses]


def test_the_cache_can_be_switched_off(filled, tmp_path):
    _, (compiled, _, losses) = filled
    assert run(tmp_path, disk_cache=0)[0] == [compiled, 0, losses]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("damage", [lambda old: old[:-100], lambda old: b"x" * 99])
def test_a_damaged_file_is_written_again(filled, damage):
    folder, (compiled, found, losses) = filled
    one, *_ = programs(folder)
    one.write_bytes(damage(one.read_bytes()))
    total = compiled + found
    assert run(folder)[0] == [1, total - 1, losses]
    assert run(folder)[0] == [0, total, losses]


def test_a_folder_that_cannot_be_made(filled, tmp_path):
    _, (compiled, _, losses) = filled
    in_the_way = tmp_path / "file"
    in_the_way.write_text("no folder")
    answer, err = run(in_the_way, verbosity=1)
    assert answer == [compiled, 0, losses]
    assert err.count("cannot be kept") == 1
    assert "cannot be kept" not in run(in_the_way)[1]


def test_a_full_disk(filled, tmp_path):
    _, (compiled, _, losses) = filled
    full = f"""
import os
def refuse(*names):
    raise OSError({errno.ENOSPC}, "No space left on device")
os.replace = refuse
"""
    assert run(tmp_path, full + TRAINING)[0] == [compiled, 0, losses]
    assert not any(path.is_file() for path in tmp_path.rglob("*"))


def test_processes_that_race(filled, tmp_path):
    _, (compiled, _, losses) = filled
    for process in [start(tmp_path), start(tmp_path)]:
        out, err = process.communicate(timeout=120)
        assert process.returncode == 0, err
        assert json.loads(out)[2] == losses
    assert run(tmp_path)[0] == [0, compiled, losses]


def test_a_process_that_is_killed_while_it_writes(filled, tmp_path):
    _, (compiled, _, losses) = filled
    fatal = "import os\nos.replace = lambda *names: os.kill(os.getpid(), 9)\n"
    process = start(tmp_path, fatal + TRAINING)
    process.communicate(timeout=120)
    assert process.returncode == -9
    assert any(path.name.startswith(TEMPORARY_PREFIX) for path in tmp_path.rglob("*"))
    assert run(tmp_path)[0] == [compiled, 0, losses]
    assert run(tmp_path)[0] == [0, compiled, losses]


# --- programs for many sizes --------------------------------------------------------------------

SIZES = """
import json
import numpy as np
import monograph as mg
import monograph.nn.functional as F
w = mg.tensor(np.linspace(-1, 1, 60, dtype="float32").reshape(5, 12), requires_grad=True)
sums = []
for n in ROWS:
    x = mg.tensor(np.linspace(0, 1, 5 * n, dtype="float32").reshape(n, 5))
    loss = F.softmax((x @ w).relu(), 1)[:, 0].mean()
    (gradient,) = mg.autograd.grad(loss, w)
    sums.append([loss.item(), gradient.numpy().tolist()])
stats = mg.stats()
print(json.dumps([stats.compilations, stats.programs_from_disk, sums]))
"""


def sizes(*rows):
    return SIZES.replace("ROWS", str(rows))


def test_sizes_that_vary_compile_nothing_in_the_next_process(tmp_path):
    compiled, found, _ = run(tmp_path, sizes(40, 64, 7))[0]
    assert (compiled, found) == (2, 0)
    again = run(tmp_path, sizes(40, 64, 7))[0]
    assert again[:2] == [0, 3]
    others = run(tmp_path, sizes(33, 100, 12, 7))[0]
    assert others[:2] == [0, 1]
    plain = run(tmp_path / "other", sizes(33, 100, 12, 7), disk_cache=0)[0]
    for (loss, gradient), (wanted, exact) in zip(others[2], plain[2], strict=True):
        assert loss == pytest.approx(wanted, rel=1e-5)
        np.testing.assert_allclose(gradient, exact, rtol=1e-4, atol=1e-6)


def test_sizes_that_were_met_run_no_pass_in_the_next_process(tmp_path):
    """Their plans are on disk. New sizes run the passes, and compile nothing."""
    wanted = run(tmp_path, sizes(40, 64, 7, 90))[0]
    refuse = """
from monograph.compiler import family, pipeline
def refuse(*_):
    raise AssertionError("a pass ran")
family.compile_template = pipeline.compile_for = refuse
"""
    known = run(tmp_path, refuse + sizes(90, 7, 64, 40))[0]
    assert known[:2] == [0, 4] and known[2] == wanted[2][::-1]
    mixed = run(tmp_path, sizes(90, 33, 7, 50))[0]
    assert mixed[:2] == [0, 2]  # the size that comes first, and the program for all others


def test_code_that_sizes_share_may_be_gone(tmp_path):
    first = run(tmp_path, sizes(40, 64, 7))[0]
    for path in programs(tmp_path):
        if read_checked(path)[1:4] == b"ELF":
            path.unlink()
    again = run(tmp_path, sizes(40, 64, 7))[0]
    assert again[:2] == [1, 1] and again[2] == first[2]


def test_sizes_that_a_kept_program_does_not_fit(tmp_path):
    run(tmp_path, sizes(40, 64))
    assert run(tmp_path, sizes(0, 33))[0][:2] == [1, 1]  # no row is a program of its own
    assert run(tmp_path, sizes(1, 34))[0][:2] == [0, 1]


@pytest.mark.parametrize("content", [b'"x"', b"[[1, 2], [3]]"])
def test_what_is_kept_of_sizes_may_be_damaged(tmp_path, content):
    run(tmp_path, sizes(40, 64))
    (kept,) = [p for p in programs(tmp_path) if read_checked(p)[:1] == b"["]
    write_checked(kept, content)
    assert run(tmp_path, sizes(33, 50))[0][:2] == [2, 0]
    assert run(tmp_path, sizes(34, 51))[0][:2] == [0, 1]


# --- what a program is known by -----------------------------------------------------------------

USER_OPERATOR = """
from __future__ import annotations
from monograph.ops.define import operator

def gain(x):
    return x * GAIN

@operator(method=False)
def amplified(x: Tensor, times: int):
    for _ in range(times):
        x = gain(x)
    return x + 1.0
"""

USER_PROGRAM = """
import json, sys
sys.path.insert(0, FOLDER)
import monograph as mg
from user_operator import amplified
y = amplified(mg.tensor([1.0, 2.0]), 2).tolist()
stats = mg.stats()
print(json.dumps([stats.compilations, stats.programs_from_disk, y]))
"""


def test_a_changed_definition_is_a_new_program(tmp_path):
    file = tmp_path / "user_operator.py"
    program = USER_PROGRAM.replace("FOLDER", repr(str(tmp_path)))

    def with_gain(text):
        file.write_text(USER_OPERATOR.replace("GAIN", text))
        return run(tmp_path / "cache", "import sys; sys.dont_write_bytecode = True\n" + program)[0]

    assert with_gain("2.0") == [1, 0, [5.0, 9.0]]
    assert with_gain("2.0") == [0, 1, [5.0, 9.0]]
    assert with_gain("3.0") == [1, 0, [10.0, 19.0]]


def recording(**changes):
    """A small recording: two leaves, added and scaled by a number."""
    leaf = mg.storage.meta_of((4, 8), mg.float32)
    facts = {
        "entries": (
            Entry(mg.add.operator, (), (-1, -2), False, 1),
            Entry(mg.mul.operator, (), (0, float), False, 1),
        ),
        "leaves": (leaf, leaf),
        "slots": (float,),
        "wanted": (1,),
        "writes": (),
    }
    return Recording(**(facts | changes))


def test_equal_recordings_have_one_name_and_others_another():
    first = recording()
    lined = tuple([Entry(**(vars(e) | {"line": "file.py:3"})) for e in first.entries])
    assert digest.digest_of(first, "cpu") == digest.digest_of(recording(entries=lined), "cpu")
    other = mg.storage.meta_of((4, 8), mg.float64)
    stopped = tuple([Entry(**(vars(e) | {"stop": True})) for e in first.entries])
    different = [
        recording(leaves=(other, other)),
        recording(wanted=(0, 1)),
        recording(writes=((1, 0),)),
        recording(slots=(int,)),
        recording(entries=stopped),
        recording(entries=first.entries[:1], wanted=(0,)),
    ]
    names = {digest.digest_of(r, "cpu") for r in [first, *different]}
    assert len(names) == 1 + len(different)
    assert digest.digest_of(first, "another machine") not in names


def test_attributes_are_part_of_the_name():
    def named(*attributes):
        entry = Entry(mg.add.operator, attributes, (-1, -2), False, 1)
        return digest.digest_of(recording(entries=(entry,), wanted=(0,)), "cpu")

    view = mg.ops.shape.transpose.operator
    values = [
        1, 1.0, True, None, "1", (1,), ((1,),), (1, (2, 3)), ((1, 2), 3), mg.float32, mg.int64,
        slice(1, 2), np.arange(3), np.arange(4), {"a": 1}, ((view, (0, 1)),), ((view, (0, 2)),),
    ]  # fmt: skip
    names = [named(value) for value in values]
    assert None not in names and len(set(names)) == len(values)
    assert named(object()) is None  # no other process could know it


def test_a_package_edited_under_a_running_process_is_not_kept(monkeypatch):
    monkeypatch.setattr(digest, "_STARTED", 0.0)
    digest.package_digest.cache_clear()
    assert digest.digest_of(recording(), "cpu") is None


def test_another_processor_is_another_machine(monkeypatch):
    here = backend.identity()
    monkeypatch.setattr(native, "host_cpu", lambda: "i486")
    assert backend.identity() != here
    names = {digest.digest_of(recording(), known) for known in (here, backend.identity())}
    assert len(names) == 2


# --- images -------------------------------------------------------------------------------------


@pytest.fixture
def compiled():
    """The image of a program with a library call, an empty result and an overwritten leaf."""
    with mg.config.override(backend="cpu"), record.programs.observed() as made:
        x = mg.tensor(np.ones((32, 48), "float32"))
        total = mg.tensor(np.zeros(8, "float32"))
        x.tolist(), total.tolist()
        product = x @ x.transpose(0, 1)
        total.add_(product.sum())
        empty = x[:0] * 2
        assert total.tolist() == [32 * 32 * 48.0] * 8 and empty.shape == (0, 48)
    return made[-1].image


def test_an_image_survives_its_bytes(compiled):
    again = image.from_bytes(compiled.to_bytes())
    assert again == compiled
    assert isinstance(again.plan, Plan)
    assert any(0 in shape for shape, _ in again.results)


def test_a_library_that_declines_is_no_error(compiled, tmp_path, monkeypatch):
    if not any(isinstance(step, LibraryStep) for step in compiled.plan.steps):
        pytest.skip("oneDNN takes no part here")
    with mg.config.override(cache_dir=tmp_path):
        process_programs.shelf.store("ab" * 20, compiled)
        assert process_programs._restore("ab" * 20, "cpu") is not None
        monkeypatch.setattr(library, "workspace", lambda steps: {"scratchpad": 1})
        assert process_programs._restore("ab" * 20, "cpu") is None


# --- the folder is bounded ----------------------------------------------------------------------


def test_the_programs_not_used_for_longest_are_deleted(compiled, tmp_path):
    size = len(compiled.to_bytes())
    names = [f"{number:02d}" * 20 for number in range(8)]
    with mg.config.override(cache_dir=tmp_path):
        shelf = Shelf(limit=6 * size)
        for age, name in enumerate(names):
            shelf.store(name, compiled)
            os.utime(shelf.path(name), (1000 + age, 1000 + age))
        assert shelf.load(names[0]) is not None  # used again, and so the newest
        abandoned = shelf.path(names[0]).parent / f"{TEMPORARY_PREFIX}1"
        abandoned.write_bytes(b"half")
        long_ago = time.time() - 7200
        os.utime(abandoned, (long_ago, long_ago))
        shelf.trim()
        kept = {path.name for path in programs(tmp_path)}
        assert kept == {names[0], *names[-3:]}
        assert not abandoned.exists()
