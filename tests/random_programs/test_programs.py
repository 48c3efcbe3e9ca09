"""Random programs: however they are flushed and wherever they run, they mean what PyTorch means.

A failing program is shortened and shown as Python, to be pasted and run. Most programs run on the
reference alone; a share is compiled, run operator by operator, or compiled with bounds compared.
"""

import re
import warnings

import pytest

import monograph as mg
from tests.random_programs.compose import compose
from tests.random_programs.outcome import MODES, disagreement, expected, well_posed
from tests.random_programs.shrink import shrink
from tests.random_programs.writer import Program

# How many programs run in each mode: always, and with the long tests.
COUNTS = {
    "reference": (160, 1200), "eager reference": (40, 300), "cpu": (16, 400), "eager": (4, 60),
    "bounds": (8, 100),
}  # fmt: skip
CHUNK = 4  # programs of a test


def chunks(first, which):
    """(mode, seeds) for each test."""
    for number, (mode, counts) in enumerate(COUNTS.items()):
        start = first + 100_000 * number
        for seed in range(start, start + counts[which], CHUNK):
            yield pytest.param(mode, seed, id=f"{mode.replace(' ', '-')}-{seed}")


def check(mode, seed, depth):
    for each in range(seed, seed + CHUNK):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            program = compose(each, depth)
            found = disagreement(program, mode)
            if found is None:
                continue
            kind = re.split(r"[\d:]", found)[0]
            again = lambda p, kind=kind: (disagreement(p, mode) or "").startswith(kind)  # noqa: E731
            short = shrink(program, again)
            found = disagreement(short, mode)
        pytest.fail(f"program {each}, {mode}: {found}\n\n{short}\n", pytrace=False)


@pytest.mark.parametrize(("mode", "seed"), list(chunks(0, 0)))
def test_programs(mode, seed):
    check(mode, seed, depth=24)


@pytest.mark.long
@pytest.mark.parametrize(("mode", "seed"), list(chunks(10_000_000, 1)))
def test_many_programs(mode, seed):
    check(mode, seed, depth=40)


# --- programs that once went wrong ---

FOUND = {
    "a view of what is known, of data that was written over": """
        x = mg.tensor([-0.978, 0.666], dtype=mg.float64).reshape((2,)).requires_grad_()
        read(x)
        y = x.index_select(0, mg.tensor([1])).reshape([])
        with mg.no_grad(): x.fill_(0.25)
        loss = (y * 0.4).sum()
        loss.backward(retain_graph=True)
    """,
    "a row of what was reshaped across its axes": """
        x = mg.tensor([1.5, -0.5, 1.0]).reshape(3, 1, 1) + mg.ones(2, 4)
        y = x.reshape([4, 6])[None, -3]
        read(y.contiguous())
        y.stride()
    """,
    "strides of what was cut off": """
        x = mg.tensor([1.6, 1.8, -1.3]).requires_grad_()
        y = (x * 2).detach().as_strided([2], [2], 0)
        loss = (x[:2] * y).sum()
        loss.backward()
    """,
    "a tensor written to itself with one axis more": """
        x = mg.tensor([1.0, 2.0])
        x[None] = x
        x[:] = x[None]
    """,
    "fill keeps what was there on the tape": """
        x = mg.tensor([1.5, -0.5], dtype=mg.float32).requires_grad_()
        y = x * 2
        y.zero_()
        z = x + 1
        z.fill_(2)
        loss = (y + z).sum()
        loss.backward()
    """,
    "copy keeps what was there on the tape": """
        x = mg.tensor([1.5, -0.5], dtype=mg.float32).requires_grad_()
        y = x * 2
        y.copy_(mg.tensor([3.0]))
        loss = y.sum()
        loss.backward()
    """,
    "a leaf written to after it was used": """
        x = mg.tensor([0.25, -1.0]).requires_grad_()
        y = x / 2
        with mg.no_grad(): x.fill_(0.25)
        loss = (y + x * x).sum()
        g = mg.autograd.grad(loss, x)[0]
    """,
    "strides far into an array of many axes": """
        x = mg.arange(42).reshape(7, 2, 3).sin()
        y = x[1:] + 0.5
        z = y.as_strided([3], [3], 28)
        u = (y.cos() * 2).as_strided([2, 3], [1, 2], 4)
    """,
    "a tensor written to after it was sorted": """
        x = mg.tensor([0.3, -1.0, 2.0]).requires_grad_()
        y = x * 1.5
        s = y.sort(descending=True).values
        t = y.topk(2).values
        y[0] = 1
        loss = (s * s).sum() + t.sum()
        loss.backward()
    """,
}


def found_before(name):
    lines = tuple(line.strip() for line in FOUND[name].strip().splitlines())
    return Program(lines, ("x",) if any("requires_grad" in line for line in lines) else ())


@pytest.mark.parametrize("mode", ["reference", "cpu", "eager"])
@pytest.mark.parametrize("name", FOUND)
def test_programs_found_before(name, mode):
    assert well_posed(found_before(name), *expected(found_before(name)))
    assert disagreement(found_before(name), mode) is None


# --- the tests themselves ---


def test_programs_are_deep_and_varied():
    text = "\n".join(str(compose(seed)) for seed in range(40))
    for word in (
        "as_strided", "reshape", "permute", "expand", "gather", "index_select", "scatter_add",
        "masked", "nonzero", "complex64", "bfloat16", "float16", "uint8", "int32", "cumsum", "sort",
        "layer_norm", "softmax", "cat(", "stack(", "split", "where", "no_grad", "read(", "del ",
        "create_graph", "retain_graph", "@", "+=", "] = ",
    ):  # fmt: skip
        assert word in text, word
    assert min(len(compose(seed).lines) for seed in range(10)) > 20


def test_most_programs_can_be_compared():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        programs = [compose(seed) for seed in range(30)]
        assert sum(well_posed(p, *expected(p)) for p in programs) > 24


def test_a_wrong_result_is_found_and_its_program_made_short(monkeypatch):
    program = Program(
        (
            "a = mg.tensor([0.5, 2.0])", "b = a.cos()", "c = b + a", "d = a.tanh()", "e = d * b",
            "read(c)", "f = e.sum()",
        ),
        (),
    )  # fmt: skip
    assert disagreement(program, "reference") is None
    wrong = mg.Tensor.sin
    monkeypatch.setattr(mg.Tensor, "tanh", lambda x: wrong(x))
    assert disagreement(program, "reference").startswith("d: ")
    short = shrink(program, lambda p: disagreement(p, "reference") is not None)
    assert short.lines == ("a = mg.tensor([0.5, 2.0])", "d = a.tanh()")
    assert "import monograph as mg" in str(short)
    assert set(COUNTS) == set(MODES)
