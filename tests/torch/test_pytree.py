"""`torch.utils._pytree` gives what PyTorch's gives."""

from collections import OrderedDict, defaultdict, deque, namedtuple

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


class Plain(list):
    """A subclass that nobody registered."""


KEPT = [OrderedDict(k=[3]), defaultdict(list, a=[1, 2]), deque([1, (2,)], maxlen=3), Plain([1])]


@pytest.mark.parametrize("tree", [*TREES, *KEPT], ids=str)
def test_structures(tree):
    """Leaves, structures and paths are theirs; containers come back as what they were."""
    leaves, ours_spec = ours.tree_flatten(tree)
    expected, spec = theirs.tree_flatten(tree)
    assert leaves == expected and repr(ours_spec) == repr(spec)
    assert (ours_spec.num_leaves, ours_spec.num_nodes) == (spec.num_leaves, spec.num_nodes)
    assert ours_spec.context == spec.context and ours_spec == ours.tree_structure(tree)
    back = ours.tree_unflatten(leaves, ours_spec)
    assert type(back) is type(tree) and back == tree
    paths = [(ours.keystr(path), leaf) for path, leaf in ours.tree_leaves_with_path(tree)]
    assert paths == [(theirs.keystr(p), leaf) for p, leaf in theirs.tree_leaves_with_path(tree)]


def test_private_names_of_nodes():
    """Libraries take containers apart by the table, and register classes with its functions."""
    assert ours._get_node_type(Pair(1, 2)) is namedtuple
    children, context = ours.SUPPORTED_NODES[dict].flatten_fn({"a": 1})
    spec = ours.TreeSpec(dict, context, [ours.LeafSpec()])
    assert ours.tree_unflatten(children, spec) == {"a": 1}

    class Output(OrderedDict):
        pass

    unflatten = lambda values, keys: Output(ours._dict_unflatten(values, keys))  # noqa: E731
    ours._register_pytree_node(Output, ours._dict_flatten, unflatten)
    assert type(ours.tree_map(str, Output(a=1))) is Output
    with pytest.raises(ValueError, match="already registered"):
        ours.register_pytree_node(Output, ours._dict_flatten, unflatten)
    ours._deregister_pytree_node(Output)
    assert ours.tree_is_leaf(Output(a=1))


def test_trees_beside_each_other():
    add = lambda a, b: a + b  # noqa: E731
    pair = {"a": [1], "b": 2}, {"b": [20], "a": [[10]]}
    with pytest.raises(TypeError):
        ours.tree_map(add, *pair)
    assert ours.tree_map(add, pair[0], {"b": 20, "a": [10]}) == {"a": [11], "b": 22}
    with pytest.raises(ValueError, match="mismatch"):
        ours.tree_map(add, [1], (1,))
    with pytest.raises(ValueError, match="holds 1 items"):
        ours.tree_unflatten([1, 2], ours.tree_structure([0]))
    seen = []
    assert ours.tree_map_only_(int, seen.append, [1, "a"]) == [1, "a"] and seen == [1]
