"""Scalar values of a kernel as Triton text: constants, loads and functions.

A `Values` walks the value graph of a stage and names each value once. 16-bit floats are computed in
float32 and rounded at casts and stores; bool lives in memory as int8 and in registers as int1.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np

from ...ir import dtypes
from ...ir.dtypes import DType, Kind
from ...ir.index import (
    Condition,
    Expr,
    Guard,
    Read,
    Var,
    num,
    substitute,
    unflatten,
    variables,
)
from ...ir.index import constant as known
from ...ir.scalar import TABLE
from ..kernel import Apply, Constant, Holds, IndexValue, Kernel, Load, Result, Stage, Value
from . import spelling
from .index import NOWHERE, Scope, Term, Text
from .tiling import Lanes, Tiling, UnsupportedKernel

_BARE_FLOOR = re.compile(r"(?<![\w.])floor\(")
_SMALLEST = float(np.finfo(np.float32).smallest_normal)


class Values(Text):
    """Names for the values of one kernel."""

    def __init__(self, kernel: Kernel, tiling: Tiling, wide: bool) -> None:
        super().__init__()
        self.kernel = kernel
        self.tiling = tiling
        self.integer = "tl.int64" if wide else "tl.int32"
        self.used: set[str] = set()  # names of `FUNCTIONS` that are called
        self.results: dict[int, Term] = {}
        self.masks: dict[str, Term] = {}  # coordinate -> where it lies inside its extent
        self.stored: dict[tuple[int, str], tuple[Term, Scope]] = {}
        self.versions: dict[int, int] = {}  # how often a buffer was stored to so far
        self.synchronised: set[tuple[int, int]] = set()
        self.mapping: Mapping[Expr, Expr] = {}
        self.memo: dict[int, Term] = {}

    # --- coordinates -----------------------------------------------------------------------------

    def enter(self, stage: Stage) -> None:
        """Let the axes of `stage` mean coordinates of the tile from here on."""
        self.memo = {}
        mapping = _coordinates(self.tiling.row, self.tiling.order)
        lanes = self.tiling.of(stage)
        if lanes is not None:
            mapping |= _coordinates(lanes.var, stage.axes)
        self.mapping = mapping

    def place(self, e: Expr) -> Expr:
        """e in the coordinates of the tile."""
        return substitute(e, self.mapping)

    def inside(self, dims: frozenset[str]) -> tuple[Term, ...]:
        """The masks that keep these coordinates inside their extents."""
        return tuple(mask for name, mask in sorted(self.masks.items()) if name in dims)

    def conditions(self, guard: Guard) -> tuple[Term, ...] | None:
        """The guard as masks; None when it never holds."""
        terms: list[Term] = []
        for condition in guard:
            placed = Condition(self.place(condition.expr), condition.equal)
            if placed.never:
                return None
            if not placed.always:
                e = self.index(placed.expr, self.inside(_dims(placed.expr)))
                sign = "==" if placed.equal else ">="
                terms.append(self.name(f"{e.text} {sign} 0", e.dims, prefix="m"))
        return tuple(terms)

    def shape(self, lanes: Lanes | None) -> tuple[int, ...]:
        """The shape of a tile that varies with everything."""
        if self.tiling.two_dimensional:
            return (self.tiling.rows, lanes.block if lanes else 1)
        if self.tiling.lanes:
            return (lanes.block,) if lanes else ()
        return (self.tiling.rows,)

    def spread(self, term: Term, lanes: Lanes | None, dtype: DType) -> Term:
        """The term as a whole tile."""
        needed = {lanes.var.name} if lanes else set()
        if self.tiling.rows > 1:
            needed.add("row")
        shape = self.shape(lanes)
        dims = term.dims | needed | {"row"}
        if term.is_literal:
            return self.name(f"tl.full({shape}, {term.text}, {spelling.register(dtype)})", dims)
        if needed <= term.dims or not shape:
            return term
        return self.name(f"tl.broadcast_to({term.text}, {shape})", dims)

    # --- values ----------------------------------------------------------------------------------

    def value(self, root: Value) -> Term:
        """The term that holds `root`."""
        stack = [root]
        while stack:
            here = stack[-1]
            operands = here.operands if isinstance(here, Apply) else ()
            missing = [each for each in operands if id(each) not in self.memo]
            if missing:
                stack.extend(missing)
                continue
            stack.pop()
            if id(here) not in self.memo:
                self.memo[id(here)] = self._one(here)
        return self.memo[id(root)]

    def _one(self, v: Value) -> Term:
        if isinstance(v, Constant):
            return self.number(v.value, v.dtype)
        if isinstance(v, Load):
            return self.load(v)
        if isinstance(v, IndexValue):
            placed = self.place(v.expr)
            e = self.index(placed, self.inside(_dims(placed)))
            if not e.dims and known(placed) is not None:
                return self.number(int(e.text), v.dtype)
            return self.name(f"({e.text}).to({spelling.register(v.dtype)})", e.dims)
        if isinstance(v, Holds):
            return self._holds(v)
        if isinstance(v, Apply):
            return self.apply(v)
        if isinstance(v, Result):
            return self.results[v.number]
        raise UnsupportedKernel(f"no text for the value {v}")

    def number(self, value: bool | int | float, dtype: DType) -> Term:
        """A constant: a literal where Triton gives it the right type, else a named scalar."""
        kind = spelling.register(dtype)
        if kind == "tl.float32":
            value = float(value)
            plain = not np.isfinite(value) or value == 0 or _SMALLEST <= abs(value) <= 3.4e38
            if plain:
                return Term(spelling.literal(value))
        elif dtype.is_floating_point:
            value = float(value)
        else:
            value = bool(value) if dtype.kind is Kind.BOOL else int(value)
        return self.name(f"tl.full((), {spelling.literal(value)}, {kind})", NOWHERE, prefix="c")

    def named(self, term: Term, dtype: DType) -> Term:
        """A literal as a named scalar of the dtype's register type."""
        if not term.is_literal:
            return term
        text = f"tl.full((), {term.text}, {spelling.register(dtype)})"
        return self.name(text, NOWHERE, prefix="c")

    def _holds(self, v: Holds) -> Term:
        conditions = self.conditions(v.guard)
        if conditions is None:
            return self.number(False, dtypes.bool_)
        if not conditions:
            return self.number(True, dtypes.bool_)
        return self.both(conditions)

    def both(self, masks: tuple[Term, ...]) -> Term:
        """The conjunction of masks."""
        dims = NOWHERE.union(*(mask.dims for mask in masks))
        if len(masks) == 1:
            return masks[0]
        return self.name(" & ".join(mask.text for mask in masks), dims, prefix="m")

    # --- memory ----------------------------------------------------------------------------------

    def load(self, v: Load) -> Term:
        use = self.kernel.buffers[v.buffer]
        e = self.place(v.index)
        guard = self.conditions(v.guard)
        if guard is None:
            return self.number(v.fill, v.dtype)
        dims = _dims(e).union(*(mask.dims for mask in guard))
        masks = (*self.inside(dims), *guard)
        where = self.index(e, masks)
        forwarded = self.stored.get((v.buffer, where.text))
        if forwarded is not None and forwarded[1] in self.scopes and not guard:
            return forwarded[0]
        if use.role == "row" and not self.row_in_memory:
            raise UnsupportedKernel(f"buffer {v.buffer} is loaded otherwise than it was stored")
        version = self._synchronise(v.buffer, dims)
        text = self._access("load", v.buffer, e, where, dims)
        if masks:
            fill = float(v.fill) if use.dtype.is_floating_point else int(v.fill)
            text += f", mask={self.both(masks).text}, other={spelling.literal(fill)}"
        return self.name(_from_memory(text + ")", use.dtype), dims, key=f"#{version}", prefix="x")

    def _access(self, verb: str, buffer: int, e: Expr, where: Term, dims: frozenset[str]) -> str:
        """The opening of a load or store, its pointer as wide as `dims`."""
        text = where.text
        if self.kernel.buffers[buffer].role == "row":
            text = f"row * {self.kernel.buffers[buffer].elements} + {text}"
        vectors = {lanes.var.name for lanes in self.tiling.lanes.values()}
        if self.tiling.rows > 1:
            vectors.add("row")
        for name in sorted((dims & vectors) - _dims(e)):
            text += f" + 0 * {name}"
        return f"tl.{verb}(p{buffer} + {text}"

    def _synchronise(self, buffer: int, dims: frozenset[str]) -> int:
        """What this program stored to `buffer` is seen by all its threads from here on."""
        version = self.versions.get(buffer, 0)
        if version and (buffer, version) not in self.synchronised:
            self.synchronised.add((buffer, version))
            self.home(dims).lines.append("tl.debug_barrier()")
        return version

    def read(self, e: Read, masks: tuple[Term, ...]) -> Term:
        if len(e.index) != 1:
            raise UnsupportedKernel(f"the index {e} is not flat")
        dtype = self.kernel.buffers[e.source].dtype
        where = self.index(e.index[0], masks)
        dims = where.dims.union(*(mask.dims for mask in masks))
        text = self._access("load", e.source, e.index[0], where, dims)
        if masks:
            text += f", mask={self.both(masks).text}, other=0"
        text += ")"
        if spelling.register(dtype) != self.integer:
            text += f".to({self.integer})"
        return self.name(text, dims, prefix="k")

    def store(
        self, buffer: int, index: Expr, value: Term, guard: Guard, dtype: DType, verb: str = "store"
    ) -> None:
        """Write a value, or with another verb combine it with what is there."""
        use = self.kernel.buffers[buffer]
        conditions = self.conditions(guard)
        if conditions is None:
            return
        e = self.place(index)
        dims = _dims(e).union(value.dims, *(mask.dims for mask in conditions))
        masks = (*self.inside(dims), *conditions)
        where = self.index(e, masks)
        kept = self.cast(value, dtype, use.dtype)
        if use.dtype.is_half and use.role == "row":
            kept = self.rounded(kept, use.dtype)
        if use.role != "row" or self.row_in_memory:
            text = self._access(verb, buffer, e, where, dims)
            held = f"{kept.text}.to(tl.int8)" if use.dtype.kind is Kind.BOOL else kept.text
            text += f", {held}"
            if masks:
                text += f", mask={self.both(masks).text}"
            if verb != "store":
                text += ', sem="relaxed"'
            self.line(text + ")")
            self.versions[buffer] = self.versions.get(buffer, 0) + 1
            self._forget(buffer)
        exact = use.role == "row" or not use.dtype.is_half
        if not conditions and exact and verb == "store":
            self.stored[buffer, where.text] = (kept, self.home(dims))

    def _forget(self, buffer: int) -> None:
        for key in [key for key in self.stored if key[0] == buffer]:
            del self.stored[key]

    @property
    def row_in_memory(self) -> bool:
        """Whether "row" buffers need memory because rows do not fit the registers."""
        return any(lanes.where == "loop" for lanes in self.tiling.lanes.values())

    # --- functions -------------------------------------------------------------------------------

    def apply(self, v: Apply) -> Term:
        operands = [self.memo[id(each)] for each in v.operands]
        given = [each.dtype for each in v.operands]
        if v.function == "cast":
            return self.cast(operands[0], given[0], v.dtype)
        if v.function == "bitcast":
            return self._bitcast(operands[0], given[0], v.dtype)
        dims = NOWHERE.union(*(each.dims for each in operands))
        template = _BARE_FLOOR.sub("tl.floor(", TABLE[v.function].triton)
        integer = given[-1].kind is Kind.INT
        if integer and v.function in spelling.INTEGER_FUNCTIONS:
            template = spelling.INTEGER_FUNCTIONS[v.function]
            self.used |= {name for name in spelling.FUNCTIONS if template.startswith(name + "(")}
        elif "(" in template or all(each.is_literal for each in operands):
            # Functions take tensors, not Python numbers.
            operands = [self.named(each, dtype) for each, dtype in zip(operands, given)]
        if given[-1] is dtypes.float64:
            template = template.replace("tl.sqrt_rn", "tl.sqrt")
        if template == "{0}":
            return operands[0]
        return self.name(template.format(*(each.text for each in operands)), dims)

    def cast(self, term: Term, source: DType, target: DType) -> Term:
        """term, a value of dtype source, as one of dtype target."""
        if source is target:
            return term
        term = self.named(term, source)
        if target.kind is Kind.BOOL:
            return self.name(f"{term.text} != 0", term.dims)
        if target.is_half:
            return self.rounded(term, target)
        if spelling.register(source) == spelling.register(target):
            return term
        if source.is_floating_point and target.kind is Kind.INT:
            return self._saturate(term, target)
        return self.name(f"{term.text}.to({spelling.register(target)})", term.dims)

    def rounded(self, term: Term, dtype: DType) -> Term:
        """A float32 value rounded to what a 16-bit float can hold."""
        text = self.named(term, dtypes.float32).text
        return self.name(f"{text}.to({spelling.element(dtype)}).to(tl.float32)", term.dims)

    def _saturate(self, term: Term, target: DType) -> Term:
        limits = np.iinfo(target.numpy)
        low = self.number(int(limits.min), target).text
        high = self.number(int(limits.max), target).text
        self.used.add("saturate")
        above = float(int(limits.max) + 1)
        return self.name(f"saturate({term.text}, {low}, {high}, {above!r})", term.dims)

    def _bitcast(self, term: Term, source: DType, target: DType) -> Term:
        text = self.named(term, source).text
        if source.is_half:
            text += f".to({spelling.element(source)})"
        text += f".to({spelling.element(target)}, bitcast=True)"
        if target.is_half:
            text += ".to(tl.float32)"
        return self.name(text, term.dims)


def _coordinates(flat: Var, axes: tuple[Var, ...]) -> dict[Expr, Expr]:
    """Each axis as an expression of the flat coordinate."""
    if flat.extent == 1:
        return {axis: num(0) for axis in axes}
    index = unflatten(flat, tuple(axis.extent for axis in axes))
    return dict(zip(axes, index))


def _dims(e: Expr) -> frozenset[str]:
    return frozenset(var.name for var in variables(e))


def _from_memory(text: str, dtype: DType) -> str:
    if dtype.kind is Kind.BOOL:
        return f"{text} != 0"
    return f"{text}.to(tl.float32)" if dtype.is_half else text
