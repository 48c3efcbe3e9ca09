"""The `monograph` command itself: its help, its version, and words that it does not know."""

import subprocess
import sys
from importlib import metadata

import pytest

import monograph as mg
from monograph.cli.main import COMMANDS, main


def refused(capsys, *words):
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2
    return capsys.readouterr().err


def test_an_unknown_command_is_refused(capsys):
    assert "doctor" in refused(capsys, "surgeon")


def test_without_arguments_it_shows_its_help(capsys):
    assert main([]) == 2
    shown = capsys.readouterr().out
    assert all(f"    {name} " in shown for name in COMMANDS)


def test_the_version_is_the_package_s():
    command = [sys.executable, "-m", "monograph", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == f"monograph {mg.__version__}\n"
    assert metadata.version("monograph") == mg.__version__


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("doctor", "extra"), "monograph doctor: error: unrecognized arguments: extra"),
        (("run", "--nope", "train.py"), "monograph run: error: unrecognized arguments: --nope"),
        (("demo", "--epochs", "0"), "argument --epochs: '0' is not a whole number, at least 1"),
        (("demo", "--limit", "-5"), "argument --limit: '-5' is not a whole number, at least 1"),
        (("demo", "--backend", "abacus"), "argument --backend: invalid choice: 'abacus'"),
    ],
)
def test_a_wrong_argument_is_named_with_its_command(capsys, words, message):
    assert message in refused(capsys, *words)
