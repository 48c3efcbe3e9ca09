"""Weights that are packed once: the same bits, renewed with every change, freed with the weight."""

import ctypes
import gc
import os
import threading

import numpy as np
import pytest

import monograph as mg
import monograph.nn.functional as F
from monograph import nn, record
from monograph.backends.cpu import library, packed
from monograph.ops import elements
from monograph.programs import Programs
from monograph.runtime.program import counters

pytestmark = pytest.mark.skipif(not library.available(), reason="needs oneDNN")
WARM = packed.LAUNCHES + 1  # launches after which weights are packed for the first time


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Programs of these sizes alone: elsewhere one for many sizes may serve them."""
    return tmp_path_factory.mktemp("programs")


@pytest.fixture(autouse=True)
def evaluation(monkeypatch, folder):
    """Programs that have seen no weights yet, and no gradients."""
    mg.synchronize()
    monkeypatch.setattr(record, "programs", Programs())
    with mg.config.override(cache_dir=folder), mg.no_grad():
        yield


def array(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)


def evaluated(function, *inputs):
    """The result as an array of its own."""
    mg.synchronize()
    return np.array(function(*inputs).detach().numpy())


def unpacked(function, *inputs):
    with mg.config.override(pack_weights=False):
        return evaluated(function, *inputs)


def warmed(function, *inputs, launches=6 * packed.LAUNCHES):
    """Run until weights are packed; how many were."""
    mg.synchronize()  # what is pending is no part of the program
    before = mg.stats().packings
    for _ in range(launches):
        evaluated(function, *inputs)
        if mg.stats().packings > before:
            break
    return mg.stats().packings - before


class Linear(nn.Module):
    """A weight and what is fused with its product."""

    def __init__(self, after=lambda y, x: y, bias=True, width=96):
        super().__init__()
        self.weight = nn.Parameter(mg.tensor(array(width, 64)))
        self.bias = nn.Parameter(mg.tensor(array(width, seed=1))) if bias else None
        self.after = after

    def forward(self, x):
        return self.after(F.linear(x, self.weight, self.bias), x)


AFTER = {
    "nothing": lambda y, x: y,
    "relu": lambda y, x: F.relu(y),
    "gelu": lambda y, x: F.gelu(y),
    "residual": lambda y, x: F.relu(y + x),
    "layer norm": lambda y, x: F.layer_norm(y, (y.shape[-1],)),
    "scaled": lambda y, x: F.relu(y * 0.5 - 1.0),
}


@pytest.mark.parametrize("name", AFTER)
def test_the_same_bits_as_without_packs(name):
    bias = name != "nothing"
    layer, x = Linear(AFTER[name], bias, width=64), mg.tensor(array(8, 64, seed=2))
    expected = unpacked(layer, x)
    assert warmed(layer, x) == 1
    np.testing.assert_array_equal(evaluated(layer, x), expected)


@pytest.mark.parametrize("rows, inside, outside", [(8, 64, 100), (31, 333, 70), (64, 128, 256)])
def test_sizes(rows, inside, outside):
    weight, given = array(outside, inside), array(rows, inside, seed=1)
    w, x = mg.tensor(weight), mg.tensor(given)
    with mg.config.override(disk_cache=False):
        assert warmed(F.linear, x, w) > 0
        found = evaluated(F.linear, x, w)
        np.testing.assert_array_equal(found, unpacked(F.linear, x, w))
    np.testing.assert_allclose(found, given @ weight.T, rtol=1e-4, atol=1e-4)


def test_bfloat16_is_widened_in_each_call():
    layer, x = Linear().bfloat16(), mg.tensor(array(8, 64)).bfloat16()
    expected = unpacked(lambda x: layer(x).float(), x)
    assert warmed(lambda x: layer(x).float(), x, launches=WARM) == 0
    layer.weight.mul_(2.0)
    assert not np.array_equal(evaluated(lambda x: layer(x).float(), x), expected)


def test_many_rows_and_small_weights_are_not_packed():
    for rows, width in ((packed.ROWS + 1, 64), (8, 32)):
        x, w = mg.tensor(array(rows, width)), mg.tensor(array(width, width))
        with mg.config.override(disk_cache=False):
            assert warmed(F.linear, x, w, launches=WARM) == 0


def test_convolutions_of_few_places():
    """A small image: the weights are moved as often as they are multiplied by."""
    layers = nn.Sequential(
        nn.Conv2d(64, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU(),
        nn.ConvTranspose2d(64, 64, 1),
    ).eval()  # fmt: skip
    x = mg.tensor(array(1, 64, 7, 7)).to(memory_format=mg.channels_last)
    expected = unpacked(layers, x)
    assert warmed(layers, x) > 0
    np.testing.assert_array_equal(evaluated(layers, x), expected)
    layers[0].weight.mul_(2.0)
    np.testing.assert_array_equal(evaluated(layers, x), unpacked(layers, x))


# --- every way to change a weight ---


def _optimizer_step(layer, x):
    with mg.enable_grad():
        optimizer = mg.optim.SGD(layer.parameters(), lr=0.5)
        layer(x).square().sum().backward()
        optimizer.step()


def _replayed_step(layer, x):
    """In place, under the value that the storage has."""
    with mg.enable_grad():
        if not hasattr(layer, "step"):
            optimizer = mg.optim.SGD(layer.parameters(), lr=1e-4)

            @mg.jit
            def step(x):
                optimizer.zero_grad()
                layer(x).square().sum().backward()
                optimizer.step()

            for _ in range(3):
                step(x)
            layer.step = step
        layer.step(x)


def _element(layer, x):
    layer.weight.requires_grad_(False)
    layer.weight[0, 0] += 7.0


def _pointer(layer, x):
    ctypes.memset(layer.weight.data_ptr(), 0, 64)


def _by_numpy(layer, x):
    layer.weight.detach().numpy()[0] += 1.0


def _by_dlpack(layer, x):
    np.from_dlpack(layer.weight.detach())[1] -= 1.0


def _loaded(layer, x):
    state = {name: 0.5 * value for name, value in layer.state_dict().items()}
    layer.load_state_dict(state)


def _assigned(layer, x):
    state = {name: 0.25 * value for name, value in layer.state_dict().items()}
    layer.load_state_dict(state, assign=True)


def _data(layer, x):
    layer.weight.data = mg.tensor(array(96, 64, seed=9))


CHANGES = {
    "in place": lambda layer, x: layer.weight.mul_(2.0),
    "through a view": lambda layer, x: layer.weight[0].fill_(3.0),
    "through data": lambda layer, x: layer.weight.data.add_(1.0),
    "copy": lambda layer, x: layer.weight.copy_(mg.tensor(array(96, 64, seed=5))),
    "initialised": lambda layer, x: nn.init.normal_(layer.weight),
    "data": _data,
    "an element": _element,
    "optimizer": _optimizer_step,
    "replayed optimizer": _replayed_step,
    "load_state_dict": _loaded,
    "load_state_dict(assign)": _assigned,
    "numpy": _by_numpy,
    "dlpack": _by_dlpack,
    "its address": _pointer,
}


@pytest.mark.parametrize("kind", CHANGES)
def test_packs_are_renewed_when_the_weight_changes(kind):
    _renewed(kind, lambda layer: layer)


@pytest.mark.parametrize("kind", ["in place", "replayed optimizer", "numpy"])
def test_packs_of_replays_are_renewed(kind):
    _renewed(kind, mg.jit)


def _renewed(kind, wrapped):
    layer, x = Linear(), mg.tensor(array(8, 64, seed=2))
    if kind != "its address":  # which stays known
        CHANGES[kind](layer, x)  # tracing, where it is traced, is done
    layer.weight.detach().copy_(mg.tensor(array(96, 64, seed=4)))
    function = wrapped(layer)
    before = evaluated(function, x)
    assert warmed(function, x) == 1
    CHANGES[kind](layer, x)
    for _ in range(WARM + 1):
        after = evaluated(function, x)
        np.testing.assert_array_equal(after, unpacked(layer, x))
    assert not np.array_equal(before, after)


@pytest.mark.parametrize("kind", ["in place", "an element", "numpy"])
def test_what_was_changed_is_packed_again(kind):
    layer, x = Linear(), mg.tensor(array(8, 64, seed=2))
    CHANGES[kind](layer, x)
    assert warmed(layer, x) > 0
    for _ in range(packed.WORTH):
        layer(x)
    CHANGES[kind](layer, x)
    assert warmed(layer, x) > 0
    np.testing.assert_array_equal(evaluated(layer, x), unpacked(layer, x))


def test_an_array_of_the_users_may_change_at_any_time():
    layer, x = Linear(), mg.tensor(array(8, 64))
    assert warmed(layer, x) > 0
    mg.stats.reset()
    held = layer.weight.detach().numpy()
    for turn in range(4 * WARM):
        held[turn] = turn
        np.testing.assert_array_equal(evaluated(layer, x), unpacked(layer, x))
    assert mg.stats().packings == 0
    del held
    assert warmed(layer, x, launches=20) > 0


def test_memory_of_others_is_not_packed():
    own = array(96, 64)
    layer, x = Linear(), mg.tensor(array(8, 64))
    for weight in (mg.from_numpy(own), mg.from_dlpack(own), mg.tensor(own).share_memory_()):
        layer.weight.data = weight
        assert warmed(layer, x, launches=WARM) == 0


def test_a_write_that_is_taken_back():
    """A program that was to write over the weight fails: the old contents hold, and their pack."""
    layer, x = Linear(), mg.tensor(array(8, 64))
    expected = unpacked(layer, x)
    assert warmed(layer, x) > 0
    layer.weight.add_(mg.tensor(array(5))[mg.tensor([9])])
    with pytest.raises(IndexError):
        mg.synchronize()
    for _ in range(2 * WARM):
        np.testing.assert_array_equal(evaluated(layer, x), expected)


def test_weights_of_a_launch_that_failed_are_not_packed():
    """The launches behind it are under way before anybody knows."""
    x, rows, there = mg.tensor(array(8, 64)), mg.tensor(array(96, 64)), mg.arange(96) + 1
    mg.synchronize()
    mg.stats.reset()
    weight = mg.index_select(rows, 0, there)
    record.flush("test")
    kept = []
    for _ in range(2 * WARM):
        kept.append(F.linear(x, weight))
        record.flush("test")
    with pytest.raises(IndexError):
        mg.synchronize()
    assert mg.stats().packings == 0


# --- when, and for how long ---


def test_weights_that_keep_changing_are_packed_less_and_less():
    layer, x = Linear(), mg.tensor(array(8, 64))
    layer(x)
    mg.stats.reset()
    for _ in range(40):
        for _ in range(WARM + 1):
            layer(x)
        layer.weight.mul_(1.01)
    mg.synchronize()
    assert mg.stats().packings <= 3


def test_two_models_of_one_program():
    models = [Linear(), Linear()]
    models[1].weight.mul_(3.0)
    x = mg.tensor(array(8, 64))
    expected = [unpacked(model, x) for model in models]
    mg.stats.reset()
    for _ in range(2 * WARM):
        for model, wanted in zip(models, expected, strict=True):
            np.testing.assert_array_equal(evaluated(model, x), wanted)
    assert mg.stats().packings == 2
    models[0].weight.neg_()
    for _ in range(WARM):
        np.testing.assert_array_equal(evaluated(models[1], x), expected[1])
    assert mg.stats().packings == 2


def test_programs_share_packs():
    layer, x = Linear(), mg.tensor(array(8, 64))
    assert warmed(layer, x) > 0
    mg.stats.reset()
    assert warmed(lambda x: layer(x) * 2.0 + 1.0, x) == 0
    assert warmed(layer, mg.tensor(array(16, 64))) == 0
    assert mg.stats().packings == 0


def packed_bytes():
    gc.collect()
    return mg.stats().packed_bytes


def test_memory_is_freed_with_the_weight():
    layer, x = Linear(), mg.tensor(array(8, 64))
    before = packed_bytes()
    assert warmed(layer, x) > 0
    assert packed_bytes() - before >= layer.weight.nbytes
    del layer
    assert mg.stats().packed_bytes == before


@pytest.mark.parametrize("step", [_optimizer_step, _replayed_step])
def test_memory_is_freed_when_the_weight_is_trained(step):
    layer, x = Linear(), mg.tensor(array(8, 64))
    step(layer, x)
    before = packed_bytes()
    assert warmed(layer, x) > 0
    assert packed_bytes() > before
    step(layer, x)
    mg.synchronize()
    assert packed_bytes() == before


def test_a_training_step_has_no_second_program():
    layer, x = Linear(), mg.tensor(array(8, 64))
    optimizer = mg.optim.SGD(layer.parameters(), lr=0.01)
    made = []
    mg.stats.reset()
    with mg.enable_grad(), record.programs.observed() as seen:
        for _ in range(2 * WARM):
            optimizer.zero_grad()
            layer(x).square().sum().backward()
            optimizer.step()
        mg.synchronize()
    made = [each for each in seen if each.recording.writes]
    assert made and all(each.packed_bytes() == 0 for each in made)
    assert mg.stats().packings == 0


# --- with the rest ---


def test_reports_and_counters():
    layer, x = Linear(lambda y, x: F.gelu(y)), mg.tensor(array(8, 64))
    report = mg.explain(layer, x)
    held = packed_bytes()
    assert warmed(layer, x, launches=packed.LAUNCHES - 1) == 0  # explaining was a launch
    assert warmed(layer, x, launches=1) == 1
    assert report.packed_bytes == packed_bytes() - held > 0
    assert "packed weights" in str(report)
    before = counters().kernels
    evaluated(layer, x)
    assert counters().kernels - before == len(report.kernels)
    with mg.profile() as run:
        evaluated(layer, x)
    assert sorted(each.name for each in run.kernels) == sorted(k.name for k in report.kernels)


def test_packings_are_profiled():
    layer, x = Linear(), mg.tensor(array(8, 64))
    evaluated(layer, x)
    before = counters().kernels
    with mg.profile() as run:
        warmed(layer, x)
    names = [each.name for each in run.kernels]
    assert any(name.startswith("pack ") for name in names)
    assert sum(each.calls for each in run.kernels) == counters().kernels - before


def test_launches_in_flight_read_the_weights_of_their_time():
    layer, x = Linear(), mg.tensor(array(8, 64))
    plain = []
    for packs in (False, True):
        layer.weight.copy_(mg.tensor(array(96, 64)))
        found = []
        with mg.config.override(pack_weights=packs):
            for turn in range(4 * packed.WORTH):
                found.append(layer(x))
                if turn % packed.WORTH == packed.WORTH - 1:
                    layer.weight.mul_(1.5)
            plain.append([np.array(each.numpy()) for each in found])
    for one, other in zip(*plain, strict=True):
        np.testing.assert_array_equal(one, other)


def test_sizes_that_vary():
    layer = Linear(lambda y, x: F.relu(y))
    for _ in range(2):
        for rows in (9, 12, 15, 12, 12, 12, 9, 9):
            x = mg.tensor(array(rows, 64, seed=rows))
            np.testing.assert_array_equal(evaluated(layer, x), unpacked(layer, x))
        layer.weight.neg_()


def test_threads():
    layer, x = Linear(), mg.tensor(array(8, 64))
    expected = unpacked(layer, x)
    wrong = []

    def work():
        with mg.no_grad():
            for _ in range(20):
                if not np.array_equal(evaluated(layer, x), expected):
                    wrong.append(threading.current_thread().name)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not wrong and warmed(layer, x, launches=1) == 0 < packed_bytes()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("launches", [1, WARM])
def test_a_forked_process(launches):
    """Packs that are there serve; where there are none, none are made."""
    layer, x = Linear(), mg.tensor(array(8, 64))
    expected = unpacked(layer, x)
    bias = array(96, seed=1)
    doubled = 2.0 * (expected - bias) + bias
    layer.weight.mul_(1.0)
    for _ in range(launches):
        evaluated(layer, x)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            same = [np.array_equal(evaluated(layer, x), expected) for _ in range(2 * WARM)]
            layer.weight.mul_(2.0)
            close = [np.allclose(evaluated(layer, x), doubled, atol=1e-4) for _ in range(2 * WARM)]
            status = 0 if all(same) and all(close) else 2
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.parametrize("where", ["shelf", "is_watched", "is_shelf"])
def test_interrupted_while_packing(where, monkeypatch):
    layer, x = Linear(), mg.tensor(array(8, 64))
    expected = unpacked(layer, x)
    for _ in range(packed.LAUNCHES):
        evaluated(layer, x)

    def interrupted(*args):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(packed.packs, where, interrupted)
        with pytest.raises(KeyboardInterrupt):
            evaluated(layer, x)
    for _ in range(WARM):
        np.testing.assert_array_equal(evaluated(layer, x), expected)
    assert packed_bytes() >= layer.weight.nbytes


def test_interrupted_while_an_element_is_written(monkeypatch):
    layer, x = Linear(), mg.tensor(array(8, 64))
    layer.weight.requires_grad_(False)
    layer.weight[0, 0] = 1.0
    assert warmed(layer, x) == 1

    def interrupted(x):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(elements, "_noted", interrupted)
        with pytest.raises(KeyboardInterrupt):
            layer.weight[0, 0] = 50.0
    np.testing.assert_array_equal(evaluated(layer, x), unpacked(layer, x))


def test_a_program_from_disk(tmp_path, monkeypatch):
    layer, x = Linear(lambda y, x: F.relu(y)), mg.tensor(array(8, 64))
    expected = unpacked(layer, x)
    with mg.config.override(disk_cache=True, cache_dir=tmp_path):
        for from_disk in (0, 1):
            monkeypatch.setattr(record, "programs", Programs())
            mg.stats.reset()
            for _ in range(2 * WARM):
                np.testing.assert_array_equal(evaluated(layer, x), expected)
            assert mg.stats().programs_from_disk == from_disk
            assert mg.stats().packings == 1 - from_disk  # the second time they are there
        layer.weight.mul_(2.0)
        assert warmed(layer, x) == 1
        np.testing.assert_array_equal(evaluated(layer, x), unpacked(layer, x))
