"""A pass in one file and one line: it runs, is timed, verified and dumped."""

import numpy as np
import pytest

import monograph as mg
import monograph.nn.functional as F
from monograph.compiler import pipeline
from monograph.ir import build, dtypes
from monograph.ir.node import Map, ancestors

from .example import load

A = np.arange(12, dtype=np.float32).reshape(4, 3)


@pytest.fixture
def cheapen(tmp_path, monkeypatch):
    name = "monograph.compiler.cheapen_example"
    return load(monkeypatch, tmp_path / "cheapen_example.py", "Add a pass", name).cheapen


@pytest.fixture
def in_pipeline(cheapen, monkeypatch):
    """The line in `compile_for`: here the pass follows `simplify` in the same step."""
    mg.synchronize()  # what other tests left pending is done with
    simplify = pipeline.simplify
    seen = []

    def both(outputs):
        seen.append(divisions(simplify(outputs)))
        made = cheapen(simplify(outputs))
        seen.append(divisions(made))
        return made

    monkeypatch.setattr(pipeline, "simplify", both)
    return seen


def divisions(outputs):
    return sum(isinstance(n, Map) and n.function == "div" for n in ancestors(outputs))


def loss(target):
    return F.mse_loss(mg.tensor(A.reshape(-1)[:8]), target)  # divides by 8, its number of elements


@pytest.mark.compiled
def test_the_pass_changes_the_graph_and_not_the_result(in_pipeline):
    target = mg.tensor(np.ones(8, np.float32))
    with mg.config.override(disk_cache=False):
        report = mg.explain(lambda: loss(target))
    assert in_pipeline == [1, 0]
    assert "simplify" in report.pass_seconds
    assert loss(target).item() == np.mean((A.reshape(-1)[:8] - 1) ** 2)


def test_other_divisions_stay(cheapen):
    x = build.buffer(0, (4,), dtypes.float32)
    kept = x / 3.0
    assert cheapen([kept]) == [kept]
    (changed,) = cheapen([x / -4.0])
    assert divisions([changed]) == 0
    assert build.constant_value(changed.inputs[1]) == -0.25


def test_a_step_is_timed_and_dumped(cheapen, capsys):
    made = pipeline.Compilation(None)
    with mg.config.override(dump="cheapen"), made.step("cheapen"):
        made.graph = cheapen([build.buffer(0, (4,), dtypes.float32) / 2.0])
    assert [p.name for p in made.passes] == ["cheapen"]
    assert "--- cheapen" in capsys.readouterr().err
