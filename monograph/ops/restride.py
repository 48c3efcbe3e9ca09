"""A tensor's own view changed in place, resizing, and copies of views.

`x.t_()`, `x.squeeze_()` and `x.resize_()` change how x sees its storage, not what is stored.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import errors, placement
from ..aliasing import refuse_leaf
from ..recorder import current
from ..strides import contiguous, in_order
from ..tensor import Tensor
from . import complex as parts
from . import math, pieces, shape, views
from .creation import zeros
from .define import function
from .inplace import into
from .views import sizes_of, storage_line


def _seen_as(x: Tensor, view: Tensor) -> Tensor:
    """x itself, seeing its storage as that view of it does."""
    here = x._value()
    if here.requires_grad and current.recorder.grad:
        refuse_leaf(here)
    x._storage, x._view = view._storage, view._view
    return x


def _in_place(view: Callable[..., Tensor], name: str) -> Callable[..., Tensor]:
    def method(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        return _seen_as(x, view(x, *args, **kwargs))

    method.__name__ = f"{name}_"
    method.__doc__ = f"`{name}`, after which x itself is that view."
    return method


def _copied(view: Callable[..., Any], name: str) -> Callable[..., Any]:
    def copy(*args: Any, out: Any = None, **kwargs: Any) -> Any:
        made = view(*args, **kwargs)
        if isinstance(made, tuple):
            made = tuple([math.clone(part) for part in made])
        else:
            made = math.clone(made)
        return made if out is None else into(out, made)

    copy.__name__ = f"{name}_copy"
    copy.__doc__ = f"`{name}`, on a storage of its own."
    return copy


def alias(input: Tensor) -> Tensor:
    """Another tensor on the same storage."""
    return views.reshape_to(input, tuple(input.shape))


def _attach() -> None:
    in_place = {
        "t": views.t, "transpose": shape.transpose, "swapaxes": views.swapaxes,
        "swapdims": shape.transpose, "squeeze": shape.squeeze, "unsqueeze": shape.unsqueeze,
        "as_strided": views.as_strided,
    }  # fmt: skip
    for name, view in in_place.items():
        setattr(Tensor, f"{name}_", _in_place(view, name))
    function(Tensor.as_strided_, name="as_strided_")
    copies = {
        "alias": alias, "as_strided": views.as_strided, "detach": Tensor.detach,
        "diagonal": shape.diagonal, "expand": views.expand, "narrow": pieces.narrowed,
        "permute": views.permute, "select": pieces.selected, "slice": pieces.sliced,
        "split": pieces.split, "split_with_sizes": pieces.split_with_sizes,
        "squeeze": shape.squeeze, "t": views.t, "transpose": shape.transpose,
        "unbind": pieces.unbind, "unfold": shape.windows, "unsqueeze": shape.unsqueeze,
        "view": views.view, "view_as_real": parts.view_as_real,
        "view_as_complex": parts.view_as_complex,
    }  # fmt: skip
    for name, view in copies.items():
        function(_copied(view, name))
    Tensor.narrow_copy = _copied(pieces.narrowed, "narrow")  # type: ignore[attr-defined]


_attach()


@function(method=True)
def resize_(x: Tensor, *sizes: Any, memory_format: Any = None) -> Tensor:
    """Give x another size, in place. It keeps the elements at the beginning of its storage.

    >>> import monograph as mg
    >>> mg.arange(6).resize_(2, 2).tolist()
    [[0, 1], [2, 3]]
    """
    wanted = sizes_of(sizes)
    if x.requires_grad:
        raise errors.GradientError("cannot resize variables that require grad")
    if min(wanted, default=0) < 0:
        raise errors.OperandError(f"resize_: sizes must not be negative, got {list(wanted)}")
    order = placement.order_of(memory_format, len(wanted))
    if tuple(x.shape) == wanted and order is None:
        return x
    strides = contiguous(wanted) if order is None else in_order(order, wanted)
    count, offset = views.Size(wanted).numel(), x.storage_offset() if x.numel() else 0
    line = storage_line(x)
    missing = offset + count - line.numel()
    if missing > 0:  # PyTorch leaves what is new unwritten; here it is zero
        line = shape.cat([line, zeros(missing, dtype=x.dtype)], 0)
    return _seen_as(x, parts.read_through(shape.strided(line, wanted, strides, offset), x._reads()))


@function(method=True)
def resize_as_(x: Tensor, other: Tensor, memory_format: Any = None) -> Tensor:
    """Give x the size of another tensor, in place."""
    return resize_(x, *other.shape, memory_format=memory_format)


@function(to=None, method=True)
def set_(
    x: Tensor, source: Tensor | None = None, storage_offset: int = 0, size: Any = None,
    stride: Any = None,
) -> Tensor:  # fmt: skip
    """Let x share the storage of another tensor, as that one sees it or as given.

    >>> import monograph as mg
    >>> x, y = mg.ones(2), mg.zeros(3)
    >>> _ = x.set_(y).fill_(7)
    >>> y.tolist()
    [7.0, 7.0, 7.0]
    """
    if source is None:
        return _seen_as(x, zeros(0, dtype=x.dtype))
    if source.dtype is not x.dtype:
        raise errors.OperandError(
            f"set_: the source is {source.dtype.name}, the tensor {x.dtype.name}"
        )
    if size is None:
        return _seen_as(x, source)
    sizes = sizes_of((size,))
    strides = contiguous(sizes) if stride is None else sizes_of((stride,))
    return _seen_as(x, shape.strided(storage_line(source), sizes, strides, storage_offset))
