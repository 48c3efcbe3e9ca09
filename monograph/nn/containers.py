"""Modules that hold other modules or parameters: in sequence, by number, by name."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any, overload

from ..tensor import Parameter, Tensor
from .module import Module


def _position(index: int, length: int) -> int:
    if not -length <= index < length:
        raise IndexError(f"index {index} is out of range for {length} members")
    return index % length


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

    def forward(self, x: Any) -> Any:
        for module in self:
            x = module(x)
        return x

    def append(self, module: Module) -> Sequential:
        """Add a module at the end."""
        self.add_module(str(len(self)), module)
        return self

    def extend(self, modules: Iterable[Module]) -> Sequential:
        """Add modules at the end."""
        for module in modules:
            self.append(module)
        return self

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

    def __delitem__(self, index: int) -> None:
        names = list(self._modules)
        del self._modules[names[_position(index, len(names))]]
        kept = list(self._modules.values())
        if all(name.isdigit() for name in names):
            self._modules.clear()
            for n, module in enumerate(kept):
                self._modules[str(n)] = module


class ModuleList(Module):
    """A list whose members are registered."""

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        self.extend(modules or ())

    def append(self, module: Module) -> ModuleList:
        """Add a module at the end."""
        self.add_module(str(len(self)), module)
        return self

    def extend(self, modules: Iterable[Module]) -> ModuleList:
        """Add modules at the end."""
        for module in modules:
            self.append(module)
        return self

    def insert(self, index: int, module: Module) -> None:
        """Put a module before the one at index."""
        members = list(self._modules.values())
        members.insert(index, module)
        self._renumber(members)

    def _renumber(self, members: list[Module | None]) -> None:
        self._modules.clear()
        for n, module in enumerate(members):
            self._modules[str(n)] = module

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
        self._renumber(members)

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
    """A dictionary whose values are registered."""

    def __init__(self, modules: Mapping[str, Module] | None = None) -> None:
        super().__init__()
        self.update(modules or {})

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


class ParameterList(Module):
    """A list whose members are registered as parameters; tensors become parameters."""

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        self.extend(values or ())

    def append(self, value: Tensor) -> ParameterList:
        """Add a parameter at the end."""
        made = value if isinstance(value, Parameter) else Parameter(value)
        self.register_parameter(str(len(self)), made)
        return self

    def extend(self, values: Iterable[Any]) -> ParameterList:
        """Add parameters at the end."""
        for value in values:
            self.append(value)
        return self

    def __len__(self) -> int:
        return len(self._parameters)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._parameters.values())

    def __getitem__(self, index: int | slice) -> Any:
        members = list(self._parameters.values())
        if isinstance(index, slice):
            return type(self)(members[index])
        return members[_position(index, len(members))]

    def __setitem__(self, index: int, value: Tensor) -> None:
        made = value if isinstance(value, Parameter) else Parameter(value)
        setattr(self, str(_position(index, len(self))), made)

    def extra_repr(self) -> str:
        return "\n".join(
            f"({n}): Parameter of {p.dtype.name}{list(p.shape)}" for n, p in enumerate(self)
        )
