"""`torch.utils._pytree`: trees of containers, where None is a leaf."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ... import tree

TreeSpec = tree.Structure
PyTree = Context = Any


def _leaf_test(is_leaf: Callable[[Any], bool] | None) -> Callable[[Any], bool]:
    return lambda part: part is None or (is_leaf is not None and is_leaf(part))


def tree_flatten(tree_: Any, is_leaf: Any = None) -> tuple[list[Any], TreeSpec]:
    """The leaves in order, and the structure that holds them."""
    return tree.flatten(tree_, _leaf_test(is_leaf))


def tree_leaves(tree_: Any, is_leaf: Any = None) -> list[Any]:
    """The leaves in order."""
    return tree_flatten(tree_, is_leaf)[0]


def tree_structure(tree_: Any, is_leaf: Any = None) -> TreeSpec:
    """The containers without their leaves."""
    return tree_flatten(tree_, is_leaf)[1]


def tree_unflatten(leaves: Iterable[Any], treespec: TreeSpec) -> Any:
    """The tree with these leaves."""
    return tree.unflatten(treespec, leaves)


def tree_map(func: Callable[..., Any], tree_: Any, *rests: Any, is_leaf: Any = None) -> Any:
    """The tree with each leaf replaced by what the function makes of it.

    >>> tree_map(lambda x: x is None, [1, {"a": None}])
    [False, {'a': True}]
    """
    leaves, structure = tree_flatten(tree_, is_leaf)
    others = [tree_leaves(other, is_leaf) for other in rests]
    return tree.unflatten(structure, [func(*group) for group in zip(leaves, *others, strict=True)])


def tree_map_only(kind: Any, func: Callable[[Any], Any], tree_: Any, is_leaf: Any = None) -> Any:
    """`tree_map` for the leaves of a class, or of one of several; others stay."""
    return tree_map(lambda x: func(x) if isinstance(x, kind) else x, tree_, is_leaf=is_leaf)


def tree_any(predicate: Callable[[Any], bool], tree_: Any, is_leaf: Any = None) -> bool:
    """Whether something holds for any leaf."""
    return any(predicate(leaf) for leaf in tree_leaves(tree_, is_leaf))


def tree_all(predicate: Callable[[Any], bool], tree_: Any, is_leaf: Any = None) -> bool:
    """Whether something holds for all leaves."""
    return all(predicate(leaf) for leaf in tree_leaves(tree_, is_leaf))


def register_pytree_node(
    cls: type, flatten_fn: Callable[..., Any], unflatten_fn: Callable[..., Any], **_: Any
) -> None:
    """Make a class a container; the options are for files of exported programs."""
    tree.register(cls, flatten_fn, unflatten_fn)


_register_pytree_node = register_pytree_node

__all__ = [
    "Context", "PyTree", "TreeSpec", "_register_pytree_node", "register_pytree_node", "tree_all",
    "tree_any", "tree_flatten", "tree_leaves", "tree_map", "tree_map_only", "tree_structure",
    "tree_unflatten",
]  # fmt: skip
