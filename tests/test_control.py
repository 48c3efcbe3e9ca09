"""Loops and branches as functions: against unrolled code, with first and second derivatives."""

import numpy as np
import pytest

import monograph as mg

RNG = np.random.default_rng(0)


def array(*shape):
    return mg.tensor(RNG.standard_normal(shape))


def assert_equal(made, expected):
    np.testing.assert_allclose(made.numpy(), expected.numpy(), rtol=1e-10, atol=1e-12)


W = array(3, 3)


def cell(carry, x):
    """A small recurrent cell with a tree as its state."""
    h, count = carry["h"], carry["count"]
    h = mg.tanh(h @ W + x)
    return {"h": h, "count": count + 1}, (h * 2, h.sum())


def start():
    return {"h": mg.zeros(3, dtype=mg.float64), "count": mg.tensor(0)}


def unrolled(xs, w, order):
    """The cell's turns one after the other."""
    h, hs = mg.zeros(w.shape[0], dtype=mg.float64), {}
    for n in order:
        h = mg.tanh(h @ w + xs[n])
        hs[n] = h
    return h, mg.stack([hs[n] for n in range(len(hs))])


def scanned(xs, w, reverse=False):
    def body(h, x):
        h = mg.tanh(h @ w + x)
        return h, h

    return mg.scan(body, mg.zeros(w.shape[0], dtype=mg.float64), xs, reverse=reverse)


@pytest.mark.parametrize("reverse", [False, True])
def test_scan_and_its_derivatives(reverse):
    xs, w = array(3, 2), array(2, 2)
    order = range(2, -1, -1) if reverse else range(3)

    def loss(parts):
        return (parts[0] ** 2).sum() + mg.sin(parts[1]).sum()

    by_scan = lambda x, w: loss(scanned(x, w, reverse))  # noqa: E731
    by_hand = lambda x, w: loss(unrolled(x, w, order))  # noqa: E731
    for a, b in zip(scanned(xs, w, reverse), unrolled(xs, w, order), strict=True):
        assert_equal(a, b)
    for n in (0, 1):
        assert_equal(mg.grad(by_scan, n)(xs, w), mg.grad(by_hand, n)(xs, w))
        assert_equal(mg.hessian(by_scan, n)(xs, w), mg.hessian(by_hand, n)(xs, w))
        assert_equal(
            mg.jvp(mg.grad(by_scan, n), (xs, w), (xs, w))[1],
            mg.jvp(mg.grad(by_hand, n), (xs, w), (xs, w))[1],
        )


def test_scan_carries_trees():
    xs = array(4, 3)
    carry, (ys, sums) = mg.scan(cell, start(), xs)
    h, hs = unrolled(xs, W, range(4))
    assert_equal(carry["h"], h)
    assert carry["count"].item() == 4
    assert_equal(ys, hs * 2)
    assert_equal(sums, hs.sum(1))


def test_scan_without_inputs_or_turns():
    carry, ys = mg.scan(lambda c, _: (c * 2, c), mg.tensor(1.0), length=4)
    assert carry.item() == 16.0 and ys.tolist() == [1.0, 2.0, 4.0, 8.0]
    carry, (ys, sums) = mg.scan(cell, start(), array(0, 3))
    assert carry["count"].item() == 0
    assert ys.shape == (0, 3) and ys.dtype is mg.float64 and sums.shape == (0,)


def test_vmap_of_scan_is_scan_of_each():
    xs = array(2, 5, 3)
    made = mg.vmap(lambda x: scanned(x, W))(xs)
    for n in range(2):
        for a, b in zip(made, scanned(xs[n], W), strict=True):
            assert_equal(a[n], b)
    slopes = mg.vmap(mg.grad(lambda x: scanned(x, W)[0].sum()))(xs)
    assert_equal(slopes[1], mg.grad(lambda x: scanned(x, W)[0].sum())(xs[1]))


def test_scan_of_vmap():
    xs = array(5, 2, 3)
    step = mg.vmap(lambda h, x: mg.tanh(h @ W + x))
    last, _ = mg.scan(lambda h, x: (step(h, x), None), mg.zeros(2, 3, dtype=mg.float64), xs)
    assert_equal(last, mg.vmap(lambda x: scanned(x, W)[0], 1)(xs))


def test_scan_inside_jit():
    run = mg.jit(lambda xs: scanned(xs, W)[0])
    xs = array(5, 3)
    run(xs)
    assert_equal(run(xs * 2), scanned(xs * 2, W)[0])
    assert not run.reasons


def test_carries_must_keep_their_kind():
    xs = array(3, 2)
    for wrong, name in (
        (lambda c, x: (c.float(), x), "float32"),
        (lambda c, x: (mg.stack([c, c]), x), r"\[2, 2\]"),
        (lambda c, x: ((c, c), x), "became"),
        (lambda c, x: c, "carry, y"),
    ):
        with pytest.raises(TypeError, match=name):
            mg.scan(wrong, array(2), xs)
    with pytest.raises(TypeError, match="while_loop.*int64"):
        mg.while_loop(lambda c: c.sum() < 3, lambda c: c + 0.5, mg.tensor([1, 1]))
    with pytest.raises(TypeError, match="fori_loop"):
        mg.fori_loop(0, 2, lambda n, c: c[None], mg.tensor(1.0))
    with pytest.raises(ValueError, match="number of turns"):
        mg.scan(lambda c, x: (c, x), array(2), (xs, array(4)))
    with pytest.raises(ValueError, match="number of turns"):
        mg.scan(lambda c, x: (c, x), array(2))
    with pytest.raises(ValueError, match="at least one axis"):
        mg.scan(lambda c, x: (c, x), array(2), mg.tensor(1.0))


def test_while_loop():
    double = lambda a, b: (a * 2, b + 1)  # noqa: E731
    final = mg.while_loop(lambda a, b: a < 100, double, (mg.tensor(3.0), 0))
    assert final[0].item() == 192.0 and final[1].item() == 6
    assert mg.while_loop(lambda x: x > 0, lambda x: x - 1, mg.tensor(-1)).item() == -1


def test_derivatives_of_while_loop():
    def by_loop(x):
        return mg.while_loop(
            lambda y, n: n < 4, lambda y, n: (mg.sin(y) * x, n + 1), (x, mg.tensor(0))
        )[0].sum()

    def by_hand(x):
        y = x
        for _ in range(4):
            y = mg.sin(y) * x
        return y.sum()

    x = array(3)
    assert_equal(mg.grad(by_loop)(x), mg.grad(by_hand)(x))
    assert_equal(mg.hessian(by_loop)(x), mg.hessian(by_hand)(x))
    assert_equal(mg.jvp(by_loop, (x,), (x,))[1], mg.jvp(by_hand, (x,), (x,))[1])
    leaf = mg.tensor(x.numpy(), requires_grad=True)
    by_loop(leaf).backward()
    assert_equal(leaf.grad, mg.grad(by_hand)(x))
    # The number of turns does not depend on the examples.
    rows = array(2, 3)
    assert_equal(mg.vmap(mg.grad(by_loop))(rows)[1], mg.grad(by_hand)(rows[1]))


def grown(x, w, limit):
    """A loop that data ends; x must stay below the root of 40."""
    turn = lambda x, n: (x + w * mg.sqrt(40.0 - x * x), n + 1)  # noqa: E731
    return mg.while_loop(lambda x, n: x < limit, turn, (x, mg.tensor(0)))


@pytest.mark.parametrize("limit", [0.0, 0.7, 2.0, 6.0])
def test_a_loop_that_data_ends_is_the_unrolled_code(limit):
    """Its last turns lead to where the next has no value: what is made in vain must not show."""

    def by_hand(x, w):
        while x < limit:
            x = x + w * mg.sqrt(40.0 - x * x)
        return x

    start = mg.tensor(0.5, dtype=mg.float64), mg.tensor(0.3, dtype=mg.float64)
    by_loop = lambda x, w: grown(x, w, limit)[0]  # noqa: E731
    assert_equal(by_loop(*start), by_hand(*start))
    for n in (0, 1):
        assert_equal(mg.grad(by_loop, n)(*start), mg.grad(by_hand, n)(*start))
        assert_equal(mg.hessian(by_loop, n)(*start), mg.hessian(by_hand, n)(*start))
    leaf = start[1].clone().requires_grad_()
    made = by_loop(start[0], leaf)
    assert made.requires_grad == (limit > 0.5)  # with no turn, w has no part in it
    if made.requires_grad:
        made.backward()
        assert_equal(leaf.grad, mg.grad(by_hand, 1)(*start))


@pytest.mark.compiled
def test_many_turns_are_few_flushes_and_few_programs():
    called = []

    def halved(x, n):
        called.append(n)
        return x * w, n + 1

    def slope(turns):
        made, _ = mg.while_loop(lambda x, n: n < turns, halved, (mg.tensor(1.0), mg.tensor(0)))
        return mg.autograd.grad(made, w)[0].item()

    w = mg.tensor(0.999, requires_grad=True)
    for turns in (200, 300):  # from the second number of turns on they are sizes that vary
        np.testing.assert_allclose(slope(turns), turns * 0.999 ** (turns - 1), rtol=1e-4)
    mg.stats.reset()
    called.clear()
    np.testing.assert_allclose(slope(400), 400 * 0.999**399, rtol=1e-4)
    assert len(called) == 3 and mg.stats().flushes <= 12 and mg.stats().compilations == 0


def test_what_is_wrong_in_turns_in_vain_does_not_count():
    table = mg.tensor([3, 1, 4])

    def total(turns):
        look = lambda s, n: (s + table.index_select(0, n.reshape(1)).sum(), n + 1)  # noqa: E731
        return mg.while_loop(lambda s, n: n < turns, look, (mg.tensor(0), mg.tensor(0)))[0].item()

    assert total(3) == 8  # the fourth turn, made in vain, looks behind the end
    with pytest.raises(IndexError, match="out of range"):
        total(4)


def test_while_loops_that_are_made_turn_by_turn():
    count = []

    def reads(x):
        count.append(x.item())
        return x * 2

    assert mg.while_loop(lambda x: x < 100, reads, mg.tensor(3.0)).item() == 192.0
    assert count == [3.0, 6.0, 12.0, 24.0, 48.0, 96.0]
    assert mg.while_loop(lambda x: len(count) < 9, reads, mg.tensor(1.0)).item() == 8.0
    seen = []
    for run in (mg.while_loop, lambda cond, body, x: [x := body(x) for _ in range(7)][-1]):
        mg.manual_seed(3)
        turns = iter(range(8))
        goes_on = lambda x, turns=turns: next(turns) < 7  # noqa: E731
        made = run(goes_on, lambda x: x + mg.rand(()), mg.tensor(0.0))
        seen.append((made.item(), mg.rand(()).item()))
    assert seen[0] == seen[1]
    mg.manual_seed(3)
    by_data = mg.while_loop(lambda x: x < 3.0, lambda x: x + mg.rand(()), mg.tensor(0.0)).item()
    mg.manual_seed(3)
    x = mg.tensor(0.0)
    while x < 3.0:
        x = x + mg.rand(())
    assert by_data == x.item()


def collatz(n):
    """The number of turns until 1, and the largest number on the way."""
    step = lambda n: mg.where(n % 2 == 0, n // 2, 3 * n + 1)  # noqa: E731
    turn = lambda n, count, top: (step(n), count + 1, mg.maximum(top, n))  # noqa: E731
    return mg.while_loop(lambda n, *_: n != 1, turn, (n, mg.tensor(0), n))[1:]


def test_examples_need_different_numbers_of_turns():
    starts = mg.tensor([8, 1, 5, 4])
    turns, tops = mg.vmap(collatz)(starts)
    assert turns.tolist() == [3, 0, 5, 2] and tops.tolist() == [8, 1, 16, 4]
    grid = mg.tensor([[8, 1], [2, 4]])
    turns, _ = mg.vmap(mg.vmap(collatz))(grid)
    assert turns.tolist() == [[3, 0], [1, 2]]


def test_derivatives_of_loops_with_different_numbers_of_turns():
    def grown(x, w):
        return mg.while_loop(lambda y: y < 10, lambda y: y * w + 1, x)

    xs, w = mg.tensor([0.5, 3.0, 20.0, 7.0]), mg.tensor(2.0)
    slopes = mg.vmap(mg.grad(grown, (0, 1)), (0, None))(xs, w)
    for n in range(4):
        for mapped, alone in zip(slopes, mg.grad(grown, (0, 1))(xs[n], w), strict=True):
            assert_equal(mapped[n], alone)
    total = lambda w: mg.vmap(grown, (0, None))(xs, w).sum()  # noqa: E731
    alone = lambda w: mg.stack([grown(x, w) for x in xs]).sum()  # noqa: E731
    assert_equal(mg.grad(total)(w), mg.grad(alone)(w))
    assert_equal(mg.grad(mg.grad(total))(w), mg.grad(mg.grad(alone))(w))


def test_fori_loop_and_map():
    x = array(3)
    made = mg.fori_loop(1, 4, lambda n, c: {"x": c["x"] * n}, {"x": x})
    assert_equal(made["x"], x * 6)
    xs = array(4, 3)
    assert_equal(mg.map(lambda x: x.sum(), xs), xs.sum(1))
    assert_equal(mg.map(lambda t: t["x"] * 2, {"x": xs}), xs * 2)


def branch(x):
    return mg.cond(x.sum() > 0, lambda x: mg.sin(x), lambda x: x * x, (x,))


def test_cond():
    x = mg.tensor([1.0, 2.0])
    assert_equal(branch(x), mg.sin(x))
    assert_equal(branch(-x), x * x)
    assert mg.cond(True, lambda: 1, lambda: 2) == 1
    assert mg.cond(x.sum() > 0, lambda t: t["a"], lambda t: 0, {"a": 5}) == 5
    ran = []
    mg.cond(x.sum() > 0, lambda: ran.append("yes"), lambda: ran.append("no"))
    assert ran == ["yes"]
    with pytest.raises(ValueError, match="one element"):
        mg.cond(x > 0, lambda: 1, lambda: 2)


def test_derivatives_of_cond():
    for x in (mg.tensor([1.0, 2.0]), mg.tensor([-1.0, -2.0])):
        chosen = mg.sin if x.sum().item() > 0 else lambda t: t * t
        by_cond = lambda t: branch(t).sum()  # noqa: E731
        by_hand = lambda t, f=chosen: f(t).sum()  # noqa: E731
        assert_equal(mg.grad(by_cond)(x), mg.grad(by_hand)(x))
        assert_equal(mg.hessian(by_cond)(x), mg.hessian(by_hand)(x))


def test_vmap_of_cond_selects():
    xs = mg.tensor([[1.0, 2.0], [-1.0, -2.0]])
    assert_equal(mg.vmap(branch)(xs), mg.stack([branch(x) for x in xs]))
    slopes = mg.vmap(mg.grad(lambda x: branch(x).sum()))(xs)
    assert_equal(slopes, mg.stack([mg.cos(xs[0]), xs[1] * 2]))


def test_jit_of_cond_selects():
    run = mg.jit(branch)
    x = mg.tensor([1.0, 2.0])
    run(x)
    assert_equal(run(-x), x * x)
    assert_equal(run(x), mg.sin(x))
    assert not run.reasons


def test_branches_must_agree_where_both_are_computed():
    xs = array(4, 2)
    for wrong in (lambda x: x.sum(), lambda x: (x, x), lambda x: x.float()):
        with pytest.raises(TypeError, match="cond"):
            mg.vmap(lambda x, f=wrong: mg.cond(x.sum() > 0, lambda x: x, f, (x,)))(xs)
