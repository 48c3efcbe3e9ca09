"""Sizes that vary: their arithmetic is that of ints at every size, and what is proven is true."""

import operator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monograph.ir import extent, index
from monograph.ir.extent import Decisions, Extent, Real, deciding, proven, symbol, value_at

N, T = symbol("n", 20), symbol("t", 7)
OPERATIONS = [operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod]

leaves = st.one_of(st.integers(-9, 9), st.sampled_from([N, T, N + 1, T * 8]))
sizes = st.recursive(
    leaves, lambda inner: st.tuples(st.sampled_from(OPERATIONS), inner, inner), max_leaves=6
)
values = st.fixed_dictionaries({"n": st.integers(2, 60), "t": st.integers(2, 60)})


def built(size, at):
    """(the size, its value) of a tree of operations; a divisor is made positive."""
    if not isinstance(size, tuple):
        return size, value_at(size, at)
    operation, (a, x), (b, y) = size[0], built(size[1], at), built(size[2], at)
    if operation in (operator.floordiv, operator.mod) and not proven(b, 1):
        b, y = 3, 3
    return operation(a, b), operation(x, y)


@settings(max_examples=300, deadline=None)
@given(sizes, values)
def test_arithmetic_is_that_of_ints(tree, at):
    size, number = built(tree, at)
    assert value_at(size, at) == number
    if isinstance(size, Extent) and size.low is not None:
        assert size.low <= number


@settings(max_examples=300, deadline=None)
@given(sizes, sizes, values)
def test_what_is_proven_holds(first, second, at):
    (a, x), (b, y) = built(first, at), built(second, at)
    if proven(a, b):
        assert x >= y
    whole = extent.divided(a, b) if y else None
    if whole is not None:
        assert value_at(whole, at) * y == x


@settings(max_examples=200, deadline=None)
@given(sizes, sizes, values)
def test_a_decision_holds_where_its_facts_do(first, second, at):
    (a, x), (b, y) = built(first, at), built(second, at)
    decisions = Decisions()
    with deciding(decisions):
        less = bool(a < b)
    if decisions.hold(at):
        assert less == (x < y)


def test_equal_means_the_same_polynomial():
    assert N * (T + 1) == T * N + N
    assert N != T and N != 20 and (N - N) == 0
    assert len({N, 20, T, N + 0}) == 3


def test_symbols_cancel():
    assert isinstance(N + 3 - N, int)
    assert (N * T * 64) // (T * 64) == N
    assert (N * 64 + 3) % 64 == 3
    assert (N * T + T) // (N + 1) == T


def test_a_size_is_no_int():
    with pytest.raises(TypeError):
        range(N)
    with pytest.raises(TypeError):
        float(N)


def test_numbers_from_sizes():
    share = 1.0 / (N * T)
    assert isinstance(share, Real)
    assert share.at({"n": 4, "t": 5}) == 1.0 / 20
    assert ((N + T) / 2 - 0.5).at({"n": 4, "t": 5}) == 4.0


def test_positions_of_a_reshape_come_apart():
    b, t, c = index.Var("b", N), index.Var("t", T), index.Var("c", 8)
    flat = (b * T + t) * 8 + c
    assert index.unflatten(flat, (N, T, 8)) == (b, t, c)
    assert index.unflatten(flat, (N * T, 8)) == (b * T + t, c)
    assert flat.hi == N * T * 8 - 1


def test_a_bound_that_depends_on_the_size_stays():
    i = index.Var("i", N)
    assert index.within(i, N) == ()
    assert len(index.within(i + 1, N)) == 1
    assert len(index.within(i, 16)) == 1
