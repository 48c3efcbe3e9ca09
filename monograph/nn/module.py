"""Module: the base of everything that owns parameters.

A module holds parameters, buffers (tensors that are state but not trained) and other modules.
Assigning one of them to an attribute registers it, under the attribute's name; the names of a whole
tree (`layers.0.weight`) are those of its state dictionary and the same as PyTorch's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

import numpy as np

from .. import record
from ..autograd.modes import no_grad
from ..errors import NoDataError
from ..guards import changes
from ..ir import dtypes
from ..ir.dtypes import DType, named
from ..placement import (
    META,
    channels_last,
    channels_last_3d,
    contiguous_format,
    place_of,
    preserve_format,
)
from ..recorder import current
from ..tensor import Parameter, Tensor, without_data
from .backward_hooks import BackwardCall
from .hooks import Hooks, RemovableHandle, marked, register
from .hooks_of_all import calls, of_all, registered
from .members import Members
from .parameter import Buffer, known, zero_gradient, zeros
from .state import Stateful
from .uninitialized import Uninitialized

Self = TypeVar("Self", bound="Module")
_KINDS = ("_parameters", "_modules", "_buffers")
_HOOKS = (
    "_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks",
    "_forward_hooks_with_kwargs", "_forward_pre_hooks_with_kwargs", "_forward_hooks_always_called",
    "_state_hooks",
)  # fmt: skip


def _converted(t: Any, dtype: DType) -> Tensor:
    """The contents of a tensor in another dtype."""
    if t.is_meta or t.is_sparse:
        return t.detach().to(dtype)  # type: ignore[no-any-return]
    return known(np.array(t._array(), dtype=dtype.numpy, order="C"))


def _buffer_in(t: Any, dtype: DType) -> Any:
    if isinstance(t, Uninitialized):
        t.convert(dtype)
        return t
    return _converted(t, dtype)


def _both(changed: Any) -> Any:
    """The arguments that a hook returned, by position and by name."""
    if not isinstance(changed, tuple) or len(changed) != 2:
        raise RuntimeError(
            "forward pre-hook must return None or a tuple of (new_args, new_kwargs), but got "
            f"{changed}."
        )
    return changed


def _seeing(
    entry: tuple[Callable[..., Any], bool], module: Any, args: Any, kwargs: Any, result: Any
) -> Any:
    """Call a hook after the forward, with or without the arguments by name."""
    hook, with_kwargs = entry
    return hook(module, args, kwargs, result) if with_kwargs else hook(module, args, result)


class Module(Stateful):
    """Base of all layers and models: subclass it, assign layers in `__init__`, write `forward`.

    >>> import monograph as mg
    >>> class Net(mg.nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.layer = mg.nn.Linear(3, 2)
    ...
    ...     def forward(self, x):
    ...         return self.layer(x)
    >>> Net()(mg.zeros(5, 3)).shape
    Size([5, 2])
    """

    training: bool
    _parameters: dict[str, Parameter | None]
    _buffers: dict[str, Tensor | None]
    _modules: dict[str, Module | None]
    _non_persistent_buffers_set: set[str]
    _forward_hooks: Hooks
    _forward_pre_hooks: Hooks
    _backward_hooks: Hooks
    _backward_pre_hooks: Hooks
    _forward_hooks_with_kwargs: dict[int, bool]  # numbers of hooks that take them
    _forward_pre_hooks_with_kwargs: dict[int, bool]
    _forward_hooks_always_called: dict[int, bool]

    def __init__(self) -> None:
        put = super().__setattr__  # the registering __setattr__ needs these to exist
        put("training", True)
        for kind in _KINDS:
            put(kind, Members(self))
        put("_non_persistent_buffers_set", set())
        for kind in _HOOKS:
            put(kind, {})

    # --- calling ---

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the module computes; subclasses write this."""
        raise NotImplementedError(f"{type(self).__name__} has no forward method")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        recorder = current.recorder
        if recorder.hold:
            recorder.modules.append(self)
        recorder.depth += 1
        try:
            if (
                self._forward_pre_hooks or self._forward_hooks or self._backward_hooks
                or self._backward_pre_hooks or calls
            ):  # fmt: skip
                result = self._call_with_hooks(args, kwargs)
            else:
                result = self.forward(*args, **kwargs) if kwargs else self.forward(*args)
        finally:
            recorder.depth -= 1
        if not recorder.grad and not recorder.depth:
            # No backward pass will ask for what is inside, unless it is a part of a step: a network
            # of targets beside the one that is trained.
            if not any([value.requires_grad for value in recorder.results]):
                record.flush_here("module")
        return result

    def _call_with_hooks(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        own = marked(self._forward_pre_hooks, self._forward_pre_hooks_with_kwargs)
        for hook, with_kwargs in [*of_all("before"), *own]:
            if with_kwargs:
                changed = hook(self, args, kwargs)
                if changed is not None:
                    args, kwargs = _both(changed)
            else:
                changed = hook(self, args)
                if changed is not None:
                    args = changed if isinstance(changed, tuple) else (changed,)
        on_backward = [*of_all("backward"), *[(h, True) for h in self._backward_pre_hooks.values()]]
        on_backward += [(hook, False) for hook in self._backward_hooks.values()]
        backward = BackwardCall(self, on_backward) if on_backward else None
        if backward is not None:
            args = backward.enter(args)
        result, met = None, []  # hooks that were called
        try:
            result = self.forward(*args, **kwargs)
            own = marked(self._forward_hooks, self._forward_hooks_with_kwargs)
            for entry in [*of_all("after"), *own]:
                met.append(entry)
                changed = _seeing(entry, self, args, kwargs, result)
                if changed is not None:
                    result = changed
        except Exception:
            held, always = self._forward_hooks, self._forward_hooks_always_called
            wanted = {number: held[number] for number in always if number in held}
            own = marked(wanted, self._forward_hooks_with_kwargs)
            for entry in [*of_all("always"), *own]:
                if entry not in met:
                    _seeing(entry, self, args, kwargs, result)
            raise
        return result if backward is None else backward.leave(result)

    def register_forward_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False,
        always_call: bool = False,
    ) -> RemovableHandle:  # fmt: skip
        """Call hook(module, args, output) after each forward; what it returns replaces output.

        With `always_call` it is called also if the forward fails, with the output so far.
        """
        handle = register(self._forward_hooks, hook, prepend)
        if with_kwargs:
            self._forward_hooks_with_kwargs[handle.id] = True
        if always_call:
            self._forward_hooks_always_called[handle.id] = True
        return handle

    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Call hook(module, args) before each forward; what it returns replaces the args."""
        handle = register(self._forward_pre_hooks, hook, prepend)
        if with_kwargs:
            self._forward_pre_hooks_with_kwargs[handle.id] = True
        return handle

    def register_full_backward_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Call hook(module, grad_input, grad_output) when a backward pass knows both.

        What it returns replaces grad_input, the gradients of the positional arguments.
        """
        return register(self._backward_hooks, hook, prepend)

    def register_backward_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """The older name: the gradients are those that `register_full_backward_hook` gives."""
        return self.register_full_backward_hook(hook)

    def register_full_backward_pre_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Call hook(module, grad_output) in a backward pass; what it returns replaces them."""
        return register(self._backward_pre_hooks, hook, prepend)

    # --- registering ---

    def __setattr__(self, name: str, value: Any) -> None:
        changes.count += 1
        held = self.__dict__
        if (trace := current.recorder.capture) is not None and isinstance(value, Tensor):
            trace.assigned(held, name)
        if isinstance(value, Parameter):
            self._release(name, "_parameters")
            self.register_parameter(name, value)
        elif isinstance(value, Module):
            self._release(name, "_modules")
            self._modules[name] = registered("module", self, name, value)  # a method's name too
        elif isinstance(value, Buffer):
            self._release(name, "_buffers")
            self.register_buffer(name, value, value.persistent)
        elif name in held.get("_parameters", ()):
            if value is not None:
                raise TypeError(f"{name!r} is a parameter: assign an nn.Parameter or None")
            self._parameters[name] = None
        elif name in held.get("_modules", ()):
            if value is not None:
                raise TypeError(f"{name!r} is a module: assign an nn.Module or None")
            self._modules[name] = None
        elif name in held.get("_buffers", ()):
            if value is not None and not isinstance(value, Tensor):
                raise TypeError(f"{name!r} is a buffer: assign a Tensor or None")
            self._buffers[name] = value
        elif name in _KINDS:
            for member in list(held.get(name, ())):
                held.pop(member, None)
            super().__setattr__(name, Members(self, value))
        else:
            super().__setattr__(name, value)

    def _release(self, name: str, kind: str) -> None:
        """Make the name free for a registration among the members of one kind."""
        if "_modules" not in self.__dict__:
            raise AttributeError(
                f"call super().__init__() before assigning {name!r} in {type(self).__name__}"
            )
        keep = self.__dict__[kind]  # a name that is already there keeps its place in the order
        for held in (self.__dict__, self._parameters, self._buffers, self._modules):
            if held is not keep:
                held.pop(name, None)  # type: ignore[attr-defined]

    def __getattr__(self, name: str) -> Any:
        held = self.__dict__  # members are there too, unless someone has put plain dictionaries in
        for kind in _KINDS:
            found = held.get(kind)
            if found and name in found:
                return found[name]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __delattr__(self, name: str) -> None:
        changes.count += 1
        for held in (self._parameters, self._buffers, self._modules):
            if name in held:
                del held[name]  # type: ignore[attr-defined]
                self._non_persistent_buffers_set.discard(name)
                return
        super().__delattr__(name)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(dict.fromkeys(_HOOKS) | state)
        for kind in _HOOKS:
            if self.__dict__[kind] is None:  # saved by PyTorch, or by an earlier version
                self.__dict__[kind] = {}
        for kind in _KINDS:
            super().__setattr__(kind, Members(self, state.get(kind, {})))

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._parameters, *self._buffers, *self._modules})

    def _check_name(self, kind: str, name: str, held: Mapping[str, Any]) -> None:
        if "_parameters" not in self.__dict__:
            raise AttributeError(f"call super().__init__() before registering {name!r}")
        if not isinstance(name, str):
            raise TypeError(f"the name of a {kind} must be a string, got {type(name).__name__}")
        if "." in name or name == "":
            raise KeyError(f"the name of a {kind} can't be empty or contain '.', got {name!r}")
        if hasattr(self, name) and name not in held:
            raise KeyError(f"attribute {name!r} already exists")

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Add a parameter; None reserves the name for a layer that goes without one."""
        self._check_name("parameter", name, self._parameters)
        if param is not None and not isinstance(param, Parameter):
            raise TypeError(f"{name!r} must be an nn.Parameter or None, got {type(param).__name__}")
        self._parameters[name] = registered("parameter", self, name, param)

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Add a tensor that is state but not trained; if persistent it is in the state_dict."""
        self._check_name("buffer", name, self._buffers)
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(f"{name!r} must be a Tensor or None, got {type(tensor).__name__}")
        self._buffers[name] = registered("buffer", self, name, tensor)
        self._non_persistent_buffers_set.discard(name)
        if not persistent:
            self._non_persistent_buffers_set.add(name)

    def register_module(self, name: str, module: Module | None) -> None:
        """Add a module."""
        self._check_name("module", name, self._modules)
        if module is not None and not isinstance(module, Module):
            raise TypeError(f"{name!r} must be an nn.Module or None, got {type(module).__name__}")
        self._modules[name] = registered("module", self, name, module)

    add_module = register_module

    # --- walking ---

    def named_modules(
        self, memo: set[Module] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """Every module of the tree with its name, this one first; shared ones once."""
        seen = set() if memo is None else memo
        if self in seen:
            return
        if remove_duplicate:
            seen.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                inner = f"{prefix}.{name}" if prefix else name
                yield from module.named_modules(seen, inner, remove_duplicate)

    def modules(self, remove_duplicate: bool = True) -> Iterator[Module]:
        """Every module of the tree."""
        for _, module in self.named_modules(remove_duplicate=remove_duplicate):
            yield module

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """The modules directly inside, with their names."""
        seen: set[Module] = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def children(self) -> Iterator[Module]:
        """The modules directly inside."""
        for _, module in self.named_children():
            yield module

    def _named_members(
        self, kind: str, prefix: str, recurse: bool, remove_duplicate: bool
    ) -> Iterator[tuple[str, Any]]:
        owners = (
            self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate)
            if recurse
            else [(prefix, self)]
        )
        seen: set[int] = set()
        for path, module in owners:
            for name, member in getattr(module, kind).items():
                if member is None or id(member) in seen:
                    continue
                if remove_duplicate:
                    seen.add(id(member))
                yield (f"{path}.{name}" if path else name), member

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """Every parameter of the tree with its name; shared ones once."""
        return self._named_members("_parameters", prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """Every parameter of the tree."""
        for _, parameter in self.named_parameters(recurse=recurse):
            yield parameter

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """Every buffer of the tree with its name."""
        return self._named_members("_buffers", prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """Every buffer of the tree."""
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def get_submodule(self, target: str) -> Module:
        """The module at a dotted path."""
        found: Any = self
        for name in target.split(".") if target else ():
            found = getattr(found, name, None)
            if not isinstance(found, Module):
                raise AttributeError(f"{type(self).__name__} has no module {target!r}")
        return found  # type: ignore[no-any-return]

    def get_parameter(self, target: str) -> Parameter:
        """The parameter at a dotted path."""
        path, _, name = target.rpartition(".")
        found = self.get_submodule(path)._parameters.get(name)
        if found is None:
            raise AttributeError(f"{type(self).__name__} has no parameter {target!r}")
        return found

    def get_buffer(self, target: str) -> Tensor:
        """The buffer at a dotted path."""
        path, _, name = target.rpartition(".")
        found = self.get_submodule(path)._buffers.get(name)
        if found is None:
            raise AttributeError(f"{type(self).__name__} has no buffer {target!r}")
        return found

    def set_submodule(self, target: str, module: Module, strict: bool = False) -> None:
        """Put a module at a dotted path; with `strict` there must be one already."""
        if not isinstance(module, Module):
            raise ValueError(f"`module` is not an nn.Module, found type {type(module).__name__}")
        path, _, name = target.rpartition(".")
        if not name:
            raise ValueError("Cannot set the submodule without a target name!")
        owner = self.get_submodule(path)
        if strict and name not in owner._modules:
            raise AttributeError(f"{type(owner).__name__} has no attribute `{name}`")
        setattr(owner, name, module)

    def apply(self: Self, fn: Callable[[Module], Any]) -> Self:
        """Call fn on every module of the tree, children first."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    # --- modes, gradients, dtype ---

    def train(self: Self, mode: bool = True) -> Self:
        """Switch the tree to training (dropout drops, batch norm uses the batch) or evaluation."""
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for child in self.children():
            child.train(mode)  # which its class may define otherwise, to stay in evaluation
        return self

    def eval(self: Self) -> Self:
        """Switch the tree to evaluation."""
        return self.train(False)

    def requires_grad_(self: Self, requires_grad: bool = True) -> Self:
        """Ask for, or stop, gradients of every parameter."""
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def share_memory(self: Self) -> Self:
        """Let parameters and buffers lie in memory that forked processes share."""
        for tensor in (*self.parameters(), *self.buffers()):
            tensor.share_memory_()
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients, or set them to zero."""
        for parameter in self.parameters():
            if set_to_none:
                parameter.grad = None
            elif parameter.grad is not None:
                zero_gradient(parameter.grad)

    def to(
        self: Self, *args: Any, dtype: DType | None = None, device: Any = None,
        non_blocking: bool = False, memory_format: Any = None,
    ) -> Self:  # fmt: skip
        """Convert floating point parameters and buffers, or leave their contents behind."""
        for arg in args:
            if isinstance(arg, (DType, type)):
                dtype = arg if isinstance(arg, DType) else named(arg)
            elif isinstance(arg, Tensor):
                dtype, device = arg.dtype, arg.device
            elif not isinstance(arg, bool):
                device = arg
        if device is not None:
            self._move(place_of(device))
        if dtype is not None:
            self._convert(dtype, complexes=True)
        return self if memory_format is None else self._lay_out(memory_format)

    def _lay_out(self: Self, form: Any) -> Self:
        """Let weights of images lie in a memory format; all others stay as they are."""
        if form not in (channels_last, channels_last_3d, contiguous_format, preserve_format):
            raise TypeError(f"memory_format must be one of monograph's, got {form!r}")
        rank = {channels_last: 4, channels_last_3d: 5}.get(form)
        for tensor in self.parameters():
            if rank is None or tensor.ndim == rank:
                with no_grad():
                    tensor.data = tensor.detach().to(memory_format=form)
        self._replace_buffers(
            lambda t: t.to(memory_format=form) if rank is None or t.ndim == rank else t
        )
        return self

    def _replace_buffers(self, made: Callable[[Any], Any], recurse: bool = True) -> None:
        """Put other tensors in the places of buffers; whoever holds the old ones keeps them."""
        for module in self.modules() if recurse else (self,):
            for name, buffer in module._buffers.items():
                if buffer is not None:
                    with no_grad():
                        new = made(buffer)
                    if new is not buffer:
                        module._buffers[name] = new

    def _apply(self: Self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """Replace the contents of each parameter and buffer by what a function makes of it.

        Conversions come by here where a class has its own `_apply`, to convert what else it holds.
        """
        if recurse:
            for module in self.children():
                module._apply(fn)
        for tensor in self._parameters.values():
            if tensor is not None:
                with no_grad():
                    tensor.data = fn(tensor)
                if tensor.grad is not None:
                    tensor.grad.data = fn(tensor.grad)
        self._replace_buffers(fn, recurse=False)
        return self

    def _is_plain(self) -> bool:
        return all(type(module)._apply is Module._apply for module in self.modules())

    def compile(self, *args: Any, **options: Any) -> None:
        """Nothing to do: what a module does is compiled as it is."""

    def _move(self, where: Any) -> None:
        if not self._is_plain():
            self._apply(lambda t: t.to(where))
        for tensor in (*self.parameters(), *self.buffers()):
            if tensor.is_meta and where is not META:
                raise NoDataError(
                    "Cannot copy out of meta tensor; no data! Please use "
                    "torch.nn.Module.to_empty() instead of torch.nn.Module.to() when moving "
                    "module from meta to a different device."
                )
        for parameter in self.parameters():
            if parameter.device is not where:
                parameter.data = without_data(parameter)
        self._replace_buffers(lambda t: t if t.device is where else without_data(t))

    def to_empty(self: Self, *, device: Any, recurse: bool = True) -> Self:
        """Move to a device; contents are lost, and those on the CPU are zeros.

        >>> import monograph as mg
        >>> mg.nn.Linear(1, 2, device="meta").to_empty(device="cpu").bias.tolist()
        [0.0, 0.0]
        """
        where = place_of(device)

        def empty(t: Tensor) -> Tensor:
            return (
                without_data(t) if where is META else zeros(*t.shape, dtype=t.dtype, device=where)
            )

        for parameter in self.parameters(recurse):
            parameter.data = empty(parameter)
        self._replace_buffers(empty, recurse)
        return self

    def _convert(self: Self, dtype: DType, complexes: bool = False) -> Self:
        """Convert floating point parameters and buffers, and complex ones if asked for."""
        if not (dtype.is_floating_point or dtype.is_complex):
            raise TypeError(
                "nn.Module.to only accepts floating point or complex dtypes, but got desired "
                f"dtype={dtype}"
            )

        def other(t: Any) -> bool:
            chosen = t.is_floating_point() or (complexes and t.is_complex())
            return chosen and t.dtype is not dtype

        if not self._is_plain():
            return self._apply(lambda t: t.to(dtype) if other(t) else t)
        for parameter in self.parameters():
            for tensor in (parameter, parameter.grad):
                if tensor is not None and other(tensor):
                    if isinstance(tensor, Uninitialized):
                        tensor.convert(dtype)
                    else:  # no name for what is made: a parameter takes it, or else looks into it
                        tensor.data = _converted(tensor, dtype)
        self._replace_buffers(lambda t: _buffer_in(t, dtype) if other(t) else t)
        return self

    def float(self: Self) -> Self:
        """Convert floating point parameters and buffers to float32."""
        return self._convert(dtypes.float32)

    def double(self: Self) -> Self:
        """Convert floating point parameters and buffers to float64."""
        return self._convert(dtypes.float64)

    def half(self: Self) -> Self:
        """Convert floating point parameters and buffers to float16."""
        return self._convert(dtypes.float16)

    def bfloat16(self: Self) -> Self:
        """Convert floating point parameters and buffers to bfloat16."""
        return self._convert(dtypes.bfloat16)

    def type(self: Self, dst_type: DType) -> Self:
        """Convert floating point parameters and buffers to a dtype."""
        return self._convert(dst_type)

    def cpu(self: Self) -> Self:
        """This module: its contents, if it has any, are on the CPU."""
        return self.to(device="cpu")

    # --- showing ---

    def _get_name(self) -> str:
        return type(self).__name__

    def extra_repr(self) -> str:
        """What stands between the parentheses; layers name their sizes."""
        return ""

    def __repr__(self) -> str:
        extra = self.extra_repr()
        lines = extra.split("\n") if extra else []
        children = self._shown_children()
        name = self._get_name()
        if not children and len(lines) <= 1:
            return f"{name}({extra})"
        body = "\n".join(lines + children).replace("\n", "\n  ")
        return f"{name}(\n  {body}\n)"

    def _shown_children(self) -> list[str]:
        return [f"({name}): {module!r}" for name, module in self._modules.items()]
