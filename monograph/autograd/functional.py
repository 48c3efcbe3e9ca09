"""Derivatives of a function at a point, with PyTorch's older signatures.

`inputs` is a tensor or a tuple of tensors, and so is what the function returns. Results are cut off
from the inputs unless `create_graph`. With `strict`, an output that does not depend on an input is
an error instead of a zero. `vectorize` is accepted; rows are always computed together.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import errors, tree
from ..tensor import Tensor
from . import transforms
from .transforms import Level
from .vmap import reached

Function = Callable[..., Any]


def _listed(given: Any) -> tuple[Any, ...]:
    return tuple(given) if isinstance(given, (tuple, list)) else (given,)


def _settled(result: Any, create_graph: bool) -> Any:
    """The result, cut off unless a graph is asked for."""
    return result if create_graph else tree.map_leaves(lambda t: t.detach(), result)


def _same_form(parts: tuple[Any, ...], given: Any) -> Any:
    """A tuple, or its one entry where a single tensor was given."""
    return parts if isinstance(given, (tuple, list)) else parts[0]


def _check_strict(func: Function, inputs: Any, strict: bool) -> None:
    """With strict, every output must depend on every input."""
    if not strict:
        return
    level = Level("strict", func, False, _listed(inputs))
    values = [t._value() for t in level.fresh]
    for k, y in enumerate(level.outputs):
        used = {id(value) for value in reached([y._value()])}
        for n, value in enumerate(values):
            if id(value) not in used:
                raise errors.GradientError(
                    f"output {k} of the function does not depend on input {n}, "
                    "which strict=True does not allow"
                )


def _scalar_only(output: Any, name: str) -> None:
    if not isinstance(output, Tensor) or output.numel() != 1:
        raise errors.GradientError(f"{name}: the function must return one number")


def jacobian(
    func: Function,
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """All derivatives of every output by every input, at the inputs.

    >>> import monograph as mg
    >>> mg.autograd.functional.jacobian(lambda x: x * x, mg.tensor([1.0, 2.0])).tolist()
    [[2.0, 0.0], [0.0, 4.0]]
    """
    if strategy not in ("reverse-mode", "forward-mode"):
        raise errors.OperandError(f"jacobian: strategy {strategy!r} is not known")
    _check_strict(func, inputs, strict)
    transform = transforms.jacrev if strategy == "reverse-mode" else transforms.jacfwd
    primals = _listed(inputs)
    argnums = tuple(range(len(primals))) if isinstance(inputs, (tuple, list)) else 0
    return _settled(transform(func, argnums)(*primals), create_graph)


def hessian(
    func: Function,
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """The second derivatives of a function with one number as its result.

    >>> import monograph as mg
    >>> mg.autograd.functional.hessian(lambda x: (x ** 3).sum(), mg.tensor([1.0])).tolist()
    [[6.0]]
    """
    _check_strict(func, inputs, strict)
    primals = _listed(inputs)
    argnums = tuple(range(len(primals))) if isinstance(inputs, (tuple, list)) else 0
    outer = transforms.jacrev if outer_jacobian_strategy == "reverse-mode" else transforms.jacfwd
    second = outer(transforms.jacrev(_as_scalar(func, "hessian"), argnums), argnums)
    return _settled(second(*primals), create_graph)


def _one(v: Any, output: Any, name: str) -> Any:
    """The given v, or one for a result of one number."""
    if v is not None:
        return v
    _scalar_only(output, f"{name} without v")
    from ..ops.creation import ones_like

    return ones_like(output)


def vjp(
    func: Function, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """(the output, vᵀ · its derivatives by the inputs).

    >>> import monograph as mg
    >>> f = lambda x: x * x
    >>> value, pulled = mg.autograd.functional.vjp(f, mg.tensor([1.0, 2.0]), mg.ones(2))
    >>> pulled.tolist()
    [2.0, 4.0]
    """
    _check_strict(func, inputs, strict)
    output, pull = transforms.vjp(func, *_listed(inputs))
    parts = pull(_one(v, output, "vjp"))
    return _settled((output, _same_form(parts, inputs)), create_graph)


def jvp(
    func: Function, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """(the output, its derivatives by the inputs · v).

    >>> import monograph as mg
    >>> f = lambda x: x * x
    >>> value, moved = mg.autograd.functional.jvp(f, mg.tensor([1.0, 2.0]), mg.ones(2))
    >>> moved.tolist()
    [2.0, 4.0]
    """
    _check_strict(func, inputs, strict)
    primals = _listed(inputs)
    return _settled(transforms.jvp(func, primals, _direction(v, primals, "jvp")), create_graph)


def vhp(
    func: Function, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """(the output, vᵀ · its second derivatives): reverse over reverse.

    >>> import monograph as mg
    >>> f = lambda x: (x ** 3).sum()
    >>> value, product = mg.autograd.functional.vhp(f, mg.tensor([1.0, 2.0]), mg.ones(2))
    >>> product.tolist()
    [6.0, 12.0]
    """
    _check_strict(func, inputs, strict)
    primals = _listed(inputs)
    _, pull, output = transforms.vjp(_slopes(func, "vhp"), *primals, has_aux=True)
    parts = pull(_direction(v, primals, "vhp"))
    return _settled((output, _same_form(parts, inputs)), create_graph)


def hvp(
    func: Function, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """(the output, its second derivatives · v): forward over reverse.

    >>> import monograph as mg
    >>> f = lambda x: (x ** 3).sum()
    >>> value, product = mg.autograd.functional.hvp(f, mg.tensor([1.0, 2.0]), mg.ones(2))
    >>> product.tolist()
    [6.0, 12.0]
    """
    _check_strict(func, inputs, strict)
    primals = _listed(inputs)
    given = _direction(v, primals, "hvp")
    _, parts, output = transforms.jvp(_slopes(func, "hvp"), primals, given, has_aux=True)
    return _settled((output, _same_form(parts, inputs)), create_graph)


def _direction(v: Any, primals: Any, name: str) -> Any:
    """The given v as a list, or one for a single input of one number."""
    return _listed(_one(v, primals[0] if len(primals) == 1 else None, name))


def _slopes(func: Function, name: str) -> Function:
    """A function of one number as its derivatives by all inputs, and beside them its value."""

    def slopes(*given: Any) -> Any:
        argnums = tuple(range(len(given)))
        value, parts = transforms.value_and_grad(_as_scalar(func, name), argnums)(*given)
        return parts, value

    return slopes


def _as_scalar(func: Function, name: str) -> Function:
    """The same function, which must return one number, with a result without axes."""

    def scalar(*given: Any) -> Any:
        output = func(*given)
        _scalar_only(output, name)
        return output.reshape(())

    return scalar


__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]
