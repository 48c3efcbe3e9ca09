"""Reads of what lies a call or two behind known data: nothing else is computed for them."""

import numpy as np
import pytest

import monograph as mg
from monograph.backends import calls


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


def test_what_was_read_is_taken_off_the_recording():
    data = mg.arange(100)
    data.tolist()
    weight = mg.ones(3, requires_grad=True)
    loss = (weight * 2).sum()
    before = mg.stats().pending
    places = mg.randint(90, (4,))
    rows = [data[i + 1 : i + 5] for i in places]
    assert mg.stats().pending == before
    assert [row.tolist() for row in rows] == [[p + k for k in range(1, 5)] for p in places.tolist()]
    loss.backward()
    assert weight.grad.tolist() == [2.0, 2.0, 2.0]


def test_a_program_does_not_depend_on_how_often_a_loop_has_looked():
    data = mg.arange(40)
    data.tolist()
    found = []
    with mg.config.override(disk_cache=False, tier0_limit=1):
        mg.stats.reset()
        for looks in (1, 3, 2):
            kept = [int(data[n] + 1) for n in range(looks)]
            total = (data * 0.5 + len(kept)).sum()
            assert any(bool(flag) for flag in data > 38)
            found.append(total.item())
        assert mg.stats().compilations == 1
    assert found == [390.0 + 40 * looks for looks in (1, 3, 2)]


def test_draws_that_were_read_are_not_drawn_again():
    def drawn(look):
        mg.manual_seed(5)
        first = mg.randint(1000, (3,))
        kept = first * 2  # recorded on it before it is read
        if look:
            first.tolist()
        second = mg.randint(1000, (3,))
        if look:
            int(second[0] + 1)
        return (first + second).tolist(), kept.tolist(), mg.randint(1000, (3,)).tolist()

    assert drawn(True) == drawn(False)


def test_leaves_that_others_read_stay():
    x, y = mg.tensor([3, 1, 2]), mg.tensor([1.0, 2.0, 3.0])
    before = y * x  # reads x as well
    assert int(x.argmin()) == 1
    behind = y * x.argmax() + before
    assert bool((x > 2).any())
    assert behind.tolist() == [3.0, 2.0, 6.0]


def test_long_chains_are_left_to_programs():
    x = mg.tensor([1])
    x.tolist()
    for _ in range(3000):
        x = x + 1
    assert int(x) == 3001


def test_what_rounds_is_found_before_functions_are_made(monkeypatch):
    asked = []
    found = calls.call_of
    monkeypatch.setattr(calls, "call_of", lambda *given: asked.append(given) or found(*given))
    x = mg.tensor([0.5, 1.5, 7.5])  # of a length that nobody asked about
    x.tolist()
    assert bool((x / 3.0 <= 1.0).any())
    assert not asked
