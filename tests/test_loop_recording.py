"""Loops as one operator: against turns made one after the other, compiled and interpreted."""

import numpy as np
import pytest

import monograph as mg
from monograph import backends
from monograph.loop_recording import LOOP
from monograph.recorder import current

RNG = np.random.default_rng(7)


@pytest.fixture(params=["compiled", "interpreted", "unrolled"])
def way(request, monkeypatch):
    """Every test runs on the native loop, in the reference, and unrolled by the compiler."""
    if request.param == "unrolled":
        monkeypatch.setattr(backends.load("cpu"), "LOOPS", False)
    backend = "reference" if request.param == "interpreted" else "cpu"
    with mg.config.override(backend=backend, tier0_limit=0, disk_cache=False):
        yield request.param


def array(*shape, dtype=np.float64):
    return mg.tensor(RNG.standard_normal(shape).astype(dtype))


def turns(f, carry, xs, reverse=False):
    """What `mg.scan` means."""
    ys = {}
    count = len(xs)
    for n in reversed(range(count)) if reverse else range(count):
        carry, ys[n] = f(carry, xs[n])
    return carry, mg.stack([ys[n] for n in range(count)])


def assert_equal(made, expected, tolerance=1e-9):
    np.testing.assert_allclose(
        made.detach().numpy(), expected.detach().numpy(), rtol=tolerance, atol=tolerance
    )


def recorded(function):
    """Names of the operators that a function records."""
    mg.synchronize()
    kept = function()
    recorder = current.recorder
    names = [entry.signature.operator.name for entry in recorder.records]
    del kept
    return names


def test_a_scan_is_one_operator(way):
    xs, w = array(9, 4), array(4, 4)
    mg.eval(xs, w)
    names = recorded(
        lambda: mg.scan(lambda h, x: (mg.tanh(h @ w + x), h), mg.zeros(4).double(), xs)
    )
    assert names.count(LOOP.name) == 1 and "tanh" not in names and len(names) < 6


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("count", [2, 5])
def test_values_and_gradients(way, reverse, count):
    xs, w, b, h0 = array(count, 3, 4), array(4, 4), array(4), array(3, 4)

    def cell(h, x):
        h = mg.tanh(h @ w + x * b)
        return h, mg.exp(h) * x

    def loss(run):
        last, ys = run(cell, h0, xs, reverse=reverse)
        return (last**2).sum() + (ys * ys).sum()

    for t in (xs, w, b, h0):
        t.requires_grad_()
    assert_equal(loss(mg.scan), loss(turns))
    made = mg.autograd.grad(loss(mg.scan), [xs, w, b, h0])
    for one, other in zip(made, mg.autograd.grad(loss(turns), [xs, w, b, h0]), strict=True):
        assert_equal(one, other)


@pytest.mark.long
def test_second_derivatives_jvp_and_vmap(way):
    xs, w, h0 = array(4, 3), array(3, 3), array(3)

    def loss(run, xs, w, h0):
        def cell(h, x):
            h = mg.tanh(h @ w + x)
            return h, h * x

        last, ys = run(cell, h0, xs)
        return (last**3).sum() + mg.sin(ys).sum()

    by_scan = lambda *given: loss(mg.scan, *given)  # noqa: E731
    by_hand = lambda *given: loss(turns, *given)  # noqa: E731
    for n in range(3):
        assert_equal(mg.hessian(by_scan, n)(xs, w, h0), mg.hessian(by_hand, n)(xs, w, h0))
        slope = mg.jvp(mg.grad(by_scan, n), (xs, w, h0), (xs * 2, w, h0))[1]
        assert_equal(slope, mg.jvp(mg.grad(by_hand, n), (xs, w, h0), (xs * 2, w, h0))[1])
    many = array(2, 4, 3), array(2, 3, 3), array(2, 3)
    for dims in ((0, 0, 0), (0, None, None), (None, 0, None), (None, None, 0)):
        given = [m if d == 0 else m[0] for m, d in zip(many, dims, strict=True)]
        for f in (lambda f: f, lambda f: mg.grad(f, 1)):
            made = mg.vmap(f(by_scan), dims)(*given)
            assert_equal(made, mg.vmap(f(by_hand), dims)(*given))


def test_carries_of_all_kinds(way):
    xs = array(6, 2)

    def cell(carry, x):
        count, swapped, (a, b), still, flag = carry
        after = (count + 1, swapped, (b, a + x), still, mg.logical_not(flag))
        return after, (count, still * a, flag)

    start = (mg.tensor(3), mg.tensor([1, 2]), (array(2), array(2)), array(2), mg.tensor(True))
    made, stacks = mg.scan(cell, start, xs)
    carry, ys = start, []
    for n in range(6):
        carry, y = cell(carry, xs[n])
        ys.append(y)
    for one, other in zip(mg.tree.leaves(made), mg.tree.leaves(carry), strict=True):
        assert one.dtype is other.dtype
        assert_equal(one, other)
    for n, stack in enumerate(stacks):
        assert_equal(stack, mg.stack([y[n] for y in ys]))


def test_loops_within_loops(way):
    xs, w = array(3, 2), array(2, 2).requires_grad_()

    def inner(run, h, x):
        def turn(c, k):
            c = mg.sin(c @ w) + k * x
            return c, c * h

        last, ys = run(turn, h, array_of_steps)
        return last, ys.sum(0)

    array_of_steps = array(4, 2)

    def loss(run):
        last, ys = run(lambda h, x: inner(run, h, x), mg.ones(2).double(), xs)
        return last.sum() + (ys**2).sum()

    assert_equal(loss(mg.scan), loss(turns))
    (made,) = mg.autograd.grad(loss(mg.scan), w)
    (expected,) = mg.autograd.grad(loss(turns), w)
    assert_equal(made, expected)


def test_random_numbers_are_those_of_the_turns(way):
    def cell(h, x):
        h = h + mg.rand(3) * x
        return h, mg.nn.functional.dropout(h, 0.5) + mg.randn(3)

    xs = array(5, 3, dtype=np.float32)
    for reverse in (False, True):
        mg.manual_seed(5)
        expected = [*turns(cell, mg.zeros(3), xs, reverse), mg.rand(2)]
        mg.manual_seed(5)
        made = [*mg.scan(cell, mg.zeros(3), xs, reverse=reverse), mg.rand(2)]
        for one, other in zip(made, expected, strict=True):
            assert_equal(one, other, 1e-6)


def test_random_numbers_of_a_replay(way):
    xs = array(4, 2, dtype=np.float32)
    draw = lambda h, x: (h + mg.rand(2) * x, mg.rand(2))  # noqa: E731
    run = mg.jit(lambda xs: mg.scan(draw, mg.zeros(2), xs))
    mg.manual_seed(1)
    made = [part.numpy() for _ in range(4) for part in run(xs)]
    mg.manual_seed(1)
    expected = [part.numpy() for _ in range(4) for part in turns(draw, mg.zeros(2), xs)]
    for one, other in zip(made, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)


def test_a_turn_that_reads_values_is_made_turn_by_turn(way):
    seen = []

    def cell(h, x):
        seen.append(1)
        return (h + x if h.item() < 2 else h - x), h

    xs = mg.tensor([1.0, 2.0, 3.0])
    last, ys = mg.scan(cell, mg.tensor(0.0), xs)
    assert last.item() == 0.0 and ys.tolist() == [0.0, 1.0, 3.0]


def test_tensors_of_a_turn_stay_inside():
    leaked = []
    mg.scan(lambda h, x: (h + x, leaked.append(h)), mg.zeros(2), array(3, 2, dtype=np.float32))
    with pytest.raises(RuntimeError, match="under vmap or scan is used outside"):
        (leaked[0] + 1).detach().numpy()
    mg.synchronize()


def test_hooks_and_custom_functions_run_each_turn(way):
    class Double(mg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

    xs = array(3, 2).requires_grad_()
    calls = []

    def hooked(h, x):
        h = h * x
        h.register_hook(lambda g: calls.append(1))
        return h, h

    mg.scan(hooked, mg.ones(2).double(), xs)[0].sum().backward()
    assert len(calls) == 3
    last, _ = mg.scan(lambda h, x: (Double.apply(h + x), h), mg.ones(2).double(), xs)
    xs.grad = None
    last.sum().backward()
    assert xs.grad.tolist() == [[8.0, 8.0], [4.0, 4.0], [2.0, 2.0]]


def test_parts_without_gradients(way):
    xs, w = array(4, 3), array(3, 3).requires_grad_()

    def cell(carry, x):
        h, total = carry
        with mg.no_grad():
            total = total + h.sum()
        h = mg.tanh(h @ w + x)
        return (h, total), (h.detach() * 2, mg.argmax(h))

    (h, total), (detached, where) = mg.scan(
        cell, (mg.zeros(3).double(), mg.tensor(0.0).double()), xs
    )
    assert h.requires_grad and not detached.requires_grad and not where.requires_grad
    assert not total.requires_grad
    (made,) = mg.autograd.grad(h.sum(), w)
    hand = mg.zeros(3).double()
    for n in range(4):
        hand = mg.tanh(hand @ w + xs[n])
    assert_equal(made, mg.autograd.grad(hand.sum(), w)[0])


def test_gradients_of_captured_parameters_accumulate(way):
    layer = mg.nn.Linear(3, 3)
    xs = array(5, 2, 3, dtype=np.float32)
    cell = lambda h, x: ((out := mg.tanh(layer(h) + x)), out)  # noqa: E731
    for run in (mg.scan, turns):
        run(cell, mg.zeros(2, 3), xs)[1].sum().backward()
    twice = layer.weight.grad.numpy().copy()
    layer.zero_grad()
    mg.scan(cell, mg.zeros(2, 3), xs)[1].sum().backward()
    np.testing.assert_allclose(layer.weight.grad.numpy() * 2, twice, rtol=1e-4, atol=1e-5)


def test_wrong_indices_inside_a_loop(way):
    table = array(4, 2)
    good, bad = mg.tensor([0, 3, 1]), mg.tensor([0, 4, 1])
    pick = lambda h, n: (h + mg.nn.functional.embedding(n, table), h)  # noqa: E731
    last, _ = mg.scan(pick, mg.zeros(2).double(), good)
    assert_equal(last, table[0] + table[3] + table[1])
    with pytest.raises(IndexError, match="4"):
        mg.scan(pick, mg.zeros(2).double(), bad)[0].numpy()
    assert_equal(mg.scan(pick, mg.zeros(2).double(), good)[0], last)


def test_complex_numbers(way):
    xs, w = array(4, 3), array(3, 3)
    z = mg.complex(w, w.t()).requires_grad_()

    def loss(run):
        last, ys = run(
            lambda h, x: ((h @ z) * 0.3 + x, (h.abs() ** 2).sum()),
            mg.zeros(3).to(mg.complex128),
            xs,
        )
        return (last.abs() ** 2).sum() + ys.sum()

    assert_equal(loss(mg.scan), loss(turns))
    (made,) = mg.autograd.grad(loss(mg.scan), z)
    (expected,) = mg.autograd.grad(loss(turns), z)
    assert_equal(made, expected)


def test_sorting_and_running_totals_inside(way):
    xs = array(3, 5).requires_grad_()

    def cell(h, x):
        h = mg.sort(h + x)[0]
        return h, mg.cumsum(h, 0)

    for run in (mg.scan, turns):
        last, ys = run(cell, mg.zeros(5).double(), xs)
        (slope,) = mg.autograd.grad((last * ys).sum(), xs)
        if run is mg.scan:
            kept = last, ys, slope
    for one, other in zip(kept, (last, ys, slope), strict=True):
        assert_equal(one, other)


def test_convolutions_around_and_inside(way):
    images, kernel = array(3, 2, 4, 8, 8, dtype=np.float32), array(4, 4, 3, 3, dtype=np.float32)
    kernel.requires_grad_()
    conv = lambda x: mg.nn.functional.conv2d(x, kernel, padding=1)  # noqa: E731

    def loss(run):
        cell = lambda h, x: ((out := mg.tanh(conv(h) + x)), out)  # noqa: E731
        last, ys = run(cell, conv(images[0]), images)
        return conv(last).sum() + conv(ys[1]).sum()

    assert_equal(loss(mg.scan), loss(turns), 1e-4)
    (made,) = mg.autograd.grad(loss(mg.scan), kernel)
    (expected,) = mg.autograd.grad(loss(turns), kernel)
    assert_equal(made, expected, 2e-3)


def test_half_precision_is_rounded_each_turn(way):
    xs = array(6, 3, dtype=np.float32).bfloat16()
    cell = lambda h, x: ((out := h * 0.9 + x), out)  # noqa: E731
    for one, other in zip(
        mg.scan(cell, mg.zeros(3).bfloat16(), xs),
        turns(cell, mg.zeros(3).bfloat16(), xs),
        strict=True,
    ):
        assert one.dtype is mg.bfloat16
        np.testing.assert_array_equal(one.float().numpy(), other.float().numpy())


def test_empty_arrays(way):
    last, ys = mg.scan(lambda h, x: (h + x, h * x), mg.zeros(0, 2), mg.zeros(3, 0, 2))
    assert last.shape == (0, 2) and ys.shape == (3, 0, 2)
    assert ys.numpy().shape == (3, 0, 2)


def test_fori_loop_and_map(way):
    x = array(4).requires_grad_()
    by_loop = mg.fori_loop(1, 5, lambda i, c: mg.sin(c) * i, x)
    by_hand = x
    for n in range(1, 5):
        by_hand = mg.sin(by_hand) * n
    assert_equal(by_loop, by_hand)
    assert_equal(mg.autograd.grad(by_loop.sum(), x)[0], mg.autograd.grad(by_hand.sum(), x)[0])
    parts = [array(2), array(2)]
    assert_equal(
        mg.fori_loop(0, 2, lambda i, c: c + parts[i], mg.zeros(2).double()), parts[0] + parts[1]
    )
    rows = array(3, 4)
    assert_equal(mg.map(lambda r: mg.softmax(r, 0), rows), mg.softmax(rows, 1))


def test_numbers_are_slots():
    """Another number in a turn compiles nothing."""
    xs = array(4, 3)
    run = lambda k: mg.scan(lambda h, x: (h * k + x, h), mg.zeros(3).double(), xs)[0].numpy()  # noqa: E731
    with mg.config.override(tier0_limit=0, disk_cache=False):
        run(0.5)
        before = mg.stats().compilations
        expected = turns(lambda h, x: (h * 0.25 + x, h), mg.zeros(3).double(), xs)[0].numpy()
        compiled = mg.stats().compilations
        np.testing.assert_allclose(run(0.25), expected)
        assert mg.stats().compilations == compiled and compiled >= before
