"""Random loops: compiled as one, against their turns one after the other in the reference."""

import numpy as np
import pytest

import monograph as mg

WIDTH, ROWS = 4, 3


class Program:
    """A random body over carries, elements of sequences and shared matrices and rows."""

    def __init__(self, seed, nested=True):
        self.rng = rng = np.random.default_rng(seed)
        self.carries = int(rng.integers(1, 4))
        self.sequences = int(rng.integers(0 if seed % 5 else 1, 3))
        self.turns = int(rng.integers(2, 6))
        self.reverse = bool(rng.integers(2))
        self.steps = [self._step() for _ in range(int(rng.integers(4, 10)))]
        self.after = rng.integers(0, 1000, self.carries)
        self.stacked = rng.integers(0, 1000, int(rng.integers(0, 3)))
        self.inner = Program(seed + 1000, False) if nested and seed % 4 == 0 else None

    def _step(self):
        names = ["add", "mul", "tanh", "sigmoid", "matmul", "left", "sum", "slice", "where",
                 "detach", "number", "softmax", "row"]  # fmt: skip
        return str(self.rng.choice(names)), self.rng.integers(0, 1000, 2)

    def data(self):
        """Initial carries, sequences, and what turns share, all differentiable."""
        sample = lambda *shape: mg.tensor(self.rng.standard_normal(shape) * 0.5)  # noqa: E731
        carried = [sample(ROWS, WIDTH) for _ in range(self.carries)]
        sequences = [sample(self.turns, ROWS, WIDTH) for _ in range(self.sequences)]
        shared = [sample(WIDTH, WIDTH), sample(ROWS, ROWS), sample(WIDTH)]
        made = [*carried, *sequences, *shared]
        for t in made:
            t.requires_grad_()
        return made

    def body(self, scan, carried, elements, shared):
        square, left, row = shared
        values = [*carried, *elements]
        for name, (i, j) in self.steps:
            a, b = values[i % len(values)], values[j % len(values)]
            made = {
                "add": lambda a=a, b=b: a + b, "mul": lambda a=a, b=b: a * b,
                "tanh": lambda a=a: mg.tanh(a), "sigmoid": lambda a=a: mg.sigmoid(a),
                "matmul": lambda a=a: a @ square, "left": lambda a=a: left @ a,
                "sum": lambda a=a, b=b: b * a.sum(1, keepdim=True),
                "slice": lambda a=a, b=b: mg.cat([a[:, 1:], b[:, :1]], 1),
                "where": lambda a=a, b=b: mg.where(a > b, a, b * 0.5),
                "detach": lambda a=a, b=b: a.detach() + b, "number": lambda a=a: a * 0.7 - 0.1,
                "softmax": lambda a=a: mg.softmax(a, 1), "row": lambda a=a: a * row,
            }[name]()  # fmt: skip
            values.append(made)
        if self.inner is not None:
            values.append(self.inner.run(scan, [values[-1]] * self.inner.carries,
                                         [mg.stack([values[0]] * self.inner.turns)]
                                         * self.inner.sequences, shared)[0][0])  # fmt: skip
        after = [mg.tanh(values[n % len(values)]) for n in self.after]
        return after, [values[n % len(values)] for n in self.stacked]

    def run(self, scan, carried, sequences, shared):
        step = lambda carry, x: self.body(scan, carry, x or [], shared)  # noqa: E731
        return scan(step, carried, sequences or None, self.turns, self.reverse)

    def loss(self, scan, data):
        rest = self.carries + self.sequences
        parts = self.run(scan, data[: self.carries], data[self.carries : rest], data[rest:])
        finals, stacks = parts
        return sum((t**2).sum() for t in finals) + sum(mg.sin(t).sum() for t in stacks)


def turns(f, carry, xs, length, reverse):
    """What `mg.scan` means, for lists."""
    stacks = {}
    for n in reversed(range(length)) if reverse else range(length):
        carry, stacks[n] = f(carry, None if xs is None else [x[n] for x in xs])
    parts = zip(*[stacks[n] for n in range(length)], strict=True)
    return carry, [mg.stack(list(group)) for group in parts]


def outcome(program, scan, data):
    loss = program.loss(scan, data)
    slopes = mg.autograd.grad(loss, data, allow_unused=True)
    return [np.zeros(1) if t is None else t.detach().numpy() for t in (loss, *slopes)]


@pytest.mark.parametrize("seed", range(24))
def test_values_and_gradients(seed):
    program = Program(seed)
    data = program.data()
    with mg.config.override(disk_cache=False):
        made = outcome(program, mg.scan, data)
    with mg.config.override(backend="reference"):
        expected = outcome(program, turns, data)
    for one, other in zip(made, expected, strict=True):
        np.testing.assert_allclose(one, other if one.shape == other.shape else 0, rtol=1e-7,
                                   atol=1e-9)  # fmt: skip


def second(program, scan, data):
    """Derivatives of the squared gradient."""
    loss = program.loss(scan, data)
    slopes = mg.autograd.grad(loss, data, allow_unused=True, create_graph=True)
    total = sum((t * t).sum() for t in slopes if t is not None)
    found = mg.autograd.grad(total, data, allow_unused=True)
    return [np.zeros(1) if t is None else t.detach().numpy() for t in (total, *found)]


@pytest.mark.parametrize("seed", [1, 2, 4, 6, 9, 11])
def test_second_derivatives_and_batches(seed):
    program = Program(seed)
    data = program.data()
    pairs = [mg.stack([t.detach(), t.detach() * 0.5]) for t in data]
    with mg.config.override(disk_cache=False):
        made = second(program, mg.scan, data)
        batch = mg.vmap(lambda *given: program.loss(mg.scan, list(given)))(*pairs).numpy()
    with mg.config.override(backend="reference"):
        expected = second(program, turns, data)
        each = [program.loss(turns, [t[n] for t in pairs]).item() for n in range(2)]
    for one, other in zip(made, expected, strict=True):
        np.testing.assert_allclose(one, other if one.shape == other.shape else 0, rtol=1e-6,
                                   atol=1e-8)  # fmt: skip
    np.testing.assert_allclose(batch, each, rtol=1e-7)
