"""The classes that `torch.utils._pytree` takes apart, and how.

A node is taken apart into children and a context, from which it is put together again. As in
PyTorch, a class is looked up as it is: a subclass of a list that nobody registered is a leaf.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from ... import tree
from ...tensor import Size


class MappingKey(NamedTuple):
    """A step of a path into a mapping."""

    key: Any

    def __str__(self) -> str:
        return f"[{self.key!r}]"

    def get(self, parent: Any) -> Any:
        """What lies there."""
        return parent[self.key]


class SequenceKey(NamedTuple):
    """A step of a path into a sequence."""

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx!r}]"

    def get(self, parent: Any) -> Any:
        """What lies there."""
        return parent[self.idx]


class GetAttrKey(NamedTuple):
    """A step of a path to an attribute."""

    name: str

    def __str__(self) -> str:
        return f".{self.name}"

    def get(self, parent: Any) -> Any:
        """What lies there."""
        return getattr(parent, self.name)


class NodeDef(NamedTuple):
    """How a class is taken apart and put together."""

    type: Any
    flatten_fn: Callable[[Any], tuple[list[Any], Any]]
    unflatten_fn: Callable[[Iterable[Any], Any], Any]
    flatten_with_keys_fn: Callable[[Any], tuple[list[tuple[Any, Any]], Any]] | None = None


def _list_flatten(d: Any) -> tuple[list[Any], Any]:
    return list(d), None


def _list_unflatten(values: Iterable[Any], context: Any) -> list[Any]:
    return list(values)


def _tuple_unflatten(values: Iterable[Any], context: Any) -> tuple[Any, ...]:
    return tuple(values)


def _list_flatten_with_keys(d: Any) -> tuple[list[tuple[Any, Any]], Any]:
    return [(SequenceKey(place), child) for place, child in enumerate(d)], None


def _dict_flatten(d: Any) -> tuple[list[Any], Any]:
    return list(d.values()), list(d)


def _dict_unflatten(values: Iterable[Any], context: Any) -> dict[Any, Any]:
    return dict(zip(context, values, strict=True))


def _dict_flatten_with_keys(d: Any) -> tuple[list[tuple[Any, Any]], Any]:
    return [(MappingKey(key), child) for key, child in d.items()], list(d)


def _ordereddict_unflatten(values: Iterable[Any], context: Any) -> OrderedDict[Any, Any]:
    return OrderedDict(zip(context, values, strict=True))


def _defaultdict_flatten(d: Any) -> tuple[list[Any], Any]:
    return list(d.values()), [d.default_factory, list(d)]


def _defaultdict_unflatten(values: Iterable[Any], context: Any) -> defaultdict[Any, Any]:
    return defaultdict(context[0], zip(context[1], values, strict=True))


def _defaultdict_flatten_with_keys(d: Any) -> tuple[list[tuple[Any, Any]], Any]:
    return [(MappingKey(key), child) for key, child in d.items()], _defaultdict_flatten(d)[1]


def _namedtuple_flatten(d: Any) -> tuple[list[Any], Any]:
    return list(d), type(d)


def _namedtuple_unflatten(values: Iterable[Any], context: Any) -> Any:
    return context(*values)


def _namedtuple_flatten_with_keys(d: Any) -> tuple[list[tuple[Any, Any]], Any]:
    return [(GetAttrKey(name), getattr(d, name)) for name in d._fields], type(d)


def _deque_flatten(d: Any) -> tuple[list[Any], Any]:
    return list(d), d.maxlen


def _deque_unflatten(values: Iterable[Any], context: Any) -> deque[Any]:
    return deque(values, maxlen=context)


def _size_unflatten(values: Iterable[Any], context: Any) -> Any:
    return Size(tuple(values))


_tuple_flatten = _list_flatten
_tuple_flatten_with_keys = _deque_flatten_with_keys = _list_flatten_with_keys
_ordereddict_flatten = _dict_flatten
_ordereddict_flatten_with_keys = _dict_flatten_with_keys

_BUILT_IN = (
    NodeDef(tuple, _list_flatten, _tuple_unflatten, _list_flatten_with_keys),
    NodeDef(list, _list_flatten, _list_unflatten, _list_flatten_with_keys),
    NodeDef(dict, _dict_flatten, _dict_unflatten, _dict_flatten_with_keys),
    NodeDef(namedtuple, _namedtuple_flatten, _namedtuple_unflatten, _namedtuple_flatten_with_keys),
    NodeDef(OrderedDict, _dict_flatten, _ordereddict_unflatten, _dict_flatten_with_keys),
    NodeDef(
        defaultdict, _defaultdict_flatten, _defaultdict_unflatten, _defaultdict_flatten_with_keys
    ),
    NodeDef(deque, _deque_flatten, _deque_unflatten, _list_flatten_with_keys),
    NodeDef(Size, _list_flatten, _size_unflatten, _list_flatten_with_keys),
)
SUPPORTED_NODES: dict[Any, NodeDef] = {node.type: node for node in _BUILT_IN}
BUILTIN_TYPES = frozenset(SUPPORTED_NODES)


def is_namedtuple(obj: Any) -> bool:
    """Whether something is a named tuple, or a class of them."""
    return is_namedtuple_class(obj if isinstance(obj, type) else type(obj))


def is_namedtuple_class(cls: Any) -> bool:
    """Whether a class is one of named tuples."""
    return isinstance(cls, type) and issubclass(cls, tuple) and hasattr(cls, "_fields")


def is_namedtuple_instance(obj: Any) -> bool:
    """Whether something is a named tuple."""
    return is_namedtuple_class(type(obj))


def _get_node_type(tree: Any) -> Any:
    kind = type(tree)
    if kind in SUPPORTED_NODES or not is_namedtuple_class(kind):
        return kind
    return namedtuple


def register_pytree_node(
    cls: Any,
    flatten_fn: Callable[..., Any],
    unflatten_fn: Callable[..., Any],
    *,
    flatten_with_keys_fn: Callable[..., Any] | None = None,
    **_: Any,
) -> None:
    """Make a class a container; the other options are for files of exported programs."""
    if cls in SUPPORTED_NODES:
        raise ValueError(f"{cls} is already registered as pytree node.")
    _private_register_pytree_node(
        cls, flatten_fn, unflatten_fn, flatten_with_keys_fn=flatten_with_keys_fn
    )


def _private_register_pytree_node(
    cls: Any,
    flatten_fn: Callable[..., Any],
    unflatten_fn: Callable[..., Any],
    *,
    flatten_with_keys_fn: Callable[..., Any] | None = None,
    **_: Any,
) -> None:
    SUPPORTED_NODES[cls] = NodeDef(cls, flatten_fn, unflatten_fn, flatten_with_keys_fn)
    tree.register(cls, flatten_fn, unflatten_fn)


def _register_pytree_node(cls: Any, flatten_fn: Any, unflatten_fn: Any, **options: Any) -> None:
    _private_register_pytree_node(cls, flatten_fn, unflatten_fn, **options)


def _deregister_pytree_node(cls: Any) -> None:
    del SUPPORTED_NODES[cls]
    tree.forget(cls)


def register_dataclass(cls: Any, *, field_names: Any = None, drop_field_names: Any = None) -> None:
    """Make a dataclass a container of its fields."""
    import dataclasses

    left_out = set(drop_field_names or ())
    names = field_names or [f.name for f in dataclasses.fields(cls) if f.name not in left_out]

    def take_apart(x: Any) -> tuple[list[Any], Any]:
        return [getattr(x, name) for name in names], list(names)

    def with_keys(x: Any) -> tuple[list[tuple[Any, Any]], Any]:
        return [(GetAttrKey(name), getattr(x, name)) for name in names], list(names)

    def put_together(values: Iterable[Any], context: Any) -> Any:
        return cls(**dict(zip(context, values, strict=True)))

    register_pytree_node(cls, take_apart, put_together, flatten_with_keys_fn=with_keys)


__all__ = [
    "BUILTIN_TYPES", "GetAttrKey", "MappingKey", "NodeDef", "SUPPORTED_NODES", "SequenceKey",
    "is_namedtuple", "is_namedtuple_class", "is_namedtuple_instance", "register_dataclass",
    "register_pytree_node",
    *[name for name in dict(globals()) if name.endswith(("flatten", "flatten_with_keys"))],
    "_get_node_type", "_register_pytree_node", "_private_register_pytree_node",
    "_deregister_pytree_node",
]  # fmt: skip
