"""A read between forward and backward: what is known is not computed again."""

import numpy as np
import pytest

import monograph as mg
import monograph.nn.functional as F
from monograph import record
from monograph.explain import report_of
from monograph.storage import Value
from tests.autograd.both import agree, leaf

SIZE, LAYERS = 64, 3


def model():
    generator = np.random.default_rng(0)
    arrays = [generator.normal(size=(SIZE, SIZE)) / 8 for _ in range(LAYERS)]
    return [mg.Parameter(array.astype(np.float32)) for array in arrays]


def step(weights, x, read):
    for w in weights:
        w.grad = None
    h = x
    for w in weights:
        h = F.gelu(F.linear(h, w)) + h
    loss = (h * h).mean()
    if read:
        loss.item()
    loss.backward()
    mg.synchronize()
    return [w.grad.tolist() for w in weights]


def products(work):
    """How many matrix products the programs of a piece of work have."""
    with record.programs.observed() as seen:
        work()
    return sum(k.kind == "library" for made in seen for k in report_of(made).kernels)


@pytest.mark.compiled
@pytest.mark.skipif(not mg.config.onednn, reason="counts calls of the library")
def test_products_are_not_computed_again():
    weights, x = model(), mg.ones(SIZE, SIZE)
    whole = products(lambda: step(weights, x, read=False))
    assert whole == 3 * LAYERS - 1  # nobody asked for the derivative by x
    first = products(lambda: step(weights, x, read=True))
    assert first > whole  # that a backward follows is not known yet
    assert products(lambda: step(weights, x, read=True)) == whole


def test_programs_are_few():
    weights, x = model(), mg.ones(SIZE, SIZE)
    for _ in range(3):
        step(weights, x, read=True)
    before = mg.stats().compilations
    for _ in range(3):
        step(weights, x, read=True)
    assert mg.stats().compilations == before


def test_gradients_are_the_same():
    weights, x = model(), mg.ones(SIZE, SIZE)
    expected = step(weights, x, read=False)
    for _ in range(3):
        made = step(weights, x, read=True)
        np.testing.assert_allclose(made, expected, rtol=2e-4, atol=1e-5)


def kept(loss):
    """How many results on the tape of a loss have contents that no tensor holds."""
    found, seen, stack = 0, set(), [loss._value()]
    while stack:
        value = stack.pop()
        if id(value) in seen or value.tape is None:
            continue
        seen.add(id(value))
        owner = value.owner() if value.owner is not None else None
        found += value.ready and (owner is None or owner.value is not value)
        stack += [v for v in value.tape.inputs if isinstance(v, Value) and v.requires_grad]
    return found


@pytest.mark.parametrize("hooked", [False, True])
def test_what_was_kept_is_freed(hooked):
    weights, x = model(), mg.ones(SIZE, SIZE)
    for _ in range(3):
        h = x
        for w in weights:
            h = F.gelu(F.linear(h, w)) + h
            if hooked:
                h.register_hook(lambda g: None)
        loss = (h * h).mean()
        del h
        loss.item()
        held = kept(loss)
        loss.backward(retain_graph=True)
        assert kept(loss) == held
        loss.backward()
        assert kept(loss) == 0
        for w in weights:
            w.grad = None
        mg.synchronize()
    assert held >= LAYERS


@pytest.mark.parametrize("backend", ["cpu", "reference"])
def test_operators_whose_derivative_reads_the_result(backend):
    def program(library):
        x, w = leaf(library, [[0.1, 0.2], [0.3, 0.4]]), leaf(library, [[0.5, -0.6], [0.7, 0.8]])
        found = []
        for _ in range(3):
            h = (x @ w).softmax(1).exp()
            n = h.amax(1)
            h.sum().item()
            n.sum().item()
            loss = ((h @ w).tanh().prod() * n).logsumexp(0)
            loss.item()
            loss.backward()
            found.append([x.grad.tolist(), w.grad.tolist()])
            x.grad = w.grad = None
        return found

    with mg.config.override(backend=backend):
        agree(program)


def test_second_derivatives_with_reads_between():
    def program(library):
        x = leaf(library, [[0.1, 0.2], [0.3, 0.4]])
        found = []
        for _ in range(3):
            y = (x @ x).tanh()
            y.sum().item()
            (first,) = library.autograd.grad(y.sum(), x, create_graph=True)
            first.sum().item()
            (second,) = library.autograd.grad((first * first).sum(), x)
            found.append([first.tolist(), second.tolist()])
        return found

    agree(program)


def test_a_small_result_that_nobody_held_is_kept_the_next_time():
    times = 2000  # a mask of a batch is small
    x = mg.tensor([1.0, -2.0, 3.0] * times)
    w = mg.tensor([1.0, 2.0, 3.0] * times, requires_grad=True)
    counts = []
    for _ in range(3):
        w.grad = None
        out = w * (x > 0).to(mg.float32)  # nobody holds the mask
        assert out.sum().item() == 4 * times
        before = mg.stats().recorded
        (out * out).sum().backward()
        assert w.grad.tolist() == [2.0, 0.0, 6.0] * times
        counts.append(mg.stats().recorded - before)
    assert counts[1] == counts[2] < counts[0]
