"""The null backend: whole training steps become Triton text, and a sample of it machine code."""

import re

import numpy as np
import pytest

import monograph as mg
from monograph import record
from monograph.backends import load
from monograph.backends.cuda.compile import compile_kernel
from monograph.backends.cuda.matmul import product
from monograph.compiler.pipeline import compile_recording
from monograph.compiler.plan import Layout
from monograph.config import config
from monograph.tracing import kind, trace
from tests.models.training import RUNS, CNNRun, monograph, train

SAMPLE = 12


def executables():
    programs = [p for kept in record.programs._by_key.values() for p in kept]
    return [p for p in programs if type(p).__name__ == "NullExecutable"]


def texts_of(name):
    """Every function that three steps of a model need, by name."""
    run = CNNRun("float32", dropout=0.3) if name == "cnn" else RUNS[name]("float32")
    before = set(map(id, executables()))
    with config.override(backend="null"):
        model = run.build(monograph())
        train(run, monograph(), model, 3)
    new = [p for p in executables() if id(p) not in before]
    return {
        function.name: function
        for program in new
        for text in program.calls.texts.values()
        for function in (text, *text.combine)
    }


@pytest.fixture(scope="module")
def texts():
    return {name: texts_of(name) for name in RUNS}


@pytest.mark.parametrize("name", RUNS)
def test_every_kernel_of_a_training_step_has_a_text(texts, name):
    assert texts[name]
    for text in texts[name].values():
        compile(text.source, text.name, "exec")


def test_a_sample_of_all_kernels_compiles_without_a_gpu(texts, tmp_path, monkeypatch):
    pytest.importorskip("triton")
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "triton"))
    kinds = {}
    for functions in texts.values():
        for function in functions.values():
            kinds.setdefault(re.sub(r"\d+", "#", function.body.split("\n", 1)[1]), function)
    every = sorted(kinds.values(), key=lambda function: (len(function.body), function.name))
    step = max(len(every) // SAMPLE, 1)
    with config.override(cache_dir=tmp_path):
        for function in every[step - 1 :: step]:
            assert compile_kernel(function).cubin.startswith(b"\x7fELF")


def test_results_are_zeros_and_launches_are_counted():
    with config.override(backend="null"):
        mg.stats.reset()
        x = mg.tensor(np.ones((3, 4), np.float32))
        y = x.exp().sum(1)
        assert y.detach().numpy().tolist() == [0, 0, 0]
        assert mg.stats().launches == 1


def test_in_place_results_keep_their_contents():
    with config.override(backend="null"):
        x = mg.tensor(np.ones(3, np.float32))
        x.mul_(2)
        assert x.detach().numpy().tolist() == [1, 1, 1]


def test_a_program_is_compiled_without_data():
    recording, numbers = trace(
        lambda x: mg.nn.functional.softmax(x * 3.0, dim=-1), kind(1 << 30, 8)
    )
    program = compile_recording(recording, load("null"))
    assert numbers == (3.0,)
    assert program.calls.launches == 1
    (text,) = program.calls.texts.values()
    assert "tl.int64" in text.body  # eight billion elements


def test_a_traced_function_must_not_read():
    with pytest.raises(RuntimeError, match="must not read"):
        trace(lambda x: x.detach().numpy(), kind(3))


# --- matrix products ------------------------------------------------------------------------------


def layouts(a, b, c):
    return dict(zip(("src", "weights", "dst"), (Layout(*each, "float32") for each in (a, b, c))))


def test_plain_products_are_swapped_into_columns():
    made = product(layouts(((8, 4), (4, 1)), ((4, 6), (6, 1)), ((8, 6), (6, 1))))
    assert made.swapped and made.batch == 1
    assert (made.a.rows, made.a.columns, made.a.leading, made.a.transposed) == (6, 4, 6, False)
    assert (made.b.rows, made.b.columns, made.b.leading, made.b.transposed) == (4, 8, 4, False)
    assert (made.d.rows, made.d.columns, made.d.leading) == (6, 8, 6)


def test_a_transposed_operand_is_taken_where_it_lies():
    made = product(layouts(((8, 4), (1, 8)), ((4, 6), (6, 1)), ((8, 6), (6, 1))))
    assert made.b.transposed and (made.b.rows, made.b.columns, made.b.leading) == (8, 4, 8)


def test_batches_that_step_as_one_are_one():
    a = ((2, 3, 8, 4), (96, 32, 4, 1))
    b = ((1, 1, 4, 6), (1, 1, 6, 1))
    c = ((2, 3, 8, 6), (144, 48, 6, 1))
    made = product(layouts(a, b, c))
    assert made.batch == 6
    assert (made.b.batch_stride, made.a.batch_stride, made.d.batch_stride) == (32, 0, 48)


@pytest.mark.parametrize(
    "a",
    [((2, 3, 8, 4), (96, 4, 12, 1)), ((8, 4), (8, 2))],
    ids=["two batch strides", "no unit stride"],
)
def test_what_the_library_cannot_take_is_declined(a):
    batch = a[0][:-2]
    b = ((*(1 for _ in batch), 4, 6), (*(1 for _ in batch), 6, 1))
    c = ((*batch, 8, 6), (*((144, 48) if batch else ()), 6, 1))
    assert product(layouts(a, b, c)) is None
