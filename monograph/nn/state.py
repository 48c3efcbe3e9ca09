"""Loading a state dictionary: what fits is copied, what does not is reported all at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from .. import errors
from ..tensor import Tensor
from .parameter import fill_from_array


class LoadError(errors.MonographError, RuntimeError):
    """A state dictionary that does not fit the module or optimiser it is loaded into."""


class IncompatibleKeys(NamedTuple):
    """The names that a load did not find, and those it had no place for."""

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return f"IncompatibleKeys(missing_keys={self.missing_keys}, " + (
            f"unexpected_keys={self.unexpected_keys})"
        )


def array_of(value: Any) -> np.ndarray:
    """The contents of a tensor, an array, or anything that NumPy can read."""
    return value._array() if isinstance(value, Tensor) else np.asarray(value)


def load(
    owner: str, places: Iterable[tuple[str, Tensor]], state: Mapping[str, Any], strict: bool
) -> IncompatibleKeys:
    """Copy the entries of `state` into the tensors of the same names."""
    wanted = dict(places)
    missing = [name for name in wanted if name not in state]
    unexpected = [name for name in state if name not in wanted]
    problems = []
    if strict and unexpected:
        problems.append(f"Unexpected key(s) in state_dict: {_quoted(unexpected)}. ")
    if strict and missing:
        problems.append(f"Missing key(s) in state_dict: {_quoted(missing)}. ")
    fitting = []
    for name, place in wanted.items():
        if name in state:
            array = array_of(state[name])
            if array.shape == tuple(place.shape):
                fitting.append((place, array))
            else:
                problems.append(
                    f"size mismatch for {name}: copying a param with shape {list(array.shape)} "
                    f"from checkpoint, the shape in current model is {list(place.shape)}."
                )
    if problems:
        listed = "\n\t".join(problems)
        raise LoadError(f"Error(s) in loading state_dict for {owner}:\n\t{listed}")
    for place, array in fitting:
        fill_from_array(place, array)
    return IncompatibleKeys(missing, unexpected)


def _quoted(names: list[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)
