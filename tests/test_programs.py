"""Which recordings are compiled, and which are interpreted."""

from types import SimpleNamespace

import numpy as np
import pytest

import monograph as mg
import monograph.nn.functional as F
from monograph import programs, record
from monograph.backends import piecewise
from monograph.compiler.periods import refrain
from monograph.programs import Programs


@pytest.fixture(autouse=True)
def interpreting(monkeypatch):
    """As users have it: in other tests small programs are compiled too. None is there yet."""
    monkeypatch.setattr(record, "programs", Programs())
    with mg.config.override(backend="cpu", tier0_limit=32, disk_cache=False):
        yield


def episode(weight, turns):
    """A loss that is made of so many turns, as that of an episode of a game."""
    state = mg.ones(3)
    total = mg.zeros(())
    for turn in range(turns):
        state = mg.tanh(weight * state + 0.1 * turn)
        total = total + (state * state).sum().exp()
    return total


def test_episodes_of_every_length_are_not_compiled_each(monkeypatch):
    weight = mg.full((3,), 0.5, requires_grad=True)
    for _ in range(2):  # met once, and compiled
        episode(weight, 8).backward()
        weight.grad.tolist()
    mg.stats.reset()
    monkeypatch.setattr(record.programs, "pace", float("inf"))
    gradients = []
    for turns in range(30, 40):
        weight.grad = None
        episode(weight, turns).backward()
        gradients.append(weight.grad.numpy())
    assert mg.stats().compilations == 0
    # The gradient of a difference, in twice the precision.
    step = np.array([1e-6, 0.0, 0.0])
    above, below = (episode(mg.tensor(0.5 + s, dtype=mg.float64), 39).item() for s in (step, -step))
    np.testing.assert_allclose(gradients[-1][0], (above - below) / 2e-6, rtol=1e-4)


def test_an_episode_that_comes_again_is_compiled(monkeypatch):
    weight = mg.full((3,), 0.4)
    weight.tolist()
    for _ in range(2):
        episode(weight, 8).item()
    mg.stats.reset()
    monkeypatch.setattr(record.programs, "pace", float("inf"))  # compiling would take for ever
    losses = [episode(weight, 25 + n % 6).item() for n in range(24)]
    assert mg.stats().compilations == 0
    monkeypatch.setattr(record.programs, "pace", 0.0)  # what was spent would have been enough
    losses += [episode(weight, 25 + n % 6).item() for n in range(6)]
    assert mg.stats().compilations >= 1  # which says how long compiling takes
    np.testing.assert_allclose(losses, 5 * losses[:6], rtol=1e-5)


def test_a_step_of_another_loop_is_no_episode():
    weight = mg.full((3,), 0.3)
    weight.tolist()
    for turns in (8, 40):
        mg.stats.reset()
        for _ in range(4):
            episode(weight, turns).item()
        assert mg.stats().compilations == 1 and mg.stats().interpreted <= 2


def test_an_episode_that_stays_is_compiled_if_that_pays(monkeypatch):
    weight = mg.full((3,), 0.3)
    weight.tolist()
    monkeypatch.setattr(record.programs, "pace", float("inf"))
    for turns in (8, 40, 30, 30):
        episode(weight, turns).item()
    mg.stats.reset()
    held = list(record.programs._interpreted.values())[-1]
    # Compiling takes as long as running it ten times: too long for two, not for those to come.
    monkeypatch.setattr(record.programs, "pace", 10 * held.program.latest / held.length)
    episode(weight, 30).item()
    assert mg.stats().compilations == 1


def test_what_repeats_is_told_by_its_turns():
    assert refrain("ababc") == refrain("abababc") == (("a", "b"), "c")
    assert refrain("aab" * 3 + "d") == refrain("aab" * 7 + "d") != refrain("aab" * 7 + "c")
    assert refrain("abc") == ("a", "b", "c") and refrain("") == ()


def test_a_long_loop_of_small_tensors_is_interpreted_when_it_is_met_first():
    weight = mg.full((3,), 0.3)
    weight.tolist()

    def settled():
        state = mg.ones(3)
        for _ in range(100):
            state = mg.cos(weight * state)
        return state.tolist()

    mg.stats.reset()
    first = settled()
    assert (mg.stats().compilations, mg.stats().interpreted) == (0, 1)
    again = settled()
    assert mg.stats().compilations == 1
    np.testing.assert_allclose(first, again, rtol=1e-5)


def test_places_read_one_by_one_are_not_compiled_for_each_number_of_them():
    mg.stats.reset()
    for count in range(40, 46):
        row = np.arange(count, dtype=np.float32)
        known = mg.tensor(row)
        parts = [part for part in 2 * (known - known.mean()) / (known.std() + 1)]
        expected = 2 * (row - row.mean()) / (row.std(ddof=1) + 1)
        assert abs(parts[-1].item() - expected[-1]) < 1e-5
    assert mg.stats().compilations <= 1  # one for all sizes


def test_what_a_backward_pass_needs_is_known_for_other_sizes_too():
    layer = mg.nn.Linear(8, 8)

    def compiled(rows):
        before = mg.stats().compilations
        h = layer(mg.ones(rows, 8)).tanh()
        shares = mg.softmax(h @ layer.weight, 0)
        loss = (shares * shares).sum()
        loss.item()
        layer.zero_grad()
        loss.backward()
        layer.weight.grad.sum().item()
        return mg.stats().compilations - before

    with mg.config.override(tier0_limit=0):
        for _ in range(4):
            compiled(5)
        assert compiled(9) > 0
        assert [compiled(9), compiled(12), compiled(9)] == [0, 0, 0]


def test_a_loop_that_updates_by_hand_is_not_interpreted_for_being_small():
    weight = mg.ones(4, requires_grad=True)
    before = mg.stats().interpreted
    for _ in range(6):
        (weight * weight).sum().backward()
        with mg.no_grad():
            weight -= 0.1 * weight.grad
            weight.grad = None
    weight.tolist()
    assert mg.stats().interpreted - before <= 1  # what is left when the loop has ended


def test_two_threads_find_at_once_that_sizes_stay():
    """The other one has let go of the program, between two lines of this one."""
    found = Programs()
    key = (("recorded",), "cpu")

    class Family:
        def is_steady(self, executable):
            return found._by_key.pop(key) is not None

    found._by_key[key] = [SimpleNamespace(writes=(), outputs=(0,), family=Family())]
    assert found.find(key, (0,), ()) is None


def test_boxes_of_every_number_are_not_compiled_with_the_network(monkeypatch):
    """A loop over each image's boxes, of which every batch has other numbers."""
    monkeypatch.setattr(programs, "LIGHT", 0)  # as if it were large
    monkeypatch.setattr(programs, "DEAR", float("inf"))  # nothing is to depend on time
    monkeypatch.setattr(piecewise, "DEAR", float("inf"))
    network = mg.nn.Linear(16, 16)
    places = mg.rand(16)
    draws = np.random.default_rng(0)

    def loss_of(batch, own):
        losses = []
        for boxes in batch:
            distance = (mg.tensor(boxes)[:, None] - places[None]).abs()
            nearest = distance.min(0)[1]
            for j in range(len(boxes)):
                nearest[distance[j].argmin()] = j
            losses.append((own[0] - mg.tensor(boxes)[nearest]).pow(2).mean())
        return mg.stack(losses).mean()

    compiled = []
    for _ in range(14):
        batch = [draws.random(draws.integers(1, 6)).astype(np.float32) for _ in range(4)]
        mg.stats.reset()
        network.zero_grad()
        loss = loss_of(batch, network(mg.ones(1, 16)))
        loss.backward()
        gradient = network.weight.grad.numpy().copy()
        compiled.append(mg.stats().compilations)
        with mg.config.override(backend="reference"):
            network.zero_grad()
            loss_of(batch, network(mg.ones(1, 16))).backward()
            np.testing.assert_allclose(gradient, network.weight.grad.numpy(), rtol=1e-4, atol=1e-6)
    assert sum(compiled[:7]) >= 3 and sum(compiled[7:]) == 0


def test_a_loop_over_all_places_is_not_one_large_program(monkeypatch):
    """Each place is computed from those before; nothing of it can be rolled."""
    monkeypatch.setattr(piecewise, "DEAR", float("inf"))
    kernel = mg.rand(1, 1, 3, 3)
    kernel.tolist()

    def picture():
        image = mg.zeros(1, 1, 9, 9)
        for i in range(9):
            for j in range(9):
                seen = F.conv2d(image, kernel, padding=1)
                image[0, 0, i, j] = mg.tanh(seen[0, 0, i, j] + 0.1)
        return image.numpy()

    mg.stats.reset()
    first, again = picture(), picture()
    assert mg.stats().compilations == 0
    np.testing.assert_allclose(first, again, rtol=1e-5)
    with mg.config.override(backend="reference"):
        np.testing.assert_allclose(first, picture(), rtol=1e-4)


def test_programs_that_run_by_calls_are_forgotten_in_the_end(monkeypatch):
    monkeypatch.setattr(programs, "ENTRIES", 500)
    monkeypatch.setattr(record.programs, "pace", float("inf"))
    weight = mg.full((3,), 0.2)
    weight.tolist()
    for turns in (8, *range(20, 60)):
        episode(weight, turns).item()
    held = list(record.programs._interpreted.values())
    assert 1 <= len(held) < 5 and held[-1].length > 200


def layers(x, y, weight):
    """Many calls on two arrays, whose lengths have nothing to do with each other."""
    for _ in range(30):
        x, y = mg.tanh(x @ weight), mg.tanh(y @ weight)
    return (x.sum() * y.sum()).item()


def test_a_program_that_takes_long_to_make_waits_for_more_sizes(monkeypatch):
    monkeypatch.setattr(record.programs, "pace", 0.1)
    weight = mg.tensor(np.eye(4, dtype=np.float32))
    sizes = [(2600, 2700), (2600, 2701), (2601, 2702), (2602, 2700), (2640, 1), (2600, 2701)]
    counts = []
    for n, m in sizes:
        before = mg.stats().compilations
        x, y = (mg.tensor(np.ones((rows, 4), np.float32)) for rows in (n, m))
        found = layers(x, y, weight)
        counts.append(mg.stats().compilations - before)
        once = np.float32(1)
        for _ in range(30):
            once = np.tanh(once)
        np.testing.assert_allclose(found, 16 * n * m * once**2, rtol=1e-5)
    # The first is compiled, two are run call by call, and then one program serves them all.
    assert counts == [1, 0, 0, 1, 0, 0]
