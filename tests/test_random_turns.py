"""Random loops that Python runs: rolled by the compiler, against the reference, which is not."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import monograph as mg
from monograph.compiler.periods import find_runs
from monograph.tracing import trace

WIDTH, ROWS = 4, 3
STEPS = (
    "add", "mul", "tanh", "matmul", "left", "sum", "join", "where", "detach", "number", "turn",
    "softmax", "row", "noise", "mask", "write", "still", "gather", "part", "integer",
)  # fmt: skip


class Program:
    """A loop with a random body, in the ways that people write loops."""

    def __init__(self, seed):
        self.rng = rng = np.random.default_rng(seed)
        self.seed = seed
        self.carries = int(rng.integers(1, 4))
        self.turns = int(rng.integers(8, 14))
        self.steps = [self._step() for _ in range(int(rng.integers(3, 9)))]
        self.after = rng.integers(0, 1000, self.carries)
        self.listed = int(rng.integers(0, 1000))
        self.reads = str(rng.choice(["place", "split", "row", "back"]))
        self.ends = str(rng.choice(["cat", "stack", "sum", "last", "some", "total", "place"]))
        self.begins = str(rng.choice(["given", "zeros", "none"]))

    def _step(self):
        return str(self.rng.choice(STEPS)), self.rng.integers(0, 1000, 2)

    def data(self):
        """Initial carries, a sequence, and what turns share, all differentiable."""
        sample = lambda *shape: mg.tensor(self.rng.standard_normal(shape) * 0.5)  # noqa: E731
        made = [sample(ROWS, WIDTH) for _ in range(self.carries)]
        made += [sample(ROWS, self.turns, WIDTH), sample(WIDTH, WIDTH), sample(ROWS, ROWS)]
        made.append(sample(WIDTH))
        for t in made:
            t.requires_grad_()
        return made

    def elements(self, xs):
        if self.reads == "split":
            return [x.squeeze(1) for x in xs.split(1, dim=1)]
        if self.reads == "row":
            return list(xs.transpose(0, 1))
        order = range(self.turns) if self.reads == "place" else reversed(range(self.turns))
        return [xs[:, n] for n in order]

    def step(self, name, a, b, shared, turn):
        square, left, row = shared
        if name == "write":
            made = a * 1.0
            made[:, 1] = b[:, 0]
            made += 0.25
            return made
        if name == "still":
            with mg.no_grad():
                return a * 0.5 + b.detach()
        return {
            "add": lambda: a + b, "mul": lambda: a * b, "tanh": lambda: mg.tanh(a),
            "matmul": lambda: a @ square, "left": lambda: left @ a,
            "sum": lambda: b * a.sum(1, keepdim=True),
            "join": lambda: mg.cat([a[:, 1:], b[:, :1]], 1),
            "where": lambda: mg.where(a > b, a, b * 0.5),
            "detach": lambda: a.detach() + b, "number": lambda: a * 0.7 - 0.1,
            "turn": lambda: a * (1.0 / (turn + 1)) + turn, "softmax": lambda: mg.softmax(a, 1),
            "row": lambda: a * row, "noise": lambda: a + 0.1 * mg.randn(ROWS, WIDTH, dtype=a.dtype),
            "mask": lambda: mg.nn.functional.dropout(a, 0.5),
            "gather": lambda: a[mg.argmax(b[:, :ROWS], 0)], "part": lambda: a[turn % 1 :] + b,
            "integer": lambda: a * (mg.argmax(b, 1, keepdim=True) + turn),
        }[name]()  # fmt: skip

    def loss(self, data):
        mg.manual_seed(self.seed)
        carried, (xs, *shared) = list(data[: self.carries]), data[self.carries :]
        if self.begins == "zeros":
            carried = [mg.zeros(ROWS, WIDTH, dtype=xs.dtype) for _ in carried]
        total, listed, kept = 0, [], mg.full((ROWS, self.turns + 2, WIDTH), 0.5, dtype=xs.dtype)
        for turn, x in enumerate(self.elements(xs)):
            if self.begins == "none" and turn == 0:
                carried = [x * 2.0 for _ in carried]
            values = [*carried, x]
            for name, (i, j) in self.steps:
                a, b = values[i % len(values)], values[j % len(values)]
                values.append(self.step(name, a, b, shared, turn))
            carried = [mg.tanh(values[n % len(values)]) for n in self.after]
            listed.append(values[self.listed % len(values)])
            if self.ends == "place":
                kept[:, turn + 1] = listed[-1]
            if self.ends == "total":
                total = total + (carried[0] * x).mean()
        touched = sum(t.sum() for t in data) * 0.1  # each has a gradient
        end = mg.sin(kept).sum() + touched
        return sum((t**2).sum() for t in carried) + self.end(listed) + total + end

    def end(self, listed):
        if self.ends == "cat":
            return mg.sin(mg.cat(listed, 1)).sum()
        if self.ends == "stack":
            return (mg.sin(mg.stack(listed)) * mg.arange(len(listed)).view(-1, 1, 1)).sum()
        if self.ends == "sum":
            return mg.sin(sum(listed)).sum()
        if self.ends == "some":
            return mg.sin(listed[2] + listed[-3]).sum()
        return mg.sin(listed[-1]).sum()


def outcome(program, data):
    loss = program.loss(data)
    slopes = mg.autograd.grad(loss, data, allow_unused=True)
    return [np.zeros(1) if t is None else t.detach().numpy() for t in (loss, *slopes)]


def compare(seed):
    program = Program(seed)
    data = program.data()
    with mg.config.override(backend="cpu", disk_cache=False, tier0_limit=0):
        made = outcome(program, data)
    with mg.config.override(backend="reference"):
        expected = outcome(program, data)
    for one, other in zip(made, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-7, atol=1e-9)


SETTINGS = settings(deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))


@given(st.integers(0, 1 << 20))
@settings(SETTINGS, max_examples=8)
def test_values_and_gradients(seed):
    compare(seed)


@pytest.mark.long
@given(st.integers(0, 1 << 20))
@settings(SETTINGS, max_examples=150)
def test_more_values_and_gradients(seed):
    compare(seed)


def test_most_of_these_programs_have_a_loop():
    found = 0
    for seed in range(20):
        program = Program(seed)
        recording, _ = trace(lambda program=program: program.loss(program.data()))
        found += bool(find_runs(recording))
    assert found >= 15
