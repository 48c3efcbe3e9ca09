"""Tensors compared with Python's numbers: what dtype a number takes, and what it does not fit."""

import itertools

import pytest
import torch

import monograph as mg

INF, NAN = float("inf"), float("nan")
HELD = [0.1, 0.3, 65519.0, 65520.0, 16777217.0, -0.1, 3.0, INF, NAN]
NUMBERS = [*HELD, 3, 1e300, 2**31, True]
SIGNS = ["__lt__", "__le__", "__gt__", "__ge__", "__eq__", "__ne__"]
KINDS = ["float16", "bfloat16", "float32", "float64"]


def answers(m, dtype, length):
    """Every number held, `length` times or alone, compared with every number in every way."""
    for value, number, sign in itertools.product(HELD, NUMBERS, SIGNS):
        held = value if length == 0 else [value] * length
        yield getattr(m.tensor(held, dtype=getattr(m, dtype)), sign)(number).tolist()


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("length", [0, 2])
def test_a_number_is_rounded_to_the_dtype_that_it_meets(dtype, length):
    assert list(answers(mg, dtype, length)) == list(answers(torch, dtype, length))


@pytest.mark.parametrize("dtype", KINDS)
def test_also_in_a_compiled_program(dtype):
    with mg.config.override(tier0_limit=0):
        x = mg.tensor(HELD, dtype=getattr(mg, dtype))
        made = [getattr(x, sign)(number) for number in NUMBERS for sign in SIGNS]
        x_ = torch.tensor(HELD, dtype=getattr(torch, dtype))
        expected = [getattr(x_, sign)(number) for number in NUMBERS for sign in SIGNS]
        assert [each.tolist() for each in made] == [each.tolist() for each in expected]


@pytest.mark.parametrize(
    "call", [lambda x: x + 2**64, lambda x: x < -(2**64), lambda x: x * 10**30]
)
@pytest.mark.parametrize("held", [1.5, [1.5, 2.5], 3])
def test_an_int_that_64_bits_do_not_hold_is_refused_at_the_call(call, held):
    with pytest.raises(OverflowError):
        call(torch.tensor(held))
    with pytest.raises(OverflowError, match="64 bits"):
        call(mg.tensor(held))


def test_a_number_alone_compares_without_a_flush():
    x = mg.tensor([0.25, 0.5])
    x.tolist()
    later = x * 2
    assert [bool(x[0] < 0.5), bool(x[0] < x[1]), x[0] == 0.25, int(x[1] != 0.5)] == [1, 1, 1, 0]
    assert bool(x[0] < mg.tensor(1))  # of two dtypes
    assert later.tolist() == [0.5, 1.0]
