"""Functions along one axis that are no loop nest: running totals, recurrences, and order.

An `Along` is a kernel without stages. It sees its operands as [before, length, behind], contiguous,
and works along the middle. Its arguments are the operands, the result and, for order, scratch
memory with a part for each worker. Any of its sizes may be an Extent, one that varies. What each
function means stands in `ir/native_order.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from math import prod
from typing import Any

from ..ir import dtypes
from ..ir.dtypes import DType, Kind
from ..ir.extent import Extent, proven
from .kernel import BufferUse, Kernel, Schedule

SHORT, SHORT_WIDE = 64, 128  # in rows up to this length, of 64 bits each, all meet all
INSERTED = 64  # the most elements of a row that are kept in order one by one,
FEW = 4  # if at most one in this many is wanted
SELECTED = 16  # if no more than one in this many is wanted, not all are sorted by digits
LONGEST = 1 << 31  # places have 32 bits while rows are sorted
TOTALS = frozenset({"scan_add", "scan_mul", "scan_logaddexp"})
EXTREMES = frozenset({"scan_max", "scan_min"})
POSITIONS = frozenset({"scan_argmax", "scan_argmin"})  # of extremes
RECURRENCES = frozenset({"scan_linear"})  # of two arrays
OF_FLOATS = RECURRENCES | {"scan_logaddexp"}
ORDERS = frozenset({"argsort", "top_positions"})


@dataclass(frozen=True)
class Along(Kernel):
    """One function along an axis; `first` is how many of the order are wanted.

    `reverse`: totals and recurrences go from the last element to the first.
    """

    function: str = ""
    dtype: DType = dtypes.float32
    before: int = 1
    length: int = 1
    behind: int = 1
    first: int = 0
    descending: bool = False
    reverse: bool = False
    workers: int = 1

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return self.before * self.behind

    @property
    def operands(self) -> int:
        """How many arrays it takes, all of one shape."""
        return 2 if self.function in RECURRENCES else 1

    @property
    def method(self) -> str:
        """How rows are ordered: by comparing all with all ("count"), by keeping the first few
        one by one ("insert"), or by digits ("digits")."""
        varies = isinstance(self.length, Extent)
        if not varies and self.length <= (SHORT_WIDE if self.wide else SHORT):
            return "count"
        if isinstance(self.first, Extent) or self.first > INSERTED:
            return "digits"
        return "insert" if varies or FEW * self.first < self.length else "digits"

    @property
    def wide(self) -> bool:
        """Whether what is sorted by has 64 bits, so that the place stands beside it."""
        return self.dtype.itemsize == 8

    @property
    def selects(self) -> bool:
        """Whether only those are sorted by digits that may be among the first."""
        if isinstance(self.first, Extent) or isinstance(self.length, Extent):
            return False
        return SELECTED * self.first <= self.length

    @property
    def words(self) -> int:
        """Numbers of 64 bits in the record of an element."""
        return 2 if self.wide else 1

    @property
    def scratch(self) -> int:
        """Numbers of 64 bits that a worker sorts in."""
        if self.function not in ORDERS or self.method != "digits":
            return 0
        return 2 * self.length * self.words


def format_along(kernel: Along) -> str:
    """The kernel as text."""
    shape = f"[{kernel.before}, {kernel.length}, {kernel.behind}]"
    lines = [f"kernel {kernel.name}", f"  {kernel.function} of {kernel.dtype.name}{shape}"]
    if kernel.reverse:
        lines.append("  from the last on")
    if kernel.function in ORDERS:
        order = "falling" if kernel.descending else "rising"
        lines.append(f"  the first {kernel.first}, {order}, by {kernel.method}")
    return "\n".join(lines)


def make_along(
    function: str, options: Sequence[Any], shape: Sequence[int], dtype: DType, threads: int
) -> Along | None:
    """The kernel of a native function of an array, or None where there is none."""
    if not shape or not all(proven(n, 1) for n in shape) or not _has(dtype):
        return None
    axis, first, descending, reverse = len(shape) - 1, 0, False, False
    if function in TOTALS | EXTREMES | POSITIONS | RECURRENCES:
        if dtype.is_half or (function in TOTALS and dtype is dtypes.bool_):
            return None
        if function in OF_FLOATS and dtype.kind is not Kind.FLOAT:
            return None
        axis += options[0] + 1 if options else 0
        reverse = bool(options[1:]) and options[1]
    elif function == "argsort":
        first, descending = shape[-1], bool(options[0])
    elif function == "top_positions":
        first, descending = options[0], bool(options[1])
    else:
        return None
    before, length, behind = prod(shape[:axis]), shape[axis], prod(shape[axis + 1 :])
    result = dtypes.int64 if function in POSITIONS | ORDERS else dtype
    elements = before * behind * (first if function in ORDERS else length)
    if length >= LONGEST or not proven(elements, 1):
        return None
    taken = BufferUse(dtype, before * length * behind, "in")
    several = (taken, taken) if function in RECURRENCES else (taken,)
    uses = (*several, BufferUse(result, elements, "out"))
    rows = before * behind
    workers = threads if isinstance(rows, Extent) else max(1, min(rows, threads))
    made = Along(
        "", (), (), uses, Schedule(parallel=workers > 1), function=function, dtype=dtype,
        before=before, length=length, behind=behind, first=first, descending=descending,
        reverse=reverse, workers=workers,
    )  # fmt: skip
    if made.scratch:
        scratch = BufferUse(dtypes.int64, workers * made.scratch, "partials")
        made = replace(made, buffers=(*uses, scratch))
    digest = blake2b(repr(made).encode(), digest_size=8).hexdigest()
    return replace(made, name=f"{function.removeprefix('scan_')}_{digest}")


def _has(dtype: DType) -> bool:
    return dtype.kind <= Kind.FLOAT and dtype.itemsize in (1, 2, 4, 8) and not dtype.is_complex
