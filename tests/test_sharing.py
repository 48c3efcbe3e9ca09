"""Memory that NumPy and tensors share: what was recorded before a change does not see it."""

import random
from sys import getrefcount

import numpy as np
import pytest
import torch

import monograph as mg


@pytest.fixture(autouse=True, params=["reference", "cpu"])
def backend(request):
    with mg.config.override(backend=request.param):
        yield


def test_what_is_pending_is_computed_before_memory_is_shared():
    x = mg.tensor([1.0, 2.0])
    y = x * 2
    x.numpy()[:] = 7.0
    assert y.tolist() == [2.0, 4.0]
    assert (x * 2).tolist() == [14.0, 14.0]


def test_a_pending_use_of_a_piece_is_computed_before():
    x = mg.arange(6.0).reshape(3, 2)
    y = x[1] + 1
    x.numpy()[:] = 7.0
    assert y.tolist() == [3.0, 4.0]


def test_a_pending_copy_is_made_before_its_source_is_shared():
    x, y = mg.tensor([1.0, 2.0]), mg.zeros(2)
    y.copy_(x)
    np.asarray(x)[:] = 7.0
    assert y.tolist() == [1.0, 2.0]


def test_sharing_what_nothing_pending_reads_computes_nothing():
    x = mg.tensor([1.0, 2.0])
    y = mg.tensor([3.0, 4.0]) * 2
    before = mg.stats().pending
    x.numpy()
    assert mg.stats().pending == before
    assert y.tolist() == [6.0, 8.0]


def test_a_write_over_shared_memory_that_a_derivative_needs_is_an_error():
    for m in (mg, torch):
        x = m.tensor([1.0, 2.0], requires_grad=True)
        other = m.from_numpy(np.array([3.0, 4.0], np.float32))
        y = (x * other).sum()
        other.mul_(2)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y.backward()


class Program:
    """Lines that share memory, change it on both sides, and take views of it."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.lines = []
        self.shapes = {}  # of tensors, by name
        self.arrays = {}
        for _ in range(2):
            numbers = [self.number() for _ in range(6)]
            array = self.array(f"np.array({numbers}, np.float32).reshape(2, 3)", (2, 3))
            self.tensor(f"m.from_numpy({array})", (2, 3))
        self.tensor("m.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])", (2, 3))
        for _ in range(self.rng.randrange(10, 25)):
            self.step()

    def number(self):
        return round(self.rng.uniform(-2, 2), 2)

    def tensor(self, text, shape):
        return self.give("t", self.shapes, text, shape)

    def array(self, text, shape):
        return self.give("a", self.arrays, text, shape)

    def give(self, letter, known, text, shape):
        name = f"{letter}{len(known)}"
        self.lines.append(f"{name} = {text}")
        known[name] = shape
        return name

    def step(self):
        x, array = self.rng.choice([*self.shapes]), self.rng.choice([*self.arrays])
        shape, row = self.shapes[x], self.rng.randrange(self.arrays[array][0])
        other = self.rng.choice([name for name, s in self.shapes.items() if s == shape])
        match self.rng.randrange(10):
            case 0:
                self.lines.append(f"{array}[...] = {array} * {self.number()} + {self.number()}")
            case 1:
                self.lines.append(f"{array}[{row}] = {self.number()}")
            case 2:
                self.array(f"{x}.numpy()", shape)
            case 3:
                self.tensor(f"{x} * {other} + 0.5", shape)
            case 4:
                self.tensor(f"{x}.tanh()", shape)
            case 5 if len(shape) == 2:
                self.tensor(f"{x}.T", shape[::-1])
            case 6 if len(shape) == 2:
                self.tensor(f"{x}[{self.rng.randrange(shape[0])}]", shape[1:])
            case 7:
                self.lines.append(f"{x}.mul_({self.number()})")
            case 8:
                self.lines.append(f"{x}.copy_({other})")
            case 9:
                self.tensor(f"{x}.clone()", shape)

    def run(self, library):
        space = {"m": library, "np": np}
        exec("\n".join(self.lines), space)
        found = {name: np.array(space[name]) for name in self.arrays}
        return found | {name: np.array(space[name].tolist()) for name in self.shapes}


@pytest.mark.parametrize("chunk", range(8))
def test_random_programs_agree_with_pytorch(chunk):
    for seed in range(8 * chunk, 8 * chunk + 8):
        program = Program(seed)
        ours, theirs = program.run(mg), program.run(torch)
        for name, array in theirs.items():
            message = f"{name} in\n" + "\n".join(program.lines)
            np.testing.assert_allclose(ours[name], array, 1e-4, 1e-4, err_msg=message)


@pytest.mark.compiled
def test_programs_that_were_waited_for_keep_no_results():
    """Launches that read memory shared with NumPy are waited for, and hold on to nothing."""
    weight = mg.rand(1 << 20).requires_grad_()
    view = weight.detach().numpy()
    made = []
    for n in range(3):
        weight.grad = None
        (weight * (n + 1)).view(4 << n, -1)[n].sum().backward()
        weight.grad.sum().item()
        made.append(getrefcount(weight.grad._storage.value.memory))
    alone = mg.rand(1 << 20)
    alone.sum().item()
    assert view.size and made == [getrefcount(alone._storage.value.memory)] * 3


@pytest.mark.parametrize("lib", [mg, torch], ids=["here", "pytorch"])
def test_arrays_of_what_requires_grad(lib):
    x = lib.ones(2, requires_grad=True)
    twice = x * 2
    for tensor in (x, twice):
        with pytest.raises(RuntimeError, match="(?i)can't call numpy"):
            tensor.numpy()
    with lib.no_grad():
        assert twice.numpy().tolist() == np.asarray(twice).tolist() == [2.0, 2.0]
        x.numpy()[0] = 5.0
    assert x.tolist() == [5.0, 1.0] and x.requires_grad
    with lib.no_grad(), pytest.raises(BufferError, match="require gradient"):
        x.__dlpack__()
