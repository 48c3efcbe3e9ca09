"""Trees of Python containers: the arguments and results of functions that transforms take apart.

A tree is a leaf, or a tuple, list, dict or named tuple of trees; None is a tree without leaves.
Classes of other libraries become containers by `register`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple


class Structure:
    """The containers of a tree without its leaves. Equal structures compare equal."""

    __slots__ = ("kind", "names", "children", "leaves")

    def __init__(self, kind: Any, names: tuple[Any, ...], children: tuple[Structure, ...]) -> None:
        self.kind = kind  # the container's class; None for a leaf
        self.names = names  # the keys of a dict; what a registered class is put together by
        self.children = children
        self.leaves: int = 1 if kind is None else sum(child.leaves for child in children)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Structure) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> Any:
        return (self.kind, self.names, self.children)

    def __repr__(self) -> str:
        if self.kind is None:
            return "*"
        if self.kind is type(None):
            return "None"
        inside = [repr(child) for child in self.children]
        if self.kind is dict:
            shown = [f"{name!r}: {text}" for name, text in zip(self.names, inside, strict=True)]
            return f"{{{', '.join(shown)}}}"
        return f"[{', '.join(inside)}]" if self.kind is list else f"({', '.join(inside)})"


_LEAF = Structure(None, (), ())
_NONE = Structure(type(None), (), ())


class Container(NamedTuple):
    """How a registered class is taken apart and put together."""

    take_apart: Callable[[Any], tuple[Iterable[Any], Any]]
    put_together: Callable[[Iterable[Any], Any], Any]


_registered: dict[type, Container] = {}


def register(kind: type, take_apart: Callable[..., Any], put_together: Callable[..., Any]) -> None:
    """Make a class a container: take_apart(object) gives (parts, names), put_together reverses it.

    >>> class Span:
    ...     def __init__(self, start, end):
    ...         self.start, self.end = start, end
    >>> register(Span, lambda x: ([x.start, x.end], None), lambda parts, _: Span(*parts))
    >>> leaves([Span(1, (2, 3))])
    [1, 2, 3]
    """
    _registered[kind] = Container(take_apart, put_together)


def forget(kind: type) -> None:
    """Make a registered class a leaf again."""
    _registered.pop(kind, None)


def children(tree: Any) -> tuple[tuple[Any, ...], list[Any]] | None:
    """(names, parts) of a container, or None for a leaf."""
    if tree is None:
        return (), []
    container = _registered.get(type(tree))
    if container is not None:
        parts, names = container.take_apart(tree)
        return (tuple(names) if isinstance(names, list) else names,), list(parts)
    if isinstance(tree, dict):
        return tuple(tree), list(tree.values())
    if isinstance(tree, (tuple, list)):
        return (), list(tree)
    return None


def flatten(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> tuple[list[Any], Structure]:
    """The leaves in order, and the structure that holds them; `is_leaf` may end a branch earlier.

    >>> flatten({"a": 1, "b": (2, None)})
    ([1, 2], {'a': *, 'b': (*, None)})
    """
    if is_leaf is not None and is_leaf(tree):
        return [tree], _LEAF
    if tree is None:
        return [], _NONE
    found = children(tree)
    if found is None:
        return [tree], _LEAF
    names, parts = found
    leaves: list[Any] = []
    inside = []
    for part in parts:
        below, structure = flatten(part, is_leaf)
        leaves += below
        inside.append(structure)
    kind = type(tree)
    if kind not in _registered and isinstance(tree, dict):
        kind = dict
    return leaves, Structure(kind, names, tuple(inside))


def unflatten(structure: Structure, leaves: Iterable[Any]) -> Any:
    """The tree with this structure and these leaves."""
    return _fill(structure, iter(leaves))


def _fill(structure: Structure, leaves: Iterator[Any]) -> Any:
    kind = structure.kind
    if kind is None:
        return next(leaves)
    if kind is type(None):
        return None
    parts = [_fill(child, leaves) for child in structure.children]
    if kind is dict:
        return dict(zip(structure.names, parts, strict=True))
    if kind in _registered:
        return _registered[kind].put_together(parts, structure.names[0])
    return kind(*parts) if hasattr(kind, "_fields") else kind(parts)


def leaves(tree: Any) -> list[Any]:
    """The leaves in order."""
    return flatten(tree)[0]


def map_leaves(function: Callable[..., Any], tree: Any, *others: Any) -> Any:
    """The tree with each leaf replaced by function(leaf, and the leaves of others there).

    >>> map_leaves(lambda a, b: a + b, [1, (2,)], [10, (20,)])
    [11, (22,)]
    """
    here, structure = flatten(tree)
    rest = []
    for other in others:
        parts, same = flatten(other)
        if same != structure:
            raise ValueError(f"the trees {structure!r} and {same!r} differ in structure")
        rest.append(parts)
    return unflatten(structure, [function(*group) for group in zip(here, *rest, strict=True)])


def spread(prefix: Any, tree: Any) -> list[Any] | None:
    """One entry of `prefix` per leaf of `tree`: a prefix may end where the tree goes on.

    None where the two do not fit.

    >>> spread((0, None), ([7, 8], {"a": 9}))
    [0, 0, None]
    """
    found = children(tree)
    if prefix is None or not isinstance(prefix, (tuple, list, dict)):
        return [prefix] * flatten(tree)[1].leaves
    if found is None or isinstance(prefix, dict) != isinstance(tree, dict):
        return None
    names, parts = found
    inside = children(prefix)
    assert inside is not None
    if inside[0] != names or len(inside[1]) != len(parts):
        return None
    result: list[Any] = []
    for part, below in zip(inside[1], parts, strict=True):
        entries = spread(part, below)
        if entries is None:
            return None
        result += entries
    return result
