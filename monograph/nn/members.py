"""The parameters, buffers or modules that a module has registered, by name.

Python looks for `module.weight` among the plain attributes first, and asks `__getattr__` only after
it has made an exception: half a microsecond, many times in every step. So whatever is registered is
a plain attribute as well, and every change of the members, by whichever way, changes both.
"""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any
from weakref import ref


class Members(dict[str, Any]):
    """A dictionary whose entries are attributes of a module too.

    >>> import monograph as mg
    >>> layer = mg.nn.Linear(2, 2)
    >>> del layer._parameters["bias"]
    >>> hasattr(layer, "bias")
    False
    """

    __slots__ = ("module",)

    def __init__(self, module: Any, members: Any = ()) -> None:
        super().__init__()
        self.module = ref(module)  # weak: modules are freed as soon as nobody holds them
        self.update(members)

    def _attributes(self) -> dict[str, Any]:
        module = self.module()
        return {} if module is None else module.__dict__

    def __setitem__(self, name: str, member: Any) -> None:
        super().__setitem__(name, member)
        if not hasattr(type(self.module()), name):  # else it is the method that has the name
            self._attributes()[name] = member

    def __delitem__(self, name: str) -> None:
        super().__delitem__(name)
        self._attributes().pop(name, None)

    def pop(self, name: str, *default: Any) -> Any:
        """Remove a member; the default if there is none."""
        if name not in self:
            return super().pop(name, *default)
        member = self[name]
        del self[name]
        return member

    def popitem(self) -> tuple[str, Any]:
        """Remove the last member."""
        if not self:
            raise KeyError("there are no members")
        name = next(reversed(self))
        return name, self.pop(name)

    def __ior__(self, members: Any) -> Members:  # type: ignore[override,misc]
        self.update(members)
        return self

    # These change entries through the methods above, where those of dict would not.
    clear: Any = MutableMapping.clear
    update: Any = MutableMapping.update
    setdefault: Any = MutableMapping.setdefault

    def __reduce__(self) -> Any:
        return dict, (dict(self),)  # a copied or unpickled module makes its own
