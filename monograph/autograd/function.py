"""Function: an operator whose derivative is written by its user.

`forward` runs once, within no_grad, and records what it does. Its results stand on the tape with a
node of their own; a backward pass stops there and runs `backward`, whose work is recorded too, and
can be differentiated again.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from .. import errors
from ..recorder import current
from ..storage import Value
from ..tensor import Tensor
from . import forward_ad
from .engine import zeros
from .graph import PythonNode
from .modes import enable_grad, no_grad
from .saved import FREED


class FunctionCtx:
    """What `forward` leaves for `backward`; attributes may be added freely."""

    needs_input_grad: tuple[bool, ...] = ()
    materialize_grads = True

    def __init__(self) -> None:
        self._to_save: tuple[Tensor | None, ...] = ()
        self._kept: list[tuple[Tensor | None, int]] | None = None
        self._dirty: tuple[Tensor, ...] = ()
        self._not_differentiable: tuple[Tensor, ...] = ()
        self._freed = False
        self._hooks: Any = None  # on saved tensors, if there were any

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Keep tensors for `backward`; writing into one of them in between is an error."""
        for tensor in tensors:
            if tensor is not None and not isinstance(tensor, Tensor):
                raise TypeError(
                    "save_for_backward can only save variables, but got " + type(tensor).__name__
                )
        self._to_save = tensors

    save_for_forward = save_for_backward

    def mark_dirty(self, *tensors: Tensor) -> None:
        """Say which inputs `forward` has written into; it must return them."""
        self._dirty = tensors

    def mark_non_differentiable(self, *tensors: Tensor) -> None:
        """Say which results have no derivative."""
        self._not_differentiable = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """Whether `backward` gets zeros (the default) or None for a result that nothing used."""
        self.materialize_grads = value

    def _keep(self) -> None:
        kept: list[tuple[Any, int]] = [
            (t, 0 if t is None else t._storage.version) for t in self._to_save
        ]
        packing = current.recorder.packing
        if packing:
            self._hooks = packing[-1]
            kept = [(None if t is None else self._hooks.pack(t), -1) for t, _ in kept]
        self._kept, self._to_save = kept, ()

    @property
    def saved_tensors(self) -> tuple[Tensor | None, ...]:
        if self._freed and self._kept is None:
            raise errors.GradientError(FREED)
        kept = self._kept if self._kept is not None else [(t, -1) for t in self._to_save]
        for tensor, version in kept:
            if tensor is not None and version >= 0 and tensor._storage.version != version:
                raise errors.GradientError(
                    "one of the variables needed for gradient computation has been modified by an "
                    f"inplace operation: {tensor._value().meta} is at version "
                    f"{tensor._storage.version}; expected version {version} instead"
                )
        if self._hooks is not None and self._kept is not None:
            return tuple([None if t is None else self._hooks.unpack(t) for t, _ in kept])
        return tuple([tensor for tensor, _ in kept])


class FunctionNode(PythonNode):
    """A call of a custom function, on the tape. Attributes of its context can be read here too."""

    def __init__(
        self, function: type[Function], ctx: FunctionCtx, inputs: Sequence[Value | None]
    ) -> None:
        super().__init__(inputs)
        self.function = function
        self.ctx = ctx
        self.kinds: list[Any] = []  # of each result: its shape and dtype, or None

    def name(self) -> str:
        """The function's name and Backward."""
        return f"{self.function.__name__}Backward"

    def __getattr__(self, name: str) -> Any:
        if name == "ctx":
            raise AttributeError(name)
        return getattr(self.ctx, name)

    def pull(self, gradients: list[Any]) -> Sequence[Any]:
        """Run the user's `backward`."""
        if self.ctx.materialize_grads:
            gradients = [
                zeros(kind.shape, kind.dtype) if given is None and kind is not None else given
                for given, kind in zip(gradients, self.kinds, strict=True)
            ]
        made = self.function.backward(self.ctx, *gradients)
        parts = list(made) if isinstance(made, tuple) else [made]
        count = len(self.inputs)
        if len(parts) > count and all(part is None for part in parts[count:]):
            parts = parts[:count]
        if len(parts) != count:
            raise errors.GradientError(
                f"function {self.name()} returned an incorrect number of gradients "
                f"(expected {count}, got {len(parts)})"
            )
        return [self._fitting(n, part) for n, part in enumerate(parts)]

    def _fitting(self, number: int, part: Any) -> Tensor | None:
        """A gradient in the shape and dtype of the input that it belongs to."""
        value = self.inputs[number]
        if part is None:
            return None
        if value is None:
            raise errors.GradientError(
                f"function {self.name()} returned a gradient different from None at position "
                f"{number + 1}, but the corresponding forward input was not a Variable"
            )
        if not isinstance(part, Tensor):
            kind = type(part).__name__
            raise errors.GradientError(f"{self.name()} returned {kind} where a tensor belongs")
        if not self.ctx.needs_input_grad[number]:
            return None  # nobody asked for it: it may be of any shape
        shape = value.meta.shape
        if tuple(part.shape) != shape:
            part = _summed_to(part, shape)
            if part is None:
                raise errors.GradientError(
                    f"Function {self.name()} returned an invalid gradient at index {number}: its "
                    f"shape is not compatible with {list(shape)}"
                )
        if part.dtype is not value.meta.dtype:
            part = part.to(value.meta.dtype)
        return part

    def release(self) -> None:
        """The tensors that were kept are free to go."""
        self.ctx._kept, self.ctx._freed = ([] if not self.ctx._kept else None), True


def _summed_to(part: Tensor, shape: tuple[int, ...]) -> Any:
    """The sum of a gradient over the axes along which its input was repeated."""
    extra = part.ndim - len(shape)
    given = tuple(part.shape)[max(extra, 0) :]
    if extra < 0 or any(e not in (1, g) for e, g in zip(shape, given, strict=True)):
        return None
    axes = [*range(extra)]
    axes += [extra + k for k, e in enumerate(shape) if e == 1 and given[k] != 1]
    return part.sum(tuple(axes)).reshape(*shape) if axes else part


class Function:
    """Base of custom functions: write `forward` and `backward` as static methods, call `apply`.

    >>> import monograph as mg
    >>> class Double(mg.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         return x * 2
    ...
    ...     @staticmethod
    ...     def backward(ctx, grad):
    ...         return grad * 2
    >>> x = mg.tensor(3.0, requires_grad=True)
    >>> Double.apply(x).backward()
    >>> x.grad.item()
    2.0
    """

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(
            f"{type(self).__name__} is called by its apply(): forward and backward are static "
            "methods, and no object of the class is made"
        )

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """The results; the first argument is the context, unless there is a setup_context."""
        raise NotImplementedError("You must implement the forward function for custom Function.")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> Any:
        """Prepare the context for `backward`, apart from `forward`."""
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """From the gradients of the results to those of the inputs, None for those without."""
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom Function to use "
            "it with backward mode AD."
        )

    @classmethod
    def apply(cls, *args: Any) -> Any:
        """Run `forward`, and put the results on the tape."""
        if cls.jvp is not Function.jvp and cls.backward is Function.backward:
            tangents = forward_ad.tangents_of(args)
            if any([t is not None for t in tangents]):
                return cls._pushed(args, tangents)
        ctx = FunctionCtx()
        inputs = [arg._value() if isinstance(arg, Tensor) else None for arg in args]
        needs = [v is not None and v.requires_grad for v in inputs]
        tracked = current.recorder.grad and any(needs)
        ctx.needs_input_grad = tuple(needs)
        node = FunctionNode(cls, ctx, inputs) if tracked else None
        with no_grad():
            result = cls._computed(ctx, args)
            if node is None:
                return result
            listed = result if isinstance(result, tuple) else (result,)
            made = _results(node, ctx, args, listed)
        ctx._keep()
        return tuple(made) if isinstance(result, tuple) else made[0]

    @classmethod
    def _computed(cls, ctx: FunctionCtx, args: tuple[Any, ...]) -> Any:
        """What `forward` gives, in either of the forms that it may have."""
        if cls.setup_context is Function.setup_context:
            return cls.forward(ctx, *args)
        result = cls.forward(*args)
        cls.setup_context(ctx, args, result)
        return result

    @staticmethod
    def vjp(ctx: Any, *grad_outputs: Any) -> Any:
        """Another name for `backward`."""
        raise NotImplementedError("write `backward`")

    @staticmethod
    def jvp(ctx: Any, *grad_inputs: Any) -> Any:
        """From the tangents of the inputs to those of the results; else `backward` tells them."""
        raise NotImplementedError(
            "You must implement the jvp function for custom autograd.Function to use it with "
            "forward mode AD."
        )

    @classmethod
    def _pushed(cls, args: tuple[Any, ...], tangents: list[Tensor | None]) -> Any:
        """Dual results, by `jvp`. No gradient passes through them, as there is no `backward`."""
        ctx = FunctionCtx()
        ctx.needs_input_grad = tuple([isinstance(a, Tensor) and a.requires_grad for a in args])
        with no_grad():
            result = cls._computed(ctx, args)
        given = [
            zeros(a.shape, a.dtype) if ctx.materialize_grads and t is None and isinstance(a, Tensor)
            else t
            for a, t in zip(args, tangents, strict=True)
        ]  # fmt: skip
        pushed = cls.jvp(ctx, *given)
        if not isinstance(result, tuple):
            return _dual(result, pushed)
        return tuple([_dual(r, t) for r, t in zip(result, pushed, strict=True)])


def _dual(result: Any, tangent: Tensor | None) -> Any:
    """A result that carries its tangent, if it has one."""
    return result if tangent is None else forward_ad.make_dual(result.detach(), tangent)


def _results(
    node: FunctionNode, ctx: FunctionCtx, args: tuple[Any, ...], listed: tuple[Any, ...]
) -> list[Any]:
    """The results of `forward` as tensors on the tape, each with a storage of its own."""
    dirty = {id(t) for t in ctx._dirty}
    plain = {id(t) for t in ctx._not_differentiable}
    given = {id(t) for t in args if isinstance(t, Tensor)}
    node.count = len(listed)
    if not dirty <= {id(t) for t in listed}:
        raise errors.GradientError(
            "Some elements marked as dirty during the forward method were not returned as output."
        )
    made: list[Any] = []
    for number, result in enumerate(listed):
        if not isinstance(result, Tensor):
            node.kinds.append(None)
            made.append(result)
            continue
        node.kinds.append(result._value().meta.plain)
        if id(result) in dirty:
            made.append(_written(node, number, result))
            continue
        seen = any(result is other for other in made)
        if id(result) in given or result._view is not None or seen:
            result = _renamed(ctx, result, result.clone())
        if id(result) not in plain and result.dtype.is_smooth:
            node.output(result._value(), number)
        made.append(result)
    return made


def _renamed(ctx: FunctionCtx, old: Tensor, new: Tensor) -> Tensor:
    """What was saved of a result that is replaced by a twin on a storage of its own."""
    if any(old is t for t in ctx._not_differentiable):
        ctx._not_differentiable = (*ctx._not_differentiable, new)
    return new


def _written(node: FunctionNode, number: int, result: Tensor) -> Tensor:
    """An input that `forward` wrote into."""
    value = result._value()
    if value.requires_grad and value.tape is None:
        raise errors.GradientError(
            "a leaf Variable that requires grad has been used in an in-place operation."
        )
    if result._view is None:
        node.output(value, number)
        return result
    fresh = result.clone()
    node.output(fresh._value(), number)
    with enable_grad():
        return result._write(fresh, fresh=True)


class _Refusal(PythonNode):
    """The end of what can be differentiated."""

    def pull(self, gradients: list[Any]) -> Sequence[Any]:
        """There is no second derivative."""
        raise errors.GradientError(
            "trying to differentiate twice a function that was marked with @once_differentiable"
        )


def once_differentiable(backward: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a `backward` whose own work cannot be differentiated."""

    @functools.wraps(backward)
    def wrapped(ctx: Any, *gradients: Any) -> Any:
        with no_grad():
            made = backward(ctx, *gradients)
        used = any(isinstance(g, Tensor) and g.requires_grad for g in gradients)
        if not current.recorder.grad or not used:
            return made
        listed = made if isinstance(made, tuple) else (made,)
        with no_grad():
            twins = [t.clone() if isinstance(t, Tensor) else t for t in listed]
            tensors = [t for t in twins if isinstance(t, Tensor)]
            ends = [t.clone()._value() for t in tensors]
        for end in ends:
            end.requires_grad = True
        node = _Refusal(ends)
        node.count = len(tensors)
        for number, tensor in enumerate(tensors):
            node.output(tensor._value(), number)
        return tuple(twins) if isinstance(made, tuple) else twins[0]

    return wrapped
