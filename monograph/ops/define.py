"""`@operator`: from one Python function to everything that an operator needs.

The decorated function is the definition. It is written with nodes and other operators, and what
users call is a function of the same name that records one call. Parameters annotated `Tensor`,
`Tensors` or `Scalar` are inputs, all others are attributes: structure that a program is compiled
for. `@f.derivative` may add a better derivative beside the definition.

`@function` declares what needs no definition of its own: a Python function of tensors, made of
operators. Both say where users find it: `to` names the namespaces ("" is `mg`, "nn.functional",
"linalg", …), `method` the method of Tensor, `aliases` further names, `inplace` whether there is a
variant `x.name_()` (`ANYWHERE`: also where elements of x share places), `flag` whether it takes an
argument `inplace`. Nothing else lists the operators: namespaces are filled from `members`.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Collection
from types import CodeType, FunctionType
from typing import Any, NewType

from .. import overriding
from ..ir import dtypes
from ..ir.operator import REQUIRED, Operator, Parameter
from ..lines import OPERATOR_FILE
from ..record import call, call_view
from ..tensor import Size, Tensor
from .inplace import in_place, into, over

Scalar = NewType("Scalar", float)  # a number in value position: filled in at each run
Tensors = NewType("Tensors", list)  # a sequence of tensors

_ROLES = {
    "Tensor": "input", "Scalar": "input", "Tensors": "inputs", "Tensor | None": "input",
    "Tensor | Scalar": "input", "Scalar | None": "input", "Optional[Tensor]": "input",
    "Tensor | Scalar | None": "input",
}  # fmt: skip
_OTHER_NAME = {"dim": "axis", "keepdim": "keepdims"}  # NumPy's spelling, which PyTorch takes too
ABSENT = object()
ANYWHERE = "anywhere"

_operators: list[Operator] = []
_namespaces: dict[str, dict[str, Callable[..., Any]]] = {}


def members(namespace: str) -> dict[str, Callable[..., Any]]:
    """The public functions of a namespace by name; "" is the package itself."""
    return dict(sorted(_namespaces.get(namespace, {}).items()))


def all_operators() -> tuple[Operator, ...]:
    """Every operator that was declared, private ones too."""
    return tuple(_operators)


@functools.cache
def _role(annotation: Any) -> str:
    """What a parameter is, from its annotation: as text, or as the object that it names."""
    if isinstance(annotation, str):
        text = annotation
    else:
        text = getattr(annotation, "__name__", None) or str(annotation)
    bare = re.sub(r"\b\w+\.", "", text)  # mg.Tensor and monograph.tensor.Tensor are Tensor
    return _ROLES.get(bare, "attribute")


def _parameters(definition: Callable[..., Any]) -> list[Parameter]:
    """The parameters of a definition; `inspect.signature` takes ten times as long."""
    code = definition.__code__
    count = code.co_argcount
    names = code.co_varnames[: count + code.co_kwonlyargcount]
    given = definition.__defaults__ or ()
    defaults = dict(zip(names[count - len(given) : count], given, strict=True))
    defaults.update(definition.__kwdefaults__ or {})
    kinds = definition.__annotations__
    return [
        Parameter(name, _role(kinds.get(name, "")), defaults.get(name, REQUIRED), n >= count)
        for n, name in enumerate(names)
    ]


@functools.cache
def _wrapper_code(source: str) -> CodeType:
    """The code of a wrapper; many operators have the same parameters and so the same text."""
    module = compile(source, f"{OPERATOR_FILE}>", "exec")
    return next(part for part in module.co_consts if isinstance(part, CodeType))


def _wrapper_source(parameters: list[Parameter], public: bool, flag: bool, apart: bool) -> str:
    """Text of the function that users call: it sorts arguments into inputs and attributes."""
    heads, inputs, attributes, lines, extra = [], [], [], [], []
    by_keyword = optional = False
    for n, p in enumerate(parameters):
        if p.by_keyword and not by_keyword:
            heads.append("*")
            by_keyword = True
        # Definitions say x; users say input, as in PyTorch.
        given = "input" if p.name == "x" and public else p.name
        required = p.default is REQUIRED
        other = _OTHER_NAME.get(given) if public else None
        if other is not None:
            extra.append(f"{other}=_absent")
            lines.append(f"    if {other} is not _absent: {given} = {other}\n")
        if required and other is not None and not p.by_keyword:
            heads.append(f"{given}=_absent")
            lines.append(f"    elif {given} is _absent: _miss({given!r})\n")
        elif required and optional:
            heads.append(f"{given}=_absent")
            lines.append(f"    if {given} is _absent: _miss({given!r})\n")
        else:
            heads.append(given if required else f"{given}=_default{n}")
        optional = optional or (other is not None and not p.by_keyword)
        if p.role == "input":
            inputs.append(given)
        elif p.role == "inputs":
            inputs.append(f"*{given}")
            attributes.append(f"len({given})")
        else:
            # Shapes too: equal keys must be of one type, and the compiler opens plain tuples.
            kind = f"{given}.__class__"
            if given == "dtype":
                lines.append("    if dtype is not None and dtype.__class__ is not _DType:\n")
                lines.append("        dtype = _named(dtype)\n")
            else:
                kinds = f"{kind} is list or {kind} is _Size"
                lines.append(f"    if {kinds}: {given} = tuple({given})\n")
            attributes.append(given)
    listed = lambda names: "".join(f"{n}, " for n in names)  # noqa: E731
    record = f"_call(_operator, ({listed(inputs)}), ({listed(attributes)}))"
    if public:
        extra.append("out=None")
        others = f", ({listed(inputs)}), True" if apart else ""
        lines.append(f"    if out is not None: return _into(out, {record}{others})\n")
    if flag:
        heads.append("inplace=False")
        first = parameters[0].name
        first = "input" if first == "x" and public else first
        lines.append(f"    if inplace: return _over({first}, {record}, _operator.name)\n")
    if extra:
        heads += extra if by_keyword else ["*", *extra]
    return f"def call({', '.join(heads)}):\n{''.join(lines)}    return {record}\n"


def _publish(
    made: Callable[..., Any], title: str, to: Any, method: bool | str, aliases: tuple[str, ...],
    inplace: bool | str,
) -> None:  # fmt: skip
    """Put a function where users look for it."""
    spaces = () if to is None else (to,) if isinstance(to, str) else tuple(to)
    for space in spaces:
        for name in (title, *aliases):
            _namespaces.setdefault(space, {})[name] = made
    first = method if isinstance(method, str) else title
    for name in (first, *aliases):
        if method:
            setattr(Tensor, name, made)
        if inplace:
            written = in_place(made, name, inplace == ANYWHERE)
            for space in spaces:
                _namespaces[space][f"{name}_"] = written
            if method:
                setattr(Tensor, f"{name}_", written)


def operator(
    definition: Callable[..., Any] | None = None,
    *,
    name: str | None = None,
    to: str | tuple[str, ...] | None = "",
    method: bool | str = True,
    aliases: tuple[str, ...] = (),
    inplace: bool | str = False,
    flag: bool = False,
    view: bool = False,
    smooth: bool = True,
    widen: bool = True,
    apart: bool = False,
) -> Any:
    """Declare an operator: where it is found, and by which definition it is meant.

    With `to=None` it is private: no namespace, no `out=` and no second spellings. With
    `widen=False` its definition sees 16-bit floats as they are, as contractions want. With `apart`,
    its `out` must have the result's dtype and share no memory with inputs.
    """
    if definition is None:
        return functools.partial(
            operator, name=name, to=to, method=method, aliases=aliases, inplace=inplace, flag=flag,
            view=view, smooth=smooth, widen=widen, apart=apart,
        )  # fmt: skip
    title = name or definition.__name__
    parameters = _parameters(definition)
    made = Operator(title, definition, tuple(parameters), view=view, smooth=smooth, widen=widen)
    _operators.append(made)
    made_function = _wrapper(definition, made, to is not None, flag, apart)
    made_function.operator = made
    overriding.functions[made] = made_function
    made_function.derivative = functools.partial(_set_derivative, made)
    _publish(made_function, title, to, method, aliases, inplace)
    return made_function


def _wrapper(
    definition: Callable[..., Any], made: Operator, public: bool, flag: bool, apart: bool
) -> Any:
    """The function that users call. Its file name says that it is none of their own lines."""
    code = _wrapper_code(_wrapper_source(list(made.parameters), public, flag, apart))
    code = code.replace(co_name=definition.__name__, co_qualname=definition.__name__)
    scope = {
        "_call": call_view if made.view else call, "_operator": made, "_into": into,
        "_absent": ABSENT, "_miss": functools.partial(_miss, made.name), "_over": over,
        "_Size": Size, "_DType": dtypes.DType, "_named": dtypes.named, "__name__": __name__,
    }  # fmt: skip
    function = FunctionType(code, scope, definition.__name__)
    positional = [p for p in made.parameters if not p.by_keyword]
    first = next((n for n, p in enumerate(positional) if _may_lack(p, public)), len(positional))
    defaults = [ABSENT if p.default is REQUIRED else p.default for p in positional[first:]]
    function.__defaults__ = tuple(defaults + [False] * flag)
    named = {p.name: p.default for p in made.parameters if p.by_keyword}
    named = {name: value for name, value in named.items() if value is not REQUIRED}
    if public:
        spelled = [other for other in _OTHER_NAME.values() if other in code.co_varnames]
        named |= {"out": None} | dict.fromkeys(spelled, ABSENT)
    function.__kwdefaults__ = named
    function.__doc__, function.__module__ = definition.__doc__, definition.__module__
    return function


def _may_lack(p: Parameter, public: bool) -> bool:
    """Whether a wrapper has a default for a parameter: also one that has a second spelling."""
    return p.default is not REQUIRED or (public and p.name in _OTHER_NAME)


def _miss(name: str, parameter: str) -> None:
    raise TypeError(f"{name}() missing 1 required positional argument: {parameter!r}")


def no_tensor(name: str, **given: Any) -> TypeError:
    """What to raise where arguments of a function should be tensors and one of them is not."""
    for argument, value in given.items():
        if not isinstance(value, Tensor):
            kind = type(value).__name__
            return TypeError(f"{name}(): argument {argument!r} must be Tensor, not {kind}")
    raise AssertionError(f"{name}: all are tensors")


def _set_derivative(made: Operator, rule: Callable[..., Any]) -> Callable[..., Any]:
    made.derivative = rule
    return rule


def function(
    made: Callable[..., Any] | None = None,
    *,
    name: str | None = None,
    to: str | tuple[str, ...] | None = "",
    method: bool | str = False,
    aliases: tuple[str, ...] = (),
    inplace: bool | str = False,
) -> Any:
    """Publish a Python function that is made of operators."""
    if made is None:
        return functools.partial(
            function, name=name, to=to, method=method, aliases=aliases, inplace=inplace
        )
    _publish(_respelled(made), name or made.__name__, to, method, aliases, inplace)
    return made


def _respelled(made: Callable[..., Any]) -> Callable[..., Any]:
    """The function as users call it: NumPy's names for its parameters are taken as well.

    A `dtype` may be a Python type.
    """
    names = _names(made)
    made = _of_dtype(made) if "dtype" in names else made
    others = {_OTHER_NAME[name]: name for name in names if name in _OTHER_NAME}
    if not others or not others.keys().isdisjoint(names):
        return made

    @functools.wraps(made)
    def call(*args: Any, **options: Any) -> Any:
        for other in options.keys() & others.keys() if options else ():
            options[others[other]] = options.pop(other)
        return made(*args, **options)

    return call


def _of_dtype(made: Callable[..., Any]) -> Callable[..., Any]:
    """The function as users call it, where its dtype may be a Python type."""

    @functools.wraps(made)
    def call(*args: Any, **options: Any) -> Any:
        if "dtype" in options:
            given = options["dtype"]
            if given is not None and given.__class__ is not dtypes.DType:
                options["dtype"] = dtypes.named(given)
        return made(*args, **options)

    return call


def _names(made: Callable[..., Any]) -> Collection[str]:
    """The names of a function's parameters."""
    signature = getattr(made, "__signature__", None)
    if signature is not None:
        return signature.parameters  # type: ignore[no-any-return]
    code = getattr(made, "__code__", None)
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount] if code else ()
