"""`monograph demo` on a few images."""

import re

import pytest

from monograph.cli.main import main


def test_demo_learns(capsys):
    pytest.importorskip("monograph.nn")
    assert main(["demo", "--epochs", "3", "--limit", "512", "--batch-size", "32"]) == 0
    report = capsys.readouterr().out
    accuracy = float(re.findall(r"accuracy ([\d.]+)%", report)[-1])
    assert accuracy > 70
    assert "programs compiled" in report
