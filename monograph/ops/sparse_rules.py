"""What operators do with sparse operands, and the functions of `mg.sparse`.

`RULES` has one function for each operator that takes a sparse tensor, under the operator's name and
with its parameters. `record.call` comes here when an operand has no storage.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import errors, record
from ..ir.operator import Operator
from ..tensor import Tensor, tensor
from . import math
from .creation import full, zeros
from .define import function
from .joining import joined as cat
from .joining import stack
from .sparse import SparseTensor, joined, made_of, sparse_coo_tensor

RULES: dict[str, Callable[..., Any]] = {}


def apply(operator: Operator, inputs: Sequence[Any], attributes: tuple[Any, ...]) -> Any:
    """An operator of operands of which at least one is sparse."""
    rule = RULES.get(operator.name)
    if rule is None:
        raise errors.SparseOperand(operator.name, sorted(RULES))
    if any(p.role == "inputs" for p in operator.parameters):
        return rule(inputs, *attributes)
    given, fixed = iter(inputs), iter(attributes)
    return rule(*[next(given if p.role == "input" else fixed) for p in operator.parameters])


record.register_sparse(apply)


def _rule(*names: str) -> Callable[[Any], Any]:
    def keep(rule: Any) -> Any:
        RULES.update(dict.fromkeys(names, rule))
        return rule

    return keep


# --- products -------------------------------------------------------------------------------------


@_rule("matmul", "mm", "mv")
def product(x: Any, other: Any) -> Any:
    """The product of a sparse matrix and a matrix or a vector, in either order."""
    for part in (x, other):
        if isinstance(part, SparseTensor) and (part.sparse_dim(), part.dense_dim()) != (2, 0):
            raise errors.OperandError(
                f"products are of sparse matrices, got a sparse tensor of shape {list(part.shape)}"
            )
    if x._sizes[-1] != other._sizes[0]:
        raise errors.OperandError(
            f"matmul: inner sizes of {list(x.shape)} and {list(other.shape)} differ"
        )
    if x.dtype is not other.dtype:
        raise errors.OperandError(
            f"operands of one dtype are needed, got {x.dtype.name} and {other.dtype.name}"
        )
    if not isinstance(x, SparseTensor):
        return _times(other.t(), x.t()).t() if x.ndim == 2 else _times(other.t(), x)
    return _both_sparse(x, other) if isinstance(other, SparseTensor) else _times(x, other)


def _times(x: SparseTensor, dense: Tensor) -> Any:
    """Rows of a dense operand, weighted and added up."""
    rows, columns = x._places[0], x._places[1]
    weights = x._held if dense.ndim == 1 else x._held.unsqueeze(1)
    terms = dense.index_select(0, columns) * weights
    made: Any = zeros(x._extents[0], *dense._sizes[1:], dtype=dense.dtype)
    return made.index_add(0, rows, terms)


def _both_sparse(x: SparseTensor, other: SparseTensor) -> SparseTensor:
    """Each element of x meets those in the row of the other that its column names."""
    left, right = x._places._array(), other._places._array()
    order = np.argsort(right[0], kind="stable")
    starts = np.searchsorted(right[0][order], np.arange(other._extents[0] + 1))
    counts = np.diff(starts)[left[1]]
    of_left = np.repeat(np.arange(left.shape[1]), counts)
    within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    of_right = order[starts[left[1][of_left]] + within]
    places = tensor(np.stack([left[0][of_left], right[1][of_right]]).astype(np.int64))
    weights = x._held[tensor(of_left)] * other._held[tensor(of_right)]
    return made_of(places, weights, (x._extents[0], other._extents[1])).coalesce()


# --- the same elements ---------------------------------------------------------------------------

RULES |= {
    "transpose": SparseTensor.transpose,
    "permute": SparseTensor.permute,
    "clone": SparseTensor.clone,
    "select": SparseTensor.select,
    "index_select": SparseTensor.index_select,
    "unsqueeze": SparseTensor.unsqueeze,
    "cast": SparseTensor.to,
}

# --- sums and elementwise -------------------------------------------------------------------------


@_rule("add", "add_scaled")
def _sum_of_two(x: Any, other: Any, alpha: Any = 1) -> Any:
    if not isinstance(x, SparseTensor):
        return math.add(x, (other * alpha if alpha != 1 else other).to_dense())
    if not isinstance(other, SparseTensor):
        raise errors.OperandError(
            "add(sparse, dense) is not supported. Use add(dense, sparse) instead."
        )
    if x._extents != other._extents:
        raise errors.OperandError(f"shapes {x._extents} and {other._extents} differ")
    values = other._held * alpha if alpha != 1 else other._held
    places, values = cat([x._places, other._places], 1), cat([x._held, values])
    made = made_of(places, values, x._extents)
    return made.coalesce() if x._is_coalesced and other._is_coalesced else made


@_rule("sub")
def _difference(x: Any, other: Any, alpha: Any = 1) -> Any:
    return _sum_of_two(x, other, -alpha)


@_rule("mul")
def _scaled(x: Any, other: Any) -> Any:
    if not isinstance(x, SparseTensor):
        x, other = other, x
    if isinstance(other, SparseTensor):
        other = other.to_dense()
    if not isinstance(other, Tensor) or other.ndim == 0:
        return x._with(x._held * other)
    spread = other.expand(*x._extents)
    return x._with(x._held * spread[tuple(x._places)])


@_rule("div", "true_divide")
def _quotient(x: Any, other: Any, rounding_mode: Any = None) -> Any:
    if isinstance(x, SparseTensor) and (not isinstance(other, Tensor) or other.ndim == 0):
        same = x if rounding_mode is None else x.coalesce()
        return same._with(math.div(same._held, other, rounding_mode=rounding_mode))
    raise errors.OperandError("a sparse tensor can be divided by a number only")


@_rule("neg")
def _negative(x: SparseTensor) -> SparseTensor:
    return x._with(-x._held)


def _of_values(name: str) -> Callable[..., SparseTensor]:
    """A function with f(0) = 0, of the values of each place."""

    def rule(x: SparseTensor, *rest: Any) -> SparseTensor:
        whole = x.coalesce()
        return whole._with(getattr(whole._held, name)(*rest))

    return rule


for _name in ("abs", "asin", "atan", "ceil", "expm1", "floor", "log1p", "relu", "round", "sign",
              "sin", "sinh", "sqrt", "square", "tan", "tanh", "trunc"):  # fmt: skip
    RULES[_name] = _of_values(_name)


@_rule("pow")
def _power(x: Any, exponent: Any) -> SparseTensor:
    if not isinstance(x, SparseTensor) or isinstance(exponent, Tensor) or exponent <= 0:
        raise errors.OperandError("a sparse tensor has powers of positive numbers only")
    whole = x.coalesce()
    return whole._with(whole._held**exponent)


@_rule("cat")
def _joined(tensors: Sequence[Any], *attributes: Any) -> SparseTensor:
    if not all(isinstance(part, SparseTensor) for part in tensors):
        raise errors.OperandError("cat joins sparse tensors with sparse ones, or dense with dense")
    axis = attributes[-1] if attributes else 0
    return joined(list(tensors), axis)


@_rule("sum")
def total(x: SparseTensor, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
    """The sum of all elements, dense; over some axes a sparse tensor, as in PyTorch."""
    x = x if dtype is None else x.to(dtype)
    axes = [dim] if isinstance(dim, int) else list(dim or range(x.ndim))
    gone = sorted({axis % x.ndim for axis in axes})
    count = x.sparse_dim()
    dense = [axis - count + 1 for axis in gone if axis >= count]
    values = x._held.sum(dense) if dense else x._held
    kept = [axis for axis in range(count) if axis not in gone]
    if not kept:
        whole = values.sum(0)
        return whole.reshape([1] * x.ndim) if keepdim else whole
    places = x._places[kept]
    extents = tuple([e for axis, e in enumerate(x._extents) if axis not in gone])
    made = made_of(places, values, extents).coalesce()
    if not keepdim:
        return made
    rows = [made._places[kept.index(axis)] if axis in kept else zeros_like_row(made)
            for axis in range(count)]  # fmt: skip
    shape = tuple([1 if axis in gone else e for axis, e in enumerate(x._extents)])
    return made_of(stack(rows), made._held.reshape(-1, *shape[count:]), shape, True)


def zeros_like_row(x: SparseTensor) -> Tensor:
    """Coordinates of an axis of extent 1."""
    return x._places[0] * 0


# --- mg.sparse ------------------------------------------------------------------------------------


@function(to="sparse", name="mm")
def mm(mat1: Any, mat2: Any, reduce: str = "sum") -> Any:
    """The product of two matrices of which one is sparse.

    >>> import monograph as mg
    >>> x = mg.sparse_coo_tensor([[0, 1], [2, 0]], [3.0, 4.0], (2, 3))
    >>> mg.sparse.mm(x, mg.ones(3, 1)).tolist()
    [[3.0], [4.0]]
    """
    if reduce != "sum":
        raise NotImplementedError(f"sparse.mm adds up; reduce={reduce!r} is not supported")
    return mat1 @ mat2


@function(to="sparse", name="sum")
def sum_of(input: SparseTensor, dim: Any = None, dtype: Any = None) -> Any:
    """The sum of all elements, or over some axes.

    >>> import monograph as mg
    >>> mg.sparse.sum(mg.sparse_coo_tensor([[0, 1]], [3.0, 4.0], (5,))).item()
    7.0
    """
    return total(input, dim, False, dtype)


@function(to="sparse", name="addmm")
def addmm(mat: Any, mat1: Any, mat2: Any, *, beta: float = 1.0, alpha: float = 1.0) -> Any:
    """beta · mat + alpha · (mat1 @ mat2), where mat1 is sparse.

    >>> import monograph as mg
    >>> x = mg.sparse_coo_tensor([[0], [0]], [3.0], (1, 1))
    >>> mg.sparse.addmm(mg.ones(1, 1), x, mg.ones(1, 1)).tolist()
    [[4.0]]
    """
    return mat * beta + (mat1 @ mat2) * alpha


def _along(x: SparseTensor, dim: int) -> tuple[SparseTensor, Any, Tensor]:
    """The values less the largest of their row along dim, and the logarithm of each row's sum."""
    whole = x.coalesce()
    if whole.dense_dim():
        raise errors.OperandError("softmax is of sparse tensors without dense axes")
    kept = [axis for axis in range(whole.ndim) if axis != dim % whole.ndim]
    places = whole._places._array()[kept]
    _, rows = np.unique(places, axis=1, return_inverse=True)
    row = tensor(rows.reshape(-1).astype(np.int64))
    count = int(rows.max(initial=-1)) + 1
    least = full((count,), -float("inf"), dtype=whole.dtype)
    top = least.scatter_reduce(0, row, whole._held.detach(), "amax")
    shifted = whole._held - top[row]
    sums: Any = zeros(count, dtype=whole.dtype).index_add(0, row, shifted.exp())
    return whole, shifted, sums.log()[row]


@function(to="sparse", name="softmax")
def softmax(input: SparseTensor, dim: int, *, dtype: Any = None) -> SparseTensor:
    """Softmax along an axis over the elements that are kept; the others count as -infinity.

    >>> import monograph as mg
    >>> mg.sparse.softmax(mg.sparse_coo_tensor([[0, 2]], [1.0, 1.0], (3,)), 0).values().tolist()
    [0.5, 0.5]
    """
    whole, shifted, logarithm = _along(input if dtype is None else input.to(dtype), dim)
    return whole._with((shifted - logarithm).exp())


@function(to="sparse", name="log_softmax")
def log_softmax(input: SparseTensor, dim: int, *, dtype: Any = None) -> SparseTensor:
    """The logarithm of `softmax`.

    >>> import monograph as mg
    >>> mg.sparse.log_softmax(mg.sparse_coo_tensor([[1]], [5.0], (3,)), 0).values().tolist()
    [0.0]
    """
    whole, shifted, logarithm = _along(input if dtype is None else input.to(dtype), dim)
    return whole._with(shifted - logarithm)


@function(method=True)
def sparse_mask(x: Tensor, mask: SparseTensor) -> SparseTensor:
    """The elements of a dense tensor at the places of a sparse one.

    >>> import monograph as mg
    >>> mg.ones(2, 2).sparse_mask(mg.sparse_coo_tensor([[0], [1]], [5.0], (2, 2))).values().tolist()
    [1.0]
    """
    whole = mask.coalesce()
    return whole._with(x[tuple(whole._places)])


def of_dtype(dtype: Any) -> Callable[..., SparseTensor]:
    """The constructors of early days, such as `torch.sparse.FloatTensor(indices, values, size)`."""

    def construct(*given: Any, device: Any = None) -> SparseTensor:
        if given and isinstance(given[0], int):
            return sparse_coo_tensor(given, dtype=dtype)
        if not given:
            return sparse_coo_tensor((0,), dtype=dtype)
        return sparse_coo_tensor(*given, dtype=dtype)

    return construct
