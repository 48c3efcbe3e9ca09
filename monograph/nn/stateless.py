"""Modules as functions of their parameters, for transforms and for ensembles."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager
from typing import Any

from ..tensor import Tensor
from .module import Module


def functional_call(
    module: Module,
    parameter_and_buffer_dicts: Any,
    args: Any = None,
    kwargs: Mapping[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Call the module with these tensors in place of its parameters and buffers, by name.

    Several dictionaries may be given as a tuple. Tensors that the module holds under two names are
    both replaced when one name is given, if `tie_weights`; `strict` asks for every name, and for no
    others. A buffer that the module assigns anew is put into the dictionary, not into the module.

    >>> import monograph as mg
    >>> layer = mg.nn.Linear(2, 1, bias=False)
    >>> mg.func.functional_call(layer, {"weight": mg.ones(1, 2)}, mg.ones(3, 2)).tolist()
    [[2.0], [2.0], [2.0]]
    """
    given = _merged(parameter_and_buffer_dicts)
    places = _places(module)
    if strict:
        _check_all_given(module, given, places)
    known = {name: value for name, value in given.items() if name in places}
    if tie_weights:
        known = _tied(known, places)
    arguments = () if args is None else args if isinstance(args, tuple) else (args,)
    with _replaced(known, places, given):
        return module(*arguments, **(kwargs or {}))


def _check_all_given(module: Module, given: Mapping[str, Any], places: Mapping[str, Any]) -> None:
    unknown = [name for name in given if name not in places]
    missing = [name for name in places if name not in given]
    if unknown or missing:
        raise RuntimeError(
            f"functional_call: {type(module).__name__} has no {unknown}"
            if unknown
            else f"functional_call: values for {missing} are missing"
        )


Place = tuple[dict[str, Any], str]


def _merged(dictionaries: Any) -> Any:
    """One dictionary of all tensors: the given one, if it is one."""
    if isinstance(dictionaries, Mapping):
        return dictionaries
    merged: dict[str, Tensor] = {}
    for part in dictionaries:
        for name, value in part.items():
            if name in merged:
                raise ValueError(f"functional_call: {name!r} is in two dictionaries")
            merged[name] = value
    return merged


def _places(module: Module) -> dict[str, Place]:
    """Where each parameter and buffer is held, by its name in the whole tree."""
    found: dict[str, Place] = {}
    for path, part in module.named_modules(remove_duplicate=False):
        for held in (part._parameters, part._buffers):
            for name, value in held.items():
                if value is not None:
                    found[f"{path}.{name}" if path else name] = (held, name)
    return found


def _tied(given: dict[str, Tensor], places: dict[str, Place]) -> dict[str, Tensor]:
    names: dict[int, list[str]] = {}
    for name in given:
        names.setdefault(id(places[name][0][places[name][1]]), []).append(name)
    for alike in names.values():
        if any(given[name] is not given[alike[0]] for name in alike):
            raise ValueError(
                f"functional_call got multiple values for keys {sorted(alike)}, which are tied. "
                "Consider using tie_weights=False"
            )
    by_tensor = {which: given[alike[0]] for which, alike in names.items()}
    result = dict(given)
    for name, (held, key) in places.items():
        if id(held[key]) in by_tensor:
            result.setdefault(name, by_tensor[id(held[key])])
    return result


@contextmanager
def _replaced(known: dict[str, Tensor], places: dict[str, Place], given: Any) -> Iterator[None]:
    """Let these tensors be in their places; what the module puts there instead goes to `given`."""
    before = [(*places[name], places[name][0][places[name][1]]) for name in known]
    try:
        for name, value in known.items():
            held, key = places[name]
            held[key] = value
        yield
    finally:
        for name in [name for name in given if name in known]:
            held, key = places[name]
            if held.get(key) is not known[name] and isinstance(given, MutableMapping):
                given[name] = held.get(key)
        for held, key, value in reversed(before):
            held[key] = value


def stack_module_state(
    models: Sequence[Module],
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """(parameters, buffers) of several modules of one architecture, stacked, by name.

    >>> import monograph as mg
    >>> parameters, _ = mg.func.stack_module_state([mg.nn.Linear(2, 1) for _ in range(3)])
    >>> parameters["weight"].shape
    Size([3, 1, 2])
    """
    from ..ops.joining import stack

    models = list(models)
    if not models:
        raise RuntimeError("stack_module_state: there must be at least one model")
    if len({type(m) for m in models}) > 1 or len({m.training for m in models}) > 1:
        raise RuntimeError("stack_module_state: the models must be of one class and mode")

    def stacked(named: list[dict[str, Tensor]]) -> dict[str, Tensor]:
        made = {}
        for name, first in named[0].items():
            whole = stack([each[name].detach() for each in named])
            made[name] = whole.requires_grad_() if first.requires_grad else whole
        return made

    parameters = [dict(m.named_parameters()) for m in models]
    buffers = [dict(m.named_buffers()) for m in models]
    return stacked(parameters), stacked(buffers)  # type: ignore[arg-type]
