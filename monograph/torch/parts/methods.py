"""Methods that tensors and modules have in PyTorch and need only here."""

from __future__ import annotations

import warnings
from typing import Any

from ...nn import Module
from ...placement import device as named_device
from ...placement import require_here
from ...tensor import Tensor
from .absent import REFUSED, STAND_INS, refusal
from .private import _make_subclass


def pin_memory(x: Tensor, device: Any = None) -> Tensor:
    """Refused: memory is pinned for an accelerator."""
    raise RuntimeError("Cannot access accelerator device when none is available.")


def resize(x: Tensor, *sizes: Any) -> Tensor:
    """x in another shape of as many elements; `reshape` says the same."""
    warnings.warn("non-inplace resize is deprecated", stacklevel=2)
    return x.reshape(*sizes)


def resize_as(x: Tensor, other: Tensor) -> Tensor:
    """x in the shape of another tensor."""
    return resize(x, *other.shape)


def storage(x: Tensor) -> Any:
    """The elements that x and its views share."""
    from .storage import TypedStorage

    return TypedStorage(x)


def storage_type(x: Tensor) -> Any:
    """The class of `x.storage()`."""
    return type(storage(x))


def untyped_storage(x: Tensor) -> Any:
    """The bytes that x and its views share."""
    from .storage import UntypedStorage

    return UntypedStorage(x)


def to_dense(x: Tensor, dtype: Any = None, **_: Any) -> Tensor:
    """x itself: every tensor is dense."""
    return x if dtype is None else x.to(dtype)


def volatile(x: Tensor) -> bool:
    """What `no_grad` replaced."""
    warnings.warn("volatile was removed (Variable.volatile is always False)", stacklevel=2)
    return False


def set_volatile(x: Tensor, _: Any) -> None:
    """Nothing but a warning, as in PyTorch."""
    warnings.warn("volatile was removed and now has no effect", stacklevel=2)


def apply_(x: Tensor, function: Any) -> Tensor:
    """Replace every element by what a Python function makes of it."""
    import numpy as np

    array = x.detach()._array()
    made = np.array([function(v) for v in array.reshape(-1).tolist()], array.dtype)
    from ...tensor import tensor

    return x.copy_(tensor(made.reshape(array.shape)))


def base_of(x: Tensor) -> Tensor | None:
    """The tensor whose storage a view shows; None of one that is no view."""
    if x._view is None:
        return None
    base = object.__new__(Tensor)
    base._storage, base._view = x._storage, None
    return base


def dim_order(x: Tensor, *, ambiguity_check: Any = False) -> tuple[int, ...]:
    """The axes in the order in which they lie in memory, the outermost first."""
    strides = x.stride()
    return tuple(sorted(range(x.ndim), key=lambda k: (-strides[k], k)))


def is_set_to(x: Tensor, tensor: Tensor) -> bool:
    """Whether two tensors see the same places of one storage."""
    same = x._storage is tensor._storage and x._sizes == tensor._sizes
    where = (x.stride(), x.storage_offset()) == (tensor.stride(), tensor.storage_offset())
    return same and where


def map_(x: Tensor, other: Tensor, function: Any) -> Tensor:
    """Replace every element by what a Python function makes of it and of another tensor's."""
    from ...tensor import tensor

    pairs = zip(x.flatten().tolist(), other.expand_as(x).flatten().tolist(), strict=True)
    made = tensor([function(a, b) for a, b in pairs], dtype=x.dtype)
    return x.copy_(made.reshape(tuple(x.shape)))


def _module_cuda(module: Module, device: Any = None) -> Module:
    """Refused: this build has tensors on the CPU only."""
    require_here(named_device("cuda") if device is None else device)
    return module


def attach() -> None:
    """Give the methods to their classes."""
    found: dict[str, Any] = {
        "pin_memory": pin_memory, "resize": resize, "resize_as": resize_as, "storage": storage,
        "untyped_storage": untyped_storage, "to_dense": to_dense, "apply_": apply_,
        "volatile": property(volatile, set_volatile), "is_xpu": False, "is_nested": False,
        "is_xla": False,
        "is_ipu": False, "is_mtia": False, "is_sparse_csr": False, "is_vulkan": False,
        "_base": property(base_of), "dim_order": dim_order, "is_set_to": is_set_to, "map_": map_,
        "is_distributed": lambda x: False,
        "const_data_ptr": Tensor.data_ptr, "is_maia": False, "storage_type": storage_type,
        "name": None, "_make_subclass": staticmethod(_make_subclass),
        "names": property(lambda x: (None,) * x.ndim), "_cdata": property(id),
    }  # fmt: skip
    for name, method in found.items():
        if not hasattr(Tensor, name):
            setattr(Tensor, name, method)
    Module.cuda = Module.xpu = _module_cuda  # type: ignore[attr-defined]
    for path, stand_in in STAND_INS.items():
        _attach_absent(path, stand_in.named(path))
    for path, reason in REFUSED.items():
        _attach_absent(path, refusal(path, reason))


def _attach_absent(path: str, function: Any) -> None:
    owners = {"Tensor": Tensor, "nn.Module": Module}
    owner, _, name = path.rpartition(".")
    if owner in owners:
        setattr(owners[owner], name, function)
