"""`monograph run`: arguments, exit codes, tracebacks and the summary, as users see them."""

import gc
import os
import subprocess
import sys
from pathlib import Path

import pytest

from monograph.cli.run import seldom_collected

ROOT = Path(__file__).parents[2]
TRAINING = """
import sys
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

def main():
    print(sys.argv[1:], __name__)
    net = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    data = TensorDataset(torch.randn(32, 4), torch.randint(0, 2, (32,)))
    for x, y in DataLoader(data, batch_size=8, num_workers=2):
        loss = F.cross_entropy(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(loss.dtype, "monograph" in sys.modules)

if __name__ == "__main__":
    main()
"""


def run(*words, folder=ROOT):
    command = [sys.executable, "-m", "monograph.cli.main", "run", *map(str, words)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, env=environment)


@pytest.fixture
def script(tmp_path):
    def write(text, name="train.py"):
        path = tmp_path / name
        path.write_text(text)
        return path

    return write


def test_a_training_script_runs_unmodified(script):
    done = run(script(TRAINING), "--epochs", "3", "--quiet")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "['--epochs', '3', '--quiet'] __main__\ntorch.float32 True\n"
    assert "4 optimizer steps" in done.stderr
    assert "programs: " in done.stderr


def test_quiet_says_nothing(script):
    done = run("--quiet", script("import torch; print(torch.ones(2).sum().item())"))
    assert (done.stdout, done.stderr, done.returncode) == ("2.0\n", "", 0)


def test_the_collector_runs_seldom_and_is_as_before_afterwards():
    before, held = gc.get_threshold(), gc.get_freeze_count()
    try:
        with seldom_collected():
            assert gc.get_threshold()[0] > before[0]
            assert gc.get_freeze_count() > held
        assert gc.get_threshold() == before
        gc.set_threshold(0)
        with seldom_collected():
            assert gc.get_threshold()[0] == 0  # whoever has switched it off
    finally:
        gc.set_threshold(*before)


def test_modules_run_by_name(script, tmp_path):
    script("import sys, torch; print(__name__, sys.argv[1:], torch.__version__)", "program.py")
    done = run("--quiet", "-m", "program", "--flag", folder=tmp_path)
    assert done.stdout == "__main__ ['--flag'] 2.13.0\n", done.stderr


@pytest.mark.parametrize(
    ("text", "code"), [("raise SystemExit(3)", 3), ("import sys; sys.exit()", 0), ("1 / 0", 1)]
)
def test_exit_codes(script, text, code):
    assert run("--quiet", script(text)).returncode == code


LATE = {  # the label is wrong in the last calls, whose results nobody reads
    "pending": "x = f(4)\nprint(x.shape)\n",
    "behind sys.exit": "import sys\ndef main():\n    x = f(4)\n    sys.exit(0)\nmain()\n",
    "launched": "for n in range(6):\n    w = w + f(n)\n    torch.eval(w)\n",
}


@pytest.mark.parametrize("name", LATE)
def test_errors_of_the_last_calls_are_shown(script, name):
    text = f"""
import torch
import monograph
torch.eval = monograph.eval
w = torch.zeros(())
def f(label):
    return torch.nn.functional.cross_entropy(torch.ones(1, 4), torch.tensor([label]))
{LATE[name]}"""
    path = script(text)
    done = run("--quiet", path)
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()  # none of ours
    assert "target 4 is out of range for 4 classes" in line
    assert line.endswith(f"recorded at {path}:7")


def test_what_is_pending_and_cannot_fail_is_not_computed(script):
    done = run(script("import torch\nx = torch.ones(2) + 1\nprint(x.shape)\n"))
    assert done.returncode == 0
    assert "program" not in done.stderr


def test_what_cannot_be_run_is_said_in_one_line(tmp_path):
    absent = tmp_path / "absent.py"
    cases = {
        (absent,): (2, f"can't open file '{absent}': No such file or directory"),
        (tmp_path,): (1, f"can't find '__main__' module in '{tmp_path}'"),
        ("-m", "no_such_module"): (1, "No module named no_such_module"),
    }
    for words, (code, message) in cases.items():
        done = run(*words, folder=tmp_path)
        python = subprocess.run([sys.executable, *words], cwd=tmp_path, capture_output=True)
        assert done.returncode == python.returncode == code
        assert done.stderr == f"monograph run: {message}\n"


def test_a_syntax_error_is_shown_as_python_shows_it(script):
    path = script("x = (\n")
    python = subprocess.run([sys.executable, str(path)], capture_output=True, text=True)
    done = run(path)
    assert (done.stderr, done.returncode) == (python.stderr, python.returncode)


def test_a_folder_runs_by_its_main_file(script, tmp_path):
    script("import torch, inside; print(__name__, inside.two)", "__main__.py")
    script("two = 2", "inside.py")
    assert run("--quiet", tmp_path).stdout == "__main__ 2\n"


def test_errors_show_the_lines_of_the_script_only(script):
    text = "import torch\n\ndef f(x):\n    return torch.nn.Linear(4, 2)(x)\n\nf(torch.ones(3, 5))\n"
    done = run("--quiet", script(text))
    lines = [line for line in done.stderr.splitlines() if line.startswith("  File ")]
    assert [line.split(", ", 1)[1] for line in lines] == ["line 6, in <module>", "line 4, in f"]
    assert "OperandError: linear: " in done.stderr.splitlines()[-1]


BUGS = {
    "wrong shape": ("torch.ones(2, 3) @ torch.ones(2, 3)", "RuntimeError"),
    "missing key": (
        "torch.nn.Linear(2, 2).load_state_dict({'weight': torch.ones(2, 2)})", "RuntimeError",
    ),
    "label out of range": (
        "torch.nn.functional.cross_entropy(torch.ones(2, 3), torch.tensor([0, 5])).item()",
        "IndexError",
    ),
    "nan under anomaly detection": (
        "torch.autograd.set_detect_anomaly(True); x = torch.tensor(-1.0, requires_grad=True); "
        "(x.sqrt() * 1.0).backward()", "RuntimeError",
    ),
    "dtype": ("torch.ones(2).requires_grad_().long().backward()", "RuntimeError"),
    "absent name": ("torch.nn.Conv2D", "AttributeError"),
}  # fmt: skip


@pytest.mark.parametrize("name", BUGS)
def test_bugs_of_a_script_fail_as_under_pytorch(script, name):
    action, kind = BUGS[name]
    text = f"""
import torch
try:
    {action}
except {kind} as problem:
    import traceback
    lines = [frame.lineno for frame in traceback.extract_tb(problem.__traceback__)
             if frame.filename == __file__]
    print("caught", lines[-1])
"""
    path = script(text)
    theirs = subprocess.run([sys.executable, str(path)], capture_output=True, text=True)
    assert theirs.stdout == run("--quiet", path).stdout == "caught 4\n"
