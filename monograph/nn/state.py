"""State dictionaries: everything that a module has learnt, by name.

`Stateful` is the part of Module that makes and loads them, with the hooks that see them on the way.
A load is all or nothing: what does not fit is reported at once, before anything is copied, unless
there are hooks that are to see the load first.
"""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from .. import errors, record
from ..tensor import Parameter, Size, Tensor, tensor
from .hooks import RemovableHandle
from .parameter import copy_recorded, detached, fill_from_array, is_known
from .uninitialized import is_lazy

EXTRA = "_extra_state"  # the name of what `get_extra_state` returns


class LoadError(errors.MonographError, RuntimeError):
    """A state dictionary that does not fit the module or optimiser it is loaded into."""


class IncompatibleKeys(NamedTuple):
    """The names that a load did not find, and those it had no place for."""

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return (
            f"_IncompatibleKeys(missing_keys={self.missing_keys}, "
            f"unexpected_keys={self.unexpected_keys})"
        )

    def __str__(self) -> str:
        return repr(self)


def array_of(value: Any) -> np.ndarray:
    """The contents of a tensor, an array, or anything that NumPy can read."""
    return value._array() if isinstance(value, Tensor) else np.asarray(value)


class Place(NamedTuple):
    """Where an entry of a state dictionary belongs: a member of a module, or its extra state."""

    module: Any
    held: dict[str, Any]
    member: str


class Load:
    """One load: what was found, missing and wrong, and what is to be done if nothing is."""

    def __init__(self, module: Any, given: Mapping[str, Any], strict: bool, assign: bool) -> None:
        self.root = module
        self.state = OrderedDict(given)  # hooks may change it
        self.metadata: Mapping[str, Any] = getattr(given, "_metadata", None) or {}
        self.strict = strict
        self.assign = assign
        self.missing: list[str] = []
        self.unexpected: list[str] = []
        self.problems: list[str] = []
        self.fitting: list[tuple[Place, Any]] = []
        self.met: set[str] = set()  # names that some module has a place for
        self.recorded = False  # whether contents are copied that are still to be computed
        self.loaded_otherwise: list[str] = []  # prefixes of modules that load by themselves

    def run(self) -> IncompatibleKeys:
        """Check all, then load all."""
        modules = list(self.root.named_modules(remove_duplicate=False))
        for path, module in modules:
            prefix = f"{path}." if path else ""
            notes = LoadNotes(self, path)
            module._load_from_state_dict(self.state, prefix, notes, self.strict, self.missing,
                                         self.unexpected, self.problems)  # fmt: skip
            if not notes.taken:
                self.loaded_otherwise.append(prefix)
        elsewhere = tuple(self.loaded_otherwise)
        for name in self.state:
            if name not in self.met and not name.startswith(elsewhere):
                self.unexpected.append(name)
        if not any(_hooks(module, "after loading") for _, module in modules):
            self._raise_problems()  # else hooks may still allow it
        for place, value in self.fitting:
            self._put(place, value)
        if self.recorded:  # so that all loads of a loop have one program
            record.flush_here("load_state_dict")
        keys = IncompatibleKeys(self.missing, self.unexpected)
        for _, module in reversed(modules):
            for hook in _hooks(module, "after loading"):
                if hook(module, keys) is not None:
                    raise AssertionError("Hooks registered with "
                        "``register_load_state_dict_post_hook`` are not expected to return new "
                        "values, if incompatible_keys need to be modified, it should be done "
                        "inplace.")  # fmt: skip
        self._raise_problems()
        return keys

    def take(
        self, module: Any, state: Mapping[str, Any], prefix: str, missing: list[str],
        problems: list[str],
    ) -> None:  # fmt: skip
        """Note what a module's own members get, what they lack and what does not fit."""
        for name, place in _places_of(module, prefix):
            if name not in state:
                missing.append(name)
                continue
            self.met.add(name)
            value = state[name]
            if place.member != EXTRA and _is_old_number(value, place.held[place.member]):
                value = value[0]
            if self._fits(name, value, place, problems):
                self.fitting.append((place, value))

    def _fits(self, name: str, value: Any, place: Place, problems: list[str]) -> bool:
        if place.member == EXTRA or (is_lazy(value) and is_lazy(place.held[place.member])):
            return True
        shape = tuple(value.shape) if isinstance(value, Tensor) else np.shape(value)
        own = tuple(place.held[place.member].shape)
        if shape != own:
            problems.append(
                f"size mismatch for {name}: copying a param with shape {Size(shape)} "
                f"from checkpoint, the shape in current model is {Size(own)}."
            )
        return shape == own

    def _put(self, place: Place, value: Any) -> None:
        if place.member == EXTRA:
            place.module.set_extra_state(value)
            return
        own = place.held[place.member]
        if is_lazy(value):
            return  # its shape is as unknown as ours
        if not self.assign and own.is_meta:
            self._warn_absent(place, value)
            return
        if not self.assign:
            if isinstance(value, Tensor) and value.dtype is own.dtype and not is_known(value):
                copy_recorded(own, value)
                self.recorded = True
            else:
                fill_from_array(own, array_of(value))
            return
        given = value if isinstance(value, Tensor) else tensor(value)
        if isinstance(own, Parameter) and not isinstance(given, Parameter):
            given = Parameter(given, requires_grad=own.requires_grad)
        place.held[place.member] = given

    def _warn_absent(self, place: Place, value: Any) -> None:
        if not (isinstance(value, Tensor) and value.is_meta):
            warnings.warn(
                f"for {place.member}: copying from a non-meta parameter in the checkpoint to a "
                "meta parameter in the current model, which is a no-op. (Did you mean to pass "
                "`assign=True` to assign items in the state dictionary to their corresponding key "
                "in the module instead of copying them in place?)",
                stacklevel=5,
            )

    def _raise_problems(self) -> None:
        problems = list(self.problems)
        if self.strict and self.unexpected:
            problems.insert(0, f"Unexpected key(s) in state_dict: {_quoted(self.unexpected)}. ")
        if self.strict and self.missing:
            problems.insert(0, f"Missing key(s) in state_dict: {_quoted(self.missing)}. ")
        if problems:
            owner, listed = type(self.root).__name__, "\n\t".join(problems)
            raise LoadError(f"Error(s) in loading state_dict for {owner}:\n\t{listed}")


class LoadNotes(dict[str, Any]):
    """What a module is told of a load besides the state; `_load_from_state_dict` hands it on."""

    def __init__(self, load: Load, path: str) -> None:
        super().__init__(load.metadata.get(path, {}), assign_to_params_buffers=load.assign)
        self.load = load
        self.taken = False


def _is_old_number(value: Any, own: Any) -> bool:
    """Whether a value has one axis where none is wanted, as numbers had before PyTorch 0.4."""
    return not is_lazy(own) and own.ndim == 0 and getattr(value, "ndim", 0) == 1


def _places_of(module: Any, start: str) -> Iterator[tuple[str, Place]]:
    for name, parameter in module._parameters.items():
        if parameter is not None:
            yield start + name, Place(module, module._parameters, name)
    for name, buffer in module._buffers.items():
        if buffer is not None and name not in module._non_persistent_buffers_set:
            yield start + name, Place(module, module._buffers, name)
    if type(module).get_extra_state is not Stateful.get_extra_state:
        yield start + EXTRA, Place(module, {}, EXTRA)


def _hooks(module: Any, when: str) -> Sequence[Callable[..., Any]]:
    held: dict[int, Any] | None = module._state_hooks.get(when)
    return tuple(held.values()) if held else ()


class Stateful:
    """What modules can do with state dictionaries."""

    _version = 1
    _state_hooks: dict[str, dict[int, Any]]  # by when they are called

    def get_extra_state(self) -> Any:
        """What else belongs into the state dictionary; modules that have some define this."""
        raise NotImplementedError("this module has no extra state")

    def set_extra_state(self, state: Any) -> None:
        """Take back what `get_extra_state` returned."""
        raise NotImplementedError(
            f"{type(self).__name__} has no set_extra_state: define it to load extra state"
        )

    def state_dict(
        self, *args: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False
    ) -> OrderedDict[str, Any]:
        """Every parameter and persistent buffer by name; the tensors share the module's memory."""
        for name, value in zip(("destination", "prefix", "keep_vars"), args, strict=False):
            if name == "destination":
                destination = value
            elif name == "prefix":
                prefix = value
            else:
                keep_vars = value
        found: Any = destination
        if destination is None:
            found = OrderedDict()
            found._metadata = OrderedDict()  # the version of each module, by its path
        return self._save(found, prefix, keep_vars)  # type: ignore[no-any-return]

    def _save(self: Any, found: Any, prefix: str, keep_vars: bool) -> Any:
        notes = {"version": self._version}
        if hasattr(found, "_metadata"):
            found._metadata[prefix[:-1]] = notes
        for hook in _hooks(self, "before saving"):
            hook(self, prefix, keep_vars)
        for name, place in _places_of(self, prefix):
            if place.member == EXTRA:
                found[name] = self.get_extra_state()
            else:
                held = place.held[place.member]
                found[name] = held if keep_vars or is_lazy(held) else detached(held)
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(destination=found, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
        for hook in _hooks(self, "after saving"):
            made = hook(self, found, prefix, notes)
            found = found if made is None else made
        return found

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> IncompatibleKeys:
        """Copy tensors (or NumPy arrays) into the parameters and buffers of the same names.

        With `assign` the tensors themselves take their places.
        """
        if not isinstance(state_dict, Mapping):
            raise TypeError(
                f"Expected state_dict to be dict-like, got {type(state_dict).__name__}."
            )
        return Load(self, state_dict, strict, assign).run()

    def _load_from_state_dict(
        self, state_dict: dict[str, Any], prefix: str, local_metadata: Any, strict: bool,
        missing_keys: list[str], unexpected_keys: list[str], error_msgs: list[str],
    ) -> None:  # fmt: skip
        """Take what belongs to this module itself; layers that store otherwise override this."""
        for hook in _hooks(self, "before loading"):
            hook(self, state_dict, prefix, local_metadata, strict, missing_keys,
                 unexpected_keys, error_msgs)  # fmt: skip
        local_metadata.taken = True
        local_metadata.load.take(self, state_dict, prefix, missing_keys, error_msgs)

    def _add_state_hook(self, when: str, hook: Callable[..., Any]) -> RemovableHandle:
        hooks = self._state_hooks.setdefault(when, {})
        handle = RemovableHandle(hooks)
        hooks[handle.id] = hook
        return handle

    def register_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call hook(module, prefix, keep_vars) before the state is read."""
        return self._add_state_hook("before saving", hook)

    def register_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call hook(module, state_dict, prefix, local_metadata), which may change the state."""

        def without_result(*args: Any) -> None:
            if hook(*args) is not None:
                raise RuntimeError("state_dict post-hook must return None")

        return self._add_state_hook("after saving", without_result)

    def _register_state_dict_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """The older spelling, whose hooks may return another dictionary."""
        return self._add_state_hook("after saving", hook)

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call hook(module, state_dict, prefix, local_metadata, strict, missing_keys,
        unexpected_keys, error_msgs) before a load; it may change any of them.
        """
        return self._add_state_hook("before loading", hook)

    def _register_load_state_dict_pre_hook(
        self, hook: Callable[..., Any], with_module: bool = False
    ) -> RemovableHandle:
        """The older spelling, whose hooks are not given the module."""
        return self._add_state_hook(
            "before loading", hook if with_module else lambda module, *args: hook(*args)
        )

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call hook(module, incompatible_keys) after a load; it may change the lists of keys."""
        return self._add_state_hook("after loading", hook)


def consume_prefix_in_state_dict_if_present(state_dict: dict[str, Any], prefix: str) -> None:
    """Take a prefix off the names of a state dictionary, in place: "module." of wrapped modules.

    >>> state = {"module.weight": 1, "step": 2}
    >>> consume_prefix_in_state_dict_if_present(state, "module.")
    >>> state
    {'step': 2, 'weight': 1}
    """
    for name in [name for name in state_dict if name.startswith(prefix)]:
        state_dict[name.removeprefix(prefix)] = state_dict.pop(name)
    versions = getattr(state_dict, "_metadata", None) or {}
    for path in list(versions):
        if path == prefix[:-1]:
            versions[""] = versions.pop(path)
        elif path.startswith(prefix):
            versions[path.removeprefix(prefix)] = versions.pop(path)


def _quoted(names: list[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)
