"""Small programs in the public API that a GPU backend must compute as the reference does.

Each function returns a list of tensors. They are run with Triton's interpreter where there is no
GPU (`test_interpreted.py`), and on a GPU by `tests/gpu`.
"""

import numpy as np

import monograph as mg
from monograph.nn import functional as F
from tests.models import training

PROGRAMS = {}


def program(function):
    PROGRAMS[function.__name__] = function
    return function


def largest_error(function, backend):
    """The largest difference between a backend and the reference, relative to the values."""
    with mg.config.override(backend="reference"):
        wanted = [np.array(t.detach().numpy()) for t in _run(function)]
    with mg.config.override(backend=backend):
        found = [np.array(t.detach().numpy()) for t in _run(function)]
    assert len(wanted) == len(found)
    return max(_error(w, f) for w, f in zip(wanted, found))


def _run(function):
    mg.manual_seed(0)
    return function(np.random.default_rng(0))


def _error(wanted, found):
    assert wanted.shape == found.shape and wanted.dtype == found.dtype
    wanted, found = (np.asarray(a, np.float64) for a in (wanted, found))
    if not np.array_equal(np.isfinite(wanted), np.isfinite(found)):
        return float("inf")
    finite = np.isfinite(wanted)
    scale = np.abs(wanted[finite]).max(initial=1e-30)
    return float(np.abs(wanted[finite] - found[finite]).max(initial=0) / scale)


def normal(rng, *shape):
    return mg.tensor(rng.standard_normal(shape, dtype=np.float32))


@program
def softmax(rng):
    return [F.softmax(normal(rng, 37, 200), dim=-1), F.softmax(normal(rng, 19, 50), dim=0)]


@program
def layer_norm(rng):
    x, w, b = normal(rng, 6, 21, 96), normal(rng, 96), normal(rng, 96)
    for each in (x, w, b):
        each.requires_grad_()
    y = F.layer_norm(x, (96,), w, b)
    (y * normal(rng, 6, 21, 96)).sum().backward()
    return [y.detach(), x.grad, w.grad, b.grad]


@program
def gelu(rng):
    x, bias = normal(rng, 33, 96).requires_grad_(), normal(rng, 96).requires_grad_()
    y = F.gelu(x + bias, approximate="tanh") + F.gelu(x)
    y.sum().backward()
    return [y.detach(), x.grad, bias.grad]


@program
def adamw(rng):
    """Enough elements that the corrections for the step are computed by a launch of their own."""
    shapes = ((40, 30), (17,), (130,), (5, 7), (1 << 16,))
    params = [mg.nn.Parameter(normal(rng, *shape)) for shape in shapes]
    optimizer = mg.optim.AdamW(params, lr=1e-2)
    for _ in range(3):
        for p in params:
            p.grad = normal(rng, *p.shape)
        optimizer.step()
    return [p.detach() for p in params]


@program
def cross_entropy(rng):
    logits = normal(rng, 40, 65).requires_grad_()
    target = mg.tensor(rng.integers(0, 65, 40))
    loss = F.cross_entropy(logits, target)
    loss.backward()
    return [loss.detach(), logits.grad, logits.detach().argmax(1)]


@program
def embedding(rng):
    """Many tokens share a row of the table, so gradients are combined."""
    table = normal(rng, 11, 24).requires_grad_()
    tokens = mg.tensor(rng.integers(0, 11, (6, 30)))
    y = F.embedding(tokens, table)
    (y * normal(rng, 6, 30, 24)).sum().backward()
    return [y.detach(), table.grad]


@program
def dropout(rng):
    x = normal(rng, 50, 70).requires_grad_()
    y = F.dropout(x, 0.4)
    (y * y).sum().backward()
    return [y.detach(), x.grad, mg.rand(1000), mg.randn(333)]


@program
def totals(rng):
    """Long reductions to one number, and to one per column."""
    x = normal(rng, 150, 301)
    y = normal(rng, 37, 90)  # Triton's interpreter takes other sums element by element
    return [x.sum(), y.max(), (x * x).mean(), x.sum(0), y.amax(0), x.sum(1), (y > 2).any()]


@program
def integers_and_masks(rng):
    x, n = normal(rng, 30, 40), mg.tensor(rng.integers(-9, 9, (30, 40)))
    mask = x > 0.3
    return [mg.where(mask, x, -x), n * 2 - 1, mask, n.argmax(1), x.argmax(0)]


@program
def pictures(rng):
    """Convolution and pooling as loops."""
    x = normal(rng, 2, 3, 9, 10).requires_grad_()
    w = normal(rng, 4, 3, 3, 3).requires_grad_()
    y = F.max_pool2d(F.conv2d(x, w, padding=1), 2)
    (y * y).sum().backward()
    return [y.detach(), x.grad, w.grad]


@program
def products(rng):
    a, b = normal(rng, 3, 20, 16), normal(rng, 3, 16, 24)
    q = normal(rng, 2, 9, 4, 8).transpose(1, 2)
    return [a @ b, b.transpose(1, 2) @ a.transpose(1, 2), a[0].T @ a[1], q @ q.transpose(2, 3)]


@program
def in_place(rng):
    x = normal(rng, 20, 30)
    shared = np.ones(5, np.float32)
    seen = mg.from_numpy(shared) if hasattr(mg, "from_numpy") else mg.tensor(shared)
    seen += 2
    x.mul_(2)
    x[3] = 7.0
    return [x, seen, mg.tensor(shared)]


def _train(name, steps, batch=None):
    """Losses, not weights: Adam turns gradients that are zero but for rounding into steps."""
    run, framework = training.RUNS[name]("float32"), training.monograph()
    run.batch = batch or run.batch
    model = run.build(framework)
    return [mg.tensor(training.train(run, framework, model, steps))]


@program
def train_mlp(rng):
    return _train("mlp", 4)


@program
def train_cnn(rng):
    return _train("cnn", 2, batch=3)  # Triton's interpreter takes seconds for an image


@program
def train_gpt(rng):
    return _train("gpt", 2)


@program
def elementwise(rng):
    """Functions that libdevice has, and integers that it has not."""
    x = mg.tensor(rng.uniform(0.05, 0.95, 300).astype(np.float32))
    y = mg.tensor(rng.uniform(-3, 3, 300).astype(np.float32))
    names = ("exp2", "log2", "log10", "tan", "asin", "acos", "atan", "sinh", "cosh", "asinh")
    made = [getattr(mg, name)(x) for name in (*names, "atanh", "erfc", "lgamma", "erfinv")]
    made += [mg.acosh(x + 1), mg.hypot(x, y), mg.atan2(x, y), mg.copysign(x, y), mg.fmod(y, x)]
    made += [*mg.frexp(y), mg.nextafter(y, x), mg.floor_divide(y, x), mg.digamma(y)]
    a = mg.tensor(rng.integers(-90, 90, 300))
    b = mg.tensor(rng.integers(-9, 9, 300))
    made += [mg.fmod(a, b | 1)]  # zeros are an error
    return [*made, mg.gcd(a, b), mg.lcm(a, b), a << (b & 7), a >> (b & 7)]
