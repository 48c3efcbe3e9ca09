"""Reads of what lies a call or two behind known data: nothing else is computed for them."""

import numpy as np
import pytest

import monograph as mg


@pytest.fixture(autouse=True)
def as_users_run():
    with mg.config.override(backend="cpu", tier0_limit=32):
        yield


def flushes(read):
    """How many flushes a read causes, and what it gives."""
    mg.stats.reset()
    found = read()
    return mg.stats().flushes, found


def test_a_question_about_known_data_leaves_the_rest_pending():
    x = mg.tensor([0.5, 1.5, 2.5])
    mask = x > 1
    mask.tolist()
    later = (x * 2).sum()
    assert flushes(lambda: bool(mask.any())) == (0, True)
    assert flushes(lambda: int(mask.sum())) == (0, 2)
    assert flushes(lambda: int(x.argmax())) == (0, 2)
    assert flushes(lambda: bool((mask & (x < 2)).any())) == (0, True)
    assert flushes(later.item) == (1, 9.0)


def test_a_number_that_was_read_is_the_one_that_the_program_uses():
    x = mg.tensor([3, 1, 2])
    x.tolist()
    place = x.argmin()
    after = x * 10 + place
    assert int(place) == 1
    assert after.tolist() == [31, 11, 21]
    assert (place + 1).item() == 2


def test_what_is_rounded_is_left_to_programs():
    x = mg.tensor([0.1, 0.2])
    x.tolist()
    assert flushes((x.sum() > 0.1).item)[0] == 1
    assert flushes(x.mean().item)[0] == 1


def test_what_depends_on_pending_work_is_flushed():
    x = mg.tensor([0.5, 1.5])
    assert flushes(((x * 2) > 2).tolist) == (1, [False, True])


def test_writes_in_place_are_flushed():
    x = mg.tensor([1, 2, 3])
    shared = x.numpy()
    x.add_(1)
    assert x.tolist() == [2, 3, 4] == shared.tolist()
    y = mg.tensor([1, 2, 3])
    y.tolist()
    y.mul_(2)
    assert flushes(y.tolist) == (1, [2, 4, 6])


def test_large_data_is_left_to_programs():
    x = mg.tensor(np.arange(5000))
    x.tolist()
    assert flushes(lambda: bool((x > 7).any())) == (1, True)


def test_a_read_lets_go_of_what_it_was_computed_from():
    x = mg.tensor(np.arange(9))
    x.tolist()
    found = (x > 3).sum()
    assert found.item() == 5
    assert found._storage.value.record is None


def test_wrong_indices_are_still_found():
    x, where = mg.tensor([1, 2, 3]), mg.tensor([5])
    with pytest.raises(IndexError, match="index 5 is out of range"):
        x[where].tolist()
