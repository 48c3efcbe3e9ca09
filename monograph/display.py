"""How tensors are printed: the text of `repr(x)`, with the options of `set_printoptions`.

Numbers of one tensor share a form: as integers with a point, with fixed digits, or scientific,
chosen by the smallest and the largest that are shown. Tensors of many elements are summarised.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Options:
    """What users can choose."""

    precision: int = 4
    threshold: float = 1000  # elements from which on a tensor is summarised
    edgeitems: int = 3  # of a summarised axis, shown at each end
    linewidth: int = 80
    sci_mode: bool | None = None


PROFILES = {
    "default": Options(),
    "short": Options(precision=2, edgeitems=2),
    "full": Options(threshold=float("inf")),
}
_chosen = [Options()]


def set_printoptions(
    precision: int | None = None, threshold: float | None = None, edgeitems: int | None = None,
    linewidth: int | None = None, profile: str | None = None, sci_mode: bool | None = None,
) -> None:  # fmt: skip
    """Choose how tensors are printed from now on.

    >>> import monograph as mg
    >>> mg.set_printoptions(precision=2)
    >>> mg.tensor([0.12345])
    tensor([0.12])
    >>> mg.set_printoptions(profile="default")
    """
    before = _chosen[0]
    if profile is not None:
        before = replace(PROFILES[profile], sci_mode=before.sci_mode)
    given = {
        "precision": precision, "threshold": threshold, "edgeitems": edgeitems,
        "linewidth": linewidth,
    }  # fmt: skip
    named = {name: value for name, value in given.items() if value is not None}
    _chosen[0] = replace(before, **named, sci_mode=sci_mode)  # type: ignore[arg-type]


def get_printoptions() -> dict[str, Any]:
    """The options by which tensors are printed now."""
    return asdict(_chosen[0])


@contextmanager
def printoptions(**options: Any) -> Iterator[None]:
    """Other options while within."""
    before = _chosen[0]
    set_printoptions(**options)
    try:
        yield
    finally:
        _chosen[0] = before


class Form:
    """The form that the numbers of an array share."""

    def __init__(self, shown: np.ndarray, options: Options) -> None:
        self.precision = options.precision
        self.floating = shown.dtype.kind == "f"
        self.whole, self.scientific, self.width = True, False, 1
        line = shown.reshape(-1)
        if self.floating:
            self._measure(line[np.isfinite(line) & (line != 0)], options.sci_mode)
        else:
            self.width = max([len(str(value)) for value in line.tolist()], default=1)

    def _measure(self, line: np.ndarray, scientific: bool | None) -> None:
        """Choose the form for these numbers, which are finite and not zero."""
        if not line.size:
            return
        sizes = np.abs(line.astype(np.float64))
        least, most = float(sizes.min()), float(sizes.max())
        self.whole = bool((np.ceil(line) == line).all())
        wide = most / least > 1000.0 or most > 1.0e8
        self.scientific = wide or (not self.whole and least < 1.0e-4)
        if scientific is not None:
            self.scientific = scientific
        self.width = max([len(self.text(value)) for value in line.tolist()])

    def text(self, value: Any) -> str:
        """One number, without blanks before it."""
        if not self.floating:
            return str(value)
        if self.scientific:
            return f"{value:.{self.precision}e}"
        if self.whole:
            return f"{value:.0f}." if np.isfinite(value) else f"{value:.0f}"
        return f"{value:.{self.precision}f}"

    def padded(self, value: Any) -> str:
        """One number, as wide as all."""
        return self.text(value).rjust(self.width)


class ComplexForm:
    """The form of complex numbers: one for each part."""

    def __init__(self, shown: np.ndarray, options: Options) -> None:
        self.real, self.imag = Form(shown.real, options), Form(shown.imag, options)
        self.width = self.real.width + self.imag.width + 1

    def padded(self, value: complex) -> str:
        """One number, as wide as all."""
        imag = (self.imag.padded(value.imag) + "j").lstrip()
        sign = "" if imag[0] in "+-" else "+"
        return f"{self.real.padded(value.real)}{sign}{imag}"


def _edges(array: np.ndarray, count: int) -> np.ndarray:
    """The elements that a summary shows."""
    for k in range(array.ndim):
        if array.shape[k] > 2 * count:
            ends = [array.take(range(count), k), array.take(range(-count, 0), k)]
            array = np.concatenate(ends, k)
    return array


def _line(array: np.ndarray, indent: int, cut: bool, form: Any, options: Options) -> str:
    per_line = max(1, (options.linewidth - indent) // (form.width + 2))
    edge = options.edgeitems
    if cut and not edge:
        words = ["..."]
    elif cut and array.shape[0] > 2 * edge:
        first, last = array[:edge].tolist(), array[-edge:].tolist()
        words = [*map(form.padded, first), " ...", *map(form.padded, last)]
    else:
        words = [form.padded(value) for value in array.tolist()]
    rows = [", ".join(words[n : n + per_line]) for n in range(0, len(words), per_line)]
    return "[" + (",\n" + " " * (indent + 1)).join(rows) + "]"


def _nested(array: np.ndarray, indent: int, cut: bool, form: Any, options: Options) -> str:
    if array.ndim == 0:
        return form.padded(array.item())  # type: ignore[no-any-return]
    if array.ndim == 1:
        return _line(array, indent, cut, form, options)
    edge = options.edgeitems
    inner = lambda part: _nested(part, indent + 1, cut, form, options)  # noqa: E731
    if cut and array.shape[0] > 2 * edge:
        last = array[array.shape[0] - edge :]
        parts = [*[inner(p) for p in array[:edge]], "...", *[inner(p) for p in last]]
    else:
        parts = [inner(p) for p in array]
    between = "," + "\n" * (array.ndim - 1) + " " * (indent + 1)
    return "[" + between.join(parts) + "]"


def array_text(array: np.ndarray, indent: int) -> str:
    """The numbers of an array, whose first line begins after `indent` characters."""
    options = _chosen[0]
    if array.size == 0:
        return "[]"
    cut = array.size > options.threshold
    shown = _edges(array, options.edgeitems) if cut else array
    kind = ComplexForm if array.dtype.kind == "c" else Form
    return _nested(array, indent, cut, kind(shown, options), options)


def tensor_text(array: np.ndarray | None, notes: list[str]) -> str:
    """`tensor(…)` with what else is to be said, on further lines where one is full."""
    prefix = "tensor("
    text = prefix + ("..." if array is None else array_text(array, len(prefix)))
    used = len(text) - text.rfind("\n") + 1
    for note in notes:
        if used + len(note) + 2 > _chosen[0].linewidth:
            text += ",\n" + " " * len(prefix) + note
            used = len(prefix) + len(note)
        else:
            text += ", " + note
            used += len(note) + 2
    return text + ")"
