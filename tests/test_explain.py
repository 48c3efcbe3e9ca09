"""`mg.explain` and `mg.explain_last`: what they report is what runs."""

import subprocess
import sys

import numpy as np
import pytest

import monograph as mg
import monograph.nn.functional as F
from monograph import nn
from monograph.runtime import openmp
from monograph.runtime.program import counters

from .models import networks

pytestmark = pytest.mark.compiled


def array(*shape):
    return mg.tensor(np.random.default_rng(0).standard_normal(shape).astype(np.float32))


# --- programs of all sorts ------------------------------------------------------------------------


def softmax_of_a_product():
    x = array(512, 300)
    return lambda: F.softmax(x @ x.T, 1).sum(0)


def convolutions():
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 16, 3, groups=2),
        nn.MaxPool2d(2), nn.Flatten(), nn.Linear(16 * 3 * 3, 10),
    )  # fmt: skip
    optimizer = mg.optim.AdamW(model.parameters())
    images, labels = array(16, 3, 8, 8), mg.tensor(np.arange(16) % 10)

    def step():
        loss = F.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    return step


def language_model(layers=2):
    model = networks.gpt(nn, F, 20, context=16, width=32, heads=2, layers=layers)
    tokens = mg.tensor(np.arange(32).reshape(2, 16) % 20)

    def step():
        loss = F.cross_entropy(model(tokens).view(-1, 20), tokens.view(-1))
        loss.backward()
        gradients = [p.grad for p in model.parameters()]
        model.zero_grad()
        return gradients

    return step


def on_the_host():
    x = array(40, 30)
    return lambda: mg.searchsorted(mg.arange(5.0), x * 2).double() + 1


def along_an_axis():
    x = array(300, 400)

    def run():
        values, indices = mg.sort(x * 2, 1)
        return mg.cumsum(values, 0), mg.cummax(x, 1).values, mg.topk(x[:5], 70).indices, indices

    return run


def several_flushes():
    x = array(300, 200)

    def run():
        top = (x.exp().sum(1) * 2).max().item()
        return (x - top).tanh() @ x.T

    return run


def recurrent():
    layer = nn.LSTM(12, 16)
    x = array(5, 3, 12)
    return lambda: layer(x)[0].sum(0)


PROGRAMS = [
    softmax_of_a_product, convolutions, language_model, on_the_host, along_an_axis,
    several_flushes, recurrent,
]  # fmt: skip


def launched(report):
    """How many kernels a launch runs: those of a loop once a turn."""
    return sum(kernel.times for kernel in report.kernels)


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_native_counter_agrees(program):
    function = program()
    kept = [function()]  # state has its memory
    mg.synchronize()
    before = counters()
    report = mg.explain(function)
    mg.synchronize()
    assert counters().kernels - before.kernels == launched(report) > 0
    before = counters()
    kept.append(function())
    mg.eval(kept[-1])
    mg.synchronize()
    assert counters().kernels - before.kernels == launched(report)


REGIONS = """
import numpy as np
import monograph as mg
from monograph.runtime.program import counters
from monograph.backends.cpu.onednn.primitive import ALONE_BYTES, ALONE_WORK
from tests.test_explain import PROGRAMS

mg.config.threads = 2
for program in PROGRAMS:
    function = program()
    kept = function()
    mg.eval(kept)
    mg.synchronize()
    before = counters().parallel_regions
    report = mg.explain(function)
    mg.synchronize()
    entered = counters().parallel_regions - before
    named = ("library", "copy")
    there = [k for k in report.kernels if k.kind in named and not k.source and not k.on_host]
    calls = sum(k.times for k in there if k.flops > ALONE_WORK or k.bytes > ALONE_BYTES)
    assert report.parallel_regions == entered + calls, (program, report.parallel_regions, entered)
    print(entered)
"""


@pytest.mark.skipif(openmp.library() is None, reason="no OpenMP")
def test_parallel_regions_are_those_that_are_entered():
    done = subprocess.run([sys.executable, "-c", REGIONS], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert sum(map(int, done.stdout.split())) > 0


# --- what is in a report --------------------------------------------------------------------------


def test_every_field_of_a_kernel():
    report = mg.explain(convolutions())
    assert {k.kind for k in report.kernels} == {"generated", "library", "copy"}
    for kernel in report.kernels:
        assert kernel.name and kernel.bytes >= kernel.least_bytes > 0
    generated = [k for k in report.kernels if k.kind == "generated"]
    assert all(k.source.startswith(f"kernel {k.name}") for k in generated)
    library = [k for k in report.kernels if k.kind == "library"]
    assert all(k.flops > 0 for k in library)
    assert all(k.flops == 0 for k in report.kernels if k.kind == "copy")


def test_bytes_and_operations_of_a_map():
    x, y = array(100, 50), array(100, 50)
    (kernel,) = mg.explain(lambda: (x * y + 1).exp()).kernels
    assert kernel.bytes == kernel.least_bytes == 3 * 100 * 50 * 4 + 8  # the 1 is a number at hand
    assert kernel.flops == 3 * 100 * 50


def test_rows_too_long_for_the_cache_are_read_again():
    short, long = array(64, 512), array(4, 1 << 19)
    (kernel,) = mg.explain(lambda: F.softmax(short, 1)).kernels
    assert kernel.bytes == kernel.least_bytes
    kernels = mg.explain(lambda: F.softmax(long, 1)).kernels
    assert sum(k.bytes for k in kernels) > 1.4 * 2 * 4 * long.numel()


def test_a_turned_copy_is_a_copy():
    x = array(64, 32)
    (kernel,) = mg.explain(lambda: x.T.contiguous()).kernels
    assert (kernel.kind, kernel.flops) == ("copy", 0)


def test_more_layers_have_no_more_distinct_regions():
    three, four = [mg.explain(language_model(layers)) for layers in (3, 4)]
    assert four.regions > three.regions
    assert four.distinct_regions == three.distinct_regions < three.regions


def test_all_flushes_are_reported():
    report = mg.explain(several_flushes())
    assert report.flushes == ["read", "explain"]
    assert len(report.cache) == 2
    assert report.nodes_recorded == 8
    assert report.compile_seconds == pytest.approx(sum(report.pass_seconds.values()))
    assert {"expand", "fuse", "emit"} <= report.pass_seconds.keys()
    assert report.arena_bytes >= report.arena_lower_bound > 0


def test_nothing_is_reported_of_nothing():
    report = mg.explain(lambda: None)
    assert (report.kernels, report.flushes, report.regions) == ([], [], 0)
    assert "nothing was pending" in str(report)


# --- caches ---------------------------------------------------------------------------------------


def test_the_cache_tells_where_a_program_is():
    x = array(30, 41)
    function = lambda t: (t.sin() * 3 - t).cos()  # noqa: E731
    with mg.config.override(disk_cache=False):
        first = mg.explain(function, x)
        assert first.cache == [
            "not found: these operators were not recorded before, and the disk cache is off"
        ]
        assert mg.explain(function, x).cache == ["found in memory"]


def test_the_cache_tells_of_other_sizes_and_of_the_disk(tmp_path):
    with mg.config.override(cache_dir=tmp_path):
        kept = (array(30, 42).sin() * 5 - 1).tan()
        mg.eval(kept)
        report = mg.explain(lambda t: (t.sin() * 5 - 1).tan(), array(31, 42))
        assert report.cache == ["not found: other sizes than before (30 → 31), and not on disk"]


def test_explain_last_tells_why_a_program_was_made(tmp_path):
    with mg.config.override(cache_dir=tmp_path):
        x = array(30, 43)
        for _ in range(2):
            mg.eval((x.tan() * 7 - 1).cos())
        again, first = mg.explain_last().splitlines()[:2]
    assert again == "4 operators, because of: eval"
    assert first == f"{again}; not found: these operators were not recorded before, and not on disk"
