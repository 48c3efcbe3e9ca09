"""Products of vectors and matrices: matmul in all its forms, and sums with such a product."""

from __future__ import annotations

from typing import Any

from .. import errors
from ..ir import build, dtypes
from ..ir.dtypes import Kind
from ..ir.extent import agree
from ..tensor import Tensor
from .define import Scalar, function, operator
from .inplace import with_out

f = build.functions


def letter(n: int) -> str:
    """A name for axis n of a contraction, none of those that stand for rows and columns."""
    return chr(0x100 + n)


def contracted(letters_a: str, letters_b: str, letters_out: str, a: Any, b: Any) -> Any:
    """The contraction of operands of one dtype, which has a product."""
    if a.dtype is not b.dtype:
        raise ValueError(f"operands of one dtype are needed, got {a.dtype.name} and {b.dtype.name}")
    if a.dtype.kind is Kind.BOOL:
        raise NotImplementedError("products of matrices are not defined for bool")
    return build.einsum(letters_a, letters_b, letters_out, a, b)


def _require_rank(name: str, x: Any, rank: int) -> None:
    if x.ndim != rank:
        word = {1: "a vector", 2: "a matrix", 3: "a batch of matrices"}[rank]
        raise ValueError(f"{name} must be {word}, got shape {list(x.shape)}")


def _require_inner(x: Any, y: Any, size_x: int, size_y: int) -> None:
    if not agree(size_x, size_y):
        raise ValueError(f"inner sizes of {list(x.shape)} and {list(y.shape)} differ")


# --- products -----------------------------------------------------------------------------------


@operator(to=("", "linalg"), widen=False)
def matmul(x: Tensor, other: Tensor) -> Any:
    """The matrix product; leading axes broadcast, vectors are rows or columns as needed.

    >>> import monograph as mg
    >>> mg.matmul(mg.tensor([[1, 2], [3, 4]]), mg.tensor([1, 1])).tolist()
    [3, 7]
    """
    if x.ndim == 0 or other.ndim == 0:
        raise ValueError("both operands of matmul need at least one axis")
    left = "mk" if x.ndim > 1 else "k"
    right = "kn" if other.ndim > 1 else "k"
    _require_inner(x, other, x.shape[-1], other.shape[-2 if other.ndim > 1 else 0])
    lead = build.broadcast_shapes(x.shape[: -len(left)], other.shape[: -len(right)])
    batch = "".join([letter(n) for n in range(len(lead))])
    out = batch + left[:-1] + right[1:]
    a, letters_a = _without_broadcast(x, batch, left)
    b, letters_b = _without_broadcast(other, batch, right)
    missing = [c for c in batch if c not in letters_a + letters_b]
    kept = "".join([c for c in out if c not in missing])
    result = contracted(letters_a, letters_b, kept, a, b)
    return build.expand_dims(result, [out.index(c) for c in missing]) if missing else result


def _without_broadcast(x: Any, batch: str, tail: str) -> tuple[Any, str]:
    """Batch axes of size 1 leave the operand: the contraction repeats it without copying."""
    own = x.ndim - len(tail)
    names = batch[len(batch) - own :] + tail
    gone = [k for k in range(own) if x.shape[k] == 1]
    kept = "".join([c for k, c in enumerate(names) if k not in gone])
    shape = tuple([e for k, e in enumerate(x.shape) if k not in gone])
    return build.reshape(x, shape), kept


@operator(widen=False)
def mm(x: Tensor, mat2: Tensor) -> Any:
    """The product of two matrices.

    >>> import monograph as mg
    >>> mg.mm(mg.tensor([[1, 2], [3, 4]]), mg.tensor([[1], [1]])).tolist()
    [[3], [7]]
    """
    _require_rank("input", x, 2)
    _require_rank("mat2", mat2, 2)
    _require_inner(x, mat2, x.shape[1], mat2.shape[0])
    return contracted("mk", "kn", "mn", x, mat2)


@operator(widen=False)
def bmm(x: Tensor, mat2: Tensor) -> Any:
    """The products of two batches of matrices, one by one.

    >>> import monograph as mg
    >>> mg.bmm(mg.ones(5, 2, 3), mg.ones(5, 3, 4)).shape
    Size([5, 2, 4])
    """
    _require_batches(x, mat2)
    return contracted("amk", "akn", "amn", x, mat2)


def _require_batches(x: Any, y: Any) -> None:
    _require_rank("the first batch", x, 3)
    _require_rank("the second batch", y, 3)
    if x.shape[0] != y.shape[0]:
        raise ValueError(f"batches of {list(x.shape)} and {list(y.shape)} have different sizes")
    _require_inner(x, y, x.shape[2], y.shape[1])


@operator(widen=False)
def mv(x: Tensor, vec: Tensor) -> Any:
    """The product of a matrix and a vector.

    >>> import monograph as mg
    >>> mg.mv(mg.tensor([[1, 2], [3, 4]]), mg.tensor([1, 1])).tolist()
    [3, 7]
    """
    _require_rank("input", x, 2)
    _require_rank("vec", vec, 1)
    _require_inner(x, vec, x.shape[1], vec.shape[0])
    return contracted("mk", "k", "m", x, vec)


@operator(widen=False)
def dot(x: Tensor, tensor: Tensor) -> Any:
    """The scalar product of two vectors.

    >>> import monograph as mg
    >>> mg.dot(mg.tensor([1, 2]), mg.tensor([3, 4])).item()
    11
    """
    _require_rank("input", x, 1)
    _require_rank("tensor", tensor, 1)
    _require_inner(x, tensor, x.shape[0], tensor.shape[0])
    return contracted("k", "k", "", x, tensor)


@operator(widen=False)
def vdot(x: Tensor, other: Tensor) -> Any:
    """The scalar product of two vectors, the first one conjugated.

    >>> import monograph as mg
    >>> mg.vdot(mg.tensor([1j]), mg.tensor([1j])).item()
    (1+0j)
    """
    return dot(f.conj(x), other)


@operator(widen=False)
def inner(x: Tensor, other: Tensor) -> Any:
    """The scalar products along the last axes; a number multiplies.

    >>> import monograph as mg
    >>> mg.inner(mg.tensor([[1, 2], [3, 4]]), mg.tensor([1, 1])).tolist()
    [3, 7]
    """
    if x.ndim == 0 or other.ndim == 0:
        return x * other
    _require_inner(x, other, x.shape[-1], other.shape[-1])
    own = "".join([letter(n) for n in range(x.ndim - 1)])
    others = "".join([letter(n + x.ndim) for n in range(other.ndim - 1)])
    return contracted(own + "k", others + "k", own + others, x, other)


@operator(aliases=("ger",))
def outer(x: Tensor, vec2: Tensor) -> Any:
    """out[i, j] = input[i] · vec2[j].

    >>> import monograph as mg
    >>> mg.outer(mg.tensor([1, 2]), mg.tensor([3, 4])).tolist()
    [[3, 4], [6, 8]]
    """
    _require_rank("input", x, 1)
    _require_rank("vec2", vec2, 1)
    return build.expand_dims(x, [1]) * build.expand_dims(vec2, [0])


# --- sums with a product ------------------------------------------------------------------------


@operator(to=None, method=False, widen=False)
def plus_product(
    x: Tensor, a: Tensor, b: Tensor, beta: Scalar | None, alpha: Scalar | None,
    letters: tuple[str, str, str], alone: bool,
) -> Any:  # fmt: skip
    """beta · x + alpha · (a contracted with b); `alone` leaves out x, even where it is NaN."""
    if x.dtype is not a.dtype:
        raise ValueError(f"input has dtype {x.dtype.name}, the factors {a.dtype.name}")
    product = contracted(*letters, a, b)
    term = build.broadcast_to(x, product.shape)
    wide = dtypes.accumulator(x.dtype) if x.dtype.is_half else x.dtype
    scaled = _times(build.cast(product, wide), alpha)
    if not alone:
        scaled = _times(build.cast(term, wide), beta) + scaled
    return build.cast(scaled, x.dtype)


def _times(x: Any, factor: Any) -> Any:
    return x if factor is None else x * build.as_node(factor, x.dtype)


def _factors(beta: Any, alpha: Any, whole: bool) -> tuple[Any, Any, bool]:
    """(beta, alpha, whether beta is 0), with None for 1: structure. Other values are slots."""
    numbers = [n.item() if isinstance(n, Tensor) else n for n in (beta, alpha)]
    if whole:
        numbers = [int(n) for n in numbers]
    alone = numbers[0] == 0
    given = [None if n == 1 else n for n in numbers]
    return None if alone else given[0], given[1], alone


def _added(
    x: Tensor, a: Tensor, b: Tensor, beta: Any, alpha: Any, letters: tuple[str, str, str]
) -> Any:
    beta, alpha, alone = _factors(beta, alpha, x.dtype.kind < Kind.FLOAT)
    return plus_product(x, a, b, beta, alpha, letters, alone)


def _refuse(name: str, problem: str) -> errors.OperandError:
    return errors.OperandError(f"{name}: {problem}")


def _ranks(name: str, a: Tensor, b: Tensor, rank_a: int, rank_b: int) -> None:
    """Factors of the right number of axes, with equal inner sizes."""
    shapes = f"{list(a.shape)} and {list(b.shape)}"
    if a.ndim != rank_a or b.ndim != rank_b:
        raise _refuse(name, f"factors need {rank_a} and {rank_b} axes, got {shapes}")
    if rank_a == 3 and a.shape[0] != b.shape[0]:
        raise _refuse(name, f"batches of {shapes} have different sizes")
    if a.shape[-1] != b.shape[-2 if rank_b > 1 else 0]:
        raise _refuse(name, f"inner sizes of {shapes} differ")


@function(method=True, inplace=True)
@with_out
def addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """beta · input + alpha · (mat1 @ mat2).

    >>> import monograph as mg
    >>> mg.addmm(mg.ones(2), mg.tensor([[1.0, 2.0]]), mg.ones(2, 2), alpha=10).tolist()
    [[31.0, 31.0]]
    """
    _ranks("addmm", mat1, mat2, 2, 2)
    return _added(input, mat1, mat2, beta, alpha, ("mk", "kn", "mn"))


@function(method=True, inplace=True)
@with_out
def addmv(input: Tensor, mat: Tensor, vec: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """beta · input + alpha · (mat @ vec).

    >>> import monograph as mg
    >>> mg.addmv(mg.ones(2), mg.ones(2, 2), mg.tensor([1.0, 2.0]), beta=10).tolist()
    [13.0, 13.0]
    """
    _ranks("addmv", mat, vec, 2, 1)
    return _added(input, mat, vec, beta, alpha, ("mk", "k", "m"))


@function(method=True, inplace=True)
@with_out
def addbmm(
    input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Any = 1, alpha: Any = 1
) -> Tensor:
    """beta · input + alpha · (the sum of the products of two batches of matrices).

    >>> import monograph as mg
    >>> mg.addbmm(mg.zeros(2, 2), mg.ones(5, 2, 3), mg.ones(5, 3, 2)).tolist()
    [[15.0, 15.0], [15.0, 15.0]]
    """
    _ranks("addbmm", batch1, batch2, 3, 3)
    return _added(input, batch1, batch2, beta, alpha, ("amk", "akn", "mn"))


@function(method=True, inplace=True)
@with_out
def baddbmm(
    input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Any = 1, alpha: Any = 1
) -> Tensor:
    """beta · input + alpha · (the products of two batches of matrices).

    >>> import monograph as mg
    >>> mg.baddbmm(mg.ones(1), mg.ones(5, 2, 3), mg.ones(5, 3, 4)).shape
    Size([5, 2, 4])
    """
    _ranks("baddbmm", batch1, batch2, 3, 3)
    return _added(input, batch1, batch2, beta, alpha, ("amk", "akn", "amn"))


@operator(to=None, method=False)
def plus_outer(
    x: Tensor, vec1: Tensor, vec2: Tensor, beta: Scalar | None, alpha: Scalar | None, alone: bool
) -> Any:
    """beta · x + alpha · (vec1 times vec2, each element with each); of truth values or, and."""
    _require_rank("vec1", vec1, 1)
    _require_rank("vec2", vec2, 1)
    common = build.common_dtype([x, vec1, vec2])
    product = build.expand_dims(build.cast(vec1, common), [1]) * build.expand_dims(
        build.cast(vec2, common), [0]
    )
    term = build.broadcast_to(build.cast(x, common), product.shape)
    product = _times(product, alpha)
    if alone:
        return product
    join = f.maximum if common is dtypes.bool_ else f.add
    return join(_times(term, beta), product)


@function(method=True, inplace=True)
@with_out
def addr(input: Tensor, vec1: Tensor, vec2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """beta · input + alpha · outer(vec1, vec2).

    >>> import monograph as mg
    >>> mg.addr(mg.zeros(2, 2), mg.tensor([1.0, 2.0]), mg.ones(2)).tolist()
    [[1.0, 1.0], [2.0, 2.0]]
    """
    kind = max(input.dtype.kind, vec1.dtype.kind, vec2.dtype.kind)
    for name, number in (("beta", beta), ("alpha", alpha)):
        if kind < Kind.FLOAT and isinstance(number, (float, complex)):
            raise _refuse("addr", f"with integers {name} must be one too, got {number}")
        if kind is not Kind.BOOL and isinstance(number, bool):
            raise _refuse("addr", f"a bool as {name} is only taken with truth values")
    beta, alpha, alone = _factors(beta, alpha, False)
    result: Tensor = plus_outer(input, vec1, vec2, beta, alpha, alone)
    return result


@operator(to="nn.functional", method=False, widen=False)
def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Any:
    """x · weightᵀ + bias.

    >>> import monograph as mg
    >>> mg.nn.functional.linear(mg.ones(1, 2), mg.tensor([[1.0, 2.0]]), mg.tensor([0.5])).tolist()
    [[3.5]]
    """
    if x.shape[-1:] != weight.shape[-1:]:
        raise ValueError(
            f"the input's last size {list(x.shape)} must equal the weight's {list(weight.shape)}"
        )
    for other in (weight,) if bias is None else (weight, bias):
        if other.dtype is not x.dtype:
            raise ValueError(
                f"operands of one dtype are needed, got {x.dtype.name} and {other.dtype.name}"
            )
    rows = 1
    for extent in x.shape[:-1]:
        rows *= extent
    flat = build.reshape(x, (rows, x.shape[-1]))
    out = build.einsum("mk", "nk", "mn", flat, weight)
    out = build.reshape(out, (*x.shape[:-1], weight.shape[0]))
    return out if bias is None else out + bias
