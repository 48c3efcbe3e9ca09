"""The modules of PyTorch's tree, made of names that are defined elsewhere.

A `TreeModule` stands for one module such as `torch.nn.functional`. It holds nothing: a name is
looked up in its sources (see `names.py`) when it is first asked for, and kept. A `TreeFinder` makes
the modules when they are imported, under whatever name the tree is to be known by: here it is
`monograph.torch`, and `monograph run` says `torch` and `torchvision`.
"""

from __future__ import annotations

import difflib
import importlib
import importlib.abc
import importlib.machinery
import sys
import types
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..belonging import home_of, is_package
from .parts.absent import StandIn, refusal

OPERATORS = "operators:"  # a source that is a namespace of operators


@dataclass(frozen=True)
class Tree:
    """What is in a tree: modules with their sources, names that do nothing, names refused."""

    modules: Mapping[str, Sequence[str]]
    stand_ins: Mapping[str, StandIn] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)

    def of_module(self, path: str) -> Iterator[str]:
        """The names in the last two tables that belong to a module."""
        for name in (*self.stand_ins, *self.refused):
            module, _, last = name.rpartition(".")
            if module == path:
                yield last


def source_names(source: str) -> Iterator[str]:
    """The public names that a source has."""
    table = _table(source)
    if table is not None:
        yield from table
        return
    module = importlib.import_module(source)
    listed = getattr(module, "__all__", None)
    if listed is not None:
        yield from listed
        return
    for name, value in vars(module).items():
        if not name.startswith("_") and _is_own(value):
            yield name


def _table(source: str) -> Mapping[str, Any] | None:
    """The names and values of a source that is no module: a namespace, or a dictionary in a file.

    >>> _table("monograph.torch.parts.backends#CUDNN")["enabled"]
    True
    """
    if source.startswith(OPERATORS):
        from ..ops.define import members

        return members(source.removeprefix(OPERATORS))
    file, separator, name = source.partition("#")
    if not separator:
        return None
    found: Mapping[str, Any] = getattr(importlib.import_module(file), name)
    return found


def _is_own(value: Any) -> bool:
    """Whether a value is one of this package, and not something that a file imported."""
    if isinstance(value, types.ModuleType):
        return False
    home = home_of(value)
    return not isinstance(home, str) or is_package(home)


def find(source: str, name: str) -> Any:
    """A name of a source; LookupError if it has none."""
    table = _table(source)
    if table is not None:
        return table[name]
    module = importlib.import_module(source)
    listed = getattr(module, "__all__", ())
    value = vars(module).get(name, _ABSENT)
    if value is _ABSENT and name in listed:
        value = getattr(module, name)  # a module that makes its names when they are asked for
    if value is _ABSENT or (name not in listed and not _is_own(value)):
        raise KeyError(name)
    return value


_ABSENT = object()


def _found(module: types.ModuleType) -> dict[str, Any]:
    """The names of a module that were found so far."""
    names: Any = vars(types.ModuleType)["__dict__"]
    found: dict[str, Any] = names.__get__(module)
    return found


class TreeModule(types.ModuleType):
    """One module of the tree; its names are found when they are asked for."""

    def __init__(self, name: str, tree: Tree, path: str) -> None:
        sources = ", ".join(tree.modules[path]) or "its submodules"
        super().__init__(name, f"PyTorch's names for what is defined in {sources}.")
        _found(self)["_place"] = (tree, path)

    @property
    def __dict__(self) -> dict[str, Any]:  # type: ignore[override]
        """All names, found now: programs choose by `models.__dict__[name]`."""
        found = _found(self)
        for name in dir(self):
            if name not in found:
                try:
                    found[name] = getattr(self, name)
                except ImportError:  # of a library that is not installed
                    continue
        return found

    def __getattr__(self, name: str) -> Any:
        tree, path = _found(self)["_place"]
        inner = f"{path}.{name}" if path else name
        if name == "__all__":
            return [public for public in dir(self) if not public.startswith("_")]
        if inner == "torch" and "autograd" in tree.modules:
            return self  # which PyTorch has by an accident that programs rely on
        special = name.startswith("__") and name.endswith("__") and name != "__version__"
        if special and inner not in tree.modules:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        value = _look_up(tree, path, inner, name)
        if value is _ABSENT and inner in tree.modules:
            return importlib.import_module(f"{self.__name__}.{name}")
        if value is _ABSENT:
            # Without `obj` Python adds no suggestion of its own to ours.
            raise AttributeError(_absent(self, name), name=name)
        _found(self)[name] = value
        return value

    def __setattr__(self, name: str, value: Any) -> None:
        # An import of `models.alexnet` sets the module; `models.alexnet` stays the function.
        tree, path = _found(self).get("_place", (None, ""))
        if isinstance(value, TreeModule) and tree is not None:
            found = _look_up(tree, path, f"{path}.{name}" if path else name, name)
            value = value if found is _ABSENT else found
        super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        tree, path = _found(self)["_place"]
        names = {name for name in _found(self) if not name.startswith("_")}
        start = f"{path}." if path else ""
        for other in tree.modules:
            if other and other.startswith(start) and "." not in other[len(start) :]:
                names.add(other[len(start) :])
        for source in tree.modules[path]:
            names.update(source_names(source))
        return sorted(names.union(tree.of_module(path)))


def _look_up(tree: Tree, path: str, inner: str, name: str) -> Any:
    for source in tree.modules[path]:
        try:
            return find(source, name)
        except KeyError:
            continue
    if inner in tree.stand_ins:
        return tree.stand_ins[inner].named(inner)
    if inner in tree.refused:
        return refusal(inner, tree.refused[inner])
    return _ABSENT


def _absent(module: types.ModuleType, name: str) -> str:
    """What to say of a name that is not there: the nearest that is."""
    text = f"module {module.__name__!r} has no attribute {name!r}"
    names = dir(module)
    folded = {other.lower(): other for other in names}
    near = difflib.get_close_matches(name.lower(), list(folded), 1, 0.6)
    return f"{text}; the nearest name is {folded[near[0]]!r}" if near else text


class TreeFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Makes the modules of a tree when they are imported below a name of one's choice."""

    def __init__(self, root: str, tree: Tree) -> None:
        self.root = root
        self.tree = tree

    def path_of(self, name: str) -> str | None:
        """The place in the tree that a module's full name stands for, if it is one of ours."""
        if name == self.root:
            path = ""
        elif name.startswith(f"{self.root}."):
            path = name[len(self.root) + 1 :]
        else:
            return None
        return path if path in self.tree.modules else None

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:
        """The specification of a module of the tree."""
        place = self.path_of(fullname)
        if place is None:
            return None
        return importlib.machinery.ModuleSpec(
            fullname, self, origin=f"<{fullname} by monograph>", is_package=True
        )

    def create_module(self, spec: Any) -> types.ModuleType:
        """The module, whose names are found later."""
        place = self.path_of(spec.name)
        assert place is not None
        return TreeModule(spec.name, self.tree, place)

    def exec_module(self, module: types.ModuleType) -> None:
        """Nothing to run: the names are found when they are asked for."""

    def install(self) -> TreeFinder:
        """Ask this finder before all others."""
        sys.meta_path.insert(0, self)
        return self

    def remove(self) -> None:
        """Stop asking this finder, and forget the modules that it made."""
        sys.meta_path.remove(self)
        for name in list(sys.modules):
            if self.path_of(name) is not None:
                del sys.modules[name]
