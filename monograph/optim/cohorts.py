"""Optimisers that count their steps.

PyTorch holds the number of steps (and whatever else is one number for a whole step) per parameter.
Here the parameters of a group that have taken the same steps hold the same tensors, so that one
operator updates them all. Such parameters are a cohort; it splits when only some get a gradient.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..ir.dtypes import COMPLEX, float32
from ..nn.parameter import fill_from_array, replace_contents, values_of
from ..ops.complex import view_as_real
from ..record import call_on
from ..tensor import Tensor, from_value
from .optimizer import Group, Optimizer, zeros_of


class Cohorts(Optimizer):
    """Base of optimisers with a `step`: subclasses name their operator, its state and its flags.

    The operator takes lists of parameters, of gradients and of each of `fields`, then the tensors
    `shared`, then the numbers of `live_settings` and the flags, and returns all but gradients.
    """

    operator: Any
    fields: tuple[str, ...] = ()  # state of a parameter, in its shape
    shared: tuple[str, ...] = ("step",)  # state of a cohort, without axes
    flags: tuple[str, ...] = ("maximize",)  # settings that a program is compiled for

    def _used(self, group: Group) -> tuple[str, ...]:
        """Those of `fields` that the group's settings need."""
        return self.fields

    def _fresh(self, name: str, p: Tensor) -> Tensor:
        """One entry of the state before the first step."""
        if name in self.shared:
            return zeros_of(p, (), float32)
        return zeros_of(p)

    def _new_state(self, p: Tensor, group: Group) -> dict[str, Any]:
        peer = next((self._reserved[q] for q in group["params"] if q in self._reserved), None)
        state = {name: peer[name] if peer else self._fresh(name, p) for name in self.shared}
        state.update({name: self._fresh(name, p) for name in self._used(group)})
        return state

    # --- loading ---

    def _load_param(self, p: Tensor, group: Group, saved: Mapping[str, Any]) -> None:
        held = self._state_of(p, group)
        for name in self.shared:
            held[name] = self._fresh(name, p)  # no longer shared
        super()._load_param(p, group, saved)

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        super().load_state_dict(state_dict)
        for group in self.param_groups:
            first: dict[tuple[float, ...], dict[str, Any]] = {}
            for held in [self.state[p] for p in group["params"] if p in self.state]:
                numbers = tuple([float(held[name].item()) for name in self.shared])
                peer = first.setdefault(numbers, held)
                held.update({name: peer[name] for name in self.shared})

    # --- stepping ---

    def _update(self, group: Group, params: list[Tensor]) -> None:
        states = [self.state[p] or self._state_of(p, group) for p in params]
        if len(params) == len(group["params"]):
            step = states[0]["step"]
            for held in states:
                if held["step"] is not step:
                    break
            else:  # most often all are one cohort
                self._record(group, params, states)
                return
        for cohort in self._cohorts(group, params):
            self._record(group, cohort, [self.state[p] for p in cohort])

    def _cohorts(self, group: Group, params: list[Tensor]) -> list[list[Tensor]]:
        """The parameters by the step tensor that they share."""
        cohorts: dict[int, list[Tensor]] = {}
        for p in params:
            held = self.state[p]
            together = cohorts.get(id(held["step"]))
            if together is None:
                cohorts[id(held["step"])] = [p]
            else:
                together.append(p)
        if len(params) < len(group["params"]):
            self._part_from_absent(group, params, cohorts)
        return list(cohorts.values())

    def _part_from_absent(
        self, group: Group, params: list[Tensor], cohorts: dict[int, list[Tensor]]
    ) -> None:
        """Parameters that step now stop sharing with those that have no gradient this time."""
        present = {id(p) for p in params}
        for p in group["params"]:
            held = self.state.get(p) or self._reserved.get(p)
            if id(p) in present or not held or id(held["step"]) not in cohorts:
                continue
            together = cohorts.pop(id(held["step"]))
            own: dict[str, Any] = {name: held[name].clone() for name in self.shared}
            cohorts[id(own["step"])] = together
            for q in together:
                self.state[q].update(own)

    def _record(self, group: Group, params: list[Tensor], states: list[dict[str, Any]]) -> None:
        used = self._used(group)
        try:
            kept = [held[name] for name in used for held in states]
        except KeyError:  # a setting has changed since construction
            for p, held in zip(params, states, strict=True):
                held.update({name: self._fresh(name, p) for name in used if name not in held})
            kept = [held[name] for name in used for held in states]
        for name in self.shared:
            kept.append(states[0][name])
        count = len(params)
        counts = [count if name in used else 0 for name in self.fields]
        flags = [group[name] for name in self.flags]
        read: list[Any] = [*params, *[p._grad for p in params], *kept]
        values = values_of(read)
        paired = not COMPLEX.isdisjoint([value.meta.dtype for value in values[:count]])
        results = call_on(
            type(self).operator.operator,  # of the class: of an instance it would be a method
            values_of([_parts(x) for x in read]) if paired else values,
            self._numbers(group),
            (count, count, *counts, *flags),
        )
        if not paired:
            replace_contents([*params, *kept], results)
            return
        for target, result in zip([*params, *kept], results, strict=True):
            _parts(target)._write(from_value(result))


def _parts(x: Tensor) -> Tensor:
    """The real and imaginary parts of complex numbers, which are updated each by itself."""
    return view_as_real(x) if x.dtype.is_complex else x


def restart(held: dict[str, Any], name: str, value: float) -> None:
    """Fill an entry of the state with a setting as it is at the first step."""
    both = complex(value, value) if held[name].dtype.is_complex else value  # parts are like numbers
    fill_from_array(held[name], np.full(tuple(held[name].shape), both))
