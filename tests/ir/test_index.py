"""The index algebra against plain Python integers, on random expressions."""

import itertools
import operator

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from monograph.ir import index
from monograph.ir.index import Condition, Expr, Read, Var, num

EXTENTS = (1, 3, 4, 6)
VARS = tuple(Var(f"i{k}", extent) for k, extent in enumerate(EXTENTS))
POINTS = list(itertools.product(*map(range, EXTENTS)))

small = st.integers(-7, 7)
positive = st.integers(1, 9)
leaves = st.integers(0, len(VARS) - 1).map(lambda k: ("var", k)) | small.map(lambda c: ("num", c))


def grow(children):
    pairs = st.tuples(st.sampled_from(["+", "-", "min", "max"]), children, children)
    scaled = st.tuples(st.just("*"), children, small.map(lambda c: ("num", c)))
    divided = st.tuples(st.sampled_from(["//", "%"]), children, positive.map(lambda c: ("num", c)))
    return pairs | scaled | divided


trees = st.recursive(leaves, grow, max_leaves=8)
affine_trees = st.recursive(
    leaves,
    lambda children: (
        st.tuples(st.sampled_from(["+", "-"]), children, children)
        | st.tuples(st.just("*"), children, small.map(lambda c: ("num", c)))
    ),
    max_leaves=8,
)

BINARY = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": operator.floordiv,
    "%": operator.mod,
}


def interpret(tree, variables):
    """The tree with Python's operators: on ints it is the truth, on Vars it is the algebra."""
    kind, *parts = tree
    if kind == "var":
        return variables[parts[0]]
    if kind == "num":
        return parts[0]
    a, b = [interpret(part, variables) for part in parts]
    if kind in ("min", "max"):
        if isinstance(a, Expr) or isinstance(b, Expr):
            return (index.minimum if kind == "min" else index.maximum)(a, b)
        return min(a, b) if kind == "min" else max(a, b)
    return BINARY[kind](a, b)


def symbolic(tree):
    return index.wrap(interpret(tree, VARS))


def no_reads(source, where):
    raise AssertionError("the expression reads nothing")


def value(e, point):
    return index.evaluate(e, dict(zip(VARS, point)), no_reads)


@given(trees, st.sampled_from(POINTS))
def test_expressions_equal_integers(tree, point):
    assert value(symbolic(tree), point) == interpret(tree, point)


@given(trees)
@settings(max_examples=50)
def test_ranges_are_sound(tree):
    e = symbolic(tree)
    for point in POINTS:
        assert e.lo <= value(e, point) <= e.hi


@given(trees)
@settings(max_examples=50)
def test_evaluate_works_on_arrays(tree):
    grid = np.ogrid[tuple(slice(n) for n in EXTENTS)]
    got = index.evaluate(symbolic(tree), dict(zip(VARS, grid)), no_reads)
    expected = np.array([interpret(tree, p) for p in POINTS]).reshape(EXTENTS)
    np.testing.assert_array_equal(np.broadcast_to(got, EXTENTS), expected)


@given(trees, st.lists(trees, min_size=len(VARS), max_size=len(VARS)), st.sampled_from(POINTS))
def test_substitution_is_composition(tree, replacements, point):
    # A replacement must stay in the range of what it replaces: the outer tree relied on it.
    inner = [symbolic(r) % v.extent for r, v in zip(replacements, VARS)]
    e = index.substitute(symbolic(tree), dict(zip(VARS, inner)))
    moved = [interpret(r, point) % v.extent for r, v in zip(replacements, VARS)]
    assert value(e, point) == interpret(tree, moved)


@given(affine_trees, affine_trees, affine_trees)
def test_affine_expressions_have_one_form(x, y, z):
    a, b, c = symbolic(x), symbolic(y), symbolic(z)
    for left, right in (
        (a + b, b + a),
        ((a + b) + c, a + (b + c)),
        ((a + b) - b, a),
        (a + a + a, a * 3),
        ((a + b) * 2, a * 2 + b * 2),
        (a - a, index.ZERO),
        ((a * 5 + b * 0) // 5, a),
    ):
        assert left == right
        assert hash(left) == hash(right)
        assert repr(left) == repr(right)
    assert index.is_affine(a)


@given(affine_trees, small)
def test_affine_coefficients(tree, step):
    e = symbolic(tree)
    for v in VARS:
        moved = index.substitute(e, {v: v + step})
        coefficient = index.coefficient(e, v)
        assert coefficient is not None
        assert moved - e == coefficient * step


@given(trees, positive)
def test_digits_merge(tree, n):
    e = symbolic(tree)
    merged = (e // n) * n + e % n
    for point in POINTS[::5]:
        assert value(merged, point) == interpret(tree, point)


def test_digits_of_a_coordinate_merge_into_it():
    x = Var("x", 120)
    assert (x // 4) * 4 + x % 4 == x
    assert (x // 4 % 3) * 4 + x % 4 == x % 12
    assert (x // 12) * 12 + (x // 4 % 3) * 4 + x % 4 == x
    assert (x % 12) // 4 * 4 + x % 4 == x % 12


shapes = st.lists(st.integers(1, 5), min_size=1, max_size=4).map(tuple)


@given(shapes)
def test_unflatten_is_unravel_index(shape):
    count = int(np.prod(shape))
    flat = Var("flat", count)
    coordinates = index.unflatten(flat, shape)
    for position in range(count):
        got = [index.evaluate(c, {flat: position}, no_reads) for c in coordinates]
        assert tuple(got) == tuple(map(int, np.unravel_index(position, shape)))
    assert index.flatten(coordinates, index.contiguous_strides(shape)) == flat


@given(shapes)
def test_flatten_then_unflatten_gives_the_coordinates_back(shape):
    place = tuple(Var(f"i{k}", extent) for k, extent in enumerate(shape))
    flat = index.flatten(place, index.contiguous_strides(shape))
    unit = {v: index.ZERO for v in place if v.extent == 1}
    for got, var in zip(index.unflatten(flat, shape), place):
        assert index.substitute(got, unit) == index.substitute(var, unit)
    assert (flat.lo, flat.hi) == (0, int(np.prod(shape)) - 1)


@given(shapes, st.data())
def test_reshape_there_and_back_is_the_identity(shape, data):
    """Coordinates resolved through another factorisation of the same size."""
    flat_size = int(np.prod(shape))
    divisors = [d for d in range(1, flat_size + 1) if flat_size % d == 0]
    first = data.draw(st.sampled_from(divisors))
    middle = (first, flat_size // first)
    place = tuple(Var(f"i{k}", extent) for k, extent in enumerate(shape))
    flat = index.flatten(place, index.contiguous_strides(shape))
    through = index.flatten(index.unflatten(flat, middle), index.contiguous_strides(middle))
    assert through == flat


def test_unflatten_of_empty_shapes():
    assert index.unflatten(num(0), ()) == ()
    assert index.unflatten(num(0), (0, 3, 0)) == (0, 0, 0)


def test_division_simplifies_by_ranges():
    i, j = Var("i", 8), Var("j", 4)
    assert (i * 4 + j) // 4 == i
    assert (i * 4 + j) % 4 == j
    assert (i * 4 + j) // 32 == 0
    assert (i * 4 + j) % 16 == (i % 4) * 4 + j
    assert (i * 4 + j) // 8 == i // 2
    assert (i // 2) // 2 == i // 4
    assert (i % 4) % 2 == i % 2
    assert (i - 8) // 8 == -1


def test_extremes_simplify_by_ranges():
    i = Var("i", 8)
    assert index.minimum(i, 7) == i
    assert index.maximum(i, 0) == i
    assert index.maximum(i, 7) == 7
    assert repr(index.minimum(i, 3)) == "min(i, 3)"


def test_conditions_know_when_ranges_decide():
    i = Var("i", 8)
    assert Condition(i).always and Condition(7 - i).always
    assert Condition(-i - 1).never and not Condition(i - 1).never
    assert Condition(index.ZERO, equal=True).always
    assert Condition(i + 1, equal=True).never
    assert index.within(i, 8) == ()
    assert index.within(i + 2, 8) == (Condition(5 - i),)
    assert index.reduce_guard([Condition(i - 1), Condition(i - 1)]) == (Condition(i - 1),)


def test_reads_are_substituted_renumbered_and_evaluated():
    i, j = Var("i", 8), Var("j", 4)
    e = Read(0, (i,), 10) * 2 + i
    moved = index.substitute(e, {i: j + 1})
    assert moved == Read(0, (j + 1,), 10) * 2 + j + 1
    assert index.renumber_reads(moved, lambda n: n + 3) == Read(3, (j + 1,), 10) * 2 + j + 1
    table = [3, 1, 4, 1, 5]
    assert index.evaluate(moved, {j: 3}, lambda source, where: table[where[0]]) == 14
    assert index.variables(moved) == {j}
    assert index.coefficient(moved, j) is None and not index.is_affine(moved)


def test_products_of_coordinates():
    n, i = Var("n", 101), Var("i", 8)
    e = (i * n + i) * 2
    assert index.evaluate(e, {n: 5, i: 3}, no_reads) == 36
    assert e.lo == 0 and e.hi == 1414
    assert n // n == 1 and n % n == 0
    assert i * n == n * i


def test_text():
    i, j = Var("i", 8), Var("j", 4)
    assert repr(i * 4 + j // 3 - 2) == "4*i + j//3 - 2"
    assert repr(-(i % 3)) == "-(i%3)"
    assert repr((i + j) // 5) == "(i + j)//5"
    assert repr(num(0)) == "0"
