"""Tensors print as PyTorch prints them, but for the name of the package in dtypes."""

import numpy as np
import pytest
import torch

import monograph as mg

rng = np.random.default_rng(0)
NAN, INF = float("nan"), float("inf")
ARRAYS = {
    "number": np.float32(1.5),
    "whole number": np.float32(3),
    "integer": np.int64(-7),
    "truth": np.array([True, False]),
    "mixed": np.float32([1.5, -2.25, 1e4]),
    "wide range": np.float32([1.5, 1e-6, 12.0]),
    "large": np.float32([1.5e9, 2.0]),
    "whole and large": np.float32([1.0, 123456.0]),
    "whole": np.float32([[1, 2], [-30, 400]]),
    "zeros": np.zeros((2, 2), np.float32),
    "not finite": np.float32([NAN, INF, -INF, 1.25]),
    "only not finite": np.float32([NAN, INF]),
    "whole and not finite": np.float32([NAN, INF, 100.0]),
    "float64": np.array([1.5, 1 / 3]),
    "float16": np.float16([1.5, 1 / 3]),
    "int32": np.int32([[1, -200], [3, 4]]),
    "uint8": np.arange(5, dtype=np.uint8),
    "normal": rng.standard_normal((3, 4)).astype(np.float32),
    "long lines": rng.standard_normal((2, 30)).astype(np.float32),
    "three axes": rng.standard_normal((2, 3, 4)).astype(np.float32),
    "four axes": rng.standard_normal((2, 2, 2, 2)),
    "summarised line": np.arange(2000),
    "summarised": rng.standard_normal((50, 60)).astype(np.float32),
    "summarised, deep": rng.standard_normal((10, 4, 60)).astype(np.float32),
    "summarised, narrow": rng.standard_normal((1000, 2)).astype(np.float32),
    "complex": (rng.standard_normal(5) + 1j * rng.standard_normal(5)).astype(np.complex64),
    "complex128": rng.standard_normal((2, 2)) - 1j,
    "complex whole": np.array([1 + 2j, -3 - 4j], np.complex64),
    "complex not finite": np.array([complex(NAN, 1), complex(2, -INF)], np.complex64),
    "empty": np.zeros(0, np.float32),
    "empty axes": np.zeros((2, 0), np.float32),
    "empty integers": np.zeros((0, 3), np.int64),
    "tiny": np.float32([1e-5, 1e-6]),
    "negative zero": np.float32([-0.0, 1.5]),
}
OPTIONS = [
    {},
    {"precision": 2},
    {"sci_mode": True},
    {"sci_mode": False},
    {"linewidth": 40},
    {"threshold": 5, "edgeitems": 1},
    {"profile": "short"},
    {"profile": "full"},
]


def theirs(x):
    return repr(x).replace("torch.", "monograph.")


@pytest.fixture(autouse=True)
def usual_options():
    yield
    mg.set_printoptions(profile="default")
    torch.set_printoptions(profile="default")


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_text(options):
    mg.set_printoptions(**options)
    torch.set_printoptions(**options)
    for name, array in ARRAYS.items():
        assert repr(mg.tensor(array)) == theirs(torch.tensor(array)), name


def test_random_magnitudes():
    for n in range(60):
        array = rng.standard_normal((2, 3)) * 10.0 ** rng.integers(-8, 9, (2, 3))
        array = np.round(array) if n % 3 == 0 else array
        array = array.astype((np.float32, np.float64)[n % 2])
        assert repr(mg.tensor(array)) == theirs(torch.tensor(array))


def test_bfloat16():
    values = [[1.5, 1 / 3], [100.0, -2.0]]
    assert repr(mg.tensor(values, dtype=mg.bfloat16)) == theirs(
        torch.tensor(values, dtype=torch.bfloat16)
    )


def test_gradient():
    for m in (mg, torch):
        m.set_printoptions(linewidth=60)
    a, b = (m.tensor([0.5] * 6, requires_grad=True) for m in (mg, torch))
    assert repr(a) == theirs(b)
    assert repr(a.exp()) == theirs(b.exp())
    assert repr(a.double()) == theirs(b.double()).replace("ToCopyBackward0", "CastBackward0")


def test_options_within():
    with mg.printoptions(precision=1):
        assert repr(mg.tensor([0.25])) == "tensor([0.2])"
    assert mg.get_printoptions()["precision"] == 4
    assert repr(mg.tensor([0.25])) == "tensor([0.2500])"


def test_default_dtype():
    mg.set_default_dtype(mg.float64)
    try:
        assert repr(mg.tensor([1.5])) == "tensor([1.5000])"
        assert "float32" in repr(mg.tensor([1.5], dtype=mg.float32))
    finally:
        mg.set_default_dtype(mg.float32)
