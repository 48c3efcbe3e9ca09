"""`config.bounds_checks`: kernels that leave their buffers are caught, and programs know of it."""

import dataclasses

import numpy as np
import pytest

import monograph as mg
from monograph.backends.cpu import backend
from monograph.compiler.digest import digest_of
from monograph.recorder import current
from monograph.runtime import status
from monograph.tracing import kind, trace

X = np.arange(40.0, dtype=np.float32)


def too_short(kernel):
    """The kernel as if its first input had fewer elements than it reads."""
    first = dataclasses.replace(kernel.buffers[0], elements=kernel.buffers[0].elements - 1)
    return dataclasses.replace(kernel, buffers=(first, *kernel.buffers[1:]))


@pytest.fixture
def compiled():
    with mg.config.override(backend="cpu", tier0_limit=0, disk_cache=False, bounds_checks=True):
        mg.synchronize()
        yield
    assert not status.current().held


def test_a_wrong_kernel_is_named(compiled, monkeypatch):
    right = backend.compile_kernels
    monkeypatch.setattr(
        backend,
        "compile_kernels",
        lambda ks, **options: right({n: too_short(k) for n, k in ks.items()}, **options),
    )
    x = mg.tensor(X[:39])
    y = mg.sin(x) * 3.25 - mg.cos(x) * x  # no other test's: the program, and its family, stay
    for _ in range(2):
        with pytest.raises(mg.errors.InternalError, match=r"kernel map_\w+ went outside .* 0"):
            y.numpy()
    monkeypatch.undo()
    np.testing.assert_array_equal((x + 1).numpy(), X[:39] + 1)


@pytest.mark.parametrize("replayed", [False, True])
def test_right_programs_give_the_same_bits(compiled, replayed):
    def step(x):
        y = mg.softmax(x.reshape(4, 10) @ x.reshape(10, 4), 1)
        return y.sum(0), y.argmax(1), x[::3] * 2

    run = mg.jit(step) if replayed else step
    with_bounds = [[y.numpy().copy() for y in run(mg.tensor(X / 40))] for _ in range(3)]
    with mg.config.override(bounds_checks=False):
        without = [y.numpy().copy() for y in run(mg.tensor(X / 40))]
    for found in with_bounds:
        for a, b in zip(found, without, strict=True):
            np.testing.assert_array_equal(a, b)


def test_the_setting_is_part_of_a_program():
    recording, _ = trace(lambda x: x * 2, kind(40))
    with mg.config.override(bounds_checks=False):
        plain = digest_of(recording, "machine")
    with mg.config.override(bounds_checks=True):
        assert digest_of(recording, "machine") not in (None, plain)


def test_changing_the_setting_compiles_again(compiled):
    x = mg.tensor(X)
    (x * 1.75).numpy()
    before = mg.stats().compilations
    with mg.config.override(bounds_checks=False):
        (x * 1.75).numpy()
    assert mg.stats().compilations == before + 1
    assert not current.recorder.records
