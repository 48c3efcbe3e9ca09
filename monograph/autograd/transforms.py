"""Derivatives as functions of functions: grad, vjp, jvp, jacobians, linear maps.

Each calls the function on fresh copies of the arguments that are differentiated for, and records
backward passes on what came of it. A copy is connected to the argument that it was made of, so
transforms nest, and an outer `backward()` passes through. What does not depend on anything that
requires gradients outside is handed out without them.

Forward derivatives are reverse ones taken twice: the pull u ↦ Jᵀu is linear, and its transpose is
t ↦ Jt. So every rule is written once, and an operator's own derivative serves both directions. The
pull itself is not computed: nothing needs its value.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from .. import errors, tree
from ..recorder import ARGUMENT, current
from ..storage import Value
from ..tensor import Tensor, from_value
from .engine import grad as gradients
from .modes import enable_grad
from .vmap import reached, vmap

Function = Callable[..., Any]


# --- one level of differentiation ---------------------------------------------------------------


class Level:
    """One call of a function that is differentiated: fresh arguments, and what came out."""

    def __init__(self, name: str, func: Function, has_aux: bool, arguments: Sequence[Any]) -> None:
        """`arguments` are trees of tensors; `func` takes the same number of trees."""
        self.name = name
        self.outer_grad = current.recorder.grad
        given, self.structure = tree.flatten(tuple(arguments))
        self.fresh = [self._copy(t) for t in given]
        values = [t._value() for t in self.fresh]
        with enable_grad():
            result = func(*tree.unflatten(self.structure, self.fresh))
        for n, value in enumerate(values):
            _internal(value)
            if self.fresh[n]._value() is not value:  # the function wrote to its argument
                self.fresh[n] = from_value(value)
        self.aux: Any = None
        if has_aux:
            if not isinstance(result, tuple) or len(result) != 2:
                raise errors.TransformError(
                    f"{name}: with has_aux the function returns (output, aux), "
                    f"got {type(result).__name__}"
                )
            result, self.aux = result
        self.outputs, self.out_structure = tree.flatten(result)
        for t in self.outputs:
            if not isinstance(t, Tensor):
                raise errors.TransformError(
                    f"{name}: the function must return tensors, got {type(t).__name__}"
                )

    def _copy(self, given: Any) -> Tensor:
        if not isinstance(given, Tensor):
            raise TypeError(f"{self.name}: derivatives are for tensors, got {type(given).__name__}")
        copy: Tensor = given.clone()  # type: ignore[attr-defined]
        return copy if copy.requires_grad else copy.requires_grad_()

    def hand_out(self, t: Any) -> Any:
        """A tensor as it is seen outside of this level."""
        if not isinstance(t, Tensor) or not t.requires_grad:
            return t
        return t if self.outer_grad and _reaches_outside([t]) else t.detach()

    def result(self) -> Any:
        """What the function returned."""
        return tree.unflatten(self.out_structure, [self.hand_out(t) for t in self.outputs])

    def aux_result(self) -> Any:
        """What the function returned beside."""
        return tree.map_leaves(self.hand_out, self.aux)

    def pull(self, cotangents: Sequence[Tensor | None], create: bool | None = None) -> list[Any]:
        """The cotangents of the fresh arguments; None for those that nothing depends on."""
        pairs = [(y, c) for y, c in zip(self.outputs, cotangents, strict=True) if y.requires_grad]
        if create is None:
            create = current.recorder.grad and _reaches_outside(
                [*self.outputs, *[c for _, c in pairs]]
            )
        return list(
            gradients(
                [y for y, _ in pairs], self.fresh, [c for _, c in pairs],
                retain_graph=True, create_graph=create, allow_unused=True,
            )
        )  # fmt: skip


def _internal(value: Value) -> None:
    """A leaf of a level that has ended: nothing outside has a derivative by it."""
    value.leaf = None


def _reaches_outside(tensors: Sequence[Tensor | None]) -> bool:
    """Whether one depends on what requires gradients and is no leaf of a level that has ended."""
    for value in reached([t._value() for t in tensors if t is not None]):
        if value.tape is None and (value.leaf is not None or value.record is ARGUMENT):
            return True
    return False


def _zeros(t: Tensor) -> Tensor:
    from ..ops.creation import zeros_like

    return zeros_like(t)


def _or_zeros(parts: Sequence[Tensor | None], like: Sequence[Tensor]) -> list[Tensor]:
    return [_zeros(t) if part is None else part for part, t in zip(parts, like, strict=True)]


def _chosen(argnums: int | Sequence[int], args: tuple[Any, ...], name: str) -> list[int]:
    numbers = [argnums] if isinstance(argnums, int) else list(argnums)
    for n in numbers:
        if not isinstance(n, int) or not -len(args) <= n < len(args):
            raise errors.TransformError(
                f"{name}: argnums {n!r} is out of range for {len(args)} arguments"
            )
    chosen = [n % len(args) for n in numbers]
    if len(set(chosen)) != len(chosen):
        raise errors.TransformError(f"{name}: argnums {argnums!r} names an argument twice")
    return chosen


def _of_chosen(
    func: Function, chosen: list[int], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Function:
    """func as a function of the chosen arguments only."""

    def inside(*given: Any) -> Any:
        every = list(args)
        for n, value in zip(chosen, given, strict=True):
            every[n] = value
        return func(*every, **kwargs)

    return inside


def _level(
    name: str, func: Function, argnums: Any, has_aux: bool, args: tuple[Any, ...], kwargs: Any
) -> Level:
    chosen = _chosen(argnums, args, name)
    inside = _of_chosen(func, chosen, args, kwargs)
    return Level(name, inside, has_aux, [args[n] for n in chosen])


def _per_argument(level: Level, parts: Sequence[Any], argnums: Any) -> Any:
    """Parts, one per fresh tensor, in the structure of the chosen arguments."""
    made = tree.unflatten(level.structure, parts)
    return made[0] if isinstance(argnums, int) else made


# --- grad ---------------------------------------------------------------------------------------


def grad(func: Function, argnums: int | Sequence[int] = 0, has_aux: bool = False) -> Function:
    """A function that gives the derivative of `func`, which returns a scalar.

    `argnums` says by which arguments; they may be trees of tensors. With `has_aux`, `func` returns
    (scalar, aux) and the result is (derivative, aux).

    >>> import monograph as mg
    >>> mg.grad(mg.grad(lambda x: x ** 3))(mg.tensor(2.0)).item()
    12.0
    """
    both = value_and_grad(func, argnums, has_aux)

    @functools.wraps(func, updated=())
    def differentiated(*args: Any, **kwargs: Any) -> Any:
        value, parts = both(*args, **kwargs)
        return (parts, value[1]) if has_aux else parts

    return differentiated


def value_and_grad(
    func: Function, argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Function:
    """A function that gives (what `func` returns, its derivative).

    >>> import monograph as mg
    >>> value, slope = mg.value_and_grad(lambda x: x * x)(mg.tensor(3.0))
    >>> value.item(), slope.item()
    (9.0, 6.0)
    """

    @functools.wraps(func, updated=())
    def differentiated(*args: Any, **kwargs: Any) -> Any:
        level = _level("grad", func, argnums, has_aux, args, kwargs)
        if level.out_structure.kind is not None or level.outputs[0].ndim:
            got = [list(t.shape) for t in level.outputs]
            raise errors.TransformError(f"grad: the function must return a scalar, got {got}")
        parts = _or_zeros(level.pull([None]), level.fresh)
        made = _per_argument(level, parts, argnums)
        value = level.result()
        return ((value, level.aux_result()), made) if has_aux else (value, made)

    return differentiated


# --- vjp, jvp -----------------------------------------------------------------------------------


def vjp(func: Function, *primals: Any, has_aux: bool = False) -> Any:
    """(what `func` returns, a function from cotangents of that to cotangents of the primals).

    >>> import monograph as mg
    >>> value, pull = mg.vjp(lambda x: x * x, mg.tensor([1.0, 2.0]))
    >>> pull(mg.ones(2))[0].tolist()
    [2.0, 4.0]
    """
    level = Level("vjp", func, has_aux, primals)

    def pull(*cotangents: Any) -> Any:
        given = cotangents[0] if len(cotangents) == 1 else cotangents
        leaves = _like(level.outputs, level.out_structure, given, "vjp: the cotangents")
        parts = _or_zeros(level.pull(leaves), level.fresh)
        return tree.unflatten(level.structure, parts)

    if has_aux:
        return level.result(), pull, level.aux_result()
    return level.result(), pull


def _like(tensors: list[Tensor], structure: tree.Structure, given: Any, what: str) -> list[Tensor]:
    """The leaves of `given`, which must have the structure and shapes of tensors."""
    leaves, same = tree.flatten(given)
    if same.leaves != structure.leaves:
        raise errors.TransformError(f"{what} have the structure {same!r}, not {structure!r}")
    for leaf, t in zip(leaves, tensors, strict=True):
        if tuple(leaf.shape) != tuple(t.shape) or leaf.dtype is not t.dtype:
            raise errors.TransformError(
                f"{what} must be {t._value().meta}, got {leaf._value().meta}"
            )
    return leaves


def linearize(func: Function, *primals: Any, has_aux: bool = False) -> Any:
    """(what `func` returns, its linear part at the primals: from tangents to tangents).

    >>> import monograph as mg
    >>> value, push = mg.linearize(mg.sin, mg.tensor(0.0))
    >>> push(mg.tensor(2.0)).item()
    2.0
    """
    level = Level("jvp", func, has_aux, primals)
    smooth = [n for n, y in enumerate(level.outputs) if y.requires_grad]
    probes: list[Tensor | None] = [None] * len(level.outputs)
    for n in smooth:
        # Any number would do: the pull is linear, so its derivative does not depend on it.
        probe = probes[n] = _zeros(level.outputs[n]).requires_grad_()
        _internal(probe._value())
    with enable_grad():
        pulled = level.pull(probes, create=True)
    own = [p for p in probes if p is not None]

    def push(*tangents: Any) -> Any:
        leaves = _like(level.fresh, level.structure, tangents, "jvp: the tangents")
        pairs = [(g, t) for g, t in zip(pulled, leaves, strict=True) if g is not None]
        roots = [g for g, _ in pairs]
        create = current.recorder.grad and _reaches_outside([*roots, *[t for _, t in pairs]])
        parts = gradients(
            roots, own, [t for _, t in pairs],
            retain_graph=True, create_graph=create, allow_unused=True,
        )  # fmt: skip
        made: list[Tensor | None] = [None] * len(level.outputs)
        for n, part in zip(smooth, parts, strict=True):
            made[n] = part
        return tree.unflatten(level.out_structure, _or_zeros(made, level.outputs))

    if has_aux:
        return level.result(), push, level.aux_result()
    return level.result(), push


def jvp(
    func: Function, primals: Any, tangents: Any, *, strict: bool = False, has_aux: bool = False
) -> Any:
    """(what `func` returns, its derivative along the tangents).

    >>> import monograph as mg
    >>> mg.jvp(lambda x: x * x, (mg.tensor(3.0),), (mg.tensor(1.0),))[1].item()
    6.0
    """
    if not isinstance(primals, tuple) or not isinstance(tangents, tuple):
        raise errors.TransformError("jvp: primals and tangents are tuples, one entry per argument")
    if len(primals) != len(tangents):
        raise errors.TransformError(
            f"jvp: there are {len(primals)} primals but {len(tangents)} tangents"
        )
    value, push, *aux = linearize(func, *primals, has_aux=has_aux)
    return (value, push(*tangents), *aux)


# --- jacobians ----------------------------------------------------------------------------------


def _basis(t: Tensor) -> Tensor:
    """The unit tensors of t's shape, along a new first axis."""
    from ..ops.comparison import eq
    from ..ops.creation import arange
    from ..ops.math import cast
    from ..ops.views import reshape

    n = t.numel()
    places = arange(n)
    ones = eq(reshape(places, n, 1), places)
    made: Tensor = reshape(cast(ones, t.dtype), n, *t.shape)
    return made


def jacrev(
    func: Function,
    argnums: int | Sequence[int] = 0,
    *,
    has_aux: bool = False,
    chunk_size: int | None = None,
) -> Function:
    """A function that gives all derivatives of every output, a row at a time in reverse.

    For an output of shape O and an argument of shape A the result has the shape O + A.

    >>> import monograph as mg
    >>> mg.jacrev(lambda x: x * x)(mg.tensor([1.0, 2.0])).tolist()
    [[2.0, 0.0], [0.0, 4.0]]
    """

    @functools.wraps(func, updated=())
    def differentiated(*args: Any, **kwargs: Any) -> Any:
        level = _level("jacrev", func, argnums, has_aux, args, kwargs)
        blocks = []
        for n, y in enumerate(level.outputs):

            def rows(cotangent: Tensor, n: int = n) -> list[Tensor]:
                given = [_zeros(t) for t in level.outputs]
                given[n] = cotangent
                return _or_zeros(level.pull(given), level.fresh)

            if y.requires_grad and y.numel():
                parts = vmap(rows, chunk_size=chunk_size)(_basis(y))
            else:
                parts = [_block(y, x) for x in level.fresh]
            made = [p.reshape(*y.shape, *x.shape) for p, x in zip(parts, level.fresh)]
            blocks.append(_per_argument(level, made, argnums))
        result = tree.unflatten(level.out_structure, blocks)
        return (result, level.aux_result()) if has_aux else result

    return differentiated


def _block(y: Tensor, x: Tensor) -> Tensor:
    from ..ops.creation import zeros

    return zeros(*y.shape, *x.shape, dtype=x.dtype)


def jacfwd(
    func: Function,
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    *,
    randomness: str = "error",
    chunk_size: int | None = None,
) -> Function:
    """The same as `jacrev`, a column at a time, forward: better for few inputs.

    >>> import monograph as mg
    >>> mg.jacfwd(lambda x: x * x)(mg.tensor([1.0, 2.0])).tolist()
    [[2.0, 0.0], [0.0, 4.0]]
    """

    @functools.wraps(func, updated=())
    def differentiated(*args: Any, **kwargs: Any) -> Any:
        chosen = _chosen(argnums, args, "jacfwd")
        inside = _of_chosen(func, chosen, args, kwargs)
        primals = tuple([args[n] for n in chosen])
        value, push, *aux = linearize(inside, *primals, has_aux=has_aux)
        given, structure = tree.flatten(primals)
        outputs, out_structure = tree.flatten(value)
        columns: list[list[Tensor]] = []  # per argument, per output
        for n, x in enumerate(given):

            def column(tangent: Tensor, n: int = n) -> Any:
                tangents = [_zeros(t) for t in given]
                tangents[n] = tangent
                return tree.leaves(push(*tree.unflatten(structure, tangents)))

            if x.numel():
                parts = vmap(column, 0, -1, randomness, chunk_size=chunk_size)(_basis(x))
            else:
                parts = [_block(y, x) for y in outputs]
            columns.append([p.reshape(*y.shape, *x.shape) for p, y in zip(parts, outputs)])
        blocks = []
        for n in range(len(outputs)):
            made = tree.unflatten(structure, [c[n] for c in columns])
            blocks.append(made[0] if isinstance(argnums, int) else made)
        result = tree.unflatten(out_structure, blocks)
        return (result, *aux) if has_aux else result

    return differentiated


def hessian(func: Function, argnums: int | Sequence[int] = 0) -> Function:
    """A function that gives the second derivatives of `func`: forward over reverse.

    >>> import monograph as mg
    >>> mg.hessian(lambda x: (x ** 3).sum())(mg.tensor([1.0, 2.0])).tolist()
    [[6.0, 0.0], [0.0, 12.0]]
    """
    return jacfwd(jacrev(func, argnums), argnums)


__all__ = [
    "grad", "hessian", "jacfwd", "jacrev", "jvp", "linearize", "value_and_grad", "vjp", "vmap",
]  # fmt: skip
