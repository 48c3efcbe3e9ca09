"""Whose an object is: this package's, or somebody else's.

Classes of ours may be shown under another home, as `torch.Tensor` is to programs written for
PyTorch: libraries tell tensors by the module that their class names. What an object of ours is
known by inside of the package stays what it was.
"""

from __future__ import annotations

from typing import Any

PACKAGE = __name__.partition(".")[0]

_homes: dict[Any, str] = {}  # of classes that are shown elsewhere: where they were defined


def home_of(value: Any) -> Any:
    """The name of the module that a class, a function or an object's class was defined in."""
    kind = value if isinstance(value, type) else value.__class__
    found = _homes.get(kind)
    return getattr(value, "__module__", None) if found is None else found


def is_package(home: Any) -> bool:
    """Whether this is the name of a module of this package."""
    return isinstance(home, str) and home.partition(".")[0] == PACKAGE


def show(kind: type, home: str) -> None:
    """Show a class of ours as one that was defined in another module.

    >>> class Part: ...
    >>> Part.__module__ = "monograph.parts"
    >>> show(Part, "elsewhere")
    >>> Part.__module__, home_of(Part), home_of(Part())
    ('elsewhere', 'monograph.parts', 'monograph.parts')
    >>> hide(Part)
    >>> Part.__module__
    'monograph.parts'
    """
    _homes.setdefault(kind, kind.__module__)
    kind.__module__ = home


def hide(kind: type) -> None:
    """Show a class where it was defined."""
    kind.__module__ = _homes.pop(kind)
