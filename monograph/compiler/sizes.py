"""Recordings that differ in sizes only: which sizes vary, and how they hang together.

The *structure* of a recording is its key with sizes left out: operators, wiring, dtypes, ranks.
What was left out is a list of numbers: the sizes of leaves, then the integers in attributes
(`reshape` to 32 rows). Comparing the numbers of several recordings tells what varies. A *form* says
of each number what it is: the same in all, a symbol, or an expression of symbols. Numbers that were
equal in all recordings so far are one symbol; a recording in which they differ does not fit the
form, and gets another.

A symbol is at least 2 while a program is compiled, and may be 1 when it runs: an axis of one place
is like any other, unless a definition asks for it (`extent.is_one`), which becomes a fact of the
program. What is 0 is never a symbol: such axes are empty. Nor is an attribute that is 1, but for
the places and sizes of views, since it may mean something else, as the 1-norm does.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from ..ir.dtypes import DType
from ..ir.extent import Assigned, Size, Values, symbol, value_at
from ..ir.operator import Operator
from .recording import Entry, Recording

Numbers = tuple[int, ...]
LEAST = 2  # what a symbol stands for at least, where 1 may mean something else
NEARBY = 1  # how far apart numbers may always have been to be taken for related at once
SURE = 3  # recordings after which any difference that was always the same is taken for a relation
# Attributes of these names are axes or numbers of classes: no program leaves them open.
AXES = ("dim", "dims", "dim0", "dim1", "dim2", "dimension", "axis", "axes", "start_dim", "end_dim",
        "num_classes")  # fmt: skip


class _Open:
    """Stands in a structure where a number was."""


_OPEN = _Open()


@dataclass(frozen=True)
class Structure:
    """`key` without sizes, and the `numbers` left out: first those of leaves, `leading` many.

    `least` says what each may be at least where it is left open.
    """

    key: Any
    numbers: Numbers
    leading: int
    least: Numbers


def structure_of(recording: Recording) -> Structure:
    """Take a recording apart into structure and numbers."""
    numbers: list[int] = []
    leaves = []
    for leaf in recording.leaves:
        numbers += leaf.shape
        leaves.append((leaf.dtype, len(leaf.shape)))
    leading = len(numbers)
    least = [1] * leading
    entries = []
    for entry in recording.entries:
        attributes = _without_numbers(entry.operator, entry.attributes, numbers)
        least += [1 if entry.operator.view else LEAST] * (len(numbers) - len(least))
        entries.append((entry.operator, attributes, entry.refs, entry.stop, entry.results))
    ranks = tuple([len(shape) for shape in recording.shapes])
    key = (tuple(leaves), tuple(entries), ranks, recording.slots, recording.rows)
    return Structure(key, tuple(numbers), leading, tuple(least))


def _without_numbers(operator: Operator, attributes: tuple[Any, ...], found: list[int]) -> Any:
    """Attributes with their integers taken out, but for axes and counts of tensors."""
    fixed = _fixed(operator, attributes)
    pairs = zip(fixed, attributes, strict=True)
    return tuple([value if keep else _opened(value, found) for keep, value in pairs])


def _fixed(operator: Operator, attributes: tuple[Any, ...]) -> list[bool]:
    """Which attributes hold no sizes; none does of an operator that does not name them."""
    given = [p for p in operator.parameters if p.role != "input"]
    if len(given) != len(attributes):
        return [True] * len(attributes)
    return [p.role == "inputs" or p.name in AXES for p in given]


def _opened(value: Any, found: list[int]) -> Any:
    kind = value.__class__
    if kind is int:
        found.append(value)
        return _OPEN
    if kind is tuple:
        if len(value) == 2 and isinstance(value[0], Operator):  # a step of a chain of views
            return (value[0], _without_numbers(value[0], value[1], found))
        return tuple([_opened(item, found) for item in value])
    return (kind, value)  # 1, 1.0 and True are equal, but not the same


# --- from numbers to symbols --------------------------------------------------------------------

_serial = itertools.count()


@dataclass(frozen=True)
class Form:
    """What each number of a structure is. `pattern` is the same for forms that say the same."""

    sizes: tuple[Size, ...]
    symbols: tuple[tuple[str, int, int], ...]  # name, the number that it is or is behind, its least
    pattern: tuple[Any, ...]
    exact: bool  # whether symbols are hinted at a recording's numbers, and none of them is 1

    def values(self, numbers: Numbers) -> Assigned | None:
        """What the symbols stand for in a recording with these numbers; None if it does not fit."""
        values = self.values_of(numbers)
        return values if values is not None and len(numbers) == len(self.sizes) else None

    def values_of(self, numbers: Sequence[int]) -> Assigned | None:
        """The same, given the first of the numbers: what all symbols are read from."""
        values = Assigned({name: abs(numbers[place]) for name, place, _ in self.symbols})
        if any([values[name] < low for name, _, low in self.symbols]):
            return None
        for size, number in zip(self.sizes, numbers, strict=False):
            if value_at(size, values) != number:
                return None
        return values


def _digest(name: str, samples: Sequence[Numbers], least: Numbers) -> str:
    """Of all that a symbol is: what was proven of one by this name is remembered."""
    return blake2b(f"{name} {samples} {least}".encode(), digest_size=6).hexdigest()


def forms_of(
    samples: Sequence[Numbers], structure: Structure, name: str | None = None
) -> Iterator[Form]:
    """Forms that the last of these numbers fit, the better first: those that leave more open.

    An axis that has one place this time is like any other, or it is broadcast.
    """
    yield _form(samples, structure.leading, structure.least, name)
    if any(len(set(column)) > 1 and column[-1] == 1 for column in zip(*samples, strict=True)):
        yield _form(samples, structure.leading, (LEAST,) * len(structure.least), name)


def _form(samples: Sequence[Numbers], leading: int, least: Numbers, name: str | None) -> Form:
    """The form that these numbers fit; symbols are hinted at the last of them.

    With the name of a structure, symbols have the same names in every process.
    """
    columns = list(zip(*samples, strict=True))
    # A place counted from the end, x[:-n], is that of a symbol all the same.
    behind = [low == 1 and max(c) < 0 for c, low in zip(columns, least, strict=True)]
    columns = [tuple([-n for n in c]) if b else c for c, b in zip(columns, behind, strict=True)]
    fixed = [len(set(c)) == 1 or c[-1] < low for c, low in zip(columns, least, strict=True)]
    first: dict[Column, int] = {}  # numbers that vary → where they stand
    for place, column in enumerate(columns):
        if not fixed[place]:
            first.setdefault(column, place)
    # Sizes of leaves before integers in attributes, small ones first: products follow.
    order = sorted(first, key=lambda column: (first[column] >= leading, column[-1]))
    prefix = f"s{next(_serial)}" if name is None else f"s{_digest(name, samples, least)}"
    symbols: list[Symbol] = []
    known: dict[Column, tuple[Size, Any]] = {}
    for column in order:
        related = _related(column, symbols)
        if related is None:
            place = first[column]
            size = symbol(f"{prefix}.{len(symbols)}", _hint(column, samples[-1]), least[place])
            related = size, ("symbol", place, least[place])
            symbols.append(Symbol(size, column, place, least[place]))
        known[column] = related
    found = [
        (column[-1], column[-1]) if still else known[column]
        for column, still in zip(columns, fixed, strict=True)
    ]
    found = [
        (-size, ("behind", said)) if b else (size, said)
        for (size, said), b in zip(found, behind, strict=True)
    ]
    names = tuple([(f"{prefix}.{n}", s.place, s.low) for n, s in enumerate(symbols)])
    sizes, pattern = zip(*found, strict=True) if found else ((), ())
    return Form(sizes, names, pattern, all(s.column[-1] >= LEAST for s in symbols))


def _hint(column: Column, latest: Numbers) -> int:
    """The last number; if it is 1, a larger one that no other size has, to be told from it."""
    hint = column[-1]
    if hint < LEAST:
        hint = max(column)
        while hint in latest:
            hint += 1
    return hint


Column = tuple[int, ...]  # one number in all samples


@dataclass(frozen=True)
class Symbol:
    """A size that varies on its own, its numbers, and the place that it is read from."""

    size: Size
    column: Column
    place: int
    low: int


def _related(column: Column, symbols: Sequence[Symbol]) -> tuple[Size, Any] | None:
    """The numbers as an expression of symbols, and a description of it.

    Few samples lie on many curves, so only plain ones are taken: a constant more or less, a
    product, a multiple. One that held by chance is found out by the next sample.
    """
    for n, known in enumerate(symbols):
        differences = {c - v for c, v in zip(column, known.column, strict=True)}
        more = differences.pop()
        if not differences and (abs(more) <= NEARBY or len(set(column)) >= SURE):
            return known.size + more, ("sum", n, more)
    several = list(enumerate(symbols))
    products = list(itertools.combinations_with_replacement(several, 2))
    products.sort(key=lambda pair: pair[0][0] == pair[1][0])  # B · T is likelier than B · B
    for plain in (True, False):
        for (n, a), (m, b) in products:
            factor = _factor(column, [x * y for x, y in zip(a.column, b.column, strict=True)])
            if factor is not None and (factor == 1 or not plain):
                return a.size * b.size * factor, ("product", n, m, factor)
        for n, known in several:
            factor = _factor(column, known.column)
            if factor is not None and plain:
                return known.size * factor, ("multiple", n, factor)
    return None


def _factor(column: Sequence[int], values: Sequence[int]) -> int | None:
    """The positive number that all of `column` are that many times `values`."""
    factors = {c // v if v and c % v == 0 else 0 for c, v in zip(column, values, strict=True)}
    factor = factors.pop()
    return factor if not factors and factor > 0 else None


# --- a recording over symbols -------------------------------------------------------------------


@dataclass(frozen=True)
class OpenLeaf:
    """Shape, with Extents in it, and dtype of a leaf."""

    shape: tuple[Size, ...]
    dtype: DType


def opened(recording: Recording, sizes: Sequence[Size]) -> Recording:
    """The recording with `sizes` in place of its numbers."""
    rest = iter(sizes)
    leaves = tuple(
        [OpenLeaf(tuple([next(rest) for _ in leaf.shape]), leaf.dtype) for leaf in recording.leaves]
    )
    entries = []
    for entry in recording.entries:
        attributes = _with_numbers(entry.operator, entry.attributes, rest)
        entries.append(
            Entry(entry.operator, attributes, entry.refs, entry.stop, entry.results, entry.line)
        )
    return Recording(
        tuple(entries), leaves, recording.slots, recording.wanted, recording.writes,
        recording.shapes, recording.rows,
    )  # fmt: skip


def _with_numbers(
    operator: Operator, attributes: tuple[Any, ...], rest: Iterator[Size]
) -> tuple[Any, ...]:
    fixed = _fixed(operator, attributes)
    pairs = zip(fixed, attributes, strict=True)
    return tuple([value if keep else _closed(value, rest) for keep, value in pairs])


def _closed(value: Any, rest: Iterator[Size]) -> Any:
    kind = value.__class__
    if kind is int:
        return next(rest)
    if kind is tuple:
        if len(value) == 2 and isinstance(value[0], Operator):
            return (value[0], _with_numbers(value[0], value[1], rest))
        return tuple([_closed(item, rest) for item in value])
    return value


__all__ = ["Form", "Numbers", "Structure", "Values", "forms_of", "opened", "structure_of"]
