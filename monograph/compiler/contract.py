"""Contractions to library calls: matrix products by their strides, convolutions by their maps.

A Contract is classified by which operands each domain coordinate occurs in. Operands that are
views of something materialised are handed over as strides, without a copy; one whose strides no
library takes is materialised first. What fits no library stays a contraction and is expanded into
loops by the caller. This module decides; it does not know the library.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..ir import index
from ..ir.extent import hint, proven
from ..ir.index import Expr, Var
from ..ir.node import Contract, Node, Reindex, coordinates

Strides = Callable[[Node], tuple[int, ...]]  # how a materialised node lies in memory


@dataclass(frozen=True)
class Operand:
    """A strided look at a materialised node: sizes and strides in elements."""

    base: Node
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int = 0


@dataclass(frozen=True)
class EpilogueStep:
    """One function of the result, before it is stored: "add", "sub", "mul" or "div" of a vector
    along the channels (the columns of a product), or "relu"."""

    function: str
    vector: Node | None


@dataclass(frozen=True)
class MatmulCall:
    """c[batch, m, n] = Σ_k a[batch, m, k] · b[batch, k, n]; batch axes may be several or none.

    `node` is what the call computes, by an `epilogue` of the nodes `inside`, which nothing stores.
    """

    node: Node
    a: Operand
    b: Operand
    c: Operand
    epilogue: tuple[EpilogueStep, ...] = ()
    inside: tuple[Node, ...] = ()


@dataclass(frozen=True)
class ConvolutionCall:
    """One of the three convolutions; operands are whole nodes in the roles of the forward one."""

    node: Node
    kind: str  # "forward", "backward_data", "backward_weights"
    source: Node
    weights: Node
    target: Node
    stride: tuple[int, ...]
    dilation: tuple[int, ...]
    padding: tuple[int, ...]
    padding_right: tuple[int, ...]
    groups: int
    epilogue: tuple[EpilogueStep, ...] = ()
    inside: tuple[Node, ...] = ()


def view_of(node: Node, strides: Strides) -> tuple[Node, Expr]:
    """(base, flat element expression over node's coordinates) through affine, unguarded views."""
    where: tuple[Expr, ...] = coordinates(node.shape)
    while isinstance(node, Reindex) and not node.guard and len(node.inputs) == 1:
        base = node.inputs[0]
        mapping: dict[Expr, Expr] = dict(zip(coordinates(node.shape), where, strict=True))
        deeper = tuple(index.substitute(e, mapping) for e in node.index)
        flat = index.flatten(deeper, strides(base))
        if not index.is_affine(flat) or base.size == 1:
            break
        node, where = base, deeper
    return node, index.flatten(where, strides(node))


def _strides(flat: Expr, place: Sequence[Expr], shape: Sequence[int]) -> tuple[Expr, int] | None:
    mapping: dict[Expr, Expr] = dict(zip(coordinates(shape), place, strict=True))
    moved = index.substitute(flat, mapping)
    if not index.is_affine(moved):
        return None
    return moved, index.split(moved)[0]


def matmul_call(node: Node, own: Sequence[bool], strides: Strides) -> MatmulCall | None:
    """The node as a (batched) matrix product, or None when its maps are not plain coordinates.

    `own[n]` says that operand n is to be taken as a node of its own, not as a view.
    """
    assert isinstance(node, Contract)
    maps = (node.fa, node.fb, node.fo)
    places: list[dict[Var, int]] = []
    bases: list[Node] = []
    offsets: list[int] = []
    operands = (*node.inputs, node)
    for n, (source, place) in enumerate(zip(operands, maps, strict=True)):
        if any(_out_of_bounds(e, extent) for e, extent in zip(place, source.shape, strict=True)):
            return None
        if n == 2 or own[n]:
            base, flat = source, index.flatten(coordinates(source.shape), strides(source))
        else:
            base, flat = view_of(source, strides)
        found = _strides(flat, place, source.shape)
        if found is None:
            return None
        places.append(_by_variable(found[0]))
        bases.append(base)
        offsets.append(found[1])
    return _grouped(node, places, bases, offsets)


def _out_of_bounds(e: Expr, extent: int) -> bool:
    return not (proven(e.lo, 0) and proven(extent - 1, e.hi))


def _by_variable(flat: Expr) -> dict[Var, int]:
    return {v: c for v, c in index.split(flat)[1].items() if isinstance(v, Var)}


def _grouped(
    node: Node, places: list[dict[Var, int]], bases: list[Node], offsets: list[int]
) -> MatmulCall | None:
    assert isinstance(node, Contract)
    a, b, c = places
    variables = [v for v in coordinates(node.domain) if v.extent not in (0, 1)]
    if not _fills(node, [(c[v], v.extent) for v in variables if v in c]):
        return None  # a sum over several places, or places that stay 0: a transposed convolution
    classes: dict[str, list[Var]] = {"batch": [], "m": [], "n": [], "k": []}
    for v in variables:
        kind = {
            (True, True, True): "batch", (True, False, True): "m", (False, True, True): "n",
            (True, True, False): "k",
        }.get((v in a, v in b, v in c))  # fmt: skip
        if kind is None:
            return None
        classes[kind].append(v)
    runs: dict[str, list[list[Var]]] = {}
    for kind, holders in (("m", (a, c)), ("n", (b, c)), ("k", (a, b))):
        runs[kind] = _merge(classes[kind], holders)
    if len(runs["k"]) > 1:
        return None
    batch = [[v] for v in classes["batch"]]
    for kind in ("m", "n"):
        runs[kind].sort(key=lambda run: hint(_extent(run)))
        batch += runs[kind][:-1]
        runs[kind] = runs[kind][-1:]
    m, n, k = (runs[kind][0] if runs[kind] else [] for kind in "mnk")
    batch.sort(key=lambda run: -hint(c[run[-1]]))
    made = []
    for place, base, offset, tail in ((a, bases[0], offsets[0], (m, k)),
                                      (b, bases[1], offsets[1], (k, n)),
                                      (c, bases[2], offsets[2], (m, n))):  # fmt: skip
        axes = [*batch, *tail]
        present = [bool(run) and run[-1] in place for run in axes]
        shape = tuple(
            [_extent(run) if here else 1 for run, here in zip(axes, present, strict=True)]
        )
        strides = tuple(
            [place[run[-1]] if here else 0 for run, here in zip(axes, present, strict=True)]
        )
        made.append(Operand(base, shape, _unit_strides(shape, strides), offset))
    a_matrix, b_matrix, c_matrix = made
    return MatmulCall(node, a_matrix, b_matrix, c_matrix)


def _fills(node: Node, axes: list[tuple[int, int]]) -> bool:
    """Whether steps of (stride, extent) reach every element of a node, and each of them once."""
    reached = 1
    for stride, extent in sorted([(hint(stride), hint(extent)) for stride, extent in axes]):
        if stride != reached:
            return False
        reached *= extent
    return reached == hint(node.size)


def _unit_strides(shape: tuple[int, ...], strides: tuple[int, ...]) -> tuple[int, ...]:
    """Strides with those of axes of size 1 set to what a dense layout would have."""
    fixed = list(strides)
    span = 1
    for k in sorted(range(len(shape)), key=lambda k: (shape[k] == 1, hint(strides[k]))):
        if shape[k] == 1:
            fixed[k] = span
        else:
            span = max(span, strides[k] * shape[k], key=hint)
    return tuple(fixed)


def _extent(run: Sequence[Var]) -> int:
    result = 1
    for v in run:
        result *= v.extent
    return result


def _merge(variables: list[Var], holders: Sequence[dict[Var, int]]) -> list[list[Var]]:
    """Coordinates that step as one in every operand that holds them, outermost first."""
    ordered = sorted(variables, key=lambda v: tuple(-hint(h[v]) for h in holders))
    runs: list[list[Var]] = []
    for v in ordered:
        if runs and all(h[runs[-1][-1]] == h[v] * v.extent for h in holders):
            runs[-1].append(v)
        else:
            runs.append([v])
    return runs


# --- convolution --------------------------------------------------------------------------------


Side = tuple[Node, tuple[Expr, ...]]  # an operand and where the domain reads or writes it


def convolution_call(node: Node) -> ConvolutionCall | None:
    """The node as a convolution or one of its derivatives, or None."""
    assert isinstance(node, Contract)
    a, b = node.inputs
    sides = ((a, node.fa), (b, node.fb), (node, node.fo))
    for kind, (x, w, y) in (
        ("forward", (0, 1, 2)), ("forward", (1, 0, 2)),
        ("backward_data", (2, 1, 0)), ("backward_data", (2, 0, 1)),
        ("backward_weights", (0, 2, 1)), ("backward_weights", (1, 2, 0)),
    ):  # fmt: skip
        found = _match(node, kind, sides[x], sides[w], sides[y])
        if found is not None:
            return found
    return None


def _match(node: Node, kind: str, x: Side, w: Side, y: Side) -> ConvolutionCall | None:
    (source, fx), (weights, fw), (target, fy) = x, w, y
    rank = len(fx) - 2
    if rank < 1 or rank > 3 or len(fw) != rank + 2 or len(fy) != rank + 2:
        return None
    places, window = fy[2:], fw[2:]
    singles = [fx[0], fy[0], fw[1], *places, *window]
    if not all(isinstance(e, Var) for e in singles) or fx[0] != fy[0] or fw[0] != fy[1]:
        return None
    groups = _groups(fy[1], fx[1], fw[1])
    if groups is None or len(set(singles)) != len(singles) - 1:
        return None
    stride, dilation, padding, right = [], [], [], []
    for k in range(rank):
        const, terms = index.split(fx[2 + k])
        if set(terms) != {places[k], window[k]}:
            return None
        stride.append(terms[places[k]])
        dilation.append(terms[window[k]])
        padding.append(-const)
        reach = (target.shape[2 + k] - 1) * stride[k] + (weights.shape[2 + k] - 1) * dilation[k]
        right.append(reach + const - source.shape[2 + k] + 1)
    if min(stride + dilation) < 1 or min(padding) < 0:
        return None
    return ConvolutionCall(
        node, kind, source, weights, target, tuple(stride), tuple(dilation), tuple(padding),
        tuple(right), groups,
    )  # fmt: skip


def _groups(out: Expr, inner: Expr, channel: Expr) -> int | None:
    """How many groups the channel expressions speak of; None if they do not fit."""
    const_out, out_terms = index.split(out)
    const_in, in_terms = index.split(inner)
    if const_out or const_in or in_terms.get(channel) != 1:
        return None
    shared = [v for v in out_terms if v in in_terms]
    if not shared:
        return 1 if len(out_terms) == 1 and len(in_terms) == 1 else None
    if len(shared) != 1 or len(out_terms) != 2 or len(in_terms) != 2:
        return None
    group = shared[0]
    assert isinstance(group, Var)
    return group.extent
