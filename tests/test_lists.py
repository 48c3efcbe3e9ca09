"""Numbers in nested lists, and what is said of those that are none."""

import numpy as np
import pytest

import monograph as mg
from monograph.errors import DataError
from monograph.lists import array_of, require_room

FINE = [3, [1.5, 2], [[1, 2], [3, 4]], [], [np.ones(2), np.zeros(2)], range(3)]


@pytest.mark.parametrize("data", FINE, ids=str)
def test_numbers(data):
    np.testing.assert_array_equal(array_of(data), np.asarray(data))


WRONG = {
    "data is no number but None (NoneType)": None,
    "data is no number but 'ab' (str)": "ab",
    "data[1] is no number but b'x' (bytes)": [1, b"x"],
    "data[1][0] is no number but None (NoneType)": [[1], [None]],
    "data[0] has shape [2], data[1] has [1]": [[1, 2], [3]],
    "data[0] has shape [1], data[2] has []": [[1], [2], 3],
    "data[1][0] has shape [1], data[1][1] has [0]": [[[1], [2]], [[3], []]],
    "data[0] has shape [2], data[1] has [3]": [np.ones(2), np.ones(3)],
    "data[0] is 18446744073709551616, which 64 bits do not hold": [2**64],
}


@pytest.mark.parametrize("message", WRONG)
def test_the_part_that_is_wrong_is_named(message):
    kind = ValueError if "shape" in message else DataError
    with pytest.raises(kind) as caught:
        array_of(WRONG[message])
    assert type(caught.value) is kind
    assert message in str(caught.value)


@pytest.mark.parametrize("number", [256, -256, 1e10, float("nan"), float("inf"), 2**63])
def test_numbers_that_an_integer_dtype_does_not_hold(number):
    with pytest.raises(DataError, match=r"without overflow: it holds 0 to 255"):
        require_room(np.asarray(number), mg.uint8)


@pytest.mark.parametrize("number", [255, -1, -255, 0.5, [1, 2]])
def test_numbers_that_it_holds(number):
    require_room(np.asarray(number), mg.uint8)


def test_arrays_and_tensors_wrap_around():
    """What has a dtype is converted, as by `to`."""
    assert mg.tensor(np.array([300]), dtype=mg.uint8).tolist() == [44]
    assert mg.tensor(mg.tensor([300]), dtype=mg.uint8).tolist() == [44]
