"""Guards: what a traced function took for granted, and whether that still holds.

A function that `mg.jit` replays was run by Python once. Whatever it read then that is neither a
tensor nor an argument is frozen in the program: numbers and objects behind global names, in
closures, on objects that it was given, in the modules that it called, and in the optimisers whose
steps it took. `Guards` finds these in the code of the function and of the user's functions that it
calls, and remembers them. Before each replay they are compared, most of them by identity;
attributes of modules only if anything wrote to one since.
"""

from __future__ import annotations

import dis
import functools
import inspect
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import CellType, CodeType, FunctionType, MethodType, ModuleType, NoneType
from typing import Any
from weakref import WeakKeyDictionary

from .belonging import home_of, is_package

PLAIN = (bool, int, float, complex, str, bytes, NoneType)
FUNCTIONS = 256  # that are looked into, at most
ITEMS = (64, 16, 8, 8)  # of a container that are compared, and of those in it
_MISSING: Any = type("_Missing", (), {"__repr__": lambda self: "gone"})()


class Changes:
    """Counts writes to attributes of modules, and to the flags and the data of tensors."""

    def __init__(self) -> None:
        self.count = 0
        # How many tensors have left a storage for another, as `x.data = y` does.
        self.left: WeakKeyDictionary[Any, int] = WeakKeyDictionary()

    def leave(self, storage: Any) -> None:
        """A tensor lies in another storage from now on."""
        self.count += 1
        self.left[storage] = self.left.get(storage, 0) + 1


changes = Changes()


def _counted(name: str) -> Any:
    method = getattr(dict, name)

    def change(self: Any, *args: Any, **kwargs: Any) -> Any:
        changes.count += 1
        return method(self, *args, **kwargs)

    return functools.update_wrapper(change, method)


class Counted(dict[Any, Any]):
    """A dictionary whose changes are counted, as those of modules are."""

    __setitem__ = _counted("__setitem__")
    __delitem__ = _counted("__delitem__")
    clear = _counted("clear")
    pop = _counted("pop")
    popitem = _counted("popitem")
    update = _counted("update")

    def setdefault(self, key: Any, default: Any = None) -> Any:
        """What is held for the key, which is the default from now on if nothing was."""
        if key not in self:
            self[key] = default
        return self[key]

    def __ior__(self, other: Any) -> Any:  # type: ignore[misc]
        self.update(other)
        return self


# --- values ---------------------------------------------------------------------------------------


class Contents:
    """A list, dictionary or the like as it was: changes within are noticed too."""

    def __init__(self, value: Any, depth: int = 0) -> None:
        self.kind = type(value)
        self.depth = depth
        self.items = tuple([snapshot(item, depth + 1) for item in _items(value)])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Contents) or other.kind is not self.kind:
            return False
        same_length = len(self.items) == len(other.items)
        return same_length and all(map(same, other.items, self.items))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"a {self.kind.__name__} of {len(self.items)}"


def _items(value: Any) -> Iterable[Any]:
    if isinstance(value, Mapping):
        return [part for pair in value.items() for part in pair]
    return value  # type: ignore[no-any-return]


def snapshot(value: Any, depth: int = 0) -> Any:
    """What to compare a value with later, this deep inside of containers."""
    kind = type(value)
    if kind not in (list, dict, set, tuple) or depth >= len(ITEMS) or len(value) > ITEMS[depth]:
        return value
    found = Contents(value, depth)
    if kind is tuple and all(map(operator.is_, found.items, value)):
        return value  # nothing in it can change
    return found


def _tensors(value: Any) -> Iterable[Any]:
    """The tensors of a snapshot."""
    if isinstance(value, Contents):
        return [t for item in value.items for t in _tensors(item)]
    return [value] if hasattr(type(value), "_storage") else []


def same(now: Any, before: Any) -> bool:
    """Whether a value is what it was."""
    if now is before:
        return True
    if isinstance(before, Contents):
        if isinstance(now, Contents):
            return now == before
        return type(now) is before.kind and Contents(now, before.depth) == before
    if type(now) is not type(before):
        return False
    if type(now) is tuple:
        return len(now) == len(before) and all(map(same, now, before))
    if type(now) not in PLAIN:
        return False
    return bool(now == before) or (now != now and before != before)  # not a number, still


def _told(value: Any) -> str:
    if type(value) in PLAIN or isinstance(value, Contents) or value is _MISSING:
        return repr(value)
    return f"another {type(value).__name__}"


# --- what a function reads ------------------------------------------------------------------------

Path = tuple[str, tuple[str, ...]]  # a name, and attributes of what it stands for


def reads(code: CodeType) -> tuple[set[Path], set[Path], set[Path]]:
    """What a piece of code reads by name: globals, cells of closures, and local variables."""
    found: tuple[set[Path], set[Path], set[Path]] = (set(), set(), set())
    codes = [code]
    while codes:
        here = codes.pop()
        codes += [constant for constant in here.co_consts if isinstance(constant, CodeType)]
        name, kind = "", -1
        attributes: tuple[str, ...] = ()
        for instruction in dis.get_instructions(here):
            if instruction.opname in ("LOAD_ATTR", "LOAD_METHOD") and kind >= 0:
                attributes += (str(instruction.argval),)
                continue
            if kind >= 0:
                found[kind].add((name, attributes))
            kind = _kind(instruction.opname)
            if kind >= 0:
                given = instruction.argval  # from Python 3.13 on, one instruction may load two
                name, attributes = given[-1] if isinstance(given, tuple) else given, ()
        if kind >= 0:
            found[kind].add((name, attributes))
    return found


def _kind(operation: str) -> int:
    """Which of the three an instruction reads, or -1."""
    if operation in ("LOAD_GLOBAL", "LOAD_NAME"):
        return 0
    if operation in ("LOAD_DEREF", "LOAD_CLASSDEREF"):
        return 1
    return 2 if operation.startswith("LOAD_FAST") else -1


def _is_own(value: Any) -> bool:
    """Whether an object belongs to this package: such are known not to change, or watched."""
    return is_package(home_of(value) or getattr(value, "__name__", None))


class Guards:
    """All that a function took for granted when it was traced."""

    def __init__(self, function: Any, arguments: Mapping[str, Any]) -> None:
        self.names: dict[tuple[int, str], tuple[Any, str, Any, str]] = {}  # mapping, name, value
        self.cells: dict[int, tuple[CellType, Any, str]] = {}
        self.modules: dict[int, tuple[Any, dict[str, Any]]] = {}
        self.replaced: list[Any] = []  # tensors that the function found, and took from their places
        # With what they were like before a step: groups and settings, and state.
        self.optimizers: list[tuple[Any, list[Any], list[Any]]] = []
        self.gradients: list[tuple[Any, Any]] = []  # a tensor, and its gradient then, or None
        self.needed: list[Any] = []  # tensors that must have a gradient
        # A storage, whether it required gradients, and how many tensors had left it.
        self.flags: list[tuple[Any, bool, int]] = []
        self._functions: dict[Any, tuple[FunctionType, Mapping[str, Any]]] = {}
        self._done = 0
        self._count = changes.count
        self._identical: Callable[[], bool] = lambda: False
        self._enter(function, arguments)
        self._walk()

    def settle(
        self, modules: Iterable[Any], optimizers: Sequence[tuple[Any, Any, Any]] = (),
        begun: Sequence[tuple[Any, str]] = (),
    ) -> None:  # fmt: skip
        """The function has run. Guard the modules that it called, and what their code reads.

        What the function changed itself is not guarded: Python runs once, and so do its effects.
        But an optimiser must be what it was before the step: one whose steps change it in Python,
        as by counting them, or by making state that was not there, is not to be replayed. The same
        holds for attributes of modules that begin as None and hold a tensor from the first call on.
        """
        self.optimizers = [*optimizers]
        for key, (mapping, name, before, _) in list(self.names.items()):
            if not self._stays(before, mapping.get(name, _MISSING)):
                del self.names[key]
        for number, (cell, before, _) in list(self.cells.items()):
            if not self._stays(before, _contents(cell)):
                del self.cells[number]
        for module in dict.fromkeys(modules):
            self.modules[id(module)] = (module, _facts(module))
            self._enter(MethodType(type(module).forward, module), {})
        self._walk()
        for mapping, name in begun:
            self.names[id(mapping), name] = (mapping, name, None, name)
        self._count = -1 if self._changed_states() else changes.count
        self._identical = self._comparison()

    def _stays(self, before: Any, now: Any) -> bool:
        """Whether a value is what it was. If not, notes which tensors it had that are gone."""
        if same(now, before):
            return True
        there = {id(t) for t in _tensors(snapshot(now))}
        self.replaced += [t for t in _tensors(before) if id(t) not in there]
        return False

    def _comparison(self) -> Callable[[], bool]:
        """A function that says whether all names and cells hold the very objects of then.

        That is one expression, made for these names: it takes a third of the time of a loop. Where
        it says no, `_changed_names` looks closer.
        """
        scope: dict[str, Any] = {}
        terms = ["True"]
        for n, (mapping, name, before, _) in enumerate(self.names.values()):
            scope |= {f"mapping{n}": mapping, f"value{n}": before}
            there = f"mapping{n}[{name!r}] is value{n}"
            terms.append(f"{name!r} not in mapping{n}" if before is _MISSING else there)
        for n, (cell, before, _) in enumerate(self.cells.values()):
            scope |= {f"cell{n}": cell, f"contents{n}": before}
            terms.append(f"cell{n}.cell_contents is contents{n}")
        exec(f"def identical():\n    return {' and '.join(terms)}", scope)
        return scope["identical"]  # type: ignore[no-any-return]

    # --- finding ---

    def _enter(self, function: Any, arguments: Mapping[str, Any]) -> None:
        """Note a function to look into, and what its arguments are known to be."""
        if isinstance(function, functools.partial):
            for value in [*function.args, *function.keywords.values()]:
                self._value(value)
            self._enter(function.func, {})
            return
        inner = getattr(function, "function", None)  # a jitted one
        if inner is not None and _is_own(type(function)):
            self._enter(inner, arguments)
            return
        if isinstance(function, MethodType):
            names = function.__func__.__code__.co_varnames if _has_code(function) else ()
            if names:
                arguments = {**arguments, names[0]: function.__self__}
            function = function.__func__
        if isinstance(function, FunctionType) and not _is_own(function):
            key = (id(function), *[id(value) for value in arguments.values()])
            if len(self._functions) < FUNCTIONS:
                self._functions.setdefault(key, (function, arguments))

    def _walk(self) -> None:
        while self._done < len(self._functions):
            function, arguments = [*self._functions.values()][self._done]
            self._done += 1
            names, cells, local = reads(function.__code__)
            for name, attributes in names:
                if name in function.__globals__:
                    self._follow(function.__globals__, name, attributes, name)
            held = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
            for name, attributes in cells:
                if name in held:
                    self._cell(held[name], name, attributes)
            for name, attributes in local:
                if name in arguments and attributes:
                    self._attributes(arguments[name], attributes, name)

    def _cell(self, cell: CellType, name: str, attributes: Sequence[str]) -> None:
        value = _contents(cell)
        self.cells[id(cell)] = (cell, snapshot(value), name)
        self._value(value)
        self._attributes(value, attributes, name)

    def _follow(self, mapping: Any, name: str, attributes: Sequence[str], label: str) -> None:
        """Guard a name of a mapping, and attributes of what it stands for."""
        value = mapping[name]
        self.names[id(mapping), name] = (mapping, name, snapshot(value), label)
        self._value(value)
        self._attributes(value, attributes, label)

    def _attributes(self, value: Any, attributes: Sequence[str], label: str) -> None:
        if not attributes or type(value) in PLAIN:
            return
        name, rest = attributes[0], attributes[1:]
        watched = _is_watched(value)
        if watched and "_modules" in getattr(value, "__dict__", ()):
            self.modules.setdefault(id(value), (value, _facts(value)))
        before: list[Any] = []
        for mapping in _mappings(value):
            if name not in mapping:
                before.append(mapping)
                continue
            found = mapping[name]
            if watched and not isinstance(found, FunctionType):
                return
            if isinstance(found, FunctionType) and not isinstance(value, (type, ModuleType)):
                self._enter(MethodType(found, value), {})
            elif not hasattr(type(found), "__get__"):  # no property: calling it might do anything
                self._follow(mapping, name, rest, f"{label}.{name}")
                if before and not isinstance(value, ModuleType):  # the object may get its own
                    own = before[0]
                    self.names[id(own), name] = (own, name, _MISSING, f"{label}.{name}")
            else:
                self._value(found)
            return

    def _value(self, value: Any) -> None:
        """Look into what is called."""
        if isinstance(value, (FunctionType, MethodType, functools.partial)) or _is_jitted(value):
            self._enter(value, {})

    def capture(self, storage: Any) -> None:
        """Guard a storage that the function found by itself, and what is in it at each replay."""
        self.flags.append((storage, storage.value.requires_grad, changes.left.get(storage, 0)))

    def objects(self) -> list[Any]:
        """All that was found behind names, in closures and in modules."""
        found = [each[2] for each in self.names.values()]
        found += [each[1] for each in self.cells.values()]
        for module, _ in self.modules.values():
            found += vars(module).values()
        return found

    # --- asking ---

    def changed(self) -> str | None:
        """What is no longer as it was, or None."""
        try:
            identical = self._identical()
        except (KeyError, ValueError):  # a name, or the contents of a cell, are gone
            identical = False
        told = None if identical else self._changed_names()
        if told is not None:
            return told
        for tensor, gradient in self.gradients:
            if tensor._grad is not gradient:
                return "a gradient is there now" if gradient is None else "a gradient is another"
        for tensor in self.needed:
            if tensor._grad is None:
                return "a gradient is None now"
        for optimizer, before, _ in self.optimizers:
            now = optimizer._facts()
            if now is not before and not _are_same(now, before):
                return f"the groups of {type(optimizer).__name__} are others now"
        if self._count != changes.count:
            told = self._changed_states() or self._changed_modules()
            if told is not None:
                return told
            self._count = changes.count
        return None

    def _changed_names(self) -> str | None:
        for mapping, name, before, label in self.names.values():
            now = mapping.get(name, _MISSING)
            if now is not before and not same(now, before):
                return f"{label} is now {_told(now)}, was {_told(before)}"
        for cell, before, label in self.cells.values():
            now = _contents(cell)
            if now is not before and not same(now, before):
                return f"{label} is now {_told(now)}, was {_told(before)}"
        return None

    def _changed_states(self) -> str | None:
        for optimizer, _, before in self.optimizers:
            if not _are_same(optimizer._state_facts(), before):
                return f"the state of {type(optimizer).__name__} is another now"
        return None

    def _changed_modules(self) -> str | None:
        for storage, flag, left in self.flags:
            if storage.value.requires_grad is not flag:
                return f"requires_grad of a captured tensor is now {not flag}"
            if changes.left.get(storage, 0) != left:
                return "the data of a captured tensor is another"
        for module, facts in self.modules.values():
            now = _facts(module)
            for name in {**facts, **now}:
                new, old = now.get(name, _MISSING), facts.get(name, _MISSING)
                if not same_fact(new, old):
                    owner = type(module).__name__
                    return f"{owner}.{name} is now {_told(new)}, was {_told(old)}"
        return None


def _are_same(now: Sequence[Any], before: Sequence[Any]) -> bool:
    """Whether all of some values are what they were."""
    if len(now) != len(before):
        return False
    return all(map(operator.is_, now, before)) or all(map(same, now, before))


def _contents(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not assigned yet
        return _MISSING


def same_fact(now: Any, before: Any) -> bool:
    """Whether an attribute of a module, as a snapshot, is what it was."""
    if isinstance(now, Contents):
        return now == before
    return same(now, before)


def _facts(module: Any) -> dict[str, Any]:
    """The attributes of a module: numbers by value, members and hooks by identity."""
    return {name: snapshot(_plain(value)) for name, value in vars(module).items()}


def _plain(value: Any) -> Any:
    """Members and hooks as a plain dictionary, whose contents are compared."""
    return dict(value) if isinstance(value, dict) else value


def _has_code(method: MethodType) -> bool:
    return isinstance(method.__func__, FunctionType)


def _is_jitted(value: Any) -> bool:
    return _is_own(type(value)) and hasattr(value, "function")


def _is_watched(value: Any) -> bool:
    """Whether attributes need no guards: of a class, a library, or what `changes` counts."""
    if isinstance(value, type):
        return True
    if isinstance(value, ModuleType):
        return _is_library(value)
    return any(_is_own(base) for base in type(value).__mro__)


def _is_library(module: ModuleType) -> bool:
    """Whether a module is one that programs do not write to: installed, or part of Python."""
    if _is_own(module):
        return True
    file = getattr(module, "__file__", None)
    return file is None or "site-packages" in file or file.startswith(inspect.__file__[:-10])


def _mappings(value: Any) -> list[Any]:
    """Where attributes of an object are found, in order."""
    own = getattr(value, "__dict__", None)
    classes = [vars(kind) for kind in type(value).__mro__[:-1]]
    return classes if own is None else [own, *classes]
