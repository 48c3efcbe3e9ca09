"""Parametrizations: a parameter that is computed from others whenever it is read.

`register_parametrization(layer, "weight", f)` keeps the parameter as `original` in
`layer.parametrizations.weight` and makes `layer.weight` the value of f(original). The original
starts as what `right_inverse` of f returns; several tensors are `original0`, `original1`, ….
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from typing import Any

from ...autograd.modes import no_grad
from ...tensor import Parameter, Tensor
from ..containers import ModuleDict, ModuleList
from ..module import Module

__all__ = [
    "ParametrizationList", "cached", "is_parametrized", "register_parametrization",
    "remove_parametrizations", "type_before_parametrizations",
]  # fmt: skip


class _Cache:
    """Values of parametrizations, kept while at least one `cached()` is entered."""

    depth = 0
    values: dict[tuple[int, str], Any] = {}  # noqa: RUF012  (one for all, on purpose)


@contextmanager
def cached() -> Iterator[None]:
    """Compute each parametrized tensor only once while this is entered."""
    _Cache.depth += 1
    try:
        yield
    finally:
        _Cache.depth -= 1
        if not _Cache.depth:
            _Cache.values.clear()


class ParametrizationList(ModuleList):
    """The parametrizations of one tensor, applied one after the other, and its originals."""

    def __init__(self, modules: Sequence[Module], original: Any, unsafe: bool = False) -> None:
        if not modules:
            raise ValueError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        shape, dtype = original.shape, original.dtype
        with no_grad():
            new = self._start(original)
        self.is_tensor = isinstance(new, Tensor)
        self.ntensors = 1 if self.is_tensor else len(new)
        if self.is_tensor:
            if new.dtype is not dtype:
                raise ValueError(
                    "When `right_inverse` outputs one tensor, it may not change the dtype.\n"
                    f"original.dtype: {dtype}\nright_inverse(original).dtype: {new.dtype}"
                )
            _set(original, new)  # the same parameter, so that optimisers still know it
            self._hold("original", original)
        else:
            for n, part in enumerate(new):
                trained = isinstance(original, Parameter)
                self._hold(f"original{n}", Parameter(part, original.requires_grad) if trained
                           else part)  # fmt: skip
        if not unsafe:
            _check(self(), shape, dtype)

    def _start(self, value: Any) -> Any:
        for module in reversed(list(self)):
            if hasattr(module, "right_inverse"):
                try:
                    value = module.right_inverse(value)
                except NotImplementedError:
                    continue
        if not isinstance(value, (Tensor, Sequence)):
            raise ValueError(
                "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). "
                f"Got {type(value).__name__}"
            )
        return value

    def _hold(self, name: str, value: Any) -> None:
        if isinstance(value, Parameter):
            self.register_parameter(name, value)
        else:
            self.register_buffer(name, value)

    def _originals(self) -> list[Any]:
        if self.is_tensor:
            return [self.original]
        return [getattr(self, f"original{n}") for n in range(self.ntensors)]

    def right_inverse(self, value: Any) -> None:
        """Set the originals so that the tensor gets this value, as far as that is possible."""
        with no_grad():
            for module in reversed(list(self)):
                if not hasattr(module, "right_inverse"):
                    raise RuntimeError(
                        f"parametrization {type(module).__name__} does not implement right_inverse."
                    )
                value = module.right_inverse(value)
            for held, new in zip(
                self._originals(), [value] if self.is_tensor else value, strict=True
            ):
                _set(held, new)

    def forward(self) -> Any:
        first, *others = list(self)
        value = first(*self._originals())
        for module in others:
            value = module(value)
        return value


def _set(held: Any, new: Any) -> None:
    if new is not held:
        held.data = new.detach().clone()


def _check(value: Any, shape: Any, dtype: Any) -> None:
    if not isinstance(value, Tensor):
        raise ValueError(f"A parametrization must return a tensor. Got {type(value).__name__}.")
    for what, before, after in (("dtype", dtype, value.dtype), ("shape", shape, value.shape)):
        if before != after:
            raise ValueError(
                f"Registering a parametrization may not change the {what} of the tensor, unless "
                f"`unsafe` flag is enabled.\nunparametrized {what}: {before}\n"
                f"parametrized {what}: {after}"
            )


def _copied(self: Any, memo: dict[int, Any]) -> Any:
    cls: Any = type(self)
    twin = cls.__new__(cls)
    memo[id(self)] = twin
    twin.__setstate__(deepcopy(self.__dict__, memo))
    return twin


def _refuse_pickle(self: Any) -> Any:
    raise RuntimeError(
        "Serialization of parametrized modules is only supported through state_dict()."
    )


def _own_class(module: Any) -> None:
    """Give the module a class of its own, for properties."""
    cls = type(module)
    members = {"__getstate__": _refuse_pickle, "__deepcopy__": _copied}
    module.__class__ = type(f"Parametrized{cls.__name__}", (cls,), members)


def _add_property(module: Any, name: str) -> None:
    def get(self: Any) -> Any:
        if not _Cache.depth:
            return self.parametrizations[name]()
        key = (id(self), name)
        if key not in _Cache.values:
            _Cache.values[key] = self.parametrizations[name]()
        return _Cache.values[key]

    def put(self: Any, value: Any) -> None:
        self.parametrizations[name].right_inverse(value)

    setattr(type(module), name, property(get, put))


def register_parametrization(
    module: Any, tensor_name: str, parametrization: Module, *, unsafe: bool = False
) -> Any:
    """Compute a parameter or buffer of the module from its original by a module.

    >>> import monograph as mg
    >>> class Positive(mg.nn.Module):
    ...     def forward(self, x):
    ...         return x.abs()
    >>> layer = mg.nn.Linear(2, 2)
    >>> _ = mg.nn.utils.parametrize.register_parametrization(layer, "weight", Positive())
    >>> bool((layer.weight >= 0).all())
    True
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        held = module.parametrizations[tensor_name]
        if not unsafe:
            before = getattr(module, tensor_name)
            _check(parametrization(before), before.shape, before.dtype)
        held.append(parametrization)
        held.unsafe = held.unsafe or unsafe
        return module
    if tensor_name not in module._parameters and tensor_name not in module._buffers:
        raise ValueError(
            f"Module '{module}' does not have a parameter, a buffer, or a parametrized element "
            f"with name '{tensor_name}'"
        )
    made = ParametrizationList([parametrization], getattr(module, tensor_name), unsafe)
    delattr(module, tensor_name)
    if not is_parametrized(module):
        _own_class(module)
        module.parametrizations = ModuleDict()
    _add_property(module, tensor_name)
    module.parametrizations._modules[tensor_name] = made
    return module


def is_parametrized(module: Any, tensor_name: str | None = None) -> bool:
    """Whether the module, or one of its tensors, is parametrized.

    >>> import monograph as mg
    >>> mg.nn.utils.parametrize.is_parametrized(mg.nn.Linear(2, 2))
    False
    """
    held = module._modules.get("parametrizations")
    if not isinstance(held, ModuleDict):
        return False
    return len(held) > 0 if tensor_name is None else tensor_name in held


def remove_parametrizations(module: Any, tensor_name: str, leave_parametrized: bool = True) -> Any:
    """Make the tensor a plain one again: with its present value, or with its original.

    >>> import monograph as mg
    >>> layer = mg.nn.utils.parametrizations.weight_norm(mg.nn.Linear(2, 2))
    >>> plain = mg.nn.utils.parametrize.remove_parametrizations(layer, "weight")
    >>> sorted(dict(plain.named_parameters()))
    ['bias', 'weight']
    """
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    held = module.parametrizations[tensor_name]
    if not held.is_tensor and not leave_parametrized:
        raise ValueError(
            "Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is "
            "parametrized in terms of a sequence of tensors."
        )
    originals = held._originals()
    if leave_parametrized:
        with no_grad():
            value = getattr(module, tensor_name).detach().clone()
        if held.is_tensor:
            originals[0].data = value
        else:
            trained = isinstance(originals[0], Parameter)
            made = Parameter(value, originals[0].requires_grad) if trained else value
            originals = [made]
    delattr(type(module), tensor_name)
    del module.parametrizations[tensor_name]
    if isinstance(originals[0], Parameter):
        module.register_parameter(tensor_name, originals[0])
    else:
        module.register_buffer(tensor_name, originals[0])
    if not is_parametrized(module):
        del module.parametrizations
        module.__class__ = type(module).__bases__[0]
    return module


def type_before_parametrizations(module: Any) -> type:
    """The class that the module had before parametrizations gave it one of its own."""
    cls = type(module)
    return cls.__bases__[0] if is_parametrized(module) else cls
