"""`torch.utils._pytree` gives what PyTorch's gives."""

from collections import OrderedDict, namedtuple

import pytest
import torch.utils._pytree as theirs

import monograph.torch.utils._pytree as ours

Pair = namedtuple("Pair", "a b")
TREES = [1, None, [1, None, (2,)], {"b": 1, "a": [None]}, Pair(1, {"x": 2}), OrderedDict(k=[3])]


@pytest.mark.parametrize("tree", TREES, ids=str)
def test_leaves_and_maps(tree):
    assert ours.tree_leaves(tree) == theirs.tree_leaves(tree)
    assert ours.tree_map(str, tree) == theirs.tree_map(str, tree)
    assert ours.tree_map_only(int, str, tree) == theirs.tree_map_only(int, str, tree)
    leaves, structure = ours.tree_flatten(tree)
    assert ours.tree_unflatten(leaves, structure) == tree
    is_list = lambda x: isinstance(x, list)  # noqa: E731
    assert ours.tree_leaves(tree, is_list) == theirs.tree_leaves(tree, is_list)


def test_questions_about_all_leaves():
    tree = [1, {"a": 2}]
    assert ours.tree_all(bool, tree) and not ours.tree_any(lambda x: x > 2, tree)


def test_registered_class():
    class Result(OrderedDict):
        pass

    ours.register_pytree_node(
        Result,
        lambda x: (list(x.values()), list(x)),
        lambda values, keys: Result(zip(keys, values, strict=True)),
        serialized_type_name="Result",
    )
    mapped = ours.tree_map(lambda x: x + 1, [Result(a=1)])
    assert type(mapped[0]) is Result and mapped[0]["a"] == 2
