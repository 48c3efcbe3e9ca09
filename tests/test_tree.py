"""Trees of Python containers."""

import gc
import weakref
from collections import namedtuple

import pytest

from monograph import tree

Pair = namedtuple("Pair", "a b")


@pytest.mark.parametrize(
    "value",
    [1, None, (), [], {}, (1,), [1, (2, None)], {"b": 1, "a": [2]}, Pair(1, (2, 3))],
)
def test_round_trip(value):
    leaves, structure = tree.flatten(value)
    assert tree.unflatten(structure, leaves) == value
    assert type(tree.unflatten(structure, leaves)) is type(value)
    assert tree.flatten(value)[1] == structure


def test_structures_differ():
    kinds = [1, None, (1,), [1], {"a": 1}, {"b": 1}, (1, 1), Pair(1, 1), ((1,),)]
    structures = [tree.flatten(value)[1] for value in kinds]
    assert len(set(structures)) == len(kinds)


def test_map_leaves_asks_for_one_structure():
    assert tree.map_leaves(lambda a, b: a - b, Pair(3, {"x": 2}), Pair(1, {"x": 2})) == Pair(
        2, {"x": 0}
    )
    with pytest.raises(ValueError, match="structure"):
        tree.map_leaves(lambda a, b: a, (1, 2), (1,))


def test_spread():
    value = ({"a": 1, "b": [2, 3]}, 4, None)
    assert tree.spread(0, value) == [0, 0, 0, 0]
    assert tree.spread((None, 1, 0), value) == [None, None, None, 1]
    assert tree.spread(({"a": 2, "b": 1}, 0, None), value) == [2, 1, 1, 0]
    for wrong in ((0, 0), ([0], 0, 0), ({"a": 0}, 0, 0), (0, (0,), 0)):
        assert tree.spread(wrong, value) is None


def test_leaves_are_freed_at_once():
    """No cycle keeps them: what is alive decides what a flush computes."""

    class Leaf:
        pass

    gc.disable()
    try:
        leaf = Leaf()
        alive = weakref.ref(leaf)
        tree.unflatten(*reversed(tree.flatten([leaf, {"a": leaf}])))
        del leaf
        assert alive() is None
    finally:
        gc.enable()


class Span:
    def __init__(self, parts, names):
        self.parts, self.names = parts, names


def test_registered_classes_are_containers():
    tree.register(Span, lambda x: (x.parts, x.names), Span)
    value = [Span([1, (2, None)], ["a", "b"]), Span((), {"any": "note"})]
    leaves, structure = tree.flatten(value)
    assert leaves == [1, 2]
    back = tree.unflatten(structure, [10, 20])
    assert [type(part) for part in back] == [Span, Span]
    assert back[0].parts == [10, (20, None)] and back[0].names == ("a", "b")
    assert back[1].names == {"any": "note"}
    assert tree.flatten(back)[1] == structure
    assert tree.flatten([Span([1], ["a"])])[1] != tree.flatten([Span([1], ["b"])])[1]


def test_a_branch_may_end_earlier():
    leaves, structure = tree.flatten([(1, 2), None, {"a": (3,)}], lambda x: isinstance(x, tuple))
    assert leaves == [(1, 2), (3,)]
    assert tree.unflatten(structure, "xy") == ["x", None, {"a": "y"}]
