"""Random programs in float64, where results must agree to nine digits.

Programs of all dtypes are in `random_programs/`. Here a program is a list of steps, each a number
of an instruction and three numbers from which the instruction chooses operands and parameters to
fit the shapes at hand; so every list is a program, and smaller lists are simpler ones. It runs
lazily, with a flush after each operator, and by PyTorch; results and gradients must agree.
"""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as TF
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import monograph as mg
import monograph.nn.functional as F

LIMIT = 400  # elements of a value: programs stay small


class Machine:
    """Runs a program with one library: `values` are the results so far, oldest first."""

    def __init__(self, library, functions, make):
        self.library = library
        self.functions = functions
        self.make = make
        self.leaves = []
        self.values = []

    def start(self, shapes):
        """Leaves of these shapes."""
        generator = np.random.default_rng(len(shapes))
        for shape in shapes:
            leaf = self.make(generator.uniform(-1, 1, size=shape)).requires_grad_()
            self.leaves.append(leaf)
        self.values = [leaf * 1.0 for leaf in self.leaves]

    def run(self, steps):
        """All steps of a program."""
        for instruction, a, b, c in steps:
            x = self.values[-1 - a % len(self.values)]
            made = INSTRUCTIONS[instruction % len(INSTRUCTIONS)](self, x, b, c)
            for y in made if isinstance(made, tuple) else (made,):
                if math.prod(y.shape) <= LIMIT:
                    self.values.append(y)

    def other(self, number, x):
        """A value that broadcasts with x: another one, or else its sum."""
        y = self.values[number % len(self.values)]
        try:
            np.broadcast_shapes(tuple(x.shape), tuple(y.shape))
        except ValueError:
            return y.mean() if math.prod(y.shape) else y.sum()
        return y

    def loss(self):
        """A number that every one of the last values takes part in."""
        total = (self.leaves[0] * 0.5).sum()
        for n, y in enumerate(self.values[-4:]):
            total = total + (y * (0.3 + 0.1 * n)).sum()
        return total


def axis_of(x, number):
    return number % x.ndim if x.ndim else 0


def matrix(x):
    """x with exactly two axes."""
    return x.reshape(1, 1) if x.ndim == 0 else x.reshape(-1 if 0 not in x.shape else 0, x.shape[-1])


def unary(m, x, b, c):
    functions = [
        lambda y: y.tanh(),
        lambda y: y.sin(),
        lambda y: (y.tanh() * 2).exp(),
        lambda y: y.sigmoid(),
        lambda y: (y * y + 0.5).log(),
        lambda y: (y * y + 0.1).sqrt(),
        lambda y: m.functions.gelu(y),
        lambda y: m.functions.silu(y),
        lambda y: y.cos() - 0.3,
        lambda y: -y,
        lambda y: (y * y + 1.0).reciprocal(),
        lambda y: y.tanh() ** 3,
    ]
    return functions[b % len(functions)](x)


def binary(m, x, b, c):
    y = m.other(b, x)
    functions = [
        lambda: x + y,
        lambda: x - y,
        lambda: x.tanh() * y,
        lambda: x / (y * y + 1.0),
        lambda: m.library.where(y.detach() > 0.1, x, y),
        lambda: (x * 0.5).lerp(y, 0.3) if x.shape == y.shape else y * 0.5 + x,
        lambda: y.masked_fill(y.detach() < -0.2, 0.25) + x,
    ]
    return functions[c % len(functions)]()


def reshape(m, x, b, c):
    size = math.prod(x.shape)
    if size == 0:
        return x.unsqueeze(b % (x.ndim + 1))
    divisors = [d for d in range(1, size + 1) if size % d == 0]
    first = divisors[b % len(divisors)]
    rest = size // first
    second = [d for d in range(1, rest + 1) if rest % d == 0][c % 2 and -1]
    return x.reshape(first, second, -1)


def permute(m, x, b, c):
    order = list(np.random.default_rng(b).permutation(x.ndim))
    return x.permute(*[int(k) for k in order]) if x.ndim else x


def index(m, x, b, c):
    if x.ndim == 0:
        return x[None]
    k = axis_of(x, b)
    extent = x.shape[k]
    keys = [
        slice(c % (extent + 1), None),
        slice(None, None, 1 + c % 3),
        slice(-(c % 3) - 1, None),
        slice(1, -1),
        c % extent if extent else slice(0, 0),
        None,
    ]
    return x[(slice(None),) * k + (keys[c % len(keys)],)]


def rearrange(m, x, b, c):
    k = axis_of(x, b)
    if x.ndim == 0:
        return x.reshape(1)
    functions = [
        lambda: x.flip(k),
        lambda: m.functions.pad(x, (c % 3, 1)),
        lambda: m.functions.pad(x, (1, -1), value=0.5) if x.shape[-1] else x,
        lambda: m.library.cat([x, x * 0.5], k),
        lambda: m.library.cat([x.narrow(k, 0, x.shape[k] // 2), x], k),
        lambda: m.library.stack([x, x + 1.0], c % (x.ndim + 1)),
        lambda: x.transpose(0, k),
        lambda: x.unsqueeze(-1).expand(*x.shape, 1 + c % 3),
        lambda: m.library.tril(x) if x.ndim > 1 else x,
        lambda: x.flatten(),
        lambda: x.split(1 + c % 3, k)[-1],
        lambda: x.squeeze(),
    ]
    return functions[c % len(functions)]()


def reduction(m, x, b, c):
    if math.prod(x.shape) == 0:
        return x.sum(axis_of(x, b)) if x.ndim else x
    k = axis_of(x, b)
    keep = bool(b % 2)
    functions = [
        lambda: x.sum(k, keepdim=keep),
        lambda: x.mean(k, keepdim=keep),
        lambda: x.sum(),
        lambda: x.tanh().prod(k, keepdim=keep),
        lambda: x.logsumexp(k, keepdim=keep),
        lambda: x.softmax(k),
        lambda: x.log_softmax(k) * 0.1,
        lambda: x.var(k, correction=0, keepdim=keep),
        lambda: x - x.mean(k, keepdim=True) if x.ndim else x,
    ]
    return functions[c % len(functions)]()


def product(m, x, b, c):
    a = matrix(x)
    others = [matrix(y) for y in m.values]
    fitting = [y for y in others if y.shape[0] == a.shape[1]] or [a.T]
    chosen = fitting[b % len(fitting)]
    if c % 3 == 0:
        return m.functions.linear(a, chosen.T).tanh()
    if c % 3 == 1:
        return (a.unsqueeze(0) @ m.library.stack([chosen, chosen * 0.5])).tanh()
    return (a @ chosen).tanh()


def lookup(m, x, b, c):
    if math.prod(x.shape) == 0 or x.ndim == 0:
        return x * 2.0
    places = np.random.default_rng(b)
    if c % 3 == 0:
        table = matrix(x)
        return m.functions.embedding(m.make(places.integers(0, len(table), size=(2, 2))), table)
    k = axis_of(x, c)
    if c % 3 == 1:
        return x.index_select(k, m.make(places.integers(0, x.shape[k], size=3)))
    return x.gather(k, m.make(places.integers(0, x.shape[k], size=tuple(x.shape))))


def layer_norm(m, x, b, c):
    if x.ndim == 0 or math.prod(x.shape) == 0:
        return x + 1.0
    weight = x.reshape(-1, x.shape[-1])[0]
    return m.functions.layer_norm(x, (x.shape[-1],), weight, weight * 0.5, 0.1)


def write(m, x, b, c):
    """A copy, written to through views of it; the copy and a view are results."""
    y = x.clone()
    view = y
    for number in (b, c):
        if view.ndim == 0:
            break
        k = axis_of(view, number)
        views = [
            lambda v, k=k: v.transpose(0, k),
            lambda v, k=k: v.narrow(k, 0, (v.shape[k] + 1) // 2),
            lambda v, k=k: v[(slice(None),) * k + (slice(None, None, 2),)],
            lambda v, k=k: v.unsqueeze(k),
            lambda v, k=k: v[0] if v.shape[0] else v,
        ]
        view = views[number % len(views)](view)
    view.mul_(0.5)
    if c % 2:
        view.add_(x.sum())
    if c % 3 == 0 and y.ndim and y.shape[0]:
        y[0] = 0.25
    return y, view


INSTRUCTIONS = [
    unary, binary, reshape, permute, index, rearrange, reduction, product, lookup, layer_norm,
    write,
]  # fmt: skip

numbers = st.integers(0, 40)
steps = st.tuples(st.integers(0, len(INSTRUCTIONS) - 1), numbers, numbers, numbers)
extents = st.sampled_from([1, 2, 3, 4, 5, 2, 3, 0])
shapes = st.lists(st.lists(extents, max_size=3).map(tuple), min_size=1, max_size=3)
programs = st.tuples(shapes, st.lists(steps, min_size=10, max_size=20))


def outcome(machine, program):
    """The last results and the gradients of the leaves, as arrays."""
    shapes_, steps_ = program
    machine.start(shapes_)
    machine.run(steps_)
    kept = machine.values[-4:]
    machine.loss().backward()
    gradients = [x.grad for x in machine.leaves]
    machine.values = []
    found = [*kept, *gradients]
    return [None if y is None else y.detach().numpy() for y in found]


def ours():
    return Machine(mg, F, mg.tensor)


def theirs():
    return Machine(torch, TF, torch.from_numpy)


def check(made, expected, where):
    for n, (a, b) in enumerate(zip(made, expected, strict=True)):
        if a is None or b is None:
            assert a is b or not np.any(a if b is None else b), where
            continue
        assert a.shape == b.shape, where
        scale = max(1.0, float(np.abs(b).max())) if b.size and np.isfinite(b).all() else 1.0
        np.testing.assert_allclose(
            a, b, rtol=1e-9, atol=1e-9 * scale, err_msg=f"{where}, result {n}"
        )


def agree(program, backend):
    """Lazily, with a flush after each operator, and by PyTorch: the same."""
    expected = outcome(theirs(), program)
    # Nothing is interpreted that can be compiled, so that small programs are tested too.
    with mg.config.override(backend=backend, tier0_limit=0):
        check(outcome(ours(), program), expected, f"lazily on {backend}")
    with mg.config.override(backend=backend), mg.eager():
        check(outcome(ours(), program), expected, f"eagerly on {backend}")


backends = pytest.mark.parametrize("backend", ["reference", "cpu"])
relaxed = {"deadline": None, "suppress_health_check": list(HealthCheck), "derandomize": True}


@pytest.mark.long
@backends
@settings(max_examples=100, phases=[Phase.generate], **relaxed)
@given(programs)
def test_programs(backend, program):
    agree(program, backend)


@pytest.mark.long
@settings(max_examples=50, phases=[Phase.generate], **relaxed)
@given(programs)
def test_programs_stay_within_their_buffers(program):
    expected = outcome(theirs(), program)
    with mg.config.override(backend="cpu", tier0_limit=0, bounds_checks=True):
        check(outcome(ours(), program), expected, "with bounds compared")


@pytest.mark.long
@backends
@settings(max_examples=2000, **relaxed)
@given(st.tuples(shapes, st.lists(steps, min_size=5, max_size=40)))
def test_many_programs(backend, program):
    agree(program, backend)


# Programs that once went wrong, and what was wrong with them.
FOUND = {
    "a result that is asked for twice": (
        [(5, 3, 3)],
        [
            (7, 39, 18, 32), (3, 25, 22, 40), (5, 4, 26, 32), (4, 15, 25, 2), (7, 34, 2, 2),
            (4, 14, 33, 3), (9, 9, 31, 38), (10, 33, 17, 38), (6, 10, 14, 21), (8, 20, 24, 14),
        ],
    ),
    "a scatter of one number to one place": (
        [(4, 3), (0,), (1,)],
        [
            (9, 21, 23, 21), (10, 30, 7, 27), (4, 9, 24, 37), (3, 14, 33, 31), (4, 16, 40, 28),
            (5, 23, 28, 5), (9, 7, 4, 18), (0, 0, 13, 12), (8, 13, 11, 20), (1, 14, 23, 25),
            (4, 22, 1, 32), (8, 32, 10, 30),
        ],
    ),
    "a scatter of rows of one number": (
        [(2,)],
        [
            (6, 14, 9, 33), (8, 26, 1, 23), (7, 10, 21, 8), (5, 4, 40, 37), (2, 37, 6, 25),
            (6, 40, 36, 34), (6, 6, 20, 0), (9, 34, 1, 27), (4, 28, 4, 6), (0, 9, 25, 23),
            (6, 16, 28, 16), (5, 33, 21, 19),
        ],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FOUND)
def test_programs_found_before_on_the_reference(name):
    agree(FOUND[name], "reference")


@pytest.mark.parametrize("name", FOUND)
def test_programs_found_before_on_the_cpu(name):
    agree(FOUND[name], "cpu")
