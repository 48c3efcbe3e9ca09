"""`torch.utils._pytree`: trees of containers, where None is a leaf.

A tree is flattened to its leaves and a `TreeSpec`, which holds the containers; the classes that are
containers are in `pytree_nodes`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from .pytree_nodes import SUPPORTED_NODES, _get_node_type

PyTree = Context = KeyEntry = Any
KeyPath = tuple


class TreeSpec:
    """The containers of a tree without its leaves; a leaf's has no type."""

    def __init__(self, type: Any, context: Any = None, children_specs: Any = ()) -> None:  # noqa: A002
        self.type = type
        self.context = context
        self.children_specs = list(children_specs)
        children = self.children_specs
        self.num_children = len(children)
        self.num_leaves = 1 if type is None else sum(child.num_leaves for child in children)
        self.num_nodes = 1 + sum(child.num_nodes for child in children)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TreeSpec) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash((self.type, str(self.context), self.num_nodes))

    def _key(self) -> Any:
        return (self.type, self.context, self.children_specs)

    def __repr__(self, indent: int = 0) -> str:
        if self.is_leaf():
            return "*"
        start = f"TreeSpec({self.type.__name__}, {self.context}, ["
        inside = [child.__repr__(indent + 2) for child in self.children_specs]
        return start + (",\n" + " " * (indent + 2)).join(inside) + "])"

    def is_leaf(self) -> bool:
        """Whether it stands for a leaf."""
        return self.type is None

    def children(self) -> list[TreeSpec]:
        """The parts."""
        return list(self.children_specs)

    def child(self, index: int) -> TreeSpec:
        """One of the parts."""
        found: TreeSpec = self.children_specs[index]
        return found

    def unflatten(self, leaves: Iterable[Any]) -> Any:
        """The tree with these leaves."""
        given = list(leaves)
        if len(given) != self.num_leaves:
            raise ValueError(
                f"treespec.unflatten(leaves): `leaves` has length {len(given)} but the spec "
                f"refers to a pytree that holds {self.num_leaves} items ({self})."
            )
        return self._fill(iter(given))

    def _fill(self, leaves: Iterator[Any]) -> Any:
        if self.type is None:
            return next(leaves)
        children = [child._fill(leaves) for child in self.children_specs]
        return SUPPORTED_NODES[self.type].unflatten_fn(children, self.context)

    def flatten_up_to(self, tree: Any) -> list[Any]:
        """The parts of a tree that lie where this one has its leaves."""
        if self.type is None:
            return [tree]
        kind = _get_node_type(tree)
        if kind != self.type:
            raise ValueError(f"Type mismatch; expected {self.type!r}, but got {kind!r}.")
        children, context = SUPPORTED_NODES[kind].flatten_fn(tree)
        children = list(children)
        if kind is dict and set(context) == set(self.context):
            children = [tree[key] for key in self.context]
        elif len(children) != self.num_children or context != self.context:
            raise ValueError(f"Node context mismatch for {kind!r}: {context} and {self.context}.")
        pairs = zip(self.children_specs, children, strict=True)
        return [leaf for spec, child in pairs for leaf in spec.flatten_up_to(child)]


class LeafSpec(TreeSpec):
    """The structure of a leaf."""

    def __init__(self) -> None:
        super().__init__(None)


_LEAF_SPEC = LeafSpec()


def treespec_leaf() -> TreeSpec:
    """The structure of a leaf."""
    return _LEAF_SPEC


def tree_is_leaf(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> bool:
    """Whether a tree is a leaf."""
    return (is_leaf is not None and is_leaf(tree)) or _get_node_type(tree) not in SUPPORTED_NODES


def tree_flatten(tree: Any, is_leaf: Any = None) -> tuple[list[Any], TreeSpec]:
    """The leaves in order, and the structure that holds them."""
    leaves: list[Any] = []
    return leaves, _flatten_into(leaves, tree, is_leaf)


def _flatten_into(leaves: list[Any], tree: Any, is_leaf: Any) -> TreeSpec:
    if tree_is_leaf(tree, is_leaf):
        leaves.append(tree)
        return _LEAF_SPEC
    kind = _get_node_type(tree)
    children, context = SUPPORTED_NODES[kind].flatten_fn(tree)
    return TreeSpec(kind, context, [_flatten_into(leaves, child, is_leaf) for child in children])


def tree_leaves(tree: Any, is_leaf: Any = None) -> list[Any]:
    """The leaves in order."""
    return tree_flatten(tree, is_leaf)[0]


def tree_iter(tree: Any, is_leaf: Any = None) -> Iterator[Any]:
    """The leaves in order, one at a time."""
    return iter(tree_leaves(tree, is_leaf))


def tree_structure(tree: Any, is_leaf: Any = None) -> TreeSpec:
    """The containers without their leaves."""
    return tree_flatten(tree, is_leaf)[1]


def tree_unflatten(leaves: Iterable[Any], treespec: TreeSpec) -> Any:
    """The tree with these leaves."""
    return treespec.unflatten(leaves)


def _groups(tree: Any, rests: tuple[Any, ...], is_leaf: Any) -> tuple[list[Any], TreeSpec]:
    leaves, spec = tree_flatten(tree, is_leaf)
    others = [spec.flatten_up_to(other) for other in rests]
    return list(zip(leaves, *others, strict=True)), spec


def tree_map(func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: Any = None) -> Any:
    """The tree with each leaf replaced by what the function makes of it.

    >>> tree_map(lambda x: x is None, [1, {"a": None}])
    [False, {'a': True}]
    """
    groups, spec = _groups(tree, rests, is_leaf)
    return spec.unflatten([func(*group) for group in groups])


def tree_map_(func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: Any = None) -> Any:
    """Call the function with each leaf, and give the tree back as it is."""
    for group in _groups(tree, rests, is_leaf)[0]:
        func(*group)
    return tree


def _chooses(kind: Any) -> Callable[[Any], bool]:
    """Whether a leaf is of a class, of one of several, or what a function says."""
    if isinstance(kind, (type, tuple)) or not callable(kind):
        return lambda leaf: isinstance(leaf, kind)
    return kind


def map_only(kind: Any, /) -> Callable[[Callable[[Any], Any]], Callable[[Any], Any]]:
    """A decorator: other leaves than those of a class pass through the function."""
    chosen = _chooses(kind)
    return lambda func: lambda leaf: func(leaf) if chosen(leaf) else leaf


def tree_map_only(kind: Any, /, func: Callable[[Any], Any], tree: Any, is_leaf: Any = None) -> Any:
    """`tree_map` for the leaves of a class, or of one of several; others stay."""
    return tree_map(map_only(kind)(func), tree, is_leaf=is_leaf)


def tree_map_only_(kind: Any, /, func: Callable[[Any], Any], tree: Any, is_leaf: Any = None) -> Any:
    """`tree_map_` for the leaves of a class, or of one of several."""
    return tree_map_(map_only(kind)(func), tree, is_leaf=is_leaf)


def tree_any(pred: Callable[[Any], bool], tree: Any, is_leaf: Any = None) -> bool:
    """Whether something holds for any leaf."""
    return any(pred(leaf) for leaf in tree_leaves(tree, is_leaf))


def tree_all(pred: Callable[[Any], bool], tree: Any, is_leaf: Any = None) -> bool:
    """Whether something holds for all leaves."""
    return all(pred(leaf) for leaf in tree_leaves(tree, is_leaf))


def tree_any_only(
    kind: Any, /, pred: Callable[[Any], bool], tree: Any, is_leaf: Any = None
) -> bool:
    """Whether something holds for any leaf of a class."""
    chosen = _chooses(kind)
    return any(pred(leaf) for leaf in tree_leaves(tree, is_leaf) if chosen(leaf))


def tree_all_only(
    kind: Any, /, pred: Callable[[Any], bool], tree: Any, is_leaf: Any = None
) -> bool:
    """Whether something holds for all leaves of a class."""
    chosen = _chooses(kind)
    return all(pred(leaf) for leaf in tree_leaves(tree, is_leaf) if chosen(leaf))


def tree_leaves_with_path(tree: Any, is_leaf: Any = None) -> list[tuple[Any, Any]]:
    """The leaves in order, each with the keys that lead to it.

    >>> [(keystr(path), leaf) for path, leaf in tree_leaves_with_path({"a": [1, 2]})]
    [("['a'][0]", 1), ("['a'][1]", 2)]
    """
    return list(_paths(tree, (), is_leaf))


def _paths(tree: Any, path: tuple[Any, ...], is_leaf: Any) -> Iterator[tuple[Any, Any]]:
    if tree_is_leaf(tree, is_leaf):
        yield path, tree
        return
    node = SUPPORTED_NODES[_get_node_type(tree)]
    if node.flatten_with_keys_fn is None:
        raise ValueError(f"Did not find a flatten_with_keys_fn for type: {node.type}.")
    for key, child in node.flatten_with_keys_fn(tree)[0]:
        yield from _paths(child, (*path, key), is_leaf)


def tree_flatten_with_path(tree: Any, is_leaf: Any = None) -> tuple[list[Any], TreeSpec]:
    """The leaves with their paths, and the structure that holds them."""
    return tree_leaves_with_path(tree, is_leaf), tree_structure(tree, is_leaf)


def tree_map_with_path(
    func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: Any = None
) -> Any:
    """`tree_map` with a function of a leaf's path and the leaf."""
    groups, spec = _groups(tree, rests, is_leaf)
    paths = [path for path, _ in tree_leaves_with_path(tree, is_leaf)]
    return spec.unflatten([func(path, *group) for path, group in zip(paths, groups, strict=True)])


def keystr(kp: Iterable[Any]) -> str:
    """A path as it would be written in Python."""
    return "".join(str(key) for key in kp)


def key_get(obj: Any, kp: Iterable[Any]) -> Any:
    """What lies at the end of a path.

    >>> path, leaf = tree_leaves_with_path({"a": [1, 2]})[1]
    >>> key_get({"a": [1, 2]}, path)
    2
    """
    for key in kp:
        obj = key.get(obj)
    return obj


__all__ = [
    "Context", "KeyEntry", "KeyPath", "LeafSpec", "PyTree", "TreeSpec", "_LEAF_SPEC", "key_get",
    "keystr", "map_only", "tree_all", "tree_all_only", "tree_any", "tree_any_only", "tree_flatten",
    "tree_flatten_with_path", "tree_is_leaf", "tree_iter", "tree_leaves", "tree_leaves_with_path",
    "tree_map", "tree_map_", "tree_map_only", "tree_map_only_", "tree_map_with_path",
    "tree_structure", "tree_unflatten", "treespec_leaf",
]  # fmt: skip
