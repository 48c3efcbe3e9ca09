"""Optimizer: the base of all optimisers.

An optimiser holds groups of parameters with their settings, and state per parameter. `step` records
one operator per group, writes its results over the parameters and state, and lets the recording
run. The settings are read when a step runs, so a schedule changes them without a new program. State
has its memory from construction, and is seen in `state` once PyTorch's would be.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from functools import wraps
from operator import is_
from types import MappingProxyType
from typing import Any

import numpy as np

from .. import record
from ..autograd.hooks import RemovableHandle
from ..autograd.modes import enable_grad
from ..belonging import is_package
from ..guards import Counted, snapshot
from ..ir import dtypes
from ..nn.parameter import fill_from_array, known, zero_gradient
from ..nn.state import array_of
from ..nn.uninitialized import is_lazy
from ..recorder import Live, current
from ..tensor import Tensor

Group = dict[str, Any]


def _added(hooks: dict[int, Any], hook: Any, prepend: bool = False) -> RemovableHandle:
    handle = RemovableHandle(hooks)
    others = list(hooks.items()) if prepend else []
    hooks[handle.id] = hook
    for number_of, other in others:
        del hooks[number_of]
        hooks[number_of] = other
    return handle


class LivePlace(Live):
    """One number of a setting that is a tuple, read again at every run."""

    __slots__ = ("place",)

    def __init__(self, group: Group, name: str, place: int) -> None:
        super().__init__(group, name)
        self.place = place

    def get(self) -> float:
        """The number as it is now."""
        return float(self.mapping[self.name][self.place])


def live(group: Group, name: str, place: int | None = None) -> Live:
    """A group's setting (or one number of a tuple) that is read again at every run."""
    return Live(group, name) if place is None else LivePlace(group, name, place)


def number(value: Any, name: str) -> None:
    """Check a setting that must not be negative."""
    if isinstance(value, str):
        raise TypeError(f"the {name} must be a number, got the text {value!r}")
    if not isinstance(value, Tensor) and not float(value) >= 0.0:
        raise ValueError(f"Invalid {name}: {value}")


def check_betas(betas: Any) -> None:
    """Check the shares that running means keep."""
    for n, beta in enumerate(betas):
        if not 0.0 <= beta < 1.0:
            raise ValueError(f"Invalid beta parameter at index {n}: {beta}")


_OPTIONS = {"maximize": False, "foreach": None, "capturable": False, "differentiable": False}


def options(given: dict[str, Any], fused: bool = False, capturable: bool = True) -> dict[str, Any]:
    """PyTorch's settings of how to compute, kept in the groups: only `maximize` has an effect."""
    known: dict[str, Any] = dict(_OPTIONS)
    if fused:
        known["fused"] = None
    if not capturable:
        del known["capturable"]
    for name, value in given.items():
        if name not in known:
            raise TypeError(f"got an unexpected keyword argument {name!r}")
        known[name] = value
    if known.get("fused") and known["foreach"]:
        raise RuntimeError("`fused` and `foreach` cannot be `True` together.")
    if known["differentiable"]:
        raise NotImplementedError(
            "differentiable=True is not supported: write the update with operators, or take "
            "mg.func.grad of a function that returns the new parameters"
        )
    return known


_every_step: dict[str, dict[int, Any]] = {"before": {}, "after": {}}  # hooks of all optimisers


def register_optimizer_step_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call hook(optimizer, args, kwargs) before each step of every optimiser."""
    return _added(_every_step["before"], hook)


def register_optimizer_step_post_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call hook(optimizer, args, kwargs) after each step of every optimiser."""
    return _added(_every_step["after"], hook)


def _checked(changed: Any) -> Any:
    """The arguments that a hook returned."""
    if isinstance(changed, tuple) and len(changed) == 2:
        return changed
    raise RuntimeError(
        "a hook before a step must return None or a pair of new arguments (args, kwargs), "
        f"but got {changed!r}"
    )


def _with_hooks(step: Callable[..., Any]) -> Callable[..., Any]:
    """A step between the hooks of its optimiser, which ends the program, whoever wrote it."""

    @wraps(step)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not self._opt_called:
            self._opt_called = True
        before, after = self._step_pre_hooks, self._step_post_hooks
        if self._in_step:
            return step(self, *args, **kwargs)
        if current.recorder.hold:
            self._note_facts()
        if not (before or after or _every_step["before"] or _every_step["after"]):
            result = step(self, *args, **kwargs)
            record.flush_here("optimizer step")
            return result
        self._in_step = True  # a step may call that of its base class
        try:
            given: Any = (self, *args)  # hooks see the optimiser among the arguments, too
            for hook in [*_every_step["before"].values(), *before.values()]:
                changed = hook(self, given, kwargs)
                if changed is not None:
                    given, kwargs = _checked(changed)
            result = step(*given, **kwargs)
            record.flush_here("optimizer step")
            for hook in [*after.values(), *_every_step["after"].values()]:
                hook(self, given, kwargs)
            return result
        finally:
            self._in_step = False

    return call


class States(Counted):
    """State by parameter, empty where there was none; changes of it are counted."""

    counted = True  # whether changes of all that it holds are counted too

    def __missing__(self, p: Any) -> dict[str, Any]:
        self[p] = held = Counted()
        return held

    def __setitem__(self, p: Any, held: Any) -> None:
        super().__setitem__(p, held)
        if held.__class__ is not Counted:  # a dictionary of the user's
            self.counted = False

    def update(self, *args: Any, **kwargs: Any) -> None:
        """Add what another mapping holds."""
        for p, held in dict(*args, **kwargs).items():
            self[p] = held

    def __repr__(self) -> str:
        return f"defaultdict({dict!r}, {dict(self)!r})"  # as PyTorch's


class Optimizer:
    """Base of all optimisers: subclasses write `_update` and, if they have state, `_new_state`."""

    # Names of settings that are numbers, with a place where the setting is a tuple.
    live_settings: tuple[tuple[Any, ...], ...] = ()
    switches: tuple[str, ...] = ()  # those of them that leave work out while they are zero
    _apart = frozenset(["params"])  # what a trace does not take for granted, by name
    _is_known = True  # whether its state is tensors only, that stay what they are
    _in_step = False
    _repeating: Sequence[Group] = ()  # groups that have a parameter twice
    _latest_facts: tuple[list[Any], list[Any]] = ([], [])  # what they were made of, and they
    # Of one that wraps another and does not call `__init__`.
    _step_pre_hooks: Any = MappingProxyType({})
    _step_post_hooks: Any = MappingProxyType({})
    _opt_called = False  # whether there was a step; schedules look at it

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls._apart = frozenset(["params", *[setting[0] for setting in cls.live_settings]])
        cls._is_known = is_package(cls.__module__)
        if "step" in cls.__dict__:
            cls.step = _with_hooks(cls.step)  # type: ignore[method-assign]

    def __init__(self, params: Any, defaults: dict[str, Any]) -> None:
        if isinstance(params, Tensor):
            raise TypeError("params should be an iterable of tensors or dicts, got one tensor")
        self.defaults = defaults
        self.state: dict[Tensor, dict[str, Any]] = States()
        self.param_groups: list[Group] = []
        self._reserved: dict[Tensor, dict[str, Any]] = {}  # state that is not visible yet
        self._live: dict[int, tuple[Live, ...]] = {}  # by the id of a group
        self._step_pre_hooks = {}
        self._step_post_hooks = {}
        self._state_hooks: dict[str, dict[int, Any]] = {}  # by when they are called
        listed = list(params)
        if not listed:
            raise ValueError("optimizer got an empty parameter list")
        for entry in listed if isinstance(listed[0], dict) else [{"params": listed}]:
            self.add_param_group(entry)
        # Initial weights are computed now, so that the program of the first step is that of all.
        record.flush_here("optimizer construction")

    def add_param_group(self, param_group: Group) -> None:
        """Add parameters with settings of their own; settings not given are the defaults."""
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group).__name__}")
        given = param_group["params"]
        if isinstance(given, set):
            raise TypeError(
                "optimizer parameters need to be organized in ordered collections, but the order "
                "of tensors in sets changes between runs: use a list"
            )
        listed = [given] if isinstance(given, Tensor) else list(given)
        named = [entry for entry in listed if isinstance(entry, tuple)]
        if named and len(named) < len(listed):
            raise ValueError("all optimizer params should be with or without names")
        params = [entry[1] for entry in named] if named else listed
        self._check_params(params)
        if any(bool(named) != ("param_names" in other) for other in self.param_groups):
            raise ValueError("all optimizer param groups should be with or without names")
        param_group["params"] = params
        if named:
            param_group["param_names"] = [entry[0] for entry in named]
        if len({id(p) for p in params}) != len(params):
            warnings.warn(
                "optimizer contains a parameter group with duplicate parameters; each of them is "
                "updated as many times as it is there",
                stacklevel=4,
            )
            self._repeating = [*self._repeating, param_group]
        for name, default in self.defaults.items():
            param_group.setdefault(name, default)
        self.param_groups.append(param_group)
        for p in params:
            if not is_lazy(p):
                self._reserved[p] = self._new_state(p, param_group)

    def _check_params(self, params: list[Tensor]) -> None:
        for p in params:
            if not isinstance(p, Tensor):
                raise TypeError(f"optimizer can only optimize Tensors, got {type(p).__name__}")
            if not p.is_leaf:
                raise ValueError("can't optimize a non-leaf Tensor")
        held = {id(p) for group in self.param_groups for p in group["params"]}
        ids = [id(p) for p in params]
        if held & set(ids):
            raise ValueError("some parameters appear in more than one parameter group")

    # --- what subclasses write ---

    def _new_state(self, p: Tensor, group: Group) -> dict[str, Any]:
        """The state of a parameter before its first step."""
        return {}

    def _update(self, group: Group, params: list[Tensor]) -> None:
        """Record the update of those parameters of a group that have gradients."""
        raise NotImplementedError

    def _state_of(self, p: Tensor, group: Group) -> dict[str, Any]:
        """The state of a parameter, visible from now on."""
        held: dict[str, Any] = self.state[p]
        if not held:
            held.update(self._reserved.pop(p, {}) or self._new_state(p, group))
        return held

    def _numbers(self, group: Group) -> tuple[Live, ...]:
        """The settings of a group named in `live_settings`, each read again at every run."""
        found = self._live.get(id(group))
        if found is None or found[0].mapping is not group:
            found = tuple([live(group, *setting) for setting in self.live_settings])
            self._live[id(group)] = found
        return found

    def _settle(self, group: Group) -> None:
        """Compute settings that are tensors: reading them flushes, which a record cannot stand."""
        for setting in self.live_settings:
            held = group[setting[0]]
            if len(setting) > 1:
                held = held[setting[1]]
            if held.__class__ is not float and isinstance(held, Tensor):
                float(held.detach())

    # --- stepping ---

    @_with_hooks
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update every parameter that has a gradient."""
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        recorder = current.recorder
        before, recorder.grad = recorder.grad, False
        try:
            for group in self.param_groups:
                params = [p for p in group["params"] if p._grad is not None]
                if not params:
                    continue
                self._settle(group)
                repeated = [each for each in self._repeating if each is group]
                for each_once in _rounds(params) if repeated else (params,):
                    self._update(group, each_once)
        finally:
            recorder.grad = before
        return loss

    def _note_facts(self) -> None:
        """Tell a trace of what this optimiser is like before its first step there."""
        noted = current.recorder.optimizers
        if not any(optimizer is self for optimizer, *_ in noted):
            noted.append((self, self._facts(), self._state_facts()))

    def _facts(self) -> list[Any]:
        """What a traced step takes for granted: hooks, groups, settings, where the state is.

        As a rule the very list of the last time, since all that it was made of is still there.
        """
        state = self.state
        if state.__class__ is not States or not state.counted or not self._is_known:
            return [*self._facts_of_groups(), *self._state_facts()]
        seen: list[Any] = [state, *self._step_pre_hooks, *self._step_post_hooks]
        seen += (*_every_step["before"], *_every_step["after"])
        for group in self.param_groups:
            seen.append(group)
            seen += group.values()
            seen += group["params"]
        before, found = self._latest_facts
        if len(seen) != len(before) or not all(map(is_, seen, before)):
            found = self._facts_of_groups()
            self._latest_facts = seen, found
        return found

    def _facts_of_groups(self) -> list[Any]:
        found: list[Any] = [self.state]
        before, after = self._step_pre_hooks, self._step_post_hooks
        for hooks in (before, after, _every_step["before"], _every_step["after"]):
            found += hooks.values()
        apart = self._apart
        for group in self.param_groups:
            found.append(group)
            found += group["params"]
            found += [value for name, value in group.items() if name not in apart]
            found += [not group[name] for name in self.switches]
        return found

    def _state_facts(self) -> list[Any]:
        """The tensors of the state, which a traced step takes for granted too."""
        found: list[Any] = []
        for held in (*self.state.values(), *self._reserved.values()):
            found += held.values() if self._is_known else map(snapshot, held.values())
        return found

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients, or set them to zero."""
        recorder = current.recorder
        if recorder.hold and set_to_none:
            recorder.cleared.update(id(p) for group in self.param_groups for p in group["params"])
        for group in self.param_groups:
            for p in group["params"]:
                if set_to_none:
                    p._grad = None
                elif p._grad is not None:
                    zero_gradient(p._grad)

    # --- hooks ---

    def register_step_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call hook(optimizer, args, kwargs) before each step; it may return both anew."""
        return _added(self._step_pre_hooks, hook)

    def register_step_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call hook(optimizer, args, kwargs) after each step."""
        return _added(self._step_post_hooks, hook)

    def register_state_dict_pre_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Call hook(optimizer) before each state_dict."""
        return _added(self._state_hooks.setdefault("before saving", {}), hook, prepend)

    def register_state_dict_post_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Call hook(optimizer, state_dict) after each state_dict; it may return another one."""
        return _added(self._state_hooks.setdefault("after saving", {}), hook, prepend)

    def register_load_state_dict_pre_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Call hook(optimizer, state_dict) before each load; it may return another one."""
        return _added(self._state_hooks.setdefault("before loading", {}), hook, prepend)

    def register_load_state_dict_post_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Call hook(optimizer) after each load."""
        return _added(self._state_hooks.setdefault("after loading", {}), hook, prepend)

    def _call_state_hooks(self, when: str, *state: Any) -> Any:
        for hook in list(self._state_hooks.get(when, {}).values()):
            changed = hook(self, *state)
            if state and changed is not None:
                state = (changed,)
        return state[0] if state else None

    # --- state ---

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take what a copy holds, or what was loaded: optimisers of users add settings here."""
        self.__dict__.update(state)
        for name in ("_reserved", "_live", "_step_pre_hooks", "_step_post_hooks", "_state_hooks"):
            self.__dict__.setdefault(name, {})
        for group in self.param_groups:
            for p in group["params"]:
                if not (is_lazy(p) or self.state.get(p) or p in self._reserved):
                    self._reserved[p] = self._new_state(p, group)

    def state_dict(self) -> dict[str, Any]:
        """State and groups in PyTorch's format: parameters are named by their number."""
        self._call_state_hooks("before saving")
        place = {p: n for n, p in enumerate(self._all_params())}
        groups, start = [], 0
        for group in self.param_groups:
            packed = {name: value for name, value in group.items() if name != "params"}
            packed["params"] = list(range(start, start + len(group["params"])))
            start += len(group["params"])
            groups.append(packed)
        state = {place[p]: dict(held) for p, held in self.state.items() if p in place and held}
        found = {"state": state, "param_groups": groups}
        return self._call_state_hooks("after saving", found)  # type: ignore[no-any-return]

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Copy state and settings from what `state_dict` of such an optimiser returned."""
        state_dict = self._call_state_hooks("before loading", dict(state_dict))
        saved = state_dict["param_groups"]
        if len(saved) != len(self.param_groups):
            raise ValueError("loaded state dict has a different number of parameter groups")
        sizes = zip(self.param_groups, saved, strict=True)
        if any(len(own["params"]) != len(given["params"]) for own, given in sizes):
            raise ValueError(
                "loaded state dict contains a parameter group that doesn't match the size of "
                "optimizer's group"
            )
        for own, given in zip(self.param_groups, saved, strict=True):
            others = {name: value for name, value in given.items() if name != "params"}
            own.update(deepcopy(others))
        numbers = [n for given in saved for n in given["params"]]
        owner = {p: group for group in self.param_groups for p in group["params"]}
        for n, p in zip(numbers, self._all_params(), strict=True):
            entries = state_dict["state"].get(n, {}).items()
            held = {name: value for name, value in entries if value is not None}
            if held:
                self._load_param(p, owner[p], held)
            elif self.state.pop(p, None):  # as before the first step
                self._reserved[p] = self._new_state(p, owner[p])
        if type(self).__setstate__ is not Optimizer.__setstate__:
            self.__setstate__({"state": self.state, "param_groups": self.param_groups})
        self._call_state_hooks("after loading")

    def _load_param(self, p: Tensor, group: Group, saved: Mapping[str, Any]) -> None:
        held = self._state_of(p, group)
        if not held.keys() <= saved.keys():
            fresh = self._new_state(p, group)
            for name in held.keys() - saved.keys():
                held.pop(name)
                if name in fresh:
                    held[name] = fresh[name]
        for name, value in saved.items():
            place = held.get(name)
            if not hasattr(value, "shape") and not isinstance(place, Tensor):
                held[name] = value
                continue
            array = array_of(value)
            if isinstance(place, Tensor) and tuple(place.shape) == array.shape:
                fill_from_array(place, array)
            elif name != "step" and p.is_floating_point():
                held[name] = known(np.array(array, dtype=p.dtype.numpy))
            else:
                held[name] = known(np.array(array))

    def _all_params(self) -> Iterator[Tensor]:
        for group in self.param_groups:
            yield from group["params"]

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for n, group in enumerate(self.param_groups):
            lines.append(f"Parameter Group {n}")
            lines += [f"    {name}: {group[name]}" for name in sorted(group) if name != "params"]
        return "\n".join([*lines, ")"])


def _rounds(params: list[Tensor]) -> Iterator[list[Tensor]]:
    """The parameters in lists that have each of them once, as many as it takes."""
    while params:
        counts: dict[int, int] = {}
        numbered = []
        for p in params:
            counts[id(p)] = counts.get(id(p), 0) + 1
            numbered.append((p, counts[id(p)]))
        yield [p for p, number_of in numbered if number_of == 1]
        params = [p for p, number_of in numbered if number_of > 1]


def zeros_of(p: Tensor, shape: Iterable[int] | None = None, dtype: Any = None) -> Tensor:
    """State of zeros, whose memory exists."""
    chosen: dtypes.DType = dtype or p.dtype
    return known(np.zeros(tuple(p.shape) if shape is None else tuple(shape), chosen.numpy))
