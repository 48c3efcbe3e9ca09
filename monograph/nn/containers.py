"""Modules that hold other modules: in sequence, by number, by name."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any, overload

from .module import Module


def _position(index: int, length: int) -> int:
    if not -length <= index < length:
        raise IndexError(f"index {index} is out of range for {length} members")
    return index % length


def _renumber(owner: Module, members: list[Module | None]) -> None:
    """Name the members by their numbers."""
    owner._modules.clear()
    for n, module in enumerate(members):
        owner._modules[str(n)] = module


class Sequential(Module):
    """Modules called one after the other, each on the result of the one before.

    >>> import monograph as mg
    >>> net = mg.nn.Sequential(mg.nn.Linear(3, 4), mg.nn.ReLU(), mg.nn.Linear(4, 2))
    >>> net(mg.zeros(5, 3)).shape
    Size([5, 2])
    """

    def __init__(self, *args: Any) -> None:
        super().__init__()
        if len(args) == 1 and isinstance(args[0], OrderedDict):
            for name, module in args[0].items():
                self.add_module(name, module)
        else:
            for n, module in enumerate(args):
                self.add_module(str(n), module)

    def forward(self, input: Any) -> Any:
        for module in self:
            input = module(input)
        return input

    def append(self, module: Module) -> Sequential:
        """Add a module at the end."""
        self.add_module(str(len(self)), module)
        return self

    def extend(self, modules: Iterable[Module]) -> Sequential:
        """Add modules at the end."""
        for module in modules:
            self.append(module)
        return self

    def insert(self, index: int, module: Module) -> Sequential:
        """Put a module before the one at index."""
        if not isinstance(module, Module):
            raise AssertionError(f"module should be of type: {Module}")
        members = list(self._modules.values())
        if not -len(members) <= index <= len(members):
            raise IndexError(f"Index out of range: {index}")
        members.insert(index, module)
        _renumber(self, members)
        return self

    def pop(self, key: int | slice) -> Any:
        """Remove a module, or several, and return it."""
        found = self[key]
        del self[key]
        return found

    def __add__(self, other: Sequential) -> Sequential:
        if not isinstance(other, Sequential):
            raise ValueError(
                f"add operator supports only objects of Sequential class, but {type(other)} is "
                "given."
            )
        return Sequential(*self, *other)

    def __iadd__(self, other: Sequential) -> Sequential:
        return self.extend(list(other))

    def __mul__(self, times: int) -> Sequential:
        if not isinstance(times, int) or times <= 0:
            raise (ValueError if isinstance(times, int) else TypeError)(
                f"a Sequential repeats a positive whole number of times, got {times!r}"
            )
        return Sequential(*list(self) * times)

    __rmul__ = __mul__

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._modules.values())

    @overload
    def __getitem__(self, index: int) -> Module: ...
    @overload
    def __getitem__(self, index: slice) -> Sequential: ...
    def __getitem__(self, index: int | slice) -> Any:
        items = list(self._modules.items())
        if isinstance(index, slice):
            return type(self)(OrderedDict(items[index]))
        return items[_position(index, len(items))][1]

    def __setitem__(self, index: int, module: Module) -> None:
        setattr(self, list(self._modules)[_position(index, len(self))], module)

    def __delitem__(self, index: int | slice) -> None:
        names = list(self._modules)
        chosen = names[index] if isinstance(index, slice) else [names[_position(index, len(names))]]
        for name in chosen:
            del self._modules[name]
        _renumber(self, list(self._modules.values()))


class ModuleList(Module):
    """A list whose members are registered.

    >>> import monograph as mg
    >>> layers = mg.nn.ModuleList([mg.nn.Linear(2, 2) for _ in range(3)])
    >>> len(layers), len(list(layers.parameters()))
    (3, 6)
    """

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.extend(modules)

    def append(self, module: Module) -> ModuleList:
        """Add a module at the end."""
        self.add_module(str(len(self)), module)
        return self

    def extend(self, modules: Iterable[Module]) -> ModuleList:
        """Add modules at the end."""
        if not isinstance(modules, Iterable):
            raise TypeError(
                "ModuleList.extend should be called with an iterable, but got "
                + type(modules).__name__
            )
        for module in modules:
            self.append(module)
        return self

    def insert(self, index: int, module: Module) -> None:
        """Put a module before the one at index."""
        members = list(self._modules.values())
        members.insert(index, module)
        _renumber(self, members)

    def pop(self, key: int | slice) -> Any:
        """Remove a module, or several, and return it."""
        found = self[key]
        del self[key]
        return found

    def __add__(self, other: Iterable[Module]) -> ModuleList:
        return ModuleList([*self, *other])

    def __iadd__(self, other: Iterable[Module]) -> ModuleList:
        return self.extend(other)

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._modules.values())

    @overload
    def __getitem__(self, index: int) -> Module: ...
    @overload
    def __getitem__(self, index: slice) -> ModuleList: ...
    def __getitem__(self, index: int | slice) -> Any:
        members = list(self._modules.values())
        if isinstance(index, slice):
            return type(self)(members[index])  # type: ignore[arg-type]
        return members[_position(index, len(members))]

    def __setitem__(self, index: int, module: Module) -> None:
        setattr(self, str(_position(index, len(self))), module)

    def __delitem__(self, index: int | slice) -> None:
        members = list(self._modules.values())
        del members[index]
        _renumber(self, members)

    def _shown_children(self) -> list[str]:
        shown = []
        start = 0
        for text, alike in groupby([repr(module) for module in self]):
            count = len(list(alike))
            last = start + count - 1
            shown.append(
                f"({start}-{last}): {count} x {text}" if count > 1 else f"({start}): {text}"
            )
            start += count
        return shown


class ModuleDict(Module):
    """A dictionary whose values are registered.

    >>> import monograph as mg
    >>> heads = mg.nn.ModuleDict({"left": mg.nn.Linear(2, 1), "right": mg.nn.Linear(2, 3)})
    >>> heads["right"](mg.zeros(1, 2)).shape, sorted(heads)
    (Size([1, 3]), ['left', 'right'])
    """

    def __init__(self, modules: Mapping[str, Module] | None = None) -> None:
        super().__init__()
        if modules is not None:  # a subclass may have an `update` of another kind
            self.update(modules)

    def update(self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]]) -> None:
        """Add modules under their names."""
        for name, module in dict(modules).items():
            self.add_module(name, module)

    def pop(self, key: str) -> Module:
        """Remove a module and return it."""
        module = self[key]
        del self[key]
        return module

    def clear(self) -> None:
        """Remove all modules."""
        self._modules.clear()

    def keys(self) -> Any:
        """The names."""
        return self._modules.keys()

    def values(self) -> Any:
        """The modules."""
        return self._modules.values()

    def items(self) -> Any:
        """The names and modules."""
        return self._modules.items()

    def __getitem__(self, key: str) -> Any:
        return self._modules[key]

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        del self._modules[key]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key: str) -> bool:
        return key in self._modules
