"""Reading at places that integer tensors name: gather, index_select, take, embedding."""

from __future__ import annotations

from typing import Any

from ..errors import OperandError, ValueOutOfRange
from ..ir import build
from ..ir.check import check
from ..ir.dtypes import int64
from ..tensor import Tensor
from .define import Tensors, function, operator
from .inplace import into
from .places import along, crossed, integers, slices
from .shape import axis_of


@operator(apart=True)
def gather(x: Tensor, dim: int, index: Tensor, *, sparse_grad: bool = False) -> Any:
    """out[i] = input[i with index[i] along dim].

    >>> import monograph as mg
    >>> mg.gather(mg.tensor([[1, 2], [3, 4]]), 1, mg.tensor([[1], [0]])).tolist()
    [[2], [3]]
    """
    return _gathered(x, dim, index, negative=False)


gather.operator.selects = True


@operator(to=None, method=False, name="gather")
def gather_from_end(x: Tensor, dim: int, index: Tensor) -> Any:
    """gather, where negative indices count from the end."""
    return _gathered(x, dim, index, negative=True)


def _gathered(x: Any, dim: int, index: Any, negative: bool) -> Any:
    k = axis_of(x, dim)
    if not index.size:
        return build.full(index.shape, 0, x.dtype)
    if index.dtype.name not in ("int32", "int64"):
        raise ValueError(f"the index must be int32 or int64, got {index.dtype.name}")
    where = build.cast(index, int64)
    check_beside(x, where, k, "tensor")
    return along(x, k, where, negative).read(x)


def check_beside(x: Any, where: Any, k: int, what: str) -> None:
    """The index has the axes of x, and apart from axis k is not larger."""
    if where.size and max(where.ndim, 1) != max(x.ndim, 1):
        raise ValueError(
            f"the index {list(where.shape)} needs as many axes as the {what} {list(x.shape)}"
        )
    if where.size and any(where.shape[n] > x.shape[n] for n in range(x.ndim) if n != k):
        raise ValueError(
            f"the index {list(where.shape)} exceeds the {what} {list(x.shape)} beside axis {k}"
        )


gather.operator.saves = {"x": ("x", "where")}


@operator(apart=True)
def index_select(x: Tensor, dim: int, index: Tensor) -> Any:
    """The slices of x along dim at the indices.

    >>> import monograph as mg
    >>> mg.index_select(mg.tensor([[1], [2], [3]]), 0, mg.tensor([2, 0])).tolist()
    [[3], [1]]
    """
    if index.dtype.name not in ("int32", "int64"):
        raise ValueError(f"the index must be int32 or int64, got {index.dtype.name}")
    k = axis_of(x, dim)
    if not x.ndim and index.size > 1:
        raise IndexError("index_select of a tensor without axes takes one index")
    return slices(x, k, integers(index)).read(x)


@operator(to=None, method=False, name="index")
def index_at(x: Tensor, where: Tensors, dims: tuple[int, ...], sure: tuple[bool, ...] = ()) -> Any:
    """x indexed at the axes `dims` by integer tensors that are broadcast together."""
    return crossed(x, [integers(w) for w in where], dims, sure).read(x)


@operator(apart=True)
def take(x: Tensor, index: Tensor) -> Any:
    """The elements of x, seen as one line, at the indices.

    >>> import monograph as mg
    >>> mg.take(mg.tensor([[1, 2], [3, 4]]), mg.tensor([3, -4])).tolist()
    [4, 1]
    """
    if index.dtype is not int64:
        raise ValueError(f"the index must be int64, got {index.dtype.name}")
    if x.size == 0 and index.size:
        raise IndexError("cannot take elements from an empty tensor")
    return crossed(build.reshape(x, (x.size,)), [index], (0,)).read(build.reshape(x, (x.size,)))


@function(method=True)
def take_along_dim(
    input: Tensor, indices: Tensor, dim: int | None = None, *, out: Any = None
) -> Tensor:
    """The elements of x at the indices along dim, both broadcast beside it.

    >>> import monograph as mg
    >>> mg.take_along_dim(mg.tensor([[3, 1, 2]]), mg.tensor([[1, 2, 0]]), dim=1).tolist()
    [[1, 2, 3]]
    """
    if dim is None:
        made = gather_from_end(input.reshape(-1), 0, indices.reshape(-1))
        return made if out is None else into(out, made)
    if input.ndim != indices.ndim:
        raise OperandError(
            f"take_along_dim: the index {list(indices.shape)} needs as many axes as the "
            f"tensor {list(input.shape)}"
        )
    k = axis_of(input, dim)
    beside = build.broadcast_shapes(
        tuple([1 if n == k else e for n, e in enumerate(input.shape)]),
        tuple([1 if n == k else e for n, e in enumerate(indices.shape)]),
    )
    own = [input.shape[k] if n == k else e for n, e in enumerate(beside)]
    others = [indices.shape[k] if n == k else e for n, e in enumerate(beside)]
    made = gather_from_end(input.expand(*own), k, indices.expand(*others))
    return made if out is None else into(out, made)


@operator(to=None, method=False, name="one_hot")
def hot(where: Tensor, num_classes: int) -> Any:
    """1 at the index, 0 elsewhere, along a new last axis."""
    shape = (*where.shape, num_classes)
    bad = build.elementwise("or", where < 0, where > num_classes - 1)
    check(
        bad, where, f"class value {{value}} must be from 0 to {num_classes - 1}",
        error="ValueOutOfRange",
    )  # fmt: skip
    index = build.broadcast_to(build.expand_dims(where, [where.ndim]), shape)
    hit = build.functions.eq(build.coordinate(shape, where.ndim), index)
    return build.cast(hit, int64)


@function(to="nn.functional")
def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """1 at the index, 0 elsewhere, along a new last axis.

    Without `num_classes` there are as many as the largest index needs: it is read.

    >>> import monograph as mg
    >>> mg.nn.functional.one_hot(mg.tensor([1, 0]), 2).tolist()
    [[0, 1], [1, 0]]
    """
    if tensor.dtype is not int64:
        raise RuntimeError(f"one_hot takes an int64 tensor, got {tensor.dtype.name}")
    if num_classes == -1:
        if not tensor.numel():
            raise RuntimeError("one_hot: the classes of an empty tensor must be given")
        lowest, highest = (int(limit.item()) for limit in tensor.aminmax())
        if lowest < 0:
            raise ValueOutOfRange(f"one_hot: class value {lowest} must not be negative")
        num_classes = highest + 1
    if num_classes < 1 and tensor.numel():
        raise RuntimeError("one_hot: num_classes must be positive")
    return hot(tensor, num_classes)
