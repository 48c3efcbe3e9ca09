"""`@operator`: from one Python function to everything that an operator needs.

The decorated function is the definition. It is written with nodes and other operators, and what
users call is a function of the same name and signature that records one call. Parameters
annotated `Tensor`, `Tensors` or `Scalar` are inputs, all others are attributes: structure that a
program is compiled for. `@f.derivative` may add a better derivative beside the definition.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable
from typing import Any, NewType

from ..ir.operator import Operator, Parameter
from ..record import call
from ..tensor import Tensor

Scalar = NewType("Scalar", float)  # a number in value position: filled in at each run
Tensors = NewType("Tensors", list)  # a sequence of tensors

_ROLES = {
    "Tensor": "input", "Scalar": "input", "Tensors": "inputs", "Tensor | None": "input",
    "Tensor | Scalar": "input", "Scalar | None": "input", "Optional[Tensor]": "input",
}  # fmt: skip


def _role(annotation: Any) -> str:
    """What a parameter is, from its annotation: as text, or as the object that it names."""
    if isinstance(annotation, str):
        text = annotation
    else:
        text = getattr(annotation, "__name__", None) or str(annotation)
    bare = re.sub(r"\b\w+\.", "", text)  # mg.Tensor and monograph.tensor.Tensor are Tensor
    return _ROLES.get(bare, "attribute")


def _parameters(definition: Callable[..., Any]) -> tuple[Parameter, ...]:
    found = []
    for parameter in inspect.signature(definition).parameters.values():
        role = _role(parameter.annotation)
        found.append(Parameter(parameter.name, role, parameter.default))
    return tuple(found)


def _wrapper_source(name: str, parameters: tuple[Parameter, ...]) -> str:
    """Text of the function that users call: it sorts arguments into inputs and attributes."""
    heads, inputs, attributes, lines = [], [], [], []
    for n, p in enumerate(parameters):
        default = "" if p.default is inspect.Parameter.empty else f"=_default{n}"
        heads.append(p.name + default)
        if p.role == "input":
            inputs.append(p.name)
        elif p.role == "inputs":
            inputs.append(f"*{p.name}")
            attributes.append(f"len({p.name})")
        else:
            lines.append(f"    if {p.name}.__class__ is list: {p.name} = tuple({p.name})\n")
            attributes.append(p.name)
    listed = lambda names: "".join(f"{n}, " for n in names)  # noqa: E731
    return (
        f"def {name}({', '.join(heads)}):\n{''.join(lines)}"
        f"    return _call(_operator, ({listed(inputs)}), ({listed(attributes)}))\n"
    )


def operator(
    definition: Callable[..., Any] | None = None,
    *,
    name: str | None = None,
    method: bool | str = True,
    view: bool = False,
    smooth: bool = True,
) -> Any:
    """Declare an operator; with `method`, tensors have it as a method of that name too."""
    if definition is None:
        return functools.partial(operator, name=name, method=method, view=view, smooth=smooth)
    title = name or definition.__name__
    made = Operator(title, definition, _parameters(definition), view=view, smooth=smooth)
    # The name of this module: what users call is part of the package, not their own line.
    scope: dict[str, Any] = {"_call": call, "_operator": made, "__name__": __name__}
    for n, parameter in enumerate(made.parameters):
        scope[f"_default{n}"] = parameter.default
    exec(_wrapper_source(definition.__name__, made.parameters), scope)  # as namedtuple does
    function = scope[definition.__name__]
    functools.update_wrapper(function, definition)
    function.operator = made
    function.derivative = functools.partial(_set_derivative, made)
    if method:
        setattr(Tensor, method if isinstance(method, str) else title, function)
    return function


def _set_derivative(made: Operator, rule: Callable[..., Any]) -> Callable[..., Any]:
    made.derivative = rule
    return rule
