"""Where the elements of a tensor lie in its storage: offset and strides, as PyTorch has them.

A view is a chain of operators over its storage. Running their definitions on a placeholder gives
one index map; where that is affine in the coordinates, its constant is the offset and its
coefficients are the strides. Where it is not, the result cannot be a view: `view` refuses and
`reshape` copies. Nothing here is physical: how arrays lie in memory is the compiler's business.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

from .ir import build, index
from .ir.dtypes import DType
from .ir.node import (
    Buffer,
    Const,
    Map,
    Node,
    Random,
    Reindex,
    Shape,
    Slot,
    ancestors,
    axis,
    interning,
)
from .ir.operator import Operator
from .storage import Meta, laid_out, meta_of, together
from .strides import channels_last, contiguous, dense_like, follow, suggest_channels_last


@dataclass(frozen=True)
class Geometry:
    """Element i of the tensor is element offset + Σ strides[k] · i[k] of the storage.

    Counted in elements of the tensor's own dtype: of a complex storage a view may be of floats.
    What lies there is read through a function where `reads` names one: "conj" or "neg".
    """

    shape: Shape
    strides: tuple[int, ...]
    offset: int
    dtype: DType
    reads: str = ""

    @cached_property
    def size(self) -> int:
        """The number of elements."""
        result = 1
        for extent in self.shape:
            result *= extent
        return result

    @cached_property
    def is_contiguous(self) -> bool:
        """Whether the elements follow each other in the order of the last axis first."""
        return self.size < 2 or follow(range(len(self.shape)), self.shape, self.strides)

    @cached_property
    def is_channels_last(self) -> bool:
        """Whether they do with axis 1 innermost, as images with their channels last."""
        rank = len(self.shape)
        return rank in (4, 5) and follow((0, *range(2, rank), 1), self.shape, self.strides)

    @cached_property
    def is_dense(self) -> bool:
        """Whether the elements fill a stretch of the storage, in any order of the axes."""
        filled = 1
        for stride, extent in sorted(zip(self.strides, self.shape, strict=True)):
            if extent > 1 and stride != filled:
                return False
            filled *= extent
        return True

    @cached_property
    def overlaps(self) -> bool:
        """Whether two elements may share a place: an axis is repeated, or axes interleave."""
        reach = 0
        for stride, extent in sorted(zip(self.strides, self.shape, strict=True)):
            if extent < 2:
                continue
            if stride <= reach:
                return True
            reach += stride * (extent - 1)
        return False


_known: dict[tuple[Any, ...], Geometry | None] = {}


def geometry_of(
    meta: Meta, strides: tuple[int, ...] | None, chain: tuple[Any, ...]
) -> Geometry | None:
    """The geometry of a chain of views over a storage of kind `meta`; None if it is not affine."""
    if chain and chain[-1][0].name in _PLAIN:
        return _of_plain(meta, strides, chain)
    return _of_any(meta, strides, chain)


def memory_seen(meta: Meta, chain: tuple[Any, ...]) -> Geometry | None:
    """The geometry of a view in a storage's memory, which lies in the order of its axes.

    None if no strides show the view as it is: it is conjugated or negated when it is read, or the
    storage is said to lie in another order.
    """
    found = geometry_of(meta, None, chain)
    return None if found is None or found.reads else found


def _of_any(meta: Meta, strides: tuple[int, ...] | None, chain: tuple[Any, ...]) -> Geometry | None:
    key = (meta, strides, chain)
    try:
        return _known[key]
    except KeyError:
        whole = contiguous(meta.shape) if strides is None else strides
        found = _known[key] = _work_out(meta, whole, chain)
        return found


def _work_out(meta: Meta, strides: tuple[int, ...], chain: tuple[Any, ...]) -> Geometry | None:
    here: Geometry | None = Geometry(meta.shape, strides, 0, meta.dtype)
    run: list[Any] = []  # steps that keep the dtype
    for step in chain:
        if step[0].name == "as_strided":  # its line is solved already, so its map need not be
            here, run = None if here is None else _strided(here, run, step[1]), []
            continue
        part = _PARTS.get(step[0].name)
        if part is None:
            run.append(step)
            continue
        here = None if here is None else _moved(here, run)
        here, run = None if here is None else part(here), []
    return None if here is None else _moved(here, run)


def _strided(base: Geometry, chain: list[Any], attributes: tuple[Any, ...]) -> Geometry | None:
    """The geometry of sizes, strides and an offset over a line."""
    line = _moved(base, chain)
    if line is None:
        return None
    size, stride, offset = attributes
    step = line.strides[0]
    strides = tuple([step * each for each in stride])
    return replace(line, shape=tuple(size), strides=strides, offset=line.offset + step * offset)


def _moved(base: Geometry, chain: list[Any]) -> Geometry | None:
    """The geometry of a chain of index maps over another."""
    with interning():
        node: Node = build.buffer(0, base.shape, base.dtype)
        for operator, attributes in chain:
            if operator.smooth:  # detach moves nothing
                (node,) = operator.expand((node,), attributes)
        if 0 in node.shape:
            return _empty(base, node.shape)
        if not isinstance(node, Reindex):
            return replace(base, shape=node.shape)
        if node.guard or len(node.inputs) > 1:
            return None
        return _affine(node, base)


def _affine(node: Reindex, base: Geometry) -> Geometry | None:
    flat = index.flatten(node.index, base.strides)
    offset, terms = index.split(flat)
    coordinates = {axis(k, extent): k for k, extent in enumerate(node.shape)}
    found = [0] * len(node.shape)
    for atom, coefficient in terms.items():
        if atom not in coordinates:
            return None
        found[coordinates[atom]] = coefficient  # type: ignore[index]
    return _placed(base, node.shape, found, base.offset + offset)


def _empty(base: Geometry, shape: Shape) -> Geometry:
    return replace(base, shape=shape, strides=contiguous(shape), offset=0)


def _placed(base: Geometry, shape: Shape, strides: list[int], offset: int) -> Geometry:
    return Geometry(shape, _with_units(shape, strides), offset, base.dtype, base.reads)


# --- steps by plain numbers, ever new ones: only the latest are remembered ---


@lru_cache(1024)
def _of_plain(
    meta: Meta, strides: tuple[int, ...] | None, chain: tuple[Any, ...]
) -> Geometry | None:
    operator, attributes = chain[-1]
    base = geometry_of(meta, strides, chain[:-1])
    if base is None or not all([extent.__class__ is int for extent in base.shape]):
        return _of_any(meta, strides, chain)
    return _PLAIN[operator.name](base, *attributes)


def _indexed(base: Geometry, places: tuple[Any, ...]) -> Geometry:
    """That of `x[places]`, for integers, (start, stop, step) triples and None."""
    shape: list[int] = []
    strides: list[int] = []
    offset, k = base.offset, 0
    for place in places:
        if place is None:
            shape.append(1)
            strides.append(0)
            continue
        extent, stride = base.shape[k], base.strides[k]
        k += 1
        if place.__class__ is tuple:
            start, stop, step = slice(*place).indices(extent)
            shape.append(len(range(start, stop, step)))
            strides.append(stride * step)
            offset += stride * start
        elif -extent <= place < extent:
            offset += stride * (place + extent if place < 0 else place)
        else:
            raise IndexError(f"index {place} is out of range for an axis of size {extent}")
    shape += base.shape[k:]
    strides += base.strides[k:]
    if tuple(shape) == base.shape and tuple(strides) == base.strides:
        return base
    if 0 in shape:
        return _empty(base, tuple(shape))
    return _placed(base, tuple(shape), strides, offset)


def _selected(base: Geometry, dim: int, place: int) -> Geometry:
    return _indexed(base, (*[(None, None, None)] * range(len(base.shape))[dim], place))


def _unsqueezed(base: Geometry, dim: int) -> Geometry:
    return _indexed(base, (*[(None, None, None)] * range(len(base.shape) + 1)[dim], None))


_PLAIN: dict[str, Callable[..., Geometry]] = {
    "index": _indexed,
    "select": _selected,
    "unsqueeze": _unsqueezed,
}


# --- parts of complex numbers, which lie side by side, and what is read through a function ---


def _halves(base: Geometry, shift: int, last: tuple[int, ...] = ()) -> Geometry | None:
    if not base.dtype.is_complex:
        return None
    strides = tuple([2 * stride for stride in base.strides])
    shape = (*base.shape, *[2 for _ in last])
    reads = "neg" if base.reads and shift else ""
    return Geometry(shape, (*strides, *last), 2 * base.offset + shift, base.dtype.to_real(), reads)


def _joined(base: Geometry) -> Geometry | None:
    if base.shape[-1:] != (2,) or base.reads:
        return None
    *strides, last = base.strides
    if last != 1 or base.offset % 2 or any(stride % 2 for stride in strides):
        return None
    half = tuple([stride // 2 for stride in strides])
    return Geometry(base.shape[:-1], half, base.offset // 2, base.dtype.to_complex())


def _read_through(name: str) -> Callable[[Geometry], Geometry]:
    return lambda base: replace(base, reads="" if base.reads else name)  # twice is not at all


_PARTS: dict[str, Callable[[Geometry], Geometry | None]] = {
    "conj": _read_through("conj"),
    "_neg_view": _read_through("neg"),
    "real": lambda base: _halves(base, 0),
    "imag": lambda base: _halves(base, 1),
    "view_as_real": lambda base: None if base.reads else _halves(base, 0, (1,)),
    "view_as_complex": _joined,
}


def _with_units(shape: Shape, strides: list[int]) -> tuple[int, ...]:
    """Strides of axes of size 1, which no coordinate tells: as if the next axis were whole."""
    result = list(strides)
    for k in reversed(range(len(shape))):
        if shape[k] == 1:
            last = k == len(shape) - 1
            result[k] = 1 if last else max(shape[k + 1], 1) * result[k + 1]
    return tuple(result)


# --- how results lie ------------------------------------------------------------------------------


def kinds_of(
    operator: Operator, attributes: tuple[Any, ...], inputs: Sequence[Any], outputs: Sequence[Node]
) -> tuple[Meta, ...]:
    """The kinds of an operator's results: views lie where they do, elementwise results as operands.

    Decided once per signature, since the kinds of inputs hold their strides.
    """
    plain = tuple([meta_of(node.shape, node.dtype) for node in outputs])
    given = [kind for kind in inputs if isinstance(kind, Meta)]
    if operator.view:
        seen = geometry_of(given[0].plain, given[0].strides, ((operator, attributes),))
        return plain if seen is None else (laid_out(plain[0], seen.strides),)
    if all(kind.strides is None for kind in given) or operator.lies == "contiguous":
        return plain
    if operator.lies == "images":
        first = given[:2]  # images and, of a convolution, its weight
        if any(suggest_channels_last(k.shape, k.strides or contiguous(k.shape)) for k in first):
            return tuple([_as_images(kind) for kind in plain])
        return plain
    if operator.lies == "operand":
        return tuple([_as_operand(kind, given[0]) for kind in plain])
    return tuple([_as_operands(p, y, inputs) for p, y in zip(plain, outputs)])


def _as_operands(kind: Meta, result: Node, inputs: Sequence[Any]) -> Meta:
    """An elementwise result lies as the operands do that it is made of; others are plain."""
    if not _is_elementwise(result):
        return kind
    used = {node.number for node in ancestors([result]) if isinstance(node, Buffer)}
    return together(kind, [inputs[number] for number in sorted(used)])


def _as_operand(kind: Meta, operand: Meta) -> Meta:
    """The axes in the order of the operand's; sizes may differ."""
    if operand.strides is None or len(kind.shape) != len(operand.shape):
        return kind
    return laid_out(kind, dense_like(kind.shape, [(kind.shape, operand.strides)]))


def _as_images(kind: Meta) -> Meta:
    return laid_out(kind, channels_last(kind.shape)) if len(kind.shape) in (4, 5) else kind


def _is_elementwise(result: Node) -> bool:
    """Whether each element is made of the elements at its place, operands being broadcast."""
    return all(
        isinstance(node, (Map, Buffer, Const, Slot, Random))
        or (isinstance(node, Reindex) and _is_broadcast(node))
        for node in ancestors([result])
    )


def _is_broadcast(node: Reindex) -> bool:
    source = node.inputs[0]
    lead = len(node.shape) - len(source.shape)
    if node.guard or len(node.inputs) > 1 or lead < 0:
        return False
    for k, place in enumerate(node.index):
        repeated = source.shape[k] == 1 and place == index.ZERO
        if not repeated and place != index.wrap(axis(lead + k, node.shape[lead + k])):
            return False
    return True
