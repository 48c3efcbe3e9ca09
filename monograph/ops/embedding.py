"""Embeddings: rows of a table at integer places, one by one or a bag at a time."""

from __future__ import annotations

from typing import Any

from ..autograd.modes import no_grad
from ..errors import OperandError
from ..ir import build
from ..ir.dtypes import int64
from ..ir.index import Read, within, wrap
from ..ir.node import axis, coordinates
from ..tensor import Tensor
from .define import Scalar, function, operator
from .linalg.norms import vector_norm
from .places import slices

f = build.functions


def _lines(where: Any) -> Any:
    """Indices as one line of int64."""
    if where.dtype.name not in ("int32", "int64"):
        raise ValueError(f"indices must be int32 or int64, got {where.dtype.name}")
    return build.reshape(build.cast(where, int64), (where.size,))


def _rows(weight: Any, line: Any) -> Any:
    """The rows of weight at a line of places."""
    if weight.ndim != 2:
        raise ValueError(f"weight must be a matrix, got {list(weight.shape)}")
    if weight.size == 0 or line.size == 0:
        return build.full((line.size, weight.shape[1]), 0, weight.dtype)
    return slices(weight, 0, line).read(weight)


@operator(to=None, method=False, name="embedding")
def rows_by_frequency(weight: Tensor, where: Tensor) -> Any:
    """Rows of weight, whose gradients are divided by how often each is read."""
    return build.apply("mark", _rows(weight, where))  # else a reshape would see through it


@rows_by_frequency.derivative
def _(g: Any, y: Any, weight: Any, where: Any) -> Any:
    if g.size == 0 or weight.size == 0:
        return (build.full(weight.shape, 0, weight.dtype), None)
    region = slices(weight, 0, where)
    often = slices(build.full((weight.shape[0],), 0, int64), 0, where).hit((weight.shape[0],))
    share = 1.0 / build.cast(f.maximum(often, 1), g.dtype)
    return (region.combine("add", g, weight.shape) * build.expand_dims(share, [1]), None)


@operator(to=None, method=False, name="embedding")
def look_up(weight: Tensor, where: Tensor, padding_idx: int | None, by_frequency: bool) -> Any:
    """Rows of weight; the row padding_idx gets no gradient."""
    line = _lines(where)
    rows = rows_by_frequency(weight, line) if by_frequency else _rows(weight, line)
    if padding_idx is not None:
        is_padding = build.expand_dims(f.eq(line, padding_idx), [1])
        rows = build.select(is_padding, build.apply("detach", rows), rows)
    return build.reshape(rows, (*where.shape, weight.shape[1]))


@operator(to=None, method=False, smooth=False)
def renormed(weight: Tensor, where: Tensor, max_norm: Scalar, norm_type: float) -> Any:
    """weight with the rows that are read held to the length max_norm."""
    line = _lines(where)
    rows = weight.shape[0]
    if not line.size or not weight.size:
        return weight
    often = slices(build.full((rows,), 0, int64), 0, line).hit((rows,))
    size = vector_norm(weight, norm_type, 1, True)
    long = build.elementwise("and", build.expand_dims(often, [1]) > 0, size > max_norm)
    return build.select(long, weight * (max_norm / (size + 1e-7)), weight)


@function
def embedding_renorm_(
    weight: Tensor, input: Tensor, max_norm: float, norm_type: float = 2.0
) -> Tensor:
    """Hold the rows of weight that `input` names to the length max_norm, in place.

    >>> import monograph as mg
    >>> mg.embedding_renorm_(mg.tensor([[3.0], [3.0]]), mg.tensor([1]), 1.0).round().tolist()
    [[3.0], [1.0]]
    """
    with no_grad():
        new = renormed(weight, input, float(max_norm), float(norm_type))
        return weight._write(new, fresh=True)


def _padding(weight: Tensor, padding_idx: int | None) -> int | None:
    rows = weight.shape[0]
    if padding_idx is None or 0 <= padding_idx < rows:
        return padding_idx
    if -rows <= padding_idx < 0:
        return padding_idx + rows
    raise AssertionError(f"padding_idx must be within num_embeddings, {padding_idx} is not")


@function(to="nn.functional")
def embedding(
    input: Tensor, weight: Tensor, padding_idx: int | None = None, max_norm: float | None = None,
    norm_type: float = 2.0, scale_grad_by_freq: bool = False, sparse: bool = False,
) -> Tensor:  # fmt: skip
    """Rows of weight at the indices; the row padding_idx gets no gradient.

    With `max_norm`, rows that are read are first held to that length, in place. Gradients are dense
    also where `sparse` asks for sparse ones.

    >>> import monograph as mg
    >>> mg.nn.functional.embedding(mg.tensor([1, 0]), mg.tensor([[1.0], [2.0]])).tolist()
    [[2.0], [1.0]]
    """
    if padding_idx is not None:
        padding_idx = _padding(weight, padding_idx)
    if max_norm is not None:
        embedding_renorm_(weight, input, max_norm, norm_type)
    return look_up(weight, input, padding_idx, scale_grad_by_freq)  # type: ignore[no-any-return]


@function(name="embedding")
def embedding_of(
    weight: Tensor, indices: Tensor, padding_idx: int = -1, scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:  # fmt: skip
    """nn.functional.embedding with the table first; -1 is no padding.

    >>> import monograph as mg
    >>> mg.embedding(mg.tensor([[1.0], [2.0]]), mg.tensor([1])).tolist()
    [[2.0]]
    """
    padding = None if padding_idx < 0 else padding_idx
    return look_up(weight, indices, padding, scale_grad_by_freq)  # type: ignore[no-any-return]


# --- bags ---------------------------------------------------------------------------------------


def _bag_numbers(offsets: Any, count: int) -> Any:
    """For each of `count` indices the bag it is in: how many bags begin at it or before, less one.

    The beginnings are counted at their places, and summed up by doubling the reach.
    """
    begins = build.select(offsets > count - 1, build.const(count, int64), offsets)
    bag = axis(0, begins.shape[0])
    ones = build.full(begins.shape, 1, int64)
    place = Read(0, (bag,), count + 1)
    total = build.scatter("add", ones, (count + 1,), [place], (), (begins,))
    reach = 1
    while reach < count:
        before = wrap(axis(0, count + 1)) - reach
        total = total + build.reindex(total, total.shape, [before], within(before, count + 1))
        reach *= 2
    line = build.reindex(total, (count,), [axis(0, count)])
    return f.maximum(line - 1, 0)


def _to_bags(how: str, values: Any, bags: Any, count: int) -> Any:
    """Values [I, …] combined by the bag of each."""
    here = coordinates(values.shape)
    place = (Read(0, (here[0],), count), *here[1:])
    return build.scatter(how, values, (count, *values.shape[1:]), place, (), (bags,))


@operator(to=None, method=False, name="embedding_bag")
def bags_of(
    weight: Tensor, where: Tensor, offsets: Tensor | None, per_sample_weights: Tensor | None,
    mode: str, by_frequency: bool, last_offset: bool, padding_idx: int | None,
) -> Any:  # fmt: skip
    """The sum, mean or largest of the rows in each bag: a row of `where`, or from an offset on."""
    line = _lines(where)
    rows = rows_by_frequency(weight, line) if by_frequency else _rows(weight, line)
    counted = build.full(line.shape, True, f.eq(line, 0).dtype)
    if padding_idx is not None:
        counted = f.ne(line, padding_idx)
    if per_sample_weights is not None:
        rows = rows * build.reshape(per_sample_weights, (line.size, 1))
    if offsets is None:
        count = where.shape[0]

        def combine(how: str, values: Any) -> Any:
            split = (*where.shape, *values.shape[1:])
            if 0 in split:
                return build.full((count, *values.shape[1:]), 0, values.dtype)
            return build.reduce(how, build.reshape(values, split), (1,))
    else:
        count = offsets.size - last_offset
        bags = _bag_numbers(build.cast(offsets, int64), line.size) if line.size and count else None

        def combine(how: str, values: Any) -> Any:
            if bags is None or 0 in values.shape:
                return build.full((count, *values.shape[1:]), 0, values.dtype)
            return _to_bags(how, values, bags, offsets.size)

    made = _combined(mode, rows, counted, combine)
    return build.reindex(made, (count, made.shape[1]), coordinates((count, made.shape[1])))


def _combined(mode: str, rows: Any, counted: Any, combine: Any) -> Any:
    column = build.expand_dims(counted, [1])
    if mode == "max":
        low = build.const(float("-inf"), rows.dtype)
        top = combine("max", build.select(column, rows, low))
        filled = build.expand_dims(combine("add", build.cast(counted, int64)), [1]) > 0
        return build.select(filled, top, build.const(0, rows.dtype))
    total = combine("add", build.select(column, rows, build.const(0, rows.dtype)))
    if mode == "sum":
        return total
    number = f.maximum(combine("add", build.cast(counted, int64)), 1)
    return total / build.cast(build.expand_dims(number, [1]), rows.dtype)


def _require_bags(
    input: Tensor, weight: Tensor, offsets: Any, samples: Any, mode: str, by_frequency: bool,
) -> None:  # fmt: skip
    if mode not in ("sum", "mean", "max"):
        raise ValueError(f"mode has to be one of sum, mean or max, got {mode!r}")
    if samples is not None:
        if tuple(samples.shape) != tuple(input.shape):
            raise ValueError(
                f"embedding_bag: per_sample_weights {list(samples.shape)} must be as large as "
                f"the input {list(input.shape)}"
            )
        if mode != "sum":
            raise NotImplementedError(
                f"embedding_bag: per_sample_weights go with mode 'sum' only, got {mode!r}"
            )
    if input.ndim == 2 and offsets is not None:
        raise ValueError("embedding_bag: offsets have to be None where the input has 2 axes")
    if input.ndim == 1 and (offsets is None or offsets.ndim != 1):
        raise ValueError("embedding_bag: an input of 1 axis needs offsets of 1 axis")
    if input.ndim not in (1, 2):
        raise ValueError(f"embedding_bag: the input has 1 or 2 axes, got {list(input.shape)}")
    if by_frequency and mode == "max":
        raise OperandError("embedding_bag: scale_grad_by_freq does not go with mode 'max'")


@function(to="nn.functional")
def embedding_bag(
    input: Tensor, weight: Tensor, offsets: Tensor | None = None, max_norm: float | None = None,
    norm_type: float = 2, scale_grad_by_freq: bool = False, mode: str = "mean",
    sparse: bool = False, per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False, padding_idx: int | None = None,
) -> Tensor:  # fmt: skip
    """The sum, mean or largest of the rows of weight in each bag.

    A bag is a row of a two-dimensional input, or begins at one of the offsets. An index equal to
    padding_idx is left out.

    >>> import monograph as mg
    >>> table = mg.tensor([[1.0], [2.0], [4.0]])
    >>> mg.nn.functional.embedding_bag(mg.tensor([[0, 1], [1, 2]]), table, mode="sum").tolist()
    [[3.0], [6.0]]
    """
    _require_bags(input, weight, offsets, per_sample_weights, mode, scale_grad_by_freq)
    include_last_offset = include_last_offset and input.ndim == 1  # rows are bags without offsets
    if include_last_offset and (offsets is None or not offsets.numel()):
        raise OperandError("embedding_bag: include_last_offset needs offsets")
    if padding_idx is not None:
        padding_idx = _padding(weight, padding_idx)
    if max_norm is not None:
        embedding_renorm_(weight, input, max_norm, norm_type)
    return bags_of(  # type: ignore[no-any-return]
        weight, input, offsets, per_sample_weights, mode, scale_grad_by_freq,
        include_last_offset, padding_idx,
    )  # fmt: skip
