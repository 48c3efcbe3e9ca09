"""Contractions by name: einsum, tensordot, kron.

`einsum` reads its equation at the call and contracts operands two at a time, along a path that
costs few multiplications; each contraction is one recorded operator and one Contract. Inside,
axes are labels: small integers, in a tuple for each operand.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from math import prod
from typing import Any

from .. import errors
from ..ir import build, dtypes
from ..ir.extent import is_one
from ..ir.node import axis
from ..tensor import Tensor
from .define import function, no_tensor, operator
from .inplace import with_out
from .matmul import contracted, letter

Labels = tuple[int, ...]
_EXHAUSTIVE = 7  # up to so many operands every path is looked at


# --- operators on labelled axes -----------------------------------------------------------------


@operator(to=None, name="einsum", method=False, widen=False)
def pair(x: Tensor, other: Tensor, names_x: str, names_y: str, names: str) -> Any:
    """The contraction of two tensors: letters that are not in the result are summed over."""
    left, right = _summable(x, names_x, other, names_y, names)
    a, kept_a = _alone(left, names_x, names_y + names)
    b, kept_b = _alone(right, names_y, names_x + names)
    sizes: dict[str, int] = {}
    for name, extent in zip(kept_a + kept_b, (*a.shape, *b.shape), strict=True):
        if sizes.get(name, 1) == 1:
            sizes[name] = extent
    a, kept_a = _without_units(a, kept_a)
    b, kept_b = _without_units(b, kept_b)
    found = "".join([name for name in names if name in kept_a + kept_b])
    if set(kept_a) & set(kept_b) <= set(found):  # nothing but a product, of any two dtypes
        dtype = dtypes.promote(a.dtype, b.dtype)
        a, b = build.cast(a, dtype), build.cast(b, dtype)
    result = contracted(kept_a, kept_b, found, a, b)
    return build.reshape(result, tuple([sizes[name] for name in names]))


@operator(to=None, name="einsum", method=False)
def single(x: Tensor, names_x: str, names: str) -> Any:
    """Diagonals of repeated letters, sums over those that are not in the result, and its order.

    As `sum` does, this adds up integers in int64.
    """
    if not x.dtype.is_smooth and not set(names_x) <= set(names):
        x = build.cast(x, dtypes.int64)
    a, kept = _alone(x, names_x, names)
    return build.permute(a, [kept.index(name) for name in names])


def _summable(x: Any, names_x: str, other: Any, names_y: str, names: str) -> tuple[Any, Any]:
    """Integers as int64 where one operand is added up by itself, as `sum` does; else as they are.

    So it is in PyTorch, where a product alone keeps small integers small.
    """
    if x.dtype.is_smooth or other.dtype.is_smooth:
        return x, other
    sizes = [dict(zip(n, v.shape, strict=True)) for n, v in ((names_x, x), (names_y, other))]
    alone = any(
        label not in names and not is_one(extent) and is_one(partner.get(label, 1))
        for own, partner in (sizes, sizes[::-1])
        for label, extent in own.items()
    )
    if not alone:
        return x, other
    return build.cast(x, dtypes.int64), build.cast(other, dtypes.int64)


def _alone(x: Any, names: str, others: str) -> tuple[Any, str]:
    """x with each letter once, and without those that nothing else has: those are summed over."""
    kept = "".join(dict.fromkeys(names))
    if len(kept) != len(names):
        sizes = dict(zip(names, x.shape, strict=True))
        shape = tuple([sizes[name] for name in kept])
        where = [axis(kept.index(name), sizes[name]) for name in names]
        x = build.reindex(x, shape, where)
    gone = [k for k, name in enumerate(kept) if name not in others]
    return build.reduce("add", x, gone), "".join([name for name in kept if name in others])


def _without_units(x: Any, names: str) -> tuple[Any, str]:
    """Axes of size 1 leave the operand: they are repeated without copying, or nothing at all."""
    gone = [k for k, extent in enumerate(x.shape) if extent == 1]
    shape = tuple([extent for k, extent in enumerate(x.shape) if k not in gone])
    return build.reshape(x, shape), "".join([c for k, c in enumerate(names) if k not in gone])


def _text(labels: Labels) -> str:
    """Labels as letters: structure of a program, where numbers might be sizes."""
    return "".join([letter(n) for n in labels])


# --- the path -----------------------------------------------------------------------------------


@functools.lru_cache(maxsize=1024)
def path(operands: tuple[Labels, ...], result: Labels, sizes: tuple[int, ...]) -> Any:
    """Pairs of positions to contract, one after the other; a result goes to the end of the list.

    `sizes` has the extent of each label. Few operands: the order with fewest multiplications.
    Many: the pair that comes cheapest and leaves least, again and again.
    """
    if len(operands) <= _EXHAUSTIVE:
        return _best_path(operands, result, sizes)
    left, steps = list(operands), []
    while len(left) > 1:
        choices = []
        for i in range(len(left)):
            for j in range(i + 1, len(left)):
                rest = [names for n, names in enumerate(left) if n not in (i, j)]
                made = joined(left[i], left[j], rest, result)
                work = _volume({*left[i], *left[j]}, sizes)
                grown = _volume(made, sizes) - _volume(left[i], sizes) - _volume(left[j], sizes)
                choices.append((work + grown, i, j, made))
        _, i, j, made = min(choices)
        steps.append((i, j))
        left = [names for n, names in enumerate(left) if n not in (i, j)] + [made]
    return tuple(steps)


def joined(a: Labels, b: Labels, rest: Sequence[Labels], result: Labels) -> Labels:
    """The labels of a contraction's result: shared ones first, then a's, then b's."""
    needed = {name for names in (*rest, result) for name in names}
    both = [name for name in a if name in b]
    others = [name for name in (*a, *b) if name not in both]
    return tuple([name for name in dict.fromkeys((*both, *others)) if name in needed])


def _volume(labels: Any, sizes: tuple[int, ...]) -> int:
    return prod([sizes[name] for name in set(labels)])


def _best_path(operands: tuple[Labels, ...], result: Labels, sizes: tuple[int, ...]) -> Any:
    """By subsets of the operands: the best way to make each, from the best ways of two parts."""
    count = len(operands)
    everything = (1 << count) - 1
    held = [_labels_in(operands, subset) for subset in range(everything + 1)]
    best: dict[int, tuple[int, int]] = {1 << n: (0, 0) for n in range(count)}

    def made(subset: int) -> set[int]:
        if subset & (subset - 1) == 0:
            return held[subset]
        return held[subset] & (held[everything & ~subset] | set(result))

    for subset in range(1, everything + 1):
        if subset in best:
            continue
        choices = []
        for part in _parts(subset):
            both = made(part) | made(subset & ~part)
            cost = best[part][0] + best[subset & ~part][0] + _volume(both, sizes)
            choices.append((cost, part))
        best[subset] = min(choices)
    return _steps(everything, best, count)


def _labels_in(operands: tuple[Labels, ...], subset: int) -> set[int]:
    return {name for n, names in enumerate(operands) if subset >> n & 1 for name in names}


def _parts(subset: int) -> Iterator[int]:
    """One of each two parts that a subset falls into."""
    part = (subset - 1) & subset
    while part:
        if part > subset & ~part:
            yield part
        part = (part - 1) & subset


def _steps(whole: int, best: dict[int, tuple[int, int]], count: int) -> tuple[Any, ...]:
    """The chosen tree as pairs of positions, those of leaves before those that need them."""
    order: list[tuple[int, int]] = []
    stack = [whole]
    while stack:
        subset = stack.pop()
        if subset & (subset - 1):
            first = best[subset][1]
            order.append((first, subset & ~first))
            stack += [first, subset & ~first]
    left = [1 << n for n in range(count)]
    steps = []
    for first, second in reversed(order):
        i, j = sorted((left.index(first), left.index(second)))
        steps.append((i, j))
        left = [s for n, s in enumerate(left) if n not in (i, j)] + [first | second]
    return tuple(steps)


def _contract(operands: list[Any], labels: list[Labels], result: Labels, name: str) -> Any:
    sizes = _sizes(operands, labels, name)
    extents = tuple([sizes.get(n, 1) for n in range(max(sizes, default=-1) + 1)])
    kept = [tuple(dict.fromkeys(each)) for each in labels]
    steps = path(tuple(kept), result, extents) if len(operands) > 1 else ()
    left, names = list(operands), list(labels)
    for i, j in steps:
        rest = [each for n, each in enumerate(names) if n not in (i, j)]
        made = joined(names[i], names[j], rest, result) if rest else result
        new = pair(left[i], left[j], _text(names[i]), _text(names[j]), _text(made))
        left = [x for n, x in enumerate(left) if n not in (i, j)] + [new]
        names = rest + [made]
    if steps:
        return left[0]
    return left[0] if names[0] == result else single(left[0], _text(names[0]), _text(result))


def _sizes(operands: list[Any], labels: list[Labels], name: str) -> dict[int, int]:
    """The extent of each label; axes of size 1 fit any other."""
    sizes: dict[int, int] = {}
    for n, (operand, names) in enumerate(zip(operands, labels, strict=True)):
        own: dict[int, int] = {}
        for label, extent in zip(names, operand.shape, strict=True):
            if own.setdefault(label, extent) != extent:
                raise _refuse(name, f"a repeated subscript of operand {n} has sizes that differ")
        for label, extent in own.items():
            if sizes.get(label, 1) != 1 and extent not in (1, sizes[label]):
                shapes = ", ".join(str(list(each.shape)) for each in operands)
                raise _refuse(name, f"sizes of one subscript differ among operands {shapes}")
            sizes[label] = extent if sizes.get(label, 1) == 1 else sizes[label]
    return sizes


def _refuse(name: str, problem: str) -> errors.OperandError:
    return errors.OperandError(f"{name}: {problem}")


# --- einsum -------------------------------------------------------------------------------------


@function
def einsum(*args: Any) -> Tensor:
    """The sum over products that an equation names: "ij,jk->ik" is the matrix product.

    Without "->" the subscripts that occur once are kept, in alphabetical order. A repeated one
    takes a diagonal, "..." stands for axes without names. Instead of an equation, each operand may
    be followed by a list of numbers for its axes, and the last list names the result.

    >>> import monograph as mg
    >>> x = mg.tensor([[1, 2], [3, 4]])
    >>> mg.einsum("ij,kj->ik", x, x).tolist()
    [[5, 11], [11, 25]]
    >>> mg.einsum(x, [0, 0]).item()
    5
    """
    if len(args) < 2:
        raise ValueError("einsum: an equation and at least one operand are needed")
    if isinstance(args[0], str):
        equation, *operands = args
        if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
            operands = list(operands[0])
        terms, out = _parsed(equation)
    else:
        operands = list(args[0 : len(args) - len(args) % 2 : 2])
        terms = [_listed(each) for each in args[1::2]]
        out = _listed(args[-1]) if len(args) % 2 else None
    if len(terms) != len(operands):
        raise _refuse("einsum", f"{len(terms)} terms are given for {len(operands)} operands")
    try:
        labels, covered = _labelled(terms, operands)
    except AttributeError:
        given = {f"operand {n}": each for n, each in enumerate(operands)}
        raise no_tensor("einsum", **given) from None
    return _contract(operands, labels, _result(terms, labels, out, covered), "einsum")


def _parsed(equation: str) -> tuple[list[list[Any]], list[Any] | None]:
    """The terms of an equation: subscripts as numbers in alphabetical order, Ellipsis for dots."""
    given, arrow, out = equation.replace(" ", "").partition("->")
    terms = [_subscripts(text) for text in given.split(",")]
    return terms, _subscripts(out) if arrow else None


def _subscripts(text: str) -> list[Any]:
    found: list[Any] = []
    while text:
        if text.startswith("..."):
            found.append(Ellipsis)
            text = text[3:]
            continue
        character = text[0]
        if not (character.isascii() and character.isalpha()):
            raise _refuse("einsum", f"{character!r} is no subscript: those are letters, or ...")
        found.append(ord(character) - ord("A") if character < "a" else ord(character) - 71)
        text = text[1:]
    return found


def _listed(subscripts: Any) -> list[Any]:
    """Subscripts that are given as a list of numbers below 52, and Ellipsis."""
    found = list(subscripts)
    for each in found:
        if each is not Ellipsis and not 0 <= each < 52:
            raise _refuse("einsum", f"subscript {each} is not within the range [0, 52)")
    return found


def _labelled(terms: list[list[Any]], operands: list[Any]) -> tuple[list[Labels], int]:
    """(labels for the axes of each operand, how many axes dots stand for at most).

    The last axis under dots has label 52, the one before 53, and so on.
    """
    labels: list[Labels] = []
    most = 0
    for n, (term, operand) in enumerate(zip(terms, operands, strict=True)):
        dots = term.count(Ellipsis)
        hidden = operand.ndim - (len(term) - dots)
        if dots > 1 or hidden < 0 or (hidden and not dots):
            raise _refuse(
                "einsum", f"the subscripts of operand {n} do not fit its {operand.ndim} dimensions"
            )
        names: list[int] = []
        for each in term:
            names += [52 + k for k in reversed(range(hidden))] if each is Ellipsis else [each]
        labels.append(tuple(names))
        most = max(most, hidden)
    return labels, most


def _result(
    terms: list[list[Any]], labels: list[Labels], out: list[Any] | None, covered: int
) -> Labels:
    """The labels of the result."""
    dotted = tuple([52 + k for k in reversed(range(covered))])
    if out is None:
        every = [name for names in labels for name in names if name < 52]
        return (*dotted, *sorted(name for name in set(every) if every.count(name) == 1))
    names: list[int] = []
    for each in out:
        names += dotted if each is Ellipsis else [each]
    known = {name for term in labels for name in term}
    if len(set(names)) != len(names):
        raise _refuse("einsum", "a subscript appears more than once in the result")
    if not set(names) <= known:
        raise _refuse("einsum", "a subscript of the result appears in no operand")
    return tuple(names)


# --- tensordot and kron -------------------------------------------------------------------------


@function
@with_out
def tensordot(a: Tensor, b: Tensor, dims: Any = 2) -> Tensor:
    """The contraction of the last `dims` axes of a with the first ones of b, or of listed axes.

    >>> import monograph as mg
    >>> mg.tensordot(mg.ones(2, 3, 4), mg.ones(4, 3, 5), dims=([1, 2], [1, 0])).shape
    Size([2, 5])
    """
    first, second = _dot_axes(a, b, dims)
    labels_a = list(range(a.ndim))
    labels_b = list(range(a.ndim, a.ndim + b.ndim))
    for k, n in zip(first, second, strict=True):
        if a.shape[k] != b.shape[n] and 1 not in (a.shape[k], b.shape[n]):
            raise _refuse(
                "tensordot",
                f"contracted dimensions need to match, but first has size {a.shape[k]} in "
                f"dim {k} and second has size {b.shape[n]} in dim {n}",
            )
        labels_b[n] = labels_a[k]
    kept = [name for k, name in enumerate(labels_a) if k not in first]
    kept += [name for n, name in enumerate(labels_b) if n not in second]
    if a.dtype is not b.dtype:
        raise _refuse("tensordot", "both inputs should have same dtype")
    made = _contract([a, b], [tuple(labels_a), tuple(labels_b)], tuple(kept), "tensordot")
    return made if made.dtype is a.dtype else made.to(a.dtype)  # small integers stay small


def _dot_axes(a: Tensor, b: Tensor, dims: Any) -> tuple[list[int], list[int]]:
    if isinstance(dims, Tensor):
        dims = dims.tolist()
    if isinstance(dims, int):
        if dims < 0:
            raise _refuse("tensordot", f"expects dims >= 0, but got dims={dims}")
        if dims > min(a.ndim, b.ndim):
            raise _refuse("tensordot", f"expects dims < ndim_a or ndim_b, but got dims={dims}")
        return list(range(a.ndim - dims, a.ndim)), list(range(dims))
    first, second = ([n] if isinstance(n, int) else list(n) for n in dims)
    if len(first) != len(second):
        raise _refuse("tensordot", "both dimension lists should have same length")
    axes = []
    for x, listed in ((a, first), (b, second)):
        for k in listed:
            if not -x.ndim <= k < x.ndim:
                raise errors.IndexOutOfRange(
                    f"tensordot: dimension {k} is out of range for {x.ndim} dimensions"
                )
        axes.append([k % x.ndim for k in listed])
        if len(set(axes[-1])) != len(listed):
            raise _refuse("tensordot", f"dim appears multiple times in the list of dims {listed}")
    return axes[0], axes[1]


@operator
def kron(x: Tensor, other: Tensor) -> Any:
    """The Kronecker product: each element of input times all of other, as blocks.

    >>> import monograph as mg
    >>> mg.kron(mg.tensor([1, 10]), mg.tensor([1, 2])).tolist()
    [1, 2, 10, 20]
    """
    rank = max(x.ndim, other.ndim)
    sizes = [(1,) * (rank - v.ndim) + v.shape for v in (x, other)]
    apart = [[1] * (2 * rank), [1] * (2 * rank)]
    apart[0][0::2], apart[1][1::2] = sizes[0], sizes[1]
    product = build.reshape(x, tuple(apart[0])) * build.reshape(other, tuple(apart[1]))
    return build.reshape(product, tuple([m * n for m, n in zip(*sizes, strict=True)]))


kron.operator.saves = {"*": ("copies",)}  # which nobody sees
